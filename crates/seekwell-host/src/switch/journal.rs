//! Records the settings of a device before its first change. A lock shows whether the process that
//! wrote the record is still running.
//!
//! All records are in one directory below `/run`, unless the environment variable names another
//! directory. Like the settings, files in `/run` do not survive a boot. A file is trusted only if
//! it belongs to the current user and no other user could have written it.

use super::settings::{Queue, Settings};
use super::{SwitchError, printable};
use crate::block::{Device, Tree};
use crate::place::ours;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Environment variable that replaces the directory.
pub const VARIABLE: &str = "SEEKWELL_RUN_DIR";
const DEFAULT: &str = "/run/seekwell";

/// The directory of the records.
#[derive(Clone, Debug)]
pub struct Records {
    dir: PathBuf,
}

impl Default for Records {
    fn default() -> Self {
        let told = std::env::var_os(VARIABLE).filter(|d| !d.is_empty());
        Records::at(told.map_or(PathBuf::from(DEFAULT), PathBuf::from))
    }
}

/// Contents of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    schema: u32,
    boot_id: String,
    device: String,
    diskseq: Option<u64>,
    serial: Option<String>,
    pid: u32,
    words: String,
    before: Settings,
}

/// Lock of a device. It is held while the settings of the device are changed.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file is removed while it is locked. A waiting process then notices that the path
        // belongs to another file, and tries again.
        let _ = fs::remove_file(&self.path);
    }
}

/// A record of this process, or of a run that was killed.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    entry: Entry,
    _lock: Lock,
}

/// Result of restoring the record of a killed run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The settings were restored.
    Restored {
        /// Name of the device.
        device: String,
        /// The restored scheduler.
        scheduler: String,
        /// The command that the killed run had started.
        words: String,
    },
    /// There was nothing to restore.
    Moot {
        /// Name of the device.
        device: String,
        /// The reason.
        why: String,
    },
}

impl Records {
    /// Returns the records in this directory. The directory is created when it is needed.
    pub fn at(dir: PathBuf) -> Self {
        Records { dir }
    }
    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    fn failed(&self, source: io::Error) -> SwitchError {
        SwitchError::State {
            path: self.dir.clone(),
            source,
        }
    }
    /// Creates the directory. Only its owner can write to it.
    fn make(&self) -> Result<(), SwitchError> {
        let made = DirBuilder::new()
            .mode(0o755)
            .recursive(true)
            .create(&self.dir);
        made.map_err(|e| self.failed(e))?;
        let meta = fs::symlink_metadata(&self.dir).map_err(|e| self.failed(e))?;
        match meta.is_dir() && ours(&meta) {
            true => Ok(()),
            false => Err(self.failed(io::Error::other(
                "other users could write there and so decide which settings are restored",
            ))),
        }
    }

    /// Locks a device. Returns an error if another run has locked it.
    fn lock(&self, device: &str) -> Result<Lock, SwitchError> {
        let path = self.dir.join(format!("{device}.lock"));
        let mut how = OpenOptions::new();
        how.write(true).create(true).truncate(false).mode(0o600);
        how.custom_flags(libc::O_NOFOLLOW);
        let mut tries = 0;
        loop {
            let file = match how.open(&path) {
                // Another run has ended and has just removed the directory.
                Err(e) if e.kind() == io::ErrorKind::NotFound && tries < 10 => {
                    tries += 1;
                    self.make()?;
                    continue;
                }
                opened => opened.map_err(|e| self.failed(e))?,
            };
            if file.try_lock().is_err() {
                return Err(SwitchError::Busy {
                    device: device.to_owned(),
                    by: self.words(device),
                });
            }
            let held = file.metadata().map_err(|e| self.failed(e))?;
            if fs::metadata(&path).is_ok_and(|m| m.ino() == held.ino()) {
                return Ok(Lock { path, _file: file });
            }
        }
    }

    /// Describes the process that has locked a device, from its record.
    fn words(&self, device: &str) -> String {
        match self.load(device) {
            Some(e) => format!("process {} ({})", e.pid, e.words),
            None => "another process".to_owned(),
        }
    }

    fn load(&self, device: &str) -> Option<Entry> {
        let path = self.dir.join(format!("{device}.json"));
        let how = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
            .ok()?;
        let meta = how.metadata().ok()?;
        if !meta.is_file() || !ours(&meta) {
            return None;
        }
        let entry: Entry = serde_json::from_reader(how).ok()?;
        let plain = !entry.device.is_empty() && !entry.device.contains('/') && entry.device != "..";
        let names = entry
            .before
            .attributes
            .keys()
            .chain(entry.before.tunables.keys());
        let safe = names
            .into_iter()
            .all(|n| !n.contains(['/', '\0']) && !n.starts_with('.'));
        (plain && safe && entry.device == device && entry.schema == 1).then_some(entry)
    }

