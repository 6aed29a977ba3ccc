//! The length of the periods, from the noise of the baseline.
//!
//! A short period gives more blocks in the same time, but each period loses a washout. A long
//! period averages more noise, but if the load drifts, its neighbours differ more. The baseline has
//! only one scheduler, so it shows the difference between neighbouring periods that noise alone
//! causes. The chosen length gives the smallest standard error of the whole trial.

use crate::stats::{self, detectable};

/// Smallest number of blocks. With fewer, an interval is too wide for most effects.
pub const MIN_BLOCKS: u32 = 6;
/// Lengths of periods from which one is chosen, s.
const LENGTHS_S: [u32; 10] = [10, 15, 20, 30, 45, 60, 90, 120, 180, 300];
/// Pairs of neighbouring windows that are needed to estimate a spread.
const PAIRS: usize = 4;
/// Power of the printed detectable effect.
const POWER: f64 = 0.8;

/// What the user determined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Time for all blocks, s. The baseline is not part of it.
    pub total_s: f64,
    /// Length of a period; `None` if the baseline decides.
    pub period_s: Option<f64>,
    /// Time after each change that does not count, s.
    pub washout_s: f64,
    /// Number of schedulers.
    pub treatments: usize,
}

/// The length of the periods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    /// Measured part of a period, s.
    pub period_s: f64,
    /// Washout before it, s.
    pub washout_s: f64,
    /// Number of blocks.
    pub blocks: u32,
    /// Standard deviation of the log ratio of two neighbouring periods, by noise alone. `None` if
    /// the baseline is too short for an estimate.
    pub noise: Option<f64>,
}

impl Length {
    /// Returns the smallest relative effect that the trial finds with a probability of 80 %.
    pub fn detectable(&self) -> Option<f64> {
        detectable(self.noise?, self.blocks, stats::ALPHA, POWER)
    }
    /// Returns the length of a period with its washout, s.
    pub fn whole_s(&self) -> f64 {
        self.period_s + self.washout_s
    }
}

fn blocks(t: &Timing, period_s: f64) -> u32 {
    let block = (period_s + t.washout_s) * t.treatments as f64;
    (t.total_s / block) as u32
}

/// Returns the standard deviation of the log ratio of neighbouring windows. `values` has one entry
/// for each second, which may have no value. `None` if there are too few windows with values.
fn spread(values: &[Option<f64>], length: usize, gap: usize) -> Option<f64> {
    let windows: Vec<Option<f64>> = values
        .chunks(length + gap)
        .filter(|w| w.len() >= length)
        .map(|w| {
            let known: Vec<f64> = w[..length].iter().copied().flatten().collect();
            (!known.is_empty()).then(|| stats::mean(&known))
        })
        .collect();
    let ratios: Vec<f64> = windows
        .windows(2)
        .filter_map(|w| {
            let (a, b) = (w[0]?, w[1]?);
            (a > 0.0 && b > 0.0).then(|| libm::log(b / a))
        })
        .collect();
    // The expected ratio is 0, so the squares are not taken around the mean.
    let squares = ratios.iter().map(|r| r * r).sum::<f64>();
    (ratios.len() >= PAIRS).then(|| libm::sqrt(squares / ratios.len() as f64))
}

