//! Parses an event by means of the running kernel's description of its layout, and prints it in the
//! format of tracefs.

use super::super::{EVENTS, WatchError, get};
use super::program::{FROM, HEAD};
use std::fmt::Write;
use std::path::Path;

/// Position of a field in an event: offset and length, bytes.
type Place = (usize, usize);

/// The layout of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name of the event.
    pub name: &'static str,
    /// Number of the event in the kernel.
    pub id: u64,
    /// Length up to the end of the last field, bytes.
    pub bytes: usize,
    /// Position of the device number.
    pub device: Place,
    /// Position of the first sector.
    pub sector: Place,
    /// Position of the number of sectors.
    pub sectors: Place,
    /// Position of the letters of the operation.
    pub rwbs: Place,
    /// Only events of insert and issue have this field.
    length: Option<Place>,
    /// Only events of completion have this field.
    error: Option<Place>,
    ioprio: Option<Place>,
}

/// Maximum length of an event, bytes.
const LONGEST: usize = 256;

impl Layout {
    /// Reads the layout of an event from its description below `events/block` of tracefs.
    pub fn read(events: &Path, name: &'static str) -> Result<Layout, WatchError> {
        let dir = events.join(name);
        let format = get(&dir.join("format"))?;
        let id = get(&dir.join("id"))?;
        Layout::parse(name, &id, &format).ok_or_else(|| WatchError::Program {
            program: format!("{}/format", dir.display()),
            what: "describes the event in an unknown way".to_owned(),
            remedy: "record with --by tracefs",
        })
    }

    fn parse(name: &'static str, id: &str, format: &str) -> Option<Layout> {
        let mut fields: Vec<(&str, Place)> = Vec::new();
        for line in format.lines() {
            let Some(rest) = line.trim_start().strip_prefix("field:") else {
                continue;
            };
            let mut parts = rest.split(';');
            let words = parts.next()?;
            let field = words.rsplit(' ').next()?.split('[').next()?;
            let mut number = |key: &str| {
                let part = parts.next()?.trim().strip_prefix(key)?;
                part.parse::<usize>().ok()
            };
            fields.push((field, (number("offset:")?, number("size:")?)));
        }
        let place = |name: &str| fields.iter().find(|f| f.0 == name).map(|f| f.1);
        let sized = |name: &str, sizes: &[usize]| {
            place(name).filter(|p| sizes.contains(&p.1) && p.0 >= FROM && p.0 + p.1 <= LONGEST)
        };
        let ends = fields.iter().map(|f| f.1.0 + f.1.1);
        Some(Layout {
            name,
            id: id.trim().parse().ok()?,
            bytes: ends.max().filter(|n| *n > FROM && *n <= LONGEST)?,
            device: sized("dev", &[4])?,
            sector: sized("sector", &[8])?,
            sectors: sized("nr_sector", &[4])?,
            rwbs: place("rwbs").filter(|p| p.0 >= FROM && p.0 + p.1 <= LONGEST)?,
            length: sized("bytes", &[4]),
            error: sized("error", &[4]).or_else(|| sized("errors", &[4])),
            ioprio: sized("ioprio", &[2]),
        })
    }
}

fn number(bytes: &[u8], place: Place) -> u64 {
    let mut all = [0; 8];
    let field = bytes.get(place.0 - FROM..place.0 - FROM + place.1);
    let field = field.unwrap_or_default();
    match cfg!(target_endian = "little") {
        true => all[..field.len()].copy_from_slice(field),
        false => all[8 - field.len()..].copy_from_slice(field),
    }
    u64::from_ne_bytes(all)
}

/// Returns the text up to the first zero byte. Unprintable characters are replaced.
fn word(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]);
    text.chars()
        .map(|c| {
            if seekwell_core::foreign::acts(c) {
                '?'
            } else {
                c
            }
        })
        .collect()
}

/// Returns a priority in the format of tracefs, for example `be,0,4`.
fn priority(value: u64) -> String {
    let class = ["none", "rt", "be", "idle"][(value >> 13 & 3) as usize];
    format!("{class},{},{}", value >> 3 & 0x3ff, value & 7)
}

/// Returns the time of a record, ns.
pub fn time_ns(record: &[u8]) -> u64 {
    let mut t = [0; 8];
    t.copy_from_slice(record.get(..8).unwrap_or(&[0; 8]));
    u64::from_ne_bytes(t)
}

