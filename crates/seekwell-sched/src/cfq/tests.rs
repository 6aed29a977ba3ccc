//! Tests of rules that a dispatch order does not show: tunables, choices, sweeps, detection.

mod numbers;
mod slices;
mod thresholds;

use super::numbers::{Choice, choose};
use super::tunables::Settings;
use super::v2_6_18::Cfq18;
use super::{Cfq, INFO, Version};
use crate::contract::{CgroupEvent, Insert, IocEvent, MayQueue, Scheduler};
use crate::cx::{Cgroup, Cx, QueueFacts};
use seekwell_core::{
    Bio, CgroupId, Era, Flags, IoPrio, IocId, Nanos, Op, RqId, Sector, State, TaskId, TickClock,
};

fn cx(version: Version, hz: u32) -> Cx {
    let era = match version {
        Version::V2_6_18 => Era::K2_6_18,
        Version::V2_6_24 | Version::V2_6_25 => Era::K2_6_24,
        Version::V3_4 => Era::K3_4,
        Version::V4_0 | Version::V4_4 => Era::K4_0,
    };
    Cx::new(QueueFacts::example(era), TickClock::new(hz))
}

#[test]
fn defaults_follow_from_hz() {
    let shown = |version, hz, name: &str| {
        let cx = cx(version, hz);
        Settings::new(&cx, version).show(&cx, name)
    };
    let table = [
        ("fifo_expire_sync", "125", "124", "120"),
        ("fifo_expire_async", "250", "248", "250"),
        ("slice_sync", "100", "100", "100"),
        ("slice_async", "40", "40", "40"),
        ("slice_idle", "8", "8", "10"),
        ("group_idle", "8", "8", "10"),
        ("target_latency", "300", "300", "300"),
    ];
    for (name, at_1000, at_250, at_100) in table {
        for (hz, want) in [(1000, at_1000), (250, at_250), (100, at_100)] {
            let got = shown(Version::V4_0, hz, name);
            assert_eq!(got.as_deref(), Some(want), "{name} at HZ {hz}");
        }
    }
    for (name, _) in INFO.versions {
        let version = Version::named(name);
        for t in super::tunables::tunables(version) {
            let got = shown(version, 1000, t.name);
            let default = t.default.split(' ').next();
            assert_eq!(got.as_deref(), default, "{name} {}", t.name);
        }
    }
    assert_eq!(shown(Version::V2_6_24, 1000, "low_latency"), None);
}

/// Since 4.2, slice_idle is 0 on flash by default, so CFQ counts requests instead of time. The idle
/// wait for the last queue of a group remains.
#[test]
fn default_slice_idle_is_0_on_flash_since_4_2() {
    for (version, rotational, slice_idle) in [
        (Version::V4_0, false, "8"),
        (Version::V4_4, true, "8"),
        (Version::V4_4, false, "0"),
    ] {
        let mut cx = cx(version, 1000);
        cx.queue.rotational = rotational;
        let mut cfq = Cfq::new(&cx, version);
        assert_eq!(cfq.show(&cx, "slice_idle").as_deref(), Some(slice_idle));
        assert_eq!(cfq.show(&cx, "group_idle").as_deref(), Some("8"));
        assert_eq!(cfq.iops_mode(), slice_idle == "0");
        // Only the default differs. With slice_idle set to 8, the version behaves like 4.0.
        cfq.store(&mut cx, "slice_idle", "8").unwrap();
        assert!(!cfq.iops_mode());
    }
}

#[test]
fn tunable_writes_are_clamped_and_rounded_up_to_jiffies() {
    let cx = cx(Version::V3_4, 250);
    let mut set = Settings::new(&cx, Version::V3_4);
    let mut write = |name: &str, text: &str| {
        set.store(&cx, name, text).unwrap();
        set.show(&cx, name).unwrap()
    };
    assert_eq!(write("slice_idle", "1"), "4");
    assert_eq!(write("slice_idle", "0"), "0");
    assert_eq!(write("slice_sync", "0"), "4");
    assert_eq!(write("slice_sync", "-7"), "4");
    assert_eq!(write("quantum", "0"), "1");
    assert_eq!(write("quantum", "99999999999"), "4294967295");
    assert_eq!(write("low_latency", "2"), "1");
    assert!(set.store(&cx, "queued", "8").is_err());
}

#[test]
fn priority_levels_scale_slices_and_limits() {
    let set = Settings::new(&cx(Version::V4_0, 1000), Version::V4_0);
    let of = |sync| {
        (0..8)
            .map(|l| set.prio_slice_j(sync, l))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(true), [180, 160, 140, 120, 100, 80, 60, 40]);
    assert_eq!(of(false), [72, 64, 56, 48, 40, 32, 24, 16]);
    let limits: Vec<_> = (0..8).map(|l| set.max_requests(l)).collect();
    assert_eq!(limits, [32, 28, 24, 20, 16, 12, 8, 4]);
}

