//! The queue of a request: finds, creates, splits and releases queues.

use super::{Bfq, MqQueue, Think};
use crate::bfq::core::{QId, Queue, Reason};
use crate::bfq::rules;
use crate::cx::Cx;
use seekwell_core::{CgroupId, IoPrio, IocId, RqId};

impl Bfq {
    /// `bfq_init_rq`: returns the queue of a request that will be inserted. The queue may be new or
    /// split off a shared queue.
    pub(super) fn init_request(&mut self, cx: &mut Cx, rq: RqId) -> QId {
        if let Some(q) = self.core.queue_of(rq) {
            return q;
        }
        let r = &cx.rqs[rq];
        let (ioc, sync, prio) = (r.ioc, r.sync, r.ioprio);
        let cgroup = payer(cx, r.cgroup, ioc);
        self.follow_prio(cx, ioc, prio, cgroup);
        self.follow_cgroup(cx, ioc, cgroup);
        let mut split = false;
        let mut kept = true;
        let who = Who {
            ioc,
            sync,
            prio,
            cgroup,
        };
        let have = self.core.procs.at(ioc.idx()).queues[usize::from(sync)];
        let for_good = self.core.procs[ioc].own.stably_merged;
        let q = match have {
            Some(q) if self.queue(q).shared && self.queue(q).split && !for_good => {
                split = true;
                let waker = self.queue(q).own.waker;
                match self.split(cx, ioc, q) {
                    Some(q) => q,
                    None => {
                        kept = false;
                        let q = self.get_queue(cx, who, true);
                        self.set_waker(q, waker);
                        q
                    }
                }
            }
            Some(q) => q,
            None => self.get_queue(cx, who, false),
        };
        self.core.bind(rq, q);
        self.core.procs[ioc].own.requests += 1;
        let x = self.queue(q);
        if x.redirect.is_none() && x.procs == 1 && !x.pinned {
            self.queue_mut(q).owner = Some(ioc);
            if split {
                self.resume(cx, ioc, q, kept);
            }
        }
        if self.queue(q).own.just_created
            && (self.core.burst_size > 0 || self.core.busy_total() == 0)
        {
            self.handle_burst(cx, q);
        }
        q
    }

    /// `bfq_get_queue`: returns the shared async queue for a process, or a new sync queue. The new
    /// queue can be merged with another queue at once.
    fn get_queue(&mut self, cx: &mut Cx, who: Who, after_split: bool) -> QId {
        let Who {
            ioc,
            sync,
            prio,
            cgroup,
        } = who;
        let group = self.group_of(cx, cgroup);
        let q = if sync {
            let q = self.make_queue(cx, group, prio, true);
            self.queue_mut(q).pid = Some(cx.iocs.get(ioc).task);
            cx.why(rules::NEW_QUEUE, || {
                self.core
                    .about(q)
                    .says(format!("a new queue, {q}, for {{who}}"))
            });
            q
        } else {
            let fresh = self.fresh(cx);
            self.core.async_queue(group, prio, |core| {
                let q = core.create(group, prio, false, fresh);
                Self::date(core.queue_mut(q), cx);
                q
            })
        };
        self.queue_mut(q).procs += 1;
        let q = if sync && !after_split {
            self.adopt_or_merge(cx, ioc, q)
        } else {
            q
        };
        self.core.adopt(ioc, q);
        if after_split && sync {
            let s = &self.core.procs[ioc].own.saved;
            let (listed, large) = (s.in_burst_list, s.in_large_burst);
            if (listed && self.core.large_burst) || large {
                self.queue_mut(q).in_large_burst = true;
            } else if listed {
                self.core.burst_add(q);
            }
            self.queue_mut(q).own.split_j = cx.jiffies();
        }
        q
    }
    fn fresh(&self, cx: &Cx) -> MqQueue {
        let (now, j) = (cx.now().0, cx.jiffies());
        MqQueue {
            think: Think {
                last_end: now + 1,
                ..Think::default()
            },
            io_start: now,
            created_j: j,
            decrease_j: j,
            ..MqQueue::default()
        }
    }
    fn date(q: &mut Queue<MqQueue>, cx: &Cx) {
        q.last_wr_j = cx.jiffies();
        q.soft_rt_next_start_j = cx.jiffies();
    }
    /// `bfq_init_bfqq`: creates a queue with the initial values.
    fn make_queue(&mut self, cx: &Cx, group: u32, prio: IoPrio, sync: bool) -> QId {
        let fresh = self.fresh(cx);
        let q = self.core.create(group, prio, sync, fresh);
        let idle = self.idle_class(q);
        let x = self.core.queue_mut(q);
        x.short_think = sync && !idle;
        x.own.just_created = sync;
        Self::date(x, cx);
        q
    }

