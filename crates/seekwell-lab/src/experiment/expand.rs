//! Expands a requested experiment into cells, treatments and runs, and checks all runs.
//!
//! A cell is a combination of a device, a workload, a machine and a queue. Its treatments are all
//! schedulers that are not excluded. This module finds faults in combinations of two factors.
//! Examples are a tunable that a scheduler does not have in a kernel, and a trace on a machine. It
//! also finds faults in single factors, because a [`Design`] need not come from a file.

mod cells;

use super::design::{Design, Level};
use super::fault::{Faults, Place};
use super::{Experiment, labels};
use crate::data::{About, Method};
use cells::Factors;
use seekwell::words::TypedMachine;
use seekwell::{QueueSpec, RunSpec};

/// Largest number of cells of an experiment.
pub const CELLS_MAX: usize = 10_000;
/// Largest number of treatments of an experiment.
pub const TREATMENTS_MAX: usize = 1_000;
/// Largest number of treatments over all cells together. Each treatment is a specification in
/// memory.
pub const PLANS_MAX: usize = 100_000;
/// Largest number of blocks of a cell.
pub const REPEATS_MAX: u32 = 100_000;

/// The positions of the levels of each factor in the file; empty if there is no file.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pub top: Place,
    pub devices: Vec<Place>,
    pub schedulers: Vec<Place>,
    pub workloads: Vec<Place>,
    pub machines: Vec<Place>,
    pub queues: Vec<Place>,
    pub reference: Place,
    pub only: Vec<Place>,
    pub exclude: Vec<Place>,
}

fn at(places: &[Place], i: usize) -> Place {
    places.get(i).copied().unwrap_or_default()
}

impl Experiment {
    /// Builds an experiment from a design, which comes from a command line or a program. All
    /// factors are expanded and every run is checked. All runs of a cell get the same largest
    /// request size.
    ///
    /// # Errors
    /// Returns all faults of the design.
    pub fn from_specs(design: Design) -> Result<Experiment, Faults> {
        expand(design, &Places::default(), "")
    }
}

pub(super) fn expand(design: Design, places: &Places, text: &str) -> Result<Experiment, Faults> {
    let mut faults = Faults::default();
    method(&design.method, places, &mut faults);
    let mut whole = design.clone();
    if whole.machines.is_empty() {
        whole.machines.push(Level::unnamed(TypedMachine::default()));
    }
    if whole.queues.is_empty() {
        whole.queues.push(Level::unnamed(QueueSpec::default()));
    }
    for (what, n) in [
        ("device", whole.devices.len()),
        ("scheduler", whole.schedulers.len()),
        ("workload", whole.workloads.len()),
    ] {
        if n == 0 {
            let remedy = format!("name at least one {what}");
            faults.push(places.top, what, format!("there is none: {remedy}"));
        }
    }
    size(&whole, places, &mut faults);
    std::mem::take(&mut faults).or(())?;
    for w in &mut whole.workloads {
        // Labels and the first metric depend on all parameters, so the defaults are filled in.
        // Faults are reported later.
        let of = RunSpec::new(Default::default(), Default::default(), w.spec.spec.clone());
        if let Ok(spec) = seekwell_sim::spec::workload::checked(&of.workload) {
            w.spec.spec = spec;
        }
    }
    let f = &mut faults;
    let factors = Factors {
        devices: labels::devices(&whole.devices, &places.devices, f),
        schedulers: labels::schedulers(&whole.schedulers, &places.schedulers, f),
        workloads: labels::workloads(&whole.workloads, &places.workloads, f),
        machines: labels::machines(&whole.machines, &places.machines, f),
        queues: labels::queues(&whole.queues, &places.queues, f),
        design: whole,
    };
    factors.known_reference(places, f);
    let cells = factors.cells(places, f);
    let treatments = factors.treatments(f, places);
    faults.or(())?;
    let about = About {
        name: design.name.clone(),
        description: design.description.clone(),
        method: design.method.clone(),
        source: "experiment".to_owned(),
        paired: true,
        notes: design.notes.clone(),
    };
    Ok(Experiment {
        about,
        cells,
        treatments,
        text: text.to_owned(),
        design,
    })
}

/// Checks that the settings for repetitions and verdicts are within their ranges.
fn method(m: &Method, places: &Places, faults: &mut Faults) {
    let mut bad = |field: &str, what: String| {
        faults.push(places.top, format!("experiment.{field}"), what);
    };
    if !(m.margin > 0.0 && m.margin < 1.0) {
        bad(
            "margin",
            format!("{} is outside 0 to 1 (0.02 is 2 %)", m.margin),
        );
    }
    if !(m.alpha > 0.0 && m.alpha < 0.5) {
        let confidence = 1.0 - m.alpha;
        bad(
            "confidence",
            format!("{confidence} is outside 0.5 to 1 (0.95 is 95 %)"),
        );
    }
    if !(m.target > 0.0 && m.target < 1.0) {
        bad(
            "target",
            format!("{} is outside 0 to 1 (0.01 is 1 %)", m.target),
        );
    }
    if !(m.fraction >= 0.0 && m.fraction < 1.0) {
        bad("fraction", format!("{} is outside 0 to 1", m.fraction));
    }
    if !(1..=REPEATS_MAX).contains(&m.repeats_min) || m.repeats_max > REPEATS_MAX {
        let what = format!("repeats are 1 to {REPEATS_MAX} blocks");
        bad("repeats", what);
    } else if m.repeats_max < m.repeats_min {
        let (min, max) = (m.repeats_min, m.repeats_max);
        bad(
            "repeats",
            format!("the maximum of {max} blocks is below the minimum of {min}"),
        );
    }
    if m.seed > i64::MAX as u64 {
        bad("seed", format!("{} is outside 0 to {}", m.seed, i64::MAX));
    }
    if m.budget_s == Some(0) {
        bad(
            "budget",
            "0 is not a limit: leave it out for no limit".to_owned(),
        );
    }
    if m.warmup_s.is_some_and(|s| !(s.is_finite() && s >= 0.0)) {
        bad(
            "warmup",
            "not a time: write \"20s\", or \"auto\"".to_owned(),
        );
    }
}

/// Checks that the numbers of cells, schedulers and runs are within their limits. The message for a
/// fault contains the product that is too large.
fn size(d: &Design, places: &Places, faults: &mut Faults) {
    let parts = [
        (d.devices.len(), "devices"),
        (d.workloads.len(), "workloads"),
        (d.machines.len(), "machines"),
        (d.queues.len(), "queues"),
    ];
    let cells: u128 = parts.iter().map(|p| p.0 as u128).product();
    let shown: Vec<String> = parts
        .iter()
        .filter(|p| p.0 > 1)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
    let shown = shown.join(" x ");
    let treatments = d.schedulers.len() as u128;
    if cells > CELLS_MAX as u128 {
        let what = format!(
            "{shown} = {cells} cells, more than the limit of {CELLS_MAX}; split the experiment"
        );
        faults.push(places.top, "", what);
    }
    if treatments > TREATMENTS_MAX as u128 {
        let what = format!(
            "{treatments} schedulers, more than the limit of {TREATMENTS_MAX}; split the experiment"
        );
        faults.push(places.top, "scheduler", what);
    }
    if cells * treatments > PLANS_MAX as u128 && faults.0.is_empty() {
        let what = format!(
            "{cells} cells x {treatments} schedulers = {} runs per block, more than the limit of \
             {PLANS_MAX}; split the experiment",
            cells * treatments
        );
        faults.push(places.top, "", what);
    }
}

#[cfg(test)]
mod tests;