/// A minimal block layer that makes the calls of the `Scheduler` trait.
struct Bench<S> {
    cx: Cx,
    s: S,
    iocs: Vec<IocId>,
    made: u64,
}

impl<S: Scheduler> Bench<S> {
    fn new(cx: Cx, s: S, contexts: &[(IoPrio, CgroupId)]) -> Self {
        let mut b = Bench {
            cx,
            s,
            iocs: Vec::new(),
            made: 0,
        };
        for (prio, cgroup) in contexts {
            let task = TaskId(b.iocs.len() as u32);
            let ioc = b.cx.iocs.create(task, *prio, *cgroup);
            b.s.ioc_event(&mut b.cx, ioc, IocEvent::Attach);
            b.iocs.push(ioc);
        }
        b
    }
    fn bio(&mut self, who: usize, sector: u64) -> Bio {
        self.made += 1;
        let task = TaskId(who as u32);
        Bio::new(self.made, task, Op::Read, Flags::empty(), sector, 8)
    }
    fn insert(&mut self, who: usize, sector: u64) -> RqId {
        let bio = self.bio(who, sector);
        let (ioc, era, now) = (self.iocs[who], self.cx.queue.era, self.cx.now());
        let rq = self.cx.rqs.alloc(bio, ioc, IoPrio::be(4), era, now);
        self.s.prepare(&mut self.cx, rq);
        self.cx.rqs[rq].state = State::Sorted;
        self.cx.nr_sorted += 1;
        self.s.insert(&mut self.cx, rq, Insert::Sorted);
        self.s.check(&self.cx);
        rq
    }
    fn take(&mut self) -> Option<RqId> {
        if self.cx.out.is_empty() {
            self.s.dispatch(&mut self.cx, 0, false);
        }
        let rq = self.cx.out.pop()?;
        self.cx.rqs[rq].state = State::InFlight;
        self.s.activate(&mut self.cx, rq);
        self.s.check(&self.cx);
        Some(rq)
    }
    fn complete(&mut self, rq: RqId) {
        self.s.completed(&mut self.cx, rq);
        self.s.finish(&mut self.cx, rq);
        self.cx.rqs.free(rq);
        self.s.check(&self.cx);
    }
    fn pass(&mut self, ms: u64) {
        let now = self.cx.now() + Nanos::from_ms(ms);
        self.cx.set_now(now);
    }
}

const BE4: (IoPrio, CgroupId) = (IoPrio::be(4), CgroupId::ROOT);

fn bench(version: Version, contexts: &[(IoPrio, CgroupId)]) -> Bench<Cfq> {
    let cx = cx(version, 1000);
    let s = Cfq::new(&cx, version);
    Bench::new(cx, s, contexts)
}

#[test]
fn the_nearer_request_goes_first_and_backward_counts_double() {
    let mut b = bench(Version::V4_0, &[BE4]);
    let mut at = |s: u64| b.insert(0, s);
    let (ahead, behind, far, low) = (at(1_005_000), at(998_000), at(900_000), at(10));
    let by = |pos| Choice {
        boost: Flags::PRIO,
        pos: Sector(pos),
    };
    let better = |x, y, pos| choose(&b.cx.rqs, &b.s.set, by(pos), Some(x), Some(y));
    assert_eq!(better(ahead, behind, 1_000_016), Some(behind));
    assert_eq!(better(ahead, behind, 1_002_000), Some(ahead));
    assert_eq!(
        better(far, ahead, 1_000_016),
        Some(ahead),
        "beyond back_seek_max"
    );
    assert_eq!(
        better(far, low, 1_000_016),
        Some(low),
        "both wrap: the lower one"
    );
    assert_eq!(better(ahead, ahead, 0), Some(ahead));
    let by = by(0);
    assert_eq!(choose(&b.cx.rqs, &b.s.set, by, None, Some(low)), Some(low));
    b.cx.rqs[far].flags |= Flags::PRIO;
    let better = choose(&b.cx.rqs, &b.s.set, by, Some(low), Some(far));
    assert_eq!(better, Some(far), "PRIO before distance");
}

#[test]
fn awaited_process_may_exceed_the_request_limit_once_per_slice() {
    let mut b = bench(Version::V3_4, &[BE4, BE4]);
    b.insert(0, 1000);
    let rq = b.take().unwrap();
    b.pass(5);
    b.complete(rq);
    let mut ask = |who: usize| {
        let bio = b.bio(who, 2000);
        b.s.may_queue(&mut b.cx, &bio, b.iocs[who])
    };
    assert_eq!(ask(1), MayQueue::May, "no queue yet");
    assert_eq!(ask(0), MayQueue::Must);
    assert_eq!(ask(0), MayQueue::May);
}

