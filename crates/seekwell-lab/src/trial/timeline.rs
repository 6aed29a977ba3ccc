//! The periods of a trial in order of time, for a picture.

use super::runner::WASHOUT;
use super::{Figure, MEASURED};
use crate::data::{Outcome, Results};
use crate::results::{self, Layer, StoreError};
use std::collections::BTreeMap;
use std::path::Path;

/// [`About::source`](crate::data::About::source) of the results of a trial.
pub const SOURCE: &str = "trial";

/// The periods of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Name of the first metric, with its unit.
    pub metric: String,
    /// Labels of the schedulers.
    pub schedulers: Vec<String>,
    /// The periods, in order of time.
    pub periods: Vec<Period>,
}

/// A period of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Period {
    /// Index of the scheduler.
    pub treatment: usize,
    /// Start of the period with its washout, s since the start of the first one.
    pub from_s: f64,
    /// End of the period.
    pub to_s: f64,
    /// Start of the part that counts.
    pub counts_from_s: f64,
    /// Value of the first metric, if there is one.
    pub value: Option<f64>,
    /// Whether the guard ended the period.
    pub ended_early: bool,
    /// Time and value of each second in which there is a value.
    pub seconds: Vec<(f64, f64)>,
}

/// Requests, bytes and latencies of one second, of reads and of writes.
#[derive(Clone, Copy, Default)]
struct Second([(u64, u64, u64); 2]);

impl Second {
    fn value(&self, of: &Figure) -> Option<f64> {
        let mean = |(ops, _, latency_ns): (u64, u64, u64)| {
            (ops > 0).then(|| latency_ns as f64 / ops as f64 / 1e6)
        };
        let [read, write] = self.0;
        match of {
            Figure::ReadMean => mean(read),
            Figure::WriteMean => mean(write),
            Figure::Iops => Some((read.0 + write.0) as f64),
            Figure::Throughput => Some((read.1 + write.1) as f64 / f64::from(1 << 20)),
            Figure::ReadP99 | Figure::WriteP99 | Figure::User(..) => None,
        }
    }
}

/// Returns the timeline of the results in a folder. `None` if they are not those of a trial.
///
/// # Errors
/// The tables of the folder cannot be read.
pub fn timeline(dir: &Path, results: &Results) -> Result<Option<Timeline>, StoreError> {
    let Some(cell) = results.cells.first() else {
        return Ok(None);
    };
    if results.about.source != SOURCE {
        return Ok(None);
    }
    let metric = &cell.primary;
    let figure = MEASURED.iter().find(|f| f.name() == metric.name);
    let mut seconds: BTreeMap<(usize, u64), Second> = BTreeMap::new();
    results::series(dir, |run, layer, kind, row| {
        let side = match (layer, kind) {
            (Layer::Workload, "read") => 0,
            (Layer::Workload, "write") => 1,
            _ => return,
        };
        let of = &mut seconds.entry((run, row.0)).or_default().0[side];
        *of = (row.1, row.2, row.3);
    })?;
    let mut order: Vec<usize> = (0..results.runs.len()).collect();
    order.retain(|i| !matches!(results.runs[*i].outcome, Outcome::Failed(_)));
    order.sort_by_key(|i| (results.runs[*i].key.block, results.runs[*i].place));
    let first = order.first().and_then(|i| results.runs[*i].began_unix_ns);
    let mut periods: Vec<Period> = Vec::new();
    for i in order {
        let run = &results.runs[i];
        // A simulated trial has no clock time. Its periods follow each other.
        let from_s = match run.began_unix_ns.zip(first) {
            Some((at, first)) => at.saturating_sub(first) as f64 / 1e9,
            None => periods.last().map_or(0.0, |p| p.to_s),
        };
        let washout = run.values.iter().find(|v| v.metric.name == WASHOUT);
        let counts_from_s = from_s + washout.map_or(0.0, |v| v.value);
        let length_s = run.duration_ns as f64 / 1e9;
        let own = figure.map(|f| of_run(&seconds, i, length_s, f));
        periods.push(Period {
            treatment: run.key.treatment,
            from_s,
            to_s: counts_from_s + length_s,
            counts_from_s,
            value: run.values.first().map(|v| v.value),
            ended_early: matches!(run.outcome, Outcome::Early(_)),
            seconds: own
                .into_iter()
                .flatten()
                .map(|(s, v)| (counts_from_s + s, v))
                .collect(),
        });
    }
    Ok(Some(Timeline {
        metric: match metric.unit.as_str() {
            "" => metric.name.clone(),
            unit => format!("{}, {unit}", metric.name),
        },
        schedulers: results.treatments.iter().map(|t| t.label.clone()).collect(),
        periods,
    }))
}

/// Returns the seconds of a run, from its start, and their values. The table has no row for a second
/// without requests.
fn of_run(
    seconds: &BTreeMap<(usize, u64), Second>,
    run: usize,
    length_s: f64,
    of: &Figure,
) -> Vec<(f64, f64)> {
    let second = |at: u64| seconds.get(&(run, at)).copied().unwrap_or_default();
    let all = (0..length_s.ceil() as u64).map(|at| (at as f64 + 0.5, second(at).value(of)));
    all.filter_map(|(at, v)| Some((at, v?))).collect()
}
