//! Counters of a running queue.

use seekwell_core::{Instant, Sector};

/// Counters of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Bios received.
    pub bios: u64,
    /// Requests issued to the device.
    pub requests: u64,
    /// Bios that were merged at the end of a request.
    pub back_merges: u64,
    /// Bios that were merged at the start of a request.
    pub front_merges: u64,
    /// Requests that were joined with a neighbour.
    pub joins: u64,
    /// Bios that waited for a request or tag.
    pub waits: u64,
    /// Sectors issued to the device.
    pub sectors: u64,
    /// Sum of the distances between the end of an issued request and the start of the next,
    /// sectors.
    pub seek_sectors: u64,
    /// Integral over time of the number of requests in the driver, in request nanoseconds.
    pub depth_ns: u128,
    /// Cache flushes sent to the device.
    pub flushes: u64,
    /// Packed groups of writes that were sent to the device (eMMC).
    pub packed: u64,
    /// Writes that were stopped for an urgent request and inserted into the scheduler again.
    pub stops: u64,
    depth: u32,
    since: Instant,
    head: Sector,
}

impl QueueStats {
    /// Records that `depth` requests are in the driver from time `now` on.
    #[inline]
    pub fn set_depth(&mut self, now: Instant, depth: u32) {
        self.depth_ns += u128::from(now.since(self.since).0) * u128::from(self.depth);
        self.since = now;
        self.depth = depth;
    }
    /// Counts a request issued to the device.
    #[inline]
    pub fn issued(&mut self, sector: Sector, end: Sector) {
        self.requests += 1;
        self.sectors += end.0 - sector.0;
        self.seek_sectors += sector.distance(self.head);
        self.head = end;
    }
    /// Returns the counters at time `now`. The integrals also grow between two changes.
    pub fn at(&self, now: Instant) -> QueueStats {
        let mut s = self.clone();
        s.set_depth(now.max(self.since), self.depth);
        s
    }
    /// Returns the difference between these counters and the earlier counters `before`.
    pub fn since(&self, before: &QueueStats) -> QueueStats {
        QueueStats {
            bios: self.bios - before.bios,
            requests: self.requests - before.requests,
            back_merges: self.back_merges - before.back_merges,
            front_merges: self.front_merges - before.front_merges,
            joins: self.joins - before.joins,
            waits: self.waits - before.waits,
            sectors: self.sectors - before.sectors,
            seek_sectors: self.seek_sectors - before.seek_sectors,
            depth_ns: self.depth_ns - before.depth_ns,
            flushes: self.flushes - before.flushes,
            packed: self.packed - before.packed,
            stops: self.stops - before.stops,
            ..self.clone()
        }
    }
    /// Adds the counters of another queue, for example of another member of an array.
    pub fn add(&mut self, o: &QueueStats) {
        self.bios += o.bios;
        self.requests += o.requests;
        self.back_merges += o.back_merges;
        self.front_merges += o.front_merges;
        self.joins += o.joins;
        self.waits += o.waits;
        self.sectors += o.sectors;
        self.seek_sectors += o.seek_sectors;
        self.depth_ns += o.depth_ns;
        self.flushes += o.flushes;
    }
}
