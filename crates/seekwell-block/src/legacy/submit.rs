//! The path of a bio to a request and to the elevator: merging, allocation, plugs and insertion.

use super::flush::Sequenced;
use super::pool::{Grant, Waiting};
use super::{LegacyQueue, Plug};
use crate::merge::{self, bio_mergeable};
use seekwell_core::{
    Action, Bio, BioDone, Device, Era, Event, Flags, IocId, Op, RqId, State, TaskId,
};
use seekwell_sched::{Cx, Insert, MayQueue, MergeKind, Scheduler};

/// Number of requests for one queue that a plug holds before it is flushed.
const PLUG_MAX: usize = 16;

impl<S: Scheduler + ?Sized, D: Device> LegacyQueue<S, D> {
    pub(super) fn submit_bio(&mut self, mut bio: Bio) {
        // Remove flags that this kernel does not have.
        bio.flags -= match self.cx.queue.era {
            Era::K2_6_18 => Flags::META | Flags::PRIO | Flags::NOIDLE,
            Era::K2_6_24 => Flags::PRIO | Flags::NOIDLE,
            _ => Flags::empty(),
        };
        self.acct.stats.bios += 1;
        let ioc = self.ioc_of(bio.task);
        bio_event(&mut self.cx, Action::Queue, &bio);
        if bio_mergeable(&bio) && self.try_merge(&bio, ioc) {
            return;
        }
        let arrived = self.cx.now();
        if !self.make_request(&Waiting { bio, ioc, arrived }) {
            self.acct.stats.waits += 1;
        }
    }

    fn try_merge(&mut self, bio: &Bio, ioc: IocId) -> bool {
        if self.cx.queue.nomerges >= 2 {
            return false;
        }
        if self.plug_merge(bio) {
            return true;
        }
        if self.switching.is_some() || self.cx.nr_sorted == 0 {
            return false;
        }
        let found = merge::find(&mut self.cx, &mut *self.sched, bio, ioc, self.opts.hash);
        let Some((rq, kind)) = found else {
            return false;
        };
        let (cx, sched) = (&mut self.cx, &mut *self.sched);
        let merged = merge::merge_bio(cx, sched, &mut self.acct, rq, bio, kind);
        self.free_merged();
        self.after_callback();
        merged
    }

    /// Frees requests that merging has emptied.
    pub(super) fn free_merged(&mut self) {
        while let Some(rq) = self.acct.freed.pop() {
            self.free_request(rq);
        }
    }

    /// Tries to get a request for a bio, and routes the request. Returns false if the bio must
    /// sleep.
    fn make_request(&mut self, w: &Waiting) -> bool {
        let (bio, now) = (&w.bio, self.cx.now());
        let sync = bio.is_sync(self.cx.queue.era);
        let p = self.pools.index(bio.op.is_write(), sync);
        let elv = self.enters_elevator(bio);
        let verdict = if elv {
            self.sched.may_queue(&mut self.cx, bio, w.ioc)
        } else {
            MayQueue::May
        };
        let grant = match verdict {
            MayQueue::No => Grant::No,
            v => {
                let (n, must) = (self.cx.queue.nr_requests, v == MayQueue::Must);
                self.pools.take(p, w.ioc, n, must, now)
            }
        };
        if grant == Grant::No {
            bio_event(&mut self.cx, Action::SleepRq, bio);
            self.cx.iocs.get_mut(w.ioc).requests += 1;
            self.pools.sleep(p, *w);
            self.unplug_queue();
            self.run();
            return false;
        }
        let era = self.cx.queue.era;
        let c = self.cx.iocs.get_mut(w.ioc);
        c.requests += 1;
        let prio = bio.ioprio.unwrap_or_else(|| c.effective(era));
        let rq = self
            .cx
            .rqs
            .alloc_arrived(*bio, w.ioc, prio, era, now, w.arrived);
        self.cx.event(Action::GetRq, rq);
        if elv {
            self.sched.prepare(&mut self.cx, rq);
        } else {
            self.cx.rqs[rq].elv = false;
            *self.sequenced.at(rq.idx()) = false;
        }
        self.route(rq);
        true
    }

