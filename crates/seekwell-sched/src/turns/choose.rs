//! Chooses the task that gets the turn, and the next request of that task.

use super::rules::{
    ASYNC_EXPIRED, ASYNC_TURN, ASYNC_WINDOW, EXPIRED, LEAST_SERVED, NEWCOMER, OWN_WRITES, SWEEP,
    TURN_EXPIRED, WAITS,
};
use super::{ASYNC, IDLE, RECENT, SEQUENTIAL, Turns, ZERO_NS};
use crate::cx::Cx;
use seekwell_core::{Instant, Nanos, Op, RqId, Rule};

impl Turns {
    /// Returns the length of a turn, ns. On flash it is 0, because a turn is one request.
    fn slice_ns(&self) -> u64 {
        if self.rotational {
            self.values.slice_ns()
        } else {
            0
        }
    }
    /// Returns the largest credit of a task that slept, ns.
    fn credit_ns(&self) -> u64 {
        self.slice_ns().max(self.values.window_ns())
    }
    /// Returns true if the task has read and written less than newcomer_kb.
    pub(super) fn is_new(&self, i: u32) -> bool {
        self.queues.get(i as usize).new
    }
    /// Returns the sort key of a waiting task. New tasks come before all others.
    pub(super) fn key(&self, i: u32) -> u64 {
        let served_ns = self.queues.get(i as usize).served_ns;
        if self.is_new(i) {
            served_ns.saturating_sub(ZERO_NS)
        } else {
            served_ns
        }
    }

    pub(super) fn stand_in_line(&mut self, i: u32, now: Instant) {
        let key = self.key(i);
        self.turns.insert(&mut self.waiting, i, key);
        self.places.push_back(&mut self.line, i);
        self.queue(i).waits_since = now;
    }
    pub(super) fn leave_line(&mut self, i: u32) {
        self.turns.remove(&mut self.waiting, i);
        self.places.remove(&mut self.line, i);
    }
    /// Sorts a waiting task again, after its charge changed.
    pub(super) fn sort_again(&mut self, i: u32) {
        if self.turns.linked(i) {
            self.turns.remove(&mut self.waiting, i);
            let key = self.key(i);
            self.turns.insert(&mut self.waiting, i, key);
        }
    }

    fn raise_floor(&mut self) {
        let on = self.current.filter(|i| !self.is_new(*i));
        let on = on.map(|i| self.queues.get(i as usize).served_ns);
        let first = self.turns.lower_bound(&self.waiting, ZERO_NS);
        let first = first.map(|i| self.turns.key(i));
        if let Some(least) = on.into_iter().chain(first).min() {
            self.floor_ns = self.floor_ns.max(least);
        }
    }

    /// Handles the first request of a queue that was empty. A task that slept gets a credit.
    pub(super) fn wakes(&mut self, i: u32, thought_ns: u64, now: Instant) {
        self.raise_floor();
        // The queue of buffered writes counts as asleep, because only the window delays it.
        let slept = i == ASYNC || thought_ns > self.values.idle_ns();
        let credit = if slept { self.credit_ns() } else { 0 };
        let least = self.floor_ns.saturating_sub(credit);
        let q = self.queue(i);
        q.served_ns = q.served_ns.max(least);
        if i == ASYNC {
            q.waits_since = now;
        } else if self.current != Some(i) {
            self.stand_in_line(i, now);
        }
    }

    fn end_turn(&mut self, now: Instant) {
        if let Some(i) = self.current.take()
            && !self.queue(i).fifo.is_empty()
        {
            self.stand_in_line(i, now);
        }
    }

    fn begin_turn(&mut self, cx: &mut Cx, i: u32, rule: &'static Rule) -> u32 {
        self.leave_line(i);
        self.current = Some(i);
        self.since = cx.now();
        self.async_went = false;
        cx.disarm(IDLE);
        let rivals = self.waiting.len();
        cx.why(rule, || format!("of {} waiting tasks", rivals + 1));
        i
    }

    /// Returns the task whose buffered write is next.
    fn writer(&self, cx: &Cx) -> Option<u32> {
        let next = self.queues.try_get(ASYNC as usize)?.fifo.first()?;
        Some(Self::queue_of(cx.rqs[RqId(next)].ioc, true))
    }
    /// Returns true if one more buffered write would exceed the window.
    fn window_full(&mut self) -> bool {
        let window = self.values.window_ns();
        let q = self.queue(ASYNC);
        let after = (u64::from(q.in_device) + 1).saturating_mul(q.cost_ns);
        q.in_device > 0 && after > window
    }
    /// Returns true if tasks other than the writer issued sync requests recently. The writer's own
    /// reads do not count, because a writer whose writes are delayed sleeps and issues no reads.
    fn others_come(&self, cx: &Cx) -> bool {
        let own = self.writer(cx) == Some(self.sync_by);
        let last = if own { self.other_sync } else { self.last_sync };
        last.is_some_and(|at| cx.since(at) < RECENT)
    }

    /// Returns true if the task is new and no other new task waits.
    fn comes_first(&self, i: u32) -> bool {
        let first = self.waiting.first();
        self.is_new(i) && first.is_none_or(|f| !self.is_new(f))
    }

