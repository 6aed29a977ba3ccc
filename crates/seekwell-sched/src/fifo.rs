//! Code that zen, vr and sio share: lists in order of arrival whose entries have a deadline, and
//! the counter that decides when the deadlines are checked.
//!
//! Deadlines are in jiffies, as in the kernels that contained these elevators.

use seekwell_core::{Links, List, RqId, Side};

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    deadline_j: u64,
    list: u8,
}

/// `N` lists in order of arrival. A request is on at most one of them.
#[derive(Debug)]
pub struct Fifos<const N: usize> {
    lists: [List; N],
    links: Links,
    entries: Side<Entry>,
}

impl<const N: usize> Default for Fifos<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Fifos<N> {
    /// Returns empty lists.
    pub const fn new() -> Self {
        Fifos {
            lists: [List::new(); N],
            links: Links::new(),
            entries: Side::new(),
        }
    }
    /// Appends `rq` to a list.
    #[inline]
    pub fn push_back(&mut self, list: usize, rq: RqId, deadline_j: u64) {
        let list_u8 = list as u8;
        *self.entries.at(rq.idx()) = Entry {
            deadline_j,
            list: list_u8,
        };
        self.links.push_back(&mut self.lists[list], rq.0);
    }
    /// Inserts `rq` at the front of a list. Used for returned requests, which go first.
    pub fn push_front(&mut self, list: usize, rq: RqId, deadline_j: u64) {
        let list_u8 = list as u8;
        *self.entries.at(rq.idx()) = Entry {
            deadline_j,
            list: list_u8,
        };
        self.links.push_front(&mut self.lists[list], rq.0);
    }
    /// Removes `rq` from its list. Does nothing if it is on no list.
    #[inline]
    pub fn remove(&mut self, rq: RqId) {
        if self.links.linked(rq.0) {
            let list = self.list_of(rq);
            self.links.remove(&mut self.lists[list], rq.0);
        }
    }
    /// Returns the oldest request of a list.
    #[inline]
    pub fn first(&self, list: usize) -> Option<RqId> {
        self.lists[list].first().map(RqId)
    }
    /// Returns the oldest request of a list, if `expired` returns true for its deadline.
    #[inline]
    pub fn first_if(&self, list: usize, expired: impl FnOnce(u64) -> bool) -> Option<RqId> {
        self.first(list).filter(|&rq| expired(self.deadline_j(rq)))
    }
    /// Returns true if `rq` is on a list.
    pub fn holds(&self, rq: RqId) -> bool {
        self.links.linked(rq.0)
    }
    /// Returns the list that contains `rq`, or contained it last.
    #[inline]
    pub fn list_of(&self, rq: RqId) -> usize {
        self.entries[rq].list as usize
    }
    /// Returns the deadline of `rq` in jiffies: its own, or the deadline that it inherited in a
    /// join.
    #[inline]
    pub fn deadline_j(&self, rq: RqId) -> u64 {
        self.entries[rq].deadline_j
    }
    /// Handles the join of `gone` into `kept`. If both are queued and `gone` is due earlier, `kept`
    /// takes the deadline and the place of `gone`, possibly on another list. `gone` is removed.
    pub fn join(&mut self, kept: RqId, gone: RqId) {
        if self.holds(kept) && self.holds(gone) && self.deadline_j(gone) < self.deadline_j(kept) {
            self.remove(kept);
            self.entries[kept] = self.entries[gone];
            let list = self.list_of(gone);
            self.links
                .insert_after(&mut self.lists[list], gone.0, kept.0);
        }
        self.remove(gone);
    }
    /// Returns the entry before `rq` on its list.
    pub fn prev(&self, rq: RqId) -> Option<RqId> {
        self.links.prev(rq.0).map(RqId)
    }
    /// Returns the entry after `rq` on its list.
    pub fn next(&self, rq: RqId) -> Option<RqId> {
        self.links.next(rq.0).map(RqId)
    }
    /// Returns true if a list is empty.
    #[inline]
    pub fn is_empty(&self, list: usize) -> bool {
        self.lists[list].is_empty()
    }
    /// Returns the number of requests on all lists.
    pub fn total(&self) -> usize {
        self.lists.iter().map(List::len).sum()
    }
    /// Returns the requests of a list, from oldest to newest.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = RqId> + '_ {
        self.links.iter(&self.lists[list]).map(RqId)
    }
    /// Panics if a request is on another list than its entry records.
    pub fn check(&self) {
        for list in 0..N {
            for rq in self.iter(list) {
                assert_eq!(self.list_of(rq), list, "{rq:?} is on another list");
            }
        }
    }
}

