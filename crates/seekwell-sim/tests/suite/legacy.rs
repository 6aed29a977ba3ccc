//! Requirements for every single-queue elevator and every input. Each bio completes exactly once,
//! merges keep bytes and limits, nothing gets stuck, and idle timers end. Drains and switches
//! during I/O lose nothing, and extreme tunables do no harm.

use crate::near::{Last, next_to};
use crate::versions::{Version, each, versions};
use proptest::prelude::*;
use seekwell_block::{HostDriver, LegacyOptions, LegacyQueue};
use seekwell_core::{
    Accept, Bio, BioDone, BioSink, CgroupId, Command, Control, Device, DeviceFacts, Done, Era,
    Flags, Instant, IoPrio, Nanos, Op, Policy, Sectors, TaskId, TickClock,
};
use seekwell_device::Constant;
use seekwell_sched::{Cx, Layer, QueueFacts, Scheduler};
use std::collections::BTreeMap;

/// A device that checks the size of requests and counts their sectors.
struct Auditor {
    inner: Constant,
    max_sectors: u32,
    sectors: u64,
}

impl Device for Auditor {
    fn accept(&mut self, now: Instant, c: Command) -> Accept {
        assert!(
            c.sectors.0 <= self.max_sectors,
            "a request grew beyond max_sectors"
        );
        let a = self.inner.accept(now, c);
        if a == Accept::Accepted {
            self.sectors += u64::from(c.sectors.0);
        }
        a
    }
    fn next_event(&self) -> Option<Instant> {
        self.inner.next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        self.inner.advance(to, out);
    }
    fn facts(&self) -> &DeviceFacts {
        self.inner.facts()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Io {
        task: u32,
        kind: u8,
        place: u64,
        n: u32,
        wait_us: u32,
        near: u8,
    },
    Plug(u32),
    Unplug(u32),
    Exit(u32),
    Prio(u32, u64, u64),
    Nice(u32, i8, u8),
    Drain,
    Switch(usize),
    Tunable(usize, bool),
    Pause(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let task = 0u32..6;
    prop_oneof![
        20 => (
            task.clone(), 0u8..9, 0u64..400, 1u32..5, prop_oneof![Just(0u32), 1u32..3000], 0u8..4,
        )
            .prop_map(|(task, kind, place, n, wait_us, near)| {
                Step::Io { task, kind, place, n, wait_us, near }
            }),
        2 => task.clone().prop_map(Step::Plug),
        2 => task.clone().prop_map(Step::Unplug),
        1 => task.clone().prop_map(Step::Exit),
        1 => (task.clone(), 0u64..4, 0u64..8).prop_map(|(t, c, l)| Step::Prio(t, c, l)),
        1 => (task, -20i8..20, 0u8..3).prop_map(|(t, n, p)| Step::Nice(t, n, p)),
        1 => Just(Step::Drain),
        1 => any::<usize>().prop_map(Step::Switch),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(i, b)| Step::Tunable(i, b)),
        1 => (1u32..60_000).prop_map(Step::Pause),
    ]
}

fn legacy() -> Vec<Version> {
    versions(Layer::Legacy)
}

struct World {
    q: LegacyQueue<dyn Scheduler, Auditor>,
    now: Instant,
    left: BTreeMap<u64, u32>,
    submitted: u64,
    /// The last bio.
    last: Last,
    out: Vec<BioDone>,
}

impl World {
    fn new(
        (info, version, era): Version,
        rotational: bool,
        hz: u32,
        depth: u32,
        max_sectors: u32,
        nr: u32,
        cache: bool,
    ) -> Self {
        let facts = QueueFacts {
            depth,
            nr_requests: nr,
            max_sectors: Sectors(max_sectors),
            rotational,
            ..QueueFacts::example(era)
        };
        let inner = Constant::serial(depth, Nanos::from_us(700)).write_cache(cache);
        let dev = Auditor {
            inner,
            max_sectors,
            sectors: 0,
        };
        let host = if nr.is_multiple_of(2) {
            HostDriver::Simple { depth }
        } else {
            HostDriver::Scsi { depth }
        };
        let opts = LegacyOptions {
            hash: (info.hash)(version),
            ..LegacyOptions::default()
        };
        let make = |cx: &Cx| (info.make)(cx, version);
        let q = LegacyQueue::new(facts, TickClock::new(hz), opts, host, dev, make);
        World {
            q,
            now: Instant::START,
            left: BTreeMap::new(),
            submitted: 0,
            last: (Op::Flush, Flags::empty(), 0, 0),
            out: Vec::new(),
        }
    }
    fn settle(&mut self) {
        for d in self.out.drain(..) {
            assert!(!d.error);
            assert!(
                self.left.remove(&d.id.0).is_some(),
                "bio {} completed twice",
                d.id.0
            );
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
    fn apply(&mut self, i: usize, s: &Step, era: Era) {
        let now = self.now;
        match *s {
            Step::Io {
                task,
                kind,
                place,
                n,
                wait_us,
                near,
            } => {
                let (op, flags) = match kind {
                    0..=2 => (Op::Read, Flags::empty()),
                    3 => (Op::Write, Flags::empty()),
                    4 => (Op::Write, Flags::SYNC),
                    5 => (Op::Write, Flags::SYNC | Flags::NOIDLE),
                    6 => (Op::Read, Flags::META | Flags::PRIO),
                    7 if era >= Era::K3_4 => (Op::Write, Flags::PREFLUSH | Flags::FUA),
                    7 => (Op::Write, Flags::BARRIER),
                    _ => (Op::Flush, Flags::PREFLUSH),
                };
                // Every third step of kind 8 flushes; the others write.
                let (op, flags) = if op == Op::Flush && !i.is_multiple_of(3) {
                    (Op::Write, Flags::empty())
                } else {
                    (op, flags)
                };
                let n = if op == Op::Flush { 0 } else { n * 8 };
                let (op, flags, first) = next_to(self.last, near, (op, flags, place * 8), n.into());
                self.last = (op, flags, first, first + u64::from(n));
                let bio = Bio::new(i as u64, TaskId(task), op, flags, first, n);
                self.left.insert(i as u64, n);
                self.submitted += u64::from(n);
                self.q.submit(now, bio);
                self.run_to(now + Nanos::from_us(u64::from(wait_us)));
            }
            Step::Plug(t) => self.q.control(now, Control::Plug(TaskId(t))),
            Step::Unplug(t) => self.q.control(now, Control::Unplug(TaskId(t))),
            Step::Exit(t) => {
                self.q.control(now, Control::Unplug(TaskId(t)));
                self.q.control(now, Control::Exit(TaskId(t)));
            }
            Step::Prio(t, c, l) => {
                let p = IoPrio::from_numbers(c, l).unwrap();
                self.q.control(now, Control::Prio(TaskId(t), p));
            }
            Step::Nice(t, n, p) => {
                let p = [Policy::Normal, Policy::RealTime, Policy::Idle][p as usize];
                self.q.control(now, Control::Nice(TaskId(t), n, p));
                self.q
                    .control(now, Control::Cgroup(TaskId(t), CgroupId::ROOT));
            }
            Step::Drain => self.q.drain(now),
            Step::Switch(k) => {
                if !self.q.switching() {
                    let same: Vec<_> = legacy().into_iter().filter(|s| s.2 == era).collect();
                    let (info, version, _) = same[k % same.len()];
                    let hash = (info.hash)(version);
                    self.q.switch(now, hash, move |cx| (info.make)(cx, version));
                }
            }
            Step::Tunable(k, high) => {
                let all = self.q.scheduler().tunables();
                let writable: Vec<_> = all
                    .iter()
                    .filter(|t| {
                        use seekwell_sched::Kind::{ReadOnly, Text};
                        !matches!(t.kind, ReadOnly | Text)
                    })
                    .collect();
                if !writable.is_empty() {
                    let t = writable[k % writable.len()];
                    let v = if high { t.max } else { t.min };
                    // Waits of years would only make the test slow.
                    let v = if matches!(
                        t.kind,
                        seekwell_sched::Kind::MsJiffies | seekwell_sched::Kind::Ms
                    ) {
                        v.min(2_000)
                    } else {
                        v
                    };
                    self.q.store(now, t.name, &v.to_string()).unwrap();
                }
            }
            Step::Pause(us) => self.run_to(now + Nanos::from_us(u64::from(us))),
        }
        self.settle();
    }
    fn finish(&mut self, scheduler: &str) {
        for t in 0..6 {
            self.q.control(self.now, Control::Unplug(TaskId(t)));
        }
        let end = self.now + Nanos::from_secs(3600);
        self.run_to(end);
        assert!(
            self.left.is_empty(),
            "{scheduler}: stuck with {} bios, asleep {}",
            self.left.len(),
            self.q.asleep()
        );
        assert!(self.q.cx.rqs.is_empty(), "{scheduler}: requests left over");
        assert_eq!(
            self.q.device().sectors,
            self.submitted,
            "{scheduler}: bytes in = bytes out"
        );
    }
}

#[test]
fn every_single_queue_scheduler_completes_every_bio_once() {
    every_bio_completes_once();
}

/// The property as a function, for use without a test runner.
pub fn every_bio_completes_once() {
    let all = legacy();
    let cases = (
        any::<bool>(),
        prop::sample::select(vec![100u32, 250, 300, 1000]),
        prop::sample::select(vec![1u32, 2, 4, 31]),
        prop::sample::select(vec![32u32, 64, 1024]),
        prop::sample::select(vec![4u32, 5, 128]),
        any::<bool>(),
        prop::collection::vec(step(), 1..120),
    );
    each(&all, cases, |which, case| {
        let (rotational, hz, depth, max_sectors, nr, cache, steps) = case;
        let (info, version, era) = all[which];
        let mut w = World::new(all[which], rotational, hz, depth, max_sectors, nr, cache);
        for (i, s) in steps.iter().enumerate() {
            w.apply(i, s, era);
        }
        w.finish(&format!("{}-{version}", info.name));
        Ok(())
    });
}
