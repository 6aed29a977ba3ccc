//! Tests of the invariants with random sequences of insertions, dispatches and completions.

mod thresholds;

use super::*;
use crate::cx::QueueFacts;
use proptest::prelude::*;
use seekwell_core::{Action, CgroupId, Flags, Instant, Nanos, Rule, State, TaskId, TickClock};

fn begins_batch(rule: Option<&Rule>) -> bool {
    let begin = [
        rules::HEAD_EXPIRED,
        rules::SWEEP_CONTINUES,
        rules::FIFO_HEAD,
    ];
    rule.is_some_and(|r| begin.contains(&r))
}
fn continues(rule: Option<&Rule>) -> bool {
    rule == Some(rules::BATCH_CONTINUES)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert {
        class: u8,
        write: bool,
        sector: u64,
        head: bool,
    },
    /// A bio is merged into a request at its front.
    Grow(usize),
    Dispatch,
    Complete(usize),
    Wait(u64),
}

fn step(classes: u8, heads: bool) -> impl Strategy<Value = Step> {
    let insert = (0..classes, any::<bool>(), 0u64..40, 0u8..12);
    prop_oneof![
        4 => insert.prop_map(move |(class, write, sector, h)| Step::Insert {
            class,
            write,
            sector: sector * 8,
            head: heads && h == 0,
        }),
        1 => any::<usize>().prop_map(Step::Grow),
        4 => Just(Step::Dispatch),
        3 => any::<usize>().prop_map(Step::Complete),
        2 => (1u64..30).prop_map(Step::Wait),
    ]
}

struct Bench {
    cx: Cx,
    s: MqDeadline,
    /// Waiting requests: the request, its class, whether it is at the head, the jiffy of its
    /// insertion.
    waiting: Vec<(RqId, u8, bool, u64)>,
    in_flight: Vec<(RqId, u8)>,
    last: [[u64; 2]; CLASSES],
    in_batch: u32,
    read_batches: u32,
    /// True if the start sector of a request has changed since its insertion.
    grew: bool,
}

impl Bench {
    fn new(version: &str, tunables: &[(&str, &str)]) -> Self {
        let mut cx = Cx::new(QueueFacts::example(Era::Mq), TickClock::new(1000));
        let mut s = MqDeadline::new(&cx, Generation::named(version));
        for (name, value) in tunables {
            s.store(&mut cx, name, value).unwrap();
        }
        cx.log.listen(true);
        Bench {
            cx,
            s,
            waiting: vec![],
            in_flight: vec![],
            last: [[0; 2]; CLASSES],
            in_batch: 0,
            read_batches: 0,
            grew: false,
        }
    }

    fn insert(&mut self, class: u8, write: bool, sector: u64, head: bool) {
        let op = if write { Op::Write } else { Op::Read };
        let task = TaskId(u32::from(class));
        let prio = [Class::Rt, Class::Be, Class::Idle][class as usize];
        let prio = IoPrio {
            class: prio,
            level: 4,
        };
        let cx = &mut self.cx;
        let ioc = match cx.iocs.find(task) {
            Some(ioc) => ioc,
            None => cx.iocs.create(task, prio, CgroupId::ROOT),
        };
        let bio = Bio::new(0, task, op, Flags::empty(), sector, 8);
        let now = cx.now();
        let rq = cx.rqs.alloc(bio, ioc, prio, Era::Mq, now);
        self.s.prepare(cx, rq);
        cx.rqs[rq].state = State::Sorted;
        cx.nr_sorted += 1;
        let how = if head { Insert::AtHead } else { Insert::Sorted };
        self.s.insert(cx, rq, how);
        self.waiting.push((rq, class, head, cx.jiffies()));
    }

    /// Moves the start of a request in sector order forward by eight sectors. Other requests can
    /// have the same start then.
    fn grow(&mut self, k: usize) {
        let sorted = |w: &&(RqId, u8, bool, u64)| !w.2 && self.cx.rqs[w.0].sector.0 >= 8;
        let all: Vec<_> = self.waiting.iter().filter(sorted).map(|w| w.0).collect();
        if all.is_empty() {
            return;
        }
        let rq = all[k % all.len()];
        let cx = &mut self.cx;
        let (now, r) = (cx.now(), &cx.rqs[rq]);
        let bio = Bio::new(0, TaskId(0), r.op, r.flags, r.sector.0 - 8, 8);
        cx.rqs.prepend_bio(rq, bio, now);
        self.s.merged(cx, rq, MergeKind::Front);
        self.s.check(cx);
        self.grew = true;
    }

