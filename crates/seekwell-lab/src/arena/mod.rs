//! Compares a scheduler with all rivals of its layer by throughput, 99th percentile of latency and
//! fairness. Also lists the cells in which the scheduler is furthest behind a rival.
//!
//! The default devices and workloads are those of the era of the layer ([`crate::usual`]). Every
//! scheduler runs with the same seeds. A value is compared only with the geometric mean of all
//! schedulers in the same cell. So a fast device does not count more than a slow device. The seeds
//! are the repetitions that the confidence intervals are computed from. A scheduler is on the
//! Pareto front if no other scheduler beats it in all three measures at once. The front is computed
//! from means. It does not show how certain the differences are; the intervals show this.
//!
//! The arena uses the default tunables and the default machine. A run that reaches its limit counts
//! with the values measured until then.

mod standing;
#[cfg(test)]
mod tests;

pub use standing::{Behind, Figure, Mean, Place, Standing, standing};

use crate::conduct::{Job, Measured, NoRun, Runner, Simulated, kind_of};
use crate::experiment::{Experiment, Faults};
use crate::results::RunKey;
use crate::usual::{TODAY, Usual};
use seekwell::{Cancel, Progress, Record, words};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Returns the default devices and workloads of the era of these schedulers, which must belong to
/// one layer.
pub fn usual(schedulers: &[String]) -> &'static Usual {
    let first = schedulers.first().map_or("", String::as_str);
    let found = words::named(first.split(':').next().unwrap_or(first));
    found.map_or(&TODAY, |f| Usual::for_layer(f.info.layer))
}

/// The conditions of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Met<'a> {
    /// The devices.
    pub devices: &'a [&'a str],
    /// The workloads.
    pub workloads: &'a [&'a str],
    /// Paths of the traces to replay.
    pub traces: &'a [String],
    /// Kernel for all schedulers; `None` means the kernel of each scheduler's version.
    pub kernel: Option<&'a str>,
}

/// Builds the experiment of an arena. The first treatment is the scheduler that is compared with
/// all others.
///
/// # Errors
/// Returns an error if a name is unknown or a trace cannot be read.
pub fn experiment(
    schedulers: &[String],
    on: &Met<'_>,
    seeds: u32,
    seed: u64,
) -> Result<Experiment, Faults> {
    let list = |all: &mut dyn Iterator<Item = &str>| {
        let quoted: Vec<String> = all.map(|w| toml::Value::from(w).to_string()).collect();
        quoted.join(", ")
    };
    let mut text = format!(
        "devices = [{}]\nschedulers = [{}]\nworkloads = [{}]\n[experiment]\nname = \"arena\"\nrepeats = {seeds}\nseed = \
         {seed}\nwarmup = \"0s\"\nreference = {}\n",
        list(&mut on.devices.iter().copied()),
        list(&mut schedulers.iter().map(String::as_str)),
        list(&mut on.workloads.iter().copied()),
        list(&mut schedulers.iter().take(1).map(String::as_str)),
    );
    if let Some(kernel) = on.kernel {
        text += &format!("kernel = {}\n", list(&mut [kernel].into_iter()));
    }
    for trace in on.traces {
        let trace = list(&mut [trace.as_str()].into_iter());
        text += &format!("[[workload]]\ntrace = {trace}\nfit = \"wrap\"\n");
    }
    Experiment::from_toml(&text, std::path::Path::new(""))
}

/// Throughput, p99 and fairness of a run, as logarithms for which larger is better. A measure is
/// `None` if the run does not have it; for example, a single process has no fairness.
pub type Figures = [Option<f64>; 3];

/// The runner that simulates and keeps the three measures of each run.
#[derive(Default)]
pub struct Arena {
    by: Simulated,
    figures: Mutex<BTreeMap<RunKey, Figures>>,
}

impl Arena {
    /// Returns the measures of all runs so far.
    pub fn figures(&self) -> BTreeMap<RunKey, Figures> {
        let all = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }
}

impl Runner for Arena {
    fn run(
        &self,
        job: &Job,
        cancel: &Cancel,
        told: &mut dyn FnMut(Progress),
    ) -> Result<Measured, NoRun> {
        let measured = self.by.run(job, cancel, told)?;
        if let Some(record) = &measured.record {
            let mut all = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(job.key, figures(record));
        }
        Ok(measured)
    }
}

/// Computes the three measures of a run from its record.
pub fn figures(record: &Record) -> Figures {
    let log = |x: f64| (x > 0.0 && x.is_finite()).then(|| libm::log(x));
    let own = record.metric.as_ref().and_then(|m| {
        let sign = if m.higher_is_better { 1.0 } else { -1.0 };
        log(m.value).map(|v| sign * v)
    });
    // A replay has no metric. Less time for the same work counts as more throughput.
    let throughput = own.or_else(|| log(record.bytes_per_sec()));
    let operation = kind_of(record).and_then(|k| record.operation(k));
    let latency = operation.map_or(&record.read.latency, |o| &o.latency);
    let some = latency.count() > 0;
    let p99 = some
        .then(|| latency.percentile_ns(99.0) as f64)
        .and_then(log);
    let shares: Vec<f64> = record.processes.iter().map(|p| p.bytes as f64).collect();
    let (sum, squares) = (
        shares.iter().sum::<f64>(),
        shares.iter().map(|b| b * b).sum::<f64>(),
    );
    // Jain's index: 1 means that all processes moved equally many bytes, 1/n that one of n
    // processes moved all.
    let jain = (shares.len() > 1 && squares > 0.0)
        .then(|| sum * sum / (shares.len() as f64 * squares))
        .and_then(log);
    [throughput, p99.map(|v| -v), jain]
}
