//! `seekwell new workload NAME`.

use super::{Part, add_last, add_module, check, module_name};
use crate::fail::Failure;

/// The example in docs/add-a-workload.md.
const EXAMPLE: &str = include_str!("../../template/workload.txt");

/// Words that are not workloads, and begin a workload on the command line.
const PREFIXES: [&str; 2] = ["fio", "cmd"];

/// Returns the script, its lines in the lists of scripts and results, and those in the tests that
/// run every workload briefly.
pub(super) fn part(name: &str) -> Result<Part, Failure> {
    let taken = |n: &str| PREFIXES.contains(&n) || seekwell_workload::workload(n).is_some();
    check("workload", name, taken)?;
    let module = module_name(name);
    let declared = format!(
        "    declare(\n        \"{name}\",\n        &[more(\"log records\", \"records/s\")],\n        \
         &[\"append\", \"fsync\"],\n    ),"
    );
    Ok(Part {
        kinds: "workloads",
        page: "docs/add-a-workload.md",
        files: vec![(
            format!("crates/seekwell-workload/src/scripts/{module}.rs"),
            EXAMPLE.replace("append-log", name),
        )],
        lists: vec![
            (
                "crates/seekwell-workload/src/declared.rs",
                add_last("const ALL: &[Declared]", "];", declared),
            ),
            (
                "crates/seekwell-workload/tests/every.rs",
                add_last(
                    "const SHORT",
                    "];",
                    format!("    (\"{name}\", &[(\"records\", \"20\")]),"),
                ),
            ),
            (
                "crates/seekwell-lab/tests/alike.rs",
                add_last("const SHORT", "];", format!("    \"{name}:records=200\",")),
            ),
            (
                "crates/seekwell-workload/src/scripts/mod.rs",
                add_module("pub mod androbench_io;", &module),
            ),
            (
                "crates/seekwell-workload/src/registry.rs",
                add_last("registry! {\n", "}", format!("    {module}")),
            ),
        ],
        about: "(records appended to a log, with an fsync per group), and passes all tests \
                unchanged. Replace its calls by those of your program, then run:",
        next: vec![
            format!("cargo test -p seekwell-workload {module}"),
            "cargo test -p seekwell-workload --test all every::".to_owned(),
            format!("cargo run --release -p seekwell-cli -- run {name} -s none,bfq"),
            "make docs".to_owned(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{added, of_tree};
    use super::*;

    #[test]
    fn workload_template_equals_the_compiled_example() {
        let example = of_tree("crates/seekwell-workload/tests/add/append_log.rs");
        assert_eq!(EXAMPLE, example);
        let text = &part("mail-queue").expect("a new name").files[0].1;
        assert!(text.contains("name: \"mail-queue\"") && !text.contains("append-log"));
    }

    #[test]
    fn new_workload_is_added_to_every_list() {
        let part = part("mail-queue").expect("a new name");
        let expected = [
            vec![
                "    declare(",
                "        \"mail-queue\",",
                "        &[more(\"log records\", \"records/s\")],",
                "        &[\"append\", \"fsync\"],",
                "    ),",
            ],
            vec!["    (\"mail-queue\", &[(\"records\", \"20\")]),"],
            vec!["    \"mail-queue:records=200\","],
            vec!["pub mod mail_queue;"],
            vec!["    mail_queue"],
        ];
        for (list, expected) in part.lists.iter().zip(expected) {
            let lines: Vec<String> = added(list).into_iter().map(|l| l.1).collect();
            assert_eq!(lines, expected, "{}", list.0);
        }
        assert_eq!(added(&part.lists[3])[0].0, "pub mod iozone;");
    }

    #[test]
    fn used_workload_names_are_rejected() {
        for name in ["fs-mark", "random-read", "fio", "cmd"] {
            assert!(part(name).is_err(), "{name}");
        }
    }
}
