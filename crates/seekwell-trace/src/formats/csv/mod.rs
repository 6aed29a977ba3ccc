//! CSV with one record per line. It is Seekwell's own lossless exchange format, and is also used
//! for hand-written lists of requests.
//!
//! The first line names the columns, in any order. Time, operation, position and length can have
//! several names and units; [`HELP`] lists all of them. An empty field means that the value is
//! unknown. If the line of names is missing, the columns are `t_us,id,pid,op,sector,n`. Fields are
//! not quoted. A line that begins with `#` is a comment. With [`ReadOptions::columns`](crate::ReadOptions), the user
//! numbers the fields of any delimited text. `seekwell explain` reads the same format,
//! and also accepts control rows.

mod columns;
mod fields;
pub(super) mod read;
mod write;

use crate::error::{ErrorKind, Place};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
pub use columns::{Columns, Row};
use seekwell_core::{Flags, Op};
pub use write::CsvWriter;

/// Description of the CSV syntax for users. The help text of every command that reads CSV refers to
/// it.
pub const HELP: &str = "A line of column names, then one record per line. Time: t_ns, t_us, t_ms \
    or t_s, with or without a fraction. Operation: op, as a letter (R read, W write, D discard, F \
    flush, Z write-zeroes) or a word (read, write, trim, flush). It can also be a letter of \
    explain: S synchronous write, N synchronous write without idling, M metadata read, P metadata \
    read with priority, A read-ahead. Position: sector (of 512 bytes), or offset in bytes. Length: \
    sectors or n, or bytes. Optional: id, pid, cpu, flags (sync+meta+...), ioprio (class:level), \
    cgroup, device (major:minor), error, t_insert, t_issue and t_complete on the clock of t_ns, \
    and the latency lat_ns, lat_us, lat_ms or lat_s. For other programs: is_read or is_write (1 or \
    0), scsi_op, and page and pages of 4096 bytes. All fields except \
    operation, position and length can be empty. Without a line of names, the columns are t_us,id,pid,op,sector,n. \
    --columns reads any delimited text: t_s=1,op=3,offset=4,bytes=5 numbers the fields, and op=read \
    applies to all lines. Fields are separated by commas, semicolons, tabs or blanks.";

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "csv",
    summary: "CSV with a header: Seekwell's own exchange format, and hand-written lists",
    extensions: &["csv"],
    help: HELP,
    carries: Carries {
        pids: Has::Maybe,
        completions: Has::Maybe,
        issues: Has::Maybe,
        ioprio: Has::Maybe,
        flags: Has::Yes,
        time: "1 ns",
    },
    keeps: Keeps::ALL,
    volumes: Volumes::Numbered,
    text: true,
    detect: columns::detect,
    parts: None,
    open: |mut inputs, options, notes| {
        let input = inputs.remove(0);
        let Some(columns) = &options.columns else {
            return Ok(Box::new(read::CsvReader::new(input, options)?));
        };
        let columns = Columns::of_option(columns);
        let columns = columns
            .map_err(|(what, remedy)| input.error(ErrorKind::Mode, Place::File, what, remedy))?;
        Ok(Box::new(read::CsvReader::with(
            input, options, columns, notes,
        )?))
    },
    create: Some(|out, options| Ok(Box::new(CsvWriter::new(out, options)))),
};

/// Returns true for a letter or a word that names an operation.
pub(crate) fn is_operation(word: &[u8]) -> bool {
    columns::op_of(word).is_some()
}

/// The columns in the order in which they are written.
pub(super) const COLUMNS: [&str; 14] = [
    "t_ns",
    "op",
    "flags",
    "sector",
    "sectors",
    "pid",
    "cpu",
    "ioprio",
    "cgroup",
    "device",
    "t_insert",
    "t_issue",
    "t_complete",
    "error",
];

const OPS: [(Op, u8); 5] = [
    (Op::Read, b'R'),
    (Op::Write, b'W'),
    (Op::Discard, b'D'),
    (Op::Flush, b'F'),
    (Op::WriteZeroes, b'Z'),
];

/// Returns the letter of an operation.
pub(super) fn op_letter(op: Op) -> char {
    OPS.iter()
        .find(|o| o.0 == op)
        .map_or('?', |o| char::from(o.1))
}

/// Returns flags as text, for example `sync+meta`.
pub(super) fn flag_names(flags: Flags) -> String {
    let all = FLAGS.iter().filter(|f| flags.contains(f.0));
    all.map(|f| f.1).collect::<Vec<_>>().join("+")
}

const FLAGS: [(Flags, &str); 11] = [
    (Flags::SYNC, "sync"),
    (Flags::NOIDLE, "noidle"),
    (Flags::META, "meta"),
    (Flags::PRIO, "prio"),
    (Flags::RAHEAD, "ahead"),
    (Flags::PREFLUSH, "preflush"),
    (Flags::FUA, "fua"),
    (Flags::NOMERGE, "nomerge"),
    (Flags::BARRIER, "barrier"),
    (Flags::ASYNC_READ, "async"),
    (Flags::BACKGROUND, "background"),
];
