//! The state of a running cell: the results of its runs, and the decision whether to run more
//! blocks.
//!
//! A look at the results uses only the runs of complete blocks. So the number of threads and
//! interruptions of the experiment do not change which runs are made.

use super::measured::fingerprint;
use crate::data::{CellEnd, DURATION, Method, MetricInfo, Outcome, Pace, Run, StopRule, WarmUp};
use crate::stats::{self, Better, Stopping, Until, anytime_multiplier};

/// If all runs of each treatment are bit-identical in this number of blocks, the cell uses no
/// randomness.
pub const EXACT_BLOCKS: u32 = 3;

/// The part of a run that is kept in memory.
#[derive(Clone, Debug, PartialEq)]
struct Slim {
    /// The primary value; `None` if the run failed or has no such value.
    value: Option<f64>,
    /// The duration, or a lower bound if the run reached its limit.
    until: Option<Until>,
    failed: bool,
    print: u64,
}

/// The state of a cell.
#[derive(Debug)]
pub(super) struct State {
    /// The primary metric. It can be unknown until the first block is complete.
    pub primary: MetricInfo,
    /// Index of the reference in the treatments of the cell.
    reference: usize,
    /// The runs, by treatment of the cell and by block.
    runs: Vec<Vec<Option<Slim>>>,
    /// Runs with their treatment index, kept until the primary metric is known.
    pending: Vec<(usize, Run)>,
    settled: bool,
    /// Warm-up requested by the experiment, in s.
    asked_s: Option<f64>,
    /// Warm-up in s, determined when the first block is complete.
    warm_up: usize,
    /// Largest number of blocks for which a look decided to continue.
    looked: u32,
    /// How the cell ended.
    pub ended: CellEnd,
}

/// What to do after a look at the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Run all blocks before this one.
    Upto(u32),
    /// The cell has ended.
    Ended,
}

impl State {
    pub fn new(
        primary: MetricInfo,
        treatments: usize,
        reference: usize,
        warmup_s: Option<f64>,
    ) -> Self {
        State {
            primary,
            reference,
            runs: vec![Vec::new(); treatments],
            pending: Vec::new(),
            settled: false,
            asked_s: warmup_s,
            warm_up: 0,
            looked: 0,
            ended: CellEnd::Open,
        }
    }

    /// Stores a run. `treatment` is the index of its treatment in the cell.
    pub fn take(&mut self, treatment: usize, run: &Run) {
        let block = run.key.block as usize;
        let value = self.value(run);
        let column = &mut self.runs[treatment];
        if column.len() <= block {
            column.resize(block + 1, None);
        }
        column[block] = Some(Slim {
            value,
            until: run.until(),
            failed: matches!(run.outcome, Outcome::Failed(_)),
            print: fingerprint(run),
        });
        if !self.settled {
            self.pending.push((treatment, run.clone()));
            self.settle();
        }
    }

    /// Returns the primary value of a run without the warm-up.
    fn value(&self, run: &Run) -> Option<f64> {
        let whole = run.value(&self.primary.name)?;
        match run.pace.as_ref().filter(|_| self.warm_up > 0) {
            Some(pace) => pace.value(self.warm_up).map(|v| v.0),
            None => Some(whole),
        }
    }

    /// Returns whether this treatment has a run in this block.
    pub fn has(&self, treatment: usize, block: u32) -> bool {
        let column = self.runs.get(treatment);
        column
            .and_then(|c| c.get(block as usize))
            .is_some_and(Option::is_some)
    }

    /// Returns the number of complete blocks before the first incomplete block.
    pub fn whole(&self) -> u32 {
        let whole = |b: u32| (0..self.runs.len()).all(|t| self.has(t, b));
        (0..).find(|b| !whole(*b)).unwrap_or(0)
    }

    /// Determines the primary metric and the warm-up once the first block is complete. If the
    /// experiment names no primary metric, the first usable run determines it.
    fn settle(&mut self) {
        if self.whole() == 0 {
            return;
        }
        self.settled = true;
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_by_key(|(treatment, run)| (run.key.block, *treatment));
        let first = pending.iter().filter(|p| p.1.key.block == 0);
        let first: Vec<&Pace> = first.filter_map(|p| p.1.pace.as_ref()).collect();
        if !first.is_empty() {
            self.warm_up = WarmUp::from_first_block(self.asked_s, &first).drop();
        }
        let asked = self.primary.name.clone();
        let first = pending.iter().map(|p| &p.1);
        let first = first.filter(|r| r.key.block == 0 && !matches!(r.outcome, Outcome::Failed(_)));
        let (cut, whole): (Vec<&Run>, Vec<&Run>) = first.partition(|r| r.censored());
        let named = |r: &Run, name: &str| {
            let found = r.values.iter().find(|v| v.metric.name == name);
            found.cloned()
        };
        let found = whole.iter().find_map(|r| match asked.as_str() {
            "" => r.values.first().cloned(),
            name => named(r, name),
        });
        // If all runs reached their limit, only their duration is known.
        let time = || cut.iter().find_map(|r| named(r, DURATION));
        let found = found.or_else(|| time().filter(|_| asked.is_empty()));
        if let Some(found) = found {
            let step = self.primary.step.or(found.metric.step);
            self.primary = MetricInfo {
                step,
                ..MetricInfo::clone(&found.metric)
            };
        }
        for (treatment, run) in &pending {
            let value = self.value(run);
            let slim = self.runs[*treatment].get_mut(run.key.block as usize);
            if let Some(Some(slim)) = slim {
                slim.value = value;
            }
        }
    }

