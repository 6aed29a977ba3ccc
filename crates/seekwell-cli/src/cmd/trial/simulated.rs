//! `seekwell trial --simulated`: the same trial on a simulated machine, to plan it.

use super::{Plan, Site, bad, check, switchback};
use crate::cli::Trial;
use crate::fail::Failure;
use seekwell::{RunSpec, Substrate, WorkloadSpec, words};
use seekwell_core::prose::in_prose;
use seekwell_lab::experiment::Experiment;
use seekwell_lab::results::StopRule;
use seekwell_lab::trial::{self, Bed, Figure, Length, SimBed};
use seekwell_lab::usual::TODAY;

/// Parses a workload. If it has a duration, it runs for the whole trial.
fn workload(text: &str, total_s: f64) -> Result<WorkloadSpec, Failure> {
    let parsed = |params: &[String]| {
        words::workload(text, params).map_err(|e| Failure::words("--workload: ", &e))
    };
    let spec = parsed(&[])?;
    let plan = seekwell::plan(&spec).map_err(|e| Failure::words("--workload: ", &e))?;
    let Some(plan) = plan else {
        return Err(bad(format!(
            "--workload {text}: a trace cannot be the work"
        )));
    };
    match plan.params().contains_key("seconds") && !text.contains("seconds=") {
        true => parsed(&[format!("seconds={}s", total_s.ceil())]),
        false => Ok(spec),
    }
}

/// Runs the trial.
pub(super) fn run(a: &Trial, quiet: bool) -> Result<(), Failure> {
    let words = |prefix: &'static str| move |e: seekwell::SpecErrors| Failure::words(prefix, &e);
    let device = a.device.as_deref().unwrap_or(TODAY.device);
    let device = words::device(device).map_err(words("--device: "))?;
    let list = a.schedulers.as_deref().unwrap_or(TODAY.schedulers);
    let schedulers = words::schedulers(list).map_err(words("--schedulers: "))?;
    let plan = Plan::new(a, schedulers.len())?;
    if let Some(f) = plan.given.iter().find(|f| matches!(f, Figure::User(..))) {
        return Err(bad(format!(
            "--metric {}: a simulated machine has only the built-in metrics",
            f.text()
        )));
    }
    // The longest duration of a workload is a day.
    let total_s = (a.time_s + 60.0).min(86_400.0);
    let programs = match a.workload.is_empty() {
        true => vec![workload("interactive", total_s)?],
        false => a
            .workload
            .iter()
            .map(|w| workload(w, total_s))
            .collect::<Result<_, _>>()?,
    };
    let experiment = |length: &Length, figures: &[Figure]| {
        let mut d =
            trial::simulated_design(device.clone(), schedulers.clone(), programs.clone(), length);
        d.method.seed = a.seed;
        d.method.stop = match a.until_decided {
            true => StopRule::Decided,
            false => StopRule::Fixed,
        };
        d.description = "a switchback experiment on a simulated machine".to_owned();
        let mut e = Experiment::from_specs(d).map_err(|faults| {
            let lines: Vec<String> = faults.0.iter().map(ToString::to_string).collect();
            Failure::Input(lines.join("\n"))
        })?;
        trial::judge(&mut e, figures);
        let plan = &e.cells[0];
        let original: RunSpec = plan.specs[plan.cell.reference].clone();
        Ok((e, original))
    };
    let length = check(a, &plan.timing)?;
    let (e, original) = experiment(&length, &plan.given)?;
    let bed = SimBed::new(&original, total_s).map_err(bad)?;
    // Each scheduler is tried now, because an error would otherwise come after the baseline.
    for spec in e.cells[0].specs.iter().chain([&original]) {
        bed.set(spec).map_err(bad)?;
    }
    let site = Site {
        bed: &bed,
        notes: vec![format!(
            "simulated {}: measuring the baseline for {} s of simulated time under {}",
            original.device.spec,
            plan.baseline_s.round(),
            in_prose(&original.scheduler_label())
        )],
        substrate: Substrate::Sim,
        experiment: &experiment,
        restore: &|| {},
    };
    switchback(a, &site, plan, quiet)
}
