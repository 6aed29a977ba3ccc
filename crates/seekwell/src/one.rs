//! One run.

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

/// Why a run gave no record.
#[derive(Error, Debug)]
pub enum Error {
    /// The specification: everything that is wrong with it.
    #[error(transparent)]
    Spec(#[from] SpecErrors),
    /// The trace cannot be read, or not on: the message names it, with the place.
    #[error("{0}")]
    Trace(String),
    /// The run is worth nothing: what happened, and to whom.
    #[error("{0}")]
    Run(String),
    /// The program, or a scheduler, device or workload from outside, has a fault.
    #[error("a fault in the program: {0}; please report it with the specification of the run")]
    Panicked(String),
    /// It was cancelled before it began.
    #[error("not begun: cancelled")]
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

/// How far a run is: what is done, in a unit of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// So much is done.
    pub done: u64,
    /// Of so much; 0: nobody can tell.
    pub of: u64,
}

/// What somebody wants to see of a run while it goes on, and how he ends it. Nothing by default.
#[derive(Default)]
pub struct Hooks<'a> {
    pub(crate) progress: Option<&'a mut dyn FnMut(Progress)>,
    pub(crate) cancel: Option<&'a Cancel>,
    pub(crate) events: Option<Watch>,
    pub(crate) trace: Option<Reader>,
    pub(crate) trace_is_known: bool,
}

impl<'a> Hooks<'a> {
    /// Is told now and then how far the run is.
    #[must_use]
    pub fn progress(mut self, told: &'a mut dyn FnMut(Progress)) -> Self {
        self.progress = Some(told);
        self
    }
    /// Ends the run when the token says so.
    #[must_use]
    pub fn cancel(mut self, token: &'a Cancel) -> Self {
        self.cancel = Some(token);
        self
    }
    /// Sees every event of the block layer, in order of time.
    #[must_use]
    pub fn events(mut self, listener: impl FnMut(&crate::Event) + 'static) -> Self {
        self.events = Some(Box::new(listener));
        self
    }
    /// Hears everything that can be heard of a run: events, the workload's clock, snapshots where
    /// it wants them ([`crate::Recording`] writes a window down).
    #[must_use]
    pub fn listen(mut self, listener: Watch) -> Self {
        self.events = Some(listener);
        self
    }
    /// Replays a trace that is open already, without asking whether it is the one that is meant: of
    /// a stream there is no second reading.
    #[must_use]
    pub fn trace(mut self, reader: Reader) -> Self {
        self.trace = Some(reader);
        self
    }
}

/// Runs a specification: simulated, or for real in the directory (or reading the raw device) that
/// [`crate::DeviceSpec::spec`] names, with the scheduler in force there ([`crate::IN_FORCE`]).
///
/// A run that was cancelled or ended early in another way gives its record,
/// too, with what was measured and [`Record::early`].
///
/// # Errors
/// Everything that is wrong with the specification, or why the run is worth nothing. A panic, of a
/// scheduler from outside for instance, is an error of this run and of nothing else.
pub fn run(spec: &RunSpec, hooks: Hooks<'_>) -> Result<Record, Error> {
    match spec.substrate {
        Substrate::Sim => guarded(spec, hooks, seekwell_sim::spec::run),
        Substrate::Host => crate::host::run(spec, hooks),
        Substrate::Serve => {
            let what = "`serve` puts a modelled disk under programs that somebody else runs \
                        (`seekwell serve`): such a run has no end of its own";
            Err(SpecErrors::one("substrate", what).into())
        }
    }
}

/// The same with what runs it.
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
    // All state of the run is its own and is dropped with it: nothing half done is seen later.
    match catch_unwind(AssertUnwindSafe(|| by(spec, hooks))) {
        Ok(ran) => Ok(ran?),
        Err(panic) => Err(Error::Panicked(said(&*panic))),
    }
}

/// The words of a panic.
pub(crate) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no words").to_owned()
}