/// Chooses the length of the periods. `baseline` has the value of the primary figure in each second,
/// if there is one.
///
/// # Errors
/// The time is too short for the least number of blocks. The text says which time is needed.
pub fn choose(t: &Timing, baseline: &[Option<f64>]) -> Result<Length, String> {
    let gap = t.washout_s.round() as usize;
    let of = |period_s: f64| Length {
        period_s,
        washout_s: t.washout_s,
        blocks: blocks(t, period_s),
        noise: spread(baseline, (period_s.round() as usize).max(1), gap),
    };
    let too_short = |shortest: f64| {
        let block = (shortest + t.washout_s) * t.treatments as f64;
        format!(
            "{} blocks of {} schedulers need {:.0} s after the baseline, but only {:.0} s are \
             left: use a longer --for, fewer schedulers, or a shorter --period or --washout",
            MIN_BLOCKS,
            t.treatments,
            block * f64::from(MIN_BLOCKS),
            t.total_s
        )
    };
    if let Some(period_s) = t.period_s {
        let only = of(period_s);
        return match only.blocks >= MIN_BLOCKS {
            true => Ok(only),
            false => Err(too_short(period_s)),
        };
    }
    let mut best: Option<(f64, Length)> = None;
    let mut known: Option<(f64, f64)> = None;
    for period_s in LENGTHS_S.map(f64::from) {
        let mut l = of(period_s);
        // Beyond the longest window that the baseline can show, independent noise is assumed.
        match (l.noise, known) {
            (Some(sd), _) => known = Some((period_s, sd)),
            (None, Some((at, sd))) => l.noise = Some(sd * libm::sqrt(at / period_s)),
            (None, None) => {}
        }
        if l.blocks < MIN_BLOCKS {
            break;
        }
        // A standard error far in the future is an extrapolation, so a longer period must be
        // clearly better.
        let error = l.noise.unwrap_or(1.0) / libm::sqrt(f64::from(l.blocks));
        if best.is_none_or(|b| error < b.0 * 0.95) {
            best = Some((error, l));
        }
    }
    best.map(|b| b.1)
        .ok_or_else(|| too_short(f64::from(LENGTHS_S[0])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngCore;
    use seekwell_core::rng::stream;

    fn timing(total_s: f64) -> Timing {
        Timing {
            total_s,
            period_s: None,
            washout_s: 5.0,
            treatments: 3,
        }
    }

    fn uniform(rng: &mut impl RngCore) -> f64 {
        (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[test]
    fn independent_noise_prefers_longer_periods_than_drift() {
        let mut rng = stream(1, "timing");
        let independent: Vec<_> = (0..300).map(|_| Some(5.0 + uniform(&mut rng))).collect();
        let a = choose(&timing(3600.0), &independent).expect("enough time");
        // The load goes up and down over about a minute.
        let drift: Vec<_> = (0..300)
            .map(|s| 5.0 + 2.0 * libm::sin(f64::from(s) / 20.0) + 0.1 * uniform(&mut rng))
            .map(Some)
            .collect();
        let b = choose(&timing(3600.0), &drift).expect("enough time");
        assert!(a.period_s > b.period_s, "{a:?} {b:?}");
        assert!(a.blocks >= MIN_BLOCKS && b.noise > a.noise);
    }

    #[test]
    fn time_for_six_blocks_is_required() {
        let e = choose(&timing(200.0), &[Some(1.0); 60]).expect_err("too short");
        assert!(e.contains("270 s") && e.contains("200 s"), "{e}");
        let l = choose(&timing(270.0), &[Some(1.0); 60]).expect("just enough");
        assert_eq!((l.period_s, l.blocks), (10.0, 6));
        let t = Timing {
            period_s: Some(40.0),
            ..timing(900.0)
        };
        assert_eq!(choose(&t, &[]).expect("enough").blocks, 6);
        assert!(choose(&t, &[]).expect("enough").detectable().is_none());
    }

    #[test]
    fn seconds_without_a_value_keep_the_others_in_their_windows() {
        // The load rises within each window of 12 seconds. Without their idle seconds, the windows
        // would drift apart.
        let load = |s: usize| Some(1.0 + (s % 12) as f64).filter(|_| s < 100 || s % 12 != 11);
        let values: Vec<_> = (0..300).map(load).collect();
        let all = spread(&values, 10, 2).expect("windows");
        assert!(all < 1e-9, "{all}");
    }

    #[test]
    fn printed_effect_is_found_by_a_simulated_trial() {
        let mut rng = stream(2, "power");
        let noise: Vec<_> = (0..300)
            .map(|_| Some(5.0 + 3.0 * uniform(&mut rng)))
            .collect();
        let l = choose(&timing(1800.0), &noise).expect("enough time");
        let effect = libm::log1p(l.detectable().expect("an estimate"));
        let period = l.period_s as usize;
        let mut mean = |factor: f64| {
            let all = (0..period).map(|_| factor * (5.0 + 3.0 * uniform(&mut rng)));
            Some(all.sum::<f64>() / period as f64)
        };
        let found = (0..400).filter(|_| {
            let a: Vec<_> = (0..l.blocks).map(|_| mean(1.0)).collect();
            let b: Vec<_> = (0..l.blocks).map(|_| mean(libm::exp(effect))).collect();
            let p = stats::paired(&b, &a, stats::Better::Lower, false, None);
            p.p.is_some_and(|p| p < 0.05)
        });
        let share = found.count() as f64 / 400.0;
        assert!((0.6..0.97).contains(&share), "{share}");
    }
}
