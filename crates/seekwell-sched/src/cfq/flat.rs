//! Code that 2.6.18 and 2.6.24 share: queues without groups, statistics per context, idle waits.

use super::context::Ctxs;
use super::numbers::{self, Choice};
use super::rules;
use super::sorted::{Held, NONE, Tables};
use super::tunables::Settings;
use super::{IDLE_TIMER, Version};
use crate::cx::{Cx, Emit};
use seekwell_core::{About, Class, Flags, IocId, RqId, Sector, TaskId};

/// A queue of 2.6.18 or 2.6.24.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Requests that the queue holds.
    pub held: Held,
    /// True for sync requests of one process; false for async requests of many processes.
    pub sync: bool,
    /// The process for which the queue was created; `None` for a shared async queue.
    pub pid: Option<TaskId>,
    /// Scheduling class, never `None`.
    pub class: Class,
    /// Priority level inside the class.
    pub level: u8,
    /// Number of requests that left the queue and have not completed.
    pub dispatched: u32,
    /// Number of queued requests with the flag META.
    pub meta_pending: u32,
    /// Number of references by contexts and requests, plus one for a shared async queue of 2.6.24.
    pub refs: u32,
    /// The jiffy at which the slice ends.
    pub slice_end: u64,
    /// Jiffies left from a slice that was cut short; negative after an overrun (2.6.24 only).
    pub slice_resid: i64,
    /// The jiffy of the queue's last service; 0 means never (2.6.18 only).
    pub served: u64,
    /// The list that contains the queue (2.6.18 only).
    pub list: Option<u8>,
    /// True if the queue holds requests, so that it is on a list or in the tree.
    pub busy: bool,
    /// True if the device should idle for the queue.
    pub idle_window: bool,
    /// True until the first request of the slice completes (2.6.24 only).
    pub slice_new: bool,
    /// True while the device idles for the queue.
    pub wait_request: bool,
    /// True if the queue keeps the disk until it has dispatched (2.6.18 only).
    pub must_dispatch: bool,
    /// True if may_queue returned MUST in this slice.
    pub must_alloc_slice: bool,
    /// True if the FIFO check of this slice is done.
    pub fifo_checked: bool,
    /// True if the class and level must be read again.
    pub prio_changed: bool,
}

impl Queue {
    fn new(sync: bool, idle_window: bool, pid: Option<TaskId>) -> Self {
        Queue {
            pid,
            held: Held::default(),
            sync,
            class: Class::Be,
            level: 4,
            dispatched: 0,
            meta_pending: 0,
            refs: 0,
            slice_end: 0,
            slice_resid: 0,
            served: 0,
            list: None,
            busy: false,
            idle_window,
            slice_new: false,
            wait_request: false,
            must_dispatch: false,
            must_alloc_slice: false,
            fifo_checked: false,
            prio_changed: true,
        }
    }
    /// Returns true if the queue is of the IDLE class.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.class == Class::Idle
    }
}

/// The device queues commands if more than this many requests were in flight at once.
const HW_QUEUE: u32 = 4;
/// How long the disk idles for a seeky process, in ms.
const SEEKY_WAIT_MS: u64 = 2;

/// The state that 2.6.18 and 2.6.24 share.
#[derive(Debug)]
pub(super) struct Flat {
    version: Version,
    pub set: Settings,
    pub tables: Tables,
    pub queues: Vec<Queue>,
    free_queues: Vec<u32>,
    pub active: Option<u32>,
    pub ctx: Ctxs,
    /// Number of queues with requests.
    pub busy: u32,
    /// Number of requests that the driver has taken and not completed.
    pub in_driver: u32,
    /// Number of sync requests that left a queue and have not completed.
    pub sync_flight: u32,
    /// The assumed position of the head. 2.6.24: the end of the last request that the driver took.
    /// 2.6.18: the end of the last request on the dispatch list.
    pub head: Sector,
    /// The jiffy of the last completion of a queue outside the IDLE class.
    pub last_end_any: u64,
    /// True if the device queues commands.
    pub hw_tag: bool,
}

impl Flat {
    pub fn new(cx: &Cx, version: Version) -> Self {
        Flat {
            version,
            set: Settings::new(cx, version),
            tables: Tables::default(),
            queues: Vec::new(),
            free_queues: Vec::new(),
            active: None,
            ctx: Ctxs::default(),
            busy: 0,
            in_driver: 0,
            sync_flight: 0,
            head: Sector(0),
            last_end_any: 0,
            hw_tag: false,
        }
    }
    #[inline]
    pub fn queue(&self, i: u32) -> &Queue {
        &self.queues[i as usize]
    }
    #[inline]
    pub fn queue_mut(&mut self, i: u32) -> &mut Queue {
        &mut self.queues[i as usize]
    }
    /// Returns the queue that contains request `rq`.
    #[inline]
    pub fn queue_of(&self, rq: RqId) -> u32 {
        self.tables.own[rq].queue
    }
    /// `cfq_schedule_dispatch`: asks for a deferred run of the queue, if any queue has requests.
    #[inline]
    pub fn kick(&self, cx: &mut Cx) {
        if self.busy > 0 {
            cx.kick();
        }
    }
    /// Returns the jiffy at which a slice of `q` ends if it starts at this jiffy.
    pub fn slice_end_of(&self, cx: &Cx, q: u32) -> u64 {
        let x = self.queue(q);
        cx.jiffies() + self.set.prio_slice_j(x.sync, x.level)
    }