    /// `bfq_check_ioprio_change`: applies a changed priority. The process gets another async queue
    /// at once. Its sync queue changes at the next activation.
    fn follow_prio(&mut self, cx: &mut Cx, ioc: IocId, prio: IoPrio, cgroup: CgroupId) {
        let generation = cx.iocs.get(ioc).prio_gen;
        let p = self.core.procs.at(ioc.idx());
        if p.prio_gen == generation {
            return;
        }
        p.prio_gen = generation;
        let [old, own] = p.queues;
        if let Some(old) = old {
            let who = Who {
                ioc,
                sync: false,
                prio,
                cgroup,
            };
            self.get_queue(cx, who, true);
            self.release(cx, old);
        }
        if let Some(own) = own {
            self.core.set_prio(own, prio);
        }
    }

    /// Removes the reference of one process to queue `q`.
    pub(super) fn release(&mut self, cx: &Cx, q: QId) {
        let x = self.queue(q);
        if x.busy && x.sort.is_empty() && self.core.serving != Some(q) {
            self.core.del_busy(q, false, cx.jiffies());
        }
        self.reassign_created(q, None);
        self.queue_mut(q).procs -= 1;
        self.core.free_if_unused(q);
        self.bury();
    }
    /// Removes freed queues from the lists of wakers and woken queues, and from the records of last
    /// queues.
    pub(super) fn bury(&mut self) {
        while let Some(q) = self.core.freed.pop() {
            self.set_waker(q, None);
            while let Some(w) = {
                let x = &mut self.core.queues[q as usize].own;
                self.woken_links.pop_front(&mut x.woken)
            } {
                self.queue_mut(w).own.waker = None;
            }
            if self.last_completed == Some(q) {
                self.last_completed = None;
            }
            self.reassign_created(q, None);
        }
    }
    pub(super) fn tidy(&mut self) {
        self.core.reap();
        self.bury();
    }

    /// `bfq_exit_bfqq`: detaches the queues of an exiting process. If one of them is in service, it
    /// leaves service at once.
    pub(super) fn exit(&mut self, cx: &mut Cx, ioc: IocId) {
        if let Some(s) = self.core.procs.at(ioc.idx()).own.stable_with.take() {
            self.queue_mut(s).stable_refs -= 1;
            self.core.free_if_unused(s);
        }
        for i in [1, 0] {
            let Some(q) = self.core.procs.at(ioc.idx()).queues[i].take() else {
                continue;
            };
            if self.queue(q).owner == Some(ioc) {
                self.queue_mut(q).owner = None;
            }
            if self.core.serving == Some(q) {
                cx.why(rules::PROCESS_EXITED, || {
                    self.core.about(q).says("{who} exits: out of service")
                });
                self.leave(cx, q, Reason::Timeout);
                self.schedule(cx);
            }
            self.core.abandon(q);
            self.release(cx, q);
        }
        self.tidy();
    }
}

/// Returns the cgroup that is charged: the cgroup of the bio, or else the cgroup of the process.
pub(super) fn payer(cx: &Cx, named: CgroupId, ioc: IocId) -> CgroupId {
    if named == CgroupId::ROOT {
        cx.iocs.get(ioc).cgroup
    } else {
        named
    }
}

/// The process, kind and priority for which a queue is searched.
#[derive(Clone, Copy, Debug)]
struct Who {
    ioc: IocId,
    sync: bool,
    prio: IoPrio,
    cgroup: CgroupId,
}
