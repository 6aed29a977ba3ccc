//! A block layer reduced to the calls that a scheduler sees, and a device with the same time for
//! each request. Together they can compare a scheduler with a worked example without any other
//! crate.
//!
//! Not modelled: merging, plugs, pools and tags, flushes, and requests that the driver returns.

use seekwell_core::{
    Bio, CgroupId, Era, Flags, Instant, IoPrio, IocId, Nanos, Op, RqId, State, TaskId, TickClock,
};
use seekwell_sched::{Cx, Insert, IocEvent, Layer, QueueFacts, Scheduler, find};
use std::collections::{BTreeMap, VecDeque};

/// A blk-mq queue whose scheduler returned nothing although it has work asks again after this time.
const RERUN: Nanos = Nanos::from_ms(3);

/// The task whose requests teach the scheduler, and the first of their ids.
const TEACHER: u32 = 99;
const LESSONS: u64 = 900_000;

/// When a request arrives.
#[derive(Clone, Copy, Debug)]
enum When {
    At(u64),
    /// The id of another request, and the time in us from its completion to the arrival.
    After(u64, u64),
}

/// A request as it arrives.
#[derive(Clone, Copy, Debug)]
struct Row {
    when: When,
    id: u64,
    task: u32,
    op: Op,
    flags: Flags,
    sector: u64,
    sectors: u32,
}

/// Conditions of an example.
#[derive(Clone, Debug)]
pub struct Bench {
    elevator: &'static str,
    hz: u32,
    depth: usize,
    service_us: u64,
    rotational: bool,
    /// No request is dispatched before the requests of this time have arrived, us.
    hold_us: Option<u64>,
    /// The queue runs once in an instant, after all its completions and arrivals.
    together: bool,
    /// The time at which the rows begin, us.
    begins_us: u64,
    tunables: Vec<(&'static str, &'static str)>,
    prios: BTreeMap<u32, IoPrio>,
    exits: Vec<(u64, u32)>,
    writes: Vec<(u64, &'static str, &'static str)>,
}

impl Bench {
    /// A rotating disk of depth 1 at HZ 1000 that takes `service_us` per request.
    pub fn serial(elevator: &'static str, service_us: u64) -> Self {
        Bench {
            elevator,
            hz: 1000,
            depth: 1,
            service_us,
            rotational: true,
            hold_us: None,
            together: false,
            begins_us: 0,
            tunables: Vec::new(),
            prios: BTreeMap::new(),
            exits: Vec::new(),
            writes: Vec::new(),
        }
    }
    /// All requests are dispatched together at `at_us`, and none completes meanwhile.
    pub fn drained(elevator: &'static str, at_us: u64) -> Self {
        Bench {
            depth: usize::MAX,
            service_us: 1_000_000_000,
            hold_us: Some(at_us),
            ..Self::serial(elevator, 0)
        }
    }
    /// The requests of the first instant all arrive before the first dispatch.
    pub fn hold(&self) -> Self {
        Bench {
            hold_us: Some(self.begins_us),
            ..self.clone()
        }
    }
    /// The queue runs once in an instant, after all its completions and arrivals.
    pub fn together(mut self) -> Self {
        self.together = true;
        self
    }
    /// BFQ needs about thirty requests to learn that a device does not queue. Here forty requests
    /// of the IDLE class teach it, and the example begins at `at_us`. The results leave those
    /// requests out.
    pub fn taught(mut self, at_us: u64) -> Self {
        self.begins_us = at_us;
        self.exits.push((at_us / 2, TEACHER));
        let class = seekwell_core::Class::Idle;
        self.prios.insert(TEACHER, IoPrio { class, level: 7 });
        self
    }
    pub fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }
    pub fn flash(mut self) -> Self {
        self.rotational = false;
        self
    }
    pub fn hz(mut self, hz: u32) -> Self {
        self.hz = hz;
        self
    }
    pub fn set(mut self, name: &'static str, value: &'static str) -> Self {
        self.tunables.push((name, value));
        self
    }
    pub fn prio(mut self, task: u32, prio: IoPrio) -> Self {
        self.prios.insert(task, prio);
        self
    }
    pub fn exit(mut self, at_us: u64, task: u32) -> Self {
        self.exits.push((at_us, task));
        self
    }
    /// Writes a tunable while the example runs.
    pub fn write(mut self, at_us: u64, name: &'static str, value: &'static str) -> Self {
        self.writes.push((at_us, name, value));
        self
    }

    /// The order of the dispatches, as `id id id`.
    pub fn order(&self, rows: &str) -> String {
        let ids: Vec<_> = self
            .run(rows)
            .dispatched
            .iter()
            .map(|d| d.1.to_string())
            .collect();
        ids.join(" ")
    }
    /// Like [`Bench::order`] with times in ms: `id@ms id@ms`, and `T@ms` for a timer of the
    /// scheduler.
    pub fn times(&self, rows: &str) -> String {
        let done = self.run(rows);
        let mut all: Vec<(u64, bool, String)> = Vec::new();
        all.extend(
            done.timers
                .iter()
                .map(|t| (*t, false, format!("T@{}", ms(*t)))),
        );
        let sent = done.dispatched.iter();
        all.extend(sent.map(|(t, id)| (*t, true, format!("{id}@{}", ms(*t)))));
        all.sort_by_key(|e| (e.0, e.1));
        let words: Vec<_> = all.into_iter().map(|e| e.2).collect();
        words.join(" ")
    }
    /// `rows`: `when id task op sector[+n]; ...`. `when` is in us, or `@ID+US` for that long after
    /// the completion of another request. Ops: R read, W async write, S sync write, N sync write
    /// with NOIDLE, P read with META and PRIO.
    pub fn run(&self, rows: &str) -> Ran {
        let mut run = Run::new(self, rows);
        run.go();
        let begins = self.begins_us;
        run.dispatched.retain(|d| d.1 < LESSONS);
        run.dispatched.iter_mut().for_each(|d| d.0 -= begins);
        run.timers.retain(|t| *t > begins);
        run.timers.iter_mut().for_each(|t| *t -= begins);
        run.reasons.retain(|r| r.0 >= begins);
        Ran {
            dispatched: run.dispatched,
            timers: run.timers,
            reasons: run.reasons,
        }
    }
}

