//! FIU traces (Koller and Rangaswami, FAST 2010): mail, web and home directory servers of a
//! university department, 2008, with the digests of the contents. SNIA publishes them as "FIU
//! IODedup" (<http://iotta.snia.org/traces/block-io/391>).
//!
//! Each line has the fields time, pid, process, LBA, size, R or W, major and minor device number,
//! and an MD5 digest, separated by blanks. The README of the traces states the units: the time is
//! in nanoseconds, the size in blocks of 512 bytes. The digest is not used.

use super::ftrace::last_word;
use super::lines::{BLANK, Dialect, Line, LineReader, Wrong, begins, with_rwbs};
use crate::blk::{BlkEvent, rwbs_parse};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::record::device_number;
use crate::text::{number, word};

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "fiu",
    summary: "FIU IODedup: mail, web and home directory servers, 2008",
    extensions: &["blkparse", "txt"],
    help: "Each line has the fields time, pid, process, LBA, size, R or W, major, minor and MD5, \
           separated by blanks. Times are in nanoseconds, the LBA and the size in blocks of 512 \
           bytes. The digests are ignored. The published files are tar archives: tar -xzOf \
           FILE.tar.gz | seekwell replay -. The format contains no completion times, so replay it \
           with --mode timed, scaled:FACTOR or depth:N.",
    carries: Carries {
        pids: Has::Yes,
        completions: Has::No,
        issues: Has::No,
        ioprio: Has::No,
        flags: Has::No,
        time: "1 ns",
    },
    keeps: Keeps::NONE,
    volumes: Volumes::Numbered,
    text: true,
    detect: |head| begins(head, parse),
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        Ok(Box::new(LineReader::new(DIALECT, input, options)))
    },
    create: None,
};

const DIALECT: Dialect = Dialect {
    parse,
    remedy: "the line should read \"time pid process LBA size R|W major minor MD5\", the time in \
             nanoseconds, the size in blocks of 512 bytes",
    lost: "places where events were lost",
    requests: false,
};

fn parse(line: &[u8]) -> Result<Line<'_>, Wrong<'_>> {
    if line.trim_ascii().is_empty() {
        return Ok(Line::Nothing);
    }
    let mut at = 0;
    let (time, pid) = (word(line, &mut at), word(line, &mut at));
    // The name of a process can contain blanks, so the other fields are counted from the end.
    let mut from = line.trim_ascii_end().len();
    let [digest, minor, major, op, size, lba] = std::array::from_fn(|_| {
        let (w, begin) = last_word(line, from);
        from = begin;
        w
    });
    let narrow = |w| number(w).and_then(|n| u32::try_from(n).ok());
    if digest.len() != 32 || !digest.iter().all(u8::is_ascii_hexdigit) {
        return Err(("MD5", digest));
    }
    if !matches!(op, b"R" | b"W") {
        return Err(("R or W", op));
    }
    let major = narrow(major)
        .filter(|&n| n < 1 << 12)
        .ok_or(("major", major))?;
    let minor = narrow(minor)
        .filter(|&n| n < 1 << 20)
        .ok_or(("minor", minor))?;
    let event = BlkEvent {
        t_ns: number(time).ok_or(("time", time))?,
        task: narrow(pid).ok_or(("pid", pid))?,
        sector: number(lba).ok_or(("LBA", lba))?,
        sectors: narrow(size).ok_or(("size", size))?,
        device: device_number(major, minor),
        ..BLANK
    };
    let process = line.get(at..from).ok_or(("process", line))?.trim_ascii();
    let event = with_rwbs(rwbs_parse(op), event);
    Ok(event.map_or(Line::Nothing, |e| Line::Event(e, process)))
}
