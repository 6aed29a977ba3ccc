//! Queues of 3.4 and later. A process has one queue for sync requests; a few shared queues hold
//! async requests. This file decides which queue a request goes to, and when a queue is freed.

use super::Cfq;
use super::groups::{ROOT, TreeId};
use super::numbers::Choice;
use super::rules;
use super::sorted::{Held, NONE};
use super::{Version, numbers};
use crate::cx::Cx;
use seekwell_core::{About, CgroupId, Class, Flags, IoPrio, IocId, RqId, Sector, TaskId};

/// Workload type of a queue. The values are those of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    /// Async requests.
    Async = 0,
    /// Sync requests of a queue for which CFQ does not idle individually.
    NoIdle = 1,
    /// Sync requests of a queue for which CFQ idles.
    Sync = 2,
}

#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Requests that the queue holds.
    pub held: Held,
    /// True for sync requests of one process; false for async requests of many processes.
    pub sync: bool,
    /// Scheduling class, never `None`.
    pub class: Class,
    /// Priority level inside the class.
    pub level: u8,
    /// Level of the position tree that the queue belongs to.
    pub org_level: u8,
    /// The process for which the queue was created (`cfqq->pid`); `None` for an async queue.
    pub pid: Option<TaskId>,
    /// Index of the group that the queue belongs to.
    pub group: u32,
    /// Number of requests that left the queue and have not completed.
    pub dispatched: u32,
    /// Number of queued requests with the flag PRIO.
    pub prio_pending: u32,
    /// Number of references by contexts, merges and requests, plus one for a shared async queue.
    pub refs: u32,
    /// Number of references by requests.
    pub allocated: u32,
    /// The service tree that contains the queue.
    pub tree: Option<TreeId>,
    /// The position tree that contains the queue.
    pub position: Option<u8>,
    /// The jiffy at which the queue became active.
    pub dispatch_start: u64,
    /// The jiffy of the first completion in the slice; 0 before that.
    pub slice_start: u64,
    /// The jiffy at which the slice ends.
    pub slice_end: u64,
    /// Length of the slice in jiffies.
    pub allocated_slice: u64,
    /// Number of requests dispatched in the slice.
    pub slice_dispatch: u64,
    /// Jiffies left from a slice that was cut short; negative after an overrun.
    pub slice_resid: i64,
    /// One bit for each of the last 32 requests. Rotational device: 1 if the request was far from
    /// the one before. Other device: 1 if the request was small.
    pub seek_history: u32,
    /// End sector of the last request; 0 if there was none.
    pub last_pos: Sector,
    /// The queue that the contexts will use from their next request on.
    pub merge_to: Option<u32>,
    /// True if the queue is on a service tree.
    pub busy: bool,
    /// True if the device should idle for the queue.
    pub idle_window: bool,
    /// True until the first request of the slice completes.
    pub slice_new: bool,
    /// True while the device idles for the queue.
    pub wait_request: bool,
    /// True if the slice was extended until the next request arrives.
    pub wait_busy: bool,
    /// True if a request arrived while the disk idled, so that the queue must dispatch.
    pub must_dispatch: bool,
    /// True if may_queue returned MUST in this slice.
    pub must_alloc_slice: bool,
    /// True if the FIFO was checked in this slice.
    pub fifo_checked: bool,
    /// True if the class and level must be read again.
    pub prio_changed: bool,
    /// True if the queue once held 4 requests. CFQ idles for such a queue even if it is seeky.
    pub deep: bool,
    /// True if several processes share the queue.
    pub coop: bool,
    /// True if the processes that share the queue work in different areas, so that it must be
    /// split.
    pub split_coop: bool,
}

/// A queue is seeky if more than this many of its last 32 requests were far (on a device without
/// rotation: small).
const SEEKY_MORE_THAN: u32 = 4;