    fn enters_elevator(&self, bio: &Bio) -> bool {
        let special = Flags::PREFLUSH.union(Flags::FUA).union(Flags::BARRIER);
        self.switching.is_none() && bio.op != Op::Flush && !bio.flags.intersects(special)
    }

    /// Routes a request to the plug, the flush sequences, the elevator or the dispatch list.
    fn route(&mut self, rq: RqId) {
        let (op, flags) = (self.cx.rqs[rq].op, self.cx.rqs[rq].flags);
        let special = Flags::PREFLUSH.union(Flags::FUA).union(Flags::BARRIER);
        if op == Op::Flush || flags.intersects(special) {
            return self.insert_flush(rq);
        }
        if self.cx.queue.era >= Era::K3_4 {
            let task = self.cx.iocs.get(self.cx.rqs[rq].ioc).task;
            if let Some(i) = self.plugs.iter().position(|p| p.open && p.task == task) {
                if self.plugs[i].rqs.len() >= PLUG_MAX {
                    self.flush_plug(i);
                }
                self.plugs[i].rqs.push(rq);
                self.cx.event(Action::Plug, rq);
                return;
            }
        } else if self.opts.queue_plug && self.queue_plug.is_none() && self.empty() {
            let delay = self.opts.unplug_delay.0.max(1_000_000_000 / self.cx.hz());
            self.queue_plug = Some(self.cx.now() + seekwell_core::Nanos(delay));
        }
        let sync = self.cx.rqs[rq].sync;
        self.insert_sorted(rq);
        if self.queue_plug.is_some() {
            let used = self.pools.count(0) + self.pools.count(1);
            if sync || used.saturating_sub(self.in_flight) >= self.opts.unplug_thresh {
                return self.unplug_queue();
            }
        }
        self.run();
    }

    fn empty(&self) -> bool {
        self.cx.nr_sorted == 0 && self.cx.out.is_empty()
    }

    /// Inserts a request into the elevator (SORT). During a switch, inserts it at the end of the
    /// dispatch list (BACK). Does not run the queue unless the elevator requests a run.
    fn insert_sorted(&mut self, rq: RqId) {
        if !self.cx.rqs[rq].elv {
            return self.insert_back(rq);
        }
        merge::enter(&mut self.cx, rq, self.opts.hash);
        self.cx.event(Action::Insert, rq);
        self.sched.insert(&mut self.cx, rq, Insert::Sorted);
        if self.cx.queue.can_stop && self.sched.urgent() {
            self.stop_a_write();
        }
        self.after_callback();
    }

    /// Inserts a request behind all queued requests, which are drained first (BACK).
    pub(super) fn insert_back(&mut self, rq: RqId) {
        self.force_drain();
        self.cx.rqs[rq].state = State::Dispatched;
        self.cx.rqs[rq].flags |= Flags::BARRIER;
        self.cx.out.push_tail(&self.cx.rqs, rq);
        self.cx.event(Action::Insert, rq);
    }

    pub(super) fn force_drain(&mut self) {
        while self.sched.dispatch(&mut self.cx, 0, true) > 0 {}
        self.cx.take_run();
    }

    fn insert_flush(&mut self, rq: RqId) {
        let (has_data, flags) = (self.cx.rqs[rq].sectors.0 > 0, self.cx.rqs[rq].flags);
        let (cache, fua) = (self.dev.write_cache, self.dev.fua);
        if self.is_2_6() {
            // Every kind of flush is a barrier here. The run of the queue checks this flag.
            self.cx.rqs[rq].flags |= Flags::PREFLUSH;
            self.insert_back(rq);
            self.queue_plug = None;
            return self.run();
        }
        let empty_flush = self.cx.rqs[rq].op == Op::Flush;
        let pre = cache && (flags.contains(Flags::PREFLUSH) || empty_flush);
        let post = cache && flags.contains(Flags::FUA) && !fua;
        self.cx.event(Action::Insert, rq);
        if !has_data && !pre {
            return self.complete_flush(rq);
        }
        if !pre && !post {
            self.cx.rqs[rq].state = State::Dispatched;
            self.cx.out.push_tail_quiet(rq);
            return self.run();
        }
        *self.sequenced.at(rq.idx()) = true;
        let now = self.cx.now();
        self.flush
            .enter(now, Sequenced::new(rq, pre, has_data, post), &mut self.acts);
        self.do_acts();
        self.kick_flush();
        self.run();
    }

