//! Injection: limits, measurements, wakers, and when the device idles.

use super::*;

const MS: u64 = 1_000_000;

/// A queue in service whose request is in the driver, without raising.
fn in_service(rotational: bool) -> (Bench<Bfq>, QId, RqId) {
    let mut b = bench(rotational);
    b.set("low_latency", "0");
    b.insert(1, Op::Read, 1000);
    let rq = b.take().expect("the read");
    let q = b.s.core.serving.expect("a queue in service");
    (b, q, rq)
}

/// Returns the limit and the service time after a measured request took `took_ms`. A request
/// without injection took 10 ms.
fn limit_after(took_ms: u64, limit: u32, most: u32, injected: bool, alone: bool) -> (u32, u64) {
    let (mut b, q, _) = in_service(true);
    b.pass_us(1_000_000);
    b.s.measured_since = b.cx.now().0 - took_ms * MS;
    b.s.injected = injected;
    b.s.core.max_in_driver = most;
    b.s.core.in_driver = if alone { 1 } else { 2 };
    let x = &mut b.s.queue_mut(q).own;
    (x.last_serv, x.inject_limit) = (10 * MS, limit);
    b.s.update_inject_limit(&mut b.cx, q);
    let x = &b.s.queue(q).own;
    (x.inject_limit, x.last_serv / MS)
}

#[test]
fn delay_of_half_the_service_time_lowers_the_injection_limit() {
    assert_eq!(limit_after(14, 2, 5, true, false), (3, 10));
    assert_eq!(limit_after(15, 2, 5, true, false), (1, 10));
    assert_eq!(limit_after(15, 0, 5, true, false), (0, 10));
    // The limit exceeds the largest number in the driver by at most one.
    assert_eq!(limit_after(14, 5, 5, true, false), (6, 10));
    assert_eq!(limit_after(14, 6, 5, true, false), (6, 10));
}

#[test]
fn service_time_is_measured_without_injection() {
    assert_eq!(limit_after(14, 2, 5, false, true), (2, 14));
    assert_eq!(limit_after(14, 2, 5, false, false), (2, 10));
    assert_eq!(limit_after(14, 2, 5, true, true), (3, 10));
    assert_eq!(limit_after(9, 2, 5, false, false), (2, 9), "shorter");
    // The first measurement allows one injected request.
    for (alone, want) in [(true, (1, 7 * MS)), (false, (0, 0))] {
        let (mut b, q, _) = in_service(true);
        b.pass_us(1_000_000);
        b.s.measured_since = b.cx.now().0 - 7 * MS;
        b.s.core.in_driver = if alone { 1 } else { 2 };
        b.s.update_inject_limit(&mut b.cx, q);
        let x = &b.s.queue(q).own;
        assert_eq!((x.inject_limit, x.last_serv), want, "{alone}");
    }
}

/// Returns true if a request that arrives `ms` after the last decrease of the limit is measured.
fn measured(ms: u64, in_driver: u32, served: bool, injected: bool) -> bool {
    let (mut b, q, _) = in_service(true);
    let j = b.cx.jiffies();
    b.s.core.in_driver = in_driver;
    b.s.injected = injected;
    let x = &mut b.s.queue_mut(q).own;
    x.decrease_j = j - ms;
    x.last_serv = if served { MS } else { 0 };
    b.s.first_of_process(&mut b.cx, q);
    b.s.wait_dispatch
}

#[test]
fn requests_are_measured_from_10_ms_after_the_last_decrease_on() {
    assert!(!measured(9, 0, false, false) && measured(10, 0, false, false));
    assert!(!measured(10, 1, false, false), "the driver is busy");
    assert!(measured(10, 1, true, true), "with an injected request");
    assert!(!measured(10, 1, true, false) && !measured(10, 1, false, true));
}

#[test]
fn measured_service_time_expires_after_a_second() {
    for (ms, serv) in [(999, MS), (1000, 0)] {
        let (mut b, q, _) = in_service(true);
        let j = b.cx.jiffies();
        let x = &mut b.s.queue_mut(q).own;
        (x.decrease_j, x.last_serv) = (j - ms, MS);
        b.s.first_of_process(&mut b.cx, q);
        assert_eq!(b.s.queue(q).own.last_serv, serv, "{ms}");
    }
}

/// A bench with a queue that thinks for long, and another queue whose request completed last.
fn bench_with_two_queues() -> (Bench<Bfq>, QId, QId) {
    let (mut b, q, _) = in_service(true);
    let rq = b.insert(2, Op::Read, 9_000_000);
    let other = b.s.core.queue_of(rq).expect("its queue");
    b.s.queue_mut(q).short_think = false;
    b.s.last_completed = Some(other);
    b.s.last_completion = b.cx.now().0;
    b.s.queue_mut(q).own.decrease_j = b.cx.jiffies();
    (b, q, other)
}

