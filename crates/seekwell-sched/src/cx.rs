//! What a scheduler sees of the outside: time, requests, contexts, the queue's facts, and the
//! means to act (emit, arm, kick, run, say why).
//!
//! A layer owns one `Cx` beside its scheduler and hands it to every call. Requests, contexts and
//! the dispatch list live here, so nothing is copied and nothing is allocated per request.

use crate::dispatch::DispatchList;
use crate::merge::MergeIndex;
use seekwell_core::{
    About, Action, BioId, CgroupId, Contexts, Era, Event, EventLog, Instant, IocId, More, Nanos,
    Reason, Requests, RqId, Rule, SchedulerWork, Sectors, State, TickClock,
};
use std::collections::BTreeMap;

/// Timers a scheduler may have at once.
pub const TIMER_SLOTS: usize = 4;

/// A timer of a scheduler: its number among [`TIMER_SLOTS`], and its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// What [`crate::Scheduler::timer`] is told.
    pub number: u8,
    /// As the kernel calls the timer (or its function), for events.
    pub name: &'static str,
}

impl Slot {
    /// A timer with a name.
    pub const fn new(number: u8, name: &'static str) -> Self {
        Slot { number, name }
    }
}

impl From<u8> for Slot {
    fn from(number: u8) -> Self {
        Slot::new(number, "timer")
    }
}

