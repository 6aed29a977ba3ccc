//! Real runs through the library: in a directory, under the active scheduler.

use seekwell::{
    Cancel, DeviceSpec, Error, Hooks, IN_FORCE, MachineSpec, Many, QueueSpec, RunSpec,
    SchedulerSpec, Substrate, run, run_all, words,
};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A private directory. Dropping it removes the directory.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("seekwell-facade-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        Place(dir)
    }
    fn is_empty(&self) -> bool {
        std::fs::read_dir(&self.0).expect("there").next().is_none()
    }
    fn spec(&self, workload: &str) -> RunSpec {
        let device = DeviceSpec {
            spec: self.0.display().to_string(),
            ..DeviceSpec::default()
        };
        let scheduler = SchedulerSpec {
            name: IN_FORCE.to_owned(),
            ..SchedulerSpec::default()
        };
        RunSpec {
            substrate: Substrate::Host,
            machine: None,
            ..RunSpec::new(
                device,
                scheduler,
                words::workload(workload, &[]).expect("words"),
            )
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn host_run_records_its_specification() {
    let place = Place::new();
    let spec = place.spec("fs-mark:files=5,size=16KiB");
    let record = run(&spec, Hooks::default()).expect("it runs");
    assert_eq!(record.substrate, "host");
    assert_eq!(record.early, None);
    let metric = record.metric.as_ref().expect("a metric");
    assert_eq!((metric.unit.as_str(), metric.n), ("files/s", 5));
    assert!(metric.value > 0.0);
    // The record contains the scheduler that was found, and the default parameters.
    let whole = record.spec.clone().expect("a specification");
    assert_eq!(record.spec_hash, whole.hash());
    assert_eq!(whole.scheduler.name, record.scheduler.name);
    assert_eq!(whole.workload.name(), "fs-mark");
    let json = serde_json::to_value(&whole).expect("JSON");
    assert_eq!(json["workload"]["params"]["sync"], "fsync");
    // No files remain, and the record's specification can be run again.
    assert!(place.is_empty());
    let again = run(&whole, Hooks::default()).expect("it runs again");
    assert_eq!(again.spec_hash, record.spec_hash);
}

#[test]
fn host_runs_are_sequential_and_a_failure_does_not_affect_others() {
    let place = Place::new();
    let good = place.spec("fs-mark:files=2,size=4KiB");
    let mut lost = good.clone();
    lost.device.spec += "/not-there";
    let how = Many {
        threads: Some(8),
        ..Many::default()
    };
    let all = run_all(&[good.clone(), lost, good], &how);
    assert!(all[0].is_ok() && all[2].is_ok(), "{all:?}");
    let said = all[1].as_ref().expect_err("no such place").to_string();
    assert!(said.contains("not-there"), "{said}");
    assert!(place.is_empty());
}

#[test]
fn options_unavailable_on_a_host_are_reported_together() {
    let place = Place::new();
    let mut spec = place.spec("fs-mark:files=2");
    spec.machine = Some(MachineSpec::default());
    spec.queue = QueueSpec {
        nr_requests: Some(64),
        ..QueueSpec::default()
    };
    spec.scheduler.version = Some("4.0".to_owned());
    let Err(Error::Spec(errors)) = run(&spec, Hooks::default()) else {
        panic!("a specification with faults");
    };
    let fields: Vec<&str> = errors.0.iter().map(|e| e.field.as_str()).collect();
    assert_eq!(fields, ["scheduler", "queue", "machine"]);
    // A scheduler that is not active must give an error.
    let mut spec = place.spec("fs-mark:files=2");
    spec.scheduler.name = "elevator-of-nobody".to_owned();
    let said = run(&spec, Hooks::default()).expect_err("not in force");
    assert!(said.to_string().contains("seekwell switch"), "{said}");
    assert!(place.is_empty());
}

#[test]
fn host_run_reports_progress_and_can_be_cancelled() {
    let place = Place::new();
    let spec = place.spec("random-read:size=1MiB,seconds=1h");
    let cancel = Cancel::new();
    let mut most = 0;
    let mut told = |p: seekwell::Progress| {
        assert_eq!(p.of, 3_600_000);
        most = most.max(p.done);
        if p.done > 0 {
            cancel.set();
        }
    };
    let hooks = Hooks::default().progress(&mut told).cancel(&cancel);
    let record = run(&spec, hooks).expect("what it measured");
    assert!(most > 0);
    let early = record.early.expect("it was cut short");
    assert!(early.at_ns < 3_600_000_000_000, "{early:?}");
    assert!(place.is_empty());
    let not_begun = run(&spec, Hooks::default().cancel(&cancel));
    assert!(matches!(not_begun, Err(Error::NotBegun)), "{not_begun:?}");
}
