//! The measurements of hard disks. Each uses a new drive and the access pattern of the published
//! measurement.

use crate::validation::figure::{Bench, Measured, Opened, SEED};
use seekwell_core::rng::{self, Pcg64Mcg};
use seekwell_core::{Device, Nanos, Op};
use seekwell_device::probe::{Client, Run, below, command};

/// Number of random requests per measurement.
const RANDOM: usize = 25_000;
const MIB: u64 = 2048;

type Started = (Client<Opened>, Pcg64Mcg, u64);

fn client(b: &Bench, options: &str) -> Measured<Started> {
    let device = b.open(options)?;
    let capacity = device.facts().capacity.0;
    Ok((Client::new(device), rng::stream(SEED, "validate"), capacity))
}

fn stream(client: &mut Client<Opened>, from: u64, mib: u64, block: u32) -> Run {
    let n = (mib * MIB / u64::from(block)) as usize;
    let at = |i: usize| from + i as u64 * u64::from(block);
    client.run(n, 1, Nanos::ZERO, |i| command(Op::Read, at(i), block))
}

/// Returns the rate in MB/s of sequential 64 KiB reads, one at a time. The first read is at the
/// fraction `share` (0 to 1) of the drive's addresses.
pub(super) fn sequential_at(b: &Bench, share: f64) -> Measured<f64> {
    let (mut c, _, capacity) = client(b, "")?;
    let room = capacity - 129 * MIB;
    let from = (share * room as f64) as u64 / 128 * 128;
    stream(&mut c, from, 1, 128);
    Ok(stream(&mut c, from + MIB, 127, 128).mb())
}

/// Returns the rate in MB/s of sequential, aligned 1 MiB writes on the outer tracks, one at a time.
/// The write cache is full before the measurement begins.
pub(super) fn sequential_write(b: &Bench) -> Measured<f64> {
    let (mut c, ..) = client(b, "")?;
    let at = |i: usize| command(Op::Write, i as u64 * MIB, MIB as u32);
    c.run(256, 1, Nanos::ZERO, at);
    Ok(c.run(512, 1, Nanos::ZERO, |i| at(256 + i)).mb())
}

/// Returns random 4 KiB writes per second, one at a time, after the write cache is full.
pub(super) fn random_writes(b: &Bench) -> Measured<f64> {
    let (mut c, mut rng, capacity) = client(b, "")?;
    let mut next = |_| command(Op::Write, below(&mut rng, capacity / 8) * 8, 8);
    c.run(2000, 1, Nanos::ZERO, &mut next);
    Ok(c.run(5000, 1, Nanos::ZERO, next).iops())
}

/// Returns the mean of the sequential rates at 64 positions, in MB/s.
pub(super) fn sequential_mean(b: &Bench) -> Measured<f64> {
    let mut sum = 0.0;
    for i in 0..64 {
        sum += sequential_at(b, f64::from(i) / 63.0)?;
    }
    Ok(sum / 64.0)
}

fn random_reads(b: &Bench, depth: usize) -> Measured<Run> {
    let (mut c, mut rng, capacity) = client(b, "")?;
    let next = |_| command(Op::Read, below(&mut rng, capacity / 8) * 8, 8);
    Ok(c.run(RANDOM, depth, Nanos::ZERO, next))
}

/// Returns the rate in MB/s of random 1 MiB reads at depth 8.
pub(super) fn random_large(b: &Bench) -> Measured<f64> {
    let (mut c, mut rng, capacity) = client(b, "")?;
    let next = |_| {
        command(
            Op::Read,
            below(&mut rng, capacity / MIB - 1) * MIB,
            MIB as u32,
        )
    };
    Ok(c.run(500, 8, Nanos::ZERO, next).mb())
}

/// Returns the mean latency of random 4 KiB reads, one at a time, in ms.
pub(super) fn random_ms(b: &Bench) -> Measured<f64> {
    Ok(random_reads(b, 1)?.mean_ms())
}
/// Returns the 99th percentile of the latency of random 4 KiB reads, one at a time, in ms.
pub(super) fn random_p99_ms(b: &Bench) -> Measured<f64> {
    Ok(random_reads(b, 1)?.quantile_ms(0.99))
}
/// Returns the 99.9th percentile of the latency of random 4 KiB reads, one at a time, in ms.
pub(super) fn random_p999_ms(b: &Bench) -> Measured<f64> {
    Ok(random_reads(b, 1)?.quantile_ms(0.999))
}
/// Returns random 4 KiB reads per second at this depth.
pub(super) fn random_iops(b: &Bench, depth: usize) -> Measured<f64> {
    Ok(random_reads(b, depth)?.iops())
}
/// Returns the rate at this depth divided by the rate at depth 1.
pub(super) fn gain(b: &Bench, depth: usize) -> Measured<f64> {
    Ok(random_iops(b, depth)? / random_iops(b, 1)?)
}

/// Returns the mean time of a FLUSH after `n` scattered 4 KiB writes, in ms.
pub(super) fn flush_ms(b: &Bench, n: usize) -> Measured<f64> {
    let (mut c, mut rng, capacity) = client(b, ",wc_idle=1000")?;
    let rounds = 2000 / n.max(20);
    let mut sum = 0.0;
    for _ in 0..rounds {
        let next = |_| command(Op::Write, below(&mut rng, capacity / 8) * 8, 8);
        c.run(n, 1, Nanos::ZERO, next);
        sum += c.send(command(Op::Flush, 0, 0)).as_ms_f64();
        c.sleep(Nanos(below(&mut rng, 20_000_000)));
    }
    Ok(sum / rounds as f64)
}

/// Returns commits per second. A commit writes the same 8 KiB, flushes and waits 0.5 ms.
pub(super) fn commits(b: &Bench) -> Measured<f64> {
    let (mut c, ..) = client(b, "")?;
    let start = c.now;
    for _ in 0..500 {
        c.send(command(Op::Write, 40_960, 16));
        c.send(command(Op::Flush, 0, 0));
        c.sleep(Nanos(500_000));
    }
    Ok(500.0 / c.now.since(start).as_secs_f64())
}

/// Returns the rate in MB/s of 4000 ascending 4 KiB writes scattered over 1 GiB. The time includes
/// the FLUSH that moves them to the medium.
pub(super) fn sorted_writes(b: &Bench) -> Measured<f64> {
    let (mut c, mut rng, capacity) = client(b, "")?;
    let base = capacity / 4;
    let mut at: Vec<u64> = (0..4000)
        .map(|_| base + below(&mut rng, 1 << 18) * 8)
        .collect();
    at.sort_unstable();
    let start = c.now;
    let run = c.run(at.len(), 31, Nanos::ZERO, |i| command(Op::Write, at[i], 8));
    c.send(command(Op::Flush, 0, 0));
    Ok(run.sectors as f64 * 512.0 / 1e6 / c.now.since(start).as_secs_f64())
}

/// Returns the time of the longest seek with the command, in ms: the shortest read at the inner end that follows
/// a read of sector 0. With many targets,
/// at least one needs almost no wait for the platter.
pub(super) fn longest_seek_ms(b: &Bench) -> Measured<f64> {
    let (mut c, _, capacity) = client(b, ",look_ahead=off,p_miss=0")?;
    let mut least = f64::INFINITY;
    for i in 0..400 {
        // New sectors each time, because the drive keeps those that it has read.
        c.send(command(Op::Read, i * 8, 8));
        let at = capacity / 8 * 8 - 8 - i * 8;
        least = least.min(c.send(command(Op::Read, at, 8)).as_ms_f64());
    }
    Ok(least)
}
