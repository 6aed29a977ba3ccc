//! Published means for eMMC and SD cards, measured on the card model alone, one command at a time.
//! Effects that need a queue, such as those of schedulers and of packing, are measured elsewhere.

use super::figure::Bound::{After, Any, Rule};
use super::figure::Relation::{Fitted, Indicative};
use super::figure::{Bench, Figure, Group, Measured, SEED, row};
use seekwell_core::{Nanos, Op, rng};
use seekwell_device::probe::{Client, Run, below, command};

/// The published results of this family and their measurements.
pub static GROUP: Group = Group {
    title: "eMMC and SD cards",
    note: "The unit is MiB/s; the publisher's MB are taken as 2^20 bytes. No result of a card is \
           held out, because four published means determine the four parameters of a card.",
    rule: "5 % for random reads, 7 % for random writes, 10 % for sequential reads, and 15 % for \
           sequential writes",
    figures: FIGURES,
};

const ANDROBENCH: &str = "AndroBench on a Moto G, May 2014, mean of nine schedulers";
const PIDRAMBLE: &str = "pidramble.com, Raspberry Pi 4, iozone, hdparm and dd";

#[rustfmt::skip]
static FIGURES: &[Figure] = &[
    row("emmc:motog-sandisk8", "random 4 KiB read in 32 MiB", "IOPS", (1350.0, 1350.0),
        ANDROBENCH, Fitted, Rule(0.05), |b| Ok(random(b, Op::Read, 32)?.iops())),
    row("emmc:motog-sandisk8", "sequential 256 KiB read", "MiB/s", (57.0, 57.0),
        ANDROBENCH, Fitted, Rule(0.10), |b| sequential(b, Op::Read, 512)),
    row("emmc:motog-sandisk8", "random 4 KiB write in 32 MiB", "IOPS", (229.0, 229.0),
        ANDROBENCH, Fitted, Rule(0.07), |b| Ok(random(b, Op::Write, 32)?.iops())),
    row("emmc:motog-sandisk8", "sequential 256 KiB write", "MiB/s", (13.7, 13.7),
        ANDROBENCH, Fitted, Rule(0.15), |b| sequential(b, Op::Write, 512)),
    row("emmc:motog-sandisk8", "sequential 64 KiB read", "MiB/s", (23.5, 23.5),
        "another phone: Chromium, Android Go 2018, 2656 us a 64 KiB read", Indicative, Any,
        |b| sequential(b, Op::Read, 128)),
    row("sd:samsung-evoplus32", "random 4 KiB read in 100 MiB", "MiB/s", (10.8, 10.8),
        PIDRAMBLE, Fitted, Rule(0.05), |b| Ok(random(b, Op::Read, 100)?.iops() / 256.0)),
    row("sd:samsung-evoplus32", "sequential 256 KiB read", "MiB/s", (43.92, 43.92),
        PIDRAMBLE, Fitted, After(0.05), |b| sequential(b, Op::Read, 512)),
    row("sd:samsung-evoplus32", "random 4 KiB write in 100 MiB", "MiB/s", (3.85, 3.85),
        PIDRAMBLE, Fitted, Rule(0.07), |b| Ok(random(b, Op::Write, 100)?.iops() / 256.0)),
    row("sd:samsung-evoplus32", "sequential 512 KiB write", "MB/s", (21.3, 21.3),
        PIDRAMBLE, Fitted, After(0.10), |b| Ok(sequential(b, Op::Write, 1024)? * 1.048_576)),
];

/// Runs random 4 KiB commands in the first `mib` MiB, one at a time.
fn random(b: &Bench, op: Op, mib: u64) -> Measured<Run> {
    let mut c = Client::new(b.open("")?);
    let mut rng = rng::stream(SEED, "validate");
    let mut next = |_| command(op, below(&mut rng, mib * 256) * 8, 8);
    // These commands bring the map cache and the open segments into steady state.
    c.run(200, 1, Nanos::ZERO, &mut next);
    Ok(c.run(6_000, 1, Nanos::ZERO, &mut next))
}

/// Returns the rate in MiB/s of sequential commands, one at a time, over 128 MiB. `sectors` is the
/// size of a command.
fn sequential(b: &Bench, op: Op, sectors: u32) -> Measured<f64> {
    let mut c = Client::new(b.open("")?);
    let n = 128 * 2048 / sectors as usize;
    let run = c.run(n, 1, Nanos::ZERO, |i| {
        command(op, i as u64 * u64::from(sectors), sectors)
    });
    Ok(run.mb() / 1.048_576)
}
