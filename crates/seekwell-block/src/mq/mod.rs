//! The multi-queue block layer of Linux (blk-mq, 6.1 to 6.18) around a scheduler, or `none`.
//!
//! Modelled: `io.max`, `io.cost`, `io.latency`, writeback throttling, software and hardware
//! contexts, driver tags and scheduler tags with shallow limits, submitters that sleep for a tag,
//! plugs, bio and request merging, the dispatch loop with its parked request (drivers limited by
//! tags) or its budget (SCSI), the dispatch list, restarts and 3 ms re-runs, the `dispatch_busy`
//! average, requeues, flush and FUA sequences, direct issue without a scheduler, a scheduler switch
//! by freezing the queue.
//!
//! Not modelled or simplified:
//! - tags are counted, not bits of a map (see [`tags`]); drivers never share tags between devices;
//! - one dispatcher: two CPUs never run a hardware queue at the same time, so at most one request
//!   is parked (a running kernel sometimes parks two);
//! - one hardware queue type (no separate read or poll queues), no batch entry point of drivers,
//!   no segments (only sectors limit a request), no zones;
//! - a run from a worker happens at the same instant, after all submissions of that instant.
//!
//! Order at one instant: completions, timers, sleepers that get a tag, submissions, then the
//! requested runs. So [`MqQueue`] postpones runs to another `advance` to the same instant if
//! something else happened in this one.

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

/// Id of the layer's own bios (cache flushes); their completions are not reported.
const OWN_BIO: BioId = BioId(u64::MAX);
/// A hardware queue that got nothing, or lacks resources with nothing in flight, runs again after
/// this time.
const RERUN: Nanos = Nanos::from_ms(3);
/// Scheduler tags per driver tag, and the driver depth up to which this ratio holds.
const SCHED_TAGS: (u32, u32) = (2, 128);
/// Smallest and (with a scheduler) largest queue/nr_requests.
const NR_REQUESTS: (u32, u32) = (4, 2048);

/// The tags that a request holds.
#[derive(Clone, Copy, Debug, Default)]
struct RqTags {
    /// Holds a scheduler tag.
    sched: bool,
    /// Holds a driver tag.
    driver: bool,
    /// The limit under which the tag was taken.
    limit: Option<u32>,
    /// Part of a flush sequence.
    sequenced: bool,
    /// The slot of the writeback throttle that it holds.
    slot: Option<wbt::Class>,
}

/// A hardware context.
#[derive(Debug, Default)]
struct Hctx {
    /// Requests that left the scheduler (or never entered it) and that the driver has not accepted.
    dispatch: List,
    /// `dispatch_busy`: a running average of rounds in which a request was refused.
    busy: u32,
    /// Run again at the next completion.
    restart: bool,
    /// A run from a worker is due at this instant.
    pending: bool,
    /// A later run from a worker.
    rerun_at: Option<Instant>,
    in_flight: u32,
    driver_tags: TagPool,
    sched_tags: TagPool,
    flush: FlushMachine,
}

impl Hctx {
    /// Whether there is a tag for one more request (a driver tag if there is no scheduler).
    fn has_tag(&self, bypass: bool, limit: Option<u32>) -> bool {
        match bypass {
            true => self.driver_tags.available(None),
            false => self.sched_tags.available(limit),
        }
    }
}

