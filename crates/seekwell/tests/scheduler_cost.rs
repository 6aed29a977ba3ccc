//! A scheduler costs CPU time. If one lock protects a whole drive, this cost is visible on flash.

use seekwell::{Hooks, RunSpec, run, spec, words};

fn asked(jobs: u32, depth: u32, device: &str, scheduler: &str, machine: &str) -> RunSpec {
    let job = format!(
        "[global]\nsize=64m\nbs=4k\nruntime=1\ntime_based\ndirect=1\nioengine=libaio\n\
         iodepth={depth}\n[all]\nrw=randread\nnumjobs={jobs}\n"
    );
    let dir = env!("CARGO_TARGET_TMPDIR");
    let file = format!(
        "{dir}/cost-{jobs}-{depth}-{:?}.fio",
        std::thread::current().id()
    );
    std::fs::write(&file, job).expect("scratch");
    let mut spec = spec(&file, device, scheduler).expect("good words");
    spec.machine = Some(words::machine(machine).expect("a machine").spec);
    spec
}

fn iops(spec: &RunSpec) -> f64 {
    let r = run(spec, Hooks::default()).expect("it runs");
    let mut all = r.metric.iter().chain(&r.more_metrics);
    all.find(|m| m.name == "IOPS").expect("IOPS").value
}

/// A device that is never the bottleneck, with one hardware queue.
const FAST: &str = "constant:depth=1024,service_us=20,servers=parallel";
const COUNTS: &str = "cores=8";
const FREE: &str = "cores=8,without=scheduler-cpu";

#[test]
fn scheduler_lock_limits_the_iops_of_a_drive() {
    let of = |scheduler: &str, machine: &str| iops(&asked(4, 64, FAST, scheduler, machine));
    let none = of("none", COUNTS);
    assert!(none > 1.5e6, "{none}");
    // A thousand instructions take one microsecond. These are the instructions that our schedulers
    // execute while they hold their lock. kyber's lock protects one hardware queue.
    for (scheduler, instructions) in [("mq-deadline", 1303.0), ("bfq", 2795.0), ("kyber", 908.0)] {
        let (rate, most) = (of(scheduler, COUNTS), 1e9 / instructions);
        assert!(
            (0.97 * most..=1.005 * most).contains(&rate),
            "{scheduler}: {rate} of {most}"
        );
        // If the scheduler costs nothing, or if nothing costs CPU time, nothing limits the rate.
        let free = of(scheduler, FREE);
        assert!(free > 1.4e6, "{scheduler}, free: {free}");
        let all_free = of(scheduler, "cores=8,without=cpu");
        assert!(all_free >= free, "{scheduler}: {all_free} of {free}");
    }
    assert_eq!(none, of("none", FREE), "none has no cost above itself");
}

#[test]
fn scheduler_cost_is_invisible_to_a_single_reader_and_on_a_hard_disk() {
    let lone = |s: &str| iops(&asked(1, 1, FAST, s, COUNTS));
    let (none, bfq) = (lone("none"), lone("bfq"));
    assert!(bfq > 0.9 * none, "{bfq} of {none}");
    for scheduler in ["bfq", "cfq"] {
        let disk = |machine: &str| iops(&asked(2, 4, "hdd:hitachi-7k200", scheduler, machine));
        assert_eq!(disk("cores=2"), disk("cores=2,without=scheduler-cpu"));
    }
}
