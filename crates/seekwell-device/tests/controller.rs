//! Properties of a hardware controller and a cloud volume: parity operations, bursts and overload
//! of the cache, flushes, read-ahead, token rates.

use rand::RngCore;
use seekwell_core::rng;
use seekwell_core::{Device, Nanos, Op};
use seekwell_device::open;
use seekwell_device::probe::{Client, Run, command};

type Any = Client<Box<dyn Device + Send>>;

fn client(spec: &str) -> Any {
    Client::new(open(spec, 3).unwrap())
}
fn random(c: &mut Any, op: Op, depth: usize, n: usize) -> Run {
    let blocks = c.device.facts().capacity.0 / 8;
    // Use other addresses in each phase of a test.
    let mut rng = rng::stream(c.now.0, "controller");
    c.run(n, depth, Nanos::ZERO, |_| {
        command(op, rng.next_u64() % blocks * 8, 8)
    })
}
fn near(what: &str, value: f64, expected: f64, share: f64) {
    let error = value / expected - 1.0;
    assert!(
        error.abs() <= share,
        "{what}: {value:.3}, expected {expected:.3}"
    );
}

/// Disks of constant latency, so that the test can count operations.
fn constant_disks(level: &str, members: u32, more: &str) -> String {
    format!(
        "controller:level={level},members={members},of=(constant:service_us=1000,capacity=262144),\
         firmware=0,link=1000000,write_policy=write-through{more}"
    )
}

#[test]
fn small_write_costs_follow_the_raid_level() {
    for (level, n, ops, ms) in [
        ("raid0", 4, 1, 1.0),
        ("raid1", 3, 3, 1.0),
        ("raid10", 4, 2, 1.0),
        ("raid5", 8, 4, 2.0),
        ("raid6", 8, 6, 2.0),
        ("raid5", 3, 3, 2.0),
    ] {
        let mut c = client(&constant_disks(level, n, ""));
        let took = c.send(command(Op::Write, 4096, 8)).as_ms_f64();
        assert_eq!(c.device.stats().media_ops, ops, "{level}");
        near(level, took, ms, 0.01);
    }
    // A whole row needs no reads. With a lost disk, reads and writes use the remaining ones.
    let mut c = client(&constant_disks("raid5", 5, ""));
    near(
        "row",
        c.send(command(Op::Write, 0, 512)).as_ms_f64(),
        1.0,
        0.01,
    );
    assert_eq!(c.device.stats().media_ops, 5);
    let mut c = client(&constant_disks("raid5", 5, ",failed=0"));
    c.send(command(Op::Read, 0, 8));
    assert_eq!(c.device.stats().media_ops, 4, "row 0 begins on disk 0");
    c.send(command(Op::Write, 0, 8));
    assert_eq!(c.device.stats().media_ops, 4 + 3 + 1);
    c.send(command(Op::Write, 128, 8));
    assert_eq!(
        c.device.stats().media_ops,
        8 + 4,
        "its neighbour must be modified"
    );
}

/// With n disks and sufficient depth, throughput falls by the number of operations per write.
#[test]
fn write_throughput_is_divided_by_operations_per_write() {
    let rate = |level, n| {
        random(
            &mut client(&constant_disks(level, n, "")),
            Op::Write,
            128,
            4_000,
        )
        .iops()
    };
    let all = rate("raid0", 8);
    // The throughput of a closed network with Q customers and n servers is n Q / (Q + n - 1).
    near("raid0", all, 8_000.0 * 128.0 / (128.0 + 7.0), 0.02);
    near("raid10", rate("raid10", 8), all / 2.0, 0.03);
    near("raid5", rate("raid5", 8), all / 4.0, 0.05);
    near("raid6", rate("raid6", 8), all / 6.0, 0.05);
}