impl Queue {
    fn new(sync: bool, group: u32, pid: Option<TaskId>) -> Self {
        Queue {
            pid,
            held: Held::default(),
            sync,
            class: Class::Be,
            level: 4,
            org_level: 4,
            group,
            dispatched: 0,
            prio_pending: 0,
            refs: 0,
            allocated: 0,
            tree: None,
            position: None,
            dispatch_start: 0,
            slice_start: 0,
            slice_end: 0,
            allocated_slice: 0,
            slice_dispatch: 0,
            slice_resid: 0,
            seek_history: 0,
            last_pos: Sector(0),
            merge_to: None,
            busy: false,
            idle_window: sync,
            slice_new: false,
            wait_request: false,
            wait_busy: false,
            must_dispatch: false,
            must_alloc_slice: false,
            fifo_checked: false,
            prio_changed: false,
            deep: false,
            coop: false,
            split_coop: false,
        }
    }
    /// Returns the workload type.
    #[inline]
    pub fn kind(&self) -> Kind {
        match (self.sync, self.idle_window) {
            (false, _) => Kind::Async,
            (true, false) => Kind::NoIdle,
            (true, true) => Kind::Sync,
        }
    }
    /// Returns true if the queue is seeky.
    #[inline]
    pub fn seeky(&self) -> bool {
        self.seek_history.count_ones() > SEEKY_MORE_THAN
    }
    /// Returns true if the queue is of the IDLE class.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.class == Class::Idle
    }
    /// Returns true if the queue is of the RT class.
    #[inline]
    pub fn is_rt(&self) -> bool {
        self.class == Class::Rt
    }
    /// `cfq_slice_used`: returns true if the slice is over.
    #[inline]
    pub fn slice_used(&self, now: u64) -> bool {
        !self.slice_new && now >= self.slice_end
    }
    /// Returns the number of contexts that use the queue, or will use it after a planned merge.
    pub fn process_refs(&self) -> u32 {
        self.refs - self.allocated
    }
}

/// Number of shared async queues: 8 of class RT, 8 of class BE, one of class IDLE.
pub(super) const ASYNC_QUEUES: usize = 17;

pub(super) fn async_slot(prio: IoPrio) -> usize {
    match prio.class {
        Class::Rt => prio.level as usize,
        Class::Idle => 16,
        Class::Be | Class::None => 8 + prio.level as usize,
    }
}

impl Cfq {
    #[inline]
    pub(super) fn queue(&self, i: u32) -> &Queue {
        &self.queues[i as usize]
    }
    #[inline]
    pub(super) fn queue_mut(&mut self, i: u32) -> &mut Queue {
        &mut self.queues[i as usize]
    }

    /// Returns the queue that contains request `rq`.
    #[inline]
    pub(super) fn queue_of(&self, rq: RqId) -> u32 {
        self.tables.own[rq].queue
    }

    /// Returns the better of two requests of a queue for a head at `pos`.
    #[inline]
    pub(super) fn choose(
        &self,
        cx: &Cx,
        r1: Option<RqId>,
        r2: Option<RqId>,
        pos: Sector,
    ) -> Option<RqId> {
        let by = Choice {
            boost: Flags::PRIO,
            pos,
        };
        numbers::choose(&cx.rqs, &self.set, by, r1, r2)
    }
    /// `cfq_find_next_rq`: returns the best request to follow `rq`, which is still queued.
    #[inline]
    pub(super) fn find_next(&self, cx: &Cx, q: u32, rq: RqId) -> Option<RqId> {
        let (next, prev) = self.tables.around(&self.queue(q).held, rq);
        self.choose(cx, next, prev, cx.rqs[rq].sector)
    }

