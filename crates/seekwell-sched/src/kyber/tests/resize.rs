//! Percentiles, the decisions about pool sizes, and limits.

use super::*;
use seekwell_core::Nanos;

/// Returns the size of the read pool after a window, if it was `before`. An entry of `reads` has a
/// number of requests, their total latency and their latency in the device. Latencies are in
/// quarters of the target.
fn sizes(reads: &[(u64, u64, u64)], before: u32) -> u32 {
    let (mut cx, mut k) = queue();
    k.pools[READ].size = before;
    let quarter = k.target_ns[READ] / 4;
    for (count, total, io) in reads {
        for _ in 0..*count {
            let (total, io) = (total * quarter, io * quarter);
            k.histograms.add(READ, total, io, k.target_ns[READ]);
        }
    }
    k.timer(&mut cx, 0);
    k.pools[READ].size
}

/// The device is slow if more than a tenth of the requests exceed the target in the device.
#[test]
fn device_is_slow_if_its_90th_percentile_exceeds_the_target() {
    // The total latencies are in bucket 0, so that a slow device quarters the pool.
    assert_eq!(sizes(&[(450, 1, 4), (50, 1, 5)], 256), 256);
    assert_eq!(sizes(&[(449, 1, 4), (51, 1, 5)], 256), 64);
    // Of 505 requests the 455th decides, because 454.5 is rounded up.
    assert_eq!(sizes(&[(455, 1, 4), (50, 1, 5)], 256), 256);
    assert_eq!(sizes(&[(454, 1, 4), (51, 1, 5)], 256), 64);
}

#[test]
fn pool_size_follows_the_99th_percentile_of_total_latency() {
    // A good device: the pool grows only if the target is exceeded (bucket 4 and above).
    assert_eq!(sizes(&[(495, 4, 1), (5, 5, 1)], 40), 40);
    assert_eq!(sizes(&[(494, 4, 1), (6, 5, 1)], 40), 50);
    // A slow device: buckets 0 to 7 give 1/4, 2/4, ... 8/4 of the size.
    for bucket in 0..8 {
        let want = 40 * (bucket as u32 + 1) / 4;
        assert_eq!(sizes(&[(500, bucket + 1, 5)], 40), want, "bucket {bucket}");
    }
    assert_eq!(sizes(&[(500, 1, 5)], 3), 1, "at least one token");
    assert_eq!(sizes(&[(500, 8, 5)], 200), 256, "at most the maximum");
}

#[test]
fn targets_are_2_and_10_ms_and_5_s() {
    let (_, k) = queue();
    assert_eq!(k.target_ns, [2_000_000, 10_000_000, 5_000_000_000]);
}

#[test]
fn async_requests_get_three_quarters_of_the_tags() {
    // The limit of 6.1 counts per word of the tag map.
    for (tags, per_word, want) in [(64, false, 48), (256, false, 192), (256, true, 192)] {
        let mut facts = QueueFacts::example(Era::Mq);
        facts.nr_requests = tags;
        let cx = Cx::new(facts, TickClock::new(1000));
        let k = Kyber::new(&cx, per_word);
        assert_eq!(k.async_depth, want, "{tags} {per_word}");
    }
}

#[test]
fn resize_timer_runs_100_ms_after_the_first_completion() {
    let (mut cx, mut k) = queue();
    for (at_ms, due_ms) in [(0, 100), (50, 100), (99, 100)] {
        let start = Instant::START + Nanos::from_ms(at_ms);
        cx.set_now(start);
        let rq = insert(&mut cx, &mut k, at_ms, Op::Read);
        let taken = call(&mut cx, &mut k);
        assert_eq!(taken, Some(rq));
        cx.rqs[rq].issue = cx.now();
        end(&mut cx, &mut k, rq);
        let due = cx.next_timer().expect("the timer").0;
        assert_eq!(due, Instant::START + Nanos::from_ms(due_ms));
    }
}
