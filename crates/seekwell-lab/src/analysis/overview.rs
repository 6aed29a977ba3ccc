//! Conclusions over several cells: a score for each treatment on a device, the undefeated
//! treatments, and the decision which scheduler to set. Also describes a cell in one sentence.

use super::weights::{self, Switch, Weights};
use super::words::{half_width, percent, size, span};
use super::{Analysis, CellAnalysis, Check, Comparison, Side};
use crate::data::Results;
use crate::stats::{self, Against, Combined, Decision, Part, combine, stored};
use seekwell_core::prose::all_in_prose;
use serde::{Deserialize, Serialize};

/// The cells of one device and machine that have the same treatments and the same reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Device name.
    pub device: String,
    /// Machine name; empty for the default machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// Indices of the rows of the group in the analysis.
    pub cells: Vec<usize>,
    /// Number of tests. A test is one cell; the rows of the cell divide its weight among them.
    #[serde(default)]
    pub tests: usize,
    /// Index of the reference treatment.
    pub reference: usize,
    /// Score of each treatment against the reference over all cells, the simplest scheduler first.
    pub scores: Vec<Score>,
    /// Undefeated treatments: no other treatment is shown to beat them.
    pub not_beaten: Vec<usize>,
    /// The decision about the reference: "change", "keep" or "cannot_tell".
    pub decision: String,
    /// Index of the treatment to set.
    pub pick: Option<usize>,
    /// Index of the treatment with the highest score.
    pub best: Option<usize>,
    /// True if the data shows that all treatments are equivalent. The interval of every score must
    /// lie within the margin, and in every cell each pair of treatments must agree within the
    /// margin.
    #[serde(default)]
    pub level: bool,
    /// Rows that are left out of the scores, by index, with the reason.
    pub left_out: Vec<(usize, String)>,
    /// Weight of each row in `cells`; empty if all weights are equal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<f64>,
    /// The weights of the cells at which the decision would change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<Switch>,
}

impl Group {
    /// Returns all pairs of the cells of the group, each with the number of blocks of its cell.
    fn pairs<'a>(&self, analysis: &'a Analysis) -> impl Iterator<Item = (&'a Comparison, usize)> {
        let cells = self.cells.iter().filter_map(|i| analysis.cells.get(*i));
        cells.flat_map(|c| c.pairs.iter().map(move |p| (p, c.blocks)))
    }

    /// Returns half the relative width of the widest interval of all pairs.
    pub fn widest(&self, analysis: &Analysis) -> Option<f64> {
        let all = self.pairs(analysis).filter_map(|(p, _)| half_width(p));
        all.reduce(f64::max)
    }

    /// Returns an upper bound on how many times better than the reference any other treatment can
    /// be. It is the highest upper end of the 95 % intervals of the scores. Returns `None` if a
    /// score has no interval.
    pub fn at_most(&self) -> Option<f64> {
        let others = self.scores.iter().filter(|s| s.treatment != self.reference);
        let ends = others.map(|s| s.times95.map(|(_, high)| high));
        let ends = ends.collect::<Option<Vec<f64>>>()?;
        ends.into_iter().reduce(f64::max)
    }

    /// Returns the number of blocks after which every interval would be as narrow as requested.
    /// Returns `None` if all intervals are narrow enough, or if the number would be 10,000 or more.
    pub fn blocks_needed(&self, analysis: &Analysis) -> Option<u32> {
        let all = self.pairs(analysis);
        let more = all.filter_map(|(p, n)| p.blocks_needed.filter(|b| *b as usize > n));
        more.max().filter(|n| *n < super::comparison::BLOCKS_MOST)
    }
}

