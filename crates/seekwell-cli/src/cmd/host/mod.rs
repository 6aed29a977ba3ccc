//! `seekwell host [PATH]`: shows the block devices of this machine, and the layers under a path
//! that can have a scheduler.

pub mod boot_time;
mod restore;
mod show;

use crate::cli::{Host, HostAction};
use crate::fail::Failure;
use crate::out::{Out, columns, note, width};
use seekwell_host::block::{Device, Machine, Tree};
use seekwell_host::switch::journal::Records;
use serde_json::json;

/// Returns this machine, or the machine whose copy is named by --root.
fn machine(a: &Host) -> Result<Machine, Failure> {
    let Some(dir) = &a.root else {
        return Ok(Machine::read(&Tree::default()));
    };
    if !dir.join("sys/block").is_dir() && !dir.join("sys/class/block").is_dir() {
        return Err(Failure::input(format!(
            "{}: has no sys/block below it: name a directory with copies of /sys, /proc and \
             /run/udev",
            dir.display()
        )));
    }
    Ok(Machine::read(&Tree::below(dir)))
}

/// Prints further notes on stderr.
fn notes(m: &Machine, quiet: bool) {
    if let Some(e) = &m.elevator {
        note(
            quiet,
            &format!("the kernel was started with elevator={e}, which kernels since 5.0 ignore"),
        );
    }
    if m.tree().is_live() {
        let left = Records::default().left();
        if !left.is_empty() {
            note(
                quiet,
                &format!(
                    "a killed run left changed settings on {}; `sudo seekwell host restore` \
                     restores them",
                    left.join(", ")
                ),
            );
        }
    }
}

/// Runs the command.
pub fn run(a: &Host, quiet: bool) -> Result<(), Failure> {
    if let Some(HostAction::Restore(r)) = &a.action {
        return restore::run(r, quiet);
    }
    let m = machine(a)?;
    let under = a.path.as_ref().map(|p| m.under(p));
    let under = under
        .transpose()
        .map_err(|e| Failure::input(e.to_string()))?;
    notes(&m, quiet);
    let mut out = Out::open(a.output.output.as_deref())?;
    let at_boot = match &under {
        Some(u) => boot_time::setters(&m, |d| u.deciding.contains(&d.name)),
        None => boot_time::setters(&m, |d| a.all || !d.idle()),
    };
    let boot_json = boot_time::json(&at_boot);
    match under {
        Some(u) if a.json => {
            let names: Vec<&str> = u.steps.iter().map(|s| &*s.name).collect();
            let below = |d: &&Device| names.contains(&&*d.name);
            let devices: Vec<&Device> = m.devices.iter().filter(below).collect();
            out.json(
                &json!({ "schema": 1, "command": "host", "under": u, "devices": devices,
                "at_boot": boot_json }),
            )?;
        }
        Some(u) => out.text(&show::under(&m, &u, width()))?,
        None if a.json => {
            out.json(
                &json!({ "schema": 1, "command": "host", "devices": m.devices,
                "at_boot": boot_json }),
            )?;
        }
        None => out.text(&show::table(&m, a.all, columns()))?,
    }
    if !a.json {
        out.text(&boot_time::text(&at_boot, columns()))?;
    }
    out.done()
}
