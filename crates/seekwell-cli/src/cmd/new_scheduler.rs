//! `seekwell new scheduler NAME`: adds a template scheduler to the source tree.
//!
//! The template is the example of docs/add-a-scheduler.md with the new name. It compiles and passes
//! its tests. The author replaces its two rules. The command overwrites nothing, and writes either
//! all parts or none.

use crate::fail::Failure;
use crate::out::Out;
use seekwell_report::table::wrap;
use seekwell_sched::find;
use std::path::Path;

/// The example in docs/add-a-scheduler.md.
const EXAMPLE: &str = include_str!("../template/scheduler.txt");
/// The worked examples in docs/add-a-scheduler.md.
const CASES: &str = include_str!("../template/cases.txt");
/// Files of the source tree that list the schedulers.
const LIB: &str = "crates/seekwell-sched/src/lib.rs";
const REGISTRY: &str = "crates/seekwell-sched/src/registry.rs";

/// Writes the source file, the line of the registry and the cases, and prints the next steps.
pub fn run(name: &str, tree: &Path, quiet: bool) -> Result<(), Failure> {
    let module = checked(name)?;
    let source = format!("crates/seekwell-sched/src/{module}.rs");
    let cases = format!("cases/{name}.jsonl");
    let read = |file: &str| {
        let path = tree.join(file);
        std::fs::read_to_string(&path).map_err(|e| {
            Failure::input(format!(
                "{}: {e}; run the command in the source tree, or give --tree DIR",
                path.display()
            ))
        })
    };
    let (lib, registry) = (read(LIB)?, read(REGISTRY)?);
    let odd = |file: &str| {
        let path = tree.join(file);
        Failure::input(format!(
            "{}: cannot find the list of schedulers; add the scheduler by hand as in \
             docs/add-a-scheduler.md",
            path.display()
        ))
    };
    let lib = with_module(&lib, &module).ok_or_else(|| odd(LIB))?;
    let registry = with_line(&registry, &module).ok_or_else(|| odd(REGISTRY))?;
    for file in [&source, &cases] {
        let path = tree.join(file);
        if path.symlink_metadata().is_ok() {
            let what = format!("{}: exists already; choose another name", path.display());
            return Err(Failure::input(what));
        }
    }
    // The lists are written last. Before that, nothing refers to the new file.
    for (file, text) in [
        (&*source, example(name, &module)),
        (&cases, named_cases(name)),
        (LIB, lib),
        (REGISTRY, registry),
    ] {
        Out::whole(&tree.join(file), &text)?;
    }
    if quiet {
        return Ok(());
    }
    let mut out = Out::open(None)?;
    out.line(&format!("Written: {source}, {cases}"))?;
    out.line(&format!("One line added: {LIB}, {REGISTRY}"))?;
    out.line("")?;
    out.text(&wrap(
        "It is the example of docs/add-a-scheduler.md (one-way sweeps with deadlines), and passes \
         all tests unchanged. Replace its two rules by yours, then run:",
        0,
        100,
    ))?;
    for next in [
        format!("cargo test -p seekwell-sim --test worked_examples {name}"),
        "cargo test -p seekwell-sim --test all mq::".to_owned(),
        "make docs".to_owned(),
        format!("cargo run --release -p seekwell-cli -- arena {name}"),
        "cargo run --release -p seekwell-bench -- gate --write".to_owned(),
    ] {
        out.line(&format!("  {next}"))?;
    }
    out.done()
}

/// Returns the module name for a valid scheduler name.
fn checked(name: &str) -> Result<String, Failure> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins || !name.chars().all(plain) || name.ends_with('-') || name.len() > 40 {
        return Err(Failure::input(format!(
            "`{name}` is not a valid scheduler name: use lower-case letters, digits and hyphens, \
             and start with a letter"
        )));
    }
    if ["all", "single-queue", "blk-mq"].contains(&name) || find(name).is_some() {
        let what = format!("there is already a scheduler `{name}`; choose another name");
        return Err(Failure::input(what));
    }
    let module = name.replace('-', "_");
    let word = KEYWORDS.contains(&&*module);
    Ok(if word { format!("{module}_") } else { module })
}

/// Names that the module cannot have: reserved words, and modules of the crate.
const KEYWORDS: &[&str] = &[
    "as", "async", "await", "box", "break", "const", "continue", "crate", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "pub", "ref", "return", "static", "struct", "super", "trait",
    "true", "try", "type", "unsafe", "use", "where", "while", "yield", "admit", "contract", "cx",
    "dispatch", "fifo", "info", "lib", "merge", "registry", "shallow", "tunable",
];

/// Returns `lib.rs` with the new module in alphabetical order.
fn with_module(lib: &str, module: &str) -> Option<String> {
    let begin = lib.find("pub mod adios;")?;
    let end = begin + lib[begin..].find("\n\n")?;
    let mut lines: Vec<&str> = lib[begin..end].lines().collect();
    let new = format!("pub mod {module};");
    lines.push(&new);
    lines.sort_unstable();
    Some(format!(
        "{}{}{}",
        &lib[..begin],
        lines.join("\n"),
        &lib[end..]
    ))
}

/// Returns the registry with the new scheduler at the end of the built-in ones.
fn with_line(registry: &str, module: &str) -> Option<String> {
    let begin = registry.find("const BUILT_IN")?;
    let end = begin + registry[begin..].find("];")?;
    let (before, behind) = registry.split_at(end);
    Some(format!("{before}    crate::{module}::INFO,\n{behind}"))
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
fn example(name: &str, module: &str) -> String {
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
    debug_assert!(!module.is_empty());
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
    use super::*;

    fn of_tree(file: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    #[test]
    fn it_is_the_example_that_the_tests_compile_and_the_page_prints() {
        assert_eq!(EXAMPLE, of_tree("crates/seekwell-sched/tests/add/sweep.rs"));
        assert_eq!(
            example("sweep", "sweep").replace("begun from ", ""),
            EXAMPLE
        );
        let page = of_tree("docs/add-a-scheduler.md");
        for line in CASES.lines() {
            assert!(page.contains(line), "{line}");
        }
    }

    #[test]
    fn nothing_of_the_old_name_is_left_but_its_rules() {
        let text = example("first-come-2", "first_come_2");
        assert!(text.contains("name: \"first-come-2\"") && text.contains("struct FirstCome2 {"));
        let left: Vec<&str> = text.lines().filter(|l| l.contains("Sweep")).collect();
        assert_eq!(left, Vec::<&str>::new());
        assert!(example("tree", "tree").contains("pub struct TreeScheduler {"));
        let cases = named_cases("first-come-2");
        assert!(!cases.contains("sweep"), "{cases}");
    }

    #[test]
    fn lists_stay_in_order() {
        let lib = with_module(&of_tree(LIB), "first_come").expect("it has its place");
        assert!(lib.contains("pub mod fiops;\npub mod first_come;\npub mod kyber;"));
        let registry = with_line(&of_tree(REGISTRY), "first_come").expect("it has its place");
        assert!(registry.contains("turns::INFO,\n    crate::first_come::INFO,\n];"));
        assert_eq!(with_module("", "x"), None);
        assert_eq!(with_line("", "x"), None);
    }

    #[test]
    fn names_that_cannot_be_are_refused() {
        for bad in [
            "", "Cfq", "2fast", "a_b", "cfq", "cfq-3.4", "all", "x-", "ä",
        ] {
            assert!(checked(bad).is_err(), "{bad}");
        }
        assert_eq!(checked("first-come").ok().as_deref(), Some("first_come"));
        assert_eq!(checked("match").ok().as_deref(), Some("match_"));
    }
}
