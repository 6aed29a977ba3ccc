//! Tests of rules that a list of requests cannot express, and of invariants for random input.

use super::*;
use crate::cx::QueueFacts;
use proptest::prelude::*;
use seekwell_core::{BioId, CgroupId, IoPrio, Nanos, Sectors, State, TaskId, TickClock};

/// A queue without a block layer. The test itself inserts, dispatches and completes requests.
struct Bench {
    cx: Cx,
    s: Adios,
    ids: u64,
    /// Requests that were dispatched and have not completed.
    device: Vec<RqId>,
}

impl Bench {
    fn new(version: &str, rotational: bool) -> Self {
        let mut facts = QueueFacts::example(Era::Mq);
        facts.rotational = rotational;
        let mut cx = Cx::new(facts, TickClock::new(1000));
        cx.iocs
            .create(TaskId(1), IoPrio::be(4), CgroupId::default());
        let s = Adios::new(&cx, version);
        Bench {
            cx,
            s,
            ids: 0,
            device: Vec::new(),
        }
    }
    /// Returns a bench with the models "M" of the worked examples, so that deadlines are used.
    fn stable(version: &str, rotational: bool) -> Self {
        let mut b = Bench::new(version, rotational);
        b.set("reset_lat_model", "100000 1000 200000 2000 1000000 0");
        b.s.stable = true;
        b
    }
    fn set(&mut self, name: &str, text: &str) {
        self.s.store(&mut self.cx, name, text).unwrap();
    }
    fn at_us(&mut self, us: u64) {
        self.cx.set_now(Instant::at_us(us));
    }
    fn insert(&mut self, op: Op, flags: Flags, sector: u64, n: u32, how: Insert) -> u64 {
        self.ids += 1;
        let bio = Bio::new(self.ids, TaskId(1), op, flags, sector, n);
        let now = self.cx.now();
        let rq = self
            .cx
            .rqs
            .alloc(bio, IocId(0), IoPrio::be(4), Era::Mq, now);
        self.enter(rq, how);
        self.ids
    }
    fn enter(&mut self, rq: RqId, how: Insert) {
        self.cx.rqs[rq].state = State::Sorted;
        self.cx.nr_sorted += 1;
        if how == Insert::Sorted {
            let end = self.cx.rqs[rq].end();
            self.cx.merge.add(rq, end);
        }
        self.s.insert(&mut self.cx, rq, how);
        self.s.check(&self.cx);
    }
    fn put(&mut self, op: Op, sector: u64) -> u64 {
        self.insert(op, Flags::empty(), sector, 8, Insert::Sorted)
    }
    fn take(&mut self, force: bool) -> Option<BioId> {
        let n = self.s.dispatch(&mut self.cx, 0, force);
        self.s.check(&self.cx);
        let rq = self.cx.out.pop();
        assert_eq!(n, u32::from(rq.is_some()), "at most one, and as it says");
        let rq = rq?;
        let now = self.cx.now();
        self.cx.rqs[rq].state = State::InFlight;
        self.cx.rqs[rq].issue = now;
        self.device.push(rq);
        Some(self.cx.rqs.first_bio(rq).id)
    }
    fn all(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.take(false))
            .map(|b| b.0)
            .collect()
    }
    fn complete(&mut self, i: usize) {
        let rq = self.device.remove(i);
        self.s.completed(&mut self.cx, rq);
        self.s.finish(&mut self.cx, rq);
        self.cx.rqs.free(rq);
        self.s.check(&self.cx);
    }
    /// Returns the samples that the models received.
    fn samples(&mut self) -> Vec<String> {
        let events = std::mem::take(&mut self.cx.log.events);
        let fed = events.into_iter().filter(|e| e.rule == Some(rules::SAMPLE));
        fed.map(|e| e.detail).collect()
    }
    /// Fires the timers that are due.
    fn timers(&mut self) {
        while let Some((t, slot)) = self.cx.next_timer()
            && t <= self.cx.now()
        {
            self.cx.disarm(slot);
            self.s.timer(&mut self.cx, slot);
        }
    }
}

const W: Op = Op::Write;
const R: Op = Op::Read;

