//! mq-deadline: batches with deadlines, in three priority classes (`block/mq-deadline.c`, Jens
//! Axboe; classes by Bart Van Assche).
//!
//! Each class (RT, BE, IDLE) is a separate deadline scheduler. For each direction it keeps requests
//! in sector order, and in order of arrival with an expiry time. The classes share the batch
//! length, the direction of the current batch, and the number of times that writes were passed
//! over. A class is served in two cases. The first case is that no higher class has a request that
//! waits *or is in flight*. The second case is that the next request of the class is older than
//! `prio_aging_expire`. This check changes the shared state even if no request is dispatched.
//!
//! | | 6.12 (default), 6.18 | 6.1 | 5.10 |
//! |---|---|---|---|
//! | a sweep continues at | the last position | the request that was the successor of the last one, when the last one was dispatched | the same |
//! | classes, aging, async_depth | yes | yes | no |
//! | at-head inserts | one list before all other requests | one list per class | one list before all other requests |
//! | a batch may continue in | the last direction | the last direction | the direction that has a successor, writes first |
//!
//! Zoned devices are not modelled (since 6.10 mq-deadline does not handle them either). mq-deadline
//! ignores the sync flag, the process and the level inside a class. It has no timers and does not
//! idle.

mod pick;
mod rules;
#[cfg(test)]
mod tests;
mod tunables;

use crate::contract::{Insert, MergeKind, Scheduler};
use crate::cx::Cx;
use crate::info::{Layer, SchedulerInfo, Waiting};
use crate::shallow::{opened_by_word_limit, to_word_depth};
use crate::tunable::{StoreError, Tunable};
use seekwell_core::{
    Bio, Class, Era, IoPrio, IocId, Links, List, Nodes, Op, RqId, Sector, Side, Tree,
};

/// Registry entry of mq-deadline.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "mq-deadline",
    layer: Layer::Mq,
    versions: &[
        ("6.12", Era::Mq),
        ("6.18", Era::Mq6_18),
        ("6.1", Era::Mq6_1),
        ("5.10", Era::Mq6_1),
    ],
    summary: "deadline for blk-mq: sorted batches per direction with soft deadlines, in three classes",
    history: "Since 4.11, by Jens Axboe; priority classes since 5.14, by Bart Van Assche; sweeps \
              by position since about 6.2. The default of devices with one hardware queue since \
              5.0.",
    not_when: "Several sequential readers on one rotating disk (it does not idle), or shares \
               between processes: it knows classes only. Real-time requests at a depth above 1: \
               while one of them waits or is in flight, no other class is served.",
    source: "behaviour of block/mq-deadline.c, Linux 5.10, 6.1, 6.12, 6.18",
    per_process: false,
    hash: crate::info::hash_always,
    // The bound is write_expire, and then writes_starved + 1 full batches of fifo_batch.
    waiting: Waiting {
        fixed_ms: 5000,
        requests: 48,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 16,
        except: &[],
    },
    rules: rules::RULES,
    tunables: tunables::list,
    make: |cx, v| Box::new(MqDeadline::new(cx, Generation::named(v))),
};

/// The differences between the generations, as switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// True if there are three classes with aging, and async_depth.
    pub classes: bool,
    /// True if a sweep continues at a stored request, false if it continues at a position.
    pub pointers: bool,
    /// True if requests inserted at the head wait in their class.
    pub head_per_class: bool,
    /// True if a dispatch clears the pointer of the other direction, and a batch tries writes
    /// first.
    pub one_sweep: bool,
}

impl Generation {
    /// Linux 6.12.
    pub const V6_12: Generation = Generation {
        classes: true,
        pointers: false,
        head_per_class: false,
        one_sweep: false,
    };
    /// Linux 6.1.
    pub const V6_1: Generation = Generation {
        classes: true,
        pointers: true,
        head_per_class: true,
        one_sweep: false,
    };
    /// Linux 5.10.
    pub const V5_10: Generation = Generation {
        classes: false,
        pointers: true,
        head_per_class: false,
        one_sweep: true,
    };

    /// Returns the generation of a version name of [`INFO`].
    pub fn named(version: &str) -> Self {
        match version {
            "6.1" => Self::V6_1,
            "5.10" => Self::V5_10,
            _ => Self::V6_12,
        }
    }
}

const READ: usize = 0;
const WRITE: usize = 1;
const RT: usize = 0;
const BE: usize = 1;
const IDLE: usize = 2;
const CLASSES: usize = 3;
const CLASS_NAMES: [&str; CLASSES] = ["RT", "BE", "IDLE"];

/// The requests of one class.
#[derive(Debug, Default)]
struct PerClass {
    sorted: [Tree; 2],
    fifo: [List; 2],
    /// Start sector of the last request dispatched, by direction.
    latest_pos: [Sector; 2],
    /// The request at which the sweep continues, by direction. Up to 6.1: the successor of the last
    /// request dispatched, at the time of that dispatch. Later: the first request at or after
    /// `latest_pos`, cached to avoid a search.
    next: [Option<RqId>; 2],
    /// Requests inserted at the head. In 6.12 only the list of the first class is used.
    head: List,
    inserted: u64,
    merged: u64,
    dispatched: u64,
    completed: u64,
}

