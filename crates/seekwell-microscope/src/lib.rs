//! Cases: a request list, stated conventions, and what a scheduler did with it.
//!
//! One format serves the worked examples, `seekwell explain` and recorded decision logs: JSON lines
//! with one case per line (zstd and gzip are detected), or a five-line CSV for a first look.

pub mod agree;
pub mod format;
pub mod legacy;
pub mod mq;
mod read;
pub mod rounds;
pub mod serial;
mod steps;
mod streams;

pub use agree::Agreement;
pub use format::{Case, CaseError, CaseInput, Harness, What, read_cases};
pub use steps::Again;

use seekwell_core::{Action, BioId, Event, Instant};

/// When the driver took a request, and its bios in ascending sector order.
pub type Dispatched = (Instant, Vec<BioId>);

/// Result of running a case.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Dispatches in order.
    pub dispatch: Vec<Dispatched>,
    /// When scheduler timers fired.
    pub timers: Vec<Instant>,
    /// Bios never dispatched.
    pub left: Vec<BioId>,
    /// Every event with the scheduler's reasons, on request.
    pub events: Vec<Step>,
}

impl Outcome {
    /// Keeps the events of a step. With a `keeper`, the steps are kept too; `state` writes the
    /// scheduler's state after the step.
    fn keep(
        &mut self,
        taken: Vec<(Event, Vec<BioId>)>,
        keeper: Option<&mut steps::Keeper>,
        state: impl Fn(&mut String),
    ) {
        for (event, bios) in &taken {
            match event.action {
                Action::Issue => self.dispatch.push((event.at, bios.clone())),
                Action::Timer => self.timers.push(event.at),
                _ => {}
            }
        }
        if let Some(keeper) = keeper {
            keeper.take(&mut self.events, taken, state);
        }
    }
}

/// An event, and the scheduler's state after the step it belongs to.
#[derive(Clone, Debug)]
pub struct Step {
    /// What happened.
    pub event: Event,
    /// Bios of the request at that time; for an event about a bio, that bio.
    pub bios: Vec<BioId>,
    /// The scheduler's state, on the last event of a step.
    pub state: Option<String>,
    /// Repetitions of this step, on its last event.
    pub again: Option<Again>,
}

impl Step {
    fn of(event: Event, bios: Vec<BioId>, last: bool, state: impl Fn(&mut String)) -> Self {
        let state = last.then(|| {
            let mut s = String::new();
            state(&mut s);
            s
        });
        Step {
            event,
            bios,
            state,
            again: None,
        }
    }
}

/// Runs a case under its harness. `steps`: keep events and states.
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
