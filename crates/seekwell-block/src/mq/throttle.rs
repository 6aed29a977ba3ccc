//! What stands in front of the tag: writeback throttling, with the queue's own time and requests.
//!
//! Order of a bio: split, merge, throttle, tag. Who is held sleeps with all it does after, and holds
//! neither tag nor request; a slot that was given stays with the bio, also while it waits for a tag,
//! and comes back when its request is freed.

use super::wbt::{Asks, Class, Facts, Moment, Verdict, Wbt, rules};
use super::{MqQueue, OWN_BIO};
use seekwell_core::event::WHO;
use seekwell_core::{Action, Bio, Device, Event, Instant, Op, RqId, TaskId, TickClock};
use seekwell_sched::{Cx, Scheduler, StoreError, WBT_LAT_USEC};

/// What the throttle says to a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passage {
    /// It goes on; with a slot, if it is tracked.
    Goes(Option<Class>),
    /// Its task sleeps for a slot.
    Sleeps,
}

/// The throttle of a queue, if its kernel has one.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    wbt: Option<Wbt>,
    /// When its window ends.
    ends: Option<(i64, Instant)>,
}

impl Throttle {
    /// The end of the window, after anything that may have begun one.
    fn settle(&mut self, clock: &TickClock) {
        let ends = self.wbt.as_ref().and_then(Wbt::window_ends);
        if ends != self.ends.map(|e| e.0) {
            self.ends = ends.map(|j| (j, clock.start_of(j as u64)));
        }
    }
    /// When something happens by itself.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.ends.map(|e| e.1)
    }
    /// May somebody who sleeps for a slot go on?
    #[inline]
    pub fn has_granted(&self) -> bool {
        self.wbt.as_ref().is_some_and(Wbt::has_granted)
    }
}

