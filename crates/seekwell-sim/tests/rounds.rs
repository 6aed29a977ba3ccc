//! Schedulers of the multi-queue layer against what a running kernel decided.

use seekwell_sim::cases::format::CsvOptions;
use seekwell_sim::cases::read_cases;
use seekwell_sim::cases::rounds::{Round, RoundAgreement, agreement};
use std::path::Path;

fn rounds(name: &str) -> RoundAgreement {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/decisions/mq");
    let cases = read_cases(
        &dir.join(format!("{name}.jsonl.zst")),
        &CsvOptions::default(),
    );
    let rounds: Result<Vec<_>, _> = cases.unwrap().iter().map(Round::of).collect();
    let found = agreement(&rounds.unwrap()).unwrap();
    println!("{name}\n{found}");
    found
}

#[test]
fn none_issues_as_the_kernel_does() {
    let all = rounds("none-6.18").over(|_| true);
    assert_eq!((all.identical, all.rounds), (14, 14), "{:?}", all.differ);
    assert_eq!(all.same, all.positions);
}

#[test]
fn mq_deadline_issues_as_the_kernel_does() {
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
    assert_eq!(timed.rounds, 10);
    assert!(timed.identical >= 9, "{:?}", timed.differ);
    assert!(timed.same * 1000 >= timed.positions * 995);
}

#[test]
fn kyber_issues_and_resizes_as_the_kernel_does() {
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
    // Bios are recorded without their CPU, so rounds whose submitters used both cannot be told.
    let merging = found.over(|c| c == "merge");
    assert!(merging.identical >= 2, "{:?}", merging.differ);
}

#[test]
fn bfq_issues_as_the_kernel_does() {
    let found = rounds("bfq-6.18");
    let all = found.over(|_| true);
    assert_eq!((all.identical, all.rounds), (34, 34), "{:?}", all.differ);
}
