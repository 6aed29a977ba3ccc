//! Model of Simple I/O: four FIFOs by sync flag and direction (version 0.1: two, by sync flag).

use super::{List, Model, Rq, World};

pub struct Sio {
    /// Version 0.1.
    pub old: bool,
    /// [sync][write] -> (request, deadline jiffy), in order of arrival.
    fifo: [[Vec<(Rq, u64)>; 2]; 2],
    expire: [[u64; 2]; 2],
    fifo_batch: i64,
    writes_starved: i64,
    batched: i64,
    starved: i64,
}

const SYNC: usize = 1;
const ASYNC: usize = 0;

impl Sio {
    pub fn new(hz: u64) -> Self {
        Sio {
            old: false,
            fifo: Default::default(),
            expire: [[4 * hz, 16 * hz], [hz / 2, 2 * hz]],
            fifo_batch: 8,
            writes_starved: 2,
            batched: 0,
            starved: 0,
        }
    }
    pub fn v1(hz: u64) -> Self {
        Sio {
            old: true,
            expire: [[5 * hz; 2], [hz / 2; 2]],
            fifo_batch: 16,
            ..Sio::new(hz)
        }
    }
    /// The parameters of another copy.
    pub fn preset(&mut self, sync_read_j: u64, sync_write_j: u64, batch: i64, starved: i64) {
        self.expire[SYNC] = [sync_read_j, sync_write_j];
        (self.fifo_batch, self.writes_starved) = (batch, starved);
    }
    fn place(&self, w: &World, rq: Rq) -> (usize, usize) {
        let r = &w.rqs[rq];
        (r.sync.into(), if self.old { 0 } else { r.write.into() })
    }
    fn neighbour(&self, w: &World, rq: Rq, step: isize) -> Option<Rq> {
        let (s, d) = self.place(w, rq);
        let list = &self.fifo[s][d];
        let i = list.iter().position(|e| e.0 == rq)?;
        Some(list.get(i.checked_add_signed(step)?)?.0)
    }
    fn expired(&self, w: &World, s: usize, d: usize) -> bool {
        self.fifo[s][d].first().is_some_and(|e| w.jiffy() > e.1)
    }
}

impl Model for Sio {
    fn add(&mut self, w: &mut World, rq: Rq) {
        let (s, d) = self.place(w, rq);
        self.fifo[s][d].push((rq, w.jiffy() + self.expire[s][d]));
    }

    fn dispatch(&mut self, w: &mut World, _: bool) -> bool {
        let mut from = None;
        if self.batched > self.fifo_batch {
            self.batched = 0;
            let order = if self.old {
                vec![(ASYNC, 0), (SYNC, 0)]
            } else {
                vec![(ASYNC, 1), (ASYNC, 0), (SYNC, 1), (SYNC, 0)]
            };
            from = order.into_iter().find(|(s, d)| self.expired(w, *s, *d));
        }
        if from.is_none() {
            let order = if self.old {
                vec![(SYNC, 0), (ASYNC, 0)]
            } else {
                let d = usize::from(self.starved > self.writes_starved);
                vec![(SYNC, d), (ASYNC, d), (SYNC, 1 - d), (ASYNC, 1 - d)]
            };
            from = order
                .into_iter()
                .find(|(s, d)| !self.fifo[*s][*d].is_empty());
        }
        let Some((s, d)) = from else {
            return false;
        };
        let (rq, _) = self.fifo[s][d].remove(0);
        self.batched += 1;
        self.starved = if w.rqs[rq].write { 0 } else { self.starved + 1 };
        w.emit(rq, List::Tail);
        true
    }

    fn joined(&mut self, w: &mut World, kept: Rq, gone: Rq) {
        let ((ks, kd), (gs, gd)) = (self.place(w, kept), self.place(w, gone));
        let k = self.fifo[ks][kd].iter().position(|e| e.0 == kept).unwrap();
        let g = self.fifo[gs][gd].iter().position(|e| e.0 == gone).unwrap();
        let (k_dead, g_dead) = (self.fifo[ks][kd][k].1, self.fifo[gs][gd][g].1);
        if g_dead < k_dead {
            self.fifo[gs][gd][g] = (kept, g_dead);
            self.fifo[ks][kd].remove(k);
        } else {
            self.fifo[gs][gd].remove(g);
        }
    }
    fn former(&self, w: &World, rq: Rq) -> Option<Rq> {
        self.neighbour(w, rq, -1)
    }
    fn latter(&self, w: &World, rq: Rq) -> Option<Rq> {
        self.neighbour(w, rq, 1)
    }

    fn store(&mut self, w: &World, name: &str, value: i64) {
        let j = w.ms(value.max(0) as u64);
        match name {
            "sync_read_expire" => self.expire[SYNC][0] = j,
            "sync_write_expire" => self.expire[SYNC][1] = j,
            "async_read_expire" => self.expire[ASYNC][0] = j,
            "async_write_expire" => self.expire[ASYNC][1] = j,
            "sync_expire" => self.expire[SYNC] = [j; 2],
            "async_expire" => self.expire[ASYNC] = [j; 2],
            "fifo_batch" => self.fifo_batch = value,
            "writes_starved" => self.writes_starved = value,
            other => panic!("sio has no {other}"),
        }
    }
}
