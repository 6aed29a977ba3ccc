//! Properties of a hard disk that must hold for any parameters, and the effects that decide which
//! scheduler wins.

use seekwell_core::{Accept, Command, Device, Instant, Nanos, Op, rng};
use seekwell_device::hdd::{ClosedForms, SeekCurve};
use seekwell_device::probe::{Client, Run, below, command};
use seekwell_device::{Hdd, HddParams, open, open_hdd, read_preset};

pub const DRIVES: [&str; 7] = [
    "exos-x18",
    "hitachi-7k200",
    "sata320-2006",
    "hitachi-7k500",
    "hitachi-t7k250",
    "hus728t8",
    "st2000dm006",
];

pub const TURN_MS: f64 = 60_000.0 / 7200.0;

pub fn client(spec: &str) -> Client<Hdd> {
    Client::new(open_hdd(&format!("hdd:{spec}"), 5).unwrap())
}

fn params(spec: &str) -> HddParams {
    HddParams::from_preset(&read_preset(&format!("hdd:{spec}")).unwrap()).unwrap()
}

pub fn closed(spec: &str) -> ClosedForms {
    ClosedForms::new(&params(spec)).unwrap()
}

pub fn random<D: Device>(c: &mut Client<D>, op: Op, depth: usize, n: usize) -> Run {
    let capacity = c.device.facts().capacity.0;
    let mut rng = rng::stream(3, "laws");
    c.run(n, depth, Nanos::ZERO, |_| {
        command(op, below(&mut rng, capacity / 8) * 8, 8)
    })
}

/// MB/s of two sequential readers at 10 % and 60 % of the drive that alternate, `sectors` per turn.
fn two_streams(drive: &str, sectors: u32) -> f64 {
    let mut c = Client::new(open(&format!("hdd:{drive}"), 13).unwrap());
    let capacity = c.device.facts().capacity.0;
    let n = (64 * 2048 / u64::from(sectors)).clamp(64, 2000) as usize;
    let at = |i: usize| capacity / 10 * if i.is_multiple_of(2) { 1 } else { 6 };
    c.run(n, 1, Nanos::ZERO, |i| {
        let first = at(i) + (i / 2) as u64 * u64::from(sectors);
        command(Op::Read, first, sectors)
    })
    .mb()
}

pub fn near(what: &str, got: f64, want: f64, share: f64) {
    assert!(
        (got / want - 1.0).abs() <= share,
        "{what}: {got:.4}, expected {want:.4}"
    );
}

/// Throughput at the depths 2, 4, 8, 16 and 31, divided by the throughput at depth 1. The values
/// are from another implementation of the model.
const GAINS: [(&str, f64, [f64; 5]); 8] = [
    (
        "guard=0,p_miss=0,age_limit=0",
        0.06,
        [1.19, 1.39, 1.62, 1.90, 2.22],
    ),
    ("age_limit=0", 0.06, [1.14, 1.31, 1.50, 1.72, 1.99]),
    ("age_limit=700", 0.06, [1.14, 1.31, 1.50, 1.72, 1.94]),
    ("window=16", 0.06, [1.14, 1.31, 1.50, 1.72, 1.72]),
    ("window=8", 0.06, [1.14, 1.31, 1.50, 1.50, 1.50]),
    ("window=4", 0.06, [1.14, 1.31, 1.31, 1.31, 1.31]),
    (
        "policy=sstf,age_limit=0",
        0.10,
        [1.13, 1.27, 1.44, 1.60, 1.74],
    ),
    (
        "policy=clook,age_limit=0",
        0.10,
        [1.04, 1.20, 1.39, 1.59, 1.74],
    ),
];

#[test]
fn throughput_grows_with_depth_by_the_policys_gain() {
    for (options, share, gains) in GAINS {
        let spec = format!("hitachi-7k500,{options}");
        let one = random(&mut client(&spec), Op::Read, 1, 10_000).iops();
        for (depth, gain) in [2, 4, 8, 16, 31].into_iter().zip(gains) {
            let iops = random(&mut client(&spec), Op::Read, depth, 10_000).iops();
            near(&format!("{options} depth {depth}"), iops / one, gain, share);
        }
    }
}

