//! Two harnesses that call a scheduler directly, without a block layer. The documents of the mobile
//! schedulers use them.
//!
//! The serial harness has a device that accepts one request. Simultaneous events have this order:
//! completion, arrivals in the order of the case, timers. If the device is free, one dispatch call
//! follows.
//!
//! The drain harness first delivers all arrivals without a dispatch call. From a given time on it
//! calls dispatch repeatedly. Each request completes before the next call.

use super::legacy::{Pending, bio_of, facts, ids};
use super::steps::Keeper;
use super::{Case, CaseError, Outcome, What};
use seekwell_block::merge::{self, Account};
use seekwell_core::{
    Action, BioId, Class, Instant, IoPrio, IocId, Nanos, RqId, Side, State, TaskId, TickClock,
};
use seekwell_sched::{Cx, Insert, IocEvent, Scheduler, find};
use std::collections::BTreeMap;

struct Bench {
    cx: Cx,
    sched: Box<dyn Scheduler>,
    acct: Account,
    hash: bool,
    prios: BTreeMap<TaskId, IoPrio>,
    attached: Side<bool>,
    out: Outcome,
    steps: bool,
    keeper: Keeper,
}

fn case_error(case: &Case, why: impl Into<String>) -> CaseError {
    CaseError::Case {
        case: case.case.clone(),
        why: why.into(),
    }
}

impl Bench {
    fn new(case: &Case, steps: bool) -> Result<Self, CaseError> {
        let (info, version, era) = find(&case.elevator)
            .ok_or_else(|| case_error(case, format!("no scheduler \"{}\"", case.elevator)))?;
        let cx = Cx::new(facts(case, era), TickClock::new(case.hz));
        let sched = (info.make)(&cx, version);
        let hash = (info.hash)(version);
        let mut b = Bench {
            cx,
            sched,
            acct: Account::default(),
            hash,
            prios: BTreeMap::new(),
            attached: Side::new(),
            out: Outcome::default(),
            steps,
            keeper: Keeper::default(),
        };
        for [pid, class, level] in &case.contexts {
            let p = IoPrio::from_numbers(*class, *level)
                .ok_or_else(|| case_error(case, format!("context of pid {pid}")))?;
            if p.class != Class::None {
                b.prios.insert(TaskId(*pid as u32), p);
            }
        }
        for (name, text) in case.tunable_texts() {
            b.sched
                .store(&mut b.cx, &name, &text)
                .map_err(|e| case_error(case, e.to_string()))?;
        }
        b.cx.log.listen_with_bios();
        Ok(b)
    }
    fn ioc(&mut self, task: TaskId) -> IocId {
        let ioc = self.cx.iocs.find(task).unwrap_or_else(|| {
            let p = self.prios.get(&task).copied().unwrap_or(IoPrio::NONE);
            self.cx.iocs.create(task, p, seekwell_core::CgroupId::ROOT)
        });
        if !std::mem::replace(self.attached.at(ioc.idx()), true) {
            self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Attach);
        }
        ioc
    }
    fn feed(&mut self, case: &Case, what: &What) -> Result<(), CaseError> {
        match what {
            What::Bio { task, .. } => {
                let Some(bio) = bio_of(what) else {
                    return Ok(());
                };
                let ioc = self.ioc(*task);
                let found = merge::find(&mut self.cx, &mut *self.sched, &bio, ioc, self.hash);
                if let Some((rq, kind)) = found
                    && merge::merge_bio(
                        &mut self.cx,
                        &mut *self.sched,
                        &mut self.acct,
                        rq,
                        &bio,
                        kind,
                    )
                {
                    while let Some(gone) = self.acct.freed.pop() {
                        self.free(gone);
                    }
                    return Ok(());
                }
                let era = self.cx.queue.era;
                let c = self.cx.iocs.get_mut(ioc);
                c.requests += 1;
                let prio = c.effective(era);
                let now = self.cx.now();
                let rq = self.cx.rqs.alloc(bio, ioc, prio, era, now);
                self.sched.prepare(&mut self.cx, rq);
                merge::enter(&mut self.cx, rq, self.hash);
                self.cx.event(Action::Insert, rq);
                self.sched.insert(&mut self.cx, rq, Insert::Sorted);
            }
            What::Exit(task) => {
                if let Some(ioc) = self.cx.iocs.find(*task) {
                    self.cx.iocs.leave(*task, ioc);
                    self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Exit);
                }
            }
            What::Prio(task, p) => {
                self.prios.insert(*task, *p);
                if let Some(ioc) = self.cx.iocs.find(*task) {
                    let c = self.cx.iocs.get_mut(ioc);
                    (c.ioprio, c.prio_gen) = (*p, c.prio_gen + 1);
                    self.sched.ioc_event(&mut self.cx, ioc, IocEvent::Prio);
                }
            }
            What::Tunable(name, text) => {
                let r = self.sched.store(&mut self.cx, name, text);
                r.map_err(|e| case_error(case, e.to_string()))?;
            }
            What::Drain
            | What::Weight(..)
            | What::Plug(_)
            | What::Unplug(_)
            | What::Requeue(_)
            | What::Switch(_) => {
                let why = "this harness has no block layer; it supports only bios, exits, \
                           priorities and tunables";
                return Err(case_error(case, why));
            }
        }
        Ok(())
    }
    fn free(&mut self, rq: RqId) {
        self.sched.finish(&mut self.cx, rq);
        let ioc = self.cx.rqs[rq].ioc;
        self.cx.iocs.get_mut(ioc).requests -= 1;
        self.cx.rqs.free(rq);
    }
    /// Makes one dispatch call; the dispatched request starts at once.
    fn dispatch(&mut self) -> Option<RqId> {
        if self.cx.out.is_empty() {
            self.sched.dispatch(&mut self.cx, 0, false);
        }
        let rq = self.cx.out.pop()?;
        self.cx.rqs[rq].state = State::InFlight;
        self.cx.rqs[rq].issue = self.cx.now();
        self.cx.in_driver += 1;
        self.sched.activate(&mut self.cx, rq);
        self.cx.event(Action::Issue, rq);
        Some(rq)
    }
    fn complete(&mut self, rq: RqId, pending: &mut Pending) {
        let now = self.cx.now();
        self.cx.in_driver -= 1;
        self.cx.event(Action::Complete, rq);
        for b in ids(&self.cx, rq) {
            pending.completed(b, now);
        }
        self.sched.completed(&mut self.cx, rq);
        self.free(rq);
    }
    fn timers(&mut self, t: Instant) {
        while let Some((at, slot)) = self.cx.next_timer()
            && at <= t
        {
            self.cx.fired(slot);
            self.out.timers.push(at);
            self.sched.timer(&mut self.cx, slot);
        }
    }
    fn record(&mut self) {
        let taken = self.cx.log.take();
        let issued = taken.iter().filter(|t| t.0.action == Action::Issue);
        let issued = issued.map(|(event, bios)| (event.at, bios.clone()));
        self.out.dispatch.extend(issued);
        if self.steps {
            let state = |s: &mut String| self.sched.state(&self.cx, s);
            self.keeper.take(&mut self.out.events, taken, state);
        }
    }
}

