//! A flash unit: its current operation, its queues and its blocks.

use super::map::NONE;
use std::collections::VecDeque;

/// The current operation of a unit. Each phase except [`Phase::Idle`] ends at the next event of the
/// unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// Array read for this read operation (an index of [`Ops`]). The next phase is its transfer.
    Array(u32),
    Transfer(u32),
    /// Transfer of the data of a program to the unit. It cannot be suspended.
    Load,
    Program,
    Erase,
    /// A program or erase is being suspended for a read.
    Suspending,
    /// Cleaning: array reads of this number of pages. The next phase is their transfer to the
    /// controller.
    CopyArray(u32),
    CopyTransfer,
}

impl Phase {
    /// Returns the name of the phase for events; `None` if the unit is idle.
    pub const fn word(self) -> Option<&'static str> {
        Some(match self {
            Phase::Idle => return None,
            Phase::Array(_) => "read",
            Phase::Transfer(_) => "transfer",
            Phase::Load => "load",
            Phase::Program => "program",
            Phase::Erase => "erase",
            Phase::Suspending => "suspend",
            Phase::CopyArray(_) => "copy_read",
            Phase::CopyTransfer => "copy_transfer",
        })
    }
}

/// A queue of reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub head: u32,
    tail: u32,
}

impl Line {
    pub const EMPTY: Line = Line {
        head: NONE,
        tail: NONE,
    };
    pub fn push(&mut self, ops: &mut Ops, op: u32) {
        match self.tail {
            NONE => self.head = op,
            t => ops.list[t as usize].next = op,
        }
        self.tail = op;
    }
    pub fn pop(&mut self, ops: &Ops) -> Option<u32> {
        let op = self.head;
        if op == NONE {
            return None;
        }
        self.head = ops.list[op as usize].next;
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(op)
    }
}

/// The receiver of a flash read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// This command; the read is a part of it.
    Command(u32),
    /// This command, which waits for its translation page.
    Lookup(u32),
    /// The read-ahead of a stream in its generation `life`. `page` is the first page.
    Ahead { stream: u8, life: u32, page: u32 },
    /// No command (old contents of a page that is written in part).
    Nobody,
}

/// A read of pages of one program unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadOp {
    pub whom: For,
    pub pages: u16,
    /// Page type; an index of the extra read times.
    pub kind: u8,
    next: u32,
}

/// Waiting and running reads, by index.
#[derive(Debug, Clone, Default)]
pub(super) struct Ops {
    list: Vec<ReadOp>,
    free: Vec<u32>,
}

impl Ops {
    pub fn add(&mut self, whom: For, pages: u16, kind: u8) -> u32 {
        let op = ReadOp {
            whom,
            pages,
            kind,
            next: NONE,
        };
        match self.free.pop() {
            Some(i) => {
                self.list[i as usize] = op;
                i
            }
            None => {
                self.list.push(op);
                self.list.len() as u32 - 1
            }
        }
    }
    pub fn get(&self, i: u32) -> ReadOp {
        self.list[i as usize]
    }
    pub fn remove(&mut self, i: u32) -> ReadOp {
        self.free.push(i);
        self.list[i as usize]
    }
}

/// An open block and its next page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub block: u32,
    pub at: u32,
}

impl Open {
    pub const NO: Open = Open { block: NONE, at: 0 };
}

/// A flash unit.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub phase: Phase,
    pub channel: u32,
    /// Reads that commands wait for. `ahead` holds the reads of read-ahead.
    pub reads: Line,
    pub ahead: Line,
    /// End of the last operation.
    pub rests_since: u64,
    /// A suspended program or erase, and its remaining time.
    pub suspended: Option<(Phase, u64)>,
    /// True if the running program or erase was suspended once. It must not be suspended again.
    pub was_suspended: bool,
    /// Number of reads that may still run before a suspended operation resumes.
    pub patience: u32,
    /// The running program: its slots, its first physical page, its time, and whether its pages are
    /// from the host.
    pub group: Vec<u32>,
    pub base: u32,
    pub prog: u64,
    pub for_host: bool,
    /// The open block for host pages. `copy` is the open block for cleaning.
    pub host: Open,
    pub copy: Open,
    pub free: VecDeque<u32>,
    /// The block that is being cleaned, its next page, and the block that is to be erased.
    pub victim: u32,
    pub at: u32,
    pub doomed: u32,
    /// Slots of copied pages that are not programmed yet. `spare` holds unused slots for copies.
    pub copied: Vec<u32>,
    pub spare: Vec<u32>,
    /// Number of pages that cleaning still has to copy to keep up with the host's writes.
    pub owed: f64,
    /// Number of copies per written page, estimated from the block that was selected last.
    pub price: f64,
    /// Number of internal writes that are due, in programs.
    pub extra: f64,
}

impl Unit {
    pub fn new(channel: u32, k: u32, slots: std::ops::Range<u32>) -> Self {
        Unit {
            phase: Phase::Idle,
            channel,
            reads: Line::EMPTY,
            ahead: Line::EMPTY,
            rests_since: 0,
            suspended: None,
            was_suspended: false,
            patience: 0,
            group: Vec::with_capacity(k as usize),
            base: 0,
            prog: 0,
            for_host: false,
            host: Open::NO,
            copy: Open::NO,
            free: VecDeque::new(),
            victim: NONE,
            at: 0,
            doomed: NONE,
            copied: Vec::with_capacity(2 * k as usize),
            spare: slots.collect(),
            owed: 0.0,
            price: 1.0,
            extra: 0.0,
        }
    }
}
