//! What predictions are worth, beside models that know nothing: one that is blind to schedulers and
//! has the right level, a ranking of the schedulers that is the same for all tests of a system, and
//! ours with the schedulers' labels permuted.

use super::figures::{Kind, Pair};
use super::ours::Cell;
use crate::stats::median;
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

/// Figures within this are near.
pub const NEAR: f64 = 0.35;
/// Draws of permuted labels.
const DRAWS: usize = 2_000;
/// What prediction is judged by.
pub(super) const UNFITTED: &str = "disk tests, nothing fitted";
/// The same where the processor decides.
pub(super) const UNFITTED_CPU: &str = "processor tests, nothing fitted";

fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// How near figures are to the published ones.
#[derive(Clone, Debug, Serialize)]
pub struct Level {
    /// Of which figures.
    pub what: &'static str,
    /// How many.
    pub figures: usize,
    /// Median of |ln (ours / published)|.
    pub median: Option<f64>,
    /// Share within 35 %.
    pub near: f64,
    /// The same of the blind model: the mean of the schedulers' published figures, so that its level
    /// is right by construction.
    pub blind_median: Option<f64>,
    /// Share of it.
    pub blind_near: f64,
}

/// Disk tests that nothing was fitted to, disk tests that something was fitted to, processor tests.
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

/// Skill: 1 - sum |ln ours - ln published| / sum |ln published| over pairs; 1 is exact, 0 what a model
/// has that knows no scheduler, and it has no lower end.
#[derive(Clone, Debug, Serialize)]
pub struct Skill {
    /// Group of effects; empty: all.
    pub group: String,
    /// Pairs that hold after Holm within their test and differ by 5 % and more.
    pub pairs: usize,
    /// Of them, those that ours has a figure for.
    pub compared: usize,
    /// Share of the sum of all groups: how much hangs on it.
    pub weight: f64,
    /// Ours has the same sign.
    pub signs: usize,
    /// Skill of ours.
    pub ours: Option<f64>,
    /// Of a fixed ranking: the mean of the same two schedulers over all other disk tests of the
    /// system.
    pub fixed: Option<f64>,
    /// Of ours with labels permuted within each test: the mean over all permutations.
    pub permuted: Option<f64>,
    /// Share of permutations, drawn for all tests at once, that are at least as good as ours.
    pub as_good: Option<f64>,
}

/// A pair that is scored.
struct Scored<'a> {
    cell: usize,
    pair: &'a Pair,
    group: &'a str,
    published: f64,
    ours: Option<f64>,
    fixed: f64,
}

/// The mean log ratio of the same schedulers over all other disk tests of the system, in the
/// direction that is better, turned to that of this test.
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

/// The mean error of a pair over all ways to give our figures to its two schedulers.
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

/// Errors over these pairs of drawn permutations.
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

/// Share of drawn permutations whose errors over these pairs are at most ours.
fn as_good(cells: &[Cell], pairs: &[&Scored<'_>], ours: f64) -> Option<f64> {
    let draws = drawn(cells, pairs);
    let good = draws.iter().filter(|e| **e <= ours + 1e-9).count();
    (!pairs.is_empty()).then(|| good as f64 / draws.len() as f64)
}

/// Skills of ours with the schedulers' labels permuted within each test, one a draw; empty: nothing
/// is scored in that group (empty: all).
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

/// By group, and over all; nothing where no difference was shown to hold.
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

/// Pairs that did not differ.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Agreement {
    /// Published pairs with p of 0.05 and more, uncorrected.
    pub pairs: usize,
    /// Of them, with figures of ours.
    pub compared: usize,
    /// Ours are within 5 %, too. A model that knows no scheduler has all of them.
    pub right: usize,
}

/// Of all pairs with errors.
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
