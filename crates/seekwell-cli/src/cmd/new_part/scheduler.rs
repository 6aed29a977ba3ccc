//! `seekwell new scheduler NAME`.

use super::{Part, add_last, add_module, check, module_name};
use crate::fail::Failure;
use seekwell_sched::find;

/// The example in docs/add-a-scheduler.md.
const EXAMPLE: &str = include_str!("../../template/scheduler.txt");
/// The worked examples in docs/add-a-scheduler.md.
const CASES: &str = include_str!("../../template/cases.txt");

/// Words that mean several schedulers.
const GROUPS: [&str; 3] = ["all", "single-queue", "blk-mq"];

/// Modules of the crate that are not schedulers.
const MODULES: &[&str] = &[
    "admit", "contract", "costs", "cx", "dispatch", "fifo", "info", "kernels", "lib", "merge",
    "registry", "shallow", "tunable", "wbt",
];

/// Returns the source file, the worked examples, and the lines of the lists of schedulers.
pub(super) fn part(name: &str) -> Result<Part, Failure> {
    check("scheduler", name, |n| {
        GROUPS.contains(&n) || find(n).is_some()
    })?;
    let module = module_of(name);
    Ok(Part {
        kinds: "schedulers",
        page: "docs/add-a-scheduler.md",
        files: vec![
            (
                format!("crates/seekwell-sched/src/{module}.rs"),
                example(name),
            ),
            (format!("cases/{name}.jsonl"), named_cases(name)),
        ],
        lists: vec![
            (
                "crates/seekwell-sched/src/lib.rs",
                add_module("pub mod adios;", &module),
            ),
            (
                "crates/seekwell-sched/src/registry.rs",
                add_last(
                    "const BUILT_IN",
                    "];",
                    format!("    crate::{module}::INFO,"),
                ),
            ),
        ],
        about: "(one-way sweeps with deadlines), and passes all tests unchanged. Replace its two \
                rules by yours, then run:",
        next: vec![
            format!("cargo test -p seekwell-sim --test worked_examples {name}"),
            "cargo test -p seekwell-sim --test all mq::".to_owned(),
            "make docs".to_owned(),
            format!("cargo run --release -p seekwell-cli -- arena {name}"),
            "cargo run --release -p seekwell-bench -- gate --write".to_owned(),
        ],
    })
}

/// Returns the name of the module, which must not be that of another module of the crate.
fn module_of(name: &str) -> String {
    let module = module_name(name);
    match MODULES.contains(&&*module) {
        true => format!("{module}_"),
        false => module,
    }
}

/// Returns the name of the type: `Sweep` for `sweep`, `FirstCome` for `first-come`.
fn type_name(name: &str) -> String {
    let parts = name.split('-').filter(|p| !p.is_empty());
    let part = |p: &str| {
        let (first, rest) = p.split_at(1);
        first.to_uppercase() + rest
    };
    let name: String = parts.map(part).collect();
    // Names that the example already uses.
    let taken = EXAMPLE.lines().filter(|l| l.starts_with("use "));
    let words = |l: &'static str| l.split(|c: char| !c.is_alphanumeric());
    match taken.flat_map(words).any(|w| w == name) {
        true => format!("{name}Scheduler"),
        false => name,
    }
}

/// Returns the example with the new name. The names of its rules stay.
fn example(name: &str) -> String {
    let kind = type_name(name);
    let mut text = EXAMPLE
        .replace("//! sweep: one way", &format!("//! {name}: one way"))
        .replace("name: \"sweep\"", &format!("name: \"{name}\""))
        .replace("\"sweep: ", &format!("\"{name}: "))
        .replace("the example of docs", "begun from the example of docs");
    for (was, is) in [
        ("Box::new(Sweep::new())", format!("Box::new({kind}::new())")),
        ("pub struct Sweep {", format!("pub struct {kind} {{")),
        ("impl Sweep {", format!("impl {kind} {{")),
        ("        Sweep {", format!("        {kind} {{")),
        ("Scheduler for Sweep {", format!("Scheduler for {kind} {{")),
    ] {
        text = text.replace(was, &is);
    }
    text
}

/// Returns the worked examples with the new name.
fn named_cases(name: &str) -> String {
    CASES
        .replace("\"case\":\"sweep-", &format!("\"case\":\"{name}-"))
        .replace(
            "\"elevator\":\"sweep\"",
            &format!("\"elevator\":\"{name}\""),
        )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{added, of_tree};
    use super::*;

    #[test]
    fn scheduler_template_equals_the_compiled_example_and_its_cases_are_on_the_page() {
        assert_eq!(EXAMPLE, of_tree("crates/seekwell-sched/tests/add/sweep.rs"));
        assert_eq!(example("sweep").replace("begun from ", ""), EXAMPLE);
        let page = of_tree("docs/add-a-scheduler.md");
        for line in CASES.lines() {
            assert!(page.contains(line), "{line}");
        }
    }

    #[test]
    fn renamed_template_does_not_contain_the_example_name() {
        let text = example("first-come-2");
        assert!(text.contains("name: \"first-come-2\"") && text.contains("struct FirstCome2 {"));
        let left: Vec<&str> = text.lines().filter(|l| l.contains("Sweep")).collect();
        assert_eq!(left, Vec::<&str>::new());
        assert!(example("tree").contains("pub struct TreeScheduler {"));
        let cases = named_cases("first-come-2");
        assert!(!cases.contains("sweep"), "{cases}");
    }

    #[test]
    fn scheduler_is_inserted_in_sorted_lists() {
        let part = part("first-come").expect("a new name");
        let line = |before: &str, line: &str| vec![(before.to_owned(), line.to_owned())];
        let expected = [
            line("pub mod fiops;", "pub mod first_come;"),
            line("    crate::turns::INFO,", "    crate::first_come::INFO,"),
        ];
        for (list, expected) in part.lists.iter().zip(expected) {
            assert_eq!(added(list), expected, "{}", list.0);
        }
    }

    #[test]
    fn used_scheduler_names_are_rejected() {
        for name in ["cfq", "cfq-3.4", "all", "blk-mq"] {
            assert!(part(name).is_err(), "{name}");
        }
        assert_eq!(module_of("fifo"), "fifo_");
        assert_eq!(module_of("match"), "match_");
    }
}
