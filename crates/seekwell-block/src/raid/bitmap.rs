//! md's internal write-intent bitmap: before a region is written after rest, its bit goes to every
//! member's medium; it is cleared lazily.
//!
//! One 4 KiB write with a flush for each region that goes from idle to dirty (regions that wait
//! together share it), one without a flush when regions have been at rest for the daemon's period.

use seekwell_core::{Bio, Flags, Instant, Nanos, Op, TaskId};
use std::collections::BTreeMap;

/// How the bitmap is kept.
#[derive(Clone, Copy, Debug)]
pub struct BitmapOptions {
    /// Sectors that share a bit; 64 MiB is mdadm's default for large arrays.
    pub region: u64,
    /// Regions at rest for so long are cleaned (mdadm `--delay`, 5 s).
    pub delay: Nanos,
    /// The thread that writes it.
    pub thread: TaskId,
}

#[derive(Clone, Copy, Debug, Default)]
struct Region {
    /// Its bit is on the medium.
    set: bool,
    writes: u32,
    rest_since: Instant,
}

#[derive(Debug)]
pub(super) struct Bitmap {
    options: BitmapOptions,
    regions: BTreeMap<u64, Region>,
    waiting: Vec<Bio>,
    /// What the write in flight sets, and how many members have not answered.
    setting: Vec<u64>,
    in_flight: u32,
    clearing: bool,
    due: Option<Instant>,
}

impl Bitmap {
    pub(super) fn new(options: BitmapOptions) -> Self {
        Bitmap {
            options,
            regions: BTreeMap::new(),
            waiting: Vec::new(),
            setting: Vec::new(),
            in_flight: 0,
            clearing: false,
            due: None,
        }
    }
    fn of(&self, from: u64, to: u64) -> std::ops::RangeInclusive<u64> {
        from / self.options.region..=(to - 1) / self.options.region
    }
    /// True if the write must wait for its bits; it is kept then. Else it counts as under way.
    pub(super) fn must_wait(&mut self, bio: &Bio) -> bool {
        let range = self.of(bio.sector.0, bio.end().0);
        let set = |r| self.regions.get(&r).is_some_and(|r| r.set);
        if !range.clone().all(set) {
            self.waiting.push(*bio);
            return true;
        }
        for r in range {
            self.regions.entry(r).or_default().writes += 1;
        }
        false
    }
    /// A bitmap write that is due: addresses are the caller's.
    pub(super) fn next_write(&mut self) -> Option<Bio> {
        if self.in_flight > 0 {
            return None;
        }
        self.setting.clear();
        for b in &self.waiting {
            let range = b.sector.0 / self.options.region..=(b.end().0 - 1) / self.options.region;
            self.setting.extend(range);
        }
        let flags = match (self.setting.is_empty(), self.clearing) {
            (false, _) => Flags::SYNC | Flags::PREFLUSH | Flags::FUA,
            (true, true) => Flags::empty(),
            (true, false) => return None,
        };
        self.clearing = false;
        Some(Bio::new(0, self.options.thread, Op::Write, flags, 0, 8))
    }
    pub(super) fn sent(&mut self) {
        self.in_flight += 1;
    }
    /// A member has it. True when all have.
    pub(super) fn back(&mut self) -> bool {
        self.in_flight -= 1;
        if self.in_flight == 0 {
            for r in self.setting.drain(..) {
                self.regions.entry(r).or_default().set = true;
            }
        }
        self.in_flight == 0
    }
    /// Writes that waited, to be started anew.
    pub(super) fn released(&mut self) -> Vec<Bio> {
        std::mem::take(&mut self.waiting)
    }
    /// A write is done.
    pub(super) fn written(&mut self, now: Instant, from: u64, to: u64) {
        for r in self.of(from, to) {
            if let Some(r) = self.regions.get_mut(&r) {
                r.writes -= 1;
                r.rest_since = now;
            }
        }
        self.due.get_or_insert(now + self.options.delay);
    }
    /// The daemon's next look.
    pub(super) fn next_event(&self) -> Option<Instant> {
        self.due
    }
    /// The daemon looks: regions at rest for long become clean.
    pub(super) fn clean(&mut self, now: Instant) {
        let delay = self.options.delay;
        let before = self.regions.len();
        self.regions
            .retain(|_, r| !r.set || r.writes > 0 || now.since(r.rest_since) < delay);
        self.clearing |= self.regions.len() < before;
        let left = self.regions.values().any(|r| r.set);
        self.due = left.then_some(now + delay);
    }
}
