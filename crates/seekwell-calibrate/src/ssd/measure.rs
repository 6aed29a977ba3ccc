//! Measures a flash drive: latency by size, throughput by depth, rates of sequential reads and
//! writes, and the duration of a flush. Candidate models are measured in the same way, so that a
//! fit compares like with like.

use crate::fit::short;
use crate::probe::{Io, Stop};
use crate::session::{SMALL, Session};
use crate::stats::{half_width, median};
use seekwell_stats::{mean, median_interval};

/// Size of the reads and writes that measure a rate, sectors: 128 KiB.
const BLOCK: u32 = 256;
/// Queue depths at which the throughput of reads is measured.
const DEPTHS: [usize; 8] = [2, 4, 8, 16, 32, 64, 128, 256];
/// Sizes of the reads whose latency is measured, sectors.
const SIZES: [u32; 5] = [8, 32, 128, 256, 1024];
/// Length of the range for sequential writes, sectors. Its data are read first, kept in memory and
/// written back.
const LAP: u64 = 131_072;

/// A mean with the half-width of its 95 % confidence interval and the number of samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mean {
    pub value: f64,
    pub pm: f64,
    pub n: usize,
}

/// Measurements of writes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Writes {
    /// Latency of random 4 KiB writes, one at a time, ms.
    pub latency: Mean,
    /// Rate of random 4 KiB writes in short bursts with many outstanding, writes per second.
    pub burst: f64,
    /// Rate of sequential 128 KiB writes when the buffer is full, MB/s.
    pub rate: Mean,
    /// Duration of a flush after 1 write and after 64 writes, ms.
    pub flush: (f64, f64),
    /// Duration of a flush without preceding writes, ms.
    pub idle_flush: f64,
}

/// Measurements of a drive.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shown {
    /// Latency of random 4 KiB reads, ms.
    pub latency: Mean,
    /// (size in sectors, latency in ms) of single reads.
    pub sizes: Vec<(u32, f64)>,
    /// (queue depth, reads per second), starting with depth 1.
    pub depths: Vec<(usize, f64)>,
    /// Rate of sequential 128 KiB reads, MB/s: `rate_one` with one outstanding, `rate` with many.
    pub rate_one: f64,
    pub rate: Mean,
    pub writes: Option<Writes>,
}

impl Shown {
    /// Returns the maximum number of reads per second over all depths.
    pub fn ceiling(&self) -> f64 {
        self.depths.iter().map(|d| d.1).fold(0.0, f64::max)
    }
}

/// Limits on the effort per measured point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Maximum number of I/Os per point.
    pub ios: usize,
    /// Maximum time per point, ms on the device's clock.
    pub ms: f64,
}

/// Returns the mean latency without the slowest 1 %. On a busy host many I/Os are disturbed, and
/// the mean would describe the host. In this case the median is returned and a note is recorded.
fn steady(s: &mut Session<'_>, what: &str, mut ms: Vec<f64>) -> Mean {
    ms.sort_by(f64::total_cmp);
    let usual = median(&ms);
    let keep = ms.len() - ms.len() / 100;
    let m = Mean {
        value: mean(&ms[..keep]),
        pm: half_width(&ms[..keep]),
        n: keep,
    };
    if m.value <= 1.5 * usual {
        return m;
    }
    let us = |ms: f64| short(libm::round(ms * 1e4) / 10.0);
    s.note(format!(
        "{what} are noisy: the median is {} us, but the mean is {} us; the median is used. \
         The host is busy, or the device is in use",
        us(usual),
        us(m.value)
    ));
    let ends = median_interval(&ms);
    Mean {
        value: usual,
        pm: ends.map_or(f64::INFINITY, |(lo, hi)| (hi - lo) / 2.0),
        n: ms.len(),
    }
}

/// Measures I/Os per second at a depth. The measurement consists of several parts. In each part the
/// queue is full.
fn throughput(
    s: &mut Session<'_>,
    effort: Effort,
    depth: usize,
    next: &mut dyn FnMut(&mut Session<'_>, usize) -> Io,
) -> Result<Mean, Stop> {
    let mut i = 0;
    let mut piece = |s: &mut Session<'_>, n: usize| -> Result<f64, Stop> {
        let ios: Vec<Io> = (0..n).map(|k| next(s, i + k)).collect();
        i += n;
        let times = s.run(&ios, depth)?;
        // The rate counts from the moment when the queue was first full to the moment when it began
        // to become empty.
        let mut done: Vec<u64> = times.iter().map(|t| t.done).collect();
        done.sort_unstable();
        let (from, to) = (done[depth.min(n / 4)], done[n - 1 - depth.min(n / 4)]);
        let between = n - 1 - 2 * depth.min(n / 4);
        Ok(between as f64 / (to.saturating_sub(from).max(1) as f64 / 1e9))
    };
    let first = piece(s, (4 * depth).max(64))?;
    let each = ((first * effort.ms / 1e3 / 4.0) as usize)
        .min(effort.ios / 4)
        .max((4 * depth).max(64));
    let rates: Vec<f64> = (0..4).map(|_| piece(s, each)).collect::<Result<_, _>>()?;
    Ok(Mean {
        value: median(&rates),
        pm: half_width(&rates),
        n: 4 * each,
    })
}

