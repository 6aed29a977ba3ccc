//! The functions that are called during a run, and the reason why a run failed.

use crate::cancel::Cancel;
use seekwell_core::spec::SpecErrors;
use seekwell_sim::spec::RunFailure;
use seekwell_sim::world::Watch;
use seekwell_sim::{ReplayError, RunError};
use seekwell_trace::Reader;
use std::any::Any;
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

/// Returns the message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no words").to_owned()
}
