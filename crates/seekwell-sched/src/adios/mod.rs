//! ADIOS, the adaptive deadline I/O scheduler (`block/adios.c`, Masahito Suzuki; CachyOS).
//!
//! For each type of operation, ADIOS learns a latency model of the device (base + slope x size).
//! From the predicted latency it computes a deadline for each request. It dispatches from small
//! batches (pages) of the most urgent requests, as many as the device should complete within a
//! window. A balance (the *bias*) decides between reads and other requests; each decision changes
//! it by the predicted latency.
//!
//! The model follows the published source text; it was not compared with a running ADIOS kernel.
//! One implementation with switches covers four releases (default: 3.1.9); see `version.rs`. The
//! file `model.rs` contains the latency models.
//!
//! Three points are simplified. I/O accounting is always on (without it 1.5.5 learns nothing). A
//! merge is never prevented by a busy lock. A request completes on the CPU that submitted it.

mod check;
mod choose;
mod model;
mod page;
mod rules;
#[cfg(test)]
mod tests;
mod tunables;
mod version;

use crate::contract::{BioMerge, Insert, MergeKind, Scheduler};
use crate::cx::{Cx, Emit, Slot};
use crate::info::{Layer, SchedulerInfo, Waiting, hash_always};
use crate::shallow::word_shift;
use crate::tunable::{StoreError, Tunable};
use model::{Model, Rules};
use page::Page;
use seekwell_core::{
    Bio, Era, Flags, Instant, IocId, Links, List, Nodes, Op, RqId, Sector, Side, Tree,
};
use version::{Barriers, Tiers, Version};

/// Registry entry of ADIOS.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "adios",
    layer: Layer::Mq,
    versions: &[
        ("3.1.9", Era::Mq),
        ("3.2.0", Era::Mq),
        ("3.0.1", Era::Mq),
        ("1.5.5", Era::Mq),
    ],
    summary: "learns the device's latencies and batches by predicted time, reads before writes",
    history: "Out of tree since 2024, by Masahito Suzuki; shipped by CachyOS. Changes from release \
              to release: `iosched/adios_version` tells which one a kernel has.",
    not_when: "Short runs on a fresh device, or reads only: until one small read and one small write \
               have been measured, it is a FIFO that merges nothing. Discards are barriers in 3.1.9.",
    source: "behaviour of the published patches 1.5.5, 3.0.1, 3.1.9 and 3.2.0, by reading",
    per_process: false,
    hash: hash_always,
    // A batch of reads and one of writes (36 + 72 requests), sorted by deadline. All of them take
    // less than ten seconds.
    waiting: Waiting {
        fixed_ms: 10000,
        requests: 108,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 8,
        except: &[],
    },
    rules: rules::RULES,
    tunables: tunables::tunables_of,
    make: |cx, v| Box::new(Adios::new(cx, v)),
};

const READ: usize = 0;
const WRITE: usize = 1;
const DISCARD: usize = 2;
const OTHER: usize = 3;
const TYPES: usize = 4;
/// Timer slot of the model updates.
const UPDATE: Slot = Slot::new(0, "update_timer");
/// Time from a sample to the update of the models, ms.
const UPDATE_MS: u64 = 100;
/// Weights of the CPU scheduler, by nice value from -20 to 19.
const WEIGHT: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// ADIOS's data for a request.
#[derive(Clone, Copy, Debug, Default)]
struct Rq {
    place: Place,
    /// True from the time at which the request is handed out until it completes.
    counted: bool,
    /// Predicted latency (ns) and size (bytes), both fixed at insertion.
    pl: u64,
    bytes: u64,
    deadline: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    Priority(u8),
    Barrier,
    Tree(u8),
    Page(u8),
}

