//! The output of biosnoop, of the BPF Compiler Collection: `TIME(s) COMM PID DISK T SECTOR BYTES
//! LAT(ms)`, with the columns `P` and `QUE(ms)` if they were requested.
//!
//! The layout follows `tools/biosnoop.py` and `libbpf-tools/biosnoop.c` in
//! <https://github.com/iovisor/bcc>. A line is printed when a request completes. `TIME(s)` is the
//! time of the completion since the first line, `LAT(ms)` the time from issue to completion, and
//! `QUE(ms)` the time from submission to issue. `SECTOR` has 512 bytes. `T` is R or W in the Python
//! program, where R also covers discards and flushes, and an RWBS field in the C program.

use super::ftrace::last_word;
use super::lines::{BLANK, Dialect, Line, LineReader, Request, Wrong, begins, with_rwbs};
use crate::blk::{BlkEvent, rwbs_parse};
use crate::error::{ErrorKind, Place};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::input::SNIFF_BYTES;
use crate::text::{decimal_ns, number, word};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{Action, NSEC_PER_SEC, Op};

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "biosnoop",
    summary: "biosnoop of the BPF Compiler Collection (bcc), with or without -Q",
    extensions: &["biosnoop", "txt"],
    help: "The lines of biosnoop (or biosnoop-bpfcc) of bcc, one per completed request. The time of \
           the issue is TIME(s) minus LAT(ms), so it is exact to 10 us. With -Q, records begin when \
           they were submitted; otherwise they are the requests issued to the device. The Python \
           version prints discards and flushes as R. If a trace has several disks, --trace-device \
           NAME (sda) selects one of them. biosnoop.bt of bpftrace prints no sectors, so it cannot \
           be read.",
    carries: Carries {
        pids: Has::Yes,
        completions: Has::Yes,
        issues: Has::Yes,
        ioprio: Has::No,
        flags: Has::Maybe,
        time: "10 us",
    },
    keeps: Keeps::NONE,
    volumes: Volumes::Named,
    text: true,
    detect: |head| is_bpftrace(head) || begins(head, parse),
    parts: None,
    open: |mut inputs, options, _| {
        let mut input = inputs.remove(0);
        if is_bpftrace(input.peek(SNIFF_BYTES, Place::File)?) {
            let what = "is output of bpftrace's biosnoop.bt, which prints no sectors and sizes";
            let remedy = "record with biosnoop of bcc (package bpfcc-tools), or with blktrace";
            return Err(input.error(ErrorKind::Unsupported, Place::File, what, remedy));
        }
        Ok(Box::new(LineReader::new(DIALECT, input, options)))
    },
    create: None,
};

const DIALECT: Dialect = Dialect {
    parse,
    remedy: "the line should read \"TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)\": \
             remove the line",
    lost: "requests without a disk, a sector or whole sectors skipped",
    requests: true,
};

/// Time of the first line on the clock of the trace. Requests that were issued before it have
/// earlier times.
const FIRST_NS: u64 = 3600 * NSEC_PER_SEC;
const MS_NS: u64 = 1_000_000;

/// Returns true for the header of bpftrace's program of the same name.
fn is_bpftrace(head: &[u8]) -> bool {
    let lines = head.split(|&c| c == b'\n').take(4);
    let header = |l: &[u8]| l.starts_with(b"TIME(ms)") && l.trim_ascii_end().ends_with(b"LAT(ms)");
    lines.into_iter().any(header)
}

fn sector_of(w: &[u8]) -> Option<u64> {
    // The C program prints the sector of a flush as a signed number.
    if w == b"-1" {
        return Some(u64::MAX);
    }
    number(w)
}

fn is_rwbs(w: &[u8]) -> bool {
    !w.is_empty() && w.len() <= 8 && w.iter().all(u8::is_ascii_uppercase)
}

