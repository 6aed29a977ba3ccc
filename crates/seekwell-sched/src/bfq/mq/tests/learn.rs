//! Measurement of the device.

use super::*;

/// The value of `hw_tag` after each of `completions` completions, if `depth` requests are always in
/// the driver and many are queued.
fn hw_tag_after(depth: usize, completions: usize) -> Vec<i8> {
    let mut b = bench(false);
    let (mut sector, mut flying) = (0, Vec::new());
    let mut seen = Vec::new();
    for _ in 0..completions {
        while b.s.core.queued < 12 {
            sector += 8;
            b.insert(1, Op::Read, sector);
        }
        while flying.len() < depth {
            flying.push(b.take().expect("a request"));
        }
        b.complete(flying.remove(0));
        seen.push(b.s.core.hw_tag);
    }
    seen
}

#[test]
fn the_33rd_sample_decides_whether_the_device_queues_commands() {
    for (depth, want) in [(1, 0), (3, 0), (4, 1), (8, 1)] {
        let seen = hw_tag_after(depth, 40);
        assert!(seen[..32].iter().all(|t| *t == -1), "depth {depth}");
        assert!(seen[32..].iter().all(|t| *t == want), "depth {depth}");
    }
}

/// Reference rate of a rotational device times 2/3: the initial peak rate.
const INITIAL: u64 = 9333;
/// A gap between dispatches with which 100 dispatches span just over one second, ns.
const HUNDREDTH: u64 = 10_101_011;

/// Dispatches `count` requests of `sectors`, `gap_ns` apart. After the first request, `seeks`
/// requests are far from their predecessor. Each completes right before the next dispatch.
fn dispatches(b: &mut Bench<Bfq>, count: u64, sectors: u32, gap_ns: u64, seeks: u64) {
    // The first completion ever ends an observation, so that the next dispatch starts another.
    b.insert(1, Op::Read, 1000);
    let first = b.take().expect("a request");
    b.complete(first);
    let mut sector = 1_000_000;
    for i in 0..count {
        sector += u64::from(sectors) + if i > 0 && i <= seeks { 100_000 } else { 0 };
        b.insert_sized(1, Op::Read, sector, sectors);
        let rq = b.take().expect("a request");
        let last = i + 1 == count;
        b.pass_ns(if last { 1_000_000 } else { gap_ns });
        b.complete(rq);
    }
}

/// The peak rate after one observation that lasts a second.
fn peak_after(sectors: u32, seeks: u64) -> u64 {
    let mut b = bench(true);
    dispatches(&mut b, 100, sectors, HUNDREDTH, seeks);
    b.s.peak_rate
}

#[test]
fn the_peak_rate_moves_by_the_sequential_share_of_a_second() {
    assert_eq!(bench(true).s.peak_rate, INITIAL);
    // 200000 sectors per second are a rate of 13107. With 99 of 100 requests sequential, the weight
    // is 8 and the divisor is 2.
    assert_eq!(peak_after(2000, 0), 4666 + 6553);
    // If all requests are seeks but faster than the peak, the weight is 0 and the divisor is 10.
    assert_eq!(peak_after(2000, 99), 9333 * 9 / 10 + 13107 / 10);
    // An observation that is slower than the peak counts only if three quarters of its requests are
    // sequential.
    assert_eq!(peak_after(1000, 99), INITIAL);
    assert_eq!(peak_after(1000, 25), INITIAL);
    // With 75 of 100 requests sequential, the weight is 6 and the divisor is 4.
    assert_eq!(peak_after(1000, 24), 9333 * 3 / 4 + 6553 / 4);
}

#[test]
fn rates_above_20_sectors_per_us_are_ignored() {
    assert_eq!(peak_after(200_000, 0), 4666 + (20 << 16) / 2);
    assert_eq!(peak_after(200_001, 0), INITIAL);
}

#[test]
fn new_peak_rate_tunes_the_budget_unless_the_user_set_a_budget() {
    let mut b = bench(true);
    dispatches(&mut b, 100, 2000, HUNDREDTH, 0);
    assert_eq!(b.s.core.tuned_budget, (11_219 * 1000 * 125) >> 16);
    let mut b = bench(true);
    b.set("max_budget", "5000");
    dispatches(&mut b, 100, 2000, HUNDREDTH, 0);
    assert_eq!((b.s.peak_rate, b.s.core.tuned_budget), (11_219, 5000));
}

/// The peak rate after an observation that a pause ends.
fn peak_after_pause(count: u64, gap_us: u64, pause_us: u64) -> u64 {
    let mut b = bench(true);
    dispatches(&mut b, count, 2000, gap_us * 1000, 0);
    b.pass_us(pause_us - 1000);
    b.insert(1, Op::Read, 1_000_000_000);
    b.take().expect("a request");
    b.s.peak_rate
}

#[test]
fn rate_observation_needs_32_samples_and_300_ms_before_the_pause() {
    assert!(peak_after_pause(32, 10_000, 100_001) > INITIAL);
    assert_eq!(peak_after_pause(32, 10_000, 100_000), INITIAL, "no pause");
    assert_eq!(peak_after_pause(31, 10_000, 100_001), INITIAL);
    assert_eq!(peak_after_pause(31, 10_400, 100_001), INITIAL);
    assert_eq!(peak_after_pause(32, 9_677, 100_001), INITIAL, "299.987 ms");
    assert!(peak_after_pause(33, 9_375, 100_001) > INITIAL, "300 ms");
}

/// Returns the peak rate after 40 requests of 2000 sectors and one request of 8 sectors that takes
/// `us`.
fn peak_after_late_completion(us: u64) -> u64 {
    let mut b = bench(true);
    dispatches(&mut b, 40, 2000, 10_000_000, 0);
    b.insert_sized(1, Op::Read, 500_000_000, 8);
    let rq = b.take().expect("a request");
    b.pass_us(us);
    b.complete(rq);
    b.s.peak_rate
}

#[test]
fn late_completion_ends_the_rate_observation() {
    // The largest recent request has 2000 sectors. In 2.048 s, this is exactly 2^-10 sectors/us,
    // which is not below the limit.
    assert_eq!(peak_after_late_completion(2_048_000), INITIAL);
    assert!(peak_after_late_completion(2_048_001) != INITIAL);
}
