//! The writer of blkparse text. It writes records, or all events of a block layer, in the layout
//! that blkparse prints.
//!
//! Events for which blktrace has no letter become message lines (`m`), which tools skip. Examples
//! are a request that leaves the scheduler, a timer, or the reason of a decision.

use crate::blk::{BlkEvent, number_of_action, rwbs_write};
use crate::error::TraceError;
use crate::options::WriteOptions;
use crate::record::Record;
use crate::text::{push_number, push_right};
use crate::writer::{EventWriter, Expand, Output, Writer, blk_event};
use seekwell_core::{Action, Event, More, Op};
use std::collections::BTreeMap;
use std::io::Write;

/// Writes the default layout of blkparse, without the summary.
pub struct BlkparseWriter {
    lines: Lines,
    expand: Expand,
    device: u32,
}

struct Lines {
    out: Output,
    tasks: BTreeMap<u32, String>,
    seq: u64,
}

impl BlkparseWriter {
    /// Makes a writer that writes to `out`.
    pub fn new(out: Box<dyn Write + Send>, options: &WriteOptions) -> Self {
        BlkparseWriter {
            lines: Lines {
                out: Output::new(out, options),
                tasks: options.tasks.clone(),
                seq: 0,
            },
            expand: Expand::default(),
            device: options.device,
        }
    }
}

impl Lines {
    fn head(&mut self, e: &BlkEvent, letter: u8) -> &mut Vec<u8> {
        self.seq += 1;
        let seq = self.seq;
        let out = self.out.buffer();
        push_number(out, u64::from(e.device >> 20), 3, b' ');
        out.push(b',');
        let from = out.len();
        push_number(out, u64::from(e.device & 0xf_ffff), 0, b' ');
        while out.len() < from + 3 {
            out.push(b' ');
        }
        out.push(b' ');
        push_number(out, u64::from(e.cpu), 2, b' ');
        out.push(b' ');
        push_number(out, seq, 8, b' ');
        out.push(b' ');
        push_number(out, e.t_ns / 1_000_000_000, 5, b' ');
        out.push(b'.');
        push_number(out, e.t_ns % 1_000_000_000, 9, b'0');
        out.push(b' ');
        push_number(out, u64::from(e.task), 5, b' ');
        out.push(b' ');
        push_right(out, &[letter], 2);
        out.push(b' ');
        out
    }

    fn name(&mut self, task: u32) {
        let known = self.tasks.get(&task).map(String::as_bytes);
        let out = self.out.buffer();
        out.extend_from_slice(b" [");
        match known {
            Some(name) => out.extend(name.iter().map(|&c| if c < 0x20 { b'?' } else { c })),
            None => {
                out.extend_from_slice(b"task");
                push_number(out, u64::from(task), 0, b' ');
            }
        }
        out.push(b']');
    }

    fn event(&mut self, e: &BlkEvent) -> Result<(), TraceError> {
        let mut rwbs = Vec::with_capacity(8);
        match e.action {
            Action::Plug | Action::Unplug => rwbs.push(b'N'),
            _ => rwbs_write(e.op, e.flags, &mut rwbs),
        }
        let out = self.head(e, e.action.letter() as u8);
        push_right(out, &rwbs, 3);
        match e.action {
            Action::Plug => self.name(e.task),
            Action::Unplug => {
                self.name(e.task);
                let out = self.out.buffer();
                out.push(b' ');
                push_number(out, u64::from(e.sectors), 0, b' ');
            }
            _ => self.extent(e),
        }
        self.out.buffer().push(b'\n');
        self.out.done_one()
    }

    fn extent(&mut self, e: &BlkEvent) {
        let ends = matches!(e.action, Action::Complete | Action::Requeue);
        let out = self.out.buffer();
        if ends || e.op != Op::Flush {
            out.push(b' ');
            push_number(out, e.sector, 0, b' ');
        }
        if e.op != Op::Flush {
            out.extend_from_slice(b" + ");
            push_number(out, u64::from(e.sectors), 0, b' ');
        }
        if ends {
            out.extend_from_slice(b" [");
            push_number(out, u64::from(e.error), 0, b' ');
            out.push(b']');
        } else {
            self.name(e.task);
        }
    }

    fn message(&mut self, e: &BlkEvent, text: &str) -> Result<(), TraceError> {
        let out = self.head(e, b'm');
        out.extend_from_slice(b"  N ");
        out.extend(text.bytes().map(|c| if c < 0x20 { b' ' } else { c }));
        out.push(b'\n');
        self.out.done_one()
    }
}

impl Writer for BlkparseWriter {
    fn write(&mut self, r: &Record) -> Result<(), TraceError> {
        let lines = &mut self.lines;
        self.expand.record(r, self.device, |e| lines.event(e))
    }
    fn name(&mut self, pid: u32, name: &str) {
        self.lines.tasks.insert(pid, name.to_owned());
    }
    fn finish(&mut self) -> Result<(), TraceError> {
        let lines = &mut self.lines;
        self.expand
            .until(u64::MAX, &mut |e: &BlkEvent| lines.event(e))?;
        self.lines.out.finish()
    }
}

impl EventWriter for BlkparseWriter {
    fn event(&mut self, event: &Event) -> Result<(), TraceError> {
        let e = blk_event(event, self.device);
        match event.action {
            Action::Split | Action::Remap => self.lines.message(&e, &message_text(event)),
            other if number_of_action(other).is_none() => {
                self.lines.message(&e, &message_text(event))
            }
            _ => self.lines.event(&e),
        }
    }
}

/// Returns the name of the timer.
fn slot(e: &Event) -> &'static str {
    match e.more {
        More::Timer { slot, .. } => slot,
        _ => "timer",
    }
}

/// Returns the message text for an event that blktrace does not have, or for which required facts
/// are missing.
pub(crate) fn message_text(e: &Event) -> String {
    let mut rwbs = Vec::new();
    rwbs_write(e.op, e.flags, &mut rwbs);
    let rwbs = String::from_utf8_lossy(&rwbs).into_owned();
    let extent = format!("{rwbs} {} + {}", e.sector, e.sectors);
    match e.action {
        Action::Why => format!("{} {}", e.rule_id(), e.text(|t| format!("task {}", t.0))),
        Action::Timer => format!("fires {}", slot(e)),
        Action::Arm => format!("arms {}", slot(e)),
        Action::Disarm => format!("disarms {}", slot(e)),
        Action::Join => format!("joins {extent}"),
        Action::Part => format!("written {extent}"),
        Action::Head => format!("head {extent}"),
        Action::CacheHit => format!("cache hit {extent}"),
        Action::Flash => "flash".to_owned(),
        Action::Split => format!("split {extent}"),
        Action::Remap => format!("remap {extent}"),
        _ => format!("dispatch {extent}"),
    }
}
