//! Model of ROW: seven FIFOs in three classes; reads come first, and it waits for more reads.

use super::{List, Model, Rq, World};
use seekwell_core::Class;

#[derive(Clone, Default)]
struct Queue {
    fifo: Vec<Rq>,
    served: i64,
    unserved: bool,
    /// In us; only for reads of RT and BE.
    last_insert: Option<u64>,
    want_idle: bool,
}

pub struct Row {
    /// The version of mid-2013.
    mid: bool,
    q: Vec<Queue>,
    quantum: [i64; 7],
    idle_ms: u64,
    freq_ms: u64,
    reg_limit: u64,
    low_limit: u64,
    reg_starv: u64,
    low_starv: u64,
    urgent: Option<Rq>,
    urgent_in_flight: bool,
    /// Requests marked urgent when they were dispatched.
    marked: Vec<Rq>,
    last_class: Option<usize>,
    idles_for: usize,
    /// The queue of each request.
    place: Vec<usize>,
}

const HR: usize = 0;
const RR: usize = 2;
const RT: usize = 0;
const BE: usize = 1;
const IDLE: usize = 2;

fn members(class: usize) -> std::ops::Range<usize> {
    [0..2, 2..5, 5..7][class].clone()
}
fn class_of(i: usize) -> usize {
    (0..3).find(|c| members(*c).contains(&i)).unwrap()
}

impl Row {
    pub fn new(mid: bool) -> Self {
        Row {
            mid,
            q: vec![Queue::default(); 7],
            quantum: if mid {
                [10, 1, 100, 1, 1, 1, 1]
            } else {
                [100, 5, 75, 4, 4, 3, 2]
            },
            idle_ms: if mid { 5 } else { 10 },
            freq_ms: if mid { 20 } else { 25 },
            reg_limit: 5000,
            low_limit: 10000,
            reg_starv: 0,
            low_starv: 0,
            urgent: None,
            urgent_in_flight: false,
            marked: Vec::new(),
            last_class: None,
            idles_for: 0,
            place: Vec::new(),
        }
    }
    /// The late logic with the old numbers.
    pub fn hisi() -> Self {
        Row {
            quantum: [10, 1, 100, 1, 1, 1, 1],
            idle_ms: 5,
            freq_ms: 5,
            ..Row::new(false)
        }
    }
    fn queued(&self, class: usize) -> bool {
        members(class).any(|i| !self.q[i].fifo.is_empty())
    }
    fn idle(&mut self, w: &mut World, i: usize) {
        w.timer_us = Some(w.now_us + 1000 * self.idle_ms);
        self.idles_for = i;
    }

    /// Rule D2.
    fn class(&mut self, w: &mut World, force: bool) -> Option<usize> {
        let any = (0..3).any(|c| self.queued(c));
        let low_due = !self.mid && self.queued(IDLE) && self.low_starv >= self.low_limit;
        if any && self.queued(RT) {
            w.timer_us = None;
            if !self.mid && self.queued(BE) && self.reg_starv >= self.reg_limit {
                return Some(BE);
            }
            return Some(if low_due { IDLE } else { RT });
        }
        if any && w.timer_us.is_some() {
            return None;
        }
        if !force && self.q[HR].want_idle {
            self.idle(w, HR);
            return None;
        }
        for i in members(BE) {
            if self.q[i].fifo.is_empty() {
                if i == RR && self.q[i].want_idle && !force {
                    self.idle(w, RR);
                    return None;
                }
            } else {
                return Some(if low_due { IDLE } else { BE });
            }
        }
        any.then_some(IDLE)
    }

    /// Rule D4.
    fn queue(&mut self, class: usize) -> usize {
        let ready = |s: &Self| {
            let ok = |i: &usize| !s.q[*i].fifo.is_empty() && s.q[*i].served < s.quantum[*i];
            members(class).find(ok)
        };
        if let Some(i) = ready(self) {
            return i;
        }
        for i in members(class) {
            self.q[i].unserved |= self.q[i].served < self.quantum[i];
            self.q[i].served = 0;
        }
        ready(self).expect("the class has something")
    }

