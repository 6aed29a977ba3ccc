//! The writer of blktrace files. It writes one merged file in little-endian byte order, which
//! blkparse and fio can read.
//!
//! The name of a process precedes the first event of this process. Events that blktrace does not
//! have become messages.

use super::{FLAG_BITS, MAGIC, VERSION, kind, notify};
use crate::blk::{BlkEvent, number_of_action};
use crate::error::{ErrorKind, TraceError};
use crate::formats::blkparse;
use crate::options::WriteOptions;
use crate::record::Record;
use crate::writer::{EventWriter, Expand, Output, Writer, blk_event};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{Action, Event, Flags, Op};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Maximum number of processes whose names are remembered as written. If there are more, some names
/// may be missing.
const NAMED_MAX: usize = 1 << 20;
/// Length of a process name with its terminating zero byte, as in the kernel.
const NAME_BYTES: usize = 16;

/// Writes version 7 of the binary format.
pub struct BlktraceWriter {
    records: Records,
    expand: Expand,
    device: u32,
}

struct Records {
    out: Output,
    tasks: BTreeMap<u32, String>,
    named: BTreeSet<u32>,
    /// Sequence number of each CPU.
    seq: BTreeMap<u32, u32>,
}

impl BlktraceWriter {
    /// Makes a writer that writes to `out`.
    pub fn new(out: Box<dyn Write + Send>, options: &WriteOptions) -> Self {
        BlktraceWriter {
            records: Records {
                out: Output::new(out, options),
                tasks: options.tasks.clone(),
                named: BTreeSet::new(),
                seq: BTreeMap::new(),
            },
            expand: Expand::default(),
            device: options.device,
        }
    }
}

impl Records {
    fn raw(&mut self, e: &BlkEvent, bytes: u32, action: u32, pdu: &[u8]) {
        let seq = self.seq.entry(e.cpu).or_insert(0);
        *seq = seq.wrapping_add(1);
        let seq = *seq;
        let buf = self.out.buffer();
        for word in [MAGIC | VERSION, seq] {
            buf.extend_from_slice(&word.to_le_bytes());
        }
        for word in [e.t_ns, e.sector] {
            buf.extend_from_slice(&word.to_le_bytes());
        }
        for word in [bytes, action, e.task, e.device, e.cpu] {
            buf.extend_from_slice(&word.to_le_bytes());
        }
        buf.extend_from_slice(&e.error.to_le_bytes());
        buf.extend_from_slice(&(pdu.len() as u16).to_le_bytes());
        buf.extend_from_slice(pdu);
    }

    fn name(&mut self, e: &BlkEvent) {
        if e.task == 0 || self.named.len() >= NAMED_MAX || !self.named.insert(e.task) {
            return;
        }
        let name = match self.tasks.get(&e.task) {
            Some(name) => name.clone(),
            None => format!("task{}", e.task),
        };
        let mut pdu = [0u8; NAME_BYTES];
        for (to, from) in pdu[..NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
            *to = from;
        }
        let about = BlkEvent {
            sector: 0,
            error: 0,
            ..*e
        };
        self.raw(&about, 0, kind::NOTIFY | notify::PROCESS, &pdu);
    }

    fn event(&mut self, e: &BlkEvent) -> Result<(), TraceError> {
        let Some(number) = number_of_action(e.action) else {
            return Ok(());
        };
        self.name(e);
        let of_queue = match e.action {
            Action::Issue => kind::ISSUE,
            Action::Complete => kind::COMPLETE,
            Action::Requeue => kind::REQUEUE,
            _ => kind::QUEUE,
        };
        let mut action = u32::from(number) | of_queue;
        if matches!(e.action, Action::Plug | Action::Unplug) {
            let depth = u64::from(e.sectors).to_be_bytes();
            let pdu: &[u8] = if e.action == Action::Unplug {
                &depth
            } else {
                &[]
            };
            self.raw(&BlkEvent { sector: 0, ..*e }, 0, action, pdu);
            return self.out.done_one();
        }
        action |= match e.op {
            Op::Read => kind::READ,
            Op::Write | Op::WriteZeroes => kind::WRITE,
            Op::Discard => kind::DISCARD | kind::WRITE,
            Op::Flush => kind::FLUSH | kind::WRITE,
        };
        if e.flags.contains(Flags::PREFLUSH) {
            action |= kind::FLUSH;
        }
        for (flag, bit) in FLAG_BITS {
            if e.flags.contains(flag) {
                action |= bit;
            }
        }
        let bytes = u64::from(e.sectors) * SECTOR_BYTES;
        let Ok(bytes) = u32::try_from(bytes) else {
            let what = format!(
                "{} sectors do not fit the format's 32-bit byte count",
                e.sectors
            );
            return Err(self.out.error(ErrorKind::Range, what, "split the request"));
        };
        self.raw(e, bytes, action, &[]);
        self.out.done_one()
    }

    fn message(&mut self, e: &BlkEvent, text: &str) -> Result<(), TraceError> {
        // The kernel limits messages to 128 bytes.
        let text = &text.as_bytes()[..text.len().min(127)];
        let about = BlkEvent {
            sector: 0,
            error: 0,
            ..*e
        };
        self.raw(&about, 0, kind::NOTIFY | notify::MESSAGE, text);
        self.out.done_one()
    }
}

impl Writer for BlktraceWriter {
    fn write(&mut self, r: &Record) -> Result<(), TraceError> {
        let records = &mut self.records;
        self.expand.record(r, self.device, |e| records.event(e))
    }
    fn name(&mut self, pid: u32, name: &str) {
        self.records.tasks.insert(pid, name.to_owned());
    }
    fn finish(&mut self) -> Result<(), TraceError> {
        let records = &mut self.records;
        self.expand
            .until(u64::MAX, &mut |e: &BlkEvent| records.event(e))?;
        self.records.out.finish()
    }
}

impl EventWriter for BlktraceWriter {
    fn event(&mut self, event: &Event) -> Result<(), TraceError> {
        let e = blk_event(event, self.device);
        match event.action {
            // A split or remap event needs facts that are not stored: the other half of the bio, or
            // the other device.
            Action::Split | Action::Remap => {
                self.records.message(&e, &blkparse::message_text(event))
            }
            other if number_of_action(other).is_none() => {
                self.records.message(&e, &blkparse::message_text(event))
            }
            _ => self.records.event(&e),
        }
    }
}
