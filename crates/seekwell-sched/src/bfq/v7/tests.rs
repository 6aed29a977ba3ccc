//! Thresholds of single-queue BFQ that a dispatch order does not show.

use super::*;
use crate::bench::{Bench, legacy_cx};
use crate::bfq::core::Reason;
use seekwell_core::{Era, Op};

fn bench() -> Bench<BfqSq> {
    let cx = legacy_cx(Era::K3_4, 1000);
    let s = BfqSq::new(&cx, false);
    let mut b = Bench::new(cx, s);
    b.set("low_latency", "0");
    b
}

/// A queue in service, whose slot began with the completion of its first request.
fn in_service() -> (Bench<BfqSq>, QId) {
    let mut b = bench();
    b.insert(1, Op::Read, 1000);
    b.insert(1, Op::Read, 1008);
    let rq = b.take().expect("a request");
    let q = b.s.core.serving.expect("a queue in service");
    b.complete(rq);
    (b, q)
}

#[test]
fn the_33rd_sample_decides_whether_the_device_queues_commands() {
    for (depth, queued, after) in [
        (4, 12, Some(0)),
        (5, 12, Some(1)),
        (1, 3, Some(0)),
        (1, 2, None),
    ] {
        let mut b = bench();
        let (mut sector, mut flying) = (0, Vec::new());
        for n in 1..=40 {
            while flying.len() < depth {
                sector += 8;
                b.insert(1, Op::Read, sector);
                flying.extend(b.take());
            }
            while b.s.core.queued < queued {
                sector += 8;
                b.insert(1, Op::Read, sector);
            }
            b.complete(flying.remove(0));
            let want = if n < 33 { -1 } else { after.unwrap_or(-1) };
            assert_eq!(b.s.core.hw_tag, want, "{depth} {queued} after {n}");
        }
    }
}

#[test]
fn think_time_and_seek_distance_are_decaying_means() {
    let mut b = bench();
    b.insert(1, Op::Read, 1000);
    let q = b.s.core.queue_of(RqId(0)).expect("its queue");
    // (distance in sectors, pause in jiffies)
    let (mut samples, mut seeks, mut thinks) = (32, 0, 0);
    let (mut seek_mean, first) = (0, b.s.core.procs[IocId(0)].own.think_total);
    thinks += first;
    let mut end = 1008;
    for (distance, pause_j) in [(100, 0), (5_000_000, 10), (50, 16), (3_000_000, 500)] {
        b.pass_us(pause_j * 1000);
        let now = b.cx.jiffies();
        b.s.core.procs.at(0).own.last_end_j = now - pause_j;
        b.insert(1, Op::Read, end + distance);
        end += distance + 8;
        let room = if samples <= 60 { 2_097_152 } else { 131_072 };
        let d = distance.min(4 * seek_mean + room);
        samples = (7 * samples + 256) / 8;
        seeks = (7 * seeks + 256 * d) / 8;
        seek_mean = (seeks + samples / 2) / samples;
        // The idle wait is 8 ms.
        thinks = (7 * thinks + 256 * pause_j.min(16)) / 8;
        let x = &b.s.queue(q).own;
        assert_eq!(
            (x.seek_samples, x.seek_total, x.seek_mean),
            (samples, seeks, seek_mean)
        );
        let p = &b.s.core.procs[IocId(0)].own;
        let mean = (thinks + 128) / samples;
        assert_eq!(
            (p.think_samples, p.think_total, p.think_mean),
            (samples, thinks, mean)
        );
    }
}

#[test]
fn a_mean_above_8192_sectors_is_seeky() {
    let (mut b, q) = in_service();
    for (mean, want) in [(8192, false), (8193, true)] {
        b.s.queue_mut(q).own.seek_mean = mean;
        assert_eq!(b.s.seeky(q), want);
    }
}

/// The budget of the next slot, after a slot with budget `b` that ended for `reason`.
fn next(reason: Reason, b: u64, in_flight: bool) -> u64 {
    let (mut bench, q) = in_service();
    if in_flight {
        bench.take().expect("a request");
    }
    bench.s.queue_mut(q).max_budget = b;
    let e = bench.s.core.ent_mut(q);
    (e.budget, e.service) = (b, 8);
    bench.s.expire(&mut bench.cx, q, false, reason);
    bench.s.queue(q).max_budget
}

#[test]
fn expiry_reason_determines_the_next_budget() {
    // The minimum is 512 sectors, the maximum 16384.
    for (reason, b, in_flight, want) in [
        (Reason::TooIdle, 1000, true, 2000),
        (Reason::TooIdle, 9000, true, 16_384),
        (Reason::TooIdle, 2561, false, 2561 - 2048),
        (Reason::TooIdle, 2560, false, 512),
        (Reason::Timeout, 1000, true, 2000),
        (Reason::Timeout, 9000, true, 16_384),
        (Reason::Exhausted, 1000, true, 4000),
        (Reason::Exhausted, 4097, true, 16_384),
        (Reason::NoMore, 9000, true, 9000),
        (Reason::Preempted, 9000, true, 9000),
    ] {
        let got = next(reason, b, in_flight);
        assert_eq!(got, want, "{reason:?} {b} {in_flight}");
    }
}

