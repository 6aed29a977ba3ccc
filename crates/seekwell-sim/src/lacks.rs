//! The properties of requests that a scheduler uses and a trace lacks.

use crate::setup::Setup;
use seekwell_trace::{Format, Has};

/// The properties that at least one record of a trace has.
#[derive(Clone, Copy, Default)]
pub struct Known {
    /// Whether a record contained a process id.
    pub tasks: bool,
    /// Whether a record contained an I/O priority.
    pub prios: bool,
}

/// Schedulers that serve the I/O priorities of `ionice`.
const BY_PRIORITY: &[&str] = &["bfq", "cfq", "mq-deadline"];
/// Schedulers that serve synchronous writes before asynchronous ones.
const BY_SYNC: &[&str] = &["anticipatory", "bfq", "cfq", "kyber"];

/// Returns a warning if the scheduler uses properties of requests that the trace lacks.
pub fn lacks(setup: &Setup, format: Format, known: Known) -> Option<String> {
    let name = setup.scheduler.split('-').next().unwrap_or_default();
    let one_of = |all: &[&str]| all.contains(&name) || all.contains(&&*setup.scheduler);
    let mut missing = Vec::new();
    if setup.per_process() && !known.tasks {
        missing.push(
            "distinguishes processes, but this trace has no process ids: all I/O counts as that of \
             one process",
        );
    }
    // A trace without process ids comes from a place where priorities have no meaning.
    if one_of(BY_PRIORITY) && known.tasks && !known.prios {
        missing.push(
            "serves I/O priorities (ionice), but this trace has none: all processes count as equal",
        );
    }
    if one_of(BY_SYNC) && format.carries.flags == Has::No {
        missing.push(
            "distinguishes synchronous writes, but this format marks none: all writes count as \
             asynchronous",
        );
    }
    (!missing.is_empty()).then(|| format!("{} {}", setup.scheduler, missing.join("; it ")))
}
