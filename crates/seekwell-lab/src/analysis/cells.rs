//! Builds the comparisons of a cell and determines their verdicts.

use super::comparison::{AtLimit, Comparison, Exact, Judge};
use super::{CellAnalysis, Check, Longer, Secondary, Side, better};
use crate::conduct::{fingerprint, stopping};
use crate::data::{Cell, CellEnd, Method, MetricInfo, Outcome, Results, Run, StopRule, Summary};
use crate::stats::{
    self, Better, Paired, Until, anytime_multiplier, paired, stored, t_quantile, t_tail2,
};
use std::collections::BTreeMap;

/// Runs of a cell. The first index is the treatment, in the order of the cell; the second is the
/// block.
pub(super) struct Table<'a> {
    pub runs: Vec<Vec<Option<&'a Run>>>,
}

impl<'a> Table<'a> {
    fn new(treatments: &[usize], runs: &[&'a Run]) -> Self {
        let blocks = runs
            .iter()
            .map(|r| r.key.block as usize + 1)
            .max()
            .unwrap_or(0);
        let mut table = vec![vec![None; blocks]; treatments.len()];
        for run in runs {
            if let Some(t) = treatments.iter().position(|t| *t == run.key.treatment) {
                table[t][run.key.block as usize] = Some(*run);
            }
        }
        Table { runs: table }
    }
    fn blocks(&self) -> usize {
        self.runs.first().map_or(0, Vec::len)
    }
    fn column(&self, treatment: usize, metric: &str) -> Vec<Option<f64>> {
        let all = self.runs[treatment].iter();
        all.map(|r| r.and_then(|r| r.value(metric)).filter(|v| v.is_finite()))
            .collect()
    }
    /// Returns the duration of each run. It is a lower bound if the run reached its time limit.
    fn untils(&self) -> Vec<Vec<Option<Until>>> {
        let of = |r: &Option<&Run>| r.and_then(Run::until);
        let column = |c: &Vec<Option<&Run>>| c.iter().map(of).collect();
        self.runs.iter().map(column).collect()
    }
    /// Returns true if each treatment has bit-identical runs in all blocks, and there are at least
    /// [`crate::conduct::EXACT_BLOCKS`] blocks.
    fn exact(&self) -> bool {
        self.blocks() >= crate::conduct::EXACT_BLOCKS as usize
            && self.runs.iter().all(|column| {
                let print = |r: &Option<&Run>| r.map(fingerprint);
                let first = column.first().and_then(print);
                first.is_some() && column.iter().all(|r| print(r) == first)
            })
    }
}

/// Builds all cells, without verdicts.
pub(super) fn all(results: &Results) -> Vec<CellAnalysis> {
    let mut runs: Vec<Vec<&Run>> = vec![Vec::new(); results.cells.len()];
    for run in &results.runs {
        if let Some(of) = runs.get_mut(run.key.cell) {
            of.push(run);
        }
    }
    let cells = results.cells.iter().enumerate();
    cells
        .flat_map(|(i, _)| rows(results, i, &runs[i]))
        .collect()
}

/// Builds the rows of a cell: one row for each deciding metric that has a value. The first row is
/// kept even without a value, so that the missing value is reported.
fn rows(results: &Results, index: usize, runs: &[&Run]) -> Vec<CellAnalysis> {
    let cell = &results.cells[index];
    let table = Table::new(&cell.treatments, runs);
    let others = cell.rows.iter().filter(|m| m.name != cell.primary.name);
    let others = others.filter(|m| runs.iter().any(|r| r.value(&m.name).is_some()));
    let metrics: Vec<&MetricInfo> = std::iter::once(&cell.primary).chain(others).collect();
    let mut rows: Vec<CellAnalysis> = metrics
        .iter()
        .map(|metric| analyse_cell(results, index, metric, &table))
        .collect();
    for (row, of) in rows.iter_mut().enumerate() {
        (of.row, of.rows) = (row, metrics.len());
        of.checks.retain(|_| row == 0);
        // A metric that has a row of its own is not listed again among the secondary metrics.
        of.secondary
            .retain(|s| row == 0 && metrics.iter().all(|m| m.name != s.metric.name));
    }
    rows
}

fn analyse_cell(
    results: &Results,
    index: usize,
    metric: &MetricInfo,
    table: &Table<'_>,
) -> CellAnalysis {
    let cell = &results.cells[index];
    let treatments = &cell.treatments;
    // The stopping rule uses only the first row of a cell. So only the intervals of that row are
    // corrected for the repeated checks of the data.
    let decides_end = metric.name == cell.primary.name;
    let columns: Vec<_> = (0..treatments.len())
        .map(|t| table.column(t, &metric.name))
        .collect();
    let reference = treatments
        .iter()
        .position(|t| *t == cell.reference)
        .unwrap_or(0);
    let summaries: Vec<&Summary> = results
        .summaries
        .iter()
        .filter(|s| s.cell == index && s.metric.name == metric.name)
        .collect();
    let exact = results.about.paired && table.exact();
    let untils = table.untils();
    let cut = |t: usize| untils[t].iter().flatten().any(|u| u.censored);
    let times = match (0..treatments.len()).any(cut) {
        true => stats::restricted(&untils, better(metric)),
        false => Vec::new(),
    };
    let make = Make {
        untils: &untils,
        times: &times,
        treatments,
        method: &results.about.method,
        paired: results.about.paired,
        exact,
        virtual_time: cell.virtual_time(),
        ended: &cell.ended,
        decides_end,
        summaries: &summaries,
    };
    let (comparisons, pairs) = make.primary(&columns, reference, metric);
    let secondary = make.secondary(table, reference, metric);
    let sides = treatments.iter().enumerate().map(|(t, treatment)| {
        let summary = summaries.iter().find(|s| s.treatment == *treatment);
        side(
            *treatment,
            &columns[t],
            &table.runs[t],
            &metric.name,
            summary.copied(),
        )
    });
    CellAnalysis {
        cell: index,
        row: 0,
        rows: 1,
        name: cell.name.clone(),
        device: cell.device.clone(),
        workload: cell.workload.clone(),
        machine: cell.machine.clone(),
        metric: metric.clone(),
        reference: cell.reference,
        blocks: table.blocks(),
        ended: cell.ended.clone(),
        exact,
        sides: sides.collect(),
        comparisons,
        pairs,
        best: None,
        winner: None,
        not_beaten: Vec::new(),
        level: false,
        visible: None,
        warm_up: cell.warm_up.clone(),
        checks: checks(cell, table),
        flags: Vec::new(),
        secondary,
        sentence: String::new(),
    }
}

/// Returns the geometric mean of each treatment, for each metric in [`Cell::checks`].
fn checks(cell: &Cell, table: &Table<'_>) -> Vec<Check> {
    let of = |name: &String| {
        let runs = table.runs.iter().flatten().flatten();
        let metric = runs
            .flat_map(|r| &r.values)
            .find(|v| v.metric.name == *name)?;
        let value = |(t, treatment): (usize, &usize)| {
            let mean = stats::describe(&table.column(t, name)).geometric_mean?;
            Some((*treatment, stored(mean)))
        };
        let values = cell.treatments.iter().enumerate().filter_map(value);
        Some(Check {
            metric: MetricInfo::clone(&metric.metric),
            values: values.collect(),
        })
    };
    cell.checks.iter().filter_map(of).collect()
}

fn side(
    treatment: usize,
    values: &[Option<f64>],
    runs: &[Option<&Run>],
    metric: &str,
    summary: Option<&Summary>,
) -> Side {
    let d = stats::describe(values);
    let finished = d.n;
    let failed = |r: &&Option<&Run>| r.is_some_and(|r| matches!(r.outcome, Outcome::Failed(_)));
    let cut = runs.iter().flatten().filter(|r| r.censored());
    let censored = cut.clone().filter_map(|r| r.until()).map(|u| u.time_s);
    let censored = censored.reduce(f64::min).map(|than_s| Longer {
        runs: cut.count(),
        of: runs.iter().flatten().count(),
        than_s: stored(than_s),
    });
    // If some runs reached their time limit, the statistics of the other runs would not represent
    // all runs.
    let d = match censored {
        Some(_) => stats::describe(&[]),
        None => d,
    };
    let done = runs.iter().flatten().filter(|r| !r.censored());
    let counted = done.flat_map(|r| &r.values);
    let counted = counted
        .filter(|v| v.metric.name == metric && v.n > 0)
        .map(|v| v.n);
    Side {
        treatment,
        n: summary.map_or(finished, |s| s.n.unwrap_or(1) as usize),
        failed: runs.iter().filter(failed).count(),
        censored,
        mean: summary.map(|s| s.mean).or(d.mean).map(stored),
        geometric_mean: d.geometric_mean.map(stored),
        median: d.median.map(stored),
        sd: summary.map_or(d.sd, |s| s.sd).map(stored),
        se: summary.map_or(d.se, |s| s.se).map(stored),
        interval95: d.low.zip(d.high).map(|(l, h)| (stored(l), stored(h))),
        operations: counted.min(),
        values: values.to_vec(),
    }
}

/// Builds the comparisons of a cell.
struct Make<'a> {
    /// Duration of each run, by treatment and block. It is a lower bound if the run reached its
    /// time limit.
    untils: &'a [Vec<Option<Until>>],
    /// The times for the same work, which are compared instead of the metric if a run reached its
    /// time limit. Empty if no run reached it.
    times: &'a [Vec<Option<f64>>],
    treatments: &'a [usize],
    method: &'a Method,
    paired: bool,
    exact: bool,
    virtual_time: bool,
    ended: &'a CellEnd,
    decides_end: bool,
    summaries: &'a [&'a Summary],
}

