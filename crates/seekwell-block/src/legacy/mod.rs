//! The single-queue block layer of Linux 2.6.18 to 4.20, around an elevator.
//!
//! Modelled:
//! - merging, and two request pools with congestion and batching;
//! - per-queue plugs (2.6), and per-task plugs (2.6.39 and later);
//! - the dispatch list and its boundary, and drivers that look ahead;
//! - flush sequences and barriers;
//! - a switch of the elevator while requests are queued.
//!
//! Not modelled: segments (only the number of sectors limits a request), bounce buffers, and the
//! pools per cgroup of 4.0.
//!
//! Several events at one instant are processed in this order: completions, timers, deferred work,
//! submissions. For each completion, the elevator is notified, the request is freed, and the queue
//! runs.

mod complete;
pub mod flush;
mod mmc;
pub mod pool;
mod run;
mod submit;
mod switch;

use crate::below::Below;
use crate::host::HostDriver;
use crate::inside;
use crate::merge::Account;
use crate::stats::QueueStats;
use crate::tasks::Tasks;
use flush::{Act, Barrier, FlushMachine};
use pool::Pools;
use seekwell_core::{
    Bio, BioDone, BioSink, Control, Device, Done, Era, Instant, IocId, Nanos, RqId, SchedulerWork,
    Sector, Side, Snapshot, Tap, TaskId, TickClock,
};
use seekwell_sched::{Cx, QueueFacts, Scheduler};
use std::collections::VecDeque;

/// Options of the layer, and sizes.
#[derive(Clone, Copy, Debug)]
pub struct LegacyOptions {
    /// 2.6: an empty queue is plugged until 4 requests wait, 3 ms have passed, or a sync bio
    /// arrives.
    pub queue_plug: bool,
    /// 2.6: number of waiting requests that ends a plug (unplug_thresh).
    pub unplug_thresh: u32,
    /// 2.6: time after which a plug ends (unplug_delay).
    pub unplug_delay: Nanos,
    /// Whether the layer keeps a hash of end sectors for the elevator. False only for noop of
    /// 2.6.18.
    pub hash: bool,
}

impl Default for LegacyOptions {
    fn default() -> Self {
        LegacyOptions {
            queue_plug: true,
            unplug_thresh: 4,
            unplug_delay: Nanos::from_ms(3),
            hash: true,
        }
    }
}

#[derive(Debug, Default)]
struct Plug {
    task: TaskId,
    open: bool,
    rqs: Vec<RqId>,
}

/// A single-queue block queue: layer, elevator, host driver and device.
///
/// The type is generic over the elevator and the device. The elevator may be `?Sized`. `Box<dyn
/// Scheduler>` works with all schedulers; a concrete type is used for benchmarks.
pub struct LegacyQueue<S: Scheduler + ?Sized, D: Device> {
    /// Time, requests, contexts, dispatch list.
    pub cx: Cx,
    sched: Box<S>,
    dev: Below<D>,
    host: HostDriver,
    opts: LegacyOptions,
    acct: Account,
    pools: Pools,
    plugs: Vec<Plug>,
    tasks: Tasks,
    in_flight: u32,
    running: bool,
    queue_plug: Option<Instant>,
    flush: FlushMachine,
    acts: VecDeque<Act>,
    sequenced: Side<bool>,
    barrier: Option<Barrier>,
    switching: Option<switch::Switch<S>>,
    done: Vec<Done>,
    ready: Vec<BioDone>,
    wake: [u32; 2],
    mmc: mmc::Mmc,
}

