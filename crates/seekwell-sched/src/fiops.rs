//! fiops, "fair IOPS": shares requests, not time, among io contexts (Shaohua Li, 2012).
//!
//! Each context has a FIFO and a count of virtual I/Os, *vios*. fiops takes the highest class that
//! has requests and serves the context with the fewest vios. The count of that context then
//! increases by the cost of its request. A sync request at best-effort level 4 costs 1024; async
//! requests and requests of lower levels cost more. The size of a request does not change its cost.
//! fiops gives flash the fairness of CFQ without its idle waits. It has no cgroups and no timers.
//!
//! | version | costs scale and ioprio counts | a lone async head waits for sync in flight | sync overtakes async |
//! |---|---|---|---|
//! | v2 (default) | yes | yes | no |
//! | v1 (the RFC) | no: every request costs 1024, one class | no | no |
//! | preempt | yes | yes | yes; with no sync head, the *most* served context goes |
//!
//! Two defects of the original are corrected:
//!
//! - With extreme values of the tunables `read_scale` to `async_scale`, a cost could be 0, so that
//!   the context was never charged. Here a cost is at least 1.
//! - For a context without ioprio, the original used the nice value of the task that was running
//!   during the insertion, for example a kernel worker. Here the nice value of the context's own
//!   task is used.
//!
//! Two defects of the original are reproduced:
//!
//! - A change of the ioprio has no effect after the first request of a context.
//! - When a context without queued requests queues a request, its vios rise to at least the
//!   smallest vios of its class. So a context does not profit from a pause. This rule is skipped if
//!   another request of the same context is still in flight.

use crate::contract::{Insert, IocEvent, MergeKind, Scheduler};
use crate::cx::{Cx, Emit};
use crate::info::{Layer, SchedulerInfo, Waiting, hash_always};
use crate::tunable::{StoreError, Tunable, legacy_int};
use seekwell_core::{Bio, Class, Era, IoPrio, IocId, Links, List, Nodes, RqId, Sector, Side, Tree};

/// Registry entry of fiops.
pub const INFO: SchedulerInfo = SchedulerInfo {
    name: "fiops",
    layer: Layer::Legacy,
    versions: &[("v2", Era::K3_4), ("v1", Era::K3_4), ("preempt", Era::K3_4)],
    summary: "fair shares of requests (not of time) between processes, for flash",
    history: "Shaohua Li, RFC in January 2012 (v1) and v2 days later, on CFQ's per-process \
              skeleton. It was never merged; phone kernels carried it from 2012. preempt is the \
              copy of one CyanogenMod tree.",
    not_when: "Rotating disks, because it neither sorts nor idles. Large requests next to small \
               ones: 512 KiB cost as much as 4 KiB. Classes: RT and BE can starve IDLE without \
               limit.",
    source: "behaviour of block/fiops-iosched.c in four published kernels",
    per_process: true,
    hash: hash_always,
    // The bound follows from the costs: an async write can cost as much as ten sync reads. In the
    // version `preempt` sync reads go first, without limit as long as they arrive.
    waiting: Waiting {
        fixed_ms: 500,
        requests: 128,
        per_task_ms: 0,
        per_task_requests: 0,
        writes_before_read: 4,
        except: &["preempt"],
    },
    rules: RULES,
    tunables: |v| Variant::named(v).tunables(),
    make: |_, v| Box::new(Fiops::new(Variant::named(v))),
};

seekwell_core::rules! {
    LEAST_COST: "least-cost", "fiops_scaled_vios",
        "A request costs at least 1, whatever the scales are.";
    LEAST_SERVED: "least-served", "fiops_select_ioc",
        "The process that was charged least goes next. Real time goes before best effort, and best \
         effort before idle.";
    ASYNC_WAITS: "async-waits", "fiops_select_ioc",
        "If only one process has requests and its oldest one is async, that request waits while \
         sync requests are in flight.";
    SYNC_OVERTAKES: "sync-overtakes", "fiops_select_ioc",
        "A process whose oldest request is sync goes before a process whose oldest request is \
         async.";
    DRAIN: "drain", "fiops_forced_dispatch",
        "A drain dispatches all requests, process by process, and charges nothing.";
}

const fn scale(name: &'static str, default: &'static str, help: &'static str) -> Tunable {
    Tunable::count(name, "ratio part", default, help).range(1, 100)
}

