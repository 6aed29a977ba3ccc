//! Tests arrays and guests' disks under the names that users type. All presets can be opened. Every
//! bio completes exactly once in any nesting. Invalid specifications are rejected. The figures are
//! within their bounds.

use proptest::prelude::*;
use seekwell_core::{Bio, BioSink, Flags, Instant, Nanos, Op, TaskId};
use seekwell_device::{catalogue, describe, over_queues};
use seekwell_evidence::validation::raid::GROUP;
use seekwell_sim::{Queue, Setup};

fn setup(device: &str, scheduler: &str, seed: u64) -> Setup {
    Setup {
        device: device.to_owned(),
        scheduler: scheduler.to_owned(),
        seed,
        ..Setup::default()
    }
}

#[test]
fn every_array_preset_opens() {
    let mut n = 0;
    for e in catalogue() {
        if over_queues(describe(&e.name).unwrap().kind) {
            let q = setup(&e.name, "cfq", 1).build().unwrap();
            assert!(
                q.capacity().0 > 0 && q.device_facts().depth > 0,
                "{}",
                e.name
            );
            n += 1;
        }
    }
    assert_eq!(n, 9);
}

/// The device nodes must have the facts that Linux would show for them.
#[test]
fn array_nodes_report_the_facts_of_linux() {
    let facts = |device: &str| {
        setup(device, "noop", 1)
            .build()
            .unwrap()
            .device_facts()
            .clone()
    };
    let f = facts("raid5:members=4,of=hdd:hitachi-7k500,chunk=64KiB");
    assert!(f.rotational && f.write_cache);
    assert_eq!(f.io_opt_bytes, 3 * 64 * 1024);
    let disk = facts("hdd:hitachi-7k500");
    assert_eq!(f.capacity.0, disk.capacity.0 / 128 * 128 * 3);
    assert_eq!(f.max_sectors, disk.max_sectors);
    let f = facts("linear:of=ssd:s3700-100+hdd:hitachi-7k500");
    assert!(f.rotational, "one that rotates is enough");
    let f = facts("raid0:members=2,of=ssd:s3700-100");
    assert!(!f.rotational);
    let f = facts("virtual:over=ssd:s3700-100");
    assert!(
        f.rotational && f.depth == 256,
        "virtio-blk says so unless told otherwise"
    );
    assert!(!facts("virtual:vm-virtio-nvme").rotational);
    let f = facts("controller:hwraid10-8-bbu");
    assert!(f.rotational && !f.write_cache && f.depth == 256);
    assert_eq!(f.io_opt_bytes, 4 * 64 * 1024);
}

const DEVICES: &[&str] = &[
    "raid0:members=3,of=constant:service_us=300",
    "raid1:members=2,of=(constant:service_us=300),read_policy=fewest-pending,bitmap=yes",
    "raid10:members=4,layout=far,of=hdd:hitachi-7k200",
    "raid5:members=4,of=hdd:hitachi-7k500,chunk=16KiB,stripe_cache=32",
    "raid6:members=5,of=(hdd:hitachi-7k500,write_cache=off),failed=1+3,scheduler=(deadline:fifo_batch=1)",
    "linear:of=hdd:hitachi-7k200+constant:depth=4",
    "remap:of=(raid0:members=2,of=hdd:hitachi-7k500),aged=0.7,table=8,table_cache=2",
    "virtual:over=(raid5:members=3,scheduler=cfq),cache=writeback,host_memory=1MiB,depth=5",
    "virtual:over=(virtual:over=hdd:hitachi-7k500,depth=2),host_scheduler=noop,queues=3",
    "virtual:vm-aged-thin,neighbours=random-reader+sequential-reader+random-writer",
    "virtual:over=ssd:s3700-100,format=qcow2,aged=0.5,l2_tables=1,cache=directsync",
    "virtual:over=hdd:hitachi-7k500,cache=writethrough,host_memory=1MiB",
    "virtual:over=hdd:hitachi-7k500,cache=unsafe,host_memory=1MiB,dirty_expire=50ms",
    "raid1:members=2,of=(virtual:over=hdd:hitachi-7k500)",
    "raid0:members=2,of=(controller:hwraid5-5-wt)",
    "virtual:over=cloud:gp3,host_scheduler=none",
    "raid0:members=2,of=emmc:motog-sandisk8",
];