    /// Returns a reference to queue `q` and its owner, for the text of a decision.
    pub fn about(&self, q: u32) -> About {
        About::queue(q, self.queues[q as usize].pid)
    }

    /// Creates a queue without references.
    pub fn new_queue(&mut self, cx: &Cx, sync: bool, ioc: IocId) -> u32 {
        let pid = sync.then(|| cx.iocs.get(ioc).task);
        let queue = Queue::new(sync, sync || self.version == Version::V2_6_18, pid);
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
        self.apply_prio(cx, i, ioc);
        i
    }
    /// `cfq_init_prio_data`: reads the class and level of `q` from `ioc`, if they changed. Returns
    /// true if it read them.
    pub fn apply_prio(&mut self, cx: &Cx, q: u32, ioc: IocId) -> bool {
        if !self.queue(q).prio_changed {
            return false;
        }
        let prio = cx.iocs.get(ioc).effective(cx.queue.era);
        let x = self.queue_mut(q);
        (x.class, x.level) = (prio.class, prio.level);
        if prio.class == Class::Idle {
            x.level = 7;
            x.idle_window = false;
        }
        x.prio_changed = false;
        true
    }
    /// Starts the think-time clock of a context at its first request.
    pub fn meet(&mut self, cx: &Cx, ioc: IocId) {
        let x = self.ctx.at(ioc);
        if !x.met {
            x.met = true;
            x.think.last_end = cx.jiffies();
            x.prio_gen = cx.iocs.get(ioc).prio_gen;
        }
    }
    /// Assigns request `rq` to queue `q`.
    pub fn own(&mut self, rq: RqId, q: u32) {
        self.queue_mut(q).refs += 1;
        self.tables.own.at(rq.idx()).queue = q;
    }
    /// Removes `rq` from its queue. Returns that queue; the caller must drop its reference.
    pub fn disown(&mut self, rq: RqId) -> Option<u32> {
        let q = std::mem::replace(&mut self.tables.own.at(rq.idx()).queue, NONE);
        (q != NONE).then_some(q)
    }
    /// Drops a reference to `q`. Returns true if it was the last one, so that the caller must free
    /// `q`.
    pub fn unref(&mut self, q: u32) -> bool {
        let x = self.queue_mut(q);
        x.refs -= 1;
        x.refs == 0
    }
    /// Frees the index of queue `q`, which has no references.
    pub fn free(&mut self, q: u32) {
        debug_assert!(!self.queue(q).busy, "cfq: a busy queue is freed");
        self.free_queues.push(q);
    }

    /// Returns the criteria by which this version chooses between requests.
    fn choice(&self) -> Choice {
        Choice {
            boost: match self.version {
                Version::V2_6_18 => Flags::empty(),
                _ => Flags::META,
            },
            pos: self.head,
        }
    }
    /// Returns the better of two requests of a queue.
    #[inline]
    pub fn choose(&self, cx: &Cx, r1: Option<RqId>, r2: Option<RqId>) -> Option<RqId> {
        numbers::choose(&cx.rqs, &self.set, self.choice(), r1, r2)
    }
    /// `cfq_find_next_rq`: returns the best request to follow `rq`, for the current position of the
    /// head. `rq` is still queued.
    #[inline]
    pub fn find_next(&self, cx: &Cx, q: u32, rq: RqId) -> Option<RqId> {
        let (next, prev) = self.tables.around(&self.queue(q).held, rq);
        self.choose(cx, next, prev)
    }
    /// `cfq_remove_request`: removes `rq` from its queue. The caller handles a queue that becomes
    /// empty.
    pub fn remove_request(&mut self, cx: &Cx, rq: RqId) {
        let q = self.queue_of(rq);
        if self.queue(q).held.next == Some(rq) {
            let next = self.find_next(cx, q, rq);
            self.queue_mut(q).held.next = next;
        }
        self.tables.remove(&mut self.queues[q as usize].held, rq);
        if cx.rqs[rq].flags.contains(Flags::META) {
            self.queue_mut(q).meta_pending -= 1;
        }
    }
    /// Updates the counters when `rq` moves from its queue to the dispatch list.
    pub fn send(&mut self, cx: &mut Cx, rq: RqId) {
        let q = self.queue_of(rq);
        let x = self.queue_mut(q);
        x.dispatched += 1;
        self.sync_flight += u32::from(x.sync);
        cx.emit(rq, Emit::Sorted);
    }

