//! Thresholds of the latency model.

use super::*;

const RULES: Rules = Rules {
    shrink_at_kreqs: 5,
    shrink_at_gbytes: 1,
    shrink_resist: 2,
    narrow_buckets: true,
    base_per_sample: false,
};
const BASE: u64 = 100_000;

/// A model whose base was set at time 0, and a time before its next update is due.
fn model() -> (Model, Instant) {
    let start = Instant::at_us(0);
    let mut m = Model::new(start);
    m.sideload(BASE, 0, start);
    (m, Instant::at_us(1000))
}

#[test]
fn bucket_widths_are_a_20th_a_10th_and_a_third_of_the_prediction() {
    for (percent, want) in [
        (199, 39),
        (200, 40),
        (250, 45),
        (499, 63),
        (500, 55),
        (700, 61),
    ] {
        assert_eq!(bucket(percent, 100, false), want, "{percent}");
    }
    assert_eq!(bucket(100_000, 100, false), 63);
}

#[test]
fn requests_up_to_4_kib_measure_the_base() {
    let (mut m, now) = model();
    m.feed(&RULES, now, 4096, BASE, BASE, 1);
    assert_eq!((m.small[20].weight, m.large[20].weight), (1, 0));
    m.feed(&RULES, now, 4097, BASE, BASE, 1);
    assert_eq!((m.small[20].weight, m.large[20].weight), (1, 1));
    // Without a base or a prediction, a large request gives no sample.
    let mut m = Model::new(now);
    m.feed(&RULES, now, 4097, BASE, BASE, 1);
    let (mut with_base, _) = model();
    with_base.feed(&RULES, now, 4097, BASE, 0, 1);
    for m in [m, with_base] {
        assert!(m.large.iter().all(|b| b.weight == 0));
    }
}

#[test]
fn early_updates_need_1024_samples() {
    for (samples, updated) in [(1023, false), (1024, true)] {
        let (mut m, now) = model();
        m.feed(&RULES, now, 4096, 2 * BASE, BASE, samples);
        m.update(&RULES, now);
        assert_eq!(m.base > BASE, updated, "{samples} small");
        // This model starts with a slope, so an early update needs the same number of large
        // samples.
        let (mut m, now) = model();
        m.sideload(BASE, 1000, Instant::at_us(0));
        m.feed(&RULES, now, 8192, 5 * BASE, BASE, samples);
        m.update(&RULES, now);
        assert_eq!(m.slope != 1000, updated, "{samples} large");
    }
}

#[test]
fn old_samples_are_reduced_by_a_quarter() {
    for (kib, left) in [((1 << 20) - 1, (1 << 20) - 1), (1 << 20, 3 << 18)] {
        let (mut m, now) = model();
        m.large_bytes = kib << 10;
        m.feed(&RULES, now, 8192, 2 * BASE, BASE, 1);
        m.update(&RULES, now);
        assert_eq!(m.large_bytes, (left << 10) + 8192, "{kib} KiB");
    }
    for (count, left) in [(4999, 4999), (5000, 3750)] {
        let (mut m, _) = model();
        m.small_count = count;
        m.feed(&RULES, Instant::at_us(0), 4096, BASE, BASE, 100);
        m.update(&RULES, Instant::at_us(2_000_000));
        assert_eq!(m.small_count, left + 99, "{count} requests");
    }
}