/// An at-head request is dispatched last while requests leave in order of arrival. (Worked example
/// A1.)
#[test]
fn cold_scheduler_dispatches_at_head_request_last() {
    let mut b = Bench::new("3.1.9", false);
    let w1 = b.put(W, 100);
    let r1 = b.put(R, 9000);
    let h = b.insert(R, Flags::empty(), 50, 8, Insert::AtHead);
    let r2 = b.put(R, 108);
    assert_eq!(b.all(), [w1, r1, r2, h]);
    assert!(!b.s.stable);
}

/// The bias balances reads and writes. (Worked example A2.)
#[test]
fn bias_balances_reads_and_writes() {
    let mut b = Bench::stable("3.1.9", false);
    b.put(W, 100);
    b.put(R, 900);
    b.put(W, 200);
    b.put(R, 800);
    b.insert(W, Flags::SYNC, 300, 8, Insert::Sorted);
    let mut seen = Vec::new();
    b.cx.log.listen(true);
    assert_eq!(b.all(), [2, 4, 5, 1, 3]);
    for e in std::mem::take(&mut b.cx.log.events) {
        seen.extend(e.detail.rsplit_once("bias ").map(|(_, v)| v.to_owned()));
    }
    assert_eq!(seen, ["-16796", "-16796", "183204", "183204", "183204"]);
}

/// Requests that were inserted before the models were stable go before an at-head request. (Worked
/// example A8.)
#[test]
fn requests_from_before_stable_models_precede_at_head_requests() {
    let mut b = Bench::stable("3.1.9", false);
    b.s.stable = false;
    let q = b.put(R, 100);
    assert!(
        b.s.stable,
        "both models are known: the next one is treated normally"
    );
    let h = b.insert(R, Flags::empty(), 200, 8, Insert::AtHead);
    assert_eq!(b.all(), [q, h]);
    let mut b = Bench::stable("1.5.5", false);
    let x = b.insert(R, Flags::empty(), 100, 8, Insert::AtHead);
    let y = b.insert(R, Flags::empty(), 200, 8, Insert::AtHead);
    assert_eq!(b.all(), [y, x], "1.5.5: the last one first");
}

/// A completion updates the model. (Worked example A9, through the scheduler's functions.)
#[test]
fn completion_updates_the_model() {
    for (version, second_ns) in [("3.1.9", 80_000), ("1.5.5", 180_000)] {
        let mut b = Bench::new(version, false);
        b.cx.log.listen(true);
        b.put(R, 0);
        b.put(R, 1000);
        // 1.5.5 dispatches one request while its model is empty, and the next after that one
        // completed.
        while b.device.len() < 2 {
            b.take(true);
        }
        b.at_us(100);
        b.complete(0);
        assert_eq!(b.s.model[READ].base, 100_000);
        assert!(b.cx.armed(UPDATE));
        b.at_us(180);
        b.complete(0);
        let seen = b.samples();
        assert!(
            seen[0].starts_with("type 0: 100000 ns, predicted 0"),
            "{seen:?}"
        );
        assert!(
            seen[1].starts_with(&format!("type 0: {second_ns} ns")),
            "{seen:?}"
        );
        assert_eq!((b.s.in_flight, b.s.tpl_ns), (0, 0));
        assert_eq!(b.s.last_completed.at(0).0, 0, "idle");
        b.at_us(1_600_000);
        b.timers();
        assert_eq!(
            b.s.model[READ].base, 100_000,
            "the slowest hundredth does not count"
        );
    }
}

#[test]
fn too_long_latency_samples_are_ignored() {
    let mut b = Bench::new("3.1.9", false);
    b.put(R, 0);
    b.all();
    b.at_us(500_001);
    b.complete(0);
    assert_eq!(b.s.model[READ].base, 0);
    assert!(!b.cx.armed(UPDATE));
}

#[test]
fn samples_are_weighted_by_seek_distance_on_a_rotating_disk() {
    for (rotational, weights) in [(true, [1, 1, 13, 14]), (false, [1; 4])] {
        let mut b = Bench::stable("3.1.9", rotational);
        b.cx.log.listen(true);
        for sector in [1000, 1008, 5000, 0] {
            b.put(R, sector);
            b.all();
            b.complete(0);
        }
        let ends = weights.map(|w| format!(", weight {w}"));
        let samples = b.samples();
        assert_eq!(samples.len(), 4);
        assert!(
            samples.iter().zip(ends).all(|(s, e)| s.ends_with(&e)),
            "{samples:?}"
        );
        // After a command of another type the position of the head is unknown.
        b.put(Op::WriteZeroes, 0);
        b.put(R, 100_000);
        b.all();
        b.complete(0);
        assert_eq!(b.s.last_end.is_some(), rotational);
        b.complete(0);
        assert_eq!(b.s.last_end, None);
    }
}

