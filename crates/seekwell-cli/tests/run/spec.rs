//! A record contains the complete specification of its run.

use crate::{good, scratch};
use seekwell_core::result::Record;
use seekwell_core::spec::{Substrate, WorkloadSpec};
use serde_json::Value;

fn records(args: &[&str]) -> Vec<Record> {
    let doc: Value = serde_json::from_str(&good(args)).expect("JSON");
    serde_json::from_value(doc["records"].clone()).expect("records")
}

#[test]
fn json_contains_every_requested_setting() {
    let args = [
        "run",
        "fs-mark:files=3",
        "--param",
        "workers=2",
        "-d",
        "hdd:hitachi-7k200,write_cache=no",
        "-s",
        "deadline:fifo_batch=1,cfq",
        "--tunable",
        "cfq.slice_idle=0",
        "--machine",
        "memory=512M,fs=ext3,cores=2,without=plugging,limit=60",
        "--nr-requests",
        "64",
        "--nomerges",
        "2",
        "--hz",
        "100",
        "--seed",
        "7",
        "--json",
    ];
    let all = records(&args);
    let spec = all[0].spec.clone().expect("embedded");
    assert_eq!(spec.device.spec, "hdd:hitachi-7k200,write_cache=no");
    assert_eq!((spec.scheduler.name.as_str(), spec.seed), ("deadline", 7));
    assert_eq!(spec.scheduler.tunables["fifo_batch"], "1");
    assert_eq!(spec.label.as_deref(), Some("deadline:fifo_batch=1"));
    let q = &spec.queue;
    assert_eq!((q.nr_requests, q.nomerges, q.hz), (Some(64), 2, 100));
    let m = spec.machine.clone().expect("stated");
    assert_eq!((m.memory_bytes, m.cores), (Some(512 << 20), Some(2)));
    assert_eq!(m.fs.as_deref(), Some("ext3"));
    assert!(m.without.contains("plugging") && spec.limit_s == Some(60));
    let WorkloadSpec::Script { params, .. } = &spec.workload else {
        panic!("a script");
    };
    assert_eq!((&*params["files"], &*params["workers"]), ("3", "2"));
    assert_eq!(all[0].spec_hash, spec.hash());
    // The other run has another scheduler, and therefore another hash.
    let other = all[1].spec.clone().expect("embedded");
    assert_eq!(other.scheduler.tunables["slice_idle"], "0");
    assert_ne!(all[0].spec_hash, all[1].spec_hash);
    // A run with the embedded specification gives the same record.
    let again = seekwell::run(&spec, seekwell::Hooks::default()).expect("it runs again");
    // Only integers are compared, because JSON may change the last digit of a fraction.
    let figures = |r: &Record| {
        let ways = [&r.read, &r.write].map(|d| (d.ios, d.bytes, d.held_ns));
        let clock = (r.clock_start_ns, r.clock_stop_ns, r.duration_ns);
        let queue = (r.requests, r.back_merges, r.waits, r.device_busy_ns);
        (
            ways,
            clock,
            queue,
            r.spec_hash.clone(),
            r.scheduler.spec.clone(),
        )
    };
    assert_eq!(figures(&all[0]), figures(&again));
}

#[test]
fn replay_record_identifies_its_trace_by_content_hash() {
    let rows: String = (0..40)
        .map(|i| format!("{},1,R,{},8\n", i * 900, i * 64))
        .collect();
    let file = scratch(
        "spec.csv",
        format!("t_us,pid,op,sector,n\n{rows}").as_bytes(),
    );
    let all = records(&[
        "replay",
        &file,
        "-s",
        "noop,none",
        "--mode",
        "depth:4",
        "--json",
    ]);
    for r in &all {
        let spec = r.spec.as_ref().expect("embedded");
        assert!(spec.machine.is_none());
        let WorkloadSpec::Trace { sha256, mode, .. } = &spec.workload else {
            panic!("a trace");
        };
        assert_eq!((sha256.len(), mode.as_str()), (64, "depth:4"));
    }
    let again = seekwell::run(
        all[0].spec.as_ref().expect("embedded"),
        seekwell::Hooks::default(),
    );
    assert_eq!(
        again.expect("it replays again").duration_ns,
        all[0].duration_ns
    );
}

#[test]
fn real_run_record_describes_its_host() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("spec-real");
    std::fs::create_dir_all(&dir).expect("a directory");
    let dir = dir.display().to_string();
    let all = records(&["run", "fs-mark:files=2", "--dir", &dir, "--json", "-q"]);
    let r = &all[0];
    let spec = r.spec.as_ref().expect("embedded");
    assert_eq!(
        (spec.substrate, &spec.scheduler.name),
        (Substrate::Host, &r.scheduler.name)
    );
    let host = r.host.as_ref().expect("told");
    assert!(!host.kernel.is_empty() && host.memory_bytes > 0 && !host.fs.is_empty());
    assert_eq!(r.early, None);
}