#[test]
fn every_drive_gains_equally_from_the_same_queue() {
    for drive in DRIVES {
        let spec = format!("{drive},window=31,guard=0.5,age_limit=0");
        let one = random(&mut client(&spec), Op::Read, 1, 6_000).iops();
        let full = random(&mut client(&spec), Op::Read, 31, 6_000).iops();
        near(drive, full / one, 1.99, 0.08);
    }
}

#[test]
fn age_limit_ends_starvation_and_costs_throughput() {
    let free = random(
        &mut client("hitachi-7k500,age_limit=0"),
        Op::Read,
        31,
        25_000,
    );
    let kept = random(&mut client("hitachi-7k500"), Op::Read, 31, 25_000);
    near("p99 without", free.quantile_ms(0.99), 949.0, 0.12);
    near("p99 with", kept.quantile_ms(0.99), 719.0, 0.05);
    assert!(free.quantile_ms(1.0) > 1400.0);
    assert!(kept.quantile_ms(1.0) < 800.0);
    assert!(kept.iops() < free.iops());
    // A limit near the mean wait gives first-come-first-served order.
    let tight = random(
        &mut client("hitachi-7k500,age_limit=150"),
        Op::Read,
        31,
        10_000,
    );
    let fifo = random(
        &mut client("hitachi-7k500,policy=fifo"),
        Op::Read,
        31,
        10_000,
    );
    assert!(tight.iops() < 1.15 * fifo.iops());
}

#[test]
fn age_weight_shifts_from_shortest_first_to_oldest_first() {
    let run = |w: &str| {
        let spec = format!("hitachi-7k500,age_limit=0,policy=asptf,age_weight={w}");
        random(&mut client(&spec), Op::Read, 31, 10_000)
    };
    let (none, some, all) = (run("0"), run("0.02"), run("100"));
    assert!(none.iops() > some.iops() && some.iops() > all.iops());
    assert!(none.quantile_ms(1.0) > some.quantile_ms(1.0));
    let fifo = random(
        &mut client("hitachi-7k500,policy=fifo"),
        Op::Read,
        31,
        10_000,
    );
    near("weight 100 against fifo", all.iops(), fifo.iops(), 0.03);
}

/// Two sequential readers with two reads of 128 KiB outstanding each. Only the policy decides
/// whether the continuation of the last read goes first. First come, first served alternates, as at
/// depth 1. By position, one stream continues until the other's reads are overdue. Ageing is in
/// between.
#[test]
fn only_the_policy_favours_the_continuation_of_a_read() {
    // MB/s and the longest wait in ms. Each reader keeps `each` reads outstanding.
    let run = |options: &str, each: u32| {
        let mut device = open_hdd(&format!("hdd:hitachi-7k200,{options}"), 3).unwrap();
        let (mut now, mut done) = (Instant::START, vec![]);
        let (mut sent, mut read) = ([Instant::START; 8], [0u64; 2]);
        let (mut todo, mut longest): (Vec<u32>, u64) = ((0..2 * each).collect(), 0);
        while now < Instant::START + Nanos::from_secs(10) {
            for id in todo.drain(..) {
                let (reader, base) = (id as usize % 2, u64::from(id % 2) * 100_000_000);
                let c = command(Op::Read, 10_000_000 + base + read[reader] * 256, 256);
                assert_eq!(device.accept(now, Command { id, ..c }), Accept::Accepted);
                sent[id as usize] = now;
                read[reader] += 1;
            }
            now = device.next_event().unwrap();
            device.advance(now, &mut done);
            for d in done.drain(..) {
                longest = longest.max(now.since(sent[d.id as usize]).0);
                todo.push(d.id);
            }
        }
        let mb = (read[0] + read[1]) as f64 * 256.0 * 512.0 / 10e6;
        (mb, longest as f64 / 1e6)
    };
    let (alone, _) = run("policy=fifo", 1);
    let (fifo, _) = run("policy=fifo", 2);
    near("turns are taken at depth 2 too", fifo, alone, 0.15);
    let (place, starved) = run("policy=sptf", 2);
    let (aged, waited) = run("policy=asptf,age_weight=0.1", 2);
    assert!(
        place > 3.0 * fifo && place > aged && aged > fifo,
        "{place} {aged} {fifo}"
    );
    assert!(waited < starved / 2.0, "{waited} {starved}");
}

