//! Single-queue BFQ of Android kernels around 2014: v7r8 (with early queue merge) and v7r5.
//!
//! v7 differs from multi-queue BFQ ([`super::mq`]) in these points. All times are in jiffies, and
//! no queue preempts another. Async requests wait while a sync request is in flight. A slow queue
//! is charged a whole budget. Device idling depends on the think time of each process and on a mean
//! seek distance.
//!
//! Two defects of the original are reproduced. The test for slow queues is reversed, so that fast
//! queues count as slow. A write of 0 to `low_latency` visits every busy queue that waits, and
//! decrements the count of raised queues each time, even if the queue was not raised.

mod insert;
mod merge;
mod serve;
#[cfg(test)]
mod tests;
pub mod tunables;

use super::core::{Core, NEVER_J, QId, Queue, Variant, jiffies_min_1};
use super::entity::{ClassIdx, IDLE};
use crate::bfq::rules;
use crate::contract::{CgroupEvent, Insert, IocEvent, MayQueue, MergeKind, Scheduler};
use crate::cx::{Cx, Slot};
use crate::tunable::{StoreError, Tunable};
use seekwell_core::{Bio, Instant, IoPrio, IocId, RqId};

/// A process is not raised after its queue was merged this many times.
const COOP_LIMIT: u32 = 2;
/// The number of merges is reset after this many failed merge attempts.
const COOP_FORGIVE: u32 = 7000;
/// A burst with this many new queues is large.
const BURST_LARGE: u32 = 11;
/// A queue whose mean seek distance is above this many sectors is seeky.
const SEEK_FAR: u64 = 8192;
/// A queue is I/O-bound again after this many activations in time.
const IN_TIME_ENOUGH: u32 = 120;
/// Timer slot of the idle wait.
const IDLE_TIMER: Slot = Slot::new(0, "idle_slice_timer");
/// Number of slots after which the peak rate is used.
const PEAK_SAMPLES: u32 = 32;

/// Fields of a queue that only v7 uses.
#[derive(Clone, Debug, Default)]
pub struct V7Queue {
    budget_new: bool,
    in_time: u32,
    constantly_seeky: bool,
    just_split: bool,
    may_must: bool,
    seek_samples: u64,
    seek_total: u64,
    seek_mean: u64,
}

/// Fields of a process that only v7 uses.
#[derive(Clone, Debug, Default)]
pub struct V7Proc {
    last_end_j: u64,
    think_samples: u64,
    think_total: u64,
    think_mean: u64,
    saved_idle_window: bool,
    saved_io_bound: bool,
    saved_large_burst: bool,
    saved_burst_list: bool,
    wr_left_j: u64,
    cooperations: u32,
    failed: u32,
}

impl Variant for V7Queue {
    const MQ: bool = false;
    type Proc = V7Proc;
    /// `bfq_serv_to_charge`: returns the sectors of the request. An async request of a queue that
    /// is not raised costs eleven times its sectors.
    #[inline]
    fn charge(core: &Core<Self>, cx: &Cx, q: QId, rq: RqId) -> u64 {
        let n = u64::from(cx.rqs[rq].sectors.0);
        if core.queue(q).sync || core.raised(q) {
            n
        } else {
            11 * n
        }
    }
    fn constantly_seeky(&self) -> bool {
        self.constantly_seeky
    }
    fn weight_of(level: u8) -> u64 {
        8 - u64::from(level.min(7))
    }
}

/// The process whose request was dispatched first in the current slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlotUser {
    Nobody,
    Process(IocId),
    Gone,
}

/// Reference rates and raising times of a kind of device, each for the fast and the slow class.
/// Rates are in sectors per microsecond times 65536, times in ms.
#[derive(Clone, Copy, Debug)]
struct DeviceClass {
    rate: [u64; 2],
    time_ms: [u64; 2],
}

const FLASH: DeviceClass = DeviceClass {
    rate: [34_791, 10_752],
    time_ms: [2000, 1000],
};
const ROTATIONAL: DeviceClass = DeviceClass {
    rate: [17_415, 1536],
    time_ms: [5500, 2600],
};