/// The tunables of v2. `preempt` has one more; v1 has none.
#[rustfmt::skip]
static TUNABLES: [Tunable; 5] = [
    scale("read_scale", "1",
        "Divides the cost of writes: their cost is multiplied by write_scale / read_scale."),
    scale("write_scale", "1",
        "Multiplies the cost of writes. Raise it if a write takes the device longer than a read."),
    scale("sync_scale", "2",
        "Divides the cost of async requests: their cost is multiplied by async_scale / sync_scale."),
    scale("async_scale", "5",
        "Multiplies the cost of async requests (buffered writes). Higher: fewer of them beside reads."),
    Tunable::flag("fix_preempt", "0",
        "Not in any kernel. 1: if no process has a sync request at its head, the process that was \
         charged least goes. 0: as in the original, the process that was charged most goes."),
];

/// A published version of fiops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// The first posting (RFC): every request costs the same, and ioprio is ignored.
    V1,
    /// With scales, ioprio and delayed async requests. Most phones contained this version.
    V2,
    /// Like v2, but a context with a sync head goes before contexts with an async head.
    Preempt,
}

impl Variant {
    /// Returns the variant with a version name of [`INFO`].
    pub fn named(version: &str) -> Self {
        match version {
            "v1" => Variant::V1,
            "preempt" => Variant::Preempt,
            _ => Variant::V2,
        }
    }
    fn tunables(self) -> &'static [Tunable] {
        match self {
            Variant::V1 => &[],
            Variant::V2 => &TUNABLES[..4],
            Variant::Preempt => &TUNABLES,
        }
    }
}

/// Cost of a sync request at best-effort level 4.
const COST_BASE: i64 = 1024;
/// The level whose cost is [`COST_BASE`]. Each level above or below this level changes the cost by
/// a fifth.
const LEVEL_NORMAL: i64 = 4;
const LEVEL_DIVISOR: i64 = 5;

/// Names of the classes, in order of precedence.
const CLASSES: [&str; 3] = ["RT", "BE", "IDLE"];
const BE: usize = 1;

/// Data of an io context.
#[derive(Clone, Copy, Debug, Default)]
struct Context {
    vios: u64,
    fifo: List,
    sorted: Tree,
    /// Number of requests that were dispatched and have not completed.
    in_flight: u32,
    /// Index into [`CLASSES`], and level. Set when the first request arrives.
    prio: Option<(u8, u8)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ServiceTree {
    /// Contexts with requests, sorted by vios. Contexts with equal vios are in the order of
    /// arrival.
    tree: Tree,
    /// Smallest vios of the class. The value never decreases; a new context starts with it.
    vios_min: u64,
}

/// The scheduler fiops.
#[derive(Debug)]
pub struct Fiops {
    variant: Variant,
    service: [ServiceTree; 3],
    by_vios: Nodes<u64>,
    contexts: Side<Context>,
    fifo_links: Links,
    by_sector: Nodes<Sector>,
    /// True for a request that was dispatched and has not completed.
    flying: Side<bool>,
    /// Number of requests that were dispatched and have not completed: `[async, sync]`.
    in_flight: [u32; 2],
    read_scale: i64,
    write_scale: i64,
    sync_scale: i64,
    async_scale: i64,
    fix_preempt: bool,
}

impl Fiops {
    /// Creates the scheduler with the kernel's defaults.
    pub fn new(variant: Variant) -> Self {
        Fiops {
            variant,
            service: [ServiceTree::default(); 3],
            by_vios: Nodes::new(),
            contexts: Side::new(),
            fifo_links: Links::new(),
            by_sector: Nodes::new(),
            flying: Side::new(),
            in_flight: [0; 2],
            read_scale: 1,
            write_scale: 1,
            sync_scale: 2,
            async_scale: 5,
            fix_preempt: false,
        }
    }

    /// Returns the class and level of a context. They are computed once, when the first request of
    /// the context arrives.
    fn prio_of(&self, cx: &Cx, ioc: IocId) -> (u8, u8) {
        if self.variant == Variant::V1 {
            return (BE as u8, LEVEL_NORMAL as u8);
        }
        let context = cx.iocs.get(ioc);
        let IoPrio { class, level } = context.effective(cx.queue.era);
        match class {
            Class::Rt => (0, level),
            // A class set by ioprio_set has no levels. For SCHED_IDLE, the nice value gives the
            // level.
            Class::Idle if context.ioprio.class == Class::Idle => (2, 7),
            Class::Idle => (2, level),
            Class::Be | Class::None => (BE as u8, level),
        }
    }

