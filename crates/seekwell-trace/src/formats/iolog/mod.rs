//! fio's iolog, versions 2 and 3: lines of `FILE ACTION [OFFSET LENGTH]` in bytes. Version 3 has a
//! time stamp before them.
//!
//! Version 2 has `wait` lines: the time since the previous wait, in microseconds; fio drops waits
//! below 100 us. Version 3 has times since the start, in microseconds (as written by fio 3.33 and
//! 3.42; [`crate::ReadOptions::iolog_unit`] sets another unit).
//!
//! An iolog may name several files. Each gets its own address range, in order of appearance, and a
//! warning lists the ranges. Left out: the submitting processes, and completions.

mod read;
mod write;

use crate::registry::{Carries, FormatInfo, Has, Keeps, Volumes};
pub use write::IologWriter;

const fn carries(time: &'static str) -> Carries {
    Carries {
        pids: Has::No,
        completions: Has::No,
        issues: Has::No,
        ioprio: Has::No,
        flags: Has::No,
        time,
    }
}

/// The registry entry of version 3.
pub const INFO_V3: FormatInfo = FormatInfo {
    name: "fio-iolog-v3",
    summary: "fio iolog version 3 (fio 3.31 and later), with time stamps",
    extensions: &["iolog", "log"],
    help: "What fio writes with write_iolog and replays with read_iolog. sync and datasync become \
           flushes. Several files are laid one behind the other. Knows neither processes nor \
           completions: replay it timed, scaled or at a fixed depth.",
    carries: carries("1 us"),
    keeps: Keeps::NONE,
    volumes: Volumes::One,
    text: true,
    // Recognise unknown versions, too, in order to reject them with a clear error.
    detect: |head| read::version_of(head).is_some_and(|v| v != 2),
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        Ok(Box::new(read::IologReader::new(input, options, 3)?))
    },
    create: Some(|out, options| Ok(Box::new(IologWriter::new(out, options, 3)?))),
};

/// The registry entry of version 2.
pub const INFO_V2: FormatInfo = FormatInfo {
    name: "fio-iolog-v2",
    summary: "fio iolog version 2, with waits",
    extensions: &["iolog", "log"],
    help: "What fio wrote before 3.31, and still replays. Time passes in wait lines only, in \
           steps of at least 100 us. Otherwise as version 3.",
    carries: carries("100 us"),
    keeps: Keeps {
        time_ns: 100_000,
        ..Keeps::NONE
    },
    volumes: Volumes::One,
    text: true,
    detect: |head| read::version_of(head) == Some(2),
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        Ok(Box::new(read::IologReader::new(input, options, 2)?))
    },
    create: Some(|out, options| Ok(Box::new(IologWriter::new(out, options, 2)?))),
};
