//! Checks the invariants, and describes the state in words.

use super::{ASYNC, Place, Turns};
use crate::cx::Cx;
use seekwell_core::RqId;
use std::fmt::Write;

impl Turns {
    /// Checks that a task waits for a turn if and only if it has requests and does not have the
    /// turn.
    pub(super) fn check_all(&self, cx: &Cx) {
        let mut held = self.head.len();
        let mut waiting = 0;
        for (i, q) in self.all() {
            held += q.fifo.len();
            let both = (q.fifo.len(), q.sorted.len());
            assert_eq!(both.0, both.1, "turns: list and tree of queue {i}");
            let waits = self.turns.linked(i);
            let due = i != ASYNC && self.current != Some(i) && !q.fifo.is_empty();
            assert_eq!(waits, due, "turns: queue {i} waits");
            assert_eq!(
                self.places.linked(i),
                due,
                "turns: queue {i} stands in line"
            );
            waiting += usize::from(waits);
            if waits {
                assert_eq!(self.turns.key(i), self.key(i), "turns: key of queue {i}");
            }
            for rq in self.links.iter(&q.fifo) {
                let place = self.rq.get(rq as usize).place;
                assert_eq!(place, Place::Queue(i), "turns: {rq}");
            }
        }
        let both = (self.waiting.len(), self.line.len());
        assert_eq!(both, (waiting, waiting), "turns: who waits");
        assert_eq!(held, cx.nr_sorted as usize, "turns: queues and nr_sorted");
    }

    pub(super) fn tell(&self, cx: &Cx, out: &mut String) {
        let bio = |rq: u32| cx.rqs.first_bio(RqId(rq)).id.0.to_string();
        // Writing to a String cannot fail.
        let _ = write!(out, "turns");
        for (i, q) in self.all() {
            let on = self.current == Some(i);
            if q.fifo.is_empty() && q.in_device == 0 && !on {
                continue;
            }
            let name = match i {
                ASYNC => "buffered writes".to_owned(),
                i => format!("context {}", i - 1),
            };
            let all: Vec<String> = self.links.iter(&q.fifo).map(bio).collect();
            let _ = write!(
                out,
                "; {name}{}{}: [{}], {} in the device, {} us ahead",
                if on { ", in its turn" } else { "" },
                if self.is_new(i) { ", new" } else { "" },
                all.join(" "),
                q.in_device,
                (q.served_ns as i64 - self.floor_ns as i64) / 1000
            );
        }
    }
}