type Columns = [Vec<Option<f64>>];

impl Make<'_> {
    /// Returns, for each treatment, whether its interval needs the correction for early stopping.
    /// A treatment needs it if its interval was still too wide at the last check but one of the
    /// stopping rule. The rule ended the cell as soon as that interval was narrow enough. This is
    /// more likely when the spread is small by chance, so the spread is underestimated.
    fn bound(&self, columns: &Columns, reference: usize, better: Better) -> Vec<bool> {
        let rule = stopping(self.method);
        let by_rule = matches!(self.ended, CellEnd::Met(_))
            && self.method.stop == StopRule::Width
            && self.decides_end
            && !self.exact;
        let mut bound = vec![false; columns.len()];
        if !by_rule {
            return bound;
        }
        let others: Vec<usize> = (0..columns.len()).filter(|t| *t != reference).collect();
        let slices: Vec<&[Option<f64>]> = others.iter().map(|t| &columns[*t][..]).collect();
        let stopped = rule.walk(&slices, &columns[reference], better, None);
        for (t, c) in others.iter().zip(&stopped.comparisons) {
            bound[*t] = c.corrected;
        }
        bound
    }

    fn primary(
        &self,
        columns: &Columns,
        reference: usize,
        metric: &MetricInfo,
    ) -> (Vec<Comparison>, Vec<Comparison>) {
        let bound = self.bound(columns, reference, better(metric));
        let compare = |a: usize, b: usize| {
            if let Some(at_limit) = self.at_limit(a, b) {
                let (x, y) = (&self.times[a], &self.times[b]);
                let mut c = self.compare(x, y, (a, b), metric, false)?;
                c.at_limit = Some(at_limit);
                return Some(c);
            }
            // In a pair without the reference, either of the two treatments may have delayed the
            // stop.
            let widened = bound[a] || bound[b];
            self.compare(&columns[a], &columns[b], (a, b), metric, widened)
        };
        let k = columns.len();
        let with = (0..k).filter(|t| *t != reference);
        let pairs = (0..k).flat_map(|a| (a + 1..k).map(move |b| (a, b)));
        (
            fitting(with.filter_map(|t| compare(t, reference))),
            fitting(pairs.filter_map(|(a, b)| compare(a, b))),
        )
    }

    /// Counts the blocks in which the run of treatment `a`, the run of treatment `b`, or both runs
    /// reached the time limit. These three counts are separate. A block counts only if it has a run
    /// of each treatment. Returns `None` if all three counts are 0.
    fn at_limit(&self, a: usize, b: usize) -> Option<AtLimit> {
        let mut found = AtLimit::default();
        if !self.times.is_empty() {
            for (one, other) in self.untils[a].iter().zip(&self.untils[b]) {
                let (Some(one), Some(other)) = (one, other) else {
                    continue;
                };
                match (one.censored, other.censored) {
                    (true, true) => found.both += 1,
                    (true, false) => found.one += 1,
                    (false, true) => found.other += 1,
                    (false, false) => {}
                }
            }
        }
        Some(found).filter(|f| *f != AtLimit::default())
    }

    fn secondary(
        &self,
        table: &Table<'_>,
        reference: usize,
        primary: &MetricInfo,
    ) -> Vec<Secondary> {
        let mut metrics: BTreeMap<&str, &MetricInfo> = BTreeMap::new();
        let mut order: Vec<&str> = Vec::new();
        for v in table
            .runs
            .iter()
            .flatten()
            .flatten()
            .flat_map(|r| &r.values)
        {
            if v.metric.name != primary.name && metrics.insert(&v.metric.name, &v.metric).is_none()
            {
                order.push(&v.metric.name);
            }
        }
        let of = |name: &&str| {
            let metric = metrics[*name];
            let columns: Vec<_> = (0..self.treatments.len())
                .map(|t| table.column(t, name))
                .collect();
            let others = (0..columns.len()).filter(|t| *t != reference);
            let compare = |t: usize| {
                self.compare(
                    &columns[t],
                    &columns[reference],
                    (t, reference),
                    metric,
                    false,
                )
            };
            let comparisons = fitting(others.filter_map(compare));
            (comparisons.iter().any(|c| c.n > 1)).then(|| Secondary {
                metric: metric.clone(),
                comparisons,
            })
        };
        fitting(order.iter().filter_map(of))
    }

    fn compare(
        &self,
        x: &[Option<f64>],
        y: &[Option<f64>],
        (a, b): (usize, usize),
        metric: &MetricInfo,
        widened: bool,
    ) -> Option<Comparison> {
        let (one, other) = (self.treatments[a], self.treatments[b]);
        let have = |v: &[Option<f64>]| v.iter().flatten().copied().collect::<Vec<f64>>();
        if !self.paired {
            let of = |t: usize| self.summaries.iter().find(|s| s.treatment == t);
            let of = |t: usize| of(t).filter(|s| s.metric.name == metric.name);
            return match (of(one), of(other)) {
                (Some(s), Some(t)) => Some(Comparison::summaries(s, t, metric)),
                // If single runs are known for only one of the two treatments, they are reduced to
                // their mean and standard error.
                (Some(s), None) if y.iter().any(Option::is_some) => {
                    let t = super::unpaired::summed(other, &have(y), metric);
                    Some(Comparison::summaries(s, &t, metric))
                }
                (None, Some(t)) if x.iter().any(Option::is_some) => {
                    let s = super::unpaired::summed(one, &have(x), metric);
                    Some(Comparison::summaries(&s, t, metric))
                }
                _ => Comparison::welch(one, other, &have(x), &have(y), metric),
            };
        }
        let mut p = paired(x, y, better(metric), widened, metric.step);
        if self.method.stop == StopRule::Decided
            && self.decides_end
            && matches!(self.ended, CellEnd::Met(_))
        {
            watched(&mut p, self.method.alpha);
        }
        let both: Vec<(f64, f64)> = x.iter().zip(y).filter_map(|(x, y)| x.zip(*y)).collect();
        let (s, t): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
        let means = stats::mean(&t);
        let means = (means > 0.0).then(|| stats::mean(&s) / means);
        let apart = p.mean.is_some_and(|m| m.abs() > stats::EQUAL);
        let exact = match self.exact {
            true => Exact::Run,
            false if self.virtual_time && apart && same(x) && same(y) => Exact::Value,
            false => Exact::No,
        };
        Some(Comparison::paired(one, other, &p, widened, exact, means))
    }
}