    /// Returns true if the device should idle for the current task, whose queue is empty. Then also
    /// arms the timer.
    fn waits(&mut self, cx: &mut Cx, i: u32) -> bool {
        let idle = self.values.idle_ns();
        let first = self.comes_first(i);
        let q = self.queues.get(i as usize);
        let until = q.last_done + Nanos(idle);
        let quick = q.last_read && q.think_ns < idle;
        let near = self.rotational && q.near >= SEQUENTIAL;
        let own = self.waiting.is_empty() && self.writer(cx) == Some(i);
        if !quick || own || !(near || first) || (q.in_device == 0 && until <= cx.now()) {
            return false;
        }
        if q.in_device == 0 {
            cx.arm(IDLE, until);
        }
        cx.why_text(WAITS, "the next request of the task is expected soon");
        true
    }

    /// Returns the queue whose request goes next: the queue of the current task, or the queue that
    /// was charged least.
    pub(super) fn choose(&mut self, cx: &mut Cx, force: bool) -> Option<u32> {
        let now = cx.now();
        self.raise_floor();
        let old = self.async_expired(cx);
        let first = self.line.first().filter(|i| {
            let waited = now.since(self.queues.get(*i as usize).waits_since);
            waited.0 >= self.values.expire_ns(true)
        });
        if let Some(i) = self.current {
            let new = first.is_none() && !old && self.comes_first(i);
            if new || now.since(self.since).0 < self.slice_ns() {
                if !self.queue(i).fifo.is_empty() {
                    return Some(i);
                }
                if !force && !old && self.waits(cx, i) {
                    return None;
                }
            }
            self.end_turn(now);
        }
        if old {
            self.async_went = true;
            cx.why_text(ASYNC_EXPIRED, "buffered writes have waited too long");
            return Some(ASYNC);
        }
        if let Some(i) = first {
            return Some(self.begin_turn(cx, i, TURN_EXPIRED));
        }
        let next = self.waiting.first();
        let least = next.map(|i| self.turns.key(i));
        if let Some((rule, paid)) = self.async_goes(cx, force, least) {
            cx.why(rule, || format!("buffered writes were charged {paid} ns"));
            return Some(ASYNC);
        }
        let i = next?;
        let older = self.turns.lower_bound(&self.waiting, ZERO_NS);
        let new = self.is_new(i) && older.is_some();
        Some(self.begin_turn(cx, i, if new { NEWCOMER } else { LEAST_SERVED }))
    }

    /// Returns true if the oldest buffered write has waited too long, or if no buffered write was
    /// dispatched for too long. Between two such writes another task must have had a turn.
    fn async_expired(&mut self, cx: &Cx) -> bool {
        let others = self.async_went && !self.waiting.is_empty();
        let (oldest_ns, turn_ns) = (self.values.expire_ns(false), self.values.expire_ns(true));
        let q = self.queue(ASYNC);
        let since = q.waits_since;
        q.fifo.first().is_some_and(|rq| {
            let waited = cx.since(cx.rqs[RqId(rq)].start);
            (waited.0 >= oldest_ns || cx.since(since).0 >= turn_ns)
                && !others
                && !(self.window_full() && self.others_come(cx))
        })
    }

    /// If buffered writes go next, returns the rule and the time that they were charged, ns.
    fn async_goes(
        &mut self,
        cx: &mut Cx,
        force: bool,
        least: Option<u64>,
    ) -> Option<(&'static Rule, u64)> {
        let saved = self.floor_ns.saturating_sub(self.credit_ns());
        let q = self.queue(ASYNC);
        q.served_ns = q.served_ns.max(saved);
        let paid = q.served_ns;
        if q.fifo.is_empty() || least.is_some_and(|l| l < paid) {
            return None;
        }
        if force || !self.window_full() {
            return Some((ASYNC_TURN, paid));
        }
        if self.others_come(cx) {
            cx.why_text(ASYNC_WINDOW, "the device has enough buffered writes");
            return None;
        }
        Some((OWN_WRITES, paid))
    }

    /// Returns the next request of queue `i`.
    pub(super) fn take(&mut self, cx: &mut Cx, i: u32) -> Option<RqId> {
        let expire = Nanos(self.values.expire_ns(i != ASYNC));
        let q = self.queues.get(i as usize);
        let oldest = RqId(q.fifo.first()?);
        if !self.rotational {
            return Some(oldest);
        }
        let waited = cx.now().since(cx.rqs[oldest].start);
        if waited >= expire {
            cx.why_rq(EXPIRED, oldest, || format!("after {} us", waited.0 / 1000));
            return Some(oldest);
        }
        let above = self.nodes.lower_bound(&q.sorted, q.position);
        let next = RqId(above.or_else(|| q.sorted.first())?);
        let position = q.position;
        cx.why_rq(SWEEP, next, || format!("from {position} upwards"));
        Some(next)
    }

    /// Charges the queue the estimated cost of a request that goes to the device. Returns the
    /// estimate, ns. A new task that has reached newcomer_kb stops being new.
    pub(super) fn pays(&mut self, cx: &Cx, i: u32, rq: RqId) -> u64 {
        let (price, enough_kb) = (self.price(i), self.values.newcomer_kb());
        let floor_ns = self.floor_ns;
        let r = &cx.rqs[rq];
        let (end, read, kb) = (r.end(), r.op == Op::Read, u64::from(r.sectors.0) / 2);
        let q = self.queue(i);
        q.in_device += 1;
        q.waits_since = cx.now();
        q.position = end;
        q.last_read = read;
        q.had_kb += kb.max(LEAST_KB);
        q.served_ns += q.cost_ns * price;
        let paid = q.cost_ns;
        if q.new && q.had_kb >= enough_kb {
            q.new = false;
            // A task is not charged for the service that it got while it was new.
            q.served_ns = floor_ns;
        }
        paid
    }
}

/// The smallest amount that a request of a new task counts for, KiB. It accounts for a seek.
const LEAST_KB: u64 = 32;
