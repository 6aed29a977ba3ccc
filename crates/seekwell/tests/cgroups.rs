//! Tests cgroups of a machine in the notation of the command line and of experiment files. The
//! settings must reach the intended tasks.

use seekwell::{Hooks, Record, RunSpec, checked, run, spec, words};

const JOB: &str = "[global]\nsize=64m\nbs=4k\nruntime=3\ntime_based\ndirect=1\n\
                   [reader]\nrw=randread\n[other]\nrw=randread\n";
const DEVICE: &str = "constant:depth=32,service_us=100,servers=parallel";

fn asked(scheduler: &str, machine: &str) -> RunSpec {
    let file = format!("{}/two-readers.fio", env!("CARGO_TARGET_TMPDIR"));
    // The test that runs first writes the file. All tests write the same content.
    if std::fs::read_to_string(&file).ok().as_deref() != Some(JOB) {
        let own = format!("{file}.{:?}", std::thread::current().id());
        std::fs::write(&own, JOB).expect("scratch");
        std::fs::rename(&own, &file).expect("scratch");
    }
    let mut spec = spec(&file, DEVICE, scheduler).expect("good words");
    spec.machine = Some(words::machine(machine).expect("a machine").spec);
    spec
}

fn rate(r: &Record, job: &str) -> f64 {
    let all = r.more_metrics.iter().chain(r.metric.as_ref());
    let mut named = all.filter(|m| m.name.contains(&format!("{job} read IOPS")));
    named.next().expect("a rate").value
}

#[test]
fn cgroup_limits_apply_only_to_the_selected_tasks() {
    let free = run(&asked("none", ""), Hooks::default()).expect("it runs");
    let capped = asked("none", "cgroup=slow:tasks=other:riops=100");
    let r = run(&capped, Hooks::default()).expect("it runs");
    let (other, reader) = (rate(&r, "other"), rate(&r, "reader"));
    assert!((99.0..=105.0).contains(&other), "{other}");
    assert!(
        rate(&free, "other") > 50.0 * other,
        "{}",
        rate(&free, "other")
    );
    assert!(
        (reader / rate(&free, "reader") - 1.0).abs() < 0.05,
        "{reader}"
    );
    assert!(r.warnings.is_empty(), "{:?}", r.warnings);
    // A cgroup without tasks gives a warning and changes nothing.
    let missed = asked("none", "cgroup=slow:tasks=writer:riops=100");
    let r = run(&missed, Hooks::default()).expect("it runs");
    assert!(
        r.warnings
            .iter()
            .any(|w| w.contains("no task is called writer"))
    );
    assert_eq!(rate(&r, "other"), rate(&free, "other"));
}

#[test]
fn cgroup_order_does_not_change_the_run_and_invalid_cgroups_are_rejected() {
    let a = checked(&asked("none", "cgroup=b:riops=2000:tasks=x+a")).expect("good");
    let b = checked(&asked("none", "cgroup=a+b:tasks=x:riops=2000")).expect("good");
    let bare = checked(&asked("none", "")).expect("good");
    assert_eq!(a.hash(), b.hash());
    assert!(a.hash() != bare.hash() && !bare.canonical().contains("cgroup"));
    let e = checked(&asked("cfq", "cgroup=a:riops=2000")).expect_err("no blk-mq");
    assert!(e.to_string().contains("machine.cgroups"), "{e}");
    let e = checked(&asked("cfq", "cgroup=a:weight=300")).expect_err("no blk-mq");
    assert!(e.to_string().contains("machine.cgroups"), "{e}");
    assert!(checked(&asked("cfq", "cgroup=a:bfq.weight=300")).is_ok());
}

/// A model of the device's speed, with a target of 5 ms for reads.
const COSTS: &str = "cgroup=root:enable=1:rpct=90:rlat=5ms:rbps=16384000:rseqiops=4000:\
                     rrandiops=4000:wbps=16384000:wseqiops=4000:wrandiops=4000+";

#[test]
fn iocost_shares_follow_weights_once_enabled() {
    let deep = "[global]\nsize=64m\nbs=4k\nruntime=10\ntime_based\ndirect=1\nioengine=libaio\n\
                iodepth=64\n[reader]\nrw=randread\n[other]\nrw=randread\n";
    let file = format!("{}/two-deep-readers.fio", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&file, deep).expect("scratch");
    let device = "constant:depth=256,service_us=250,servers=serial";
    let shares = |machine: &str| {
        let mut spec = spec(&file, device, "none").expect("good words");
        spec.machine = Some(words::machine(machine).expect("a machine").spec);
        let r = run(&spec, Hooks::default()).expect("it runs");
        assert!(r.warnings.is_empty(), "{:?}", r.warnings);
        (rate(&r, "reader"), rate(&r, "other"))
    };
    for weights in [[100, 300], [300, 100]] {
        let [a, b] = weights;
        let groups = format!("reader:tasks=reader:weight={a}+other:tasks=other:weight={b}");
        let (reader, other) = shares(&format!("{COSTS}{groups}"));
        let off = reader / other * f64::from(b) / f64::from(a) - 1.0;
        assert!(off.abs() < 0.05, "{weights:?}: {reader} and {other}");
        assert!(reader + other > 3600.0, "{reader} and {other}");
        // Weights without the controller have no effect.
        let (reader, other) = shares(&format!("cgroup={groups}"));
        assert!((reader / other - 1.0).abs() < 0.02, "{reader} and {other}");
    }
}
