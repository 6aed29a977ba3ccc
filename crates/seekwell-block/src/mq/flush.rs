//! Sequences for flushes and FUA writes. They run outside the scheduler to the same extent as in
//! the kernel.
//!
//! Flush commands never enter the scheduler. The data part of a sequence enters the scheduler since
//! about 6.2. In 6.1, it goes to the head of the dispatch list.

use super::{MqQueue, OWN_BIO, RqTags};
use crate::legacy::flush::{Act, Sequenced};
use seekwell_core::{Bio, Device, Era, Flags, IoPrio, Op, RqId, State, TaskId};
use seekwell_sched::{Insert, Scheduler};

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// Starts the sequence of a flush, or of a request with PREFLUSH or FUA. Returns false if the
    /// request needs no sequence and takes the normal path.
    pub(super) fn insert_flush(&mut self, rq: RqId) -> bool {
        let r = &self.cx.rqs[rq];
        let (h, has_data) = (r.hctx as usize, r.sectors.0 > 0);
        let pre = r.op == Op::Flush || r.flags.contains(Flags::PREFLUSH);
        let post = r.flags.contains(Flags::FUA) && !self.dev.fua && has_data;
        if !pre && !post {
            if r.elv {
                return false;
            }
            self.bypass_insert(rq, false);
            self.run_later(h);
            return true;
        }
        self.tags[rq].sequenced = true;
        let (now, sequence) = (self.cx.now(), Sequenced::new(rq, pre, has_data, post));
        self.hctx[h].flush.enter(now, sequence, &mut self.acts);
        self.do_acts();
        self.kick_flush(h);
        true
    }

    fn do_acts(&mut self) {
        while let Some(act) = self.acts.pop_front() {
            match act {
                Act::Write(rq) => {
                    self.cx.rqs[rq].state = State::Dispatched;
                    self.requeued.push_back((rq, Insert::Sorted));
                }
                Act::Complete(rq) => {
                    let mut ready = std::mem::take(&mut self.ready);
                    self.end_bios(rq, false, &mut ready);
                    self.ready = ready;
                    self.free_request(rq);
                }
            }
        }
    }

    /// Issues a shared flush if one is needed.
    pub(super) fn kick_flush(&mut self, h: usize) {
        if !self.hctx[h].flush.wants_flush(self.cx.now()) {
            return;
        }
        let bio = Bio::new(OWN_BIO.0, TaskId(0), Op::Flush, Flags::empty(), 0, 0);
        let ioc = self.tasks.silent_ioc(&mut self.cx, TaskId(0));
        self.cx.iocs.get_mut(ioc).requests += 1;
        let (era, now): (Era, _) = (self.cx.queue.era, self.cx.now());
        let rq = self.cx.rqs.alloc(bio, ioc, IoPrio::be(4), era, now);
        let r = &mut self.cx.rqs[rq];
        (r.elv, r.hctx) = (false, h as u16);
        *self.tags.at(rq.idx()) = RqTags::default();
        self.bypass_insert(rq, true);
        self.run_later(h);
    }

    /// Handles the completion of a flush command. The requests that waited for it continue.
    pub(super) fn flush_done(&mut self, h: usize) {
        self.hctx[h].flush.flushed(self.cx.now(), &mut self.acts);
        self.do_acts();
        self.kick_flush(h);
    }
    /// Handles the completion of the data of a sequence.
    pub(super) fn data_done(&mut self, h: usize, rq: RqId) {
        self.hctx[h]
            .flush
            .data_done(self.cx.now(), rq, &mut self.acts);
        self.do_acts();
        self.kick_flush(h);
    }
}
