//! Changes the scheduler and the settings of devices, checks the new values, and restores the old
//! values when the program ends.
//!
//! The settings are recorded before the first change ([`journal`]). Dropping [`Switched`] restores
//! them: at the end, after an error, and after a panic. Signals must not end the program before
//! that ([`command::Held`]). After `kill -9` the record remains, and the next start restores the
//! settings. Changed values are read back. If a value that was read back differs from the written
//! value, this is an error. If the kernel only rounded the value to ticks or pages, it is a note.
//!
//! Values that sysfs does not show are not restored. An example is the number of tags under `none`,
//! which this module never changes.

mod again;
pub mod command;
pub mod journal;
pub mod names;
pub mod settings;
mod throttle;

#[cfg(test)]
mod tests;

use crate::block::{Device, Tree};
use journal::{Record, Records};
use seekwell_core::prose::in_prose;
use seekwell_core::suggest;
use settings::{ATTRIBUTES, Queue, Settings, differences};
use std::io;
use std::path::PathBuf;
use thiserror::Error;
use throttle::{Throttles, WBT};

/// Reasons why a device cannot be switched or restored.
#[derive(Debug, Error)]
pub enum SwitchError {
    /// A file cannot be opened or read.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The kernel rejects a value.
    #[error("{}: the kernel refuses \"{value}\": {source}", path.display())]
    Refused {
        /// Path of the file.
        path: PathBuf,
        /// The rejected value.
        value: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The kernel accepted a value but shows another value.
    #[error("{name}: \"{wrote}\" was written, but the kernel shows \"{reads}\"")]
    Otherwise {
        /// Name of the setting.
        name: String,
        /// The value that was written.
        wrote: String,
        /// The value that was read back.
        reads: String,
    },
    /// A file contains unexpected text.
    #[error("{}: cannot be understood: \"{text}\"", path.display())]
    Strange {
        /// Path of the file.
        path: PathBuf,
        /// The text in the file.
        text: String,
    },
    /// The scheduler has no such tunable.
    #[error("{0}")]
    Tunable(String),
    /// Another process of Seekwell has locked the device.
    #[error("{device} is being switched by {by}; wait for its end")]
    Busy {
        /// Name of the device.
        device: String,
        /// Description of the other process.
        by: String,
    },
    /// The settings cannot be recorded.
    #[error(
        "{}: the settings cannot be recorded there: {source}; {} names another directory",
        path.display(),
        journal::VARIABLE
    )]
    State {
        /// Path of the directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The record is invalid, or other users could have written it.
    #[error(
        "{}: is not a valid record of settings, or other users could write it: check it and remove \
         it",
        path.display()
    )]
    Unreadable {
        /// Path of the record.
        path: PathBuf,
    },
    /// Some settings could not be restored.
    #[error("{}: these settings could not be restored: {left}", dir.display())]
    NotRestored {
        /// Directory of the queue.
        dir: PathBuf,
        /// The settings that differ.
        left: String,
    },
}

/// The settings that are requested for a device.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// The device.
    pub device: &'a Device,
    /// The scheduler. It must be offered by the queue.
    pub scheduler: &'a str,
    /// Tunables of the scheduler and attributes of the queue, with their values.
    pub tunables: &'a [(String, String)],
}

/// A change of a device's settings.
#[derive(Clone, Debug)]
pub struct Change {
    /// Name of the device.
    pub device: String,
    /// The settings before the change.
    pub before: Settings,
    /// The settings after the change.
    pub after: Settings,
    /// Names of the settings that were requested.
    pub asked: Vec<String>,
    /// Notes about values that the kernel rounded.
    pub notes: Vec<String>,
}

