//! Block events in the text of `perf script`:
//! `comm pid [cpu] seconds.us: block:EVENT: maj,min RWBS ... sector + sectors ... [comm]`.
//!
//! The text of an event is the same as in [ftrace](super::ftrace). The CPU is missing if perf
//! recorded one process, and a period can precede the event (perf-script(1), and
//! <https://www.brendangregg.com/perf.html>). Lines of other events and of call chains are skipped.

use super::ftrace::{Head, action_of, body, last_word};
use super::lines::{Dialect, Line, LineReader, Wrong, begins};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::text::{number, seconds_ns, word};

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "perf-script",
    summary: "block events in the text of perf script",
    extensions: &["perf", "txt"],
    help: "The text that perf script prints after perf record -a -e 'block:*'. Records are made \
           from the block_bio_queue events (or from block_rq_issue, if requested, or if there are \
           no others). Other events and call chains are skipped. Priorities are read \
           where the kernel prints them (since Linux 6.9). Record block:block_bio_queue, \
           block:block_rq_issue and block:block_rq_complete for a replay.",
    carries: Carries {
        pids: Has::Yes,
        completions: Has::Maybe,
        issues: Has::Maybe,
        ioprio: Has::Maybe,
        flags: Has::Yes,
        time: "1 us",
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
    remedy: "the line should read \"comm pid [cpu] seconds.us: block:block_...: maj,min RWBS ... \
             sector + sectors [...]\": use perf script without -F, or remove the line",
    lost: "places where perf lost events: enlarge its buffer with perf record -m",
    requests: false,
};

/// Parses `comm pid[/tid] [cpu] seconds.us`, beginning at the end, because a comm can contain
/// blanks.
fn head(text: &[u8]) -> Result<Head<'_>, Wrong<'_>> {
    let (w, at) = last_word(text, text.len());
    let t_ns = seconds_ns(w).ok_or(("time", w))?;
    let (mut w, mut from) = last_word(text, at);
    let cpu = w.strip_prefix(b"[").and_then(|w| w.strip_suffix(b"]"));
    if cpu.is_some() {
        (w, from) = last_word(text, from);
    }
    let cpu = cpu.map_or(Some(0), number).and_then(|n| n.try_into().ok());
    let tid = w.rsplit(|&c| c == b'/').next().unwrap_or(w);
    let pid = number(tid).and_then(|n| n.try_into().ok());
    Ok(Head {
        comm: text[..from].trim_ascii(),
        pid: pid.ok_or(("pid", w))?,
        cpu: cpu.ok_or(("CPU in brackets", w))?,
        t_ns,
    })
}

/// Returns true for a line of a call chain: an address, and a symbol with its file in parentheses.
fn is_frame(line: &[u8]) -> bool {
    let address = word(line, &mut 0);
    line.starts_with(b"\t") && line.ends_with(b")") && address.iter().all(u8::is_ascii_hexdigit)
}

fn parse(line: &[u8]) -> Result<Line<'_>, Wrong<'_>> {
    let trimmed = line.trim_ascii();
    if trimmed.is_empty() || trimmed.starts_with(b"#") || is_frame(line.trim_ascii_end()) {
        return Ok(Line::Nothing);
    }
    if memchr::memmem::find(trimmed, b"PERF_RECORD_LOST").is_some() {
        return Ok(Line::Lost);
    }
    // The line has the form "seconds.us: event: text". Use the first colon with a valid head on its
    // left.
    let mut found = Err(("\"seconds.us: EVENT: \"", trimmed));
    for i in memchr::memchr_iter(b':', line).take(8) {
        match head(&line[..i]) {
            Ok(h) => {
                found = Ok((h, i + 1));
                break;
            }
            Err(wrong) if i > 0 && line[i - 1].is_ascii_digit() => found = Err(wrong),
            Err(_) => {}
        }
    }
    let (head, mut at) = found?;
    let mut event = word(line, &mut at);
    if number(event).is_some() {
        event = word(line, &mut at);
    }
    let name = event.strip_prefix(b"block:");
    match name.and_then(|n| n.strip_suffix(b":")).and_then(action_of) {
        Some(action) => body(line, &mut at, action, &head),
        None => Ok(Line::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_core::{Action, Op};

    /// The forms of lines in public recordings, from kernel 3.13 to 6.14.
    #[test]
    fn lines_of_all_forms_are_parsed() {
        for (line, task, cpu, sector) in [
            (
                "     randread.pl  2522 [003]  6011.824759: block:block_rq_issue: 254,16 R 0 () \
                 7322849 + 16 [randread.pl]",
                2522,
                3,
                7_322_849,
            ),
            (
                "  graph walk 126/1264 [002] 82545.601537:    block:block_rq_issue: 259,1 RA 8192 \
                 () 2209576568 + 16 0x2,0,4 [graph walk]",
                1264,
                2,
                2_209_576_568,
            ),
            (
                "dd  77  9.000001:          1 block:block_rq_issue: 8,0 WS 8192 () 64 + 16 \
                 none,0,0 [dd]",
                77,
                0,
                64,
            ),
        ] {
            let Ok(Line::Event(e, _)) = parse(line.as_bytes()) else {
                panic!("{line}: {:?}", parse(line.as_bytes()));
            };
            assert_eq!(
                (e.task, e.cpu, e.sector, e.sectors),
                (task, cpu, sector, 16)
            );
            assert_eq!(e.action, Action::Issue);
        }
        let queue = b" a b 7 [000] 1.5: block:block_bio_queue: 8,0 D 64 + 16 [a b]";
        let Ok(Line::Event(e, name)) = parse(queue) else {
            panic!("not parsed");
        };
        assert_eq!((e.op, name), (Op::Discard, &b"a b"[..]));
    }

    #[test]
    fn lines_without_a_block_event_are_skipped() {
        for line in [
            "# captured on: today",
            "",
            "\tffffffff813a4b91 blk_mq_start_request+0x91 ([kernel.kallsyms])",
            " x 5 [000] 9.5: block:block_plug: [x]",
            " x 5 9.5:          1 major-faults:  77fc95998155 memmove+0x95 (/lib/libc.so.6)",
            " x 5 [001] 9.5: sched:sched_switch: x:5 [120] D ==> swapper/1:0 [120]",
            " x 5 [001] 9.5: block:block_rq_issue: 8,0 N 36 (12 00 00) 0 + 0 [x]",
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(Line::Nothing), "{line}");
        }
    }

    #[test]
    fn broken_lines_name_the_field() {
        let good = " x 5 [000] 9.5: block:block_rq_complete: 8,0 W () 64 + 8 [0]";
        for (from, to, what) in [
            (" 5 ", " z ", "pid"),
            ("9.5:", "9:", "time"),
            ("[000]", "[0a]", "CPU in brackets"),
            ("8,0", "8:0", "device"),
            ("[0]", "0", "error in brackets"),
        ] {
            let line = good.replacen(from, to, 1);
            assert_eq!(parse(line.as_bytes()).expect_err(&line).0, what, "{line}");
        }
    }
}
