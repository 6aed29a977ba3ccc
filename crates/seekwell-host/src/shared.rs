//! What all tasks of a run share.

use crate::files::{Files, raw};
use crate::place::MARKER;
use crate::ring::Ring;
use crate::run::Pulse;
use crate::stop::Stop;
use crate::sync::Syncs;
use crate::sys::drop_pages;
use crate::tasks::Started;
use seekwell_core::{Errno, Instant, Nanos};
use seekwell_workload::{Clock, Facts, Measures};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

pub use crate::mapping::Mapping;

/// Things by number.
#[derive(Debug)]
pub struct Slab<T>(RwLock<Vec<Option<Arc<T>>>>);

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab(RwLock::new(Vec::new()))
    }
}

impl<T> Slab<T> {
    /// Gives it a number, never used before.
    pub fn insert(&self, value: T) -> u32 {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.push(Some(Arc::new(value)));
        (all.len() - 1) as u32
    }
    /// By number; EBADF if there is none.
    pub fn get(&self, i: u32) -> Result<Arc<T>, Errno> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(i as usize).cloned().flatten().ok_or(Errno::EBADF)
    }
    /// Forgets it.
    pub fn remove(&self, i: u32) -> Result<(), Errno> {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let slot = all.get_mut(i as usize).ok_or(Errno::EBADF)?;
        slot.take().map(drop).ok_or(Errno::EBADF)
    }
}

/// One run.
pub struct Shared {
    /// Seed of every random stream.
    pub seed: u64,
    /// Of the host.
    pub facts: Facts,
    /// What the user named for raw access.
    pub device: Option<PathBuf>,
    /// Raised from outside.
    pub stop: Stop,
    /// Open files.
    pub files: Files,
    /// Mapped ranges.
    pub maps: Slab<Mapping>,
    /// Rings.
    pub rings: Slab<Mutex<Ring>>,
    /// Locks, barriers, channels.
    pub syncs: Syncs,
    /// Who watches the run.
    pub pulse: Option<Arc<Pulse>>,
    /// Tasks that were started, by number.
    pub tasks: Mutex<Vec<Option<Started>>>,
    path: PathBuf,
    dir: OwnedFd,
    start: std::time::Instant,
    measures: Mutex<Measures>,
    /// How far the script's clock is, for tasks that count their calls.
    clock: AtomicU8,
    warnings: Mutex<Vec<String>>,
}

impl Shared {
    /// Over a directory of our own.
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
            files: Files::default(),
            maps: Slab::default(),
            rings: Slab::default(),
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
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// The run's directory.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
    /// What was measured so far.
    pub fn measures(&self) -> MutexGuard<'_, Measures> {
        self.measures.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The script's clock started or stopped.
    pub fn clock_changed(&self) {
        let clock = self.measures().clock() as u8;
        self.clock.store(clock, Ordering::Relaxed);
    }
    /// How far the script's clock is.
    pub fn clock(&self) -> Clock {
        match self.clock.load(Ordering::Relaxed) {
            0 => Clock::Before,
            1 => Clock::Running,
            _ => Clock::Stopped,
        }
    }
    /// Something to keep in mind; said once.
    pub fn warn(&self, text: String) {
        let mut w = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if !w.contains(&text) {
            w.push(text);
        }
    }
    /// All of them, taken out.
    pub fn warnings(&self) -> Vec<String> {
        let mut w = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut w)
    }
    /// Writes back and drops the pages of every file of the run.
    pub fn drop_caches(&self) -> Result<(), Errno> {
        let mut dirs = vec![self.path.clone()];
        while let Some(dir) = dirs.pop() {
            for e in std::fs::read_dir(dir).map_err(crate::errno)? {
                let e = e.map_err(crate::errno)?;
                let kind = e.file_type().map_err(crate::errno)?;
                if kind.is_dir() {
                    dirs.push(e.path());
                } else if kind.is_file() && e.file_name() != MARKER {
                    drop_pages(std::fs::File::open(e.path()).map_err(crate::errno)?)?;
                }
            }
        }
        if let Some(d) = &self.device {
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
            drop_pages(rustix::fs::open(d, flags, rustix::fs::Mode::empty()).map_err(raw)?)?;
        }
        Ok(())
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
