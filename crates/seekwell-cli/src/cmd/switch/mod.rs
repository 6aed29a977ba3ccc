//! `seekwell switch DEVICE|PATH SCHEDULER`: sets a device's scheduler, checks the setting, prints
//! the changes, and restores the settings.

pub mod guard;
pub mod show;

use crate::cli::Switch;
use crate::fail::Failure;
use crate::out::{Out, ask, note};
use seekwell_core::once::Once;
use seekwell_host::block::{Device, Machine, Scheduler, Tree, Under};
use seekwell_host::switch::command::{Held, code};
use seekwell_host::switch::journal::Records;
use seekwell_host::switch::settings::Queue;
use seekwell_host::switch::{SwitchError, Switched, Wish, check, names};
use show::{again, change_lines, found, program, quoted, typed, undo};
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;

impl From<SwitchError> for Failure {
    fn from(e: SwitchError) -> Self {
        Failure::Input(e.to_string())
    }
}

/// Returns the devices to switch. The error says why there is none, or more than one.
fn targets<'a>(a: &Switch, m: &'a Machine, u: &Under) -> Result<Vec<&'a Device>, Failure> {
    let refuse = |why: String| Err(Failure::input(format!("{}: {why}", u.asked)));
    let list = u.deciding.join(", ");
    let named = u.device.as_ref().and_then(|n| m.named(n)).map(|n| n.0);
    if let Some(d) = named {
        if matches!(d.scheduler, Scheduler::Choice { .. }) {
            return Ok(vec![d]);
        }
        let what = format!("{} takes no scheduler ({})", d.name, d.description());
        match u.deciding.as_slice() {
            [] => return refuse(format!("{what}, and nothing below it does")),
            _ if a.all_members => {}
            [one] => {
                return refuse(format!(
                    "{what}; the device below it decides: name {one} instead"
                ));
            }
            _ => {
                return refuse(format!(
                    "{what}; {} devices below it do: {list}. Name one of them, or add --all-members \
                     to switch all",
                    u.deciding.len()
                ));
            }
        }
    }
    match u.deciding.len() {
        0 => return refuse(u.verdict.clone()),
        1 => {}
        _ if a.all_members => {}
        n => {
            return refuse(format!(
                "lies on {n} devices that each have a scheduler: {list}. Name one of them, or add \
                 --all-members to switch all"
            ));
        }
    }
    Ok(u.deciding.iter().filter_map(|n| m.device(n)).collect())
}

/// Parses NAME=VALUE pairs. Each name may appear once.
pub fn tunables(given: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let mut once = Once::default();
    let mut all: Vec<(String, String)> = Vec::new();
    for t in given {
        let pair = t.split_once('=').filter(|p| !p.0.trim().is_empty());
        let Some((name, value)) = pair else {
            return Err(Failure::input(format!(
                "--tunable {t}: write NAME=VALUE (fifo_batch=8)"
            )));
        };
        let (name, value) = (name.trim(), value.trim());
        let bad = |what: String| Failure::input(format!("--tunable {t}: {what}"));
        once.take(name, t).map_err(bad)?;
        // For the same value in two units, the kernel would use the one that is set last.
        let same = |n: &str| n == format!("{name}_us") || name == format!("{n}_us");
        if let Some((other, _)) = all.iter().find(|p| same(&p.0)) {
            return Err(bad(format!(
                "{other} and {name} are the same value in two units: set one of them"
            )));
        }
        all.push((name.to_owned(), value.to_owned()));
    }
    Ok(all)
}

/// Returns an error if the kernel would refuse the change. The error contains the command to use.
fn allowed(tree: &Tree, devices: &[&Device]) -> Result<(), Failure> {
    use rustix::fs::{Access, access};
    for d in devices {
        let file = Queue::new(tree.queue(&d.name)).file("scheduler");
        match access(&file, Access::WRITE_OK) {
            Ok(()) => {}
            Err(rustix::io::Errno::ROFS) => {
                return Err(Failure::input(format!(
                    "{}: /sys is mounted read-only here (a container?); run the command on the \
                     host",
                    d.name
                )));
            }
            Err(_) => {
                return Err(Failure::input(format!(
                    "only root may switch {}: {}",
                    d.name,
                    again()
                )));
            }
        }
    }
    Ok(())
}

