//! Compares outputs with files that a person has reviewed. They must not change unnoticed.
//!
//! After an intended change, run `SEEKWELL_BLESS=1 cargo test -p seekwell-cli`, and then read the
//! diff.

use crate::{good, project};

fn assert_equals_golden_file(name: &str, got: &str) {
    let path = project(&format!("crates/seekwell-cli/tests/golden/{name}"));
    if std::env::var_os("SEEKWELL_BLESS").is_some() {
        std::fs::write(&path, got).expect("golden file");
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    if want != got {
        let at = want
            .lines()
            .zip(got.lines())
            .take_while(|(a, b)| a == b)
            .count();
        panic!(
            "{name} differs from line {}:\n want {:?}\n  got {:?}\nall of it:\n{got}",
            at + 1,
            want.lines().nth(at),
            got.lines().nth(at)
        );
    }
}

#[test]
fn worked_example_steps_match_the_golden_file() {
    let case = project("cases/noop.jsonl");
    assert_equals_golden_file(
        "explain-noop.txt",
        &good(&["explain", &case, "--case", "noop-N-1"]),
    );
}

#[test]
fn deadline_page_matches_the_golden_file() {
    assert_equals_golden_file(
        "schedulers-deadline.txt",
        &good(&["schedulers", "deadline", "--details"]),
    );
}

#[test]
fn explained_csv_list_matches_the_golden_files() {
    let csv = project("crates/seekwell-cli/tests/golden/five.csv");
    let text = good(&[
        "explain",
        &csv,
        "--scheduler",
        "deadline",
        "--tunable",
        "fifo_batch=1",
    ]);
    assert_equals_golden_file("explain-five.txt", &text.replace(&csv, "five.csv"));
    assert_equals_golden_file("explain-five.csv", &good(&["explain", &csv, "--csv"]));
}