#[test]
fn queueing_is_detected_at_the_51st_relevant_completion() {
    for (depth, want) in [(3, 0), (8, 1)] {
        let mut b = bench(Version::V4_0, &[BE4]);
        b.cx.queue.rotational = false;
        let mut sector = 0;
        let mut flying = Vec::new();
        for n in 0..60 {
            while b.s.rq_queued < 12 {
                sector += 100;
                b.insert(0, sector);
            }
            while flying.len() < depth {
                flying.push(b.take().unwrap());
            }
            assert_eq!(b.s.hw_tag, if n < 51 { -1 } else { want }, "after {n}");
            let rq = flying.remove(0);
            b.complete(rq);
        }
    }
}

#[test]
fn shares_of_nested_groups_are_products() {
    let of = |version: Version, leaf: Option<u32>| {
        let mut cx = cx(version, 1000);
        for (id, parent, weight) in [(1, 0, 500), (2, 1, 500), (3, 0, 500)] {
            let group = Cgroup {
                parent: CgroupId(parent),
                weight: Some(weight),
                leaf_weight: leaf.filter(|_| id == 1),
                online: true,
            };
            cx.cgroups.insert(CgroupId(id), group);
        }
        let s = Cfq::new(&cx, version);
        let contexts: Vec<_> = (1..4).map(|g| (IoPrio::be(4), CgroupId(g))).collect();
        let mut b = Bench::new(cx, s, &contexts);
        let groups: Vec<u32> = (0..3)
            .map(|who| {
                b.insert(who, 1_000_000 * who as u64);
                b.s.group_for(&b.cx, CgroupId(who as u32 + 1))
            })
            .collect();
        // A group's fraction is computed when the group enters the tree, so all groups enter again.
        for g in &groups {
            b.s.leave(*g);
            b.s.enter(*g);
        }
        groups
            .iter()
            .map(|g| b.s.group_slice(*g))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(Version::V4_0, None), [75, 75, 150]);
    assert_eq!(of(Version::V4_0, Some(1000)), [99, 49, 150]);
    assert_eq!(of(Version::V3_4, None), [100, 100, 100]);
}

#[test]
fn new_weight_applies_from_the_next_entry_of_the_group_on() {
    let mut b = bench(Version::V4_0, &[(IoPrio::be(4), CgroupId(1)), BE4]);
    b.insert(0, 1000);
    b.insert(1, 9_000_000);
    let g = b.s.group_for(&b.cx, CgroupId(1));
    let group = Cgroup {
        parent: CgroupId::ROOT,
        weight: Some(1000),
        leaf_weight: None,
        online: true,
    };
    b.cx.cgroups.insert(CgroupId(1), group);
    b.s.cgroup_event(&mut b.cx, CgroupId(1), CgroupEvent::Weight);
    assert_eq!(b.s.group(g).weight, 500);
    b.s.leave(g);
    b.s.enter(g);
    assert_eq!(b.s.group(g).weight, 1000);
    assert_eq!(
        b.s.group(g).vfraction,
        2048,
        "against the root's own tasks, 1000"
    );
    b.s.check(&b.cx);
}

#[test]
fn level_0_has_eight_turns_per_turn_of_level_7() {
    let prios: Vec<_> = (0..8).map(|l| (IoPrio::be(l), CgroupId::ROOT)).collect();
    let cx = cx(Version::V2_6_18, 1000);
    let s = Cfq18::new(&cx);
    let mut b = Bench::new(cx, s, &prios);
    // Each process has one request at a time. It issues the next request when that request
    // completes.
    let mut turns = Vec::new();
    for who in 0..8 {
        b.insert(who, 1_000_000 * who as u64);
    }
    for n in 0..36 {
        let rq = b.take().unwrap();
        let who = b.cx.iocs.get(b.cx.rqs[rq].ioc).task.0 as usize;
        turns.push(who);
        b.pass(200);
        b.complete(rq);
        b.insert(who, 1_000_000 * who as u64 + 100 * (n + 1));
    }
    let want: Vec<usize> = (0..8).flat_map(|end| 0..=end).collect();
    assert_eq!(turns, want);
    assert_eq!(turns.iter().filter(|t| **t == 0).count(), 8);
}

#[test]
fn join_across_queues_empties_the_other_queue() {
    for version in [Version::V3_4, Version::V4_0] {
        let mut b = bench(version, &[BE4, BE4, BE4]);
        b.insert(2, 5_000_000);
        let active = b.take().unwrap();
        let (kept, gone) = (b.insert(0, 1000), b.insert(1, 1008));
        b.cx.rqs.join(kept, gone);
        b.s.joined(&mut b.cx, kept, gone);
        b.cx.nr_sorted -= 1;
        b.s.finish(&mut b.cx, gone);
        b.cx.rqs.free(gone);
        b.s.check(&b.cx);
        assert_eq!(
            b.s.busy, 2,
            "the active queue and the one that was joined into"
        );
        b.complete(active);
        b.pass(20);
        b.s.timer(&mut b.cx, super::IDLE_TIMER.number);
        assert_eq!(b.take(), Some(kept));
        b.complete(kept);
    }
}