#[test]
fn sequential_rate_falls_by_zone_and_equals_the_sustained_rate() {
    for spec in [
        "hitachi-7k200",
        "hus728t8",
        "hitachi-7k500,layout=serpentine,band_tracks=64",
    ] {
        let forms = closed(spec);
        let mut last = f64::INFINITY;
        for (first, _) in forms.geometry().zones() {
            let mut c = client(spec);
            let at = |i: usize| command(Op::Read, first + i as u64 * 256, 256);
            c.run(16, 1, Nanos::ZERO, at);
            let rate = c.run(240, 1, Nanos::ZERO, |i| at(i + 16)).mb();
            near(
                &format!("{spec} at {first}"),
                rate,
                forms.sustained_mb(first),
                0.015,
            );
            assert!(rate < last * 1.001);
            last = rate;
        }
    }
}

/// The rate of reads of n bytes with a pause g between them is min(R, n / (g + t_oh + n/B)). R is
/// the media rate, t_oh the overhead of a cache hit, and B the rate of the link.
#[test]
fn single_reader_streams_at_media_rate_for_any_record_size() {
    let p = params("hitachi-7k200");
    let media = closed("hitachi-7k200").sustained_mb(0);
    for kib in [4.0, 16.0, 64.0, 128.0, 512.0, 1024.0] {
        for gap_ms in [0.0, 0.2, 1.0, 4.0] {
            let n = kib * 1024.0;
            let host = n / 1e3 / (gap_ms + p.hit_overhead_ms + n / 1e3 / p.bus_mb);
            let mut c = client("hitachi-7k200");
            let sectors = (kib * 2.0) as u32;
            let at = |i: usize| command(Op::Read, i as u64 * u64::from(sectors), sectors);
            let count = (32.0 * 1024.0 / kib) as usize;
            let run = c.run(count, 1, Nanos((gap_ms * 1e6) as u64), at);
            near(
                &format!("{kib} KiB, gap {gap_ms} ms"),
                run.mb(),
                host.min(media),
                0.05,
            );
        }
    }
}

#[test]
fn queued_sequential_reads_stream_without_gaps() {
    let media = closed("hitachi-7k200").sustained_mb(0);
    for (sectors, depth) in [(8, 16), (128, 2), (128, 31), (1024, 4)] {
        for options in ["", ",look_ahead=off"] {
            let mut c = client(&format!("hitachi-7k200{options}"));
            let at = |i: usize| command(Op::Read, i as u64 * u64::from(sectors), sectors);
            let run = c.run(65_536 / sectors as usize, depth, Nanos::ZERO, at);
            near(
                &format!("{sectors} sectors, depth {depth}{options}"),
                run.mb(),
                media,
                0.05,
            );
        }
    }
}

#[test]
fn skipping_reader_is_served_by_read_ahead() {
    let mut c = client("hitachi-7k200");
    let run = c.run(2_000, 1, Nanos::ZERO, |i| {
        command(Op::Read, i as u64 * 16, 8)
    });
    let media = closed("hitachi-7k200").sustained_mb(0) * 1e6 / 512.0 / 16.0;
    near("every other block, IOPS", run.iops(), media, 0.05);
}

/// While commands wait, read-ahead continues to the end of the track only for a stream.
#[test]
fn detected_stream_is_read_ahead_to_the_end_of_the_track() {
    for (requests, stays) in [(1u64, false), (2, true)] {
        let mut c = client("hitachi-7k200");
        let far = command(Op::Read, 100_000_000, 8);
        let n = requests as usize + 1;
        c.run(n, n, Nanos::ZERO, |i| match i as u64 {
            i if i < requests => command(Op::Read, i * 8, 8),
            _ => far,
        });
        let next = c.send(command(Op::Read, 1_000, 8)).as_ms_f64();
        assert_eq!(next < 0.2, stays, "{requests} in a row, then {next} ms");
    }
}

#[test]
fn each_sequential_read_loses_a_revolution_without_look_ahead() {
    let mut c = client("hitachi-7k200,look_ahead=off");
    let run = c.run(200, 1, Nanos::ZERO, |i| command(Op::Read, i as u64 * 8, 8));
    near("IOPS", run.iops(), 119.3, 0.02);
}

