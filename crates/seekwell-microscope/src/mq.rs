//! Runs cases in the multi-queue layer. Simultaneous events have this order: completions (oldest
//! first), timers, all submissions in the order of the case, then one run of the queue. The device
//! has a constant service time, and either one server or one server per command. The driver limits
//! the device by a budget, or by driver tags if `device.parked` is set.
//!
//! In addition to submitting bios, a case can open and close plugs and select the CPU of a bio. It
//! can make the driver requeue a request, and it can switch the scheduler.

use super::legacy::{Pending, bio_of, case_error, facts};
use super::steps::Keeper;
use super::{Case, CaseError, Outcome, What};
use seekwell_block::{MqDriver, MqQueue};
use seekwell_core::{
    Accept, BioDone, BioId, BioSink, CgroupId, Class, Command, Control, Device, DeviceFacts, Done,
    Instant, IoPrio, Nanos, Sector, Sectors, TaskId, TickClock,
};
use seekwell_sched::{Scheduler, find};
use std::collections::{BTreeSet, VecDeque};

/// A device with constant service time. It can return busy and give commands back.
#[derive(Debug)]
pub struct BenchDevice {
    facts: DeviceFacts,
    service: Nanos,
    parallel: bool,
    accepts: usize,
    queue: VecDeque<Done>,
    last: Instant,
}

impl BenchDevice {
    /// Creates a device that returns busy if it has more than `accepts` commands.
    pub fn new(facts: DeviceFacts, service: Nanos, parallel: bool, accepts: usize) -> Self {
        BenchDevice {
            facts,
            service,
            parallel,
            accepts,
            queue: VecDeque::new(),
            last: Instant::default(),
        }
    }
    /// Creates the device of a case.
    pub fn for_case(case: &Case) -> Self {
        let d = &case.device;
        let mut facts = DeviceFacts::plain("bench", Sector(1 << 56), d.depth);
        facts.rotational = d.rotational;
        facts.write_cache = d.write_cache;
        facts.hw_queues = d.hw_queues.max(1);
        let service = Nanos((d.service_us * 1000.0).round() as u64);
        let accepts = match d.accepts {
            0 => usize::MAX,
            n => n as usize,
        };
        Self::new(facts, service, d.parallel, accepts)
    }
}

impl Device for BenchDevice {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        if self.queue.len() >= self.accepts {
            return Accept::Busy;
        }
        let start = if self.parallel {
            now
        } else {
            now.max(self.last)
        };
        self.last = start + self.service;
        self.queue.push_back(Done {
            id: command.id,
            at: self.last,
            error: false,
        });
        Accept::Accepted
    }
    fn next_event(&self) -> Option<Instant> {
        self.queue.front().map(|d| d.at)
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        while let Some(d) = self.queue.front().filter(|d| d.at <= to) {
            out.push(*d);
            self.queue.pop_front();
        }
    }
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn stop(&mut self, now: Instant, id: u32) -> Option<Sectors> {
        let i = self.queue.iter().position(|d| d.id == id)?;
        self.queue.remove(i);
        // The next command does not wait for the command that was given back.
        self.last = self.queue.back().map_or(now, |d| d.at);
        Some(Sectors(0))
    }
}

type Queue = MqQueue<dyn Scheduler, BenchDevice>;

fn look_up(
    case: &Case,
    name: &str,
) -> Result<
    (
        &'static seekwell_sched::SchedulerInfo,
        &'static str,
        seekwell_core::Era,
    ),
    CaseError,
> {
    let found = find(name).ok_or_else(|| {
        case_error(
            case,
            format!("no scheduler \"{name}\": see `seekwell schedulers`"),
        )
    })?;
    if !found.2.is_mq() {
        let why = format!("{name} is a single-queue scheduler and cannot run in blk-mq");
        return Err(case_error(case, why));
    }
    Ok(found)
}

