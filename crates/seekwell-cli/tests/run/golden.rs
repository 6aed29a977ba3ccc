//! Outputs that a person has reviewed and that must not change unnoticed.
//!
//! After an intended change: `SEEKWELL_BLESS=1 cargo test -p seekwell-cli`, then read the diff.

use crate::{good, project};

fn same_as(name: &str, got: &str) {
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
fn steps_of_a_worked_example() {
    let case = project("cases/noop.jsonl");
    same_as(
        "explain-noop.txt",
        &good(&["explain", &case, "--case", "noop-N-1"]),
    );
}

#[test]
fn the_page_of_deadline() {
    same_as(
        "schedulers-deadline.txt",
        &good(&["schedulers", "deadline", "--details"]),
    );
}

#[test]
fn five_lines_of_csv() {
    let csv = project("crates/seekwell-cli/tests/golden/five.csv");
    let text = good(&[
        "explain",
        &csv,
        "--scheduler",
        "deadline",
        "--tunable",
        "fifo_batch=1",
    ]);
    same_as("explain-five.txt", &text.replace(&csv, "five.csv"));
    same_as("explain-five.csv", &good(&["explain", &csv, "--csv"]));
}