impl Change {
    /// Returns the settings that changed although they were not requested.
    pub fn side_effects(&self) -> Vec<settings::Difference> {
        let mut all = differences(&self.before, &self.after);
        all.retain(|d| d.name != "scheduler" && !self.asked.contains(&d.name));
        all
    }
    /// Returns the tunables of the previous scheduler that differed from their defaults. The switch
    /// to another scheduler resets these tunables.
    pub fn lost(&self) -> Vec<(String, String)> {
        let s = &self.before.scheduler;
        let all = self.before.tunables.iter();
        let own = |t: &(&String, &String)| match (names::default_of(s, t.0), names::tunables_of(s))
        {
            (Some(default), _) => default != t.1,
            // The default of `async_depth` depends on `nr_requests`, so it is left out. If the
            // tunables of a scheduler are unknown, all of them are returned.
            (None, Some(_)) => t.0 != "async_depth",
            (None, None) => true,
        };
        let all = all.filter(own).map(|(k, v)| (k.clone(), v.clone()));
        match self.before.scheduler == self.after.scheduler {
            true => Vec::new(),
            false => all.collect(),
        }
    }
    /// Returns the scheduler and the settings that undo the change, as arguments for another
    /// switch.
    pub fn back(&self) -> (String, Vec<(String, String)>) {
        let mut set = Vec::new();
        let same = self.before.scheduler == self.after.scheduler;
        let mut add = |name: &str| {
            if let Some(value) = self.before.attributes.get(name) {
                set.push((name.to_owned(), value.clone()));
            }
        };
        for d in differences(&self.before, &self.after) {
            let depth = d.name == "nr_requests";
            if !ATTRIBUTES.contains(&&*d.name) || (depth && self.before.scheduler == "none") {
                continue;
            }
            if (same || self.asked.contains(&d.name) || depth) && !(depth && self.follows()) {
                add(&d.name);
            }
        }
        if same {
            let all = differences(&self.before, &self.after).into_iter();
            let own = all.filter(|d| self.before.tunables.contains_key(&d.name));
            set.extend(own.map(|d| (d.name, d.before)));
        } else {
            set.extend(self.lost());
        }
        (self.before.scheduler.clone(), set)
    }
    /// Returns whether a switch back to the previous scheduler restores `nr_requests`
    /// automatically. When a scheduler is set, the kernel sets `nr_requests` to `2 * min(tags,
    /// 128)`. Under `none`, `nr_requests` is the number of tags.
    fn follows(&self) -> bool {
        let number = |s: &Settings| s.attributes.get("nr_requests")?.parse::<u32>().ok();
        let asked = self.asked.iter().any(|a| a == "nr_requests");
        match (number(&self.before), number(&self.after)) {
            (Some(a), Some(b)) if self.after.scheduler == "none" => a == 2 * b.min(128),
            (Some(a), Some(b)) => a == b && !asked,
            _ => false,
        }
    }
}

/// Devices whose settings were changed. Dropping the value restores the settings.
#[derive(Debug)]
pub struct Switched {
    tree: Tree,
    records: Vec<Record>,
    changes: Vec<Change>,
    throttles: Throttles,
}