impl PartialEq<Slot> for u8 {
    fn eq(&self, slot: &Slot) -> bool {
        *self == slot.number
    }
}

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
    #[inline]
    pub const fn hctx_of(&self, cpu: u16) -> u16 {
        // Most devices have one, and two divisions take longer.
        if self.hctxs <= 1 {
            return 0;
        }
        let cpus = if self.cpus == 0 { 1 } else { self.cpus as u32 };
        ((cpu as u32 % cpus) * self.hctxs as u32 / cpus) as u16
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
    name: &'static str,
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
    /// What a request costs the scheduler, where that is known: counted where somebody charges.
    pub cost: Option<SchedulerWork>,
    /// What it has cost since that was last asked, where somebody charges for it.
    work: Option<SchedulerWork>,
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
            cost: None,
            work: None,
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

    /// A request enters the scheduler.
    #[inline]
    pub fn entered(&mut self, rq: RqId) {
        self.nr_sorted += 1;
        if self.work.is_some() {
            self.charge(rq);
        }
    }
    /// Out of line: an insertion that nobody charges for is a test longer.
    #[inline(never)]
    fn charge(&mut self, rq: RqId) {
        let Some(w) = &mut self.work else {
            return;
        };
        w.requests = w.requests.saturating_add(1);
        if w.lock != Some(0) {
            w.lock = Some(1 + self.rqs[rq].hctx);
        }
    }
    /// Has what the scheduler costs counted from now on, as far as it is known, or no longer.
    pub fn count_work(&mut self, counts: bool) {
        self.work = self.cost.filter(|_| counts);
    }
    /// What the scheduler has cost since this was last asked.
    pub fn take_work(&mut self) -> Option<SchedulerWork> {
        let w = self.work.as_mut().filter(|w| w.requests > 0)?;
        let taken = *w;
        w.requests = 0;
        Some(taken)
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
            (self.jiffies, self.tick_end) = self.clock.jiffy_at(now);
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
    #[inline]
    pub fn arm(&mut self, slot: impl Into<Slot>, at: Instant) {
        self.arm_for(slot, at, About::default);
    }
    /// The same, and says (only if somebody listens) for whom it is.
    #[inline]
    pub fn arm_for(&mut self, slot: impl Into<Slot>, at: Instant, whom: impl FnOnce() -> About) {
        let Slot { number, name } = slot.into();
        self.timer_seq += 1;
        self.timers[number as usize] = Some(Timer {
            at,
            seq: self.timer_seq,
            name,
        });
        self.find_first_timer();
        if self.log.listening() {
            self.timer_event(Action::Arm, name, at, whom());
        }
    }
    /// Arms a jiffy timer: it fires at the first instant of jiffy `j`, or at the next tick if that
    /// is now or past.
    pub fn arm_jiffy(&mut self, slot: impl Into<Slot>, j: u64) {
        self.arm_jiffy_for(slot, j, About::default);
    }
    /// The same, and says for whom it is.
    pub fn arm_jiffy_for(&mut self, slot: impl Into<Slot>, j: u64, whom: impl FnOnce() -> About) {
        let j = j.max(self.jiffies + 1);
        self.arm_for(slot, self.clock.start_of(j), whom);
    }
    /// Disarms; harmless if it was not armed.
    #[inline]
    pub fn disarm(&mut self, slot: impl Into<Slot>) {
        self.take_timer(slot.into().number, Action::Disarm);
    }
    /// For layers: the timer due next is taken as fired; its scheduler is to be told.
    #[inline]
    pub fn fired(&mut self, slot: u8) {
        self.take_timer(slot, Action::Timer);
    }
    #[inline]
    fn take_timer(&mut self, slot: u8, action: Action) {
        if let Some(t) = self.timers[slot as usize].take() {
            self.find_first_timer();
            if self.log.listening() {
                self.timer_event(action, t.name, t.at, About::default());
            }
        }
    }
    #[cold]
    #[inline(never)]
    fn timer_event(&mut self, action: Action, slot: &'static str, until: Instant, about: About) {
        let e = Event {
            more: More::Timer { slot, until },
            ..self.about(Event::new(self.now, action), about)
        };
        self.add(e);
    }
    /// Timers that are armed, by number: name and time.
    pub fn timers(&self) -> impl Iterator<Item = (&'static str, Instant)> + '_ {
        self.timers.iter().flatten().map(|t| (t.name, t.at))
    }
    /// Is it armed?
    #[inline]
    pub fn armed(&self, slot: impl Into<Slot>) -> bool {
        self.timers[slot.into().number as usize].is_some()
    }
    /// When it fires.
    pub fn armed_at(&self, slot: impl Into<Slot>) -> Option<Instant> {
        self.timers[slot.into().number as usize].map(|t| t.at)
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
    /// For layers: was a run asked for, at once or from a worker?
    #[inline]
    pub fn asked(&self) -> bool {
        self.kick | self.run
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
    /// with details made only if somebody listens: words alone, or words about somebody
    /// ([`About::says`]).
    #[inline]
    pub fn why<R: Into<Reason>>(&mut self, rule: &'static Rule, detail: impl FnOnce() -> R) {
        if self.log.listening() {
            self.why_slow(rule, detail);
        }
    }
    /// The same where the words are always the same.
    #[inline]
    pub fn why_text(&mut self, rule: &'static Rule, text: &'static str) {
        self.why(rule, || text.to_owned());
    }
    /// A reason about a request.
    #[inline]
    pub fn why_rq(&mut self, rule: &'static Rule, rq: RqId, detail: impl FnOnce() -> String) {
        self.why(rule, || About::rq(rq).says(detail()));
    }
    /// A reason about an io context.
    #[inline]
    pub fn why_ioc(&mut self, rule: &'static Rule, ioc: IocId, detail: impl FnOnce() -> String) {
        self.why(rule, || About::ioc(ioc).says(detail()));
    }
    /// The words are put together here, so that the scheduler's own code stays small.
    #[cold]
    #[inline(never)]
    fn why_slow<R: Into<Reason>>(&mut self, rule: &'static Rule, detail: impl FnOnce() -> R) {
        let Reason { about, text } = detail().into();
        let e = Event {
            rule: Some(rule),
            detail: text,
            ..self.about(Event::new(self.now, Action::Why), about)
        };
        self.add(e);
    }
    /// Writes an event, with the bios that its request has now.
    fn add(&mut self, e: Event) {
        let rq = e.rq;
        self.log.push(|| e);
        if let Some(rq) = rq {
            self.log.about(submitted(&self.rqs, rq));
        }
    }
    /// An event that knows whom it is about.
    fn about(&self, mut e: Event, about: About) -> Event {
        let (mut ioc, mut cgroup) = (about.ioc, about.cgroup);
        if let Some(rq) = about.rq {
            let r = &self.rqs[rq];
            ioc = ioc.or(Some(r.ioc));
            cgroup = cgroup.or(Some(r.cgroup));
            (e.op, e.sector, e.sectors) = (r.op, r.sector, r.sectors);
        }
        let ioc = ioc.map(|i| self.iocs.get(i));
        e.rq = about.rq;
        e.task = about.task.or(ioc.map(|c| c.task));
        e.other = about.other;
        e.cgroup = cgroup.or(ioc.map(|c| c.cgroup));
        e.queue = about.queue;
        e
    }
    /// Writes an event about a request.
    #[inline]
    pub fn event(&mut self, action: Action, rq: RqId) {
        if self.log.listening() {
            self.event_slow(action, rq, More::None);
        }
    }
    /// `kept` took over the bios of `gone`.
    #[inline]
    pub fn joined_event(&mut self, kept: RqId, gone: RqId) {
        if self.log.listening() {
            self.event_slow(Action::Join, kept, More::Gone(gone));
        }
    }
    #[cold]
    #[inline(never)]
    fn event_slow(&mut self, action: Action, rq: RqId, more: More) {
        let r = &self.rqs[rq];
        let event = Event {
            rq: Some(rq),
            state: Some(r.state),
            bio: submitted(&self.rqs, rq).next(),
            task: Some(self.iocs.get(r.ioc).task),
            cgroup: Some(r.cgroup),
            op: r.op,
            flags: r.flags,
            sector: r.sector,
            sectors: r.sectors,
            more,
            ..Event::new(self.now, action)
        };
        self.add(event);
    }
}

/// The bios of a request. Flushes of the layer's own carry a bio that nobody submitted.
fn submitted(rqs: &Requests, rq: RqId) -> impl Iterator<Item = BioId> + '_ {
    let all = rqs.bios(rq).map(|b| b.0.id);
    all.filter(|b| b.0 != u64::MAX)
}
