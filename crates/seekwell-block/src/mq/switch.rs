//! Switching the scheduler: the queue is frozen (submitters sleep), the requests inside complete,
//! then the new scheduler takes over with its defaults.

use super::MqQueue;
use seekwell_core::{Device, Instant};
use seekwell_sched::cx::TIMER_SLOTS;
use seekwell_sched::{Cx, Scheduler};

/// Builds a scheduler for a queue.
type Maker<S> = Box<dyn FnOnce(&Cx) -> Box<S> + Send>;

/// A switch in progress.
pub(super) struct Switch<S: ?Sized> {
    make: Maker<S>,
    hash: bool,
}

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// Starts a switch. It ends when the last request inside has completed, including plugs. A
    /// second switch before that replaces the first. `hash`: the layer searches the end-sector hash
    /// for the new scheduler.
    pub fn switch(
        &mut self,
        now: Instant,
        hash: bool,
        make: impl FnOnce(&Cx) -> Box<S> + Send + 'static,
    ) {
        self.cx.set_now(now);
        self.switching = Some(Switch {
            make: Box::new(make),
            hash,
        });
        (0..self.hctx.len()).for_each(|h| self.run_later(h));
        self.wake_sleepers();
        self.keep();
    }
    /// Whether a switch is in progress.
    pub fn switching(&self) -> bool {
        self.switching.is_some()
    }

    /// Ends a switch if no request is inside.
    pub(super) fn poll_switch(&mut self) {
        if !self.cx.rqs.is_empty() {
            return;
        }
        let Some(s) = self.switching.take() else {
            return;
        };
        for slot in 0..TIMER_SLOTS {
            self.cx.disarm(slot as u8);
        }
        self.cx.take_kick();
        self.cx.take_run();
        self.cx.merge = Default::default();
        self.tasks.forget_all();
        for h in &mut self.hctx {
            (h.restart, h.rerun_at, h.busy) = (false, None, 0);
        }
        self.hash = s.hash;
        // The new scheduler finds a queue with the default depth for schedulers.
        let depth = self.driver.depth().max(1);
        self.cx.queue.nr_requests = super::SCHED_TAGS.0 * depth.min(super::SCHED_TAGS.1);
        let wanted_wbt = self.sched.wants_wbt();
        self.sched = (s.make)(&self.cx);
        self.bypass = self.sched.bypass();
        self.size_tags();
        self.scheduler_changed(wanted_wbt);
    }
}