fn ms(us: u64) -> String {
    (us as f64 / 1000.0).to_string()
}

fn row(text: &str) -> Row {
    let words: Vec<_> = text.split_whitespace().collect();
    let [when, id, task, op, place] = words[..] else {
        panic!("a row is `when id task op sector[+n]`, not {text:?}");
    };
    let number = |t: &str| {
        t.parse::<u64>()
            .unwrap_or_else(|_| panic!("{t:?} in {text:?}"))
    };
    let when = match when.strip_prefix('@').and_then(|w| w.split_once('+')) {
        Some((id, after)) => When::After(number(id), number(after)),
        None => When::At(number(when)),
    };
    let (op, flags) = match op {
        "R" => (Op::Read, Flags::empty()),
        "P" => (Op::Read, Flags::META | Flags::PRIO),
        "W" => (Op::Write, Flags::empty()),
        "S" => (Op::Write, Flags::SYNC),
        "N" => (Op::Write, Flags::SYNC | Flags::NOIDLE),
        _ => panic!("op {op:?} in {text:?}"),
    };
    let (sector, sectors) = place.split_once('+').unwrap_or((place, "8"));
    Row {
        when,
        id: number(id),
        task: number(task) as u32,
        op,
        flags,
        sector: number(sector),
        sectors: number(sectors) as u32,
    }
}

