//! The context of a scheduler ([`Cx`]). The scheduler reads the time, the requests, the io contexts
//! and facts about the queue from it. The scheduler acts through it: it emits requests, arms
//! timers, asks for a run of the queue, and gives reasons.
//!
//! A layer owns one `Cx` for its scheduler and passes it to every call. Requests, io contexts and
//! the dispatch list are stored in `Cx`, so that nothing is copied or allocated for each request.

use crate::dispatch::DispatchList;
use crate::merge::MergeIndex;
use seekwell_core::{
    About, Action, BioId, CgroupId, Contexts, Era, Event, EventLog, Instant, IocId, More, Nanos,
    Reason, Requests, RqId, Rule, SchedulerWork, Sectors, State, TickClock,
};
use std::collections::BTreeMap;

/// The largest number of timers of a scheduler.
pub const TIMER_SLOTS: usize = 4;

/// A timer of a scheduler: a number below [`TIMER_SLOTS`] and a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The number that [`crate::Scheduler::timer`] receives.
    pub number: u8,
    /// The kernel's name of the timer or of its function, used in events.
    pub name: &'static str,
}

impl Slot {
    /// Returns a timer with a number and a name.
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

/// The place on the dispatch list where [`Cx::emit`] puts a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Emit {
    /// At the end. The request becomes the boundary (`elv_dispatch_add_tail`).
    Tail,
    /// In one-way sector order (`elv_dispatch_sort`).
    Sorted,
    /// At the front.
    Head,
}

/// The facts about a queue: the values of its sysfs files, and its kernel generation.
#[derive(Clone, Debug)]
pub struct QueueFacts {
    /// Kernel generation. It decides which bios are sync, and details of old elevators.
    pub era: Era,
    /// The value of queue/rotational.
    pub rotational: bool,
    /// Number of commands that the driver takes at once.
    pub depth: u32,
    /// The value of queue/nr_requests: the size of each request pool (legacy), or the number of
    /// scheduler tags per hardware queue (blk-mq).
    pub nr_requests: u32,
    /// Number of hardware contexts.
    pub hctxs: u16,
    /// Number of software contexts (CPUs).
    pub cpus: u16,
    /// The value of queue/max_sectors_kb, converted to sectors.
    pub max_sectors: Sectors,
    /// The value of queue/max_segments: the number of entries of the driver's scatter list.
    /// `u32::MAX` means that the list is long enough for the largest request, or that `max_sectors`
    /// already contains this limit.
    pub max_segments: u32,
    /// The value of queue/nomerges: 0, 1 or 2.
    pub nomerges: u8,
    /// True if the driver can stop a write and return it. Only then are urgent requests useful.
    pub can_stop: bool,
    /// Name of the device, for messages.
    pub name: String,
}

impl QueueFacts {
    /// Returns the hardware context that serves a CPU. CPUs form equal, contiguous groups.
    #[inline]
    pub const fn hctx_of(&self, cpu: u16) -> u16 {
        // Most devices have one hardware context; this test avoids two divisions.
        if self.hctxs <= 1 {
            return 0;
        }
        let cpus = if self.cpus == 0 { 1 } else { self.cpus as u32 };
        ((cpu as u32 % cpus) * self.hctxs as u32 / cpus) as u16
    }
    /// Returns the facts of the worked examples: a rotational disk of depth 1 that merges up to
    /// 1024 sectors (the limit of a 4.0 kernel), in block layer `era`.
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

/// A cgroup, with the settings that a queue uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// The parent cgroup. The root is its own parent.
    pub parent: CgroupId,
    /// The weight written to the controller's file; `None`: the scheduler's default.
    pub weight: Option<u32>,
    /// The value of blkio.leaf_weight (CFQ of 3.8 and later).
    pub leaf_weight: Option<u32>,
    /// False after the cgroup was removed.
    pub online: bool,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    at: Instant,
    seq: u64,
    name: &'static str,
}

