//! 3.4 and later: chooses the queue and the request, and decides when a queue must wait.

use super::Cfq;
use super::groups::{Rank, TreeId};
use super::queue::Kind;
use super::rules;
use crate::cx::{Cx, Emit};
use seekwell_core::{RqId, Rule};

/// Shortest service of a workload, in jiffies.
const WORKLOAD_SLICE_MIN: u64 = 2;

/// The workload in service: a group, a class, a type and the end of its service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    /// Index of the group.
    pub group: u32,
    /// Class in service.
    pub rank: Rank,
    /// Workload type in service.
    pub kind: Kind,
    /// The jiffy after which a new workload is chosen.
    pub expires: u64,
}

/// The decision about the active queue.
enum Verdict {
    /// The active queue dispatches.
    Keep,
    /// Nothing is dispatched, because the disk waits for the active queue.
    Wait,
    /// The slice of the active queue is over. Contains the next queue if it is already chosen.
    Expire(Option<u32>),
}

impl Cfq {
    /// `cfq_should_idle`: returns true if the device should idle for the next request of `q`.
    pub(super) fn should_idle(&self, cx: &Cx, q: u32) -> bool {
        let x = self.queue(q);
        if self.set.slice_idle_j == 0 || x.is_idle() {
            return false;
        }
        let queues_inside = !cx.queue.rotational && self.hw_tag != 0;
        if x.idle_window && !queues_inside {
            return true;
        }
        let Some(id) = x.tree else { return false };
        let g = self.group(x.group);
        x.sync && g.count(id) == 1 && !g.tree(id).think.big(self.set.slice_idle_j)
    }

    /// `__cfq_set_active_queue`: makes `q` active and starts its slice. With `None`, no queue is
    /// active.
    pub(super) fn activate_queue(&mut self, cx: &mut Cx, q: Option<u32>) {
        self.active = q;
        let Some(q) = q else { return };
        let now = cx.jiffies();
        let x = self.queue_mut(q);
        x.slice_start = 0;
        x.slice_end = 0;
        x.allocated_slice = 0;
        x.slice_dispatch = 0;
        x.dispatch_start = now;
        x.wait_request = false;
        x.must_dispatch = false;
        x.must_alloc_slice = false;
        x.fifo_checked = false;
        x.slice_new = true;
        cx.disarm(super::IDLE_TIMER);
    }

    /// `__cfq_slice_expired`: ends the slice of `q`. If `timed_out`, saves the rest or the overrun
    /// of the slice.
    pub(super) fn expire(&mut self, cx: &mut Cx, q: u32, timed_out: bool) {
        let now = cx.jiffies();
        if self.queue(q).wait_request {
            cx.disarm(super::IDLE_TIMER);
        }
        let x = self.queue_mut(q);
        x.wait_request = false;
        x.wait_busy = false;
        if x.coop && x.seeky() {
            x.split_coop = true;
        }
        if timed_out {
            self.queue_mut(q).slice_resid = if self.queue(q).slice_new {
                self.scaled_slice(q) as i64
            } else {
                self.queue(q).slice_end.wrapping_sub(now) as i64
            };
        }
        cx.why(rules::SLICE_EXPIRED, || {
            let how = if timed_out { "in its time" } else { "early" };
            self.about(q)
                .says(format!("the slice of {{who}} ends {how}"))
        });
        self.charge(cx, q);
        if self.queue(q).busy && self.queue(q).held.is_empty() {
            self.rest(q);
        }
        if self.queue(q).busy {
            self.resort(cx, q, false);
            self.enter_position(cx, q);
        }
        if self.active == Some(q) {
            self.active = None;
        }
        self.ctx.deactivate();
    }