/// The layer's own next work, without its device, its scheduler and finished bios. Two words, so
/// that it is passed in registers after each change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waits {
    /// Runs are due at this instant.
    due: bool,
    /// The time of its own next work; [`Instant::FAR`] if there is none.
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
/// Generic over the scheduler and over the device. The scheduler may be `?Sized`: `Box<dyn
/// Scheduler>` works with all schedulers, a concrete type is for benchmarks.
pub struct MqQueue<S: Scheduler + ?Sized, D: Device> {
    /// Time, requests, contexts; its dispatch list only passes requests on.
    pub cx: Cx,
    sched: Box<S>,
    /// A copy of its [`Scheduler::bypass`], which every request needs several times.
    bypass: bool,
    dev: Below<D>,
    driver: MqDriver,
    hash: bool,
    acct: Account,
    hctx: Vec<Hctx>,
    /// The hardware context of the current CPU: of the last submission, completion or run.
    current: usize,
    /// Dispatch lists of all hardware contexts.
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
    /// A file of `io.max`, `io.latency` or `io.cost` was written.
    controlled: bool,
    /// Tasks that sleep for a slot, a tag or a frozen queue, with their further actions.
    sleepers: Sleepers,
    /// Requests for the requeue worker: returned by the driver, or data of a sequence.
    requeued: VecDeque<(RqId, Insert)>,
    in_flight: u32,
    flushing: bool,
    /// SCSI: the drive deferred a command, and nothing has completed since then.
    deferred: bool,
    /// Uncompleted pieces of split bios, and whether one failed.
    splits: BTreeMap<BioId, (u32, bool)>,
    acts: VecDeque<Act>,
    switching: Option<switch::Switch<S>>,
    done: Vec<Done>,
    ready: Vec<BioDone>,
    batch: Vec<RqId>,
    kept: Waits,
}

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// A fresh queue. `make` builds the scheduler for the queue's facts; depth and nr_requests are
    /// first set by the driver's depth. `hash`: the layer searches the end-sector hash for this
    /// scheduler.
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

    /// Sets the default scheduler tags and nr_requests for the scheduler and the driver depth.
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

    /// Writes queue/nr_requests. With a scheduler 4 to 2048 (less counts as 4); without one, at
    /// most the driver's depth.
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

    /// The scheduler.
    pub fn scheduler(&self) -> &S {
        &self.sched
    }
    /// Scheduler and context together, for tunables.
    pub fn parts(&mut self) -> (&mut S, &mut Cx) {
        (&mut self.sched, &mut self.cx)
    }
    /// The device.
    pub fn device(&self) -> &D {
        self.dev.device()
    }
    /// Counters.
    pub fn stats(&self) -> &QueueStats {
        &self.acct.stats
    }
    /// Number of requests in the device.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }
    /// Number of tasks that sleep because no tag is free.
    pub fn asleep(&self) -> usize {
        self.sleepers.len()
    }
    /// Whether this task sleeps for a tag or for the end of a freeze.
    pub fn is_asleep(&self, task: seekwell_core::TaskId) -> bool {
        self.sleepers.has(task)
    }
    /// Number of list entries of sleepers examined so far. Tests check that this number per request
    /// does not grow with the number of waiting tasks.
    pub fn sleepers_looked_at(&self) -> u64 {
        self.sleepers.looked()
    }
    /// Number of scheduler tags and driver tags in use, over all hardware contexts.
    pub fn tags_used(&self) -> (u32, u32) {
        let sum = |f: fn(&Hctx) -> u32| self.hctx.iter().map(f).sum();
        (sum(|h| h.sched_tags.used()), sum(|h| h.driver_tags.used()))
    }
    /// Number of requests on the dispatch list of a hardware context.
    pub fn parked(&self, hctx: u16) -> usize {
        self.hctx[hctx as usize].dispatch.len()
    }
    /// `dispatch_busy` of a hardware context.
    pub fn dispatch_busy(&self, hctx: u16) -> u32 {
        self.hctx[hctx as usize].busy
    }

    /// Writes a tunable while running.
    pub fn store(&mut self, now: Instant, name: &str, text: &str) -> Result<(), StoreError> {
        self.cx.set_now(now);
        let r = match name == WBT_LAT_USEC.name {
            true => self.store_wbt(text),
            false => self.sched.store(&mut self.cx, name, text),
        };
        self.after_callback();
        // A limit may have been removed.
        self.wake_sleepers();
        self.keep();
        r
    }

    /// Checks the invariants of layer and scheduler; panics if one is broken.
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
            // A budget comes with time, however idle the device is.
            let paying = self.sleepers.only_before(Gate::Cost) && self.cost.deadline().is_some();
            assert!(
                self.switching.is_some() || self.sleepers.is_empty() || paying,
                "I6: nobody sleeps"
            );
        }
    }

    /// Whether a run of all hardware queues includes this one.
    fn meant_by_all(&self, h: usize) -> bool {
        h == self.current || self.sched.per_hctx() || !self.hctx[h].dispatch.is_empty()
    }
    /// A worker runs all hardware queues.
    fn kick_all(&mut self) {
        for h in 0..self.hctx.len() {
            self.hctx[h].pending |= self.meant_by_all(h);
        }
    }

    /// Does what a callback asked for: a run at once, or runs from a worker.
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

    /// The time of the next event, without due runs.
    pub fn next_outside(&self) -> Option<Instant> {
        sooner(self.dev.next_event(), self.next_besides())
    }
    /// The time of the next event, without due runs and without the device.
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

    /// Checks for rare work once after each change, not at every query for the next event. Every
    /// public function that changes the layer must call this before it returns.
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

/// The earlier of two optional times.
#[inline]
fn sooner(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
