//! Batch pages. A page contains requests that were taken out of the deadline trees and wait for
//! dispatch.

use seekwell_core::{Links, List, Requests, RqId, Sector};

/// Index of the FIFO of sync requests in a page that is ordered by sector.
pub(super) const SYNC: usize = 0;
/// Index of the FIFO of the other sorted requests in such a page.
pub(super) const SWEEP: usize = 1;

/// A page of four FIFOs. Ordered by type: one FIFO per type. Ordered by sector: sync requests,
/// sorted requests, and the rest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Page {
    pub fifo: [List; 4],
    /// True if the page is ordered by sector, false if by type.
    pub by_sector: bool,
    /// True if the sorted requests are dispatched from the highest sector down.
    pub down: bool,
}

impl Page {
    pub fn len(&self) -> usize {
        self.fifo.iter().map(List::len).sum()
    }
    pub fn is_empty(&self) -> bool {
        self.fifo.iter().all(List::is_empty)
    }

    /// Sorts the FIFO of sorted requests by start sector. Requests with the same start keep their
    /// order.
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

    /// Sets the direction of dispatch: down if the head is above the middle of the sorted requests.
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

    /// Removes and returns the next request.
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
