//! Runs that reached their limit. Their work takes longer than the limit, but it is not known how
//! much longer.
//!
//! If one of two treatments has such a run, both are compared by the time for the same work, in all
//! blocks. A run that reached its limit counts with the time until the limit. This restricted time
//! is known for every run, so the paired t test applies without changes. If only one treatment has
//! such runs, the measured ratio is a lower bound of the true ratio.

use super::Better;

/// The duration of a run, or a lower bound if the run reached its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until {
    /// Time until the end of the run or until its limit, in s.
    pub time_s: f64,
    /// True if the run reached its limit.
    pub censored: bool,
}

/// Returns restricted times of a cell, by treatment and block. If lower values of the metric are
/// better, the result is the time in s, otherwise its inverse (work per second). A run that reached
/// its limit counts with at least the time of the slowest finished run of its block. So it is never
/// the best.
pub fn restricted(runs: &[Vec<Option<Until>>], better: Better) -> Vec<Vec<Option<f64>>> {
    let slowest = |block: usize| {
        let all = runs.iter().filter_map(|column| *column.get(block)?);
        let finished = all.filter(|u| !u.censored).map(|u| u.time_s);
        finished.fold(0.0, f64::max)
    };
    let value = |(block, u): (usize, &Option<Until>)| {
        let u = (*u)?;
        let time_s = match u.censored {
            true => u.time_s.max(slowest(block)),
            false => u.time_s,
        };
        Some(match better {
            Better::Lower => time_s,
            Better::Higher => 1.0 / time_s,
        })
    };
    let column = |c: &Vec<Option<Until>>| c.iter().enumerate().map(value).collect();
    runs.iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished_at(time_s: f64) -> Option<Until> {
        let censored = false;
        Some(Until { time_s, censored })
    }
    fn limit_reached_at(time_s: f64) -> Option<Until> {
        let censored = true;
        Some(Until { time_s, censored })
    }

    #[test]
    fn censored_run_never_beats_a_finished_one() {
        let runs = [
            vec![
                finished_at(2.0),
                finished_at(8.0),
                limit_reached_at(600.0),
                None,
            ],
            // The second run reached a limit of 3 s, but another run needed 8 s.
            vec![
                limit_reached_at(600.0),
                limit_reached_at(3.0),
                limit_reached_at(600.0),
                finished_at(1.0),
            ],
        ];
        let times = restricted(&runs, Better::Lower);
        assert_eq!(times[0], [Some(2.0), Some(8.0), Some(600.0), None]);
        assert_eq!(times[1], [Some(600.0), Some(8.0), Some(600.0), Some(1.0)]);
        let rates = restricted(&runs, Better::Higher);
        assert_eq!(rates[0][0], Some(0.5));
        assert_eq!(rates[1][0], Some(1.0 / 600.0));
    }
}