/// Runs a case. `drain` is the time of the first dispatch call, or `None` for the serial harness.
pub fn run(case: &Case, drain: Option<Instant>, steps: bool) -> Result<Outcome, CaseError> {
    let inputs = case.inputs()?;
    let mut b = Bench::new(case, steps)?;
    let mut pending = Pending::new(&inputs);
    let service = Nanos((case.device.service_us * 1000.0).round() as u64);
    let mut running: Option<(Instant, RqId)> = None;
    let mut left: std::collections::BTreeSet<u64> = inputs
        .iter()
        .filter_map(|i| match i.what {
            What::Bio { id, .. } => Some(id),
            _ => None,
        })
        .collect();
    loop {
        let times = [
            running.map(|r| r.0),
            pending.first().map(|p| p.0),
            b.cx.next_timer().map(|t| t.0),
        ];
        let Some(t) = times.into_iter().flatten().min() else {
            break;
        };
        let t = t.max(b.cx.now());
        if let Some(from) = drain
            && t > from
            && b.cx.now() < from
        {
            b.cx.set_now(from);
            drain_now(&mut b, &mut pending);
            b.record();
            continue;
        }
        b.cx.set_now(t);
        if let Some((at, rq)) = running
            && at <= t
        {
            running = None;
            b.complete(rq, &mut pending);
        }
        while let Some((at, i)) = pending.first()
            && at <= t
        {
            pending.pop();
            b.feed(case, &inputs[i].what)?;
        }
        b.timers(t);
        b.cx.take_run();
        b.cx.take_kick();
        match drain {
            Some(from) if t >= from => drain_now(&mut b, &mut pending),
            Some(_) => {}
            None if running.is_none() => running = b.dispatch().map(|rq| (t + service, rq)),
            None => {}
        }
        b.record();
    }
    if let Some(from) = drain
        && b.cx.now() < from
    {
        b.cx.set_now(from);
        b.timers(from);
        drain_now(&mut b, &mut pending);
        b.record();
    }
    for (_, bios) in &b.out.dispatch {
        for id in bios {
            left.remove(&id.0);
        }
    }
    b.out.left = left.into_iter().map(BioId).collect();
    Ok(b.out)
}

fn drain_now(b: &mut Bench, pending: &mut Pending) {
    while let Some(rq) = b.dispatch() {
        b.record();
        b.complete(rq, pending);
    }
}
