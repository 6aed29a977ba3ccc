//! The loop of the driver: it takes a request, starts it and issues it, until the device is full or
//! there are no requests.

use super::LegacyQueue;
use super::flush::{Act, Barrier};
use crate::host::HostDriver;
use seekwell_core::{Accept, Action, Bio, Command, Device, Flags, IoPrio, Op, RqId, State, TaskId};
use seekwell_sched::Scheduler;

/// Id of the layer's own bios (cache flushes). Their completions are not reported.
pub(super) const OWN_BIO: u64 = u64::MAX;

impl<S: Scheduler + ?Sized, D: Device> LegacyQueue<S, D> {
    /// Runs the queue. A run never starts inside another run.
    pub(super) fn run(&mut self) {
        if self.running || self.queue_plug.is_some() {
            return;
        }
        self.running = true;
        while self.step() {}
        self.running = false;
    }

    /// Runs one round of the loop. Returns false if the driver must stop.
    #[inline]
    fn step(&mut self) -> bool {
        if let HostDriver::Mmc(_) = self.host {
            return self.step_mmc();
        }
        let Some(rq) = self.cx.out.first() else {
            return self.ask();
        };
        if self.cx.rqs[rq].state < State::Started {
            if !self.host.may_look(self.in_flight) {
                return false;
            }
            let is_barrier = self.is_barrier(rq);
            if (self.barrier.is_some() && !is_barrier) || (is_barrier && !self.barrier_step(rq)) {
                return false;
            }
            self.start(rq);
        }
        if !self.host.may_issue(self.in_flight) {
            return false;
        }
        self.issue(rq)
    }

    /// Asks the elevator for a request. Called only while the dispatch list is empty.
    #[inline(always)]
    pub(super) fn ask(&mut self) -> bool {
        if !self.host.may_look(self.in_flight) {
            return false;
        }
        // A device that cannot queue flushes gets no other command during a flush.
        if self.flush.flushing() && !self.dev.flush_queueable {
            return false;
        }
        let moved = self.sched.dispatch(&mut self.cx, 0, false);
        self.cx.take_run();
        moved > 0
    }

    #[inline(always)]
    pub(super) fn start(&mut self, rq: RqId) {
        self.cx.rqs[rq].state = State::Started;
        if self.cx.rqs[rq].elv {
            self.cx.in_driver += 1;
            self.sched.activate(&mut self.cx, rq);
        }
        let out = &mut self.cx.out;
        if out.boundary_rq.is_none() || out.boundary_rq == Some(rq) {
            out.boundary = self.cx.rqs[rq].end();
            out.boundary_rq = None;
        }
    }

    // Inlined in the loop and in each rare caller, so that the rare callers do not slow down the
    // loop.
    #[inline(always)]
    pub(super) fn issue(&mut self, rq: RqId) -> bool {
        let now = self.cx.now();
        let r = &self.cx.rqs[rq];
        let command = Command {
            id: rq.0,
            op: r.op,
            sector: r.sector,
            sectors: r.sectors,
            fua: r.flags.contains(Flags::FUA) && self.dev.fua,
        };
        if self.dev.accept(now, command) == Accept::Busy {
            return false;
        }
        self.issued(rq);
        true
    }

    /// Records that the device has the request.
    #[inline(always)]
    pub(super) fn issued(&mut self, rq: RqId) {
        let now = self.cx.now();
        self.cx.out.remove(rq);
        let r = &mut self.cx.rqs[rq];
        let (sector, end, op) = (r.sector, r.end(), r.op);
        r.state = State::InFlight;
        r.issue = now;
        self.in_flight += 1;
        let stats = &mut self.acct.stats;
        stats.set_depth(now, self.in_flight);
        if op == Op::Flush {
            stats.flushes += 1;
        } else {
            stats.issued(sector, end);
        }
        self.cx.event(Action::Issue, rq);
    }

    /// Returns a started request that the driver could not keep. It goes to the head of the
    /// dispatch list.
    pub fn requeue(&mut self, rq: RqId) {
        self.mmc.forget(rq);
        if self.cx.rqs[rq].state == State::InFlight {
            self.in_flight -= 1;
            self.acct.stats.set_depth(self.cx.now(), self.in_flight);
            self.cx.out.push_head(rq);
        }
        if self.cx.rqs[rq].elv {
            self.cx.in_driver -= 1;
            self.sched.deactivate(&mut self.cx, rq);
        }
        self.cx.rqs[rq].state = State::Dispatched;
        self.cx.rqs[rq].flags |= Flags::BARRIER;
        self.cx.event(Action::Requeue, rq);
        self.run();
        self.settle();
    }