/// The score of a treatment over several workloads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Treatment index.
    pub treatment: usize,
    /// How many times better the treatment is than the reference: the weighted geometric mean over
    /// the cells.
    pub times: f64,
    /// 95 % confidence interval of `times`.
    pub times95: Option<(f64, f64)>,
    /// The interval that decides whether to change the scheduler. Its error probability is the part
    /// of [`stats::CHANGE_ALPHA`] that the correction for several treatments leaves to this
    /// treatment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deciding: Option<(f64, f64)>,
    /// Two-sided p value of `times`.
    pub p: Option<f64>,
    /// True if runs of the treatment or of the reference reached their limit. If only one of the
    /// two did, the real difference is at least as large as `times`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Number of rows in which the treatment is shown to be ahead of the reference.
    pub won: usize,
    /// Number of rows in which the treatment is shown to be behind the reference.
    pub lost: usize,
    /// Largest loss of the treatment in one row, as a factor relative to the best treatment of that
    /// row.
    pub regret: f64,
    /// Index of the row of `regret` in the analysis.
    pub regret_on: Option<usize>,
    /// The row with the largest loss that the data does not exclude. `None` if the treatment is
    /// shown to be level or ahead in every row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided: Option<Undecided>,
}

/// A loss of a treatment that the data does not exclude.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Undecided {
    /// Index of the row in the analysis.
    pub on: usize,
    /// Index of the treatment that could be ahead.
    pub of: usize,
    /// Upper bound of the loss as a factor; `None` if there is no interval.
    pub at_most: Option<f64>,
}

/// Kernel names of schedulers, from simple to complex. Among equal schedulers the simpler is
/// preferred.
const SIMPLE: [&str; 6] = ["none", "noop", "deadline", "mq-deadline", "kyber", "bfq"];

fn simplicity(results: &Results, treatment: usize) -> (usize, usize) {
    let name = results
        .treatments
        .get(treatment)
        .map_or("", |t| &t.scheduler);
    let rank = SIMPLE.iter().position(|s| *s == name);
    // Schedulers that are not in the list rank between kyber and bfq.
    let rank = rank.map_or(9, |r| if r == SIMPLE.len() - 1 { 10 } else { r });
    (rank, treatment)
}

fn part(c: &Comparison, sign: f64) -> Option<Part> {
    Some(Part {
        mean: sign * c.mean?,
        se: c.se.filter(|_| !c.unbelieved()),
        df: c.df,
    })
}

/// Builds the groups of the cells.
pub(super) fn groups(cells: &[CellAnalysis], results: &Results, weights: &Weights) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut sides: Vec<Vec<usize>> = Vec::new();
    for (i, cell) in cells.iter().enumerate() {
        let own: Vec<usize> = cell.sides.iter().map(|s| s.treatment).collect();
        let same = |g: &(&mut Group, &Vec<usize>)| {
            g.0.device == cell.device
                && g.0.machine == cell.machine
                && g.0.reference == cell.reference
                && *g.1 == own
        };
        match groups.iter_mut().zip(&sides).find(same) {
            Some((group, _)) => group.cells.push(i),
            None => {
                groups.push(Group {
                    device: cell.device.clone(),
                    machine: cell.machine.clone(),
                    cells: vec![i],
                    tests: 0,
                    reference: cell.reference,
                    scores: Vec::new(),
                    not_beaten: Vec::new(),
                    decision: String::new(),
                    pick: None,
                    best: None,
                    level: false,
                    left_out: Vec::new(),
                    weights: Vec::new(),
                    switches: Vec::new(),
                });
                sides.push(own);
            }
        }
    }
    for (group, sides) in groups.iter_mut().zip(&sides) {
        // The rows of a cell divide the weight of the cell among them.
        if !weights.is_empty() || group.cells.iter().any(|i| cells[*i].rows > 1) {
            let own = |i: &usize| weights.weight(&cells[*i]) / cells[*i].rows.max(1) as f64;
            group.weights = group.cells.iter().map(own).collect();
        }
        scored(group, sides, cells, results);
    }
    groups
}

/// One cell with all its rows. A cell counts once, however many rows it has.
struct Test {
    /// Indices of the rows in the analysis.
    rows: Vec<usize>,
    weight: f64,
}

