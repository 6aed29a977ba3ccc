//! The scores of a record beside those of the baseline, which predicts no difference.

use super::odds::{PRIOR, PRIOR_LINES};
use super::outcome::Outcome;
use super::track::Line;
use serde::Serialize;

/// Probabilities nearer to 0 or 1 count as this far away, so that one line cannot decide the score.
const LEAST: f64 = 0.01;

/// The score of a series of predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Number of predictions that were right.
    pub right: usize,
    /// Number of predictions that were right or wrong.
    pub tested: usize,
    /// Mean squared difference between the stated probability and what came true (Brier score); 0
    /// is perfect, and stating 50 % always gives 0.25.
    pub brier: f64,
    /// Mean negative natural logarithm of the probability of what came true (log score); 0 is
    /// perfect, and stating 50 % always gives 0.69.
    pub log: f64,
}

impl Score {
    fn of(all: &[(f64, Outcome)]) -> Score {
        let tested: Vec<(f64, bool)> = all
            .iter()
            .filter(|o| o.1 != Outcome::NotTestable)
            .map(|o| (o.0.clamp(LEAST, 1.0 - LEAST), o.1 == Outcome::Right))
            .collect();
        let n = tested.len();
        let mean = |f: &dyn Fn(f64, bool) -> f64| {
            let sum: f64 = tested.iter().map(|(p, right)| f(*p, *right)).sum();
            if n == 0 { 0.0 } else { sum / n as f64 }
        };
        Score {
            right: tested.iter().filter(|t| t.1).count(),
            tested: n,
            brier: mean(&|p, right| (p - f64::from(u8::from(right))).powi(2)),
            log: mean(&|p, right| -libm::log(if right { p } else { 1.0 - p })),
        }
    }
}

/// Stated probabilities of one range, and how often the predictions were right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Range of the stated probabilities; the upper end does not belong to it.
    pub range: (f64, f64),
    /// Mean of the stated probabilities.
    pub stated: f64,
    /// Number of tested predictions.
    pub tested: usize,
    /// Number of them that were right.
    pub right: usize,
}

/// The scores of a record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scores {
    /// The predictions.
    pub predictions: Score,
    /// The baseline for the same pairs. Its probability starts from the same prior and is
    /// calibrated on its own earlier lines.
    pub baseline: Score,
    /// Number of predictions that the measurement did not decide.
    pub not_testable: usize,
    /// Ranges of stated probabilities with at least one tested prediction.
    pub calibration: Vec<Bin>,
}

/// Lower ends of the ranges of [`Scores::calibration`], and the last upper end.
const EDGES: [f64; 7] = [0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 1.01];

/// Returns the scores of the lines, which are in the order of their times.
pub fn scores(lines: &[Line]) -> Scores {
    let own: Vec<(f64, Outcome)> = lines.iter().map(|l| (l.probability, l.outcome)).collect();
    let (mut right, mut tested) = (0.0, 0.0);
    let mut base = Vec::new();
    for l in lines {
        let outcome = l.baseline();
        // The baseline is scored where the predictions are, so that both have the same pairs.
        if l.outcome == Outcome::NotTestable || outcome == Outcome::NotTestable {
            continue;
        }
        base.push((
            (PRIOR_LINES * PRIOR + right) / (PRIOR_LINES + tested),
            outcome,
        ));
        tested += 1.0;
        right += f64::from(u8::from(outcome == Outcome::Right));
    }
    let bins = EDGES.windows(2).filter_map(|e| {
        let within =
            |o: &&(f64, Outcome)| o.1 != Outcome::NotTestable && (e[0]..e[1]).contains(&o.0);
        let all: Vec<&(f64, Outcome)> = own.iter().filter(within).collect();
        let n = all.len();
        (n > 0).then(|| Bin {
            range: (e[0], e[1].min(1.0)),
            stated: all.iter().map(|o| o.0).sum::<f64>() / n as f64,
            tested: n,
            right: all.iter().filter(|o| o.1 == Outcome::Right).count(),
        })
    });
    Scores {
        calibration: bins.collect(),
        predictions: Score::of(&own),
        baseline: Score::of(&base),
        not_testable: own.iter().filter(|o| o.1 == Outcome::NotTestable).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Claim;
    use super::super::track::tests::line;
    use super::*;

    #[test]
    fn brier_and_log_score_of_known_lines() {
        let s = scores(&[
            line(Claim::Ahead, 0.8, Outcome::Right),
            line(Claim::Ahead, 0.6, Outcome::Wrong),
            line(Claim::Ahead, 0.9, Outcome::NotTestable),
        ]);
        let p = s.predictions;
        assert_eq!((p.right, p.tested, s.not_testable), (1, 2, 1));
        assert!((p.brier - (0.04 + 0.36) / 2.0).abs() < 1e-12, "{p:?}");
        assert!((p.log - (-(0.8_f64.ln()) - 0.4_f64.ln()) / 2.0).abs() < 1e-12);
        // The baseline was wrong where the prediction was right, and the other way round.
        let b = s.baseline;
        assert_eq!((b.right, b.tested), (1, 2));
        let second = PRIOR_LINES * PRIOR / (PRIOR_LINES + 1.0);
        let brier = (PRIOR.powi(2) + (1.0 - second).powi(2)) / 2.0;
        assert!((b.brier - brier).abs() < 1e-12, "{b:?}");
    }

    #[test]
    fn certainty_that_fails_has_a_finite_log_score() {
        let s = scores(&[line(Claim::Ahead, 1.0, Outcome::Wrong)]);
        assert!((s.predictions.log + LEAST.ln()).abs() < 1e-12);
        assert_eq!(scores(&[]).predictions, Score::default());
    }

    #[test]
    fn stated_probabilities_are_compared_with_what_came_true() {
        let s = scores(&[
            line(Claim::Ahead, 0.62, Outcome::Right),
            line(Claim::Ahead, 0.66, Outcome::Wrong),
            line(Claim::Ahead, 0.95, Outcome::Right),
        ]);
        let all: Vec<(usize, usize)> = s.calibration.iter().map(|b| (b.right, b.tested)).collect();
        assert_eq!(all, [(1, 2), (1, 1)]);
        assert!((s.calibration[0].stated - 0.64).abs() < 1e-12);
    }
}