    /// Locks a device and records its settings. Must be called before the first change.
    pub fn begin(
        &self,
        tree: &Tree,
        d: &Device,
        words: &str,
    ) -> Result<(Record, Settings), SwitchError> {
        self.make()?;
        let lock = self.lock(&d.name)?;
        let before = Queue::new(tree.queue(&d.name)).read()?;
        let entry = Entry {
            schema: 1,
            boot_id: tree.boot_id(),
            device: d.name.clone(),
            diskseq: d.diskseq,
            serial: d.serial.clone(),
            pid: std::process::id(),
            words: words.to_owned(),
            before: before.clone(),
        };
        let path = self.dir.join(format!("{}.json", d.name));
        self.write(&path, &entry).map_err(|e| self.failed(e))?;
        let record = Record {
            path,
            entry,
            _lock: lock,
        };
        Ok((record, before))
    }

    /// Writes a complete file to the medium, then renames it.
    fn write(&self, path: &Path, entry: &Entry) -> io::Result<()> {
        let early = path.with_extension("new");
        let mut how = OpenOptions::new();
        how.write(true).create(true).truncate(true).mode(0o600);
        let mut file = how.custom_flags(libc::O_NOFOLLOW).open(&early)?;
        file.write_all(serde_json::to_string(entry)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&early, path)?;
        File::open(&self.dir)?.sync_all()
    }