/// Collects the rows of each cell into one test.
fn tests(group: &Group, cells: &[CellAnalysis]) -> Vec<Test> {
    let mut all: Vec<Test> = Vec::new();
    for (at, i) in group.cells.iter().enumerate() {
        let weight = group.weights.get(at).copied().unwrap_or(1.0);
        let same = |t: &&mut Test| cells[t.rows[0]].cell == cells[*i].cell;
        match all.iter_mut().find(same) {
            Some(test) => {
                test.rows.push(*i);
                test.weight += weight;
            }
            None => all.push(Test {
                rows: vec![*i],
                weight,
            }),
        }
    }
    all
}

/// Returns by how much `one` is ahead of `other` in a test, with its standard error. The rows of a
/// cell come from the same runs, so they are averaged within each block before the spread is
/// computed.
fn between(test: &Test, cells: &[CellAnalysis], one: usize, other: usize) -> Option<Part> {
    let pair = |i: usize| {
        let (pair, turned) = cells[i].pair(one, other)?;
        let turn = if turned { -1.0 } else { 1.0 };
        Some((pair, turn * cells[i].better().sign()))
    };
    let (first, sign) = pair(*test.rows.first()?)?;
    // If a run reached its limit, all rows compare the same times, so the first row is enough.
    if test.rows.len() == 1 || first.at_limit.is_some() {
        return part(first, sign);
    }
    let mut logs: Vec<Vec<Option<f64>>> = Vec::new();
    // The largest factor by which the stopping rule enlarged the error of a row.
    let mut factor: f64 = 1.0;
    let mut believed = true;
    for i in &test.rows {
        let (c, _) = pair(*i)?;
        believed &= !c.unbelieved() && c.se.is_some();
        if let (Some(sd), Some(se)) = (c.sd.filter(|sd| *sd > 0.0), c.se) {
            factor = factor.max(se * libm::sqrt(c.n as f64) / sd);
        }
        let values = |t: usize| {
            cells[*i]
                .sides
                .iter()
                .find(|s| s.treatment == t)
                .map(|s| &s.values)
        };
        let both = values(one)?.iter().zip(values(other)?);
        let sign = cells[*i].better().sign();
        let log = |(a, b): (&Option<f64>, &Option<f64>)| {
            Some(sign * (libm::log((*a)?) - libm::log((*b)?)))
        };
        logs.push(both.map(log).collect());
    }
    let blocks = logs.iter().map(Vec::len).min()?;
    let rows = logs.len() as f64;
    let of_block = |b: usize| logs.iter().map(|row| row[b]).sum::<Option<f64>>();
    let means: Vec<f64> = (0..blocks)
        .filter_map(|b| Some(of_block(b)? / rows))
        .collect();
    let (n, sd) = (means.len(), stats::deviation(&means));
    let se = (n > 1).then(|| factor * sd / libm::sqrt(n as f64));
    (n > 0).then(|| Part {
        mean: stats::mean(&means),
        se: se.filter(|se| believed || *se > 0.0),
        df: (n > 1).then(|| (n - 1) as f64),
    })
}

