//! Replays on modelled devices: equal seeds give equal bytes, every mode completes everything, and
//! invalid addresses are reported.

use seekwell_core::result::Record;
use seekwell_core::{Op, TaskId};
use seekwell_sched::{SchedulerInfo, registry};
use seekwell_sim::compare::run_all;
use seekwell_sim::{Fit, ReplayError, ReplayOptions, RunError, Setup, replay};
use seekwell_trace::{Reader, ReplayMode};
use std::io::Cursor;

/// A computed blkparse text of three processes with completions.
fn trace(n: u64) -> Vec<u8> {
    let mut text = String::new();
    let mut seq = 0;
    let mut line = |t_us: u64, pid: u64, action: char, rwbs: &str, sector: u64, len: u64| {
        seq += 1;
        let (s, ns) = (t_us / 1_000_000, t_us % 1_000_000 * 1000);
        let tail = if action == 'C' {
            "[0]".to_owned()
        } else {
            format!("[p{pid}]")
        };
        text +=
            &format!("  8,0 0 {seq} {s}.{ns:09} {pid} {action} {rwbs} {sector} + {len} {tail}\n");
    };
    let mut events = Vec::new();
    for i in 0..n {
        let pid = 100 + i % 3;
        let sector = if pid == 100 {
            i * 8
        } else {
            (i * 7_919_993) % 60_000_000 / 8 * 8
        };
        let rwbs = if i % 4 == 1 { "W" } else { "R" };
        let t = i * 900;
        events.push((t, pid, 'Q', rwbs, sector));
        events.push((t + 700, pid, 'C', rwbs, sector));
    }
    events.sort_by_key(|e| (e.0, e.2 != 'C'));
    for (t, pid, a, rwbs, sector) in events {
        line(t, pid, a, rwbs, sector, 8);
    }
    text.into_bytes()
}

fn reader(bytes: &[u8]) -> Reader {
    seekwell_trace::from_reader(
        "made",
        Cursor::new(bytes.to_vec()),
        None,
        &Default::default(),
    )
    .unwrap()
}

fn mode(text: &str) -> ReplayOptions {
    ReplayOptions {
        mode: text.parse::<ReplayMode>().unwrap(),
        ..ReplayOptions::default()
    }
}

fn run(scheduler: &str, opts: &ReplayOptions, bytes: &[u8]) -> Result<Record, ReplayError> {
    let setup = Setup {
        scheduler: scheduler.to_owned(),
        seed: 3,
        ..Setup::default()
    };
    replay(&setup, reader(bytes), opts, &mut |_, _| true)
}

#[test]
fn every_scheduler_completes_every_record_in_every_mode() {
    let bytes = trace(600);
    let names: Vec<&str> = registry().iter().map(|s: &SchedulerInfo| s.name).collect();
    for name in names {
        for m in ["timed", "scaled:1/10", "depth:16", "closed"] {
            let r = run(name, &mode(m), &bytes).unwrap_or_else(|e| panic!("{name} {m}: {e}"));
            assert_eq!(r.read.ios + r.write.ios, 600, "{name} {m}");
            assert_eq!(r.read.errors + r.write.errors, 0, "{name} {m}");
            assert_eq!((r.read.bytes + r.write.bytes) / 4096, 600, "{name} {m}");
            assert_eq!(r.processes.len(), 3, "{name} {m}");
        }
    }
}

#[test]
fn same_seed_gives_same_bytes_on_any_number_of_threads() {
    let bytes = trace(400);
    let names = ["noop", "deadline", "mq-deadline", "kyber"];
    let all = |threads| {
        let job = |i: usize| run(names[i % 4], &mode("depth:8"), &bytes).unwrap();
        serde_json::to_string(&run_all(8, threads, job)).unwrap()
    };
    let one = all(1);
    assert_eq!(one, all(2));
    assert_eq!(one, all(8));
}