    /// `cfq_init_prio_data`: reads the class and level of `q` from `ioc`, if they changed.
    pub(super) fn apply_prio(&mut self, cx: &Cx, q: u32, ioc: IocId) {
        if !self.queue(q).prio_changed {
            return;
        }
        let c = cx.iocs.get(ioc);
        let (explicit, prio) = (c.ioprio.class, c.effective(cx.queue.era));
        let x = self.queue_mut(q);
        x.class = prio.class;
        x.level = prio.level;
        if explicit == Class::Idle {
            x.level = 7;
            x.idle_window = false;
        }
        x.org_level = x.level;
        x.prio_changed = false;
    }

    /// Returns a reference to queue `q` and its owner, for the text of a decision.
    pub(super) fn about(&self, q: u32) -> About {
        About::queue(q, self.queues[q as usize].pid)
    }

    fn new_queue(&mut self, cx: &Cx, sync: bool, group: u32, ioc: IocId) -> u32 {
        let pid = sync.then(|| cx.iocs.get(ioc).task);
        let queue = Queue::new(sync, group, pid);
        let i = match self.free_queues.pop() {
            Some(i) => {
                self.queues[i as usize] = queue;
                i
            }
            None => {
                self.queues.push(queue);
                (self.queues.len() - 1) as u32
            }
        };
        self.groups[group as usize].refs += 1;
        let x = self.queue_mut(i);
        x.prio_changed = true;
        self.apply_prio(cx, i, ioc);
        i
    }

    /// `cfq_get_queue`: returns the shared async queue for `ioc` and takes a reference to it. If a
    /// queue is allocated, the group of the submitter is created too, although async queues belong
    /// to the root group.
    fn async_queue(&mut self, cx: &Cx, ioc: IocId, cgroup: CgroupId) -> u32 {
        let c = cx.iocs.get(ioc);
        let prio = match self.version {
            // A task without ioprio uses the queue of BE level 4, whatever its nice value is.
            Version::V4_0 | Version::V4_4 => {
                let seen = self.ctx.get(ioc).map_or(IoPrio::NONE, |x| x.ioprio);
                if seen.class == Class::None {
                    let mut unset = c.clone();
                    unset.ioprio = IoPrio::NONE;
                    unset.effective(cx.queue.era)
                } else {
                    seen
                }
            }
            _ if c.ioprio.class == Class::None => IoPrio::be(4),
            _ => c.ioprio,
        };
        let slot = async_slot(prio);
        if self.async_queues[slot].is_none() {
            self.group_for(cx, cgroup);
        }
        let q = match (self.async_queues[slot], self.ctx.queue(ioc, false)) {
            (Some(q), _) => q,
            // The table entry is empty: store the queue that the context already has.
            (None, Some(old)) => old,
            (None, None) => self.new_queue(cx, false, ROOT, ioc),
        };
        if self.async_queues[slot].is_none() {
            self.async_queues[slot] = Some(q);
            self.queue_mut(q).refs += 1;
        }
        self.queue_mut(q).refs += 1;
        q
    }

    /// `check_blkcg_changed`: applies changes of the cgroup and (`check_ioprio_changed`) of the
    /// ioprio since the context's last request.
    fn notice_changes(&mut self, cx: &mut Cx, ioc: IocId, cgroup: CgroupId) {
        let c = cx.iocs.get(ioc);
        let (prio_gen, ioprio) = (c.prio_gen, c.ioprio);
        let x = *self.ctx.at(ioc);
        let changed = match self.version {
            Version::V4_0 | Version::V4_4 => x.ioprio != ioprio,
            _ => x.prio_gen != prio_gen,
        };
        if x.moved {
            self.ctx.at(ioc).moved = false;
            if x.queue[1] != NONE {
                cx.why(rules::GROUP_CHANGED, || {
                    About::ioc(ioc).says("{who} moved to another group: new queue")
                });
                self.ctx.at(ioc).queue[1] = NONE;
                // The kernel loses the references of a planned merge here and never drops them.
                self.drop_merge_chain(cx, x.queue[1]);
                self.put(cx, x.queue[1]);
            }
        }
        if changed {
            if x.queue[0] != NONE {
                let new = self.async_queue(cx, ioc, cgroup);
                self.ctx.at(ioc).queue[0] = new;
                self.put(cx, x.queue[0]);
            }
            if let Some(q) = self.ctx.queue(ioc, true) {
                self.queue_mut(q).prio_changed = true;
            }
            let x = self.ctx.at(ioc);
            (x.prio_gen, x.ioprio) = (prio_gen, ioprio);
        }
    }

