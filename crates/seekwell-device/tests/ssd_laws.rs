//! Properties of a flash drive that must hold for any parameters, and the effects that limit what a
//! scheduler can do for it.

use super::ssd_closed::ClosedForms;
use rand::RngCore;
use seekwell_core::rng::{self, Pcg64Mcg};
use seekwell_core::{Device, Nanos, Op};
use seekwell_device::probe::{Client, Run, command};
use seekwell_device::ssd::wa::write_amplification;
use seekwell_device::ssd::{DetailedSsd, SsdParams};
use seekwell_device::{CheapSsd, catalogue, open, read_preset};

type Boxed = Client<Box<dyn Device + Send>>;

fn drives() -> Vec<String> {
    let all = catalogue().into_iter().map(|e| e.name);
    let ssds: Vec<String> = all.filter(|n| n.starts_with("ssd:")).collect();
    assert!(ssds.len() >= 6);
    ssds
}

pub fn params(spec: &str) -> SsdParams {
    SsdParams::from_preset(&read_preset(spec).unwrap()).unwrap()
}

pub fn client(spec: &str) -> Boxed {
    Client::new(open(spec, 5).unwrap())
}

fn detailed(spec: &str) -> Client<DetailedSsd> {
    Client::new(DetailedSsd::new(&params(spec), 5).unwrap())
}