    fn queued(&self, class: u8) -> usize {
        let waiting = self.waiting.iter().filter(|w| w.1 == class).count();
        waiting + self.in_flight.iter().filter(|f| f.1 == class).count()
    }

    fn dispatch(&mut self, one_class: bool) {
        self.cx.log.events.clear();
        let given = self.s.dispatch(&mut self.cx, 0, false);
        self.s.check(&self.cx);
        assert_eq!(
            self.s.has_work(&self.cx, 0),
            !self.waiting.is_empty() && self.waiting.len() > given as usize
        );
        // A failed check for aged requests also ends the batch.
        if self.cx.log.events.iter().any(|e| begins_batch(e.rule)) {
            self.in_batch = 0;
        }
        if given == 0 {
            assert!(!one_class || self.waiting.is_empty(), "P9: work conserving");
            let highest = self.waiting.iter().map(|w| w.1).min();
            let higher = |h: u8| self.in_flight.iter().any(|f| f.1 < h);
            assert!(
                highest.is_none_or(higher),
                "gives nothing only behind a higher class in flight"
            );
            return;
        }
        let rq = self.cx.out.pop().unwrap();
        let i = self.waiting.iter().position(|w| w.0 == rq).unwrap();
        let heads = self.waiting.iter().any(|w| w.2);
        let (_, class, head, since_j) = self.waiting.remove(i);
        let (sector, dir) = (self.cx.rqs[rq].sector.0, self.cx.rqs[rq].dir());
        if self.s.generation == Generation::V6_12 {
            assert!(head || !heads, "P8: at-head requests leave first");
        }
        if !head {
            self.judge(class, sector, dir, since_j);
        }
        // In 6.1 a request inserted at the head does not move the sweep.
        if !head || !self.s.generation.pointers {
            self.last[class as usize][dir] = sector;
        }
        self.cx.rqs[rq].state = State::InFlight;
        self.in_flight.push((rq, class));
    }

    fn judge(&mut self, class: u8, sector: u64, dir: usize, since_j: u64) {
        let rules: Vec<_> = self
            .cx
            .log
            .events
            .iter()
            .filter(|e| e.action == Action::Why)
            .map(|e| e.rule)
            .collect();
        // The last of these rules chose the request. Earlier rules belong to failed checks.
        let chose = rules
            .iter()
            .rev()
            .find(|r| continues(**r) || begins_batch(**r));
        // In 6.1 the pointer still points to a request whose start moved to a place before the
        // position.
        let moved = self.grew && self.s.generation.pointers;
        if chose.is_some_and(|r| continues(*r)) && !moved {
            let last = self.last[class as usize][dir];
            assert!(sector >= last, "P1: {sector} behind {last} inside a batch");
        }
        self.in_batch += 1;
        let fifo_batch = (self.s.fifo_batch as u32).max(1);
        assert!(
            self.in_batch <= fifo_batch,
            "P2: {} in a batch of {fifo_batch}",
            self.in_batch
        );
        let old = self.cx.jiffies() - since_j >= self.s.prio_aging_j;
        for higher in 0..class {
            assert!(
                old || self.queued(higher) == 0,
                "P5: class {class} before {higher}"
            );
        }
    }

    fn complete(&mut self, k: usize) {
        if self.in_flight.is_empty() {
            return;
        }
        let (rq, _) = self.in_flight.remove(k % self.in_flight.len());
        self.s.completed(&mut self.cx, rq);
        self.s.finish(&mut self.cx, rq);
        self.cx.rqs.free(rq);
        self.s.check(&self.cx);
        for (c, class) in self.s.class.iter().enumerate() {
            assert_eq!(class.queued() as usize, self.queued(c as u8), "P7");
        }
    }

    /// Counts the read batches that began while a write waited (one class).
    fn watch_starvation(&mut self, writes_waited: bool) {
        let began = self.cx.log.events.iter().any(|e| begins_batch(e.rule));
        if !writes_waited {
            self.read_batches = 0;
        } else if began && self.s.last_dir == READ {
            self.read_batches += 1;
            let limit = self.s.writes_starved as u32;
            assert!(self.read_batches <= limit, "P3: writes starve");
        } else if self.s.last_dir == WRITE {
            self.read_batches = 0;
        }
    }
}

