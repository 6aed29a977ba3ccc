//! Model of anticipatory, both generations.

use super::{Ctx, List, Model, Rq, World};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Off,
    WaitReq,
    WaitNext,
    Finished,
}

/// The history of a process.
#[derive(Clone, Default)]
struct Past {
    started: bool,
    running: bool,
    queued: u64,
    listed: u64,
    last_end: u64,
    tt: [u64; 3],   // total, samples, mean
    seek: [u64; 3], // the same
    last_pos: u64,
}

pub struct Anticipatory {
    old: bool,
    hz: u64,
    /// By class: (start, request), ascending; starts are unique.
    sorted: [Vec<(u64, Rq)>; 2],
    /// By class: (request, deadline jiffy), in order of arrival.
    fifo: [Vec<(Rq, u64)>; 2],
    next: [Option<Rq>; 2],
    head: [u64; 2],
    last_look: [u64; 2],
    expire: [u64; 2],
    batch_expire: [u64; 2],
    antic_expire: u64,
    batch: usize,
    batch_end: u64,
    wcount: i64,
    wleft: i64,
    w_idled: bool,
    changing: bool,
    new_batch: bool,
    inflight: u64,
    state: State,
    antic_start: u64,
    antic_ctx: Option<Ctx>,
    ctx_done: bool,
    exit_prob: u64,
    no_coop: u64,
    new_tt: [u64; 2],   // total, mean
    new_seek: [u64; 2], // the same
    past: Vec<Past>,
    /// The context of each request.
    owner: Vec<Ctx>,
}

const ASYNC: usize = 0;
const SYNC: usize = 1;

impl Anticipatory {
    pub fn new(old: bool, hz: u64) -> Self {
        Anticipatory {
            old,
            hz,
            sorted: Default::default(),
            fifo: Default::default(),
            next: [None; 2],
            head: [0; 2],
            last_look: [0; 2],
            expire: [hz / 4, hz / 8],
            batch_expire: [hz / 8, hz / 2],
            antic_expire: (hz / 150).max(1),
            batch: ASYNC,
            batch_end: 1000 * hz + hz / 2,
            wcount: (hz as i64 / 8 / 10).max(2),
            wleft: 0,
            w_idled: false,
            changing: false,
            new_batch: false,
            inflight: 0,
            state: State::Off,
            antic_start: 0,
            antic_ctx: None,
            ctx_done: false,
            exit_prob: 0,
            no_coop: 0,
            new_tt: [0; 2],
            new_seek: [0; 2],
            past: Vec::new(),
            owner: Vec::new(),
        }
    }
    fn class(w: &World, rq: Rq) -> usize {
        w.rqs[rq].sync.into()
    }
    fn index(&self, c: usize, rq: Rq) -> Option<usize> {
        self.sorted[c].iter().position(|e| e.1 == rq)
    }
    fn waits(&self) -> bool {
        self.state == State::WaitReq || self.state == State::WaitNext
    }

    fn history(&mut self, w: &World, x: Ctx, rq: Rq) {
        let (now, start) = (w.jiffy(), w.rqs[rq].sector);
        let p = &mut self.past[x];
        if p.started || p.running {
            let mut tt = 0;
            if p.running && p.queued + p.listed == 0 {
                tt = (now - p.last_end).min(self.hz / 50 - 1);
            }
            if p.tt[1] == 0 {
                self.new_tt[0] = (7 * self.new_tt[0] + 256 * tt) / 8;
                self.new_tt[1] = self.new_tt[0] / 256;
                self.exit_prob = 7 * self.exit_prob / 8;
            }
            p.tt[1] = (7 * p.tt[1] + 256) / 8;
            p.tt[0] = (7 * p.tt[0] + 256 * tt) / 8;
            p.tt[2] = (p.tt[0] + 128) / p.tt[1];

            let mut d = start.abs_diff(p.last_pos);
            if p.seek[1] == 0 {
                self.new_seek[0] = (7 * self.new_seek[0] + 256 * d) / 8;
                self.new_seek[1] = self.new_seek[0] / 256;
            }
            d = d.min(4 * p.seek[2] + if p.seek[1] <= 60 { 2097152 } else { 131072 });
            p.seek[1] = (7 * p.seek[1] + 256) / 8;
            p.seek[0] = (7 * p.seek[0] + 256 * d) / 8;
            p.seek[2] = (p.seek[0] + p.seek[1] / 2) / p.seek[1];
        }
        p.last_pos = w.rqs[rq].end();
        p.started = true;
    }

