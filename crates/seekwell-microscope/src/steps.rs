//! Stores the steps of a run. A waiting scheduler may be called every few milliseconds and give the
//! same reason each time. Only the first few equal steps are stored and the others are counted, so
//! that a long wait does not fill the memory.

use super::Step;
use seekwell_core::{Action, BioId, Event, Instant};

/// Number of equal successive steps that are stored.
const KEPT: usize = 4;

/// Equal successive steps that are counted but not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// Number of these steps.
    pub times: u64,
    /// Time of the last of these steps.
    pub until: Instant,
}

/// Adds steps to a list, without storing repeated ones.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    /// Index of the first event of the last stored step.
    last: usize,
    /// Number of equal successive steps until now.
    equal: usize,
}

/// Returns whether two steps have the same reasons, for the same queue in the same state.
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
    /// Adds the events of one step. `state` writes the scheduler's state after the step.
    pub(crate) fn take(
        &mut self,
        all: &mut Vec<Step>,
        taken: Vec<(Event, Vec<BioId>)>,
        state: impl Fn(&mut String),
    ) {
        let last = taken.len().saturating_sub(1);
        let steps = taken.into_iter().enumerate();
        let steps = steps.map(|(i, (event, bios))| Step::new(event, bios, i == last, &state));
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
    fn equal_consecutive_reasons_are_counted() {
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
        // Events that are not reasons are always stored.
        for i in 0..10 {
            keeper.add(&mut all, vec![step(2000 + i, Action::Timer, "")]);
        }
        assert_eq!(all.len(), KEPT + 12);
    }
}
