//! CSV, one record per line: Seekwell's own lossless exchange format, and hand-written lists.
//!
//! The first line names the columns, in any order. Time, operation, place and length have several
//! spellings and units ([`HELP`] lists them all). An empty field means unknown. Without this line,
//! the columns are `t_us,id,pid,op,sector,n`. There are no quotes. A line that begins with `#` is a
//! comment. `seekwell explain` reads the same lists, which may then contain control rows.

mod columns;
mod read;
mod write;

use crate::registry::{Carries, FormatInfo, Has, Keeps, Volumes};
pub use columns::{Columns, Row};
use seekwell_core::{Flags, Op};
pub use write::CsvWriter;

/// The syntax of a CSV for users; the help of every command that reads CSV refers to it.
pub const HELP: &str = "A line of column names, then one record a line. Time: t_ns, t_us, t_ms or \
    t_s, with a fraction or without. Operation: op, as R read, W write, D discard, F flush, Z \
    write-zeroes, or in words (read, write, trim, flush); explain's letters are sync writes S, \
    sync writes that nobody idles for N, metadata reads M, such with priority P, read-ahead A. \
    Place: sector (of 512 bytes), or offset in bytes. Length: sectors or n, or bytes. Maybe id, \
    pid, cpu, flags (sync+meta+...), ioprio (class:level), cgroup, device (major:minor), and on \
    the clock of t_ns t_insert, t_issue, t_complete, and error. Fields may be empty but for \
    operation, place and length. Without a line of names the columns are t_us,id,pid,op,sector,n.";

/// The entry in the registry.
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
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        Ok(Box::new(read::CsvReader::new(input, options)?))
    },
    create: Some(|out, options| Ok(Box::new(CsvWriter::new(out, options)))),
};

/// The columns in the order of writing.
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

/// The letter of an operation.
pub(super) fn op_letter(op: Op) -> char {
    OPS.iter()
        .find(|o| o.0 == op)
        .map_or('?', |o| char::from(o.1))
}

/// Modifiers as text, such as `sync+meta`.
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
