//! Runs cases in the single-queue layer, with the conventions of the recorded decision logs. There
//! are no plugs, and the request pool has no limit. The device has one server with a constant
//! service time. The driver takes a request only if the device can accept it.

use super::format::When;
use super::steps::Keeper;
use super::{Case, CaseError, Outcome, What};
use seekwell_block::{HostDriver, LegacyOptions, LegacyQueue};
use seekwell_core::{
    Bio, BioDone, BioId, BioSink, CgroupId, Class, Control, Device, Instant, IoPrio, Nanos, RqId,
    Sectors, TaskId, TickClock,
};
use seekwell_device::Constant;
use seekwell_sched::{QueueFacts, Scheduler, find};
use std::collections::{BTreeMap, BTreeSet};

/// Size of a request pool without a limit.
const NO_LIMIT: u32 = u32::MAX / 4;

type Queue = LegacyQueue<dyn Scheduler, Constant>;

pub(super) fn case_error(case: &Case, why: impl Into<String>) -> CaseError {
    CaseError::Case {
        case: case.case.clone(),
        why: why.into(),
    }
}

/// Returns the queue parameters of a case.
pub(super) fn facts(case: &Case, era: seekwell_core::Era) -> QueueFacts {
    QueueFacts {
        rotational: case.device.rotational,
        depth: case.device.depth,
        nr_requests: if case.nr_requests == 0 {
            NO_LIMIT
        } else {
            case.nr_requests
        },
        max_sectors: Sectors(case.max_sectors),
        nomerges: case.nomerges,
        cpus: case.cpus.max(1),
        name: case.case.clone(),
        ..QueueFacts::example(era)
    }
}

fn build(case: &Case) -> Result<Queue, CaseError> {
    let (info, version, era) = find(&case.elevator).ok_or_else(|| {
        case_error(
            case,
            format!(
                "no scheduler \"{}\": see `seekwell schedulers`",
                case.elevator
            ),
        )
    })?;
    if era.is_mq() {
        let why = format!(
            "{} is a blk-mq scheduler; set \"harness\": \"mq\"",
            case.elevator
        );
        return Err(case_error(case, why));
    }
    let service = Nanos((case.device.service_us * 1000.0).round() as u64);
    let dev = Constant::serial(case.device.depth, service).rotational(case.device.rotational);
    let opts = LegacyOptions {
        queue_plug: false,
        hash: (info.hash)(version),
        ..LegacyOptions::default()
    };
    let host = HostDriver::Simple {
        depth: case.device.depth,
    };
    let make = |cx: &_| (info.make)(cx, version);
    Ok(Queue::new(
        facts(case, era),
        TickClock::new(case.hz),
        opts,
        host,
        dev,
        make,
    ))
}

