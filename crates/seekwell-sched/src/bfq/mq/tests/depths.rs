//! Limits of the tags that a bio may use.

use super::*;
use crate::cx::QueueFacts;
use seekwell_core::{Flags, IoPrio, TaskId, TickClock};

/// The limits for an async write, a sync write and a read of a task without a queue.
fn limits(era: Era, tags: u32, raised: bool) -> [Option<u32>; 3] {
    let mut facts = QueueFacts::example(era);
    facts.nr_requests = tags;
    let cx = Cx::new(facts, TickClock::new(1000));
    let s = Bfq::new(&cx);
    let mut b = Bench::new(cx, s);
    if raised {
        b.insert(1, Op::Read, 1000);
        assert_eq!(b.s.core.wr_busy, 1);
    }
    let task = TaskId(2);
    let ioc = b.cx.iocs.create(task, IoPrio::be(4), CgroupId::ROOT);
    [
        (Op::Write, Flags::empty()),
        (Op::Write, Flags::SYNC),
        (Op::Read, Flags::empty()),
    ]
    .map(|(op, flags)| {
        let bio = Bio::new(1, task, op, flags, 9000, 8);
        b.s.limit_depth(&mut b.cx, &bio, ioc)
    })
}

#[test]
fn async_writes_get_a_half_and_sync_writes_three_quarters_of_the_tags() {
    let of = |tags, raised| limits(Era::Mq, tags, raised);
    assert_eq!(of(256, false), [Some(128), Some(192), None]);
    assert_eq!(of(256, true), [Some(48), Some(96), None]);
    assert_eq!(of(64, false), [Some(32), Some(48), None]);
    assert_eq!(of(64, true), [Some(12), Some(24), None]);
    assert_eq!(of(4, true), [Some(1), Some(1), None], "at least one");
}