/// Values of the tunables in internal units.
#[derive(Clone, Debug)]
struct Settings {
    slice_idle_j: u64,
    /// Time of a slot: `[async, sync]`.
    timeout_j: [u64; 2],
    /// Time until a request expires: `[async, sync]`.
    fifo_expire_j: [u64; 2],
    max_budget_async_rq: u32,
    quantum: u32,
    wr_coeff: u64,
    wr_max_time_j: u64,
    wr_rt_max_time_j: u64,
    wr_min_idle_j: u64,
    wr_min_inter_arr_async_j: u64,
    softrt_rate: u64,
}

/// Single-queue BFQ.
#[derive(Debug)]
pub struct BfqSq {
    core: Core<V7Queue>,
    set: Settings,
    r5: bool,
    flash: bool,
    sync_flight: u32,
    slot_user: SlotUser,
    slot_start: Instant,
    idling_since: Instant,
    peak_rate: u64,
    peak_samples: u32,
    device: DeviceClass,
    slow_device: bool,
    wr_prod: u64,
    burst_interval_j: u64,
}

impl BfqSq {
    /// Creates the scheduler with the kernel's defaults. `r5`: v7r5 instead of v7r8.
    pub fn new(cx: &Cx, r5: bool) -> Self {
        let (hz, clock) = (cx.hz(), cx.clock());
        let flash = !cx.queue.rotational;
        let device = if flash { FLASH } else { ROTATIONAL };
        let mut b = BfqSq {
            core: Core::new(cx),
            set: Settings {
                slice_idle_j: (hz / 125).max(1),
                timeout_j: [(hz / 25).max(1), (hz / 8).max(1)],
                fifo_expire_j: [hz / 4, hz / 8],
                max_budget_async_rq: 4,
                quantum: 4,
                wr_coeff: 20,
                wr_max_time_j: 0,
                wr_rt_max_time_j: clock.from_ms(300),
                wr_min_idle_j: clock.from_ms(2000),
                wr_min_inter_arr_async_j: clock.from_ms(500),
                softrt_rate: super::core::SOFTRT_RATE,
            },
            r5,
            flash,
            sync_flight: 0,
            slot_user: SlotUser::Nobody,
            slot_start: Instant(0),
            idling_since: Instant(0),
            peak_rate: device.rate[0],
            peak_samples: 0,
            device,
            slow_device: false,
            wr_prod: 0,
            burst_interval_j: jiffies_min_1(clock, 500),
        };
        b.set_speed(cx, false);
        b
    }
    fn set_speed(&mut self, cx: &Cx, slow: bool) {
        self.slow_device = slow;
        let i = usize::from(slow);
        self.wr_prod = self.device.rate[i] * cx.ms_to_jiffies(self.device.time_ms[i]);
    }
    fn queue(&self, q: QId) -> &Queue<V7Queue> {
        self.core.queue(q)
    }
    fn queue_mut(&mut self, q: QId) -> &mut Queue<V7Queue> {
        self.core.queue_mut(q)
    }
    fn seeky(&self, q: QId) -> bool {
        self.queue(q).own.seek_mean > SEEK_FAR
    }
    /// `bfq_wr_duration`: returns how long an interactive queue is raised, in jiffies.
    fn wr_duration_j(&self) -> u64 {
        if self.set.wr_max_time_j > 0 {
            return self.set.wr_max_time_j;
        }
        self.wr_prod / self.peak_rate.max(1)
    }
    fn cooperations(&self, q: QId) -> u32 {
        let owner = self.queue(q).owner;
        owner.map_or(0, |o| self.core.procs[o].own.cooperations)
    }
    /// Returns true if the queue is part of a large burst or was merged too often. Such a queue is
    /// neither interactive nor soft real-time.
    fn excluded(&self, q: QId) -> bool {
        self.queue(q).in_large_burst || self.cooperations(q) >= COOP_LIMIT
    }
    /// `bfq_bfqq_end_wr`: ends the raising of a queue.
    fn end_wr(&mut self, q: QId) {
        if self.queue(q).busy {
            self.core.wr_busy -= 1;
        }
        self.core.set_coeff(q, 1);
        self.queue_mut(q).wr_max_j = 0;
    }

