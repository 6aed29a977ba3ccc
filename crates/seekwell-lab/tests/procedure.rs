//! The complete procedure (blocks, stopping rule, correction and verdict) over simulated
//! experiments with a known truth. It measures how often the procedure makes false claims, and how
//! often its intervals contain the true effect. Common practice is measured too, to show that the
//! bounds detect bad methods. It makes three runs of each treatment one after the other, uses a
//! fixed order under drift, and corrects nothing.
//!
//! The bounds are for 1,000 experiments (at 5 %, three standard errors are 2.1 points).

use crate::noise::{ALL, Machine, Noise};
use rand::Rng;
use seekwell_lab::stats::*;

/// Experiments per figure.
const EXPERIMENTS: usize = 1_000;

/// Makes blocks for this test. `conducted.rs` tests the conductor of the lab.
struct Blocks(Machine);

impl Blocks {
    fn order(&mut self, k: usize, random: bool) -> Vec<usize> {
        let mut order: Vec<usize> = (0..k).collect();
        if random {
            for i in (1..k).rev() {
                order.swap(i, self.0.rng.random_range(0..=i));
            }
        }
        order
    }
    /// Returns blocks of `k` treatments, by treatment and block. Treatment 1 has the effect.
    fn blocks(&mut self, k: usize, n: usize, effect: f64, random: bool) -> Vec<Vec<Option<f64>>> {
        let mut all = vec![Vec::with_capacity(n); k];
        for _ in 0..n {
            for t in self.order(k, random) {
                let value = self.0.run(if t == 1 { effect } else { 0.0 });
                all[t].push(Some(value));
            }
        }
        all
    }
}

/// Results of many experiments, in percent.
#[derive(Debug, Default)]
struct Rates {
    /// Experiments in which the first comparison has p < 5 %.
    single: f64,
    /// Experiments in which at least one verdict of the cell makes a claim.
    family: f64,
    /// Experiments in which the interval of the first comparison contains the true effect.
    cover: f64,
    /// Experiments in which the first comparison shows "no difference within the margin".
    equal: f64,
    /// Mean number of blocks.
    blocks: f64,
}

fn experiments(noise: Noise, k: usize, effect: f64, random: bool, rule: Stopping) -> Rates {
    let mut r = Rates::default();
    for e in 0..EXPERIMENTS {
        let mut machine = Blocks(Machine::new(noise, (e + 1) as u64));
        let all = machine.blocks(k, rule.n_max, effect, random);
        let rest: Vec<&[Option<f64>]> = all[1..].iter().map(|t| &t[..]).collect();
        let stopped = rule.walk(&rest, &all[0], Better::Higher, None);
        let p: Vec<Option<f64>> = stopped.comparisons.iter().map(|c| c.paired.p).collect();
        let words: Vec<Verdict> = stopped
            .comparisons
            .iter()
            .zip(holm(&p))
            .map(|(c, p_adjusted)| {
                let input = VerdictInput {
                    mean: c.paired.mean.expect("blocks"),
                    se: c.paired.se,
                    df: c.paired.df,
                    p_adjusted,
                    ..VerdictInput::default()
                };
                verdict(&input).verdict
            })
            .collect();
        let first = &stopped.comparisons[0].paired;
        let (low, high) = first.interval95.expect("blocks");
        r.single += f64::from(first.p.is_some_and(|p| p < 0.05));
        r.family += f64::from(words.iter().any(|w| w.claims()));
        r.cover += f64::from(low <= effect && effect <= high);
        r.equal += f64::from(words[0] == Verdict::NoDifference);
        r.blocks += stopped.n as f64;
    }
    let share = 100.0 / EXPERIMENTS as f64;
    Rates {
        single: r.single * share,
        family: r.family * share,
        cover: r.cover * share,
        equal: r.equal * share,
        blocks: r.blocks / EXPERIMENTS as f64,
    }
}

/// Returns bounds in percent: the minimum and maximum of false positives, then those of coverage.
/// With heavy tails the procedure may be more cautious, but never less.
fn bounds(noise: Noise) -> (f64, f64, f64, f64) {
    match noise {
        Noise::Heavy => (1.5, 7.0, 93.0, 98.5),
        _ => (3.0, 7.0, 93.0, 97.0),
    }
}

#[test]
fn procedure_claims_at_most_five_percent_false_differences() {
    for noise in ALL {
        for k in [2, 4] {
            let r = experiments(noise, k, 0.0, true, Stopping::HOST);
            let (least, most, cover_least, cover_most) = bounds(noise);
            println!("A/A {noise:?} k={k}: {r:.1?}");
            assert!((least..=most).contains(&r.single), "{noise:?} {k}: {r:?}");
            assert!(r.family <= 7.0, "{noise:?} {k}: {r:?}");
            assert!(
                (cover_least..=cover_most).contains(&r.cover),
                "{noise:?} {k}: {r:?}"
            );
        }
    }
}

#[test]
fn confidence_intervals_cover_a_true_effect_of_five_percent() {
    for noise in ALL {
        for k in [2, 4] {
            let r = experiments(noise, k, libm::log(1.05), true, Stopping::HOST);
            let (_, _, least, most) = bounds(noise);
            println!("A/B 5 % {noise:?} k={k}: {r:.1?}");
            assert!((least..=most).contains(&r.cover), "{noise:?} {k}: {r:?}");
        }
    }
}

