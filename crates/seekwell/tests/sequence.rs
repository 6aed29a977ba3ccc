//! Tests several runs on one drive: what the drive keeps, and how the order of runs affects a
//! comparison.

use seekwell::{Between, Cancel, Hooks, Record, RunSpec, Substrate, WorkloadSpec, run_sequence};
use seekwell_core::Nanos;

/// A flash drive of 2 GiB with the same fraction of spare space as the model of 160 GB. Cleaning
/// begins after 150 MB.
const DRIVE: &str = "ssd:x25m-g2-160,capacity=4194304,state=filled";

/// Returns a run that overwrites a file at random positions for ten seconds, without the page
/// cache.
fn overwrite(scheduler: &str, seed: u64) -> RunSpec {
    let mut spec = seekwell::spec("fs-mark:files=1", DRIVE, scheduler).expect("good words");
    spec.workload = WorkloadSpec::Fio {
        file: "overwrite.fio".into(),
        text: "[w]\nrw=randwrite\nbs=4k\nsize=1g\ndirect=1\nfallocate=posix\niodepth=8\n\
               ioengine=libaio\ntime_based=1\nruntime=4\n"
            .into(),
        includes: Default::default(),
        variables: Default::default(),
    };
    spec.seed = seed;
    spec
}

fn rates(specs: &[RunSpec], between: Between) -> Vec<f64> {
    let records = sequence(specs, between);
    records
        .iter()
        .map(|r| r.metric.as_ref().map_or(0.0, |m| m.value))
        .collect()
}

fn sequence(specs: &[RunSpec], between: Between) -> Vec<Record> {
    let mut all = Vec::new();
    run_sequence(specs, between, &Cancel::new(), |i, r| {
        assert_eq!(i, all.len());
        all.push(r.expect("it runs"));
    });
    all
}

fn alone(spec: &RunSpec) -> Record {
    seekwell::run(spec, Hooks::default()).expect("it runs")
}

#[test]
fn reused_flash_drive_slows_down_and_a_new_one_does_not() {
    let specs: Vec<RunSpec> = (1..=3).map(|s| overwrite("noop", s)).collect();
    let fresh: Vec<f64> = specs
        .iter()
        .map(|s| alone(s).metric.map_or(0.0, |m| m.value))
        .collect();
    let carried = rates(&specs, Between::default());
    let rested = rates(
        &specs,
        Between {
            pause: Nanos::from_secs(60),
            trim: false,
        },
    );
    let trimmed = rates(
        &specs,
        Between {
            pause: Nanos::ZERO,
            trim: true,
        },
    );
    println!(
        "fresh {fresh:.0?}\ncarried {carried:.0?}\nrested {rested:.0?}\ntrimmed {trimmed:.0?}"
    );
    let same = |v: &f64| (v / fresh[0] - 1.0).abs() < 0.05;
    assert!(fresh.iter().all(same), "{fresh:?}");
    assert!(same(&carried[0]), "the first run is that of a new drive");
    assert!(
        carried[1] < 0.8 * carried[0] && carried[2] < 1.05 * carried[1],
        "{carried:?}"
    );
    assert!(trimmed[1] > carried[1], "{trimmed:?} {carried:?}");
    assert!(rested[1] >= 0.99 * carried[1], "{rested:?} {carried:?}");
}

