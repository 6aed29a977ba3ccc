//! Model of V(R): the nearest request, with a penalty for going back.

use super::{List, Model, Rq, World};

pub struct Vr {
    /// Divide by the penalty as documented, instead of taking the remainder as shipped.
    pub quotient: bool,
    /// A new request at the start sector of a queued one causes the dispatch of the queued one.
    pub evict: bool,
    /// (start, request), ascending; ties in order of insertion.
    tree: Vec<(u64, Rq)>,
    /// [0] async, [1] sync: (request, deadline jiffy).
    fifo: [Vec<(Rq, u64)>; 2],
    expire: [u64; 2],
    fifo_batch: i64,
    rev_penalty: u64,
    last: u64,
    forward: bool,
    next: Option<Rq>,
    prev: Option<Rq>,
    nbatched: i64,
}

impl Vr {
    pub fn new(hz: u64, rev_penalty: u64, evict: bool) -> Self {
        Vr {
            evict,
            quotient: false,
            tree: Vec::new(),
            fifo: Default::default(),
            expire: [5 * hz, hz / 2],
            fifo_batch: 1,
            rev_penalty,
            last: 0,
            forward: true,
            next: None,
            prev: None,
            nbatched: 0,
        }
    }
    fn index(&self, rq: Rq) -> usize {
        self.tree.iter().position(|e| e.1 == rq).unwrap()
    }
    fn after(&self, rq: Rq) -> Option<Rq> {
        self.tree.get(self.index(rq) + 1).map(|e| e.1)
    }
    fn before(&self, rq: Rq) -> Option<Rq> {
        Some(self.tree[self.index(rq).checked_sub(1)?].1)
    }
    fn key(&self, rq: Rq) -> u64 {
        self.tree[self.index(rq)].0
    }
    fn sort(&mut self, w: &mut World, rq: Rq) {
        let start = w.rqs[rq].sector;
        // There can be several only if eviction has just been enabled.
        w.ambiguous |= self.evict && self.tree.iter().filter(|e| e.0 == start).count() > 1;
        while let Some(alias) = self.tree.iter().find(|e| self.evict && e.0 == start) {
            let alias = alias.1;
            self.serve(w, alias);
        }
        let i = self.tree.iter().take_while(|e| e.0 <= start).count();
        self.tree.insert(i, (start, rq));
        if start >= self.last {
            if self.next.is_none_or(|n| start < self.key(n)) {
                self.next = Some(rq);
            }
        } else if self.prev.is_none_or(|p| start > self.key(p)) {
            self.prev = Some(rq);
        }
    }
    /// Rule D6.
    fn serve(&mut self, w: &mut World, rq: Rq) {
        let start = w.rqs[rq].sector;
        self.forward = start > self.last;
        self.last = start;
        self.next = self.after(rq);
        self.prev = self.before(rq);
        let i = self.index(rq);
        self.tree.remove(i);
        self.unqueue(rq);
        self.nbatched += 1;
        w.emit(rq, List::Tail);
    }
    fn unsort(&mut self, rq: Rq) {
        if self.next == Some(rq) {
            self.next = self.after(rq);
        }
        if self.prev == Some(rq) {
            self.prev = self.before(rq);
        }
        let i = self.index(rq);
        self.tree.remove(i);
    }
    fn unqueue(&mut self, rq: Rq) {
        for f in &mut self.fifo {
            f.retain(|e| e.0 != rq);
        }
    }
    fn expired(&self, w: &World, c: usize) -> Option<(u64, Rq)> {
        let (rq, deadline) = *self.fifo[c].first()?;
        (w.jiffy() > deadline).then_some((deadline, rq))
    }
    fn nearest(&self) -> Option<Rq> {
        let (Some(n), Some(p)) = (self.next, self.prev) else {
            return self.next.or(self.prev);
        };
        let (mut dn, mut dp) = (self.key(n) - self.last, self.last - self.key(p));
        let penalty = match self.rev_penalty {
            0 => i32::MAX as u64,
            p => p,
        };
        let d = if self.forward { &mut dn } else { &mut dp };
        *d = if self.quotient {
            *d / penalty
        } else {
            *d % penalty
        };
        Some(if dn <= dp { n } else { p })
    }
}

impl Model for Vr {
    fn add(&mut self, w: &mut World, rq: Rq) {
        self.sort(w, rq);
        let c = usize::from(w.rqs[rq].sync);
        if self.expire[c] != 0 {
            self.fifo[c].push((rq, w.jiffy() + self.expire[c]));
        }
    }
    fn dispatch(&mut self, w: &mut World, _: bool) -> bool {
        let mut rq = None;
        if self.nbatched > self.fifo_batch {
            self.nbatched = 0;
            rq = match (self.expired(w, 1), self.expired(w, 0)) {
                (Some(s), Some(a)) => Some(if s.0 < a.0 { s.1 } else { a.1 }),
                (s, a) => s.or(a).map(|e| e.1),
            };
        }
        let Some(rq) = rq.or(self.nearest()) else {
            return false;
        };
        self.serve(w, rq);
        true
    }
    fn fronts(&self, _: &World, _: usize, _: bool, end: u64) -> Vec<Rq> {
        self.tree
            .iter()
            .filter(|e| e.0 == end)
            .map(|e| e.1)
            .collect()
    }
    fn grew_in_front(&mut self, w: &mut World, rq: Rq) {
        self.unsort(rq);
        self.sort(w, rq);
    }
    fn joined(&mut self, _: &mut World, kept: Rq, gone: Rq) {
        let find = |s: &Self, rq| {
            let at = |c: usize| s.fifo[c].iter().position(|e| e.0 == rq).map(|i| (c, i));
            at(0).or(at(1))
        };
        if let (Some((kc, ki)), Some((gc, gi))) = (find(self, kept), find(self, gone)) {
            let deadline = self.fifo[gc][gi].1;
            if deadline < self.fifo[kc][ki].1 {
                self.fifo[gc][gi] = (kept, deadline);
                self.fifo[kc].remove(ki);
            }
        }
        self.unqueue(gone);
        self.unsort(gone);
    }
    fn former(&self, _: &World, rq: Rq) -> Option<Rq> {
        self.before(rq)
    }
    fn latter(&self, _: &World, rq: Rq) -> Option<Rq> {
        self.after(rq)
    }
    fn store(&mut self, w: &World, name: &str, value: i64) {
        match name {
            "sync_expire" => self.expire[1] = w.ms(value.max(0) as u64),
            "async_expire" => self.expire[0] = w.ms(value.max(0) as u64),
            "fifo_batch" => self.fifo_batch = value,
            "alias_evict" => self.evict = value > 0,
            "rev_penalty" => self.rev_penalty = value.max(0) as u64,
            other => panic!("vr has no {other}"),
        }
    }
}
