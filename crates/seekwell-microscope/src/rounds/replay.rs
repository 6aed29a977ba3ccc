//! Replays the events of a round on a hardware queue with driver tags and parked requests.

use super::{Event, Incoming, Issued, PoolChange, Round, What};
use crate::steps::Keeper;
use crate::{CaseError, Dispatched, Step};
use seekwell_block::merge::{self, Account};
use seekwell_core::{
    Action, Bio, BioId, Era, Event as Logged, Flags, Instant, IocId, NSEC_PER_USEC, Nanos, Op,
    RqId, Sector, Sectors, Side, State, TaskId, TickClock,
};
use seekwell_sched::{Cx, Insert, IocEvent, QueueFacts, Scheduler};
use std::collections::{BTreeMap, VecDeque};

/// Value of nr_requests in the recorded queues.
const NR_REQUESTS: u32 = 256;
/// Largest time by which a recorded timer expiry may precede the modelled expiry.
const TIMER_EARLY: Nanos = Nanos::from_us(100);
/// Largest time by which a recorded timer expiry may follow the modelled expiry.
const TIMER_LATE: Nanos = Nanos::from_ms(3);
/// Largest time between a timer expiry and the run of the queue that it causes.
const RUN_FOLLOWS: Nanos = Nanos::from_ms(1);

/// Result of a replay.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Requests in dispatch order.
    pub issued: Vec<Issued>,
    /// Changes of the token pools (kyber).
    pub pools: Vec<PoolChange>,
    /// Number of requests that were not dispatched.
    pub left: usize,
    /// Bios of each request in dispatch order, with the times of the replay.
    pub dispatch: Vec<Dispatched>,
    /// Times at which timers of the scheduler expired.
    pub timers: Vec<Instant>,
    /// All events with the scheduler's reasons; empty unless requested.
    pub steps: Vec<Step>,
}

struct Queue<'a, S: ?Sized> {
    round: &'a Round,
    cx: Cx,
    sched: &'a mut S,
    hash: bool,
    acct: Account,
    /// Requests that left the scheduler but have no driver tag.
    parked: VecDeque<RqId>,
    /// Requests in the driver, oldest first.
    in_flight: Vec<RqId>,
    /// All dispatched requests in order; `None` for a completed request.
    order: Vec<Option<RqId>>,
    plugs: BTreeMap<u32, Vec<RqId>>,
    /// Bios whose submitters wait for a request. This happens only without a scheduler, when no
    /// driver tag is free.
    asleep: VecDeque<Incoming>,
    /// Requests in plugs with the bio for which they were allocated, in order of allocation.
    granted: Vec<(RqId, Incoming)>,
    attached: Side<bool>,
    pulled: usize,
    out: Replay,
    keeper: Keeper,
}

/// Returns the offset of the clock tick that fits the recorded jiffies best.
fn phase(round: &Round) -> Nanos {
    let tick = 1_000_000_000 / i64::from(round.hz);
    let at = |e: &Event| e.jiffy * tick - (e.t_us * NSEC_PER_USEC) as i64;
    let low = round.events.iter().map(at).max().unwrap_or(0);
    Nanos(low.clamp(0, tick - 1) as u64)
}