/// Here noop and deadline behave in the same way. Most publications make all runs of one scheduler,
/// then all runs of the next. The ageing of the drive then looks like an effect of the scheduler.
/// In blocks, the ageing affects both schedulers.
#[test]
fn sequential_order_creates_a_false_difference_that_blocks_avoid() {
    let order = |names: &[&str]| -> Vec<f64> {
        let specs: Vec<RunSpec> = names.iter().map(|n| overwrite(n, 1)).collect();
        rates(&specs, Between::default())
    };
    let (a, b) = ("noop", "deadline");
    let new: Vec<f64> = [a, b]
        .iter()
        .map(|n| alone(&overwrite(n, 1)).metric.map_or(0.0, |m| m.value))
        .collect();
    // In both designs, the first two blocks only age the drive.
    let sequential = order(&[a, a, a, b, b, b]);
    let blocks = [a, b, b, a, a, b, b, a];
    let interleaved = order(&blocks);
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let of = |name: &str| -> Vec<f64> {
        let all = blocks.iter().zip(&interleaved).skip(2);
        all.filter(|x| *x.0 == name).map(|x| *x.1).collect()
    };
    let first = mean(&sequential[..3]) / mean(&sequential[3..]);
    let second = mean(&of(a)) / mean(&of(b));
    println!("new drives {new:.0?}; sequential {sequential:.0?}, noop / deadline {first:.3}");
    println!("interleaved {interleaved:.0?}, after one block of burn-in {second:.3}");
    assert!((new[0] / new[1] - 1.0).abs() < 0.02, "{new:?}");
    assert!(first > 1.1, "{first}");
    assert!((second - 1.0).abs() < 0.05, "{second}");
}

#[test]
fn sequence_is_deterministic_and_records_its_position() {
    let mut specs: Vec<RunSpec> = Vec::new();
    for (scheduler, seed) in [("cfq", 1), ("noop", 1), ("cfq", 1)] {
        let mut s = seekwell::spec(
            "fs-mark:files=8",
            "emmc:motog-sandisk8,cache=2048",
            scheduler,
        )
        .expect("good words");
        s.seed = seed;
        specs.push(s);
    }
    let between = Between {
        pause: Nanos::from_secs(2),
        trim: true,
    };
    let json = |r: &Vec<Record>| serde_json::to_string(r).expect("records");
    let (one, two) = (sequence(&specs, between), sequence(&specs, between));
    assert_eq!(json(&one), json(&two));
    let place: Vec<_> = one
        .iter()
        .map(|r| r.carried.as_ref().map(|c| c.place))
        .collect();
    assert_eq!(place, [None, Some(1), Some(2)]);
    // The first run equals a run on a new drive. The third run has the same specification, but its
    // result may differ.
    let new = alone(&specs[0]);
    assert_eq!(json(&vec![new.clone()]), json(&one[..1].to_vec()));
    assert_ne!(one[2].spec_hash, new.spec_hash);
    let after = one[2].carried.as_ref().map(|c| c.after.clone());
    assert_eq!(after, Some(one[1].spec_hash.clone()));
}

#[test]
fn drives_that_cannot_be_reused_are_rejected() {
    let mut other = overwrite("noop", 1);
    other.device.spec = "hdd:hitachi-7k200".into();
    let mut array = other.clone();
    array.device.spec = "raid0:members=2,of=hdd:hitachi-7k200".into();
    let quick = seekwell::spec("fs-mark:files=1", DRIVE, "noop").expect("good words");
    let mut said = Vec::new();
    let mut note = |_, r: Result<Record, seekwell::Error>| {
        said.push(r.map_or_else(|e| e.to_string(), |_| "ran".to_owned()));
    };
    run_sequence(
        &[quick.clone(), other, quick.clone()],
        Between::default(),
        &Cancel::new(),
        &mut note,
    );
    run_sequence(&[array], Between::default(), &Cancel::new(), &mut note);
    let cancelled = Cancel::new();
    cancelled.set();
    run_sequence(
        std::slice::from_ref(&quick),
        Between::default(),
        &cancelled,
        &mut note,
    );
    assert_eq!(
        (said[0].as_str(), said[2].as_str()),
        ("ran", "ran"),
        "{said:?}"
    );
    assert!(said[1].contains("the sequence uses ssd:x25m"), "{said:?}");
    assert!(said[3].contains("is an array"), "{said:?}");
    assert!(said[4].contains("not started"), "{said:?}");
    // A real run does not change the machine or its queue.
    for (substrate, field, words) in [
        (
            Substrate::Host,
            "scheduler: ",
            "a real run does not change settings",
        ),
        (Substrate::Serve, "substrate: ", "seekwell serve"),
    ] {
        let mut s = quick.clone();
        s.substrate = substrate;
        let e = seekwell::run(&s, Hooks::default())
            .expect_err("not simulated")
            .to_string();
        assert!(e.starts_with(field) && e.contains(words), "{e}");
    }
}
