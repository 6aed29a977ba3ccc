//! Cases: a request list, stated conventions, and what a scheduler made of it.
//!
//! One format serves the worked examples, `seekwell explain` and recorded decision logs: JSON
//! lines (zstd or gzip transparent), one case an object, or a five-line CSV for a first look.

pub mod agree;
pub mod format;
pub mod legacy;
pub mod mq;
mod read;
pub mod rounds;
pub mod serial;
mod streams;

pub use agree::Agreement;
pub use format::{Case, CaseError, CaseInput, Harness, What, read_cases};

use seekwell_core::{BioId, Event, Instant};

/// When the driver took a request, and its bios in ascending sector order.
pub type Dispatched = (Instant, Vec<BioId>);

/// What a run of a case gave.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// In order.
    pub dispatch: Vec<Dispatched>,
    /// When scheduler timers fired.
    pub timers: Vec<Instant>,
    /// Bios never dispatched.
    pub left: Vec<BioId>,
    /// Every event with the scheduler's reasons, if asked for.
    pub events: Vec<Step>,
}

/// An event, and the scheduler's state after the step it belongs to.
#[derive(Clone, Debug)]
pub struct Step {
    /// What happened.
    pub event: Event,
    /// Bios of the request concerned.
    pub bios: Vec<BioId>,
    /// The scheduler's state, on the last event of a step.
    pub state: Option<String>,
}

/// Runs a case under its harness. `steps`: keep events and states for printing.
pub fn run(case: &Case, steps: bool) -> Result<Outcome, CaseError> {
    let mut out = match case.harness()? {
        Harness::Legacy => legacy::run(case, steps),
        Harness::Serial => serial::run(case, None, steps),
        Harness::Mq => mq::run(case, steps),
        Harness::Drain(at) => serial::run(case, Some(at), steps),
    }?;
    case.cut(&mut out);
    Ok(out)
}
