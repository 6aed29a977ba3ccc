//! The path of a bio to a request: splitting, merging, tags, and the routing of a new request.
//!
//! A task that gets no tag sleeps. Its further actions (further bios, the end of its plug, its
//! exit) wait until it wakes, as on a real machine.

use super::latency::Gate;
use super::limits::{Whole, cut};
use super::sleepers::{Need, Sleeper};
use super::wbt::Class;
use super::{MqQueue, RqTags};
use crate::merge::{self, bio_mergeable};
use seekwell_core::{
    Action, Bio, BioDone, Device, Era, Event, Flags, Instant, IocId, More, Op, PAGE_SECTORS, RqId,
    State, TaskId,
};
use seekwell_sched::{Cx, Insert, Scheduler};

/// An action of a task.
#[derive(Clone, Copy, Debug)]
pub(super) enum SubmitStep {
    /// A bio before it passes the limits and is split.
    Whole(Whole),
    /// A bio that is not larger than the largest request.
    Bio(Bio),
    Plug,
    Unplug,
    Exit,
}

/// Flags of a bio that needs a flush sequence.
const FLUSHING: Flags = Flags::PREFLUSH.union(Flags::FUA);

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// Handles the arrival of a bio.
    pub(super) fn come(&mut self, bio: &Bio) {
        self.acct.stats.bios += 1;
        bio_event(&mut self.cx, Action::Queue, bio);
        if self.limits.on() {
            let (bio, rest, asked) = (*bio, false, false);
            return self.act_one(bio.task, SubmitStep::Whole(Whole { bio, rest, asked }));
        }
        let max = self.largest_piece(bio);
        let splits = matches!(bio.op, Op::Read | Op::Write) && bio.sectors.0 > max;
        if splits {
            return self.come_in_pieces(*bio, max);
        }
        match self.sleepers.then_of(bio.task) {
            Some(then) => then.push_back(SubmitStep::Bio(*bio)),
            None => self.bio(bio, self.cx.now()),
        }
    }
    #[cold]
    fn come_in_pieces(&mut self, mut rest: Bio, max: u32) {
        for _ in 0..self.will_be_split(&rest, max) {
            let piece = cut(&mut rest, max);
            self.act_one(piece.task, SubmitStep::Bio(piece));
        }
    }
    /// Returns the number of pieces of at most `max` sectors into which a bio is split. The bio
    /// completes with its last piece.
    pub(super) fn will_be_split(&mut self, bio: &Bio, max: u32) -> u32 {
        let pieces = bio.sectors.0.div_ceil(max);
        let now = self.cx.now();
        self.cx.log.push(|| Event {
            more: More::Pieces(pieces),
            ..Event::of_bio(now, Action::Split, bio)
        });
        self.splits.insert(bio.id, (pieces, false));
        pieces
    }

    /// Returns the largest number of sectors that is not split. `max_sectors` and the scatter list
    /// limit this number. The scatter list ends between two pages.
    pub(super) fn largest_piece(&self, bio: &Bio) -> u32 {
        let page = u32::from(PAGE_SECTORS);
        let q = &self.cx.queue;
        let listed = q.max_segments.saturating_mul(u32::from(bio.segment));
        let listed = (listed / page * page).max(page);
        q.max_sectors.0.min(listed).max(1)
    }

    /// Does an action of a task. If the task sleeps, the action is done later, in its order.
    pub(super) fn act_one(&mut self, task: TaskId, deed: SubmitStep) {
        match self.sleepers.then_of(task) {
            Some(then) => then.push_back(deed),
            None => self.perform(task, deed),
        }
    }

    fn perform(&mut self, task: TaskId, deed: SubmitStep) {
        match deed {
            SubmitStep::Whole(whole) => self.whole(task, whole),
            SubmitStep::Bio(bio) => self.bio(&bio, self.cx.now()),
            SubmitStep::Plug => self.open_plug(task),
            SubmitStep::Unplug => self.close_plug(task),
            SubmitStep::Exit => {
                self.drop_plug(task);
                self.tasks.exit(&mut self.cx, &mut *self.sched, task);
                self.after_callback();
            }
        }
    }

    fn bio(&mut self, bio: &Bio, arrived: Instant) {
        let mut bio = *bio;
        bio.cpu = self.cpu_of(bio.cpu);
        if !self.dev.write_cache {
            bio.flags -= FLUSHING;
            if bio.sectors.0 == 0 {
                self.ready.push(BioDone {
                    id: bio.id,
                    at: self.cx.now(),
                    error: false,
                });
                return;
            }
        }
        if self.switching.is_some() {
            return self.sleep(&bio, arrived, Need::Thaw, None);
        }
        let ioc = self.tasks.ioc_of(&mut self.cx, &mut *self.sched, bio.task);
        if bio_mergeable(&bio) && self.cx.queue.nomerges < 2 && self.try_merge(&bio, ioc) {
            self.cost_merged(&bio);
            return;
        }
        self.pass(&bio, Some(ioc), arrived, Gate::Cost);
    }
    /// Returns the CPU of this queue that is used for a given CPU number.
    #[inline]
    fn cpu_of(&self, cpu: u16) -> u16 {
        // The number is nearly always in range, and a division would take longer.
        match self.cx.queue.cpus.max(1) {
            cpus if cpu < cpus => cpu,
            cpus => cpu % cpus,
        }
    }

    /// Takes a tag for a bio that has passed all gates, or puts its task to sleep for one. `ioc` is
    /// looked up if it is `None`.
    pub(super) fn get_tag(
        &mut self,
        bio: &Bio,
        ioc: Option<IocId>,
        arrived: Instant,
        slot: Option<Class>,
    ) {
        let ioc = match ioc {
            Some(ioc) => ioc,
            None => self.tasks.ioc_of(&mut self.cx, &mut *self.sched, bio.task),
        };
        let hctx = self.cx.queue.hctx_of(bio.cpu) as usize;
        self.current = hctx;
        let limit = if self.owned_by_scheduler(bio) {
            self.sched.limit_depth(&mut self.cx, bio, ioc)
        } else {
            None
        };
        if !self.tag_available(hctx, limit) {
            // As in the kernel, the queue runs once before the submitter sleeps.
            self.run(hctx);
            if !self.tag_available(hctx, limit) {
                return self.sleep(bio, arrived, Need::Tag { hctx, limit }, slot);
            }
        }
        self.make_request(bio, ioc, arrived, limit, slot);
    }

    /// Returns whether the request of a bio enters the scheduler. It then counts for the
    /// scheduler's limits.
    fn owned_by_scheduler(&self, bio: &Bio) -> bool {
        if self.cx.queue.era == Era::Mq6_1 && bio.flags.intersects(FLUSHING) {
            return false;
        }
        bio.op != Op::Flush && bio.sectors.0 > 0
    }

    fn try_merge(&mut self, bio: &Bio, ioc: IocId) -> bool {
        if self.plug_merge(bio, ioc) {
            return true;
        }
        if self.cx.nr_sorted == 0 {
            return false;
        }
        let found = merge::find(&mut self.cx, &mut *self.sched, bio, ioc, self.hash);
        let merged = found.is_some_and(|(rq, kind)| {
            let (cx, sched) = (&mut self.cx, &mut *self.sched);
            merge::merge_bio(cx, sched, &mut self.acct, rq, bio, kind)
        });
        self.free_merged();
        self.after_callback();
        merged
    }

    fn tag_available(&self, hctx: usize, limit: Option<u32>) -> bool {
        self.hctx[hctx].has_tag(self.bypass, limit)
    }

    /// Puts a task to sleep and flushes its plug, because no other code would do so.
    #[cold]
    pub(super) fn sleep(&mut self, bio: &Bio, arrived: Instant, need: Need, slot: Option<Class>) {
        self.acct.stats.waits += 1;
        bio_event(&mut self.cx, Action::SleepRq, bio);
        let then = self.sleepers.list();
        self.sleepers.push(Sleeper {
            task: bio.task,
            need,
            bio: *bio,
            arrived,
            slot,
            then,
        });
        self.flush_plug_of(bio.task, true);
    }

    /// Wakes the tasks that can continue, in the order in which they fell asleep, and does their
    /// actions.
    #[inline]
    pub(super) fn wake_sleepers(&mut self) {
        if self.switching.is_some() || !self.sleepers.is_empty() {
            self.wake_all();
        }
    }
    fn wake_all(&mut self) {
        self.poll_switch();
        while let Some(mut s) = self.next_awake() {
            let mut fallen = self.sleepers.sleeps();
            self.goes_on(&s);
            loop {
                // If a task has fallen asleep during the last action, it may be this task.
                let now = self.sleepers.sleeps();
                if std::mem::replace(&mut fallen, now) != now
                    && self.sleepers.resume_later(s.task, &mut s.then)
                {
                    break;
                }
                let Some(deed) = s.then.pop_front() else {
                    break;
                };
                self.perform(s.task, deed);
            }
            // If the task sleeps again, its remaining actions were moved to its new entry.
            self.sleepers.give_back(s.then);
        }
    }
    /// Lets a woken task continue with the step before which it fell asleep.
    fn goes_on(&mut self, s: &Sleeper) {
        let (bio, arrived) = (&s.bio, s.arrived);
        match s.need {
            Need::Granted(Gate::Cost) => self.pass(bio, None, arrived, Gate::Latency),
            Need::Granted(Gate::Latency) => self.pass(bio, None, arrived, Gate::Writeback),
            Need::Slot(_) | Need::Granted(Gate::Writeback) => {
                self.get_tag(bio, None, arrived, s.slot);
            }
            Need::Tag { limit, .. } => {
                let ioc = self.tasks.ioc_of(&mut self.cx, &mut *self.sched, bio.task);
                self.make_request(bio, ioc, arrived, limit, s.slot);
            }
            Need::Thaw => self.bio(bio, arrived),
        }
    }
    fn next_awake(&mut self) -> Option<Sleeper> {
        if self.sleepers.is_empty() {
            return None;
        }
        while let Some((task, class)) = self.next_granted() {
            let gate = Gate::Writeback;
            self.sleepers.grant(TaskId(task), gate, Some(class));
        }
        while let Some((task, paid)) = self.next_that_paid() {
            if let Some(bio) = self.sleepers.bio_of(task) {
                self.has_paid(&bio, paid);
            }
            self.sleepers.grant(task, Gate::Cost, None);
        }
        while let Some(task) = self.next_with_depth() {
            self.sleepers.grant(task, Gate::Latency, None);
        }
        let (bypass, frozen) = (self.bypass, self.switching.is_some());
        let all = &self.hctx;
        self.sleepers.wake(|need| match need {
            Need::Tag { hctx, limit } => all[hctx].has_tag(bypass, limit),
            Need::Slot(_) => false,
            Need::Granted(_) => true,
            Need::Thaw => !frozen,
        })
    }

    fn make_request(
        &mut self,
        bio: &Bio,
        ioc: IocId,
        arrived: Instant,
        limit: Option<u32>,
        slot: Option<Class>,
    ) {
        let (era, now) = (self.cx.queue.era, self.cx.now());
        let prio = self.cx.bio_prio(bio, ioc);
        let hctx = self.cx.queue.hctx_of(bio.cpu);
        let elv = self.owned_by_scheduler(bio);
        let rq = self
            .cx
            .rqs
            .alloc_arrived(*bio, ioc, prio, era, now, arrived);
        self.cx.iocs.get_mut(ioc).requests += 1;
        let start = self.plug_clock(bio.task);
        let r = &mut self.cx.rqs[rq];
        (r.hctx, r.elv, r.start) = (hctx, elv, start);
        if bio.flags.intersects(FLUSHING) {
            r.sync = true;
        }
        let bypass = self.bypass;
        let h = &mut self.hctx[hctx as usize];
        if bypass {
            h.driver_tags.take(None);
        } else {
            h.sched_tags.take(limit);
        }
        *self.tags.at(rq.idx()) = RqTags {
            sched: !bypass,
            driver: bypass,
            limit,
            slot,
            ..RqTags::default()
        };
        self.cx.event(Action::GetRq, rq);
        if elv {
            self.sched.prepare(&mut self.cx, rq);
        }
        self.route(rq, bio.task);
    }

    /// Routes a request to the flush sequences, the plug, the scheduler, or directly to the driver.
    fn route(&mut self, rq: RqId, task: TaskId) {
        let r = &self.cx.rqs[rq];
        let (sync, h) = (r.sync, r.hctx as usize);
        if (r.op == Op::Flush || r.flags.intersects(FLUSHING)) && self.insert_flush(rq) {
            return;
        }
        if self.add_to_plug(rq, task) {
            return;
        }
        let one_queue = self.hctx.len() == 1;
        if !self.bypass || (self.hctx[h].busy > 0 && (one_queue || !sync)) {
            self.insert(rq, Insert::Sorted);
            self.run_later(h);
            return;
        }
        self.issue_or_queue(rq);
    }

    /// Inserts a request into the scheduler. Without a scheduler, inserts it into the FIFO of its
    /// CPU.
    pub(super) fn insert(&mut self, rq: RqId, how: Insert) {
        if how == Insert::Sorted {
            if self.hash && self.sched.insert_merges() {
                self.sched.inserting(&mut self.cx, rq);
                let (cx, sched) = (&mut self.cx, &mut *self.sched);
                if merge::insert_merge(cx, sched, &mut self.acct, rq) {
                    self.free_merged();
                    return self.after_callback();
                }
            }
            merge::enter(&mut self.cx, rq, self.hash);
        } else {
            self.cx.rqs[rq].state = State::Sorted;
            self.cx.nr_sorted += 1;
        }
        self.cx.event(Action::Insert, rq);
        self.sched.insert(&mut self.cx, rq, how);
        self.after_callback();
    }

    /// Frees requests that merging has emptied.
    pub(super) fn free_merged(&mut self) {
        while let Some(rq) = self.acct.freed.pop() {
            self.free_request(rq);
        }
    }
}

fn bio_event(cx: &mut Cx, action: Action, bio: &Bio) {
    let at = cx.now();
    cx.log.push(|| Event::of_bio(at, action, bio));
}
