//! Multi-queue BFQ of the kernel, Linux 6.1 to 6.18 (`block/bfq-iosched.c`, `bfq-wf2q.c`,
//! `bfq-cgroup.c`; Paolo Valente).
//!
//! Features that v7 does not have:
//! - A queue that becomes busy can preempt the queue in service.
//! - Each node caches its next entity.
//! - A slow queue is charged for its time.
//! - While the device idles, requests of other queues are injected.
//! - The queues of processes that start together are merged permanently.
//! - Bursts of new queues and cgroups are handled.
//!
//! | | 6.18, 6.12 (default) | 6.1 |
//! |---|---|---|
//! | groups make decisions asymmetric | when more than one (the root counts) has requests | when any except the root has requests |
//! | depth limits | of the whole tag map | of each of its words |
//!
//! Not modelled: drives with several actuators (one is assumed) and statistics per cgroup.

mod decide;
mod groups;
mod inject;
mod insert;
mod learn;
mod merge;
mod queues;
mod raise;
mod serve;
#[cfg(test)]
mod tests;
pub mod tunables;

use super::core::{Core, QId, Queue, Variant};
use super::entity::IDLE;
use crate::contract::{BioMerge, CgroupEvent, Insert, IocEvent, MergeKind, Scheduler};
use crate::cx::{Cx, Slot};
use crate::tunable::{StoreError, Tunable};
use crate::wbt;
use queues::payer;
use seekwell_core::{Bio, CgroupId, Era, Instant, IocId, Links, List, Nanos, RqId, Sector, Side};

/// Timer slot of the idle wait.
const IDLE_TIMER: Slot = Slot::new(0, "idle_slice_timer");
/// Weight factor of interactive queues.
const WR_COEFF: u64 = 30;
/// Weight factor of soft real-time queues.
const WR_SOFTRT: u64 = 3000;
/// Only queues with this weight (that of level 4) are raised.
const WR_WEIGHT: u64 = 40;
/// A request more than this many sectors from the end of the last request is a seek.
const SEEK_FAR: u64 = 800;
/// On flash, only requests with fewer sectors than this count as seeks.
const LARGE: u32 = 64;
/// A queue is seeky if more than this many of its last 32 requests were seeks.
const SEEKY_BITS: u32 = 19;
/// The shortest idle time, and the shortest slot time that counts.
const MIN_TT: Nanos = Nanos::from_ms(2);
/// Factor on the sectors of async requests.
const ASYNC_FACTOR: u64 = 3;
/// A burst with this many new queues is large.
const BURST_LARGE: u32 = 8;
/// Weight difference of neighbouring levels: level 7 has weight 10, level 0 has weight 80.
const WEIGHT_STEP: u64 = 10;

/// Fields of a queue that only mq uses.
#[derive(Clone, Debug)]
pub struct MqQueue {
    /// One bit for each of the last 32 requests: 1 for a seek. The newest request is the lowest
    /// bit.
    history: u32,
    think: Think,
    /// Start of the observation of the queue's I/O, ns.
    io_start: u64,
    /// Idle time in this observation, ns, modulo 2^64.
    tot_idle: u64,
    created_j: u64,
    split_j: u64,
    first_io_j: u64,
    non_blocking: bool,
    just_created: bool,
    inject_limit: u32,
    /// Service time of a request without injection, ns; 0 if unknown.
    last_serv: u64,
    decrease_j: u64,
    service_from_wr: u64,
    waker: Option<QId>,
    woken: List,
    tentative: Option<QId>,
    detections: u32,
    detecting_since: u64,
}

impl Default for MqQueue {
    fn default() -> Self {
        MqQueue {
            history: 1,
            think: Think::default(),
            io_start: 0,
            tot_idle: 0,
            created_j: 0,
            split_j: 0,
            first_io_j: 0,
            non_blocking: false,
            just_created: false,
            inject_limit: 0,
            last_serv: 0,
            decrease_j: 0,
            service_from_wr: 0,
            waker: None,
            woken: List::new(),
            tentative: None,
            detections: 0,
            detecting_since: 0,
        }
    }
}

/// Think time: running averages in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Think {
    last_end: u64,
    samples: u64,
    total: u64,
    mean: u64,
}

/// The state that a process gets back when it is split off a shared queue.
#[derive(Clone, Debug, Default)]
struct Saved {
    short_think: bool,
    io_bound: bool,
    in_large_burst: bool,
    in_burst_list: bool,
    weight: u64,
    think: Think,
    io_start: u64,
    tot_idle: u64,
    inject_limit: u32,
    last_serv: u64,
    decrease_j: u64,
    coeff: u64,
    wr_max_j: u64,
    last_wr_j: u64,
    wr_switch_j: u64,
    service_from_wr: u64,
}

/// Fields of a process that only mq uses.
#[derive(Clone, Debug, Default)]
pub struct MqProc {
    /// Number of requests queued or in the driver.
    requests: u32,
    stably_merged: bool,
    stable_with: Option<QId>,
    saved: Saved,
}

