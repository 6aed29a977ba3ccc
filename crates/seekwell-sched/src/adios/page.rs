//! Batch pages: requests taken out of the deadline trees that wait to be dispatched.

use seekwell_core::{Links, List, Requests, RqId, Sector};

/// Index of sync requests in a page ordered by sector.
pub(super) const SYNC: usize = 0;
/// Index of all other sorted requests in such a page.
pub(super) const SWEEP: usize = 1;

/// Four FIFOs: one per type, or (by sector) sync requests, a sweep, and the rest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Page {
    pub fifo: [List; 4],
    /// Ordered by sector, not by type.
    pub by_sector: bool,
    /// The sweep goes down.
    pub down: bool,
}

impl Page {
    pub fn len(&self) -> usize {
        self.fifo.iter().map(List::len).sum()
    }
    pub fn is_empty(&self) -> bool {
        self.fifo.iter().all(List::is_empty)
    }

    /// Sorts the sweep by start sector; requests with the same start keep their order.
    pub fn sort(
        &mut self,
        links: &mut Links,
        rqs: &Requests,
        scratch: &mut Vec<(Sector, u32, u32)>,
    ) {
        let sweep = &mut self.fifo[SWEEP];
        scratch.clear();
        let key = |(n, i)| (rqs[RqId(i)].sector, n as u32, i);
        scratch.extend(links.iter(sweep).enumerate().map(key));
        scratch.sort_unstable();
        for (_, _, i) in scratch.iter() {
            links.remove(sweep, *i);
            links.push_back(sweep, *i);
        }
    }

    /// Sets the direction of the sweep: down if the head is above its middle.
    pub fn aim(&mut self, rqs: &Requests, head: Sector) {
        if let (true, Some(a), Some(b)) = (
            self.by_sector,
            self.fifo[SWEEP].first(),
            self.fifo[SWEEP].last(),
        ) {
            let (a, b) = (rqs[RqId(a)].sector.0, rqs[RqId(b)].sector.0);
            self.down = head.0 > a.midpoint(b);
        }
    }

    /// Takes the next request.
    pub fn pop(&mut self, links: &mut Links, highest_first: bool) -> Option<u32> {
        let mut order = [0, 1, 2, 3];
        if highest_first {
            order.reverse();
        }
        let k = *order.iter().find(|k| !self.fifo[**k].is_empty())?;
        if self.by_sector && k == SWEEP && self.down {
            let i = self.fifo[k].last()?;
            links.remove(&mut self.fifo[k], i);
            return Some(i);
        }
        links.pop_front(&mut self.fifo[k])
    }
}
