//! Volumes of cloud providers: limits and bursts by the published rules, and the few published latencies.

use super::figure::Bound::{Any, Range, Rule};
use super::figure::Relation::{Circular, Fitted, HeldOut, Indicative};
use super::figure::{Bench, Figure, Group, Measured, SEED, row};
use seekwell_core::{Nanos, Op, rng};
use seekwell_device::probe::{Client, Run, below, command};

/// The published results of this family and their measurements.
pub static GROUP: Group = Group {
    title: "Cloud volumes",
    note: "The limits follow from the parameters. Few latencies are published, and most of them are \
           goals of a design. The latencies of gp2 were measured on one instance; its preset has \
           older estimates.",
    rule: "3 % for limits, 15 % for means and medians of latency, and 30 % for the 99th percentile",
    figures: FIGURES,
};

const AZURE: &str = "Azure documentation of bursting, 2025";
const BUILDKITE: &str = "fio, 2020, buildkite/elastic-ci-stack-for-aws#682";

#[rustfmt::skip]
static FIGURES: &[Figure] = &[
    row("cloud:aws-io2-500", "random 16 KiB read, depth 1, mean", "ms", (0.0, 0.5),
        "Amazon EBS user guide: below 500 us", HeldOut, Range, |b| Ok(random(b, Op::Read, 1, 32, 4000)?.mean_ms())),
    row("cloud:aws-io2-500", "share of reads above 0.8 ms, of that of gp3", "ratio", (0.0, 0.1),
        "Amazon EBS user guide: a tenth", HeldOut, Range, slow_share),
    row("cloud:aws-st1-2t,credits=0", "random 16 KiB read, depth 32, without credits", "IOPS", (80.0, 80.0),
        "AWS knowledge centre: each takes a token of 1 MiB", Circular, Rule(0.03),
        |b| Ok(random(b, Op::Read, 32, 32, 2000)?.iops())),
    row("cloud:gcp-pd-balanced-500", "random 4 KiB read, depth 128", "IOPS", (6000.0, 6000.0),
        "Google documentation (the base recalled)", Circular, Rule(0.03), |b| Ok(random(b, Op::Read, 128, 8, 20_000)?.iops())),
    row("cloud:gcp-pd-balanced-500", "random 4 KiB read, depth 1, mean", "ms", (0.0, 1.0),
        "Google documentation: below 1 ms", HeldOut, Range, |b| Ok(random(b, Op::Read, 1, 8, 4000)?.mean_ms())),
    row("cloud:gcp-pd-ssd-500", "random 4 KiB read, depth 1, mean", "ms", (0.0, 1.0),
        "Google documentation: below 1 ms", HeldOut, Range, |b| Ok(random(b, Op::Read, 1, 8, 4000)?.mean_ms())),
    row("cloud:gcp-hyperdisk-500", "random 4 KiB read, depth 1", "IOPS", (2000.0, 2000.0),
        "easontechtalk.com, fio", Fitted, Rule(0.15), |b| Ok(random(b, Op::Read, 1, 8, 4000)?.iops())),
    row("cloud:gcp-hyperdisk-500", "random 16 KiB read, depth 1, mean", "ms", (0.3, 2.0),
        "Google documentation, recommended depths", HeldOut, Range, |b| Ok(random(b, Op::Read, 1, 32, 4000)?.mean_ms())),
    row("cloud:gcp-hyperdisk-500,iops=160000,burst_iops=160000,bandwidth=2516", "random 4 KiB read, depth 32",
        "IOPS", (24_600.0, 24_600.0), "easontechtalk.com, one job, perhaps limited by its CPU", Indicative, Any,
        |b| Ok(random(b, Op::Read, 32, 8, 20_000)?.iops())),
    row("cloud:azure-p10,credits=54000", "100 000 random 4 KiB reads, depth 128, a hundredth of the credits", "IOPS", (1087.0, 1087.0),
        AZURE, Circular, Rule(0.03), |b| Ok(random(b, Op::Read, 128, 8, 100_000)?.iops())),
    row("cloud:azure-p10", "sequential 128 KiB read, depth 8, with credits", "MB/s", (170.0, 170.0),
        AZURE, Circular, Rule(0.03), |b| sequential(b, 256, 8)),
    row("cloud:azure-p30", "random 256 KiB read, depth 1, mean", "ms", (2.7, 7.2),
        "grsplus.com 2018, size of the disk not stated", HeldOut, Rule(0.15), |b| Ok(random(b, Op::Read, 1, 512, 2000)?.mean_ms())),
    row("cloud:azure-v2-512", "random 4 KiB read, depth 1, mean", "ms", (0.0, 1.0),
        "Azure documentation: below 1 ms", HeldOut, Range, |b| Ok(random(b, Op::Read, 1, 8, 4000)?.mean_ms())),
    row("cloud:aws-gp2-100", "random 4 KiB read, depth 1, median", "ms", (0.41, 0.41),
        BUILDKITE, Indicative, Any, |b| Ok(random(b, Op::Read, 1, 8, 4000)?.quantile_ms(0.5))),
    row("cloud:aws-gp2-100", "random 4 KiB read, depth 1, p99", "ms", (3.31, 3.31),
        BUILDKITE, Indicative, Any, |b| Ok(random(b, Op::Read, 1, 8, 4000)?.quantile_ms(0.99))),
    row("cloud:aws-gp2-100", "random 4 KiB write, depth 1, mean", "ms", (0.592, 0.592),
        BUILDKITE, Indicative, Any, |b| Ok(random(b, Op::Write, 1, 8, 4000)?.mean_ms())),
];

fn random_on(b: &Bench, spec: &str, op: Op, depth: usize, sectors: u32, n: usize) -> Measured<Run> {
    let mut c = Client::new(b.open_as(spec)?);
    let places = c.device.facts().capacity.0 / u64::from(sectors);
    let mut rng = rng::stream(SEED, "validate");
    let next = |_| command(op, below(&mut rng, places) * u64::from(sectors), sectors);
    Ok(c.run(n, depth, Nanos::ZERO, next))
}

/// Runs random commands over the whole volume. `sectors` is the size of a command.
fn random(b: &Bench, op: Op, depth: usize, sectors: u32, n: usize) -> Measured<Run> {
    random_on(b, &b.spec, op, depth, sectors, n)
}

/// Returns the rate in MB/s of sequential reads.
fn sequential(b: &Bench, sectors: u32, depth: usize) -> Measured<f64> {
    let mut c = Client::new(b.open("")?);
    let next = |i: usize| command(Op::Read, i as u64 * u64::from(sectors), sectors);
    Ok(c.run(4000, depth, Nanos::ZERO, next).mb())
}

/// Returns the share of random 4 KiB reads above 0.8 ms, divided by that of gp3.
fn slow_share(b: &Bench) -> Measured<f64> {
    let share = |spec: &str| {
        let run = random_on(b, spec, Op::Read, 1, 8, 20_000)?;
        let slow = run.latency_ns.iter().filter(|&&ns| ns > 800_000).count();
        Ok::<f64, Box<dyn std::error::Error + Send + Sync>>(
            slow as f64 / run.latency_ns.len() as f64,
        )
    };
    Ok(share(&b.spec)? / share("cloud:aws-gp3-500")?.max(1e-6))
}
