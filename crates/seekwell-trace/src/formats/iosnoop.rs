//! The output of iosnoop, of perf-tools: `[STARTs] [ENDs] COMM PID TYPE DEV BLOCK BYTES LATms`.
//!
//! The layout follows <https://github.com/brendangregg/perf-tools>. A line is printed when a request
//! completes. The options -s and -t print its start and its end in seconds, on the clock of ftrace.
//! The start is the issue, or the insertion with -Q. `TYPE` is an RWBS field, and `BLOCK` has 512
//! bytes. Without -s and -t, no time can be derived.

use super::ftrace::last_word;
use super::lines::{BLANK, Dialect, Line, LineReader, Request, Wrong, begins, device, with_rwbs};
use crate::blk::{BlkEvent, rwbs_parse};
use crate::error::{ErrorKind, Place};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::input::SNIFF_BYTES;
use crate::text::{decimal_ns, number, seconds_ns, word};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{Action, Op};

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "iosnoop",
    summary: "iosnoop of perf-tools, with -s, -t or both",
    extensions: &["iosnoop", "txt"],
    help: "The lines of iosnoop of perf-tools, one per completed request. Records are the requests \
           issued to the device. Record with iosnoop -ts; without -s and -t, the lines contain no \
           times. If there is only one time, the other is computed from LATms, so it is exact to \
           10 us.",
    carries: Carries {
        pids: Has::Yes,
        completions: Has::Yes,
        issues: Has::Yes,
        ioprio: Has::No,
        flags: Has::Yes,
        time: "1 us",
    },
    keeps: Keeps::NONE,
    volumes: Volumes::Numbered,
    text: true,
    detect: |head| header(head).is_some() || begins(head, |line| parse(line, true, true)),
    parts: None,
    open: |mut inputs, options, _| {
        let mut input = inputs.remove(0);
        let times = header(input.peek(SNIFF_BYTES, Place::File)?);
        let parse: for<'a> fn(&'a [u8]) -> Result<Line<'a>, Wrong<'a>> = match times {
            None | Some((true, true)) => |line| parse(line, true, true),
            Some((true, false)) => |line| parse(line, true, false),
            Some((false, true)) => |line| parse(line, false, true),
            Some((false, false)) => {
                let what = "contains no times, only latencies (LATms)";
                let remedy = "record again with iosnoop -ts";
                return Err(input.error(ErrorKind::Unsupported, Place::File, what, remedy));
            }
        };
        let dialect = Dialect { parse, ..DIALECT };
        Ok(Box::new(LineReader::new(dialect, input, options)))
    },
    create: None,
};

const DIALECT: Dialect = Dialect {
    parse: |line| parse(line, true, true),
    remedy: "the line should read \"STARTs ENDs COMM PID TYPE DEV BLOCK BYTES LATms\": remove the \
             line",
    lost: "places where the kernel lost events: enlarge bufsize_kb in iosnoop",
    requests: true,
};

const MS_NS: u64 = 1_000_000;

/// Finds the header in the first lines. Returns whether it has STARTs and ENDs.
fn header(head: &[u8]) -> Option<(bool, bool)> {
    let lines = head.split(|&c| c == b'\n').take(4);
    let mut headers = lines.filter(|l| {
        let (last, from) = last_word(l, l.len());
        last == b"LATms" && last_word(l, from).0 == b"BYTES"
    });
    let has = |line: &[u8], name: &[u8]| memchr::memmem::find(line, name).is_some();
    headers.next().map(|l| (has(l, b"STARTs"), has(l, b"ENDs")))
}

