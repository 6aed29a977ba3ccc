//! Finds the assignments that set the scheduler of a device at boot, in their order.
//!
//! An assignment comes from a udev rule, or from a program that such a rule runs. It can also come
//! from the active profile of tuned, a service, or another file of a distribution.
//!
//! The files are only read, and no program is run. If it depends on facts outside the files whether
//! an assignment happens, its condition is reported ([`Setter::only_if`]). Binary programs and the
//! results of programs that rules call are not covered.

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

/// Kind of an assignment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// `elevator=` on the kernel's command line, before Linux 5.0.
    CommandLine,
    /// A udev rule.
    Rule,
    /// A program that a udev rule runs. Such programs run after all rules.
    RuleProgram,
    /// A profile of tuned, with its name.
    Tuned(String),
    /// A service, with its name.
    Service(String),
}

/// A line of a file that sets the scheduler of a device at boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setter {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of the line, from 1.
    pub line: usize,
    /// The scheduler that the line sets, if the line contains its name.
    pub sets: Option<String>,
    /// Kind of the assignment.
    pub by: By,
    /// Condition of the assignment. `None` if the assignment certainly happens.
    pub only_if: Option<String>,
}

impl Setter {
    /// Returns whether the assignment happens after all rules. Then no rule can override it,
    /// whatever the name of its file.
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

/// Returns all assignments to a device's scheduler at boot, in order. The last assignment is
/// effective. Assignments that are certainly overridden are left out. `planned` are files that are
/// about to be written.
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
    // The assignments of the later event are inserted before the programs, because programs run
    // after all rules.
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
