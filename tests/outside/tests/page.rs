//! Compiles and registers the example of docs/add-a-scheduler.md, as the page shows it. Checks that
//! the property tests accept it, that its cases have the results that the page states, and that it
//! can be compared with other schedulers.

use seekwell::sdk::microscope::{format::CsvOptions, read_cases, run};
use seekwell::{Many, RunSpec, run_all, spec, words};
use seekwell_microscope::{Agreement, agree};
use seekwell_sched::SchedulerInfo;
// The example is written for a place inside the crate `seekwell_sched`.
pub use seekwell_sched::{contract, cx, info, tunable};
use std::path::{Path, PathBuf};
use std::sync::Once;

#[path = "../../../crates/seekwell-sim/tests/suite/allocations.rs"]
mod allocations;
#[path = "../../../crates/seekwell-block/tests/suite/backlog.rs"]
mod backlog;
#[path = "../../../crates/seekwell-evidence/tests/suite/card.rs"]
mod card;
#[path = "../../../crates/seekwell-sim/tests/suite/mq.rs"]
mod mq;
#[path = "../../../crates/seekwell-sim/tests/suite/near.rs"]
mod near;
#[path = "../../../crates/seekwell-sched/tests/add/sweep.rs"]
mod sweep;
#[path = "../../../crates/seekwell-sim/tests/suite/times.rs"]
mod times;
#[path = "../../../crates/seekwell-sim/tests/suite/versions.rs"]
mod versions;
#[path = "../../../crates/seekwell-sim/tests/suite/waiting.rs"]
mod waiting;

fn registered() -> &'static [SchedulerInfo] {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| seekwell::register_scheduler(sweep::INFO).expect("a new name"));
    let all = seekwell_sched::registry();
    let at = all.iter().position(|s| s.name == "sweep");
    let at = at.expect("it was registered");
    &all[at..=at]
}

fn page() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join("docs/add-a-scheduler.md")).expect("the page")
}

/// Writes a file that the page tells the reader to save.
fn saved(name: &str, is: impl Fn(&str) -> bool) -> PathBuf {
    let page = page();
    let lines = page.lines().filter_map(|l| l.strip_prefix("    "));
    let text: Vec<&str> = lines.filter(|l| is(l)).collect();
    assert!(!text.is_empty(), "{name}: nothing on the page");
    let file = std::env::temp_dir().join(format!("seekwell-page-{}-{name}", std::process::id()));
    std::fs::write(&file, text.join("\n") + "\n").expect("written");
    file
}

/// Checks that this test compiles the same text that the page shows.
#[test]
fn compiled_example_equals_the_page() {
    let page = page();
    let block = page.split("```rust\n").nth(1);
    let block = block.and_then(|b| b.split("```").next());
    let code = include_str!("../../../crates/seekwell-sched/tests/add/sweep.rs");
    assert_eq!(block, Some(code));
}

/// Step 3 of the page: because of the scheduler's second rule, bio 1 is dispatched third.
#[test]
fn list_on_the_page_is_explained() {
    registered();
    let row = |l: &str| l.starts_with("t_us,") || l.starts_with("0,");
    let file = saved("list.csv", row);
    let options = CsvOptions {
        elevator: "sweep".to_owned(),
        tunables: [("patience".to_owned(), "2".to_owned())].into(),
        ..CsvOptions::default()
    };
    let cases = read_cases(&file, &options).expect("a list");
    std::fs::remove_file(&file).expect("removed");
    let out = run(&cases[0], true).expect("it runs");
    let order: Vec<u64> = out.dispatch.iter().map(|d| d.1[0].0).collect();
    assert_eq!(order, [2, 4, 1, 3]);
    let rules: Vec<_> = out.events.iter().filter_map(|s| s.event.rule).collect();
    assert!(rules.iter().any(|r| r.id == "patience-over"), "{rules:?}");
    for r in sweep::INFO.rules {
        assert!(r.says.ends_with('.') && r.kernel.contains('_'), "{r:?}");
    }
}

/// Step 4 of the page: each case gives the recorded decisions, and a FIFO scheduler does not.
#[test]
fn cases_on_the_page_agree() {
    registered();
    let file = saved("cases.jsonl", |l| l.starts_with("{\"case\""));
    let cases = read_cases(&file, &CsvOptions::default()).expect("cases");
    std::fs::remove_file(&file).expect("removed");
    assert_eq!(cases.len(), 2);
    let mut alone = 0;
    for case in &cases {
        let want = case
            .expected()
            .expect("a list")
            .expect("of what it expects");
        let a = Agreement::compare(&want, None, &run(case, false).expect("it runs"));
        assert!(a.identical(), "{}: {a:?}", case.case);
        let beside = agree::compare_null_models(case, &want);
        assert_eq!(beside.len(), 2, "a FIFO and a wrong scheduler");
        alone += usize::from(beside.iter().all(|b| !b.agreement.identical()));
        let fifo = beside.iter().find(|b| b.role == "a FIFO");
        assert!(
            fifo.is_some_and(|b| !b.agreement.identical()),
            "a FIFO would do"
        );
    }
    // The first case is also handled by mq-deadline, because it is a sweep.
    assert!(alone > 0, "another scheduler would do");
}

/// Step 5 of the page: the scheduler is compared with others.
#[test]
fn example_scheduler_is_compared_with_others() {
    registered();
    let typed = words::schedulers("mq-deadline,sweep,sweep:patience=0").expect("known words");
    let cell = |t: &words::TypedScheduler| {
        let mut s = spec("fs-mark:files=20,workers=8", "hdd:hitachi-7k200", "none");
        let s = s.as_mut().expect("good words");
        s.scheduler = t.spec.clone();
        s.clone()
    };
    let specs: Vec<RunSpec> = typed.iter().map(cell).collect();
    for (r, t) in run_all(&specs, &Many::default()).iter().zip(&typed) {
        let r = r.as_ref().expect("it runs");
        assert!(
            r.metric.as_ref().is_some_and(|m| m.value > 0.0),
            "{}",
            t.text
        );
    }
}

#[test]
fn demo_shows_the_example_scheduler() {
    registered();
    let demo = seekwell_evidence::demo::find("deceptive-idleness").expect("a demo");
    let beside = ["sweep".to_owned()];
    let shown = demo
        .show_beside(1, &beside, &mut |_, _| true)
        .expect("it runs");
    let names: Vec<_> = shown.rows.iter().map(|r| r[0].as_str()).collect();
    assert_eq!(names, ["noop", "deadline", "anticipatory", "cfq", "sweep"]);
    assert!(shown.holds(), "{:?}", shown.checks);
}
