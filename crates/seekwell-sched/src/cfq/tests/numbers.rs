//! Means, distances and weights.

use super::*;
use crate::cfq::numbers::{SeekMean, ThinkTime};

#[test]
fn think_time_is_big_above_the_limit() {
    // The mean of equal times becomes that time after many samples. The first means are too high.
    let mut t = ThinkTime::starting(0);
    for _ in 0..300 {
        t.update(8, 8);
    }
    assert_eq!(t.mean(), Some(8));
    assert!(!t.big(8) && t.big(7));
}

#[test]
fn seek_distance_is_a_decaying_mean_of_capped_distances() {
    let mut m = SeekMean::default();
    let (mut samples, mut total, mut mean) = (0u64, 0, 0);
    let distances = [100, 5_000_000, 50, 4_000_000, 9_000_000];
    for d in distances.into_iter().chain(1..40) {
        let room = if samples <= 60 { 2_097_152 } else { 131_072 };
        m.last_pos = Sector(0);
        m.update(Sector(d));
        samples = (7 * samples + 256) / 8;
        total = (7 * total + 256 * d.min(4 * mean + room)) / 8;
        mean = (total + samples / 2) / samples;
        assert_eq!(m.mean(), mean, "{d}");
        assert_eq!(m.valid(), samples > 80, "{d}");
    }
}

#[test]
fn backward_distances_count_double_up_to_16_mib() {
    let mut b = bench(Version::V4_0, &[BE4]);
    let pos = 1_000_000;
    let mut first = |x: u64, y: u64| {
        let (rx, ry) = (b.insert(0, x), b.insert(0, y));
        let by = Choice {
            boost: Flags::PRIO,
            pos: Sector(pos),
        };
        let [one, two] =
            [(rx, ry), (ry, rx)].map(|(a, c)| choose(&b.cx.rqs, &b.s.set, by, Some(a), Some(c)));
        assert_eq!(one, two, "the order of the arguments does not matter");
        b.cx.rqs[one.expect("one of them")].sector.0
    };
    assert_eq!(first(pos + 100, pos - 50), pos + 100, "equal: the higher");
    assert_eq!(first(pos + 101, pos - 50), pos - 50);
    assert_eq!(first(pos + 99, pos - 50), pos + 99);
    assert_eq!(first(pos, pos - 1), pos);
    // 16384 KiB are 32768 sectors.
    assert_eq!(first(pos + 900_000, pos - 32_768), pos - 32_768);
    assert_eq!(first(pos + 900_001, pos - 32_769), pos + 900_001);
}

#[test]
fn weights_are_kept_between_10_and_1000() {
    for (configured, want) in [
        (None, 500),
        (Some(9), 10),
        (Some(10), 10),
        (Some(1000), 1000),
        (Some(1001), 1000),
    ] {
        let mut cx = cx(Version::V4_0, 1000);
        let group = Cgroup {
            parent: CgroupId::ROOT,
            weight: configured,
            leaf_weight: configured,
            online: true,
        };
        cx.cgroups.insert(CgroupId(1), group);
        assert_eq!(Cfq::weights(&cx, CgroupId(1)), (want, want));
    }
}

#[test]
fn a_queue_is_seeky_with_more_than_four_far_requests_of_32() {
    let mut b = bench(Version::V4_0, &[BE4]);
    let rq = b.insert(0, 1_000_000);
    let q = b.s.queue_of(rq);
    for (ones, want) in [(4, false), (5, true)] {
        b.s.queue_mut(q).seek_history = (1 << ones) - 1;
        assert_eq!(b.s.queue(q).seeky(), want, "{ones}");
    }
    // A request is far if it starts more than 800 sectors from the end of the last one.
    for (distance, far) in [(800, 0), (801, 1)] {
        let mut b = bench(Version::V4_0, &[BE4]);
        b.insert(0, 1_000_000);
        let rq = b.insert(0, 1_000_008 + distance);
        let q = b.s.queue_of(rq);
        assert_eq!(b.s.queue(q).seek_history, far, "{distance}");
    }
}

/// The average number of queues moves at each evaluation.
#[test]
fn slices_shrink_with_the_average_number_of_queues() {
    let contexts = [BE4; 8];
    let mut b = bench(Version::V4_0, &contexts);
    for who in 0..8 {
        b.insert(who, 1_000_000 * (1 + who as u64));
    }
    let rq = b.take().expect("a request");
    let q = b.s.queue_of(rq);
    // The averages are 6, 8 (rounded) and 8 queues. The target latency is 300 ms, and a slice is
    // 100 ms.
    assert_eq!(b.s.scaled_slice(q), 100 * 300 / 600);
    assert_eq!(b.s.scaled_slice(q), 100 * 300 / 800);
    // A slice is not shorter than twice slice_idle.
    b.s.store(&mut b.cx, "target_latency", "50")
        .expect("a tunable");
    assert_eq!(b.s.scaled_slice(q), 16);
    // If a round fits into the target latency exactly, the slice is not shortened.
    b.s.store(&mut b.cx, "target_latency", "800")
        .expect("a tunable");
    assert_eq!(b.s.scaled_slice(q), 100);
    b.s.store(&mut b.cx, "low_latency", "0").expect("a tunable");
    b.s.store(&mut b.cx, "target_latency", "50")
        .expect("a tunable");
    assert_eq!(b.s.scaled_slice(q), 100);
}
