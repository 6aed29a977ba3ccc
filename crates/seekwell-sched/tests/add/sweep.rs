//! sweep: one way up the disk, but nobody is overtaken for ever.
//!
//! The next request at or above the head's position goes; from the top back to the lowest. But
//! once `patience` requests have overtaken the oldest one, that one goes first.
//! Left out: directions, deadlines, processes, priorities.

use crate::contract::{Insert, MergeKind, Scheduler};
use crate::cx::{Cx, Emit};
use crate::info::{Layer, SchedulerInfo, Waiting, hash_always};
use crate::tunable::{INT_MAX, Kind, StoreError, Tunable, strict_int};
use seekwell_core::{Bio, Era, IocId, Links, List, Nodes, RqId, Sector, Tree};

/// Registry line.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "sweep",
    layer: Layer::Mq,
    versions: &[("1", Era::Mq)],
    summary: "one-way sweeps in which a request can be overtaken only so often",
    history: "In no kernel: the example of docs/add-a-scheduler.md.",
    not_when: "Several sequential readers: it does not idle, so they alternate.",
    source: "docs/add-a-scheduler.md",
    per_process: false,
    hash: hash_always,
    // No deadline: patience (32) others overtake it, and those before it in the list.
    waiting: Waiting {
        fixed_ms: 20,
        requests: 32,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 33,
        except: &[],
    },
    rules: RULES,
    tunables: |_| TUNABLES,
    make: |_, _| Box::new(Sweep::new()),
};

seekwell_core::rules! {
    SWEEP: "sweep", "dispatch_request",
        "The next request at or above the head goes; at the top the lowest.";
    PATIENCE_OVER: "patience-over", "dispatch_request",
        "A request that patience others have overtaken goes first.";
}

const TUNABLES: &[Tunable] = &[Tunable {
    name: "patience",
    kind: Kind::Count,
    unit: "requests",
    default: "32",
    min: 0,
    max: INT_MAX,
    help: "Requests that may overtake the oldest. 0: first in, first out; more: shorter seeks.",
}];

/// The scheduler.
#[derive(Debug)]
pub struct Sweep {
    /// By first sector.
    sorted: Tree,
    nodes: Nodes<Sector>,
    /// By age, the oldest first.
    fifo: List,
    links: Links,
    position: Sector,
    /// Requests that have overtaken the oldest.
    overtaken: u32,
    patience: u32,
}

impl Sweep {
    /// Empty, with the default.
    pub fn new() -> Self {
        Sweep {
            sorted: Tree::new(),
            nodes: Nodes::new(),
            fifo: List::new(),
            links: Links::new(),
            position: Sector(0),
            overtaken: 0,
            patience: 32,
        }
    }
    fn forget(&mut self, rq: RqId) {
        if self.fifo.first() == Some(rq.0) {
            self.overtaken = 0;
        }
        self.links.remove(&mut self.fifo, rq.0);
        self.nodes.remove(&mut self.sorted, rq.0);
    }
}

impl Scheduler for Sweep {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        self.nodes.insert(&mut self.sorted, rq.0, cx.rqs[rq].sector);
        if how == Insert::Sorted {
            self.links.push_back(&mut self.fifo, rq.0);
        } else {
            // Given back by the driver, or meant to go first: as old as can be.
            self.links.push_front(&mut self.fifo, rq.0);
            self.overtaken = u32::MAX;
        }
    }

    fn dispatch(&mut self, cx: &mut Cx, _: u16, _: bool) -> u32 {
        let Some(oldest) = self.fifo.first() else {
            return 0;
        };
        let overtaken = self.overtaken;
        let next = if overtaken >= self.patience {
            cx.why(PATIENCE_OVER, || {
                format!("overtaken by {overtaken}: the oldest goes first")
            });
            oldest
        } else if let Some(i) = self.nodes.lower_bound(&self.sorted, self.position) {
            cx.why(SWEEP, || "it goes on".to_owned());
            i
        } else {
            cx.why(SWEEP, || "a new one from the lowest sector".to_owned());
            self.sorted.first().unwrap_or(oldest)
        };
        self.overtaken = overtaken.saturating_add(1);
        self.forget(RqId(next));
        self.position = cx.rqs[RqId(next)].end();
        cx.emit(RqId(next), Emit::Tail);
        1
    }

    fn has_work(&self, _: &Cx, _: u16) -> bool {
        !self.fifo.is_empty()
    }

    fn find_front(&mut self, _: &mut Cx, bio: &Bio, _: IocId) -> Option<RqId> {
        self.nodes.find(&self.sorted, bio.end()).map(RqId)
    }
    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {
        if kind == MergeKind::Front {
            // It starts elsewhere now.
            self.nodes.remove(&mut self.sorted, rq.0);
            self.nodes.insert(&mut self.sorted, rq.0, cx.rqs[rq].sector);
        }
    }
    fn joined(&mut self, _: &mut Cx, _: RqId, gone: RqId) {
        self.forget(gone);
    }
    fn former(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.nodes.prev(rq.0).map(RqId)
    }
    fn latter(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.nodes.next(rq.0).map(RqId)
    }

    fn tunables(&self) -> &'static [Tunable] {
        TUNABLES
    }
    fn show(&self, _: &Cx, name: &str) -> Option<String> {
        (name == "patience").then(|| self.patience.to_string())
    }
    fn store(&mut self, _: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        if name != "patience" {
            return Err(StoreError::unknown(name));
        }
        self.patience = strict_int(name, text)?.clamp(0, INT_MAX) as u32;
        Ok(())
    }

    fn check(&self, cx: &Cx) {
        assert_eq!(
            self.sorted.len(),
            self.fifo.len(),
            "sweep: tree and list hold the same"
        );
        assert_eq!(
            self.fifo.len(),
            cx.nr_sorted as usize,
            "sweep: list and nr_sorted"
        );
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        let name = |i: u32| cx.rqs.first_bio(RqId(i)).id.0.to_string();
        let ids: Vec<_> = self.links.iter(&self.fifo).map(name).collect();
        *out += &format!(
            "at {}: [{}], overtaken {}",
            self.position,
            ids.join(" "),
            self.overtaken
        );
    }
}
