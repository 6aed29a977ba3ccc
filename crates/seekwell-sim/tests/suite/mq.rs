//! Requirements for every blk-mq scheduler (and `none`) and for the layer, for every input. Each
//! bio completes exactly once, merges keep bytes and limits, tags are returned, and nothing gets
//! stuck. Plugs, requeues, resizes and switches during I/O lose nothing.

use crate::near::{Last, next_to};
use crate::versions::{Version, each, versions};
use proptest::prelude::*;
use seekwell_block::{MqDriver, MqQueue};
use seekwell_core::{
    Accept, Bio, BioDone, BioSink, CgroupId, Command, Control, Device, DeviceFacts, Done, Era,
    Flags, Instant, IoCostModel, IoCostQos, IoMaxLimits, IoPrio, Nanos, Op, Sector, Sectors, State,
    TaskId, TickClock,
};
use seekwell_microscope::mq::BenchDevice;
use seekwell_sched::{Cx, Kind, Layer, QueueFacts, Scheduler, StoreError};
use std::collections::BTreeMap;

const TASKS: u32 = 6;

/// A device that checks and counts its commands; `inside` holds the commands without an answer.
struct Auditor {
    inner: BenchDevice,
    max_sectors: u32,
    inside: BTreeMap<u32, u64>,
    sectors: u64,
}

