//! The requests of a queue, sorted by sector and by age. Both orders are intrusive and use shared
//! tables.

use seekwell_core::{Links, List, Nodes, RqId, Sector, Side, Tree};

/// Index that stands for no queue.
pub(super) const NONE: u32 = u32::MAX;

/// The requests that one queue holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    /// Requests sorted by start sector. Requests with equal sectors keep the order of insertion.
    pub sorted: Tree,
    /// Requests in order of age.
    pub fifo: List,
    /// The request that the queue dispatches next.
    pub next: Option<RqId>,
}

impl Held {
    /// Returns true if the queue holds no request.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
    /// Returns the number of requests held.
    #[inline]
    pub fn len(&self) -> u32 {
        self.sorted.len() as u32
    }
}

/// CFQ's data for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// The queue that contains the request.
    pub queue: u32,
    /// The jiffy from which on the request has expired and is dispatched first.
    pub deadline_j: u64,
}

impl Default for Own {
    fn default() -> Self {
        Own {
            queue: NONE,
            deadline_j: 0,
        }
    }
}

/// Tables that all [`Held`]s of a scheduler share.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Nodes of the sector trees.
    pub nodes: Nodes<Sector>,
    /// Links of the FIFOs.
    pub links: Links,
    /// CFQ's data for each request.
    pub own: Side<Own>,
}

impl Tables {
    /// Returns the candidates for the request that follows `rq`: its successor and its predecessor.
    /// The successor of the highest request is the lowest request, unless that is `rq`.
    #[inline]
    pub fn around(&self, held: &Held, rq: RqId) -> (Option<RqId>, Option<RqId>) {
        let next = self
            .nodes
            .next(rq.0)
            .or_else(|| held.sorted.first().filter(|first| *first != rq.0));
        (next.map(RqId), self.nodes.prev(rq.0).map(RqId))
    }
    /// Removes `rq` from both orders.
    #[inline]
    pub fn remove(&mut self, held: &mut Held, rq: RqId) {
        self.nodes.remove(&mut held.sorted, rq.0);
        self.links.remove(&mut held.fifo, rq.0);
    }
    /// Checks the invariants of both orders of one queue.
    pub fn check(&self, held: &Held, queue: u32) {
        assert_eq!(
            held.sorted.len(),
            held.fifo.len(),
            "cfq: tree and fifo differ"
        );
        for i in self.nodes.iter(&held.sorted) {
            assert_eq!(
                self.own[RqId(i)].queue,
                queue,
                "cfq: request of another queue"
            );
        }
        assert_eq!(
            held.next.is_none(),
            held.is_empty(),
            "cfq: next_rq iff not empty"
        );
        if let Some(n) = held.next {
            assert!(self.nodes.linked(n.0), "cfq: next_rq is queued");
        }
    }
}