fn below(rng: &mut Pcg64Mcg, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

pub fn pages(d: &impl Device) -> u64 {
    d.facts().capacity.0 / 8
}

/// Random 4 KiB commands over the first `span` pages, of which `writes` per cent are writes.
pub fn mixed<D: Device>(c: &mut Client<D>, span: u64, writes: u64, depth: usize, n: usize) -> Run {
    let mut rng = rng::stream(c.now.0 ^ n as u64, "laws");
    c.run(n, depth, Nanos::ZERO, |_| {
        let op = if below(&mut rng, 100) < writes {
            Op::Write
        } else {
            Op::Read
        };
        command(op, below(&mut rng, span) * 8, 8)
    })
}

pub fn sequential<D: Device>(
    c: &mut Client<D>,
    op: Op,
    depth: usize,
    from: usize,
    n: usize,
) -> Run {
    c.run(n, depth, Nanos::ZERO, |i| {
        command(op, (from + i) as u64 * 256, 256)
    })
}

pub fn near(what: &str, got: f64, want: f64, share: f64) {
    println!("{what}: {got:.4}, expected {want:.4}");
    assert!(
        (got / want - 1.0).abs() <= share,
        "{what}: {got:.4}, expected {want:.4} within {share}"
    );
}

#[test]
fn closed_forms_equal_the_cheap_model() {
    for d in drives() {
        // The closed forms assume that the whole map is in RAM.
        let d = format!("{d},map_cache=0");
        let closed = ClosedForms::new(&params(&d));
        let mut c = client(&d);
        let span = pages(&c.device);
        let one = mixed(&mut c, span, 0, 1, 4_000);
        near(
            &format!("{d} read"),
            one.mean_ms() * 1e3,
            closed.read_us(),
            0.02,
        );
        // A depth at which the slowest stage never runs out of work.
        let depth = c.device.facts().depth.min(1023) as usize;
        if depth == 1 {
            continue;
        }
        let all = mixed(&mut c, span, 0, depth, 40_000);
        let share = if depth > 100 { 0.03 } else { 0.02 };
        near(
            &format!("{d} reads, depth {depth}"),
            all.iops(),
            closed.read_ceiling(),
            share,
        );
        let plain = format!("{d},slc_bytes=0");
        let mut c = client(&plain);
        sequential(&mut c, Op::Write, 8, 0, 2_000);
        let rate = sequential(&mut c, Op::Write, 8, 2_000, 2_000).mb();
        near(
            &format!("{d} sequential write"),
            rate,
            closed.sequential_write_mb(),
            0.02,
        );
        let mut c = client(&format!("{plain},state=steady"));
        mixed(&mut c, span, 100, 31, 150_000);
        let rate = mixed(&mut c, span, 100, 31, 100_000).iops();
        near(
            &format!("{d} steady"),
            rate,
            closed.steady_random_write(),
            0.02,
        );
    }
}

/// Four corner cases and a mix, for filled and steady drives that are small enough for the page
/// map.
#[test]
fn cheap_and_detailed_variants_have_equal_means() {
    for (d, scale) in [
        ("x25m-g2-160", 8),
        ("s3700-100", 8),
        ("sata3-256-2011", 8),
        ("sata-tlc-1t,slc_bytes=0", 32),
        ("nvme-gen4-tlc-2t,slc_bytes=0", 64),
        ("nvme-dc-2t", 64),
    ] {
        let mut full = client(&format!("ssd:{d},variant=detailed,scale={scale}"));
        let span = pages(&full.device);
        let deep = 32;
        // The cheap variant over the same number of addresses, so that both are equally full.
        let cheap = |state: &str| client(&format!("ssd:{d},state={state}"));
        let mut other = cheap("filled");
        let whole = pages(&other.device);
        let pair = |what: &str, a: f64, b: f64| near(&format!("{d} {what}"), a, b, 0.10);
        let both = |a: &mut Boxed, b: &mut Boxed, writes, depth, n| {
            (
                mixed(a, span, writes, depth, n).iops(),
                mixed(b, whole, writes, depth, n).iops(),
            )
        };
        for depth in [1, 8, deep] {
            let (a, b) = both(&mut full, &mut other, 0, depth, 8_000);
            pair(&format!("random read, depth {depth}"), a, b);
        }
        let (a, b) = (
            sequential(&mut full, Op::Read, 8, 0, 600).mb(),
            sequential(&mut other, Op::Read, 8, 0, 600).mb(),
        );
        pair("sequential read", a, b);
        let (a, b) = both(&mut full, &mut other, 30, deep, 15_000);
        pair("mixed", a, b);
        let mut both_write = |n| {
            (
                sequential(&mut full, Op::Write, 8, 0, n).mb(),
                sequential(&mut other, Op::Write, 8, 0, n).mb(),
            )
        };
        both_write(800);
        let (a, b) = both_write(800);
        pair("sequential write", a, b);
        let mut full = client(&format!(
            "ssd:{d},variant=detailed,scale={scale},state=steady"
        ));
        let mut other = cheap("steady");
        both(&mut full, &mut other, 100, deep, 60_000);
        let (a, b) = both(&mut full, &mut other, 100, deep, 40_000);
        pair("steady random write", a, b);
        // Let the backlog of writes drain first.
        both(&mut full, &mut other, 30, deep, 60_000);
        let (a, b) = both(&mut full, &mut other, 30, deep, 120_000);
        pair("steady mixed", a, b);
    }
}

/// A small drive for cleaning: 2 units of 1024-page blocks, and a buffer too small to hide
/// anything.
fn small(rho: f64, state: &str, more: &str) -> Client<DetailedSsd> {
    detailed(&format!(
        "ssd:s3700-100,variant=detailed,scale=1,units=2,channels=2,\
         buffer=256KiB,rho={rho},state={state}{more}"
    ))
}

/// Write amplification over the next `n` random writes.
fn amplification(c: &mut Client<DetailedSsd>, span: u64, n: usize) -> f64 {
    let before = c.device.wear();
    mixed(c, span, 100, 31, n);
    let after = c.device.wear();
    1.0 + (after.copied_pages - before.copied_pages) as f64
        / (after.host_pages - before.host_pages) as f64
}

#[test]
fn uniform_random_writes_have_the_predicted_amplification() {
    for (rho, share) in [
        (0.07, 0.08),
        (0.10, 0.05),
        (0.15, 0.05),
        (0.28, 0.05),
        (0.5, 0.05),
    ] {
        let mut c = small(rho, "steady", ",capacity=8388608");
        let span = pages(&c.device);
        amplification(&mut c, span, 60_000);
        let wa = amplification(&mut c, span, 150_000);
        near(&format!("rho {rho}"), wa, write_amplification(rho), share);
        c.device.check().unwrap();
    }
}

/// The steady state is generated. A filled drive reaches the same state after long random writing.
#[test]
fn filled_drive_converges_to_the_generated_steady_state() {
    let more = ",block=128,capacity=1048576";
    let mut filled = small(0.15, "filled", more);
    let mut steady = small(0.15, "steady", more);
    let span = pages(&filled.device);
    let first = amplification(&mut filled, span, 15_000);
    near("before the spare space is used", first, 1.0, 0.001);
    amplification(&mut filled, span, 500_000);
    let (a, b) = (
        amplification(&mut filled, span, 100_000),
        amplification(&mut steady, span, 100_000),
    );
    near("after four times the capacity", a, b, 0.03);
    assert!(a > 3.5);
}

#[test]
fn trimmed_space_counts_as_spare_space() {
    // Half of the addresses are trimmed, so the fraction with data is V = 1/2, and rho_eff = (1 +
    // rho) / V - 1.
    let mut c = small(0.10, "steady", ",block=256,capacity=2097152");
    let span = pages(&c.device);
    let half = span / 2;
    let trims = (span - half) / 4096;
    c.run(trims as usize, 1, Nanos::ZERO, |i| {
        command(Op::Discard, (half + i as u64 * 4096) * 8, 4096 * 8)
    });
    assert_eq!(c.device.check().unwrap().on_flash, span - trims * 4096);
    amplification(&mut c, half, 120_000);
    let wa = amplification(&mut c, half, 60_000);
    near("half trimmed", wa, write_amplification(1.2), 0.05);
    // Trimmed pages are read without flash operations.
    let before = c.device.wear().array_reads;
    c.send(command(Op::Read, half * 8 + 80, 8));
    assert_eq!(c.device.wear().array_reads, before);
}

#[test]
fn writes_to_a_small_span_use_all_the_spare_space() {
    let mut c = small(0.10, "filled", ",block=256,capacity=2097152");
    let span = pages(&c.device) / 10;
    amplification(&mut c, span, 150_000);
    let full = amplification(&mut c, span, 60_000);
    near("detailed", full, write_amplification(1.0), 0.10);
    let p = params("ssd:s3700-100,rho=0.1");
    let mut cheap = Client::new(CheapSsd::new(&p, 1));
    let span = pages(&cheap.device) / 100;
    mixed(&mut cheap, span, 100, 31, 3_000);
    let whole = pages(&cheap.device);
    let steady = Client::new(CheapSsd::new(
        &params("ssd:s3700-100,rho=0.1,state=steady"),
        1,
    ));
    near(
        "cheap, whole",
        steady.device.write_amplification(),
        write_amplification(0.1),
        0.01,
    );
    assert!(cheap.device.write_amplification() < 1.1 && whole > span);
}

#[test]
fn fresh_drive_is_faster_than_a_steady_one() {
    for variant in ["cheap", "detailed,scale=16"] {
        for d in ["x25m-g2-160", "sata3-256-2011"] {
            let rate = |state: &str| {
                let mut c = client(&format!("ssd:{d},variant={variant},state={state}"));
                let span = pages(&c.device);
                mixed(&mut c, span, 100, 31, 15_000);
                mixed(&mut c, span, 100, 31, 8_000).iops()
            };
            let (fresh, steady) = (rate("fresh"), rate("steady"));
            let closed = ClosedForms::new(&params(&format!("ssd:{d}")));
            let gain = closed.random_write(1.0) / closed.steady_random_write();
            near(&format!("{d} {variant}"), fresh / steady, gain, 0.15);
        }
    }
}

#[test]
fn sequential_writes_cause_no_copies() {
    let mut c = small(0.10, "filled", ",block=256,capacity=1048576");
    let n = (c.device.facts().capacity.0 / 256) as usize;
    for _ in 0..3 {
        sequential(&mut c, Op::Write, 8, 0, n);
    }
    assert!(
        c.device.wear().amplification() < 1.01,
        "{:?}",
        c.device.wear()
    );
    assert!(c.device.wear().erases > 1000);
}

#[test]
fn cleaning_rules_rank_by_known_write_amplification() {
    let wa = |gc: &str| {
        let mut c = small(
            0.10,
            "steady",
            &format!(",block=128,capacity=1048576,gc={gc}"),
        );
        let span = pages(&c.device);
        amplification(&mut c, span, 150_000);
        amplification(&mut c, span, 60_000)
    };
    let (greedy, ten, two) = (wa("greedy"), wa("choices"), wa("choices,gc_choices=2"));
    let (fifo, age) = (wa("fifo"), wa("cost-benefit"));
    println!("greedy {greedy} choices {ten} two {two} fifo {fifo} cost-benefit {age}");
    // The best of a few random blocks is nearly as good as the best of all blocks. The best of two
    // is not.
    assert!(ten > greedy * 0.99 && ten < greedy * 1.10);
    assert!(two > ten * 1.05);
    // The policy that cleans the oldest block cannot use blocks that have few valid pages by
    // chance. Cost-benefit is close to greedy.
    assert!(fifo > greedy * 1.02);
    assert!(age < fifo && age > greedy * 0.99);
}

#[test]
fn wear_levelling_limits_the_spread_of_erase_counts() {
    let spread = |wear: u32| {
        let more = format!(",block=128,capacity=262144,wear_spread={wear}");
        let mut c = small(0.20, "filled", &more);
        let hot = pages(&c.device) / 20;
        amplification(&mut c, hot, 250_000);
        let (least, most) = (0..2)
            .map(|u| c.device.erase_spread(u))
            .fold((u32::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)));
        c.device.check().unwrap();
        most - least
    };
    let (off, on) = (spread(0), spread(4));
    assert!(off > 12 && on <= 8, "without {off}, with {on}");
}

