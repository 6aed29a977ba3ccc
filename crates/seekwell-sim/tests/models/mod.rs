//! A second, independent block layer with schedulers: simple, slow and obviously correct.
//!
//! It was written from the rules alone, with vectors that are searched linearly, and is compared
//! with the fast schedulers. Times are whole microseconds from the start of the experiment;
//! requests and contexts are never reused. It contains only what the random cases need: one server
//! with a fixed service time, no plug, no pools.

pub mod anticipatory;
pub mod deadline;
pub mod fiops;
pub mod row;
pub mod sio;
pub mod vr;
pub mod zen;

use seekwell_core::{Flags, IoPrio, Op};
use seekwell_microscope::format::When;
use seekwell_microscope::{Case, What};
use std::collections::BTreeMap;

/// Index of a request.
pub type Rq = usize;
/// Index of an io context.
pub type Ctx = usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    Queued,
    Listed,
    Device,
    Gone,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub op: Op,
    pub write: bool,
    /// Whether its first bio is sync.
    pub sync: bool,
    pub sector: u64,
    pub n: u64,
    /// (id, sector), ascending.
    pub bios: Vec<(u64, u64)>,
    pub ctx: Ctx,
    pub at: At,
    no_merge: bool,
    /// Order of the last addition to the hash. Of several matches, the search finds the newest.
    hashed: u64,
}

impl Request {
    pub fn end(&self) -> u64 {
        self.sector + self.n
    }
}

#[derive(Clone, Debug)]
pub struct Context {
    /// The value set by ioprio_set.
    pub prio: IoPrio,
    pub nice: i8,
    /// Whether its process still exists.
    pub alive: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum List {
    Tail,
    Sorted,
}

/// The environment of a model.
pub struct World {
    pub now_us: u64,
    pub hz: u64,
    pub rqs: Vec<Request>,
    pub ctxs: Vec<Context>,
    /// The only timer that a model can have.
    pub timer_us: Option<u64>,
    /// True if the queue must run at the end of this instant.
    pub kick: bool,
    /// True if several requests matched, so that the shape of a tree decides which of them is
    /// found.
    pub ambiguous: bool,
    list: Vec<Rq>,
    boundary: u64,
    boundary_rq: Option<Rq>,
    last_merge: Option<Rq>,
    hash_clock: u64,
    old_sort: bool,
}

impl World {
    /// The current jiffy; the clock starts at 1000 s.
    pub fn jiffy(&self) -> u64 {
        self.now_us * self.hz / 1_000_000 + 1000 * self.hz
    }
    /// Converts milliseconds to jiffies, rounded up.
    pub fn ms(&self, ms: u64) -> u64 {
        (ms * self.hz).div_ceil(1000)
    }
    /// Dispatches a request on behalf of the model.
    pub fn emit(&mut self, rq: Rq, how: List) {
        assert_eq!(self.rqs[rq].at, At::Queued, "let go twice");
        self.rqs[rq].at = At::Listed;
        if self.last_merge == Some(rq) {
            self.last_merge = None;
        }
        match how {
            List::Tail => {
                self.list.push(rq);
                self.boundary = self.rqs[rq].end();
                self.boundary_rq = Some(rq);
            }
            List::Sorted => {
                let mut place = self.list.len();
                while place > 0 && !self.stays_behind(rq, self.list[place - 1]) {
                    place -= 1;
                }
                self.list.insert(place, rq);
            }
        }
    }
    fn stays_behind(&self, rq: Rq, other: Rq) -> bool {
        let (r, o) = (&self.rqs[rq], &self.rqs[other]);
        if (r.op == Op::Discard) != (o.op == Op::Discard) || r.write != o.write && !self.old_sort {
            return true;
        }
        let lap = |s: u64| (s < self.boundary, s);
        lap(o.sector) <= lap(r.sector)
    }
    fn mergeable(&self, rq: Rq) -> bool {
        self.rqs[rq].at == At::Queued && !self.rqs[rq].no_merge
    }
}

pub trait Model {
    /// Adds a request.
    fn add(&mut self, w: &mut World, rq: Rq);
    /// Dispatches at least one request, or returns false.
    fn dispatch(&mut self, w: &mut World, force: bool) -> bool;
    /// Returns the queued requests that start at `end`, in the order in which the scheduler's
    /// search finds them.
    fn fronts(&self, _w: &World, _ctx: Ctx, _write: bool, _end: u64) -> Vec<Rq> {
        Vec::new()
    }
    fn may_merge(&self, _w: &World, _rq: Rq, _ctx: Ctx) -> bool {
        true
    }
    /// A bio was merged in front of `rq`, without a merge of two requests.
    fn grew_in_front(&mut self, _w: &mut World, _rq: Rq) {}
    /// `gone` was merged into `kept`.
    fn joined(&mut self, w: &mut World, kept: Rq, gone: Rq);
    fn former(&self, _w: &World, _rq: Rq) -> Option<Rq> {
        None
    }
    fn latter(&self, _w: &World, _rq: Rq) -> Option<Rq> {
        None
    }
    /// The driver takes the request from the list.
    fn activated(&mut self, _w: &mut World, _rq: Rq) {}
    fn completed(&mut self, _w: &mut World, _rq: Rq) {}
    fn timer(&mut self, _w: &mut World) {}
    /// Sets a tunable, in sysfs units.
    fn store(&mut self, w: &World, name: &str, value: i64);
}

/// Result of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plain {
    /// (us, ids in ascending sector order).
    pub dispatch: Vec<(u64, Vec<u64>)>,
    pub timers: Vec<u64>,
    pub ambiguous: bool,
}

