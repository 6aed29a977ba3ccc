//! `seekwell apply RESULTS|SCHEDULER --device D`: sets a scheduler, makes it permanent, or undoes
//! this.

mod boot_time;
mod choice;

use super::switch::show::{again, change_lines, half_written, quoted, root, there, typed};
use crate::cli::{Apply, Way};
use crate::fail::Failure;
use crate::out::{Out, ask, note};
use choice::Choice;
use seekwell_core::prose::in_prose;
use seekwell_host::block::{Device, Machine, Scheduler, Tree};
use seekwell_host::keep::files::{self, FilesError};
use seekwell_host::keep::{KeepError, Kept, Wanted, boot, nixos};
use seekwell_host::switch::command::Held;
use seekwell_host::switch::journal::Records;
use seekwell_host::switch::settings::Queue;
use seekwell_host::switch::{Switched, Wish, check};
use std::io::{self, IsTerminal};
use std::path::Path;

impl From<FilesError> for Failure {
    fn from(e: FilesError) -> Self {
        match e {
            FilesError::File { path, source } => Failure::Output {
                what: path.display().to_string(),
                source,
            },
            e => Failure::Input(e.to_string()),
        }
    }
}

impl From<KeepError> for Failure {
    fn from(e: KeepError) -> Self {
        Failure::Input(e.to_string())
    }
}

fn tree(a: &Apply) -> Result<Tree, Failure> {
    let Some(dir) = &a.root else {
        return Ok(Tree::default());
    };
    match dir.join("sys/block").is_dir() {
        true => Ok(Tree::below(dir)),
        false => Err(Failure::input(format!(
            "{}: has no sys/block below it: name a directory with a copy of /sys",
            dir.display()
        ))),
    }
}

/// Runs the command.
pub fn run(a: &Apply, quiet: bool) -> Result<(), Failure> {
    let tree = tree(a)?;
    let m = Machine::read(&tree);
    let name = a.device.strip_prefix("/dev/").unwrap_or(&a.device);
    let name = name.replace('/', "!");
    if a.undo {
        return undo(a, &tree, &m, &name, quiet);
    }
    let Some(what) = &a.what else {
        return Err(Failure::input("give a scheduler, or a results folder"));
    };
    let device = target(&m, &name)?;
    let choice = Choice::read(a, what, device)?;
    choice.says.iter().for_each(|line| note(quiet, line));
    let wish = Wish {
        device,
        scheduler: &choice.scheduler,
        tunables: &choice.tunables,
    };
    check(&tree, &wish).map_err(|e| Failure::input(format!("{name}: {e}")))?;
    let (kept, boot_time) = boot_time::kept(a, &m, &wish)?;
    files::check(&tree, device, &kept)?;
    let mut out = Out::open(a.output.output.as_deref())?;
    for k in &kept {
        out.line(&format!("{}:", tree.at(&k.path).display()))?;
        k.text
            .lines()
            .try_for_each(|l| out.line(&format!("  {l}")))?;
    }
    if let Some(Way::Nixos) = a.persist {
        let wanted = wanted(&tree, &wish);
        out.line("For the NixOS configuration (/etc/nixos/configuration.nix):")?;
        for l in nixos::option(&wanted)?.lines() {
            out.line(&format!("  {l}"))?;
        }
    }
    if let Some(Way::Boot) = a.persist {
        let word = boot::parameter(&tree.release(), &choice.scheduler)?;
        out.line(&format!(
            "For the kernel's command line, for all devices: {word}"
        ))?;
    }
    for line in boot_time {
        out.prose(&line)?;
    }
    for (path, value) in boot::existing(&tree) {
        let release = tree.release();
        if boot::parameter(&release, "noop").is_err() {
            note(
                quiet,
                &format!(
                    "{}: says elevator={value}, which Linux {release} ignores; remove it",
                    path.display()
                ),
            );
        }
    }
    if a.dry_run {
        let now = Queue::new(tree.queue(&device.name)).scheduler();
        let now = now.unwrap_or_else(|_| "?".to_owned());
        let keeps = match (kept.is_empty(), &a.persist) {
            (false, _) => ", and the files above would be written",
            (true, None) => ", until the next boot (--persist keeps it)",
            (true, Some(_)) => "",
        };
        out.line(&format!(
            "{name} would be set from {} to {}{keeps}. Nothing was written: --dry-run.",
            in_prose(&now),
            in_prose(&choice.scheduler)
        ))?;
        return out.done();
    }
    writable(&tree, device)?;
    out = asked(a, out, device, &kept)?;
    carry_out(&tree, &wish, &kept, &mut out, quiet)?;
    let undo = format!(
        "undo: {} --undo --device {}",
        typed(&tree, "apply"),
        quoted(&name)
    );
    out.line(&format!("  {undo}"))?;
    out.done()
}