/// Now, on the clock and in jiffies.
#[inline]
fn moment(cx: &Cx) -> Moment {
    Moment {
        ns: cx.now().0,
        jiffy: cx.jiffies() as i64,
    }
}

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// Puts writeback throttling before the queue, as it is when a disk appears: on, unless its
    /// scheduler wants none. A SCSI disk's depth is its own, any other's what `nr_requests` is now.
    pub fn throttle_writeback(&mut self, now: Instant) {
        let f = self.dev.facts();
        let facts = Facts {
            hz: self.cx.clock().hz,
            depth: match self.driver.has_budget() {
                true => self.driver.depth().max(1),
                false => self.cx.queue.nr_requests,
            },
            write_back: f.write_cache,
            rotational: f.rotational,
        };
        let at = Moment {
            ns: now.0,
            jiffy: self.cx.clock().jiffies(now) as i64,
        };
        let off = !self.sched.wants_wbt();
        self.throttle.wbt = Some(Wbt::new(facts, at, off));
        self.keep();
    }
    /// The throttle, if there is one.
    pub fn wbt(&self) -> Option<&Wbt> {
        self.throttle.wbt.as_ref()
    }

    /// Does something with the throttle, and lets go who may.
    fn with_wbt<T>(&mut self, act: impl FnOnce(&mut Wbt, Moment) -> T) -> Option<T> {
        let t = &mut self.throttle;
        t.wbt.as_ref()?;
        let now = moment(&self.cx);
        let done = t.wbt.as_mut().map(|w| act(w, now));
        t.settle(&self.cx.clock());
        done
    }
    /// The same for what a read does, which begins no window and lets nobody go.
    #[inline]
    fn with_reads(&mut self, act: impl FnOnce(&mut Wbt, Moment)) {
        let t = &mut self.throttle;
        let now = moment(&self.cx);
        if let Some(w) = &mut t.wbt {
            act(w, now);
        }
    }
    #[inline]
    fn wbt_on(&self) -> bool {
        self.throttle.wbt.as_ref().is_some_and(Wbt::on)
    }

    /// Writes `queue/wbt_lat_usec`.
    pub(super) fn store_wbt(&mut self, text: &str) -> Result<(), StoreError> {
        self.with_wbt(|w, now| w.store_lat_usec(text, now))
            .unwrap_or_else(|| Err(StoreError::unknown(WBT_LAT_USEC.name)))
    }
    /// Another scheduler came, after one that wanted the throttle or did not. Where the new one
    /// wants it and the old one did not, it is on again, also beside `io.cost`.
    pub(super) fn scheduler_changed(&mut self, wanted_before: bool) {
        let wants = self.sched.wants_wbt();
        if wants != wanted_before {
            self.with_wbt(|w, now| w.wanted(wants, now));
        }
    }
    /// `io.cost` was switched on or off: writes are not throttled twice unless somebody asked for
    /// it.
    pub(super) fn shares_by_cost(&mut self, on: bool) {
        let wants = self.sched.wants_wbt() && !on;
        self.with_wbt(|w, now| w.wanted(wants, now));
    }

    /// A bio asks (`rq_qos_throttle`).
    pub(super) fn throttled(&mut self, bio: &Bio) -> Passage {
        if !self.wbt_on() {
            return Passage::Goes(None);
        }
        if bio.op == Op::Read {
            self.with_reads(Wbt::read_asks);
            return Passage::Goes(None);
        }
        let Some(asks) = Asks::of(u64::from(bio.task.0), bio.op, bio.flags) else {
            return Passage::Goes(None);
        };
        let found = self.with_wbt(|w, now| {
            let c = asks.class as usize;
            (w.used()[c], w.limit(asks, now), w.ask(asks, now))
        });
        let Some((used, limit, false)) = found else {
            return Passage::Goes(found.map(|_| asks.class));
        };
        let at = self.cx.now();
        self.cx.log.push(|| Event {
            task: Some(bio.task),
            cgroup: Some(bio.cgroup),
            rule: Some(rules::HELD),
            detail: format!("{used} writes under way, {limit} may be: {WHO} sleeps"),
            ..Event::of_bio(at, Action::Why, bio)
        });
        Passage::Sleeps
    }
    /// The task that slept longest of those that have a slot now, and the slot.
    pub(super) fn next_granted(&mut self) -> Option<(u32, Class)> {
        let asks = self.throttle.wbt.as_mut()?.granted()?;
        let task = asks.id as u32;
        self.reason(rules::LET_GO, || {
            (Some(TaskId(task)), format!("{WHO} goes on"))
        });
        Some((task, asks.class))
    }

    /// A request is handed to the driver.
    pub(super) fn wbt_issued(&mut self, rq: RqId) {
        if let Some(w) = &mut self.throttle.wbt
            && w.on()
        {
            let r = &self.cx.rqs[rq];
            if r.op == Op::Read {
                w.read_issued(rq.0.into(), r.issue.0);
            }
        }
    }
    /// The driver gave it back.
    pub(super) fn wbt_requeued(&mut self, rq: RqId) {
        if let Some(w) = &mut self.throttle.wbt {
            w.read_requeued(rq.0.into());
        }
    }
    /// It is done: a sample. Flushes, the layer's own and those without data, are none.
    pub(super) fn wbt_completed(&mut self, rq: RqId) {
        if self.throttle.wbt.is_none() {
            return;
        }
        let r = &self.cx.rqs[rq];
        let (op, latency) = (r.op, self.cx.now().since(r.issue));
        if op == Op::Read {
            self.with_reads(|w, now| w.read_done(rq.0.into(), latency.0, now));
        } else if op != Op::Flush
            && self.cx.rqs.first_bio(rq).id != OWN_BIO
            && let Some(w) = &mut self.throttle.wbt
        {
            w.write_done();
        }
    }
    /// Its request is freed: the slot comes back.
    pub(super) fn slot_back(&mut self, class: Class) {
        self.with_wbt(|w, now| w.slot_back(class, now));
    }
    /// A task was held for its dirty pages.
    pub(super) fn dirty_sleep(&mut self) {
        self.with_wbt(|w, now| w.dirty_sleep(now.jiffy));
    }
    /// The window ends, if it is time.
    pub(super) fn wbt_timer(&mut self, t: Instant) {
        if self.throttle.deadline().is_some_and(|at| at <= t) {
            let verdict = self.with_wbt(|w, now| (w.window_ended(now), w.depths()));
            let Some((verdict, (step, [most, ..], _))) = verdict else {
                return;
            };
            let rule = match verdict {
                Verdict::Exceeded => rules::EXCEEDED,
                Verdict::Ok | Verdict::OnlyWrites => rules::FAST_ENOUGH,
                Verdict::Unknown => rules::UNKNOWN,
            };
            self.reason(rule, || {
                let text = format!("step {step}: {most} writes may be under way at most");
                (None, text)
            });
        }
    }
    pub(super) fn reason(
        &mut self,
        rule: &'static seekwell_core::Rule,
        says: impl FnOnce() -> (Option<TaskId>, String),
    ) {
        let at = self.cx.now();
        self.cx.log.push(|| {
            let (task, detail) = says();
            Event {
                task,
                rule: Some(rule),
                detail,
                ..Event::new(at, Action::Why)
            }
        });
    }
}
