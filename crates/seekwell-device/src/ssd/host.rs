//! The host side of a flash drive: link, command stage, and completions in order of time.

use super::params::SsdParams;
use seekwell_core::{DeviceFacts, Done, Instant, Nanos, Sector};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The time of an event that never occurs.
pub(super) const NEVER: u64 = u64::MAX;

/// Models a first-in-first-out resource as one clock. A request enters at `at` and needs `service`.
/// Returns the time at which it leaves. Requests must enter in order of time, at the time when they
/// begin to wait. Otherwise a request in the far future would make the resource look busy until
/// then.
#[inline]
pub(super) fn enter(clock: &mut u64, at: u64, service: u64) -> u64 {
    *clock = (*clock).max(at) + service;
    *clock
}

/// The command stage and the host link.
#[derive(Debug, Clone)]
pub(super) struct Front {
    /// Clock of the command stage.
    stage: u64,
    /// Clocks of the link towards the host (0) and from the host (1). SATA uses one clock for both.
    links: [u64; 2],
    duplex: bool,
    cmd: u64,
    /// Transfer time of a sector on the link, in 1/1024 ns.
    per_sector: u64,
    fw: [u64; 2],
}

impl Front {
    pub fn new(p: &SsdParams) -> Self {
        Front {
            stage: 0,
            links: [0; 2],
            duplex: p.queued_flush,
            cmd: p.cmd_ns,
            per_sector: libm::round(512.0e3 * 1024.0 / p.link_mb) as u64,
            fw: [p.fw_read_ns, p.fw_write_ns],
        }
    }
    /// Returns the link time of a command with this number of sectors, in ns.
    #[inline]
    pub fn link_ns(&self, sectors: u32) -> u64 {
        self.cmd + ((u64::from(sectors) * self.per_sector) >> 10)
    }
    /// Passes a read (`dir` 0) or write (`dir` 1) through the command stage. Returns the time at
    /// which it leaves.
    #[inline]
    pub fn command(&mut self, at: u64, dir: usize) -> u64 {
        enter(&mut self.stage, at, self.fw[dir])
    }
    /// Occupies the link towards the host (`dir` 0) or from the host (`dir` 1) for `ns`. Returns
    /// the end.
    #[inline]
    pub fn link(&mut self, at: u64, dir: usize, ns: u64) -> u64 {
        let which = if self.duplex { dir } else { 0 };
        enter(&mut self.links[which], at, ns)
    }
}

/// Pending completions, earliest first. Completions at equal times are in order of insertion.
#[derive(Debug, Clone)]
pub(super) struct Finishes {
    heap: BinaryHeap<Reverse<u128>>,
    serial: u32,
}

impl Finishes {
    pub fn new(depth: u32) -> Self {
        Finishes {
            heap: BinaryHeap::with_capacity(depth as usize + 1),
            serial: 0,
        }
    }
    #[inline]
    pub fn push(&mut self, at: u64, id: u32, error: bool) {
        self.serial = (self.serial + 1) & 0x7fff_ffff;
        let low = u64::from(self.serial) << 33 | u64::from(error) << 32 | u64::from(id);
        self.heap
            .push(Reverse(u128::from(at) << 64 | u128::from(low)));
    }
    #[inline]
    pub fn next(&self) -> u64 {
        self.heap
            .peek()
            .map_or(NEVER, |Reverse(x)| (x >> 64) as u64)
    }
    /// Returns and removes the earliest completion, if it is not later than `to`.
    #[inline]
    pub fn pop(&mut self, to: u64) -> Option<Done> {
        if self.next() > to {
            return None;
        }
        self.heap.pop().map(|Reverse(x)| Done {
            id: x as u32,
            at: Instant((x >> 64) as u64),
            error: x >> 32 & 1 == 1,
        })
    }
    pub fn len(&self) -> usize {
        self.heap.len()
    }
}

/// Measures the time during which the drive has at least one command. Commands must be recorded in
/// order of arrival.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Busy {
    to: u64,
    sum: u64,
}

impl Busy {
    #[inline]
    pub fn note(&mut self, from: u64, to: u64) {
        self.sum += to.saturating_sub(from.max(self.to));
        self.to = self.to.max(to);
    }
    pub fn until(&self) -> u64 {
        self.to
    }
    pub fn total(&self) -> Nanos {
        Nanos(self.sum)
    }
}

/// Returns the pages that a range of sectors covers: the first page, the number of pages, and the
/// number of pages that are covered only in part.
#[inline]
pub(super) fn pages(sector: u64, sectors: u32) -> (u64, u32, u32) {
    let end = sector + u64::from(sectors);
    let first = sector / 8;
    let n = (end.div_ceil(8) - first) as u32;
    let partial = u32::from(!sector.is_multiple_of(8)) + u32::from(!end.is_multiple_of(8));
    (first, n, partial.min(n))
}

/// Returns the facts that the drive reports to the host.
pub(super) fn facts(p: &SsdParams, name: &str, pages: u64) -> DeviceFacts {
    DeviceFacts {
        hw_queues: p.hw_queues,
        write_cache: p.write_cache,
        fua: p.fua,
        flush_queueable: p.queued_flush,
        physical_block_bytes: 4096,
        ..DeviceFacts::plain(name, Sector(pages * 8), p.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_converted_to_pages() {
        assert_eq!(pages(0, 8), (0, 1, 0));
        assert_eq!(pages(8, 16), (1, 2, 0));
        assert_eq!(pages(9, 1), (1, 1, 1));
        assert_eq!(pages(7, 2), (0, 2, 2));
        assert_eq!(pages(4, 12), (0, 2, 1));
    }

    #[test]
    fn completions_are_ordered_by_time_then_submission() {
        let mut f = Finishes::new(4);
        for (at, id) in [(5, 1), (3, 2), (5, 3), (3, 4)] {
            f.push(at, id, id == 4);
        }
        assert_eq!(f.pop(2), None);
        let order: Vec<_> = std::iter::from_fn(|| f.pop(10)).collect();
        let ids: Vec<u32> = order.iter().map(|d| d.id).collect();
        assert_eq!(ids, [2, 4, 1, 3]);
        assert!(order[1].error && !order[0].error);
    }
}