    /// Returns the queue of a process for a request: its present queue, a new queue, or after a
    /// split a queue with the saved state.
    fn queue_for(&mut self, cx: &mut Cx, ioc: IocId, sync: bool, prio: IoPrio) -> QId {
        self.follow_prio(cx, ioc);
        let mut split = false;
        let have = self.core.procs.at(ioc.idx()).queues[usize::from(sync)];
        let q = match have {
            Some(q) if self.queue(q).shared && self.queue(q).split => {
                split = true;
                match self.split(cx, ioc, q) {
                    Some(q) => q,
                    None => self.new_queue(cx, ioc, sync, prio, true),
                }
            }
            Some(q) => q,
            None => self.new_queue(cx, ioc, sync, prio, false),
        };
        // A group keeps its async queues, so an async queue never has a single owner.
        if self.queue(q).procs == 1 && !self.queue(q).pinned {
            self.queue_mut(q).owner = Some(ioc);
            if split {
                self.queue_mut(q).own.just_split = true;
                self.resume(cx, ioc, q);
            }
        }
        q
    }
    /// `bfq_get_queue`: returns the shared async queue for a process, or a new sync queue.
    fn new_queue(
        &mut self,
        cx: &mut Cx,
        ioc: IocId,
        sync: bool,
        prio: IoPrio,
        after_split: bool,
    ) -> QId {
        let q = if sync {
            self.make_queue(prio, true)
        } else {
            self.async_queue(prio)
        };
        self.queue_mut(q).procs += 1;
        self.core.adopt(ioc, q);
        if after_split && sync {
            let p = &self.core.procs[ioc].own;
            let (listed, large) = (p.saved_burst_list, p.saved_large_burst);
            if (listed && self.core.large_burst) || large {
                self.queue_mut(q).in_large_burst = true;
            } else if listed {
                self.core.burst_add(q);
            }
        }
        self.queue_mut(q).pid = sync.then(|| cx.iocs.get(ioc).task);
        cx.why(rules::NEW_QUEUE, || {
            self.core
                .about(q)
                .says(format!("a new queue, {q}, for {{who}}"))
        });
        q
    }
    /// `bfq_init_bfqq`: creates a queue with the initial values.
    fn make_queue(&mut self, prio: IoPrio, sync: bool) -> QId {
        let q = self.core.create(0, prio, sync, V7Queue::default());
        let x = self.core.queue_mut(q);
        x.short_think = sync;
        x.soft_rt_next_start_j = NEVER_J;
        q
    }
    fn async_queue(&mut self, prio: IoPrio) -> QId {
        self.core.async_queue(0, prio, |core| {
            let q = core.create(0, prio, false, V7Queue::default());
            core.queue_mut(q).soft_rt_next_start_j = NEVER_J;
            q
        })
    }
    /// `bfq_check_ioprio_change`: applies a changed priority. The process gets another async queue
    /// at once. Its sync queue changes at the next activation.
    fn follow_prio(&mut self, cx: &Cx, ioc: IocId) {
        let c = cx.iocs.get(ioc);
        let p = self.core.procs.at(ioc.idx());
        if p.prio_gen == c.prio_gen {
            return;
        }
        p.prio_gen = c.prio_gen;
        let [old, own] = p.queues;
        let prio = c.effective(cx.queue.era);
        if let Some(old) = old {
            let new = self.async_queue(prio);
            self.queue_mut(new).procs += 1;
            self.core.adopt(ioc, new);
            self.queue_mut(old).procs -= 1;
        }
        if let Some(own) = own {
            self.core.set_prio(own, prio);
        }
    }

    /// `bfq_exit_bfqq`: detaches the queues of an exiting process. If one of them is in service, it
    /// leaves service at once.
    fn exit(&mut self, cx: &mut Cx, ioc: IocId) {
        if self.slot_user == SlotUser::Process(ioc) {
            self.slot_user = SlotUser::Gone;
        }
        for i in 0..2 {
            let Some(q) = self.core.procs.at(ioc.idx()).queues[i].take() else {
                continue;
            };
            if self.core.serving == Some(q) {
                cx.why(rules::PROCESS_EXITED, || {
                    self.core.about(q).says("{who} exits: out of service")
                });
                self.leave(cx, q);
                self.schedule(cx);
            }
            self.core.abandon(q);
            let x = self.queue_mut(q);
            x.procs -= 1;
            if x.owner == Some(ioc) {
                x.owner = None;
            }
            self.core.free_if_unused(q);
        }
    }
    /// Asks the layer to run the device's queue soon, if a request is queued.
    fn schedule(&mut self, cx: &mut Cx) {
        if self.core.queued > 0 {
            cx.kick();
        }
    }
    fn class(&self, q: QId) -> ClassIdx {
        self.core.class(q)
    }
    fn idle_class(&self, q: QId) -> bool {
        self.class(q) == IDLE
    }
}