    /// Returns whether the first `n` blocks have bit-identical runs of each treatment, without
    /// failures.
    fn exact(&self, n: u32) -> bool {
        self.runs.iter().all(|column| {
            let first = column.first().and_then(Option::as_ref);
            first.is_some_and(|f| !f.failed)
                && column.iter().take(n as usize).all(|r| r.as_ref() == first)
        })
    }

    /// Returns the values of a treatment in the first `n` blocks.
    fn column(&self, treatment: usize, n: u32) -> Vec<Option<f64>> {
        let all = self.runs[treatment].iter().take(n as usize);
        all.map(|r| r.as_ref().and_then(|r| r.value)).collect()
    }

    /// Returns the log ratios to the reference in the first `n` blocks, by treatment.
    fn differences(&self, n: u32) -> Vec<Vec<f64>> {
        let reference = self.column(self.reference, n);
        let better = match self.primary.higher_is_better {
            true => Better::Higher,
            false => Better::Lower,
        };
        let until = self.untils(n);
        let cut = |t: usize| until[t].iter().flatten().any(|u| u.censored);
        let times = stats::restricted(&until, better);
        let others = (0..self.runs.len()).filter(|t| *t != self.reference);
        let of = |t: usize| match cut(t) || cut(self.reference) {
            true => stats::paired(&times[t], &times[self.reference], better, false, None),
            false => stats::paired(&self.column(t, n), &reference, better, false, None),
        };
        others.map(|t| of(t).differences).collect()
    }

    /// Returns the duration of each run of the first `n` blocks, by treatment. It is a lower bound
    /// if the run reached its limit.
    fn untils(&self, n: u32) -> Vec<Vec<Option<Until>>> {
        let until = |r: &Option<Slim>| r.as_ref().and_then(|r| r.until);
        let column = |c: &Vec<Option<Slim>>| c.iter().take(n as usize).map(until).collect();
        self.runs.iter().map(column).collect()
    }

    /// Looks at the complete blocks and decides whether the cell ends or runs more blocks.
    pub fn look(&mut self, method: &Method) -> Next {
        let n = self.whole();
        if self.ended != CellEnd::Open {
            return Next::Ended;
        }
        let most = method.repeats_max.max(1);
        if let Some(ended) = self.ends(n, most, method) {
            self.ended = ended;
            return Next::Ended;
        }
        let least = match method.stop {
            StopRule::Fixed => most,
            _ => method.repeats_min.clamp(1, most),
        };
        Next::Upto(match n {
            // The first block determines the metric. Three blocks show whether the cell uses
            // randomness.
            0 => 1,
            n if n < EXACT_BLOCKS => EXACT_BLOCKS.min(most),
            n if n < least => least,
            n => n + 1,
        })
    }

    fn ends(&mut self, n: u32, most: u32, method: &Method) -> Option<CellEnd> {
        let failed = |c: &Vec<Option<Slim>>| {
            c.first()
                .is_some_and(|r| r.as_ref().is_some_and(|r| r.failed))
        };
        if n >= 1 && self.runs.iter().all(failed) {
            return Some(CellEnd::Failing(1));
        }
        // A store may contain blocks beyond the one that ended the cell. They do not change the
        // decision.
        if n >= EXACT_BLOCKS && self.exact(EXACT_BLOCKS) {
            return Some(CellEnd::Met(EXACT_BLOCKS));
        }
        if method.stop != StopRule::Fixed {
            let from = method.repeats_min.max(2).max(self.looked + 1);
            for n in from..=n.min(most) {
                if self.met(n, method) {
                    return Some(CellEnd::Met(n));
                }
                self.looked = n;
            }
        }
        (n >= most).then_some(CellEnd::Most(most))
    }

    fn met(&self, n: u32, method: &Method) -> bool {
        let all = self.differences(n);
        if all.is_empty() {
            // With a single treatment there is nothing to compare, so more blocks have no use.
            return true;
        }
        let slices: Vec<&[f64]> = all.iter().map(Vec::as_slice).collect();
        match method.stop {
            StopRule::Width => stopping(method).look(&slices).stop,
            StopRule::Decided => slices.iter().all(|d| decided(d, method)),
            StopRule::Fixed => false,
        }
    }
}

/// Returns the stopping rule of the method.
pub fn stopping(method: &Method) -> Stopping {
    Stopping {
        target: method.target,
        fraction: method.fraction,
        n_min: method.repeats_min.max(2) as usize,
        n_max: method.repeats_max as usize,
    }
}

/// Returns whether an interval that allows repeated looks excludes 0, or lies within the margin.
fn decided(differences: &[f64], method: &Method) -> bool {
    let n = differences.len();
    let Some(multiplier) = anytime_multiplier(n, method.alpha) else {
        return false;
    };
    let mean = stats::mean(differences);
    let half = multiplier * stats::deviation(differences) / libm::sqrt(n as f64);
    let mu = libm::log1p(method.margin);
    mean.abs() > half || mean.abs() + half < mu
}
