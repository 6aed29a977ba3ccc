//! Model of FIOPS: the process with the fewest virtual I/Os is served next.

use super::{Ctx, List, Model, Rq, World};
use seekwell_core::Class;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The proposal of 2012: every request costs the same.
    V1,
    V2,
    /// Sync requests preempt async ones.
    Preempt,
}

#[derive(Clone, Default)]
struct Proc {
    vios: u64,
    /// In order of arrival.
    fifo: Vec<Rq>,
    /// (start, request), ascending; ties in order of insertion.
    sorted: Vec<(u64, Rq)>,
    in_flight: u64,
    class: usize,
    prio: i64,
    known: bool,
}

pub struct Fiops {
    kind: Kind,
    /// Without a sync head, the least served process is next instead of the most served one.
    repaired: bool,
    procs: Vec<Proc>,
    /// RT, BE, IDLE: contexts in order of vios; ties in order of insertion.
    tree: [Vec<Ctx>; 3],
    min_vios: [u64; 3],
    /// [async, sync].
    in_flight: [u64; 2],
    read_scale: i64,
    write_scale: i64,
    sync_scale: i64,
    async_scale: i64,
}

impl Fiops {
    pub fn new(kind: Kind) -> Self {
        Fiops {
            kind,
            repaired: false,
            procs: Vec::new(),
            tree: Default::default(),
            min_vios: [0; 3],
            in_flight: [0; 2],
            read_scale: 1,
            write_scale: 1,
            sync_scale: 2,
            async_scale: 5,
        }
    }
    fn proc_of(&mut self, w: &World, c: Ctx) -> &mut Proc {
        if c >= self.procs.len() {
            self.procs.resize(c + 1, Proc::default());
        }
        let p = &mut self.procs[c];
        if !p.known {
            p.known = true;
            let x = &w.ctxs[c];
            (p.class, p.prio) = match x.prio.class {
                _ if self.kind == Kind::V1 => (1, 4),
                Class::Rt => (0, x.prio.level.into()),
                Class::Be => (1, x.prio.level.into()),
                Class::Idle => (2, 7),
                Class::None => (1, (i64::from(x.nice) + 20) / 5),
            };
        }
        p
    }
    fn cost(&self, w: &World, rq: Rq) -> u64 {
        if self.kind == Kind::V1 {
            return 1024;
        }
        let r = &w.rqs[rq];
        let mut c = 1024i64;
        if r.write {
            c = c * self.write_scale / self.read_scale;
        }
        if !r.sync {
            c = c * self.async_scale / self.sync_scale;
        }
        c += c * (self.procs[r.ctx].prio - 4) / 5;
        c.max(1) as u64
    }
    fn plant(&mut self, c: Ctx) {
        let t = self.procs[c].class;
        let vios = self.procs[c].vios;
        let i = self.tree[t]
            .iter()
            .take_while(|o| self.procs[**o].vios <= vios)
            .count();
        self.tree[t].insert(i, c);
    }
    fn uproot(&mut self, c: Ctx) {
        for t in &mut self.tree {
            t.retain(|o| *o != c);
        }
    }
    fn planted(&self, c: Ctx) -> bool {
        self.tree.iter().any(|t| t.contains(&c))
    }
    fn update(&mut self, t: usize) {
        if let Some(first) = self.tree[t].first() {
            self.min_vios[t] = self.min_vios[t].max(self.procs[*first].vios);
        }
    }
    fn forget(&mut self, c: Ctx, rq: Rq) {
        self.procs[c].fifo.retain(|r| *r != rq);
        self.procs[c].sorted.retain(|e| e.1 != rq);
    }
    fn neighbour(&self, w: &World, rq: Rq, step: isize) -> Option<Rq> {
        let sorted = &self.procs[w.rqs[rq].ctx].sorted;
        let i = sorted.iter().position(|e| e.1 == rq)?;
        Some(sorted.get(i.checked_add_signed(step)?)?.1)
    }
    fn hand_over(&mut self, w: &mut World, c: Ctx) -> Rq {
        let rq = self.procs[c].fifo[0];
        self.forget(c, rq);
        self.in_flight[usize::from(w.rqs[rq].sync)] += 1;
        self.procs[c].in_flight += 1;
        w.emit(rq, List::Tail);
        rq
    }
    fn sort(&mut self, c: Ctx, start: u64, rq: Rq) {
        let sorted = &mut self.procs[c].sorted;
        let i = sorted.iter().take_while(|e| e.0 <= start).count();
        sorted.insert(i, (start, rq));
    }
}