fn target<'a>(m: &'a Machine, name: &str) -> Result<&'a Device, Failure> {
    match m.named(name) {
        Some((d, None)) if matches!(d.scheduler, Scheduler::Choice { .. }) => Ok(d),
        Some((d, None)) => Err(Failure::input(format!(
            "{name} takes no scheduler ({}); `seekwell host{} {name}` shows the devices below it",
            d.description(),
            root(m.tree())
        ))),
        Some((d, Some(_))) => Err(Failure::input(format!(
            "{name} is a part of {0}, and only the whole device has a queue: use --device {0}",
            d.name
        ))),
        None => {
            let all = m.devices.iter().map(|d| d.name.as_str());
            let near = seekwell_core::suggest::did_you_mean(name, all, &[]);
            let near = near.map_or(String::new(), |n| format!(": {n}"));
            Err(Failure::input(format!(
                "--device {name}: there is no such block device{near} (`seekwell host{}` lists them)",
                root(m.tree())
            )))
        }
    }
}

fn wanted<'a>(tree: &Tree, w: &'a Wish<'a>) -> Wanted<'a> {
    Wanted {
        device: w.device,
        scheduler: w.scheduler,
        tunables: w.tunables,
        zones_keep_order: tree.plugs_zone_writes(),
    }
}

/// Returns an error if the kernel would refuse the write. The error contains the command to use.
fn writable(tree: &Tree, d: &Device) -> Result<(), Failure> {
    let file = Queue::new(tree.queue(&d.name)).file("scheduler");
    match rustix::fs::access(&file, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::ROFS) => Err(Failure::input(format!(
            "{}: /sys is mounted read-only here (a container?); run the command on the host",
            d.name
        ))),
        Err(_) => Err(Failure::input(format!(
            "only root may set {}: {}",
            d.name,
            again()
        ))),
    }
}

/// Asks for a confirmation of permanent changes on the terminal, unless --yes is given.
fn asked(a: &Apply, out: Out, d: &Device, kept: &[Kept]) -> Result<Out, Failure> {
    if a.yes || kept.is_empty() {
        return Ok(out);
    }
    // The user must see the plan before the question.
    out.done()?;
    let refuse = |why: &str| Err(Failure::input(format!("{}: {why}", d.name)));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return refuse("add --yes to write these files");
    }
    match ask(&format!("Type {} to write them: ", d.name)) == d.name {
        true => Out::open(a.output.output.as_deref()),
        false => refuse("nothing was written"),
    }
}

/// Sets the scheduler, then writes the files. If they cannot be written, restores the device.
fn carry_out(
    tree: &Tree,
    wish: &Wish<'_>,
    kept: &[Kept],
    out: &mut Out,
    quiet: bool,
) -> Result<(), Failure> {
    let held =
        Held::new().map_err(|e| Failure::input(format!("signals cannot be blocked: {e}")))?;
    let records = match tree.is_live() {
        true => Records::default(),
        false => Records::at(tree.at("/run/seekwell")),
    };
    for path in files::sweep(tree) {
        note(quiet, &half_written(tree, &path));
    }
    for found in records.restore(tree, Some(&wish.device.name)) {
        note(quiet, &super::switch::show::found(&found?));
    }
    let one = std::slice::from_ref(wish);
    let switched = Switched::begin(tree, &records, one, "apply")?;
    let before = switched.changes().first().map(|c| c.before.clone());
    // On an error, `switched` is dropped, which restores the device.
    files::write(tree, wish.device, wish.scheduler, before.as_ref(), kept)?;
    let changes = switched.keep()?;
    files::confirm(tree, wish.device)?;
    for line in changes.iter().flat_map(change_lines) {
        out.line(&line)?;
    }
    drop(held);
    for k in kept {
        out.line(&format!("  written: {}", tree.at(&k.path).display()))?;
    }
    if kept.is_empty() {
        out.line("  until the next boot; --persist keeps it")?;
    }
    let mut activate = kept.iter().flat_map(|k| &k.activate).peekable();
    if activate.peek().is_some() {
        let all: Vec<&str> = activate.map(String::as_str).collect();
        out.line(&format!(
            "  to apply it without rebooting: {}{}",
            there(tree),
            all.join(" && ")
        ))?;
    }
    Ok(())
}

fn undo(a: &Apply, tree: &Tree, m: &Machine, name: &str, quiet: bool) -> Result<(), Failure> {
    let now = m.device(name);
    if tree.is_live() && !rustix::process::geteuid().is_root() {
        return Err(Failure::input(format!(
            "only root can undo this change: {}",
            again()
        )));
    }
    let swept = files::sweep(tree);
    let mut out = Out::open(a.output.output.as_deref())?;
    for path in &swept {
        out.line(&half_written(tree, path))?;
    }
    let undone = match files::undo(tree, name, now) {
        // The device had only leftovers of a killed run, which were removed.
        Err(FilesError::Nothing(_)) if !swept.is_empty() => return out.done(),
        undone => undone?,
    };
    for path in &undone.files {
        out.line(&format!("{}: as before", tree.at(path).display()))?;
    }
    if let (Some(before), Some(d)) = (&undone.before, now) {
        Queue::new(tree.queue(&d.name)).restore(before)?;
        out.line(&format!(
            "{name}: {} and all settings are restored",
            in_prose(&before.scheduler)
        ))?;
    } else {
        note(quiet, "the current settings stay until the next boot");
    }
    if !undone.after.is_empty() {
        let line = undone.after.join(" && ");
        out.line(&format!(
            "  to apply it without rebooting: {}{line}",
            there(tree)
        ))?;
    }
    out.done()
}

/// Returns whether the text is the path of results, not the name of a scheduler.
fn is_path(what: &str) -> bool {
    what.contains('/') || Path::new(what).is_dir()
}