#[test]
fn one_word_of_the_tag_map_is_reserved_for_writes() {
    for (tags, word) in [(62, 8), (64, 16), (128, 32), (256, 64)] {
        let mut b = Bench::new("3.1.9", false);
        b.cx.queue.nr_requests = tags;
        let bio = |op| Bio::new(1, TaskId(1), op, Flags::empty(), 0, 8);
        assert_eq!(b.s.limit_depth(&mut b.cx, &bio(R), IocId(0)), None);
        assert_eq!(b.s.limit_depth(&mut b.cx, &bio(W), IocId(0)), Some(word));
        b.cx.queue.era = Era::Mq6_1;
        assert_eq!(b.s.limit_depth(&mut b.cx, &bio(W), IocId(0)), None);
    }
}

#[test]
fn durable_writes_of_3_0_1_pass_every_request() {
    let mut b = Bench::stable("3.0.1", false);
    let r = b.put(R, 0);
    let f = b.insert(W, Flags::FUA, 100, 8, Insert::Sorted);
    assert_eq!(b.all(), [f, r]);
    b.set("compliance_flags", "0x4");
    let r = b.put(R, 0);
    let f = b.insert(W, Flags::FUA, 100, 8, Insert::Sorted);
    b.complete(0);
    b.complete(0);
    // 3.0.1 serves the highest type of a page first.
    assert_eq!(b.all(), [f, r]);
}

#[test]
fn predictions_of_3_2_0_are_capped() {
    for (version, pl) in [("3.1.9", 2_144_000), ("3.2.0", 1_000_000)] {
        let mut b = Bench::stable(version, false);
        b.set("lat_model_latency_limit", "1000000");
        b.insert(R, Flags::empty(), 0, 4096, Insert::Sorted);
        b.all();
        assert_eq!(b.s.tpl_ns, pl);
    }
}

/// A write to a target resets its model. Requests are not dispatched in order of arrival again.
#[test]
fn tunables_behave_as_in_the_kernel() {
    let mut b = Bench::stable("3.1.9", false);
    b.set("lat_target_read", "1000000\n");
    assert_eq!(b.s.show(&b.cx, "lat_model_read").unwrap(), "0 0");
    assert_eq!(b.s.show(&b.cx, "lat_model_write").unwrap(), "200000 2000");
    assert!(b.s.stable);
    b.set("lat_model_read", "70000 900");
    assert_eq!(b.s.show(&b.cx, "lat_model_read").unwrap(), "70000 900");
    b.s.bias = 5;
    b.set("read_priority", "-20");
    assert_eq!((b.s.bias, b.s.prio[0]), (0, -20));
    b.set("reset_lat_model", "1");
    assert!(b.s.model.iter().all(|m| m.base == 0 && m.slope == 0));
    (b.s.largest, b.s.largest_total) = ([3; TYPES], 9);
    b.set("reset_bq_stats", "1");
    assert_eq!((b.s.largest, b.s.largest_total), ([0; TYPES], 0));
    let bad = [
        ("read_priority", "20"),
        ("read_priority", "-21"),
        ("batch_limit_read", "0"),
        ("bq_refill_below_ratio", "101"),
        ("shrink_resist", "4"),
        ("batch_order", "1"),
        ("lat_model_read", "5"),
        ("reset_lat_model", "1 2 3"),
        ("adios_version", "4"),
        ("batch_actual_max", "4"),
        ("global_latency_window", "-1"),
        ("compliance_flags", "0xg"),
        ("no_such", "1"),
    ];
    for (name, text) in bad {
        assert!(b.s.store(&mut b.cx, name, text).is_err(), "{name} {text}");
    }
    let mut b = Bench::stable("3.1.9", true);
    b.set("batch_order", "1");
    assert_eq!(
        b.s.show(&b.cx, "global_latency_window").unwrap(),
        "22000000"
    );
    let mut b = Bench::stable("1.5.5", true);
    assert!(b.s.store(&mut b.cx, "batch_order", "1").is_err(), "not yet");
    assert_eq!(b.s.show(&b.cx, "bq_refill_below_ratio").unwrap(), "15");
}

