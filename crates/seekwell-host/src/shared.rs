//! The state that all tasks of a run share.

use crate::files::{Inode, OpenFile, drop_clean, raw};
use crate::place::MARKER;
use crate::pulse::Pulse;
use crate::ring::Ring;
use crate::stop::Stop;
use crate::sync::Syncs;
use crate::table::Table;
use seekwell_core::{Errno, Instant, Nanos};
use seekwell_workload::{Clock, Facts, Measures, Outcome};
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

pub use crate::mapping::Mapping;

/// A thread that was started and is not joined yet.
pub type Started = JoinHandle<Outcome>;

/// The state of one run.
pub struct Shared {
    /// Seed of all random streams.
    pub seed: u64,
    /// Facts about the host.
    pub facts: Facts,
    /// The device or file that the user named for raw access.
    pub device: Option<PathBuf>,
    /// The flag that stops the run.
    pub stop: Stop,
    /// Open files, by number.
    pub files: Table<OpenFile>,
    /// Mapped ranges of files, by number.
    pub maps: Table<Mapping>,
    /// Rings for asynchronous I/O, by number.
    pub rings: Table<Ring>,
    /// Locks, barriers and channels, by number.
    pub syncs: Syncs,
    /// Progress of the run, for an observer.
    pub pulse: Option<Arc<Pulse>>,
    /// Tasks that were started and not joined, by number.
    pub tasks: Mutex<Vec<Option<Started>>>,
    path: PathBuf,
    dir: OwnedFd,
    start: std::time::Instant,
    measures: Mutex<Measures>,
    /// State of the script's clock. Tasks read it when they count their calls.
    clock: AtomicU8,
    warnings: Mutex<Vec<String>>,
    /// Whether this machine is a guest whose clock moves only while it waits.
    pub virtual_time: bool,
    /// The only CPU of such a guest.
    pub cpu: Mutex<()>,
}

impl Shared {
    /// Creates the state of a run in a directory.
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
            virtual_time: Path::new("/sys/kernel/um-ext-time").exists(),
            cpu: Mutex::default(),
        })
    }
    /// Returns the time on the monotonic clock. The run began at [`Instant::START`].
    pub fn now(&self) -> Instant {
        let ns = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::START + Nanos(ns)
    }
    /// Returns the path of the run's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Returns the descriptor of the run's directory.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
    /// Locks and returns the measurements.
    pub fn measures(&self) -> MutexGuard<'_, Measures> {
        self.measures.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Must be called when the script's clock was started or stopped.
    pub fn clock_changed(&self) {
        let clock = self.measures().clock() as u8;
        self.clock.store(clock, Ordering::Relaxed);
    }
    /// Returns the state of the script's clock.
    pub fn clock(&self) -> Clock {
        match self.clock.load(Ordering::Relaxed) {
            0 => Clock::Before,
            1 => Clock::Running,
            _ => Clock::Stopped,
        }
    }
    /// Adds a warning. The same text is added only once.
    pub fn warn(&self, text: String) {
        let mut w = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if !w.contains(&text) {
            w.push(text);
        }
    }
    /// Removes and returns all warnings.
    pub fn warnings(&self) -> Vec<String> {
        let mut w = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut w)
    }
    /// Calls syncfs(2) on the file system of the run.
    pub fn syncfs(&self) -> Result<(), Errno> {
        self.files.for_each(OpenFile::syncing);
        rustix::fs::syncfs(self.dir()).map_err(raw)
    }
    /// Drops the clean pages of the run's files from the page cache. It writes nothing and does not
    /// wait, because the pages of a file in use would become dirty again. A file that a task has
    /// written since its last sync is not even opened again. POSIX_FADV_DONTNEED, and closing a
    /// file on ext4, would start writeback.
    pub fn drop_caches(&self) -> Result<(), Errno> {
        let mut unsynced: BTreeSet<Inode> = BTreeSet::new();
        self.files.for_each(|f| unsynced.extend(f.unsynced()));
        let mut dirs = vec![self.path.clone()];
        while let Some(dir) = dirs.pop() {
            // Other tasks may rename and remove files at the same time. A missing file has no
            // pages.
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

/// Returns `None` if the file does not exist.
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