/// Replays a round. `make` builds the scheduler for a queue. `watch` returns the sizes of kyber's
/// token pools, or an empty list for other schedulers; their changes are recorded. `hash` is true
/// if the scheduler finds merge candidates in a hash of end sectors. `steps` requests events and
/// states.
pub fn replay<S: Scheduler + ?Sized>(
    round: &Round,
    (hash, steps): (bool, bool),
    make: impl FnOnce(&Cx) -> Box<S>,
    watch: impl Fn(&S) -> Vec<u32>,
) -> Result<Replay, CaseError> {
    let mut facts = QueueFacts::example(Era::Mq);
    facts.rotational = round.rotational;
    facts.depth = round.depth;
    facts.nr_requests = NR_REQUESTS;
    facts.max_sectors = Sectors(round.max_sectors);
    facts.nomerges = round.nomerges;
    facts.cpus = round.cpus();
    facts.name = round.case.clone();
    let mut cx = Cx::new(
        facts,
        TickClock {
            hz: round.hz,
            phase: phase(round),
        },
    );
    let base = 1000 * u64::from(round.hz);
    let tick_ns = 1_000_000_000 / i64::from(round.hz);
    let attach_ns = (Instant::START.0 as i64 + round.attach_j * tick_ns).max(0) as u64;
    cx.set_now_jiffy(
        Instant(attach_ns),
        base.saturating_add_signed(round.attach_j),
    );
    let mut sched = make(&cx);
    for (name, text) in &round.tunables {
        sched
            .store(&mut cx, name, text)
            .map_err(|e| round.error(e))?;
    }
    let mut before = watch(&sched);
    let mut q = Queue {
        round,
        cx,
        sched: &mut *sched,
        hash,
        acct: Account::default(),
        parked: VecDeque::new(),
        in_flight: Vec::new(),
        order: Vec::new(),
        plugs: BTreeMap::new(),
        asleep: VecDeque::new(),
        granted: Vec::new(),
        attached: Side::new(),
        pulled: 0,
        out: Replay::default(),
        keeper: Keeper::default(),
    };
    if steps {
        q.cx.log.listen_with_bios();
    }
    for i in 0..round.events.len() {
        q.timers_before(i);
        q.take_steps();
        q.step(i, base);
        q.take_steps();
        let after = watch(q.sched);
        for (d, (old, new)) in before.iter().zip(&after).enumerate() {
            if old != new {
                q.out.pools.push((round.events[i].t_us, d, *new));
            }
        }
        before = after;
    }
    q.out.left = q.cx.rqs.len() - q.in_flight.len();
    Ok(q.out)
}

