//! The scheduler's view of the outside: time, requests, contexts, facts about the queue, and the
//! means to act (emit, arm, kick, run, give a reason).
//!
//! A layer owns one `Cx` next to its scheduler and passes it to every call. Requests, contexts and
//! the dispatch list live in `Cx`, so nothing is copied and nothing is allocated per request.

use crate::dispatch::DispatchList;
use crate::merge::MergeIndex;
use seekwell_core::{
    About, Action, BioId, CgroupId, Contexts, Era, Event, EventLog, Instant, IocId, More, Nanos,
    Reason, Requests, RqId, Rule, SchedulerWork, Sectors, State, TickClock,
};
use std::collections::BTreeMap;

/// The number of timers that a scheduler may have at once.
pub const TIMER_SLOTS: usize = 4;

/// A timer of a scheduler: its number, below [`TIMER_SLOTS`], and its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The number passed to [`crate::Scheduler::timer`].
    pub number: u8,
    /// The kernel's name of the timer or of its function, for events.
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

/// The queue as its sysfs files show it, and its kernel generation.
#[derive(Clone, Debug)]
pub struct QueueFacts {
    /// Kernel generation: it decides what "is sync" means, and details of old elevators.
    pub era: Era,
    /// queue/rotational.
    pub rotational: bool,
    /// Commands that the driver takes at once.
    pub depth: u32,
    /// queue/nr_requests: the size of each pool (legacy), or the scheduler tags per hardware queue
    /// (blk-mq).
    pub nr_requests: u32,
    /// Hardware contexts.
    pub hctxs: u16,
    /// Software contexts (CPUs).
    pub cpus: u16,
    /// queue/max_sectors_kb, in sectors.
    pub max_sectors: Sectors,
    /// queue/max_segments: entries of the driver's scatter list. `u32::MAX` if the list is as long
    /// as the largest request, or if `max_sectors` already accounts for it.
    pub max_segments: u32,
    /// queue/nomerges: 0, 1, 2.
    pub nomerges: u8,
    /// The driver can stop a write and return it (only then are urgent requests useful).
    pub can_stop: bool,
    /// Name of the device, for messages.
    pub name: String,
}

impl QueueFacts {
    /// The hardware context that serves a CPU. CPUs form even, contiguous groups.
    #[inline]
    pub const fn hctx_of(&self, cpu: u16) -> u16 {
        // Most devices have one hardware context; this test avoids two divisions.
        if self.hctxs <= 1 {
            return 0;
        }
        let cpus = if self.cpus == 0 { 1 } else { self.cpus as u32 };
        ((cpu as u32 % cpus) * self.hctxs as u32 / cpus) as u16
    }
    /// A rotational disk of depth 1 with a 4.0 kernel that merges up to 1024 sectors. The worked
    /// examples use it.
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
    /// The parent; the root is its own parent.
    pub parent: CgroupId,
    /// The value written to the controller's file; `None`: the scheduler's default.
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
    /// All io contexts that ever used the queue.
    pub iocs: Contexts,
    /// Cgroups by number; empty means that only the root exists.
    pub cgroups: BTreeMap<CgroupId, Cgroup>,
    /// Facts about the queue.
    pub queue: QueueFacts,
    /// Requests that the driver has looked at and not completed.
    pub in_driver: u32,
    /// One-hit cache and end-sector hash.
    pub merge: MergeIndex,
    /// Requests that the scheduler has emitted.
    pub out: DispatchList,
    /// Number of requests inside the scheduler.
    pub nr_sorted: u32,
    /// The scheduler's CPU work for one request, if known.
    pub cost: Option<SchedulerWork>,
    /// The scheduler's work since the last [`Cx::take_work`]; `None` if nobody charges for it.
    work: Option<SchedulerWork>,
    /// Events and reasons; recorded only while the log is open.
    pub log: EventLog,
    timers: [Option<Timer>; TIMER_SLOTS],
    /// The timer due next, cached so that checking it is cheap.
    timer_first: Option<(Instant, u8)>,
    timer_seq: u64,
    kick: bool,
    run: bool,
}

impl Cx {
    /// The context of a fresh queue at [`Instant::START`].
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
    /// Kept out of line, so that an insertion without charging costs only one extra test.
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
    /// Turns the counting of scheduler work on or off. Only known costs are counted.
    pub fn count_work(&mut self, counts: bool) {
        self.work = self.cost.filter(|_| counts);
    }
    /// The scheduler's work since the last call of this function.
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
    /// Ticks per second.
    #[inline]
    pub fn hz(&self) -> u64 {
        u64::from(self.clock.hz)
    }
    /// The tick clock, for conversions.
    #[inline]
    pub fn clock(&self) -> TickClock {
        self.clock
    }
    /// For layers: sets the clock. Time never goes back.
    #[inline]
    pub fn set_now(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time goes back");
        self.now = now;
        if now >= self.tick_end {
            (self.jiffies, self.tick_end) = self.clock.jiffy_at(now);
        }
    }
    /// For replays of a recording that has its own jiffies: sets the clock and the jiffy
    /// separately.
    pub fn set_now_jiffy(&mut self, now: Instant, jiffy: u64) {
        self.now = now;
        self.jiffies = jiffy;
        self.tick_end = Instant::FAR;
    }

