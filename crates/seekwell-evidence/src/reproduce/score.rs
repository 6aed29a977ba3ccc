//! Scores of the predictions, compared with three null models. The first model predicts the
//! published mean for all schedulers. The second predicts a fixed ranking of the schedulers for all
//! tests of a system. The third has our results with permuted scheduler labels.

use super::figures::{Kind, Pair};
use super::ours::Cell;
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use seekwell_stats::median;
use serde::Serialize;

/// Largest relative deviation that counts as near.
pub const NEAR: f64 = 0.35;
/// Number of random permutations.
const DRAWS: usize = 2_000;
/// The set of tests by which the predictions are judged.
pub(super) const UNFITTED: &str = "disk tests, nothing fitted";
/// The tests without fitted constants whose bottleneck is the processor.
pub(super) const UNFITTED_CPU: &str = "processor tests, nothing fitted";

fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// How close our results are to the published ones, for one set of tests.
#[derive(Clone, Debug, Serialize)]
pub struct Level {
    /// Name of the set of tests.
    pub what: &'static str,
    /// Number of compared results.
    pub figures: usize,
    /// Median of |ln (ours / published)|.
    pub median: Option<f64>,
    /// Fraction (0 to 1) of results within 35 %.
    pub near: f64,
    /// Median of |ln (blind / published)|. The blind model predicts the mean over the schedulers of
    /// the published test, so it has the right level by construction.
    pub blind_median: Option<f64>,
    /// Fraction (0 to 1) of the blind model's results within 35 %.
    pub blind_near: f64,
}

/// Returns one entry per set of tests: by bottleneck, and by whether constants were fitted.
pub fn level(cells: &[Cell]) -> Vec<Level> {
    let of = |what: &'static str, kind: Kind, fitted: bool| {
        let (mut ours, mut blind) = (Vec::new(), Vec::new());
        let wanted = |c: &&Cell| c.published.kind == kind && c.published.fitted == fitted;
        for c in cells.iter().filter(wanted) {
            let sides = &c.published.sides;
            let mean = sides.iter().map(|s| ln(s.value)).sum::<f64>() / sides.len() as f64;
            for (i, s) in sides.iter().enumerate() {
                if let Some(ratio) = c.ratio(i).filter(|r| *r > 0.0) {
                    ours.push(ln(ratio).abs());
                    blind.push((mean - ln(s.value)).abs());
                }
            }
        }
        let near = |all: &[f64]| {
            let n = all.iter().filter(|x| **x <= ln(1.0 + NEAR)).count();
            n as f64 / all.len().max(1) as f64
        };
        Level {
            what,
            figures: ours.len(),
            near: near(&ours),
            blind_near: near(&blind),
            median: median(&ours),
            blind_median: median(&blind),
        }
    };
    let mut all = vec![
        of(UNFITTED, Kind::Io, false),
        of("disk tests, something fitted", Kind::Io, true),
        of(UNFITTED_CPU, Kind::Cpu, false),
        of("processor tests, something fitted", Kind::Cpu, true),
    ];
    all.retain(|l| l.figures > 0);
    all
}

/// Skill: 1 - sum |ln ours - ln published| / sum |ln published| over the ratios of the pairs. A
/// skill of 1 is a perfect prediction. A model without schedulers has a skill of 0. There is no
/// lower limit.
#[derive(Clone, Debug, Serialize)]
pub struct Skill {
    /// Letter of the group of effects; empty for all groups.
    pub group: String,
    /// Number of scored pairs: significant after Holm's correction within the test, and at least 5
    /// %.
    pub pairs: usize,
    /// Number of scored pairs for which we have results.
    pub compared: usize,
    /// Weight: the fraction of the sum of |ln published| over all groups that this group
    /// contributes.
    pub weight: f64,
    /// Number of pairs for which our prediction has the right sign.
    pub signs: usize,
    /// Our skill.
    pub ours: Option<f64>,
    /// Skill of a fixed ranking. It predicts the mean ratio of the two schedulers over all other
    /// disk tests of the system.
    pub fixed: Option<f64>,
    /// Mean skill of our results over all permutations of the scheduler labels within each test.
    pub permuted: Option<f64>,
    /// Fraction of random permutations, drawn for all tests together, with at least our skill.
    pub as_good: Option<f64>,
}

/// A scored pair.
struct Scored<'a> {
    cell: usize,
    pair: &'a Pair,
    group: &'a str,
    published: f64,
    ours: Option<f64>,
    fixed: f64,
}

/// Returns the mean log ratio of the two schedulers over all other disk tests of the system. It is
/// positive if the first scheduler is better; the sign is converted to the direction of this test.
fn fixed(cells: &[Cell], at: usize, pair: &Pair) -> f64 {
    let own = &cells[at].published;
    let names = |c: &Cell, p: &Pair| {
        let name = |i: usize| c.published.sides[i].scheduler.clone();
        (name(p.one), name(p.other))
    };
    let wanted = names(&cells[at], pair);
    let mut all = Vec::new();
    for (i, c) in cells.iter().enumerate() {
        let p = &c.published;
        if i == at || p.system != own.system || p.kind != Kind::Io {
            continue;
        }
        let same = p.pairs.iter().filter(|p| names(c, p) == wanted);
        all.extend(same.map(|q| p.sign() * ln(q.ratio)));
    }
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    own.sign() * mean
}

fn scored(cells: &[Cell]) -> Vec<Scored<'_>> {
    let mut all = Vec::new();
    for (at, c) in cells.iter().enumerate() {
        for pair in c.published.pairs.iter().filter(|p| p.scored()) {
            all.push(Scored {
                cell: at,
                pair,
                group: &c.published.group,
                published: ln(pair.ratio),
                ours: c.pair(pair).map(ln),
                fixed: fixed(cells, at, pair),
            });
        }
    }
    all
}

