//! Plugs. A plug collects the requests of a task. They enter the scheduler or go to the driver
//! together.

use super::MqQueue;
use super::dispatch::Issue;
use seekwell_core::{Action, Bio, Device, Era, Flags, Instant, IocId, RqId, TaskId};
use seekwell_sched::{Insert, MergeKind, Scheduler};

/// Number of requests that a plug holds before it is flushed.
const PLUG_MAX: usize = 32;
/// If the request at the head of a plug's list is at least this large, the plug is flushed before
/// the next request is added, bytes.
const PLUG_BYTES: u64 = 128 << 10;

/// The plug of a task.
#[derive(Debug)]
pub(super) struct Plug {
    task: TaskId,
    /// Nesting depth of plugs. Only the outermost plug has an effect.
    nested: u32,
    pub(super) rqs: Vec<RqId>,
    /// Time of the first request since the last flush. All further requests use the same time.
    clock: Option<Instant>,
}

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    fn plug_of(&self, task: TaskId) -> Option<usize> {
        self.plugs
            .iter()
            .position(|p| p.nested > 0 && p.task == task)
    }
    pub(super) fn open_plug(&mut self, task: TaskId) {
        if let Some(i) = self.plug_of(task) {
            self.plugs[i].nested += 1;
            return;
        }
        match self.plugs.iter_mut().find(|p| p.nested == 0) {
            Some(p) => (p.task, p.nested) = (task, 1),
            None => self.plugs.push(Plug {
                task,
                nested: 1,
                rqs: Vec::new(),
                clock: None,
            }),
        }
    }
    pub(super) fn close_plug(&mut self, task: TaskId) {
        if let Some(i) = self.plug_of(task) {
            if self.plugs[i].nested == 1 {
                self.flush_plug(i, false);
            }
            self.plugs[i].nested -= 1;
        }
    }
    /// Removes the open plug of a task that has exited.
    pub(super) fn drop_plug(&mut self, task: TaskId) {
        if let Some(i) = self.plug_of(task) {
            self.flush_plug(i, true);
            self.plugs[i].nested = 0;
        }
    }
    pub(super) fn flush_plug_of(&mut self, task: TaskId, from_schedule: bool) {
        if let Some(i) = self.plug_of(task) {
            self.flush_plug(i, from_schedule);
        }
    }

    /// Returns the start time for a new request. Since 6.9, time stands still under a plug.
    pub(super) fn plug_clock(&mut self, task: TaskId) -> Instant {
        let now = self.cx.now();
        match self.plug_of(task) {
            Some(i) if self.cx.queue.era >= Era::Mq => *self.plugs[i].clock.get_or_insert(now),
            _ => now,
        }
    }

    /// Merges a bio into the last request of its task's plug. The scheduler is not asked.
    pub(super) fn plug_merge(&mut self, bio: &Bio, ioc: IocId) -> bool {
        let last = self
            .plug_of(bio.task)
            .and_then(|i| self.plugs[i].rqs.last());
        let Some(&rq) = last else {
            return false;
        };
        if !self.cx.merge_ok(rq, bio, ioc) {
            return false;
        }
        let Some(kind) = self.cx.merge_kind(rq, bio) else {
            return false;
        };
        if !self.cx.fits(rq, bio) {
            self.cx.rqs[rq].flags |= Flags::NOMERGE;
            return false;
        }
        let now = self.cx.now();
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
        true
    }

    /// Adds a request to its task's plug, if it has one.
    pub(super) fn add_to_plug(&mut self, rq: RqId, task: TaskId) -> bool {
        let Some(i) = self.plug_of(task) else {
            return false;
        };
        let rqs = &self.plugs[i].rqs;
        // The head of the list is the newest request if the list is a stack, and else the oldest.
        let head = match self.plug_is_stack() {
            true => rqs.last(),
            false => rqs.first(),
        };
        let large = |r: &RqId| self.cx.rqs[*r].sectors.bytes() >= PLUG_BYTES;
        let merges = self.cx.queue.nomerges < 2;
        if rqs.len() >= PLUG_MAX || (merges && head.is_some_and(large)) {
            self.flush_plug(i, false);
        }
        self.plugs[i].rqs.push(rq);
        self.cx.event(Action::Plug, rq);
        true
    }

    /// Returns whether the list of a plug is a stack (from 5.16 to about 6.12), and not a queue.
    fn plug_is_stack(&self) -> bool {
        self.cx.queue.era == Era::Mq6_1
    }

    /// Empties a plug. `from_schedule`: the task goes to sleep, so a worker submits the requests.
    fn flush_plug(&mut self, i: usize, from_schedule: bool) {
        self.plugs[i].clock = None;
        if self.plugs[i].rqs.is_empty() {
            return;
        }
        let mut rqs = std::mem::take(&mut self.plugs[i].rqs);
        self.cx.event(Action::Unplug, rqs[0]);
        if self.bypass && !from_schedule {
            self.issue_plugged(&mut rqs);
        }
        self.insert_groups(&mut rqs, from_schedule);
        rqs.clear();
        self.plugs[i].rqs = rqs;
    }

    /// Issues the requests of a plug one after the other, until one is refused. Used without a
    /// scheduler. From 5.16 to about 6.12, the plug is a stack: the last request is issued first.
    /// The requests that were not issued stay in `rqs`, in the order of submission.
    fn issue_plugged(&mut self, rqs: &mut Vec<RqId>) {
        let stack = self.plug_is_stack();
        if stack {
            rqs.reverse();
        }
        let mut taken = 0;
        for &rq in rqs.iter() {
            taken += 1;
            if self.issue(rq) != Issue::Done {
                let h = self.cx.rqs[rq].hctx as usize;
                self.bypass_insert(rq, false);
                self.run(h);
                break;
            }
        }
        rqs.drain(..taken);
        if stack {
            rqs.reverse();
        }
    }

    /// Inserts the requests of a plug into the scheduler. They are grouped by hardware queue and
    /// CPU, and each group is in the order of submission. 6.12 starts with the group of the first
    /// request, and 6.1 with that of the last request.
    fn insert_groups(&mut self, rqs: &mut Vec<RqId>, from_schedule: bool) {
        while !rqs.is_empty() {
            let lead = if self.cx.queue.era == Era::Mq6_1 {
                rqs.len() - 1
            } else {
                0
            };
            let lead = &self.cx.rqs[rqs[lead]];
            let (hctx, cpu) = (lead.hctx, lead.cpu);
            let h = hctx as usize;
            self.current = h;
            let mut direct = self.bypass && !from_schedule && self.hctx[h].busy == 0;
            let mut kept = 0;
            for k in 0..rqs.len() {
                let rq = rqs[k];
                let r = &self.cx.rqs[rq];
                if (r.hctx, r.cpu) != (hctx, cpu) {
                    rqs[kept] = rq;
                    kept += 1;
                } else if !direct {
                    self.insert(rq, Insert::Sorted);
                } else if self.issue(rq) != Issue::Done {
                    self.bypass_insert(rq, false);
                    direct = false;
                }
            }
            rqs.truncate(kept);
            if from_schedule {
                self.run_later(h);
            } else {
                self.run(h);
            }
        }
    }
}
