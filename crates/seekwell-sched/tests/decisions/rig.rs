//! A small block layer with a device. It makes all calls of the trait, with merges, pools and tags,
//! and records the decisions of the scheduler.

use super::record::{Record, numbers_in};
use super::scene::{Act, Random, Scene, Task};
use seekwell_core::{
    Bio, CgroupId, Era, Flags, Instant, IoPrio, IocId, Op, RqId, Sectors, State, TaskId, TickClock,
};
use seekwell_sched::cx::{Cgroup, TIMER_SLOTS};
use seekwell_sched::{
    BioMerge, CgroupEvent, Cx, Insert, IocEvent, Layer, MayQueue, MergeKind, QueueFacts, Scheduler,
    SchedulerInfo,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// A blk-mq queue whose scheduler returned nothing although it has work asks again after this time.
const RERUN: u64 = 3_000_000;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Act(usize),
    Submit(usize),
    /// A request and the number of its start. A returned request has another number afterwards.
    Complete(u32, u64),
    Rerun,
}

pub struct Rig<'a> {
    scene: &'a Scene,
    hash: bool,
    mq: bool,
    /// The driver may return requests to the scheduler, not only to the dispatch list.
    reinserts: bool,
    cx: Cx,
    sched: Box<dyn Scheduler>,
    tasks: Vec<Task>,
    outstanding: Vec<u64>,
    gone: Vec<bool>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    seq: u64,
    bios: u64,
    /// The end of the last bio.
    last_end: u64,
    /// The task of each bio.
    of_bio: Vec<usize>,
    /// Requests in the device, with the numbers of their starts.
    device: BTreeMap<u32, u64>,
    channels: Vec<u64>,
    arm: u64,
    random: Random,
    /// Allocated requests: async and sync.
    pools: [u32; 2],
    sleepers: VecDeque<(usize, Bio)>,
    rerun: bool,
    running: bool,
    timers: [Option<Instant>; TIMER_SLOTS],
    dispatched: u64,
    pub record: Record,
    /// Reasons, state and tunables are recorded too.
    details: bool,
    /// The longest time between two checks of the invariants, in events; 0: no checks.
    check_every: u64,
}

impl<'a> Rig<'a> {
    pub fn new(
        scene: &'a Scene,
        info: &SchedulerInfo,
        version: &str,
        era: Era,
        tunable: Option<(&str, &str)>,
    ) -> Option<Self> {
        let facts = QueueFacts {
            rotational: scene.rotational,
            depth: scene.depth,
            nr_requests: scene.requests,
            hctxs: scene.hctxs,
            cpus: scene.cpus,
            max_sectors: Sectors(scene.max_sectors),
            max_segments: scene.max_segments,
            can_stop: scene.returned > 0,
            ..QueueFacts::example(era)
        };
        let mut cx = Cx::new(facts, TickClock::new(scene.hz));
        cx.log.listen(tunable.is_none());
        let mut sched = (info.make)(&cx, version);
        if let Some((name, value)) = tunable {
            sched.store(&mut cx, name, value).ok()?;
        }
        let tasks = scene.tasks();
        let mut rig = Rig {
            scene,
            hash: (info.hash)(version),
            mq: info.layer == Layer::Mq,
            reinserts: info.name != "bfq-sq",
            cx,
            sched,
            outstanding: vec![0; tasks.len()],
            gone: vec![false; tasks.len()],
            events: BinaryHeap::new(),
            seq: 0,
            bios: 0,
            last_end: 0,
            of_bio: vec![0],
            device: BTreeMap::new(),
            channels: vec![0; scene.service.channels],
            arm: 0,
            random: Random::new(scene.seed + 77),
            pools: [0; 2],
            sleepers: VecDeque::new(),
            rerun: false,
            running: false,
            timers: [None; TIMER_SLOTS],
            dispatched: 0,
            record: Record::default(),
            details: tunable.is_none(),
            check_every: if tunable.is_none() { 32 } else { 0 },
            tasks,
        };
        for id in 1..=scene.cgroups {
            let parent = CgroupId(if id == 3 { 1 } else { 0 });
            let weight = [None, Some(200), Some(700)][id as usize % 3];
            rig.change_cgroup(id, CgroupEvent::Online, |c| {
                (c.parent, c.weight) = (parent, weight)
            });
        }
        for i in 0..rig.tasks.len() {
            let at = rig.tasks[i].start_us * 1000;
            rig.at(at, Event::Submit(i));
        }
        for (i, (us, _)) in scene.acts.iter().enumerate() {
            rig.at(us * 1000, Event::Act(i));
        }
        Some(rig)
    }

