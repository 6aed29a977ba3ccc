//! Barriers of 2.6 and flush sequences of 3.x, through the public interface.

use seekwell_block::{HostDriver, LegacyOptions, LegacyQueue};
use seekwell_core::{Bio, BioDone, BioSink, Era, Flags, Instant, Nanos, Op, TaskId, TickClock};
use seekwell_device::Constant;
use seekwell_sched::QueueFacts;
use seekwell_sched::noop::Noop;

fn queue(era: Era, cache: bool) -> LegacyQueue<Noop, Constant> {
    let facts = QueueFacts {
        depth: 4,
        ..QueueFacts::example(era)
    };
    let dev = Constant::serial(4, Nanos::from_ms(1)).write_cache(cache);
    let host = HostDriver::Simple { depth: 4 };
    let opts = LegacyOptions {
        queue_plug: false,
        ..LegacyOptions::default()
    };
    LegacyQueue::new(facts, TickClock::new(1000), opts, host, dev, |_| {
        Box::new(Noop::new())
    })
}

fn bio(id: u64, op: Op, flags: Flags, sector: u64, n: u32) -> Bio {
    Bio::new(id, TaskId(1), op, flags, sector, n)
}

fn finish(q: &mut LegacyQueue<Noop, Constant>) -> Vec<(u64, u64)> {
    let mut out: Vec<BioDone> = Vec::new();
    while let Some(t) = q.next_event() {
        q.advance(t, &mut out);
        q.check();
    }
    assert!(q.cx.rqs.is_empty(), "every request is freed");
    out.iter()
        .map(|d| (d.id.0, d.at.since_start() / 1000))
        .collect()
}

fn commit(q: &mut LegacyQueue<Noop, Constant>) -> Vec<(u64, u64)> {
    let none = Flags::empty();
    q.submit(Instant::START, bio(1, Op::Write, none, 100, 8));
    q.submit(
        Instant::START,
        bio(2, Op::Write, Flags::PREFLUSH | Flags::FUA, 900, 8),
    );
    q.submit(Instant::START, bio(3, Op::Read, none, 500, 8));
    finish(q)
}

#[test]
fn barrier_of_2_6_drains_the_queue() {
    // The order is: write, flush, barrier write, flush, and only then the read.
    let mut q = queue(Era::K2_6_24, true);
    assert_eq!(commit(&mut q), [(1, 1_000), (2, 4_000), (3, 5_000)]);
    assert_eq!(q.stats().flushes, 2);
}

#[test]
fn barrier_of_2_6_without_write_cache_only_orders_requests() {
    let mut q = queue(Era::K2_6_18, false);
    assert_eq!(commit(&mut q), [(1, 1_000), (2, 2_000), (3, 3_000)]);
    assert_eq!(q.stats().flushes, 0);
}

#[test]
fn flush_sequence_of_3_x_does_not_block_other_requests() {
    // The order is: pre-flush (after write 1), the read that was queued during the flush, data,
    // post-flush.
    let mut q = queue(Era::K4_0, true);
    let done = commit(&mut q);
    assert_eq!(done[0], (1, 1_000));
    assert_eq!(
        done[1],
        (3, 3_000),
        "the read does not wait for the sequence"
    );
    assert_eq!(done[2], (2, 5_000), "flush, data, flush");
    assert_eq!(q.stats().flushes, 2);
}

#[test]
fn without_write_cache_flush_flags_are_dropped_and_empty_flushes_complete_at_once() {
    let mut q = queue(Era::K3_4, false);
    q.submit(Instant::at_us(10), bio(9, Op::Flush, Flags::PREFLUSH, 0, 0));
    assert_eq!(q.next_event(), Some(Instant::at_us(10)));
    assert_eq!(finish(&mut q), [(9, 10)]);
    assert_eq!(
        commit(&mut queue(Era::K3_4, false)),
        [(1, 1_000), (2, 2_000), (3, 3_000)]
    );
}

#[test]
fn waiting_flushes_share_one_flush() {
    let mut q = queue(Era::K4_0, true);
    for id in 0..5 {
        q.submit(Instant::START, bio(id, Op::Flush, Flags::PREFLUSH, 0, 0));
    }
    let done = finish(&mut q);
    assert_eq!(done[0], (0, 1_000));
    assert!(done[1..].iter().all(|d| d.1 == 2_000));
    assert_eq!(q.stats().flushes, 2);
}