/// Ends a slot of `us` with `served` of `budget` sectors. Returns the peak rate and whether the
/// queue was charged its whole budget.
fn slot(us: u64, served: u64, budget: u64, reason: Reason) -> (u64, bool) {
    let (mut b, q) = in_service();
    let e = b.s.core.ent_mut(q);
    (e.budget, e.service) = (budget, served);
    b.cx.log.events.clear();
    b.pass_us(us);
    b.s.expire(&mut b.cx, q, false, reason);
    let all = format!("charged {budget}");
    let full = b.cx.log.events.iter().any(|e| e.detail.ends_with(&all));
    (b.s.peak_rate, full)
}

#[test]
fn the_peak_rate_is_learnt_from_slots_above_20_ms() {
    // The initial rate is that of a fast rotating device, 17415. A slot with a higher rate moves it
    // by an eighth.
    let rate = |us, served, reason| slot(us, served, 16_384, reason).0;
    let fast = (16_000 << 16) / 20_001;
    assert_eq!(
        rate(20_001, 16_000, Reason::NoMore),
        17_415 * 7 / 8 + fast / 8
    );
    assert_eq!(rate(20_000, 16_000, Reason::NoMore), 17_415);
    // A slot with a lower rate counts only if it timed out.
    let slow = (1000 << 16) / 100_000;
    assert_eq!(rate(100_000, 1000, Reason::NoMore), 17_415);
    assert_eq!(
        rate(100_000, 1000, Reason::Timeout),
        17_415 * 7 / 8 + slow / 8
    );
}

/// The comparison of the original is reversed: fast queues count as "slow" and are charged their
/// whole budget.
#[test]
fn a_fast_queue_is_charged_its_whole_budget() {
    let pays = |us, served, budget| slot(us, served, budget, Reason::NoMore).1;
    // At this rate, 125 ms would serve more than 4/3 of the budget: 16000 sectors of 12000.
    assert!(pays(10_000, 1281, 12_000));
    assert!(!pays(10_000, 1279, 12_000));
    assert!(!pays(99, 1281, 12_000), "shorter than 0.1 ms");
    assert!(pays(100, 1281, 12_000));
    // Budgets up to an eighth of the maximum are never slow.
    assert!(!pays(10_000, 2000, 2048) && pays(10_000, 2000, 2049));
}

#[test]
fn timeout_is_charged_the_whole_budget_if_a_third_is_left() {
    let pays = |served| slot(10_000, served, 1500, Reason::Timeout).1;
    assert!(pays(1000) && !pays(1001));
}

#[test]
fn queue_that_idled_for_four_fifths_of_its_budget_is_not_io_bound() {
    for (served, bound) in [(200, false), (201, true)] {
        let (mut b, q) = in_service();
        let e = b.s.core.ent_mut(q);
        (e.budget, e.service) = (1000, served);
        assert!(b.s.queue(q).io_bound);
        b.s.expire(&mut b.cx, q, false, Reason::TooIdle);
        assert_eq!(b.s.queue(q).io_bound, bound, "{served}");
    }
}

/// The speed of a rotating device changes at the mean of the two reference rates: 9475.
#[test]
fn a_device_is_slow_below_the_mean_of_the_reference_rates() {
    // A slot of 64 s adds one unit for each 8 x 65536/64000000 sectors; here it adds 1.
    let served = 8 * 64_000_000 / 65_536 + 1;
    for (before, slow_before, slow) in [
        (10_828, false, false),
        (10_827, false, true),
        (10_828, true, true),
        (10_829, true, false),
    ] {
        let (mut b, q) = in_service();
        (b.s.peak_rate, b.s.slow_device) = (before, slow_before);
        b.s.peak_samples = PEAK_SAMPLES;
        let e = b.s.core.ent_mut(q);
        (e.budget, e.service) = (16_384, served);
        b.pass_us(64_000_000);
        b.s.expire(&mut b.cx, q, false, Reason::Timeout);
        let rate = b.s.peak_rate;
        assert_eq!(rate, before * 7 / 8 + 1);
        assert_eq!(b.s.slow_device, slow, "{before} to {rate}");
    }
}

#[test]
fn a_queue_is_io_bound_again_after_120_requests_in_time() {
    // Requests in time before this one, how late this one is (slice_idle is 8), and both results.
    for (before, late_j, count, bound) in [
        (118, 7, 119, false),
        (119, 7, 120, true),
        (119, 8, 0, false),
    ] {
        let (mut b, q) = in_service();
        for rq in b.take_all() {
            b.complete(rq);
        }
        assert!(b.fire(), "the idle timer");
        let ioc = b.s.queue(q).owner.expect("its process");
        b.s.core.procs[ioc].own.last_end_j = b.cx.jiffies() - late_j;
        let x = b.s.queue_mut(q);
        (x.io_bound, x.own.in_time) = (false, before);
        b.insert(1, Op::Read, 1016);
        let x = b.s.queue(q);
        assert_eq!(
            (x.own.in_time, x.io_bound),
            (count, bound),
            "{before} {late_j}"
        );
    }
}