impl Switched {
    /// Changes the settings of devices. If one device fails, all devices are restored. `words`
    /// describes the purpose of the change. Another process shows this text if it finds the device
    /// locked.
    pub fn begin(
        tree: &Tree,
        records: &Records,
        wishes: &[Wish<'_>],
        words: &str,
    ) -> Result<Switched, SwitchError> {
        let mut all = Switched {
            tree: tree.clone(),
            records: Vec::new(),
            changes: Vec::new(),
            throttles: Throttles::default(),
        };
        // All devices are locked and recorded before the first change.
        for w in wishes {
            let (record, _) = records.begin(tree, w.device, words)?;
            all.records.push(record);
        }
        for (i, w) in wishes.iter().enumerate() {
            let before = all.records[i].before().clone();
            let queue = Queue::new(tree.queue(&w.device.name));
            let notes = apply(&queue, w)?;
            all.changes.push(Change {
                device: w.device.name.clone(),
                before,
                after: queue.read()?,
                asked: w.tunables.iter().map(|t| t.0.clone()).collect(),
                notes,
            });
        }
        Ok(all)
    }

    /// Returns the changes.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Makes the changes permanent.
    pub fn keep(mut self) -> Result<Vec<Change>, SwitchError> {
        for record in std::mem::take(&mut self.records) {
            record.forget()?;
        }
        Ok(std::mem::take(&mut self.changes))
    }

    /// Returns a description of the settings that another program has changed since the switch.
    pub fn disturbed(&self) -> Vec<String> {
        let mut all = Vec::new();
        for c in &self.changes {
            if let Ok(now) = Queue::new(self.tree.queue(&c.device)).read() {
                let found = differences(&c.after, &now).into_iter();
                all.extend(found.map(|d| {
                    format!(
                        "{}: {} was {} at the start and {} at the end: another program changed it",
                        c.device, d.name, d.before, d.after
                    )
                }));
            }
        }
        all
    }

    /// Restores all devices in reverse order, and returns the result of each.
    pub fn restore(mut self) -> Vec<Result<journal::Found, SwitchError>> {
        self.settle()
    }

    fn settle(&mut self) -> Vec<Result<journal::Found, SwitchError>> {
        let records = std::mem::take(&mut self.records).into_iter().rev();
        records.map(|r| r.settle(&self.tree)).collect()
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        for e in self.settle().into_iter().filter_map(Result::err) {
            eprintln!("{}", seekwell_core::foreign::plain(&e.to_string()));
        }
    }
}

/// Returns text that is safe to print: one line of limited length, without control characters.
fn printable(words: &str) -> String {
    crate::block::clean(words)
}

/// Sets the scheduler, then `nr_requests`, then the tunables, then all other settings. Reads all
/// values back at the end. Returns notes about rounded values.
fn apply(queue: &Queue, w: &Wish<'_>) -> Result<Vec<String>, SwitchError> {
    if queue.scheduler()? != w.scheduler {
        queue.put("scheduler", w.scheduler)?;
        let reads = queue.scheduler()?;
        if reads != w.scheduler {
            return Err(SwitchError::Otherwise {
                name: "scheduler".to_owned(),
                wrote: w.scheduler.to_owned(),
                reads,
            });
        }
    }
    let own = queue.tunables();
    for (name, _) in w.tunables {
        if !ATTRIBUTES.contains(&&**name) && !own.contains(name) {
            return Err(SwitchError::Tunable(unknown(w.scheduler, name, &own)));
        }
    }
    let order = |name: &str| {
        ATTRIBUTES
            .iter()
            .position(|a| *a == name)
            .map_or(1, |i| i * 2)
    };
    let mut sorted: Vec<&(String, String)> = w.tunables.iter().collect();
    sorted.sort_by_key(|t| order(&t.0));
    for (name, value) in &sorted {
        queue.put(name, value)?;
    }
    let mut notes = Vec::new();
    for (name, value) in sorted {
        let reads = queue.value(name)?;
        if reads == *value {
            continue;
        }
        if name == WBT && reads == "0" {
            notes.push(no_change(w.scheduler, value));
            continue;
        }
        if !rounded(name, value, &reads) {
            return Err(SwitchError::Otherwise {
                name: name.clone(),
                wrote: value.clone(),
                reads,
            });
        }
        notes.push(format!(
            "{name}: the kernel rounded {value} to {reads} (ticks or pages)"
        ));
    }
    Ok(notes)
}

/// Returns a note that a written latency target of writeback throttling had no effect. The
/// scheduler has disabled throttling, and the kernel ignores a write of the value that it already
/// stores.
fn no_change(scheduler: &str, value: &str) -> String {
    let next = value.parse::<u64>().map_or(String::new(), |v| {
        format!("; to enable it, write {}", v + 1)
    });
    format!(
        "{WBT}: {value} had no effect: {scheduler} keeps throttling off, and the kernel ignores a \
         write of the value that it already stores{next}"
    )
}

/// Returns whether the kernel rounded a value. Times are counted in ticks of up to 10 ms, and
/// read-ahead in pages of up to 64 KiB.
fn rounded(name: &str, wrote: &str, reads: &str) -> bool {
    let (Ok(a), Ok(b)) = (wrote.parse::<i64>(), reads.parse::<i64>()) else {
        return false;
    };
    let time = name.contains("expire") || name == "timeout_sync" || name == "slice_idle";
    let by = match name {
        "read_ahead_kb" => 64,
        _ if time => 10,
        _ => 0,
    };
    a.abs_diff(b) < by
}

/// Returns the message for a tunable that a scheduler does not have.
fn unknown(scheduler: &str, name: &str, own: &[String]) -> String {
    let words = own.iter().map(|o| &**o).chain(ATTRIBUTES.iter().copied());
    let meant = match suggest::did_you_mean(name, words, &[]) {
        Some(q) => format!(": {q}"),
        None if own.is_empty() => {
            format!(
                ": it has no tunables; the tunables of the queue are {}",
                ATTRIBUTES.join(", ")
            )
        }
        None => format!(
            ": its tunables are {}; those of the queue are {}",
            own.join(", "),
            ATTRIBUTES.join(", ")
        ),
    };
    let owners = names::owners(name);
    let whose = match owners.is_empty() {
        true => String::new(),
        false => format!(" (it is {}'s)", owners.join("'s and ")),
    };
    let scheduler = in_prose(scheduler);
    format!("{scheduler} has no tunable \"{name}\"{whose}{meant}")
}

/// Checks a request before anything is changed.
pub fn check(tree: &Tree, w: &Wish<'_>) -> Result<(), String> {
    let d = w.device;
    if !d.scheduler.offered().iter().any(|o| o == w.scheduler) {
        return Err(names::answer(tree, d, w.scheduler));
    }
    if d.is_zoned() && w.scheduler != "mq-deadline" && !tree.plugs_zone_writes() {
        let release = match tree.release() {
            none if none.is_empty() => "this kernel, whose release is not known,".to_owned(),
            release => format!("Linux {release}"),
        };
        return Err(format!(
            "{} is zoned ({}): {release} keeps the order of writes to a zone only under mq-deadline. \
             Use mq-deadline, or Linux 6.10 or later",
            d.name,
            d.zoned.as_deref().unwrap_or_default()
        ));
    }
    for (name, value) in w.tunables {
        if value.is_empty() || value.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err(format!("{name}: \"{value}\" is not a number"));
        }
        if name == "nr_requests" && w.scheduler == "none" {
            return Err(format!(
                "under `none`, nr_requests would leave {} with fewer tags than sysfs shows: set it \
                 with another scheduler",
                d.name
            ));
        }
        // If the tunables of the scheduler are known, the request is checked here. Otherwise the
        // kernel rejects unknown tunables.
        let elsewhere = names::owners(name);
        let own = names::tunables_of(w.scheduler);
        let own: Vec<String> = own.into_iter().flatten().map(str::to_owned).collect();
        let foreign = !own.is_empty() || w.scheduler == "none";
        if foreign && !elsewhere.is_empty() && !elsewhere.contains(&w.scheduler) {
            return Err(unknown(w.scheduler, name, &own));
        }
    }
    Ok(())
}
