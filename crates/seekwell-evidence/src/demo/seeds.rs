//! Merges runs of a demo with several seeds into means with intervals. A claim must hold in each
//! run.

use super::Shown;
use seekwell_core::numbers;
use seekwell_stats as stats;

/// Target for the bios and operations of all seeds, if the user does not set the number of seeds.
/// They take a few seconds.
const WORK: u64 = 1_500_000;
/// Smallest and largest number of seeds if the user does not set it.
const SEEDS: (u64, u64) = (3, 10);
/// Smallest number of seeds for a confidence interval; fewer give the minimum and maximum.
const INTERVAL: usize = 5;

impl Shown {
    /// Returns the suggested number of seeds. It depends on the work of one seed and not on a
    /// clock.
    pub fn worth(&self) -> u64 {
        (WORK / self.work.max(1)).clamp(SEEDS.0, SEEDS.1)
    }

    /// Merges runs with different seeds. A number that differs becomes the mean with its 95 %
    /// confidence interval, or with minimum and maximum for fewer than five seeds. A check passes
    /// if it passed in every run. Returns `None` if `all` is empty.
    pub fn over(all: &[Shown]) -> Option<Shown> {
        let first = all.first()?;
        let n = all.len();
        let mut one = first.clone();
        for (i, row) in one.rows.iter_mut().enumerate() {
            for (k, cell) in row.iter_mut().enumerate() {
                let of = |s: &Shown| s.rows.get(i).and_then(|r| r.get(k)).cloned();
                *cell = merge(&all.iter().filter_map(of).collect::<Vec<_>>());
            }
        }
        for (i, check) in one.checks.iter_mut().enumerate() {
            let of = |s: &Shown| s.checks.get(i).cloned();
            let each: Vec<(String, bool)> = all.iter().filter_map(of).collect();
            let holds = each.iter().filter(|c| c.1).count();
            let words: Vec<String> = each.into_iter().map(|c| c.0).collect();
            *check = (merge(&words), holds == n);
            if n > 1 {
                check.0 += &format!(" ({holds} of {n} seeds)");
            }
        }
        if n > 1 {
            let ends = match n < INTERVAL {
                true => "least..most",
                false => "95 % interval",
            };
            one.setting += &format!("; mean ({ends}) of {n} seeds");
            one.seeds = n;
            one.work = all.iter().map(|s| s.work).sum();
        }
        Some(one)
    }
}

/// Merges texts that differ only in numbers into `12.0 (11.0..13.0)`. Returns the first text if
/// other words differ.
fn merge(all: &[String]) -> String {
    let Some(first) = all.first() else {
        return String::new();
    };
    let words: Vec<Vec<&str>> = all.iter().map(|t| t.split(' ').collect()).collect();
    if words.iter().any(|w| w.len() != words[0].len()) {
        return first.clone();
    }
    let column = |i: usize| -> String {
        let of: Vec<&str> = words.iter().map(|w| w[i]).collect();
        if of.iter().all(|w| *w == of[0]) {
            return of[0].to_owned();
        }
        numbers(&of).unwrap_or_else(|| of[0].to_owned())
    };
    (0..words[0].len())
        .map(column)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Merges `+5.1,` and `+6.3,` into `+5.7 (+5.1..+6.3),`, with the same number of decimals.
fn numbers(words: &[&str]) -> Option<String> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == '-' || c == '+';
    let parts: Vec<(&str, &str)> = words
        .iter()
        .map(|w| w.split_at(w.find(|c| !is_number(c)).unwrap_or(w.len())))
        .collect();
    let tail = parts[0].1;
    if parts.iter().any(|p| p.1 != tail) {
        return None;
    }
    let values: Option<Vec<f64>> = parts.iter().map(|p| p.0.parse().ok()).collect();
    let values = values?;
    let decimals = parts[0].0.split_once('.').map_or(0, |p| p.1.len());
    let signed = parts.iter().any(|p| p.0.starts_with('+'));
    let text = |v: f64| match signed {
        true => numbers::signed(v, decimals),
        false => numbers::fixed(v, decimals),
    };
    let mean = stats::mean(&values);
    let n = values.len();
    let (least, most) = match n < INTERVAL {
        true => stats::range(&values),
        false => {
            let half = stats::t_quantile(0.975, (n - 1) as f64) * stats::deviation(&values)
                / libm::sqrt(n as f64);
            (mean - half, mean + half)
        }
    };
    Some(format!(
        "{} ({}..{}){tail}",
        text(mean),
        text(least),
        text(most)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(cell: &str, words: &str, holds: bool) -> Shown {
        Shown {
            setting: "a disk".into(),
            columns: vec!["scheduler".into(), "MB/s".into()],
            rows: vec![vec!["noop-3.4".into(), cell.into()]],
            checks: vec![(words.into(), holds)],
            work: 1_000,
            seeds: 1,
        }
    }

    #[test]
    fn five_seeds_have_an_interval_and_their_number_follows_from_the_work() {
        let cells = ["10.0", "11.0", "12.0", "13.0", "14.0"];
        let all = cells.map(|c| shown(c, "cfq is ahead", true));
        let s = Shown::over(&all).expect("five runs");
        // SD 1.581, t(.975, 4) = 2.776: 12 -+ 1.963.
        assert_eq!(s.rows[0][1], "12.0 (10.0..14.0)");
        assert_eq!(s.setting, "a disk; mean (95 % interval) of 5 seeds");
        assert_eq!((s.seeds, s.work), (5, 5_000));
        let close = ["12.0", "12.0", "12.0", "12.0", "13.0"].map(|c| shown(c, "x", true));
        let s = Shown::over(&close).expect("five runs");
        assert_eq!(s.rows[0][1], "12.2 (11.6..12.8)");
        let of = |work| Shown {
            work,
            ..Shown::default()
        };
        let worth = [0, 150_000, 400_000, u64::MAX].map(|w| of(w).worth());
        assert_eq!(worth, [10, 10, 3, 3]);
    }

    #[test]
    fn figures_are_given_as_mean_and_range_and_a_claim_must_hold_in_every_run() {
        let all = [
            shown("10.0", "cfq is +5.0 % and 2 times, at least 1.3", true),
            shown("14.0", "cfq is -1.0 % and 4 times, at least 1.3", false),
        ];
        let s = Shown::over(&all).expect("two runs");
        assert_eq!(s.rows[0], ["noop-3.4", "12.0 (10.0..14.0)"]);
        let (words, holds) = &s.checks[0];
        assert_eq!(
            words,
            "cfq is +2.0 (-1.0..+5.0) % and 3 (2..4) times, at least 1.3 (1 of 2 seeds)"
        );
        assert!(!holds);
        assert_eq!(s.setting, "a disk; mean (least..most) of 2 seeds");
    }

    #[test]
    fn one_run_is_left_as_it_is() {
        let s = shown("10.0", "cfq is 5 % faster", true);
        let same = Shown::over(std::slice::from_ref(&s)).expect("a run");
        assert_eq!((same.rows, same.checks), (s.rows, s.checks));
        assert!(Shown::over(&[]).is_none());
    }
}