    /// The scheduler emits `rq`: the request leaves the merge cache and hash and joins the dispatch
    /// list.
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
    /// Arms a timer, and records for whom it is. `whom` runs only if the log is open.
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
    /// Arms a jiffy timer. It fires at the first instant of jiffy `j`, or at the next tick if `j`
    /// is the current jiffy or an earlier one.
    pub fn arm_jiffy(&mut self, slot: impl Into<Slot>, j: u64) {
        self.arm_jiffy_for(slot, j, About::default);
    }
    /// Arms a jiffy timer, and records for whom it is.
    pub fn arm_jiffy_for(&mut self, slot: impl Into<Slot>, j: u64, whom: impl FnOnce() -> About) {
        let j = j.max(self.jiffies + 1);
        self.arm_for(slot, self.clock.start_of(j), whom);
    }
    /// Disarms a timer; harmless if the timer was not armed.
    #[inline]
    pub fn disarm(&mut self, slot: impl Into<Slot>) {
        self.take_timer(slot.into().number, Action::Disarm);
    }
    /// For layers: marks the timer due next as fired. The layer must then call the scheduler.
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
    /// The armed timers by number: name and time.
    pub fn timers(&self) -> impl Iterator<Item = (&'static str, Instant)> + '_ {
        self.timers.iter().flatten().map(|t| (t.name, t.at))
    }
    /// Whether the timer is armed.
    #[inline]
    pub fn armed(&self, slot: impl Into<Slot>) -> bool {
        self.timers[slot.into().number as usize].is_some()
    }
    /// The time at which the timer fires.
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

    /// Asks for a run of the queue soon, from a worker (kblockd): at the same instant, but after
    /// the current work.
    #[inline]
    pub fn kick(&mut self) {
        self.kick = true;
    }
    /// Asks for a run of the queue right after the current callback. A run is never recursive: a
    /// request made inside a run is lost, as in the kernel.
    #[inline]
    pub fn run_queue(&mut self) {
        self.run = true;
    }
    /// For layers: takes the pending kick (a run from a worker).
    #[inline]
    pub fn take_kick(&mut self) -> bool {
        std::mem::take(&mut self.kick)
    }
    /// For layers: whether a kick (a run from a worker) is pending.
    #[inline]
    pub fn kicked(&self) -> bool {
        self.kick
    }
    /// For layers: whether a run is pending, at once or from a worker.
    #[inline]
    pub fn asked(&self) -> bool {
        self.kick | self.run
    }
    /// For layers: takes the pending run that was asked for at once.
    #[inline]
    pub fn take_run(&mut self) -> bool {
        std::mem::take(&mut self.run)
    }

    /// Whether a task still uses the io context.
    pub fn alive(&self, ioc: IocId) -> bool {
        self.iocs.get(ioc).alive
    }
    /// The length of `ms` milliseconds in jiffies, rounded up.
    pub fn ms_to_jiffies(&self, ms: u64) -> u64 {
        self.clock.from_ms(ms)
    }
    /// Time since `t`.
    pub fn since(&self, t: Instant) -> Nanos {
        self.now.since(t)
    }

    /// Names the rule that decided, from the scheduler's own table ([`seekwell_core::rules!`]),
    /// with details. The closure runs only if the log is open. It returns words, or words about a
    /// subject ([`About::says`]).
    #[inline]
    pub fn why<R: Into<Reason>>(&mut self, rule: &'static Rule, detail: impl FnOnce() -> R) {
        if self.log.listening() {
            self.why_slow(rule, detail);
        }
    }
    /// Names the rule that decided, with constant words.
    #[inline]
    pub fn why_text(&mut self, rule: &'static Rule, text: &'static str) {
        self.why(rule, || text.to_owned());
    }
    /// Names the rule that decided about a request.
    #[inline]
    pub fn why_rq(&mut self, rule: &'static Rule, rq: RqId, detail: impl FnOnce() -> String) {
        self.why(rule, || About::rq(rq).says(detail()));
    }
    /// Names the rule that decided about an io context.
    #[inline]
    pub fn why_ioc(&mut self, rule: &'static Rule, ioc: IocId, detail: impl FnOnce() -> String) {
        self.why(rule, || About::ioc(ioc).says(detail()));
    }
    /// Builds the words out of line, so that the scheduler's own code stays small.
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
    /// Records an event with the current bios of its request.
    fn add(&mut self, e: Event) {
        let rq = e.rq;
        self.log.push(|| e);
        if let Some(rq) = rq {
            self.log.about(submitted(&self.rqs, rq));
        }
    }
    /// Adds a subject to an event.
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
    /// Records an event about a request.
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

/// The submitted bios of a request. The layer's own flushes carry a bio that no task submitted.
fn submitted(rqs: &Requests, rq: RqId) -> impl Iterator<Item = BioId> + '_ {
    let all = rqs.bios(rq).map(|b| b.0.id);
    all.filter(|b| b.0 != u64::MAX)
}