    /// `cfq_select_queue`: returns the queue to dispatch from and makes it active. Returns `None`
    /// if nothing may be dispatched.
    fn select(&mut self, cx: &mut Cx) -> Option<u32> {
        let chosen = match self.active {
            None => None,
            Some(a) => match self.judge(cx, a) {
                Verdict::Keep => return Some(a),
                Verdict::Wait => return None,
                Verdict::Expire(chosen) => {
                    self.expire(cx, a, false);
                    chosen
                }
            },
        };
        let q = match chosen {
            Some(q) => Some(q),
            None => {
                self.choose_workload(cx)?;
                let Serving {
                    group, rank, kind, ..
                } = self.serving;
                self.first_of(group, TreeId::new(rank, kind))
                    .filter(|_| self.rq_queued > 0)
            }
        };
        if let Some(q) = q {
            cx.why(rules::QUEUE_ACTIVATED, || {
                self.about(q).says("{who} becomes active")
            });
        }
        self.activate_queue(cx, q);
        q
    }

    /// `cfq_select_queue`: decides about the active queue `a`. The first condition that holds
    /// decides.
    fn judge(&mut self, cx: &mut Cx, a: u32) -> Verdict {
        let now = cx.jiffies();
        let x = self.queue(a);
        let empty = x.held.is_empty();
        if self.rq_queued == 0 {
            cx.why_text(rules::NOTHING_QUEUED, "nothing is queued anywhere");
            return Verdict::Wait;
        }
        if x.wait_busy && !empty {
            cx.why(rules::AWAITED_CAME, || {
                self.about(a)
                    .says("the awaited request came after the slice")
            });
            return Verdict::Expire(None);
        }
        let alone = self.group(x.group).busy == 1;
        if x.slice_used(now) && !x.must_dispatch {
            if alone && empty && x.dispatched > 0 && self.should_idle(cx, a) {
                cx.why(rules::LAST_OF_GROUP, || {
                    self.about(a)
                        .says("the slice of {who} is used up, but its group would lose its place")
                });
                return Verdict::Wait;
            }
            return self.group_idle(cx, a, rules::SLICE_USED);
        }
        if !empty {
            cx.why(rules::SLICE_CONTINUES, || {
                self.about(a).says("{who} has requests and time")
            });
            return Verdict::Keep;
        }
        if let Some(c) = self.cooperator(cx, a) {
            cx.why(rules::CLOSE_COOPERATOR, || {
                self.about(c).says("{who} has a request close to the head")
            });
            if self.queue(a).merge_to.is_none() {
                self.schedule_merge(cx, a, c);
            }
            return Verdict::Expire(Some(c));
        }
        if cx.armed(super::IDLE_TIMER) {
            cx.why(rules::IDLING, || self.about(a).says("idling for {who}"));
            return Verdict::Wait;
        }
        let x = self.queue_mut(a);
        // After the end of the slice the remaining time wraps around, as in the kernel.
        let early = x.slice_end.wrapping_sub(now) > now.wrapping_sub(x.slice_start);
        if x.seeky() && x.idle_window && (x.slice_new || early) {
            x.deep = false;
            x.idle_window = false;
            cx.why(rules::DEEP_SEEKY_OUTRUN, || {
                self.about(a)
                    .says("the device empties the seeky queue of {who} quickly")
            });
        }
        if self.queue(a).dispatched > 0 && self.should_idle(cx, a) {
            cx.why(rules::OWN_IN_FLIGHT, || {
                self.about(a)
                    .says("waiting for the requests of {who} in flight")
            });
            return Verdict::Wait;
        }
        self.group_idle(cx, a, rules::NOT_WORTH_IDLING)
    }

    /// `cfq_select_queue` (`check_group_idle`): decides whether the disk waits for the group of
    /// `a`, before `a` gives up the disk.
    fn group_idle(&self, cx: &mut Cx, a: u32, rule: &'static Rule) -> Verdict {
        let limit = self.set.group_idle_j;
        let g = self.group(self.queue(a).group);
        if limit > 0 && g.busy == 1 && g.dispatched > 0 && !g.think.big(limit) {
            cx.why(rules::GROUP_IDLE, || {
                self.about(a)
                    .says("waiting for the group's requests in flight")
            });
            return Verdict::Wait;
        }
        cx.why(rule, || self.about(a).says("{who} gives up the disk"));
        Verdict::Expire(None)
    }