fn play(version: &str, tunables: &[(&str, &str)], steps: &[Step], one_class: bool) {
    let mut b = Bench::new(version, tunables);
    for s in steps {
        match *s {
            Step::Insert {
                class,
                write,
                sector,
                head,
            } => b.insert(class, write, sector, head),
            Step::Grow(k) => b.grow(k),
            Step::Dispatch => {
                let writes_waited = b.waiting.iter().any(|w| b.cx.rqs[w.0].is_write());
                b.dispatch(one_class);
                if one_class {
                    b.watch_starvation(writes_waited);
                }
            }
            Step::Complete(k) => b.complete(k),
            Step::Wait(ms) => b.cx.set_now(b.cx.now() + Nanos::from_ms(ms)),
        }
    }
    // No request is left over: all requests are dispatched while others complete.
    while !b.waiting.is_empty() {
        let before = b.waiting.len();
        while !b.in_flight.is_empty() {
            b.complete(0);
        }
        b.dispatch(one_class);
        assert_eq!(b.waiting.len(), before - 1, "P4: each dispatch takes one");
    }
    assert!(b.cx.now() >= Instant::START);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn invariants_hold_with_one_priority_class(
        steps in prop::collection::vec(step(1, false), 1..150),
        fifo_batch in 0u32..6,
        starved in 0u32..4,
        read_expire in prop::sample::select(vec!["0", "5", "40"]),
        version in prop::sample::select(vec!["6.12", "6.1", "5.10"]),
    ) {
        let (batch, starved) = (fifo_batch.to_string(), starved.to_string());
        let t = [("fifo_batch", &*batch), ("writes_starved", &*starved), ("read_expire", read_expire), ("write_expire", "20")];
        play(version, &t, &steps, true);
    }

    #[test]
    fn invariants_hold_with_three_priority_classes(
        steps in prop::collection::vec(step(3, true), 1..150),
        fifo_batch in 1u32..6,
        aging in prop::sample::select(vec!["0", "10", "100", "10000"]),
        version in prop::sample::select(vec!["6.12", "6.1"]),
    ) {
        let batch = fifo_batch.to_string();
        play(version, &[("fifo_batch", &*batch), ("prio_aging_expire", aging)], &steps, false);
    }
}

/// `dd_request_merged`: in 6.1 the pointer moves if a request is removed from the tree, but not if
/// the request is sorted again.
#[test]
fn sweep_continues_with_a_request_that_grew_at_its_front() {
    for version in ["6.12", "6.1", "5.10"] {
        let mut b = Bench::new(version, &[]);
        for sector in [96, 200, 304] {
            b.insert(0, false, sector, false);
        }
        b.dispatch(true);
        let next = b.waiting[0].0;
        b.grow(0);
        b.dispatch(true);
        assert_eq!(b.in_flight.last(), Some(&(next, 0)), "{version}");
        assert_eq!(b.cx.rqs[next].sector.0, 192);
    }
}

#[test]
fn tunable_writes_behave_like_sysfs() {
    let mut cx = Cx::new(QueueFacts::example(Era::Mq), TickClock::new(250));
    let mut s = MqDeadline::new(&cx, Generation::V6_12);
    let mut set = |n: &str, v: &str| {
        let r = s.store(&mut cx, n, v);
        (r.is_ok(), s.show(&cx, n).unwrap_or_default())
    };
    assert_eq!(
        set("read_expire", "501"),
        (true, "504".into()),
        "rounds up to the tick"
    );
    assert_eq!(
        set("write_expire", "-1"),
        (true, "0".into()),
        "clamped silently"
    );
    assert_eq!(set("async_depth", "0"), (true, "1".into()));
    assert_eq!(set("front_merges", "7"), (true, "1".into()));
    assert_eq!(set("fifo_batch", "many"), (false, "16".into()), "EINVAL");
    assert_eq!(set("slice_idle", "8"), (false, String::new()));
}

/// For each version, the text of the rule is right for a request at the head and a request of a
/// higher class.
#[test]
fn text_of_the_at_head_rule_matches_the_behaviour() {
    let mut own_class_only = Vec::new();
    for (version, _) in INFO.versions {
        let mut b = Bench::new(version, &[]);
        if b.s.generation.classes {
            // A real-time request waits in sector order, and a best-effort request at the head.
            b.insert(0, false, 80, false);
            b.insert(1, false, 8, true);
            b.dispatch(false);
            match b.in_flight[0].1 {
                0 => own_class_only.push(*version),
                _ => assert_eq!(b.in_flight[0].1, 1, "{version}"),
            }
        }
        // Within its class the request at the head is first in all versions.
        let mut b = Bench::new(version, &[]);
        b.insert(1, false, 8, false);
        b.insert(1, false, 80, true);
        b.dispatch(true);
        assert_eq!(b.cx.rqs[b.in_flight[0].0].sector, Sector(80), "{version}");
    }
    let said = format!(
        "A request inserted at the head goes before all requests of every class ({}: of its own class only).",
        own_class_only.join(", ")
    );
    assert_eq!(rules::AT_HEAD.says, said);
}
