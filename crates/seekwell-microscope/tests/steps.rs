//! Every step must contain all bios that the request had at that time.

use seekwell_core::{Action, BioId, RqId};
use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::rounds::{Round, replay_named};
use seekwell_microscope::{Case, Step, read_cases, run};
use std::collections::BTreeMap;
use std::path::Path;

fn steps(case: &Case) -> Vec<Step> {
    if case.events.is_empty() {
        return run(case, true).expect("it runs").events;
    }
    let round = Round::from_case(case).expect("a round");
    replay_named(&round, true).expect("it runs").steps
}

fn ids(step: &Step) -> Vec<u64> {
    step.bios.iter().map(|b| b.0).collect()
}

/// Two adjacent bios are issued as one request and complete as one.
#[test]
fn merged_request_completes_with_all_its_bios() {
    for (elevator, harness) in [
        ("noop", "legacy"),
        ("deadline", "legacy"),
        ("row", "serial"),
        ("mq-deadline", "mq"),
        ("bfq", "mq"),
    ] {
        let line = serde_json::json!({
            "case": "c", "elevator": elevator, "harness": harness,
            "device": { "depth": 1, "service_us": 1000, "rotational": true },
            "input": [[0, 1, 1, "R", 5000, 8], [10, 2, 1, "R", 100, 8], [20, 3, 1, "R", 108, 8]],
        });
        let case: Case = serde_json::from_value(line).expect("a case");
        let all = steps(&case);
        let done: Vec<_> = all
            .iter()
            .filter(|s| s.event.action == Action::Complete)
            .collect();
        let done: Vec<_> = done.into_iter().map(ids).collect();
        assert_eq!(done, [vec![1], vec![2, 3]], "{elevator}");
        let merged = all.iter().find(|s| s.event.action == Action::BackMerge);
        assert_eq!(merged.map(ids), Some(vec![2, 3]), "{elevator}");
    }
}

/// In every example and every recorded round, a request must complete with the bios with which it
/// was issued.
#[test]
fn no_request_in_any_case_loses_a_bio() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut merged = 0;
    let mut check = |case: &Case| {
        let mut out: BTreeMap<RqId, Vec<BioId>> = BTreeMap::new();
        for s in steps(case) {
            let Some(rq) = s.event.rq else { continue };
            match s.event.action {
                Action::Issue => {
                    out.insert(rq, s.bios);
                }
                Action::Complete => {
                    // A flush sequence completes without a command for the request itself.
                    if let Some(issued) = out.remove(&rq) {
                        assert_eq!(s.bios, issued, "{} {}", case.case, case.elevator);
                        merged += usize::from(issued.len() > 1);
                    }
                }
                _ => {}
            }
        }
    };
    for entry in std::fs::read_dir(root.join("cases")).expect("cases") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "jsonl") {
            let all = read_cases(&path, &CsvOptions::default()).expect("cases");
            all.iter().for_each(&mut check);
        }
    }
    assert!(merged > 10, "{merged} merged requests");
}