impl Variant for MqQueue {
    const MQ: bool = true;
    type Proc = MqProc;
    /// Returns the number of sectors charged. If all busy queues are alike, an async request of a
    /// queue that is not raised costs three times its sectors.
    #[inline]
    fn charge(core: &Core<Self>, cx: &Cx, q: QId, rq: RqId) -> u64 {
        let n = u64::from(cx.rqs[rq].sectors.0);
        if core.queue(q).sync || core.raised(q) || decide::asymmetric(core, cx.queue.era, Some(q)) {
            n
        } else {
            ASYNC_FACTOR * n
        }
    }
    fn weight_of(level: u8) -> u64 {
        WEIGHT_STEP * (8 - u64::from(level.min(7)))
    }
}

/// Values of the tunables in internal units.
#[derive(Clone, Debug)]
struct Settings {
    slice_idle: Nanos,
    timeout_j: u64,
    /// Time until a request expires: `[async, sync]`.
    fifo_expire: [Nanos; 2],
    strict: bool,
}

/// Constant time spans of the kernel's code, in jiffies.
#[derive(Clone, Copy, Debug)]
struct Spans {
    wr_rt: u64,
    min_idle: u64,
    inter_arr_async: u64,
    wr_shortest: u64,
    wr_longest: u64,
    burst: u64,
    split_burst: u64,
    burst_leave: u64,
    stable: u64,
    merge_limit: u64,
    inject: u64,
    inject_flip: u64,
    inject_reset: u64,
}

impl Spans {
    fn new(cx: &Cx) -> Self {
        let j = |ms| cx.ms_to_jiffies(ms);
        Spans {
            wr_rt: j(300),
            min_idle: j(2000),
            inter_arr_async: j(500),
            wr_shortest: j(3000),
            wr_longest: j(25_000),
            burst: j(180),
            split_burst: j(10),
            burst_leave: j(10_000),
            stable: j(600),
            merge_limit: cx.hz() / 10,
            inject: j(10),
            inject_flip: j(100),
            inject_reset: j(1000),
        }
    }
}

/// An observation of dispatches, from which the peak rate is computed.
#[derive(Clone, Copy, Debug, Default)]
struct RateWindow {
    samples: u32,
    sequential: u32,
    sectors: u64,
    first_dispatch: u64,
    last_dispatch: u64,
    span: u64,
    largest: u32,
}

/// Multi-queue BFQ.
#[derive(Debug)]
pub struct Bfq {
    core: Core<MqQueue>,
    set: Settings,
    spans: Spans,
    flash: bool,
    /// True if the device is flash and queues commands, or if it is flash and this is not known
    /// yet. Then queues are not merged because their requests are close.
    flash_queueing: bool,
    /// Requests inserted at the head. They are in no queue.
    heads: List,
    head_links: Links,
    started: Side<bool>,
    slot_start: Instant,
    idling_since: Instant,
    /// End sector of the last request of the current slot; 0 at the start of the slot.
    serving_last_pos: Sector,
    peak_rate: u64,
    wr_prod: u64,
    window: RateWindow,
    last_completion: u64,
    last_completed: Option<QId>,
    woken_links: Links,
    wait_dispatch: bool,
    waited: Option<RqId>,
    injected: bool,
    measured_since: u64,
    depths: [[u32; 2]; 2],
}

impl Bfq {
    /// Creates the scheduler with the kernel's defaults.
    pub fn new(cx: &Cx) -> Self {
        let flash = !cx.queue.rotational;
        // Reference rate (in sectors/us times 65536) and the raising time (in ms) of a device with
        // that rate.
        let (rate, ms) = if flash {
            (33_000, 2500)
        } else {
            (14_000, 7000)
        };
        let mut core = Core::new(cx);
        core.use_pos = !flash;
        let mut b = Bfq {
            core,
            set: Settings {
                slice_idle: Nanos::from_ms(8),
                timeout_j: (cx.hz() / 8).max(1),
                fifo_expire: [Nanos::from_ms(250), Nanos::from_ms(125)],
                strict: false,
            },
            spans: Spans::new(cx),
            flash,
            flash_queueing: flash,
            heads: List::new(),
            head_links: Links::new(),
            started: Side::new(),
            slot_start: Instant(0),
            idling_since: Instant(0),
            serving_last_pos: Sector(0),
            peak_rate: rate * 2 / 3,
            wr_prod: rate * cx.ms_to_jiffies(ms),
            window: RateWindow::default(),
            last_completion: 0,
            last_completed: None,
            woken_links: Links::new(),
            wait_dispatch: false,
            waited: None,
            injected: false,
            measured_since: 0,
            depths: [[0; 2]; 2],
        };
        b.update_depths(cx);
        b
    }
    #[inline]
    fn queue(&self, q: QId) -> &Queue<MqQueue> {
        self.core.queue(q)
    }
    #[inline]
    fn queue_mut(&mut self, q: QId) -> &mut Queue<MqQueue> {
        self.core.queue_mut(q)
    }
    fn seeky(&self, q: QId) -> bool {
        self.queue(q).own.history.count_ones() > SEEKY_BITS
    }
    fn totally_seeky(&self, q: QId) -> bool {
        self.queue(q).own.history == u32::MAX
    }
    fn idle_class(&self, q: QId) -> bool {
        self.core.class(q) == IDLE
    }
    /// Asks the layer to run the device's queue soon, if a request is queued.
    fn schedule(&self, cx: &mut Cx) {
        if self.core.queued > 0 {
            cx.kick();
        }
    }
    fn slice_idle_j(&self, cx: &Cx) -> u64 {
        self.set.slice_idle.0 * cx.hz() / seekwell_core::NSEC_PER_SEC
    }

