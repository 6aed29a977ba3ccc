//! The run of a hardware queue. It issues first the requests on the dispatch list and then requests
//! from the scheduler, until the driver refuses one.

use super::{Hctx, MqQueue, RERUN};
use seekwell_core::{Accept, Action, Command, Device, Flags, Instant, Op, RqId, State};
use seekwell_sched::{Insert, Scheduler};

/// The result of issuing a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Issue {
    /// The device has the request.
    Done,
    /// The device has no budget left for the request.
    NoBudget,
    /// There is no driver tag for the request.
    NoTag,
    /// The device is busy.
    Busy,
}

impl Hctx {
    /// Updates `dispatch_busy`, a running average with weight 8. A failed round counts 16.
    pub(super) fn round(&mut self, failed: bool) {
        if self.busy > 0 || failed {
            self.busy = (7 * self.busy + if failed { 16 } else { 0 }) / 8;
        }
    }
}

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// Requests a run by a worker. It happens at this instant, after all submissions of this
    /// instant.
    pub(super) fn run_later(&mut self, h: usize) {
        self.hctx[h].pending = true;
        self.hctx[h].rerun_at = None;
    }

    /// Does the work of the workers that is due at this instant.
    pub(super) fn due_runs(&mut self) {
        while let Some((rq, how)) = self.requeued.pop_front() {
            self.reinsert(rq, how);
        }
        self.after_callback();
        for h in 0..self.hctx.len() {
            if std::mem::take(&mut self.hctx[h].pending) {
                self.run(h);
            }
        }
        self.wake_sleepers();
    }

    /// Does the work of the requeue worker. Inserts a request at the head of the scheduler, or
    /// inserts the data of a flush sequence.
    fn reinsert(&mut self, rq: RqId, how: Insert) {
        let h = self.cx.rqs[rq].hctx as usize;
        if self.cx.rqs[rq].elv {
            self.insert(rq, how);
        } else {
            self.bypass_insert(rq, true);
        }
        self.run_later(h);
    }

    /// Inserts a request into the dispatch list, so that it bypasses the scheduler.
    pub(super) fn bypass_insert(&mut self, rq: RqId, at_head: bool) {
        self.cx.rqs[rq].state = State::Dispatched;
        let h = self.cx.rqs[rq].hctx as usize;
        let list = &mut self.hctx[h].dispatch;
        if at_head {
            self.links.push_front(list, rq.0);
        } else {
            self.links.push_back(list, rq.0);
        }
    }

    /// Runs a hardware queue.
    pub(super) fn run(&mut self, h: usize) {
        self.current = h;
        let had = !self.hctx[h].dispatch.is_empty();
        if had {
            self.hctx[h].restart = true;
            let mut batch = std::mem::take(&mut self.batch);
            while let Some(i) = self.links.pop_front(&mut self.hctx[h].dispatch) {
                batch.push(RqId(i));
            }
            let all = self.issue_list(h, &mut batch);
            self.batch = batch;
            if !all {
                return;
            }
        }
        if !self.bypass {
            while self.pull(h) {}
        } else if had || self.hctx[h].busy > 0 {
            while self.pull_one(h) {}
        } else {
            self.pull_all(h);
        }
    }

    fn ask(&mut self, h: usize, all: bool) -> u32 {
        let n = self.sched.dispatch(&mut self.cx, h as u16, all);
        self.cx.take_run(); // a run is in progress
        if self.cx.take_kick() {
            self.kick_all();
        }
        n
    }

    /// Issues one waiting request, taken round robin. Used without a scheduler if the queue is
    /// saturated. Returns false if the run must stop.
    fn pull_one(&mut self, h: usize) -> bool {
        if !self.sched.has_work(&self.cx, h as u16) || !self.budget_left(0) {
            return false;
        }
        self.ask(h, false);
        self.collect_and_issue(h)
    }
    /// Issues all waiting requests. Used without a scheduler.
    fn pull_all(&mut self, h: usize) {
        if self.ask(h, true) > 0 {
            self.collect_and_issue(h);
        }
    }
    fn collect_and_issue(&mut self, h: usize) -> bool {
        let mut batch = std::mem::take(&mut self.batch);
        while let Some(rq) = self.cx.out.pop() {
            batch.push(rq);
        }
        let all = !batch.is_empty() && self.issue_list(h, &mut batch);
        self.batch = batch;
        all
    }

    /// Does one round of dispatch and issue with a scheduler. Returns false if the run must stop.
    fn pull(&mut self, h: usize) -> bool {
        let max = if self.hctx[h].busy > 0 {
            1
        } else {
            self.cx.queue.nr_requests
        };
        let mut batch = std::mem::take(&mut self.batch);
        let mut nothing = false;
        while (batch.len() as u32) < max
            && self.sched.has_work(&self.cx, h as u16)
            && self.budget_left(batch.len() as u32)
        {
            if self.ask(h, false) == 0 {
                nothing = true;
                break;
            }
            while let Some(rq) = self.cx.out.pop() {
                batch.push(rq);
            }
            if batch.last().is_some_and(|rq| !self.take_driver_tag(*rq)) {
                break;
            }
        }
        if batch.is_empty() {
            self.batch = batch;
            if nothing {
                let at = self.cx.now() + RERUN;
                for h in 0..self.hctx.len() {
                    // A rerun that is already scheduled keeps its time. Otherwise, two queues
                    // without success could postpone the rerun of a third one for ever.
                    if self.meant_by_all(h) {
                        self.hctx[h].rerun_at.get_or_insert(at);
                    }
                }
            }
            return false;
        }
        let mut any = false;
        if batch.iter().all(|rq| self.cx.rqs[*rq].hctx as usize == h) {
            any = self.issue_list(h, &mut batch);
        } else {
            let mut rest = std::mem::take(&mut batch);
            while let Some(first) = rest.first() {
                let lead = self.cx.rqs[*first].hctx;
                batch.extend(rest.extract_if(.., |rq| self.cx.rqs[*rq].hctx == lead));
                any |= self.issue_list(lead as usize, &mut batch);
                batch.clear();
            }
        }
        self.batch = batch;
        any
    }

    /// Returns whether the device has budget for `more` requests and one more. After the drive
    /// deferred a command, no other command is sent until a completion, so that the drive drains.
    /// Without this rule, requests that are issued directly would pass a waiting flush on SATA, for
    /// ever under a steady load.
    fn budget_left(&self, more: u32) -> bool {
        let free = || self.budget_used + more < self.driver.depth().max(1);
        !self.driver.has_budget() || (!self.deferred && free())
    }

    pub(super) fn take_driver_tag(&mut self, rq: RqId) -> bool {
        let tags = &mut self.tags[rq];
        // Without a scheduler, a flush of the layer uses the tag of the request that waits for this
        // flush.
        if tags.driver || (self.bypass && self.cx.rqs[rq].op == Op::Flush) {
            return true;
        }
        let pool = &mut self.hctx[self.cx.rqs[rq].hctx as usize].driver_tags;
        if !pool.available(None) {
            return false;
        }
        pool.take(None);
        tags.driver = true;
        true
    }
    pub(super) fn give_driver_tag(&mut self, rq: RqId) {
        if std::mem::take(&mut self.tags[rq].driver) {
            let h = self.cx.rqs[rq].hctx as usize;
            self.hctx[h].driver_tags.give(None);
        }
    }

    /// Issues a list of requests in order and empties the list. Refused requests go to the dispatch
    /// list. Returns true if all requests were accepted.
    fn issue_list(&mut self, h: usize, list: &mut Vec<RqId>) -> bool {
        let mut refused = None;
        let mut done = 0;
        for &rq in list.iter() {
            match self.issue(rq) {
                Issue::Done => done += 1,
                other => {
                    refused = Some(other);
                    break;
                }
            }
        }
        let Some(why) = refused else {
            list.clear();
            self.hctx[h].round(false);
            return true;
        };
        for rq in list.drain(done..) {
            if !self.bypass {
                self.give_driver_tag(rq);
            }
            self.bypass_insert(rq, false);
        }
        list.clear();
        let now = self.cx.now();
        let hctx = &mut self.hctx[h];
        if why == Issue::NoTag {
            hctx.restart = true;
        } else if !hctx.restart {
            hctx.pending = true;
            hctx.rerun_at = None;
        } else if hctx.in_flight == 0 {
            hctx.rerun_at = Some(now + RERUN);
        }
        hctx.round(true);
        false
    }

    /// Issues one request if there are a budget and a tag.
    pub(super) fn issue(&mut self, rq: RqId) -> Issue {
        if !self.budget_left(0) {
            return Issue::NoBudget;
        }
        if !self.take_driver_tag(rq) {
            return Issue::NoTag;
        }
        let r = &self.cx.rqs[rq];
        let (flush, alone) = (r.op == Op::Flush, !self.dev.flush_queueable);
        let command = Command {
            id: rq.0,
            op: r.op,
            sector: r.sector,
            sectors: r.sectors,
            fua: r.flags.contains(Flags::FUA) && self.dev.fua,
        };
        let (h, sector, end, elv) = (r.hctx as usize, r.sector, r.end(), r.elv);
        let now = self.cx.now();
        let collides = alone && (self.flushing || (flush && self.in_flight > 0));
        if collides || self.dev.accept(now, command) == Accept::Busy {
            self.deferred |= collides;
            return Issue::Busy;
        }
        let r = &mut self.cx.rqs[rq];
        r.state = State::InFlight;
        r.issue = now;
        self.in_flight += 1;
        self.budget_used += 1;
        self.hctx[h].in_flight += 1;
        self.flushing |= flush && alone;
        if elv {
            self.cx.in_driver += 1;
        }
        let stats = &mut self.acct.stats;
        stats.set_depth(now, self.in_flight);
        if flush {
            stats.flushes += 1;
        } else {
            stats.issued(sector, end);
        }
        self.wbt_issued(rq);
        self.cx.event(Action::Issue, rq);
        Issue::Done
    }

    /// Issues a request directly, or queues it in a FIFO or in the dispatch list. Used without a
    /// scheduler.
    pub(super) fn issue_or_queue(&mut self, rq: RqId) {
        let h = self.cx.rqs[rq].hctx as usize;
        match self.issue(rq) {
            Issue::Done => self.hctx[h].round(false),
            Issue::NoBudget | Issue::NoTag => {
                self.insert(rq, Insert::Sorted);
                self.run(h);
            }
            Issue::Busy => {
                self.hctx[h].round(true);
                self.bypass_insert(rq, false);
                self.run(h);
            }
        }
    }

    /// Returns a request from the driver, if the device can stop it. The request is inserted again,
    /// before all waiting requests. Returns false if the device cannot stop it.
    pub fn requeue(&mut self, now: Instant, rq: RqId) -> bool {
        self.cx.set_now(now);
        if self.cx.rqs[rq].state != State::InFlight || self.dev.stop(now, rq.0).is_none() {
            return false;
        }
        self.left_device(rq);
        self.give_back_tag_of_requeued(rq);
        self.wbt_requeued(rq);
        if self.cx.rqs[rq].elv {
            self.sched.requeued(&mut self.cx, rq);
        }
        self.cx.rqs[rq].state = State::Dispatched;
        self.cx.event(Action::Requeue, rq);
        self.requeued.push_back((rq, Insert::Requeue));
        self.after_callback();
        self.keep();
        true
    }
    fn give_back_tag_of_requeued(&mut self, rq: RqId) {
        if !self.bypass {
            self.give_driver_tag(rq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatch_busy_average_rises_on_failure_and_decays_on_success() {
        let mut h = Hctx::default();
        let mut rounds = |failed: &[bool]| -> Vec<u32> {
            let one = |f: &bool| {
                h.round(*f);
                h.busy
            };
            failed.iter().map(one).collect()
        };
        assert_eq!(
            rounds(&[false, true, true, false, false, false]),
            [0, 2, 3, 2, 1, 0]
        );
        assert_eq!(rounds(&[true; 10]).last(), Some(&9), "saturates");
        assert_eq!(
            rounds(&[false; 8]),
            [7, 6, 5, 4, 3, 2, 1, 0],
            "eight clean rounds"
        );
    }
}