/// The results of an example.
#[derive(Debug)]
pub struct Ran {
    /// Time in us and id.
    pub dispatched: Vec<(u64, u64)>,
    /// Times in us.
    pub timers: Vec<u64>,
    /// Time in us, rule and details of all reasons.
    pub reasons: Vec<(u64, &'static str, String)>,
}

impl Ran {
    /// The number of reasons that name this rule.
    pub fn named(&self, rule: &str) -> usize {
        self.reasons.iter().filter(|r| r.1 == rule).count()
    }
}

struct Run<'a> {
    with: &'a Bench,
    cx: Cx,
    sched: Box<dyn Scheduler>,
    mq: bool,
    iocs: BTreeMap<u32, IocId>,
    /// Rows whose time is known, by time and place in the list.
    coming: BTreeMap<(u64, usize), Row>,
    /// Rows that follow the completion of a request, by the id of that request.
    following: BTreeMap<u64, Vec<(usize, u64, Row)>>,
    exits: Vec<(u64, u32)>,
    writes: Vec<(u64, &'static str, &'static str)>,
    /// Requests in the device: completion time and request.
    device: VecDeque<(u64, RqId)>,
    rerun_us: Option<u64>,
    /// Requests of this instant may still arrive (`together`), and the queue must run after them.
    arriving: bool,
    must_run: bool,
    /// Dispatching has not started.
    held: bool,
    dispatched: Vec<(u64, u64)>,
    timers: Vec<u64>,
    reasons: Vec<(u64, &'static str, String)>,
}

impl<'a> Run<'a> {
    fn new(with: &'a Bench, rows: &str) -> Self {
        let (info, version, era) = find(with.elevator).expect("a scheduler");
        let facts = QueueFacts {
            rotational: with.rotational,
            depth: with.depth.min(1 << 16) as u32,
            ..QueueFacts::example(era)
        };
        let mut cx = Cx::new(facts, TickClock::new(with.hz));
        cx.log.listen(true);
        let mut sched = (info.make)(&cx, version);
        for (name, value) in &with.tunables {
            sched.store(&mut cx, name, value).expect("a tunable");
        }
        let rows = rows.split(';').map(str::trim).filter(|r| !r.is_empty());
        let lesson = |i| row(&format!("0 {} {TEACHER} R {}", LESSONS + i, 100 + i * 2000));
        let lessons: Vec<_> = (0..40).filter(|_| with.begins_us > 0).map(lesson).collect();
        let later = |text: &str| {
            let mut row = row(text);
            if let When::At(t) = &mut row.when {
                *t += with.begins_us;
            }
            row
        };
        let (mut coming, mut following) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for (i, row) in lessons.into_iter().chain(rows.map(later)).enumerate() {
            match row.when {
                When::At(t) => _ = coming.insert((t, i), row),
                When::After(id, us) => following.entry(id).or_default().push((i, us, row)),
            }
        }
        Run {
            with,
            cx,
            sched,
            mq: info.layer == Layer::Mq,
            iocs: BTreeMap::new(),
            coming,
            following,
            exits: with.exits.clone(),
            writes: (with.writes.iter())
                .map(|w| (w.0 + with.begins_us, w.1, w.2))
                .collect(),
            device: VecDeque::new(),
            rerun_us: None,
            arriving: false,
            must_run: false,
            held: with.hold_us.is_some(),
            dispatched: Vec::new(),
            timers: Vec::new(),
            reasons: Vec::new(),
        }
    }
    fn now_us(&self) -> u64 {
        self.cx.now().since_start() / 1000
    }

    fn go(&mut self) {
        let rows = self.following.values().map(Vec::len).sum::<usize>() + self.coming.len();
        let few = rows < 200;
        let mut steps = 0u32;
        for _ in 0..100_000 {
            let rows = self.coming.keys().next().map(|k| k.0);
            let timer = self
                .cx
                .next_timer()
                .map(|t| t.0.since_start().div_ceil(1000));
            let next = rows
                .into_iter()
                .chain(self.device.front().map(|d| d.0))
                .chain(timer)
                .chain(self.rerun_us)
                .chain(self.exits.iter().map(|e| e.0))
                .chain(self.writes.iter().map(|w| w.0))
                .chain(self.with.hold_us.filter(|_| self.held))
                .min();
            let Some(next) = next else {
                assert!(self.following.is_empty(), "requests that never come");
                return;
            };
            let next = next.max(self.now_us());
            if next >= 900_000_000 {
                return;
            }
            self.cx.set_now(Instant::at_us(next));
            self.step(next);
            // With many requests the invariants are checked only now and then.
            steps += 1;
            if few || steps.is_multiple_of(16) {
                self.sched.check(&self.cx);
            }
        }
        panic!("it never ends");
    }

    fn step(&mut self, now: u64) {
        self.arriving = self.with.together;
        while self.device.front().is_some_and(|d| d.0 <= now) {
            let (_, rq) = self.device.pop_front().expect("a request");
            self.complete(now, rq);
        }
        while let Some((at, slot)) = self.cx.next_timer().filter(|t| t.0 <= self.cx.now()) {
            assert!(at <= self.cx.now());
            self.cx.fired(slot);
            self.timers.push(now);
            self.sched.timer(&mut self.cx, slot);
            self.after_callback();
        }
        if self.rerun_us.take_if(|t| *t <= now).is_some() {
            self.run_queue();
        }
        self.settle();
        while let Some(first) = self.coming.first_entry()
            && first.key().0 <= now
        {
            let row = first.remove();
            self.submit(row);
            self.settle();
        }
        self.arriving = false;
        if std::mem::take(&mut self.must_run) {
            self.run_queue();
            self.settle();
        }
        while let Some(i) = self.exits.iter().position(|e| e.0 <= now) {
            let (_, task) = self.exits.remove(i);
            let ioc = self.iocs[&task];
            self.cx.iocs.leave(TaskId(task), ioc);
            self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Exit);
            self.after_callback();
            self.settle();
        }
        while let Some(i) = self.writes.iter().position(|w| w.0 <= now) {
            let (_, name, value) = self.writes.remove(i);
            self.sched
                .store(&mut self.cx, name, value)
                .expect("a tunable");
        }
        if self.held && self.with.hold_us == Some(now) {
            self.held = false;
            self.run_queue();
            self.settle();
        }
    }

