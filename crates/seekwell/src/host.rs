//! Runs on real hardware: a workload on the files of a directory, or reads of a raw device, under
//! the active scheduler.
//!
//! These functions do not change the host. To use another scheduler or other queue settings, set
//! them before the run and restore them afterwards (`seekwell switch`). `seekwell compare --host`
//! does both for each run.
//!
//! Not supported: background programs, and events, which `seekwell record` gets from the kernel.

use crate::cancel::Cancel;
use crate::hooks::{Error, Hooks, Progress, panic_message};
use seekwell_core::result::Record;
use seekwell_core::spec::{QueueSpec, RunSpec, SPEC_VERSION, SpecErrors, WorkloadSpec};
use seekwell_host::{Options, Pulse};
use seekwell_sim::spec::{plan, workload};
use seekwell_workload::{Needs, Plan};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Value of [`crate::SchedulerSpec::name`] that stands for the active scheduler of a real run.
pub const IN_FORCE: &str = "in-force";

/// Interval at which the progress of a run and the cancel token are checked.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a specification in a separate thread, so that this thread can check and stop the run.
pub(crate) fn run(spec: &RunSpec, hooks: Hooks<'_>) -> Result<Record, Error> {
    let (mut whole, plan) = checked(spec)?;
    if hooks.events.is_some() || hooks.trace.is_some() {
        let why = "a real run does not record events: use `seekwell record`";
        return Err(Error::Run(why.to_owned()));
    }
    if hooks.cancel.is_some_and(Cancel::is_set) {
        return Err(Error::NotBegun);
    }
    let mut options = options(&whole, &plan);
    let found = seekwell_host::in_force(options.place());
    let found = found.lowest().and_then(|l| l.scheduler.clone());
    in_force(&whole, found.as_deref())?;
    let pulse = Arc::new(Pulse::default());
    options.pulse = Some(Arc::clone(&pulse));
    options.stop = hooks.cancel.map(Cancel::flag);
    let mut told = hooks.progress;
    let ran = std::thread::scope(|s| {
        let run = s.spawn(|| seekwell_host::run_real(&plan, &options));
        while !run.is_finished() {
            if let Some(told) = &mut told {
                told(progress(&pulse, &plan));
            }
            std::thread::sleep(LOOK);
        }
        run.join()
    });
    let ran = ran.map_err(|panic| Error::Panicked(panic_message(&*panic)))?;
    let mut record = ran.map_err(|e| Error::Run(e.to_string()))?.record;
    whole.scheduler.name.clone_from(&record.scheduler.name);
    (record.spec_hash, record.spec) = (whole.hash(), Some(whole));
    Ok(record)
}

/// Returns the progress in ms if the duration of the measurement is fixed, otherwise in operations.
fn progress(pulse: &Pulse, plan: &Plan) -> Progress {
    match plan.span() {
        Some(span) => Progress {
            done: pulse.clock().map_or(0, |c| c.as_millis() as u64),
            of: span.0 / 1_000_000,
        },
        None => Progress {
            done: pulse.operations(),
            of: 0,
        },
    }
}

fn options(spec: &RunSpec, plan: &Plan) -> Options {
    let place = PathBuf::from(&spec.device.spec);
    let mut options = match plan.needs() {
        Needs::Directory => Options::new(place, spec.run_seed()),
        Needs::Device => Options {
            device: Some(place),
            ..Options::new(std::env::temp_dir(), spec.run_seed())
        },
    };
    options.limit = spec.limit_s.map(Duration::from_secs);
    // The calling program catches signals itself and sets the token.
    options.signals = false;
    options
}

/// Checks that the scheduler of the specification is active.
fn in_force(spec: &RunSpec, found: Option<&str>) -> Result<(), SpecErrors> {
    let (wanted, place) = (spec.scheduler.name.as_str(), &spec.device.spec);
    let found = found.unwrap_or("no scheduler");
    if wanted == IN_FORCE || wanted == found {
        return Ok(());
    }
    let what = format!(
        "{found} is active at {place}, not {wanted}: set it first (`seekwell switch`), or use \
         `{IN_FORCE}`"
    );
    Err(SpecErrors::single("scheduler.name", what))
}

/// Returns the specification with all defaults filled in, and its plan.
fn checked(spec: &RunSpec) -> Result<(RunSpec, Plan), SpecErrors> {
    let mut errors = SpecErrors::default();
    let mut whole = spec.clone();
    whole.device.spec = spec.device.spec.trim().to_owned();
    if spec.version != SPEC_VERSION {
        let what = format!("this Seekwell runs version {SPEC_VERSION}");
        errors.push("version", what);
    }
    if whole.device.spec.is_empty() {
        let what = "name the directory, or the raw device of a workload that reads one";
        errors.push("device.spec", what);
    }
    if spec.scheduler.version.is_some() || !spec.scheduler.tunables.is_empty() {
        let what = "a real run does not change settings: `seekwell switch` sets schedulers and \
                    tunables";
        errors.push("scheduler", what);
    }
    if spec.queue != QueueSpec::default() {
        let what = "a real run does not change settings: `seekwell switch` sets the queue";
        errors.push("queue", what);
    }
    if spec.machine.is_some() {
        errors.push("machine", "a real run uses the host's machine");
    }
    if !spec.beside.is_empty() {
        let what = "background programs are not supported here: use `seekwell compare --host`";
        errors.push("beside", what);
    }
    if matches!(spec.workload, WorkloadSpec::Trace { .. }) {
        errors.push("workload", "a trace is replayed in simulation only");
        return Err(errors);
    }
    let stated = errors.take("workload", workload::checked(&spec.workload));
    let plan = stated.and_then(|w| {
        whole.workload = w;
        errors.take("workload", plan(&whole.workload)).flatten()
    });
    match plan {
        Some(plan) => errors.or((whole, plan)),
        None => Err(errors),
    }
}
