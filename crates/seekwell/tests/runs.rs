//! Executes runs through the library: parallel, failing and cancelled runs.

use seekwell::sdk::core::{Era, RqId};
use seekwell::sdk::sched::{self, Cx, Insert, Layer, Scheduler, SchedulerInfo};
use seekwell::{Cancel, Error, Hooks, Many, RunSpec, run, run_all, run_each, spec};
use std::sync::atomic::{AtomicU64, Ordering};

fn small(scheduler: &str) -> RunSpec {
    spec("fs-mark:files=2,size=16KiB", "ssd:x25m-g2-160", scheduler).expect("good words")
}

/// An external scheduler that panics on its first request.
struct Broken;

impl Scheduler for Broken {
    fn insert(&mut self, _: &mut Cx, _: RqId, _: Insert) {
        panic!("broken on purpose");
    }
    fn dispatch(&mut self, _: &mut Cx, _: u16, _: bool) -> u32 {
        0
    }
    fn joined(&mut self, _: &mut Cx, _: RqId, _: RqId) {}
    fn has_work(&self, _: &Cx, _: u16) -> bool {
        false
    }
}

const BROKEN: SchedulerInfo = SchedulerInfo {
    name: "broken",
    layer: Layer::Mq,
    versions: &[("1", Era::Mq)],
    summary: "panics",
    tunables: |_| &[],
    make: |_, _| Box::new(Broken),
    ..sched::none::INFO
};

#[test]
fn results_are_in_order_and_equal_on_any_number_of_threads() {
    let specs: Vec<RunSpec> = ["noop", "cfq", "none", "bfq", "deadline"].map(small).into();
    let text = |threads| {
        let how = Many {
            threads: Some(threads),
            ..Many::default()
        };
        let all = run_all(&specs, &how);
        let records = all.into_iter().map(|r| r.expect("it runs"));
        serde_json::to_string(&records.collect::<Vec<_>>()).expect("records")
    };
    let one = text(1);
    assert_eq!(one, text(3));
    assert!(one.find("\"noop\"") < one.find("\"deadline\""));
}

#[test]
fn failed_run_does_not_affect_the_other_runs() {
    seekwell::register_scheduler(BROKEN).expect("a new name");
    let mut bad = small("noop");
    bad.device.spec = "hdd:nosuch".into();
    let specs = [small("noop"), small("broken"), bad, small("none")];
    let all = run_all(&specs, &Many::default());
    assert!(all[0].is_ok() && all[3].is_ok());
    assert!(matches!(&all[1], Err(Error::Panicked(why)) if why == "broken on purpose"));
    let Err(Error::Spec(errors)) = &all[2] else {
        panic!("{:?}", all[2]);
    };
    assert_eq!(errors.0[0].field, "device");
}

#[test]
fn cancelled_runs_that_did_not_start_are_reported() {
    let cancel = Cancel::new();
    let specs: Vec<RunSpec> = (0..6).map(|_| small("noop")).collect();
    let how = Many {
        threads: Some(1),
        cancel: cancel.clone(),
        progress: None,
    };
    let mut kept = 0;
    let mut not_begun = 0;
    run_each(&specs, &how, |_, result| match result {
        Ok(_) => {
            kept += 1;
            cancel.set();
        }
        Err(Error::NotBegun) => not_begun += 1,
        Err(e) => panic!("{e}"),
    });
    assert!(kept >= 1 && kept + not_begun == 6, "{kept} {not_begun}");
    let already = run(&small("noop"), Hooks::default().cancel(&cancel));
    assert!(matches!(already, Err(Error::NotBegun)));
}

#[test]
fn progress_and_events_are_delivered() {
    let events = std::rc::Rc::new(AtomicU64::new(0));
    let count = std::rc::Rc::clone(&events);
    let mut last = 0;
    let mut told = |p: seekwell::Progress| last = p.done;
    let hooks = Hooks::default().progress(&mut told).events(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let more = spec(
        "fs-mark:files=200,size=16KiB",
        "ssd:x25m-g2-160",
        "mq-deadline",
    );
    let record = run(&more.expect("good words"), hooks).expect("it runs");
    assert!(last > 0);
    assert!(events.load(Ordering::Relaxed) > record.requests);
}

#[test]
fn specification_file_reproduces_the_hash_of_its_run() {
    let record = run(&small("cfq:slice_idle=0"), Hooks::default()).expect("it runs");
    let own = record.spec.expect("embedded");
    let toml = own.to_toml().expect("TOML");
    let read = RunSpec::from_toml(&toml).expect("its own text");
    assert_eq!(read.hash(), record.spec_hash);
}

#[test]
fn cancelled_run_keeps_its_measurements() {
    let long = spec("fs-mark:files=5000", "ssd:x25m-g2-160", "noop").expect("good words");
    let cancel = Cancel::new();
    let token = cancel.clone();
    let mut told = |_: seekwell::Progress| token.set();
    let hooks = Hooks::default().progress(&mut told).cancel(&cancel);
    let record = run(&long, hooks).expect("what was measured");
    let early = record.early.expect("it ended early");
    assert!(early.why.contains("stopped"), "{early:?}");
    assert!(early.at_ns > 0 && early.at_ns == record.duration_ns);
}
