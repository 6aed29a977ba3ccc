//! The rows of the comparison and their verdicts.

use super::sample::{Kind, Sample};
use seekwell_lab::stats::welch_log;
use serde::Serialize;

/// Largest relative difference of a result that is right. Fixed before the first comparison.
pub const RESULT_TOLERANCE: f64 = 0.05;
/// Largest relative difference of a count that is right. Fixed before the first comparison.
pub const COUNT_TOLERANCE: f64 = 0.05;
/// Largest absolute difference of a count that is right, for small counts.
const COUNT_REQUESTS: f64 = 2.0;
/// A class of requests has a row if one side has at least this many requests per run.
const LEAST_REQUESTS: f64 = 20.0;

/// The verdict of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The means differ by no more than the tolerance.
    Right,
    /// The means differ by more, but the 95 % confidence interval includes the tolerance: more
    /// seeds are needed.
    Undecided,
    /// The whole interval is outside the tolerance.
    Wrong,
}

/// One comparison: means over the seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The workload.
    pub workload: String,
    /// The scheduler.
    pub scheduler: String,
    /// The figure.
    pub figure: String,
    /// True for a number of requests.
    pub count: bool,
    /// Mean of the simulation.
    pub simulated: f64,
    /// Mean of the kernel.
    pub kernel: f64,
    /// The kernel's mean under the first scheduler.
    pub baseline: f64,
    /// The 95 % confidence interval of simulated / kernel, if it is known.
    pub interval: Option<(f64, f64)>,
    /// The verdict of the simulation.
    pub verdict: Verdict,
    /// The verdict of the baseline.
    pub baseline_verdict: Verdict,
}

impl Row {
    /// Returns the relative difference of the simulation.
    pub fn error(&self) -> f64 {
        self.simulated / self.kernel - 1.0
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn verdict(kind: Kind, a: &[f64], b: &[f64]) -> (Verdict, Option<(f64, f64)>) {
    let (x, y) = (mean(a), mean(b));
    let tolerance = match kind {
        Kind::Result => RESULT_TOLERANCE,
        Kind::Count => COUNT_TOLERANCE,
    };
    let welch = welch_log(a, b);
    let interval = welch.and_then(|w| w.ratio95());
    let close = (x / y - 1.0).abs() <= tolerance
        || x == y
        || kind == Kind::Count && (x - y).abs() <= COUNT_REQUESTS;
    let verdict = match interval {
        _ if close => Verdict::Right,
        Some((low, high)) if low <= 1.0 + tolerance && high >= 1.0 - tolerance => {
            Verdict::Undecided
        }
        _ => Verdict::Wrong,
    };
    (verdict, interval)
}

/// Returns the rows of a workload under a scheduler. `first` is the kernel under the first
/// scheduler.
pub fn rows(
    workload: &str,
    scheduler: &str,
    simulated: &[Sample],
    kernel: &[Sample],
    first: &[Sample],
) -> Vec<Row> {
    let mut names: Vec<_> = simulated
        .iter()
        .chain(kernel)
        .flat_map(|s| s.keys())
        .collect();
    names.sort();
    names.dedup();
    let mut all = Vec::new();
    for name in names {
        let (kind, figure) = name;
        let count = *kind == Kind::Count;
        let values = |of: &[Sample]| -> Vec<f64> {
            let missing = count.then_some(0.0);
            of.iter()
                .filter_map(|s| s.get(name).copied().or(missing))
                .collect()
        };
        let (a, b, base) = (values(simulated), values(kernel), values(first));
        if a.is_empty() || b.is_empty() || count && mean(&a).max(mean(&b)) < LEAST_REQUESTS {
            continue;
        }
        let (judged, interval) = verdict(*kind, &a, &b);
        all.push(Row {
            workload: workload.to_owned(),
            scheduler: scheduler.to_owned(),
            figure: figure.clone(),
            count,
            simulated: mean(&a),
            kernel: mean(&b),
            baseline: mean(&base),
            interval,
            verdict: judged,
            baseline_verdict: verdict(*kind, &base, &b).0,
        });
    }
    all
}

/// How many rows have each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Total {
    /// All rows.
    pub rows: usize,
    /// Rows that are right.
    pub right: usize,
    /// Rows that more seeds would decide.
    pub undecided: usize,
}

impl Total {
    /// Counts verdicts.
    pub fn of(verdicts: impl Iterator<Item = Verdict>) -> Self {
        verdicts.fold(Total::default(), |t, v| Total {
            rows: t.rows + 1,
            right: t.right + usize::from(v == Verdict::Right),
            undecided: t.undecided + usize::from(v == Verdict::Undecided),
        })
    }
    /// Returns the counts in words.
    pub fn words(self) -> String {
        format!(
            "{} of {} right, {} undecided, {} wrong",
            self.right,
            self.rows,
            self.undecided,
            self.rows - self.right - self.undecided
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(kind: Kind, values: &[f64]) -> Vec<Sample> {
        let one = |v: &f64| Sample::from([((kind, "x".to_owned()), *v)]);
        values.iter().map(one).collect()
    }

    fn judged(kind: Kind, a: &[f64], b: &[f64]) -> Option<Verdict> {
        let (a, b) = (samples(kind, a), samples(kind, b));
        rows("w", "s", &a, &b, &b).first().map(|r| r.verdict)
    }

    #[test]
    fn difference_within_the_tolerance_is_right() {
        let r = Kind::Result;
        assert_eq!(
            judged(r, &[104.0, 105.0], &[100.0, 100.0]),
            Some(Verdict::Right)
        );
        assert_eq!(judged(r, &[0.0], &[0.0]), Some(Verdict::Right));
    }

    #[test]
    fn difference_that_noise_can_cause_is_undecided() {
        let (a, b) = ([80.0, 120.0, 130.0], [70.0, 100.0, 130.0]);
        assert_eq!(judged(Kind::Result, &a, &b), Some(Verdict::Undecided));
    }

    #[test]
    fn certain_difference_is_wrong() {
        let (a, b) = ([120.0, 121.0, 122.0], [100.0, 101.0, 100.0]);
        assert_eq!(judged(Kind::Result, &a, &b), Some(Verdict::Wrong));
        assert_eq!(judged(Kind::Result, &[1.2], &[1.0]), Some(Verdict::Wrong));
    }

    #[test]
    fn missing_class_counts_as_zero_and_small_classes_are_left_out() {
        let count = Kind::Count;
        let mut kernel = samples(count, &[50.0, 50.0]);
        kernel.push(Sample::new());
        let simulated = samples(count, &[50.0, 50.0, 50.0]);
        assert_eq!(
            rows("w", "s", &simulated, &kernel, &kernel)[0].kernel,
            100.0 / 3.0
        );
        assert_eq!(judged(count, &[19.0], &[3.0]), None);
        assert_eq!(judged(count, &[23.0], &[21.0]), Some(Verdict::Right));
    }
}
