//! What a scheduler sees of the outside: time, requests, contexts, the queue's facts, and the
//! means to act (emit, arm, kick, run, say why).
//!
//! A layer owns one `Cx` beside its scheduler and hands it to every call. Requests, contexts and
//! the dispatch list live here, so nothing is copied and nothing is allocated per request.

use crate::dispatch::DispatchList;
use crate::merge::MergeIndex;
use seekwell_core::{
    Action, BioId, CgroupId, Contexts, Era, Event, EventLog, Instant, IocId, Nanos, Requests, RqId,
    Rule, Sectors, State, TickClock,
};
use std::collections::BTreeMap;

/// Timers a scheduler may have at once.
pub const TIMER_SLOTS: usize = 4;

/// How [`Cx::emit`] places a request on the dispatch list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Emit {
    /// At the end (`elv_dispatch_add_tail`); becomes the boundary.
    Tail,
    /// In one-way sector order (`elv_dispatch_sort`).
    Sorted,
    /// At the front.
    Head,
}

/// The queue as its sysfs files show it, and its kernel.
#[derive(Clone, Debug)]
pub struct QueueFacts {
    /// Kernel generation: what "is sync" means, and details of old elevators.
    pub era: Era,
    /// queue/rotational.
    pub rotational: bool,
    /// Commands the driver takes at once.
    pub depth: u32,
    /// queue/nr_requests: of each pool (legacy), or scheduler tags per hardware queue (blk-mq).
    pub nr_requests: u32,
    /// Hardware contexts.
    pub hctxs: u16,
    /// Software contexts (CPUs).
    pub cpus: u16,
    /// queue/max_sectors_kb, in sectors.
    pub max_sectors: Sectors,
    /// queue/max_segments: entries of the driver's scatter list; `u32::MAX` where the list is as
    /// long as the largest request, or `max_sectors` allows for it already.
    pub max_segments: u32,
    /// queue/nomerges: 0, 1, 2.
    pub nomerges: u8,
    /// The driver can stop a write and give it back (urgent requests make sense).
    pub can_stop: bool,
    /// Name of the device, for messages.
    pub name: String,
}

impl QueueFacts {
    /// The hardware context that serves a CPU: CPUs in even, contiguous groups.
    pub const fn hctx_of(&self, cpu: u16) -> u16 {
        let cpus = if self.cpus == 0 { 1 } else { self.cpus as u32 };
        let hctxs = if self.hctxs == 0 {
            1
        } else {
            self.hctxs as u32
        };
        ((cpu as u32 % cpus) * hctxs / cpus) as u16
    }
    /// A rotational disk of depth 1 under 4.0, merging up to 1024 sectors: the convention of the
    /// worked examples.
    pub fn example(era: Era) -> Self {
        QueueFacts {
            era,
            rotational: true,
            depth: 1,
            nr_requests: 128,
            hctxs: 1,
            cpus: 1,
            max_sectors: Sectors(1024),
            max_segments: u32::MAX,
            nomerges: 0,
            can_stop: false,
            name: "example".to_owned(),
        }
    }
}

/// A cgroup as a queue sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Parent; the root is its own.
    pub parent: CgroupId,
    /// As written to the controller's file; `None`: the scheduler's default.
    pub weight: Option<u32>,
    /// blkio.leaf_weight (CFQ of 3.8 and later).
    pub leaf_weight: Option<u32>,
    /// False once removed.
    pub online: bool,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    at: Instant,
    seq: u64,
}

/// Everything outside a scheduler.
#[derive(Debug)]
pub struct Cx {
    now: Instant,
    jiffies: u64,
    tick_end: Instant,
    clock: TickClock,
    /// All requests of the queue.
    pub rqs: Requests,
    /// All io contexts that ever used it.
    pub iocs: Contexts,
    /// Cgroups by number; empty means that only the root exists.
    pub cgroups: BTreeMap<CgroupId, Cgroup>,
    /// Facts.
    pub queue: QueueFacts,
    /// Requests the driver has looked at and not completed.
    pub in_driver: u32,
    /// One-hit cache and end-sector hash.
    pub merge: MergeIndex,
    /// What the scheduler let go.
    pub out: DispatchList,
    /// Requests inside the scheduler.
    pub nr_sorted: u32,
    /// Events and reasons, while somebody listens.
    pub log: EventLog,
    timers: [Option<Timer>; TIMER_SLOTS],
    /// The slot due next, kept so that looking costs nothing.
    timer_first: Option<(Instant, u8)>,
    timer_seq: u64,
    kick: bool,
    run: bool,
}