fn parse(line: &[u8], has_start: bool, has_end: bool) -> Result<Line<'_>, Wrong<'_>> {
    let line = line.trim_ascii();
    let starts = |start: &&[u8]| line.starts_with(start);
    let ends = line.ends_with(b"LATms");
    let others = [&b"Tracing block I/O"[..], b"Ending tracing", b"^C"];
    if line.is_empty() || ends || others.iter().any(starts) {
        return Ok(Line::Nothing);
    }
    if line.starts_with(b"WARNING: ") {
        return Ok(Line::Lost);
    }
    // A comm can contain blanks, so begin at the end.
    let mut from = line.len();
    let [latency, bytes, block, disk, kind, pid] = std::array::from_fn(|_| {
        let (w, at) = last_word(line, from);
        from = at;
        w
    });
    let mut at = 0;
    let mut time = |name, wanted: bool| {
        wanted
            .then(|| word(line, &mut at))
            .map(|w| seconds_ns(w).ok_or((name, w)))
            .transpose()
    };
    let (start, end) = (time("STARTs", has_start)?, time("ENDs", has_end)?);
    let latency_ns = decimal_ns(latency, MS_NS).ok_or(("LATms", latency))?;
    let (t_ns, complete_ns) = match (start, end) {
        (Some(start), Some(end)) => (start, end),
        (Some(start), None) => (start, start.saturating_add(latency_ns)),
        (None, end) => {
            let end = end.unwrap_or(0);
            (end.saturating_sub(latency_ns), end)
        }
    };
    let sectors = number(bytes).filter(|n| n % SECTOR_BYTES == 0);
    let sectors = sectors.and_then(|n| u32::try_from(n / SECTOR_BYTES).ok());
    let task = number(pid).and_then(|n| u32::try_from(n).ok());
    let sector = number(block).ok_or(("BLOCK", block))?;
    let event = BlkEvent {
        t_ns,
        action: Action::Issue,
        sector,
        sectors: sectors.ok_or(("BYTES", bytes))?,
        task: task.ok_or(("PID", pid))?,
        device: device(disk).ok_or(("DEV", disk))?,
        ..BLANK
    };
    let comm = line.get(at..from).ok_or(("COMM", line))?.trim_ascii();
    Ok(match with_rwbs(rwbs_parse(kind), event) {
        // A packet command, or the end of the flush after a write.
        None => Line::Nothing,
        Some(e) if e.sectors == 0 && e.op != Op::Flush => Line::Nothing,
        Some(e) => Line::Request(Request {
            issue: BlkEvent {
                sector: if e.op == Op::Flush { 0 } else { sector },
                ..e
            },
            queue_ns: None,
            complete_ns,
            process: if comm == b"<...>" { b"" } else { comm },
            disk: b"",
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "14545946.331115 14545946.344366 my app 1         17185  WS   8,160    \
                        4840587442   4096      12.25";

    fn request(line: &str, start: bool, end: bool) -> Request<'_> {
        match parse(line.as_bytes(), start, end) {
            Ok(Line::Request(r)) => r,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn either_time_is_enough() {
        let whole = request(BOTH, true, true);
        let e = whole.issue;
        let got = (e.task, e.device, e.sector, e.sectors, e.op);
        assert_eq!(got, (17185, 8 << 20 | 160, 4_840_587_442, 8, Op::Write));
        assert_eq!(whole.process, b"my app 1");
        assert_eq!(whole.complete_ns - e.t_ns, 13_251_000, "from the two times");
        let one = &BOTH[16..];
        let end = request(one, false, true);
        assert_eq!(end.complete_ns, whole.complete_ns);
        assert_eq!(end.complete_ns - end.issue.t_ns, 12_250_000);
        let start = request(one, true, false);
        assert_eq!(start.issue.t_ns, whole.complete_ns);
        assert_eq!(start.complete_ns - start.issue.t_ns, 12_250_000);
    }

    #[test]
    fn broken_lines_name_the_field() {
        for (from, to, what) in [
            ("14545946.331115", "now", "STARTs"),
            ("14545946.344366", "14545946", "ENDs"),
            ("17185", "pid", "PID"),
            ("8,160", "sda", "DEV"),
            ("4840587442", "-1", "BLOCK"),
            ("4096", "4097", "BYTES"),
            ("12.25", "12ms", "LATms"),
        ] {
            let line = BOTH.replacen(from, to, 1);
            let wrong = parse(line.as_bytes(), true, true).expect_err(&line);
            assert_eq!(wrong.0, what, "{line}");
        }
    }
}
