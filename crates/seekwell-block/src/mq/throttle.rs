//! The connection of writeback throttling with the queue: it uses the queue's time and requests.
//!
//! A bio is first split, then merged, then throttled, and then it gets a tag. A throttled task
//! sleeps with all its further actions, and holds neither a tag nor a request. A slot belongs to
//! the bio, also while the bio waits for a tag. The slot is freed together with the request.

use super::wbt::{Asks, Class, Facts, Moment, Verdict, Wbt, rules};
use super::{MqQueue, OWN_BIO};
use seekwell_core::event::WHO;
use seekwell_core::{Action, Bio, Device, Event, Instant, Op, RqId, TaskId, TickClock};
use seekwell_sched::{Cx, Scheduler, StoreError, WBT_LAT_USEC};

/// The decision of the throttle on a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passage {
    /// The bio continues. It has a slot if it is of a throttled class.
    Goes(Option<Class>),
    /// The task of the bio sleeps until it gets a slot.
    Sleeps,
}

/// The throttle of a queue, if its kernel has one.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    wbt: Option<Wbt>,
    /// Time at which the throttle's window ends.
    ends: Option<(i64, Instant)>,
}

impl Throttle {
    /// Updates the end of the window. Called after any call that may have started a window.
    fn settle(&mut self, clock: &TickClock) {
        let ends = self.wbt.as_ref().and_then(Wbt::window_ends);
        if ends != self.ends.map(|e| e.0) {
            self.ends = ends.map(|j| (j, clock.start_of(j as u64)));
        }
    }
    /// Returns the time of the throttle's next event.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.ends.map(|e| e.1)
    }
    /// Returns whether a task that sleeps for a slot may continue.
    #[inline]
    pub fn has_granted(&self) -> bool {
        self.wbt.as_ref().is_some_and(Wbt::has_granted)
    }
}

/// Returns the present time, on the clock and in jiffies.
#[inline]
fn moment(cx: &Cx) -> Moment {
    Moment {
        ns: cx.now().0,
        jiffy: cx.jiffies() as i64,
    }
}

impl<S: Scheduler + ?Sized, D: Device> MqQueue<S, D> {
    /// Enables writeback throttling as for a new disk. It is on, unless the scheduler disables it.
    /// The depth is that of a SCSI disk itself. For any other disk it is `nr_requests` at the time
    /// when the disk appeared (`appears`), or the present value if that is not known.
    pub fn throttle_writeback(&mut self, now: Instant, appears: Option<u32>) {
        let f = self.dev.facts();
        let facts = Facts {
            hz: self.cx.clock().hz,
            depth: match self.driver.has_budget() {
                true => self.driver.depth().max(1),
                false => appears.unwrap_or(self.cx.queue.nr_requests),
            },
            write_back: f.write_cache,
            rotational: f.rotational,
        };
        // The disk appeared when the machine booted, which is more than a second ago.
        let appeared = Moment {
            ns: now.0,
            jiffy: self.cx.clock().jiffies(now) as i64 - i64::from(facts.hz),
        };
        let off = !self.sched.wants_wbt();
        self.throttle.wbt = Some(Wbt::new(facts, appeared, off));
        self.keep();
    }
    /// Returns the throttle, if there is one.
    pub fn wbt(&self) -> Option<&Wbt> {
        self.throttle.wbt.as_ref()
    }

    /// Runs `act` on the throttle, then wakes the tasks that may continue.
    fn with_wbt<T>(&mut self, act: impl FnOnce(&mut Wbt, Moment) -> T) -> Option<T> {
        let t = &mut self.throttle;
        t.wbt.as_ref()?;
        let now = moment(&self.cx);
        let done = t.wbt.as_mut().map(|w| act(w, now));
        t.settle(&self.cx.clock());
        done
    }
    /// Runs `act` on the throttle for reads, which neither start a window nor wake a task.
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
    /// Handles a change of the scheduler. If the new scheduler allows throttling and the old one
    /// disabled it, throttling is on again, even together with `io.cost`.
    pub(super) fn scheduler_changed(&mut self, wanted_before: bool) {
        let wants = self.sched.wants_wbt();
        if wants != wanted_before {
            self.with_wbt(|w, now| w.wanted(wants, now));
        }
    }
    /// Handles the switching on or off of `io.cost`. Writes are then not throttled twice, unless
    /// the user set the throttle.
    pub(super) fn shares_by_cost(&mut self, on: bool) {
        let wants = self.sched.wants_wbt() && !on;
        self.with_wbt(|w, now| w.wanted(wants, now));
    }

    /// Asks for a slot for a bio (`rq_qos_throttle`).
    pub(super) fn throttled(&mut self, bio: &Bio) -> Passage {
        if !self.wbt_on() {
            return Passage::Goes(None);
        }
        if bio.op == Op::Read {
            self.with_reads(Wbt::read_asks);
            return Passage::Goes(None);
        }
        let Some(asks) = Asks::throttled_kind(u64::from(bio.task.0), bio.op, bio.flags) else {
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
            detail: format!("{used} writes in progress, {limit} allowed: {WHO} sleeps"),
            ..Event::of_bio(at, Action::Why, bio)
        });
        Passage::Sleeps
    }
    /// Returns the task that has slept longest among those that got a slot, and the class of the
    /// slot.
    pub(super) fn next_granted(&mut self) -> Option<(u32, Class)> {
        let asks = self.throttle.wbt.as_mut()?.granted()?;
        let task = asks.id as u32;
        self.reason(rules::LET_GO, || {
            (Some(TaskId(task)), format!("{WHO} continues"))
        });
        Some((task, asks.class))
    }

    /// Handles a request that is issued to the driver.
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
    /// Handles a request that the driver returned.
    pub(super) fn wbt_requeued(&mut self, rq: RqId) {
        if let Some(w) = &mut self.throttle.wbt {
            w.read_requeued(rq.0.into());
        }
    }
    /// Handles the completion of a request, which is a sample for the throttle. The layer's own
    /// flushes and flushes without data are no samples.
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
    /// Frees the slot of a request.
    pub(super) fn slot_back(&mut self, class: Class) {
        self.with_wbt(|w, now| w.slot_back(class, now));
    }
    /// Handles the sleep of a task because of its dirty pages.
    pub(super) fn dirty_sleep(&mut self) {
        self.with_wbt(|w, now| w.dirty_sleep(now.jiffy));
    }
    /// Ends the window if it is due.
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
                let text = format!("step {step}: at most {most} writes may be in progress");
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
