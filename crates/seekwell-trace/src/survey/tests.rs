//! Tests of surveys. The events are in the notation of blkparse, and the results are compared with
//! those of btt.

use super::course::CourseSum;
use super::heat::HeatSum;
use super::seeks::SeekSum;
use super::{Phase, Survey, survey};
use crate::options::ReadOptions;
use crate::reader::from_reader;
use std::io::Cursor;

fn survey_of(bytes: Vec<u8>, options: &ReadOptions) -> Survey {
    let options = ReadOptions {
        keep_events: true,
        ..options.clone()
    };
    let mut reader =
        from_reader("folder/mem", Cursor::new(bytes), None, &options).expect("a trace");
    survey(&mut reader, &options, None, |_| true).expect("it is read")
}

/// Makes the survey of lines of the form `us ACTION RWBS rest`.
fn text(lines: &str) -> Survey {
    let mut out = String::new();
    for line in lines.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (us, rest) = line.split_once(' ').expect("a time");
        let us: u64 = us.parse().expect("us");
        let (s, ns) = (us / 1_000_000, us % 1_000_000 * 1000);
        out += &format!("  8,16   0        1 {s:5}.{ns:09}   697 {rest}\n");
    }
    survey_of(out.into_bytes(), &ReadOptions::default())
}

/// Returns minimum, mean and maximum of a phase in us, and the number of durations.
fn phase(s: &Survey, name: &str) -> (f64, f64, f64, u64) {
    let Some(Phase { spread: p, .. }) = s.phases.iter().find(|p| p.name == name) else {
        return (0.0, 0.0, 0.0, 0);
    };
    let us = |ns: f64| (ns / 10.0).round() / 100.0;
    (us(p.min_ns as f64), us(p.mean_ns), us(p.max_ns as f64), p.n)
}

#[test]
fn plugged_bio_waits_from_its_merge_on() {
    let s = text(
        "1 Q R 100 + 8 [a]
         2 G R 100 + 8 [a]
         3 Q R 108 + 8 [a]
         4 M R 108 + 8 [a]
         5 I R 100 + 16 [a]
         6 Q R 116 + 8 [a]
         8 M R 116 + 8 [a]
         12 D R 100 + 24 [a]
         30 C R 100 + 24 [0]",
    );
    assert_eq!(phase(&s, "Q2Q"), (2.0, 2.5, 3.0, 2));
    assert_eq!(phase(&s, "Q2G"), (1.0, 1.0, 1.0, 1));
    assert_eq!(phase(&s, "G2I"), (3.0, 3.0, 3.0, 1));
    assert_eq!(phase(&s, "Q2M"), (1.0, 1.5, 2.0, 2));
    assert_eq!(phase(&s, "I2D"), (7.0, 7.0, 7.0, 1));
    assert_eq!(phase(&s, "M2D"), (4.0, 6.0, 8.0, 2));
    assert_eq!(phase(&s, "D2C"), (18.0, 18.0, 18.0, 3));
    assert_eq!(phase(&s, "Q2C"), (24.0, 26.67, 29.0, 3));
    assert_eq!((s.merges.queued, s.merges.issued, s.merges.back), (3, 1, 2));
    assert_eq!((s.merges.issued_max, s.merges.issued_sectors), (24, 24));
    let issued = s.seeks_issued.expect("told");
    assert_eq!((issued.n, issued.mean, issued.sequential), (1, 100.0, 0));
    assert_eq!((s.seeks_queued.n, s.seeks_queued.sequential), (3, 2));
    assert_eq!(
        (s.name.as_str(), s.format.as_str(), s.events),
        ("mem", "blkparse", true)
    );
}

#[test]
fn merged_request_counts_as_inserted() {
    let s = text(
        "1 Q R 100 + 8 [a]
         2 G R 100 + 8 [a]
         3 I R 100 + 8 [a]
         4 Q R 116 + 8 [a]
         6 G R 116 + 8 [a]
         7 I R 116 + 8 [a]
         8 Q R 108 + 8 [a]
         10 M R 108 + 8 [a]
         10 M R 116 + 8 [a]
         20 D R 100 + 24 [a]
         40 C R 100 + 24 [0]",
    );
    assert_eq!(phase(&s, "Q2M"), (2.0, 4.0, 6.0, 2));
    assert_eq!(phase(&s, "I2D"), (13.0, 15.0, 17.0, 2));
    assert_eq!(phase(&s, "M2D"), (10.0, 10.0, 10.0, 1));
    assert_eq!(phase(&s, "Q2C"), (32.0, 35.67, 39.0, 3));
}

