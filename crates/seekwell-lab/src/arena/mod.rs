//! Compares a scheduler with all rivals of its layer: its throughput, 99th percentile of latency
//! and fairness, and the cells in which it is furthest behind a rival.
//!
//! The default devices and workloads are those of the layer's era ([`crate::usual`]), with the same
//! seeds for every scheduler. A figure is compared inside its cell only: with the geometric mean of
//! all schedulers there, so that no device counts for more because it is faster. Seeds are the
//! repetitions, and the intervals are over them. A scheduler is on the front if no other beats it in
//! all three figures at once. The front is made of means, so it says nothing about certainty; the
//! intervals do.
//!
//! The arena does not vary tunables (that is tuning) and uses only the default machine. A run that
//! reaches its limit counts with the figures it had until then.

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

/// The default devices and workloads of these schedulers' era; the schedulers share a layer.
pub fn usual(schedulers: &[String]) -> &'static Usual {
    let first = schedulers.first().map_or("", String::as_str);
    let found = words::named(first.split(':').next().unwrap_or(first));
    found.map_or(&TODAY, |f| Usual::of(f.info.layer))
}

/// The conditions under which schedulers meet.
#[derive(Clone, Copy, Debug)]
pub struct Met<'a> {
    /// Devices.
    pub devices: &'a [&'a str],
    /// Workloads.
    pub workloads: &'a [&'a str],
    /// Traces, by path.
    pub traces: &'a [String],
    /// Kernel for all schedulers; `None` means the kernel of each scheduler's version.
    pub kernel: Option<&'a str>,
}

/// Builds the experiment of an arena: first the given schedulers, then all rivals.
///
/// # Errors
/// An unknown name, or a trace that cannot be read.
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

/// Throughput, p99 and fairness of a run, as logarithms for which larger is better. `None` if the
/// run does not have the figure (a single process shares with nobody).
pub type Figures = [Option<f64>; 3];

/// Simulates, and keeps the figures of each run.
#[derive(Default)]
pub struct Arena {
    by: Simulated,
    figures: Mutex<BTreeMap<RunKey, Figures>>,
}

impl Arena {
    /// The figures of all runs so far.
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

/// Computes the three figures of a record.
pub fn figures(record: &Record) -> Figures {
    let log = |x: f64| (x > 0.0 && x.is_finite()).then(|| libm::log(x));
    let own = record.metric.as_ref().and_then(|m| {
        let sign = if m.higher_is_better { 1.0 } else { -1.0 };
        log(m.value).map(|v| sign * v)
    });
    // A replay has no metric of its own: less time for the same work counts as more throughput.
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
    // Jain's index: 1 is an even split; 1/n means that one process has everything.
    let jain = (shares.len() > 1 && squares > 0.0)
        .then(|| sum * sum / (shares.len() as f64 * squares))
        .and_then(log);
    [throughput, p99.map(|v| -v), jain]
}
