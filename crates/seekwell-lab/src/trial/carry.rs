//! Tests whether a period depends on the scheduler of the period before it.

use crate::stats::f_tail;

/// A period and its predecessor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Followed {
    /// Block of the period.
    pub block: usize,
    /// Treatment of the period.
    pub treatment: usize,
    /// Treatment of the period before it.
    pub before: usize,
    /// Logarithm of the value of the period.
    pub log: f64,
}

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CarryOver {
    /// The predecessor with the largest effect.
    pub after: usize,
    /// Its effect on the next period, as a logarithm, compared with the other predecessors.
    pub effect: f64,
    /// p value of the F test that no predecessor has an effect.
    pub p: f64,
}

/// Removes the part of `x` that lies in the span of an orthonormal basis.
fn residual(x: &[f64], basis: &[Vec<f64>]) -> Vec<f64> {
    let mut r = x.to_vec();
    for q in basis {
        let along = dot(&r, q);
        r.iter_mut().zip(q).for_each(|(r, q)| *r -= along * q);
    }
    r
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Adds a column to the basis, unless it depends on the others. Returns whether it was added.
fn add(basis: &mut Vec<Vec<f64>>, column: &[f64]) -> bool {
    let r = residual(column, basis);
    let length = libm::sqrt(dot(&r, &r));
    let independent = length > 1e-6;
    if independent {
        basis.push(r.iter().map(|x| x / length).collect());
    }
    independent
}

/// Tests for carry-over by least squares: the logarithm is the sum of an effect of the block, of the
/// treatment, and of the predecessor. `None` if there are too few periods.
pub fn carry_over(runs: &[Followed]) -> Option<CarryOver> {
    let count = |of: fn(&Followed) -> usize| runs.iter().map(|r| of(r) + 1).max().unwrap_or(0);
    let column = |is: &dyn Fn(&Followed) -> bool| -> Vec<f64> {
        runs.iter().map(|r| f64::from(u8::from(is(r)))).collect()
    };
    let mut basis = Vec::new();
    for b in 0..count(|r| r.block) {
        add(&mut basis, &column(&|r| r.block == b));
    }
    for t in 0..count(|r| r.treatment) {
        add(&mut basis, &column(&|r| r.treatment == t));
    }
    let y: Vec<f64> = runs.iter().map(|r| r.log).collect();
    let y = residual(&y, &basis);
    let alone = |before: usize| {
        let z = residual(&column(&|r| r.before == before), &basis);
        let length = dot(&z, &z);
        (length > 1e-9).then(|| (before, dot(&z, &y) / length))
    };
    let effects = (0..count(|r| r.before)).filter_map(alone);
    // With two schedulers, both effects are equal and opposite. The positive one is named.
    let (after, effect) = effects.reduce(|a, b| {
        let (x, y) = (a.1.abs(), b.1.abs());
        match (x - y).abs() <= 1e-9 * x.max(y) {
            true if a.1 > b.1 => a,
            true => b,
            false if x > y => a,
            false => b,
        }
    })?;
    let without = basis.len();
    for t in 0..count(|r| r.before) {
        add(&mut basis, &column(&|r| r.before == t));
    }
    let added = basis.len() - without;
    let left = residual(&y, &basis);
    let (all, rest) = (dot(&y, &y), dot(&left, &left));
    let (df1, df2) = (added as f64, runs.len().checked_sub(basis.len())? as f64);
    if added == 0 || df2 < 3.0 || rest <= 0.0 {
        return None;
    }
    let f = ((all - rest) / df1) / (rest / df2);
    Some(CarryOver {
        after,
        effect,
        p: f_tail(f, df1, df2),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngCore;
    use seekwell_core::rng::stream;

    /// Blocks of `k` periods in random order, with an effect after treatment 1.
    fn runs(k: usize, blocks: usize, carried: f64, noise: f64, seed: u64) -> Vec<Followed> {
        let mut rng = stream(seed, "carry");
        let mut unit = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let (mut all, mut before) = (Vec::new(), None);
        for block in 0..blocks {
            let mut order: Vec<(f64, usize)> = (0..k).map(|t| (unit(), t)).collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (_, treatment) in order {
                let carried = if before == Some(1) { carried } else { 0.0 };
                let log = 0.2 * treatment as f64 + 0.05 * block as f64 + carried;
                let log = log + noise * (unit() - 0.5);
                if let Some(before) = before {
                    all.push(Followed {
                        block,
                        treatment,
                        before,
                        log,
                    });
                }
                before = Some(treatment);
            }
        }
        all
    }

    #[test]
    fn planted_effect_is_estimated_apart_from_treatments_and_blocks() {
        for k in [2, 4] {
            let c = carry_over(&runs(k, 20, 0.1, 1e-3, 1)).expect("enough periods");
            assert_eq!(c.after, 1);
            assert!((c.effect - 0.1).abs() < 0.005 && c.p < 1e-6, "{c:?}");
        }
    }

    #[test]
    fn false_alarms_are_as_frequent_as_the_level_says() {
        let all = (0..400).filter_map(|seed| carry_over(&runs(3, 12, 0.0, 0.2, seed)));
        let alarms = all.filter(|c| c.p < 0.05).count();
        assert!((8..34).contains(&alarms), "{alarms} of 400");
    }

    #[test]
    fn too_few_periods_give_no_test() {
        assert_eq!(carry_over(&[]), None);
        assert_eq!(carry_over(&runs(2, 2, 0.1, 0.1, 1)), None);
    }
}
