//! Reports about a case: its steps with their reasons, and its agreement with a recording.

mod agreement;
mod legend;
mod rounds;
mod steps;

pub use agreement::{agreement, summary};
pub use legend::{legend, legends, tables};
pub use rounds::{round, rounds};
pub(crate) use steps::process;
pub use steps::{heading, steps};

use seekwell_core::{BioId, Flags, Instant, Op};
use seekwell_microscope::Dispatched;
use std::fmt::Write;

/// Returns the letter of an operation, as in case files.
pub fn letter(op: Op, flags: Flags) -> char {
    match op {
        Op::Read if flags.contains(Flags::PRIO) => 'P',
        Op::Read if flags.contains(Flags::META) => 'M',
        Op::Read if flags.contains(Flags::RAHEAD) => 'A',
        Op::Read => 'R',
        Op::Flush => 'F',
        Op::Discard => 'D',
        Op::WriteZeroes => 'Z',
        Op::Write if flags.contains(Flags::NOIDLE) => 'N',
        Op::Write if flags.contains(Flags::SYNC) => 'S',
        Op::Write => 'W',
    }
}

/// Returns the bios of a request, for example `3+4+7`.
pub fn names(bios: &[BioId]) -> String {
    let ids: Vec<_> = bios.iter().map(|b| b.0.to_string()).collect();
    ids.join("+")
}

/// Returns the decisions as `id,t_ns,event`: dispatches and timers in order of time. Further bios
/// of a request are `dispatch+`. Times are in ns since the start of the experiment.
pub fn csv(dispatch: &[Dispatched], timers: &[Instant]) -> String {
    let mut text = "id,t_ns,event\n".to_owned();
    let mut timers = timers.iter().peekable();
    // A timer that expires at the instant of a dispatch caused this dispatch, so the timer is
    // first.
    let mut due = |text: &mut String, until: Instant| {
        while let Some(t) = timers.next_if(|t| **t <= until) {
            let _ = writeln!(text, ",{},timer", t.since_start());
        }
    };
    for (t, bios) in dispatch {
        due(&mut text, *t);
        for (i, b) in bios.iter().enumerate() {
            let plus = if i > 0 { "+" } else { "" };
            let _ = writeln!(text, "{},{},dispatch{plus}", b.0, t.since_start());
        }
    }
    due(&mut text, Instant::FAR);
    text
}
