//! Verdicts over records built by hand.

use super::*;
use seekwell_core::result::{Metric, Operation};
use seekwell_lab::analysis::single::standing;

fn run(name: &str, value: f64) -> Record {
    let mut r = Record::default();
    r.scheduler.spec = name.to_owned();
    r.seed = 7;
    r.metric = Some(Metric {
        name: "seeks".to_owned(),
        unit: "seeks/s".to_owned(),
        value,
        higher_is_better: true,
        ..Metric::default()
    });
    r
}

fn words(runs: &[Record]) -> String {
    super::standing(runs).expect("two runs").words()
}

#[test]
fn close_runs_are_level() {
    let runs = [run("noop", 75.0), run("cfq", 76.4)];
    let text = words(&runs);
    assert!(text.starts_with("level:"), "{text}");
    assert!(text.contains("1.9 %") && text.contains("seed 7"), "{text}");
    assert!(
        text.ends_with("another seed can give another result (--seed 8)."),
        "{text}"
    );
    assert_eq!(standing(&runs).unwrap().winner(), None);
    assert!(standing(&runs).unwrap().leaders().is_empty());
}

#[test]
fn best_scheduler_is_named_with_its_lead() {
    let runs = [
        run("noop", 50.0),
        run("cfq", 100.0),
        run("bfq", 99.0),
        run("sio", 80.0),
    ];
    let text = words(&runs);
    assert!(
        text.contains("cfq and bfq are level (within 2 %) and ahead"),
        "{text}"
    );
    assert!(
        text.contains("next is sio with 80.0 seeks/s, 25 % behind"),
        "{text}"
    );
    assert!(
        text.contains("last is noop with 50.0 seeks/s, 2.0 times behind"),
        "{text}"
    );
    let v = standing(&runs).unwrap();
    assert_eq!(
        (v.winner(), v.leaders()),
        (None, vec![1, 2]),
        "two are level"
    );
    assert_eq!(v.next().map(|n| n.0), Some(3));
    assert_eq!(standing(&runs[..2]).unwrap().winner(), Some(1));
}

/// Returns 2000 operations with the usual latency. One in `part` has the rare latency.
fn latencies(usual_ms: u64, part: u64, rare_ms: u64) -> Latency {
    let mut l = Latency::default();
    for i in 0..2000 {
        let ms = if i % part == 0 { rare_ms } else { usual_ms };
        l.record(ms * 1_000_000);
    }
    l
}

fn replayed(name: &str, reads: Latency) -> Record {
    let mut r = Record::default();
    r.scheduler.spec = name.to_owned();
    r.params.insert("mode".to_owned(), "timed".to_owned());
    (r.read.ios, r.read.latency) = (reads.count(), reads);
    r
}

#[test]
fn timed_replay_is_judged_by_latency_and_its_tail_is_shown() {
    let fast = replayed("cfq", latencies(1, 19, 50));
    let text = words(&[replayed("noop", latencies(4, 2, 4)), fast]);
    assert!(
        text.starts_with("by mean read latency, cfq is ahead with 3.60 ms (n 2,000)"),
        "{text}"
    );
    // Of 2000 operations, 100 are in the slowest twentieth, and at most 20 are in the slowest
    // hundredth.
    assert!(
        text.contains("slowest twentieth of read operations takes 50.0 ms"),
        "{text}"
    );
    assert!(text.contains("4.00 ms under noop"), "{text}");
}

/// Programs see latencies that the block layer does not see. For example, two tail latencies were
/// 1.87 and 0.54 ms for bios, but 1.87 and 2.53 ms for the program.
#[test]
fn tail_latencies_are_those_of_the_program() {
    let with = |name: &str, value: f64, bio_ms: u64, own_ms: u64| {
        let mut r = run(name, value);
        let bios = latencies(1, 9, bio_ms);
        (r.read.ios, r.read.latency) = (bios.count(), bios);
        r.operations.push(Operation {
            kind: "read".to_owned(),
            latency: latencies(1, 9, own_ms),
            ..Operation::default()
        });
        let m = r.metric.as_mut().unwrap();
        (m.operation, m.n) = ("read".to_owned(), 2000);
        r
    };
    let text = words(&[with("none", 9e5, 19, 19), with("mq-deadline", 8e5, 5, 25)]);
    assert!(!text.contains("slowest"), "{text}");
    let text = words(&[with("none", 9e5, 5, 25), with("mq-deadline", 8e5, 19, 19)]);
    assert!(
        text.contains("slowest twentieth of read operations takes 25.0 ms"),
        "{text}"
    );
}