impl Cx {
    /// The outside of a fresh queue at [`Instant::START`].
    pub fn new(queue: QueueFacts, clock: TickClock) -> Self {
        let mut out = DispatchList::default();
        out.ignore_direction = queue.era == Era::K2_6_18;
        let mut cx = Cx {
            now: Instant(0),
            jiffies: 0,
            tick_end: Instant(0),
            clock,
            rqs: Requests::new(),
            iocs: Contexts::new(),
            cgroups: BTreeMap::new(),
            queue,
            in_driver: 0,
            merge: MergeIndex::new(),
            out,
            nr_sorted: 0,
            log: EventLog::default(),
            timers: [None; TIMER_SLOTS],
            timer_first: None,
            timer_seq: 0,
            kick: false,
            run: false,
        };
        cx.set_now(Instant::START);
        cx
    }

    /// The clock, ns.
    #[inline]
    pub fn now(&self) -> Instant {
        self.now
    }
    /// The jiffy count.
    #[inline]
    pub fn jiffies(&self) -> u64 {
        self.jiffies
    }
    /// Ticks a second.
    #[inline]
    pub fn hz(&self) -> u64 {
        u64::from(self.clock.hz)
    }
    /// The tick, for conversions.
    #[inline]
    pub fn clock(&self) -> TickClock {
        self.clock
    }
    /// For layers: sets the clock, which never goes back.
    #[inline]
    pub fn set_now(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time goes back");
        self.now = now;
        if now >= self.tick_end {
            self.jiffies = self.clock.jiffies(now);
            self.tick_end = self.clock.start_of(self.jiffies + 1);
        }
    }
    /// For replays of a recording that tells its own jiffies: sets clock and jiffy apart.
    pub fn set_now_jiffy(&mut self, now: Instant, jiffy: u64) {
        self.now = now;
        self.jiffies = jiffy;
        self.tick_end = Instant::FAR;
    }

    /// The scheduler lets `rq` go: it leaves merge cache and hash and goes to the dispatch list.
    #[inline]
    pub fn emit(&mut self, rq: RqId, how: Emit) {
        debug_assert_eq!(
            self.rqs[rq].state,
            State::Sorted,
            "emits what it was not given"
        );
        self.merge.forget(rq);
        self.rqs[rq].state = State::Dispatched;
        self.nr_sorted -= 1;
        match how {
            Emit::Tail => self.out.push_tail(&self.rqs, rq),
            Emit::Sorted => self.out.insert_sorted(&self.rqs, rq),
            Emit::Head => self.out.push_head(rq),
        }
        self.event(Action::Elevator, rq);
    }

    /// Arms a timer at a point in time; a new time replaces the old one.
    pub fn arm(&mut self, slot: u8, at: Instant) {
        self.timer_seq += 1;
        self.timers[slot as usize] = Some(Timer {
            at,
            seq: self.timer_seq,
        });
        self.find_first_timer();
    }
    /// Arms a jiffy timer: it fires at the first instant of jiffy `j`, or at the next tick if that
    /// is now or past.
    pub fn arm_jiffy(&mut self, slot: u8, j: u64) {
        let j = j.max(self.jiffies + 1);
        self.arm(slot, self.clock.start_of(j));
    }
    /// Disarms; harmless if it was not armed.
    #[inline]
    pub fn disarm(&mut self, slot: u8) {
        if self.timers[slot as usize].take().is_some() {
            self.find_first_timer();
        }
    }
    /// Is it armed?
    #[inline]
    pub fn armed(&self, slot: u8) -> bool {
        self.timers[slot as usize].is_some()
    }
    /// When it fires.
    pub fn armed_at(&self, slot: u8) -> Option<Instant> {
        self.timers[slot as usize].map(|t| t.at)
    }
    /// For layers: the timer due next, in order of expiry, then of arming.
    #[inline]
    pub fn next_timer(&self) -> Option<(Instant, u8)> {
        self.timer_first
    }
    fn find_first_timer(&mut self) {
        let mut best: Option<(Instant, u64, u8)> = None;
        for (i, t) in self.timers.iter().enumerate() {
            if let Some(t) = t
                && best.is_none_or(|b| (t.at, t.seq) < (b.0, b.1))
            {
                best = Some((t.at, t.seq, i as u8));
            }
        }
        self.timer_first = best.map(|b| (b.0, b.2));
    }

