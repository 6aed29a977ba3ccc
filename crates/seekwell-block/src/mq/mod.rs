//! The multi-queue block layer of Linux (blk-mq, 6.1 to 6.18), with a scheduler or `none`.
//!
//! Modelled:
//! - the cgroup controllers `io.max`, `io.cost` and `io.latency`, and writeback throttling;
//! - software and hardware contexts, driver tags, and scheduler tags with shallow limits;
//! - submitters that sleep for a tag, plugs, and merging of bios and requests;
//! - the dispatch loop, with one parked request (drivers limited by tags) or a budget (SCSI), the
//!   dispatch list, restarts, reruns after 3 ms, the `dispatch_busy` average, and requeues;
//! - flush and FUA sequences, direct issue without a scheduler, and a switch of the scheduler that
//!   freezes the queue.
//!
//! Not modelled or simplified:
//! - tags are counted, and are not bits of a map (see [`tags`]); devices never share driver tags;
//! - there is one dispatcher, so two CPUs never run a hardware queue at the same time, and at most
//!   one request is parked (a running kernel sometimes parks two);
//! - there is one type of hardware queue (no separate read or poll queues), no batch interface of
//!   drivers, no segments (only the number of sectors limits a request), and no zones;
//! - a run by a worker happens at the same instant, after all submissions of this instant.
//!
//! Several events at one instant are processed in this order: completions, timers, sleeping tasks
//! that get a tag, submissions, and requested runs. If something else happened at an instant,
//! [`MqQueue`] therefore postpones runs to the next `advance` to the same instant.

mod complete;
mod control;
mod cost;
mod dispatch;
mod flush;
mod groups;
pub mod iocost;
pub mod iolatency;
pub mod iomax;
mod jiffies;
mod latency;
mod limits;
mod plug;
mod sleepers;
mod submit;
mod switch;
pub mod tags;
mod throttle;
pub mod wbt;

use crate::below::Below;
use crate::host::MqDriver;
use crate::legacy::flush::{Act, FlushMachine};
use crate::merge::Account;
use crate::stats::QueueStats;
use crate::tasks::Tasks;
use cost::Cost;
use latency::{Gate, Latency};
pub use limits::KTHROTLD;
use limits::Limits;
use plug::Plug;
use seekwell_core::{
    BioDone, BioId, Device, Done, Instant, Links, List, Nanos, RqId, Side, TickClock,
};
use seekwell_sched::{Cx, Insert, QueueFacts, Scheduler, StoreError, WBT_LAT_USEC};
use sleepers::Sleepers;
use std::collections::{BTreeMap, VecDeque};
use tags::TagPool;
use throttle::Throttle;

/// Id of the layer's own bios (cache flushes). Their completions are not reported.
const OWN_BIO: BioId = BioId(u64::MAX);
/// Time after which a hardware queue runs again, if it got no request, or if it lacks resources
/// while no request is in flight.
const RERUN: Nanos = Nanos::from_ms(3);
/// Number of scheduler tags per driver tag, and the largest driver depth for which this ratio
/// holds.
const SCHED_TAGS: (u32, u32) = (2, 128);
/// Smallest queue/nr_requests, and the largest one with a scheduler.
const NR_REQUESTS: (u32, u32) = (4, 2048);

/// The tags that a request holds.
#[derive(Clone, Copy, Debug, Default)]
struct RqTags {
    /// Whether the request holds a scheduler tag.
    sched: bool,
    /// Whether the request holds a driver tag.
    driver: bool,
    /// The limit under which the scheduler tag was taken.
    limit: Option<u32>,
    /// Whether the request is part of a flush sequence.
    sequenced: bool,
    /// The slot of the writeback throttle that the request holds.
    slot: Option<wbt::Class>,
}

/// A hardware context.
#[derive(Debug, Default)]
struct Hctx {
    /// Requests that have left the scheduler or bypassed it, and that the driver has not accepted.
    dispatch: List,
    /// `dispatch_busy`, a running average of the rounds in which a request was refused.
    busy: u32,
    /// Whether the queue must run again at the next completion.
    restart: bool,
    /// Whether a run by a worker is due at this instant.
    pending: bool,
    /// Time of a later run by a worker.
    rerun_at: Option<Instant>,
    in_flight: u32,
    driver_tags: TagPool,
    sched_tags: TagPool,
    flush: FlushMachine,
}

