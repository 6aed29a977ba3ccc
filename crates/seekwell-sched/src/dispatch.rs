//! The dispatch list between the elevator and the driver. Requests are inserted at the end, at the
//! front, or sorted (`elv_dispatch_add_tail`, `elv_dispatch_sort`).

#[cfg(test)]
mod tests;

use seekwell_core::{Flags, Links, List, Op, Requests, RqId, Sector, State};

/// The dispatch list and its boundary.
#[derive(Debug, Default)]
pub struct DispatchList {
    list: List,
    links: Links,
    /// The current position of the sweep (the kernel's `end_sector`).
    pub boundary: Sector,
    /// The request that set the boundary, until the driver takes it.
    pub boundary_rq: Option<RqId>,
    /// True in 2.6.18, which sorts requests of both directions together.
    pub ignore_direction: bool,
}

impl DispatchList {
    /// Returns the first request.
    #[inline]
    pub fn first(&self) -> Option<RqId> {
        self.list.first().map(RqId)
    }
    /// Returns the last request.
    pub fn last(&self) -> Option<RqId> {
        self.list.last().map(RqId)
    }
    /// Returns the number of requests on the list.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Returns true if the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// Appends a request, and sets the boundary to it.
    #[inline]
    pub fn push_tail(&mut self, rqs: &Requests, rq: RqId) {
        self.links.push_back(&mut self.list, rq.0);
        self.boundary = rqs[rq].end();
        self.boundary_rq = Some(rq);
    }
    /// Appends a request, and leaves the boundary unchanged.
    pub fn push_tail_quiet(&mut self, rq: RqId) {
        self.links.push_back(&mut self.list, rq.0);
    }
    /// Inserts a request at the front.
    pub fn push_head(&mut self, rq: RqId) {
        self.links.push_front(&mut self.list, rq.0);
    }
    /// Inserts a request in the order of a one-way sweep. Sectors at or above the boundary come
    /// first, then the sectors below it, both ascending. The request does not pass a started
    /// request, a barrier, or a request of the other direction.
    pub fn insert_sorted(&mut self, rqs: &Requests, rq: RqId) {
        let r = &rqs[rq];
        let b = self.boundary;
        let mut at = self.list.last();
        while let Some(i) = at {
            let p = &rqs[RqId(i)];
            if (p.op == Op::Discard) != (r.op == Op::Discard)
                || (!self.ignore_direction && p.dir() != r.dir())
                || p.state >= State::Started
                || p.flags.contains(Flags::BARRIER)
            {
                break;
            }
            let goes_behind = if r.sector >= b {
                p.sector >= b && r.sector >= p.sector
            } else {
                p.sector >= b || r.sector >= p.sector
            };
            if goes_behind {
                break;
            }
            at = self.links.prev(i);
        }
        match at {
            Some(i) => self.links.insert_after(&mut self.list, i, rq.0),
            None => self.links.push_front(&mut self.list, rq.0),
        }
    }
    /// Removes and returns the first request.
    #[inline]
    pub fn pop(&mut self) -> Option<RqId> {
        self.links.pop_front(&mut self.list).map(RqId)
    }
    /// Removes a request from any place on the list.
    pub fn remove(&mut self, rq: RqId) {
        self.links.remove(&mut self.list, rq.0);
    }
    /// Returns all requests, from front to back.
    pub fn iter(&self) -> impl Iterator<Item = RqId> + '_ {
        self.links.iter(&self.list).map(RqId)
    }
}
