//! The connection of `io.max` with the queue: it uses the queue's time and bios. Every bio passes
//! it first.
//!
//! A bio that comes too early is held, and its submitter continues. A worker submits the bio later,
//! under one plug, with the priority of the original submitter.

use super::MqQueue;
use super::iomax::{Held, IoMax, rules};
use super::submit::SubmitStep;
use seekwell_core::event::WHO;
use seekwell_core::{Action, Bio, Control, Device, Event, Flags, Instant, IoPrio, Op, TaskId};
use seekwell_sched::Scheduler;
use std::collections::BTreeMap;

/// Task number of the worker that submits held bios (`kthrotld`).
pub const KTHROTLD: TaskId = TaskId(0x7fff_ff00);
/// Number of bytes that are charged for a discard.
const DISCARD_BYTES: u64 = 512;

/// A bio before it is split, or the rest of a bio after a split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub bio: Bio,
    /// Whether earlier pieces of the bio have already continued.
    pub rest: bool,
    /// Whether the bio may continue with its first piece.
    pub asked: bool,
}

/// The `io.max` controller of a queue, and the bios that it holds.
#[derive(Debug, Default)]
pub(super) struct Limits {
    iomax: Option<Box<IoMax>>,
    fires: Option<(i64, Instant)>,
    held: BTreeMap<u64, Whole>,
    next: u64,
}

impl Limits {
    /// Returns whether any bio is checked.
    #[inline]
    pub fn on(&self) -> bool {
        self.iomax.as_ref().is_some_and(|m| m.on())
    }
    /// Returns the time of the controller's next event.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.fires.map(|f| f.1)
    }
}

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    fn jiffy(&self) -> i64 {
        self.cx.clock().jiffies(self.cx.now()) as i64
    }
    /// Returns the number of bios that `io.max` holds.
    pub fn held(&self) -> usize {
        self.limits.held.len()
    }
    fn with_limits<T>(&mut self, act: impl FnOnce(&mut IoMax, i64) -> T) -> Option<T> {
        let now = self.jiffy();
        let m = self.limits.iomax.as_mut()?;
        let done = act(m, now);
        let timer = m.timer();
        if timer != self.limits.fires.map(|f| f.0) {
            let clock = self.cx.clock();
            self.limits.fires = timer.map(|j| (j, clock.start_of(j as u64)));
        }
        Some(done)
    }

    /// Handles a control message about cgroups.
    pub(super) fn limits_told(&mut self, what: Control) {
        if let Control::IoMax(..) = what
            && self.limits.iomax.is_none()
        {
            let mut m = IoMax::new(self.cx.clock().hz);
            // Add the cgroups that were created before the controller.
            let made = self.cx.cgroups.iter();
            made.for_each(|(id, c)| m.made(*id, c.parent));
            self.limits.iomax = Some(Box::new(m));
            self.controlled = true;
        }
        self.with_limits(|m, now| match what {
            Control::IoMax(id, limits) => m.limit(id, limits, now),
            Control::CgroupNew(id, parent) => m.made(id, parent),
            Control::CgroupGone(id) => m.gone(id, now),
            _ => {}
        });
        self.submit_released();
    }

    /// Passes a bio, or the rest of a bio, to `io.max`. If `io.max` does not hold it, passes it to
    /// the queue in pieces.
    pub(super) fn whole(&mut self, task: TaskId, mut w: Whole) {
        loop {
            if !std::mem::take(&mut w.asked) && self.put_aside(&w) {
                return;
            }
            let max = self.largest_piece(&w.bio);
            let splits = matches!(w.bio.op, Op::Read | Op::Write) && w.bio.sectors.0 > max;
            if !splits {
                return self.act_one(task, SubmitStep::Bio(w.bio));
            }
            if !w.rest {
                self.will_be_split(&w.bio, max);
            }
            let piece = cut(&mut w.bio, max);
            w.rest = true;
            self.act_one(task, SubmitStep::Bio(piece));
            if self.sleepers.has(task) {
                return self.act_one(task, SubmitStep::Whole(w));
            }
        }
    }

    fn put_aside(&mut self, w: &Whole) -> bool {
        if !self.limits.on() {
            return false;
        }
        let bio = &w.bio;
        let asks = Held {
            id: self.limits.next,
            write: bio.op != Op::Read,
            bytes: match bio.op {
                _ if w.rest => None,
                Op::Discard => Some(DISCARD_BYTES),
                _ => Some(bio.sectors.bytes()),
            },
            passes: bio.flags.contains(Flags::META),
        };
        if self.with_limits(|m, now| m.ask(bio.cgroup, asks, now)) != Some(false) {
            return false;
        }
        self.limits.next += 1;
        let mut held = Whole { asked: true, ..*w };
        let prio = self.tasks.ioprio(bio.task);
        if held.bio.ioprio.is_none() && prio != IoPrio::NONE {
            held.bio.ioprio = Some(prio);
        }
        self.limits.held.insert(asks.id, held);
        let (at, cgroup) = (self.cx.now(), bio.cgroup);
        self.cx.log.push(|| Event {
            task: Some(bio.task),
            cgroup: Some(cgroup),
            rule: Some(rules::OVER),
            detail: format!(
                "cgroup {} is over its limit: the bio is held, {WHO} continues",
                cgroup.0
            ),
            ..Event::of_bio(at, Action::Why, bio)
        });
        true
    }

    /// Submits the bios that may continue. This is the work of the worker.
    fn submit_released(&mut self) {
        let Some(m) = self.limits.iomax.as_mut().filter(|m| m.has_released()) else {
            return;
        };
        let all: Vec<u64> = std::iter::from_fn(|| m.released()).collect();
        let at = self.cx.now();
        let n = all.len();
        self.cx.log.push(|| Event {
            rule: Some(rules::SENT_UP),
            detail: format!("{n} held bios are issued"),
            ..Event::new(at, Action::Why)
        });
        self.act_one(KTHROTLD, SubmitStep::Plug);
        for id in all {
            if let Some(mut w) = self.limits.held.remove(&id) {
                w.bio.task = KTHROTLD;
                self.act_one(KTHROTLD, SubmitStep::Whole(w));
            }
        }
        self.act_one(KTHROTLD, SubmitStep::Unplug);
    }
    /// Fires the controller's timers that are due.
    pub(super) fn limits_timer(&mut self, t: Instant) {
        if self.limits.deadline().is_some_and(|at| at <= t) {
            self.with_limits(IoMax::fire);
            self.submit_released();
        }
    }
}

/// Splits the first `sectors` sectors off a bio and returns them as a bio.
pub(super) fn cut(rest: &mut Bio, sectors: u32) -> Bio {
    let mut piece = *rest;
    piece.sectors = seekwell_core::Sectors(rest.sectors.0.min(sectors));
    rest.sector = piece.end();
    rest.sectors = seekwell_core::Sectors(rest.sectors.0 - piece.sectors.0);
    piece
}
