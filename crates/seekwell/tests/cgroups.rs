//! Cgroups of a machine, as the command line and experiment files say them: what is typed reaches
//! the tasks that are meant.

use seekwell::{Hooks, Record, RunSpec, checked, run, spec, words};

const JOB: &str = "[global]\nsize=64m\nbs=4k\nruntime=3\ntime_based\ndirect=1\n\
                   [reader]\nrw=randread\n[other]\nrw=randread\n";
const DEVICE: &str = "constant:depth=32,service_us=100,servers=parallel";

fn asked(scheduler: &str, machine: &str) -> RunSpec {
    let file = format!("{}/two-readers.fio", env!("CARGO_TARGET_TMPDIR"));
    // Written by whichever comes first, and the same by all.
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
fn limits_reach_who_is_meant_and_nobody_else() {
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
    // One that nobody is in says so, and changes nothing.
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
fn the_same_cgroups_are_the_same_run_and_wrong_ones_are_told() {
    let a = checked(&asked("none", "cgroup=b:riops=2000:tasks=x+a")).expect("good");
    let b = checked(&asked("none", "cgroup=a+b:tasks=x:riops=2000")).expect("good");
    let bare = checked(&asked("none", "")).expect("good");
    assert_eq!(a.hash(), b.hash());
    assert!(a.hash() != bare.hash() && !bare.canonical().contains("cgroup"));
    let e = checked(&asked("cfq", "cgroup=a:riops=2000")).expect_err("no blk-mq");
    assert!(e.to_string().contains("machine.cgroups"), "{e}");
    // Not to be had yet: said, not swallowed.
    for not_yet in ["cgroup=root:enable=1", "cgroup=a:weight=300"] {
        let e = checked(&asked("none", not_yet)).expect_err("io.cost");
        assert!(e.to_string().contains("io.cost"), "{e}");
    }
    assert!(checked(&asked("cfq", "cgroup=a:bfq.weight=300")).is_ok());
}