#[test]
fn requeued_request_counts_its_way_to_the_driver_again() {
    let s = text(
        "1000 Q R 30000 + 8 [a]
         1001 G R 30000 + 8 [a]
         1003 I R 30000 + 8 [a]
         1010 D R 30000 + 8 [a]
         1015 R R 30000 + 8 [0]
         1030 D R 30000 + 8 [a]
         1100 C R 30000 + 8 [0]",
    );
    assert_eq!(phase(&s, "I2D"), (7.0, 17.0, 27.0, 2));
    assert_eq!(phase(&s, "D2C"), (70.0, 70.0, 70.0, 1));
    assert_eq!(phase(&s, "Q2C"), (100.0, 100.0, 100.0, 1));
    assert_eq!((s.merges.requeued, s.merges.issued), (1, 2));
    assert_eq!((s.depth.in_device_max, s.unfinished), (1, 0));
}

#[test]
fn split_requests_complete_with_their_last_sector() {
    let s = text(
        "0 Q R 100 + 64 [a]
         1 G R 100 + 64 [a]
         2 I R 100 + 32 [a]
         3 I R 132 + 32 [a]
         4 D R 100 + 32 [a]
         5 D R 132 + 32 [a]
         10 C R 132 + 32 [0]
         30 C R 100 + 20 [0]
         40 C R 120 + 12 [0]",
    );
    assert_eq!(phase(&s, "Q2C"), (40.0, 40.0, 40.0, 1));
    assert_eq!(phase(&s, "D2C"), (36.0, 36.0, 36.0, 1));
    assert_eq!((s.unfinished, s.orphans), (0, 0));
}

#[test]
fn older_of_two_requests_at_one_sector_is_matched_first() {
    let s = text(
        "1 Q R 100 + 8 [a]
         2 G R 100 + 8 [a]
         3 I R 100 + 8 [a]
         4 Q R 100 + 8 [a]
         6 G R 100 + 8 [a]
         9 I R 100 + 8 [a]
         11 D R 100 + 8 [a]
         20 C R 100 + 8 [0]
         30 D R 100 + 8 [a]
         50 C R 100 + 8 [0]",
    );
    assert_eq!(phase(&s, "Q2G"), (1.0, 1.5, 2.0, 2));
    assert_eq!(phase(&s, "I2D"), (8.0, 14.5, 21.0, 2));
    assert_eq!(phase(&s, "Q2C"), (19.0, 32.5, 46.0, 2));
    assert_eq!(s.depth.at_queue, 0.5);
}

#[test]
fn flushes_are_counted_separately_and_unfinished_requests_reported() {
    let s = text(
        "1 Q FWS 0 [a]
         2 D FN 0 [a]
         40 C FN 0 [0]
         41 C FWS 0 [0]
         100 Q W 500 + 8 [a]
         110 D W 500 + 8 [a]
         120 C W 900 + 8 [0]",
    );
    assert_eq!(phase(&s, "Q2C").3, 0);
    let flush = s.kinds.iter().find(|k| k.kind == "flush").expect("one");
    assert_eq!(flush.latency.map(|l| (l.n, l.max_ns)), Some((1, 40_000)));
    assert_eq!((s.unfinished, s.orphans), (1, 1));
    assert_eq!(s.seeks_queued.n, 1);
}

#[test]
fn trace_without_queue_events_has_only_driver_times() {
    let bytes =
        b"  8,16 0 1 0.000001000 9 D R 100 + 8 [a]\n  8,16 0 2 0.000005000 0 C R 100 + 8 [0]\n";
    let issue = ReadOptions {
        stream: crate::options::Stream::Issue,
        ..ReadOptions::default()
    };
    let s = survey_of(bytes.to_vec(), &issue);
    assert_eq!(phase(&s, "D2C"), (4.0, 4.0, 4.0, 1));
    assert_eq!(phase(&s, "Q2D").3, 0);
}

#[test]
fn phases_are_computed_from_the_known_times_of_a_record() {
    let csv = "t_ns,op,sector,sectors,pid,t_insert,t_issue,t_complete\n\
               0,R,0,8,5,1000,3000,9000\n2000,W,8,8,5,,4000,6000\n5000,R,100,8,6,,,\n";
    let s = survey_of(csv.as_bytes().to_vec(), &ReadOptions::default());
    assert_eq!(phase(&s, "Q2I"), (1.0, 1.0, 1.0, 1));
    assert_eq!(phase(&s, "I2D"), (2.0, 2.0, 2.0, 1));
    assert_eq!(phase(&s, "Q2D"), (2.0, 2.0, 2.0, 1));
    assert_eq!(phase(&s, "D2C"), (2.0, 4.0, 6.0, 2));
    assert_eq!((s.unfinished, s.events, s.merges.issued), (1, false, 2));
    assert_eq!(s.tasks.len(), 2);
    assert_eq!((s.tasks[0].pid, s.tasks[0].sequential), (Some(5), 1));
    assert_eq!(s.depth.in_device_max, 2);
}

