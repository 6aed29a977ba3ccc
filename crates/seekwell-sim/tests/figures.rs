//! Figures of one record that must be consistent with each other.

use seekwell_core::result::{Latency, Record};
use seekwell_sim::Setup;
use seekwell_sim::world::{WorldSetup, run_simulated};
use seekwell_workload::Plan;

fn run(device: &str, scheduler: &str, workload: &str) -> Record {
    run_with(device, scheduler, workload, None)
}

fn run_with(device: &str, scheduler: &str, workload: &str, nr_requests: Option<u32>) -> Record {
    let setup = Setup {
        device: device.to_owned(),
        scheduler: scheduler.to_owned(),
        nr_requests,
        ..Setup::default()
    };
    let world = WorldSetup::new(setup).expect("a scheduler");
    let (name, params) = workload.split_once(':').unwrap_or((workload, ""));
    let params = params.split(',').filter_map(|p| p.split_once('='));
    let params: Vec<_> = params.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let plan = Plan::new(name, &params).expect("a workload");
    let ran = run_simulated(&plan, &world).expect("it runs");
    assert_eq!(ran.stopped, None);
    ran.record
}

fn near(what: &str, a: f64, b: f64, share: f64) {
    assert!((a / b - 1.0).abs() <= share, "{what}: {a} and {b}");
}

const NVME: &str = "ssd:nvme-dc-2t";
const DISK: &str = "hdd:hitachi-7k200";
/// 1024 reads outstanding: four times the tags that a scheduler has.
const CROWD: &str = "random-read:size=64m,tasks=16,depth=64,seconds=100ms";
const ALONE: &str = "random-read:size=64m,seconds=500ms";

/// Rate times mean latency must equal the number outstanding. Both must include the wait for a
/// request or tag. For a program's operations, the number is tasks times depth.
#[test]
fn littles_law_holds_including_tag_waits() {
    for (device, scheduler, workload, outstanding) in [
        (NVME, "none", CROWD, 1024.0),
        (NVME, "mq-deadline", CROWD, 1024.0),
        (NVME, "bfq", CROWD, 1024.0),
        (NVME, "none", ALONE, 1.0),
        (
            DISK,
            "noop",
            "random-read:size=64m,tasks=8,depth=32,seconds=20s",
            256.0,
        ),
        (DISK, "cfq", ALONE, 1.0),
    ] {
        let r = run(device, scheduler, workload);
        let what = format!("{scheduler} on {device}");
        let law = r.iops() * r.read.latency.mean_ns() / 1e9;
        near(&format!("{what}, bios"), law, r.outstanding_mean, 0.03);
        let own = &r.operation("read").expect("measured").latency;
        let law = r.rate(own.count() as f64) * own.mean_ns() / 1e9;
        near(&format!("{what}, operations"), law, outstanding, 0.06);
        let (inside, all) = (r.depth_mean, r.outstanding_mean);
        assert!(
            inside <= all * 1.001 && all <= outstanding * 1.001,
            "{what}: {inside} {all}"
        );
    }
}

/// Latencies of programs and of bios must rank schedulers in the same order. With few tags the
/// device's queue is short and its requests are fast, but the program still waits.
#[test]
fn bio_latencies_rank_schedulers_like_program_latencies() {
    let of = |scheduler: &str, nr_requests| {
        let r = run_with(NVME, scheduler, CROWD, nr_requests);
        let own = r.operation("read").expect("measured").latency.clone();
        (r.read, own)
    };
    let (none, none_own) = of("none", None);
    let (few, few_own) = of("mq-deadline", Some(64));
    let p99 = |l: &Latency| l.percentile_ns(99.0) as f64;
    assert!(p99(&few_own) > 1.1 * p99(&none_own));
    assert!(p99(&few.latency) > 1.05 * p99(&none.latency));
    // Without the held time the order would be reversed.
    let held = few.held_ns as f64 / few.ios as f64;
    let inside = few.latency.mean_ns() - held;
    assert_eq!(none.held_ns, 0);
    assert!(inside < 0.6 * none.latency.mean_ns(), "{inside} {held}");
}

/// One direct read at a time: there is no wait, so bio and operation differ only by the call.
#[test]
fn single_direct_read_takes_as_long_as_its_bio() {
    // The run on the disk is so long that three reads of metadata do not change the ranks.
    let long = "random-read:size=64m,seconds=20s";
    for (device, scheduler, workload) in [
        (NVME, "kyber", ALONE),
        (DISK, "deadline", long),
        (DISK, "bfq", long),
    ] {
        let r = run(device, scheduler, workload);
        let own = &r.operation("read").expect("measured").latency;
        assert_eq!(r.read.held_ns, 0);
        for p in [50.0, 99.0] {
            let block = r.read.latency.percentile_ns(p);
            let own = own.percentile_ns(p);
            assert!(
                block <= own && own < block + 2_000 + block / 500,
                "{block} {own}"
            );
        }
    }
}

/// The columns of the record cover only the time in which the workload's clock ran.
#[test]
fn requests_before_the_measurement_are_not_counted() {
    let r = run(DISK, "cfq", "random-read:size=64m,seconds=5s");
    let (start, stop) = r.window_ns();
    assert!(
        start > 500_000_000 && stop - start >= 5_000_000_000,
        "{start} {stop}"
    );
    assert!(stop <= r.duration_ns);
    let own = r.operation("read").expect("measured");
    let metric = r.metric.as_ref().expect("a metric");
    assert_eq!(
        (metric.operation.as_str(), metric.n),
        ("read", own.latency.count())
    );
    near("rate", r.bytes_per_sec(), metric.value * 4096.0, 0.01);
    near(
        "bytes",
        r.bytes_per_sec() * r.span_ns() as f64 / 1e9,
        r.read.bytes as f64,
        1e-9,
    );
    // The program wrote 64 MiB before its clock started. While the clock runs, only the rest of the
    // journal may be written.
    assert!(r.write.bytes < 1 << 20, "{}", r.write.bytes);
    assert!(
        r.requests < r.read.ios + 50,
        "{} {}",
        r.requests,
        r.read.ios
    );
    assert!(r.busy() > 0.95, "{}", r.busy());
    let shares: u64 = r.processes.iter().map(|p| p.bytes).sum();
    assert_eq!(shares, r.read.bytes + r.write.bytes);
    let calls: u64 = r.tasks.iter().map(|t| t.reads).sum();
    assert_eq!(
        (calls, r.tasks.iter().map(|t| t.ops).sum()),
        (metric.n, metric.n)
    );
    assert_eq!(r.tasks.iter().map(|t| t.written_bytes).sum::<u64>(), 0);
    // The series covers the whole run.
    let series: u64 = r.seconds.iter().map(|s| s.bytes).sum();
    assert!(series >= r.read.bytes + (64 << 20), "{series}");
}

/// A record of the first layout has no clock and covers the whole run.
#[test]
fn record_without_a_clock_covers_the_whole_run() {
    let r = run(DISK, "noop", "random-read:size=4m,seconds=100ms");
    let mut v = serde_json::to_value(&r).expect("JSON");
    let fields = v.as_object_mut().expect("an object");
    for new in ["clock_start_ns", "clock_stop_ns"] {
        assert!(fields.remove(new).is_some());
    }
    for way in ["read", "write"] {
        assert!(
            fields[way]
                .as_object_mut()
                .expect("one")
                .remove("held_ns")
                .is_some()
        );
    }
    let old: Record = serde_json::from_value(v).expect("still read");
    assert_eq!(old.span_ns(), old.duration_ns);
}