impl Hctx {
    /// Returns whether there is a tag for one more request. Without a scheduler, this is a driver
    /// tag.
    fn has_tag(&self, bypass: bool, limit: Option<u32>) -> bool {
        match bypass {
            true => self.driver_tags.available(None),
            false => self.sched_tags.available(limit),
        }
    }
}

/// The next work of the layer, without its device, its scheduler and the completed bios. The struct
/// has two words, so that it is passed in registers after each change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waits {
    /// Whether runs are due at this instant.
    due: bool,
    /// Time of the layer's next work. [`Instant::FAR`]: none.
    until: Instant,
}

impl Waits {
    const NOTHING: Waits = Waits {
        due: false,
        until: Instant::FAR,
    };
    #[inline]
    fn until(self) -> Option<Instant> {
        Some(self.until).filter(|t| *t != Instant::FAR)
    }
}

/// A multi-queue block queue: layer, scheduler (or [`seekwell_sched::none::NoScheduler`]), host
/// driver and device.
///
/// The type is generic over the scheduler and the device. The scheduler may be `?Sized`. `Box<dyn
/// Scheduler>` works with all schedulers; a concrete type is used for benchmarks.
pub struct MqQueue<S: Scheduler + ?Sized, D: Device> {
    /// Time, requests and contexts. Its dispatch list only hands requests from the scheduler to the
    /// layer.
    pub cx: Cx,
    sched: Box<S>,
    /// A copy of the scheduler's [`Scheduler::bypass`]. Every request needs it several times.
    bypass: bool,
    dev: Below<D>,
    driver: MqDriver,
    hash: bool,
    acct: Account,
    hctx: Vec<Hctx>,
    /// Index of the hardware context of the present CPU: that of the last submission, completion or
    /// run.
    current: usize,
    /// List links of the dispatch lists of all hardware contexts.
    links: Links,
    tags: Side<RqTags>,
    /// Number of requests that hold the device's budget.
    budget_used: u32,
    plugs: Vec<Plug>,
    tasks: Tasks,
    throttle: Throttle,
    limits: Limits,
    latency: Latency,
    cost: Cost,
    /// Whether a file of `io.max`, `io.latency` or `io.cost` was written.
    controlled: bool,
    /// Tasks that sleep for a slot, a tag or the end of a freeze, with their pending actions.
    sleepers: Sleepers,
    /// Requests for the requeue worker: requests that the driver returned, and data of flush
    /// sequences.
    requeued: VecDeque<(RqId, Insert)>,
    in_flight: u32,
    flushing: bool,
    /// Whether the drive deferred a command, and nothing has completed since then (SCSI).
    deferred: bool,
    /// For each split bio, the number of its pieces in progress, and whether a piece failed.
    splits: BTreeMap<BioId, (u32, bool)>,
    acts: VecDeque<Act>,
    switching: Option<switch::Switch<S>>,
    done: Vec<Done>,
    ready: Vec<BioDone>,
    batch: Vec<RqId>,
    kept: Waits,
}

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// Creates a queue. `make` builds the scheduler from the facts of the queue. The depth and
    /// nr_requests follow from the depth of the driver. `hash`: the layer searches the hash of end
    /// sectors for merges with this scheduler.
    pub fn new(
        mut facts: QueueFacts,
        clock: TickClock,
        driver: MqDriver,
        hash: bool,
        dev: D,
        make: impl FnOnce(&Cx) -> Box<S>,
    ) -> Self {
        let depth = driver.depth().max(1);
        facts.depth = depth;
        facts.nr_requests = SCHED_TAGS.0 * depth.min(SCHED_TAGS.1);
        facts.hctxs = facts.hctxs.max(1);
        facts.cpus = facts.cpus.max(facts.hctxs);
        let hctxs = facts.hctxs;
        let cx = Cx::new(facts, clock);
        let sched = make(&cx);
        let hctx = |_| Hctx {
            driver_tags: TagPool::new(depth),
            ..Hctx::default()
        };
        let mut q = MqQueue {
            cx,
            bypass: sched.bypass(),
            sched,
            dev: Below::new(dev),
            driver,
            hash,
            acct: Account::default(),
            hctx: (0..hctxs).map(hctx).collect(),
            current: 0,
            links: Links::new(),
            tags: Side::new(),
            budget_used: 0,
            plugs: Vec::new(),
            tasks: Tasks::default(),
            throttle: Throttle::default(),
            limits: Limits::default(),
            latency: Latency::default(),
            cost: Cost::default(),
            controlled: false,
            sleepers: Sleepers::default(),
            requeued: VecDeque::new(),
            in_flight: 0,
            flushing: false,
            deferred: false,
            splits: BTreeMap::new(),
            acts: VecDeque::new(),
            switching: None,
            done: Vec::new(),
            ready: Vec::new(),
            batch: Vec::new(),
            kept: Waits::NOTHING,
        };
        q.size_tags();
        q
    }

    /// Sets the number of scheduler tags and nr_requests to the defaults for the scheduler and the
    /// driver.
    fn size_tags(&mut self) {
        let depth = self.driver.depth().max(1);
        let n = if self.bypass {
            depth
        } else {
            SCHED_TAGS.0 * depth.min(SCHED_TAGS.1)
        };
        self.resize(n);
    }
    fn resize(&mut self, n: u32) {
        let bypass = self.bypass;
        for h in &mut self.hctx {
            h.sched_tags.resize(if bypass { 0 } else { n });
            h.driver_tags.resize(if bypass {
                n
            } else {
                self.driver.depth().max(1)
            });
        }
        if std::mem::replace(&mut self.cx.queue.nr_requests, n) != n {
            self.sched.depth_changed(&mut self.cx);
            self.latency_depth();
        }
    }

    /// Writes queue/nr_requests. With a scheduler, the range is 4 to 2048, and smaller values count
    /// as 4. Without a scheduler, the maximum is the depth of the driver.
    pub fn set_nr_requests(&mut self, now: Instant, n: u32) -> Result<(), StoreError> {
        let (min, mut max) = NR_REQUESTS;
        let depth = self.driver.depth().max(1);
        if self.bypass {
            max = depth;
        }
        if n > max {
            return Err(StoreError::Range {
                name: "nr_requests".to_owned(),
                value: n.to_string(),
                min: i64::from(min.min(max)),
                max: i64::from(max),
                unit: "requests",
            });
        }
        self.cx.set_now(now);
        self.resize(n.max(min).min(max));
        self.after_callback();
        self.wake_sleepers();
        self.keep();
        Ok(())
    }

    /// Returns the scheduler.
    pub fn scheduler(&self) -> &S {
        &self.sched
    }
    /// Returns the scheduler and its context, for tunables.
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
    /// Returns the number of sleeping tasks.
    pub fn asleep(&self) -> usize {
        self.sleepers.len()
    }
    /// Returns whether this task sleeps.
    pub fn is_asleep(&self, task: seekwell_core::TaskId) -> bool {
        self.sleepers.has(task)
    }
    /// Returns the number of list entries that were examined so far to find sleeping tasks. Tests
    /// check that this number per request does not grow with the number of sleeping tasks.
    pub fn sleepers_looked_at(&self) -> u64 {
        self.sleepers.looked()
    }
    /// Returns the number of scheduler tags and of driver tags in use, over all hardware contexts.
    pub fn tags_used(&self) -> (u32, u32) {
        let sum = |f: fn(&Hctx) -> u32| self.hctx.iter().map(f).sum();
        (sum(|h| h.sched_tags.used()), sum(|h| h.driver_tags.used()))
    }
    /// Returns the number of requests on the dispatch list of a hardware context.
    pub fn parked(&self, hctx: u16) -> usize {
        self.hctx[hctx as usize].dispatch.len()
    }

    /// Writes a tunable while the queue is in use.
    pub fn store(&mut self, now: Instant, name: &str, text: &str) -> Result<(), StoreError> {
        self.cx.set_now(now);
        let r = match name == WBT_LAT_USEC.name {
            true => self.store_wbt(text),
            false => self.sched.store(&mut self.cx, name, text),
        };
        self.after_callback();
        // The write may have removed a limit.
        self.wake_sleepers();
        self.keep();
        r
    }

    /// Checks the invariants of the layer and the scheduler. Panics if one is violated.
    pub fn check(&self) {
        self.sched.check(&self.cx);
        let bypass = self.sched.bypass();
        let mut listed = self.cx.nr_sorted as usize + self.requeued.len();
        for h in &self.hctx {
            listed += h.dispatch.len();
            let nr = self.cx.queue.nr_requests;
            assert!(
                h.sched_tags.used() <= NR_REQUESTS.1.max(nr),
                "I2: scheduler tags"
            );
            assert!(
                h.driver_tags.used() <= self.driver.depth().max(1),
                "I2: driver tags"
            );
            assert!(
                !bypass || h.sched_tags.used() == 0,
                "none has no scheduler tags"
            );
        }
        listed += self.in_flight as usize;
        listed += self.plugs.iter().map(|p| p.rqs.len()).sum::<usize>();
        assert!(listed <= self.cx.rqs.len(), "a request is in one place");
        assert!(self.cx.out.is_empty(), "the transit list is empty");
        for (_, r) in self.cx.rqs.iter() {
            let q = &self.cx.queue;
            assert!(
                r.bios <= 1 || (r.sectors <= q.max_sectors && r.segments <= q.max_segments),
                "I5: a merged request within limits"
            );
        }
        if self.driver.has_budget() {
            assert_eq!(
                self.budget_used, self.in_flight,
                "budget is what is in flight"
            );
        }
        if let Some(l) = self.cx.merge.last {
            assert!(self.cx.rqs[l].mergeable(), "last_merge is mergeable");
        }
        if let Some(w) = self.wbt() {
            let mut held = [0; 3];
            let of = self.cx.rqs.iter().filter_map(|(rq, _)| self.tags[rq].slot);
            of.chain(self.sleepers.slots())
                .for_each(|c| held[c as usize] += 1);
            assert_eq!(
                w.used(),
                held,
                "slots in use are those of requests and sleepers"
            );
        }
        if self.cx.rqs.is_empty() {
            assert_eq!(self.tags_used(), (0, 0), "I6: tags at rest");
            let work = (0..self.hctx.len()).any(|h| self.sched.has_work(&self.cx, h as u16));
            assert!(!work, "I6: no work at rest");
            // A cgroup gets budget as time passes, even if the device is idle.
            let paying = self.sleepers.only_before(Gate::Cost) && self.cost.deadline().is_some();
            assert!(
                self.switching.is_some() || self.sleepers.is_empty() || paying,
                "I6: nobody sleeps"
            );
        }
    }

    /// Returns whether a run of all hardware queues includes this one.
    fn meant_by_all(&self, h: usize) -> bool {
        h == self.current || self.sched.per_hctx() || !self.hctx[h].dispatch.is_empty()
    }
    /// Makes a worker run all hardware queues.
    fn kick_all(&mut self) {
        for h in 0..self.hctx.len() {
            self.hctx[h].pending |= self.meant_by_all(h);
        }
    }

    /// Does what a callback of the scheduler requested: an immediate run, or runs by a worker.
    #[inline]
    fn after_callback(&mut self) {
        if self.cx.asked() {
            self.do_as_asked();
        }
    }
    fn do_as_asked(&mut self) {
        if self.cx.take_kick() {
            self.kick_all();
        }
        if self.cx.take_run() {
            for h in 0..self.hctx.len() {
                if self.meant_by_all(h) {
                    self.run(h);
                }
            }
        }
    }

    /// Returns the time of the next event, without runs that are due.
    pub fn next_outside(&self) -> Option<Instant> {
        sooner(self.dev.next_event(), self.next_besides())
    }
    /// Returns the time of the next event, without runs that are due and without events of the
    /// device.
    #[inline]
    fn next_besides(&self) -> Option<Instant> {
        if !self.ready.is_empty() {
            return Some(self.cx.now());
        }
        debug_assert_eq!(
            self.kept,
            self.waits_for(),
            "what the layer waits for is kept"
        );
        sooner(self.cx.next_timer().map(|t| t.0), self.kept.until())
    }
    #[inline]
    fn runs_due(&self) -> bool {
        debug_assert_eq!(
            self.kept,
            self.waits_for(),
            "what the layer waits for is kept"
        );
        self.cx.kicked() || self.kept.due
    }

    /// Looks for rare work, once after each change instead of at every query for the next event.
    /// Every public function that changes the layer must call this function before it returns.
    #[inline]
    fn keep(&mut self) {
        self.kept = self.waits_for();
    }
    #[inline]
    fn waits_for(&self) -> Waits {
        let mut until = Instant::FAR;
        let mut also = |at: Option<Instant>| until = until.min(at.unwrap_or(Instant::FAR));
        let mut due = !self.requeued.is_empty();
        for h in &self.hctx {
            due |= h.pending;
            also(h.rerun_at);
            also(h.flush.deadline());
        }
        also(self.throttle.deadline());
        due |= self.throttle.has_granted();
        if self.controlled {
            also(self.limits.deadline());
            also(self.latency.deadline());
            also(self.cost.deadline());
            due |= self.latency.has_granted() || self.cost.has_granted();
        }
        Waits { due, until }
    }
}

/// Returns the earlier of two optional times.
#[inline]
fn sooner(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