    fn at(&mut self, ns: u64, event: Event) {
        self.seq += 1;
        self.events.push(Reverse((ns, self.seq, event)));
    }
    fn now(&self) -> u64 {
        self.cx.now().since_start()
    }
    fn note(&mut self, kind: &'static str, numbers: [u64; 3]) {
        let now = self.now();
        self.record.add(now, kind, numbers);
    }

    /// Runs the scene.
    pub fn run(mut self) -> Record {
        let most = 40 * self.scene.dispatches;
        for n in 0..most {
            if self.dispatched >= self.scene.dispatches {
                break;
            }
            let timer = self.cx.next_timer().map(|t| t.0.since_start());
            let event = self.events.peek().map(|e| e.0.0);
            let Some(next) = timer.into_iter().chain(event).min() else {
                break;
            };
            self.cx.set_now(Instant::at_ns(next.max(self.now())));
            if timer == Some(next) {
                let (_, slot) = self.cx.next_timer().expect("a timer");
                self.cx.fired(slot);
                self.timers[slot as usize] = None;
                self.note("Fire", [u64::from(slot), 0, 0]);
                self.sched.timer(&mut self.cx, slot);
            } else if let Some(Reverse((_, _, event))) = self.events.pop() {
                self.event(event);
            }
            self.after();
            self.settle();
            if self.check_every > 0 && n % self.check_every == 0 {
                self.sched.check(&self.cx);
                self.note_state();
            }
        }
        self.drain();
        self.settle();
        self.note_tunables();
        self.record
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Act(i) => self.act(self.scene.acts[i].1),
            Event::Submit(i) => self.submit(i),
            Event::Complete(rq, started) => {
                if self.device.get(&rq) == Some(&started) {
                    self.complete(RqId(rq));
                }
            }
            Event::Rerun => {
                self.rerun = false;
                self.run_queue();
            }
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Prio(i, prio) => {
                self.tasks[i].prio = prio;
                if let Some(ioc) = self.cx.iocs.find(TaskId(i as u32 + 1)) {
                    let c = self.cx.iocs.get_mut(ioc);
                    (c.ioprio, c.prio_gen) = (prio, c.prio_gen + 1);
                    self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Prio);
                }
            }
            Act::Exit(i) => self.exit(i),
            Act::Move(i, to) => {
                self.tasks[i].cgroup = to;
                if let Some(ioc) = self.cx.iocs.find(TaskId(i as u32 + 1)) {
                    self.cx.iocs.get_mut(ioc).cgroup = CgroupId(to);
                    self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Cgroup);
                }
            }
            Act::Weight(id, w) => self.change_cgroup(id, CgroupEvent::Weight, |c| {
                (c.weight, c.leaf_weight) = (Some(w), Some(w / 2 + 10))
            }),
            Act::Offline(id) => {
                for i in 0..self.tasks.len() {
                    if self.tasks[i].cgroup == id {
                        self.act(Act::Move(i, 0));
                    }
                }
                self.change_cgroup(id, CgroupEvent::Offline, |c| c.online = false);
            }
            Act::Requests(n) => {
                self.cx.queue.nr_requests = n;
                self.sched.depth_changed(&mut self.cx);
            }
            Act::Drain => self.drain(),
            Act::Defaults => {
                for t in self.sched.tunables() {
                    let value = t.default.split(' ').next().unwrap_or_default();
                    let stored = self.sched.store(&mut self.cx, t.name, value);
                    self.note("Store", [u64::from(stored.is_ok()), 0, 0]);
                }
            }
        }
    }
    fn change_cgroup(&mut self, id: u32, what: CgroupEvent, change: impl FnOnce(&mut Cgroup)) {
        let cgroup = self.cx.cgroups.entry(CgroupId(id)).or_insert(Cgroup {
            parent: CgroupId::ROOT,
            weight: None,
            leaf_weight: None,
            online: true,
        });
        change(cgroup);
        self.sched.cgroup_event(&mut self.cx, CgroupId(id), what);
    }

    fn ioc(&mut self, i: usize) -> IocId {
        let id = TaskId(i as u32 + 1);
        if let Some(ioc) = self.cx.iocs.find(id) {
            return ioc;
        }
        if let Some(with) = self.tasks[i].shares.filter(|w| !self.gone[*w]) {
            let ioc = self.ioc(with);
            self.cx.iocs.share(id, ioc);
            return ioc;
        }
        let t = &self.tasks[i];
        let ioc = self.cx.iocs.create(id, t.prio, CgroupId(t.cgroup));
        let c = self.cx.iocs.get_mut(ioc);
        (c.nice, c.policy) = (t.nice, t.policy);
        self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Attach);
        ioc
    }
    fn exit(&mut self, i: usize) {
        if std::mem::replace(&mut self.gone[i], true) {
            return;
        }
        self.sleepers.retain(|s| s.0 != i);
        let id = TaskId(i as u32 + 1);
        let Some(ioc) = self.cx.iocs.find(id) else {
            return;
        };
        if self.cx.iocs.leave(id, ioc) {
            self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Exit);
            self.release(ioc);
        }
    }
    fn release(&mut self, ioc: IocId) {
        let c = self.cx.iocs.get(ioc);
        if !c.alive && c.requests == 0 {
            self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Release);
            self.cx.iocs.release(ioc);
        }
    }

    /// Submits a burst of a task.
    fn submit(&mut self, i: usize) {
        if self.gone[i] {
            return;
        }
        let mut plug = Vec::new();
        for _ in 0..self.tasks[i].burst {
            if self.tasks[i].bios == 0 || self.outstanding[i] >= self.tasks[i].outstanding {
                break;
            }
            self.tasks[i].bios -= 1;
            self.outstanding[i] += 1;
            let (op, mut flags, sector, sectors) = self.tasks[i].next_bio(self.last_end);
            self.last_end = sector + u64::from(sectors);
            if self.mq && op == Op::Write && self.random.percent(2) {
                flags |= self.random.pick(&[Flags::FUA, Flags::FUA, Flags::PREFLUSH]);
            }
            // The flags that the layer of this era removes.
            flags -= match self.cx.queue.era {
                Era::K2_6_18 => Flags::META | Flags::PRIO | Flags::NOIDLE,
                Era::K2_6_24 => Flags::PRIO | Flags::NOIDLE,
                _ => Flags::empty(),
            };
            self.bios += 1;
            self.of_bio.push(i);
            let mut bio = Bio::new(self.bios, TaskId(i as u32 + 1), op, flags, sector, sectors);
            bio.cpu = self.tasks[i].cpu;
            bio.cgroup = CgroupId(self.tasks[i].cgroup);
            bio.segment = self.random.pick(&[8, 16, 128]);
            if self.random.percent(1) {
                bio.ioprio = Some(IoPrio::be(self.random.below(8) as u8));
            }
            if !self.try_merge(&bio) && !self.make(&bio, &mut plug) {
                self.sleepers.push_back((i, bio));
            }
            if !self.scene.plugged {
                self.unplug(&mut plug);
            }
        }
        self.unplug(&mut plug);
    }

    fn compatible(&self, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
        let r = &self.cx.rqs[rq];
        r.mergeable() && r.op == bio.op && (!self.mq || self.cx.merge_ok(rq, bio, ioc))
    }
    fn find(&mut self, bio: &Bio, ioc: IocId) -> Option<(RqId, MergeKind)> {
        match self.sched.bio_merge(&mut self.cx, bio, ioc) {
            BioMerge::Found(rq, kind) => return Some((rq, kind)),
            BioMerge::No => return None,
            BioMerge::UseElevator => {}
        }
        if let Some(last) = self.cx.merge.last
            && self.compatible(last, bio, ioc)
            && self.sched.allow_merge(&mut self.cx, last, bio, ioc)
            && let Some(kind) = self.cx.merge_kind(last, bio)
        {
            return Some((last, kind));
        }
        if self.hash {
            let rqs = &self.cx.rqs;
            let hit = self.cx.merge.find(bio.sector, |r| rqs[r].mergeable());
            if let Some(rq) = hit
                && self.compatible(rq, bio, ioc)
                && self.sched.allow_merge(&mut self.cx, rq, bio, ioc)
            {
                return Some((rq, MergeKind::Back));
            }
        }
        let rq = self.sched.find_front(&mut self.cx, bio, ioc)?;
        (self.cx.rqs[rq].sector == bio.end()
            && self.compatible(rq, bio, ioc)
            && self.sched.allow_merge(&mut self.cx, rq, bio, ioc))
        .then_some((rq, MergeKind::Front))
    }
    fn try_merge(&mut self, bio: &Bio) -> bool {
        let i = bio.task.0 as usize - 1;
        let ioc = self.ioc(i);
        if self.cx.nr_sorted == 0 || !seekwell_sched::admit::bio_mergeable(bio) {
            return false;
        }
        let found = self.find(bio, ioc);
        self.after();
        let Some((rq, kind)) = found else {
            return false;
        };
        if !self.cx.fits(rq, bio) {
            self.cx.rqs[rq].flags |= Flags::NOMERGE;
            if self.cx.merge.last == Some(rq) {
                self.cx.merge.last = None;
            }
            return false;
        }
        self.note(
            "Merge",
            [self.id(rq), bio.id.0, u64::from(kind == MergeKind::Front)],
        );
        let now = self.cx.now();
        let (cx, sched) = (&mut self.cx, &mut self.sched);
        let pair = if kind == MergeKind::Back {
            cx.rqs.append_bio(rq, *bio, now);
            sched.latter(cx, rq).map(|n| (rq, n))
        } else {
            cx.rqs.prepend_bio(rq, *bio, now);
            sched.former(cx, rq).map(|p| (p, rq))
        };
        match pair.filter(|(a, b)| self.joinable(*a, *b)) {
            Some((kept, gone)) => {
                self.note("Join", [self.id(kept), self.id(gone), 0]);
                self.cx.rqs.join(kept, gone);
                self.sched.joined(&mut self.cx, kept, gone);
                self.rehash(kept);
                self.cx.merge.forget(gone);
                self.cx.nr_sorted -= 1;
                self.cx.merge.last = Some(kept);
                self.free(gone);
            }
            None => {
                self.sched.merged(&mut self.cx, rq, kind);
                if kind == MergeKind::Back {
                    self.rehash(rq);
                }
                self.cx.merge.last = Some(rq);
            }
        }
        self.after();
        true
    }
    fn rehash(&mut self, rq: RqId) {
        if self.cx.merge.hashed(rq) {
            self.cx.merge.del(rq);
            let end = self.cx.rqs[rq].end();
            self.cx.merge.add(rq, end);
        }
    }
    fn joinable(&self, a: RqId, b: RqId) -> bool {
        let (x, y) = (&self.cx.rqs[a], &self.cx.rqs[b]);
        x.end() == y.sector
            && x.op == y.op
            && x.mergeable()
            && y.mergeable()
            && x.sectors.0 + y.sectors.0 <= self.cx.queue.max_sectors.0
            && self.cx.lists_fit(x.segments, y.segments)
            && (!self.mq || (x.ioprio == y.ioprio && x.cgroup == y.cgroup))
    }

    /// Allocates a request for a bio. Returns false if the bio must wait.
    fn make(&mut self, bio: &Bio, plug: &mut Vec<RqId>) -> bool {
        let i = bio.task.0 as usize - 1;
        let (era, now, ioc) = (self.cx.queue.era, self.cx.now(), self.ioc(i));
        let sync = usize::from(bio.is_sync(era));
        let full = |used: u32, limit: u32| used >= limit;
        let refused = if self.mq {
            let limit = self.sched.limit_depth(&mut self.cx, bio, ioc);
            if let Some(limit) = limit {
                self.note("Limit", [bio.id.0, u64::from(limit), 0]);
            }
            let most = limit.unwrap_or(u32::MAX).min(self.cx.queue.nr_requests);
            full(self.pools[0] + self.pools[1], most)
        } else {
            let verdict = self.sched.may_queue(&mut self.cx, bio, ioc);
            if verdict != MayQueue::May {
                self.note("Queue", [bio.id.0, u64::from(verdict == MayQueue::Must), 0]);
            }
            verdict == MayQueue::No
                || (verdict == MayQueue::May && full(self.pools[sync], self.cx.queue.nr_requests))
        };
        if refused {
            return false;
        }
        self.pools[sync] += 1;
        let c = self.cx.iocs.get_mut(ioc);
        c.requests += 1;
        let prio = bio.ioprio.unwrap_or_else(|| c.effective(era));
        let rq = self.cx.rqs.alloc(*bio, ioc, prio, era, now);
        self.cx.rqs[rq].hctx = self.cx.queue.hctx_of(bio.cpu);
        self.sched.prepare(&mut self.cx, rq);
        plug.push(rq);
        true
    }
    fn unplug(&mut self, plug: &mut Vec<RqId>) {
        if plug.is_empty() {
            return;
        }
        for rq in plug.drain(..) {
            if self.mq {
                self.sched.inserting(&mut self.cx, rq);
                if self.scene.plugged && self.sched.insert_merges() && self.insert_merge(rq) {
                    continue;
                }
            }
            let how = match self.cx.rqs[rq].flags.contains(Flags::FUA) && self.random.percent(30) {
                true => Insert::AtHead,
                false => Insert::Sorted,
            };
            self.enter(rq, how);
        }
        self.after();
        self.run_queue();
    }
    fn enter(&mut self, rq: RqId, how: Insert) {
        self.cx.rqs[rq].state = State::Sorted;
        self.cx.entered(rq);
        if self.cx.rqs[rq].mergeable() && how == Insert::Sorted {
            if self.hash {
                let end = self.cx.rqs[rq].end();
                self.cx.merge.add(rq, end);
            }
            if self.cx.merge.last.is_none() {
                self.cx.merge.last = Some(rq);
            }
        }
        self.sched.insert(&mut self.cx, rq, how);
        if self.sched.urgent() {
            self.note("Urgent", [self.id(rq), 0, 0]);
            self.stop_a_write();
        }
    }
    fn insert_merge(&mut self, rq: RqId) -> bool {
        let (start, rqs) = (self.cx.rqs[rq].sector, &self.cx.rqs);
        let hit = self.cx.merge.find(start, |r| r != rq && rqs[r].mergeable());
        let Some(into) = hit.filter(|i| self.joinable(*i, rq)) else {
            return false;
        };
        self.note("Swallow", [self.id(into), self.id(rq), 0]);
        self.cx.rqs.join(into, rq);
        self.sched.insert_merged(&mut self.cx, into, rq);
        self.rehash(into);
        self.cx.merge.last = Some(into);
        self.free(rq);
        true
    }
    fn free(&mut self, rq: RqId) {
        self.sched.finish(&mut self.cx, rq);
        let (ioc, sync) = (self.cx.rqs[rq].ioc, self.cx.rqs[rq].sync);
        self.pools[usize::from(sync)] -= 1;
        self.cx.rqs.free(rq);
        self.cx.iocs.get_mut(ioc).requests -= 1;
        self.release(ioc);
    }

    fn id(&self, rq: RqId) -> u64 {
        self.cx.rqs.first_bio(rq).id.0
    }

    fn complete(&mut self, rq: RqId) {
        self.device.remove(&rq.0);
        self.cx.in_driver -= 1;
        self.sched.completed(&mut self.cx, rq);
        self.after();
        let done: Vec<usize> = self
            .cx
            .rqs
            .bios(rq)
            .map(|b| self.of_bio[b.0.id.0 as usize])
            .collect();
        self.free(rq);
        for i in done {
            self.outstanding[i] -= 1;
            if self.gone[i] {
                continue;
            }
            if self.tasks[i].bios > 0 {
                let at = self.now() + 1000 * self.tasks[i].think(self.scene.exact);
                self.at(at, Event::Submit(i));
            } else if self.outstanding[i] == 0 && self.tasks[i].exits {
                self.exit(i);
            }
        }
        for _ in 0..self.sleepers.len() {
            let Some((i, bio)) = self.sleepers.pop_front() else {
                break;
            };
            let mut plug = Vec::new();
            if !self.make(&bio, &mut plug) {
                self.sleepers.push_front((i, bio));
                break;
            }
            self.unplug(&mut plug);
        }
        if self.mq {
            self.cx.kick();
        } else {
            self.run_queue();
        }
    }

    fn after(&mut self) {
        if self.cx.take_run() {
            self.run_queue();
        }
        self.note_timers();
    }
    fn settle(&mut self) {
        for _ in 0..20 {
            if !self.cx.take_kick() {
                break;
            }
            self.run_queue();
        }
        self.note_timers();
        for e in std::mem::take(&mut self.cx.log.events) {
            if let Some(rule) = e.rule {
                let text = e.text(|t| t.0.to_string());
                self.note(rule.id, [numbers_in(&text) >> 40, 0, 0]);
            }
        }
    }
    fn note_timers(&mut self) {
        for slot in 0..TIMER_SLOTS {
            let at = self.cx.armed_at(slot as u8);
            if std::mem::replace(&mut self.timers[slot], at) != at {
                let at = at.map_or(0, Instant::since_start);
                self.note("Arm", [slot as u64, at, 0]);
            }
        }
    }
    fn note_state(&mut self) {
        let mut text = String::new();
        self.sched.state(&self.cx, &mut text);
        let work = (0..self.scene.hctxs).map(|h| u64::from(self.sched.has_work(&self.cx, h)));
        let work = work.fold(0, |all, w| 2 * all + w);
        self.note("State", [numbers_in(&text) >> 40, work, 0]);
    }
    fn note_tunables(&mut self) {
        if !self.details {
            return;
        }
        for t in self.sched.tunables() {
            let shown = self.sched.show(&self.cx, t.name).unwrap_or_default();
            self.note("Show", [numbers_in(&shown) >> 40, 0, 0]);
        }
    }

    fn run_queue(&mut self) {
        if std::mem::replace(&mut self.running, true) {
            return;
        }
        for hctx in 0..self.scene.hctxs {
            self.run_hctx(hctx);
        }
        self.running = false;
    }
    fn run_hctx(&mut self, hctx: u16) {
        while self.device.len() < self.scene.depth as usize {
            if self.cx.out.is_empty() {
                if self.mq && !self.sched.has_work(&self.cx, hctx) {
                    return;
                }
                let n = self.sched.dispatch(&mut self.cx, hctx, false);
                self.cx.take_run();
                if n == 0 {
                    if self.mq && !std::mem::replace(&mut self.rerun, true) {
                        let at = self.now() + RERUN;
                        self.at(at, Event::Rerun);
                    }
                    return;
                }
                self.note("Batch", [u64::from(n), u64::from(hctx), 0]);
            }
            let rq = self.cx.out.pop().expect("a dispatched request");
            self.start(rq);
        }
    }
    fn start(&mut self, rq: RqId) {
        self.cx.rqs[rq].state = State::Started;
        self.cx.in_driver += 1;
        if !self.mq {
            self.sched.activate(&mut self.cx, rq);
        }
        let end = self.cx.rqs[rq].end();
        let out = &mut self.cx.out;
        if out.boundary_rq.is_none() || out.boundary_rq == Some(rq) {
            (out.boundary, out.boundary_rq) = (end, None);
        }
        let now = self.cx.now();
        let r = &mut self.cx.rqs[rq];
        (r.state, r.issue) = (State::InFlight, now);
        let (sector, sectors) = (r.sector.0, u64::from(r.sectors.0));
        self.dispatched += 1;
        self.note("Dispatch", [self.id(rq), sector, sectors]);
        self.seq += 1;
        let started = self.seq;
        self.device.insert(rq.0, started);
        let again = self.scene.returned;
        if again > 0 && self.dispatched.is_multiple_of(again) {
            return self.give_back(rq);
        }
        let done = self.serve(sector, sectors);
        self.at(done, Event::Complete(rq.0, started));
    }
    /// Returns the completion time of a request.
    fn serve(&mut self, sector: u64, sectors: u64) -> u64 {
        let s = self.scene.service;
        let far = self.arm.abs_diff(sector).min(1 << 25);
        self.arm = sector + sectors;
        let seek = match far {
            0 => 0,
            _ if self.scene.exact => s.seek_us * u64::from(far > 8192),
            _ => s.seek_us * (1000 + (far >> 13)) / 5096,
        };
        let time = 1000 * (s.base_us + seek) + sectors * s.ns_per_sector;
        let now = self.now();
        let channel = self.channels.iter_mut().min().expect("a channel");
        *channel = now.max(*channel) + time;
        *channel
    }

    /// The driver returns a request that it has started.
    fn give_back(&mut self, rq: RqId) {
        self.device.remove(&rq.0);
        self.cx.in_driver -= 1;
        self.note("Return", [self.id(rq), 0, 0]);
        if self.mq {
            self.sched.requeued(&mut self.cx, rq);
            self.enter(rq, Insert::Requeue);
        } else if self.reinserts && self.random.percent(50) {
            self.reinsert(rq);
        } else {
            self.sched.deactivate(&mut self.cx, rq);
            self.cx.rqs[rq].state = State::Dispatched;
            self.cx.rqs[rq].flags |= Flags::BARRIER;
            self.cx.out.push_head(rq);
        }
    }
    /// The device stops its oldest write for an urgent request.
    fn stop_a_write(&mut self) {
        if !self.cx.queue.can_stop || self.mq {
            return;
        }
        let rqs = &self.cx.rqs;
        let mut writes = self
            .device
            .iter()
            .filter(|d| rqs[RqId(*d.0)].op == Op::Write);
        let Some((rq, _)) = writes.next() else {
            return;
        };
        let rq = RqId(*rq);
        self.device.remove(&rq.0);
        self.cx.in_driver -= 1;
        self.note("Stop", [self.id(rq), 0, 0]);
        self.reinsert(rq);
    }
    fn reinsert(&mut self, rq: RqId) {
        self.sched.deactivate(&mut self.cx, rq);
        self.cx.rqs[rq].state = State::Sorted;
        self.cx.nr_sorted += 1;
        self.sched.insert(&mut self.cx, rq, Insert::Reinsert);
    }
    /// All requests leave the scheduler, as before a switch.
    fn drain(&mut self) {
        for hctx in 0..self.scene.hctxs {
            for _ in 0..10_000 {
                let before = self.cx.out.len();
                let n = self.sched.dispatch(&mut self.cx, hctx, true);
                self.cx.take_run();
                if n == 0 {
                    break;
                }
                self.note("Force", [u64::from(n), 0, 0]);
                if self.cx.out.len() == before {
                    break;
                }
            }
        }
        let order: Vec<RqId> = self.cx.out.iter().collect();
        for rq in order {
            self.note("Drained", [self.id(rq), 0, 0]);
        }
    }
}
