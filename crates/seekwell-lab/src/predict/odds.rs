//! The probability that a prediction is right. It begins with the tool's score on published
//! comparisons and moves to the score of this machine's own record.

use super::outcome::{Claim, Outcome, Ratio};
use super::track::Line;
use serde::{Deserialize, Serialize};

/// Share of predictions that were right on published and held-out comparisons. It is the prior of
/// every prediction of a usual size.
pub const PRIOR: f64 = 0.66;

/// Natural logarithm of the usual predicted ratio: 1.17, the median of the predicted differences
/// above 2 % in `docs/reproduction.md`.
const USUAL_SIZE: f64 = 0.157;

/// Number of lines of the record that weigh as much as the prior.
pub const PRIOR_LINES: f64 = 8.0;

/// Normal quantile of a 95 % interval.
const Z95: f64 = 1.959_964;

/// Probabilities that are stated at most; no model justifies more.
const CERTAIN: f64 = 0.95;

/// A probability and its basis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Odds {
    /// Probability that the prediction is right, 0 to 1.
    pub probability: f64,
    /// The same probability without the local record.
    pub prior: f64,
    /// Number of lines of the local record behind it.
    pub lines: usize,
}

/// Returns the probability before any local record. A larger effect has a larger probability, a
/// wide interval of the simulation a smaller one. The errors of the model are taken as Cauchy
/// distributed on the logarithm of the ratio, because they have outliers. The scale of the errors
/// is such that an effect of the usual size has the probability [`PRIOR`].
fn prior(claim: Claim, simulated: &Ratio) -> f64 {
    if claim == Claim::Level {
        return PRIOR;
    }
    let model = USUAL_SIZE / libm::tan(std::f64::consts::PI * (PRIOR - 0.5));
    let seeds = simulated.interval.map_or(0.0, |(low, high)| {
        (libm::log(high) - libm::log(low)).abs() / (2.0 * Z95)
    });
    let scale = libm::hypot(model, seeds);
    let effect = libm::log(simulated.times).abs();
    0.5 + libm::atan(effect / scale) / std::f64::consts::PI
}

/// Returns whether a line belongs to the predictions by which a claim is calibrated: those of a
/// difference, or those of none.
fn alike(claim: Claim, line: &Line) -> bool {
    (claim == Claim::Level) == (line.claim == Claim::Level)
}

/// Returns the probability of a claim, calibrated on the lines of the record.
pub fn odds(claim: Claim, simulated: &Ratio, record: &[Line]) -> Odds {
    let prior = prior(claim, simulated).min(CERTAIN);
    let tested = record
        .iter()
        .filter(|l| alike(claim, l) && l.outcome != Outcome::NotTestable);
    let right = tested
        .clone()
        .filter(|l| l.outcome == Outcome::Right)
        .count();
    let lines = tested.count();
    let (right, n) = (right as f64, lines as f64);
    let probability = (PRIOR_LINES * prior + right) / (PRIOR_LINES + n);
    Odds {
        probability: probability.min(CERTAIN),
        prior,
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::super::track::tests::line;
    use super::*;

    fn ratio(times: f64, low: f64, high: f64) -> Ratio {
        Ratio {
            times,
            interval: Some((low, high)),
        }
    }

    #[test]
    fn the_usual_effect_has_the_published_score_and_larger_ones_more() {
        let p = |times: f64| odds(Claim::Ahead, &ratio(times, times, times), &[]).probability;
        assert!((p(1.17) - PRIOR).abs() < 0.005, "{}", p(1.17));
        let sizes = [1.02, 1.1, 1.17, 1.5, 3.0, 21.0].map(p);
        assert!(sizes.windows(2).all(|w| w[0] < w[1]), "{sizes:?}");
        assert!(sizes[0] > 0.5 && sizes[5] <= CERTAIN, "{sizes:?}");
        // The inverse ratio is the same effect.
        let behind = odds(Claim::Behind, &ratio(1.0 / 3.0, 0.33, 0.34), &[]);
        assert!((behind.probability - p(3.0)).abs() < 0.01);
    }

    #[test]
    fn a_wide_interval_of_the_simulation_lowers_the_probability() {
        let narrow = odds(Claim::Ahead, &ratio(1.5, 1.45, 1.55), &[]).probability;
        let wide = odds(Claim::Ahead, &ratio(1.5, 0.5, 4.5), &[]).probability;
        assert!(wide < narrow - 0.05, "{wide} {narrow}");
    }

    #[test]
    fn the_record_moves_the_probability_of_claims_of_the_same_kind() {
        let wrong: Vec<Line> = (0..8)
            .map(|_| line(Claim::Ahead, 0.7, Outcome::Wrong))
            .collect();
        let o = odds(Claim::Behind, &ratio(0.85, 0.85, 0.85), &wrong);
        assert_eq!(o.lines, 8);
        assert!((o.probability - o.prior / 2.0).abs() < 1e-9, "{o:?}");
        let level = odds(Claim::Level, &ratio(1.0, 1.0, 1.0), &wrong);
        assert_eq!((level.lines, level.probability), (0, PRIOR));
        let open: Vec<Line> = (0..8)
            .map(|_| line(Claim::Ahead, 0.7, Outcome::NotTestable))
            .collect();
        assert_eq!(odds(Claim::Ahead, &ratio(1.17, 1.17, 1.17), &open).lines, 0);
    }
}