impl Device for Auditor {
    fn accept(&mut self, now: Instant, c: Command) -> Accept {
        let a = self.inner.accept(now, c);
        if a == Accept::Accepted {
            assert!(c.sectors.0 <= self.max_sectors, "I5: beyond max_sectors");
            let n = u64::from(c.sectors.0);
            let twice = self.inside.insert(c.id, n);
            assert!(twice.is_none(), "I3: dispatched twice");
            self.sectors += n;
        }
        a
    }
    fn next_event(&self) -> Option<Instant> {
        self.inner.next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        let before = out.len();
        self.inner.advance(to, out);
        for d in &out[before..] {
            self.inside.remove(&d.id);
        }
    }
    fn facts(&self) -> &DeviceFacts {
        self.inner.facts()
    }
    fn stop(&mut self, now: Instant, id: u32) -> Option<Sectors> {
        let stopped = self.inner.stop(now, id)?;
        self.sectors -= self.inside.remove(&id).expect("stops what is inside");
        Some(stopped)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Io {
        task: u32,
        kind: u8,
        place: u64,
        n: u32,
        cpu: u16,
        wait_us: u32,
        near: u8,
    },
    Plug(u32),
    Unplug(u32),
    Sleep(u32),
    Exit(u32),
    Prio(u32, u64, u64),
    Switch(usize),
    Resize(u32),
    Requeue(usize),
    Tunable(usize, bool),
    Target(i64),
    DirtySleep(u32),
    IoMax(u32, usize),
    IoLatency(u32, usize),
    IoWeight(u32, u32),
    IoCost(usize),
    Move(u32, u32),
    Gone(u32),
    Pause(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let task = 0u32..TASKS;
    let wait = prop_oneof![3 => Just(0u32), 1 => 1u32..3000];
    prop_oneof![
        24 => (task.clone(), 0u8..13, 0u64..300, 1u32..6, 0u16..4, wait, 0u8..4).prop_map(
            |(task, kind, place, n, cpu, wait_us, near)| {
                Step::Io { task, kind, place, n, cpu, wait_us, near }
            }
        ),
        2 => task.clone().prop_map(Step::Plug),
        2 => task.clone().prop_map(Step::Unplug),
        1 => task.clone().prop_map(Step::Sleep),
        1 => task.clone().prop_map(Step::Exit),
        1 => (task.clone(), 0u64..4, 0u64..8).prop_map(|(t, c, l)| Step::Prio(t, c, l)),
        1 => prop::sample::select(vec![-1i64, 0, 500, 2000, 3000, 75_000]).prop_map(Step::Target),
        1 => task.clone().prop_map(Step::DirtySleep),
        1 => (1u32..4, any::<usize>()).prop_map(|(g, l)| Step::IoMax(g, l)),
        1 => (1u32..4, 0usize..4).prop_map(|(g, t)| Step::IoLatency(g, t)),
        1 => (1u32..4, 50u32..1000).prop_map(|(g, w)| Step::IoWeight(g, w)),
        1 => (0usize..4).prop_map(Step::IoCost),
        1 => (task, 0u32..4).prop_map(|(t, g)| Step::Move(t, g)),
        1 => (2u32..4).prop_map(Step::Gone),
        1 => any::<usize>().prop_map(Step::Switch),
        1 => (1u32..300).prop_map(Step::Resize),
        2 => any::<usize>().prop_map(Step::Requeue),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(i, b)| Step::Tunable(i, b)),
        2 => (1u32..200_000).prop_map(Step::Pause),
    ]
}

fn multi_queue() -> Vec<Version> {
    versions(Layer::Mq)
}

#[derive(Clone, Debug)]
struct Setup {
    which: usize,
    hz: u32,
    depth: u32,
    max_sectors: u32,
    accepts: usize,
    budget: bool,
    hctxs: u16,
    cache: bool,
    fua: bool,
    queueable: bool,
    nomerges: u8,
}

fn setup() -> impl Strategy<Value = Setup> {
    let first = (
        any::<usize>(),
        prop::sample::select(vec![100u32, 250, 300, 1000]),
        prop::sample::select(vec![1u32, 2, 4, 31]),
        prop::sample::select(vec![16u32, 32, 1024]),
        prop::sample::select(vec![1usize, 2, usize::MAX]),
        any::<bool>(),
    );
    let second = (
        prop::sample::select(vec![1u16, 1, 2, 3]),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(vec![0u8, 0, 0, 1, 2]),
    );
    (first, second).prop_map(
        |(
            (which, hz, depth, max_sectors, accepts, budget),
            (hctxs, cache, fua, queueable, nomerges),
        )| {
            Setup {
                which,
                hz,
                depth,
                max_sectors,
                accepts,
                budget,
                hctxs,
                cache,
                fua,
                queueable,
                nomerges,
            }
        },
    )
}

struct World {
    q: MqQueue<dyn Scheduler, Auditor>,
    era: Era,
    now: Instant,
    left: BTreeMap<u64, u32>,
    submitted: u64,
    /// The last bio.
    last: Last,
    /// Cgroups of the tasks.
    groups: [u32; TASKS as usize],
    out: Vec<BioDone>,
}

/// Cgroup 3 is under 1; 1 and 2 are under the root.
const PARENTS: [u32; 4] = [0, 0, 0, 1];

/// Settings of io.cost: off, on with defaults, on with targets, and a model of a slow device.
fn cost(which: usize) -> Control {
    let qos = IoCostQos {
        enable: which > 0,
        ..IoCostQos::default()
    };
    match which {
        2 => Control::IoCostQos(IoCostQos {
            rpct_ppm: Some(900_000),
            rlat_us: Some(800),
            wpct_ppm: Some(500_000),
            min_pct: Some(25),
            max_pct: Some(200),
            ..qos
        }),
        3 => Control::IoCostModel(IoCostModel {
            rbps: 10 << 20,
            rseqiops: 900,
            rrandiops: 300,
            wbps: 5 << 20,
            wseqiops: 500,
            wrandiops: 200,
        }),
        _ => Control::IoCostQos(qos),
    }
}

/// Limits: none, or small enough to have an effect.
fn limits(which: usize) -> IoMaxLimits {
    let all = [
        (None, None, None, None),
        (Some(1 << 20), None, None, Some(50)),
        (None, Some(300_000), None, None),
        (Some(2 << 20), Some(100_000), Some(37), None),
        (None, None, Some(500), Some(20)),
    ];
    let (rbps, wbps, riops, wiops) = all[which % all.len()];
    IoMaxLimits {
        rbps,
        wbps,
        riops,
        wiops,
    }
}

impl World {
    fn new(s: &Setup) -> Self {
        let all = multi_queue();
        let (info, version, era) = all[s.which % all.len()];
        let mut facts = DeviceFacts::plain("audited", Sector(1 << 40), s.depth);
        facts.write_cache = s.cache;
        facts.fua = s.fua;
        facts.flush_queueable = s.queueable;
        let queue = QueueFacts {
            max_sectors: Sectors(s.max_sectors),
            rotational: s.which.is_multiple_of(2),
            hctxs: s.hctxs,
            cpus: 4,
            nomerges: s.nomerges,
            ..QueueFacts::example(era)
        };
        let parallel = s.which.is_multiple_of(3);
        let dev = Auditor {
            inner: BenchDevice::new(facts, Nanos::from_us(700), parallel, s.accepts),
            max_sectors: s.max_sectors,
            inside: BTreeMap::new(),
            sectors: 0,
        };
        let driver = if s.budget {
            MqDriver::Scsi { depth: s.depth }
        } else {
            MqDriver::Tag { depth: s.depth }
        };
        let make = |cx: &Cx| (info.make)(cx, version);
        let clock = TickClock::new(s.hz);
        let mut q = MqQueue::new(queue, clock, driver, (info.hash)(version), dev, make);
        q.throttle_writeback(Instant::START, None);
        for (g, parent) in (0..).zip(PARENTS).skip(1) {
            let made = Control::CgroupNew(CgroupId(g), CgroupId(parent));
            q.control(Instant::START, made);
        }
        World {
            q,
            era,
            now: Instant::START,
            left: BTreeMap::new(),
            submitted: 0,
            last: (Op::Flush, Flags::empty(), 0, 0),
            groups: [0; TASKS as usize],
            out: Vec::new(),
        }
    }
    fn settle(&mut self) {
        for d in self.out.drain(..) {
            assert!(!d.error);
            let once = self.left.remove(&d.id.0).is_some();
            assert!(once, "I1: bio {} completed twice", d.id.0);
        }
        self.q.check();
    }
    fn run_to(&mut self, t: Instant) {
        let mut steps = 0u32;
        while let Some(e) = self.q.next_event().filter(|e| *e <= t) {
            self.q.advance(e, &mut self.out);
            self.settle();
            steps += 1;
            assert!(steps < 200_000, "the queue spins");
        }
        self.now = self.now.max(t);
    }