fn share_of(errors: f64, sizes: f64) -> Option<f64> {
    (sizes > 0.0).then(|| 1.0 - errors / sizes)
}

/// Returns the mean error of a pair over all assignments of our results to the schedulers.
fn permuted(c: &Cell, s: &Scored<'_>) -> Option<f64> {
    let logs: Option<Vec<f64>> = c.ours.iter().map(|o| o.map(|o| ln(o.mean))).collect();
    let logs = logs?;
    let mut all = Vec::new();
    for (i, a) in logs.iter().enumerate() {
        for (j, b) in logs.iter().enumerate() {
            if i != j {
                all.push((a - b - s.published).abs());
            }
        }
    }
    Some(all.iter().sum::<f64>() / all.len().max(1) as f64)
}

/// Returns the summed error over these pairs, one value per random permutation.
fn drawn(cells: &[Cell], pairs: &[&Scored<'_>]) -> Vec<f64> {
    let mut rng = Pcg64Mcg::new(0x9e37_79b9_7f4a_7c15);
    let mut all = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let (mut errors, mut last) = (0.0, None);
        let mut order: Vec<usize> = Vec::new();
        for s in pairs {
            if last != Some(s.cell) {
                last = Some(s.cell);
                order = (0..cells[s.cell].ours.len()).collect();
                for i in (1..order.len()).rev() {
                    order.swap(i, rng.random_range(0..=i));
                }
            }
            let turned = Pair {
                one: order[s.pair.one],
                other: order[s.pair.other],
                ..*s.pair
            };
            let ours = cells[s.cell].pair(&turned).map_or(0.0, ln);
            errors += (ours - s.published).abs();
        }
        all.push(errors);
    }
    all
}

/// Returns the fraction of random permutations whose error over these pairs is at most ours.
fn as_good(cells: &[Cell], pairs: &[&Scored<'_>], ours: f64) -> Option<f64> {
    let draws = drawn(cells, pairs);
    let good = draws.iter().filter(|e| **e <= ours + 1e-9).count();
    (!pairs.is_empty()).then(|| good as f64 / draws.len() as f64)
}

/// Returns the skill of our results with permuted labels, one value per permutation. `group` is
/// empty for all groups. The result is empty if no pair of the group is scored.
pub(super) fn permutations(cells: &[Cell], group: &str) -> Vec<f64> {
    let all = scored(cells);
    let own = |s: &&Scored<'_>| (group.is_empty() || s.group == group) && s.ours.is_some();
    let own: Vec<&Scored<'_>> = all.iter().filter(own).collect();
    let sizes: f64 = own.iter().map(|s| s.published.abs()).sum();
    drawn(cells, &own)
        .into_iter()
        .filter_map(|e| share_of(e, sizes))
        .collect()
}

/// Returns the skill by group and over all groups; empty if no difference is significant.
pub fn skill(cells: &[Cell]) -> Vec<Skill> {
    let all = scored(cells);
    let total: f64 = all.iter().map(|s| s.published.abs()).sum();
    let mut groups: Vec<&str> = all.iter().map(|s| s.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let of = |group: Option<&str>| {
        let own: Vec<&Scored<'_>> = all
            .iter()
            .filter(|s| group.is_none_or(|g| g == s.group))
            .collect();
        let compared: Vec<&Scored<'_>> = own.iter().copied().filter(|s| s.ours.is_some()).collect();
        let size = |list: &[&Scored<'_>]| list.iter().map(|s| s.published.abs()).sum::<f64>();
        let sum = |f: &dyn Fn(&Scored<'_>) -> f64| compared.iter().map(|s| f(s)).sum::<f64>();
        let sizes = size(&compared);
        let errors = sum(&|s| (s.ours.unwrap_or(0.0) - s.published).abs());
        let turned: Option<Vec<f64>> = compared
            .iter()
            .map(|s| permuted(&cells[s.cell], s))
            .collect();
        let signs = compared
            .iter()
            .filter(|s| s.ours.is_some_and(|o| o * s.published > 0.0))
            .count();
        Skill {
            group: group.unwrap_or_default().to_owned(),
            pairs: own.len(),
            compared: compared.len(),
            weight: size(&own) / total.max(f64::MIN_POSITIVE),
            signs,
            ours: share_of(errors, sizes),
            fixed: share_of(sum(&|s| (s.fixed - s.published).abs()), sizes),
            permuted: turned.and_then(|t| share_of(t.iter().sum(), sizes)),
            as_good: as_good(cells, &compared, errors),
        }
    };
    if all.is_empty() {
        return Vec::new();
    }
    groups
        .iter()
        .map(|g| of(Some(g)))
        .chain([of(None)])
        .collect()
}

/// Agreement for the pairs without a significant published difference.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Agreement {
    /// Number of published pairs with p >= 0.05 before correction.
    pub pairs: usize,
    /// Number of these pairs for which we have results.
    pub compared: usize,
    /// Number of pairs that differ by at most 5 % in our results. A model without schedulers gets
    /// all.
    pub right: usize,
}

/// Counts the agreement over all pairs with published errors.
pub fn agreement(cells: &[Cell]) -> Agreement {
    let mut all = Agreement::default();
    for c in cells {
        for p in &c.published.pairs {
            if p.p.is_none_or(|p| p < 0.05) {
                continue;
            }
            all.pairs += 1;
            if let Some(ratio) = c.pair(p) {
                all.compared += 1;
                all.right += usize::from(ln(ratio).abs() < ln(1.0 + Pair::SCORED));
            }
        }
    }
    all
}