/// Measures reads, and also writes if they are permitted. The second value is the reason why the
/// writes ended early.
pub(crate) fn shown(s: &mut Session<'_>, effort: Effort) -> Result<(Shown, Option<Stop>), Stop> {
    s.stage("read latency");
    let n = (effort.ios / 4).min(2000);
    let ios: Vec<Io> = (0..n).map(|_| Io::read(s.anywhere(), SMALL)).collect();
    let ms = s.run(&ios, 1)?.iter().map(|t| t.ms()).collect();
    let latency = steady(s, "single reads", ms);
    let mut sizes = vec![];
    for size in SIZES {
        let room = (s.capacity() - u64::from(size)) / 8;
        let ios: Vec<Io> = (0..(n / 10).max(40))
            .map(|_| Io::read(s.below(room) * 8, size))
            .collect();
        let ms: Vec<f64> = s.run(&ios, 1)?.iter().map(|t| t.ms()).collect();
        sizes.push((size, median(&ms)));
    }
    s.stage("reads at depth");
    let mut depths = vec![(1, 1e3 / latency.value)];
    let most = s.facts().depth.map_or(256, |d| d as usize);
    for depth in DEPTHS {
        if depth <= most || depths.last().is_some_and(|d| d.0 < most) {
            let depth = depth.min(most);
            let r = throughput(s, effort, depth, &mut |s, _| Io::read(s.anywhere(), SMALL))?;
            depths.push((depth, r.value));
        }
    }
    s.stage("sequential reads");
    let block = u64::from(BLOCK);
    let blocks = s.capacity() / block;
    let first = s.below(blocks / 2);
    let mut reading =
        |_: &mut Session<'_>, i: usize| Io::read((first + i as u64) % blocks * block, BLOCK);
    // The number of bytes is the same as in the small reads.
    let long = Effort {
        ios: (effort.ios / 4).max(1024),
        ..effort
    };
    let one = throughput(s, long, 1, &mut reading)?;
    let deep = most.clamp(2, 32);
    let many = throughput(s, long, deep, &mut reading)?;
    let mb = |m: Mean| Mean {
        value: m.value * f64::from(BLOCK) * 512.0 / 1e6,
        pm: m.pm * f64::from(BLOCK) * 512.0 / 1e6,
        n: m.n,
    };
    // Reads alone are enough for a preset. Therefore a failure during the writes does not discard
    // the reads.
    let (writes, cut) = match s.facts().may_write {
        true => match writes(s, effort, deep) {
            Ok(w) => (Some(w), None),
            Err(stop) => (None, Some(stop)),
        },
        false => (None, None),
    };
    let shown = Shown {
        latency,
        sizes,
        depths,
        rate_one: mb(one).value,
        rate: mb(many),
        writes,
    };
    Ok((shown, cut))
}

fn writes(s: &mut Session<'_>, effort: Effort, deep: usize) -> Result<Writes, Stop> {
    s.stage("write latency");
    s.send(Io::flush())?;
    // There are few writes, so that the buffer absorbs them. The pauses let the buffer drain.
    let mut ms = vec![];
    for _ in 0..(effort.ios / 400).clamp(10, 40) {
        let ios: Vec<Io> = (0..10).map(|_| Io::write(s.anywhere(), SMALL)).collect();
        ms.extend(s.run(&ios, 1)?.iter().map(|t| t.ms()));
        s.sleep_ms(20.0)?;
    }
    let latency = steady(s, "single writes", ms);
    let mut bursts = vec![];
    for _ in 0..5 {
        let n = 4 * deep;
        let ios: Vec<Io> = (0..n).map(|_| Io::write(s.anywhere(), SMALL)).collect();
        let times = s.run(&ios, deep)?;
        let mut done: Vec<u64> = times.iter().map(|t| t.done).collect();
        done.sort_unstable();
        let took = done[n - 1].saturating_sub(done[deep - 1]).max(1);
        bursts.push((n - deep) as f64 / (took as f64 / 1e9));
        s.send(Io::flush())?;
        s.sleep_ms(50.0)?;
    }
    s.stage("flush");
    let idle_flush = s.send(Io::flush())?.ms();
    let flush = |s: &mut Session<'_>, n: usize| -> Result<f64, Stop> {
        let mut ms = vec![];
        for _ in 0..7 {
            let ios: Vec<Io> = (0..n).map(|_| Io::write(s.anywhere(), SMALL)).collect();
            s.run(&ios, deep.min(n))?;
            ms.push(s.send(Io::flush())?.ms());
        }
        Ok(median(&ms))
    };
    let flush = (flush(s, 1)?, flush(s, 64)?);
    s.stage("sequential writes");
    let block = u64::from(BLOCK);
    // With a small effort the range is shorter.
    let quick = (effort.ms * 200.0) as u64;
    let lap = quick.clamp(LAP / 16, LAP).min(s.capacity() / 2) / block;
    let first = s.below(s.capacity() / block - lap);
    let mut rates = vec![];
    let start = s.used_s();
    // The first rounds fill the buffer and are not counted.
    for i in 0..9 {
        let ios: Vec<Io> = (0..lap)
            .map(|k| Io::write((first + k) * block, BLOCK))
            .collect();
        let times = s.run(&ios, deep)?;
        let took = times.iter().map(|t| t.done).max().unwrap_or(0) - times[0].sent;
        let late = s.used_s() - start > effort.ms * 4e-3;
        if i > 4 || (late && i > 0) {
            rates.push(lap as f64 * f64::from(BLOCK) * 512.0 / 1e6 / (took as f64 / 1e9));
            if late && rates.len() > 1 {
                break;
            }
        }
    }
    s.send(Io::flush())?;
    Ok(Writes {
        latency,
        burst: median(&bursts),
        rate: Mean {
            value: median(&rates),
            pm: half_width(&rates),
            n: rates.len(),
        },
        flush,
        idle_flush,
    })
}