    fn choose(&self, w: &World, c: usize, a: Option<Rq>, b: Option<Rq>) -> Option<Rq> {
        let (Some(x), Some(y)) = (a, b) else {
            return a.or(b);
        };
        let last = self.head[c];
        let (sx, sy) = (w.rqs[x].sector, w.rqs[y].sector);
        let behind = |s: u64| s < last && s + 1048576 < last;
        let cost = |s: u64| if s >= last { s - last } else { 2 * (last - s) };
        let x_wins = if behind(sx) && behind(sy) {
            sx <= sy
        } else if behind(sx) || behind(sy) {
            behind(sy)
        } else if cost(sx) != cost(sy) {
            cost(sx) < cost(sy)
        } else {
            sx >= sy
        };
        Some(if x_wins { x } else { y })
    }
    fn find_next(&self, w: &World, c: usize, rq: Rq) -> Option<Rq> {
        let tree = &self.sorted[c];
        let i = self.index(c, rq).unwrap();
        let after = tree.get(i + 1).or(tree.first()).map(|e| e.1);
        let before = i.checked_sub(1).map(|i| tree[i].1);
        self.choose(w, c, after.filter(|a| *a != rq), before)
    }
    fn remove(&mut self, c: usize, rq: Rq) {
        self.sorted[c].retain(|e| e.1 != rq);
        self.fifo[c].retain(|e| e.0 != rq);
    }
    fn sort(&mut self, w: &mut World, rq: Rq) {
        let (c, start) = (Self::class(w, rq), w.rqs[rq].sector);
        while let Some(alias) = self.sorted[c].iter().find(|e| e.0 == start).map(|e| e.1) {
            self.serve(w, alias);
        }
        self.sorted[c].push((start, rq));
        self.sorted[c].sort();
    }
    /// Rule D8.
    fn serve(&mut self, w: &mut World, rq: Rq) {
        let c = Self::class(w, rq);
        self.stop(w);
        self.state = State::Off;
        self.head[c] = w.rqs[rq].end();
        self.antic_ctx = (c == SYNC).then_some(self.owner[rq]);
        if c == ASYNC && self.wleft != 0 {
            self.wleft -= 1;
        }
        self.ctx_done = false;
        self.next[c] = self.find_next(w, c, rq);
        self.remove(c, rq);
        let p = &mut self.past[self.owner[rq]];
        p.queued -= 1;
        p.listed += 1;
        self.inflight += 1;
        w.emit(rq, List::Sorted);
    }

    fn wait_next(&mut self, w: &mut World) {
        self.state = State::WaitNext;
        // The timer fires in the first microsecond of that jiffy, but not before the next jiffy.
        let j = (self.antic_start + self.antic_expire).max(w.jiffy() + 1);
        w.timer_us = Some(((j - 1000 * self.hz) * 1_000_000).div_ceil(self.hz));
    }
    fn stop(&mut self, w: &mut World) {
        if self.waits() {
            w.timer_us = None;
            self.state = State::Finished;
            w.kick = true;
        }
    }
    fn miss(&mut self, x: Ctx) {
        if self.past[x].tt[1] == 0 {
            self.exit_prob = (7 * self.exit_prob + 256) / 8;
        }
    }

