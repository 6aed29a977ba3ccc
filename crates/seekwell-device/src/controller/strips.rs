//! The read cache, which keeps strips of the array and evicts the least recently used, and the
//! detection of streams for read-ahead.

use std::collections::BTreeMap;

/// Number of streams that are tracked.
const STREAMS: usize = 32;
/// Consecutive reads that make a stream.
const SEQUENTIAL: u32 = 2;

#[derive(Debug)]
struct Strip {
    used: u64,
    /// The strip is being read.
    loading: bool,
    waiters: Vec<u32>,
}

/// What the cache holds of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// All of the range.
    All,
    /// All of the range, after this number of strips has arrived.
    Soon(u32),
    /// A part of the range is missing.
    No,
}

#[derive(Debug, Default)]
pub(super) struct Strips {
    capacity: usize,
    strips: BTreeMap<u64, Strip>,
    by_use: BTreeMap<u64, u64>,
    clock: u64,
    streams: Vec<(u64, u32)>,
}

impl Strips {
    pub fn new(capacity: usize) -> Self {
        Strips {
            capacity,
            ..Strips::default()
        }
    }
    fn touch(&mut self, strip: u64) {
        self.clock += 1;
        if let Some(s) = self.strips.get_mut(&strip) {
            self.by_use.remove(&s.used);
            s.used = self.clock;
            self.by_use.insert(self.clock, strip);
        }
    }
    /// Looks up strips `from..=to`.
    pub fn look(&mut self, from: u64, to: u64) -> Held {
        let mut soon = 0;
        for s in from..=to {
            match self.strips.get(&s) {
                None => return Held::No,
                Some(s) => soon += u32::from(s.loading),
            }
        }
        for s in from..=to {
            self.touch(s);
        }
        match soon {
            0 => Held::All,
            n => Held::Soon(n),
        }
    }
    /// Makes `command` wait for those of the strips that are being read.
    pub fn wait(&mut self, from: u64, to: u64, command: u32) {
        for s in from..=to {
            if let Some(s) = self.strips.get_mut(&s).filter(|s| s.loading) {
                s.waiters.push(command);
            }
        }
    }
    /// Adds an entry, with eviction if needed. Returns false if the strip is present, or there is
    /// no room.
    pub fn add(&mut self, strip: u64, loading: bool) -> bool {
        if self.strips.contains_key(&strip) || self.capacity == 0 {
            return false;
        }
        if self.strips.len() >= self.capacity {
            let old = self.by_use.iter().find(|(_, s)| !self.strips[s].loading);
            let Some((used, s)) = old.map(|(u, s)| (*u, *s)) else {
                return false;
            };
            self.by_use.remove(&used);
            self.strips.remove(&s);
        }
        let waiters = Vec::new();
        let used = 0;
        self.strips.insert(
            strip,
            Strip {
                used,
                loading,
                waiters,
            },
        );
        self.touch(strip);
        true
    }
    /// Marks a strip as read, and returns the commands that waited for it.
    pub fn loaded(&mut self, strip: u64) -> Vec<u32> {
        match self.strips.get_mut(&strip) {
            Some(s) => {
                s.loading = false;
                std::mem::take(&mut s.waiters)
            }
            None => Vec::new(),
        }
    }
    /// Drops strips that a write has made stale.
    pub fn forget(&mut self, from: u64, to: u64) {
        if self.strips.is_empty() {
            return;
        }
        for s in from..=to {
            if self.strips.get(&s).is_some_and(|s| !s.loading)
                && let Some(s) = self.strips.remove(&s)
            {
                self.by_use.remove(&s.used);
            }
        }
    }
    /// Records a read. Returns true if it continues a run of sequential reads.
    pub fn sequential(&mut self, at: u64, end: u64) -> bool {
        if let Some(i) = self.streams.iter().position(|s| s.0 == at) {
            let (_, n) = self.streams.remove(i);
            self.streams.push((end, n + 1));
            return n + 1 >= SEQUENTIAL;
        }
        if self.streams.len() >= STREAMS {
            self.streams.remove(0);
        }
        self.streams.push((end, 0));
        false
    }
}
