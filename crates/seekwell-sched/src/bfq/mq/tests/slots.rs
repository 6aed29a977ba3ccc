//! The end of a slot: charges and budgets.

use super::*;
use crate::bfq::core::Reason;

/// A queue in service on a rotating disk, without raising. It has dispatched one request of 8
/// sectors, which is in the driver.
fn in_service() -> (Bench<Bfq>, QId, RqId) {
    let mut b = bench(true);
    b.set("low_latency", "0");
    b.insert(1, Op::Read, 1000);
    let rq = b.take().expect("the read");
    let q = b.s.core.serving.expect("a queue in service");
    (b, q, rq)
}

/// The sectors that the queue was charged when its slot ended.
fn charged(b: &mut Bench<Bfq>, q: QId, reason: Reason) -> u64 {
    b.cx.log.events.clear();
    b.s.expire(&mut b.cx, q, false, reason);
    let ends = |e: &&seekwell_core::Event| e.rule == Some(crate::bfq::rules::EXPIRED);
    let event =
        b.cx.log
            .events
            .iter()
            .find(ends)
            .expect("the end of a slot");
    let words = event.detail.rsplit(' ').next().expect("a number");
    words.parse().expect("a number")
}

/// The charge of a slot of `us` in which `served` sectors were served.
fn charge(us: u64, seeky: bool, served: u64) -> u64 {
    let (mut b, q, _) = in_service();
    b.s.queue_mut(q).own.history = if seeky { (1 << 20) - 1 } else { (1 << 19) - 1 };
    b.s.core.ent_mut(q).service = served;
    b.pass_us(us);
    charged(&mut b, q, Reason::NoMore)
}

#[test]
fn a_slow_queue_is_charged_for_its_time() {
    // A slot of 125 ms is worth 16384 sectors. A queue is seeky if 20 of its last 32 requests were
    // seeks.
    assert_eq!(charge(999, true, 8), 16_384 * 8 / 125, "like 8 ms");
    assert_eq!(charge(1000, true, 8), 16_384 / 125);
    assert_eq!(charge(20_000, true, 8), 16_384 * 20 / 125);
    assert_eq!(charge(20_000, false, 8), 8);
    // In a slot above 20 ms, the amount of service decides: a queue with less than half of the
    // maximum budget is slow.
    assert_eq!(charge(20_001, false, 8), 16_384 * 20 / 125);
    assert_eq!(charge(20_001, true, 8192), 8192);
    assert_eq!(charge(60_000, false, 8191), 8191, "more than its time");
    assert_eq!(charge(60_000, false, 300), 7864);
    assert_eq!(charge(300_000, false, 8), 16_384, "at most the maximum");
}

#[test]
fn a_timeout_is_charged_for_its_time_if_a_third_of_the_budget_is_left() {
    for (served, want) in [(200, 2097), (201, 201)] {
        let (mut b, q, _) = in_service();
        let e = b.s.core.ent_mut(q);
        (e.budget, e.service) = (300, served);
        b.pass_us(16_000);
        assert_eq!(charged(&mut b, q, Reason::Timeout), want, "{served}");
    }
}

/// The budget of the next slot, after a slot with budget `b` that ended for `reason`.
fn next(reason: Reason, b: u64, in_flight: bool, served: u64) -> u64 {
    let (mut bench, q, rq) = in_service();
    bench.insert(1, Op::Read, 2000);
    if !in_flight {
        bench.complete(rq);
    }
    bench.s.queue_mut(q).max_budget = b;
    let e = bench.s.core.ent_mut(q);
    (e.budget, e.service) = (b, served);
    bench.s.expire(&mut bench.cx, q, false, reason);
    bench.s.queue(q).max_budget
}

#[test]
fn expiry_reason_determines_the_next_budget() {
    // The minimum is 512 sectors, the maximum 16384.
    for (reason, b, in_flight, served, want) in [
        (Reason::TooIdle, 1000, true, 8, 2000),
        (Reason::TooIdle, 9000, true, 8, 16_384),
        (Reason::TooIdle, 2561, false, 8, 2561 - 2048),
        (Reason::TooIdle, 2560, false, 8, 512),
        (Reason::Timeout, 1000, true, 900, 2000),
        (Reason::Timeout, 9000, true, 8900, 16_384),
        (Reason::Exhausted, 1000, true, 1000, 4000),
        (Reason::Exhausted, 4097, true, 4097, 16_384),
        (Reason::NoMore, 9000, true, 700, 700),
        (Reason::NoMore, 9000, true, 100, 512),
        (Reason::Preempted, 9000, true, 100, 9000),
    ] {
        let got = next(reason, b, in_flight, served);
        assert_eq!(got, want, "{reason:?} {b} {in_flight} {served}");
    }
}

#[test]
fn tuned_maximum_bounds_budgets_from_the_eleventh_slot_on() {
    for (assigned, user, want) in [(193, "0", 5000), (194, "0", 4000), (194, "4000", 5000)] {
        let (mut b, q, _) = in_service();
        b.set("max_budget", user);
        b.s.core.tuned_budget = 4000;
        b.s.core.budgets_assigned = assigned;
        b.s.core.ent_mut(q).service = 5000;
        b.s.expire(&mut b.cx, q, false, Reason::NoMore);
        assert_eq!(b.s.queue(q).max_budget, want, "{assigned} {user}");
    }
}

#[test]
fn the_number_of_slots_is_a_running_average() {
    let mut s = bench(true).s;
    let counts: Vec<_> = (0..12)
        .map(|_| {
            s.core.count_assignment();
            s.core.budgets_assigned
        })
        .collect();
    assert_eq!(counts[..6], [32, 60, 84, 105, 123, 139]);
    assert_eq!(counts[6..], [153, 165, 176, 186, 194, 201]);
}

/// While the device idles for the queue, its time ends the slot only if a third of the budget is
/// left.
#[test]
fn a_slot_ends_after_its_time() {
    for (passed_ms, waiting, served, ends) in [
        (124, false, 0, false),
        (125, false, 0, true),
        (125, true, 200, true),
        (125, true, 201, false),
    ] {
        let (mut b, q, _) = in_service();
        let e = b.s.core.ent_mut(q);
        (e.budget, e.service) = (300, served);
        b.s.queue_mut(q).waiting = waiting;
        b.pass_us(passed_ms * 1000);
        let got = b.s.may_expire(&b.cx, q);
        assert_eq!(got, ends, "{passed_ms} ms {waiting} {served}");
    }
}
