//! `seekwell new scheduler|device|workload|format NAME`: adds a template to the source tree.
//!
//! The template is the example of the page in docs/ with the new name. It compiles and passes its
//! tests. The author replaces its rules or values. The command overwrites nothing, and writes either
//! all parts or none.

mod device;
mod format;
mod scheduler;
mod workload;

use crate::cli::Begin;
use crate::fail::Failure;
use crate::out::Out;
use seekwell_report::table::wrap;
use std::path::{Path, PathBuf};

/// Returns the text of a file with the new line, or `None` if the list is not found.
type Edit = Box<dyn Fn(&str) -> Option<String>>;

/// The new files and lines of a scheduler, device, workload or format.
struct Part {
    /// Plural of the kind, for messages.
    kinds: &'static str,
    /// The page that describes how to add one by hand.
    page: &'static str,
    /// New files, relative to the source tree, and their texts.
    files: Vec<(String, String)>,
    /// Files of the source tree with a list that gets a new line.
    lists: Vec<(&'static str, Edit)>,
    /// What the template is, and what its author does with it.
    about: &'static str,
    /// The next commands.
    next: Vec<String>,
}

/// A file that is written.
struct Change {
    path: PathBuf,
    /// The text before, or `None` for a new file.
    old: Option<String>,
    new: String,
}

/// Writes the new files and the lines of the lists, and prints the next steps.
pub fn run(begin: &Begin, quiet: bool) -> Result<(), Failure> {
    let (part, tree) = match begin {
        Begin::Scheduler(a) => (scheduler::part(&a.name)?, &a.tree),
        Begin::Device { what, like } => (device::part(&what.name, like, &what.tree)?, &what.tree),
        Begin::Workload(a) => (workload::part(&a.name)?, &a.tree),
        Begin::Format(a) => (format::part(&a.name)?, &a.tree),
    };
    write(&changes(&part, tree)?)?;
    if quiet {
        return Ok(());
    }
    let files: Vec<&str> = part.files.iter().map(|f| &*f.0).collect();
    let lists: Vec<&str> = part.lists.iter().map(|l| l.0).collect();
    let mut out = Out::open(None)?;
    out.line(&format!("Written: {}", files.join(", ")))?;
    out.line(&format!("One line added: {}", lists.join(", ")))?;
    out.line("")?;
    let about = format!("It is the example of {} {}", part.page, part.about);
    out.text(&wrap(&about, 0, 100))?;
    for next in &part.next {
        out.line(&format!("  {next}"))?;
    }
    out.done()
}

/// Reads a file of the source tree.
fn read(tree: &Path, file: &str) -> Result<String, Failure> {
    let path = tree.join(file);
    std::fs::read_to_string(&path).map_err(|e| {
        Failure::input(format!(
            "{}: {e}; run the command in the source tree, or give --tree DIR",
            path.display()
        ))
    })
}

/// Returns all files to write. The lists are last, because before that nothing refers to the new
/// files.
fn changes(part: &Part, tree: &Path) -> Result<Vec<Change>, Failure> {
    let mut lists = Vec::new();
    for (file, edit) in &part.lists {
        let (path, old) = (tree.join(file), read(tree, file)?);
        let new = edit(&old).ok_or_else(|| {
            Failure::input(format!(
                "{}: cannot find the list of {}; add the lines by hand as in {}",
                path.display(),
                part.kinds,
                part.page
            ))
        })?;
        let old = Some(old);
        lists.push(Change { path, old, new });
    }
    let mut all = Vec::new();
    for (file, text) in &part.files {
        let path = tree.join(file);
        // A module can also be a folder.
        let folder = path.with_extension("");
        if let Some(taken) = [&path, &folder]
            .iter()
            .find(|p| p.symlink_metadata().is_ok())
        {
            let what = format!("{}: exists already; choose another name", taken.display());
            return Err(Failure::input(what));
        }
        let (old, new) = (None, text.clone());
        all.push(Change { path, old, new });
    }
    all.append(&mut lists);
    Ok(all)
}

/// Writes all files. If one of them cannot be written, the others get their old contents back.
fn write(changes: &[Change]) -> Result<(), Failure> {
    for c in changes {
        Out::check(Some(&c.path))?;
    }
    for (i, c) in changes.iter().enumerate() {
        let Err(failure) = Out::whole(&c.path, &c.new) else {
            continue;
        };
        // The first failure is reported, because it is the cause.
        for done in &changes[..i] {
            match &done.old {
                Some(old) => drop(Out::whole(&done.path, old)),
                None => drop(std::fs::remove_file(&done.path)),
            }
        }
        return Err(failure);
    }
    Ok(())
}

/// Checks a new name. `taken` returns true if a built-in part has the name.
fn check(kind: &str, name: &str, taken: impl Fn(&str) -> bool) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins || !name.chars().all(plain) || name.ends_with('-') || name.len() > 40 {
        return Err(Failure::input(format!(
            "\"{name}\" is not a valid {kind} name: use lower-case letters, digits and hyphens, \
             and start with a letter"
        )));
    }
    if taken(name) {
        let what = format!("there is already a {kind} \"{name}\"; choose another name");
        return Err(Failure::input(what));
    }
    Ok(())
}

