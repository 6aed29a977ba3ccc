//! Cases: a list of requests, conventions for simultaneous events, and the decisions of a
//! scheduler.
//!
//! Worked examples, `seekwell explain` and recorded decision logs use the same format. A file
//! contains JSON lines with one case per line (zstd and gzip are detected). Simple cases can also
//! be written as a CSV.

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
pub use format::{Case, CaseError, CaseInput, Harness, What};
pub use read::{open_plain, read_cases};
pub use steps::Again;

use seekwell_core::{Action, BioId, Event, Instant};

/// A dispatch: the time at which the driver took a request, and its bios by ascending sector.
pub type Dispatched = (Instant, Vec<BioId>);

/// Outcome of a case.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Dispatches in order of time.
    pub dispatch: Vec<Dispatched>,
    /// Times at which timers of the scheduler expired.
    pub timers: Vec<Instant>,
    /// Bios that were not dispatched.
    pub left: Vec<BioId>,
    /// All events with the scheduler's reasons; empty unless requested.
    pub events: Vec<Step>,
}

impl Outcome {
    /// Adds the events of a step. With a `keeper`, also stores the events themselves; `state`
    /// writes the scheduler's state after the step.
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

/// An event. The last event of a step also contains the scheduler's state.
#[derive(Clone, Debug)]
pub struct Step {
    /// The event.
    pub event: Event,
    /// The bio of the event, or the bios of its request at that time.
    pub bios: Vec<BioId>,
    /// State of the scheduler after the step; only in the last event of a step.
    pub state: Option<String>,
    /// Number of further equal steps that were not stored; only in the last event of a step.
    pub again: Option<Again>,
}

impl Step {
    fn new(event: Event, bios: Vec<BioId>, last: bool, state: impl Fn(&mut String)) -> Self {
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

/// Runs a case with its harness. `steps` requests events and states in the outcome.
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