    fn io(&mut self, i: usize, step: &Step) {
        let Step::Io {
            task,
            kind,
            place,
            n,
            cpu,
            wait_us,
            near,
        } = *step
        else {
            return;
        };
        let (op, flags) = match kind {
            0..=2 => (Op::Read, Flags::empty()),
            3 | 4 => (Op::Write, Flags::empty()),
            5 => (Op::Write, Flags::SYNC),
            6 => (Op::Write, Flags::SYNC | Flags::PREFLUSH | Flags::FUA),
            7 => (Op::Write, Flags::SYNC | Flags::FUA),
            8 => (Op::Discard, Flags::empty()),
            9 => (Op::Flush, Flags::PREFLUSH),
            10 => (Op::Write, Flags::SYNC | Flags::NOIDLE),
            _ => (Op::Write, Flags::BACKGROUND),
        };
        let n = if op == Op::Flush { 0 } else { n * 8 };
        let n = if op == Op::Discard { n.min(16) } else { n };
        let (op, flags, first) = next_to(self.last, near, (op, flags, place * 8), n.into());
        self.last = (op, flags, first, first + u64::from(n));
        let mut bio = Bio::new(i as u64, TaskId(task), op, flags, first, n);
        bio.cpu = cpu;
        bio.cgroup = CgroupId(self.groups[task as usize]);
        self.left.insert(i as u64, n);
        self.submitted += u64::from(n);
        self.q.submit(self.now, bio);
        self.run_to(self.now + Nanos::from_us(u64::from(wait_us)));
    }

