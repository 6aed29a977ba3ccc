//! Checks that items registered from outside the project appear in the same places as the built-in
//! ones.

use seekwell::sdk::device::catalogue;
use seekwell::sdk::microscope::{format::CsvOptions, read_cases, run};
use seekwell::sdk::sched::registry;
use seekwell::sdk::workload::workloads;
use seekwell::{Hooks, Many, RunSpec, run_all, spec, words};

#[test]
fn external_parts_are_listed_with_the_built_in_ones() {
    outside::register();
    assert_eq!(registry().last().map(|s| s.name), Some("youngest"));
    let all = words::schedulers("blk-mq").expect("all of them");
    assert!(all.iter().any(|t| t.text == "youngest"));
    assert!(catalogue().iter().any(|e| e.name == "constant:drum"));
    assert_eq!(workloads().last().map(|w| w.name), Some("diary"));
    let said = words::schedulers("yongest")
        .expect_err("misspelt")
        .to_string();
    assert!(said.contains("did you mean `youngest`?"), "{said}");
}

/// The scheduler can be compared with others, on a built-in disk and with a built-in workload.
#[test]
fn external_scheduler_is_compared_with_others() {
    outside::register();
    let cell = |name: &str| {
        let device = "hdd:hitachi-7k200";
        spec("fs-mark:files=20,workers=8", device, name).expect("good words")
    };
    let specs: Vec<RunSpec> = ["youngest", "mq-deadline", "none"].map(cell).into();
    let records = run_all(&specs, &Many::default());
    let names = records.iter().map(|r| {
        let r = r.as_ref().expect("it runs");
        assert!(r.metric.as_ref().is_some_and(|m| m.value > 0.0));
        r.scheduler.name.as_str()
    });
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["youngest", "mq-deadline", "none"]
    );
}

/// `explain` shows the order of dispatch that the scheduler's rule gives.
#[test]
fn external_scheduler_is_explained() {
    outside::register();
    let file = std::env::temp_dir().join(format!("seekwell-outside-{}.csv", std::process::id()));
    let bios =
        "t_us,id,pid,op,sector,n\n0,1,1,R,900,8\n0,2,1,R,100,8\n0,3,2,R,300,8\n0,4,2,R,500,8\n";
    std::fs::write(&file, bios).expect("written");
    let options = CsvOptions {
        elevator: "youngest".to_owned(),
        ..CsvOptions::default()
    };
    let cases = read_cases(&file, &options).expect("a list");
    std::fs::remove_file(&file).expect("removed");
    let out = run(&cases[0], true).expect("it runs");
    let order: Vec<u64> = out.dispatch.iter().map(|d| d.1[0].0).collect();
    // The first request is dispatched before the others arrive. Then youngest and oldest are taken
    // in turn.
    assert_eq!(order.len(), 4, "{order:?}");
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [1, 2, 3, 4], "each once");
    assert!(!out.events.is_empty());
}

#[test]
fn external_device_and_workload_run_together() {
    outside::register();
    let spec = spec("diary", "constant:drum", "youngest").expect("registered words");
    let record = seekwell::run(&spec, Hooks::default()).expect("it runs");
    assert!(
        record.duration_ns >= 5_000_000_000,
        "five entries, a second each"
    );
    assert!(record.write.ios >= 5 && record.device.spec == "constant:drum");
}
