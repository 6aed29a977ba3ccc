//! Expiry, and the tags of writes.

use super::super::*;
use crate::bench::{Bench, mq_cx};
use seekwell_core::{CgroupId, Flags, IoPrio, TaskId};

fn bench(version: &str) -> Bench<MqDeadline> {
    let cx = mq_cx(true);
    let s = MqDeadline::new(&cx, Generation::named(version));
    Bench::new(cx, s)
}

/// Returns the start of the request that is dispatched second: the nearer request, or the request
/// that is `age_ms` old.
fn second(age_ms: u64) -> u64 {
    let mut b = bench("6.12");
    b.set("fifo_batch", "1");
    b.insert(1, Op::Read, 5000);
    b.take().expect("a request");
    b.insert(1, Op::Read, 1000);
    b.pass_us(age_ms * 1000);
    b.insert(1, Op::Read, 6000);
    let rq = b.take().expect("a request");
    b.cx.rqs[rq].sector.0
}

#[test]
fn a_read_expires_after_500_ms() {
    assert_eq!((second(499), second(500)), (6000, 1000));
}

#[test]
fn only_writes_have_a_tag_limit() {
    let mut b = bench("6.12");
    let task = TaskId(1);
    let ioc = b.cx.iocs.create(task, IoPrio::be(4), CgroupId::ROOT);
    b.set("async_depth", "7");
    let mut limit = |op| {
        let bio = Bio::new(1, task, op, Flags::SYNC, 1000, 8);
        b.s.limit_depth(&mut b.cx, &bio, ioc)
    };
    assert_eq!((limit(Op::Read), limit(Op::Write)), (None, Some(7)));
}
