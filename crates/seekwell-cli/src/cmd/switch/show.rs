//! Changes and how to undo them, as text and as commands.

use crate::out::note;
use seekwell_core::prose::in_prose;
use seekwell_host::block::Tree;
use seekwell_host::switch::journal::Found;
use seekwell_host::switch::{Change, names};
use std::path::Path;

/// Quotes a word for a shell, if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Returns this program's name or path for root, because root's PATH lacks the users' directories.
pub fn program() -> String {
    let seen = [
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    ];
    match std::env::current_exe() {
        Ok(p)
            if !p
                .parent()
                .is_some_and(|d| seen.iter().any(|s| d == Path::new(s))) =>
        {
            quoted(&p.to_string_lossy())
        }
        _ => "seekwell".to_owned(),
    }
}

/// Returns a command of this program for the machine of the tree: with sudo for this machine, with
/// --root for a copy, which belongs to the user.
pub fn typed(tree: &Tree, command: &str) -> String {
    typed_as(tree, &program(), command)
}

/// Like [`typed`], with another name for this program.
pub fn typed_as(tree: &Tree, program: &str, command: &str) -> String {
    let sudo = if tree.is_live() { "sudo " } else { "" };
    format!("{sudo}{program} {command}{}", root(tree))
}

/// Returns the option `--root` for a copy, and an empty text for this machine.
pub fn root(tree: &Tree) -> String {
    if tree.is_live() {
        return String::new();
    }
    let root = tree.at("/").display().to_string();
    format!(" --root {}", quoted(root.trim_end_matches('/')))
}

/// Returns the text before a command of another program, which has no option --root: on which
/// machine to run it.
pub fn there(tree: &Tree) -> &'static str {
    match tree.is_live() {
        true => "",
        false => "on the other machine: ",
    }
}

/// Returns the current command line with sudo.
pub fn again() -> String {
    let args = std::env::args_os().skip(1);
    let args: Vec<String> = args.map(|a| quoted(&a.to_string_lossy())).collect();
    format!("sudo {} {}", program(), args.join(" "))
}

/// Prints how each device was restored. Returns the errors.
pub fn put_back(
    found: impl IntoIterator<Item = Result<Found, impl std::fmt::Display>>,
    quiet: bool,
) -> Vec<String> {
    let mut left = Vec::new();
    for found in found {
        match found {
            Ok(Found::Restored {
                device, scheduler, ..
            }) => note(
                quiet,
                &format!(
                    "{device}: {} and all settings are restored",
                    in_prose(&scheduler)
                ),
            ),
            Ok(Found::Moot { device, why }) => {
                note(
                    false,
                    &format!("{device}: settings are not restored: {why}"),
                );
            }
            Err(e) => left.push(e.to_string()),
        }
    }
    left
}

/// Returns the changes of a device, one line each.
pub fn change_lines(c: &Change) -> Vec<String> {
    let mut lines = Vec::new();
    let (from, to) = (&c.before.scheduler, &c.after.scheduler);
    lines.push(match from == to {
        true => format!("{}: {to}, as before", c.device),
        false => format!("{}: {from} -> {to}, read back", c.device),
    });
    let set: Vec<String> = c
        .asked
        .iter()
        .map(|name| {
            let all = [&c.after.attributes, &c.after.tunables];
            let value = all.iter().find_map(|m| m.get(name)).map_or("?", |v| v);
            format!("{name} {value}")
        })
        .collect();
    if !set.is_empty() {
        lines.push(format!("  set: {}", set.join(", ")));
    }
    lines.extend(c.notes.iter().map(|n| format!("  {n}")));
    let beside: Vec<String> = c
        .side_effects()
        .iter()
        .map(|d| match (&*d.name, &**to) {
            ("wbt_lat_usec", "bfq") => format!(
                "{} {} -> {} (bfq switches it off)",
                d.name, d.before, d.after
            ),
            _ => format!("{} {} -> {}", d.name, d.before, d.after),
        })
        .collect();
    if !beside.is_empty() {
        lines.push(format!("  also changed: {}", beside.join(", ")));
    }
    let lost: Vec<String> = c
        .lost()
        .iter()
        .map(|l| format!("{} {}", l.0, l.1))
        .collect();
    if !lost.is_empty() {
        lines.push(format!(
            "  reset, because the kernel does not keep them: {}",
            lost.join(", ")
        ));
    }
    if from != to && to != "none" {
        let rest = c.after.tunables.iter().filter(|t| !c.asked.contains(t.0));
        // A change of one tunable may change another one (slice_idle changes slice_idle_us).
        let moved = |t: &(&String, &String)| names::default_of(to, t.0).is_some_and(|d| d != t.1);
        let (with, rest): (Vec<_>, Vec<_>) = rest.partition(moved);
        let list = |all: Vec<(&String, &String)>| {
            let all: Vec<String> = all.iter().map(|t| format!("{} {}", t.0, t.1)).collect();
            all.join(", ")
        };
        if !with.is_empty() {
            lines.push(format!(
                "  tunables that changed with another tunable: {}",
                list(with)
            ));
        }
        if !rest.is_empty() {
            lines.push(format!("  tunables at their defaults: {}", list(rest)));
        }
    }
    lines
}

/// Returns the command that restores the earlier settings.
pub fn undo(tree: &Tree, c: &Change) -> String {
    let (scheduler, set) = c.back();
    let switch = typed(tree, "switch");
    let mut line = format!("{switch} {} {scheduler}", quoted(&c.device));
    for (name, value) in set {
        line += &format!(" -t {}", quoted(&format!("{name}={value}")));
    }
    line
}

pub fn found(f: &Found) -> String {
    match f {
        Found::Restored {
            device,
            scheduler,
            words,
        } => format!(
            "{device}: a killed run ({words}) left its settings changed; {} and all settings are \
             restored",
            in_prose(scheduler)
        ),
        Found::Moot { device, why } => {
            format!(
                "{device}: a killed run left its settings changed; they are not restored: {why}"
            )
        }
    }
}

/// Returns a line about a removed temporary file of a killed `apply`.
pub fn half_written(tree: &Tree, path: &Path) -> String {
    format!(
        "{}: an unfinished file of a killed run; removed",
        tree.at(path).display()
    )
}