#[test]
fn false_equality_claims_at_the_margin_are_rare() {
    let longer = Stopping {
        n_max: 40,
        ..Stopping::HOST
    };
    for noise in ALL {
        let at_margin = experiments(noise, 2, libm::log1p(MARGIN), true, longer);
        println!("true effect 2 % {noise:?}: {at_margin:.1?}");
        assert!(at_margin.equal <= 6.5, "{noise:?}: {at_margin:?}");
    }
    // If there is no difference, the procedure must say so. A procedure that never says it would
    // pass the checks above.
    let none = experiments(Noise::Drift, 2, 0.0, true, longer);
    assert!(none.equal > 90.0, "{none:?}");
}

/// Makes three runs of one treatment, then three of the other, and claims a difference above 2 %.
/// Returns how often the claim is false.
fn common_practice_false_claims(noise: Noise) -> f64 {
    let wrong = (0..EXPERIMENTS).filter(|e| {
        let mut machine = Machine::new(noise, (e + 1) as u64);
        let mut three = || (0..3).map(|_| machine.run(0.0)).sum::<f64>() / 3.0;
        let (a, b) = (three(), three());
        (a / b - 1.0).abs() > 0.02
    });
    100.0 * wrong.count() as f64 / EXPERIMENTS as f64
}

#[test]
fn common_practice_exceeds_the_false_positive_rate() {
    for noise in ALL {
        let wrong = common_practice_false_claims(noise);
        println!("three runs in sequence, 2 % apart, {noise:?}: {wrong:.1} % false");
        assert!(wrong > 7.0, "{noise:?}: {wrong}");
    }
    // With a fixed order under drift, more blocks make the result worse.
    let blocks = |n: usize| Stopping {
        n_min: n,
        n_max: n,
        ..Stopping::HOST
    };
    let [few, many] = [10, 60].map(|n| experiments(Noise::Drift, 4, 0.0, false, blocks(n)));
    println!("fixed order under drift: {few:.1?}, then {many:.1?}");
    assert!(
        many.family > 13.0 && many.family > few.family,
        "{few:?} {many:?}"
    );
    // Without correction, three comparisons make more claims than one.
    let plain = (0..EXPERIMENTS).filter(|e| {
        let mut machine = Blocks(Machine::new(Noise::Normal, (e + 1) as u64));
        let all = machine.blocks(7, 6, 0.0, true);
        let p = |t: &Vec<Option<f64>>| paired(t, &all[0], Better::Higher, false, None).p;
        all[1..].iter().any(|t| p(t).is_some_and(|p| p < 0.05))
    });
    let plain = 100.0 * plain.count() as f64 / EXPERIMENTS as f64;
    println!("six comparisons, not corrected: {plain:.1} % any false");
    assert!(plain > 12.0, "{plain}");
}

#[test]
fn intervals_keep_their_coverage_if_checked_after_every_block() {
    let (mut ever, mut plain) = (0, 0);
    for e in 0..EXPERIMENTS {
        let mut machine = Blocks(Machine::new(Noise::Normal, (e + 1) as u64));
        let all = machine.blocks(2, 40, 0.0, true);
        let outside = |n: usize, multiplier: f64| {
            let p = paired(&all[1][..n], &all[0][..n], Better::Higher, false, None);
            p.mean.expect("blocks").abs() > multiplier * p.se.unwrap_or(0.0)
        };
        let watched = |n: usize| anytime_multiplier(n, 0.05).is_some_and(|m| outside(n, m));
        ever += usize::from((3..=40).any(watched));
        plain += usize::from((3..=40).any(|n| outside(n, t_quantile(0.975, n as f64 - 1.0))));
    }
    let share = |x: usize| 100.0 * x as f64 / EXPERIMENTS as f64;
    println!(
        "ever outside: {:.1} %; plain t watched: {:.1} %",
        share(ever),
        share(plain)
    );
    assert!(share(ever) <= 5.0, "{}", share(ever));
    assert!(share(plain) > 15.0, "{}", share(plain));
}

/// Makes cells of four treatments and eight blocks. The run after a run of treatment 0 is slower by
/// `loss`.
fn carry_over_flags(loss: f64) -> f64 {
    let found = (0..EXPERIMENTS).filter(|e| {
        let mut machine = Blocks(Machine::new(Noise::Normal, (e + 1) as u64));
        let mut before = None;
        let mut runs = Vec::new();
        for block in 0..8 {
            for treatment in machine.order(4, true) {
                let lost = if before == Some(0) { loss } else { 0.0 };
                // The coefficient of variation is 1 %, a third of that of the noise.
                let log = (libm::log(machine.0.run(0.0)) - libm::log(100.0)) / 3.0 - lost;
                runs.extend(before.map(|before| Followed {
                    block,
                    treatment,
                    before,
                    log,
                }));
                before = Some(treatment);
            }
        }
        carry_over(&runs).is_some_and(|c| c.flagged)
    });
    100.0 * found.count() as f64 / EXPERIMENTS as f64
}

#[test]
fn carry_over_between_runs_is_flagged_with_few_false_alarms() {
    let (none, some) = (carry_over_flags(0.0), carry_over_flags(0.03));
    println!("carry-over flagged: {none:.1} % without, {some:.1} % with 3 %");
    assert!(none <= 3.0, "{none}");
    assert!(some >= 85.0, "{some}");
}
