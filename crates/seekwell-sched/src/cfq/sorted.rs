//! The requests of a queue by sector and by age: two intrusive orders over shared tables.

use seekwell_core::{Links, List, Nodes, RqId, Sector, Side, Tree};

/// No queue.
pub(super) const NONE: u32 = u32::MAX;

/// The requests one queue holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    /// Sorted by start sector; equal sectors keep insertion order.
    pub sorted: Tree,
    /// In order of age.
    pub fifo: List,
    /// The request that goes next.
    pub next: Option<RqId>,
}

impl Held {
    /// Whether there is no request.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
    /// Number of requests held.
    #[inline]
    pub fn len(&self) -> u32 {
        self.sorted.len() as u32
    }
}

/// CFQ's data for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// Its queue.
    pub queue: u32,
    /// From this jiffy on the request goes first.
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

/// The tables behind all [`Held`]s of a scheduler.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Nodes of the sector trees.
    pub nodes: Nodes<Sector>,
    /// Links of the fifos.
    pub links: Links,
    /// Data per request.
    pub own: Side<Own>,
}

impl Tables {
    /// Neighbours of `rq`, the candidates for the next request: its successor (for the highest
    /// request, the lowest one, unless that is `rq`) and its predecessor.
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
    /// Invariants of one queue's orders.
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
