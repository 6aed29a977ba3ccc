//! Time series within a run: warm-up and steadiness.

use super::{deviation, mean, t_quantile};

/// Number of seconds in a batch.
const BATCH: usize = 5;

/// The warm-up to leave out of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// Length of the warm-up, in s.
    pub drop: usize,
    /// True if the warm-up reached its limit, which is half of the run. The run may then never have
    /// been steady.
    pub not_reached: bool,
}

/// Finds the warm-up by MSER-5: the length that minimises the standard error of the remaining mean.
/// `seconds` holds one value per second.
pub fn warm_up(seconds: &[f64]) -> WarmUp {
    let batches: Vec<f64> = seconds.chunks_exact(BATCH).map(mean).collect();
    let bound = batches.len() / 2;
    let score = |d: usize| {
        let kept = &batches[d..];
        let m = mean(kept);
        let squares: f64 = kept.iter().map(|z| (z - m) * (z - m)).sum();
        squares / (kept.len() * kept.len()).max(1) as f64
    };
    // If several lengths are equally good, the shortest is chosen.
    let best = (0..=bound).reduce(|a, b| if score(b) < score(a) { b } else { a });
    let d = best.unwrap_or(0);
    WarmUp {
        drop: d * BATCH,
        not_reached: bound > 0 && d == bound,
    }
}

/// Finds one warm-up for all runs of a cell, from the runs of its first block. Each run is divided
/// by the mean of its second half, and then the runs are averaged.
pub fn frozen_warm_up(runs: &[Vec<f64>]) -> WarmUp {
    let seconds = runs.iter().map(Vec::len).min().unwrap_or(0);
    let level = |run: &Vec<f64>| mean(&run[run.len() / 2..]);
    let usable: Vec<(&Vec<f64>, f64)> = runs
        .iter()
        .map(|r| (r, level(r)))
        .filter(|(_, l)| *l > 0.0)
        .collect();
    let averaged: Vec<f64> = (0..seconds)
        .map(|s| mean(&usable.iter().map(|(r, l)| r[s] / l).collect::<Vec<_>>()))
        .collect();
    warm_up(&averaged)
}

/// Whether the values still change after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moving {
    /// Mean over the runs of ln(last third / middle third).
    pub mean: f64,
    /// 95 % confidence interval of `mean`; `None` for a single run.
    pub interval95: Option<(f64, f64)>,
    /// True if the interval excludes 0 and the mean exceeds the margin.
    pub moving: bool,
}

/// Tests whether runs still change after a warm-up of `drop` seconds. Returns `None` unless at
/// least one run has three seconds left and positive values.
pub fn moving(runs: &[Vec<f64>], drop: usize, margin: f64) -> Option<Moving> {
    let growth = |run: &Vec<f64>| {
        let kept = run.get(drop..)?;
        let third = kept.len() / 3;
        let (before, last) = kept.split_at(kept.len() - third);
        let middle = &before[before.len() - third..];
        let (m, l) = (mean(middle), mean(last));
        (third > 0 && m > 0.0 && l > 0.0).then(|| libm::log(l / m))
    };
    let g: Vec<f64> = runs.iter().filter_map(growth).collect();
    if g.is_empty() {
        return None;
    }
    let m = mean(&g);
    let interval95 = (g.len() > 1).then(|| {
        let n = g.len() as f64;
        let half = t_quantile(0.975, n - 1.0) * deviation(&g) / libm::sqrt(n);
        (m - half, m + half)
    });
    let excludes = interval95.is_some_and(|(l, h)| l > 0.0 || h < 0.0);
    Some(Moving {
        mean: m,
        interval95,
        moving: excludes && m.abs() > libm::log1p(margin),
    })
}
