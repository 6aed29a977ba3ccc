//! An ideal one-way elevator (C-LOOK). Its gain over noop is the upper bound for the gain from
//! sorting, because it has no expiry times, no batches and no preference for reads.

use seekwell_core::RqId;
use seekwell_sched::{Cx, Emit, Insert, Scheduler};
use std::collections::BTreeSet;

/// Dispatches requests by ascending sector, then starts again at the lowest sector.
#[derive(Debug, Default)]
pub struct Clook {
    sorted: BTreeSet<(u64, u32)>,
    cursor: u64,
}

impl Scheduler for Clook {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, _: Insert) {
        self.sorted.insert((cx.rqs[rq].sector.0, rq.0));
    }
    fn dispatch(&mut self, cx: &mut Cx, _: u16, _: bool) -> u32 {
        let ahead = self.sorted.range((self.cursor, 0)..).next();
        let Some(next) = ahead.or_else(|| self.sorted.first()).copied() else {
            return 0;
        };
        self.sorted.remove(&next);
        self.cursor = next.0 + 1;
        cx.emit(RqId(next.1), Emit::Tail);
        1
    }
    fn has_work(&self, _: &Cx, _: u16) -> bool {
        !self.sorted.is_empty()
    }
    fn joined(&mut self, _: &mut Cx, _: RqId, gone: RqId) {
        self.sorted.retain(|x| x.1 != gone.0);
    }
}
