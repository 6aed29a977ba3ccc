//! `seekwell new format NAME`.

use super::{Part, add_last, add_module, check, module_name};
use crate::fail::Failure;

/// The example in docs/add-a-trace-format.md.
const EXAMPLE: &str = include_str!("../../template/format.txt");

/// Returns the reader and writer, and their line in the list of formats. The new format is the last
/// in the list, so every trace that a built-in format detects is read as before.
pub(super) fn part(name: &str) -> Result<Part, Failure> {
    check("format", name, |n| seekwell_trace::find_format(n).is_ok())?;
    let module = module_name(name);
    Ok(Part {
        kinds: "formats",
        page: "docs/add-a-trace-format.md",
        files: vec![(
            format!("crates/seekwell-trace/src/formats/{module}.rs"),
            example(name),
        )],
        lists: vec![
            (
                "crates/seekwell-trace/src/formats/mod.rs",
                add_module("pub mod alibaba;", &module),
            ),
            (
                "crates/seekwell-trace/src/registry.rs",
                add_last(
                    "static ALL: &[FormatInfo]",
                    "    ];",
                    format!("        crate::formats::{module}::INFO,"),
                ),
            ),
        ],
        about: "(text with one request per line), and passes all tests unchanged. Replace its \
                fields by those of your format, then run:",
        next: vec![
            format!("cargo test -p seekwell-trace {module}"),
            "cargo test -p seekwell-trace --test all".to_owned(),
            format!("cargo run -p seekwell-cli -- convert TRACE -o trace.{name}"),
            "make docs".to_owned(),
        ],
    })
}

/// Returns the example with the new name.
fn example(name: &str) -> String {
    EXAMPLE
        .replace("//! requests: ", &format!("//! {name}: "))
        .replace("\"requests\"", &format!("\"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{added, of_tree};
    use super::*;

    #[test]
    fn format_template_equals_the_compiled_example() {
        let file = "crates/seekwell-trace/tests/add/requests.rs";
        assert_eq!(EXAMPLE, of_tree(file));
        assert_eq!(example("requests"), EXAMPLE);
        let text = example("san-log");
        assert!(text.contains("name: \"san-log\"") && text.contains("&[\"san-log\"]"));
        assert!(!text.contains("requests"), "{text}");
    }

    #[test]
    fn new_format_is_added_to_every_list() {
        let part = part("san-log").expect("a new name");
        let line = |before: &str, line: &str| vec![(before.to_owned(), line.to_owned())];
        let expected = [
            line("pub mod perf;", "pub mod san_log;"),
            line(
                "        crate::formats::blkparse::INFO,",
                "        crate::formats::san_log::INFO,",
            ),
        ];
        for (list, expected) in part.lists.iter().zip(expected) {
            assert_eq!(added(list), expected, "{}", list.0);
        }
    }

    #[test]
    fn used_format_names_are_rejected() {
        for name in ["csv", "msr", "fio-iolog-v3"] {
            assert!(part(name).is_err(), "{name}");
        }
    }
}