/// A fresh instance shows every default of the tables.
#[test]
fn new_instance_shows_the_defaults_of_the_table() {
    for (version, _) in INFO.versions {
        let b = Bench::new(version, false);
        for t in b.s.tunables() {
            let shown = b.s.show(&b.cx, t.name).unwrap();
            let want = t.default.split(' ').next().unwrap();
            let same = match t.name {
                "adios_version" => shown == *version,
                "batch_actual_max" => shown.contains("total 0"),
                "lat_model_read" | "lat_model_write" | "lat_model_discard" => shown == "0 0",
                _ => shown == want,
            };
            assert!(same, "{version} {}: {shown}, table {}", t.name, t.default);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8, u64, u32, bool),
    Take,
    Complete(usize),
    GiveBack(usize),
    Wait(u64),
    Set(usize, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u8..8, 0u8..8, 0u64..5000, 1u32..300, prop::bool::weighted(0.1))
            .prop_map(|(o, f, s, n, h)| Step::Put(o, f, s * 8, n, h)),
        6 => Just(Step::Take),
        5 => (0usize..4).prop_map(Step::Complete),
        1 => (0usize..4).prop_map(Step::GiveBack),
        3 => prop_oneof![0u64..2000, 0u64..3_000_000].prop_map(Step::Wait),
        1 => (any::<usize>(), prop_oneof![Just(0), 1u64..100, Just(u64::from(u32::MAX)), any::<u64>()])
            .prop_map(|(i, v)| Step::Set(i, v)),
    ];
    prop::collection::vec(step, 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    /// Each request is dispatched once. 3.x never delays a request; older versions delay requests
    /// only while the device works. No request passes a barrier, pages keep their limits, and an
    /// idle scheduler counts no request.
    #[test]
    fn every_request_is_dispatched_once_within_the_waiting_rules(
        version in prop::sample::select(vec!["3.1.9", "3.2.0", "3.0.1", "1.5.5"]),
        rotational in any::<bool>(),
        sideload in any::<bool>(),
        steps in steps(),
    ) {
        let mut b = if sideload {
            Bench::stable(version, rotational)
        } else {
            Bench::new(version, rotational)
        };
        let v = b.s.version;
        let (mut queued, mut barred_by) = (Vec::<u64>::new(), Vec::<(u64, u64)>::new());
        let mut gone = Vec::new();
        for step in steps {
            match step {
                Step::Put(op, f, sector, n, head) => {
                    let op = [R, R, R, W, W, W, Op::Discard, Op::WriteZeroes][op as usize];
                    let flags = [Flags::SYNC, Flags::FUA, Flags::empty()][usize::from(f).min(2)];
                    let how = if head { Insert::AtHead } else { Insert::Sorted };
                    let barrier = |i: &u32| b.s.is_barrier(b.cx.rqs[RqId(*i)].op);
                    let barrier = b.s.links.iter(&b.s.barriers).filter(barrier).last();
                    let barrier = barrier.map(|i| b.cx.rqs.first_bio(RqId(i)).id.0);
                    let was_barred = b.s.barred;
                    let id = b.insert(op, flags, sector, n, how);
                    if was_barred && !head {
                        barred_by.extend(barrier.map(|x| (x, id)));
                    }
                    queued.push(id);
                }
                Step::Take => match b.take(false) {
                    Some(id) => {
                        prop_assert!(queued.contains(&id.0));
                        queued.retain(|q| *q != id.0);
                        gone.push(id.0);
                        // All requests in front of this one were dispatched.
                        for (before, after) in &barred_by {
                            prop_assert!(*after != id.0 || gone.contains(before));
                        }
                    }
                    None if v.refill_when_empty => prop_assert!(queued.is_empty(), "P6"),
                    None => prop_assert!(queued.is_empty() || !b.device.is_empty(), "liveness"),
                },
                Step::Complete(i) => {
                    if i < b.device.len() {
                        b.complete(i);
                    }
                }
                Step::GiveBack(i) => {
                    if i < b.device.len() {
                        let rq = b.device.remove(i);
                        queued.push(b.cx.rqs.first_bio(rq).id.0);
                        b.enter(rq, Insert::Requeue);
                    }
                }
                Step::Wait(us) => {
                    let t = b.cx.now() + Nanos::from_us(us);
                    b.cx.set_now(t);
                    b.timers();
                }
                Step::Set(i, value) => {
                    let t = &b.s.tunables()[i % b.s.tunables().len()];
                    let text = match t.name {
                        "lat_model_read" | "lat_model_write" => format!("{} {}", value >> 20, value % 5000),
                        _ => value.to_string(),
                    };
                    // The kernel refuses some values. The scheduler must work after either outcome.
                    let _ = b.s.store(&mut b.cx, t.name, &text);
                }
            }
            prop_assert_eq!(b.s.has_work(&b.cx, 0), !queued.is_empty());
            prop_assert_eq!(b.cx.nr_sorted as usize, queued.len());
        }
        while let Some(id) = b.take(true) {
            queued.retain(|q| *q != id.0);
        }
        prop_assert!(queued.is_empty(), "a forced drain holds nothing back");
        while !b.device.is_empty() {
            b.complete(0);
        }
        prop_assert_eq!((b.s.in_flight, b.s.tpl_ns), (0, 0));
        b.cx.set_now(b.cx.now() + Nanos::from_ms(UPDATE_MS));
        b.timers();
        prop_assert!(b.cx.next_timer().is_none(), "timers end");
        prop_assert!(b.cx.rqs.is_empty());
    }

    /// A page stays within its limits and within the window, unless it holds only one request.
    #[test]
    fn pages_stay_within_their_limits(
        window_us in 0u64..5000,
        limits in prop::array::uniform2(1u32..10),
        load in prop::collection::vec((0u8..4, 0u64..9000, 1u32..200), 1..60),
    ) {
        let mut b = Bench::stable("3.1.9", false);
        b.set("global_latency_window", &(window_us * 1000).to_string());
        b.set("batch_limit_read", &limits[0].to_string());
        b.set("batch_limit_write", &limits[1].to_string());
        for (op, sector, n) in load {
            let (op, flags) = [(R, Flags::empty()), (W, Flags::empty()), (W, Flags::SYNC), (R, Flags::SYNC)][op as usize];
            b.insert(op, flags, sector, n, Insert::Sorted);
        }
        while b.s.has_work(&b.cx, 0) {
            let before = b.s.tpl_ns;
            let page = 1 - b.s.current;
            let had = b.s.pages[page].len();
            let current_empty = b.s.pages[b.s.current].is_empty();
            b.take(false);
            if had == 0 && current_empty {
                let taken = 1 + b.s.pages[page].len();
                let reads = b.s.pages[page].fifo[READ].len();
                prop_assert!(reads as u32 <= limits[0]);
                prop_assert!(b.s.pages[page].fifo[WRITE].len() as u32 <= limits[1]);
                prop_assert!(taken == 1 || b.s.tpl_ns <= window_us * 1000, "{before} -> {}", b.s.tpl_ns);
            }
            if b.device.len() > 3 {
                b.complete(0);
            }
        }
    }
}

/// A request keeps its prediction when a merge makes it longer.
#[test]
fn merge_keeps_the_predicted_latency() {
    let mut b = Bench::stable("3.1.9", false);
    b.put(R, 0);
    let rq = RqId(b.s.tree[0].first().unwrap());
    let more = Bio::new(99, TaskId(1), R, Flags::empty(), 8, 120);
    assert!(b.s.allow_merge(&mut b.cx, rq, &more, IocId(0)));
    let now = b.cx.now();
    b.cx.rqs.append_bio(rq, more, now);
    b.s.merged(&mut b.cx, rq, MergeKind::Back);
    assert_eq!(b.cx.rqs[rq].sectors, Sectors(128));
    b.all();
    assert_eq!(b.s.tpl_ns, 100_000);
    assert!(
        !b.s.allow_merge(&mut b.cx, rq, &more, IocId(0)),
        "it left its tree"
    );
}
