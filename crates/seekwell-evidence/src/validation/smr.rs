//! Shingled disks: rates before and after the persistent cache is full, and the time to clean a
//! band.

use super::figure::Bound::{After, Any, Range, Rule};
use super::figure::Relation::{Circular, Fitted, HeldOut, Indicative};
use super::figure::{Bench, Figure, Group, Measured, SEED, row};
use seekwell_core::{Nanos, Op, rng};
use seekwell_device::probe::{Client, below, command};

/// The published results of this family and their measurements.
pub static GROUP: Group = Group {
    title: "Shingled disks",
    note: "The figures of Skylight (FAST 2015) are recalled. The published rates with a full \
           persistent cache differ by a factor of five, because they depend on how many bands the \
           writes before had touched.",
    rule: "3 % for rates and counts, and 10 % for rates at larger depths",
    figures: FIGURES,
};

const ARCHIVE: &str = "smr:st8000as0002";
const SKYLIGHT: &str = "Skylight, FAST 2015 (recalled)";
const TOMS: &str = "Tom's Hardware 2015, Archive HDD 8 TB";

#[rustfmt::skip]
static FIGURES: &[Figure] = &[
    row(ARCHIVE, "sequential read, outer", "MB/s", (190.0, 190.0),
        "data sheet, by ilsoftware.it", Fitted, Rule(0.03), |b| sequential(b, Op::Read, 0)),
    row(ARCHIVE, "sequential write, mean of five places", "MB/s", (150.0, 150.0),
        "data sheet, by ilsoftware.it", Fitted, Rule(0.03), mean_write),
    row(ARCHIVE, "synchronous 4 KiB write, persistent cache full: cleaning and append", "s", (0.6, 1.6),
        SKYLIGHT, Fitted, Range, clean_s),
    row(ARCHIVE, "scattered 4 KiB writes before they slow down 2.5 times", "writes", (250_000.0, 250_000.0),
        SKYLIGHT, Circular, Rule(0.03), |b| before_collapse(b, 1, 8)),
    row(ARCHIVE, "data in scattered runs of 32 MiB before writes slow down 2.5 times", "GB", (34.4, 34.4),
        "aicodix/smr, ST8000AS0002: about 32 GiB", HeldOut, After(0.15),
        |b| Ok(before_collapse(b, 32, 2048)? * 32.0 * 1.048_576e-3)),
    row(ARCHIVE, "random 4 KiB read, depth 31", "IOPS", (155.0, 155.0),
        TOMS, HeldOut, After(0.325), |b| random(b, "", Op::Read, 31, 3000)),
    row(ARCHIVE, "random 4 KiB write, depth 31, persistent cache full", "IOPS", (3.5, 14.0),
        "Tom's Hardware 2015: 7, with a factor of two", HeldOut, After(0.21),
        |b| random(b, ",pc=full", Op::Write, 31, 300)),
    row(ARCHIVE, "random 4 KiB write, depth 31, persistent cache full", "IOPS", (1.5, 1.5),
        "sami-lehtinen.net, Toshiba 3 TB", Indicative, Any,
        |b| random(b, ",pc=full", Op::Write, 31, 300)),
];

/// Returns the rate in MB/s of sequential 1 MiB commands from a sector. The writes fill 20 bands
/// after those that fill the buffer.
fn sequential(b: &Bench, op: Op, from: u64) -> Measured<f64> {
    let mut c = Client::new(b.open("")?);
    let mut run = |first: usize, n: usize| {
        c.run(n, 8, Nanos::ZERO, |i| {
            command(op, from + (first + i) as u64 * 2048, 2048)
        })
    };
    run(0, 300);
    Ok(run(300, 600).mb())
}

fn mean_write(b: &Bench) -> Measured<f64> {
    let capacity = b.open("")?.facts().capacity.0;
    let mut sum = 0.0;
    for place in [1, 3, 5, 7, 9] {
        sum += sequential(b, Op::Write, capacity / 10 * place / 2048 * 2048)?;
    }
    Ok(sum / 5.0)
}

/// Returns the time of a write that waits until one band has been cleaned, in s: the mean of 20.
fn clean_s(b: &Bench) -> Measured<f64> {
    Ok(1.0
        / random(
            b,
            ",pc=full,write_cache=no,pc_extents=1000",
            Op::Write,
            1,
            20,
        )?)
}

/// Writes runs of `pieces` sequential commands at random addresses, in batches. Returns the number of
/// runs before a batch takes 2.5 times the mean time of the first 20 batches. Stops after 400 000
/// runs of one piece, or 2000 longer runs.
fn before_collapse(b: &Bench, pieces: u64, sectors: u32) -> Measured<f64> {
    let mut c = Client::new(b.open("")?);
    let unit = pieces * u64::from(sectors);
    let places = c.device.facts().capacity.0 / unit;
    let mut rng = rng::stream(SEED, "validate");
    let batch = if pieces == 1 { 2500 } else { 10 };
    let mut usual = 0;
    // The null model never collapses.
    let most = if pieces == 1 { 160 } else { 200 };
    for n in 0..most {
        let mut list = vec![];
        for _ in 0..batch {
            // Not at the beginning of a band.
            let at = below(&mut rng, places) * unit + 8;
            list.extend((0..pieces).map(|i| at + i * u64::from(sectors)));
        }
        let run = c.run(list.len(), 8, Nanos::ZERO, |i| {
            command(Op::Write, list[i], sectors)
        });
        if n < 20 {
            usual += run.took.0;
        } else if run.took.0 * 20 > usual * 5 / 2 {
            return Ok((n * batch) as f64);
        }
    }
    Ok((most * batch) as f64)
}

fn random(b: &Bench, options: &str, op: Op, depth: usize, n: usize) -> Measured<f64> {
    let mut c = Client::new(b.open(options)?);
    let blocks = c.device.facts().capacity.0 / 8;
    let mut rng = rng::stream(SEED, "validate");
    let mut next = |_| command(op, below(&mut rng, blocks) * 8, 8);
    // These commands fill the volatile buffer.
    c.run(1200, depth, Nanos::ZERO, &mut next);
    Ok(c.run(n, depth, Nanos::ZERO, &mut next).iops())
}