#[test]
fn cache_absorbs_a_burst_and_disks_limit_sustained_writes() {
    let spec = "controller:level=raid0,members=4,cache=16MiB,read_share=0,timer=60s";
    let mut c = client(spec);
    // 0.8 of 16 MiB holds 3276 writes of 4 KiB.
    let burst = random(&mut c, Op::Write, 32, 3_000);
    assert!(burst.quantile_ms(1.0) < 2.0, "{}", burst.quantile_ms(1.0));
    let one = random(
        &mut client("hdd:hitachi-7k500,write_cache=off"),
        Op::Write,
        1,
        2_000,
    )
    .iops();
    let flood = |more: &str| {
        let mut c = client(&format!("{spec}{more}"));
        random(&mut c, Op::Write, 32, 6_000);
        random(&mut c, Op::Write, 32, 6_000).iops()
    };
    // Sorting about 700 extents per disk shortens seeks. With sixteen outstanding commands, the
    // disk also chooses by rotation.
    let (deep, single) = (flood(""), flood(",disk_depth=1"));
    let gains = (single / 4.0 / one, deep / 4.0 / one);
    println!(
        "write-back of 2800 sorted extents, times one write after the other: {gains:.2?} \
         (one command a disk, sixteen)"
    );
    assert!((1.15..1.6).contains(&gains.0) && (2.3..3.2).contains(&gains.1));
    // The controller writes the oldest first, but each disk still orders its sixteen commands.
    let fifo = flood(",destage=fifo");
    println!("the oldest first: {fifo:.0} a second against {deep:.0} in order");
    assert!(fifo < 0.8 * deep);
    // Reads precede write-back while the cache empties, until the cache is full.
    let mut c = client(spec);
    random(&mut c, Op::Write, 32, 2_000);
    c.sleep(Nanos::from_secs(61));
    let read = random(&mut c, Op::Read, 1, 40).mean_ms();
    let alone = random(&mut client("hdd:hitachi-7k500"), Op::Read, 1, 400).mean_ms();
    println!("reads beside write-back {read:.1} ms, alone {alone:.1} ms");
    assert!(read > alone && read < 25.0 * alone);
}

#[test]
fn flush_is_free_with_battery_and_drains_the_cache_without() {
    let written = |more: &str| {
        let mut c = client(&format!("controller:level=raid0,members=2,timer=60s{more}"));
        let write = random(&mut c, Op::Write, 1, 50).mean_ms();
        let cached = c.device.facts().write_cache;
        (write, c.send(command(Op::Flush, 0, 0)).as_ms_f64(), cached)
    };
    let (write, flush, cached) = written("");
    assert!(write < 0.1 && flush < 0.1 && !cached);
    let (write, flush, cached) = written(",write_policy=always-write-back,battery=no");
    assert!(write < 0.1 && flush > 50.0 && cached, "{flush}");
    let (write, flush, cached) = written(",battery=no");
    assert!(
        write > 5.0 && flush < 0.1 && !cached,
        "falls back to write-through: {write}"
    );
    let (write, flush, cached) = written(",write_policy=write-through,disk_cache=yes");
    assert!(write < 0.5 && flush > 50.0 && cached, "{write} {flush}");
}

#[test]
fn cache_timer_destages_dirty_data() {
    let mut c = client("controller:level=raid5,members=3,timer=4s");
    random(&mut c, Op::Write, 1, 20);
    c.sleep(Nanos::from_ms(3_500));
    let before = c.device.stats().media_ops;
    c.sleep(Nanos::from_secs(3));
    assert_eq!(before, 0);
    assert!(
        c.device.stats().media_ops >= 60,
        "{}",
        c.device.stats().media_ops
    );
    let mut text = String::new();
    c.device.state(&mut text);
    assert!(text.contains("0 dirty sectors"), "{text}");
}

#[test]
fn controller_read_ahead_speeds_streams_but_not_random_reads() {
    let stream = |policy: &str| {
        let disk = "(hdd:hitachi-7k500,look_ahead=off)";
        let spec = format!("controller:level=raid0,of={disk},read_policy={policy},read_ahead=8");
        let mut c = client(&spec);
        let s = c
            .run(4_000, 1, Nanos::ZERO, |i| {
                command(Op::Read, i as u64 * 8, 8)
            })
            .mb();
        (s, random(&mut c, Op::Read, 1, 400).iops())
    };
    let (none, adaptive, always) = (stream("none"), stream("adaptive"), stream("ahead"));
    println!(
        "stream MB/s, random IOPS: none {none:.1?}, adaptive {adaptive:.1?}, always {always:.1?}"
    );
    assert!(adaptive.0 > 5.0 * none.0 && always.0 > 5.0 * none.0);
    near("random, adaptive", adaptive.1, none.1, 0.05);
    assert!(always.1 < none.1 * 1.02);
}

