//! Each rule of each scheduler must decide something in a worked example or a recorded log.
//! Otherwise nobody could ever see its reason.

use seekwell_core::Rule;
use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::rounds::{self, Round};
use seekwell_microscope::{Case, Step, read_cases, run};
use seekwell_sched::{find, registry};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Rules that no case reaches, with the reason.
const UNREACHED: &[(&str, &str, &str)] = &[
    ("cfq", "last-of-group", "no case has two groups"),
    ("cfq", "group-idle", "no case has two groups"),
    (
        "cfq",
        "group-changed",
        "no case moves a process to another cgroup",
    ),
    (
        "cfq",
        "last-user-gone",
        "a queue in service is kept by its requests",
    ),
    (
        "mq-deadline",
        "class-aged",
        "takes 10 s of a busy higher class",
    ),
    (
        "kyber",
        "tokens-out",
        "takes more in flight than the cases' device has",
    ),
    ("fiops", "least-cost", "takes scales nobody would write"),
    ("fiops", "drain", "no case drains it"),
    (
        "anticipatory",
        "process-gone",
        "takes many processes that exit",
    ),
    (
        "bfq",
        "group-changed",
        "no case moves a process to another cgroup",
    ),
    (
        "bfq",
        "async-raised",
        "takes an async queue that is busy for half a second",
    ),
    (
        "bfq",
        "seeky-lowered",
        "takes 32 seeks of a soft real-time queue",
    ),
    (
        "bfq",
        "interactive-again",
        "takes a soft real-time period inside an interactive one",
    ),
    (
        "bfq",
        "enough-service",
        "takes 120000 sectors of one interactive queue",
    ),
    ("bfq", "at-head", "no case inserts at the head"),
];

fn steps(case: &Case) -> Vec<Step> {
    if case.events.is_empty() {
        let out = run(case, true).unwrap_or_else(|e| panic!("{}: {e}", case.case));
        return out.events;
    }
    let round = Round::from_case(case).unwrap_or_else(|e| panic!("{}: {e}", case.case));
    let replay = rounds::replay_named(&round, true);
    replay
        .unwrap_or_else(|e| panic!("{}: {e}", case.case))
        .steps
}

fn files(folder: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&dir).expect("a folder of cases");
    let mut files: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    files.retain(|f| f.is_file());
    files.sort();
    files
}

/// A table of rules, compared by address: versions and variants may share one.
fn table(elevator: &str) -> (&'static str, &'static [&'static Rule]) {
    let info = find(elevator).expect("a scheduler").0;
    let same = |s: &&seekwell_sched::SchedulerInfo| s.rules.as_ptr() == info.rules.as_ptr();
    let first = registry().iter().find(same).expect("registered");
    (first.name, first.rules)
}

#[test]
fn each_rule_decides_something_in_some_case() {
    let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let folders = ["../../cases", "tests/decisions", "tests/decisions/mq"];
    for file in folders.into_iter().flat_map(files) {
        let cases = read_cases(&file, &CsvOptions::default());
        for case in cases.unwrap_or_else(|e| panic!("{}: {e}", file.display())) {
            let (name, rules) = table(&case.elevator);
            let seen = seen.entry(name).or_default();
            if seen.len() < rules.len() {
                seen.extend(steps(&case).iter().filter_map(|s| Some(s.event.rule?.id)));
            }
        }
    }
    let mut missed = Vec::new();
    for s in registry() {
        let (name, rules) = table(s.name);
        let seen = &seen[name];
        for r in rules.iter().filter(|_| name == s.name) {
            let excused = UNREACHED.iter().any(|u| (u.0, u.1) == (name, r.id));
            let reached = seen.contains(r.id);
            assert!(
                !(excused && reached),
                "{name}: {} is reached after all",
                r.id
            );
            if !reached && !excused {
                missed.push(format!("{name}: {}", r.id));
            }
        }
    }
    assert!(missed.is_empty(), "no case gets to\n{}", missed.join("\n"));
    assert!(UNREACHED.iter().all(|u| !u.2.is_empty()), "say why");
}