/// The map of a terabyte of flash takes at most 2 GiB. Larger drives are scaled, and report it.
#[test]
fn map_memory_is_bounded_and_the_scale_is_reported() {
    for d in drives() {
        let c = detailed(&format!("{d},variant=detailed,state=fresh"));
        let (p, device) = (params(&d), &c.device);
        let listed = seekwell_device::describe(&d).unwrap();
        assert_eq!(listed.num_opt("scale"), Some(device.scale() as f64));
        assert!(
            listed
                .get("scale")
                .unwrap()
                .reference
                .contains("MiB of tables")
        );
        let flash_tb = p.pages as f64 * (1.0 + p.rho) * 4096.0 / 1e12;
        let full = device.table_bytes() as f64 * device.scale() as f64;
        assert!(
            full <= flash_tb * 2.05 * f64::from(1 << 30),
            "{d}: {full} for {flash_tb} TB"
        );
        assert!(
            device.table_bytes() <= 132 << 20,
            "{d}: {}",
            device.table_bytes()
        );
        let said = format!("1/{}", device.scale());
        let mut state = String::new();
        device.state(&mut state);
        assert!(state.contains(&said), "{state}");
        assert_eq!(device.facts().name.contains(&said), device.scale() > 1);
        assert_eq!(device.facts().capacity.0 / 8, p.pages / device.scale());
    }
}

