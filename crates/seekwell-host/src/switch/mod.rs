//! Changes a device's scheduler and settings, checks them, and restores them on every exit path.
//!
//! The settings are recorded before the first change ([`journal`]). Dropping [`Switched`] restores
//! them: at the end, on an error, while a panic unwinds. A signal must not end the program
//! meanwhile ([`command::Held`]). After `kill -9` the record is left, and the next start restores
//! it. Changed values are read back. A different value is an error, or a note for times that the
//! kernel counts in ticks.
//!
//! Not covered: values that sysfs does not show (tags under `none`, whose number is never written
//! here).

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

/// Why a device cannot be switched or restored.
#[derive(Debug, Error)]
pub enum SwitchError {
    /// A file cannot be opened or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel rejects a value.
    #[error("{}: the kernel refuses `{value}`: {source}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The rejected value.
        value: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel accepted a value and shows another.
    #[error("{name}: `{wrote}` was written, but the kernel shows `{reads}`")]
    Otherwise {
        /// The setting.
        name: String,
        /// The value written.
        wrote: String,
        /// The value read back.
        reads: String,
    },
    /// A file with unexpected text.
    #[error("{}: cannot be understood: `{text}`", path.display())]
    Strange {
        /// The file.
        path: PathBuf,
        /// The text.
        text: String,
    },
    /// There is no such tunable.
    #[error("{0}")]
    Tunable(String),
    /// Another run holds the device.
    #[error("{device} is being switched by {by}; wait for its end")]
    Busy {
        /// The device.
        device: String,
        /// The holder.
        by: String,
    },
    /// The settings cannot be recorded.
    #[error(
        "{}: the settings cannot be recorded there: {source}; {} names another directory",
        path.display(),
        journal::VARIABLE
    )]
    State {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A record that is invalid, or that other users could have written.
    #[error(
        "{}: cannot be read as a record of settings, or others than its owner could write it: look \
         at it and remove it",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// Restored, but not completely.
    #[error("{}: not everything could be put back: {left}", dir.display())]
    NotRestored {
        /// The queue's directory.
        dir: PathBuf,
        /// The settings that differ.
        left: String,
    },
}

/// The requested settings of a device.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// The device.
    pub device: &'a Device,
    /// The scheduler, one that its queue offers.
    pub scheduler: &'a str,
    /// Tunables of the scheduler, and attributes of the queue, with their values.
    pub tunables: &'a [(String, String)],
}

/// The change of a device.
#[derive(Clone, Debug)]
pub struct Change {
    /// The device.
    pub device: String,
    /// The settings before.
    pub before: Settings,
    /// The settings after.
    pub after: Settings,
    /// Names of the settings that were requested.
    pub asked: Vec<String>,
    /// Notes about values that the kernel rounded.
    pub notes: Vec<String>,
}

impl Change {
    /// What changed besides the requested settings.
    pub fn beside(&self) -> Vec<settings::Difference> {
        let mut all = differences(&self.before, &self.after);
        all.retain(|d| d.name != "scheduler" && !self.asked.contains(&d.name));
        all
    }
    /// Tunables of the previous scheduler that differed from their defaults, and are lost.
    pub fn lost(&self) -> Vec<(String, String)> {
        let s = &self.before.scheduler;
        let all = self.before.tunables.iter();
        let own = |t: &(&String, &String)| match (names::default_of(s, t.0), names::tunables_of(s))
        {
            (Some(default), _) => default != t.1,
            // async_depth follows nr_requests; all tunables of an unknown scheduler are kept.
            (None, Some(_)) => t.0 != "async_depth",
            (None, None) => true,
        };
        let all = all.filter(own).map(|(k, v)| (k.clone(), v.clone()));
        match self.before.scheduler == self.after.scheduler {
            true => Vec::new(),
            false => all.collect(),
        }
    }
    /// Scheduler and settings that undo the change: arguments for another switch.
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
    /// Whether a switch back restores the number of requests by itself: with a scheduler it is
    /// twice the number of tags, of which at most 128 count.
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

/// Switched devices; their settings are restored when this is dropped.
#[derive(Debug)]
pub struct Switched {
    tree: Tree,
    records: Vec<Record>,
    changes: Vec<Change>,
    throttles: Throttles,
}

impl Switched {
    /// Switches devices. If one fails, all are restored. `words`: the purpose, for other processes
    /// that find the lock.
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
        // All locks and records come before any change.
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

    /// The changes.
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

    /// Settings that another program has changed meanwhile, described.
    pub fn disturbed(&self) -> Vec<String> {
        let mut all = Vec::new();
        for c in &self.changes {
            if let Ok(now) = Queue::new(self.tree.queue(&c.device)).read() {
                let found = differences(&c.after, &now).into_iter();
                all.extend(found.map(|d| {
                    format!(
                        "{}: {} was {} at first and {} at the end: somebody else has set it \
                         meanwhile",
                        c.device, d.name, d.before, d.after
                    )
                }));
            }
        }
        all
    }

    /// Restores everything in reverse order, and returns each result.
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

/// Text of a record, safe to show.
fn said(words: &str) -> String {
    crate::block::clean(words)
}

/// Sets the scheduler, then `nr_requests`, then tunables, then the rest, and reads everything back
/// at the end. Returns notes about rounded values.
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
            "{name}: the kernel made {reads} of {value} (ticks or pages)"
        ));
    }
    Ok(notes)
}

/// Note about a throttling target that has no effect. The scheduler disables throttling, and the
/// kernel ignores a write of the value that it remembers.
fn no_change(scheduler: &str, value: &str) -> String {
    let next = value.parse::<u64>().map_or(String::new(), |v| {
        format!("; to enable it, write {}", v + 1)
    });
    format!(
        "{WBT}: {value} had no effect: {scheduler} keeps throttling off, and the kernel ignores a \
         write of the value it remembers{next}"
    )
}

/// Whether the kernel rounded a value: times are counted in ticks of up to 10 ms, read-ahead in
/// pages of up to 64 KiB.
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

/// Message for a tunable that a scheduler does not have.
fn unknown(scheduler: &str, name: &str, own: &[String]) -> String {
    let words = own.iter().map(|o| &**o).chain(ATTRIBUTES.iter().copied());
    let meant = match suggest::did_you_mean(name, words, &[]) {
        Some(q) => format!(": {q}"),
        None if own.is_empty() => {
            format!(
                ": it has no tunables; of the queue there are {}",
                ATTRIBUTES.join(", ")
            )
        }
        None => format!(
            ": there are {}; of the queue {}",
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
    format!("{scheduler} has no tunable `{name}`{whose}{meant}")
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
            return Err(format!("{name}: `{value}` is no value: write a number"));
        }
        if name == "nr_requests" && w.scheduler == "none" {
            return Err(format!(
                "nr_requests under none would leave {} with fewer tags than it shows from then on: \
                 set it with a scheduler",
                d.name
            ));
        }
        // Checked in advance where the scheduler's tunables are known; otherwise the kernel rejects
        // them.
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
