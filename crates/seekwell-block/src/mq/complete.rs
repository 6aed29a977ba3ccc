//! Completion of requests: the bios end, the scheduler is notified, and the tags are freed. The
//! queue runs again if the scheduler requested it.

use super::{MqQueue, OWN_BIO};
use seekwell_core::{Action, BioDone, Device, Instant, Op, RqId, State};
use seekwell_sched::Scheduler;

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// Processes the completions of the device up to time `t`. Returns false if there were none.
    pub(super) fn completions(&mut self, t: Instant, out: &mut Vec<BioDone>) -> bool {
        self.dev.advance(t, &mut self.done);
        if self.done.is_empty() {
            return false;
        }
        let mut done = std::mem::take(&mut self.done);
        for d in done.drain(..) {
            self.complete(RqId(d.id), d.error, out);
        }
        self.done = done;
        true
    }

    /// Handles a request that has left the device.
    pub(super) fn left_device(&mut self, rq: RqId) {
        let r = &self.cx.rqs[rq];
        self.in_flight -= 1;
        self.budget_used -= 1;
        self.deferred = false;
        self.hctx[r.hctx as usize].in_flight -= 1;
        if r.op == Op::Flush {
            self.flushing = false;
        }
        self.cx.in_driver -= u32::from(r.elv);
        self.acct.stats.set_depth(self.cx.now(), self.in_flight);
    }

    fn complete(&mut self, rq: RqId, error: bool, out: &mut Vec<BioDone>) {
        let r = &self.cx.rqs[rq];
        let (h, elv, flush) = (r.hctx as usize, r.elv, r.op == Op::Flush);
        // A drive interrupts the CPU whose hardware queue the command used.
        self.current = h;
        self.left_device(rq);
        let own = flush && self.cx.rqs.first_bio(rq).id == OWN_BIO;
        let sequenced = self.tags[rq].sequenced;
        self.wbt_completed(rq);
        if !own && !sequenced {
            self.end_bios(rq, error, out);
        }
        if elv {
            self.sched.completed(&mut self.cx, rq);
            self.after_callback();
        }
        if own {
            self.cx.event(Action::Complete, rq);
            self.free_request(rq);
            self.flush_done(h);
        } else if sequenced {
            if !self.bypass {
                self.give_driver_tag(rq);
            }
            self.cx.rqs[rq].state = State::Plugged;
            self.cx.event(Action::Part, rq);
            self.data_done(h, rq);
        } else {
            self.free_request(rq);
        }
        if std::mem::take(&mut self.hctx[h].restart) {
            self.run_later(h);
        }
        if self.driver.has_budget() {
            (0..self.hctx.len()).for_each(|h| self.run_later(h));
        }
    }

    /// Completes the bios of a request. A split bio completes with its last piece.
    pub(super) fn end_bios(&mut self, rq: RqId, error: bool, out: &mut Vec<BioDone>) {
        let at = self.cx.now();
        self.cx.event(Action::Complete, rq);
        if self.io_latency().is_some() || self.io_cost().is_some() {
            let bios: Vec<_> = self.cx.rqs.bios(rq).map(|b| *b.0).collect();
            self.cost_done(rq, &bios);
            bios.iter().for_each(|b| self.latency_done(b));
        }
        for (bio, _) in self.cx.rqs.bios(rq) {
            let mut error = error;
            if !self.splits.is_empty()
                && let Some(rest) = self.splits.get_mut(&bio.id)
            {
                rest.0 -= 1;
                rest.1 |= error;
                if rest.0 > 0 {
                    continue;
                }
                error = rest.1;
                self.splits.remove(&bio.id);
            }
            out.push(BioDone {
                id: bio.id,
                at,
                error,
            });
        }
    }

    /// Frees the scheduler's data, the tags and the slab entry of a request.
    pub(super) fn free_request(&mut self, rq: RqId) {
        let (ioc, elv, h) = {
            let r = &self.cx.rqs[rq];
            (r.ioc, r.elv, r.hctx as usize)
        };
        if elv {
            self.sched.finish(&mut self.cx, rq);
        }
        self.give_driver_tag(rq);
        let tags = std::mem::take(&mut self.tags[rq]);
        if tags.sched {
            self.hctx[h].sched_tags.give(tags.limit);
        }
        if let Some(class) = tags.slot {
            self.slot_back(class);
        }
        self.cx.rqs.free(rq);
        let c = self.cx.iocs.get_mut(ioc);
        c.requests -= 1;
        if !c.alive {
            self.tasks
                .release_if_unused(&mut self.cx, &mut *self.sched, ioc);
        }
        self.after_callback();
    }
}