/// Collects the items into a vector without spare capacity. With a thousand cells, the spare
/// capacity of all vectors would be most of the memory.
fn fitting<T>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.shrink_to_fit();
    all
}

/// Returns true if all blocks have the same value, and there are enough blocks to conclude that the
/// value does not depend on the seed.
fn same(column: &[Option<f64>]) -> bool {
    let first = column.first().copied().flatten();
    column.len() >= crate::conduct::EXACT_BLOCKS as usize
        && first.is_some_and(|f| column.iter().all(|v| *v == Some(f)))
}

/// Widens the interval of a cell that was stopped as soon as the interval excluded 0. The interval
/// was checked after every block. It is made so wide that its confidence level holds in spite of
/// these repeated checks.
fn watched(p: &mut Paired, alpha: f64) {
    let (Some(mean), Some(se), Some(df)) = (p.mean, p.se, p.df) else {
        return;
    };
    let Some(multiplier) = anytime_multiplier(p.n, alpha) else {
        (p.se, p.p, p.interval95, p.interval90, p.ratio95) = (None, None, None, None, None);
        return;
    };
    let wide = se * (multiplier / t_quantile(0.975, df)).max(1.0);
    let ends = |q: f64| {
        let half = t_quantile(q, df) * wide + p.step_added;
        (mean - half, mean + half)
    };
    p.se = Some(wide);
    if wide > 0.0 {
        p.p = Some(t_tail2(mean / wide, df));
    }
    (p.interval95, p.interval90) = (Some(ends(0.975)), Some(ends(0.95)));
    p.ratio95 = p
        .ratio
        .and(p.interval95)
        .map(|(l, h)| (libm::exp(l), libm::exp(h)));
}

