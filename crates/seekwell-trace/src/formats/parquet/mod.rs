//! Parquet: the columns of our CSV with types, for pandas, polars, DuckDB and long traces.
//!
//! The writer writes all columns of [`super::csv`], numbers as 64-bit integers, the rest as text,
//! and a column `name` with the process's name. The reader reads any Parquet file with columns of
//! these names, in any order and integer width, and skips other columns. Left out: nested columns
//! and calendar timestamps.

mod bounds;
mod read;
mod write;

use crate::registry::{Carries, FormatInfo, Has, Keeps, Volumes};

/// The magic bytes at both ends of a Parquet file.
const MAGIC: &[u8] = b"PAR1";

/// The column of process names, which CSV does not have.
const NAME: &str = "name";

/// The entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "parquet",
    summary: "Parquet: the columns of the CSV, typed, for pandas, polars and DuckDB",
    extensions: &["parquet"],
    help: "The columns of the CSV (see csv): t_ns, op, flags, sector, sectors, pid, cpu, ioprio, \
        cgroup, device, t_insert, t_issue, t_complete and error, numbers as integers, and name with \
        what the process was called. Unknown values are null. A table made elsewhere is read if its \
        columns have names that the CSV knows (t_us, offset, bytes ...); other columns are passed \
        over. Columns may be packed with Snappy (as pandas, DuckDB and Spark do), gzip, LZ4 or \
        zstd; written is zstd. As a Parquet file's table of contents is at its end, one that was cut off holds \
        nothing that can be read.",
    carries: Carries {
        pids: Has::Maybe,
        completions: Has::Maybe,
        issues: Has::Maybe,
        ioprio: Has::Maybe,
        flags: Has::Yes,
        time: "1 ns",
    },
    keeps: Keeps {
        names: true,
        ..Keeps::ALL
    },
    volumes: Volumes::Numbered,
    text: false,
    detect: |head| head.starts_with(MAGIC),
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        Ok(Box::new(read::ParquetReader::new(input, options)?))
    },
    create: Some(|out, options| Ok(Box::new(write::ParquetWriter::new(out, options)?))),
};