fn scored(group: &mut Group, sides: &[usize], cells: &[CellAnalysis], results: &Results) {
    let usable = |test: &Test| {
        test.rows.iter().all(|i| {
            let ratios = cells[*i].pairs.iter().all(|p| p.ratio.is_some() && p.n > 0);
            ratios && cells[*i].pairs.len() == sides.len() * (sides.len() - 1) / 2
        })
    };
    let counting = tests(group, cells).into_iter().filter(|t| t.weight > 0.0);
    let (used, out): (Vec<Test>, Vec<Test>) = counting.partition(usable);
    let weights: Vec<f64> = used.iter().map(|t| t.weight).collect();
    let why = "a value is missing, 0 or negative: there is no ratio";
    let out = out.iter().flat_map(|t| &t.rows);
    group.left_out = out.map(|i| (*i, why.to_owned())).collect();
    group.tests = used.len();
    if used.is_empty() || sides.len() < 2 {
        return;
    }
    let mut order = sides.to_vec();
    order.sort_by_key(|t| simplicity(results, *t));
    // The score of one treatment against another; positive if `one` is better.
    let score_of = |one: usize, other: usize| -> Option<Combined> {
        let parts = used.iter().map(|t| between(t, cells, one, other));
        combine(&parts.collect::<Option<Vec<_>>>()?, &weights)
    };
    let own = |t: usize| {
        (t != group.reference)
            .then(|| score_of(t, group.reference))
            .flatten()
    };
    let combined: Vec<Option<Combined>> = order.iter().map(|t| own(*t)).collect();
    let mean = |c: &Option<Combined>| c.map_or(0.0, |c| c.mean);
    let scores: Vec<f64> = combined.iter().map(mean).collect();
    let upper: Vec<Option<f64>> = combined.iter().map(|c| c.and_then(|c| c.upper95)).collect();
    let pairs = (0..order.len()).flat_map(|a| (a + 1..order.len()).map(move |b| (a, b)));
    let pairs = pairs.filter_map(|(one, other)| {
        let c = score_of(order[one], order[other])?;
        Some(Against {
            one,
            other,
            mean: c.mean,
            p: c.p,
        })
    });
    let pairs: Vec<Against> = pairs.collect();
    let incumbent = order
        .iter()
        .position(|t| *t == group.reference)
        .unwrap_or(0);
    let margin = results.about.method.margin;
    let rows: Vec<usize> = used.iter().flat_map(|t| t.rows.iter().copied()).collect();
    // A test that failed, here or on another device, does not invalidate the tests that ran.
    let mut used_cells = rows.iter().map(|i| &cells[*i]);
    let compared = used_cells.all(|c| c.blocks > 1 || c.pairs.iter().all(|p| p.se.is_some()));
    let mut divisors = vec![1.0; order.len()];
    if let Some(r) =
        stats::recommend(&scores, &upper, incumbent, &pairs, margin).filter(|_| compared)
    {
        group.not_beaten = r.retained.iter().map(|i| order[*i]).collect();
        group.decision = r.decision.word().to_owned();
        (group.pick, group.best) = (Some(order[r.pick]), Some(order[r.best]));
        // The treatments are equivalent only if they agree in every row, not only on average.
        let mu = libm::log1p(margin);
        // The lower bound is as far from the mean as the upper bound.
        let within = |c: &Option<Combined>| {
            let bound = c.and_then(|c| c.upper95.map(|u| (u, 2.0 * c.mean - u)));
            bound.is_some_and(|(high, low)| high < mu && low > -mu)
        };
        let mut others = order
            .iter()
            .zip(&combined)
            .filter(|(t, _)| **t != group.reference);
        let close = others.all(|(_, c)| within(c));
        let mut pairs = rows.iter().flat_map(|i| &cells[*i].pairs);
        let agree = pairs.all(|p| p.agrees(margin));
        let checked = rows.iter().flat_map(|i| &cells[*i].checks);
        let checked = checked.map(Check::spread).fold(1.0, f64::max) <= 1.0 + margin;
        group.level = r.decision == Decision::Keep && close && agree && checked;
        group.switches = switches(&used, &order, cells, group.reference, r.pick, margin);
        divisors = r.divisors;
    }
    group.scores = order
        .iter()
        .zip(combined.iter().zip(&divisors))
        .map(|(t, (c, divisor))| score(*t, c.as_ref(), *divisor, &rows, cells))
        .collect();
}

/// Finds, for each test, the weight at which another treatment would be picked.
fn switches(
    used: &[Test],
    order: &[usize],
    cells: &[CellAnalysis],
    reference: usize,
    pick: usize,
    margin: f64,
) -> Vec<Switch> {
    // Log ratios to the reference, by test and treatment; positive if the treatment is better.
    let log = |i: usize, t: usize| match t == reference {
        true => 0.0,
        false => cells[i].times(t, reference).map_or(0.0, |x| libm::log(x.0)),
    };
    let of_test = |test: &Test, t: usize| {
        let all = test.rows.iter().map(|i| log(*i, t));
        all.sum::<f64>() / test.rows.len() as f64
    };
    let logs = used
        .iter()
        .map(|test| order.iter().map(|t| of_test(test, *t)).collect());
    let logs: Vec<Vec<f64>> = logs.collect();
    let firsts: Vec<usize> = used.iter().map(|t| t.rows[0]).collect();
    let weights: Vec<f64> = used.iter().map(|t| t.weight).collect();
    weights::switches(&firsts, order, &logs, &weights, pick, margin)
}