impl PerClass {
    /// Returns the number of requests waiting or in flight.
    fn queued(&self) -> u64 {
        self.inserted - self.completed
    }
    fn waits(&self, d: usize) -> bool {
        !self.fifo[d].is_empty()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Info {
    fifo_time_j: u64,
    class: u8,
    /// True if the request is counted in `inserted` of its class, and not in `completed`.
    counted: bool,
    /// True if the request is on a list of requests inserted at the head.
    at_head: bool,
}

/// The scheduler mq-deadline.
#[derive(Debug)]
pub struct MqDeadline {
    generation: Generation,
    class: [PerClass; CLASSES],
    info: Side<Info>,
    nodes: Nodes<Sector>,
    /// Links of the FIFOs and of the lists of requests inserted at the head. A request is on at
    /// most one of these lists.
    links: Links,
    last_dir: usize,
    batching: u32,
    starved: u32,
    expire_j: [u64; 2],
    fifo_batch: i32,
    writes_starved: i32,
    front_merges: bool,
    async_depth: u32,
    prio_aging_j: u64,
}

/// Returns the class of a priority; best effort if the priority has no class.
fn class_of(prio: IoPrio) -> usize {
    match prio.class {
        Class::Rt => RT,
        Class::None | Class::Be => BE,
        Class::Idle => IDLE,
    }
}

impl MqDeadline {
    /// Creates the scheduler with the kernel's defaults.
    pub fn new(cx: &Cx, generation: Generation) -> Self {
        MqDeadline {
            generation,
            class: Default::default(),
            info: Side::new(),
            nodes: Nodes::new(),
            links: Links::new(),
            last_dir: WRITE,
            batching: 0,
            starved: 0,
            expire_j: [cx.hz() / 2, cx.hz() * 5],
            fifo_batch: 16,
            writes_starved: 2,
            front_merges: true,
            async_depth: cx.queue.nr_requests.max(1),
            prio_aging_j: cx.hz() * 10,
        }
    }

    fn class_in_use(&self, prio: IoPrio) -> usize {
        if self.generation.classes {
            class_of(prio)
        } else {
            RT
        }
    }
    fn head_list(&self, class: usize) -> usize {
        if self.generation.head_per_class {
            class
        } else {
            RT
        }
    }

    fn sort(&mut self, c: usize, d: usize, rq: RqId, key: Sector) {
        let class = &mut self.class[c];
        self.nodes.insert(&mut class.sorted[d], rq.0, key);
        if !self.generation.pointers
            && key >= class.latest_pos[d]
            && class.next[d].is_none_or(|n| key < self.nodes.key(n.0))
        {
            class.next[d] = Some(rq);
        }
    }
    /// Returns the first request at or after the position of a sweep.
    fn at_position(&self, class: &PerClass, d: usize) -> Option<RqId> {
        let from = class.latest_pos[d];
        self.nodes.lower_bound(&class.sorted[d], from).map(RqId)
    }
    fn unsort(&mut self, c: usize, d: usize, rq: RqId) {
        let class = &mut self.class[c];
        if class.next[d] == Some(rq) {
            class.next[d] = self.nodes.next(rq.0).map(RqId);
        }
        self.nodes.remove(&mut class.sorted[d], rq.0);
    }
}

impl Scheduler for MqDeadline {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        let c = self.class_in_use(cx.rqs[rq].ioprio);
        let d = cx.rqs[rq].dir();
        let info = self.info.at(rq.idx());
        info.class = c as u8;
        if !info.counted {
            info.counted = true;
            self.class[c].inserted += 1;
        }
        if how == Insert::Sorted {
            info.fifo_time_j = cx.jiffies() + self.expire_j[d];
            self.sort(c, d, rq, cx.rqs[rq].sector);
            self.links.push_back(&mut self.class[c].fifo[d], rq.0);
        } else {
            info.fifo_time_j = cx.jiffies();
            info.at_head = true;
            let list = self.head_list(c);
            self.links.push_front(&mut self.class[list].head, rq.0);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx, _: u16, force: bool) -> u32 {
        if !self.generation.head_per_class && !self.class[RT].head.is_empty() {
            self.take_head(cx, RT);
            return 1;
        }
        if self.try_aged(cx) {
            return 1;
        }
        let now_j = cx.jiffies() as i64;
        for c in [RT, BE, IDLE] {
            // This number includes the requests that wait.
            if self.class[c].queued() == 0 {
                continue;
            }
            if self.try_class(cx, c, now_j) {
                return 1;
            }
            // A drain must dispatch all requests.
            if !force {
                cx.why(rules::HIGHER_CLASS_BUSY, || {
                    format!("{} is still in flight: lower classes wait", CLASS_NAMES[c])
                });
                return 0;
            }
        }
        0
    }

    fn has_work(&self, cx: &Cx, _: u16) -> bool {
        // The kernel checks the lists of all classes instead.
        cx.nr_sorted > 0
    }

    fn find_front(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> Option<RqId> {
        if !self.front_merges {
            return None;
        }
        let c = self.class_in_use(cx.bio_prio(bio, ioc));
        self.nodes
            .find(&self.class[c].sorted[bio.op.dir()], bio.end())
            .map(RqId)
    }

    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {
        if kind == MergeKind::Front && self.nodes.linked(rq.0) {
            let (c, d) = (self.info[rq].class as usize, cx.rqs[rq].dir());
            // `dd_request_merged`: in 6.1 the pointer still points to the request.
            if self.generation.pointers {
                self.nodes.remove(&mut self.class[c].sorted[d], rq.0);
            } else {
                self.unsort(c, d, rq);
            }
            self.sort(c, d, rq, cx.rqs[rq].sector);
        }
    }

    fn joined(&mut self, cx: &mut Cx, kept: RqId, gone: RqId) {
        let (k, g) = (self.info[kept], self.info[gone]);
        let d = cx.rqs[kept].dir();
        let fifo = &mut self.class[k.class as usize].fifo[d];
        if g.fifo_time_j < k.fifo_time_j && k.class == g.class && !k.at_head && !g.at_head {
            self.links.remove(fifo, kept.0);
            self.links.insert_before(fifo, gone.0, kept.0);
            self.info[kept].fifo_time_j = g.fifo_time_j;
        }
        self.class[g.class as usize].merged += 1;
        if g.at_head {
            let list = self.head_list(g.class as usize);
            self.links.remove(&mut self.class[list].head, gone.0);
        } else {
            self.links
                .remove(&mut self.class[g.class as usize].fifo[d], gone.0);
            self.unsort(g.class as usize, d, gone);
        }
    }

    fn former(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.nodes
            .linked(rq.0)
            .then(|| self.nodes.prev(rq.0))?
            .map(RqId)
    }
    fn latter(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.nodes
            .linked(rq.0)
            .then(|| self.nodes.next(rq.0))?
            .map(RqId)
    }

    fn limit_depth(&mut self, cx: &mut Cx, bio: &Bio, _: IocId) -> Option<u32> {
        if bio.op == Op::Read || !self.generation.classes {
            return None;
        }
        let nr = cx.queue.nr_requests;
        if self.generation == Generation::V6_1 {
            return Some(opened_by_word_limit(
                nr,
                to_word_depth(nr, self.async_depth),
            ));
        }
        Some(self.async_depth)
    }
    fn depth_changed(&mut self, cx: &mut Cx) {
        self.async_depth = cx.queue.nr_requests.max(1);
    }

    fn prepare(&mut self, _: &mut Cx, rq: RqId) {
        *self.info.at(rq.idx()) = Info::default();
    }
    fn finish(&mut self, _: &mut Cx, rq: RqId) {
        let info = self.info.at(rq.idx());
        if std::mem::take(&mut info.counted) {
            self.class[info.class as usize].completed += 1;
        }
    }

    fn tunables(&self) -> &'static [Tunable] {
        if self.generation.classes {
            tunables::ALL
        } else {
            tunables::BEFORE_5_14
        }
    }
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        self.show_tunable(cx, name)
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        self.store_tunable(cx, name, text)
    }

    fn check(&self, cx: &Cx) {
        let mut inside = 0;
        for c in &self.class {
            inside += c.head.len();
            for d in [READ, WRITE] {
                inside += c.fifo[d].len();
                assert_eq!(
                    c.sorted[d].len(),
                    c.fifo[d].len(),
                    "mq-deadline P6: sorted and fifo hold the same"
                );
                if !self.generation.pointers {
                    assert_eq!(
                        c.next[d],
                        self.at_position(c, d),
                        "mq-deadline: the sweep goes on at its position"
                    );
                } else if let Some(n) = c.next[d] {
                    assert!(
                        self.nodes.linked(n.0),
                        "mq-deadline: the pointer is in its tree"
                    );
                }
            }
            assert!(c.completed <= c.inserted, "mq-deadline P7: completed");
        }
        assert_eq!(
            inside, cx.nr_sorted as usize,
            "mq-deadline: lists and nr_sorted"
        );
        let queued: u64 = self.class.iter().map(PerClass::queued).sum();
        assert!(
            queued >= inside as u64,
            "mq-deadline P7: waiting is part of queued"
        );
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        let name = |i: u32| cx.rqs.first_bio(RqId(i)).id.0.to_string();
        for (c, class) in self.class.iter().enumerate() {
            if class.queued() == 0 {
                continue;
            }
            *out += CLASS_NAMES[c];
            for (d, word) in [(READ, "reads"), (WRITE, "writes")] {
                let ids: Vec<_> = self.links.iter(&class.fifo[d]).map(name).collect();
                *out += &format!(" {word} from {}: [{}]", class.latest_pos[d], ids.join(" "));
            }
            *out += &format!(" queued {}; ", class.queued());
        }
        let dir = ["reads", "writes"][self.last_dir];
        *out += &format!(
            "last {dir}, batch {}, starved {}",
            self.batching, self.starved
        );
    }
}
