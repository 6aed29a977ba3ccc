//! Statistics of a queue at the insertion of a request.

use super::*;

/// For each of `times_us`, a task waits this long after its last completion and then inserts a
/// request. Returns the samples, the mean think time and the verdict "short" after each insertion.
fn think_time_statistics(times_us: &[u64]) -> Vec<(u64, u64, bool)> {
    let mut b = bench(true);
    let mut seen = Vec::new();
    for (i, us) in times_us.iter().enumerate() {
        b.pass_us(*us);
        b.insert(1, Op::Read, 1000 + 8 * i as u64);
        let q = b.s.core.queue_of(RqId(0)).expect("its queue");
        let t = &b.s.queue(q).own.think;
        seen.push((t.samples, t.mean, b.s.queue(q).short_think));
        let rq = b.take().expect("the request");
        b.complete(rq);
        // The device idles until the timer fires, so that the queue is not busy. The pause begins
        // after that.
        b.fire();
        let now = b.cx.now().0;
        b.s.queue_mut(q).own.think.last_end = now;
    }
    seen
}

/// The first sample of a new queue is 16 ms. The task counts as slow if the mean of three or more
/// samples is above 4 ms.
#[test]
fn the_mean_think_time_counts_from_the_third_sample_on() {
    let ms16 = 256 * 16_000_000u64 / 8;
    let second = ms16 * 7 / 8;
    let third = second * 7 / 8;
    let fourth = third * 7 / 8;
    let want = [
        (32, (ms16 + 128) / 32, true),
        (60, (second + 128) / 60, true),
        (84, (third + 128) / 84, false),
        (105, (fourth + 128) / 105, true),
    ];
    assert_eq!(think_time_statistics(&[0, 0, 0, 0]), want);
    // A time above 16 ms counts as 16 ms.
    let capped = (second + ms16 + 128) / 60;
    assert_eq!(think_time_statistics(&[0, 16_000])[1].1, capped);
    assert_eq!(think_time_statistics(&[0, 90_000])[1].1, capped);
    assert!(think_time_statistics(&[0, 15_000])[1].1 < capped);
}

/// The newest bit of the seek history of a queue whose last request ended at 1000000.
fn seek(rotational: bool, sector: u64, sectors: u32) -> bool {
    let mut b = bench(rotational);
    b.insert(1, Op::Read, 999_992);
    let rq = b.insert_sized(1, Op::Read, sector, sectors);
    let q = b.s.core.queue_of(rq).expect("its queue");
    b.s.queue(q).own.history & 1 == 1
}

#[test]
fn a_distance_above_800_sectors_is_a_seek() {
    assert!(!seek(true, 1_000_800, 8) && seek(true, 1_000_801, 8));
    assert!(!seek(true, 999_200, 8) && seek(true, 999_199, 8));
    assert!(seek(true, 9_000_000, 64));
    // On flash, only requests below 64 sectors count as seeks.
    assert!(seek(false, 9_000_000, 63) && !seek(false, 9_000_000, 64));
}

#[test]
fn a_queue_is_seeky_if_more_than_19_of_32_requests_were_seeks() {
    let mut b = bench(true);
    let rq = b.insert(1, Op::Read, 1000);
    let q = b.s.core.queue_of(rq).expect("its queue");
    for (ones, seeky, totally) in [(19, false, false), (20, true, false), (32, true, true)] {
        b.s.queue_mut(q).own.history = ((1u64 << ones) - 1) as u32;
        assert_eq!(b.s.seeky(q), seeky, "{ones}");
        assert_eq!(b.s.totally_seeky(q), totally, "{ones}");
    }
}

/// Returns whether a queue that was idle for `idle_ns` of the last `elapsed_ns` is I/O-bound. Also
/// returns the length of the observation after that.
fn io_bound(idle_ns: u64, elapsed_ns: u64) -> (bool, u64) {
    let mut b = bench(true);
    let rq = b.insert(1, Op::Read, 1000);
    let q = b.s.core.queue_of(rq).expect("its queue");
    let now = b.cx.now().0;
    let x = &mut b.s.queue_mut(q).own;
    (x.io_start, x.tot_idle) = (now - elapsed_ns, idle_ns);
    b.insert(1, Op::Read, 1008);
    let x = b.s.queue(q);
    (x.io_bound, now - x.own.io_start)
}

#[test]
fn a_queue_is_io_bound_if_it_is_idle_for_at_most_a_fifth_of_the_time() {
    assert_eq!(io_bound(20_000_000, 100_000_000), (true, 100_000_000));
    assert_eq!(io_bound(20_000_001, 100_000_000), (false, 100_000_000));
    // When an observation exceeds 200 ms, half of it is forgotten.
    assert_eq!(io_bound(0, 200_000_000), (true, 200_000_000));
    assert_eq!(io_bound(0, 200_000_002), (true, 100_000_001));
}

/// The size of the burst after the creation of a second queue.
fn burst_after(ms: u64) -> u32 {
    let mut b = bench(true);
    b.insert(1, Op::Read, 1000);
    assert_eq!(b.s.core.burst_size, 1);
    b.pass_us(ms * 1000);
    b.insert(2, Op::Read, 9_000_000);
    b.s.core.burst_size
}

#[test]
fn a_burst_ends_180_ms_after_the_last_creation() {
    assert_eq!(burst_after(180), 2);
    assert_eq!(burst_after(181), 0, "a new burst");
}

#[test]
fn the_eighth_creation_makes_a_burst_large() {
    let mut b = bench(true);
    for task in 1..=9 {
        let rq = b.insert(task, Op::Read, 1_000_000 * u64::from(task));
        let q = b.s.core.queue_of(rq).expect("its queue");
        assert_eq!(b.s.core.large_burst, task >= 8, "{task}");
        assert_eq!(b.s.queue(q).in_large_burst, task >= 8, "{task}");
    }
}