    /// `bfq_finish_requeue_request`: updates the state after a request completed, was returned, or
    /// was merged into another request.
    fn over(&mut self, cx: &mut Cx, rq: RqId) {
        let Some(q) = self.core.queue_of(rq) else {
            return;
        };
        if std::mem::take(self.started.at(rq.idx())) {
            if self.waited == Some(rq) {
                self.update_inject_limit(cx, q);
            }
            self.complete(cx, q);
        }
        let ioc = cx.rqs[rq].ioc;
        self.core.procs.at(ioc.idx()).own.requests -= 1;
        self.core.unbind(rq);
        self.tidy();
    }
}

impl Scheduler for Bfq {
    fn wants_wbt(&self) -> bool {
        wbt::wanted("bfq")
    }
    fn inserting(&mut self, cx: &mut Cx, rq: RqId) {
        self.init_request(cx, rq);
    }
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        let q = self.init_request(cx, rq);
        *self.started.at(rq.idx()) = false;
        match how {
            Insert::AtHead | Insert::Requeue => self.head_links.push_front(&mut self.heads, rq.0),
            Insert::Sorted | Insert::Reinsert => self.insert_request(cx, q, rq),
        }
        self.tidy();
    }
    fn dispatch(&mut self, cx: &mut Cx, _: u16, _: bool) -> u32 {
        let n = self.dispatch_one(cx);
        self.tidy();
        n
    }
    fn has_work(&self, _: &Cx, _: u16) -> bool {
        self.core.queued > 0 || !self.heads.is_empty()
    }
    fn bio_merge(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> BioMerge {
        let cgroup = payer(cx, bio.cgroup, ioc);
        self.follow_cgroup(cx, ioc, cgroup);
        BioMerge::UseElevator
    }
    fn find_front(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> Option<RqId> {
        let sync = bio.is_sync(cx.queue.era);
        let q = self.core.procs.at(ioc.idx()).queues[usize::from(sync)]?;
        self.core.find_start(q, bio.end())
    }
    fn allow_merge(&mut self, cx: &mut Cx, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
        self.may_merge(cx, rq, bio, ioc)
    }
    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {
        if kind == MergeKind::Front {
            self.core.front_grew(cx, rq);
        }
    }
    fn joined(&mut self, cx: &mut Cx, kept: RqId, gone: RqId) {
        self.core.swallow(cx, kept, gone);
        self.tidy();
    }
    fn former(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.core.former_of(rq)
    }
    fn latter(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.core.latter_of(rq)
    }
    fn limit_depth(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> Option<u32> {
        self.depth_for(cx, bio, ioc)
    }
    fn depth_changed(&mut self, cx: &mut Cx) {
        self.update_depths(cx);
    }
    fn finish(&mut self, cx: &mut Cx, rq: RqId) {
        self.over(cx, rq);
    }
    fn requeued(&mut self, cx: &mut Cx, rq: RqId) {
        self.over(cx, rq);
    }
    fn timer(&mut self, cx: &mut Cx, _: u8) {
        self.idle_over(cx);
        self.tidy();
    }
    fn ioc_event(&mut self, cx: &mut Cx, ioc: IocId, what: IocEvent) {
        match what {
            IocEvent::Attach => {
                let generation = cx.iocs.get(ioc).prio_gen;
                let p = self.core.procs.at(ioc.idx());
                *p = Default::default();
                p.prio_gen = generation;
            }
            // A request that the driver returned after the exit may have created a queue again.
            IocEvent::Exit | IocEvent::Release => self.exit(cx, ioc),
            IocEvent::Prio | IocEvent::Cgroup => {}
        }
    }
    fn cgroup_event(&mut self, cx: &mut Cx, cgroup: CgroupId, what: CgroupEvent) {
        self.group_event(cx, cgroup, what);
        self.tidy();
    }
    fn tunables(&self) -> &'static [Tunable] {
        tunables::TUNABLES
    }
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        self.show_tunable(cx, name)
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        self.store_tunable(cx, name, text)
    }
    fn check(&self, cx: &Cx) {
        self.check_all(cx);
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        super::state_of(&self.core, cx, out);
    }
}

/// Returns true for 6.1, which counts groups and computes depth limits differently.
fn is_6_1(era: Era) -> bool {
    era == Era::Mq6_1
}
