//! The internal write-intent bitmap of md. Before a write to an idle region, the bit of the region
//! is written to the medium of every member. The bit is cleared later.
//!
//! A region that becomes dirty needs one write of 4 KiB with a flush. Regions that wait at the same
//! time share this write. When regions have been idle for the daemon's period, one write without a
//! flush clears their bits.

use seekwell_core::{Bio, Flags, Instant, Nanos, Op, TaskId};
use std::collections::BTreeMap;

/// Options of the bitmap.
#[derive(Clone, Copy, Debug)]
pub struct BitmapOptions {
    /// Size of a region that has one bit, sectors. 64 MiB is mdadm's default for large arrays.
    pub region: u64,
    /// Idle time after which a region becomes clean (mdadm `--delay`, 5 s).
    pub delay: Nanos,
    /// The thread that writes the bitmap.
    pub thread: TaskId,
}

#[derive(Clone, Copy, Debug, Default)]
struct Region {
    /// The bit of the region is on the medium.
    set: bool,
    writes: u32,
    rest_since: Instant,
}

#[derive(Debug)]
pub(super) struct Bitmap {
    options: BitmapOptions,
    regions: BTreeMap<u64, Region>,
    waiting: Vec<Bio>,
    /// Bits that the write in flight sets. `in_flight`: number of members that have not completed
    /// this write.
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
    fn chunks(&self, from: u64, to: u64) -> std::ops::RangeInclusive<u64> {
        from / self.options.region..=(to - 1) / self.options.region
    }
    /// Returns true if the write must wait for its bits. The write is then stored here. Otherwise
    /// it counts as in progress.
    pub(super) fn must_wait(&mut self, bio: &Bio) -> bool {
        let range = self.chunks(bio.sector.0, bio.end().0);
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
    /// Returns a bitmap write that is due. The caller sets its addresses.
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
    /// Handles the completion of the bitmap write by a member. Returns true if all members have
    /// completed it.
    pub(super) fn back(&mut self) -> bool {
        self.in_flight -= 1;
        if self.in_flight == 0 {
            for r in self.setting.drain(..) {
                self.regions.entry(r).or_default().set = true;
            }
        }
        self.in_flight == 0
    }
    /// Returns the writes that have waited and can start.
    pub(super) fn released(&mut self) -> Vec<Bio> {
        std::mem::take(&mut self.waiting)
    }
    /// Handles the completion of a write.
    pub(super) fn written(&mut self, now: Instant, from: u64, to: u64) {
        for r in self.chunks(from, to) {
            if let Some(r) = self.regions.get_mut(&r) {
                r.writes -= 1;
                r.rest_since = now;
            }
        }
        self.due.get_or_insert(now + self.options.delay);
    }
    /// Returns the time of the daemon's next run.
    pub(super) fn next_event(&self) -> Option<Instant> {
        self.due
    }
    /// Runs the daemon. Regions that have been idle long enough become clean.
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