    /// `choose_wl_class_and_type`: chooses the group, class and type to serve. Returns `None` if no
    /// queue has a request.
    fn choose_workload(&mut self, cx: &mut Cx) -> Option<()> {
        let now = cx.jiffies();
        let Some(group) = self.first_group() else {
            self.active = None;
            return None;
        };
        let saved = self.group(group).saved;
        self.serving.group = group;
        if saved.rest > 0 {
            self.serving.expires = now + saved.rest;
            self.serving.rank = saved.rank;
            self.serving.kind = saved.kind;
        } else {
            self.serving.expires = now - 1;
        }
        let was = self.serving.rank;
        let g = self.group(group);
        self.serving.rank = if g.busy_of(Rank::Rt) > 0 {
            Rank::Rt
        } else if g.busy_of(Rank::Be) > 0 {
            Rank::Be
        } else {
            self.serving.rank = Rank::Idle;
            self.serving.expires = now + 1;
            cx.why(rules::WORKLOAD_CHOSEN, || {
                format!("group {group}: only IDLE queues")
            });
            return Some(());
        };
        let id = TreeId::new(self.serving.rank, self.serving.kind);
        if was == self.serving.rank
            && self.group(group).count(id) > 0
            && now <= self.serving.expires
        {
            return Some(());
        }
        self.new_workload(cx, group);
        Some(())
    }

    /// `choose_wl_class_and_type`: chooses the type whose first queue has the lowest key, and the
    /// length of its service.
    fn new_workload(&mut self, cx: &mut Cx, group: u32) {
        let rank = self.serving.rank;
        let mut best: Option<(i64, Kind)> = None;
        for kind in [Kind::Async, Kind::NoIdle, Kind::Sync] {
            if let Some(q) = self.first_of(group, TreeId::new(rank, kind)) {
                let key = self.service.key(q);
                if best.is_none_or(|b| key < b.0) {
                    best = Some((key, kind));
                }
            }
        }
        let kind = best.map_or(Kind::NoIdle, |b| b.1);
        self.serving.kind = kind;
        let g = self.group(group);
        let queues = g.busy_avg[rank as usize].max(g.busy_of(rank)).max(1);
        let count = g.count(TreeId::new(rank, kind));
        let mut slice = self.group_slice(group) * count / queues;
        if kind == Kind::Async {
            let all = u64::from(self.busy.max(1));
            slice = slice.min(self.set.target_latency_j * g.busy_async() / all);
            slice = slice * self.set.slice_j[0] / self.set.slice_j[1].max(1);
        } else {
            slice = slice.max(2 * self.set.slice_idle_j);
        }
        let slice = slice.max(WORKLOAD_SLICE_MIN);
        self.serving.expires = cx.jiffies() + slice;
        cx.why(rules::WORKLOAD_CHOSEN, || {
            format!("group {group} {rank:?}: {kind:?} workload for {slice} jiffies")
        });
    }

    /// `cfq_dispatch_requests`: dispatches at most one request. With `force`, dispatches all
    /// requests. Returns the number dispatched.
    pub(super) fn dispatch_requests(&mut self, cx: &mut Cx, force: bool) -> u32 {
        if self.busy == 0 {
            return 0;
        }
        if force {
            return self.drain(cx);
        }
        let Some(q) = self.select(cx) else { return 0 };
        if !self.may_dispatch(cx, q) {
            return 0;
        }
        let Some(rq) = self.expired_head(cx, q).or(self.queue(q).held.next) else {
            return 0;
        };
        self.move_request(cx, rq);
        self.ctx.activate(cx.rqs[rq].ioc);
        let now = cx.jiffies();
        let alone = self.busy <= 1;
        let x = &mut self.queues[q as usize];
        x.slice_dispatch += 1;
        x.must_dispatch = false;
        let spent = !x.sync && x.slice_dispatch >= self.set.max_requests(x.level);
        if !alone && (spent || x.is_idle()) {
            x.slice_end = now + 1;
            self.expire(cx, q, false);
        }
        1
    }

