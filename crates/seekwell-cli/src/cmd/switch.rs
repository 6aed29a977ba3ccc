//! `seekwell switch DEVICE|PATH SCHEDULER`: a device's scheduler set, checked, told, put back.

use crate::cli::Switch;
use crate::fail::Failure;
use crate::out::{Out, note};
use seekwell_host::block::{Device, Machine, Scheduler, Tree, Under};
use seekwell_host::switch::command::{Held, code};
use seekwell_host::switch::journal::{Found, Records};
use seekwell_host::switch::settings::Queue;
use seekwell_host::switch::{Change, SwitchError, Switched, Wish, check, names};
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

impl From<SwitchError> for Failure {
    fn from(e: SwitchError) -> Self {
        Failure::Input(e.to_string())
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// How this program is called by root, who does not look where users keep theirs.
fn program() -> String {
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

/// The line that was typed, for root.
fn again() -> String {
    let args = std::env::args_os().skip(1);
    let args: Vec<String> = args.map(|a| quoted(&a.to_string_lossy())).collect();
    format!("sudo {} {}", program(), args.join(" "))
}

/// The devices to switch, in words why not, if there is none or a choice.
fn targets<'a>(a: &Switch, m: &'a Machine, u: &Under) -> Result<Vec<&'a Device>, Failure> {
    let refuse = |why: String| Err(Failure::input(format!("{}: {why}", u.asked)));
    let list = u.deciding.join(", ");
    let named = u.device.as_ref().and_then(|n| m.named(n)).map(|n| n.0);
    if let Some(d) = named {
        if matches!(d.scheduler, Scheduler::Choice { .. }) {
            return Ok(vec![d]);
        }
        let what = format!("{} takes no scheduler ({})", d.name, d.what());
        match u.deciding.as_slice() {
            [] => return refuse(format!("{what}, and nothing below it does")),
            _ if a.all_members => {}
            [one] => {
                return refuse(format!(
                    "{what}; what decides lies below it: name {one} instead"
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

/// NAME=VALUE.
fn tunables(a: &Switch) -> Result<Vec<(String, String)>, Failure> {
    let pair = |t: &String| match t.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::input(format!(
            "--tunable {t}: write NAME=VALUE (fifo_batch=8)"
        ))),
    };
    a.tunable.iter().map(pair).collect()
}

/// Refuses where the kernel would, with the line to type.
fn allowed(tree: &Tree, devices: &[&Device]) -> Result<(), Failure> {
    use rustix::fs::{Access, access};
    for d in devices {
        let file = Queue::new(tree.queue(&d.name)).file("scheduler");
        match access(&file, Access::WRITE_OK) {
            Ok(()) => {}
            Err(rustix::io::Errno::ROFS) => {
                return Err(Failure::input(format!(
                    "{}: /sys is mounted read-only here (a container?): do it on the host",
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

/// The device under / is switched by those who mean it.
fn confirmed(a: &Switch, m: &Machine, devices: &[&Device]) -> Result<(), Failure> {
    let carries = |d: &&&Device| m.carries_root(&d.name);
    let Some(d) = devices.iter().find(carries).filter(|_| !a.yes) else {
        return Ok(());
    };
    let refuse = |why: &str| Err(Failure::input(format!("{} carries /: {why}", d.name)));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return refuse("add --yes if it is to be switched");
    }
    let mut err = io::stderr();
    let _ = write!(
        err,
        "{} carries the root file system. Its scheduler can be changed while it works. Type {} to \
         go on: ",
        d.name, d.name
    );
    let _ = err.flush();
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
    match line.trim() == d.name {
        true => Ok(()),
        false => refuse("nothing was changed"),
    }
}

/// What was done to a device, and how it is undone: a line each.
fn told(c: &Change) -> Vec<String> {
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
    lines.extend(c.notes.iter().map(|n| format!("  {n} (ticks or pages)")));
    let beside: Vec<String> = c
        .beside()
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
        lines.push(format!("  changed with it: {}", beside.join(", ")));
    }
    let lost: Vec<String> = c
        .lost()
        .iter()
        .map(|l| format!("{} {}", l.0, l.1))
        .collect();
    if !lost.is_empty() {
        lines.push(format!(
            "  no longer in force, and not kept by the kernel: {}",
            lost.join(", ")
        ));
    }
    if from != to && to != "none" {
        let rest = c.after.tunables.iter().filter(|t| !c.asked.contains(t.0));
        // One may follow another (slice_idle_us slice_idle).
        let moved = |t: &(&String, &String)| names::default_of(to, t.0).is_some_and(|d| d != t.1);
        let (with, rest): (Vec<_>, Vec<_>) = rest.partition(moved);
        let list = |all: Vec<(&String, &String)>| {
            let all: Vec<String> = all.iter().map(|t| format!("{} {}", t.0, t.1)).collect();
            all.join(", ")
        };
        if !with.is_empty() {
            lines.push(format!("  and with it: {}", list(with)));
        }
        if !rest.is_empty() {
            lines.push(format!("  tunables at their defaults: {}", list(rest)));
        }
    }
    lines
}

/// The command that makes it as it was.
fn undo(c: &Change) -> String {
    let (scheduler, set) = c.back();
    let mut line = format!(
        "sudo {} switch {} {scheduler}",
        program(),
        quoted(&c.device)
    );
    for (name, value) in set {
        line += &format!(" -t {}", quoted(&format!("{name}={value}")));
    }
    line
}

fn found(f: &Found) -> String {
    match f {
        Found::Restored {
            device,
            scheduler,
            words,
        } => format!(
            "{device}: a killed run ({words}) had left it switched; {scheduler} and all settings are \
             as they were before it"
        ),
        Found::Moot { device, why } => {
            format!("{device}: a killed run had left it switched; nothing is put back, as {why}")
        }
    }
}

/// Puts back what killed runs left; as a result, or as notes before something else.
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

/// Everything behind `--for`, with `--` or without.
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

/// Switches, or puts back.
pub fn run(a: &Switch, quiet: bool) -> Result<(), Failure> {
    let (tree, records) = (Tree::default(), Records::default());
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
    let tunables = tunables(a)?;
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
        check(&tree, w).map_err(|e| refused(e, w, &u))?;
    }
    allowed(&tree, &devices)?;
    confirmed(a, &m, &devices)?;
    // From here on nothing but kill -9 ends this program in the middle.
    let held = Held::new().map_err(|e| Failure::input(format!("signals cannot be held: {e}")))?;
    for line in restore(&tree, &records, None)? {
        note(quiet, &line);
    }
    let what = command.as_deref().map_or("switch".to_owned(), words);
    let switched = Switched::begin(&tree, &records, &wishes, &what)?;
    match command {
        Some(command) => during(
            &switched_note(&u, &devices),
            &command,
            switched,
            &held,
            quiet,
        ),
        None => for_good(&switched_note(&u, &devices), switched, &m, quiet),
    }
}

/// With the line that would do instead, where a name of another time was asked for.
fn refused(why: String, w: &Wish<'_>, u: &Under) -> Failure {
    let near = why
        .split("nearest here is `")
        .nth(1)
        .and_then(|r| r.split('`').next());
    let asked = u.device.as_deref().unwrap_or(&u.asked);
    match near.filter(|n| names::tunables_of(n).is_some() || *n == "none") {
        Some(n) => Failure::input(format!(
            "{}: {why}\n  sudo {} switch {} {n}",
            w.device.name,
            program(),
            quoted(asked)
        )),
        None => Failure::input(format!("{}: {why}", w.device.name)),
    }
}

/// What the words that were typed came to, if that is not what they say.
fn switched_note(u: &Under, devices: &[&Device]) -> Option<String> {
    let names: Vec<&str> = devices.iter().map(|d| &*d.name).collect();
    match (&u.device, names.as_slice()) {
        (Some(named), [one]) if named == one => None,
        (Some(named), [one]) => Some(format!(
            "{named} is a part of {one}, which has one queue for all"
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
                "only root sees what is left: {}",
                again()
            )));
        }
        out.line("No killed run has left anything switched.")?;
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
        for line in told(c) {
            out.line(&line)?;
        }
        match c.before == c.after {
            true => out.line("  nothing to change")?,
            false => out.line(&format!("  back: {}", undo(c)))?,
        }
        if let Some(d) = m.device(&c.device).filter(|d| d.backing_file.is_some()) {
            let below = m
                .under(Path::new(&d.name))
                .map(|u| u.again)
                .unwrap_or_default();
            if !below.is_empty() {
                out.line(&format!(
                    "  {} below it schedules, too, and is as it was",
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
        for line in told(c) {
            note(quiet, &line);
        }
    }
    note(
        quiet,
        &format!(
            "all of it is put back at the end, and after signals; should this program be killed with \
             kill -9: sudo {} switch --restore",
            program()
        ),
    );
    let ran = held.run(command);
    for line in switched.disturbed() {
        note(false, &line);
    }
    let mut left = Vec::new();
    for done in switched.restore() {
        match done {
            Ok(Found::Restored {
                device, scheduler, ..
            }) => {
                note(
                    quiet,
                    &format!("{device}: {scheduler} again, and all settings as before"),
                );
            }
            Ok(Found::Moot { device, why }) => {
                note(false, &format!("{device}: nothing is put back, as {why}"));
            }
            Err(e) => left.push(e.to_string()),
        }
    }
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
        true => "; write its words apart, without quotes around all of them, or sh -c '...'",
        false => "",
    };
    Failure::input(format!("{program}: cannot be run: {e}{hint}"))
}