fn parse(line: &[u8]) -> Result<Line<'_>, Wrong<'_>> {
    let line = line.trim_ascii();
    let starts = |start: &&[u8]| line.starts_with(start);
    if line.is_empty() || [&b"TIME(s)"[..], b"Tracing ", b"^C"].iter().any(starts) {
        return Ok(Line::Nothing);
    }
    if [&b"Possibly lost "[..], b"lost "].iter().any(starts) {
        return Ok(Line::Lost);
    }
    // A comm can contain blanks, so begin at the end.
    let mut end = line.len();
    let words: [&[u8]; 6] = std::array::from_fn(|_| {
        let (w, from) = last_word(line, end);
        end = from;
        w
    });
    // Up to two columns can stand between BYTES and LAT(ms).
    let fits = |i: &usize| {
        number(words[i + 1]).is_some() && sector_of(words[i + 2]).is_some() && is_rwbs(words[i + 3])
    };
    let Some(more) = (0..=2).find(fits) else {
        return Err(("T SECTOR BYTES", line));
    };
    let mut end = line.len();
    for _ in 0..more + 4 {
        (_, end) = last_word(line, end);
    }
    let (mut pid, mut from) = last_word(line, end);
    let mut disk = &line[..0];
    if number(pid).is_none() {
        disk = pid;
        (pid, from) = last_word(line, from);
    }
    let task = number(pid).and_then(|n| u32::try_from(n).ok());
    let task = task.ok_or(("PID", pid))?;
    let mut after = 0;
    let time = word(line, &mut after);
    let t_ns = decimal_ns(time, NSEC_PER_SEC).ok_or(("TIME(s)", time))?;
    let comm = line.get(after..from).ok_or(("COMM", line))?;
    let milliseconds = |name, w| decimal_ns(w, MS_NS).ok_or((name, w));
    let latency_ns = milliseconds("LAT(ms)", words[0])?;
    // The C program prints -1.000 if the time of the submission is unknown.
    let queue = (more > 0).then_some(words[1]).filter(|w| !is_rwbs(w));
    let queued_ns = match queue {
        Some(w) if w.starts_with(b"-1") => Some(0),
        Some(w) => Some(milliseconds("QUE(ms)", w)?),
        None => None,
    };
    let rwbs = rwbs_parse(words[more + 3]);
    let (bytes, sector) = (number(words[more + 1]), sector_of(words[more + 2]));
    let (bytes, sector) = (bytes.unwrap_or(0), sector.unwrap_or(0));
    let flush = bytes == 0 && (sector == u64::MAX || rwbs.op == Some(Op::Flush));
    if disk.is_empty() || bytes % SECTOR_BYTES != 0 || bytes == 0 && !flush {
        return Ok(Line::Lost);
    }
    let sectors = u32::try_from(bytes / SECTOR_BYTES);
    let complete_ns = t_ns.checked_add(FIRST_NS).ok_or(("TIME(s)", time))?;
    let issue_ns = complete_ns.saturating_sub(latency_ns);
    let event = BlkEvent {
        t_ns: issue_ns,
        action: Action::Issue,
        sector: if flush { 0 } else { sector },
        sectors: sectors.map_err(|_| ("BYTES", words[more + 1]))?,
        task,
        ..BLANK
    };
    let event = if flush {
        Some(BlkEvent {
            op: Op::Flush,
            ..event
        })
    } else {
        with_rwbs(rwbs, event)
    };
    Ok(event.map_or(Line::Lost, |issue| {
        Line::Request(Request {
            issue,
            queue_ns: queued_ns.map(|q| issue_ns.saturating_sub(q)),
            complete_ns,
            process: comm.trim_ascii(),
            disk,
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Request<'_> {
        match parse(line.as_bytes()) {
            Ok(Line::Request(r)) => r,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn columns_of_all_versions_are_parsed() {
        for (line, queued_ns) in [
            (
                "3.740882    my app  1    184    sda     W 2694656    12288     6.72",
                None,
            ),
            (
                "3.740882    my app  1    184    sda     W 2694656    12288      0.01    6.72",
                Some(10_000),
            ),
            (
                "3.740882    my app  1    184    sda     W 2694656    12288   S    6.72",
                None,
            ),
            (
                "3.740882    my app  1    184    sda     W 2694656    12288   R    0.01    6.72",
                Some(10_000),
            ),
            (
                "3.740882    my app  1    184    sda     WSM  2694656    12288   -1.000   6.720",
                Some(0),
            ),
        ] {
            let r = request(line);
            let e = r.issue;
            assert_eq!(
                (e.task, e.sector, e.sectors, e.op),
                (184, 2_694_656, 24, Op::Write)
            );
            assert_eq!(
                (r.process, r.disk),
                (&b"my app  1"[..], &b"sda"[..]),
                "{line}"
            );
            assert_eq!(r.complete_ns, FIRST_NS + 3_740_882_000);
            assert_eq!(r.complete_ns - e.t_ns, 6_720_000);
            assert_eq!(r.queue_ns.map(|q| e.t_ns - q), queued_ns, "{line}");
        }
    }

    #[test]
    fn flushes_have_no_sector() {
        for line in [
            "0.000000    kworker/23:1   9126   sda     R 18446744073709551615 0         0.61",
            "0.000000    kworker/23:1   9126   sda     FF   -1         0         0.610",
        ] {
            let e = request(line).issue;
            assert_eq!((e.op, e.sector, e.sectors), (Op::Flush, 0, 0), "{line}");
        }
    }

    #[test]
    fn requests_without_a_place_are_counted() {
        for line in [
            "2.023791    ?              0              R 0          8        11.83",
            "2.159341    ?              0              R 0          0         0.20",
            "0.000000    kworker/23:1   9126           R 18446744073709551615 0         0.61",
            "2.5         smartctl       7      sda     R 0          36        0.20",
            "Possibly lost 12 samples",
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(Line::Lost), "{line}");
        }
    }

    #[test]
    fn broken_lines_name_the_field() {
        let good = "3.5 app 184 sda W 64 4096 6.72";
        request(good);
        for (from, to, what) in [
            ("3.5", "x", "TIME(s)"),
            ("184", "z", "PID"),
            ("W 64", "W -", "T SECTOR BYTES"),
            ("W", "w", "T SECTOR BYTES"),
            ("6.72", "fast", "LAT(ms)"),
        ] {
            let line = good.replacen(from, to, 1);
            assert_eq!(parse(line.as_bytes()).expect_err(&line).0, what, "{line}");
        }
    }
}
