//! Checks the invariants, and describes the contents in words.

use super::{Adios, page::Page};
use crate::cx::Cx;
use seekwell_core::{List, Op, RqId, Tree};

impl Adios {
    /// Checks that every request is in one place, and that the counters agree with the contents.
    pub(super) fn check_places(&self, cx: &Cx) {
        let trees: usize = self.tree.iter().map(Tree::len).sum();
        let queues: usize = self.priority.iter().map(List::len).sum();
        let pages: usize = self.pages.iter().map(Page::len).sum();
        let held = trees + queues + pages + self.barriers.len();
        assert_eq!(
            held, cx.nr_sorted as usize,
            "adios: all places and nr_sorted"
        );
        // The sum of predictions contains exactly the requests that were handed out.
        let counted = cx.rqs.iter().filter_map(|(i, _)| self.rq.try_get(i.idx()));
        let (n, sum) = counted
            .filter(|r| r.counted)
            .fold((0, 0), |(n, s), r| (n + 1, s + r.pl));
        assert_eq!((n, sum), (self.in_flight, self.tpl_ns), "P1");
        assert_eq!(self.barred, !self.barriers.is_empty(), "barrier flag");
        if let Some(b) = self.barriers.first() {
            assert!(self.is_barrier(cx.rqs[RqId(b)].op), "a barrier comes first");
        }
        for (side, t) in self.tree.iter().enumerate() {
            for i in self.nodes.iter(t) {
                let rq = RqId(i);
                assert_eq!(usize::from(cx.rqs[rq].op != Op::Read), side, "in its tree");
                let shift = self.version.quantum_shift;
                assert_eq!(self.nodes.key(i), self.rq[rq].deadline >> shift << shift);
                assert!(!self.rq[rq].counted, "counted while in a tree");
            }
        }
    }

    /// Appends the contents of all places to `out`, as ids of bios.
    pub(super) fn tell(&self, cx: &Cx, out: &mut String) {
        let name = |i: u32| cx.rqs.first_bio(RqId(i)).id.0.to_string();
        let list = |l: &List| self.links.iter(l).map(name).collect::<Vec<_>>().join(" ");
        let tree = |t: &Tree| self.nodes.iter(t).map(name).collect::<Vec<_>>().join(" ");
        *out += &format!(
            "reads [{}], others [{}]; ",
            tree(&self.tree[0]),
            tree(&self.tree[1])
        );
        let page = &self.pages[self.current];
        *out += &format!("page [{}]", page.fifo.each_ref().map(list).join("|"));
        *out += &format!(
            ", next [{}]; ",
            self.pages[1 - self.current]
                .fifo
                .each_ref()
                .map(list)
                .join("|")
        );
        *out += &format!(
            "before all [{}] [{}]; barriers [{}]; handed out {} of {} ns; bias {}; {}",
            list(&self.priority[1]),
            list(&self.priority[0]),
            list(&self.barriers),
            self.tpl_ns,
            self.window_ns,
            self.bias,
            if self.stable { "stable" } else { "learning" }
        );
    }
}
