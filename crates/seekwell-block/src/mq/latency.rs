//! The connection of `io.latency` with the queue: it uses the queue's time and bios. This module
//! also defines the order of the controllers (gates) that a bio passes before it gets a tag.
//!
//! A bio holds its slot from this gate to its completion, even if the bio was merged into another
//! request.

use super::MqQueue;
use super::iolatency::{IoLatency, rules};
use super::jiffies::Moment;
use super::sleepers::Need;
use super::throttle::Passage;
use seekwell_core::event::WHO;
use seekwell_core::{
    Action, Bio, BioId, CgroupId, Control, Device, Event, Instant, IocId, Sector, TaskId,
};
use seekwell_sched::Scheduler;
use std::collections::BTreeMap;

/// A controller at which a bio may have to wait, between the merge attempt and the tag. Bios pass
/// the gates in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gate {
    /// `io.cost`.
    Cost,
    /// `io.latency`.
    Latency,
    /// Writeback throttling.
    Writeback,
}

/// The `io.latency` controller of a queue. It exists when a cgroup has had a target.
#[derive(Debug, Default)]
pub(super) struct Latency {
    is: Option<Box<IoLatency>>,
    fires: Option<(i64, Instant)>,
    /// Bios that hold slots, and their submission times. The pieces of a split bio have the same
    /// id.
    under_way: BTreeMap<(BioId, Sector), Vec<(CgroupId, Instant)>>,
}

impl Latency {
    fn on(&self) -> bool {
        self.is.as_ref().is_some_and(|l| l.on())
    }
    /// Returns the time of the controller's next event.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.fires.map(|f| f.1)
    }
    /// Returns whether a sleeping task may continue.
    #[inline]
    pub fn has_granted(&self) -> bool {
        self.is.as_ref().is_some_and(|l| l.has_granted())
    }
}

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// Returns the `io.latency` controller, if a cgroup has had a target.
    pub fn io_latency(&self) -> Option<&IoLatency> {
        self.latency.is.as_deref()
    }
    fn with_latency<T>(&mut self, act: impl FnOnce(&mut IoLatency, Moment) -> T) -> Option<T> {
        let (clock, now) = (self.cx.clock(), self.cx.now());
        let l = self.latency.is.as_mut()?;
        let jiffy = clock.jiffies(now) as i64;
        let done = act(l, Moment { ns: now.0, jiffy });
        let timer = l.timer();
        if timer != self.latency.fires.map(|f| f.0) {
            self.latency.fires = timer.map(|j| (j, clock.start_of(j as u64)));
        }
        Some(done)
    }

    /// Handles a control message about cgroups.
    pub(super) fn latency_told(&mut self, what: Control) {
        if let Control::IoLatency(..) = what
            && self.latency.is.is_none()
        {
            let hz = self.cx.clock().hz;
            let rotational = self.dev.facts().rotational;
            let mut l = IoLatency::new(hz, self.cx.queue.nr_requests, rotational);
            // Add the cgroups that were created before the controller.
            let made = self.cx.cgroups.iter();
            made.for_each(|(id, c)| l.made(*id, c.parent));
            self.latency.is = Some(Box::new(l));
            self.controlled = true;
        }
        self.with_latency(|l, now| match what {
            Control::IoLatency(id, target_us) => l.set_target(id, target_us, now),
            Control::CgroupNew(id, parent) => l.made(id, parent),
            Control::CgroupGone(id) => l.gone(id, now),
            _ => {}
        });
    }
    /// Handles a change of `nr_requests`.
    pub(super) fn latency_depth(&mut self) {
        let n = self.cx.queue.nr_requests;
        self.with_latency(|l, _| l.depth_changed(n));
    }

    /// Passes a bio through the gates, starting at `from`. The bio then gets a tag, or its task
    /// sleeps at one of the gates.
    pub(super) fn pass(&mut self, bio: &Bio, ioc: Option<IocId>, arrived: Instant, from: Gate) {
        if from == Gate::Cost && !self.cost_lets(bio) {
            return self.sleep(bio, arrived, Need::Slot(Gate::Cost), None);
        }
        if from != Gate::Writeback && !self.latency_lets(bio, arrived) {
            return self.sleep(bio, arrived, Need::Slot(Gate::Latency), None);
        }
        match self.throttled(bio) {
            Passage::Goes(slot) => self.get_tag(bio, ioc, arrived, slot),
            Passage::Sleeps => self.sleep(bio, arrived, Need::Slot(Gate::Writeback), None),
        }
    }
    fn latency_lets(&mut self, bio: &Bio, arrived: Instant) -> bool {
        if !self.latency.on() || bio.cgroup == CgroupId::ROOT {
            return true;
        }
        let key = (bio.id, bio.sector);
        let slots = self.latency.under_way.entry(key).or_default();
        slots.push((bio.cgroup, arrived));
        let (task, cgroup) = (bio.task, bio.cgroup);
        let lets = self.with_latency(|l, now| l.ask(u64::from(task.0), cgroup, now));
        if lets != Some(false) {
            return true;
        }
        let (limit, used) = self.io_latency().map_or((None, 0), |l| l.depth(cgroup));
        let (at, limit) = (self.cx.now(), limit.unwrap_or(0));
        self.cx.log.push(|| Event {
            task: Some(task),
            cgroup: Some(cgroup),
            rule: Some(rules::HELD),
            detail: format!("{used} in progress, {limit} allowed: {WHO} sleeps"),
            ..Event::of_bio(at, Action::Why, bio)
        });
        false
    }
    /// Returns the next task that has got its slots.
    pub(super) fn next_with_depth(&mut self) -> Option<TaskId> {
        let task = TaskId(self.latency.is.as_mut()?.granted()? as u32);
        self.reason(rules::LET_GO, || (Some(task), format!("{WHO} continues")));
        Some(task)
    }
    /// Handles the completion of a bio.
    pub(super) fn latency_done(&mut self, bio: &Bio) {
        if self.latency.under_way.is_empty() {
            return;
        }
        let key = (bio.id, bio.sector);
        let Some(slots) = self.latency.under_way.get_mut(&key) else {
            return;
        };
        let slot = slots.pop();
        if slots.is_empty() {
            self.latency.under_way.remove(&key);
        }
        if let Some((cgroup, submitted)) = slot {
            self.with_latency(|l, now| l.done(cgroup, submitted.0, now));
        }
    }
    /// Fires the controller's timer if it is due.
    pub(super) fn latency_timer(&mut self, t: Instant) {
        if self.latency.deadline().is_some_and(|at| at <= t) {
            self.with_latency(IoLatency::fire);
        }
    }
}
