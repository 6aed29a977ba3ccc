//! Compares the tables in cfq/mod.rs and bfq/mod.rs with the comments in the code, in both
//! directions. The kernel function of every rule must also be in a table.

use seekwell_sched::find;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder(scheduler: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src")
        .join(scheduler)
}

/// Rows of the table: the kernel's function, the file in Seekwell, the function in Seekwell.
fn rows(scheduler: &str) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(folder(scheduler).join("mod.rs")).expect("mod.rs");
    let mut all = Vec::new();
    for line in text.lines().filter(|l| l.starts_with("//! | `")) {
        let mut cells = line.split('|').skip(1);
        let quoted = |c: Option<&str>| c.unwrap_or_default().replace([' ', '`'], "");
        let kernel = quoted(cells.next());
        for place in quoted(cells.next()).split(',') {
            let (file, function) = place.split_once("::").expect("file::function");
            all.push((kernel.clone(), file.to_owned(), function.to_owned()));
        }
    }
    all
}

/// For each function of a file, the first line of its comment, if it has one.
fn comments(text: &str) -> Vec<(String, Option<String>)> {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let mut all = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some((before, after)) = line.split_once("fn ") else {
            continue;
        };
        let words = [
            "",
            "pub ",
            "pub(super) ",
            "const ",
            "pub const ",
            "pub(super) const ",
        ];
        if !words.contains(&before) {
            continue;
        }
        let name = after.split(['(', '<']).next().unwrap_or_default();
        let above = lines[..i].iter().rev().skip_while(|l| l.starts_with("#["));
        let first = above.take_while(|l| l.starts_with("///")).last();
        all.push((name.to_owned(), first.map(|l| (*l).to_owned())));
    }
    all
}

/// The function of the kernel with which a comment begins.
fn kernel_function_of(comment: &str) -> Option<&str> {
    let name = comment.strip_prefix("/// `")?.split_once('`')?.0;
    let function = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (name.contains('_') && name.chars().all(function)).then_some(name)
}

fn assert_table_matches_comments(scheduler: &str, elsewhere: &[&str]) {
    let rows = rows(scheduler);
    assert!(rows.len() > 80, "{scheduler}: {} rows", rows.len());
    let files: BTreeSet<_> = rows.iter().map(|r| r.1.clone()).collect();
    for file in &files {
        let path = folder(scheduler).join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
        let functions = comments(&text);
        for (kernel, _, function) in rows.iter().filter(|r| r.1 == *file) {
            let says = |f: &(String, Option<String>)| {
                f.0 == *function && f.1.as_deref().and_then(kernel_function_of) == Some(kernel)
            };
            assert!(
                functions.iter().any(says),
                "{scheduler}/{file}: no comment of fn {function} begins with `{kernel}`"
            );
        }
        for (function, comment) in &functions {
            let Some(kernel) = comment.as_deref().and_then(kernel_function_of) else {
                continue;
            };
            let row = (kernel.to_owned(), file.clone(), function.clone());
            let known = rows.contains(&row) || elsewhere.contains(&kernel);
            assert!(known, "{scheduler}: the table lacks {row:?}");
        }
    }
    let (info, ..) = find(scheduler).expect("registered");
    let all: String = files
        .iter()
        .map(|f| std::fs::read_to_string(folder(scheduler).join(f)).expect("a file"))
        .collect();
    for rule in info.rules {
        let mapped = rows.iter().any(|r| r.0 == rule.kernel);
        let said = all.contains(&format!("`{}`", rule.kernel));
        assert!(
            mapped || said,
            "{scheduler}: nothing is said of {}",
            rule.kernel
        );
    }
}

#[test]
fn cfq_rule_table_matches_the_code_comments() {
    assert_table_matches_comments("cfq", &[]);
}

#[test]
fn bfq_rule_table_matches_the_code_comments() {
    assert_table_matches_comments("bfq", &["bfq_serv_to_charge", "bfq_end_wr"]);
}

#[test]
fn comments_are_found_with_their_function() {
    let text =
        "/// `a_b`: x\n/// y\n#[inline]\npub(super) fn one(x) {}\nfn two<T>() {}\nlet f = |fn_| 0;";
    let found = comments(text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(
        kernel_function_of(found[0].1.as_deref().unwrap()),
        Some("a_b")
    );
    assert_eq!(found[1], ("two".to_owned(), None));
    assert_eq!(kernel_function_of("/// `q` is done"), None);
}