    /// Returns the index of the service tree and the level of a context that has had a request.
    fn class_level(&self, ioc: IocId) -> (usize, u8) {
        let (class, level) = self.contexts[ioc].prio.unwrap_or((BE as u8, 4));
        (class as usize, level)
    }

    /// `fiops_scaled_vios`: returns the cost of a request, in vios.
    fn cost(&self, cx: &mut Cx, rq: RqId, level: u8) -> u64 {
        let mut c = COST_BASE;
        if self.variant == Variant::V1 {
            return c as u64;
        }
        if cx.rqs[rq].is_write() {
            c = c * self.write_scale / self.read_scale;
        }
        if !cx.rqs[rq].sync {
            c = c * self.async_scale / self.sync_scale;
        }
        c += c * (i64::from(level) - LEVEL_NORMAL) / LEVEL_DIVISOR;
        if c < 1 {
            cx.why_rq(LEAST_COST, rq, || {
                "the scales give a cost of 0: 1 is charged".to_owned()
            });
            c = 1;
        }
        c as u64
    }

    /// Raises `vios_min` of a class to the vios of the first context of the class.
    fn raise_vios_min(&mut self, class: usize) {
        let s = &mut self.service[class];
        if let Some(first) = s.tree.first() {
            s.vios_min = s.vios_min.max(self.by_vios.key(first));
        }
    }

    fn enter(&mut self, ioc: IocId) {
        let (class, _) = self.class_level(ioc);
        let vios = self.contexts[ioc].vios;
        self.by_vios
            .insert(&mut self.service[class].tree, ioc.0, vios);
    }
    fn leave(&mut self, ioc: IocId) {
        let (class, _) = self.class_level(ioc);
        self.by_vios.remove(&mut self.service[class].tree, ioc.0);
    }

    /// Removes a queued request from its context.
    fn unqueue(&mut self, cx: &Cx, rq: RqId) {
        let c = &mut self.contexts[cx.rqs[rq].ioc];
        self.fifo_links.remove(&mut c.fifo, rq.0);
        self.by_sector.remove(&mut c.sorted, rq.0);
    }

    /// Dispatches the head of the context's FIFO.
    fn send(&mut self, cx: &mut Cx, rq: RqId) {
        self.unqueue(cx, rq);
        *self.flying.at(rq.idx()) = true;
        self.contexts[cx.rqs[rq].ioc].in_flight += 1;
        self.in_flight[usize::from(cx.rqs[rq].sync)] += 1;
        cx.emit(rq, Emit::Tail);
    }

    /// Subtracts a request from the counts of requests in flight, because the request completed or
    /// was returned to the scheduler.
    fn uncount(&mut self, cx: &Cx, rq: RqId) {
        if std::mem::take(self.flying.at(rq.idx())) {
            self.contexts[cx.rqs[rq].ioc].in_flight -= 1;
            self.in_flight[usize::from(cx.rqs[rq].sync)] -= 1;
        }
    }

    fn head(&self, ioc: u32) -> Option<RqId> {
        self.contexts[IocId(ioc)].fifo.first().map(RqId)
    }

    /// `fiops_select_ioc`: returns the context that goes next, and its oldest request.
    fn select(&self, cx: &mut Cx) -> Option<(IocId, RqId)> {
        let class = (0..3).find(|&c| !self.service[c].tree.is_empty())?;
        let tree = &self.service[class].tree;
        let first = tree.first()?;
        let head = self.head(first)?;
        let chosen = if self.variant == Variant::V1 || cx.rqs[head].sync {
            first
        } else if tree.len() == 1 {
            if self.in_flight[1] > 0 {
                cx.why(ASYNC_WAITS, || {
                    let n = self.in_flight[1];
                    format!("only an async head, and {n} sync in flight: wait")
                });
                return None;
            }
            first
        } else if self.variant == Variant::Preempt {
            self.overtake(cx, first)
        } else {
            first
        };
        let vios = self.contexts[IocId(chosen)].vios;
        cx.why_ioc(LEAST_SERVED, IocId(chosen), || {
            format!("{} class: {{who}} with {vios} vios", CLASSES[class])
        });
        Some((IocId(chosen), self.head(chosen)?))
    }