#[test]
fn too_few_operations_give_no_verdict() {
    let of_n = |name: &str, value: f64, n: u64| {
        let mut r = run(name, value);
        let m = r.metric.as_mut().unwrap();
        (m.operation, m.n) = ("fsync".to_owned(), n);
        r
    };
    let runs = [of_n("noop", 10.0, 1), of_n("cfq", 90.0, 30)];
    let text = words(&runs);
    assert!(
        text.starts_with(
            "too few operations to decide (fsync: 1 under noop; at least 10 are needed)"
        ),
        "{text}"
    );
    assert!(text.contains("cfq has 90.0 seeks/s (n 30)"), "{text}");
    let v = standing(&runs).unwrap();
    assert!(v.winner().is_none() && v.leaders().is_empty() && !v.enough());
    let runs = [of_n("noop", 10.0, 10), of_n("cfq", 90.0, 10)];
    assert_eq!(standing(&runs).unwrap().winner(), Some(1));
}

#[test]
fn schedulers_of_different_kernels_may_differ_only_by_placement() {
    let on = |name: &str, kernel: &str, value: f64| {
        let mut r = run(name, value);
        (r.substrate, r.workload) = ("sim".into(), "streams".into());
        (r.scheduler.kernel, r.device.rotational) = (kernel.to_owned(), true);
        r
    };
    let runs = [
        on("cfq", "4.0", 60.0),
        on("noop", "4.0", 55.0),
        on("bfq", "6.12", 45.0),
    ];
    let v = standing(&runs).unwrap();
    assert!(v.only_placement() && v.winner().is_none());
    let text = super::standing(&runs).unwrap().words();
    assert!(
        text.contains("But cfq (4.0) and bfq (6.12) belong to different kernels")
            && text.contains("a factor of 1.9"),
        "{text}"
    );
    // The placement is no explanation within one generation of kernels, for a large distance, on a
    // raw device, or on flash.
    assert_eq!(standing(&runs[..2]).unwrap().winner(), Some(0));
    let far = [on("cfq", "4.0", 60.0), on("bfq", "6.12", 30.0)];
    assert_eq!(standing(&far).unwrap().winner(), Some(0));
    let text = words(&far);
    assert!(
        text.contains("kernels of different generations (4.0 and 6.12)"),
        "{text}"
    );
    let mut raw = [runs[0].clone(), runs[2].clone()];
    raw.iter_mut().for_each(|r| r.workload = "seeker".into());
    assert_eq!(standing(&raw).unwrap().winner(), Some(0));
    let mut flash = [runs[0].clone(), runs[2].clone()];
    flash.iter_mut().for_each(|r| r.device.rotational = false);
    assert_eq!(standing(&flash).unwrap().winner(), Some(0));
}

#[test]
fn cpu_cost_is_mentioned_only_where_it_matters() {
    let with = |ios: u64, rotational: bool| {
        let mut r = run("none", 1.0);
        (r.substrate, r.duration_ns, r.read.ios) = ("sim".into(), 1_000_000_000, ios);
        r.device.rotational = rotational;
        cpu_note(&[r])
    };
    assert!(with(400_000, false).is_some_and(|n| n.contains("It is not charged here")));
    assert!(with(99_000, false).is_none() && with(400_000, true).is_none());
    // There is no note if the submitters are charged for the CPU time.
    let mut paid = run("none", 1.0);
    (paid.substrate, paid.duration_ns, paid.read.ios) = ("sim".into(), 1_000_000_000, 400_000);
    assert!(cpu_note(&[paid.clone()]).is_some());
    paid.scheduler_charged = true;
    assert!(cpu_note(&[paid]).is_none());
}

#[test]
fn single_or_empty_runs_give_no_verdict() {
    assert!(super::standing(&[]).is_none());
    assert!(super::standing(&[run("noop", 1.0)]).is_none());
    let text = words(&[run("noop", 0.0), run("cfq", 0.0)]);
    assert!(text.starts_with("no difference"), "{text}");
    let text = words(&[run("noop", 0.0), run("cfq", 5.0)]);
    assert!(text.contains("beyond comparison"), "{text}");
}