#[test]
fn scale_that_leaves_no_blocks_is_rejected() {
    let e = match open("ssd:s3700-100,variant=detailed,scale=65536", 1) {
        Err(e) => e.to_string(),
        Ok(_) => panic!("accepted"),
    };
    assert!(e.contains("scale") && e.contains("smaller"), "{e}");
}

/// No sequence of commands loses or duplicates a page.
#[test]
fn page_map_never_loses_or_duplicates_a_page() {
    for more in [
        "",
        ",gc=choices",
        ",alloc=static",
        ",copyback=yes",
        ",wear_spread=3",
        ",map_cache=3",
    ] {
        let mut c = small(0.12, "fresh", &format!(",block=64,capacity=262144{more}"));
        let span = pages(&c.device);
        let mut rng = rng::stream(2, "laws");
        let mut holds = vec![false; span as usize];
        for round in 0..60 {
            let n = 1 + below(&mut rng, 60);
            let mut next = vec![];
            for _ in 0..1500 {
                let at = below(&mut rng, span - n);
                let trim = below(&mut rng, 40) == 0;
                for p in at..at + n {
                    holds[p as usize] = !trim;
                }
                let op = if trim { Op::Discard } else { Op::Write };
                next.push(command(op, at * 8, n as u32 * 8));
            }
            // Only one command is in flight at a time, so the order of completion is the order of
            // the commands.
            c.run(next.len(), 1, Nanos::ZERO, |i| next[i]);
            if round % 20 == 0 {
                c.send(command(Op::Flush, 0, 0));
            }
            let counts = c.device.check().unwrap();
            let expected = holds.iter().filter(|h| **h).count() as u64;
            assert_eq!(counts.on_flash + counts.in_slots, expected, "{more}");
        }
        assert!(c.device.wear().erases > 500, "{more}");
    }
}