    /// `cfq_check_fifo`: returns the oldest request if it has expired. Each slice makes this check
    /// once.
    fn expired_head(&mut self, cx: &mut Cx, q: u32) -> Option<RqId> {
        let x = self.queue_mut(q);
        if x.fifo_checked {
            return None;
        }
        x.fifo_checked = true;
        let head = RqId(x.held.fifo.first()?);
        if cx.jiffies() < self.tables.own[head].deadline_j {
            return None;
        }
        cx.why(rules::FIFO_EXPIRED, || {
            self.about(q)
                .with(head)
                .says("the oldest request of the queue has expired")
        });
        Some(head)
    }

    /// `cfq_dispatch_insert`: moves `rq` from its queue to the dispatch list.
    fn move_request(&mut self, cx: &mut Cx, rq: RqId) {
        let q = self.queue_of(rq);
        let next = self.find_next(cx, q, rq);
        self.queue_mut(q).held.next = next;
        self.remove_request(cx, rq);
        let x = self.queue_mut(q);
        x.dispatched += 1;
        let (group, sync) = (x.group, x.sync);
        self.group_mut(group).dispatched += 1;
        self.in_flight[sync as usize] += 1;
        cx.emit(rq, Emit::Sorted);
    }

    /// `cfq_may_dispatch`: returns true if the chosen queue may have one more request in flight.
    fn may_dispatch(&self, cx: &mut Cx, q: u32) -> bool {
        let x = self.queue(q);
        if self.in_flight[0] > 0 && self.should_idle(cx, q) {
            cx.why(rules::ASYNC_IN_FLIGHT, || {
                self.about(q).says("async requests are still in flight")
            });
            return false;
        }
        if !x.sync && self.in_flight[1] > 0 {
            cx.why(rules::SYNC_IN_FLIGHT, || {
                self.about(q)
                    .says("sync requests are in flight: async waits")
            });
            return false;
        }
        let dispatched = u64::from(x.dispatched);
        let mut limit = match x.is_idle() {
            true => 1,
            false => (self.set.quantum / 2).max(1),
        };
        if dispatched >= limit {
            let promoted = x.sync && self.busy_sync == 1;
            let soon = || {
                let left = self.set.slice_idle_j * dispatched;
                x.slice_new || cx.jiffies() + left > x.slice_end
            };
            if x.is_idle() || (self.busy > 1 && !promoted && soon()) {
                cx.why(rules::SLICE_ENDS_SOON, || {
                    self.about(q)
                        .says(format!("{{who}} has {dispatched} in flight"))
                });
                return false;
            }
            limit = match self.busy == 1 || promoted {
                true => u64::MAX,
                false => self.set.quantum,
            };
        }
        if !x.sync && self.set.low_latency {
            let since = cx.jiffies().saturating_sub(self.last_delayed_sync);
            let mut depth = since / self.set.slice_j[1].max(1);
            if depth == 0 && dispatched == 0 {
                depth = 1;
            }
            limit = limit.min(depth);
        }
        if dispatched >= limit {
            cx.why(rules::DEPTH_REACHED, || {
                self.about(q)
                    .says(format!("{{who}} may have {limit} in flight"))
            });
        }
        dispatched < limit
    }

    /// `cfq_forced_dispatch`: dispatches all requests, one queue after another. Returns their
    /// number.
    fn drain(&mut self, cx: &mut Cx) -> u32 {
        if let Some(a) = self.active {
            self.expire(cx, a, false);
        }
        let mut moved = 0;
        while self.rq_queued > 0 {
            let Some(group) = self.first_group() else {
                break;
            };
            let trees = &self.group(group).trees;
            let Some(q) = trees.iter().find_map(|t| t.tree.first()) else {
                break;
            };
            self.activate_queue(cx, Some(q));
            while let Some(rq) = self.queue(q).held.next {
                self.move_request(cx, rq);
                moved += 1;
            }
            self.expire(cx, q, false);
        }
        moved
    }
}
