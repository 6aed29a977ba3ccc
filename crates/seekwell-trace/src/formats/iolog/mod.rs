//! The iolog of fio, versions 2 and 3. Its lines are `FILE ACTION [OFFSET LENGTH]`, in bytes. In
//! version 3, each line begins with a time stamp.
//!
//! Version 2 has `wait` lines with the time since the previous wait, in microseconds. fio does not
//! write waits of less than 100 us. Version 3 has times since the start, in microseconds (as fio
//! 3.33 and 3.42 write them; [`crate::ReadOptions::iolog_unit`] sets another unit).
//!
//! An iolog can contain several files. Each file gets its own address range, in order of
//! appearance, and a warning lists the ranges. The format contains no process IDs and no completion
//! times.

mod read;
mod write;

use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
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

/// The entry of version 3 in the registry.
pub const INFO_V3: FormatInfo = FormatInfo {
    name: "fio-iolog-v3",
    summary: "fio iolog version 3 (fio 3.31 and later), with time stamps",
    extensions: &["iolog", "log"],
    help: "The log that fio writes with write_iolog and replays with read_iolog. The actions sync \
           and datasync become flushes. If the log names several files, Seekwell places them one \
           after the other on the disk. The format contains no process IDs and no completion \
           times, so replay it with --mode timed, scaled:FACTOR or depth:N.",
    carries: carries("1 us"),
    keeps: Keeps::NONE,
    volumes: Volumes::One,
    text: true,
    // Unknown versions are also recognised, so that the reader can reject them with a clear error.
    detect: |head| read::version_of(head).is_some_and(|v| v != 2),
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        Ok(Box::new(read::IologReader::new(input, options, 3)?))
    },
    create: Some(|out, options| Ok(Box::new(IologWriter::new(out, options, 3)?))),
};

/// The entry of version 2 in the registry.
pub const INFO_V2: FormatInfo = FormatInfo {
    name: "fio-iolog-v2",
    summary: "fio iolog version 2, with waits",
    extensions: &["iolog", "log"],
    help: "The log that fio wrote before 3.31. Newer versions of fio still replay it. Only wait \
           lines contain times, in steps of at least 100 us. Everything else is the same as in \
           version 3.",
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
