//! Model of ZEN: two FIFOs.

use super::{List, Model, Rq, World};

pub struct Zen {
    /// The class is the direction, not the sync flag.
    pub by_direction: bool,
    /// A request expires at its deadline, instead of after it.
    pub at_or_after: bool,
    /// If both have expired, the one with the older deadline is next, instead of neither.
    repaired: bool,
    /// [0] async, [1] sync: (request, deadline jiffy).
    fifo: [Vec<(Rq, u64)>; 2],
    expire: [u64; 2],
    fifo_batch: i64,
    batching: i64,
}

impl Zen {
    pub fn new(version: &str, hz: u64) -> Self {
        let z = Zen {
            by_direction: false,
            at_or_after: false,
            repaired: false,
            fifo: Default::default(),
            expire: [5 * hz, hz / 2],
            fifo_batch: 16,
            batching: 0,
        };
        match version {
            "" => z,
            "v1" => Zen {
                by_direction: true,
                expire: [2 * hz, hz / 4],
                fifo_batch: 1,
                ..z
            },
            "jf" => Zen {
                at_or_after: true,
                fifo_batch: 1,
                ..z
            },
            "ge" => Zen {
                at_or_after: true,
                ..z
            },
            other => panic!("no zen-{other}"),
        }
    }
    fn expired(&self, w: &World, c: usize) -> Option<u64> {
        let (now, deadline) = (w.jiffy(), self.fifo[c].first()?.1);
        (now > deadline || self.at_or_after && now == deadline).then_some(deadline)
    }
}

impl Model for Zen {
    fn add(&mut self, w: &mut World, rq: Rq) {
        let r = &w.rqs[rq];
        let c = usize::from(if self.by_direction { r.write } else { r.sync });
        // 0 means a deadline that has passed on arrival (the original loses the request).
        let deadline = match self.expire[c] {
            0 if self.at_or_after => w.jiffy(),
            0 => w.jiffy() - 1,
            e => w.jiffy() + e,
        };
        self.fifo[c].push((rq, deadline));
    }
    fn dispatch(&mut self, w: &mut World, _: bool) -> bool {
        let mut from = None;
        if self.batching > self.fifo_batch {
            self.batching = 0;
            from = match (self.expired(w, 1), self.expired(w, 0)) {
                (Some(s), Some(a)) if a > s => Some(1),
                (Some(_), Some(_)) => self.repaired.then_some(0),
                (Some(_), None) => Some(1),
                (None, Some(_)) => Some(0),
                (None, None) => None,
            };
        }
        let from = from.or([1, 0].into_iter().find(|c| !self.fifo[*c].is_empty()));
        let Some(c) = from else {
            return false;
        };
        let (rq, _) = self.fifo[c].remove(0);
        self.batching += 1;
        w.emit(rq, List::Tail);
        true
    }
    fn joined(&mut self, _: &mut World, _: Rq, _: Rq) {
        panic!("zen names no neighbours");
    }
    fn store(&mut self, w: &World, name: &str, value: i64) {
        match name {
            "sync_expire" => self.expire[1] = w.ms(value.max(0) as u64),
            "async_expire" => self.expire[0] = w.ms(value.max(0) as u64),
            "fix_both_expired" => self.repaired = value > 0,
            "fifo_batch" => self.fifo_batch = value,
            other => panic!("zen has no {other}"),
        }
    }
}