impl<S: Scheduler + ?Sized, D: Device> LegacyQueue<S, D> {
    /// Creates a queue. `make` builds the elevator from the facts of the queue.
    pub fn new(
        facts: QueueFacts,
        clock: TickClock,
        opts: LegacyOptions,
        host: HostDriver,
        dev: D,
        make: impl FnOnce(&Cx) -> Box<S>,
    ) -> Self {
        let era = facts.era;
        let cx = Cx::new(facts, clock);
        let sched = make(&cx);
        LegacyQueue {
            cx,
            sched,
            dev: Below::new(dev),
            host,
            opts,
            acct: Account::default(),
            pools: Pools::new(era),
            plugs: Vec::new(),
            tasks: Tasks::default(),
            in_flight: 0,
            running: false,
            queue_plug: None,
            flush: FlushMachine::default(),
            acts: VecDeque::new(),
            sequenced: Side::new(),
            barrier: None,
            switching: None,
            done: Vec::new(),
            ready: Vec::new(),
            wake: [0; 2],
            mmc: mmc::Mmc::default(),
        }
    }
    /// Returns the elevator.
    pub fn scheduler(&self) -> &S {
        &self.sched
    }
    /// Returns the elevator and its context, for tunables.
    pub fn parts(&mut self) -> (&mut S, &mut Cx) {
        (&mut self.sched, &mut self.cx)
    }
    /// Returns the device.
    pub fn device(&self) -> &D {
        self.dev.device()
    }
    /// Returns the counters.
    pub fn stats(&self) -> &QueueStats {
        &self.acct.stats
    }
    /// Returns the number of requests in the device.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }
    /// Returns the number of bios that sleep because no request is free.
    pub fn asleep(&self) -> usize {
        self.pools.waiting(0) + self.pools.waiting(1)
    }
    /// Checks the invariants of the layer and the elevator. Panics if one is violated.
    pub fn check(&self) {
        self.sched.check(&self.cx);
        let plugged: usize = self.plugs.iter().map(|p| p.rqs.len()).sum();
        let queued = self.cx.nr_sorted as usize + self.cx.out.len() + self.in_flight as usize;
        assert!(
            plugged + queued <= self.cx.rqs.len(),
            "requests are in one place each"
        );
        if let Some(l) = self.cx.merge.last {
            assert!(self.cx.rqs[l].mergeable(), "last_merge is mergeable");
        }
    }
    /// Drains the elevator, as for a switch or a 2.6 barrier. Then runs the queue.
    pub fn drain(&mut self, now: Instant) {
        self.cx.set_now(now);
        self.force_drain();
        self.run();
        self.settle();
    }
    /// Writes a tunable while the queue is in use.
    pub fn store(
        &mut self,
        now: Instant,
        name: &str,
        text: &str,
    ) -> Result<(), seekwell_sched::StoreError> {
        self.cx.set_now(now);
        let r = self.sched.store(&mut self.cx, name, text);
        self.after_callback();
        self.settle();
        r
    }

    fn after_callback(&mut self) {
        if self.cx.take_run() {
            self.run();
        }
    }
    /// Runs the deferred work and the wake-ups of this instant.
    #[inline]
    fn settle(&mut self) {
        let nothing = self.acct.freed.is_empty() && !self.cx.kicked() && self.wake == [0; 2];
        if !nothing {
            self.settle_slow();
        }
    }
    fn settle_slow(&mut self) {
        loop {
            self.free_merged();
            if self.cx.take_kick() {
                self.run();
            } else if !self.wake_sleepers() {
                return;
            }
        }
    }

    #[inline]
    fn ioc_of(&mut self, task: TaskId) -> IocId {
        self.tasks.ioc_of(&mut self.cx, &mut *self.sched, task)
    }
    #[inline]
    fn attach(&mut self, ioc: IocId) {
        self.tasks.attach(&mut self.cx, &mut *self.sched, ioc);
    }
    fn release_if_unused(&mut self, ioc: IocId) {
        let (cx, sched) = (&mut self.cx, &mut *self.sched);
        if self.tasks.release_if_unused(cx, sched, ioc) {
            self.pools.forget(ioc);
        }
    }
    fn exit(&mut self, task: TaskId) {
        if let Some(ioc) = self.tasks.exit(&mut self.cx, &mut *self.sched, task) {
            self.pools.forget(ioc);
        }
    }
}

impl<S: Scheduler + ?Sized, D: Device> BioSink for LegacyQueue<S, D> {
    fn submit(&mut self, now: Instant, bio: Bio) {
        self.cx.set_now(now);
        self.submit_bio(bio);
        self.settle();
    }

