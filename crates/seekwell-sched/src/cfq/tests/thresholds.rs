//! Thresholds of the queueing test, of distances and of expiry.

use super::*;
use crate::bench::{self, legacy_cx};

fn cfq(rotational: bool) -> bench::Bench<Cfq> {
    let mut cx = legacy_cx(Era::K4_0, 1000);
    cx.queue.rotational = rotational;
    let s = Cfq::new(&cx, Version::V4_0);
    bench::Bench::new(cx, s)
}

#[test]
fn five_requests_in_the_driver_show_that_the_device_queues() {
    let cases = [(4, 12, 0), (5, 12, 1), (1, 5, -1), (1, 6, 0), (5, 5, -1)];
    for (depth, queued, want) in cases {
        let mut b = cfq(false);
        let (mut sector, mut flying) = (0, Vec::new());
        for _ in 0..60 {
            while flying.len() < depth {
                sector += 100;
                b.insert(1, Op::Read, sector);
                flying.extend(b.take());
            }
            while b.s.rq_queued < queued {
                sector += 100;
                b.insert(1, Op::Read, sector);
            }
            b.complete(flying.remove(0));
        }
        assert_eq!(b.s.hw_tag, want, "{depth} in the driver, {queued} queued");
    }
}

#[test]
fn a_request_within_8192_sectors_of_the_head_is_close() {
    let mut b = cfq(true);
    b.s.last_position = Sector(1_000_000);
    for (sector, want) in [
        (1_008_192, true),
        (1_008_193, false),
        (991_808, true),
        (991_807, false),
    ] {
        let rq = b.insert(1, Op::Read, sector);
        assert_eq!(b.s.close(&b.cx, rq), want, "{sector}");
    }
}

#[test]
fn four_queued_requests_make_a_queue_deep() {
    let mut b = cfq(true);
    for n in 1..=4 {
        let rq = b.insert(1, Op::Read, 1000 * n);
        let q = b.s.queue_of(rq);
        assert_eq!(b.s.queue(q).deep, n == 4, "{n}");
    }
}

#[test]
fn the_idle_wait_ends_for_a_request_of_more_than_a_page() {
    for (sectors, waits) in [(8, true), (9, false)] {
        let mut b = cfq(true);
        let rq = b.insert(1, Op::Read, 1000);
        let q = b.s.queue_of(rq);
        let rq = b.take().expect("a request");
        b.complete(rq);
        assert!(b.take().is_none() && b.s.queue(q).wait_request, "it idles");
        b.insert_sized(1, Op::Read, 1008, sectors);
        assert_eq!(b.cx.armed(crate::cfq::IDLE_TIMER), waits, "{sectors}");
    }
}

#[test]
fn on_flash_requests_below_64_sectors_are_seeky() {
    for (sectors, seeks) in [(63, 1), (64, 0)] {
        let mut b = cfq(false);
        let rq = b.insert_sized(1, Op::Read, 1000, sectors);
        let q = b.s.queue_of(rq);
        assert_eq!(b.s.queue(q).seek_history, seeks, "{sectors}");
    }
}

/// Returns the start of the request that is dispatched first. One request is at sector 5000 and is
/// `age_ms` old. The other request is new and nearer.
fn first_after(age_ms: u64) -> u64 {
    let mut b = cfq(true);
    b.insert(1, Op::Read, 5000);
    b.pass_us(age_ms * 1000);
    b.insert(1, Op::Read, 1000);
    let rq = b.take().expect("a request");
    b.cx.rqs[rq].sector.0
}

#[test]
fn a_request_expires_after_125_ms() {
    assert_eq!((first_after(124), first_after(125)), (1000, 5000));
}

#[test]
fn a_sync_request_that_took_125_ms_holds_async_requests_back() {
    for (ms, late) in [(124, false), (125, true)] {
        let mut b = cfq(true);
        b.insert(1, Op::Read, 5000);
        let rq = b.take().expect("a request");
        b.pass_us(ms * 1000);
        b.complete(rq);
        assert_eq!(b.s.last_delayed_sync == b.cx.jiffies(), late, "{ms}");
    }
}

/// A writer gets its share of the target latency, times slice_async / slice_sync.
#[test]
fn a_workload_of_writers_is_shorter() {
    let mut b = cfq(true);
    b.insert(1, Op::Write, 5000);
    b.take().expect("a request");
    assert_eq!(b.s.serving.expires - b.cx.jiffies(), 300 * 40 / 100);
    b = cfq(true);
    b.set("target_latency", "1");
    b.insert(1, Op::Write, 5000);
    b.take().expect("a request");
    assert_eq!(b.s.serving.expires - b.cx.jiffies(), 2, "at least 2");
}

/// The charge of a slice that has not begun is at least one jiffy.
#[test]
fn a_group_is_charged_the_time_of_the_slice() {
    // (time before the first completion, time after it, charge)
    for (before_ms, after_ms, want) in [(0, 0, 1), (7, 0, 7), (7, 30, 30), (7, 130, 100)] {
        let mut b = cfq(true);
        b.insert(1, Op::Read, 5000);
        b.insert(1, Op::Read, 6000);
        let rq = b.take().expect("a request");
        let q = b.s.queue_of(rq);
        b.pass_us(before_ms * 1000);
        b.complete(rq);
        b.pass_us(after_ms * 1000);
        b.cx.log.events.clear();
        b.s.expire(&mut b.cx, q, false);
        let text = format!("group 0 is charged {want}");
        let found = b.cx.log.events.iter().any(|e| e.detail == text);
        assert!(found, "{before_ms} {after_ms} {want}");
    }
}