struct Run<'a> {
    w: World,
    model: &'a mut dyn Model,
    depth: usize,
    service_us: u64,
    max_sectors: u64,
    /// (completion, request), in order of acceptance.
    device: Vec<(u64, Rq)>,
    busy_until: u64,
    out: Plain,
}

impl Run<'_> {
    fn run_queue(&mut self) {
        while self.device.len() < self.depth {
            if self.w.list.is_empty() && !self.model.dispatch(&mut self.w, false) {
                return;
            }
            let rq = self.w.list.remove(0);
            if self.w.boundary_rq.is_none_or(|b| b == rq) {
                self.w.boundary = self.w.rqs[rq].end();
                self.w.boundary_rq = None;
            }
            self.w.rqs[rq].at = At::Device;
            self.model.activated(&mut self.w, rq);
            let done = self.busy_until.max(self.w.now_us) + self.service_us;
            self.busy_until = done;
            self.device.push((done, rq));
            let ids = self.w.rqs[rq].bios.iter().map(|b| b.0).collect();
            self.out.dispatch.push((self.w.now_us, ids));
        }
    }

    /// The request that the generic search finds, and whether the bio is appended to it.
    fn find(&mut self, op: Op, sector: u64, n: u64, ctx: Ctx) -> Option<(Rq, bool)> {
        let fits = |s: &Self, rq: Rq| {
            s.w.mergeable(rq) && s.w.rqs[rq].op == op && s.model.may_merge(&s.w, rq, ctx)
        };
        if let Some(rq) = self.w.last_merge
            && fits(self, rq)
        {
            if self.w.rqs[rq].end() == sector {
                return Some((rq, true));
            }
            if self.w.rqs[rq].sector == sector + n {
                return Some((rq, false));
            }
        }
        let ends_here = |rq: &Rq| self.w.mergeable(*rq) && self.w.rqs[*rq].end() == sector;
        let all = (0..self.w.rqs.len()).filter(ends_here);
        if let Some(rq) = all.max_by_key(|rq| self.w.rqs[*rq].hashed)
            && fits(self, rq)
        {
            return Some((rq, true));
        }
        let fronts = self.model.fronts(&self.w, ctx, op != Op::Read, sector + n);
        if fronts.len() > 1 {
            self.w.ambiguous = true;
        }
        let rq = *fronts.first()?;
        fits(self, rq).then_some((rq, false))
    }

    fn rehash(&mut self, rq: Rq) {
        self.w.hash_clock += 1;
        self.w.rqs[rq].hashed = self.w.hash_clock;
    }

    /// Merges two queued requests if they are adjacent and may merge.
    fn join(&mut self, kept: Rq, gone: Rq) -> bool {
        let (k, g) = (&self.w.rqs[kept], &self.w.rqs[gone]);
        let ok = self.w.mergeable(kept)
            && self.w.mergeable(gone)
            && k.end() == g.sector
            && k.op == g.op
            && k.n + g.n <= self.max_sectors;
        if ok {
            let g = self.w.rqs[gone].clone();
            self.w.rqs[kept].n += g.n;
            self.w.rqs[kept].bios.extend(g.bios);
            self.model.joined(&mut self.w, kept, gone);
            self.w.rqs[gone].at = At::Gone;
            self.rehash(kept);
        }
        ok
    }

    fn merge(&mut self, id: u64, op: Op, sector: u64, n: u64, ctx: Ctx) -> bool {
        let Some((rq, behind)) = self.find(op, sector, n, ctx) else {
            return false;
        };
        if self.w.rqs[rq].n + n > self.max_sectors {
            self.w.rqs[rq].no_merge = true;
            if self.w.last_merge == Some(rq) {
                self.w.last_merge = None;
            }
            return false;
        }
        self.w.rqs[rq].n += n;
        self.w.last_merge = Some(rq);
        if behind {
            self.w.rqs[rq].bios.push((id, sector));
            if let Some(next) = self.model.latter(&self.w, rq)
                && self.join(rq, next)
            {
                return true;
            }
            self.rehash(rq);
        } else {
            self.w.rqs[rq].bios.insert(0, (id, sector));
            self.w.rqs[rq].sector = sector;
            if let Some(before) = self.model.former(&self.w, rq)
                && self.join(before, rq)
            {
                self.w.last_merge = Some(before);
                return true;
            }
            self.model.grew_in_front(&mut self.w, rq);
        }
        true
    }

    fn bio(&mut self, id: u64, op: Op, sync: bool, sector: u64, n: u64, ctx: Ctx) {
        if self.merge(id, op, sector, n, ctx) {
            return;
        }
        let rq = self.w.rqs.len();
        self.w.rqs.push(Request {
            op,
            write: op != Op::Read,
            sync,
            sector,
            n,
            bios: vec![(id, sector)],
            ctx,
            at: At::Queued,
            no_merge: false,
            hashed: 0,
        });
        self.rehash(rq);
        if self.w.last_merge.is_none() {
            self.w.last_merge = Some(rq);
        }
        self.model.add(&mut self.w, rq);
        self.run_queue();
    }

    fn deferred(&mut self) {
        while std::mem::take(&mut self.w.kick) {
            self.run_queue();
        }
    }
}

