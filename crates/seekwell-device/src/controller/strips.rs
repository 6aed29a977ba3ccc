//! The read cache: strips of the array, the least recently used given up first, and the streams
//! that read-ahead looks for.

use std::collections::BTreeMap;

/// Streams remembered.
const STREAMS: usize = 32;
/// Reads in a row that make a stream.
const SEQUENTIAL: u32 = 2;

#[derive(Debug)]
struct Strip {
    used: u64,
    /// Commands that wait for it; it is on its way while this is set.
    loading: bool,
    waiters: Vec<u32>,
}

/// What is known of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// All of it.
    All,
    /// All of it, when so many strips have come.
    Soon(u32),
    /// Some is missing.
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
    /// Looks strips `from..=to` up.
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
    /// `command` waits for those of the strips that are on their way.
    pub fn wait(&mut self, from: u64, to: u64, command: u32) {
        for s in from..=to {
            if let Some(s) = self.strips.get_mut(&s).filter(|s| s.loading) {
                s.waiters.push(command);
            }
        }
    }
    /// Makes room and an entry. False if it is there, or there is no room.
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
    /// A strip has come; who waited for it.
    pub fn loaded(&mut self, strip: u64) -> Vec<u32> {
        match self.strips.get_mut(&strip) {
            Some(s) => {
                s.loading = false;
                std::mem::take(&mut s.waiters)
            }
            None => Vec::new(),
        }
    }
    /// Written over: what is there is old.
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
    /// Notes a read; true if it goes on where several before it did.
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
