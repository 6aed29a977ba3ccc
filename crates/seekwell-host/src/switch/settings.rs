//! The settings of a queue that a switch changes and restores.

use super::SwitchError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Attributes of the queue that may be set, in the order in which they are written. `nr_requests`
/// comes first, because writing it resets a tunable (`async_depth` of mq-deadline).
pub const ATTRIBUTES: &[&str] = &[
    "nr_requests",
    "wbt_lat_usec",
    "read_ahead_kb",
    "max_sectors_kb",
    "nomerges",
    "rq_affinity",
    "rotational",
    "iostats",
    "add_random",
];

/// The settings of a queue at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The active scheduler.
    pub scheduler: String,
    /// Those attributes of [`ATTRIBUTES`] that the queue has.
    pub attributes: BTreeMap<String, String>,
    /// Tunables of the active scheduler, from `queue/iosched`.
    pub tunables: BTreeMap<String, String>,
}

/// The directory of a device's queue.
#[derive(Clone, Debug)]
pub struct Queue {
    dir: PathBuf,
}

impl Queue {
    /// Returns the queue in this directory.
    pub fn new(dir: PathBuf) -> Self {
        Queue { dir }
    }
    /// Returns whether the queue still exists.
    pub fn exists(&self) -> bool {
        self.dir.join("scheduler").exists()
    }
    /// Returns the path of a file of the queue.
    pub fn file(&self, name: &str) -> PathBuf {
        match ATTRIBUTES.contains(&name) || name == "scheduler" {
            true => self.dir.join(name),
            false => self.dir.join("iosched").join(name),
        }
    }
    fn get(&self, path: &Path) -> Result<String, SwitchError> {
        let text = fs::read_to_string(path).map_err(|source| SwitchError::File {
            path: path.to_owned(),
            source,
        })?;
        Ok(text.trim().to_owned())
    }
    /// Returns the value of an attribute or tunable.
    pub fn value(&self, name: &str) -> Result<String, SwitchError> {
        self.get(&self.file(name))
    }
    /// Returns the active scheduler.
    pub fn scheduler(&self) -> Result<String, SwitchError> {
        let path = self.file("scheduler");
        let text = self.get(&path)?;
        let parsed = crate::block::Scheduler::parse(&text);
        let active = parsed.as_ref().and_then(|s| s.active());
        active
            .map(str::to_owned)
            .ok_or(SwitchError::Strange { path, text })
    }
    /// Writes a value. Never creates a file. The files of a copied tree keep the written text. In
    /// such a tree, the text is therefore stored in the form that a kernel would show.
    pub fn put(&self, name: &str, value: &str) -> Result<(), SwitchError> {
        let path = self.file(name);
        let before = fs::read_to_string(&path).unwrap_or_default();
        self.write(&path, value)?;
        let shown = shown(&before, value);
        let kept = fs::read_to_string(&path).is_ok_and(|now| now == value && now != shown);
        match kept {
            true => self.write(&path, &shown),
            false => Ok(()),
        }
    }
    fn write(&self, path: &Path, value: &str) -> Result<(), SwitchError> {
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(path)
            .map_err(|source| SwitchError::File {
                path: path.to_owned(),
                source,
            })?;
        file.write_all(value.as_bytes())
            .map_err(|source| SwitchError::Refused {
                path: path.to_owned(),
                value: value.to_owned(),
                source,
            })
    }
    /// Returns the names of the active scheduler's tunables.
    pub fn tunables(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.join("iosched")).into_iter().flatten();
        let mut all: Vec<String> = entries
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        all.sort();
        all
    }
    /// Reads all settings.
    pub fn read(&self) -> Result<Settings, SwitchError> {
        let mut s = Settings {
            scheduler: self.scheduler()?,
            ..Settings::default()
        };
        for name in ATTRIBUTES {
            // Some queues do not have an attribute. Then reading it returns an error.
            if let Ok(value) = self.value(name) {
                s.attributes.insert((*name).to_owned(), value);
            }
        }
        for name in self.tunables() {
            if let Ok(value) = self.value(&name) {
                s.tunables.insert(name, value);
            }
        }
        Ok(s)
    }

    /// Restores all settings. Values that are already right are not written, because some have
    /// another meaning after a manual write (writeback throttling, tags under `none`).
    pub fn restore(&self, before: &Settings) -> Result<(), SwitchError> {
        if self.scheduler()? != before.scheduler {
            self.put("scheduler", &before.scheduler)?;
        }
        // A second pass restores values that the first pass changed by writing another file. For
        // example, slice_idle and slice_idle_us are the same value, and nr_requests sets
        // async_depth.
        for _ in 0..2 {
            let now = self.read()?;
            if now == *before {
                return Ok(());
            }
            for name in ATTRIBUTES {
                self.again(name, &before.attributes, &now.attributes);
            }
            for name in before.tunables.keys() {
                self.again(name, &before.tunables, &self.read()?.tunables);
            }
        }
        let now = self.read()?;
        let mut left = differences(before, &now);
        // What could not be read before cannot be restored: throttling that was never initialised.
        left.retain(|d| d.before != "-");
        match left.is_empty() {
            true => Ok(()),
            false => Err(SwitchError::NotRestored {
                dir: self.dir.clone(),
                left: left
                    .iter()
                    .map(|d| format!("{} is {}, was {}", d.name, d.after, d.before))
                    .collect::<Vec<_>>()
                    .join("; "),
            }),
        }
    }

    /// Writes a value if it differs. Errors are ignored here, because the final comparison finds
    /// them.
    fn again(&self, name: &str, before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) {
        if let Some(value) = before.get(name)
            && now.get(name) != Some(value)
        {
            let _ = self.put(name, value);
        }
    }
}

/// Returns the new text of a file that contained `before`, after a write of `value`. In a list,
/// brackets mark the value. The line ending is kept.
fn shown(before: &str, value: &str) -> String {
    let text = before.trim_end();
    let end = &before[text.len()..];
    let bare = |w: &str| w.trim_start_matches('[').trim_end_matches(']').to_owned();
    let words: Vec<String> = text.split(' ').map(bare).collect();
    match text.contains('[') && words.iter().any(|w| w == value) {
        true => {
            let mark = |w: &String| match w == value {
                true => format!("[{w}]"),
                false => w.clone(),
            };
            words.iter().map(mark).collect::<Vec<_>>().join(" ") + end
        }
        false => format!("{value}{end}"),
    }
}

/// A setting with two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Name of the setting.
    pub name: String,
    /// Value before; `-` if there was no such setting.
    pub before: String,
    /// Value after; `-` if there is no such setting.
    pub after: String,
}

/// Returns the differences between two moments in the scheduler and the attributes. Tunables are
/// compared if the scheduler is the same.
pub fn differences(before: &Settings, after: &Settings) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut add = |name: &str, a: Option<&String>, b: Option<&String>| {
        if a != b {
            let word = |v: Option<&String>| v.map_or("-", |v| v).to_owned();
            all.push(Difference {
                name: name.to_owned(),
                before: word(a),
                after: word(b),
            });
        }
    };
    add("scheduler", Some(&before.scheduler), Some(&after.scheduler));
    for name in ATTRIBUTES {
        add(
            name,
            before.attributes.get(*name),
            after.attributes.get(*name),
        );
    }
    if before.scheduler == after.scheduler {
        for (name, value) in &before.tunables {
            add(name, Some(value), after.tunables.get(name));
        }
    }
    all
}
