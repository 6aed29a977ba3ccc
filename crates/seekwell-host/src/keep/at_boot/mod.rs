//! What sets a device's scheduler at boot, and which assignment is the last: udev's rules in their
//! order, programs that rules run, the active profile of tuned, services and other files of a
//! distribution.
//!
//! Only reads files and runs nothing. If files do not decide whether an assignment happens, its
//! condition is reported ([`Setter::only_if`]). Not covered: binary programs, and the results of
//! programs that rules call.

mod decide;
mod facts;
mod files;
mod pattern;
mod profiles;
mod rules;
mod services;

#[cfg(test)]
mod tests;

use super::Kept;
use crate::block::{Device, Kind, Machine, Scheduler, clean, release};
use facts::Facts;
use files::Files;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// The kind of a setter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// `elevator=` on the kernel's command line, before Linux 5.0.
    CommandLine,
    /// A udev rule.
    Rule,
    /// A program that a udev rule runs, after all rules.
    RuleProgram,
    /// A profile of tuned, of this name.
    Tuned(String),
    /// A service, of this name.
    Service(String),
}

/// A line of a file that sets a device's scheduler at boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setter {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The scheduler it sets, if the line shows it.
    pub sets: Option<String>,
    /// Its kind.
    pub by: By,
    /// Its condition; `None` if it is certain.
    pub only_if: Option<String>,
}

impl Setter {
    /// Whether it runs after all rules, so that no file name of a rule sorts after it.
    pub fn is_after_rules(&self) -> bool {
        !matches!(self.by, By::Rule | By::CommandLine)
    }
}

impl fmt::Display for Setter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", clean(&self.path.to_string_lossy()), self.line)?;
        match &self.by {
            By::CommandLine | By::Rule => {}
            By::RuleProgram => f.write_str(" (a program that udev runs after all rules)")?,
            By::Tuned(profile) => write!(f, " (tuned profile {})", clean(profile))?,
            By::Service(name) => write!(f, " ({})", clean(name))?,
        }
        let what = self.sets.as_deref().map(clean);
        let what = what.as_deref().unwrap_or("a scheduler");
        match &self.only_if {
            None => write!(f, " sets {what}"),
            Some(why) => write!(f, " may set {what} (if {why})"),
        }
    }
}

/// All setters of a device's scheduler at boot, in order: the last one wins. Leaves out those that
/// are certainly overridden. `planned`: files that are about to be written.
pub fn at_boot(m: &Machine, d: &Device, planned: &[Kept]) -> Vec<Setter> {
    if !matches!(d.scheduler, Scheduler::Choice { .. }) {
        return Vec::new();
    }
    let files = Files::new(m.tree(), planned);
    let rules = rules::all(&files);
    // Mapped devices and loop devices become usable at their first change event.
    let mapped = [
        Kind::Dm,
        Kind::Lvm,
        Kind::Crypt,
        Kind::Multipath,
        Kind::Loop,
    ];
    let (first, later) = match mapped.contains(&d.kind) {
        true => ("change", "add"),
        false => ("add", "change"),
    };
    let at = |action| decide::assigned(&rules, d, Facts::new(m.tree(), d, action, &rules));
    let mut all = Vec::new();
    let old = release(&m.tree().release()).is_some_and(|r| r < (5, 0));
    if let Some(sets) = m.elevator.clone().filter(|_| old) {
        all.push(Setter {
            path: PathBuf::from("/proc/cmdline"),
            line: 1,
            sets: Some(sets),
            by: By::CommandLine,
            only_if: None,
        });
    }
    all.extend(at(first));
    let again: Vec<Setter> = at(later)
        .into_iter()
        .filter(|s| !all.iter().any(|a| (&a.path, a.line) == (&s.path, s.line)))
        .map(|s| Setter {
            only_if: Some(format!("udev gets the event \"{later}\" for the disk")),
            ..s
        })
        .collect();
    // Before the programs, which run after all rules.
    let programs = all.iter().position(|s| s.by == By::RuleProgram);
    let place = programs.unwrap_or(all.len());
    all.splice(place..place, again);
    all.extend(profiles::setting(
        &files,
        d,
        &Facts::new(m.tree(), d, first, &rules),
    ));
    all.extend(services::writing(&files, &d.name));
    match all.iter().rposition(|s| s.only_if.is_none()) {
        Some(last) => all.split_off(last),
        None => all,
    }
}