    /// Completes a finished flush sequence. Its bios end at the next step.
    pub(super) fn complete_flush(&mut self, rq: RqId) {
        let at = self.cx.now();
        self.cx.event(Action::Complete, rq);
        self.ready.extend(self.cx.rqs.bios(rq).map(|b| BioDone {
            id: b.0.id,
            at,
            error: false,
        }));
        self.free_request(rq);
    }

    /// Wakes bios that sleep on the pools. Returns true if one of them got a request.
    pub(super) fn wake_sleepers(&mut self) -> bool {
        let now = self.cx.now();
        for p in 0..2 {
            if self.wake[p] == 0 {
                continue;
            }
            self.wake[p] -= 1;
            let Some(w) = self.pools.wake(p, now) else {
                continue;
            };
            // The elevator may have been replaced while the bio slept.
            self.attach(w.ioc);
            self.make_request(&w);
            return true;
        }
        false
    }

    pub(super) fn open_plug(&mut self, task: TaskId) {
        if self.plugs.iter().any(|p| p.open && p.task == task) {
            return;
        }
        match self.plugs.iter_mut().find(|p| !p.open) {
            Some(p) => (p.task, p.open) = (task, true),
            None => self.plugs.push(Plug {
                task,
                open: true,
                rqs: Vec::new(),
            }),
        }
    }
    pub(super) fn close_plug(&mut self, task: TaskId, close: bool) {
        if let Some(i) = self.plugs.iter().position(|p| p.open && p.task == task) {
            self.flush_plug(i);
            self.plugs[i].open = !close;
        }
    }

    fn plug_merge(&mut self, bio: &Bio) -> bool {
        let Some(i) = self.plugs.iter().position(|p| p.open && p.task == bio.task) else {
            return false;
        };
        for k in (0..self.plugs[i].rqs.len()).rev() {
            let rq = self.plugs[i].rqs[k];
            let r = &self.cx.rqs[rq];
            if !r.mergeable() || r.op != bio.op {
                continue;
            }
            let Some(kind) = merge::touches(&self.cx, rq, bio) else {
                continue;
            };
            let now = self.cx.now();
            if !self.cx.fits(rq, bio) {
                self.cx.rqs[rq].flags |= Flags::NOMERGE;
                continue;
            }
            match kind {
                MergeKind::Back => {
                    self.cx.rqs.append_bio(rq, *bio, now);
                    self.acct.stats.back_merges += 1;
                    self.cx.event(Action::BackMerge, rq);
                }
                MergeKind::Front => {
                    self.cx.rqs.prepend_bio(rq, *bio, now);
                    self.acct.stats.front_merges += 1;
                    self.cx.event(Action::FrontMerge, rq);
                }
            }
            return true;
        }
        false
    }

    /// Passes the requests of a plug to the elevator. 4.0 sorts them by sector, 3.4 keeps their
    /// order.
    fn flush_plug(&mut self, i: usize) {
        if self.plugs[i].rqs.is_empty() {
            return;
        }
        let mut rqs = std::mem::take(&mut self.plugs[i].rqs);
        if self.cx.queue.era >= Era::K4_0 && rqs.len() > 1 {
            let table = &self.cx.rqs;
            rqs.sort_by_key(|r| table[*r].sector);
        }
        for rq in rqs.drain(..) {
            if self.switching.is_some() {
                self.orphan(rq);
            }
            let (cx, sched) = (&mut self.cx, &mut *self.sched);
            let swallowed = cx.rqs[rq].elv && merge::insert_merge(cx, sched, &mut self.acct, rq);
            self.free_merged();
            if !swallowed {
                self.insert_sorted(rq);
            }
        }
        self.plugs[i].rqs = rqs;
        self.run();
    }

    /// Removes the plug of the queue and runs the queue (2.6).
    pub(super) fn unplug_queue(&mut self) {
        if self.queue_plug.take().is_some() {
            self.run();
        }
    }
}

fn bio_event(cx: &mut Cx, action: Action, bio: &Bio) {
    let at = cx.now();
    cx.log.push(|| Event::of_bio(at, action, bio));
}
