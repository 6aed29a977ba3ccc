//! Runs the scripts on real files. Operations must have the same kinds and numbers as on the test
//! machine of `seekwell_workload::testing`.

use seekwell_core::result::Record;
use seekwell_host::{Options, run_real};
use seekwell_workload::testing::Trial;
use seekwell_workload::{Needs, Plan, workload};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An empty directory. Dropping it removes the directory.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("seekwell-test-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a directory");
        Place(path)
    }
    fn left(&self) -> usize {
        std::fs::read_dir(&self.0).expect("still there").count()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn real(plan: &Plan, dir: &Path, device: Option<PathBuf>) -> Record {
    let o = Options {
        signals: false,
        device,
        ..Options::new(dir, 1)
    };
    let ran = run_real(plan, &o).expect("it begins");
    assert_eq!(ran.stopped, None, "{}", plan.name());
    ran.record
}

/// Returns the number of operations and their bytes, by kind.
fn counts(r: &Record) -> BTreeMap<String, (u64, u64)> {
    let of = |o: &seekwell_core::result::Operation| (o.kind.clone(), (o.latency.count(), o.bytes));
    r.operations.iter().map(of).collect()
}

/// Returns the name of each task, and its number of operations.
fn tasks(r: &Record) -> Vec<(String, u64)> {
    let mut all: Vec<_> = r.tasks.iter().map(|t| (t.path.clone(), t.ops)).collect();
    all.sort();
    all
}

#[test]
fn untimed_workloads_make_the_same_operations_on_host_and_in_test_world() {
    for name in [
        "fs-mark:files=10,workers=3,size=40k",
        "fs-mark:files=10,dirs=3,sync=none,size=4k",
        "compilebench:trees=2,reads=2,sources=120,objects=30,dirs=40",
        "iozone:size=1m,test=read",
        "tiobench:size=256k,threads=3,random=50",
        "postmark:files=20,transactions=200,high=20k",
        "app-start:starts=2,pause=1ms,libraries=5,small=10,profile=idle",
    ] {
        let plan = Plan::new(name, &[]).expect("good parameters");
        let place = Place::new(plan.name());
        let r = real(&plan, &place.0, None);
        assert_eq!(place.left(), 0, "{name}: files are left");
        let trial = Trial::run_plan(plan, |_| {});
        assert_eq!(trial.outcome, Ok(()));
        let mut other = Record::default();
        trial.world.measures().clone().fill(&mut other);
        assert_eq!(counts(&r), counts(&other), "{name}");
        assert_eq!(tasks(&r), tasks(&other), "{name}");
        let names = |r: &Record| {
            let all = r.metric.iter().chain(&r.more_metrics);
            all.map(|m| m.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&r), names(&other), "{name}");
    }
}

#[test]
fn timed_workloads_end_with_a_metric_and_without_files() {
    for name in [
        "blogbench:seconds=1500ms,readers=5",
        "app-start:starts=2,pause=20ms,libraries=5,small=10,bulk=4m",
        "interactive:seconds=300ms,size=4m,bulk=4m",
        "streams:seconds=200ms,size=2m",
        "fsync-latency:seconds=300ms,bulk=4m,think=10ms",
        "innodb:seconds=300ms,size=4m,threads=4,innodb_redo_log_capacity=8m",
    ] {
        let plan = Plan::new(name, &[]).expect("good parameters");
        let place = Place::new(plan.name());
        let r = real(&plan, &place.0, None);
        assert_eq!(place.left(), 0, "{name}: files are left");
        let m = r.metric.as_ref().expect("a metric");
        assert!(m.value > 0.0, "{name}: {m:?}");
    }
}

#[test]
fn raw_device_workloads_accept_a_plain_file() {
    let place = Place::new("raw");
    let image = place.0.join("image");
    let file = std::fs::File::create(&image).expect("a file");
    file.set_len((5 << 20) + 4096).expect("a hole");
    drop(file);
    for (name, kind) in [
        ("hdparm:seconds=10s,settle=0", "read"),
        ("seeker:seconds=50ms", "seek"),
    ] {
        let plan = Plan::new(name, &[]).expect("good parameters");
        assert_eq!(workload(plan.name()).map(|w| w.needs), Some(Needs::Device));
        let r = real(&plan, &place.0, Some(image.clone()));
        let (n, bytes) = counts(&r)[kind];
        match kind {
            "read" => assert_eq!((n, bytes), (2, 4 << 20), "whole 2 MiB only"),
            _ => assert!(n > 100 && bytes == n * 512, "{n} {bytes}"),
        }
        assert!(r.metric.is_some_and(|m| m.value > 0.0), "{name}");
    }
    assert_eq!(place.left(), 1, "the image alone");
}