/// Runs a list of operations to its end. Returns the completions as pairs of id and time.
fn play(q: &mut Queue, script: &[(u64, u8, u64, u32)]) -> Vec<(u64, Instant)> {
    let size = q.capacity().0;
    let (mut now, mut out) = (Instant::START, Vec::new());
    for (i, (gap, what, at, n)) in script.iter().enumerate() {
        let to = now + Nanos::from_us(*gap);
        while let Some(t) = q.next_event().filter(|t| *t <= to) {
            q.advance(t, &mut out);
        }
        now = to;
        let (op, flags) = match what % 8 {
            0..4 => (Op::Read, Flags::empty()),
            4 | 5 => (Op::Write, Flags::empty()),
            6 => (Op::Write, Flags::SYNC | Flags::PREFLUSH | Flags::FUA),
            _ => (Op::Flush, Flags::SYNC),
        };
        let n = if op == Op::Flush { 0 } else { *n };
        let at = (at % (size / 8)) * 8;
        let at = if op == Op::Flush {
            0
        } else {
            at.min(size - u64::from(n))
        };
        q.submit(
            now,
            Bio::new(i as u64, TaskId(1 + u32::from(*what) % 3), op, flags, at, n),
        );
    }
    let mut steps = 0;
    while let Some(t) = q.next_event() {
        q.advance(t, &mut out);
        steps += 1;
        assert!(steps < 2_000_000, "it never ends");
    }
    assert!(out.iter().all(|d| !d.error));
    out.iter().map(|d| (d.id.0, d.at)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    /// Every bio completes exactly once, in order of time, and identically for the same seed.
    #[test]
    fn every_bio_completes_exactly_once_and_deterministically(
        which in 0..DEVICES.len(),
        scheduler in prop::sample::select(vec!["noop", "deadline", "cfq", "mq-deadline", "bfq", "none"]),
        seed: u64,
        script in proptest::collection::vec((0u64..3000, any::<u8>(), any::<u64>(), 1u32..300), 1..60),
    ) {
        let s = setup(DEVICES[which], scheduler, seed);
        let done = play(&mut s.build().unwrap(), &script);
        let mut ids: Vec<u64> = done.iter().map(|d| d.0).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..script.len() as u64).collect::<Vec<_>>());
        prop_assert!(done.windows(2).all(|w| w[0].1 <= w[1].1));
        prop_assert_eq!(done, play(&mut s.build().unwrap(), &script));
    }
}

#[test]
fn invalid_arrays_are_rejected_with_a_remedy() {
    for (device, expected) in [
        (
            "raid5:members=2,of=hdd:hitachi-7k500",
            "needs at least 3 members",
        ),
        ("raid6:members=3", "needs at least 4 members"),
        ("raid5:members=0", "between 1 and 64"),
        ("raid0:chunk=0", "between 512"),
        ("raid0:chunk=48KiB", "must be a power of two"),
        (
            "raid0:chunk=65537bytes",
            "not a multiple of the sector size",
        ),
        (
            "raid1:of=hdd:hitachi-7k500+hdd:hitachi-7k200",
            "members differ in size",
        ),
        (
            "raid0:of=hdd:hitachi-9k",
            "did you mean `hdd:hitachi-7k200`",
        ),
        ("raid0:failed=0", "cannot lose a member"),
        ("raid5:failed=0+1", "survives 1 failures"),
        ("raid1:members=2,failed=0+1", "let fewer members fail"),
        ("raid5:failed=7", "no member 7"),
        ("raid5:stripe_cache=3", "between 17"),
        (
            "raid0:scheduler=elevator",
            "no scheduler is called \"elevator\"",
        ),
        ("raid0:scheduler=(deadline:fifo_batch)", "write NAME=VALUE"),
        ("raid0:scheduler=(deadline:quantum=3)", "fifo_batch"),
        ("remap:members=2", "remap has one member"),
        (
            "virtual:over=raid0,host_scheduler=elevator",
            "no scheduler is called \"elevator\"",
        ),
        ("virtual:neighbours=noisy", "there is no neighbour"),
        ("virtual:dirty_background=0.5", "above the limit"),
        ("virtual:cache=maybe", "expected one of"),
        ("virtual:over=(hdd:hitachi-7k500,rpm=1)", "between 300"),
        (
            "raid0:members=2,of=(raid1:members=2,of=(hdd:hitachi-7k500",
            "parentheses",
        ),
    ] {
        match setup(device, "noop", 1).build() {
            Ok(_) => panic!("{device} was accepted"),
            Err(e) => assert!(e.to_string().contains(expected), "{device}: {e}"),
        }
    }
}

#[test]
fn scheduler_named_by_the_device_is_reported() {
    let run = |device: &str| {
        let s = setup(device, "cfq", 1);
        let mut q = s.build().unwrap();
        let mut r = s.record("none");
        q.fill(&mut r);
        r
    };
    let r = run("raid0:members=2,scheduler=deadline");
    assert!(
        r.warnings[0].contains("cfq is not used"),
        "{:?}",
        r.warnings
    );
    assert!(r.scheduler.tunables.contains_key("fifo_batch"));
    let r = run("raid0:members=2");
    assert!(r.warnings.is_empty() && r.scheduler.tunables.contains_key("slice_idle"));
}

#[test]
fn every_figure_is_within_its_bound() {
    for r in GROUP.run().unwrap() {
        let f = r.figure;
        println!(
            "{:9.2} {:9.2} {:9.2} {:4} {:+6.1} % | {} | {}",
            f.published.0,
            r.model,
            r.null,
            f.unit,
            r.error() * 100.0,
            f.figure,
            f.device
        );
        assert!(r.holds(), "{}: {} not {:?}", f.figure, r.model, f.published);
    }
}

/// Workloads run on arrays and in guests, and twice on the same drive.
#[test]
fn workloads_run_on_arrays_and_guests() {
    use seekwell_sim::world::{Drive, WorldSetup, run_on};
    for device in [
        "raid5:members=3",
        "virtual:over=(raid1:members=2)",
        "controller:hwraid5-5-bbu",
    ] {
        let given = [("seconds".to_owned(), "2s".to_owned())];
        let plan = seekwell_workload::Plan::new("seeker", &given).unwrap();
        let w = WorldSetup::new(setup(device, "deadline", 1)).unwrap();
        let mut drive = Drive::open(&w.setup).unwrap();
        for _ in 0..2 {
            let ran = run_on(&plan, &w, &mut drive).unwrap();
            let seeks = ran.record.metric.unwrap().value;
            assert!((50.0..110.0).contains(&seeks), "{device}: {seeks}");
        }
    }
}