impl Scheduler for BfqSq {
    fn prepare(&mut self, cx: &mut Cx, rq: RqId) {
        let r = &cx.rqs[rq];
        let (ioc, sync, prio) = (r.ioc, r.sync, r.ioprio);
        let q = self.queue_for(cx, ioc, sync, prio);
        self.core.bind(rq, q);
    }
    fn insert(&mut self, cx: &mut Cx, rq: RqId, _: Insert) {
        self.insert_request(cx, rq);
        self.core.reap();
    }
    fn dispatch(&mut self, cx: &mut Cx, _: u16, force: bool) -> u32 {
        let n = if force {
            self.drain(cx)
        } else {
            self.dispatch_one(cx)
        };
        self.core.reap();
        n
    }
    fn has_work(&self, _: &Cx, _: u16) -> bool {
        self.core.queued > 0
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
    }
    fn former(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.core.former_of(rq)
    }
    fn latter(&mut self, _: &Cx, rq: RqId) -> Option<RqId> {
        self.core.latter_of(rq)
    }
    fn may_queue(&mut self, cx: &mut Cx, bio: &Bio, ioc: IocId) -> MayQueue {
        let sync = bio.is_sync(cx.queue.era);
        let Some(q) = self.core.procs.at(ioc.idx()).queues[usize::from(sync)] else {
            return MayQueue::May;
        };
        let x = self.queue_mut(q);
        if x.waiting && std::mem::take(&mut x.own.may_must) {
            return MayQueue::Must;
        }
        MayQueue::May
    }
    fn activate(&mut self, cx: &mut Cx, rq: RqId) {
        self.core.in_driver += 1;
        self.core.last_position = cx.rqs[rq].end();
    }
    fn deactivate(&mut self, _: &mut Cx, _: RqId) {
        self.core.in_driver -= 1;
    }
    fn completed(&mut self, cx: &mut Cx, rq: RqId) {
        self.complete(cx, rq);
    }
    fn finish(&mut self, _: &mut Cx, rq: RqId) {
        self.core.unbind(rq);
        self.core.reap();
        self.core.freed.clear();
    }
    fn timer(&mut self, cx: &mut Cx, _: u8) {
        self.idle_over(cx);
        self.core.reap();
    }
    fn ioc_event(&mut self, cx: &mut Cx, ioc: IocId, what: IocEvent) {
        match what {
            IocEvent::Attach => {
                let gen_seen = cx.iocs.get(ioc).prio_gen;
                let p = self.core.procs.at(ioc.idx());
                *p = Default::default();
                p.prio_gen = gen_seen;
                p.own.last_end_j = cx.jiffies();
                // A new process is raised after a split, even if its queue was merged before the
                // queue could be raised.
                p.own.wr_left_j = 1;
            }
            // A request that the driver returned after the exit may have created a queue again.
            IocEvent::Exit | IocEvent::Release => {
                self.exit(cx, ioc);
                self.core.reap();
            }
            IocEvent::Prio | IocEvent::Cgroup => {}
        }
    }
    fn cgroup_event(&mut self, _: &mut Cx, _: seekwell_core::CgroupId, _: CgroupEvent) {}
    fn tunables(&self) -> &'static [Tunable] {
        if self.r5 {
            tunables::V7R5
        } else {
            tunables::V7R8
        }
    }
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        self.show_tunable(cx, name)
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        self.store_tunable(cx, name, text)
    }
    fn check(&self, cx: &Cx) {
        self.core.check(cx);
        let flying: u32 = (self.core.queues.iter().filter(|q| q.live))
            .map(|q| q.dispatched)
            .sum();
        let moved = cx.out.iter().filter(|r| self.core.queue_of(*r).is_some());
        let waiting = moved
            .filter(|r| cx.rqs[*r].state < seekwell_core::State::Started)
            .count();
        assert_eq!(flying, self.core.in_driver + waiting as u32, "P7");
        assert!(
            !cx.armed(IDLE_TIMER) || self.core.serving.is_some(),
            "P9: idling for nobody"
        );
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        super::state_of(&self.core, cx, out);
    }
}
