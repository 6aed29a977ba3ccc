//! The read cache of the controller, and the detection of sequential streams for read-ahead. The
//! cache holds strips of the array, and evicts the least recently used strip.

use std::collections::BTreeMap;

/// Maximum number of streams that are tracked.
const STREAMS: usize = 32;
/// Number of consecutive reads after which a stream counts as sequential.
const SEQUENTIAL: u32 = 2;

#[derive(Debug)]
struct Strip {
    used: u64,
    /// True while the strip is being read from the disks.
    loading: bool,
    waiters: Vec<u32>,
}

/// Result of a lookup: how much of a range the cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// The cache holds the whole range.
    All,
    /// The cache will hold the whole range after this number of strips has arrived.
    Soon(u32),
    /// Some part of the range is missing.
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
    /// Looks up the strips `from..=to`.
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
    /// Makes `command` wait for the strips of the range that are being read.
    pub fn wait(&mut self, from: u64, to: u64, command: u32) {
        for s in from..=to {
            if let Some(s) = self.strips.get_mut(&s).filter(|s| s.loading) {
                s.waiters.push(command);
            }
        }
    }
    /// Adds an entry, and evicts another entry if needed. Returns false if the strip is already
    /// present, or if there is no space.
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
    /// Marks a strip as read. Returns the commands that waited for this strip.
    pub fn loaded(&mut self, strip: u64) -> Vec<u32> {
        match self.strips.get_mut(&strip) {
            Some(s) => {
                s.loading = false;
                std::mem::take(&mut s.waiters)
            }
            None => Vec::new(),
        }
    }
    /// Removes strips whose contents a write has made stale.
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
    /// Records a read. Returns true if the read continues a sequential stream.
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