    /// `cfq_update_io_seektime`: updates the mean seek distance and (`cfq_update_io_thinktime`) the
    /// mean think time of the submitter.
    pub fn statistics(&mut self, cx: &Cx, rq: RqId, ioc: IocId) {
        let (now, limit) = (cx.jiffies(), self.set.slice_idle_j);
        let (start, end) = (cx.rqs[rq].sector, cx.rqs[rq].end());
        let x = self.ctx.at(ioc);
        x.think.update(now, limit);
        x.seek.update(start);
        x.seek.last_pos = end;
    }
    /// Returns true if a process with this mean seek distance, in sectors, is seeky.
    fn seeky(&self, mean: u64) -> bool {
        mean > match self.version {
            Version::V2_6_18 => 131_072,
            _ => 8192,
        }
    }
    /// `cfq_update_idle_window`: decides whether the device should idle for `q`.
    pub fn update_idle_window(&mut self, cx: &mut Cx, q: u32, ioc: IocId) {
        let limit = self.set.slice_idle_j;
        let x = *self.ctx.at(ioc);
        let was = self.queue(q).idle_window;
        let window = if !cx.alive(ioc) || limit == 0 || (self.hw_tag && self.seeky(x.seek.mean())) {
            false
        } else {
            x.think.mean().map_or(was, |m| m <= limit)
        };
        if window != was {
            self.queue_mut(q).idle_window = window;
            cx.why(rules::IDLE_WINDOW, || {
                let word = if window { "gets" } else { "loses" };
                self.about(q)
                    .says(format!("{{who}} {word} its idle window"))
            });
        }
    }

    /// `cfq_arm_slice_timer`: starts to idle for the active queue. Returns false if the device does
    /// not idle.
    pub fn arm(&mut self, cx: &mut Cx, q: u32) -> bool {
        let idle = self.set.slice_idle_j;
        if idle == 0 || !self.queue(q).idle_window || !self.ctx.active_alive(cx) {
            return false;
        }
        let seeky = self
            .ctx
            .active()
            .is_some_and(|c| c.seek.valid() && self.seeky(c.seek.mean()));
        let wait = match seeky {
            true => idle.min(cx.ms_to_jiffies(SEEKY_WAIT_MS)),
            false => idle,
        };
        let x = self.queue_mut(q);
        x.must_dispatch = true;
        x.wait_request = true;
        cx.arm_jiffy_for(IDLE_TIMER, cx.jiffies() + wait, || self.about(q));
        let hz = cx.hz();
        cx.why(rules::IDLE_ARMED, || {
            let wait_ms = wait * 1000 / hz;
            self.about(q)
                .says(format!("idles for {{who}}, at most {wait_ms} ms"))
        });
        true
    }

    /// `cfq_activate_request`: counts a request that the driver took. If more than four are in the
    /// driver, the device queues commands.
    pub fn activate(&mut self) {
        self.in_driver += 1;
        self.hw_tag |= self.in_driver > HW_QUEUE;
    }

    /// `__cfq_may_queue`: returns whether the process of queue `q` may allocate a request.
    pub fn may_queue(&mut self, q: u32) -> crate::contract::MayQueue {
        let x = self.queue_mut(q);
        if x.wait_request && !x.must_alloc_slice {
            x.must_alloc_slice = true;
            return crate::contract::MayQueue::Must;
        }
        crate::contract::MayQueue::May
    }

    /// Checks the invariants that both versions share.
    pub fn check(&self, cx: &Cx) {
        let (mut queued, mut sync_flight, mut busy) = (0, 0, 0);
        for (i, x) in self.queues.iter().enumerate().filter(|x| x.1.refs > 0) {
            self.tables.check(&x.held, i as u32);
            queued += x.held.len();
            busy += u32::from(x.busy);
            assert_eq!(
                x.busy,
                !x.held.is_empty(),
                "cfq: busy iff it holds requests"
            );
            if x.sync {
                sync_flight += x.dispatched;
            }
            let pointing = self.ctx.pointing_at(i as u32, cx.iocs.capacity());
            assert!(x.refs as usize >= pointing, "cfq: references of queue {i}");
        }
        assert_eq!(queued, cx.nr_sorted, "cfq: queued and nr_sorted");
        assert_eq!(busy, self.busy, "cfq: busy queues");
        assert_eq!(
            sync_flight, self.sync_flight,
            "cfq: sync requests in flight"
        );
        if cx.armed(IDLE_TIMER) {
            let a = self.active.expect("cfq: idling without an active queue");
            assert!(self.queue(a).wait_request, "cfq: idle timer without wait");
        }
    }
    /// Appends a description of the queues to `out`.
    pub fn describe(&self, cx: &Cx, out: &mut String) {
        let name = |i: u32| cx.rqs.first_bio(RqId(i)).id.0.to_string();
        for (i, x) in self.queues.iter().enumerate().filter(|x| x.1.refs > 0) {
            let active = self.active == Some(i as u32);
            if x.held.is_empty() && x.dispatched == 0 && !active {
                continue;
            }
            let ids: Vec<_> = self.tables.nodes.iter(&x.held.sorted).map(name).collect();
            *out += &format!(
                "{}queue {i} {:?}{} {} [{}] in flight {}; ",
                if active { "*" } else { "" },
                x.class,
                x.level,
                if x.sync { "sync" } else { "async" },
                ids.join(" "),
                x.dispatched
            );
        }
        *out += &format!("{} in the driver; hw_tag {}", self.in_driver, self.hw_tag);
    }
}
