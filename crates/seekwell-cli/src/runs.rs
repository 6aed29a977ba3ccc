//! One run of a table: a specification through the library's door.

use crate::cells::Ran;
use crate::fail::Failure;
use seekwell::words;
use seekwell::{Cancel, Error, Hooks, RunSpec, Watch, WorkloadSpec};
use seekwell_trace::Reader;
use seekwell_workload::Plan;

/// A workload as it was asked for.
pub struct Asked {
    /// For specifications.
    pub spec: WorkloadSpec,
    /// For titles and real runs.
    pub plan: Plan,
}

/// A workload as it was asked for: a name, or a fio job file; with further parameters.
pub fn asked(name: &str, params: &[String]) -> Result<Asked, Failure> {
    let bad = |e| Failure::words("", &e);
    let spec = words::workload(name, params).map_err(bad)?;
    match seekwell::plan(&spec).map_err(bad)? {
        Some(plan) => Ok(Asked { spec, plan }),
        None => Err(Failure::input(format!("{name} is no program"))),
    }
}

/// Runs a specification; a trace that is open already is read from there. Beside the record: how
/// it ended early, if it did.
pub fn one(
    spec: &RunSpec,
    trace: Option<Reader>,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Ran, Failure> {
    listened(spec, trace, None, progress)
}

/// The same, with somebody who listens.
pub fn listened(
    spec: &RunSpec,
    trace: Option<Reader>,
    listener: Option<Watch>,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Ran, Failure> {
    let cancel = Cancel::new();
    let mut told = |p: seekwell::Progress| {
        if !progress(p.done, p.of) {
            cancel.set();
        }
    };
    let mut hooks = Hooks::default().progress(&mut told).cancel(&cancel);
    if let Some(reader) = trace {
        hooks = hooks.trace(reader);
    }
    if let Some(listener) = listener {
        hooks = hooks.listen(listener);
    }
    let ran = seekwell::run(spec, hooks);
    let record = ran.map_err(|e| match (&e, &spec.workload) {
        // They name the file themselves.
        (Error::Trace(_), _) => Failure::input(e.to_string()),
        (_, WorkloadSpec::Trace { file, .. }) => Failure::input(format!(
            "{file}: {} on {}: {e}",
            spec.scheduler_label(),
            spec.device.spec
        )),
        _ => Failure::input(format!(
            "{} under {} on {}: {e}",
            spec.workload.name(),
            spec.scheduler_label(),
            spec.device.spec
        )),
    })?;
    let why = record.early.as_ref().map(|e| e.why.clone());
    Ok((record, why))
}