/// Reads scale with the members, for mirrors and for a plain stripe.
#[test]
fn reads_scale_with_the_number_of_members() {
    let disk = "(hdd:hitachi-7k500,depth=1)";
    let rate = |level: &str, n: u32, depth| {
        let spec = format!(
            "controller:level={level},members={n},of={disk},disk_depth=1,firmware=0,write_policy=write-through"
        );
        random(&mut client(&spec), Op::Read, depth, 6_000).iops()
    };
    let one = rate("raid0", 1, 1);
    // Closed network of n servers with Q customers: n Q / (Q + n - 1) for exponential service
    // times. Nearly constant service times give slightly more.
    let four = rate("raid0", 4, 4) / one;
    println!("RAID 0 of 4, 4 outstanding: {four:.2} (formula 2.29, simulated elsewhere 2.56)");
    assert!((2.29..2.75).contains(&four), "{four}");
    near(
        "RAID 0 of 4, 64 outstanding",
        rate("raid0", 4, 64) / one,
        3.85,
        0.05,
    );
    let mirror = rate("raid1", 2, 16) / one;
    println!("RAID 1 of 2, 16 outstanding: {mirror:.2}");
    assert!((1.95..2.35).contains(&mirror), "{mirror}");
}

#[test]
fn cloud_volume_delivers_its_provisioned_rates() {
    let mut c = client("cloud:gp3");
    near(
        "gp3 IOPS",
        random(&mut c, Op::Read, 64, 20_000).iops(),
        3_000.0,
        0.01,
    );
    let big = c.run(2_000, 16, Nanos::ZERO, |i| {
        command(Op::Read, i as u64 * 2048, 2048)
    });
    near("gp3 MB/s", big.mb(), 131.1, 0.01);
    let one = random(&mut client("cloud:gp3"), Op::Read, 1, 4_000).mean_ms();
    near(
        "latency, mean of a log-normal",
        one,
        0.7 * libm::exp(0.25 * 0.25 / 2.0),
        0.02,
    );
    // The burst rate is 3000 per second while credits last. Then the base rate applies.
    let mut c = client("cloud:gp2,credits=27000");
    near(
        "gp2 burst",
        random(&mut c, Op::Read, 64, 25_000).iops(),
        3_000.0,
        0.02,
    );
    random(&mut c, Op::Read, 64, 8_000);
    near(
        "gp2 base",
        random(&mut c, Op::Read, 64, 3_000).iops(),
        300.0,
        0.02,
    );
    c.sleep(Nanos::from_secs(10));
    near(
        "saved up",
        random(&mut c, Op::Read, 64, 2_500).iops(),
        3_000.0,
        0.03,
    );
}

/// A full bucket of 540,000 lasts 540,000 / (3000 - 300) = 200 s. It must start full, whatever the
/// time on the clock.
#[test]
fn full_credit_bucket_lasts_the_expected_time() {
    let mut c = client("cloud:gp2,credits=540000");
    let burst = random(&mut c, Op::Read, 64, 590_000).iops();
    near("burst for 197 s", burst, 3_000.0, 0.01);
    random(&mut c, Op::Read, 64, 12_000);
    let after = random(&mut c, Op::Read, 64, 3_000).iops();
    near("from second 204 on", after, 300.0, 0.02);
}

#[test]
fn same_seed_gives_same_times_and_members_differ_in_phase() {
    let spec = "controller:level=raid5,members=4,cache=1MiB";
    let times = |seed| {
        let mut c = Client::new(open(spec, seed).unwrap());
        let mut rng = rng::stream(9, "mixed");
        let next = |i| {
            let op = if i % 3 == 0 { Op::Write } else { Op::Read };
            command(op, rng.next_u64() % 1_000_000 * 8, 8)
        };
        c.run(2_000, 12, Nanos::ZERO, next).latency_ns
    };
    assert_eq!(times(1), times(1));
    assert_ne!(times(1), times(2));
    let mut c = client("controller:level=raid0,members=4,firmware=0,write_policy=write-through");
    let mut seen: Vec<u64> = (0..4)
        .map(|i| c.send(command(Op::Read, i * 128, 8)).0)
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 4);
}
