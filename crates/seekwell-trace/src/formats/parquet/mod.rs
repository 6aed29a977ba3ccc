//! Parquet files with the columns of Seekwell's CSV, for pandas, polars, DuckDB and long traces.
//!
//! The writer writes all columns of [`super::csv`], and a column `name` with the name of the
//! process. Numbers are 64-bit integers, and all other columns are text. The reader reads any
//! Parquet file that has columns with these names, in any order and integer width. It skips other
//! columns. Nested columns and calendar timestamps are not supported.

mod bounds;
mod read;
mod write;

use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};

/// The magic bytes at the start and the end of a Parquet file.
const MAGIC: &[u8] = b"PAR1";

/// The column of process names, which the CSV format does not have.
const NAME: &str = "name";

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "parquet",
    summary: "Parquet: the columns of the CSV, typed, for pandas, polars and DuckDB",
    extensions: &["parquet"],
    help: "The columns of the CSV (see csv): t_ns, op, flags, sector, sectors, pid, cpu, ioprio, \
           cgroup, device, t_insert, t_issue, t_complete and error. Numbers are integers. The \
           column name holds the name of the process. Unknown values are null. A table from \
           another program can be read if its columns have names that the CSV accepts (t_us, \
           offset, bytes ...); other columns are ignored. Columns can be compressed with Snappy \
           (as by pandas, DuckDB and Spark), gzip, LZ4 or zstd; the writer uses zstd. A Parquet \
           file has its metadata at the end, so nothing can be read from an incomplete file.",
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
