//! Null models for rounds: policies that ignore the rules of the scheduler.

use seekwell_core::{Nodes, RqId, Sector, Tree};
use seekwell_sched::{Cx, Emit, Insert, Scheduler};

/// C-LOOK: one-way sweeps over all waiting requests. The other null model is noop, a FIFO.
#[derive(Debug, Default)]
pub struct CLook {
    sorted: Tree,
    nodes: Nodes<Sector>,
    position: Sector,
}

impl Scheduler for CLook {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, _: Insert) {
        self.nodes.insert(&mut self.sorted, rq.0, cx.rqs[rq].sector);
    }
    fn dispatch(&mut self, cx: &mut Cx, _: u16, _: bool) -> u32 {
        let ahead = self.nodes.lower_bound(&self.sorted, self.position);
        let Some(i) = ahead.or(self.sorted.first()) else {
            return 0;
        };
        self.nodes.remove(&mut self.sorted, i);
        self.position = cx.rqs[RqId(i)].sector;
        cx.emit(RqId(i), Emit::Tail);
        1
    }
    fn has_work(&self, _: &Cx, _: u16) -> bool {
        !self.sorted.is_empty()
    }
    fn joined(&mut self, _: &mut Cx, _: RqId, gone: RqId) {
        self.nodes.remove(&mut self.sorted, gone.0);
    }
}
