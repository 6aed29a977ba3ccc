//! Model of deadline, four generations.

use super::{List, Model, Rq, World};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Generation {
    D18,
    D24,
    D34,
    D40,
}
use Generation::{D18, D24, D40};

pub struct Deadline {
    generation: Generation,
    /// By direction: (start, request), ascending; ties in order of insertion.
    sorted: [Vec<(u64, Rq)>; 2],
    /// By direction: (request, deadline jiffy), in order of arrival.
    fifo: [Vec<(Rq, u64)>; 2],
    next: [Option<Rq>; 2],
    batch: i64,
    starved: u64,
    last_end: u64,
    expire: [u64; 2],
    fifo_batch: i64,
    writes_starved: i64,
    front_merges: bool,
}

const READ: usize = 0;
const WRITE: usize = 1;

impl Deadline {
    pub fn new(generation: Generation, hz: u64) -> Self {
        Deadline {
            generation,
            sorted: Default::default(),
            fifo: Default::default(),
            next: [None; 2],
            batch: 0,
            starved: 0,
            last_end: 0,
            expire: [hz / 2, 5 * hz],
            fifo_batch: 16,
            writes_starved: 2,
            front_merges: true,
        }
    }
    fn index(&self, d: usize, rq: Rq) -> usize {
        self.sorted[d].iter().position(|e| e.1 == rq).unwrap()
    }
    fn after(&self, d: usize, rq: Rq) -> Option<Rq> {
        self.sorted[d].get(self.index(d, rq) + 1).map(|e| e.1)
    }
    fn sort(&mut self, w: &mut World, rq: Rq) {
        let (d, start) = (usize::from(w.rqs[rq].write), w.rqs[rq].sector);
        if self.generation <= D24 {
            while let Some(alias) = self.sorted[d].iter().find(|e| e.0 == start) {
                let alias = alias.1;
                self.serve(w, d, alias);
            }
        }
        let i = self.sorted[d].iter().take_while(|e| e.0 <= start).count();
        self.sorted[d].insert(i, (start, rq));
    }
    fn unsort(&mut self, d: usize, rq: Rq) {
        if self.next[d] == Some(rq) {
            self.next[d] = self.after(d, rq);
        }
        let i = self.index(d, rq);
        self.sorted[d].remove(i);
    }
    /// Follows rule 8, without the count of passed-over writes: dispatches `rq`.
    fn serve(&mut self, w: &mut World, d: usize, rq: Rq) {
        self.next = [None; 2];
        self.next[d] = self.after(d, rq);
        self.last_end = w.rqs[rq].end();
        let i = self.index(d, rq);
        self.sorted[d].remove(i);
        self.fifo[d].retain(|e| e.0 != rq);
        w.emit(rq, List::Tail);
    }
}

impl Model for Deadline {
    fn add(&mut self, w: &mut World, rq: Rq) {
        self.sort(w, rq);
        let d = usize::from(w.rqs[rq].write);
        self.fifo[d].push((rq, w.jiffy() + self.expire[d]));
    }

    fn dispatch(&mut self, w: &mut World, _: bool) -> bool {
        let cand = self.next[WRITE].or(self.next[READ]);
        if let Some(rq) = cand {
            if self.generation <= D24 && w.rqs[rq].sector != self.last_end {
                self.batch += self.fifo_batch;
            }
            if self.batch < self.fifo_batch {
                self.batch += 1;
                self.serve(w, w.rqs[rq].write.into(), rq);
                return true;
            }
        }
        let (r, ww) = (!self.fifo[READ].is_empty(), !self.fifo[WRITE].is_empty());
        let d = match (r, ww) {
            (true, true) => {
                let before = self.starved;
                self.starved += 1;
                // The comparison is unsigned: a negative limit is never reached.
                let limit = if self.writes_starved < 0 {
                    u64::MAX
                } else {
                    self.writes_starved as u64
                };
                if before >= limit { WRITE } else { READ }
            }
            (true, false) => READ,
            (false, true) => WRITE,
            (false, false) => return false,
        };
        if d == WRITE {
            self.starved = 0;
        }
        let (head, deadline) = self.fifo[d][0];
        let now = w.jiffy();
        let expired = now > deadline || self.generation == D40 && now == deadline;
        let rq = if expired {
            self.batch = 0;
            head
        } else if let Some(n) = self.next[d] {
            if self.generation != D18 {
                self.batch = 0;
            }
            n
        } else {
            self.batch = 0;
            if self.generation == D18 {
                self.sorted[d][0].1
            } else {
                head
            }
        };
        self.batch += 1;
        self.serve(w, d, rq);
        true
    }

    fn fronts(&self, _: &World, _: usize, write: bool, end: u64) -> Vec<Rq> {
        if !self.front_merges {
            return Vec::new();
        }
        let tree = &self.sorted[usize::from(write)];
        tree.iter().filter(|e| e.0 == end).map(|e| e.1).collect()
    }
    fn grew_in_front(&mut self, w: &mut World, rq: Rq) {
        let d = usize::from(w.rqs[rq].write);
        let was_next = self.next[d] == Some(rq);
        if self.generation == D18 {
            self.unsort(d, rq);
        } else {
            let i = self.index(d, rq);
            self.sorted[d].remove(i);
        }
        self.sort(w, rq);
        if was_next && self.generation != D18 {
            self.next[d] = Some(rq);
        }
    }
    fn joined(&mut self, w: &mut World, kept: Rq, gone: Rq) {
        let d = usize::from(w.rqs[kept].write);
        let k = self.fifo[d].iter().position(|e| e.0 == kept).unwrap();
        let g = self.fifo[d].iter().position(|e| e.0 == gone).unwrap();
        let (k_dead, g_dead) = (self.fifo[d][k].1, self.fifo[d][g].1);
        if g_dead < k_dead {
            self.fifo[d][g] = (kept, g_dead);
            self.fifo[d].remove(k);
        } else {
            self.fifo[d].remove(g);
        }
        self.unsort(d, gone);
    }
    fn former(&self, w: &World, rq: Rq) -> Option<Rq> {
        let d = usize::from(w.rqs[rq].write);
        Some(self.sorted[d][self.index(d, rq).checked_sub(1)?].1)
    }
    fn latter(&self, w: &World, rq: Rq) -> Option<Rq> {
        self.after(w.rqs[rq].write.into(), rq)
    }
    fn store(&mut self, w: &World, name: &str, value: i64) {
        match name {
            "read_expire" => self.expire[READ] = w.ms(value.max(0) as u64),
            "write_expire" => self.expire[WRITE] = w.ms(value.max(0) as u64),
            "fifo_batch" => self.fifo_batch = value.max(0),
            "writes_starved" => self.writes_starved = value,
            "front_merges" => self.front_merges = value > 0,
            other => panic!("deadline has no {other}"),
        }
    }
}