#[test]
fn alternating_sequential_streams_lose_most_throughput() {
    // These rates in MB/s, at 10 % and 60 % of the drive, are from another implementation of the
    // model.
    for (sectors, mb) in [
        (8, 0.2),
        (32, 1.0),
        (256, 7.0),
        (1024, 20.6),
        (2048, 30.5),
        (8192, 47.6),
    ] {
        let got = two_streams("hitachi-7k200", sectors);
        let rounding = if mb < 2.0 { 0.25 } else { 0.08 };
        near(&format!("{} KiB", sectors / 2), got, mb, rounding);
    }
}

#[test]
fn seek_times_can_differ_by_direction() {
    let mut c = client("hitachi-7k200,seek_inward=1.5,look_ahead=off,segments_read=0");
    let mut rng = rng::stream(7, "direction");
    let mut mean = [0.0; 2];
    for i in 0..4_000 {
        let lba = [0, 150_000_000][i % 2];
        mean[i % 2] += c.send(command(Op::Read, lba, 8)).as_ms_f64() / 2_000.0;
        c.sleep(Nanos(below(&mut rng, 50_000_000)));
    }
    let p = params("hitachi-7k200");
    let forms = closed("hitachi-7k200");
    let curve = SeekCurve::new(&p.seek, forms.geometry().cylinders()).unwrap();
    let seek = curve.ms(forms.geometry().locate(150_000_000).cyl);
    near("inward less outward", mean[1] - mean[0], seek * 0.5, 0.06);
}

/// The expected rotation and transfer of a request for a fraction f of a track is T (1/2 + f -
/// f^2/2).
#[test]
fn zero_latency_access_saves_half_the_squared_fraction() {
    for (option, gain) in [("yes", 0.5), ("no", 0.0)] {
        let mut c = client(&format!(
            "hitachi-7k200,look_ahead=off,zero_latency={option}"
        ));
        let p = params("hitachi-7k200");
        let mut rng = rng::stream(8, "zero");
        for sectors in [666u32, 1331] {
            let f = f64::from(sectors) / 1331.0;
            let mut sum = 0.0;
            for _ in 0..4_000 {
                c.sleep(Nanos(below(&mut rng, 100_000_000)));
                sum += c.send(command(Op::Read, 0, sectors)).as_ms_f64();
                // These reads replace all segments of the drive, so the track must be read again.
                for far in 0..14u64 {
                    c.send(command(Op::Read, 10_000_000 * (far + 1), 8));
                }
            }
            let rotation = TURN_MS * (0.5 + f - gain * f * f);
            let mean = sum / 4_000.0 - p.overhead_ms - move_ms();
            near(
                &format!("zero latency {option}, f {f:.2}"),
                mean,
                rotation,
                0.03,
            );
        }
    }
}

/// Seek from sector 140 000 000 to the rim on the laptop drive.
fn move_ms() -> f64 {
    let p = params("hitachi-7k200");
    let forms = closed("hitachi-7k200");
    let curve = SeekCurve::new(&p.seek, forms.geometry().cylinders());
    curve.unwrap().ms(forms.geometry().locate(140_000_000).cyl)
}

#[test]
fn short_strokes_are_faster() {
    for (drive, full, tenth) in [
        ("hitachi-7k500", 77.5, 130.0),
        ("hitachi-7k200", 69.3, 119.7),
    ] {
        let mut c = client(drive);
        let capacity = c.device.facts().capacity.0;
        let mut rng = rng::stream(3, "short");
        let mut iops = |span: u64| {
            let next = |_| command(Op::Read, below(&mut rng, span / 8) * 8, 8);
            c.run(10_000, 1, Nanos::ZERO, next).iops()
        };
        near(drive, iops(capacity), full, 0.03);
        near(drive, iops(capacity / 10), tenth, 0.03);
    }
}

