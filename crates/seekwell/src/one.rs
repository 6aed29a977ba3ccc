//! Executes one run.

use crate::cancel::Cancel;
use crate::hooks::{Error, Hooks, Progress, panic_message};
use seekwell_core::result::Record;
use seekwell_core::spec::{RunSpec, SpecErrors, Substrate};
use seekwell_sim::spec::{Hooks as SimHooks, RunFailure};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Executes a run specification. The run is simulated, or it is a real run in the directory or on
/// the raw device in [`crate::DeviceSpec::spec`], with the active scheduler ([`crate::IN_FORCE`]).
///
/// A run that was cancelled or ended early also returns a record. It contains what was measured
/// until then, and the reason in [`Record::early`].
///
/// # Errors
/// Returns all errors in the specification, or the reason why the run failed. A panic, for example
/// in an external scheduler, is returned as an error.
pub fn run(spec: &RunSpec, hooks: Hooks<'_>) -> Result<Record, Error> {
    match spec.substrate {
        Substrate::Sim => guarded(spec, hooks, seekwell_sim::spec::run),
        Substrate::Host => crate::host::run(spec, hooks),
        Substrate::Kernel => {
            let what = "a guest kernel is started by the program: `seekwell compare --substrate \
                        kernel`";
            Err(SpecErrors::single("substrate", what).into())
        }
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
