//! Runs a specification with the simulator.

use crate::events::{Events, Listening};
use crate::fail::Failure;
use seekwell::words;
use seekwell::{Cancel, Error, Hooks, Progress, Record, RunSpec, SpecErrors, Watch, WorkloadSpec};
use seekwell_core::prose::in_prose;
use seekwell_lab::conduct::{Job, Measured, NoRun, Runner, ended};
use seekwell_trace::Reader;
use seekwell_workload::Plan;

/// A requested workload.
pub struct Asked {
    /// The workload in specifications.
    pub spec: WorkloadSpec,
    /// The workload for titles and real runs.
    pub plan: Plan,
}

/// Parses a requested workload: a name or a fio job file, with further parameters.
pub fn asked(name: &str, params: &[String]) -> Result<Asked, Failure> {
    planned(words::workload(name, params), name)
}

/// Parses a fio command, such as `fio --name=a --rw=read --size=1g`.
pub fn asked_command(args: &[String]) -> Result<Asked, Failure> {
    planned(words::fio_command(args), "fio")
}

/// Adds the plan of a workload.
fn planned(spec: Result<WorkloadSpec, SpecErrors>, name: &str) -> Result<Asked, Failure> {
    let bad = |e| Failure::words("", &e);
    let spec = spec.map_err(bad)?;
    match seekwell::plan(&spec).map_err(bad)? {
        Some(plan) => Ok(Asked { spec, plan }),
        None => Err(Failure::input(format!("\"{name}\" is not a workload"))),
    }
}

/// A function that opens a trace.
type Opens<'a> = &'a (dyn Fn() -> Result<Reader, Failure> + Sync);

/// The simulator. Each run gets its own reader of the trace.
#[derive(Default)]
pub struct Simulator<'a> {
    /// Opens the trace; `None` if the specification names the workload.
    pub trace: Option<Opens<'a>>,
    /// Records the events of runs with the first seed. The number is how many schedulers a group
    /// has.
    pub events: Option<(&'a Events, usize)>,
}

impl Simulator<'_> {
    fn record(
        &self,
        spec: &RunSpec,
        listener: Option<Watch>,
        cancel: &Cancel,
        told: &mut dyn FnMut(Progress),
    ) -> Result<Record, String> {
        let mut hooks = Hooks::default().progress(told).cancel(cancel);
        if let Some(open) = self.trace {
            hooks = hooks.trace(open().map_err(|e| e.to_string())?);
        }
        if let Some(listener) = listener {
            hooks = hooks.listen(listener);
        }
        seekwell::run(spec, hooks).map_err(|e| match (&e, &spec.workload) {
            // These messages contain the name of the file.
            (Error::Trace(_), _) => e.to_string(),
            (Error::NotBegun, _) => "not begun".to_owned(),
            (_, WorkloadSpec::Trace { file, .. }) => format!(
                "{file}: {} on {}: {e}",
                spec.scheduler_label(),
                spec.device.spec
            ),
            _ => format!(
                "{} under {} on {}: {e}",
                spec.workload.name(),
                in_prose(&spec.scheduler_label()),
                spec.device.spec
            ),
        })
    }
}

impl Runner for Simulator<'_> {
    fn run(
        &self,
        job: &Job,
        cancel: &Cancel,
        told: &mut dyn FnMut(Progress),
    ) -> Result<Measured, NoRun> {
        let failed = |e: Failure| NoRun::Failed(e.to_string());
        let first = self.events.filter(|_| job.key.block == 0);
        let listening = match first {
            Some((events, k)) => {
                let run = job.key.cell * k + job.treatment;
                events.listening(run, &job.spec).map_err(failed)?
            }
            None => None,
        };
        let listener = listening.as_ref().map(Listening::listener);
        match self.record(&job.spec, listener, cancel, told) {
            Ok(record) => {
                if let (Some((events, _)), Some(listening)) = (first, listening) {
                    let early = record.early.as_ref().map(|e| e.why.as_str());
                    events.keep(listening, early).map_err(failed)?;
                }
                ended(record, cancel)
            }
            Err(why) if cancel.is_set() => Err(NoRun::Cut(why, None)),
            Err(why) => Err(NoRun::Failed(why)),
        }
    }
}