    fn ioc(&mut self, task: u32) -> IocId {
        if let Some(ioc) = self.iocs.get(&task) {
            return *ioc;
        }
        let prio = self.with.prios.get(&task).copied().unwrap_or(IoPrio::NONE);
        let ioc = self.cx.iocs.create(TaskId(task), prio, CgroupId::ROOT);
        self.iocs.insert(task, ioc);
        self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Attach);
        ioc
    }
    fn submit(&mut self, row: Row) {
        let ioc = self.ioc(row.task);
        let task = TaskId(row.task);
        let bio = Bio::new(row.id, task, row.op, row.flags, row.sector, row.sectors);
        let (era, now): (Era, _) = (self.cx.queue.era, self.cx.now());
        let prio = self.cx.iocs.get(ioc).effective(era);
        let rq = self.cx.rqs.alloc(bio, ioc, prio, era, now);
        self.sched.prepare(&mut self.cx, rq);
        self.cx.rqs[rq].state = State::Sorted;
        self.cx.nr_sorted += 1;
        if self.mq {
            self.sched.inserting(&mut self.cx, rq);
        }
        self.sched.insert(&mut self.cx, rq, Insert::Sorted);
        self.after_callback();
        self.run_queue();
    }
    fn complete(&mut self, now: u64, rq: RqId) {
        let id = self.cx.rqs.first_bio(rq).id.0;
        for (i, us, row) in self.following.remove(&id).into_iter().flatten() {
            self.coming.insert((now + us, i), row);
        }
        self.cx.in_driver -= 1;
        self.sched.completed(&mut self.cx, rq);
        self.after_callback();
        self.sched.finish(&mut self.cx, rq);
        self.cx.rqs.free(rq);
        if self.mq {
            self.cx.kick();
        } else {
            self.run_queue();
        }
    }
    fn after_callback(&mut self) {
        if self.cx.take_run() {
            self.run_queue();
        }
    }
    fn settle(&mut self) {
        while self.cx.take_kick() {
            self.run_queue();
        }
        let now = self.now_us();
        for e in std::mem::take(&mut self.cx.log.events) {
            if let Some(rule) = e.rule {
                let text = e.text(|t| format!("process {}", t.0));
                self.reasons.push((now, rule.id, text));
            }
        }
    }

    fn run_queue(&mut self) {
        if self.arriving {
            self.must_run = true;
            return;
        }
        let now = self.now_us();
        if self.held && now >= self.with.begins_us {
            return;
        }
        while self.device.len() < self.with.depth {
            if self.cx.out.is_empty() {
                if self.mq && !self.sched.has_work(&self.cx, 0) {
                    return;
                }
                let n = self.sched.dispatch(&mut self.cx, 0, false);
                self.cx.take_run();
                if n == 0 {
                    self.rerun_us = self.mq.then_some(now + RERUN.as_us());
                    return;
                }
            }
            let rq = self.cx.out.pop().expect("a dispatched request");
            self.issue(now, rq);
        }
    }
    fn issue(&mut self, now: u64, rq: RqId) {
        self.cx.rqs[rq].state = State::Started;
        self.cx.in_driver += 1;
        if !self.mq {
            self.sched.activate(&mut self.cx, rq);
        }
        let end = self.cx.rqs[rq].end();
        let out = &mut self.cx.out;
        if out.boundary_rq.is_none() || out.boundary_rq == Some(rq) {
            out.boundary = end;
            out.boundary_rq = None;
        }
        let at = self.cx.now();
        let r = &mut self.cx.rqs[rq];
        r.state = State::InFlight;
        r.issue = at;
        let free = match self.device.back() {
            Some(d) => d.0.max(now),
            None => now,
        };
        self.device.push_back((free + self.with.service_us, rq));
        self.dispatched.push((now, self.cx.rqs.first_bio(rq).id.0));
    }
}
