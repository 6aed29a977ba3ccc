//! Weight raising.

use super::*;
use crate::bfq::core::Reason;

/// A new queue with two requests, and the bench.
fn new_queue() -> (Bench<Bfq>, QId) {
    let mut b = bench(true);
    let rq = b.insert(1, Op::Read, 1000);
    b.insert(1, Op::Read, 1008);
    let q = b.s.core.queue_of(rq).expect("its queue");
    (b, q)
}

#[test]
fn a_new_queue_is_raised_thirtyfold_with_a_small_budget() {
    let (b, q) = new_queue();
    let e = b.s.core.ent(q);
    assert_eq!((e.coeff, e.budget), (30, 2 * 512));
    assert_eq!(b.s.core.wr_busy, 1);
    // A request of 700 sectors fits into this budget.
    let mut b = bench(true);
    let rq = b.insert_sized(1, Op::Read, 1000, 700);
    let q = b.s.core.queue_of(rq).expect("its queue");
    assert_eq!(b.s.core.ent(q).budget, 1024);
}

#[test]
fn interactive_raising_ends_after_its_period() {
    for (passed_ms, raised) in [(10_500, true), (10_501, false)] {
        let (mut b, q) = new_queue();
        b.pass_us(passed_ms * 1000);
        b.take().expect("a request");
        assert_eq!(b.s.core.raised(q), raised, "{passed_ms}");
    }
}

#[test]
fn interactive_raising_ends_after_120000_sectors() {
    for (before, raised) in [(119_992, true), (119_993, false)] {
        let (mut b, q) = new_queue();
        b.s.queue_mut(q).own.service_from_wr = before;
        b.take().expect("a request");
        assert_eq!(b.s.core.raised(q), raised, "{before}");
    }
}

#[test]
fn a_request_is_soft_real_time_after_its_rate_and_an_idle_wait() {
    // The rate is 7000 sectors per second. slice_idle is 8 ms, and 4 jiffies are added.
    for (sectors, want_j) in [(8, 12), (70_000, 10_000), (91, 13), (84, 12)] {
        let (mut b, q) = new_queue();
        let taken = b.take_all();
        for rq in taken {
            b.complete(rq);
        }
        let now = b.cx.jiffies();
        b.s.queue_mut(q).last_idle_backlogged_j = now;
        b.s.queue_mut(q).service_from_backlogged = sectors;
        b.s.queue_mut(q).soft_rt_next_start_j = 0;
        b.s.expire(&mut b.cx, q, false, Reason::TooIdle);
        assert_eq!(b.s.queue(q).soft_rt_next_start_j - now, want_j, "{sectors}");
    }
}

/// The second request of a steady reader is soft real-time if it comes late enough.
#[test]
fn soft_real_time_is_raised_3000_fold_for_300_ms() {
    for (late_j, coeff) in [(0, 30), (1, 3000)] {
        let (mut b, q) = new_queue();
        for rq in b.take_all() {
            b.complete(rq);
        }
        assert!(b.fire(), "the idle timer");
        let wait_j = b.s.queue(q).soft_rt_next_start_j + late_j - b.cx.jiffies();
        b.pass_us(wait_j * 1000);
        b.insert(1, Op::Read, 1024);
        assert_eq!(b.s.core.ent(q).coeff, coeff, "{late_j}");
        let period_j = if coeff == 30 { 10_500 } else { 300 };
        assert_eq!(b.s.queue(q).wr_max_j, period_j, "{late_j}");
    }
}