/// The context of a scheduler: all that it can read or call.
#[derive(Debug)]
pub struct Cx {
    now: Instant,
    jiffies: u64,
    tick_end: Instant,
    clock: TickClock,
    /// All requests of the queue.
    pub rqs: Requests,
    /// All io contexts that have used the queue.
    pub iocs: Contexts,
    /// Cgroups by number. If empty, only the root exists.
    pub cgroups: BTreeMap<CgroupId, Cgroup>,
    /// Facts about the queue.
    pub queue: QueueFacts,
    /// Number of requests that the driver has taken and not completed.
    pub in_driver: u32,
    /// Index for merges: one-hit cache and end-sector hash.
    pub merge: MergeIndex,
    /// The dispatch list: requests that the scheduler has emitted.
    pub out: DispatchList,
    /// Number of requests in the scheduler.
    pub nr_sorted: u32,
    /// CPU work of the scheduler for one request, if known.
    pub cost: Option<SchedulerWork>,
    /// CPU work of the scheduler since the last [`Cx::take_work`]; `None` if it is not charged.
    work: Option<SchedulerWork>,
    /// Events and reasons. They are recorded only while the log is open.
    pub log: EventLog,
    timers: [Option<Timer>; TIMER_SLOTS],
    /// The timer that fires next, cached so that the check is cheap.
    timer_first: Option<(Instant, u8)>,
    timer_seq: u64,
    kick: bool,
    run: bool,
}

impl Cx {
    /// Returns a context for a new queue, at [`Instant::START`].
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

    /// Counts a request that enters the scheduler.
    #[inline]
    pub fn entered(&mut self, rq: RqId) {
        self.nr_sorted += 1;
        if self.work.is_some() {
            self.charge(rq);
        }
    }
    /// This function is not inlined. So an insertion costs only one extra test if work is not
    /// charged.
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
    /// Turns the counting of scheduler work on or off. If the cost is not known, nothing is
    /// counted.
    pub fn count_work(&mut self, counts: bool) {
        self.work = self.cost.filter(|_| counts);
    }
    /// Returns the scheduler's work since the last call of this function.
    pub fn take_work(&mut self) -> Option<SchedulerWork> {
        let w = self.work.as_mut().filter(|w| w.requests > 0)?;
        let taken = *w;
        w.requests = 0;
        Some(taken)
    }

