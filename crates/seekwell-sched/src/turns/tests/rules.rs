//! Thresholds of the rules: turns, idling, expiry, newcomers.

use super::*;
use seekwell_core::{CgroupId, Flags, IoPrio, TaskId};

const MS: u64 = 1_000_000;

/// A bench on a disk where no task is new.
fn no_newcomers() -> Bench<Turns> {
    let mut b = bench(true);
    b.set("newcomer_kb", "0");
    b
}

/// Task `task` reads at `sector`; the read takes `us`.
fn read(b: &mut Bench<Turns>, task: u32, sector: u64, us: u64) {
    b.insert(task, Op::Read, sector);
    let rq = b.take().expect("the read");
    b.pass_us(us);
    b.complete(rq);
}

#[test]
fn think_time_is_a_mean_of_capped_times() {
    let mut b = no_newcomers();
    read(&mut b, 1, 1000, 500);
    assert_eq!(b.s.queue(1).think_ns, 0, "nothing has completed before");
    for (think_us, mean_us) in [(1000, 250), (2000, 687), (100_000, 2515)] {
        // The idle wait is 4 ms, so that 8 ms is the cap.
        b.pass_us(think_us);
        read(&mut b, 1, 1000, 500);
        assert_eq!(b.s.queue(1).think_ns / 1000, mean_us, "{think_us}");
    }
}

#[test]
fn task_is_charged_for_the_idle_time_of_the_device() {
    for (think_us, paid_us) in [(1000, 1000), (4000, 4000), (9000, 4000)] {
        let mut b = no_newcomers();
        read(&mut b, 1, 1000, 500);
        let before = b.s.queue(1).served_ns;
        b.pass_us(think_us);
        b.insert(1, Op::Read, 1008);
        let paid = b.s.queue(1).served_ns - before;
        assert_eq!(paid / 1000, paid_us, "{think_us}");
    }
}

#[test]
fn a_request_within_4096_sectors_of_the_last_end_is_near() {
    for (distance, near) in [(0, 64), (4096, 64), (4097, 0)] {
        let mut b = no_newcomers();
        read(&mut b, 1, 1_000_000, 500);
        assert_eq!(b.s.queue(1).near, 0);
        read(&mut b, 1, 1_000_008 + distance, 500);
        assert_eq!(b.s.queue(1).near, near, "{distance}");
    }
}

/// After 1, 2 and 3 near requests the fraction is 64, 112 and 148 of 256. So the third request
/// reaches half.
#[test]
fn disk_idles_for_a_task_with_half_of_its_requests_near() {
    for (reads, idles) in [(2, false), (3, false), (4, true)] {
        let mut b = no_newcomers();
        for i in 0..reads {
            read(&mut b, 1, 1_000_000 + 8 * i, 500);
        }
        b.insert(2, Op::Read, 9_000_000);
        assert_eq!(b.take().is_none(), idles, "after {reads} reads");
    }
    let mut b = no_newcomers();
    for i in 0..4 {
        read(&mut b, 1, 1_000_000 + 8 * i, 500);
    }
    b.s.queue(1).near = SEQUENTIAL;
    b.insert(2, Op::Read, 9_000_000);
    assert_eq!(b.take(), None, "exactly half");
}

#[test]
fn a_turn_on_a_disk_lasts_40_ms() {
    for (passed_us, who) in [(39_999, 1), (40_000, 2)] {
        let mut b = no_newcomers();
        b.insert(1, Op::Read, 1000);
        b.insert(1, Op::Read, 2000);
        let first = b.take().expect("a read");
        b.insert(2, Op::Read, 9000);
        b.pass_us(passed_us);
        b.complete(first);
        let next = b.take().expect("a read");
        let ioc = b.cx.rqs[next].ioc;
        assert_eq!(b.cx.iocs.get(ioc).task.0, who, "after {passed_us} us");
    }
}

