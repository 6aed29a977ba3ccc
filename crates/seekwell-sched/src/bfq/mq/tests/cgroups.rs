//! Weights of groups, and the tags that a weight gives.

use super::*;
use crate::cx::Cgroup;
use seekwell_core::{Flags, IoPrio, TaskId};

/// A bench in which task 1 is in cgroup 1 and has a request there.
fn grouped(weight: Option<u32>) -> Bench<Bfq> {
    let mut b = bench(true);
    b.set("low_latency", "0");
    let group = Cgroup {
        parent: CgroupId::ROOT,
        weight,
        leaf_weight: None,
        online: true,
    };
    b.cx.cgroups.insert(CgroupId(1), group);
    let task = TaskId(1);
    let ioc = b.cx.iocs.create(task, IoPrio::be(4), CgroupId(1));
    b.s.ioc_event(&mut b.cx, ioc, IocEvent::Attach);
    b.insert(1, Op::Read, 1000);
    b
}

#[test]
fn group_weights_are_1_to_1000_and_100_by_default() {
    for (configured, want) in [
        (None, 100),
        (Some(0), 1),
        (Some(1), 1),
        (Some(1000), 1000),
        (Some(1001), 1000),
    ] {
        let b = grouped(configured);
        let group = b.s.core.groups.iter().find(|g| g.cgroup == CgroupId(1));
        let ent = group.and_then(|g| g.ent).expect("an entity");
        assert_eq!(b.s.core.wf.entity(ent).weight, want, "{configured:?}");
    }
}

/// Returns the tag limit for an async write of a task of level 4 that has `queued` writes. Another
/// task has level 0. The weights are 40 and 80.
fn tags(queued: u64) -> Option<u32> {
    let mut b = bench(true);
    b.set("low_latency", "0");
    b.cx.queue.nr_requests = 128;
    for i in 0..queued {
        b.insert(1, Op::Write, 1000 + 100 * i);
    }
    let strong = TaskId(2);
    let ioc = b.cx.iocs.create(strong, IoPrio::be(0), CgroupId::ROOT);
    b.s.ioc_event(&mut b.cx, ioc, IocEvent::Attach);
    let now = b.cx.now();
    let bio = Bio::new(900, strong, Op::Read, Flags::empty(), 9_000_000, 8);
    let rq = b.cx.rqs.alloc(bio, ioc, IoPrio::be(0), Era::Mq, now);
    b.s.prepare(&mut b.cx, rq);
    b.cx.rqs[rq].state = seekwell_core::State::Sorted;
    b.cx.nr_sorted += 1;
    b.s.inserting(&mut b.cx, rq);
    b.s.insert(&mut b.cx, rq, Insert::Sorted);
    let weak = TaskId(1);
    let ioc = b.cx.iocs.find(weak).expect("the first task");
    let bio = Bio::new(901, weak, Op::Write, Flags::empty(), 1_000_000, 8);
    b.s.limit_depth(&mut b.cx, &bio, ioc)
}

/// The weight gives a third of the 64 tags for async writes, rounded to 21.
#[test]
fn queue_above_its_share_of_the_tags_gets_one_more() {
    assert_eq!(tags(20), Some(64));
    assert_eq!(tags(21), Some(1));
}