/// Asks for a confirmation before the device with the root file system is switched.
fn confirmed(
    a: &Switch,
    m: &Machine,
    devices: &[&Device],
    command: Option<&[OsString]>,
) -> Result<(), Failure> {
    let carries = |d: &&&Device| m.carries_root(&d.name);
    let Some(d) = devices.iter().find(carries).filter(|_| !a.yes) else {
        return Ok(());
    };
    let refuse = |why: &str| {
        Err(Failure::input(format!(
            "{} holds the root file system: {why}",
            d.name
        )))
    };
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return refuse("add --yes to switch it");
    }
    let runs = command.map_or(String::new(), |c| {
        format!(
            " During this time, this command runs as root: {}.",
            words(c)
        )
    });
    let question = format!(
        "{} holds the root file system. Its scheduler can be changed during operation.{runs} Type \
         {} to continue: ",
        d.name, d.name
    );
    match ask(&question) == d.name {
        true => Ok(()),
        false => refuse("nothing was changed"),
    }
}

/// Restores settings of killed runs. Returns one line for each restored device.
fn restore(tree: &Tree, records: &Records, only: Option<&Path>) -> Result<Vec<String>, Failure> {
    let only = only.map(|p| {
        let name = p.strip_prefix("/dev").unwrap_or(p);
        name.to_string_lossy().replace('/', "!")
    });
    let mut lines = Vec::new();
    for done in records.restore(tree, only.as_deref()) {
        lines.push(found(&done?));
    }
    Ok(lines)
}

/// Returns the command after `--for`, without the `--` before it.
fn command(a: &Switch) -> Option<Vec<OsString>> {
    let all = a.during.as_deref()?;
    let all = match all.split_first() {
        Some((dashes, rest)) if dashes == "--" => rest,
        _ => all,
    };
    Some(all.to_vec())
}

fn words(command: &[OsString]) -> String {
    let all: Vec<String> = command
        .iter()
        .map(|w| quoted(&w.to_string_lossy()))
        .collect();
    all.join(" ")
}

/// Sets the scheduler, or restores the settings.
pub fn run(a: &Switch, quiet: bool) -> Result<(), Failure> {
    let (tree, records) = match &a.root {
        None => (Tree::default(), Records::default()),
        Some(dir) if dir.join("sys/block").is_dir() => {
            let tree = Tree::below(dir);
            let records = Records::at(tree.at("/run/seekwell"));
            (tree, records)
        }
        Some(dir) => {
            return Err(Failure::input(format!(
                "{}: has no sys/block below it: name a directory with a copy of /sys",
                dir.display()
            )));
        }
    };
    if let Some(pid) = a.guard {
        return guard::stand(&tree, &records, pid);
    }
    if a.restore {
        return restore_only(a, &tree, &records);
    }
    let (Some(path), Some(scheduler)) = (&a.path, &a.scheduler) else {
        return Err(Failure::input("name a device or path, and a scheduler"));
    };
    let command = command(a);
    if command.as_ref().is_some_and(Vec::is_empty) {
        return Err(Failure::input(
            "--for: name the command (seekwell switch sda bfq --for make -j4)",
        ));
    }
    let tunables = tunables(&a.tunable)?;
    let m = Machine::read(&tree);
    let u = m.under(path).map_err(|e| Failure::input(e.to_string()))?;
    let devices = targets(a, &m, &u)?;
    let wishes: Vec<Wish<'_>> = devices
        .iter()
        .map(|d| Wish {
            device: d,
            scheduler,
            tunables: &tunables,
        })
        .collect();
    for w in &wishes {
        check(&tree, w).map_err(|e| refused(&tree, e, w, &u))?;
    }
    allowed(&tree, &devices)?;
    confirmed(a, &m, &devices, command.as_deref())?;
    // From here on, only kill -9 can end this program between two steps.
    let held =
        Held::new().map_err(|e| Failure::input(format!("signals cannot be blocked: {e}")))?;
    for line in restore(&tree, &records, None)? {
        note(quiet, &line);
    }
    let what = command.as_deref().map_or("switch".to_owned(), words);
    // The guard is started before the first change. If this process is killed, the guard restores
    // the recorded settings.
    let guard = match command {
        Some(_) => guard::Guard::start()
            .inspect_err(|e| note(quiet, &format!("cannot start a guardian process: {e}")))
            .ok(),
        None => None,
    };
    let begun = Switched::begin(&tree, &records, &wishes, &what);
    // Changes that were made before the error are already restored.
    let switched = begun.map_err(|e| {
        let all: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
        let whose = match e {
            SwitchError::Tunable(_) | SwitchError::Otherwise { .. } => all.join(", ") + ": ",
            _ => String::new(),
        };
        Failure::input(format!("{whose}{e}; nothing was changed"))
    })?;
    let done = match command {
        Some(command) => during(
            &switched_note(&u, &devices),
            &command,
            switched,
            &held,
            quiet,
        ),
        None => for_good(&switched_note(&u, &devices), switched, &m, quiet),
    };
    drop(guard);
    done
}

