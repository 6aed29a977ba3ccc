//! The steps of a run. A waiting scheduler may be called every few milliseconds and give the same
//! reason each time. Such a step is kept a few times and then only counted, so that a long wait
//! takes no more memory than a short one.

use super::Step;
use seekwell_core::{Action, BioId, Event, Instant};

/// How many equal steps in a row are kept.
const KEPT: usize = 4;

/// Repetitions of a step that are counted and not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// How many times.
    pub times: u64,
    /// Time of the last repetition.
    pub until: Instant,
}

/// Adds steps to those of a run.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    /// Index where the last group begins.
    last: usize,
    /// How many equal groups follow each other.
    equal: usize,
}

/// Whether two groups give the same reasons for the same queue in the same state.
fn same(kept: &[Step], new: &[Step]) -> bool {
    let alike = |(a, b): (&Step, &Step)| {
        let reasons = a.event.action == Action::Why && b.event.action == Action::Why;
        let (x, y) = (&a.event, &b.event);
        reasons
            && (x.detail == y.detail && x.rule_id() == y.rule_id())
            && (x.task, x.other, x.cgroup, x.queue) == (y.task, y.other, y.cgroup, y.queue)
            && (x.rq, x.bio, x.member) == (y.rq, y.bio, y.member)
            && (&a.bios, &a.state) == (&b.bios, &b.state)
    };
    kept.len() == new.len() && kept.iter().zip(new).all(alike)
}

impl Keeper {
    /// Adds the events of one moment; `state` writes the scheduler's state after them.
    pub(crate) fn take(
        &mut self,
        all: &mut Vec<Step>,
        taken: Vec<(Event, Vec<BioId>)>,
        state: impl Fn(&mut String),
    ) {
        let last = taken.len().saturating_sub(1);
        let steps = taken.into_iter().enumerate();
        let steps = steps.map(|(i, (event, bios))| Step::of(event, bios, i == last, &state));
        self.add(all, steps.collect());
    }
    fn add(&mut self, all: &mut Vec<Step>, group: Vec<Step>) {
        let Some(until) = group.last().map(|s| s.event.at) else {
            return;
        };
        self.equal = match same(&all[self.last..], &group) {
            true => self.equal + 1,
            false => 1,
        };
        if self.equal > KEPT {
            if let Some(end) = all.last_mut() {
                let times = end.again.map_or(0, |a| a.times) + 1;
                end.again = Some(Again { times, until });
            }
            return;
        }
        self.last = all.len();
        all.extend(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(at_ms: u64, action: Action, detail: &str) -> Step {
        let event = Event {
            detail: detail.to_owned(),
            ..Event::new(Instant::at_us(at_ms * 1000), action)
        };
        Step {
            event,
            bios: Vec::new(),
            state: Some("busy 1".to_owned()),
            again: None,
        }
    }

    #[test]
    fn equal_reasons_in_a_row_are_counted_and_others_kept() {
        let (mut keeper, mut all) = (Keeper::default(), Vec::new());
        for i in 0..1000 {
            keeper.add(&mut all, vec![step(i, Action::Why, "waits")]);
        }
        assert_eq!(all.len(), KEPT);
        let again = Again {
            times: 1000 - KEPT as u64,
            until: Instant::at_us(999_000),
        };
        assert_eq!(all[KEPT - 1].again, Some(again));
        keeper.add(&mut all, vec![step(1000, Action::Why, "waits for another")]);
        keeper.add(&mut all, vec![step(1001, Action::Why, "waits")]);
        assert_eq!(all.len(), KEPT + 2, "a new row begins");
        // Events that are not reasons are all kept.
        for i in 0..10 {
            keeper.add(&mut all, vec![step(2000 + i, Action::Timer, "")]);
        }
        assert_eq!(all.len(), KEPT + 12);
    }
}