    /// Returns the names of devices whose record was written by a process that has ended. It
    /// changes nothing. For users who may not read the directory the list is empty.
    pub fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut all: Vec<String> = entries
            .filter_map(|e| Some(e.file_name().to_str()?.strip_suffix(".json")?.to_owned()))
            .collect();
        all.retain(|d| match File::open(self.dir.join(format!("{d}.lock"))) {
            Ok(lock) => lock.try_lock_shared().is_ok(),
            Err(e) => e.kind() == io::ErrorKind::NotFound,
        });
        all.sort();
        all
    }

    /// Returns whether a running process has locked the device.
    pub fn is_held(&self, device: &str) -> bool {
        let lock = File::open(self.dir.join(format!("{device}.lock")));
        lock.is_ok_and(|l| l.try_lock_shared().is_err())
    }

    /// Returns the process that has locked the device for this purpose. `None` if no running
    /// process has.
    pub fn holder(&self, device: &str, words: &str) -> Option<u32> {
        let entry = self.load(device)?;
        (entry.words == words && self.is_held(device)).then_some(entry.pid)
    }

    /// Sends SIGINT to the process that has locked the device for this purpose. Returns the number
    /// of the process; `None` if no running process has locked the device.
    ///
    /// # Errors
    /// The current user may not send signals to the process.
    pub fn interrupt(&self, device: &str, words: &str) -> io::Result<Option<u32>> {
        let Some(number) = self.holder(device, words) else {
            return Ok(None);
        };
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::InvalidData)?;
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            opened => opened?,
        };
        // The process may have ended, and another may have got its number, before it was opened.
        // The signal goes to the opened process, which holds the lock if the record is unchanged.
        if self.holder(device, words) != Some(number) {
            return Ok(None);
        }
        match pidfd_send_signal(process, Signal::INT) {
            Err(rustix::io::Errno::SRCH) => Ok(None),
            sent => sent.map(|()| Some(number)).map_err(io::Error::from),
        }
    }

    /// Restores the settings of killed runs, one after the other. With `only`, restores only this
    /// device. After an error the record is kept for the next attempt.
    pub fn restore(&self, tree: &Tree, only: Option<&str>) -> Vec<Result<Found, SwitchError>> {
        let left = self.left();
        let wanted = left.iter().filter(|d| only.is_none_or(|o| o == *d));
        let done = wanted
            .filter_map(|d| self.restore_one(tree, d).transpose())
            .collect();
        self.tidy();
        done
    }

    /// Restores the settings of process `pid`, which has ended or is about to end. An ending
    /// process closes its files one after the other. So its pipe may already be closed while its
    /// lock is still held. Waits for the lock at most for `patience`.
    pub fn restore_of(
        &self,
        tree: &Tree,
        pid: u32,
        patience: Duration,
    ) -> Vec<Result<Found, SwitchError>> {
        let end = Instant::now() + patience;
        let mut done = Vec::new();
        let mut tried: Vec<String> = Vec::new();
        loop {
            let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
            let mut own: Vec<String> = entries
                .filter_map(|e| Some(e.file_name().to_str()?.strip_suffix(".json")?.to_owned()))
                .filter(|d| !tried.contains(d) && self.load(d).is_some_and(|e| e.pid == pid))
                .collect();
            own.sort();
            if own.is_empty() || Instant::now() > end {
                self.tidy();
                return done;
            }
            for d in own {
                if let Some(one) = self.restore_one(tree, &d).transpose() {
                    done.push(one);
                    tried.push(d);
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Removes the files of processes that were killed before they wrote a complete record: a lock,
    /// or an incomplete record. An ending process may hold its lock for a short time after its pipe
    /// was closed.
    fn tidy(&self) {
        for _ in 0..20 {
            let mut busy = false;
            for e in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
                let name = e.file_name();
                let name = name.to_str().unwrap_or_default();
                let half = name.strip_suffix(".new");
                let Some(device) = half.or_else(|| name.strip_suffix(".lock")) else {
                    continue;
                };
                if self.dir.join(format!("{device}.json")).exists() {
                    continue;
                }
                match self.lock(device) {
                    // While the file is locked, no other process writes it. Dropping the lock
                    // removes its file.
                    Ok(_lock) => drop(half.map(|_| fs::remove_file(e.path()))),
                    Err(_) => busy = true,
                }
            }
            // The directory is removed after its last file.
            let _ = fs::remove_dir(&self.dir);
            if !busy {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn restore_one(&self, tree: &Tree, device: &str) -> Result<Option<Found>, SwitchError> {
        let lock = match self.lock(device) {
            Ok(lock) => lock,
            // Another process is restoring this device at the moment.
            Err(SwitchError::Busy { .. }) => return Ok(None),
            Err(e) => return Err(e),
        };
        let path = self.dir.join(format!("{device}.json"));
        let Some(entry) = self.load(device) else {
            if !path.exists() {
                return Ok(None);
            }
            return Err(SwitchError::Unreadable { path });
        };
        let record = Record {
            path,
            entry,
            _lock: lock,
        };
        record.settle(tree).map(Some)
    }
}

impl Record {
    /// Returns the settings before the change.
    pub fn before(&self) -> &Settings {
        &self.entry.before
    }
    /// Removes the record, because nothing must be restored.
    pub fn forget(self) -> Result<(), SwitchError> {
        let dir = self.path.parent().map(Path::to_owned);
        let gone = fs::remove_file(&self.path);
        drop(self._lock);
        if let Some(dir) = dir {
            // The directory is removed if it is empty.
            let _ = fs::remove_dir(dir);
        }
        match gone {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(SwitchError::State {
                path: self.path,
                source: e,
            }),
            _ => Ok(()),
        }
    }

    /// Returns the reason why the attached device is not the recorded device, or `None` if it is.
    fn other(&self, tree: &Tree) -> Option<String> {
        if self.entry.boot_id != tree.boot_id() {
            return Some(
                "the machine was booted since then, and settings do not survive a boot".to_owned(),
            );
        }
        let Some(d) = tree.device(&self.entry.device) else {
            return Some("the device is gone".to_owned());
        };
        // The serial number may come from udev, which may not have reported it when the record was
        // written.
        let other = match (self.entry.diskseq, d.diskseq) {
            // A loop device without a backing file still has the same queue, so the settings can be
            // restored.
            (Some(then), Some(now)) => then != now && !d.idle(),
            _ => matches!((&self.entry.serial, &d.serial), (Some(a), Some(b)) if a != b),
        };
        other.then(|| "another device has this name now".to_owned())
    }

    /// Restores all settings and removes the record. After an error the record is kept.
    pub fn settle(self, tree: &Tree) -> Result<Found, SwitchError> {
        let device = self.entry.device.clone();
        if let Some(why) = self.other(tree) {
            self.forget()?;
            return Ok(Found::Moot { device, why });
        }
        let queue = Queue::new(tree.queue(&device));
        match queue.restore(&self.entry.before) {
            Ok(()) => {}
            Err(_) if !queue.exists() => {
                self.forget()?;
                let why = "the device is gone".to_owned();
                return Ok(Found::Moot { device, why });
            }
            Err(e) => return Err(e),
        }
        let found = Found::Restored {
            device,
            scheduler: self.entry.before.scheduler.clone(),
            words: printable(&self.entry.words),
        };
        self.forget()?;
        Ok(found)
    }
}