fn score(
    treatment: usize,
    c: Option<&Combined>,
    divisor: f64,
    rows: &[usize],
    cells: &[CellAnalysis],
) -> Score {
    let count = |ahead: bool| {
        let shown = |i: &&usize| {
            let cell = &cells[**i];
            match ahead {
                true => cell.beats(treatment, cell.reference),
                false => cell.beats(cell.reference, treatment),
            }
        };
        rows.iter().filter(shown).count()
    };
    let regret = rows.iter().filter_map(|i| {
        let best = cells[*i].best.filter(|b| *b != treatment)?;
        Some((cells[*i].times(best, treatment)?.0, *i))
    });
    let worst = regret.reduce(|a, b| if b.0 > a.0 { b } else { a });
    let times = |x: f64| stored(libm::exp(x));
    let both = |(l, h): (f64, f64)| (times(l), times(h));
    let deciding = |c: &Combined| {
        let (se, df) = (c.se?, c.df.unwrap_or(f64::INFINITY));
        let half = match se > 0.0 {
            true => stats::t_quantile(1.0 - stats::CHANGE_ALPHA / 2.0 / divisor, df) * se,
            false => 0.0,
        };
        Some((c.mean - half, c.mean + half))
    };
    Score {
        treatment,
        times: c.map_or(1.0, |c| times(c.mean)),
        times95: c.and_then(|c| c.interval95).map(both),
        deciding: c.and_then(deciding).map(both),
        p: c.and_then(|c| c.p).map(stored),
        at_least: rows.iter().any(|i| {
            let pair = cells[*i].pair(treatment, cells[*i].reference);
            pair.is_some_and(|(p, _)| p.at_limit.is_some())
        }),
        won: count(true),
        lost: count(false),
        regret: worst.map_or(1.0, |w| stored(w.0.max(1.0))),
        regret_on: worst.map(|w| w.1),
        undecided: undecided(treatment, rows, cells),
    }
}

/// Returns the largest loss of a treatment that the data does not exclude, over all rows and all
/// other treatments.
fn undecided(treatment: usize, rows: &[usize], cells: &[CellAnalysis]) -> Option<Undecided> {
    let open = rows.iter().flat_map(|i| {
        let others = cells[*i].sides.iter().map(|s| s.treatment);
        others.filter(|t| *t != treatment).map(move |t| (*i, t))
    });
    let open = open.filter_map(|(i, of)| {
        let (pair, turned) = cells[i].pair(of, treatment)?;
        if pair.near() || cells[i].beats(treatment, of) {
            return None;
        }
        let ends = pair.better95(cells[i].better());
        let at_most = ends.map(|(l, h)| if turned { 1.0 / l } else { h });
        Some(Undecided {
            on: i,
            of,
            at_most: at_most.map(stored),
        })
    });
    let far = |u: &Undecided| u.at_most.unwrap_or(f64::INFINITY);
    open.reduce(|a, b| if far(&b) > far(&a) { b } else { a })
}