#[test]
fn error_recovery_affects_only_the_tail() {
    let clean = random(&mut client("st2000dm006"), Op::Read, 1, 20_000);
    let spec = "st2000dm006,p_err=0.002,t_err=75";
    let rare = random(&mut client(spec), Op::Read, 1, 20_000);
    near("mean", rare.mean_ms(), clean.mean_ms() + 0.15, 0.02);
    assert!(rare.quantile_ms(0.9995) > 75.0 && clean.quantile_ms(0.9995) < 40.0);
}

#[test]
fn remapped_sectors_cost_extra_time() {
    let clean = random(&mut client("hitachi-7k200"), Op::Read, 1, 10_000).mean_ms();
    // One in 12.5 requests of eight sectors contains a remapped sector.
    let spotted = random(
        &mut client("hitachi-7k200,remap=10000"),
        Op::Read,
        1,
        10_000,
    )
    .mean_ms();
    assert!(
        spotted > clean + 0.5 && spotted < clean + 2.5,
        "{clean} and {spotted}"
    );
}

#[test]
fn fast_variant_has_the_means_of_the_full_model() {
    for drive in DRIVES {
        for depth in [1, 4, 31] {
            let full = random(&mut client(drive), Op::Read, depth, 10_000).iops();
            let fast = open(&format!("hdd:{drive},model=fast"), 5).unwrap();
            let fast = random(&mut Client::new(fast), Op::Read, depth, 10_000).iops();
            near(&format!("{drive} depth {depth}"), fast, full, 0.04);
        }
        let fast = open(&format!("hdd:{drive},model=fast"), 5).unwrap();
        let run = Client::new(fast).run(4_000, 1, Nanos::ZERO, |i| {
            command(Op::Read, i as u64 * 256, 256)
        });
        near(
            &format!("{drive} sequential"),
            run.mb(),
            closed(drive).sustained_mb(0),
            0.03,
        );
    }
}

/// The gains are those of the table of the full model. The medium rate follows a curve instead of
/// zones, and is close to the rate of the zones everywhere. The device name marks the results.
#[test]
fn fast_variant_keeps_the_gains_and_zone_rates() {
    let fast = |options: &str| {
        let spec = format!("hdd:hitachi-7k500,model=fast{options}");
        Client::new(open(&spec, 5).unwrap())
    };
    assert!(fast("").device.facts().name.ends_with("(fast model)"));
    let one = random(&mut fast(""), Op::Read, 1, 10_000).iops();
    let mut last = one;
    for (depth, gain) in [2, 4, 8, 16, 31].into_iter().zip(GAINS[2].2) {
        let iops = random(&mut fast(""), Op::Read, depth, 10_000).iops();
        near(&format!("depth {depth}"), iops / one, gain, 0.06);
        assert!(iops > last, "depth {depth}");
        last = iops;
    }
    let window = random(&mut fast(",window=4"), Op::Read, 31, 10_000).iops();
    near("a window of four", window / one, 1.31, 0.06);
    let (forms, mut rate) = (closed("hitachi-7k500"), f64::INFINITY);
    for (first, _) in forms.geometry().zones() {
        let run = fast("").run(2_000, 1, Nanos::ZERO, |i| {
            command(Op::Read, first + i as u64 * 256, 256)
        });
        let what = format!("sequential from {first}");
        near(&what, run.mb(), forms.sustained_mb(first), 0.03);
        assert!(run.mb() < rate, "{what}");
        rate = run.mb();
    }
}

#[test]
fn drives_with_different_seeds_differ_in_phase() {
    let first = |seed| {
        let mut c = Client::new(open_hdd("hdd:hitachi-7k500", seed).unwrap());
        c.send(command(Op::Read, 0, 8)).0
    };
    let mut seen: Vec<u64> = (0..20).map(first).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 20);
}

#[test]
fn unpredicted_settling_causes_missed_targets() {
    let spec = |sigma: &str| format!("hitachi-7k500,p_miss=0,guard=0,settle_sigma={sigma}");
    let calm = random(&mut client(&spec("0")), Op::Read, 16, 8_000).iops();
    let shaky = random(&mut client(&spec("0.3")), Op::Read, 16, 8_000).iops();
    assert!(shaky < 0.96 * calm, "{shaky} against {calm}");
    // With one outstanding command there is no choice by position, so no target is missed.
    let calm = random(&mut client(&spec("0")), Op::Read, 1, 8_000).mean_ms();
    let shaky = random(&mut client(&spec("0.3")), Op::Read, 1, 8_000).mean_ms();
    near("mean at depth 1", shaky, calm + 0.12, 0.005);
}