/// Counts the dispatches since the last check of the deadlines. A check is due after `fifo_batch +
/// 1` counted dispatches. The first check comes at dispatch `fifo_batch + 2`, and later checks
/// every `fifo_batch + 1` dispatches. The reason is that a request dispatched at a check counts for
/// the next batch.
#[derive(Debug)]
pub struct ExpiryCheck {
    dispatched: u32,
    fifo_batch: u32,
    /// Upper limit of `dispatched`. It exceeds `fifo_batch + 1` only after that tunable was
    /// lowered, or after requests were dispatched outside a dispatch call.
    ceiling: u32,
}

impl ExpiryCheck {
    /// Returns a counter with a default `fifo_batch`. The counter starts at 0; some originals do
    /// not initialize it.
    pub const fn new(fifo_batch: u32) -> Self {
        ExpiryCheck {
            dispatched: 0,
            fifo_batch,
            ceiling: fifo_batch + 1,
        }
    }
    /// Returns true if a check is due. In that case the next batch starts, even if nothing is
    /// queued.
    #[inline]
    pub fn due(&mut self) -> bool {
        if self.dispatched <= self.fifo_batch {
            return false;
        }
        self.dispatched = 0;
        self.ceiling = self.fifo_batch + 1;
        true
    }
    /// Counts one dispatched request.
    #[inline]
    pub fn count(&mut self) {
        self.dispatched += 1;
    }
    /// Counts a request that was dispatched outside a dispatch call, so that no check was possible
    /// before it.
    pub fn count_unasked(&mut self) {
        self.dispatched += 1;
        self.ceiling = self.ceiling.max(self.dispatched);
    }
    /// Returns the tunable `fifo_batch`, in requests.
    pub const fn fifo_batch(&self) -> u32 {
        self.fifo_batch
    }
    /// Sets the tunable `fifo_batch`, in requests; 0..=INT_MAX.
    pub fn set_fifo_batch(&mut self, requests: u32) {
        self.fifo_batch = requests;
        self.ceiling = self.dispatched.max(requests + 1);
    }
    /// Returns the number of dispatches since the last check.
    pub const fn dispatched(&self) -> u32 {
        self.dispatched
    }
    /// Panics if a check was missed.
    pub fn check(&self) {
        assert!(self.dispatched <= self.ceiling, "a check was missed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_request_takes_the_earlier_place_and_deadline_across_lists() {
        let mut f = Fifos::<2>::new();
        for (rq, list, due) in [(0, 0, 10), (1, 0, 20), (2, 1, 15), (3, 1, 30)] {
            f.push_back(list, RqId(rq), due);
        }
        f.join(RqId(1), RqId(2)); // due earlier, on the other list
        assert_eq!(f.iter(0).collect::<Vec<_>>(), [RqId(0)]);
        assert_eq!(f.iter(1).collect::<Vec<_>>(), [RqId(1), RqId(3)]);
        assert_eq!(f.deadline_j(RqId(1)), 15);
        f.join(RqId(0), RqId(3)); // due later: stays
        assert_eq!(f.iter(0).collect::<Vec<_>>(), [RqId(0)]);
        assert_eq!(f.deadline_j(RqId(0)), 10);
        f.check();
        assert_eq!(f.total(), 2);
    }

    #[test]
    fn expiry_checks_come_after_fifo_batch_plus_2_then_every_fifo_batch_plus_1_requests() {
        let mut c = ExpiryCheck::new(16);
        let mut looks = Vec::new();
        for n in 1..=60 {
            if c.due() {
                looks.push(n);
            }
            c.count();
            c.check();
        }
        assert_eq!(looks, [18, 35, 52]);
    }

    #[test]
    fn lowered_fifo_batch_is_not_a_missed_expiry_check() {
        let mut c = ExpiryCheck::new(16);
        for _ in 0..10 {
            assert!(!c.due());
            c.count();
        }
        c.set_fifo_batch(1);
        c.check();
        assert!(c.due());
        c.count();
        c.check();
    }
}