/// Creates the I/O contexts, cgroups and tunables of a case before its start.
fn prepare(case: &Case, q: &mut Queue) -> Result<(), CaseError> {
    let t = Instant::START;
    for (cg, parent, weight) in &case.cgroups {
        q.control(t, Control::CgroupNew(CgroupId(*cg), CgroupId(*parent)));
        q.control(t, Control::Weight(CgroupId(*cg), *weight));
    }
    for (cg, weight) in &case.leaf_weights {
        q.control(t, Control::LeafWeight(CgroupId(*cg), *weight));
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
    for (pid, cg) in &case.groups {
        q.control(t, Control::Cgroup(TaskId(*pid), CgroupId(*cg)));
    }
    for (name, text) in case.tunable_texts() {
        q.store(t, &name, &text)
            .map_err(|e| case_error(case, e.to_string()))?;
    }
    Ok(())
}

/// Collects dispatches, timer expiries and, on request, all steps from the event log.
pub(super) struct Recorder {
    pub(super) out: Outcome,
    steps: bool,
    keeper: Keeper,
}

impl Recorder {
    pub(super) fn new(steps: bool) -> Self {
        Recorder {
            out: Outcome::default(),
            steps,
            keeper: Keeper::default(),
        }
    }
    fn take<D: Device>(&mut self, q: &mut LegacyQueue<dyn Scheduler, D>) {
        let taken = q.cx.log.take();
        let state = |s: &mut String| q.scheduler().state(&q.cx, s);
        let keeper = self.steps.then_some(&mut self.keeper);
        self.out.keep(taken, keeper, state);
    }
}

/// Submissions that have not happened yet, ordered by time and by position in the case.
pub(super) struct Pending {
    ready: BTreeSet<(Instant, usize)>,
    after: BTreeMap<u64, Vec<(u64, usize)>>,
}

impl Pending {
    pub(super) fn new(inputs: &[super::CaseInput]) -> Self {
        let mut p = Pending {
            ready: BTreeSet::new(),
            after: BTreeMap::new(),
        };
        for (i, input) in inputs.iter().enumerate() {
            match input.when {
                When::At(t) => {
                    p.ready.insert((t, i));
                }
                When::After(k, ns) => p.after.entry(k).or_default().push((ns, i)),
            }
        }
        p
    }
    pub(super) fn first(&self) -> Option<(Instant, usize)> {
        self.ready.first().copied()
    }
    pub(super) fn pop(&mut self) -> Option<(Instant, usize)> {
        self.ready.pop_first()
    }
    pub(super) fn completed(&mut self, id: BioId, at: Instant) {
        for (ns, i) in self.after.remove(&id.0).unwrap_or_default() {
            self.ready.insert((at + Nanos(ns), i));
        }
    }
}

/// Returns the bio of an input row.
pub(super) fn bio_of(what: &What) -> Option<Bio> {
    match *what {
        What::Bio {
            id,
            task,
            op,
            flags,
            sector,
            sectors,
            cpu,
        } => Some(Bio {
            cpu,
            ..Bio::new(id, task, op, flags, sector.0, sectors.0)
        }),
        _ => None,
    }
}

/// Runs a case until all events have happened.
pub fn run(case: &Case, steps: bool) -> Result<Outcome, CaseError> {
    let inputs = case.inputs()?;
    let mut q = build(case)?;
    prepare(case, &mut q)?;
    q.cx.log.listen_with_bios();
    let mut rec = Recorder::new(steps);
    let mut pending = Pending::new(&inputs);
    let mut done: Vec<BioDone> = Vec::new();
    let mut undispatched: BTreeSet<u64> = BTreeSet::new();
    loop {
        let own = q.next_event();
        let next = pending.first();
        match (own, next) {
            (None, None) => break,
            (Some(t), n) if n.is_none_or(|n| t <= n.0) => q.advance(t, &mut done),
            _ => {
                let Some((t, i)) = pending.pop() else { break };
                if let What::Bio { id, .. } = inputs[i].what {
                    undispatched.insert(id);
                }
                feed(case, &mut q, t, &inputs[i].what)?;
            }
        }
        rec.take(&mut q);
        for d in done.drain(..) {
            pending.completed(d.id, d.at);
        }
        if cfg!(debug_assertions) {
            q.check();
        }
    }
    let mut out = rec.out;
    for (_, bios) in &out.dispatch {
        for b in bios {
            undispatched.remove(&b.0);
        }
    }
    out.left = undispatched.into_iter().map(BioId).collect();
    Ok(out)
}

fn feed(case: &Case, q: &mut Queue, t: Instant, what: &What) -> Result<(), CaseError> {
    match what {
        What::Bio { .. } => {
            if let Some(bio) = bio_of(what) {
                q.submit(t, bio);
            }
        }
        What::Exit(task) => q.control(t, Control::Exit(*task)),
        What::Prio(task, p) => q.control(t, Control::Prio(*task, *p)),
        What::Tunable(name, text) => {
            q.store(t, name, text)
                .map_err(|e| case_error(case, e.to_string()))?;
        }
        What::Drain => q.drain(t),
        What::Weight(cg, w) => q.control(t, Control::Weight(CgroupId(*cg), *w)),
        What::Plug(task) => q.control(t, Control::Plug(*task)),
        What::Unplug(task) => q.control(t, Control::Unplug(*task)),
        What::Requeue(_) | What::Switch(_) => {
            return Err(case_error(
                case,
                "requeue and switch need \"harness\": \"mq\"",
            ));
        }
    }
    Ok(())
}

/// Returns the ids of the bios of a request.
pub(super) fn ids(q: &seekwell_sched::Cx, rq: RqId) -> Vec<BioId> {
    q.rqs.bios(rq).map(|b| b.0.id).collect()
}