#[test]
fn queue_becomes_the_waker_after_three_completions_before_a_request() {
    let (mut b, q, other) = bench_with_two_queues();
    for n in 1..=3 {
        assert_eq!(b.s.queue(q).own.waker, None, "{n}");
        b.s.first_of_process(&mut b.cx, q);
    }
    assert_eq!(b.s.queue(q).own.waker, Some(other));
}

#[test]
fn waker_completion_counts_for_4_ms_and_not_for_its_own_queue() {
    for (ns, want) in [(4 * MS - 1, 1), (4 * MS, 0)] {
        let (mut b, q, _) = bench_with_two_queues();
        b.pass_ns(ns);
        b.s.first_of_process(&mut b.cx, q);
        assert_eq!(b.s.queue(q).own.detections, want, "{ns}");
    }
    let (mut b, q, _) = bench_with_two_queues();
    b.s.last_completed = Some(q);
    b.s.first_of_process(&mut b.cx, q);
    assert_eq!(b.s.queue(q).own.detections, 0, "its own completion");
    let (mut b, q, _) = bench_with_two_queues();
    b.s.queue_mut(q).short_think = true;
    b.s.first_of_process(&mut b.cx, q);
    assert_eq!(b.s.queue(q).own.detections, 0, "a short think time");
}

#[test]
fn waker_detections_must_happen_within_128_idle_waits() {
    for (ns, want) in [(1024 * MS, 2), (1024 * MS + 1, 1)] {
        let (mut b, q, _) = bench_with_two_queues();
        b.s.first_of_process(&mut b.cx, q);
        b.pass_ns(ns);
        b.s.last_completion = b.cx.now().0;
        b.s.queue_mut(q).own.decrease_j = b.cx.jiffies();
        b.s.first_of_process(&mut b.cx, q);
        assert_eq!(b.s.queue(q).own.detections, want, "{ns}");
    }
}

/// Returns true if a request of another queue is injected on flash that queues commands.
fn injects(sectors: u32, in_driver: u32, limit: u32) -> bool {
    let mut b = bench(false);
    b.set("low_latency", "0");
    b.insert(1, Op::Read, 1000);
    b.take().expect("the read");
    let q = b.s.core.serving.expect("a queue in service");
    // More than 180 ms later, so that the queues are not merged.
    b.pass_us(500_000);
    b.insert_sized(2, Op::Read, 9_000_000, sectors);
    b.s.core.in_driver = in_driver;
    b.s.queue_mut(q).own.inject_limit = limit;
    let found = b.s.donor(&mut b.cx, q).is_some();
    b.s.core.in_driver = 1;
    found
}

#[test]
fn injection_is_bounded_by_limit_and_request_size() {
    assert!(injects(8, 1, 2) && !injects(8, 2, 2));
    assert!(injects(63, 1, 2) && !injects(64, 1, 2));
    assert!(injects(64, 0, 2), "large, but the driver is empty");
}

/// Returns how long the device idles for the queue in service, us.
fn idles_us(seeky: bool, raised: bool) -> u64 {
    let (mut b, q, rq) = in_service(true);
    b.s.core.hw_tag = 0;
    if seeky {
        b.s.queue_mut(q).own.history = u32::MAX;
    }
    if raised {
        b = bench(true);
        b.insert(1, Op::Read, 1000);
        let rq = b.take().expect("the read");
        b.complete(rq);
    } else {
        b.complete(rq);
    }
    let at = b.cx.next_timer().expect("the idle timer").0;
    at.since(b.cx.now()).as_us()
}

#[test]
fn the_device_idles_for_2_8_or_20_ms() {
    assert_eq!(idles_us(false, false), 8000);
    assert_eq!(idles_us(true, false), 2000);
    assert_eq!(idles_us(false, true), 20_000);
}

/// Idling for a raised queue is needed if other busy queues are not raised, or if their requests
/// fill the driver.
#[test]
fn four_requests_of_others_in_the_driver_make_idling_needed() {
    for (others, want) in [(3, false), (4, true)] {
        let mut b = bench(true);
        let rq = b.insert(1, Op::Read, 1000);
        b.insert(2, Op::Read, 9_000_000);
        let q = b.s.core.queue_of(rq).expect("its queue");
        assert_eq!(b.s.core.wr_busy, 2, "both are raised");
        b.s.core.in_driver = others;
        assert_eq!(b.s.needed(&b.cx, q), want, "{others}");
    }
}

#[test]
fn async_requests_of_equal_queues_cost_three_times_their_size() {
    let mut b = bench(true);
    b.set("low_latency", "0");
    let write = b.insert(1, Op::Write, 1000);
    let read = b.insert(1, Op::Read, 2000);
    let cost = |rq| {
        let q = b.s.core.queue_of(rq).expect("its queue");
        b.s.core.charge(&b.cx, q, rq)
    };
    assert_eq!((cost(write), cost(read)), (24, 8));
}
