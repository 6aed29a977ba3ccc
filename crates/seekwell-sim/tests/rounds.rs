//! Compares schedulers of the multi-queue layer with the decisions of a running kernel.

use seekwell_microscope::format::CsvOptions;
use seekwell_microscope::rounds::{Event, Round, RoundAgreement, What, agreement};
use seekwell_microscope::{Case, read_cases};
use std::path::Path;

fn rounds(name: &str) -> RoundAgreement {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/decisions/mq");
    let cases = read_cases(
        &dir.join(format!("{name}.jsonl.zst")),
        &CsvOptions::default(),
    );
    let rounds: Result<Vec<_>, _> = cases.unwrap().iter().map(Round::from_case).collect();
    let found = agreement(&rounds.unwrap()).unwrap();
    println!("{name}\n{found}");
    found
}

#[test]
fn none_issues_in_the_kernels_order() {
    let all = rounds("none-6.18").over(|_| true);
    assert_eq!((all.identical, all.rounds), (14, 14), "{:?}", all.differ);
    assert_eq!(all.same, all.positions);
}

#[test]
fn mq_deadline_issues_in_the_kernels_order() {
    let found = rounds("mq-deadline-6.18");
    let gated = found.over(|c| !c.starts_with("timed"));
    assert_eq!(
        (gated.identical, gated.rounds),
        (24, 24),
        "{:?}",
        gated.differ
    );
    assert!(
        gated.fifo + gated.clook <= 2,
        "the null models must not do as well"
    );
    let timed = found.over(|c| c.starts_with("timed"));
    assert_eq!(
        (timed.identical, timed.rounds),
        (10, 10),
        "{:?}",
        timed.differ
    );
    assert!(
        timed.fifo + timed.clook <= 3,
        "the null models must not do as well"
    );
}

#[test]
fn missing_completion_is_inserted_at_its_time() {
    let line = r#"{"case":"lost","elevator":"mq-deadline","hz":250,"device":{"depth":2,"service_us":1000},
        "nomerges":2,"events":[[0,0,"i",0,1,"R",800,8,2,4],[0,0,"i",1,1,"R",1600,8,2,4],
        [0,0,"i",2,1,"R",2400,8,2,4],[0,0,"r"],[1000,0,"c",0],[1010,0,"r"],[2500,0,"r"],[3000,0,"c",2]],
        "dispatch":[0,1,2]}"#;
    let case: Case = serde_json::from_str(line).unwrap();
    let round = Round::from_case(&case).unwrap();
    let of = |e: &Event| match e.what {
        What::Complete { k, .. } => Some((k, e.t_us)),
        _ => None,
    };
    let completions: Vec<_> = round.events.iter().filter_map(of).collect();
    assert_eq!(completions, [(0, 1000), (1, 2000), (2, 3000)]);
    assert!(round.events.is_sorted_by_key(|e| e.t_us));
}

#[test]
fn kyber_issues_and_resizes_like_the_kernel() {
    let found = rounds("kyber-6.18");
    let alone = found.over(|c| c != "merge");
    assert_eq!(
        (alone.identical, alone.rounds),
        (16, 16),
        "{:?}",
        alone.differ
    );
    assert_eq!(alone.pools, 16, "pool sizes");
    assert!(alone.fifo <= 3, "a FIFO must not do as well");
    // Bios are recorded without their CPU, so rounds with submitters on both CPUs cannot be
    // decided.
    let merging = found.over(|c| c == "merge");
    assert!(merging.identical >= 2, "{:?}", merging.differ);
}

#[test]
fn bfq_issues_in_the_kernels_order() {
    let found = rounds("bfq-6.18");
    let all = found.over(|_| true);
    assert_eq!((all.identical, all.rounds), (34, 34), "{:?}", all.differ);
}
