//! State that all tasks of a run share.

use crate::files::{Inode, OpenFile, raw};
use crate::place::MARKER;
use crate::ring::Ring;
use crate::run::Pulse;
use crate::stop::Stop;
use crate::sync::Syncs;
use crate::sys::drop_clean;
use crate::table::Table;
use crate::tasks::Started;
use seekwell_core::{Errno, Instant, Nanos};
use seekwell_workload::{Clock, Facts, Measures};
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use crate::mapping::Mapping;

/// One run.
pub struct Shared {
    /// Seed of every random stream.
    pub seed: u64,
    /// Facts about the host.
    pub facts: Facts,
    /// The device or file that the user named for raw access.
    pub device: Option<PathBuf>,
    /// The stop flag.
    pub stop: Stop,
    /// Open files.
    pub files: Table<OpenFile>,
    /// Mapped ranges.
    pub maps: Table<Mapping>,
    /// Rings.
    pub rings: Table<Ring>,
    /// Locks, barriers, channels.
    pub syncs: Syncs,
    /// Progress, for an observer.
    pub pulse: Option<Arc<Pulse>>,
    /// Tasks that were started, by number.
    pub tasks: Mutex<Vec<Option<Started>>>,
    path: PathBuf,
    dir: OwnedFd,
    start: std::time::Instant,
    measures: Mutex<Measures>,
    /// State of the script's clock, for tasks that count their calls.
    clock: AtomicU8,
    warnings: Mutex<Vec<String>>,
}

impl Shared {
    /// For a run in this directory.
    pub fn new(
        path: &Path,
        seed: u64,
        device: Option<PathBuf>,
        stop: Stop,
    ) -> std::io::Result<Self> {
        let flags = rustix::fs::OFlags::DIRECTORY
            | rustix::fs::OFlags::RDONLY
            | rustix::fs::OFlags::CLOEXEC;
        let dir = rustix::fs::open(path, flags, rustix::fs::Mode::empty())?;
        Ok(Shared {
            seed,
            facts: facts(),
            device,
            stop,
            files: Table::default(),
            maps: Table::default(),
            rings: Table::default(),
            syncs: Syncs::default(),
            pulse: None,
            tasks: Mutex::default(),
            path: path.to_owned(),
            dir,
            start: std::time::Instant::now(),
            measures: Mutex::default(),
            clock: AtomicU8::default(),
            warnings: Mutex::default(),
        })
    }
    /// Time on the monotonic clock; the run began at [`Instant::START`].
    pub fn now(&self) -> Instant {
        let ns = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::START + Nanos(ns)
    }
    /// The path of the run's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// The run's directory.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
    /// The measurements so far.
    pub fn measures(&self) -> MutexGuard<'_, Measures> {
        self.measures.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Records that the script's clock started or stopped.
    pub fn clock_changed(&self) {
        let clock = self.measures().clock() as u8;
        self.clock.store(clock, Ordering::Relaxed);
    }
    /// State of the script's clock.
    pub fn clock(&self) -> Clock {
        match self.clock.load(Ordering::Relaxed) {
            0 => Clock::Before,
            1 => Clock::Running,
            _ => Clock::Stopped,
        }
    }
    /// Adds a warning, once per text.
    pub fn warn(&self, text: String) {
        let mut w = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if !w.contains(&text) {
            w.push(text);
        }
    }
    /// Takes all warnings.
    pub fn warnings(&self) -> Vec<String> {
        let mut w = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut w)
    }
    /// syncfs(2) on the run's file system.
    pub fn syncfs(&self) -> Result<(), Errno> {
        self.files.for_each(OpenFile::syncing);
        rustix::fs::syncfs(self.dir()).map_err(raw)
    }
    /// Drops the clean pages of the run's files, without writing or waiting: a file in use would be
    /// dirty again before its pages were on the disk. A file that is open and was written since its
    /// last sync is not even opened, because POSIX_FADV_DONTNEED and ext4's close both start
    /// writeback.
    pub fn drop_caches(&self) -> Result<(), Errno> {
        let mut unsynced: BTreeSet<Inode> = BTreeSet::new();
        self.files.for_each(|f| unsynced.extend(f.unsynced()));
        let mut dirs = vec![self.path.clone()];
        while let Some(dir) = dirs.pop() {
            // Other tasks rename and remove files meanwhile; a missing name has no pages.
            let Some(entries) = there(std::fs::read_dir(dir))? else {
                continue;
            };
            for e in entries {
                let e = e.map_err(crate::errno)?;
                let Some(m) = there(e.metadata())? else {
                    continue;
                };
                if m.is_dir() {
                    dirs.push(e.path());
                } else if m.is_file()
                    && e.file_name() != MARKER
                    && !unsynced.contains(&(m.dev(), m.ino()))
                    && let Some(file) = there(std::fs::File::open(e.path()))?
                {
                    drop_clean(file)?;
                }
            }
        }
        if let Some(d) = &self.device {
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
            drop_clean(rustix::fs::open(d, flags, rustix::fs::Mode::empty()).map_err(raw)?)?;
        }
        Ok(())
    }
}

/// `None` if the name does not exist.
fn there<T>(r: std::io::Result<T>) -> Result<Option<T>, Errno> {
    match r {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        r => r.map(Some).map_err(crate::errno),
    }
}

fn facts() -> Facts {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = info
        .lines()
        .find_map(|l| l.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"))
        .and_then(|n| n.parse::<u64>().ok());
    Facts {
        cpus: cpus as u32,
        cache_bytes: kib.unwrap_or(0) * 1024,
    }
}