/// Returns the name of the module of a part.
fn module_name(name: &str) -> String {
    let module = name.replace('-', "_");
    match RESERVED.contains(&&*module) {
        true => format!("{module}_"),
        false => module,
    }
}

/// Words that cannot be the name of a module.
const RESERVED: &[&str] = &[
    "as", "async", "await", "box", "break", "const", "continue", "crate", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "pub", "ref", "return", "static", "struct", "super", "trait",
    "true", "try", "type", "unsafe", "use", "where", "while", "yield",
];

/// Adds a public module in alphabetical order to the list of modules that begins with `first`.
fn add_module(first: &'static str, module: &str) -> Edit {
    let new = format!("pub mod {module};");
    Box::new(move |text| {
        let begin = text.find(first)?;
        let rest = text[begin..].trim_end();
        let end = begin + rest.find("\n\n").unwrap_or(rest.len());
        let mut lines: Vec<&str> = text[begin..end].lines().collect();
        lines.push(&new);
        lines.sort_unstable_by_key(|l| l.trim_start_matches("pub ").trim_end_matches(';'));
        Some(format!(
            "{}{}{}",
            &text[..begin],
            lines.join("\n"),
            &text[end..]
        ))
    })
}

/// Adds a line at the end of the list that begins with `start` and whose last line begins with
/// `close`.
fn add_last(start: &'static str, close: &'static str, line: String) -> Edit {
    Box::new(move |text| {
        let begin = text.find(start)?;
        let end = begin + text[begin..].find(&format!("\n{close}"))? + 1;
        let (before, after) = text.split_at(end);
        Some(format!("{before}{line}\n{after}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn of_tree(file: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    /// The lines that an edit adds to a file of the tree, with the line before each.
    pub(super) fn added(list: &(&'static str, Edit)) -> Vec<(String, String)> {
        let old = of_tree(list.0);
        let new = list.1(&old).unwrap_or_else(|| panic!("{}: no list", list.0));
        let old: Vec<&str> = old.lines().collect();
        let new: Vec<&str> = new.lines().collect();
        let more = new.len() - old.len();
        let at = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        assert_eq!(
            old[at..],
            new[at + more..],
            "{}: other lines changed",
            list.0
        );
        let line = |i: usize| (new[i - 1].to_owned(), new[i].to_owned());
        (at..at + more).map(line).collect()
    }

    #[test]
    fn modules_are_inserted_in_sorted_order() {
        let lines = "//! Doc.\n\npub mod a;\npub mod b_c;\nmod e;\n";
        let with = |name: &str, text: &str| add_module("pub mod a;", name)(text);
        let expected = "//! Doc.\n\npub mod a;\npub mod b;\npub mod b_c;\nmod e;\n";
        assert_eq!(with("b", lines).as_deref(), Some(expected));
        let expected = "//! Doc.\n\npub mod a;\npub mod b_c;\nmod e;\npub mod f;\n\nfn g() {}\n";
        let more = format!("{lines}\nfn g() {{}}\n");
        assert_eq!(with("f", &more).as_deref(), Some(expected));
        assert_eq!(with("b", ""), None);
        let last = add_last("const A", "];", "    3,".into());
        let text = "const A: &[u8] = &[\n    1,\n];\nconst B: &[u8] = &[\n];\n";
        let expected = "const A: &[u8] = &[\n    1,\n    3,\n];\nconst B: &[u8] = &[\n];\n";
        assert_eq!(last(text).as_deref(), Some(expected));
        assert_eq!(last("const B"), None);
    }

    #[test]
    fn invalid_names_are_rejected() {
        for bad in ["", "Cfq", "2fast", "a_b", "x-", "ä", "hdd:x", "taken"] {
            assert!(check("device", bad, |n| n == "taken").is_err(), "{bad}");
        }
        assert!(check("device", "first-come", |_| false).is_ok());
        assert_eq!(module_name("first-come"), "first_come");
        assert_eq!(module_name("match"), "match_");
    }

    #[test]
    fn failed_write_restores_every_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, list) = (dir.path().join("new.rs"), dir.path().join("list.rs"));
        std::fs::write(&list, "old").expect("written");
        let change = |path: &Path, old: Option<&str>| Change {
            path: path.to_owned(),
            old: old.map(str::to_owned),
            new: "new".to_owned(),
        };
        // A write to this device fails, and a check of it does not.
        let full = Path::new("/dev/full");
        let all = [
            change(&file, None),
            change(&list, Some("old")),
            change(full, None),
        ];
        assert!(write(&all).is_err());
        assert!(!file.exists());
        assert_eq!(std::fs::read_to_string(&list).expect("there"), "old");
        assert!(write(&all[..2]).is_ok());
        assert_eq!(std::fs::read_to_string(&list).expect("there"), "new");
    }
}