/// The scheduler ADIOS.
#[derive(Debug)]
pub struct Adios {
    version: Version,
    /// Deadline trees: `[reads, all other requests]`.
    tree: [Tree; 2],
    /// The keys are deadlines in ns, rounded down to the quantum.
    nodes: Nodes<u64>,
    /// Priority queues: `[at-head requests, requests that go before them]`.
    priority: [List; 2],
    barriers: List,
    /// True while the barrier queue holds requests. New requests are then appended to it.
    barred: bool,
    pages: [Page; 2],
    current: usize,
    links: Links,
    rq: Side<Rq>,
    /// Number of requests in priority queues, pages and the device (`in_flight`), and the sum of
    /// their predicted latencies (`tpl_ns`).
    in_flight: u64,
    tpl_ns: u64,
    bias: i64,
    prio: [i32; 2],
    model: [Model; TYPES],
    /// True after the first read and the first write were measured, so that deadlines are
    /// meaningful. Never becomes false again.
    stable: bool,
    /// Time of the last completion. 3.2.0 has one entry per CPU, other releases have one entry. 0
    /// means that the device was idle.
    last_completed: Side<Instant>,
    /// End sector of the last request that completed, if known.
    last_end: Option<Sector>,
    /// End sector of the last request dispatched.
    head: Sector,
    scratch: Vec<(Sector, u32, u32)>,
    largest: [u32; TYPES],
    largest_total: u32,
    window_ns: u64,
    refill_percent: u64,
    latency_limit_ns: u64,
    by_sector: bool,
    compliance: u32,
    batch_limit: [u32; TYPES],
    target_ns: [u64; TYPES],
    rules: Rules,
}

impl Adios {
    /// Creates the scheduler with the default tunables of a release.
    pub fn new(cx: &Cx, version: &str) -> Self {
        let v = Version::named(version);
        Adios {
            version: v,
            tree: [Tree::new(); 2],
            nodes: Nodes::new(),
            priority: [List::new(); 2],
            barriers: List::new(),
            barred: false,
            pages: [Page::default(); 2],
            current: 0,
            links: Links::new(),
            rq: Side::new(),
            in_flight: 0,
            tpl_ns: 0,
            bias: 0,
            prio: [v.read_priority, 0],
            model: std::array::from_fn(|_| Model::new(cx.now())),
            stable: !v.fifo_until_stable,
            last_completed: Side::new(),
            last_end: None,
            head: Sector(0),
            scratch: Vec::new(),
            largest: [0; TYPES],
            largest_total: 0,
            window_ns: if cx.queue.rotational {
                v.window_rotational_ns
            } else {
                v.window_ns
            },
            refill_percent: v.refill_percent,
            latency_limit_ns: 500_000_000,
            by_sector: false,
            compliance: v.compliance,
            batch_limit: v.batch_limit,
            target_ns: [v.read_target_ns, 2_000_000_000, 8_000_000_000, 0],
            rules: Rules {
                shrink_at_kreqs: v.shrink_at_kreqs,
                shrink_at_gbytes: v.shrink_at_gbytes,
                shrink_resist: 2,
                narrow_buckets: v.narrow_buckets,
                base_per_sample: v.base_per_sample,
            },
        }
    }

    fn kind(op: Op) -> usize {
        match op {
            Op::Read => READ,
            Op::Write => WRITE,
            Op::Discard => DISCARD,
            Op::Flush | Op::WriteZeroes => OTHER,
        }
    }
    fn is_barrier(&self, op: Op) -> bool {
        match self.version.barriers {
            Barriers::Never => false,
            Barriers::Discards => matches!(op, Op::Discard | Op::Flush),
            Barriers::Flushes => op == Op::Flush,
        }
    }
    fn trees_empty(&self) -> bool {
        self.tree.iter().all(Tree::is_empty)
    }

