//! The tables of rules: names are unique and well formed, and the code uses each rule.

use seekwell_sched::registry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(dir).expect("a folder");
    for entry in entries.map(|e| e.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, out);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            out.push(entry);
        }
    }
}

/// The table in a file, if there is one, and the rest of the code.
fn table_and_code(text: &str) -> (String, String) {
    let Some((before, rest)) = text.split_once("seekwell_core::rules! {") else {
        return (String::new(), text.to_owned());
    };
    let (table, after) = rest.split_once("\n}\n").expect("the table's end");
    (table.to_owned(), before.to_owned() + after)
}

/// Names of the constants in a table, in order.
fn constants(table: &str) -> Vec<String> {
    let starts = table.lines().filter_map(|l| l.trim().split_once(": \""));
    let upper = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    starts
        .map(|s| s.0.to_owned())
        .filter(|n| upper(n))
        .collect()
}

/// Returns true if `name` is a separate word in `code`, outside comments.
fn names(code: &str, name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let lines = code.lines().filter(|l| !l.trim_start().starts_with("//"));
    lines.flat_map(|l| l.split(|c| !word(c))).any(|w| w == name)
}

/// Code by scheduler: the file of that name, or all files of the folder.
fn by_scheduler() -> BTreeMap<String, (String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    files.sort();
    let mut all: BTreeMap<String, (String, String)> = BTreeMap::new();
    for f in files {
        let inside = f.strip_prefix(&root).expect("inside");
        let first = inside.components().next().expect("a name");
        let name = Path::new(first.as_os_str()).with_extension("");
        let text = std::fs::read_to_string(&f).expect("a source file");
        let (table, code) = table_and_code(&text);
        let of = all.entry(name.display().to_string()).or_default();
        of.0 += &table;
        of.1 += &code;
    }
    all.retain(|_, (table, _)| !table.is_empty());
    all
}

#[test]
fn each_rule_is_used_by_the_code_of_its_scheduler() {
    let all = by_scheduler();
    for (scheduler, (table, code)) in &all {
        let known = constants(table);
        assert!(!known.is_empty(), "{scheduler}: no rules");
        for rule in known {
            assert!(names(code, &rule), "{scheduler}: nothing names {rule}");
        }
    }
    // bfq and bfq-sq share a table.
    // Another test of this binary registers a scheduler.
    let built_in = registry().iter().filter(|s| s.name != "from-outside");
    let tables: BTreeSet<_> = built_in.map(|s| s.rules.as_ptr()).collect();
    assert_eq!(tables.len(), all.len(), "a scheduler without a table");
}

#[test]
fn name_search_finds_whole_words_outside_comments() {
    assert!(names("cx.why(rules::IDLING, || x)", "IDLING"));
    assert!(!names("// IDLING\nNOT_IDLING IDLING_TOO", "IDLING"));
    let (table, code) = table_and_code("a\nseekwell_core::rules! {\n    AB: \"a\", \"b\",\n}\nc\n");
    assert_eq!(constants(&table), ["AB"]);
    assert_eq!(code, "a\nc\n");
}

#[test]
fn rules_are_well_formed_and_unique() {
    let small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    for s in registry() {
        let mut ids = BTreeSet::new();
        let mut sentences = BTreeSet::new();
        assert!(!s.rules.is_empty(), "{}", s.name);
        for r in s.rules {
            let id = r.id;
            let name = s.name;
            assert!(ids.insert(id), "{name}: {id} is there twice");
            assert!(
                sentences.insert(r.says),
                "{name}: {id} says what another says"
            );
            let words = id.split('-').all(|w| !w.is_empty() && w.chars().all(small));
            assert!(words, "{name}: {id} is not small words with hyphens");
            let function = |c: char| small(c) || c == '_';
            let named = r.kernel.contains('_') && r.kernel.chars().all(function);
            assert!(named, "{name}: {id}: `{}` is no function", r.kernel);
            let sentence = r.says.ends_with('.') && !r.says.contains("  ");
            assert!(
                sentence && !r.says.contains('|'),
                "{name}: {id}: {}",
                r.says
            );
        }
    }
}

/// A comment must not be only a number, because readers do not have the text that the number refers
/// to.
#[test]
fn no_comment_is_only_a_number() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    for f in files {
        let text = std::fs::read_to_string(&f).expect("a source file");
        for line in text.lines().map(str::trim) {
            let Some(comment) = line.strip_prefix("//") else {
                continue;
            };
            let said = comment.trim_start_matches(['/', '!', ' ']);
            let numbered = |w: &str| w.starts_with(|c: char| c.is_ascii_digit());
            let rule = said
                .strip_prefix("Rule")
                .map(|r| r.trim_start_matches('s').trim());
            let only = rule.is_some_and(numbered)
                || said.split_once(' ').is_none() && numbered(said) && said.contains('.');
            assert!(!only, "{}: {line}", f.display());
        }
    }
}