impl<S: Scheduler + ?Sized> Queue<'_, S> {
    /// Fires the timers that are due before event `i`, except those whose expiry is recorded.
    fn timers_before(&mut self, i: usize) {
        let events = &self.round.events;
        let next = at(&events[i]);
        while let Some((due, slot)) = self.cx.next_timer()
            && due <= next
        {
            let recorded = events[i..]
                .iter()
                .take_while(|e| at(e) <= due + TIMER_LATE)
                .any(|e| e.what == What::Timer && at(e) + TIMER_EARLY >= due);
            if recorded {
                return;
            }
            let now = due.max(self.cx.now());
            let jiffy = self.cx.clock().jiffies(now).max(self.cx.jiffies());
            self.cx.set_now_jiffy(now, jiffy);
            self.fire(slot, i);
        }
    }

    /// Fires a timer. If a run of the queue is recorded soon afterwards, the timer caused it;
    /// otherwise runs the queue.
    fn fire(&mut self, slot: u8, i: usize) {
        self.cx.fired(slot);
        self.out.timers.push(self.cx.now());
        self.sched.timer(&mut self.cx, slot);
        let (run, kick) = (self.cx.take_run(), self.cx.take_kick());
        let now = self.cx.now();
        let follows = self.round.events[i..]
            .iter()
            .take_while(|e| at(e) <= now + RUN_FOLLOWS)
            .any(|e| matches!(e.what, What::Run { .. }));
        if (run || kick) && !follows {
            self.run(None);
        }
    }

    fn step(&mut self, i: usize, base: u64) {
        let event = self.round.events[i];
        let jiffy = base.saturating_add_signed(event.jiffy);
        self.cx.set_now_jiffy(at(&event).max(self.cx.now()), jiffy);
        if !matches!(event.what, What::Run { .. }) && self.tags_left() {
            self.issue_parked();
        }
        match event.what {
            What::Insert(r) => {
                self.tell(Action::Queue, Some(&r));
                let rq = self.make_request(&r);
                self.insert(rq);
            }
            What::Bio(b) => self.bio(&b),
            What::Unplug { task } => {
                self.grant_as_recorded(task);
                for rq in self.plugs.remove(&task).unwrap_or_default() {
                    self.granted.retain(|g| g.0 != rq);
                    self.insert(rq);
                }
                self.run(None);
            }
            What::Run { limit } => self.run(limit),
            What::Complete { k, latency_us } => self.complete(k, latency_us),
            What::Timer => {
                let now = self.cx.now();
                if let Some((due, slot)) = self.cx.next_timer()
                    && due <= now + TIMER_EARLY
                {
                    self.fire(slot, i + 1);
                }
            }
        }
        // The runs of the queue that the scheduler requests are in the record.
        self.cx.take_run();
        self.cx.take_kick();
    }

    fn context(&mut self, r: &Incoming) -> IocId {
        let task = TaskId(r.task);
        let ioc = match self.cx.iocs.find(task) {
            Some(ioc) => ioc,
            None => self.cx.iocs.create(task, r.prio, Default::default()),
        };
        if !std::mem::replace(self.attached.at(ioc.idx()), true) {
            self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Attach);
        }
        let c = self.cx.iocs.get_mut(ioc);
        if c.ioprio != r.prio {
            c.ioprio = r.prio;
            c.prio_gen += 1;
            self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Prio);
        }
        ioc
    }

    fn bio_of(r: &Incoming) -> Bio {
        let (op, flags) = r.op_flags();
        let mut bio = Bio::new(r.id, TaskId(r.task), op, flags, r.sector, r.sectors);
        bio.ioprio = Some(r.prio);
        bio.cpu = r.cpu;
        bio
    }

    fn make_request(&mut self, r: &Incoming) -> RqId {
        let ioc = self.context(r);
        self.cx.iocs.get_mut(ioc).requests += 1;
        let now = self.cx.now();
        let rq = self
            .cx
            .rqs
            .alloc(Self::bio_of(r), ioc, r.prio, Era::Mq, now);
        self.sched.prepare(&mut self.cx, rq);
        rq
    }

    fn insert(&mut self, rq: RqId) {
        self.sched.inserting(&mut self.cx, rq);
        if self.hash
            && self.sched.insert_merges()
            && merge::insert_merge(&mut self.cx, self.sched, &mut self.acct, rq)
        {
            self.free_merged();
            return;
        }
        merge::enter(&mut self.cx, rq, self.hash);
        self.cx.event(Action::Insert, rq);
        self.sched.insert(&mut self.cx, rq, Insert::Sorted);
    }

    fn bio(&mut self, r: &Incoming) {
        let (bio, now) = (Self::bio_of(r), self.cx.now());
        self.tell(Action::Queue, Some(r));
        let ioc = self.context(r);
        if self.round.nomerges < 2 {
            let last = self.plugs.get(&r.task).and_then(|p| p.last()).copied();
            if let Some(rq) = last
                && self.cx.merge_ok(rq, &bio, ioc)
                && self.cx.fits(rq, &bio)
                && let Some(kind) = self.cx.merge_kind(rq, &bio)
            {
                match kind {
                    seekwell_sched::MergeKind::Back => self.cx.rqs.append_bio(rq, bio, now),
                    seekwell_sched::MergeKind::Front => self.cx.rqs.prepend_bio(rq, bio, now),
                }
                return;
            }
            let found = merge::find(&mut self.cx, self.sched, &bio, ioc, self.hash);
            if let Some((rq, kind)) = found
                && merge::merge_bio(&mut self.cx, self.sched, &mut self.acct, rq, &bio, kind)
            {
                self.free_merged();
                return;
            }
        }
        self.asleep.push_back(*r);
        self.allocate();
    }

    /// Allocates requests for waiting bios, in order. Without a scheduler, an allocated request has
    /// a driver tag. With a scheduler, there is always a free request.
    fn allocate(&mut self) {
        let tags = if self.sched.bypass() {
            self.round.depth as usize
        } else {
            usize::MAX
        };
        while self.cx.rqs.len() < tags
            && let Some(r) = self.asleep.pop_front()
        {
            let rq = self.make_request(&r);
            self.plugs.entry(r.task).or_default().push(rq);
            self.granted.push((rq, r));
        }
    }

    /// Corrects the order of allocation if it differs from the record. A recorded plug flush of a
    /// task shows that a bio of this task had a tag in the kernel. If all bios of the task still
    /// wait here, the task gets the tag of the bio that was woken last.
    fn grant_as_recorded(&mut self, task: u32) {
        if self.plugs.get(&task).is_some_and(|p| !p.is_empty()) {
            return;
        }
        let Some(i) = self.asleep.iter().position(|r| r.task == task) else {
            return;
        };
        let Some((rq, r)) = self.granted.pop().filter(|g| self.cx.rqs[g.0].bios == 1) else {
            return;
        };
        self.plugs.entry(r.task).or_default().retain(|x| *x != rq);
        self.free(rq);
        let first = self.asleep.remove(i);
        self.asleep.push_front(r);
        self.asleep.extend(first);
        self.asleep.rotate_right(1);
        self.allocate();
    }

    fn free_merged(&mut self) {
        while let Some(rq) = self.acct.freed.pop() {
            self.free(rq);
        }
    }
    fn free(&mut self, rq: RqId) {
        self.sched.finish(&mut self.cx, rq);
        let ioc = self.cx.rqs[rq].ioc;
        self.cx.iocs.get_mut(ioc).requests -= 1;
        self.cx.rqs.free(rq);
    }

    fn tags_left(&self) -> bool {
        (self.in_flight.len() as u32) < self.round.depth
    }
    fn issue_parked(&mut self) {
        while self.tags_left()
            && let Some(rq) = self.parked.pop_front()
        {
            self.issue(rq);
        }
    }

    /// Runs the hardware queue: dispatches the parked requests, then requests of the scheduler,
    /// until a request finds no tag.
    fn run(&mut self, limit: Option<usize>) {
        self.issue_parked();
        if !self.parked.is_empty() {
            return;
        }
        // Without a scheduler, all waiting requests leave in one call.
        let all = self.sched.bypass();
        while limit.is_none_or(|l| self.pulled < l) && self.sched.has_work(&self.cx, 0) {
            if self.sched.dispatch(&mut self.cx, 0, all) == 0 {
                return;
            }
            while let Some(rq) = self.cx.out.pop() {
                self.pulled += 1;
                if self.tags_left() && self.parked.is_empty() {
                    self.issue(rq);
                } else {
                    self.parked.push_back(rq);
                }
            }
            if !self.parked.is_empty() {
                return;
            }
        }
    }

    fn issue(&mut self, rq: RqId) {
        let now = self.cx.now();
        let r = &mut self.cx.rqs[rq];
        r.state = State::InFlight;
        r.issue = now;
        self.cx.in_driver += 1;
        self.in_flight.push(rq);
        self.order.push(Some(rq));
        let bios: Vec<BioId> = self.cx.rqs.bios(rq).map(|b| b.0.id).collect();
        self.out.dispatch.push((now, bios));
        let r = &self.cx.rqs[rq];
        self.out.issued.push(if self.round.by_span() {
            let op = match (r.op, r.sync) {
                (Op::Read, _) => 'R',
                (_, true) => 'S',
                _ => 'W',
            };
            Issued::Span(op, r.sector.0, r.sectors.0)
        } else {
            Issued::Id(self.cx.rqs.first_bio(rq).id.0)
        });
        self.cx.event(Action::Issue, rq);
    }

    /// Logs an event that does not belong to a request.
    fn tell(&mut self, action: Action, r: Option<&Incoming>) {
        let at = self.cx.now();
        let (op, flags) = r.map_or((Op::Read, Flags::empty()), Incoming::op_flags);
        self.cx.log.push(|| Logged {
            bio: r.map(|r| BioId(r.id)),
            task: r.map(|r| TaskId(r.task)),
            op,
            flags,
            sector: Sector(r.map_or(0, |r| r.sector)),
            sectors: Sectors(r.map_or(0, |r| r.sectors)),
            ..Logged::new(at, action)
        });
    }
    /// Stores the logged events, and the state of the scheduler after them.
    fn take_steps(&mut self) {
        let taken = self.cx.log.take();
        let state = |s: &mut String| self.sched.state(&self.cx, s);
        self.keeper.take(&mut self.out.steps, taken, state);
    }

    fn complete(&mut self, k: usize, latency_us: Option<(u64, u64)>) {
        let done = self.order.get_mut(k).and_then(Option::take);
        let Some(rq) = done.or_else(|| self.in_flight.first().copied()) else {
            return;
        };
        self.in_flight.retain(|r| *r != rq);
        if let Some(entry) = self.order.iter_mut().find(|e| **e == Some(rq)) {
            *entry = None;
        }
        if let Some((total, device)) = latency_us {
            let now = self.cx.now().0;
            let r = &mut self.cx.rqs[rq];
            r.start = Instant(now.saturating_sub(total * NSEC_PER_USEC));
            r.issue = Instant(now.saturating_sub(device * NSEC_PER_USEC));
        }
        self.cx.in_driver -= 1;
        self.cx.event(Action::Complete, rq);
        self.sched.completed(&mut self.cx, rq);
        self.free(rq);
        self.allocate();
    }
}

fn at(e: &Event) -> Instant {
    Instant::at_us(e.t_us)
}
