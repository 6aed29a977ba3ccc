//! Probe P1, which measures the revolution. Completion times of one sector that is read repeatedly
//! differ by whole revolutions.
//!
//! The probe reads a set of addresses in several rounds. The addresses are far apart, and there are
//! too many for the read cache. Each round has a new random order, so that the rounds themselves
//! have no period. The result is the frequency at which the completion times of each address agree
//! best.

use crate::probe::Stop;
use crate::session::Session;
use crate::stats::{frac, median};
use seekwell_stats::t_quantile;

/// The measured revolution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Period {
    /// Duration of a revolution, ms.
    pub turn_ms: f64,
    /// Half-width of the 95 % confidence interval, ms.
    pub pm_ms: f64,
    /// Agreement of the completion times with this period, from 0 to 1: the mean length of the mean
    /// phase vectors of the addresses.
    pub agreement: f64,
    /// Minimum agreement for a significant period.
    pub needed: f64,
    /// Number of completion times that were used.
    pub samples: usize,
    /// Mean latency of the reads, ms.
    pub mean_ms: f64,
}

/// Lowest spindle frequency, in revolutions per second: just below 3600 rpm. The highest frequency
/// is just above 20 000 rpm. No slower disks have been sold since the 1980s.
const LOWEST: f64 = 58.0;
const HIGHEST: f64 = 340.0;
/// Minimum difference between the agreement of a spindle's frequency and the median agreement of
/// all frequencies, in standard deviations. Among several thousand frequencies without a period,
/// the best differs by about 4.
const ABOVE: f64 = 6.5;

/// Completion times of each address, in seconds since the first read.
type Times = Vec<Vec<f64>>;

fn agreement(times: &Times, f: f64) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for t in times {
        let (mut c, mut s) = (0.0, 0.0);
        for x in t {
            let a = core::f64::consts::TAU * frac(x * f);
            c += libm::cos(a);
            s += libm::sin(a);
        }
        sum += libm::sqrt(c * c + s * s);
        n += t.len() as f64;
    }
    if n > 0.0 { sum / n } else { 0.0 }
}

/// Measures the revolution.
pub(crate) fn measure(s: &mut Session<'_>, hit_ms: f64) -> Result<Period, Stop> {
    s.stage("spindle speed");
    // The number of addresses is twice the number of segments in the caches of contemporary drives.
    // It is increased if too many reads are hits.
    let (mut places, rounds) = (s.count(40, 24), s.count(8, 6).min(16));
    let times = loop {
        let at: Vec<u64> = (0..places).map(|_| s.anywhere()).collect();
        let mut times: Times = vec![vec![]; places];
        let mut order: Vec<usize> = (0..places).collect();
        let (mut hits, mut all, mut sum) = (0, 0, 0.0);
        let start = s.read(at[0])?.done;
        for _ in 0..rounds {
            for i in 0..places {
                let j = i + s.below((places - i) as u64) as usize;
                order.swap(i, j);
                let r = s.read(at[order[i]])?;
                all += 1;
                if r.ms() < hit_ms {
                    hits += 1;
                } else {
                    times[order[i]].push((r.done - start) as f64 / 1e9);
                    sum += r.ms();
                }
            }
        }
        if hits * 3 < all || places > 600 {
            let n = (all - hits).max(1) as f64;
            break (times, sum / n);
        }
        places *= 4;
    };
    let (times, mean_ms) = times;
    let last = times.iter().flatten().fold(0.0f64, |a, b| a.max(*b));
    // The step is a quarter of the width of the peak.
    let step = 0.25 / last.max(0.5);
    let n = ((HIGHEST - LOWEST) / step) as usize;
    let scan: Vec<f64> = (0..n)
        .map(|i| agreement(&times, LOWEST + i as f64 * step))
        .collect();
    let usual = median(&scan);
    let off: Vec<f64> = scan.iter().map(|r| (r - usual).abs()).collect();
    let needed = usual + ABOVE * 1.48 * median(&off);
    let best = scan.iter().fold(0.0f64, |a, b| a.max(*b));
    // Multiples of the true frequency have a high agreement too, so the lowest frequency is taken.
    let first = scan.iter().position(|r| *r > 0.85 * best).unwrap_or(0);
    let peak = (first..(first + 8).min(n)).max_by(|a, b| scan[*a].total_cmp(&scan[*b]));
    let mut f = LOWEST + peak.unwrap_or(first) as f64 * step;
    let mut width = step;
    for _ in 0..40 {
        let (a, b) = (f - width / 2.0, f + width / 2.0);
        let (ra, rb, rf) = (
            agreement(&times, a),
            agreement(&times, b),
            agreement(&times, f),
        );
        if ra > rf && ra >= rb {
            f = a;
        } else if rb > rf {
            f = b;
        }
        width *= 0.7;
    }
    let r = agreement(&times, f);
    // The standard error of the frequency is computed like the slope of a regression of revolutions
    // on time. Its input is the scatter of the phases around the mean phase of each address.
    let spread = libm::sqrt(-2.0 * libm::log(r.clamp(1e-9, 1.0))) / core::f64::consts::TAU;
    let mut ss = 0.0;
    let mut samples = 0;
    for t in &times {
        let m = t.iter().sum::<f64>() / t.len().max(1) as f64;
        ss += t.iter().map(|x| (x - m) * (x - m)).sum::<f64>();
        samples += t.len();
    }
    let se = spread / libm::sqrt(ss.max(1e-9));
    // The estimates of one mean per address and of the frequency reduce the degrees of freedom.
    let df = samples.saturating_sub(times.len() + 1).max(1) as f64;
    Ok(Period {
        turn_ms: 1e3 / f,
        pm_ms: t_quantile(0.975, df) * se / f * 1e3 / f,
        agreement: r,
        needed,
        samples,
        mean_ms,
    })
}
