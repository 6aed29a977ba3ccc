//! `seekwell check-worlds`: runs the same script on a real kernel over a served modelled disk, and
//! in a simulation with the same disk model. It compares the requests that reach the disk.

mod show;

use crate::cli::CheckWorlds;
use crate::fail::Failure;
use crate::out::{Out, note};
use crate::progress::Progress;
use seekwell_evidence::worlds::{Checked, Grounds, Options, Place, WorldsError, prepare};
use seekwell_host::stop::signal;
use serde_json::json;

impl From<WorldsError> for Failure {
    fn from(e: WorldsError) -> Self {
        match e {
            WorldsError::Input(why) => Failure::Input(why),
            WorldsError::Interrupted { signal, what } => Failure::Interrupted { signal, what },
            WorldsError::Output { what, source } => Failure::Output { what, source },
        }
    }
}

fn options(a: &CheckWorlds) -> Result<Options, Failure> {
    let program = std::env::current_exe();
    Ok(Options {
        workloads: a.workloads.clone(),
        device: a.device.clone(),
        scheduler: a.scheduler.clone(),
        size: a.size,
        machine: a.machine.clone(),
        raw: a.raw,
        keep: a.keep.clone(),
        seed: a.seed,
        program: program.map_err(|e| {
            Failure::input(format!("cannot find the path of the seekwell program: {e}"))
        })?,
    })
}

fn interrupted(done: usize, all: usize) -> Result<(), Failure> {
    match signal() {
        None => Ok(()),
        Some(signal) => Err(Failure::Interrupted {
            signal,
            what: format!(
                "stopped by signal {signal}: {done} of {all} workloads were compared; everything \
                 was cleaned up"
            ),
        }),
    }
}

/// Runs and compares each workload on the kernel and in simulation.
pub fn run(a: &CheckWorlds, quiet: bool) -> Result<(), Failure> {
    let o = options(a)?;
    let plans = prepare(&o)?;
    let place = Place::new()?;
    let mut out = Out::open(a.output.output.as_deref())?;
    let (mut all, mut missed) = (Vec::new(), Vec::new());
    let progress = Progress::new(quiet, "workloads", plans.len(), 1);
    for (name, plan) in &plans {
        let say = format!("{name}: on the running kernel, then simulated");
        progress.aside(|| note(quiet, &say));
        let task = progress.task(0, name);
        let checked = place.check(&o, plan, name);
        drop(task);
        if signal().is_some() {
            break;
        }
        let checked = match checked {
            Ok(checked) => checked,
            // A workload that cannot run on the kernel or in simulation does not stop the others.
            Err(WorldsError::Input(why)) => {
                missed.push(json!({ "workload": name, "why": why }));
                progress.aside(|| note(false, &format!("{name} could not be compared: {why}")));
                continue;
            }
            Err(e) => return Err(e.into()),
        };
        if !a.json {
            progress.aside(|| out.text(&show::text(&checked)))?;
        }
        all.push(checked);
    }
    drop(progress);
    drop(place);
    if a.json {
        out.json(&show::json(a, &all, &missed))?;
    } else if !all.is_empty() {
        out.line(&show::closing(&all, plans.len()))?;
    }
    out.done()?;
    interrupted(all.len(), plans.len())?;
    if all.is_empty() {
        return Err(Failure::input("no workload could be compared".to_owned()));
    }
    outcome(&all, !missed.is_empty())
}

/// Returns the outcome of the command. It is an error if a workload differs, could not be compared,
/// or was not judged.
fn outcome(all: &[Checked], missed: bool) -> Result<(), Failure> {
    if all.iter().any(|c| c.verdict.agrees() == Some(false)) || missed {
        return Err(Failure::Difference);
    }
    let left = |c: &&Checked| c.grounds == Grounds::Counts;
    match all.iter().filter(left).count() {
        0 => Ok(()),
        n => Err(Failure::NotJudged(format!(
            "the machine was busy during {n} of {} workloads, so times were not judged; run the \
             command again on an idle machine",
            all.len()
        ))),
    }
}