/// Formats a list as "a", "a and b" or "a, b and c".
fn list(names: &[&str]) -> String {
    match names {
        [one] => (*one).to_owned(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
        [] => String::new(),
    }
}

/// Formats by how much `other` is behind `best`, for example "8 % behind (6 to 10 %)".
fn behind(cell: &CellAnalysis, best: usize, other: usize) -> String {
    let least = cell.pair(best, other).is_some_and(|(p, _)| p.at_least());
    match cell.times(best, other) {
        Some((times, _)) if least => format!("at least {} behind", size(times)),
        Some((times, ends)) => format!("{} behind{}", size(times), span(ends, times)),
        None => "behind".to_owned(),
    }
}

/// Returns a sentence without a full stop: the best treatment, the second best, and the difference
/// between the two.
pub(super) fn sentence(cell: &CellAnalysis, names: &[String]) -> String {
    let names = &all_in_prose(names);
    let name = |t: usize| names.get(t).map_or("?", String::as_str);
    let there = |s: &&Side| s.n > 0 || s.censored.is_some();
    let with = cell.sides.iter().filter(there).count();
    let cut = cell.sides.iter().filter_map(|s| s.censored);
    let all_cut = with > 0 && cut.clone().count() == with;
    if let Some(longest) = cut.map(|c| c.than_s).reduce(f64::max).filter(|_| all_cut) {
        return format!(
            "not decided: no scheduler finished every run within its limit ({} s)",
            (longest * 10.0).round() / 10.0
        );
    }
    let (Some(best), true) = (cell.best, with > 1) else {
        return match with {
            0 => "no run gave a value".to_owned(),
            _ => "nothing to compare".to_owned(),
        };
    };
    if cell.pairs.iter().all(|p| p.mean.is_none()) {
        return "no block contains two schedulers: not compared".to_owned();
    }
    if cell.pairs.iter().all(|p| p.n < 2 && p.se.is_none()) {
        return "one run each: not compared".to_owned();
    }
    let exact = if cell.exact {
        " (exact: uses no randomness)"
    } else {
        ""
    };
    if cell.pairs.iter().all(|p| p.equal == p.n && p.n > 0) {
        return match cell.exact {
            true => format!("identical{exact}"),
            false => format!("identical in {0} of {0} so far", cell.blocks),
        };
    }
    let widest = |pairs: &[&Comparison]| {
        let half = pairs.iter().filter_map(|p| super::half_width(p));
        half.reduce(f64::max)
    };
    if cell.pairs.iter().all(Comparison::near) {
        let ends = cell.pairs.iter().filter_map(|p| p.interval95);
        let most = ends.map(|(l, h)| l.abs().max(h.abs()));
        let most = most.reduce(f64::max).map_or(0.0, libm::expm1);
        return format!(
            "no difference: all within {}{exact}",
            percent(most.max(0.001))
        );
    }
    let others = || {
        cell.sides
            .iter()
            .map(|s| s.treatment)
            .filter(|t| *t != best)
    };
    let beaten: Vec<usize> = others().filter(|t| cell.beats(best, *t)).collect();
    let level = |t: &usize| cell.pair(best, *t).is_some_and(|(p, _)| p.near());
    let level: Vec<usize> = others().filter(level).collect();
    let open: Vec<usize> = others()
        .filter(|t| !beaten.contains(t) && !level.contains(t))
        .collect();
    if beaten.is_empty() {
        let pairs: Vec<&Comparison> = open
            .iter()
            .filter_map(|t| cell.pair(best, *t))
            .map(|p| p.0)
            .collect();
        let wide = match pairs.iter().any(|p| p.unbelieved() && p.step_added == 0.0) {
            true => format!(": the same in all {} blocks", cell.blocks),
            false => widest(&pairs).map_or(String::new(), |h| {
                format!(": +-{} after {} blocks", percent(h), cell.blocks)
            }),
        };
        let needs = pairs.iter().filter_map(|p| p.blocks_needed).max();
        let needs =
            needs.filter(|n| *n as usize > cell.blocks && *n < super::comparison::BLOCKS_MOST);
        let needs = needs.map_or(String::new(), |n| {
            format!("; about {n} blocks would decide")
        });
        return format!("not decided, {} leads{wide}{needs}", name(best));
    }
    let mut leaders: Vec<&str> = vec![name(best)];
    leaders.extend(level.iter().map(|t| name(*t)));
    let next = beaten.iter().copied().reduce(|a, b| {
        let times = |t| cell.times(best, t).map_or(f64::INFINITY, |x| x.0);
        if times(b) < times(a) { b } else { a }
    });
    let next = next.map_or(String::new(), |n| {
        format!(", {} {}", name(n), behind(cell, best, n))
    });
    let rest = match open.len() {
        0 => String::new(),
        _ => {
            let names: Vec<&str> = open.iter().map(|t| name(*t)).collect();
            format!("; {} not decided", list(&names))
        }
    };
    format!("{} ahead{next}{rest}{exact}", list(&leaders))
}
