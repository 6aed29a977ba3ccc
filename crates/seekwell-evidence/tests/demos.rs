//! Runs every demo as a test that has the demo's name. The claims of the demo must hold.

use libtest_mimic::{Arguments, Trial};
use seekwell_evidence::demo::{Demo, demos};

fn check(d: &Demo) -> Result<(), libtest_mimic::Failed> {
    let mut told = (0, 0);
    let shown = d.show(1, &mut |done, of| {
        assert!(done >= told.0, "never back");
        told = (done, of);
        true
    })?;
    assert_eq!(told.0, told.1, "the number of its runs");
    for row in std::iter::once(&shown.columns).chain(&shown.rows) {
        println!("{}", row.join(" | "));
    }
    let broken: Vec<_> = shown
        .checks
        .iter()
        .filter(|c| !c.1)
        .map(|c| c.0.as_str())
        .collect();
    if broken.is_empty() && !shown.checks.is_empty() {
        return Ok(());
    }
    let table: Vec<String> = shown.rows.iter().map(|r| r.join(" | ")).collect();
    Err(format!("does not hold: {}\n{}", broken.join("; "), table.join("\n")).into())
}

fn main() {
    let args = Arguments::from_args();
    let trials = demos()
        .map(|d| Trial::test(d.name, move || check(d)))
        .collect();
    libtest_mimic::run(&args, trials).exit();
}