    /// Counts a request as handed out.
    fn count(&mut self, rq: RqId) {
        let r = &mut self.rq[rq];
        if !r.counted {
            r.counted = true;
            self.in_flight += 1;
            self.tpl_ns += r.pl;
        }
    }
    /// Adds a request to priority queue `q`.
    fn prioritise(&mut self, cx: &mut Cx, rq: RqId, q: usize) {
        self.count(rq);
        self.rq[rq].place = Place::Priority(q as u8);
        cx.merge.forget(rq);
        if self.version.tiers == Tiers::AtHeadLifo {
            self.links.push_front(&mut self.priority[q], rq.0);
        } else {
            self.links.push_back(&mut self.priority[q], rq.0);
        }
    }
    /// `add_to_dl_tree`: adds a request to its deadline tree, after the requests with the same key.
    fn sort(&mut self, cx: &Cx, rq: RqId) {
        let r = &cx.rqs[rq];
        let k = Self::kind(r.op);
        let v = &self.version;
        let pl = self.rq[rq].pl;
        let mut d = r.start.0;
        if !(v.sync_is_due && r.flags.contains(Flags::SYNC)) {
            d = d.saturating_add(self.target_ns[k]);
            if v.plain_deadline_flag == 0 || self.compliance & v.plain_deadline_flag == 0 {
                d = d.saturating_add(pl);
            }
        }
        let side = usize::from(k != READ);
        self.rq[rq].deadline = d;
        self.rq[rq].place = Place::Tree(side as u8);
        let key = d >> v.quantum_shift << v.quantum_shift;
        self.nodes.insert(&mut self.tree[side], rq.0, key);
    }
    /// Removes a request from its deadline tree. Returns false if it is in none.
    fn unsort(&mut self, rq: RqId) -> bool {
        let Place::Tree(side) = self.rq.at(rq.idx()).place else {
            return false;
        };
        self.nodes.remove(&mut self.tree[side as usize], rq.0);
        self.rq[rq].place = Place::Outside;
        true
    }
}

/// Returns the weight of a sample on a rotating disk. The weight grows with the distance that the
/// head moved.
fn sample_weight(last_end: Option<Sector>, start: Sector) -> u64 {
    match last_end.map_or(0, |l| l.distance(start)) {
        0 => 1,
        d => u64::from(d.ilog2()) + 2,
    }
}