    fn close(&self, w: &World, rq: Rq, x: Ctx) -> bool {
        let last = self.head[self.batch];
        let start = w.rqs[rq].sector;
        let mut delay = 0;
        if self.state != State::Off && self.ctx_done {
            delay = w.jiffy() - self.antic_start;
        }
        let mut limit = 20 * self.hz / 1000;
        if self.old {
            delay = delay * 1000 / self.hz;
            limit = 20;
        }
        let window = if delay == 0 {
            8192
        } else if delay <= limit && delay <= self.antic_expire {
            8192 << delay
        } else {
            return true;
        };
        if last <= start + window / 2 && start <= last + window {
            return true;
        }
        let p = &self.past[x];
        let far = if p.seek[1] == 0 {
            self.new_seek[1]
        } else {
            p.seek[2]
        };
        start.abs_diff(last) < far
    }
    fn can_break(&mut self, w: &World, rq: Option<Rq>, x: Ctx) -> bool {
        if rq.is_some_and(|r| self.owner[r] == x) {
            return true;
        }
        if self.ctx_done && w.jiffy() - self.antic_start >= self.antic_expire {
            return true;
        }
        if self.past[x].queued > 0 || self.past[x].listed > 0 {
            return true;
        }
        let dead = !w.ctxs[x].alive;
        if let Some(r) = rq
            && w.rqs[r].sync
            && self.close(w, r, x)
        {
            if dead {
                self.miss(x);
                self.no_coop = 7 * self.no_coop / 8;
            }
            self.history(w, x, r);
            return true;
        }
        if dead {
            self.miss(x);
            if self.no_coop > 128 {
                return true;
            }
        }
        if self.past[x].tt[1] == 0 {
            self.new_tt[1] > self.antic_expire || self.exit_prob * self.no_coop > 32768
        } else {
            self.past[x].tt[2] > self.antic_expire
        }
    }
    fn expired(&mut self, w: &World, c: usize) -> bool {
        let now = w.jiffy();
        if now.abs_diff(self.last_look[c]) < self.expire[c] {
            return false;
        }
        self.last_look[c] = now;
        self.fifo[c].first().is_some_and(|e| now > e.1)
    }
    /// Follows rules D7b and D8: dispatches `rq`, unless requests of the old batch are in flight.
    fn go(&mut self, w: &mut World, rq: Rq) -> bool {
        if self.changing {
            if self.inflight > 0 {
                return false;
            }
            self.changing = false;
            if self.batch == ASYNC {
                self.batch_end = w.jiffy() + self.batch_expire[ASYNC];
            } else {
                self.new_batch = true;
            }
        }
        self.serve(w, rq);
        true
    }
}

impl Model for Anticipatory {
    fn add(&mut self, w: &mut World, rq: Rq) {
        let (c, x) = (Self::class(w, rq), w.rqs[rq].ctx);
        self.past.resize(w.ctxs.len(), Past::default());
        assert_eq!(self.owner.len(), rq);
        self.owner.push(x);
        if c == SYNC {
            self.history(w, x, rq);
        }
        self.past[x].queued += 1;
        self.sort(w, rq);
        self.fifo[c].push((rq, w.jiffy() + self.expire[c]));
        self.next[c] = self.choose(w, c, Some(rq), self.next[c]);
        if self.waits()
            && let Some(x) = self.antic_ctx
            && self.can_break(w, Some(rq), x)
        {
            self.stop(w);
        }
    }

    fn dispatch(&mut self, w: &mut World, force: bool) -> bool {
        if force {
            (self.batch, self.changing, self.new_batch) = (SYNC, false, false);
            let before = self.inflight;
            for c in [SYNC, ASYNC] {
                while let Some(rq) = self.next[c].or(self.sorted[c].first().map(|e| e.1)) {
                    self.serve(w, rq);
                }
                self.last_look[c] = w.jiffy();
            }
            return self.inflight > before;
        }
        let now = w.jiffy();
        let (s, wr) = (!self.fifo[SYNC].is_empty(), !self.fifo[ASYNC].is_empty());
        if self.batch == ASYNC && !s && (self.wleft == 0 || !wr) {
            self.w_idled = true;
        }
        if !s && !wr || self.waits() || self.changing {
            return false;
        }
        let over = now > self.batch_end || self.batch == ASYNC && self.wleft == 0;
        let batch_expired = over && !self.changing && !self.new_batch;
        let mut rq = None;
        if !(s && wr && batch_expired) {
            rq = self.next[self.batch];
            if self.batch == SYNC && self.antic_expire != 0 {
                if self.expired(w, SYNC) {
                    let head = self.fifo[SYNC][0].0;
                    return self.go(w, head);
                }
                let wanted = self.antic_ctx.filter(|_| self.state != State::Finished);
                if let Some(x) = wanted
                    && !self.can_break(w, rq, x)
                {
                    if self.ctx_done {
                        self.wait_next(w);
                    } else {
                        self.state = State::WaitReq;
                    }
                    return false;
                }
            }
            if rq.is_some() && s && !wr {
                self.batch_end = now + self.batch_expire[SYNC];
            }
        }
        let mut rq = match rq {
            Some(rq) => rq,
            None if s && !(wr && self.batch == SYNC) => {
                if self.batch == ASYNC {
                    self.changing = true;
                }
                self.batch = SYNC;
                self.last_look[SYNC] = now;
                self.fifo[SYNC][0].0
            }
            None => {
                if self.batch == SYNC {
                    self.changing = true;
                    self.new_batch = false;
                }
                self.batch = ASYNC;
                self.wleft = self.wcount;
                self.w_idled = false;
                if self.old {
                    self.next[ASYNC].unwrap_or(self.fifo[ASYNC][0].0)
                } else {
                    self.last_look[ASYNC] = now;
                    self.fifo[ASYNC][0].0
                }
            }
        };
        if self.expired(w, self.batch) {
            rq = self.fifo[self.batch][0].0;
        }
        self.go(w, rq)
    }

