//! Checks the invariants of 3.4 and later, and describes the state in words.

use super::groups::{ROOT, TreeId};
use super::{Cfq, IDLE_TIMER, Version};
use crate::cx::Cx;
use seekwell_core::RqId;

impl Cfq {
    fn living(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.queues.len() as u32).filter(|q| self.queue(*q).refs > 0)
    }

    pub(super) fn check_invariants(&self, cx: &Cx) {
        assert_eq!(self.rq_queued, cx.nr_sorted, "cfq: rq_queued and nr_sorted");
        let (mut queued, mut dispatched, mut busy, mut busy_sync) = (0, [0; 2], 0, 0);
        for i in self.living() {
            self.check_queue(cx, i);
            let x = self.queue(i);
            queued += x.held.len();
            dispatched[x.sync as usize] += x.dispatched;
            busy += u32::from(x.busy);
            busy_sync += u32::from(x.busy && x.sync);
        }
        assert_eq!(
            queued, self.rq_queued,
            "cfq: rq_queued is the sum of queued"
        );
        assert_eq!(
            dispatched, self.in_flight,
            "cfq: in_flight is the sum of dispatched"
        );
        assert_eq!(
            (busy, busy_sync),
            (self.busy, self.busy_sync),
            "cfq: busy queues"
        );
        for i in 0..self.groups.len() as u32 {
            self.check_group(i);
        }
        self.check_shares();
        if cx.armed(IDLE_TIMER) {
            let a = self.active.expect("cfq: idling without an active queue");
            assert!(
                self.queue(a).sync && self.queue(a).wait_request,
                "cfq: idle timer without wait"
            );
        }
    }

    fn check_queue(&self, cx: &Cx, i: u32) {
        let x = self.queue(i);
        self.tables.check(&x.held, i);
        let is_active = self.active == Some(i);
        assert_eq!(x.busy, x.tree.is_some(), "cfq: busy iff on a service tree");
        assert_eq!(
            x.busy,
            self.service.linked(i),
            "cfq: busy iff on a service tree"
        );
        assert!(
            x.busy || x.held.is_empty(),
            "cfq: a queue with requests is busy"
        );
        assert!(
            !x.busy || !x.held.is_empty() || is_active,
            "cfq: an empty busy queue is active"
        );
        assert_eq!(
            x.position.is_some(),
            self.position.linked(i),
            "cfq: position tree"
        );
        assert!(
            x.position.is_none() || !x.held.is_empty(),
            "cfq: an empty queue has a position"
        );
        assert!(x.refs >= x.allocated, "cfq: more requests than references");
        let shared = self.async_queues.iter().filter(|s| **s == Some(i)).count() as u32;
        let pointing = self.ctx.pointing_at(i, cx.iocs.capacity()) as u32;
        let merging: u32 = self
            .living()
            .filter(|p| self.queue(*p).merge_to == Some(i))
            .map(|p| self.queue(p).process_refs())
            .sum();
        assert_eq!(
            x.process_refs(),
            pointing + shared + merging,
            "cfq: references of queue {i}: contexts, slots, queues that merge into it",
        );
        let (mut at, mut steps) = (x.merge_to, 0);
        while let Some(next) = at.filter(|n| self.queue(*n).refs > 0) {
            assert!(
                next != i && steps <= self.queues.len(),
                "cfq: merge chain in a circle"
            );
            (at, steps) = (self.queue(next).merge_to, steps + 1);
        }
    }

    fn check_group(&self, i: u32) {
        let g = self.group(i);
        let on_trees: usize = g.trees.iter().map(|t| t.tree.len()).sum();
        assert_eq!(g.busy as usize, on_trees, "cfq: busy queues of group {i}");
        assert_eq!(
            g.busy > 0,
            self.group_nodes.linked(i),
            "cfq: group {i} on the tree iff busy"
        );
        for t in 0..TreeId::COUNT {
            g.trees[t].think.check();
            for q in self.service.iter(&g.trees[t].tree) {
                assert_eq!(
                    self.queue(q).group,
                    i,
                    "cfq: queue {q} on another group's tree"
                );
            }
        }
        g.think.check();
    }

    fn check_shares(&self) {
        let on_tree = |i: &u32| self.group_nodes.linked(*i);
        if self.version == Version::V3_4 {
            let sum: u64 = (0..self.groups.len() as u32)
                .filter(on_tree)
                .map(|i| self.group(i).weight)
                .sum();
            assert_eq!(self.total_weight, sum, "cfq: sum of group weights");
        } else if self.group_tree.is_empty() {
            for g in &self.groups {
                assert_eq!(
                    (g.active, g.children_weight),
                    (0, 0),
                    "cfq: shares of idle groups"
                );
            }
        }
        assert!(!self.group(ROOT).gone);
    }

    pub(super) fn describe(&self, cx: &Cx, out: &mut String) {
        let name = |i: u32| cx.rqs.first_bio(RqId(i)).id.0.to_string();
        for i in self.living() {
            let x = self.queue(i);
            if x.held.is_empty() && x.dispatched == 0 && self.active != Some(i) {
                continue;
            }
            let ids: Vec<_> = self.tables.nodes.iter(&x.held.sorted).map(name).collect();
            let mark = if self.active == Some(i) { "*" } else { "" };
            *out += &format!(
                "{mark}queue {i} {:?}{} {:?} group {} [{}] in flight {}; ",
                x.class,
                x.level,
                x.kind(),
                x.group,
                ids.join(" "),
                x.dispatched
            );
        }
        let s = self.serving;
        *out += &format!(
            "serving group {} {:?} {:?} until jiffy {}; {} in the driver; hw_tag {}",
            s.group, s.rank, s.kind, s.expires, self.in_driver, self.hw_tag
        );
    }
}