    /// Returns the context with the fewest vios whose oldest request is sync, except context
    /// `first`. If there is none, returns the last context, or `first` if `fix_preempt` is set.
    fn overtake(&self, cx: &mut Cx, first: u32) -> u32 {
        let mut last = first;
        let mut at = self.by_vios.next(first);
        while let Some(ioc) = at {
            if self.head(ioc).is_some_and(|h| cx.rqs[h].sync) {
                cx.why_ioc(SYNC_OVERTAKES, IocId(ioc), || {
                    "a sync head overtakes".to_owned()
                });
                return ioc;
            }
            last = ioc;
            at = self.by_vios.next(ioc);
        }
        if self.fix_preempt {
            cx.why_ioc(SYNC_OVERTAKES, IocId(first), || {
                "no sync head: with fix_preempt the least served goes".to_owned()
            });
            return first;
        }
        cx.why_ioc(SYNC_OVERTAKES, IocId(last), || {
            "no sync head: the most served goes".to_owned()
        });
        last
    }

    /// `fiops_charge_vios`: adds the cost of a request to the vios of the context, and moves the
    /// context to its new position in the tree.
    fn charge(&mut self, cx: &mut Cx, ioc: IocId, rq: RqId) {
        let (class, level) = self.class_level(ioc);
        let cost = self.cost(cx, rq, level);
        self.contexts[ioc].vios += cost;
        self.leave(ioc);
        if !self.contexts[ioc].fifo.is_empty() {
            self.enter(ioc);
        }
        self.raise_vios_min(class);
    }

    /// Dispatches all requests, class by class and context by context, and charges nothing.
    fn drain(&mut self, cx: &mut Cx) -> u32 {
        let mut sent = 0;
        for class in 0..CLASSES.len() {
            while let Some(ioc) = self.service[class].tree.first() {
                while let Some(rq) = self.head(ioc) {
                    cx.why_rq(DRAIN, rq, || "a drain holds nothing back".to_owned());
                    self.send(cx, rq);
                    sent += 1;
                }
                self.leave(IocId(ioc));
            }
        }
        sent
    }
}

fn cx_task(cx: &Cx, ioc: IocId) -> u32 {
    cx.iocs.get(ioc).task.0
}

impl Scheduler for Fiops {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        self.uncount(cx, rq);
        let (ioc, sector) = (cx.rqs[rq].ioc, cx.rqs[rq].sector);
        if self.contexts.at(ioc.idx()).prio.is_none() {
            self.contexts[ioc].prio = Some(self.prio_of(cx, ioc));
        }
        let c = &mut self.contexts[ioc];
        match how {
            Insert::Sorted => self.fifo_links.push_back(&mut c.fifo, rq.0),
            Insert::AtHead | Insert::Requeue | Insert::Reinsert => {
                self.fifo_links.push_front(&mut c.fifo, rq.0);
            }
        }
        self.by_sector.insert(&mut c.sorted, rq.0, sector);
        if self.by_vios.linked(ioc.0) {
            return;
        }
        let (class, _) = self.class_level(ioc);
        let c = &mut self.contexts[ioc];
        if c.in_flight == 0 {
            c.vios = c.vios.max(self.service[class].vios_min);
        }
        self.enter(ioc);
        self.raise_vios_min(class);
    }

    fn dispatch(&mut self, cx: &mut Cx, _: u16, force: bool) -> u32 {
        if force {
            return self.drain(cx);
        }
        let Some((ioc, rq)) = self.select(cx) else {
            return 0;
        };
        self.send(cx, rq);
        self.charge(cx, ioc, rq);
        1
    }

    fn has_work(&self, _: &Cx, _: u16) -> bool {
        self.service.iter().any(|s| !s.tree.is_empty())
    }