    /// Stops a write for an urgent request that waits. The device stops the write that was issued
    /// first, and the unwritten rest returns to the elevator.
    #[cold]
    pub(super) fn stop_a_write(&mut self) {
        if let HostDriver::Mmc(_) = self.host {
            self.give_back_slot();
            return self.stop_the_bus();
        }
        let running =
            |r: &seekwell_core::Request| r.state == State::InFlight && r.elv && r.op == Op::Write;
        let oldest = self
            .cx
            .rqs
            .iter()
            .filter(|(_, r)| running(r))
            .min_by_key(|(_, r)| (r.issue, r.seq));
        if let Some((rq, _)) = oldest {
            self.stop_members(&[rq]);
        }
    }

    /// Returns whether the request is a barrier of 2.6 or is treated as one.
    pub(super) fn is_barrier(&self, rq: RqId) -> bool {
        self.is_2_6() && !self.cx.rqs[rq].elv && self.is_barrier_part(rq)
    }
    /// Returns whether the request was marked as a barrier, or is a flush.
    pub(super) fn is_barrier_part(&self, rq: RqId) -> bool {
        let r = &self.cx.rqs[rq];
        let own = self.cx.rqs.first_bio(rq).id.0 == OWN_BIO;
        !own && (r.op == Op::Flush || r.flags.intersects(Flags::PREFLUSH | Flags::FUA))
    }

    /// Moves a barrier one step further. Returns true if the request may be started.
    #[cold]
    #[inline(never)]
    pub(super) fn barrier_step(&mut self, rq: RqId) -> bool {
        match self.barrier.unwrap_or(Barrier::Draining) {
            Barrier::Draining => {
                self.barrier = Some(Barrier::Draining);
                if self.in_flight > 0 {
                    return false;
                }
                if self.dev.write_cache && self.cx.rqs[rq].op != Op::Flush {
                    self.barrier = Some(Barrier::PreFlush);
                    let f = self.own_flush();
                    self.start(f);
                    self.cx.out.push_head(f);
                    self.issue(f);
                    return false;
                }
                self.barrier = Some(Barrier::Write);
                true
            }
            Barrier::PreFlush | Barrier::PostFlush(_) => false,
            // Only the barrier itself starts here. Later requests wait.
            Barrier::Write => self.in_flight == 0,
        }
    }
    /// Handles the completion of a part of a barrier. `rq` is the layer's own flush, which is
    /// already freed, or the barrier itself. Returns true if `rq` is kept until the flush after it
    /// completes.
    #[cold]
    #[inline(never)]
    pub(super) fn barrier_completed(&mut self, rq: RqId, own: bool) -> bool {
        match self.barrier {
            Some(Barrier::PreFlush) => self.barrier = Some(Barrier::Write),
            Some(Barrier::Write) if self.cx.rqs[rq].op != Op::Flush => {
                if !self.dev.write_cache {
                    self.barrier = None;
                    return false;
                }
                self.cx.rqs[rq].state = State::Plugged;
                self.cx.event(Action::Part, rq);
                let f = self.own_flush();
                self.start(f);
                self.cx.out.push_head(f);
                self.issue(f);
                self.barrier = Some(Barrier::PostFlush(rq));
                return true;
            }
            Some(Barrier::Write) => self.barrier = None,
            Some(Barrier::PostFlush(written)) if own => {
                self.barrier = None;
                self.complete_flush(written);
            }
            _ => {}
        }
        false
    }

    /// Creates a cache flush of the layer.
    pub(super) fn own_flush(&mut self) -> RqId {
        let bio = Bio::new(OWN_BIO, TaskId(0), Op::Flush, Flags::empty(), 0, 0);
        let ioc = self.ioc_of(TaskId(0));
        self.cx.iocs.get_mut(ioc).requests += 1;
        let (era, now) = (self.cx.queue.era, self.cx.now());
        let rq = self.cx.rqs.alloc(bio, ioc, IoPrio::be(4), era, now);
        self.cx.rqs[rq].elv = false;
        self.cx.rqs[rq].state = State::Dispatched;
        *self.sequenced.at(rq.idx()) = false;
        rq
    }
    /// Issues a shared flush if one is needed.
    pub(super) fn kick_flush(&mut self) {
        if self.flush.wants_flush(self.cx.now()) {
            let f = self.own_flush();
            self.cx.out.push_tail_quiet(f);
        }
    }
    pub(super) fn do_acts(&mut self) {
        while let Some(act) = self.acts.pop_front() {
            match act {
                Act::Write(rq) => {
                    self.cx.rqs[rq].state = State::Dispatched;
                    self.cx.out.push_head(rq);
                }
                Act::Complete(rq) => self.complete_flush(rq),
            }
        }
    }
}
