//! The reader of blkparse text. Each line is one event.

use crate::blk::{BlkEvent, action_of_letters, rwbs_parse};
use crate::formats::lines::{BLANK, Dialect, Line, Wrong, device, error_number, with_rwbs};
use crate::text::{number, seconds_ns, word};
use seekwell_core::Action;

/// The default layout of blkparse.
pub(super) const DIALECT: Dialect = Dialect {
    parse,
    remedy: "the line should read \"maj,min cpu seq seconds.ns pid ACTION RWBS sector + sectors \
             [process]\": use blkparse without -f, or remove the line",
    lost: "places where events were lost",
    requests: false,
};

pub(super) fn detect(head: &[u8]) -> bool {
    let mut seen = false;
    for line in head.split(|&c| c == b'\n').take(8) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match parse(line) {
            Ok(Line::Event(..)) => return true,
            // A plug or a message is also evidence of the format, but a blank line is not.
            Ok(Line::Nothing) => seen |= device(word(line, &mut 0)).is_some(),
            Ok(Line::End | Line::Lost | Line::Request(_)) | Err(_) => return seen,
        }
    }
    seen
}

fn is_summary(line: &[u8]) -> bool {
    let device = || line.ends_with(b")") && memchr::memmem::find(line, b" (").is_some();
    let titled = line.ends_with(b":") || device();
    line.first().is_some_and(u8::is_ascii_alphabetic) && titled
}

/// Returns the text in the brackets at the end of the line.
fn bracketed(line: &[u8], from: usize) -> &[u8] {
    let rest = line.get(from..).unwrap_or(b"");
    match memchr::memchr(b'[', rest) {
        Some(i) => {
            let inner = &rest[i + 1..];
            let end = memchr::memrchr(b']', inner).unwrap_or(inner.len());
            &inner[..end]
        }
        None => b"",
    }
}

fn parse(line: &[u8]) -> Result<Line<'_>, Wrong<'_>> {
    let mut at = 0;
    let first = word(line, &mut at);
    if first.is_empty() || line.starts_with(b"Input file ") {
        return Ok(Line::Nothing);
    }
    let Some(device) = device(first) else {
        if is_summary(line) {
            // The first line of the summary.
            return Ok(Line::End);
        }
        return Err(("device", first));
    };
    let mut field = |name: &'static str, parse: fn(&[u8]) -> Option<u64>| {
        let w = word(line, &mut at);
        parse(w).ok_or((name, w))
    };
    let cpu = field("CPU", number)?;
    field("sequence number", number)?;
    let t_ns = field("time", seconds_ns)?;
    let pid = field("pid", number)?;
    let (Ok(cpu), Ok(task)) = (u32::try_from(cpu), u32::try_from(pid)) else {
        return Err(("CPU or pid (32 bits)", first));
    };
    let letters = word(line, &mut at);
    if letters.is_empty() || letters.len() > 2 || !letters.iter().all(u8::is_ascii_alphabetic) {
        return Err(("action", letters));
    }
    let action = match action_of_letters(letters) {
        None | Some(Action::Plug | Action::Unplug | Action::Why) => return Ok(Line::Nothing),
        Some(Action::Split | Action::Remap | Action::SleepRq) => return Ok(Line::Nothing),
        Some(a) => a,
    };
    let rwbs = rwbs_parse(word(line, &mut at));
    let from = at;
    let w = word(line, &mut at);
    let (sector, sectors) = match w.first() {
        None | Some(b'[') => (0, 0),
        Some(b'(') => return Ok(Line::Nothing),
        Some(_) => {
            let sector = number(w).ok_or(("sector", w))?;
            let before = at;
            match word(line, &mut at) {
                b"+" => {
                    let w = word(line, &mut at);
                    let n = number(w).and_then(|n| u32::try_from(n).ok());
                    (sector, n.ok_or(("number of sectors", w))?)
                }
                w if w.starts_with(b"(") => return Ok(Line::Nothing),
                w if w.is_empty() || w.starts_with(b"[") => {
                    at = before;
                    (sector, 0)
                }
                w => return Err(("\"+ sectors\"", w)),
            }
        }
    };
    let mut error = 0;
    let mut name: &[u8] = b"";
    if matches!(action, Action::Complete | Action::Requeue) && rwbs.op.is_some() {
        let w = bracketed(line, from);
        if !matches!(w, b"" | b"-") {
            error = error_number(w).ok_or(("error in brackets", w))?;
        }
    } else if action == Action::Queue {
        name = bracketed(line, at.min(line.len()));
        if name.is_empty() {
            name = bracketed(line, from);
        }
        if name == b"(null)" {
            name = b"";
        }
    }
    let event = BlkEvent {
        t_ns,
        action,
        sector,
        sectors,
        task,
        cpu,
        device,
        error,
        ..BLANK
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
    use seekwell_core::{Flags, Op};

    fn event(line: &str) -> BlkEvent {
        match parse(line.as_bytes()) {
            Ok(Line::Event(e, _)) => e,
            Ok(_) => panic!("no event: {line}"),
            Err((what, found)) => panic!("{what}: {}", shown(found)),
        }
    }
    fn nothing(line: &str) -> bool {
        matches!(parse(line.as_bytes()), Ok(Line::Nothing))
    }

    #[test]
    fn example_line_of_the_manual_is_parsed() {
        let e = event("  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]");
        assert_eq!((e.device, e.cpu, e.t_ns, e.task), (8 << 20, 3, 0, 697));
        assert_eq!((e.action, e.op), (Action::GetRq, Op::Write));
        assert_eq!((e.sector, e.sectors), (223490, 8));
    }

    #[test]
    fn flushes_have_no_sectors() {
        let e = event("  8,16   0       12     0.000002000  1234  Q FWS [fio]");
        assert_eq!((e.op, e.sectors, e.write_bit), (Op::Flush, 0, true));
        assert_eq!(e.flags, Flags::SYNC);
        let c = event("  8,16   0       23     0.000002095     0  C  FN 0 [0]");
        assert!(c.is_flush() && !c.write_bit);
    }

    #[test]
    fn completions_carry_errors() {
        let line = "  8,16   0       22     0.000002090     0  C   R 900 + 128 [5]";
        assert_eq!(event(line).error, 5);
        assert_eq!(event(&line.replace("[5]", "(  1234) [-5]")).error, 5);
        assert!(parse(line.replace("[5]", "[x]").as_bytes()).is_err());
    }

    #[test]
    fn lines_without_a_block_event_are_skipped() {
        for line in [
            "  8,16   0        5     0.000000600  1234  P   N [fio]",
            "  8,16   0        8     0.000001200  1234  U   N [fio] 1",
            "  8,16   0       28     0.000002130  1234 UT   N [fio] 3",
            "  8,16   0        0     0.000001450     0  m   N cfq1234 hello world",
            "  8,16   0       17     0.000002050    99  X   R 900 / 964 [(null)]",
            "  8,16   0       18     0.000002060    99  A   R 900 + 128 <- (8,17) 2000",
            "  8,16   0       25     0.000002100    99  D   R 36 (12 00 00 00 24 00 ..) [x]",
            "  8,16   0       26     0.000002110    99  C   N (12 00 00 00 24 00 ..) [0]",
            "Input file sdb.blktrace.0 added",
            "",
        ] {
            assert!(nothing(line), "{line}");
        }
        assert!(matches!(parse(b"CPU0 (sdb):"), Ok(Line::End)));
    }
}