#[test]
fn counters_sum_to_the_measured_latency() {
    let mut c = client("hitachi-7k500,look_ahead=off");
    let run = random(&mut c, Op::Read, 1, 4_000);
    let (s, p) = (c.device.stats(), params("hitachi-7k500"));
    assert_eq!((s.media_ops, s.cache_hits), (4_000, 0));
    near(
        "mean distance, sectors",
        s.seek_sectors as f64 / s.seeks as f64,
        p.capacity as f64 / 3.0,
        0.03,
    );
    let transfer = 8.0 * TURN_MS / closed("hitachi-7k500").mean_track();
    let parts = (s.seek_time.as_ms_f64() + s.rotation_time.as_ms_f64()) / 4_000.0
        + p.overhead_ms
        + transfer;
    near("the parts of the latency", parts, run.mean_ms(), 0.002);
    near(
        "busy all the time",
        s.busy.as_secs_f64(),
        run.took.as_secs_f64(),
        1e-3,
    );
    let mut text = String::new();
    c.device.state(&mut text);
    assert!(
        text.contains("cylinder") && text.contains("0 queued"),
        "{text}"
    );
}

#[test]
fn forced_read_ahead_minimum_speeds_alternating_streams() {
    let free = two_streams("hitachi-7k200", 128);
    let forced = two_streams("hitachi-7k200,ra_min=512KiB", 128);
    assert!(forced > 3.0 * free, "{forced} against {free} MB/s");
}

#[test]
fn the_fast_variant_caches_and_flushes() {
    let mut c = Client::new(open("hdd:hitachi-7k500,model=fast", 5).unwrap());
    assert!(random(&mut c, Op::Write, 1, 60).quantile_ms(1.0) < 0.2);
    let flush = c.send(command(Op::Flush, 0, 0)).as_ms_f64();
    near(
        "flush of 60",
        flush,
        closed("hitachi-7k500").flush_ms(60),
        0.30,
    );
    assert!(c.send(command(Op::Flush, 0, 0)).as_ms_f64() < 0.2);
    near(
        "flood",
        random(&mut c, Op::Write, 31, 6_000).iops(),
        154.0,
        0.15,
    );
    c.sleep(Nanos::from_secs(10));
    let read = c.send(command(Op::Read, 500_000_000, 8));
    assert!(
        read.as_ms_f64() < 30.0,
        "the idle drive has destaged: {read:?}"
    );
    let media = closed("hitachi-7k500").sustained_mb(0);
    let stream = c.run(3_000, 1, Nanos::ZERO, |i| {
        command(Op::Write, i as u64 * 256, 256)
    });
    near("streaming writes", stream.mb(), media, 0.05);
}

/// MB/s of random reads of this number of sectors.
fn at_random(spec: &str, sectors: u32, depth: usize) -> f64 {
    let mut c = Client::new(open(spec, 5).unwrap());
    let blocks = c.device.facts().capacity.0 / u64::from(sectors);
    let mut rng = rng::stream(3, "link");
    c.run(200, depth, Nanos::ZERO, |_| {
        let first = below(&mut rng, blocks) * u64::from(sectors);
        command(Op::Read, first, sectors)
    })
    .mb()
}

#[test]
fn read_data_is_limited_by_the_link_rate() {
    for drive in ["hdd:hitachi-7k200", "hdd:hitachi-7k200,model=fast"] {
        // Regression: a link of 10 MB/s carried 30.8 MB/s.
        for (depth, least) in [(1, 8.0), (8, 9.7)] {
            let mb = at_random(&format!("{drive},bus=10MB/s"), 2048, depth);
            assert!((least..=10.0).contains(&mb), "{drive} at {depth}: {mb}");
        }
        // A link that keeps up does not limit anything.
        let [own, more] =
            ["", ",bus=100000MB/s"].map(|b| at_random(&format!("{drive}{b}"), 2048, 8));
        near(drive, own, more, 0.001);
        assert!(own > 25.0, "{own}");
    }
}