/// Returns the failure. If a scheduler of another kernel generation was requested, the message
/// contains the command with the nearest scheduler.
fn refused(tree: &Tree, why: String, w: &Wish<'_>, u: &Under) -> Failure {
    let near = why
        .split("nearest here is `")
        .nth(1)
        .and_then(|r| r.split('`').next());
    let asked = u.device.as_deref().unwrap_or(&u.asked);
    match near.filter(|n| names::tunables_of(n).is_some() || *n == "none") {
        Some(n) => Failure::input(format!(
            "{}: {why}\n  {} {} {n}",
            w.device.name,
            typed(tree, "switch"),
            quoted(asked)
        )),
        None => Failure::input(format!("{}: {why}", w.device.name)),
    }
}

/// Returns a note that names the devices behind the path, if the user did not name a device.
fn switched_note(u: &Under, devices: &[&Device]) -> Option<String> {
    let names: Vec<&str> = devices.iter().map(|d| &*d.name).collect();
    match (&u.device, names.as_slice()) {
        (Some(named), [one]) if named == one => None,
        (Some(named), [one]) => Some(format!(
            "{named} is a part of {one}; the whole device has one queue"
        )),
        _ => Some(format!("{} lies on {}", u.asked, names.join(", "))),
    }
}

fn restore_only(a: &Switch, tree: &Tree, records: &Records) -> Result<(), Failure> {
    let _held = Held::new();
    let lines = restore(tree, records, a.path.as_deref())?;
    let mut out = Out::open(None)?;
    if lines.is_empty() {
        let unread = std::fs::read_dir(records.dir()).is_err() && records.dir().exists();
        if unread || !rustix::process::geteuid().is_root() {
            return Err(Failure::input(format!(
                "only root can see the settings that killed runs changed: {}",
                again()
            )));
        }
        out.line("No killed run left changed settings.")?;
    }
    for line in lines {
        out.line(&line)?;
    }
    out.done()
}

fn for_good(
    lies: &Option<String>,
    switched: Switched,
    m: &Machine,
    quiet: bool,
) -> Result<(), Failure> {
    let changes = switched.keep()?;
    if let Some(lies) = lies {
        note(quiet, lies);
    }
    let mut out = Out::open(None)?;
    for c in &changes {
        for line in change_lines(c) {
            out.line(&line)?;
        }
        match c.before == c.after {
            true => out.line("  nothing to change")?,
            false => out.line(&format!("  back: {}", undo(m.tree(), c)))?,
        }
        if let Some(d) = m.device(&c.device).filter(|d| d.backing_file.is_some()) {
            let below = m
                .under(Path::new(&d.name))
                .map(|u| u.again)
                .unwrap_or_default();
            if !below.is_empty() {
                out.line(&format!(
                    "  {} below it also has a scheduler, which was not changed",
                    below.join(", ")
                ))?;
            }
        }
    }
    out.done()
}

fn during(
    lies: &Option<String>,
    command: &[OsString],
    switched: Switched,
    held: &Held,
    quiet: bool,
) -> Result<(), Failure> {
    if let Some(lies) = lies {
        note(quiet, lies);
    }
    for c in switched.changes() {
        for line in change_lines(c) {
            note(quiet, &line);
        }
    }
    note(
        quiet,
        &format!(
            "everything is restored at the end, also after signals and kill -9. If the guardian \
             process is killed too: sudo {} switch --restore",
            program()
        ),
    );
    let ran = held.run(command);
    for line in switched.disturbed() {
        note(false, &line);
    }
    let left = show::put_back(switched.restore(), quiet);
    let status = ran.map_err(|e| not_run(&command[0], &e));
    if !left.is_empty() {
        let code = status
            .as_ref()
            .map_or("was not run".to_owned(), |s| format!("ended with {s}"));
        return Err(Failure::Early(format!(
            "{}; {} {code}. Try again: sudo {} switch --restore",
            left.join("; "),
            command[0].to_string_lossy(),
            program()
        )));
    }
    match code(status?) {
        0 => Ok(()),
        code => Err(Failure::Command(code)),
    }
}

fn not_run(program: &OsString, e: &io::Error) -> Failure {
    let program = program.to_string_lossy();
    let hint = match program.contains(' ') {
        true => {
            "; write its words separately, without quotes around all of them, or use sh -c \
                 '...'"
        }
        false => "",
    };
    Failure::input(format!("{program}: cannot be run: {e}{hint}"))
}
