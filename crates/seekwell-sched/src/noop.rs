//! noop: a FIFO with merging (kernels 2.6 to 4.20, `block/noop-iosched.c`, Jens Axboe).
//!
//! noop ignores direction, sector, process, priority and time. If requests of a noop queue are in
//! another order, the cause is the layer around it (merges, plugs, flushes), the device, or a
//! requeue. noop has no tunables and no timers. A drain moves several requests at once to the
//! dispatch list, which sorts them; noop does not.

use crate::contract::{Insert, Scheduler};
use crate::cx::{Cx, Emit};
use crate::info::{Layer, SchedulerInfo, Waiting};
use seekwell_core::{Era, Links, List, RqId};

/// Registry entry of noop.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "noop",
    layer: Layer::Legacy,
    versions: &[
        ("4.0", Era::K4_0),
        ("3.4", Era::K3_4),
        ("2.6.24", Era::K2_6_24),
        ("2.6.18", Era::K2_6_18),
    ],
    summary: "first in, first out, with merging",
    history: "In every kernel from 2.6.0 to 4.20, by Jens Axboe: the minimal elevator, for devices \
              that sort requests themselves.",
    not_when: "Several processes on a rotating disk without command queueing: each switch between \
               processes is a seek.",
    source: "behaviour of block/noop-iosched.c and block/elevator.c, Linux 2.6.18, 2.6.24, 3.4, 4.0",
    per_process: false,
    hash: |v| v != "2.6.18",
    // First in, first out. The plug of old kernels opens after one or two jiffies.
    waiting: Waiting {
        fixed_ms: 20,
        requests: 0,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 8,
        except: &[],
    },
    rules: RULES,
    tunables: |_| &[],
    make: |_, _| Box::new(Noop::new()),
};

seekwell_core::rules! {
    OLDEST_FIRST: "oldest-first", "noop_dispatch",
        "The request that has waited longest goes.";
}

/// The scheduler noop: one FIFO.
#[derive(Debug, Default)]
pub struct Noop {
    fifo: List,
    links: Links,
}

impl Noop {
    /// Returns an empty FIFO.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Scheduler for Noop {
    fn insert(&mut self, _: &mut Cx, rq: RqId, how: Insert) {
        match how {
            Insert::AtHead | Insert::Reinsert => self.links.push_front(&mut self.fifo, rq.0),
            Insert::Sorted | Insert::Requeue => self.links.push_back(&mut self.fifo, rq.0),
        }
    }
    #[inline]
    fn dispatch(&mut self, cx: &mut Cx, _: u16, _: bool) -> u32 {
        let Some(i) = self.links.pop_front(&mut self.fifo) else {
            return 0;
        };
        cx.why_rq(OLDEST_FIRST, RqId(i), String::new);
        cx.emit(RqId(i), Emit::Sorted);
        1
    }
    fn has_work(&self, _: &Cx, _: u16) -> bool {
        !self.fifo.is_empty()
    }
    fn joined(&mut self, _: &mut Cx, _: RqId, gone: RqId) {
        self.links.remove(&mut self.fifo, gone.0);
    }
    fn former(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.links.prev(rq.0).map(RqId)
    }
    fn latter(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.links.next(rq.0).map(RqId)
    }
    fn check(&self, cx: &Cx) {
        assert_eq!(
            self.fifo.len(),
            cx.nr_sorted as usize,
            "noop: list and nr_sorted"
        );
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        let bios = self
            .links
            .iter(&self.fifo)
            .map(|i| cx.rqs.first_bio(RqId(i)).id.0.to_string());
        *out += &format!("fifo: [{}]", bios.collect::<Vec<_>>().join(" "));
    }
}
