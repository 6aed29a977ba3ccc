//! A simple disk for tests. It does one transfer at a time. A transfer takes a fixed latency plus
//! its length divided by a bandwidth. The latency is smaller if the transfer continues the previous
//! one. The disk keeps a log of its requests.

use seekwell_core::{Bio, BioDone, BioSink, Control, Flags, Instant, Nanos, Op, Sector, TaskId};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// One entry of the log.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub at: Instant,
    pub bio: Bio,
    pub done: Instant,
}

#[derive(Default)]
pub struct Shared {
    pub log: Vec<Line>,
    pub controls: Vec<(Instant, Control)>,
    pub busy: u64,
}

/// The simple disk that the module describes.
pub struct Disk {
    pub capacity: u64,
    pub latency_ns: u64,
    pub near_ns: u64,
    pub byte_ps: u64,
    pub flush_ns: u64,
    /// Number of bios that the disk accepts before submitters sleep. 0: no limit.
    pub requests: usize,
    pub free_at: Instant,
    pub at: u64,
    pub queue: VecDeque<(BioDone, TaskId)>,
    pub shared: Rc<RefCell<Shared>>,
}

impl Disk {
    /// Returns a hard disk: 100 MB/s, 8 ms per non-sequential access, 8 ms per flush.
    pub fn hdd() -> Self {
        Disk {
            capacity: 100 << 21,
            latency_ns: 8_000_000,
            near_ns: 0,
            byte_ps: 10_000,
            flush_ns: 8_000_000,
            requests: 0,
            free_at: Instant::START,
            at: 0,
            queue: VecDeque::new(),
            shared: Rc::default(),
        }
    }
    /// Returns a solid-state disk: 250 MB/s, 60 us per access, 300 us per flush.
    pub fn ssd() -> Self {
        Disk {
            latency_ns: 60_000,
            near_ns: 60_000,
            byte_ps: 4_000,
            flush_ns: 300_000,
            ..Disk::hdd()
        }
    }
}

impl BioSink for Disk {
    fn submit(&mut self, now: Instant, bio: Bio) {
        let service = match bio.op {
            Op::Flush => self.flush_ns,
            _ => {
                let access = if bio.sector.0 == self.at {
                    self.near_ns
                } else {
                    self.latency_ns
                };
                self.at = bio.end().0;
                access + bio.sectors.bytes() * self.byte_ps / 1000
            }
        };
        // The drive has no FUA, so it flushes before and after the write.
        let around = [Flags::PREFLUSH, Flags::FUA].map(|f| u64::from(bio.flags.contains(f)));
        let service = service + self.flush_ns * (around[0] + around[1]);
        self.free_at = self.free_at.max(now) + Nanos(service);
        let done = self.free_at;
        let d = BioDone {
            id: bio.id,
            at: done,
            error: false,
        };
        self.queue.push_back((d, bio.task));
        let mut s = self.shared.borrow_mut();
        s.busy += service;
        s.log.push(Line { at: now, bio, done });
    }
    fn next_event(&self) -> Option<Instant> {
        self.queue.front().map(|d| d.0.at)
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        while let Some(d) = self.queue.front().filter(|d| d.0.at <= to) {
            out.push(d.0);
            self.queue.pop_front();
        }
    }
    fn control(&mut self, now: Instant, what: Control) {
        self.shared.borrow_mut().controls.push((now, what));
    }
    fn capacity(&self) -> Sector {
        Sector(self.capacity)
    }
    fn waits(&self, task: TaskId) -> bool {
        let over = self.requests > 0 && self.queue.len() > self.requests;
        over && self.queue.iter().skip(self.requests).any(|q| q.1 == task)
    }
}
