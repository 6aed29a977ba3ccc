//! Block events in the text format of the kernel's tracefs (`trace` or `trace_pipe` of an
//! instance):
//! `comm-pid [cpu] flags seconds.us: EVENT: maj,min RWBS ... sector + sectors ... [comm]`.
//!
//! The layout follows the print formats of the block events (`events/block/*/format`). Kernels
//! without the ioprio field or without the column of flags are also supported. `trace-cmd report`
//! prints the same lines after lines such as `cpus=4`; with `-l`, the CPU has no brackets and is
//! followed by the flags (`0d..1.`). Lines of other events are skipped. The reader leaves
//! out packet commands, bio splits and remaps, plugs (which name no device), and events that
//! duplicate others (`block_io_start`, `block_rq_merge`, ...).

use super::lines::{BLANK, Dialect, LineReader, begins, device, error_number, with_rwbs};
pub use super::lines::{Line, Wrong};
use crate::blk::{BlkEvent, rwbs_parse};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::text::{number, seconds_ns, word};
use seekwell_core::{Action, IoPrio, Op};

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "ftrace",
    summary: "ftrace block events: the text of the kernel's tracefs",
    extensions: &["ftrace"],
    help: "The text that tracefs or trace-cmd report prints for the events of the block group. \
           Recording needs no tool: use an instance under \
           /sys/kernel/tracing/instances, events/block/*/enable, and `cat trace_pipe`. Records are \
           made from the block_bio_queue events (or from block_rq_issue, if requested, or if there \
           are no others). A write that ends with its own cache flush (FUA on a device without \
           FUA) is complete when its data are written. Priorities come from the events of requests, \
           since Linux 6.9. The events have no cgroup. A warning reports events that the kernel \
           lost.",
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
    detect: |head| head.starts_with(b"# tracer:") || begins(head, parse),
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        Ok(Box::new(LineReader::new(DIALECT, input, options)))
    },
    create: None,
};

/// Note that counts the places where the kernel reports lost events.
pub const NOTE_LOST: &str = "places where the kernel lost events: enlarge buffer_size_kb";

const DIALECT: Dialect = Dialect {
    parse,
    remedy: "the line should read \"comm-pid [cpu] flags seconds.us: block_...: maj,min RWBS ... \
             sector + sectors [...]\": record with tracefs, or remove the line",
    lost: NOTE_LOST,
    requests: false,
};

/// Returns the action of an event name, or `None` for a skipped event.
pub(super) fn action_of(name: &[u8]) -> Option<Action> {
    Some(match name {
        b"block_bio_queue" => Action::Queue,
        b"block_getrq" => Action::GetRq,
        b"block_bio_backmerge" => Action::BackMerge,
        b"block_bio_frontmerge" => Action::FrontMerge,
        b"block_rq_insert" => Action::Insert,
        b"block_rq_issue" => Action::Issue,
        b"block_rq_requeue" => Action::Requeue,
        b"block_rq_complete" => Action::Complete,
        _ => return None,
    })
}

/// Returns the last word of `line[..end]`, and its start.
pub(super) fn last_word(line: &[u8], end: usize) -> (&[u8], usize) {
    let trimmed = line[..end].trim_ascii_end();
    let from = trimmed.iter().rposition(|&c| c == b' ' || c == b'\t');
    let from = from.map_or(0, |i| i + 1);
    (&trimmed[from..], from)
}

/// The fields in front of the event.
pub(super) struct Head<'a> {
    pub(super) comm: &'a [u8],
    pub(super) pid: u32,
    pub(super) cpu: u32,
    pub(super) t_ns: u64,
}

/// Returns true for a line in front of the events that `trace-cmd report` prints.
fn is_preamble(line: &[u8]) -> bool {
    let starts = |start: &&[u8]| line.starts_with(start);
    [&b"cpus="[..], b"version = ", b"trace-cmd "]
        .iter()
        .any(starts)
        || line.starts_with(b"CPU ") && line.ends_with(b" is empty")
}

/// Parses `[000]`, or a CPU followed by flags without brackets (`0d..1.`).
fn cpu_of(word: &[u8]) -> Option<u32> {
    let digits = match word.strip_prefix(b"[") {
        Some(inside) => inside.strip_suffix(b"]")?,
        None => {
            let n = word.iter().take_while(|c| c.is_ascii_digit()).count();
            (n < word.len()).then_some(&word[..n])?
        }
    };
    number(digits)?.try_into().ok()
}