    /// Returns the current time.
    #[inline]
    pub fn now(&self) -> Instant {
        self.now
    }
    /// Returns the current jiffy.
    #[inline]
    pub fn jiffies(&self) -> u64 {
        self.jiffies
    }
    /// Returns the number of jiffies per second.
    #[inline]
    pub fn hz(&self) -> u64 {
        u64::from(self.clock.hz)
    }
    /// Returns the tick clock, for conversions.
    #[inline]
    pub fn clock(&self) -> TickClock {
        self.clock
    }
    /// For layers: sets the time. Time must not go back.
    #[inline]
    pub fn set_now(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "time goes back");
        self.now = now;
        if now >= self.tick_end {
            (self.jiffies, self.tick_end) = self.clock.jiffy_at(now);
        }
    }
    /// For replays of a recording that contains jiffies: sets the time and the jiffy separately.
    pub fn set_now_jiffy(&mut self, now: Instant, jiffy: u64) {
        self.now = now;
        self.jiffies = jiffy;
        self.tick_end = Instant::FAR;
    }

    /// Emits `rq`: removes the request from the merge cache and hash, and puts it on the dispatch
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

    /// Arms a timer for a point in time. A new time replaces the old time.
    #[inline]
    pub fn arm(&mut self, slot: impl Into<Slot>, at: Instant) {
        self.arm_for(slot, at, About::default);
    }
    /// Arms a timer, and records the task or queue for which it is armed. `whom` runs only if the
    /// log is open.
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
    /// Arms a timer for a jiffy. It fires at the first instant of jiffy `j`, or at the next jiffy
    /// if `j` is the current jiffy or an earlier one.
    pub fn arm_jiffy(&mut self, slot: impl Into<Slot>, j: u64) {
        self.arm_jiffy_for(slot, j, About::default);
    }
    /// Arms a timer for a jiffy, and records the task or queue for which it is armed.
    pub fn arm_jiffy_for(&mut self, slot: impl Into<Slot>, j: u64, whom: impl FnOnce() -> About) {
        let j = j.max(self.jiffies + 1);
        self.arm_for(slot, self.clock.start_of(j), whom);
    }
    /// Disarms a timer. Does nothing if the timer is not armed.
    #[inline]
    pub fn disarm(&mut self, slot: impl Into<Slot>) {
        self.take_timer(slot.into().number, Action::Disarm);
    }
    /// For layers: disarms the timer that fires next. The layer must then call the scheduler.
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
    /// Returns the armed timers by number: name and time.
    pub fn timers(&self) -> impl Iterator<Item = (&'static str, Instant)> + '_ {
        self.timers.iter().flatten().map(|t| (t.name, t.at))
    }
    /// Returns true if the timer is armed.
    #[inline]
    pub fn armed(&self, slot: impl Into<Slot>) -> bool {
        self.timers[slot.into().number as usize].is_some()
    }
    /// Returns the time at which the timer fires; `None` if it is not armed.
    pub fn armed_at(&self, slot: impl Into<Slot>) -> Option<Instant> {
        self.timers[slot.into().number as usize].map(|t| t.at)
    }
    /// For layers: returns the timer that fires next. Timers with equal times are in the order of
    /// arming.
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

    /// Asks for a run of the queue by a worker (kblockd). The run takes place at the same instant,
    /// but after the current work.
    #[inline]
    pub fn kick(&mut self) {
        self.kick = true;
    }
    /// Asks for a run of the queue right after the current callback. Runs are not recursive: if a
    /// run asks for a run, nothing happens, as in the kernel.
    #[inline]
    pub fn run_queue(&mut self) {
        self.run = true;
    }
    /// For layers: returns true if a kick (a run by a worker) is pending, and clears it.
    #[inline]
    pub fn take_kick(&mut self) -> bool {
        std::mem::take(&mut self.kick)
    }
    /// For layers: returns true if a kick (a run by a worker) is pending.
    #[inline]
    pub fn kicked(&self) -> bool {
        self.kick
    }
    /// For layers: returns true if a run is pending, either at once or by a worker.
    #[inline]
    pub fn asked(&self) -> bool {
        self.kick | self.run
    }
    /// For layers: returns true if a run at once is pending, and clears it.
    #[inline]
    pub fn take_run(&mut self) -> bool {
        std::mem::take(&mut self.run)
    }

    /// Returns true if a task still uses the io context.
    pub fn alive(&self, ioc: IocId) -> bool {
        self.iocs.get(ioc).alive
    }
    /// Converts `ms` milliseconds to jiffies, rounded up.
    pub fn ms_to_jiffies(&self, ms: u64) -> u64 {
        self.clock.from_ms(ms)
    }
    /// Returns the time since `t`.
    pub fn since(&self, t: Instant) -> Nanos {
        self.now.since(t)
    }

    /// Records the rule that decided, with details. The rule is from the scheduler's own table
    /// ([`seekwell_core::rules!`]). The closure runs only if the log is open. It returns a text, or
    /// a text about a subject ([`About::says`]).
    #[inline]
    pub fn why<R: Into<Reason>>(&mut self, rule: &'static Rule, detail: impl FnOnce() -> R) {
        if self.log.listening() {
            self.why_slow(rule, detail);
        }
    }
    /// Records the rule that decided, with a constant text.
    #[inline]
    pub fn why_text(&mut self, rule: &'static Rule, text: &'static str) {
        self.why(rule, || text.to_owned());
    }
    /// Records the rule that decided, with a text about a request.
    #[inline]
    pub fn why_rq(&mut self, rule: &'static Rule, rq: RqId, detail: impl FnOnce() -> String) {
        self.why(rule, || About::rq(rq).says(detail()));
    }
    /// Records the rule that decided, with a text about an io context.
    #[inline]
    pub fn why_ioc(&mut self, rule: &'static Rule, ioc: IocId, detail: impl FnOnce() -> String) {
        self.why(rule, || About::ioc(ioc).says(detail()));
    }
    /// This function is not inlined, so that the scheduler's own code stays small.
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
    /// Records an event, with the current bios of its request.
    fn add(&mut self, e: Event) {
        let rq = e.rq;
        self.log.push(|| e);
        if let Some(rq) = rq {
            self.log.about(submitted(&self.rqs, rq));
        }
    }
    /// Adds the subject of a reason to an event.
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
    /// Records that `kept` took over the bios of `gone`.
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

/// Returns the submitted bios of a request. The layer's own flushes contain a bio that no task
/// submitted.
fn submitted(rqs: &Requests, rq: RqId) -> impl Iterator<Item = BioId> + '_ {
    let all = rqs.bios(rq).map(|b| b.0.id);
    all.filter(|b| b.0 != u64::MAX)
}