impl Scheduler for Adios {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        let (op, flags) = (cx.rqs[rq].op, cx.rqs[rq].flags);
        let at_head = how != Insert::Sorted;
        let bytes = cx.rqs[rq].sectors.bytes();
        let mut pl = self.model[Self::kind(op)].predict(bytes);
        if self.version.caps_prediction {
            pl = pl.min(self.latency_limit_ns);
        }
        let r = self.rq.at(rq.idx());
        if !r.counted {
            // A request that the driver returned keeps its recorded prediction and size.
            (r.pl, r.bytes) = (pl, bytes);
        }
        if !self.stable {
            cx.why_rq(rules::NOT_STABLE, rq, || {
                "not enough measured yet: first in, first out".to_owned()
            });
            self.prioritise(cx, rq, usize::from(!at_head));
            self.stable = self.model[READ].base > 0 && self.model[WRITE].base > 0;
        } else if at_head {
            self.prioritise(cx, rq, 0);
        } else if self.version.tiers == Tiers::Durability
            && (self.compliance & 1 != 0 && flags.contains(Flags::FUA)
                || self.compliance & 2 != 0 && flags.contains(Flags::PREFLUSH))
        {
            self.prioritise(cx, rq, 1);
        } else if self.barred || self.is_barrier(op) {
            cx.why_rq(rules::BEHIND_BARRIER, rq, || {
                "behind (or as) a barrier".to_owned()
            });
            self.barred = true;
            self.rq[rq].place = Place::Barrier;
            cx.merge.forget(rq);
            self.links.push_back(&mut self.barriers, rq.0);
        } else {
            self.sort(cx, rq);
        }
    }

    fn insert_merges(&self) -> bool {
        self.stable && !self.barred
    }

    fn dispatch(&mut self, cx: &mut Cx, _: u16, force: bool) -> u32 {
        let rq = loop {
            if let Some(rq) = self.next_of_priority(cx) {
                break rq;
            }
            if let Some(rq) = self.next_of_pages(cx, force) {
                break rq;
            }
            if !self.trees_empty() || !self.lift_barrier(cx) {
                return 0;
            }
        };
        self.rq[rq].place = Place::Outside;
        self.head = cx.rqs[rq].end();
        cx.emit(rq, Emit::Tail);
        1
    }

    fn has_work(&self, _: &Cx, _: u16) -> bool {
        !self.trees_empty()
            || self.priority.iter().any(|l| !l.is_empty())
            || self.pages.iter().any(|p| !p.is_empty())
            || !self.barriers.is_empty()
    }

    fn bio_merge(&mut self, _: &mut Cx, _: &Bio, _: IocId) -> BioMerge {
        if self.barred || !self.stable {
            BioMerge::No
        } else {
            BioMerge::UseElevator
        }
    }
    fn allow_merge(&mut self, _: &mut Cx, rq: RqId, _: &Bio, _: IocId) -> bool {
        matches!(self.rq.at(rq.idx()).place, Place::Tree(_))
    }
    fn merged(&mut self, cx: &mut Cx, rq: RqId, _: MergeKind) {
        if self.unsort(rq) {
            self.sort(cx, rq);
        }
    }
    fn joined(&mut self, _: &mut Cx, _: RqId, gone: RqId) {
        self.unsort(gone);
    }

    /// Returns the number of tags that a request may use if it is not a read. ADIOS means this
    /// limit for each word of the tag map. Kernels that apply it to the whole map leave only as
    /// many tags as one word has.
    fn limit_depth(&mut self, cx: &mut Cx, bio: &Bio, _: IocId) -> Option<u32> {
        if bio.op == Op::Read || cx.queue.era < Era::Mq {
            return None;
        }
        Some(1 << word_shift(cx.queue.nr_requests))
    }

    fn completed(&mut self, cx: &mut Cx, rq: RqId) {
        let r = *self.rq.at(rq.idx());
        if r.counted {
            self.rq[rq].counted = false;
            self.in_flight -= 1;
            self.tpl_ns -= r.pl;
        }
        let (k, now) = (Self::kind(cx.rqs[rq].op), cx.now());
        if k == OTHER {
            self.last_end = None;
            return;
        }
        let issued = cx.rqs[rq].issue;
        let cpu = if self.version.per_cpu {
            usize::from(cx.rqs[rq].cpu)
        } else {
            0
        };
        let last = self.last_completed.at(cpu);
        let since = if self.version.between_completions && last.0 != 0 {
            *last
        } else {
            issued
        };
        *last = if self.in_flight > 0 { now } else { Instant(0) };
        if issued.0 == 0 || r.bytes == 0 || now < since {
            return;
        }
        let latency = now.since(since).0;
        if latency > self.latency_limit_ns {
            cx.why_rq(rules::IMPLAUSIBLE_LATENCY, rq, || {
                format!("{latency} ns is above the limit: not used as a sample")
            });
            return;
        }
        let mut weight = 1;
        if self.version.rotational && cx.queue.rotational {
            let last = self.last_end.replace(cx.rqs[rq].end());
            weight = sample_weight(last, cx.rqs[rq].sector);
        }
        cx.why_rq(rules::SAMPLE, rq, || {
            format!(
                "type {k}: {latency} ns, predicted {}, weight {weight}",
                r.pl
            )
        });
        self.model[k].feed(&self.rules, now, r.bytes, latency, r.pl, weight);
        if !cx.armed(UPDATE) {
            cx.arm_jiffy(UPDATE, cx.jiffies() + cx.ms_to_jiffies(UPDATE_MS));
        }
    }
    fn finish(&mut self, _: &mut Cx, rq: RqId) {
        // The request was handed out and will not complete.
        let r = std::mem::take(self.rq.at(rq.idx()));
        if r.counted {
            self.in_flight -= 1;
            self.tpl_ns -= r.pl;
        }
    }

    fn timer(&mut self, cx: &mut Cx, _: u8) {
        cx.why(rules::MODEL_UPDATED, || {
            "base and slope are computed from the samples".to_owned()
        });
        for m in &mut self.model {
            m.update(&self.rules, cx.now());
        }
    }

    fn tunables(&self) -> &'static [Tunable] {
        tunables::tunables_of(self.version.name)
    }
    fn show(&self, _: &Cx, name: &str) -> Option<String> {
        tunables::show(self, name)
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        tunables::store(self, cx, name, text)
    }

    fn check(&self, cx: &Cx) {
        self.check_places(cx);
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        self.tell(cx, out);
    }
}
