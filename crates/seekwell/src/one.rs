//! Executes one run.

use crate::many::Cancel;
use seekwell_core::result::Record;
use seekwell_core::spec::{RunSpec, SpecErrors, Substrate};
use seekwell_sim::spec::{Hooks as SimHooks, RunFailure};
use seekwell_sim::world::Watch;
use seekwell_sim::{ReplayError, RunError};
use seekwell_trace::Reader;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use thiserror::Error;

/// The reason why a run has no record.
#[derive(Error, Debug)]
pub enum Error {
    /// All errors in the specification.
    #[error(transparent)]
    Spec(#[from] SpecErrors),
    /// The trace cannot be read completely. The text contains its name and the position.
    #[error("{0}")]
    Trace(String),
    /// The run failed. The text says what happened, and where.
    #[error("{0}")]
    Run(String),
    /// A bug in the program, or in an external scheduler, device or workload.
    #[error("internal error: {0}; please report it with the specification of the run")]
    Panicked(String),
    /// The run was cancelled before it started.
    #[error("not started: cancelled")]
    NotBegun,
}

impl From<RunFailure> for Error {
    fn from(e: RunFailure) -> Self {
        match e {
            RunFailure::Spec(e) => Error::Spec(e),
            RunFailure::Replay(
                e @ (ReplayError::Trace(_) | ReplayError::Run(RunError::Trace(_))),
            ) => Error::Trace(e.to_string()),
            e => Error::Run(e.to_string()),
        }
    }
}

/// Progress of a run. The unit depends on the run, for example ms or operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The completed amount.
    pub done: u64,
    /// The total amount; 0 if unknown.
    pub of: u64,
}

/// Functions that are called during a run, and its cancel token. By default there are none.
#[derive(Default)]
pub struct Hooks<'a> {
    pub(crate) progress: Option<&'a mut dyn FnMut(Progress)>,
    pub(crate) cancel: Option<&'a Cancel>,
    pub(crate) events: Option<Watch>,
    pub(crate) trace: Option<Reader>,
    pub(crate) trace_is_known: bool,
}

impl<'a> Hooks<'a> {
    /// Calls `told` with the progress at intervals.
    #[must_use]
    pub fn progress(mut self, told: &'a mut dyn FnMut(Progress)) -> Self {
        self.progress = Some(told);
        self
    }
    /// Ends the run when `token` is set.
    #[must_use]
    pub fn cancel(mut self, token: &'a Cancel) -> Self {
        self.cancel = Some(token);
        self
    }
    /// Calls `listener` for every event of the block layer, in order of time.
    #[must_use]
    pub fn events(mut self, listener: impl FnMut(&crate::Event) + 'static) -> Self {
        self.events = Some(Box::new(listener));
        self
    }
    /// Passes everything that can be observed in a run to `listener`: events, the workload's clock,
    /// and snapshots on request. ([`crate::Recording`] records a time window.)
    #[must_use]
    pub fn listen(mut self, listener: Watch) -> Self {
        self.events = Some(listener);
        self
    }
    /// Replays a trace that is already open. It is not compared with the hash in the specification,
    /// because a stream cannot be read twice.
    #[must_use]
    pub fn trace(mut self, reader: Reader) -> Self {
        self.trace = Some(reader);
        self
    }
}

/// Executes a run specification. The run is simulated, or it is a real run in the directory or on
/// the raw device in [`crate::DeviceSpec::spec`], with the active scheduler ([`crate::IN_FORCE`]).
///
/// A run that was cancelled or ended early also returns a record. It contains what was measured
/// until then, and the reason in [`Record::early`].
///
/// All errors in the specification, or the reason why the run failed. A panic, for example in an
/// external scheduler, is returned as an error.
pub fn run(spec: &RunSpec, hooks: Hooks<'_>) -> Result<Record, Error> {
    match spec.substrate {
        Substrate::Sim => guarded(spec, hooks, seekwell_sim::spec::run),
        Substrate::Host => crate::host::run(spec, hooks),
        Substrate::Serve => {
            let what = "`serve` provides a modelled disk to other programs (`seekwell serve`): \
                        such a run does not end by itself";
            Err(SpecErrors::single("substrate", what).into())
        }
    }
}

/// Executes the run with the function `by`, and converts a panic to an error.
pub(crate) fn guarded(
    spec: &RunSpec,
    hooks: Hooks<'_>,
    by: impl FnOnce(&RunSpec, SimHooks<'_>) -> Result<Record, RunFailure>,
) -> Result<Record, Error> {
    let Hooks {
        mut progress,
        cancel,
        events,
        trace,
        trace_is_known,
    } = hooks;
    if cancel.is_some_and(Cancel::is_set) {
        return Err(Error::NotBegun);
    }
    let mut told = |done: u64, of: u64| {
        if let Some(p) = &mut progress {
            p(Progress { done, of });
        }
        !cancel.is_some_and(Cancel::is_set)
    };
    let hooks = SimHooks {
        progress: Some(&mut told),
        events,
        trace,
        trace_is_known,
    };
    // The run owns all its state, which is dropped after a panic. No inconsistent state remains.
    match catch_unwind(AssertUnwindSafe(|| by(spec, hooks))) {
        Ok(ran) => Ok(ran?),
        Err(panic) => Err(Error::Panicked(panic_message(&*panic))),
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no words").to_owned()
}