    /// Asks for a run of the queue soon, from a worker (kblockd), at the same instant but after
    /// what is going on now.
    #[inline]
    pub fn kick(&mut self) {
        self.kick = true;
    }
    /// Asks for a run of the queue at once: right after the present callback. Never recursive;
    /// inside a run it is lost, as in the kernel.
    #[inline]
    pub fn run_queue(&mut self) {
        self.run = true;
    }
    /// For layers.
    #[inline]
    pub fn take_kick(&mut self) -> bool {
        std::mem::take(&mut self.kick)
    }
    /// For layers.
    #[inline]
    pub fn kicked(&self) -> bool {
        self.kick
    }
    /// For layers.
    #[inline]
    pub fn take_run(&mut self) -> bool {
        std::mem::take(&mut self.run)
    }

    /// Is the io context still used by a task?
    pub fn alive(&self, ioc: IocId) -> bool {
        self.iocs.get(ioc).alive
    }
    /// Length of `ms` milliseconds in jiffies, rounded up.
    pub fn ms_to_jiffies(&self, ms: u64) -> u64 {
        self.clock.from_ms(ms)
    }
    /// Time since `t`.
    pub fn since(&self, t: Instant) -> Nanos {
        self.now.since(t)
    }

    /// Names the rule that decided, one of the scheduler's own table ([`seekwell_core::rules!`]),
    /// with details made only if somebody listens.
    #[inline]
    pub fn why(&mut self, rule: &'static Rule, detail: impl FnOnce() -> String) {
        if self.log.listening() {
            self.why_slow(rule, detail);
        }
    }
    /// The same where the words are always the same.
    #[inline]
    pub fn why_text(&mut self, rule: &'static Rule, text: &'static str) {
        self.why(rule, || text.to_owned());
    }
    /// The words are put together here, so that the scheduler's own code stays small.
    #[cold]
    #[inline(never)]
    fn why_slow(&mut self, rule: &'static Rule, detail: impl FnOnce() -> String) {
        let at = self.now;
        self.log.push(|| Event {
            at,
            action: Action::Why,
            rq: None,
            bio: None,
            task: seekwell_core::TaskId(0),
            op: seekwell_core::Op::Read,
            flags: seekwell_core::Flags::empty(),
            sector: seekwell_core::Sector(0),
            sectors: Sectors(0),
            rule: Some(rule),
            detail: detail(),
        });
    }
    /// Writes an event about a request.
    #[inline]
    pub fn event(&mut self, action: Action, rq: RqId) {
        if self.log.listening() {
            self.event_slow(action, rq);
        }
    }
    #[cold]
    fn event_slow(&mut self, action: Action, rq: RqId) {
        let at = self.now;
        let r = &self.rqs[rq];
        let bio: Option<BioId> = self.rqs.bios(rq).next().map(|b| b.0.id);
        let event = Event {
            at,
            action,
            rq: Some(rq),
            bio,
            task: self.iocs.get(r.ioc).task,
            op: r.op,
            flags: r.flags,
            sector: r.sector,
            sectors: r.sectors,
            rule: None,
            detail: String::new(),
        };
        self.log.push(|| event);
    }
}