fn build(case: &Case) -> Result<Queue, CaseError> {
    let (info, version, era) = look_up(case, &case.elevator)?;
    let depth = case.device.depth;
    let driver = if case.device.parked || info.name == "none" {
        MqDriver::Tag { depth }
    } else {
        MqDriver::Scsi { depth }
    };
    let mut facts = facts(case, era);
    facts.hctxs = case.device.hw_queues.max(1);
    let hash = (info.hash)(version);
    let make = |cx: &_| (info.make)(cx, version);
    let clock = TickClock::new(case.hz);
    let mut q = Queue::new(
        facts,
        clock,
        driver,
        hash,
        BenchDevice::for_case(case),
        make,
    );
    let t = Instant::START;
    // The number of tags is limited only if the case sets it, because examples are about decisions.
    let nr = match (case.nr_requests, info.name) {
        (0, "none") => None,
        (0, _) => Some(2048),
        (n, _) => Some(n),
    };
    if let Some(n) = nr {
        q.set_nr_requests(t, n)
            .map_err(|e| case_error(case, e.to_string()))?;
    }
    for [pid, class, level] in &case.contexts {
        let p = IoPrio::from_numbers(*class, *level).ok_or_else(|| {
            case_error(
                case,
                format!("context of pid {pid}: invalid class or level"),
            )
        })?;
        if p.class != Class::None {
            q.control(t, Control::Prio(TaskId(*pid as u32), p));
        }
    }
    for (pid, nice) in &case.nice {
        let normal = seekwell_core::Policy::Normal;
        q.control(t, Control::Nice(TaskId(*pid), *nice, normal));
    }
    for (cg, parent, weight) in &case.cgroups {
        q.control(t, Control::CgroupNew(CgroupId(*cg), CgroupId(*parent)));
        q.control(t, Control::Weight(CgroupId(*cg), *weight));
    }
    for (pid, cg) in &case.groups {
        q.control(t, Control::Cgroup(TaskId(*pid), CgroupId(*cg)));
    }
    for (name, text) in case.tunable_texts() {
        q.store(t, &name, &text)
            .map_err(|e| case_error(case, e.to_string()))?;
    }
    Ok(q)
}

fn feed(case: &Case, q: &mut Queue, t: Instant, what: &What) -> Result<(), CaseError> {
    match what {
        What::Bio { .. } => {
            if let Some(bio) = bio_of(what) {
                q.submit(t, bio);
            }
        }
        What::Plug(task) => q.control(t, Control::Plug(*task)),
        What::Unplug(task) => q.control(t, Control::Unplug(*task)),
        What::Exit(task) => q.control(t, Control::Exit(*task)),
        What::Prio(task, p) => q.control(t, Control::Prio(*task, *p)),
        What::Weight(cg, w) => q.control(t, Control::Weight(CgroupId(*cg), *w)),
        What::Tunable(name, text) => {
            q.store(t, name, text)
                .map_err(|e| case_error(case, e.to_string()))?;
        }
        What::Requeue(id) => {
            let holds = |r: &seekwell_core::RqId| q.cx.rqs.bios(*r).any(|b| b.0.id.0 == *id);
            let all: Vec<_> = q.cx.rqs.iter().map(|r| r.0).collect();
            let rq = all.into_iter().find(holds);
            if !rq.is_some_and(|rq| q.requeue(t, rq)) {
                let why = format!("bio {id} cannot be requeued: the device does not have it");
                return Err(case_error(case, why));
            }
        }
        What::Switch(name) => {
            let (info, version, _) = look_up(case, name)?;
            q.switch(t, (info.hash)(version), move |cx| (info.make)(cx, version));
        }
        What::Drain => {
            return Err(case_error(case, "in blk-mq, use \"switch\" to drain"));
        }
    }
    Ok(())
}

struct Recorder {
    out: Outcome,
    steps: bool,
    keeper: Keeper,
}

impl Recorder {
    fn take(&mut self, q: &mut Queue) {
        let taken = q.cx.log.take();
        let state = |s: &mut String| q.scheduler().state(&q.cx, s);
        let keeper = self.steps.then_some(&mut self.keeper);
        self.out.keep(taken, keeper, state);
    }
}

/// Runs a case until all events have happened.
pub fn run(case: &Case, steps: bool) -> Result<Outcome, CaseError> {
    let inputs = case.inputs()?;
    let mut q = build(case)?;
    q.cx.log.listen_with_bios();
    let mut rec = Recorder {
        out: Outcome::default(),
        steps,
        keeper: Keeper::default(),
    };
    let mut pending = Pending::new(&inputs);
    let mut done: Vec<BioDone> = Vec::new();
    let mut left: BTreeSet<u64> = BTreeSet::new();
    while let Some(t) = [q.next_event(), pending.first().map(|p| p.0)]
        .into_iter()
        .flatten()
        .min()
    {
        let mut step = |q: &mut Queue, rec: &mut Recorder, pending: &mut Pending| {
            q.advance(t, &mut done);
            rec.take(q);
            for d in done.drain(..) {
                pending.completed(d.id, d.at);
            }
            if cfg!(debug_assertions) {
                q.check();
            }
        };
        // Completions and timers come first, then submissions, then runs of the queue.
        if q.next_outside().is_some_and(|o| o <= t) {
            step(&mut q, &mut rec, &mut pending);
        }
        while let Some((_, i)) = pending.first().filter(|p| p.0 <= t) {
            pending.pop();
            if let What::Bio { id, .. } = inputs[i].what {
                left.insert(id);
            }
            feed(case, &mut q, t, &inputs[i].what)?;
            rec.take(&mut q);
        }
        step(&mut q, &mut rec, &mut pending);
    }
    let mut out = rec.out;
    for (_, bios) in &out.dispatch {
        for b in bios {
            left.remove(&b.0);
        }
    }
    out.left = left.into_iter().map(BioId).collect();
    Ok(out)
}