/// Runs a case on the simple layer; `old` selects 2.6.18.
pub fn run(case: &Case, model: &mut dyn Model, old: bool) -> Plain {
    let inputs = case.inputs().expect("a sound case");
    let mut prio: BTreeMap<u32, IoPrio> = BTreeMap::new();
    for c in &case.contexts {
        prio.insert(
            c[0] as u32,
            IoPrio::from_numbers(c[1], c[2]).expect("a sound prio"),
        );
    }
    let nice: BTreeMap<u32, i8> = case.nice.iter().copied().collect();
    let mut alive: BTreeMap<u32, Ctx> = BTreeMap::new();
    let w = World {
        now_us: 0,
        hz: case.hz.into(),
        rqs: Vec::new(),
        ctxs: Vec::new(),
        timer_us: None,
        kick: false,
        ambiguous: false,
        list: Vec::new(),
        boundary: 0,
        boundary_rq: None,
        last_merge: None,
        hash_clock: 0,
        old_sort: old,
    };
    for (name, text) in case.tunable_texts() {
        model.store(&w, &name, text.parse().expect("a number"));
    }
    let mut r = Run {
        w,
        model,
        depth: case.device.depth as usize,
        service_us: case.device.service_us as u64,
        max_sectors: case.max_sectors.into(),
        device: Vec::new(),
        busy_until: 0,
        out: Plain::default(),
    };
    let mut next = 0;
    loop {
        let at_us = inputs.get(next).map(|i| match i.when {
            When::At(t) => t.since_start() / 1000,
            When::After(..) => panic!("random cases have fixed times"),
        });
        let completion = r.device.first().map(|d| d.0);
        let Some(t) = [at_us, completion, r.w.timer_us]
            .into_iter()
            .flatten()
            .min()
        else {
            break;
        };
        r.w.now_us = t;
        if completion == Some(t) {
            let (_, rq) = r.device.remove(0);
            r.model.completed(&mut r.w, rq);
            r.w.rqs[rq].at = At::Gone;
            r.run_queue();
            if r.device.first().is_some_and(|d| d.0 == t) || r.w.timer_us == Some(t) {
                continue; // deferred work comes after these
            }
        } else if r.w.timer_us == Some(t) {
            r.w.timer_us = None;
            r.out.timers.push(t);
            r.model.timer(&mut r.w);
        } else {
            match &inputs[next].what {
                What::Bio {
                    id,
                    task,
                    op,
                    flags,
                    sector,
                    sectors,
                    ..
                } => {
                    let ctx = *alive.entry(task.0).or_insert_with(|| {
                        r.w.ctxs.push(Context {
                            prio: prio.get(&task.0).copied().unwrap_or(IoPrio::NONE),
                            nice: nice.get(&task.0).copied().unwrap_or(0),
                            alive: true,
                        });
                        r.w.ctxs.len() - 1
                    });
                    let sync = *op == Op::Read || flags.contains(Flags::SYNC);
                    r.bio(*id, *op, sync, sector.0, sectors.0.into(), ctx);
                }
                What::Exit(task) => {
                    if let Some(c) = alive.remove(&task.0) {
                        r.w.ctxs[c].alive = false;
                    }
                    prio.remove(&task.0);
                }
                What::Prio(task, p) => {
                    prio.insert(task.0, *p);
                    if let Some(c) = alive.get(&task.0) {
                        r.w.ctxs[*c].prio = *p;
                    }
                }
                What::Tunable(name, text) => {
                    r.model.store(&r.w, name, text.parse().expect("a number"));
                }
                What::Drain => {
                    while r.model.dispatch(&mut r.w, true) {}
                    r.run_queue();
                }
                other => unreachable!("the generator makes no {other:?}"),
            }
            next += 1;
        }
        r.deferred();
    }
    assert!(
        r.w.rqs.iter().all(|q| q.at == At::Gone),
        "a request was left behind"
    );
    r.out.ambiguous = r.w.ambiguous;
    r.out
}