/// Parses `comm-pid [(tgid)] [cpu] [flags] seconds.us`, beginning at the end, because a comm can
/// contain any characters.
fn head(text: &[u8]) -> Result<Head<'_>, Wrong<'_>> {
    let (w, at) = last_word(text, text.len());
    let t_ns = seconds_ns(w).ok_or(("time", w))?;
    let (mut w, mut from) = last_word(text, at);
    let (before, from_before) = last_word(text, from);
    if before.starts_with(b"[") {
        // The column of flags is missing if the option irq-info is off.
        (w, from) = (before, from_before);
    }
    let cpu = cpu_of(w).ok_or(("CPU in brackets", before))?;
    let mut who = text[..from].trim_ascii();
    // With the option record-tgid, the process id is at the end: "( 697)" or "(-----)".
    if who.ends_with(b")")
        && let Some(open) = memchr::memrchr(b'(', who)
    {
        let inside = who[open + 1..who.len() - 1].trim_ascii();
        if number(inside).is_some() || inside.iter().all(|&c| c == b'-') {
            who = who[..open].trim_ascii_end();
        }
    }
    let dash = memchr::memrchr(b'-', who).ok_or(("comm-pid", who))?;
    let pid = number(&who[dash + 1..]).and_then(|n| u32::try_from(n).ok());
    Ok(Head {
        comm: &who[..dash],
        pid: pid.ok_or(("pid", who))?,
        cpu,
        t_ns,
    })
}

/// Parses a line without its newline.
pub fn parse(line: &[u8]) -> Result<Line<'_>, Wrong<'_>> {
    let trimmed = line.trim_ascii();
    if trimmed.is_empty() || trimmed.starts_with(b"#") || is_preamble(trimmed) {
        return Ok(Line::Nothing);
    }
    // trace-cmd writes "[3 EVENTS DROPPED]", and the kernel "[LOST 3 EVENTS]".
    let lost = |word: &[u8]| memchr::memmem::find(trimmed, word).is_some();
    if trimmed.starts_with(b"CPU:") && (lost(b"LOST") || lost(b"DROPPED")) {
        return Ok(Line::Lost);
    }
    // The line has the form "seconds.us: event: text". Use the first colon with a valid head on its
    // left.
    let mut found = Err(("\"seconds.us: EVENT: \"", trimmed));
    for i in memchr::memmem::find_iter(line, b": ").take(8) {
        match head(&line[..i]) {
            Ok(h) => {
                found = Ok((h, i + 2));
                break;
            }
            Err(wrong) if i > 0 && line[i - 1].is_ascii_digit() => found = Err(wrong),
            Err(_) => {}
        }
    }
    let (head, from) = found?;
    let rest = &line[from..];
    let colon = memchr::memchr(b':', rest).unwrap_or(rest.len());
    let Some(action) = action_of(&rest[..colon]) else {
        return Ok(Line::Nothing);
    };
    let mut at = colon + 1;
    if at > rest.len() {
        return Err(("event", rest));
    }
    body(rest, &mut at, action, &head)
}

/// Parses a priority such as `be,0,4`: class, hint and level. `None` for other text, and for a
/// request without a priority.
fn priority(w: &[u8]) -> Option<IoPrio> {
    let mut parts = w.split(|&c| c == b',');
    let class = match parts.next()? {
        b"rt" | b"0x1" => 1,
        b"be" | b"0x2" => 2,
        b"idle" | b"0x3" => 3,
        _ => return None,
    };
    let level = number(parts.nth(1)?)?;
    IoPrio::from_numbers(class, level)
}

