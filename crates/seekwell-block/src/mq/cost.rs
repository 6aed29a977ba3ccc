//! The connection of `io.cost` with the queue: it uses the queue's time, bios and requests.

use super::MqQueue;
use super::iocost::{Asks, IoCost, Paid, rules};
use super::jiffies::Moment;
use seekwell_core::event::WHO;
use seekwell_core::{
    Action, Bio, BioId, CgroupId, Control, Device, Event, Instant, Nanos, Op, RqId, Sector, TaskId,
};
use seekwell_sched::Scheduler;
use std::collections::BTreeMap;

/// The `io.cost` controller of a queue. It exists when one of its files was written.
#[derive(Debug, Default)]
pub(super) struct Cost {
    is: Option<Box<IoCost>>,
    period_ends: Option<(i64, Instant)>,
    wakes: Option<Instant>,
    /// Bios that have paid: the payment and its time. The pieces of a split bio have the same id.
    under_way: BTreeMap<(BioId, Sector), (CgroupId, Paid, Instant)>,
}

impl Cost {
    #[inline]
    fn on(&self) -> bool {
        self.is.as_ref().is_some_and(|c| c.on())
    }
    /// Returns the time of the controller's next event.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        match (self.period_ends, self.wakes) {
            (Some((_, ends)), Some(wakes)) => Some(ends.min(wakes)),
            (Some((_, ends)), None) => Some(ends),
            (None, wakes) => wakes,
        }
    }
    /// Returns whether a sleeping task may continue.
    #[inline]
    pub fn has_granted(&self) -> bool {
        self.is.as_ref().is_some_and(|c| c.has_granted())
    }
}

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// Returns the `io.cost` controller, if one of its files was written.
    pub fn io_cost(&self) -> Option<&IoCost> {
        self.cost.is.as_deref()
    }
    fn with_cost<T>(&mut self, act: impl FnOnce(&mut IoCost, Moment) -> T) -> Option<T> {
        let (clock, now) = (self.cx.clock(), self.cx.now());
        let c = self.cost.is.as_mut()?;
        let jiffy = clock.jiffies(now) as i64;
        let done = act(c, Moment { ns: now.0, jiffy });
        let timer = c.timer();
        if timer != self.cost.period_ends.map(|f| f.0) {
            self.cost.period_ends = timer.map(|j| (j, clock.start_of(j as u64)));
        }
        // The microseconds of the controller count from the start of the machine, as `now` does.
        self.cost.wakes = c.wakes_us().map(|us| Instant(us * 1000));
        Some(done)
    }

    /// Handles a control message about cgroups.
    pub(super) fn cost_told(&mut self, what: Control) {
        let writes = matches!(
            what,
            Control::IoCostQos(_) | Control::IoCostModel(_) | Control::IoWeight(..)
        );
        if writes && self.cost.is.is_none() {
            let rotational = self.dev.facts().rotational;
            let mut c = IoCost::new(self.cx.clock().hz, rotational, self.driver.depth());
            // Add the cgroups that were created before the controller.
            let made = self.cx.cgroups.iter();
            made.for_each(|(id, g)| c.made(*id, g.parent));
            self.cost.is = Some(Box::new(c));
            self.controlled = true;
        }
        self.with_cost(|c, _| match what {
            Control::IoCostQos(qos) => c.set_qos(qos),
            Control::IoCostModel(model) => c.set_model(model),
            Control::IoWeight(id, weight) => c.set_weight(id, weight),
            Control::CgroupNew(id, parent) => c.made(id, parent),
            Control::CgroupGone(id) => c.gone(id),
            _ => {}
        });
        if let Control::IoCostQos(qos) = what {
            self.shares_by_cost(qos.enable);
        }
    }

    fn asks(bio: &Bio) -> Option<Asks> {
        let write = match bio.op {
            Op::Read => false,
            Op::Write => true,
            Op::Flush | Op::Discard | Op::WriteZeroes => return None,
        };
        let (sector, sectors) = (bio.sector.0, bio.sectors.0);
        let id = u64::from(bio.task.0);
        (sectors > 0 && bio.cgroup != CgroupId::ROOT).then_some(Asks {
            id,
            write,
            sector,
            sectors,
        })
    }
    /// Asks for budget for a bio. Returns false if its task sleeps.
    pub(super) fn cost_lets(&mut self, bio: &Bio) -> bool {
        if !self.cost.on() {
            return true;
        }
        let Some(asks) = Self::asks(bio) else {
            return true;
        };
        let cgroup = bio.cgroup;
        if let Some(paid) = self.with_cost(|c, now| c.ask(cgroup, asks, now)).flatten() {
            self.has_paid(bio, paid);
            return true;
        }
        let at = self.cx.now();
        self.cx.log.push(|| Event {
            task: Some(bio.task),
            cgroup: Some(cgroup),
            rule: Some(rules::HELD),
            detail: format!("cgroup {} has no budget left: {WHO} sleeps", cgroup.0),
            ..Event::of_bio(at, Action::Why, bio)
        });
        false
    }
    /// Records that a bio has paid.
    pub(super) fn has_paid(&mut self, bio: &Bio, paid: Paid) {
        let now = self.cx.now();
        let key = (bio.id, bio.sector);
        self.cost.under_way.insert(key, (bio.cgroup, paid, now));
    }
    /// Charges a bio that was merged. It pays without waiting.
    pub(super) fn cost_merged(&mut self, bio: &Bio) {
        if !self.cost.on() {
            return;
        }
        if let Some(asks) = Self::asks(bio)
            && let Some(paid) = self.with_cost(|c, _| c.merged(bio.cgroup, asks))
        {
            self.has_paid(bio, paid);
        }
    }
    /// Returns the next task that has paid, and its payment.
    pub(super) fn next_that_paid(&mut self) -> Option<(TaskId, Paid)> {
        let (id, paid) = self.cost.is.as_mut()?.granted()?;
        let task = TaskId(id as u32);
        self.reason(rules::LET_GO, || (Some(task), format!("{WHO} continues")));
        Some((task, paid))
    }
    /// Handles the completion of a request with these bios.
    pub(super) fn cost_done(&mut self, rq: RqId, bios: &[Bio]) {
        if !self.cost.on() && self.cost.under_way.is_empty() {
            return;
        }
        let now = self.cx.now();
        let r = &self.cx.rqs[rq];
        let (write, sectors, start) = (r.op != Op::Read, r.sectors.0, r.start);
        let data = matches!(r.op, Op::Read | Op::Write) && sectors > 0;
        let mut passed = None;
        for bio in bios {
            if let Some((cgroup, paid, at)) = self.cost.under_way.remove(&(bio.id, bio.sector)) {
                passed = passed.or(Some(at));
                self.with_cost(|c, _| c.done(cgroup, paid));
            }
        }
        if data && self.cost.on() {
            let passed = passed.unwrap_or(start);
            let since = |t: Instant| if t < now { now.since(t) } else { Nanos::ZERO };
            let rq_wait_ns = since(passed).0.saturating_sub(since(start).0);
            let latency_ns = since(passed).0;
            self.with_cost(|c, _| c.completed(write, sectors, latency_ns, rq_wait_ns));
        }
    }
    /// Fires the controller's timers that are due.
    pub(super) fn cost_timers(&mut self, t: Instant) {
        if self.cost.wakes.is_some_and(|at| at <= t) {
            self.with_cost(IoCost::wake);
        }
        if self.cost.period_ends.is_some_and(|p| p.1 <= t) {
            let Some(r) = self.with_cost(IoCost::fire) else {
                return;
            };
            let [before, after] = r.rates.map(|n| n as f64 / 1374.38);
            if r.rates[0] != r.rates[1] {
                self.reason(rules::CLOCK, || {
                    let text =
                        format!("the device's clock runs at {after:.0} % after {before:.0} %");
                    (None, text)
                });
            }
        }
    }
}
