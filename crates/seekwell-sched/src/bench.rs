//! A minimal block layer for unit tests: it makes the calls of the `Scheduler` trait, and the test
//! decides when each call happens.

use crate::contract::{Insert, IocEvent, Scheduler};
use crate::cx::{Cx, QueueFacts};
use seekwell_core::{Bio, CgroupId, Era, Flags, IoPrio, Nanos, Op, RqId, State, TaskId, TickClock};

/// A scheduler, its context and the number of requests made.
pub(crate) struct Bench<S> {
    pub cx: Cx,
    pub s: S,
    made: u64,
}

/// A context at HZ 1000 for a blk-mq device.
pub(crate) fn mq_cx(rotational: bool) -> Cx {
    let mut facts = QueueFacts::example(Era::Mq);
    facts.rotational = rotational;
    facts.depth = 64;
    Cx::new(facts, TickClock::new(1000))
}

/// A context at HZ `hz` for a rotating disk below a single-queue layer.
pub(crate) fn legacy_cx(era: Era, hz: u32) -> Cx {
    Cx::new(QueueFacts::example(era), TickClock::new(hz))
}

impl<S: Scheduler> Bench<S> {
    /// Every task that inserts a request gets the level `BE 4`.
    pub fn new(mut cx: Cx, s: S) -> Self {
        cx.log.listen(true);
        Bench { cx, s, made: 0 }
    }
    /// Sets a tunable.
    pub fn set(&mut self, name: &str, value: &str) {
        self.s.store(&mut self.cx, name, value).expect("a tunable");
    }
    /// Lets `us` microseconds pass.
    pub fn pass_us(&mut self, us: u64) {
        self.pass_ns(us * 1000);
    }
    /// Lets `ns` nanoseconds pass.
    pub fn pass_ns(&mut self, ns: u64) {
        let now = self.cx.now() + Nanos(ns);
        self.cx.set_now(now);
    }
    /// Inserts a request of 8 sectors.
    pub fn insert(&mut self, task: u32, op: Op, sector: u64) -> RqId {
        self.insert_sized(task, op, sector, 8)
    }
    /// Inserts a request.
    pub fn insert_sized(&mut self, task: u32, op: Op, sector: u64, sectors: u32) -> RqId {
        self.made += 1;
        let (who, prio) = (TaskId(task), IoPrio::be(4));
        let ioc = self.cx.iocs.find(who).unwrap_or_else(|| {
            let ioc = self.cx.iocs.create(who, prio, CgroupId::ROOT);
            self.s.ioc_event(&mut self.cx, ioc, IocEvent::Attach);
            ioc
        });
        let bio = Bio::new(self.made, who, op, Flags::empty(), sector, sectors);
        let (era, now) = (self.cx.queue.era, self.cx.now());
        let rq = self.cx.rqs.alloc(bio, ioc, prio, era, now);
        self.s.prepare(&mut self.cx, rq);
        self.cx.rqs[rq].state = State::Sorted;
        self.cx.nr_sorted += 1;
        if era.is_mq() {
            self.s.inserting(&mut self.cx, rq);
        }
        self.s.insert(&mut self.cx, rq, Insert::Sorted);
        self.s.check(&self.cx);
        rq
    }
    /// Dispatches at most one request to the device.
    pub fn take(&mut self) -> Option<RqId> {
        if self.cx.out.is_empty() {
            self.s.dispatch(&mut self.cx, 0, false);
            self.s.check(&self.cx);
        }
        let rq = self.cx.out.pop()?;
        if !self.cx.queue.era.is_mq() {
            self.s.activate(&mut self.cx, rq);
        }
        self.cx.rqs[rq].state = State::InFlight;
        self.cx.rqs[rq].issue = self.cx.now();
        self.cx.in_driver += 1;
        Some(rq)
    }
    /// Dispatches requests until the scheduler returns none.
    pub fn take_all(&mut self) -> Vec<RqId> {
        std::iter::from_fn(|| self.take()).collect()
    }
    /// Completes a request.
    pub fn complete(&mut self, rq: RqId) {
        self.cx.in_driver -= 1;
        self.s.completed(&mut self.cx, rq);
        self.s.finish(&mut self.cx, rq);
        self.cx.rqs.free(rq);
        self.s.check(&self.cx);
    }
    /// The next armed timer fires. Time passes until then. Returns false if no timer is armed.
    pub fn fire(&mut self) -> bool {
        let Some((at, slot)) = self.cx.next_timer() else {
            return false;
        };
        self.cx.set_now(at.max(self.cx.now()));
        self.cx.fired(slot);
        self.s.timer(&mut self.cx, slot);
        self.s.check(&self.cx);
        true
    }
}
