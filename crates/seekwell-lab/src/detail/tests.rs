//! Tests of the details with invented runs.

use super::*;
use crate::results::{Layer, Results, RunKey, SeriesRow, Treatment};
use seekwell_core::result::{Latency, MarkAt, Metric, OpSecond, Operation, ProcessShare, Record};

fn record(values_us: &[u64], seconds: &[u64]) -> Record {
    let mut latency = Latency::default();
    values_us.iter().for_each(|v| latency.record(v * 1_000));
    let second = |ops: &u64| {
        let mut s = OpSecond::default();
        (0..*ops).for_each(|i| s.count((i + 1) * 1_000_000, 4096));
        s
    };
    let mark = |at_s: u64, name: &str| MarkAt {
        at_ns: at_s * 1_000_000_000,
        name: name.to_owned(),
        task: "a".to_owned(),
    };
    let share = |task, name: &str, bytes| ProcessShare {
        task,
        name: name.to_owned(),
        bytes,
        ..ProcessShare::default()
    };
    let mut r = Record {
        duration_ns: 10_000_000_000,
        requests: 40,
        back_merges: 3,
        mean_seek_sectors: 2.0,
        device_busy_ns: 5_000_000_000,
        metric: Some(Metric {
            name: "transactions".to_owned(),
            operation: "transaction, read".to_owned(),
            ..Metric::default()
        }),
        operations: vec![Operation {
            kind: "transaction".to_owned(),
            latency,
            seconds: seconds.iter().map(second).collect(),
            ..Operation::default()
        }],
        marks: vec![
            mark(1, "checkpoint start"),
            mark(2, "throttling begins"),
            mark(3, "checkpoint end"),
            mark(4, "flush"),
        ],
        processes: vec![share(1, "reader", 3_000), share(2, "", 1_000)],
        ..Record::default()
    };
    r.read.bytes = 50_000;
    r
}

fn key(block: u32) -> RunKey {
    RunKey {
        cell: 0,
        block,
        treatment: 0,
    }
}

fn one_cell() -> Results {
    Results {
        cells: vec![crate::results::Cell {
            name: "a cell: 1".to_owned(),
            treatments: vec![0],
            ..Default::default()
        }],
        treatments: vec![Treatment {
            label: "noop".to_owned(),
            ..Treatment::default()
        }],
        ..Results::default()
    }
}

#[test]
fn merged_runs_keep_single_spikes() {
    let mut g = Gather::default();
    g.record(key(0), &record(&[10, 20], &[5, 0, 7]));
    g.record(key(1), &record(&[10, 900_000], &[5, 90, 7, 1]));
    let d = &g.done(&one_cell())[0];
    assert_eq!(d.operation, "transaction");
    let s = &d.sides[0];
    assert_eq!(s.runs, 2);
    assert_eq!(s.latency.iter().map(|b| b.1).sum::<u64>(), 4);
    assert!(s.latency[s.latency.len() - 1].0 >= 900_000_000);
    let of = |s: &Second| (s.runs, s.ops, s.low, s.high, s.mean_milli());
    let all: Vec<_> = s.seconds.iter().map(of).collect();
    // The first run ended before the fourth second. No operation ended in its second second.
    assert_eq!(
        all,
        [
            (2, 10, 5, 5, 5_000),
            (2, 90, 0, 90, 45_000),
            (2, 14, 7, 7, 7_000),
            (1, 1, 1, 1, 1_000)
        ]
    );
    assert_eq!(s.seconds[1].latency_max_ns, 90_000_000);
    let marks: Vec<_> = s
        .marks
        .iter()
        .map(|m| (m.what.name(), m.from_ms, m.to_ms))
        .collect();
    assert_eq!(
        marks,
        [
            ("checkpoint", 1_000, 3_000),
            ("flush", 4_000, 4_000),
            ("throttled", 2_000, 10_000)
        ]
    );
    assert_eq!(
        s.shares,
        [("reader".to_owned(), 3_000), ("task 2".to_owned(), 1_000)]
    );
    let f = s.facts.expect("facts");
    assert_eq!(
        (f.bytes_per_s, f.busy, f.seek_bytes, f.merges),
        (5_000.0, 0.5, 1024.0, 3.0)
    );
    assert_eq!(
        f.percentiles_ns, [None; 4],
        "four operations are none to take percentiles of"
    );
}

#[test]
fn coarser_seconds_keep_minimum_and_maximum() {
    let mut g = Gather::default();
    for (at, ops) in [(0, 10), (1, 1), (2, 300), (3, 10)] {
        let row = SeriesRow(at, ops, 0, ops * 1_000, 7_000 * ops, 0);
        g.second(key(0), Layer::Workload, "read", &row);
    }
    g.operation(key(0), (Layer::Workload, "read"), 1, 1);
    let seconds = &g.done(&one_cell())[0].sides[0].seconds;
    let all = seconds.iter().copied().reduce(|a, b| a.with(&b));
    let all = all.expect("seconds");
    assert_eq!((all.low, all.high, all.latency_max_ns), (1, 300, 2_100_000));
    assert_eq!(all.mean_milli(), 80_250);
}