    /// `cfq_set_request`: gives a new request its queue. Splits a shared queue or follows a planned
    /// merge.
    pub(super) fn set_request(&mut self, cx: &mut Cx, rq: RqId) {
        let (ioc, sync) = (cx.rqs[rq].ioc, cx.rqs[rq].sync);
        let cgroup = cx.iocs.get(ioc).cgroup;
        let now = cx.jiffies();
        let x = self.ctx.at(ioc);
        if !x.met {
            x.met = true;
            x.think.last_end = now;
            x.prio_gen = cx.iocs.get(ioc).prio_gen;
            x.ioprio = cx.iocs.get(ioc).ioprio;
        }
        self.notice_changes(cx, ioc, cgroup);
        let mut q = self.ctx.queue(ioc, sync);
        if let Some(i) = q
            && self.queue(i).coop
            && self.queue(i).split_coop
        {
            q = self.split(cx, ioc, i);
        }
        let q = match q {
            Some(i) => match self.queue(i).merge_to {
                Some(to) => self.follow_merge(cx, ioc, i, to),
                None => i,
            },
            None => {
                let i = if sync {
                    let group = self.group_for(cx, cgroup);
                    let i = self.new_queue(cx, true, group, ioc);
                    self.queue_mut(i).refs += 1;
                    i
                } else {
                    self.async_queue(cx, ioc, cgroup)
                };
                self.ctx.at(ioc).queue[sync as usize] = i;
                i
            }
        };
        let x = self.queue_mut(q);
        x.allocated += 1;
        x.refs += 1;
        self.tables.own.at(rq.idx()).queue = q;
    }

    /// `cfq_put_request`: drops the reference of a request that is freed.
    pub(super) fn put_request(&mut self, cx: &mut Cx, rq: RqId) {
        let q = self.queue_of(rq);
        if q == NONE {
            return;
        }
        self.tables.own[rq].queue = NONE;
        self.queue_mut(q).allocated -= 1;
        self.put(cx, q);
    }

    /// `cfq_put_queue`: drops a reference to `q`, and frees `q` if it was the last one.
    pub(super) fn put(&mut self, cx: &mut Cx, q: u32) {
        let x = self.queue_mut(q);
        x.refs -= 1;
        if x.refs > 0 {
            return;
        }
        debug_assert!(
            x.held.is_empty(),
            "cfq: a queue is freed with requests in it"
        );
        if self.active == Some(q) {
            cx.why(rules::LAST_USER_GONE, || {
                self.about(q).says("nothing refers to {who} any more")
            });
            self.expire(cx, q, false);
            self.kick(cx);
        }
        debug_assert!(!self.queue(q).busy, "cfq: a busy queue is freed");
        let group = self.queue(q).group;
        self.free_queues.push(q);
        self.put_group(group);
    }

    /// `cfq_exit_cfqq`: releases the queues of a context whose last task has exited.
    pub(super) fn exit(&mut self, cx: &mut Cx, ioc: IocId) {
        for kind in [0, 1] {
            let q = std::mem::replace(&mut self.ctx.at(ioc).queue[kind], NONE);
            if q == NONE {
                continue;
            }
            if self.active == Some(q) {
                cx.why(rules::PROCESS_EXITED, || {
                    self.about(q).says("{who} of the active queue has exited")
                });
                self.expire(cx, q, false);
                self.kick(cx);
            }
            self.drop_merge_chain(cx, q);
            self.put(cx, q);
        }
    }
}