impl Model for Fiops {
    fn add(&mut self, w: &mut World, rq: Rq) {
        let (c, start) = (w.rqs[rq].ctx, w.rqs[rq].sector);
        self.proc_of(w, c).fifo.push(rq);
        self.sort(c, start, rq);
        if !self.planted(c) {
            let t = self.procs[c].class;
            if self.procs[c].in_flight == 0 {
                self.procs[c].vios = self.procs[c].vios.max(self.min_vios[t]);
            }
            self.plant(c);
            self.update(t);
        }
    }

    fn dispatch(&mut self, w: &mut World, force: bool) -> bool {
        if force {
            let all: Vec<Ctx> = self.tree.iter().flatten().copied().collect();
            for c in &all {
                while !self.procs[*c].fifo.is_empty() {
                    self.hand_over(w, *c);
                }
                self.uproot(*c);
            }
            return !all.is_empty();
        }
        let Some(t) = (0..3).find(|t| !self.tree[*t].is_empty()) else {
            return false;
        };
        let head_sync = |s: &Self, c: Ctx| w.rqs[s.procs[c].fifo[0]].sync;
        let mut c = self.tree[t][0];
        if !head_sync(self, c) {
            if self.kind != Kind::V1 && self.in_flight[1] > 0 && self.tree[t].len() == 1 {
                return false;
            }
            if self.kind == Kind::Preempt && self.tree[t].len() > 1 {
                let behind = &self.tree[t][1..];
                let sync = behind.iter().find(|c| head_sync(self, **c));
                let fallback = if self.repaired {
                    self.tree[t].first()
                } else {
                    behind.last()
                };
                c = *sync.or(fallback).unwrap();
            }
        }
        let rq = self.hand_over(w, c);
        self.procs[c].vios += self.cost(w, rq);
        self.uproot(c);
        if !self.procs[c].fifo.is_empty() {
            self.plant(c);
        }
        self.update(t);
        true
    }

    fn fronts(&self, _: &World, ctx: Ctx, _: bool, end: u64) -> Vec<Rq> {
        let Some(p) = self.procs.get(ctx) else {
            return Vec::new();
        };
        p.sorted
            .iter()
            .filter(|e| e.0 == end)
            .map(|e| e.1)
            .collect()
    }
    fn may_merge(&self, w: &World, rq: Rq, ctx: Ctx) -> bool {
        w.rqs[rq].ctx == ctx
    }
    fn grew_in_front(&mut self, w: &mut World, rq: Rq) {
        let c = w.rqs[rq].ctx;
        self.procs[c].sorted.retain(|e| e.1 != rq);
        self.sort(c, w.rqs[rq].sector, rq);
    }
    fn joined(&mut self, w: &mut World, _: Rq, gone: Rq) {
        let c = w.rqs[gone].ctx;
        self.forget(c, gone);
        if self.procs[c].fifo.is_empty() {
            self.uproot(c);
        }
    }
    fn former(&self, w: &World, rq: Rq) -> Option<Rq> {
        self.neighbour(w, rq, -1)
    }
    fn latter(&self, w: &World, rq: Rq) -> Option<Rq> {
        self.neighbour(w, rq, 1)
    }
    fn completed(&mut self, w: &mut World, rq: Rq) {
        self.in_flight[usize::from(w.rqs[rq].sync)] -= 1;
        self.procs[w.rqs[rq].ctx].in_flight -= 1;
        if self.in_flight == [0; 2] && self.tree.iter().any(|t| !t.is_empty()) {
            w.kick = true;
        }
    }
    fn store(&mut self, _: &World, name: &str, value: i64) {
        if name == "fix_preempt" {
            self.repaired = value > 0;
            return;
        }
        let value = value.clamp(1, 100);
        match name {
            "read_scale" => self.read_scale = value,
            "write_scale" => self.write_scale = value,
            "sync_scale" => self.sync_scale = value,
            "async_scale" => self.async_scale = value,
            other => panic!("fiops has no {other}"),
        }
    }
}