#[test]
fn seed_changes_the_device() {
    let bytes = trace(200);
    let with = |seed| {
        let setup = Setup {
            seed,
            ..Setup::default()
        };
        replay(&setup, reader(&bytes), &mode("depth:1"), &mut |_, _| true)
            .unwrap()
            .duration_ns
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn address_beyond_the_device_is_rejected_or_folded() {
    let line = "8,0 0 1 0.000000000 1 Q R 900000000000 + 8 [p]\n";
    match run("noop", &mode("timed"), line.as_bytes()) {
        Err(ReplayError::Run(RunError::Beyond { record: 1, .. })) => {}
        other => panic!("{other:?}"),
    }
    let folded = ReplayOptions {
        fit: Fit::Wrap,
        ..mode("timed")
    };
    let r = run("noop", &folded, line.as_bytes()).unwrap();
    assert_eq!(r.read.ios, 1);
    assert!(
        r.warnings.iter().any(|w| w.contains("folded")),
        "{:?}",
        r.warnings
    );
}

#[test]
fn closed_loop_keeps_think_times_and_lasts_longer_on_a_slow_device() {
    let bytes = trace(300);
    let timed = run("deadline", &mode("timed"), &bytes).unwrap();
    let closed = run("deadline", &mode("closed"), &bytes).unwrap();
    assert!(
        closed.duration_ns > timed.duration_ns,
        "the disk is slower than 0.7 ms a request"
    );
    assert!(
        closed.outstanding_max <= 4,
        "three processes, one request each at a time"
    );
    assert!(timed.outstanding_max > 50, "as timed it piles up");
    assert!(
        timed.warnings.iter().any(|w| w.contains("behind")),
        "{:?}",
        timed.warnings
    );
}

#[test]
fn steady_replay_ends_with_the_first_process_that_was_active_to_the_end() {
    // Both processes were active for a second. One of them has ten times as many reads, and each
    // process waits for its reads. On a disk that treats both alike, the short one ends first.
    let mut rows = Vec::new();
    for (pid, every) in [(1, 10_000), (2, 1_000)] {
        for t in (0..1_000_000).step_by(every) {
            rows.push((t, pid));
        }
    }
    rows.sort_unstable();
    let mut text = "t_us,op,sector,sectors,pid,lat_us\n".to_owned();
    for (t, pid) in rows {
        text += &format!(
            "{t},R,{},8,{pid},{}\n",
            t * 8,
            if pid == 1 { 9_900 } else { 900 }
        );
    }
    let reads = |of: &str| run("noop", &mode(of), text.as_bytes()).unwrap().read.ios;
    assert_eq!(reads("closed"), 1_100);
    let steady = reads("steady");
    assert!((101..550).contains(&steady), "{steady}");
}

#[test]
fn flush_and_process_ids_are_replayed() {
    let text = "8,0 0 1 0.000000000 5 Q FN 0 + 0 [p]\n8,0 0 2 0.001000000 5 Q R 8 + 8 [p]\n";
    let r = run("mq-deadline", &mode("timed"), text.as_bytes()).unwrap();
    assert_eq!((r.read.ios, r.write.ios), (1, 1));
    assert_eq!(r.processes[0].task, TaskId(5).0);
    assert!(Op::Flush.is_write());
}

#[test]
fn recorded_priority_reaches_the_scheduler() {
    // Two tasks with all their reads at the start; the one with the IDLE class is first.
    let mean = |scheduler: &str, mode_of: &str, idle: &str| {
        let mut text = "t_us,op,sector,sectors,pid,ioprio\n".to_owned();
        for i in 0..200u64 {
            let (pid, ioprio) = [(100, idle), (101, "2:4")][(i % 2) as usize];
            let sector = (i * 7_919_993) % 60_000_000 / 8 * 8;
            text += &format!("{i},R,{sector},8,{pid},{ioprio}\n");
        }
        let r = run(scheduler, &mode(mode_of), text.as_bytes()).unwrap();
        let of = |task| r.processes.iter().find(|p| p.task == task).unwrap();
        of(100).mean_latency_ns / of(101).mean_latency_ns
    };
    for mode in ["timed", "scaled:1/10", "depth:200"] {
        for scheduler in ["cfq", "bfq"] {
            let (idle, same) = (mean(scheduler, mode, "3:0"), mean(scheduler, mode, "2:4"));
            assert!(idle > 2.0, "{scheduler} {mode}: {idle} times the wait");
            assert!(same < 1.5, "{scheduler} {mode}: {same} times the wait");
        }
    }
}

#[test]
fn a_scheduler_that_uses_what_the_trace_lacks_is_named() {
    let warned = |scheduler: &str, text: &str| -> String {
        let r = run(scheduler, &mode("timed"), text.as_bytes()).unwrap();
        r.warnings.join("\n")
    };
    let bare = "t_us,op,sector,sectors\n0,R,0,8\n9,W,800000,8\n";
    assert!(warned("bfq", bare).contains("no process ids"));
    assert_eq!(warned("mq-deadline", bare), "");
    let pids = "t_us,op,sector,sectors,pid\n0,R,0,8,7\n9,W,800000,8,8\n";
    for scheduler in ["bfq", "cfq", "mq-deadline"] {
        let w = warned(scheduler, pids);
        assert!(
            w.starts_with(&format!("{scheduler} serves I/O priorities")),
            "{w}"
        );
    }
    assert_eq!(warned("kyber", pids), "");
    let prios = "t_us,op,sector,sectors,pid,ioprio\n0,R,0,8,7,2:4\n9,W,800000,8,8,3:0\n";
    assert_eq!(warned("mq-deadline", prios), "");
    let msr =
        "128166372003061629,hm,0,Read,0,4096,100\n128166372003071629,hm,0,Write,8192,4096,90\n";
    let w = warned("bfq", msr);
    assert!(
        w.contains("process ids") && w.contains("; it distinguishes synchronous"),
        "{w}"
    );
}

#[test]
fn progress_is_reported_and_cancellation_keeps_measurements() {
    let (bytes, setup) = (trace(6000), Setup::default());
    let opts = ReplayOptions {
        limit: Some(5000),
        ..mode("depth:4")
    };
    let mut told = Vec::new();
    let whole = replay(&setup, reader(&bytes), &opts, &mut |done, of| {
        told.push((done, of));
        true
    });
    let whole = whole.expect("it runs");
    assert!(told.len() > 3 && told.is_sorted(), "{told:?}");
    assert!(told.iter().all(|t| t.1 == 5000) && told[told.len() - 1].0 == 5000);
    let cut = replay(&setup, reader(&bytes), &opts, &mut |done, _| done < 2000);
    let Err(ReplayError::Stopped(cut)) = cut else {
        panic!("it was stopped: {cut:?}");
    };
    let ios = |r: &Record| r.read.ios + r.write.ios;
    assert_eq!(ios(&whole), 5000);
    assert!((2000..4000).contains(&ios(&cut)), "{}", ios(&cut));
    assert!(cut.duration_ns > 0 && cut.duration_ns < whole.duration_ns);
    assert!(cut.requests > 0, "the queue's part, too");
}