/// Adds the line of a record to `text`. Its time has nanoseconds, which tracefs rounds. Returns
/// `None` if the record is too short.
pub fn line(layouts: &[Layout], record: &[u8], text: &mut String) -> Option<()> {
    let head = |at: usize| {
        let bytes: [u8; 4] = record.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(bytes))
    };
    let t = time_ns(record);
    let pid = match cfg!(target_endian = "little") {
        true => head(8)?,
        false => head(12)?,
    };
    let (cpu, event) = (head(16)?, head(20)? as usize);
    let comm = word(record.get(24..HEAD)?);
    let own = record.get(HEAD..)?;
    let layout = layouts.get(event)?;
    let device = number(own, layout.device);
    let rwbs = own.get(layout.rwbs.0 - FROM..layout.rwbs.0 - FROM + layout.rwbs.1)?;
    let (seconds, ns) = (t / 1_000_000_000, t % 1_000_000_000);
    let _ = write!(
        text,
        "{comm:>16}-{pid:<7} [{cpu:03}] ..... {seconds}.{ns:09}: {}: {},{} {} ",
        EVENTS[event],
        device >> 20,
        device & 0xf_ffff,
        word(rwbs)
    );
    if let Some(place) = layout.length {
        let _ = write!(text, "{} ", number(own, place));
    }
    let request = layout.name.contains("_rq_");
    if request {
        *text += "() ";
    }
    let (sector, sectors) = (number(own, layout.sector), number(own, layout.sectors));
    let _ = write!(text, "{sector} + {sectors} ");
    if let Some(place) = layout.ioprio {
        let _ = write!(text, "{} ", priority(number(own, place)));
    }
    match layout.error {
        Some(place) => {
            let error = (number(own, place) as u32).cast_signed();
            let _ = writeln!(text, "[{error}]");
        }
        // For a requeue without an error field, the kernel prints this text.
        None if layout.name == "block_rq_requeue" => *text += "[0]\n",
        None => {
            let _ = writeln!(text, "[{comm}]");
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_core::{Action, Op};
    use seekwell_trace::formats::ftrace::{Line, parse};

    const ISSUE: &str = "name: block_rq_issue\nID: 1185\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned short ioprio;\toffset:32;\tsize:2;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:44;\tsize:16;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n";

    #[test]
    fn tracepoint_description_is_parsed() {
        let l = Layout::parse("block_rq_issue", "1185\n", ISSUE).expect("known");
        assert_eq!((l.id, l.bytes, l.device), (1185, 64, (8, 4)));
        assert_eq!(
            (l.rwbs, l.length, l.ioprio),
            ((34, 10), Some((28, 4)), Some((32, 2)))
        );
        assert_eq!(l.error, None);
        // A field with an unexpected size is an error.
        for (from, to) in [
            ("offset:16;\tsize:8", "offset:16;\tsize:4"),
            ("sector_t sector", "x y"),
        ] {
            let other = ISSUE.replace(from, to);
            assert_eq!(Layout::parse("block_rq_issue", "1", &other), None, "{to}");
        }
    }

    #[test]
    fn bpf_record_is_printed_like_tracefs() {
        let layout = Layout::parse("block_rq_issue", "1185", ISSUE).expect("known");
        let event = EVENTS
            .iter()
            .position(|e| *e == "block_rq_issue")
            .expect("one");
        let mut layouts = vec![layout.clone(); EVENTS.len()];
        layouts[event] = layout;
        let mut record = vec![0; 96];
        let put = |record: &mut Vec<u8>, at: usize, bytes: &[u8]| {
            record[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put(&mut record, 0, &13_940_901_317_042_u64.to_ne_bytes());
        put(&mut record, 8, &(70_u64 << 32 | 77).to_ne_bytes());
        put(&mut record, 16, &3_u32.to_ne_bytes());
        put(&mut record, 20, &(event as u32).to_ne_bytes());
        put(&mut record, 24, b"a b-c\0");
        let own = HEAD - FROM;
        put(&mut record, own + 8, &(7_u32 << 20 | 2).to_ne_bytes());
        put(&mut record, own + 16, &632_704_u64.to_ne_bytes());
        put(&mut record, own + 24, &8_u32.to_ne_bytes());
        put(&mut record, own + 28, &4096_u32.to_ne_bytes());
        put(&mut record, own + 32, &(2_u16 << 13 | 4).to_ne_bytes());
        put(&mut record, own + 34, b"WS\0");
        let mut text = String::new();
        line(&layouts, &record, &mut text).expect("whole");
        assert!(
            text.ends_with(
                "a b-c-77      [003] ..... 13940.901317042: block_rq_issue: 7,2 WS 4096 () 632704 \
                 + 8 be,0,4 [a b-c]\n"
            ),
            "{text}"
        );
        match parse(text.trim_end().as_bytes()) {
            Ok(Line::Event(e, _)) => {
                assert_eq!(
                    (e.action, e.op, e.sector),
                    (Action::Issue, Op::Write, 632_704)
                );
                assert_eq!((e.t_ns, e.task, e.cpu), (13_940_901_317_042, 77, 3));
            }
            other => panic!("{other:?}"),
        }
        // A truncated record does not give a line.
        assert_eq!(line(&layouts, &record[..50], &mut text), None);
    }
}