    /// Rule X.
    fn serve(&mut self, w: &mut World, i: usize, rq: Rq) {
        self.q[i].fifo.retain(|r| *r != rq);
        if self.urgent == Some(rq) {
            self.urgent = None;
            self.urgent_in_flight = true;
            self.marked.push(rq);
        }
        self.q[i].served += 1;
        self.q[i].unserved = false;
        let class = class_of(i);
        self.last_class = Some(class);
        if class == RT && self.queued(BE) {
            self.reg_starv += 1;
        }
        if class == BE {
            self.reg_starv = 0;
        }
        if class == IDLE {
            self.low_starv = 0;
        } else if self.queued(IDLE) {
            self.low_starv += 1;
        }
        w.emit(rq, List::Sorted);
    }
}

impl Model for Row {
    fn add(&mut self, w: &mut World, rq: Rq) {
        let r = &w.rqs[rq];
        let class = w.ctxs[r.ctx].prio.class;
        let i = match (class, r.write, r.sync) {
            (_, true, false) => 4,
            (Class::Rt, false, _) => 0,
            (Class::Rt, true, _) => 1,
            (Class::None | Class::Be, false, _) => 2,
            (Class::None | Class::Be, true, _) => 3,
            (Class::Idle, false, _) => 5,
            (Class::Idle, true, _) => 6,
        };
        assert_eq!(self.place.len(), rq, "every request comes once");
        self.place.push(i);
        let empty_before = self.q[i].fifo.is_empty();
        self.q[i].fifo.push(rq);
        if i != HR && i != RR {
            return;
        }
        if w.timer_us.is_some() && self.idles_for == i {
            w.timer_us = None;
        }
        let since_ms = self.q[i].last_insert.map(|t| (w.now_us - t) / 1000);
        self.q[i].want_idle = since_ms.is_some_and(|d| d < self.freq_ms);
        self.q[i].last_insert = Some(w.now_us);
        if self.urgent.is_none() && !self.urgent_in_flight {
            let front = i == HR && self.last_class != Some(RT) && (self.mid || empty_before);
            if front || self.q[i].unserved {
                self.urgent = Some(rq);
            }
        }
    }

    fn dispatch(&mut self, w: &mut World, force: bool) -> bool {
        if force {
            w.timer_us = None;
        }
        if let Some(rq) = self.urgent {
            self.serve(w, self.place[rq], rq);
            return true;
        }
        let Some(class) = self.class(w, force) else {
            self.last_class = None;
            return false;
        };
        let i = self.queue(class);
        let rq = self.q[i].fifo[0];
        self.serve(w, i, rq);
        true
    }

    fn joined(&mut self, _: &mut World, _: Rq, _: Rq) {
        panic!("row names no neighbours");
    }
    fn completed(&mut self, _: &mut World, rq: Rq) {
        if self.marked.contains(&rq) {
            self.marked.retain(|r| *r != rq);
            self.urgent_in_flight = false;
        }
    }
    fn timer(&mut self, w: &mut World) {
        self.q[self.idles_for].want_idle = false;
        if self.q.iter().any(|q| !q.fifo.is_empty()) {
            w.kick = true;
        }
    }
    fn store(&mut self, _: &World, name: &str, value: i64) {
        let value = value.max(1);
        let quanta = [
            "hp_read_quantum",
            "hp_swrite_quantum",
            "rp_read_quantum",
            "rp_swrite_quantum",
            "rp_write_quantum",
            "lp_read_quantum",
            "lp_swrite_quantum",
        ];
        if let Some(i) = quanta.iter().position(|q| *q == name) {
            self.quantum[i] = value;
            return;
        }
        match name {
            "rd_idle_data" => self.idle_ms = value as u64,
            "rd_idle_data_freq" => self.freq_ms = value as u64,
            "reg_starv_limit" => self.reg_limit = value as u64,
            "low_starv_limit" => self.low_limit = value as u64,
            other => panic!("row has no {other}"),
        }
    }
}