    fn apply(&mut self, i: usize, s: &Step) {
        let now = self.now;
        match *s {
            Step::Io { .. } => self.io(i, s),
            Step::Plug(t) => self.q.control(now, Control::Plug(TaskId(t))),
            Step::Unplug(t) => self.q.control(now, Control::Unplug(TaskId(t))),
            Step::Sleep(t) => self.q.control(now, Control::Sleep(TaskId(t))),
            Step::Exit(t) => self.q.control(now, Control::Exit(TaskId(t))),
            Step::Prio(t, c, l) => {
                let p = IoPrio::from_numbers(c, l).unwrap();
                self.q.control(now, Control::Prio(TaskId(t), p));
            }
            Step::Switch(k) => {
                let same: Vec<_> = multi_queue()
                    .into_iter()
                    .filter(|s| s.2 == self.era)
                    .collect();
                let (info, version, _) = same[k % same.len()];
                let hash = (info.hash)(version);
                self.q.switch(now, hash, move |cx| (info.make)(cx, version));
            }
            Step::Resize(n) => {
                // Without a scheduler, a value above the driver's limit is rejected.
                let _ = self.q.set_nr_requests(now, n);
            }
            Step::Requeue(k) => {
                let flying: Vec<_> = self.q.cx.rqs.iter().collect();
                let flying = flying.into_iter().filter(|r| r.1.state == State::InFlight);
                let flying: Vec<_> = flying.map(|r| r.0).collect();
                if !flying.is_empty() {
                    assert!(self.q.requeue(now, flying[k % flying.len()]));
                }
            }
            Step::Tunable(k, high) => self.tune(k, high),
            Step::Target(us) => {
                let stored = self.q.store(now, "wbt_lat_usec", &us.to_string());
                stored.expect("a target");
            }
            Step::DirtySleep(t) => self.q.control(now, Control::DirtySleep(TaskId(t))),
            Step::IoMax(g, which) => {
                let what = Control::IoMax(CgroupId(g), limits(which));
                self.q.control(now, what);
            }
            Step::IoLatency(g, which) => {
                let us = [None, Some(100), Some(1000), Some(30_000)][which];
                self.q.control(now, Control::IoLatency(CgroupId(g), us));
            }
            Step::IoWeight(g, w) => self.q.control(now, Control::IoWeight(CgroupId(g), w)),
            Step::IoCost(which) => self.q.control(now, cost(which)),
            Step::Move(t, g) => {
                self.groups[t as usize] = g;
                let what = Control::Cgroup(TaskId(t), CgroupId(g));
                self.q.control(now, what);
            }
            Step::Gone(g) => {
                // A cgroup can be removed only if it has no tasks. A new cgroup then replaces it.
                for t in 0..TASKS {
                    if self.groups[t as usize] == g {
                        self.apply(i, &Step::Move(t, 0));
                    }
                }
                self.q.control(now, Control::CgroupGone(CgroupId(g)));
                let parent = CgroupId(PARENTS[g as usize]);
                self.q.control(now, Control::CgroupNew(CgroupId(g), parent));
            }
            Step::Pause(us) => self.run_to(now + Nanos::from_us(u64::from(us))),
        }
        self.settle();
    }
    fn tune(&mut self, k: usize, high: bool) {
        let all = self.q.scheduler().tunables().iter();
        let numbers: Vec<_> = all
            .filter(|t| !matches!(t.kind, Kind::ReadOnly | Kind::Text))
            .collect();
        if numbers.is_empty() {
            return;
        }
        let t = numbers[k % numbers.len()];
        let v = if high { t.max } else { t.min };
        // Waits of years would only make the test slow.
        let v = match t.kind {
            Kind::MsJiffies | Kind::Ms => v.min(2_000),
            Kind::Us => v.min(2_000_000),
            _ => v,
        };
        match self.q.store(self.now, t.name, &v.to_string()) {
            // The scheduler may reject the value for reasons of its own (ADIOS: order by sector on
            // flash).
            Ok(()) | Err(StoreError::Invalid { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }

    fn finish(&mut self, name: &str) {
        for t in 0..TASKS {
            // Plugs can be nested, so close as many as may be open.
            for _ in 0..130 {
                self.q.control(self.now, Control::Unplug(TaskId(t)));
            }
        }
        self.run_to(self.now + Nanos::from_secs(3600));
        let (left, asleep) = (self.left.len(), self.q.asleep());
        assert_eq!(
            left, 0,
            "{name}: stuck with {left} bios, {asleep} tasks asleep"
        );
        assert!(self.q.cx.rqs.is_empty(), "{name}: requests left over");
        assert_eq!(self.q.tags_used(), (0, 0), "{name}: I6: tags come back");
        assert!(!self.q.switching(), "{name}: a switch ends");
        let wbt = self.q.wbt().expect("throttled");
        let held = (wbt.used(), wbt.waiting());
        assert_eq!(held, ([0; 3], 0), "{name}: slots come back, nobody waits");
        assert_eq!(self.q.held(), 0, "{name}: io.max lets all go");
        let latency = self
            .q
            .io_latency()
            .map_or((0, 0), |l| (l.used(), l.waiting()));
        let cost = self.q.io_cost().map_or(0, |c| c.waiting());
        assert_eq!((latency, cost), ((0, 0), 0), "{name}: nobody waits");
        assert!(
            wbt.window_ends().is_none(),
            "{name}: no window runs for ever"
        );
        assert_eq!(
            self.q.device().sectors,
            self.submitted,
            "{name}: I1: bytes in, bytes out"
        );
    }
}

#[test]
fn every_multi_queue_scheduler_completes_every_bio_once() {
    every_bio_completes_once();
}

/// The property as a function, for use without a test runner.
pub fn every_bio_completes_once() {
    let all = multi_queue();
    let cases = (setup(), prop::collection::vec(step(), 1..120));
    each(&all, cases, |which, (mut setup, steps)| {
        setup.which = which;
        let (info, version, _) = all[which];
        let mut w = World::new(&setup);
        for (i, s) in steps.iter().enumerate() {
            w.apply(i, s);
        }
        w.finish(&format!("{}-{version}", info.name));
        Ok(())
    });
}

/// A regression test: two hardware queues without requests ran again every 3 ms. Each time they
/// postponed a third queue whose request had been rejected, so that this request was never issued.
#[test]
fn pending_rerun_of_a_hardware_queue_is_not_postponed() {
    let all = multi_queue();
    let found = all
        .iter()
        .position(|v| (v.0.name, v.1) == ("adios", "3.0.1"));
    // An external scheduler's suite does not contain ADIOS.
    let Some(which) = found else {
        assert!(
            all.iter().all(|v| v.0.name != "mq-deadline"),
            "the tree has it"
        );
        return;
    };
    let setup = Setup {
        which,
        hz: 100,
        depth: 1,
        max_sectors: 16,
        accepts: 1,
        budget: false,
        hctxs: 3,
        cache: true,
        fua: false,
        queueable: false,
        nomerges: 0,
    };
    let io = |kind, n, cpu| Step::Io {
        task: 0,
        kind,
        place: 0,
        n,
        cpu,
        wait_us: 0,
        near: 0,
    };
    let steps = [
        Step::Tunable(7386849395247543900, false),
        io(0, 3, 0),
        io(3, 1, 0),
        Step::Pause(2100),
        io(0, 3, 3),
        io(6, 1, 0),
        io(0, 1, 2),
    ];
    let mut w = World::new(&setup);
    for (i, s) in steps.iter().enumerate() {
        w.apply(i, s);
    }
    w.finish("adios on three queues");
}
