//! Signs of noise. They are shown next to the verdicts and never change them.

use super::{EQUAL, f_tail, mann_kendall, mean, median, theil_sen};

/// The scaled distance of each run from the median of its treatment.
#[derive(Clone, Debug, PartialEq)]
pub struct Outliers {
    /// (log x - median) / scale, by treatment and run. `None` for a missing run, or if the values
    /// have no spread.
    pub z: Vec<Vec<Option<f64>>>,
    /// The flagged runs of each treatment, numbered from 0.
    pub flagged: Vec<Vec<usize>>,
}

/// Factor that converts the median absolute deviation of a normal distribution to its standard
/// deviation.
const MAD_TO_SD: f64 = 1.4826;
/// A run is flagged if its scaled distance is larger than this.
const OUTLIER: f64 = 5.0;
/// Smallest number of runs for which runs are flagged.
const RUNS_MIN: usize = 6;

/// Finds the outliers of a cell, on logarithms of the values. The scale is the median absolute
/// deviation of the treatment or of all treatments, whichever is larger. So a treatment with few
/// distinct values does not cause flags. If there is no spread, a run is flagged if it deviates by
/// more than the margin.
pub fn outliers(cell: &[Vec<Option<f64>>], margin: f64) -> Outliers {
    let log = |v: &Option<f64>| v.filter(|x| *x > 0.0).map(libm::log);
    let logs: Vec<Vec<Option<f64>>> = cell.iter().map(|t| t.iter().map(log).collect()).collect();
    let present = |t: &[Option<f64>]| t.iter().flatten().copied().collect::<Vec<f64>>();
    let middle: Vec<f64> = logs
        .iter()
        .map(|t| median(&present(t)).unwrap_or(0.0))
        .collect();
    let off: Vec<Vec<f64>> = logs
        .iter()
        .zip(&middle)
        .map(|(t, m)| present(t).iter().map(|x| (x - m).abs()).collect())
        .collect();
    let pooled = median(&off.concat()).unwrap_or(0.0);
    let mut out = Outliers {
        z: Vec::new(),
        flagged: Vec::new(),
    };
    for (i, runs) in logs.iter().enumerate() {
        let scale = MAD_TO_SD * median(&off[i]).unwrap_or(0.0).max(pooled);
        let enough = off[i].len() >= RUNS_MIN;
        let z: Vec<Option<f64>> = runs
            .iter()
            .map(|x| x.filter(|_| scale > EQUAL).map(|x| (x - middle[i]) / scale))
            .collect();
        let far = |run: usize| match (z[run], runs[run]) {
            (Some(z), _) => z.abs() > OUTLIER,
            (None, Some(x)) => (x - middle[i]).abs() > libm::log1p(margin),
            (None, None) => false,
        };
        let flagged = (0..runs.len()).filter(|r| enough && far(*r)).collect();
        out.z.push(z);
        out.flagged.push(flagged);
    }
    out
}

/// Returns which rows of a publication have a standard deviation above `limit`, in the unit of the
/// metric.
pub fn sd_cutoff(sds: &[f64], limit: f64) -> Vec<bool> {
    sds.iter().map(|sd| *sd > limit).collect()
}

/// The best division of the runs into two groups.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModesSplit {
    /// Distance between the groups divided by the standard deviation within the groups. `None`
    /// without spread, or with too few runs.
    pub d: Option<f64>,
    /// Fraction of the runs that are in the smaller group.
    pub share: Option<f64>,
    /// Difference between the means of the groups, on the log scale.
    pub gap: Option<f64>,
    /// Largest value of `d` for which the runs are not flagged.
    pub limit: Option<f64>,
    /// True if the runs have two modes.
    pub flagged: bool,
}

/// Tests for two modes, on logarithms of the values. Each group must contain at least two runs and
/// 15 % of all runs. Values that are not positive, or fewer than six values, are not tested.
pub fn two_modes(values: &[f64], margin: f64) -> ModesSplit {
    let n = values.len();
    if n < RUNS_MIN || values.iter().any(|v| *v <= 0.0) {
        return ModesSplit::default();
    }
    let mut logs: Vec<f64> = values.iter().map(|v| libm::log(*v)).collect();
    logs.sort_by(f64::total_cmp);
    let side = (n * 15).div_ceil(100).max(2);
    let squares = |part: &[f64]| {
        let m = mean(part);
        part.iter().map(|x| (x - m) * (x - m)).sum::<f64>()
    };
    let within = |k: usize| squares(&logs[..k]) + squares(&logs[k..]);
    let best = (side..=n - side).min_by(|a, b| within(*a).total_cmp(&within(*b)));
    let Some(k) = best else {
        return ModesSplit::default();
    };
    let gap = mean(&logs[k..]) - mean(&logs[..k]);
    let spread = libm::sqrt(within(k) / (n - 2) as f64);
    let limit = 4.0 + 12.0 / n as f64;
    let d = (spread > EQUAL).then(|| gap / spread);
    let apart = d.is_none_or(|d| d > limit);
    ModesSplit {
        d,
        share: Some(k.min(n - k) as f64 / n as f64),
        gap: Some(gap),
        limit: Some(limit),
        flagged: apart && gap > libm::log1p(margin),
    }
}