/// Determines the verdicts of all comparisons of a cell. `families` holds the number of comparisons
/// of each family: with the reference, all pairs, secondary metrics.
pub(super) fn judge(cell: &mut CellAnalysis, method: &Method, families: (usize, usize, usize)) {
    let level: BTreeMap<usize, f64> = cell
        .sides
        .iter()
        .map(|s| (s.treatment, s.mean.unwrap_or(0.0)))
        .collect();
    let each = |all: &mut Vec<Comparison>, metric: &MetricInfo, family: usize| {
        let judge = Judge {
            better: better(metric),
            margin: method.margin,
            alpha: method.alpha,
            target: method.target,
            fraction: method.fraction,
            family,
            metric,
        };
        for c in all {
            let level = level.get(&c.other).copied().unwrap_or(0.0);
            c.judge(&judge, level);
        }
    };
    let metric = cell.metric.clone();
    each(&mut cell.comparisons, &metric, families.0);
    each(&mut cell.pairs, &metric, families.1);
    for s in &mut cell.secondary {
        let metric = s.metric.clone();
        each(&mut s.comparisons, &metric, families.2);
    }
}

/// Determines the best treatment, the winner and the undefeated treatments of a cell.
pub(super) fn conclude(cell: &mut CellAnalysis, method: &Method, family: usize) {
    let better = cell.better();
    let value = |s: &Side| s.geometric_mean.or(s.mean).map(|m| m * better.sign());
    let with = cell
        .sides
        .iter()
        .filter_map(|s| value(s).map(|v| (s.treatment, v)));
    // If several treatments have the same value, the first in printing order is the best.
    let best = with.reduce(|a, b| if b.1 > a.1 { b } else { a });
    cell.best = best.map(|b| b.0);
    let all: Vec<usize> = cell.sides.iter().map(|s| s.treatment).collect();
    let beaten = |t: &usize| all.iter().any(|o| o != t && cell.beats(*o, *t));
    cell.not_beaten = all.iter().copied().filter(|t| !beaten(t)).collect();
    let ahead_of_all = |t: &usize| all.iter().all(|o| o == t || cell.beats(*t, *o));
    cell.winner = all
        .iter()
        .copied()
        .find(|t| all.len() > 1 && ahead_of_all(t));
    cell.level = !cell.pairs.is_empty() && cell.pairs.iter().all(Comparison::level);
    let alpha = method.alpha / family.max(1) as f64;
    let seen = cell.comparisons.iter().filter_map(|c| {
        let (sd, n) = (c.sd?, c.n as u32);
        stats::detectable(sd, n, alpha, 0.8)
    });
    cell.visible = seen.reduce(f64::max).map(stored);
}