    fn find_front(&mut self, _: &mut Cx, bio: &Bio, ioc: IocId) -> Option<RqId> {
        let c = self.contexts.try_get(ioc.idx())?;
        self.by_sector.find(&c.sorted, bio.end()).map(RqId)
    }
    fn allow_merge(&mut self, cx: &mut Cx, rq: RqId, _: &Bio, ioc: IocId) -> bool {
        cx.rqs[rq].ioc == ioc
    }
    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {
        if kind == MergeKind::Front {
            let c = &mut self.contexts[cx.rqs[rq].ioc];
            self.by_sector.remove(&mut c.sorted, rq.0);
            self.by_sector
                .insert(&mut c.sorted, rq.0, cx.rqs[rq].sector);
        }
    }
    fn joined(&mut self, cx: &mut Cx, _: RqId, gone: RqId) {
        if !self.fifo_links.linked(gone.0) {
            return;
        }
        self.unqueue(cx, gone);
        let ioc = cx.rqs[gone].ioc;
        if self.contexts[ioc].fifo.is_empty() && self.by_vios.linked(ioc.0) {
            self.leave(ioc);
        }
    }
    fn former(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.by_sector.prev(rq.0).map(RqId)
    }
    fn latter(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.by_sector.next(rq.0).map(RqId)
    }

    fn completed(&mut self, cx: &mut Cx, rq: RqId) {
        self.uncount(cx, rq);
        if self.in_flight == [0, 0] && self.has_work(cx, 0) {
            cx.kick();
        }
    }

    fn ioc_event(&mut self, _: &mut Cx, ioc: IocId, what: IocEvent) {
        if matches!(what, IocEvent::Attach | IocEvent::Release) {
            *self.contexts.at(ioc.idx()) = Context::default();
        }
    }

    fn tunables(&self) -> &'static [Tunable] {
        self.variant.tunables()
    }
    fn show(&self, _: &Cx, name: &str) -> Option<String> {
        self.tunables().iter().find(|t| t.name == name)?;
        Some(match name {
            "read_scale" => self.read_scale.to_string(),
            "write_scale" => self.write_scale.to_string(),
            "sync_scale" => self.sync_scale.to_string(),
            "async_scale" => self.async_scale.to_string(),
            "fix_preempt" => u8::from(self.fix_preempt).to_string(),
            _ => return None,
        })
    }
    fn store(&mut self, _: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        if !self.tunables().iter().any(|t| t.name == name) {
            return Err(StoreError::unknown(name));
        }
        let v = legacy_int(text);
        match name {
            "read_scale" => self.read_scale = v.clamp(1, 100),
            "write_scale" => self.write_scale = v.clamp(1, 100),
            "sync_scale" => self.sync_scale = v.clamp(1, 100),
            "async_scale" => self.async_scale = v.clamp(1, 100),
            "fix_preempt" => self.fix_preempt = v > 0,
            _ => return Err(StoreError::unknown(name)),
        }
        Ok(())
    }

    fn check(&self, cx: &Cx) {
        let mut queued = 0;
        for (class, s) in self.service.iter().enumerate() {
            for i in self.by_vios.iter(&s.tree) {
                let c = &self.contexts[IocId(i)];
                assert!(!c.fifo.is_empty(), "fiops: an idle context is on a tree");
                assert_eq!(c.fifo.len(), c.sorted.len(), "FIFO and sector index");
                assert_eq!(self.by_vios.key(i), c.vios, "the tree is out of date");
                assert_eq!(self.class_level(IocId(i)).0, class, "on the wrong tree");
                queued += c.fifo.len();
            }
        }
        assert_eq!(queued, cx.nr_sorted as usize, "fiops: FIFOs and nr_sorted");
        let flying: u32 = (0..cx.iocs.capacity())
            .filter_map(|i| self.contexts.try_get(i))
            .map(|c| c.in_flight)
            .sum();
        assert_eq!(flying, self.in_flight[0] + self.in_flight[1], "in flight");
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        let name = |rq: u32| cx.rqs.first_bio(RqId(rq)).id.0.to_string();
        for (class, s) in self.service.iter().enumerate() {
            if s.tree.is_empty() {
                continue;
            }
            *out += &format!("{} (min {}): ", CLASSES[class], s.vios_min);
            for i in self.by_vios.iter(&s.tree) {
                let c = &self.contexts[IocId(i)];
                let ids: Vec<_> = self.fifo_links.iter(&c.fifo).map(name).collect();
                let task = cx_task(cx, IocId(i));
                *out += &format!("pid {task} {} [{}]; ", c.vios, ids.join(" "));
            }
        }
        let [a, s] = self.in_flight;
        *out += &format!("in flight {s} sync {a} async");
    }
}