    fn next_event(&self) -> Option<Instant> {
        if !self.ready.is_empty() || !self.done.is_empty() || self.cx.kicked() {
            return Some(self.cx.now());
        }
        let mut first = self.dev.next_event();
        if let Some((t, _)) = self.cx.next_timer()
            && first.is_none_or(|f| t < f)
        {
            first = Some(t);
        }
        if self.seldom() {
            return self.seldom_event(first);
        }
        first
    }

    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        while let Some(t) = self.next_event().filter(|t| *t <= to) {
            let t = t.max(self.cx.now());
            self.cx.set_now(t);
            self.take_ready(out);
            self.completions(t, out);
            while let Some((at, slot)) = self.cx.next_timer()
                && at <= t
            {
                self.cx.fired(slot);
                self.sched.timer(&mut self.cx, slot);
                self.after_callback();
            }
            if self.seldom() {
                self.seldom_due(t);
            }
            self.settle();
            self.take_ready(out);
        }
    }

    fn control(&mut self, now: Instant, what: Control) {
        self.cx.set_now(now);
        match what {
            Control::Plug(t) => self.open_plug(t),
            Control::Unplug(t) => self.close_plug(t, true),
            Control::Sleep(t) => {
                self.close_plug(t, false);
                self.unplug_queue();
            }
            Control::Exit(t) => self.exit(t),
            other => self.tasks.control(&mut self.cx, &mut *self.sched, other),
        }
        self.after_callback();
        self.settle();
    }

    fn capacity(&self) -> Sector {
        self.dev.facts().capacity
    }
    fn congested(&self, write: bool) -> bool {
        let sync = !write;
        self.pools.congested(self.pools.index(write, sync))
    }
    fn waits(&self, task: TaskId) -> bool {
        self.pools.has_waiting(task)
    }
    fn count_work(&mut self, counts: bool) {
        self.cx.count_work(counts);
    }
    fn take_work(&mut self) -> Option<SchedulerWork> {
        self.cx.take_work()
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        inside::listen(tap, &mut self.cx, &mut self.dev);
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        let asleep = self.pools.asleep(now);
        inside::snapshot(now, &self.cx, &*self.sched, &self.dev, asleep, out);
    }
}

impl<S: Scheduler + ?Sized, D: Device> LegacyQueue<S, D> {
    /// Returns whether there is rare work: a plugged queue, a card driver with a prepared request,
    /// a cache flush that is due, or a switch. With this single check per step, rare work costs
    /// little.
    #[inline]
    fn seldom(&self) -> bool {
        self.queue_plug.is_some()
            || self.mmc.holds()
            || self.flush.deadline().is_some()
            || self.switching.is_some()
    }
    /// Returns `first`, or the time of the rare work if that is earlier.
    #[cold]
    fn seldom_event(&self, first: Option<Instant>) -> Option<Instant> {
        let prepared = self.mmc.next_event(self.cx.now(), self.in_flight);
        let poll = self.switching.as_ref().map(|s| s.poll_at);
        let all = [
            first,
            self.queue_plug,
            prepared,
            self.flush.deadline(),
            poll,
        ];
        all.into_iter().flatten().min()
    }
    /// Does the rare work that is due.
    #[cold]
    fn seldom_due(&mut self, t: Instant) {
        if self.queue_plug.is_some_and(|p| p <= t) {
            self.unplug_queue();
        }
        if self.mmc.prepared(t) {
            self.run();
        }
        if self.flush.deadline().is_some_and(|d| d <= t) {
            self.kick_flush();
            self.run();
        }
        if self.switching.is_some() {
            self.poll_switch();
        }
    }
    #[inline]
    fn take_ready(&mut self, out: &mut Vec<BioDone>) {
        if !self.ready.is_empty() {
            out.append(&mut self.ready);
        }
    }
    fn is_2_6(&self) -> bool {
        self.cx.queue.era <= Era::K2_6_24
    }
}
