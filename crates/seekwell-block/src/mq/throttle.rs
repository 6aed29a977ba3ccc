//! What stands in front of the tag: writeback throttling, with the queue's own time and requests.
//!
//! Order of a bio: split, merge, throttle, tag. Who is held sleeps with all it does after, and holds
//! neither tag nor request; a slot that was given stays with the bio, also while it waits for a tag,
//! and comes back when its request is freed.

use super::wbt::{Asks, Class, Facts, Moment, Wbt};
use super::{MqQueue, OWN_BIO};
use seekwell_core::{Bio, Device, Instant, Op, RqId, TickClock};
use seekwell_sched::tunable::UINT_MAX;
use seekwell_sched::{Kind, Scheduler, StoreError, Tunable};

/// `queue/wbt_lat_usec`, which every queue of blk-mq has, whatever its scheduler.
pub const WBT_LAT_USEC: Tunable = Tunable {
    name: "wbt_lat_usec",
    kind: Kind::Us,
    unit: "us",
    default: "2000, 75000 on disks that rotate",
    min: -1,
    max: UINT_MAX,
    help: "latency of reads that buffered writes are held back for; 0: never, -1: the kernel's \
           default (2 ms, 75 ms where the disk rotates, off under bfq)",
};

/// The throttle of a queue, if its kernel has one.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    wbt: Option<Wbt>,
    /// When its window ends.
    ends: Option<(i64, Instant)>,
    /// The jiffy at hand and the instant up to which it lasts: most calls need no division.
    tick: (i64, Instant, Instant),
}

impl Throttle {
    fn moment(&mut self, clock: &TickClock, now: Instant) -> Moment {
        let (jiffy, from, until) = self.tick;
        if from <= now && now < until {
            return Moment { ns: now.0, jiffy };
        }
        let j = clock.jiffies(now);
        self.tick = (j as i64, clock.start_of(j), clock.start_of(j + 1));
        Moment {
            ns: now.0,
            jiffy: j as i64,
        }
    }
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
    pub fn has_granted(&self) -> bool {
        self.wbt.as_ref().is_some_and(Wbt::has_granted)
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
        let at = self.throttle.moment(&self.cx.clock(), now);
        let off = !self.sched.wants_wbt();
        self.throttle.wbt = Some(Wbt::new(facts, at, off));
    }
    /// The throttle, if there is one.
    pub fn wbt(&self) -> Option<&Wbt> {
        self.throttle.wbt.as_ref()
    }

    /// Does something with the throttle, and lets go who may.
    fn with_wbt<T>(&mut self, act: impl FnOnce(&mut Wbt, Moment) -> T) -> Option<T> {
        let t = &mut self.throttle;
        t.wbt.as_ref()?;
        let now = t.moment(&self.cx.clock(), self.cx.now());
        let done = t.wbt.as_mut().map(|w| act(w, now));
        t.settle(&self.cx.clock());
        done
    }
    fn wbt_on(&self) -> bool {
        self.throttle.wbt.as_ref().is_some_and(Wbt::on)
    }

    /// Writes `queue/wbt_lat_usec`.
    pub(super) fn store_wbt(&mut self, text: &str) -> Result<(), StoreError> {
        WBT_LAT_USEC.validate(text)?;
        let value = text.trim().parse().unwrap_or(-1);
        // Below -1 nothing gets here.
        let _ = self.with_wbt(|w, now| w.store_lat_usec(value, now));
        Ok(())
    }
    /// Another scheduler came.
    pub(super) fn scheduler_changed(&mut self) {
        let wants = self.sched.wants_wbt();
        self.with_wbt(|w, now| w.wanted(wants, now));
    }

    /// A bio asks (`rq_qos_throttle`). `Ok`: it goes on, with the slot it has; `Err`: it sleeps.
    pub(super) fn throttled(&mut self, bio: &Bio) -> Result<Option<Class>, ()> {
        if !self.wbt_on() {
            return Ok(None);
        }
        if bio.op == Op::Read {
            self.with_wbt(|w, now| w.read_asks(now));
            return Ok(None);
        }
        let Some(asks) = Asks::of(u64::from(bio.task.0), bio.op, bio.flags) else {
            return Ok(None);
        };
        match self.with_wbt(|w, now| w.ask(asks, now)) {
            Some(true) => Ok(Some(asks.class)),
            _ => Err(()),
        }
    }
    /// The task that slept longest of those that have a slot now, and the slot.
    pub(super) fn next_granted(&mut self) -> Option<(u32, Class)> {
        let asks = self.throttle.wbt.as_mut()?.granted()?;
        Some((asks.id as u32, asks.class))
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
            self.with_wbt(|w, now| w.read_done(rq.0.into(), latency.0, now));
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
            self.with_wbt(|w, now| w.window_ended(now));
        }
    }
}