/// A trend over the blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Number of pairs of blocks with a rise minus the number of pairs with a fall.
    pub s: i64,
    /// Two-sided p value of the Mann-Kendall test.
    pub p: f64,
    /// Theil-Sen slope: change of the logarithm per block.
    pub slope: f64,
    /// True if p < 0.01 and there are at least eight blocks.
    pub flagged: bool,
}

/// Smallest number of blocks for which a trend is flagged.
const TREND_BLOCKS: usize = 8;

/// Tests for a trend; `None` with fewer than two values, or if a value is not positive.
pub fn trend(block_means: &[f64]) -> Option<Trend> {
    if block_means.iter().any(|v| *v <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = block_means.iter().map(|v| libm::log(*v)).collect();
    let slope = theil_sen(&logs)?;
    // Logarithms of equal values are equal, so taking logarithms preserves ties.
    let (s, p) = mann_kendall(&logs);
    Some(Trend {
        s,
        p,
        slope,
        flagged: block_means.len() >= TREND_BLOCKS && p < 0.01,
    })
}

/// The effect of a run on the next run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carry {
    /// F statistic of a one-way analysis of variance, with the runs grouped by the treatment before
    /// them.
    pub f: f64,
    /// p value of `f`.
    pub p: f64,
    /// True if p < 0.01 and there are at least two blocks per treatment.
    pub flagged: bool,
}

/// A run, and the treatment of the run just before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Followed {
    /// Block of the run, from 0.
    pub block: usize,
    /// Treatment of the run, from 0.
    pub treatment: usize,
    /// Treatment of the run before it, from 0.
    pub before: usize,
    /// Logarithm of the value of the run.
    pub log: f64,
}

/// Tests whether runs depend on the run before them. The test uses the residuals after the block
/// means and treatment means are removed. Returns `None` if the runs have fewer than two different
/// predecessors.
pub fn carry_over(runs: &[Followed]) -> Option<Carry> {
    let blocks = runs.iter().map(|r| r.block + 1).max()?;
    let treatments = runs.iter().map(|r| r.treatment.max(r.before) + 1).max()?;
    let mean_of = |keep: &dyn Fn(&Followed) -> bool| {
        let v: Vec<f64> = runs.iter().filter(|r| keep(r)).map(|r| r.log).collect();
        mean(&v)
    };
    let grand = mean_of(&|_| true);
    let of_block: Vec<f64> = (0..blocks).map(|b| mean_of(&|r| r.block == b)).collect();
    let of_treatment: Vec<f64> = (0..treatments)
        .map(|t| mean_of(&|r| r.treatment == t))
        .collect();
    let mut groups = vec![Vec::new(); treatments];
    for r in runs {
        let expected = of_block[r.block] + of_treatment[r.treatment] - grand;
        groups[r.before].push(r.log - expected);
    }
    groups.retain(|g| !g.is_empty());
    let n: usize = groups.iter().map(Vec::len).sum();
    if groups.len() < 2 || n <= groups.len() {
        return None;
    }
    let all = mean(&groups.concat());
    let between: f64 = groups
        .iter()
        .map(|g| g.len() as f64 * (mean(g) - all) * (mean(g) - all))
        .sum();
    let within: f64 = groups
        .iter()
        .map(|g| g.iter().map(|x| (x - mean(g)) * (x - mean(g))).sum::<f64>())
        .sum();
    let (df1, df2) = ((groups.len() - 1) as f64, (n - groups.len()) as f64);
    if within <= 0.0 {
        return None;
    }
    let f = (between / df1) / (within / df2);
    let p = f_tail(f, df1, df2);
    Some(Carry {
        f,
        p,
        flagged: blocks >= 2 * treatments && p < 0.01,
    })
}