/// A buffered write waits while the window is full of writes and others read, but not longer than
/// a second after their last request.
#[test]
fn readers_block_buffered_writes_for_a_second_after_their_last_request() {
    for (passed_ms, goes) in [(999, false), (1000, true)] {
        let mut b = no_newcomers();
        b.set("async_window_us", "0");
        b.set("fifo_expire_sync", "100000");
        b.set("fifo_expire_async", "100000");
        b.set("slice_idle_us", "0");
        read(&mut b, 2, 9000, 500);
        b.insert(1, Op::Write, 1000);
        b.insert(1, Op::Write, 2000);
        assert!(b.take().is_some(), "the first write");
        b.pass_us(passed_ms * 1000 - 500);
        assert_eq!(b.take().is_some(), goes, "after {passed_ms} ms");
    }
}

/// One buffered write goes before the turn of a task that was charged less.
#[test]
fn buffered_writes_expire_after_5_s_or_500_ms_after_the_last_write() {
    let first_is_write = |age_ms: u64, no_write_ms: u64| {
        let mut b = no_newcomers();
        b.set("fifo_expire_async", "600");
        b.insert(1, Op::Write, 1000);
        b.pass_us(age_ms * 1000);
        b.s.queue(ASYNC).waits_since = b.cx.now();
        b.pass_us(no_write_ms * 1000);
        b.s.queue(ASYNC).served_ns += 10_000 * MS;
        b.insert(2, Op::Read, 9000);
        let rq = b.take().expect("a request");
        b.cx.rqs[rq].op == Op::Write
    };
    assert!(!first_is_write(0, 499));
    assert!(first_is_write(0, 500), "no write for 500 ms");
    assert!(!first_is_write(400, 199));
    assert!(first_is_write(400, 200), "the oldest waited for 600 ms");
}

/// A small request of a new task counts as 32 KiB, a large one as its size.
#[test]
fn task_is_new_until_it_has_read_newcomer_kb() {
    for (kb, sectors, requests) in [(64, 8, 2), (65, 8, 3), (128, 128, 2), (64, 127, 2)] {
        let mut b = bench(true);
        b.set("newcomer_kb", &kb.to_string());
        let mut count = 0;
        loop {
            count += 1;
            b.insert_sized(1, Op::Read, 1000 * count, sectors);
            let rq = b.take().expect("a read");
            b.complete(rq);
            if !b.s.is_new(1) {
                break;
            }
        }
        assert_eq!(count, requests, "{kb} KiB in requests of {sectors} sectors");
    }
}

#[test]
fn async_requests_get_three_quarters_of_the_tags() {
    for (tags, want) in [(128, 96), (4, 3), (1, 1)] {
        let mut b = bench(true);
        b.cx.queue.nr_requests = tags;
        let task = TaskId(1);
        let ioc = b.cx.iocs.create(task, IoPrio::be(4), CgroupId::ROOT);
        let mut limit = |op| {
            let bio = Bio::new(1, task, op, Flags::empty(), 1000, 8);
            b.s.limit_depth(&mut b.cx, &bio, ioc)
        };
        assert_eq!(limit(Op::Write), Some(want));
        assert_eq!(limit(Op::Read), None);
    }
}

/// A request that was in the device with others is charged from the completion before its own.
#[test]
fn device_time_is_charged_from_the_last_completion_or_the_issue() {
    let mut b = no_newcomers();
    b.insert(1, Op::Read, 1000);
    b.insert(1, Op::Read, 2000);
    let (first, second) = (b.take().expect("a read"), b.take().expect("a read"));
    let start = b.s.queue(1).served_ns - 2 * UNMEASURED_NS;
    b.pass_us(3000);
    b.complete(first);
    b.pass_us(1000);
    b.complete(second);
    assert_eq!(b.s.queue(1).served_ns - start, 4 * MS);
    // The device was idle before this request.
    b.pass_us(50_000);
    b.insert(1, Op::Read, 3000);
    let before = b.s.queue(1).served_ns;
    let third = b.take().expect("a read");
    b.pass_us(700);
    b.complete(third);
    assert_eq!(b.s.queue(1).served_ns - before, 700_000);
}
