//! Tests the replay modes, and the dependencies that the closed loop finds.

use crate::common::{read, reader, written};
use seekwell_core::{Op, TaskId};
use seekwell_trace::{
    ClosedLoop, ErrorKind, Factor, Has, ReadOptions, Record, ReplayMode, Step, TraceError,
    find_format, formats,
};
use std::num::NonZeroU32;

fn n(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

#[test]
fn replay_modes_are_parsed_and_printed() {
    for (text, mode) in ReplayMode::EXAMPLES {
        assert_eq!(text.parse::<ReplayMode>().unwrap(), mode);
        assert_eq!(mode.to_string(), text);
        assert!(mode.explain().len() > 200, "a paragraph");
    }
    let half = "scaled:0.50".parse::<ReplayMode>().unwrap();
    assert_eq!(half.due_ns(&Record::new(1001, Op::Read, 0, 8)), Some(500));
    for bad in [
        "",
        "scaled",
        "scaled:0",
        "scaled:1/0",
        "scaled:-1",
        "depth:0",
        "depth:x",
        "open",
    ] {
        let e = bad.parse::<ReplayMode>().unwrap_err();
        assert!(e.to_string().contains("depth:N"), "{e}");
    }
}

#[test]
fn scaled_times_saturate() {
    let r = Record::new(u64::MAX, Op::Read, 0, 8);
    assert_eq!(
        ReplayMode::Scaled(Factor::new(n(u32::MAX), n(1))).due_ns(&r),
        Some(u64::MAX)
    );
    assert_eq!(ReplayMode::AsTimed.due_ns(&r), Some(u64::MAX));
    assert_eq!(ReplayMode::FixedDepth(n(4)).due_ns(&r), None);
}

#[test]
fn closed_loop_requires_pids_and_completions() {
    for f in formats() {
        let result = ReplayMode::ClosedLoop.check(f, "trace");
        let lacks = match (f.carries.pids == Has::No, f.carries.completions == Has::No) {
            (true, true) => "pids and completions",
            (true, false) => "pids",
            (false, true) => "completions",
            (false, false) => "",
        };
        // For the formats that matter most, the expected answer is listed by name.
        match f.name {
            "vscsi" | "msr" | "systor" => assert_eq!(lacks, "pids"),
            "fio-iolog-v2" | "fio-iolog-v3" | "alibaba" | "tencent" => {
                assert_eq!(lacks, "pids and completions");
            }
            "blktrace" | "blkparse" | "ftrace" | "csv" | "parquet" => assert_eq!(lacks, ""),
            _ => {}
        }
        if lacks.is_empty() {
            result.unwrap();
        } else {
            let text = result.unwrap_err().to_string();
            let says = format!("the format {} has no {lacks};", f.name);
            assert!(text.contains(&says), "{text}");
        }
        ReplayMode::AsTimed.check(f, "trace").unwrap();
        ReplayMode::FixedDepth(n(1)).check(f, "trace").unwrap();
    }
    // The format could contain these data, but the trace does not.
    let bare: Vec<_> = (0..10)
        .map(|i| Record::new(i, Op::Read, i * 8, 8))
        .collect();
    let bytes = written(find_format("csv").unwrap(), &bare);
    let r = reader(&bytes, None, &ReadOptions::default()).unwrap();
    let e = ClosedLoop::from_reader(r).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::Mode);
    assert!(
        e.to_string()
            .contains("first 10 records has a pid or completion"),
        "{e}"
    );
}

fn record(t_ns: u64, task: u32, complete_ns: u64) -> Record {
    Record {
        task: Some(TaskId(task)),
        complete_ns: Some(complete_ns),
        ..Record::new(t_ns, Op::Read, t_ns * 8, 8)
    }
}