/// Parses the text of a block event, from `*at` on.
pub(super) fn body<'a>(
    text: &'a [u8],
    at: &mut usize,
    action: Action,
    head: &Head<'a>,
) -> Result<Line<'a>, Wrong<'a>> {
    let w = word(text, at);
    let device = device(w).ok_or(("device", w))?;
    let rwbs = rwbs_parse(word(text, at));
    let request = matches!(
        action,
        Action::Insert | Action::Issue | Action::Requeue | Action::Complete
    );
    let mut w = word(text, at);
    if request {
        // Insert and issue events have a number of bytes before the command. Complete and requeue
        // events have none.
        if !w.starts_with(b"(") {
            number(w).ok_or(("bytes", w))?;
            w = word(text, at);
        }
        if w != b"()" {
            // A packet command has bytes in parentheses, and its sectors have no meaning.
            return match w.first() {
                Some(b'(') => Ok(Line::Nothing),
                _ => Err(("command in parentheses", w)),
            };
        }
        w = word(text, at);
    }
    let mut sector = number(w).ok_or(("sector", w))?;
    let plus = word(text, at);
    if plus != b"+" {
        return Err(("\"+ sectors\"", plus));
    }
    let w = word(text, at);
    let sectors = number(w).and_then(|n| u32::try_from(n).ok());
    let sectors = sectors.ok_or(("number of sectors", w))?;
    // The kernel adds the priority to the events of requests since Linux 6.9.
    let ioprio = request.then(|| priority(word(text, at))).flatten();
    let mut error = 0;
    if matches!(action, Action::Complete | Action::Requeue) {
        // The error is for example "[-5]". On newer kernels, it follows the priority.
        let (w, _) = last_word(text, text.len());
        let inner = w.strip_prefix(b"[").and_then(|w| w.strip_suffix(b"]"));
        let e = inner.and_then(error_number);
        error = e.ok_or(("error in brackets", w))?;
    }
    let Some(op) = rwbs.op else {
        return Ok(Line::Nothing);
    };
    if op == Op::Flush || sector == u64::MAX {
        sector = 0;
    }
    if op == Op::Write && sectors == 0 && sector != 0 {
        // This is the end of the flush after a write. The write itself completed before.
        return Ok(Line::Nothing);
    }
    let event = BlkEvent {
        t_ns: head.t_ns,
        action,
        sector,
        sectors,
        task: head.pid,
        cpu: head.cpu,
        device,
        error,
        ioprio,
        ..BLANK
    };
    // Other actions can run in the context of another process.
    let name = match action {
        Action::Queue => head.comm,
        _ => b"",
    };
    Ok(match with_rwbs(rwbs, event) {
        Some(e) => Line::Event(e, name),
        None => Line::Nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::shown;
    use seekwell_core::Flags;

    fn event(line: &str) -> BlkEvent {
        match parse(line.as_bytes()) {
            Ok(Line::Event(e, _)) => e,
            Ok(other) => panic!("no event but {other:?}: {line}"),
            Err((what, found)) => panic!("{what}: {}", shown(found)),
        }
    }

    #[test]
    fn lines_of_a_real_kernel_are_parsed() {
        let e = event(
            "    jbd2/loop0-8-8735    [000] ..... 13940.901317: block_bio_queue: 7,0 FWFSM \
             3932304 + 8 [jbd2/loop0-8]",
        );
        assert_eq!(
            (e.action, e.op, e.device),
            (Action::Queue, Op::Write, 7 << 20)
        );
        assert_eq!(
            e.flags,
            Flags::PREFLUSH | Flags::FUA | Flags::SYNC | Flags::META
        );
        assert_eq!((e.task, e.cpu, e.t_ns), (8735, 0, 13_940_901_317_000));
        assert_eq!((e.sector, e.sectors), (3_932_304, 8));
        let d = event(
            "    kworker/0:1H-54      [001] d.s1. 13940.901331: block_rq_issue: 7,0 FF 0 () 0 + 0 \
             none,0,0 [kworker/0:1H]",
        );
        assert_eq!(
            (d.action, d.op, d.cpu, d.write_bit),
            (Action::Issue, Op::Flush, 1, false)
        );
        let c = event(
            "     ksoftirqd/0-14      [000] ..s.. 13940.901526: block_rq_complete: 7,0 FF () \
             18446744073709551615 + 0 none,0,0 [0]",
        );
        assert!(c.is_flush() && c.sector == 0);
        let c =
            event("  fio-9 [000] ..s.. 1.000001: block_rq_complete: 8,16 R () 64 + 8 be,0,4 [-5]");
        assert_eq!((c.error, c.device), (5, 8 << 20 | 16));
    }

    #[test]
    fn priority_of_a_request_is_parsed() {
        for (word, want) in [
            ("be,0,3", Some((2, 3))),
            ("rt,0,0", Some((1, 0))),
            ("idle,0,7", Some((3, 7))),
            ("0x2,0,4", Some((2, 4))),
            ("none,0,0", None),
            ("be,0,9", None),
            ("[dd]", None),
        ] {
            let line = format!(
                "  dd-5 [000] ..... 10.5: block_rq_issue: 8,0 WS 4096 () 100 + 8 {word} [dd]"
            );
            let want = want.and_then(|(class, level)| IoPrio::from_numbers(class, level));
            assert_eq!(event(&line).ioprio, want, "{word}");
        }
    }

    #[test]
    fn process_names_may_contain_any_text() {
        for comm in ["a b", "a-b", "x] [001]", "k: 1.5: z", "-"] {
            let line =
                format!("  {comm}-77 (  70) [003] 5.000100: block_bio_queue: 8,0 RA 8 + 8 [q]");
            match parse(line.as_bytes()) {
                Ok(Line::Event(e, name)) => {
                    assert_eq!((e.task, e.cpu, name), (77, 3, comm.as_bytes()), "{comm}");
                }
                other => panic!("{comm}: {other:?}"),
            }
        }
    }

    #[test]
    fn lines_of_older_kernels_without_priority_or_flags_are_parsed() {
        let e = event("  dd-5 [000] 10.5: block_rq_insert: 8,0 WS 4096 () 100 + 8 [dd]");
        assert_eq!(
            (e.action, e.sector, e.t_ns),
            (Action::Insert, 100, 10_500_000_000)
        );
    }

    /// Forms of lines that trace-cmd prints: `report`, `report -l`, and versions with flags.
    #[test]
    fn lines_of_trace_cmd_are_parsed() {
        for (head, cpu) in [
            ("            dd-1234  [001]   100.000002:", 1),
            ("            dd-1234  [001] d..1   100.000002:", 1),
            ("dd-1234    0d..1.   100.000002:", 0),
            ("dd-1234   12.....   100.000002:", 12),
        ] {
            let e = event(&format!(
                "{head} block_rq_issue:       8,0 R 4096 () 1000 + 8 [dd]"
            ));
            let got = (e.task, e.cpu, e.t_ns, e.sector);
            assert_eq!(got, (1234, cpu, 100_000_002_000, 1000), "{head}");
        }
    }

    #[test]
    fn lines_without_a_block_event_are_skipped() {
        for line in [
            "# tracer: nop",
            "",
            "version = 6",
            "cpus=4",
            "CPU 3 is empty",
            "  a-1 [000] ..... 1.5: block_plug: [a]",
            "  a-1 [000] ..... 1.5: block_unplug: [a] 3",
            "  a-1 [000] ..... 1.5: block_split: 7,0 RA 270336 / 271360 [a]",
            "  a-1 [000] ..... 1.5: sched_switch: prev_comm=x",
            "  a-1 [000] ..... 1.5: block_rq_issue: 8,0 N 36 (12 00 00 00 24 00) 0 + 0 [a]",
            "  a-1 [000] d.s1. 1.5: block_rq_complete: 7,0 WSM () 3932304 + 0 be,0,3 [0]",
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(Line::Nothing), "{line}");
        }
        assert_eq!(parse(b"CPU:1 [LOST 123 EVENTS]"), Ok(Line::Lost));
        assert_eq!(parse(b"CPU:1 [7 EVENTS DROPPED]"), Ok(Line::Lost));
    }

    #[test]
    fn broken_lines_name_the_field() {
        let good = "  a-1 [000] ..... 1.5: block_rq_complete: 7,0 WS () 32 + 8 be,0,3 [0]";
        assert!(matches!(parse(good.as_bytes()), Ok(Line::Event(..))));
        for (from, to, what) in [
            ("7,0", "7;0", "device"),
            ("32 +", "x +", "sector"),
            ("+ 8", "- 8", "\"+ sectors\""),
            ("+ 8", "+ 5000000000", "number of sectors"),
            ("[0]", "[ok]", "error in brackets"),
            ("a-1", "a-z", "pid"),
            ("[000]", "<000>", "CPU in brackets"),
            ("()", "", "command in parentheses"),
        ] {
            let line = good.replacen(from, to, 1);
            let wrong = parse(line.as_bytes()).expect_err(&line);
            assert_eq!(wrong.0, what, "{line}");
        }
    }
}
