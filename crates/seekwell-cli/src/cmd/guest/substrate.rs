//! The substrate `kernel`: experiments in guests.

use super::super::onhost::{judged_by, works};
use crate::cli::Compare;
use crate::fail::Failure;
use crate::guests::schedulers;
use crate::setups::{self, Usual};
use seekwell::words;
use seekwell_lab::experiment::{Experiment, Faults};
use seekwell_lab::host::HostWork;
use seekwell_lab::kernel::{KernelDesign, moved};
use seekwell_lab::results::{Method, StopRule};

/// Number of blocks without `--seeds`.
const BLOCKS: u32 = 5;
/// The workloads without `-w`.
const USUAL: [&str; 2] = ["fs-mark:files=200", "interactive:seconds=10s"];

/// Returns the experiment of a command line.
pub fn asked(a: &Compare) -> Result<Experiment, Failure> {
    let b = &a.bench;
    let machine = setups::with_cgroups(&a.machine, &a.cgroup);
    let typed = words::machine(&machine).map_err(|e| Failure::input(format!("--machine: {e}")))?;
    let devices = Usual::single_device(b).devices(b).into_iter();
    let devices: Result<Vec<_>, _> = devices
        .map(|d| words::device(&d).map_err(|e| Failure::words("", &e)))
        .collect();
    let design = KernelDesign {
        name: "in a guest kernel".to_owned(),
        method: Method {
            stop: StopRule::Fixed,
            repeats_min: b.seeds.unwrap_or(BLOCKS),
            repeats_max: b.seeds.unwrap_or(BLOCKS),
            seed: b.seed,
            budget_s: a.budget.map(|s| s as u64),
            ..Method::default()
        },
        devices: devices?,
        schedulers: schedulers(b)?,
        usual_reference: setups::usual_schedulers(b),
        work: workloads(a)?,
        machine: typed.spec.clone(),
        limit_s: typed.limit_s,
        queue: setups::queue(b),
    };
    design.experiment().map_err(faults)
}

fn workloads(a: &Compare) -> Result<Vec<HostWork>, Failure> {
    let given: Vec<&str> = match a.workload.is_empty() {
        true => USUAL.to_vec(),
        false => a.workload.iter().map(String::as_str).collect(),
    };
    let mut all = works(&given, &a.beside)?;
    judged_by(&a.bench.metric, &mut all)?;
    Ok(all)
}

/// Converts the experiment of a file.
pub fn of_file(e: Experiment) -> Result<Experiment, Failure> {
    moved(e).map_err(faults)
}

fn faults(all: Faults) -> Failure {
    let lines: Vec<String> = all.0.iter().map(ToString::to_string).collect();
    Failure::Input(lines.join("\n"))
}