fn steps(records: &[Record]) -> Vec<Step> {
    let all = records.iter().map(|r| Ok::<_, TraceError>(*r));
    ClosedLoop::new(all.collect::<Vec<_>>().into_iter(), "t".to_string())
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

fn facts(records: &[Record]) -> Vec<(Option<u64>, u64, u64)> {
    let all = steps(records);
    all.iter()
        .map(|s| (s.after, s.completed_before, s.think_ns))
        .collect()
}

#[test]
fn process_waits_for_its_last_seen_completion() {
    let got = facts(&[
        record(0, 1, 100),
        // This record comes before any completion, so it keeps its own time.
        record(50, 1, 300),
        // It follows record 0, which completed at 100.
        record(130, 1, 200),
        // The completions of another process do not matter.
        record(140, 2, 250),
        // It follows record 2, which overtook record 1.
        record(260, 1, 400),
        // A completion at exactly this time counts as completed.
        record(300, 1, 310),
        record(1000, 2, 1100),
        record(1000, 1, 1200),
    ]);
    let want = [
        (None, 0, 0),
        (None, 0, 50),
        (Some(0), 1, 30),
        (None, 0, 140),
        (Some(2), 2, 60),
        (Some(1), 3, 0),
        (Some(3), 1, 750),
        (Some(4), 5, 600),
    ];
    assert_eq!(got, want);
}

#[test]
fn request_without_completion_is_never_awaited() {
    let mut lost = record(0, 1, 0);
    lost.complete_ns = None;
    let got = facts(&[lost, record(10, 1, 20), record(50, 1, 60)]);
    assert_eq!(got, [(None, 0, 0), (None, 0, 10), (Some(1), 1, 30)]);
}

#[test]
fn record_without_pid_ends_the_closed_loop() {
    let all = [
        record(0, 1, 5),
        Record::new(10, Op::Read, 0, 8),
        record(20, 1, 30),
    ];
    let mut steps = ClosedLoop::new(all.map(Ok).into_iter(), "t".to_string()).unwrap();
    assert!(steps.next().unwrap().is_ok());
    let e = steps.next().unwrap().unwrap_err();
    assert!(e.to_string().contains("record 2 has no pid"), "{e}");
    assert!(steps.next().is_none());
}

/// On a device of the same speed, the closed loop reproduces the recorded times exactly.
#[test]
fn closed_loop_on_the_same_device_reproduces_the_recorded_times() {
    let mut x = 7u64;
    let mut rand = move |n: u64| {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % n
    };
    let mut t = 0;
    let records: Vec<_> = (0..3000)
        .map(|_| {
            t += rand(1000);
            record(t, rand(5) as u32, t + rand(20_000))
        })
        .collect();
    let mut done = Vec::new();
    for s in steps(&records) {
        let at = s.after.map_or(0, |a: u64| done[a as usize]) + s.think_ns;
        assert_eq!(at, s.record.t_ns);
        done.push(at + s.record.latency_ns().unwrap());
    }
    // The result is the same if the trace is written to a file.
    let bytes = written(find_format("csv").unwrap(), &records);
    assert_eq!(steps(&read(&bytes)).len(), records.len());
    let first = records[0].t_ns;
    let r = reader(&bytes, None, &ReadOptions::default()).unwrap();
    let through: Vec<_> = ClosedLoop::from_reader(r)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (a, b) in through.iter().zip(steps(&records)) {
        assert_eq!(a.after, b.after);
        assert_eq!(
            a.think_ns,
            b.think_ns - if b.after.is_none() { first } else { 0 }
        );
    }
}

/// There are more processes than are remembered. A process that returns late counts as new, and
/// nothing else changes.
#[test]
fn number_of_remembered_processes_is_bounded() {
    let all = (0..200_000u64).map(|i| Ok(record(i * 10, (i % 150_000) as u32, i * 10 + 5)));
    let mut after = 0;
    for s in ClosedLoop::new(all, "t".to_string()).unwrap() {
        after += u64::from(s.unwrap().after.is_some());
    }
    assert_eq!(after, 0, "150,000 processes later nobody remembers");
    let few = (0..200_000u64).map(|i| Ok(record(i * 10, (i % 50_000) as u32, i * 10 + 5)));
    let after = ClosedLoop::new(few, "t".to_string())
        .unwrap()
        .flatten()
        .filter(|s| s.after.is_some());
    assert_eq!(after.count(), 150_000);
}
