//! `seekwell host restore`: cleans up after a power cut, or after kill -9 of a run and its
//! guardian. It is started by hand, or by a systemd unit at every boot.

use crate::cli::Restore;
use crate::cmd::switch::show::{again, found, half_written, program, there, typed};
use crate::fail::Failure;
use crate::out::{Out, note};
use seekwell_host::block::{Machine, Tree};
use seekwell_host::keep::{files, unit};
use seekwell_host::left::{About, Dead, Notes, debris};
use seekwell_host::switch::command::Held;
use seekwell_host::switch::journal::Records;
use seekwell_host::switch::settings::Queue;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Actions taken, one line each, and failures.
#[derive(Default)]
struct Told {
    /// The subject of each action, and the line about it.
    done: Vec<(&'static str, String)>,
    left: Vec<String>,
}

impl Told {
    fn add(&mut self, what: &'static str, line: String) {
        self.done.push((what, line));
    }
}

fn tree(a: &Restore) -> Result<Tree, Failure> {
    match &a.root {
        None => Ok(Tree::default()),
        Some(dir) if dir.is_dir() => Ok(Tree::below(dir)),
        Some(dir) => Err(Failure::input(format!(
            "{}: there is no such directory",
            dir.display()
        ))),
    }
}

/// Runs the command.
pub fn run(a: &Restore, quiet: bool) -> Result<(), Failure> {
    let tree = tree(a)?;
    if tree.is_live() && !rustix::process::geteuid().is_root() {
        return Err(Failure::input(format!(
            "only root can restore the settings: {}",
            again()
        )));
    }
    let _held =
        Held::new().map_err(|e| Failure::input(format!("signals cannot be blocked: {e}")))?;
    if a.install_unit {
        return install(a, &tree, quiet);
    }
    if a.remove_unit {
        return remove(a, &tree, quiet);
    }
    let mut told = Told::default();
    let notes = Notes::new(&tree);
    let dead = notes.dead(&tree);
    // Programs are ended first, because their I/O should run under the experiment's settings, not
    // the restored ones.
    for d in dead.iter().filter(|d| tree.is_live() && !d.booted) {
        let n = seekwell_host::program::end_of(&d.pid.to_string());
        if n > 0 {
            let what = &d.about.experiment;
            told.add(
                "programs",
                format!("{what}: ended programs that were still running: {n}"),
            );
        }
    }
    settings(&tree, &mut told);
    applied(&tree, &mut told);
    let m = Machine::read(&tree);
    for d in dead {
        experiment(&m, d, &mut told);
    }
    notes.tidy();
    if tree.is_live() {
        for path in debris() {
            told.add("kernel", format!("{}: removed", path.display()));
        }
    }
    tell(a, &told)
}

fn records(tree: &Tree) -> Records {
    match tree.is_live() {
        true => Records::default(),
        false => Records::at(tree.at("/run/seekwell")),
    }
}

fn settings(tree: &Tree, told: &mut Told) {
    for done in records(tree).restore(tree, None) {
        match done {
            Ok(f) => told.add("settings", found(&f)),
            Err(e) => told.left.push(e.to_string()),
        }
    }
}

/// Cleans up the files of an interrupted `apply`.
fn applied(tree: &Tree, told: &mut Told) {
    let m = Machine::read(tree);
    let records = records(tree);
    // Temporary files are removed first, because a directory that contains one cannot be removed.
    for path in files::sweep(tree) {
        told.add("applied", half_written(tree, &path));
    }
    let (devices, errors) = files::cut_short(tree);
    told.left.extend(errors.iter().map(ToString::to_string));
    for device in devices {
        if records.is_held(&device) {
            continue;
        }
        let now = m.device(&device);
        let undone = match files::undo(tree, &device, now) {
            Ok(u) => u,
            Err(e) => {
                told.left.push(e.to_string());
                continue;
            }
        };
        if let (Some(before), Some(_)) = (&undone.before, now)
            && let Err(e) = Queue::new(tree.queue(&device)).restore(before)
        {
            told.left.push(e.to_string());
        }
        let after = undone.after.join(" && ");
        let after = match after.as_str() {
            "" => String::new(),
            line => format!("; to apply it without rebooting: {}{line}", there(tree)),
        };
        told.add(
            "applied",
            format!("{device}: an apply was interrupted; its files are restored{after}"),
        );
    }
}

/// Prints a line about an interrupted experiment, and removes its files.
fn experiment(m: &Machine, d: Dead, told: &mut Told) {
    let (tree, about) = (m.tree(), &d.about);
    let by = match d.booted {
        true => "a power failure or reset of the machine",
        false => "kill -9",
    };
    let mut line = format!("{}: was interrupted by {by}", about.experiment);
    if about.results.is_dir() {
        line += &format!(
            "; its results so far are in {}; {}resume with: sudo {} {}",
            about.results.display(),
            there(tree),
            program(),
            about.again
        );
    }
    if about.results == Path::new("") {
        line += " before its first measured run";
    }
    told.add("experiment", line);
    match directories(m, about) {
        Ok(gone) => {
            for path in gone {
                told.add(
                    "directory",
                    format!("{}: left by this experiment; removed", path.display()),
                );
            }
            d.forget();
        }
        Err(left) => {
            told.left.push(left);
            d.leave();
        }
    }
}

/// Removes the experiment's directories. After a failure, the note stays, so that the next call
/// tries again.
fn directories(m: &Machine, about: &About) -> Result<Vec<PathBuf>, String> {
    let dir = about.dir.display();
    let mount = &about.mount;
    let mounted = mount == Path::new("") || m.mounts.iter().any(|at| at.point == *mount);
    if !mounted {
        return Err(format!(
            "{dir}: the file system at {} is not mounted; mount it, and try again",
            mount.display()
        ));
    }
    let (gone, left) = seekwell_host::remove_leftovers(&about.dir).map_err(|e| {
        format!("{dir}: {e}: cannot list the files in this directory; try again later")
    })?;
    match left.is_empty() {
        true => Ok(gone),
        false => {
            let all: Vec<String> = left.iter().map(ToString::to_string).collect();
            Err(all.join("; "))
        }
    }
}

fn tell(a: &Restore, told: &Told) -> Result<(), Failure> {
    let mut out = Out::open(a.output.output.as_deref())?;
    if a.json {
        let all: Vec<Value> = told
            .done
            .iter()
            .map(|d| json!({ "what": d.0, "line": d.1 }))
            .collect();
        out.json(&json!({
            "schema": 1, "command": "host restore", "done": all, "left": told.left,
        }))?;
    } else {
        if told.done.is_empty() && told.left.is_empty() {
            out.line(
                "There is nothing to restore: no killed run left settings, files or programs.",
            )?;
        }
        for (_, line) in &told.done {
            out.line(line)?;
        }
    }
    out.done()?;
    match told.left.is_empty() {
        true => Ok(()),
        false => Err(Failure::Early(told.left.join("; "))),
    }
}

/// Runs systemctl if systemd is running. Otherwise prints the commands for the user.
fn systemctl(tree: &Tree, lines: &[String], quiet: bool) {
    let runs = tree.is_live() && tree.at("/run/systemd/system").is_dir();
    for line in lines {
        let mut words = line.split(' ');
        let ran = runs.then(|| {
            let mut c = Command::new(words.next().unwrap_or_default());
            c.args(words).status()
        });
        if !matches!(ran, Some(Ok(s)) if s.success()) {
            note(
                quiet,
                &format!(
                    "run this command{}: sudo {line}",
                    match tree.is_live() {
                        true => "",
                        false => " on that machine",
                    }
                ),
            );
        }
    }
}

fn install(a: &Restore, tree: &Tree, quiet: bool) -> Result<(), Failure> {
    let exe = std::env::current_exe().map_err(|e| {
        Failure::input(format!("cannot find the path of the seekwell program: {e}"))
    })?;
    let kept = unit::unit(&exe);
    if !tree.at("/etc/systemd/system").is_dir() {
        return Err(Failure::input(format!(
            "{}: not found, so this machine has no systemd; run `{} host restore` at boot by \
             another method",
            tree.at("/etc/systemd/system").display(),
            program()
        )));
    }
    let one = std::slice::from_ref(&kept);
    files::write(tree, &unit::subject(), "", None, one)?;
    files::confirm(tree, &unit::subject())?;
    systemctl(tree, &kept.activate, quiet);
    let mut out = Out::open(a.output.output.as_deref())?;
    out.line(&format!("{}:", tree.at(&kept.path).display()))?;
    for l in kept.text.lines() {
        out.line(&format!("  {l}"))?;
    }
    out.line(&format!(
        "undo: {}",
        typed(tree, "host restore --remove-unit")
    ))?;
    out.done()
}

fn remove(a: &Restore, tree: &Tree, quiet: bool) -> Result<(), Failure> {
    let subject = unit::subject();
    if files::noted(tree, &subject)?.is_some() {
        // This must be done before the file is removed, because systemctl needs the unit.
        systemctl(tree, &[format!("systemctl disable {}", unit::NAME)], true);
    }
    let undone = files::undo(tree, &subject.name, Some(&subject))?;
    let mut out = Out::open(a.output.output.as_deref())?;
    for path in &undone.files {
        out.line(&format!("{}: as before", tree.at(path).display()))?;
    }
    systemctl(tree, &undone.after, quiet);
    out.done()
}
