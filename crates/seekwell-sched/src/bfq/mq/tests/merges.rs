//! Merges of queues by position and by creation.

use super::*;

/// Returns true if a request of task 2 goes to the queue in service. The request is `distance`
/// sectors behind the last request of that queue, and arrives `ms` after the queue's first service.
fn joins_by_position(distance: u64, ms: u64) -> bool {
    let mut b = bench(true);
    b.set("low_latency", "0");
    b.insert(1, Op::Read, 1_000_000);
    b.insert(1, Op::Read, 90_000_000);
    // Queues are merged only while several are busy.
    b.insert(3, Op::Read, 500_000_000);
    b.take().expect("the first read");
    let p = b.s.core.serving.expect("a queue in service");
    b.pass_us(ms * 1000);
    let rq = b.insert(2, Op::Read, 1_000_008 + distance);
    b.s.core.queue_of(rq) == Some(p)
}

#[test]
fn a_request_within_8192_sectors_joins_the_queue_in_service() {
    assert!(joins_by_position(8192, 0) && !joins_by_position(8193, 0));
}

#[test]
fn a_queue_is_merged_within_100_ms_of_its_first_service() {
    assert!(joins_by_position(0, 100) && !joins_by_position(0, 101));
}

/// A bench on flash whose task 1 has a queue that was created just now.
fn flash() -> (Bench<Bfq>, QId) {
    let mut b = bench(false);
    b.set("low_latency", "0");
    let rq = b.insert(1, Op::Read, 1000);
    let q = b.s.core.queue_of(rq).expect("its queue");
    (b, q)
}

#[test]
fn on_flash_a_process_joins_the_queue_created_in_the_last_180_ms() {
    for (ms, joins) in [(180, true), (181, false)] {
        let (mut b, first) = flash();
        b.pass_us(ms * 1000);
        let rq = b.insert(2, Op::Read, 9_000_000);
        assert_eq!(b.s.core.queue_of(rq) == Some(first), joins, "{ms}");
    }
}

/// Up to 600 ms after the creation of a queue, a newer queue does not replace it as the queue that
/// was created last. So a third queue is not merged with the second one.
#[test]
fn after_600_ms_a_new_queue_counts_as_the_last_created() {
    for (ms, joins) in [(600, false), (601, true)] {
        let (mut b, _) = flash();
        b.pass_us(ms * 1000);
        let rq = b.insert(2, Op::Read, 9_000_000);
        let second = b.s.core.queue_of(rq);
        b.pass_us(1000);
        let rq = b.insert(3, Op::Read, 50_000_000);
        assert_eq!(b.s.core.queue_of(rq) == second, joins, "{ms}");
    }
}