/// Compares the growth of write amplification from the filled drive on: the formula of the cheap
/// variant against the page map.
#[test]
fn cheap_amplification_ramp_follows_the_page_map() {
    for rho in [0.10, 0.28] {
        let mut c = small(rho, "filled", ",block=128,capacity=2097152");
        let span = pages(&c.device);
        let spare = rho * span as f64;
        let p = SsdParams {
            k: 4,
            ..params(&format!(
                "ssd:s3700-100,rho={rho},capacity=2097152,units=4,channels=4,block=128"
            ))
        };
        let mut cheap = Client::new(CheapSsd::new(&p, 1));
        let step = (spare / 2.0) as usize;
        let (mut full, mut law) = (0.0, 0.0);
        for i in 0..10 {
            let wa = amplification(&mut c, span, step);
            let before = cheap.device.write_amplification();
            mixed(&mut cheap, span, 100, 31, step);
            let now = (before + cheap.device.write_amplification()) / 2.0;
            println!(
                "rho {rho}, {:.1} times the spare space: {wa:.2}, cheap {now:.2}",
                0.5 * f64::from(i + 1)
            );
            // Sums: pages programmed so far.
            full += wa;
            law += now;
        }
        near(
            &format!("rho {rho}, programs until 5 times the spare"),
            law,
            full,
            0.15,
        );
    }
}

/// Returns random 4 KiB commands per second over the whole drive at depth 32.
fn random_rate(spec: &str, op: Op) -> f64 {
    let mut c = Client::new(open(spec, 1).expect("a drive"));
    let blocks = c.device.facts().capacity.0 / 8;
    let mut rng = rng::stream(1, "map");
    let mut next = |_| command(op, below(&mut rng, blocks) * 8, 8);
    c.run(20_000, 32, Nanos::ZERO, &mut next);
    c.run(20_000, 32, Nanos::ZERO, &mut next).iops()
}

#[test]
fn small_map_cache_costs_about_the_same_in_both_variants() {
    // The drive of the detailed variant is an eighth, and so is its map cache: the same share of
    // look-ups misses.
    let drive = |op, state: &str| {
        let cheap = random_rate(&format!("ssd:nvme-dramless-1t,state={state}"), op);
        let detailed = "ssd:nvme-dramless-1t,variant=detailed,scale=8,map_cache=2048";
        cheap / random_rate(&format!("{detailed},state={state}"), op)
    };
    for (op, state) in [(Op::Read, "filled"), (Op::Write, "fresh")] {
        let ratio = drive(op, state);
        assert!((0.6..1.7).contains(&ratio), "{op:?}: {ratio}");
    }
}

#[test]
fn sequential_reads_complete_at_every_depth() {
    for spec in [
        "ssd:sata-tlc-1t,variant=detailed",
        "ssd:x25m-g2-160,variant=detailed",
    ] {
        for depth in [2, 4, 8, 16, 31] {
            let mut c = Client::new(open(spec, 1).expect("a drive"));
            let run = c.run(2000, depth, Nanos::ZERO, |i| {
                command(Op::Read, i as u64 * 256, 256)
            });
            assert!(run.mb() > 200.0, "{spec} {depth}: {}", run.mb());
        }
    }
}
