//! A switch of the scheduler. The queue is frozen, so submitters sleep. When all requests in the
//! queue have completed, the new scheduler takes over, with its default tunables.

use super::MqQueue;
use seekwell_core::{Device, Instant};
use seekwell_sched::cx::TIMER_SLOTS;
use seekwell_sched::{Cx, Scheduler};

/// A function that builds a scheduler for a queue.
type Maker<S> = Box<dyn FnOnce(&Cx) -> Box<S> + Send>;

/// A switch in progress.
pub(super) struct Switch<S: ?Sized> {
    make: Maker<S>,
    hash: bool,
}

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// Starts a switch to another scheduler. The switch ends when all requests of the queue have
    /// completed, including requests in plugs. If a switch is already in progress, only its target
    /// changes. `hash`: with the new scheduler, the layer searches the hash of end sectors for
    /// merges.
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
    /// Returns whether a switch is in progress.
    pub fn switching(&self) -> bool {
        self.switching.is_some()
    }

    /// Ends a switch if the queue has no requests.
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
        // As in the kernel, the new scheduler first gets the default depth.
        let depth = self.driver.depth().max(1);
        self.cx.queue.nr_requests = super::SCHED_TAGS.0 * depth.min(super::SCHED_TAGS.1);
        let wanted_wbt = self.sched.wants_wbt();
        self.sched = (s.make)(&self.cx);
        self.bypass = self.sched.bypass();
        self.size_tags();
        self.scheduler_changed(wanted_wbt);
    }
}
