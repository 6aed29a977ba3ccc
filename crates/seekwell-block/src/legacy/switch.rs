//! A switch of the elevator while requests are queued.
//!
//! During a switch, new requests get no elevator data. They are queued first come, first served.
//! The old elevator is drained into the dispatch list. Every 10 ms, the layer checks whether a
//! request with elevator data is left. If none is left, the new elevator takes over, with its
//! default tunables.

use super::LegacyQueue;
use seekwell_core::{Device, Instant, Nanos, RqId};
use seekwell_sched::cx::TIMER_SLOTS;
use seekwell_sched::{Cx, Scheduler};

const POLL: Nanos = Nanos::from_ms(10);

/// A function that builds an elevator for a queue.
type Maker<S> = Box<dyn FnOnce(&Cx) -> Box<S> + Send>;

/// A switch in progress.
pub struct Switch<S: ?Sized> {
    make: Maker<S>,
    hash: bool,
    pub(super) poll_at: Instant,
}

impl<S: Scheduler + ?Sized, D: Device> LegacyQueue<S, D> {
    /// Starts a switch. `hash`: the layer keeps a hash of end sectors for the new elevator.
    pub fn switch(
        &mut self,
        now: Instant,
        hash: bool,
        make: impl FnOnce(&Cx) -> Box<S> + Send + 'static,
    ) {
        self.cx.set_now(now);
        self.force_drain();
        self.switching = Some(Switch {
            make: Box::new(make),
            hash,
            poll_at: now,
        });
        self.run();
        self.poll_switch();
        self.settle();
    }
    /// Returns whether a switch is in progress.
    pub fn switching(&self) -> bool {
        self.switching.is_some()
    }

    pub(super) fn poll_switch(&mut self) {
        let now = self.cx.now();
        match &mut self.switching {
            Some(s) if s.poll_at <= now => s.poll_at = now + POLL,
            _ => return,
        }
        self.force_drain();
        self.run();
        let plugged = |i: RqId| self.plugs.iter().any(|p| p.rqs.contains(&i));
        if self.cx.rqs.iter().any(|(i, r)| r.elv && !plugged(i)) {
            return;
        }
        // Requests in plugs lose their elevator data and bypass the elevator.
        let held: Vec<RqId> = self
            .plugs
            .iter()
            .flat_map(|p| p.rqs.iter().copied())
            .collect();
        for rq in held {
            self.orphan(rq);
        }
        let Some(s) = self.switching.take() else {
            return;
        };
        for slot in 0..TIMER_SLOTS {
            self.cx.disarm(slot as u8);
        }
        self.cx.take_kick();
        self.cx.merge = Default::default();
        self.tasks.forget_all();
        self.opts.hash = s.hash;
        self.sched = (s.make)(&self.cx);
        self.run();
    }

    /// Removes the elevator data of a request.
    pub(super) fn orphan(&mut self, rq: RqId) {
        if std::mem::replace(&mut self.cx.rqs[rq].elv, false) {
            *self.sequenced.at(rq.idx()) = false;
            self.sched.finish(&mut self.cx, rq);
        }
    }
}