    fn fronts(&self, w: &World, _: Ctx, write: bool, end: u64) -> Vec<Rq> {
        let tree = &self.sorted[usize::from(write)];
        let hit = tree
            .iter()
            .filter(|e| e.0 == end && w.rqs[e.1].write == write);
        hit.map(|e| e.1).collect()
    }
    fn grew_in_front(&mut self, w: &mut World, rq: Rq) {
        let c = Self::class(w, rq);
        self.sorted[c].retain(|e| e.1 != rq);
        self.sort(w, rq);
    }
    fn joined(&mut self, w: &mut World, kept: Rq, gone: Rq) {
        let c = Self::class(w, gone);
        let k = self.fifo[c].iter().position(|e| e.0 == kept).unwrap();
        let g = self.fifo[c].iter().position(|e| e.0 == gone).unwrap();
        let deadline = self.fifo[c][g].1;
        let swap = deadline < self.fifo[c][k].1;
        if swap && self.old {
            self.owner.swap(kept, gone);
        }
        let x = self.owner[gone];
        self.past[x].queued -= 1;
        if self.next[c] == Some(gone) {
            self.next[c] = self.find_next(w, c, gone);
        }
        if swap {
            self.fifo[c][g] = (kept, deadline);
            self.fifo[c].remove(k);
        } else {
            self.fifo[c].remove(g);
        }
        self.sorted[c].retain(|e| e.1 != gone);
        if c == SYNC {
            self.past[x].running = true;
            self.past[x].last_end = w.jiffy();
        }
    }
    fn former(&self, w: &World, rq: Rq) -> Option<Rq> {
        let c = Self::class(w, rq);
        Some(self.sorted[c][self.index(c, rq)?.checked_sub(1)?].1)
    }
    fn latter(&self, w: &World, rq: Rq) -> Option<Rq> {
        let c = Self::class(w, rq);
        Some(self.sorted[c].get(self.index(c, rq)? + 1)?.1)
    }
    fn activated(&mut self, _: &mut World, rq: Rq) {
        self.past[self.owner[rq]].listed -= 1;
    }
    fn completed(&mut self, w: &mut World, rq: Rq) {
        let (now, c, x) = (w.jiffy(), Self::class(w, rq), self.owner[rq]);
        if self.changing && self.inflight == 1 {
            w.kick = true;
            self.changing = false;
            if self.batch == SYNC {
                self.new_batch = true;
            }
        }
        self.inflight -= 1;
        if self.new_batch && c == self.batch {
            let b = self.batch_expire[ASYNC];
            let t = (now + b).saturating_sub(self.batch_end);
            if t > b && !self.w_idled {
                self.wcount = if t > 3 * b {
                    self.wcount / 2
                } else {
                    self.wcount - 1
                };
            } else if t < b && self.wleft == 0 {
                self.wcount = if b > 3 * t {
                    self.wcount * 2
                } else {
                    self.wcount + 1
                };
            }
            self.wcount = self.wcount.max(1);
            self.batch_end = now + self.batch_expire[SYNC];
            self.new_batch = false;
        }
        if self.antic_ctx == Some(x) {
            self.antic_start = now;
            self.ctx_done = true;
            if self.state == State::WaitReq {
                self.wait_next(w);
            }
        }
        if c == SYNC {
            self.past[x].running = true;
            self.past[x].last_end = now;
        }
    }
    fn timer(&mut self, w: &mut World) {
        assert!(self.waits(), "a timer without a wait");
        self.state = State::Finished;
        w.kick = true;
        let x = self.antic_ctx.unwrap();
        self.miss(x);
        if !w.ctxs[x].alive {
            self.no_coop = (7 * self.no_coop + 256) / 8;
        }
    }
    fn store(&mut self, w: &World, name: &str, value: i64) {
        let j = w.ms(value.max(0) as u64);
        match name {
            "read_expire" => self.expire[SYNC] = j,
            "write_expire" => self.expire[ASYNC] = j,
            "read_batch_expire" => self.batch_expire[SYNC] = j,
            "write_batch_expire" => self.batch_expire[ASYNC] = j,
            "antic_expire" => self.antic_expire = j,
            other => panic!("anticipatory has no {other}"),
        }
    }
}
