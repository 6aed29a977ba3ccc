//! Completion of requests: the bios end, the elevator is notified, the request is freed, and the
//! queue runs again.

use super::LegacyQueue;
use super::run::OWN_BIO;
use crate::host::HostDriver;
use seekwell_core::{Action, BioDone, Device, Instant, RqId, State};
use seekwell_sched::Scheduler;

impl<S: Scheduler + ?Sized, D: Device> LegacyQueue<S, D> {
    pub(super) fn completions(&mut self, t: Instant, out: &mut Vec<BioDone>) {
        let mut done = std::mem::take(&mut self.done);
        self.dev.advance(t, &mut done);
        for d in &done {
            self.complete(RqId(d.id), d.error, out);
        }
        done.clear();
        // `done` contains requests that were stopped when all of their data were already on the
        // medium.
        if !self.done.is_empty() {
            done.append(&mut self.done);
        }
        self.done = done;
    }

    fn complete(&mut self, rq: RqId, error: bool, out: &mut Vec<BioDone>) {
        let now = self.cx.now();
        self.in_flight -= 1;
        if let HostDriver::Mmc(_) = self.host {
            self.mmc.completed();
        }
        self.acct.stats.set_depth(now, self.in_flight);
        if self.cx.rqs[rq].elv {
            self.end_bios(rq, error, out);
            self.cx.in_driver -= 1;
            self.sched.completed(&mut self.cx, rq);
            self.after_callback();
            self.free_request(rq);
        } else {
            self.complete_outside(rq, error, out);
        }
        self.run();
    }

    fn end_bios(&mut self, rq: RqId, error: bool, out: &mut Vec<BioDone>) {
        let at = self.cx.now();
        self.cx.event(Action::Complete, rq);
        let own = |b: &(&seekwell_core::Bio, Instant)| b.0.id.0 != OWN_BIO;
        out.extend(self.cx.rqs.bios(rq).filter(own).map(|b| BioDone {
            id: b.0.id,
            at,
            error,
        }));
    }

    /// Completes a request that was never in the elevator: a flush command, data of a flush
    /// sequence, or a barrier.
    #[cold]
    fn complete_outside(&mut self, rq: RqId, error: bool, out: &mut Vec<BioDone>) {
        let now = self.cx.now();
        let own = self.cx.rqs.first_bio(rq).id.0 == OWN_BIO;
        if own {
            self.cx.event(Action::Complete, rq);
        }
        if own && self.barrier.is_none() {
            self.free_request(rq);
            self.flush.flushed(now, &mut self.acts);
        } else if *self.sequenced.at(rq.idx()) {
            self.cx.rqs[rq].state = State::Plugged;
            self.cx.event(Action::Part, rq);
            self.flush.data_done(now, rq, &mut self.acts);
        } else if own {
            self.free_request(rq);
            self.barrier_completed(rq, true);
        } else if self.barrier.is_none()
            || !self.is_barrier_part(rq)
            || !self.barrier_completed(rq, false)
        {
            self.end_bios(rq, error, out);
            self.free_request(rq);
        }
        self.do_acts();
        self.kick_flush();
    }

    /// Frees the elevator's data, the pool entry and the slab entry of a request.
    pub(super) fn free_request(&mut self, rq: RqId) {
        let r = &self.cx.rqs[rq];
        let (ioc, elv) = (r.ioc, r.elv);
        let (write, sync) = (r.is_write(), r.sync);
        // A request that merging emptied has no bio, so it cannot be one of the layer's own
        // requests.
        let own = !elv && r.bios > 0 && self.cx.rqs.first_bio(rq).id.0 == OWN_BIO;
        if elv {
            self.sched.finish(&mut self.cx, rq);
        }
        self.cx.rqs.free(rq);
        let c = self.cx.iocs.get_mut(ioc);
        c.requests -= 1;
        if !c.alive {
            self.release_if_unused(ioc);
        }
        if own {
            return;
        }
        let p = self.pools.index(write, sync);
        if self.pools.give(p, self.cx.queue.nr_requests) {
            self.wake[p] += 1;
        }
    }
}