#[test]
fn window_and_process_filters_select_events() {
    let lines = "  8,16 0 1 0.000000000 1 Q R 0 + 8 [a]\n  8,16 0 1 0.000010000 1 Q R 8 + 8 [a]\n\
                 \x20 8,16 0 1 0.000020000 2 Q R 16 + 8 [b]\n  8,16 0 1 0.000030000 1 Q R 24 + 8 [a]\n";
    let window = ReadOptions {
        from_ns: 10_000,
        until_ns: Some(30_000),
        ..ReadOptions::default()
    };
    let s = survey_of(lines.as_bytes().to_vec(), &window);
    assert_eq!((s.merges.queued, s.span_ns), (2, 10_000));
    let one = ReadOptions {
        pids: [1].into(),
        ..ReadOptions::default()
    };
    assert_eq!(survey_of(lines.as_bytes().to_vec(), &one).merges.queued, 3);
}

#[test]
fn seek_distances_equal_those_of_btt() {
    let mut s = SeekSum::default();
    for (sector, n) in [
        (1000, 8),
        (5000, 8),
        (5008, 8),
        (9000, 8),
        (8992, 8),
        (8994, 2),
        (494, 16),
    ] {
        s.add(0, sector, n);
    }
    let d = s.done();
    // The distances are 1000, 3992, 0, 3984, 0, 0 and 8500.
    let mode = (d.median, d.mode, d.mode_n);
    assert_eq!((d.n, d.mean, mode), (7, 17476.0 / 7.0, (1000, 0, 3)));
    assert_eq!((d.sequential, d.backwards), (3, 2));
    assert_eq!(d.classes, [3, 0, 1, 3, 0, 0, 0]);
}

#[test]
fn many_distinct_distances_are_rounded_and_bounded() {
    let (mut exact, mut few) = (SeekSum::default(), SeekSum::with_exact(100));
    let mut at: u64 = 1;
    for _ in 0..5000 {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) >> 20;
        exact.add(0, at, 8);
        few.add(0, at, 8);
    }
    let (exact, few) = (exact.done(), few.done());
    assert!(!exact.rounded && few.rounded);
    assert_eq!(
        (exact.n, exact.mean, exact.classes),
        (few.n, few.mean, few.classes)
    );
    let off = few.median as f64 / exact.median as f64;
    assert!((off - 1.0).abs() < 0.002, "{off}");
}

#[test]
fn longer_trace_has_longer_steps_and_the_same_sums() {
    let mut c = CourseSum::default();
    for i in 0..10_000u64 {
        c.moved(i * 1_000_000, i % 2 == 0, 512);
        c.took(i * 1_000_000, i);
    }
    c.depth(0, 10_000_000_000, 3, 1);
    let c = c.done();
    assert_eq!((c.step_ns, c.reads.len()), (10_000_000, 1001));
    assert_eq!(
        (c.reads.iter().sum::<u64>(), c.writes.iter().sum::<u64>()),
        (5000, 5000)
    );
    assert_eq!(c.max_ns.iter().max(), Some(&9_999));
    assert!(
        c.waiting[..1000].iter().all(|w| *w == 3.0),
        "{:?}",
        &c.waiting[..3]
    );
    assert_eq!(c.waiting[1000], 0.0);
}

#[test]
fn grid_grows_and_keeps_every_count() {
    let mut h = HeatSum::default();
    // A single access in a corner must remain in a coarser grid.
    h.add(5, 3, true);
    for i in 0..20_000u64 {
        h.add(i * 50_000, 1_000_000 + i * 37 % 400_000, i % 3 == 0);
    }
    h.add(999_999_000, 90_000_000, false);
    let h = h.done();
    let all: u64 = h.reads.iter().chain(&h.writes).map(|n| u64::from(*n)).sum();
    assert_eq!(all, 20_002);
    assert!(
        h.rows <= 96 && h.columns <= 256 && h.columns > 100,
        "{} {}",
        h.rows,
        h.columns
    );
    assert_eq!(h.reads.len(), h.rows * h.columns);
    assert_eq!(h.reads[0], 1, "the first place and time");
    assert_eq!(h.writes[h.rows * h.columns - 1], 1, "the last");
    assert!(h.first_sector <= 3 && h.first_sector + h.row_sectors * h.rows as u64 > 90_000_000);
}
