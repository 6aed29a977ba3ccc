//! Serves a modelled disk: checks the options, starts the threads, mounts the file system, measures
//! the transport, and cleans up at the end.
//!
//! The first thread receives requests. The second thread runs the device model. The third thread
//! writes the log. The receiving thread has real-time priority 11, and the model's thread has 10.
//! So an arrival gets its timestamp immediately, even while the model's thread spins. All threads
//! are created and joined in this module.

use crate::account::Account;
use crate::error::ServeError;
use crate::fs::{DiskFs, FuseReply, Spares};
use crate::inbox::{Clock, Inbox};
use crate::model::{Logged, Model};
use crate::mount;
use crate::served::Served;
use crate::stale::{FS_TYPE, dead_mount};
use crate::store::Store;
use crate::syncer::Syncer;
use crate::sys;
use crate::wait::{Margin, Waiter, punctual};
use fuser::Session;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{Nanos, result::Latency};
use seekwell_trace::{TraceError, WriteOptions};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// Name of the file in the mounted file system.
pub const FILE_NAME: &str = "disk";
/// Maximum rate of a device in commands per second. Faster devices are refused.
pub const RATE_MAX: u64 = 150_000;
const PRIORITY_HEAR: i32 = 11;
const PRIORITY_MODEL: i32 = 10;
/// Number of reads that measure the latency of the transport on one CPU.
const FLOOR_READS: u64 = 200;
/// Number of CPUs on which the latency of the transport is measured, one after the other.
const FLOOR_CPUS: usize = 4;

/// Treatment of the transport's latency.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Floor {
    /// The latency is measured, and it is subtracted from each completion. For a rotational disk
    /// nothing is subtracted, so that the model never runs ahead of an arrival.
    #[default]
    Auto,
    /// This time is subtracted from each completion; 0 subtracts nothing. The model runs ahead of
    /// the clock by this time. Therefore an arrival within this time before a completion is too
    /// late to affect that completion. Such arrivals are counted.
    Fixed(Nanos),
}

/// Options of a served disk.
#[derive(Clone, Debug, Default)]
pub struct DiskOptions {
    /// Empty directory that becomes the mount point.
    pub mount: PathBuf,
    /// Size of the disk in bytes, at most the capacity of the device. `None`: the capacity of the
    /// device.
    pub size: Option<u64>,
    /// Sparse file that stores the data. `None`: the data are in memory.
    pub backing: Option<PathBuf>,
    /// Treatment of the transport's latency.
    pub floor: Floor,
    /// CSV file for a log of all commands in order of arrival, with the completion times of the
    /// model. `seekwell replay` can read it.
    pub log: Option<PathBuf>,
    /// Whether the scheduler of this disk distinguishes processes. If so, the account reports for
    /// how many commands the process was known.
    pub per_process: bool,
    /// Maximum rate of the model in commands per second. With 0 the rate is unknown, and the device
    /// is not refused.
    pub rate: u64,
    /// Serves the device even if its rate exceeds [`RATE_MAX`].
    pub force: bool,
}

/// A modelled disk in service. [`Disk::stop`] ends the service. Dropping the disk tries to unmount
/// it and ignores errors.
pub struct Disk {
    mount: PathBuf,
    inbox: Arc<Inbox<FuseReply>>,
    store: Arc<Store>,
    hearing: Option<JoinHandle<io::Result<()>>>,
    model: Option<JoinHandle<Account>>,
    log: Option<JoinHandle<Result<(), TraceError>>>,
    syncing: Option<JoinHandle<()>>,
    took_over: Option<Vec<String>>,
    size: u64,
    margin: Margin,
    floor: Nanos,
}

impl Disk {
    /// Mounts the file system and starts to serve. After an error nothing is left mounted.
    pub fn start(served: Served, options: &DiskOptions) -> Result<Self, ServeError> {
        let facts = served.facts.clone();
        check_rate(&facts.name, options.rate, options.force)?;
        let size = disk_size(options.size, facts.capacity.0 * SECTOR_BYTES)?;
        let (mount, took_over) = check_mount(&options.mount)?;
        check_files(&mount, options)?;
        let store = Arc::new(match &options.backing {
            Some(path) => Store::file(path, size)?,
            None => Store::memory(size)?,
        });
        let inbox = Arc::new(Inbox::new(Clock::start()));
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let owner = (uid.as_raw(), gid.as_raw());
        let fs = DiskFs {
            inbox: inbox.clone(),
            store: store.clone(),
            spares: Spares::default(),
            size,
            name: FILE_NAME,
            write_cache: facts.write_cache,
            discards: !facts.rotational,
            owner,
            made: SystemTime::now(),
        };
        let session = mount::mount(&mount, owner, fs)?;
        let mut disk = Disk {
            mount: mount.clone(),
            inbox: inbox.clone(),
            store,
            hearing: None,
            model: None,
            log: None,
            syncing: None,
            took_over,
            size,
            margin: Margin::default(),
            floor: Nanos::ZERO,
        };

        // From here on, dropping `disk` unmounts the file system.
        disk.hearing = Some(hear(session)?);
        // The log is truncated only here, so that a failed start does not destroy an older log.
        let log = options.log.as_deref().map(start_log).transpose()?;
        let (log, logged) = log.map_or((None, None), |(thread, tx)| (Some(thread), Some(tx)));
        disk.log = log;
        let mut sync = None;
        if disk.store.durable() {
            let started = Syncer::start(disk.store.clone(), inbox.clone());
            let Syncer { ask, thread } = started.map_err(|source| ServeError::System {
                what: "cannot start a thread",
                source,
            })?;
            sync = Some(ask);
            disk.syncing = Some(thread);
        }

        // While the floor is measured, the receiving thread answers reads without the model.
        let measured = options.floor == Floor::Auto && !facts.rotational;
        inbox.null.store(measured, Ordering::Release);
        let (told, margin) = mpsc::channel();
        let (start, floor_known) = mpsc::channel::<Nanos>();
        let (name, per_process) = (facts.name, options.per_process);
        let model = thread::Builder::new().name("model".into()).spawn(move || {
            let realtime = punctual(PRIORITY_MODEL);
            sys::io_flusher();
            inbox.owned_by_this_thread();
            let margin = Margin::measure(realtime);
            let waiter = Waiter::new(inbox.clock(), &margin);
            let _ = told.send(margin.clone());
            let floor = floor_known.recv().unwrap_or_default();
            let account = Account {
                per_process,
                ..Account::new(&name, margin, floor)
            };
            Model::new(served, inbox, logged, sync, account).run(waiter)
        });
        disk.model = Some(model.map_err(|source| ServeError::System {
            what: "cannot start a thread",
            source,
        })?);
        disk.margin = margin.recv().unwrap_or_default();
        disk.floor = match options.floor {
            Floor::Fixed(f) => f,
            Floor::Auto if measured => disk.measure_floor()?,
            Floor::Auto => Nanos::ZERO,
        };
        disk.inbox.null.store(false, Ordering::Release);
        let _ = start.send(disk.floor);
        Ok(disk)
    }

    /// Returns the path of the file that programs open, or to which a loop device is attached.
    pub fn file(&self) -> PathBuf {
        self.mount.join(FILE_NAME)
    }
    /// Returns the size of the disk, bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
    /// Returns the wait margin of the model's loop.
    pub fn margin(&self) -> &Margin {
        &self.margin
    }
    /// Returns `Some` if the start removed the mount of a killed server. The value contains the
    /// names of loop devices that are still attached to the file of that server.
    pub fn took_over(&self) -> Option<&[String]> {
        self.took_over.as_deref()
    }
    /// Returns whether the mount has ended because somebody unmounted it, or the model's thread has
    /// ended.
    pub fn ended(&self) -> bool {
        let hearing = self.hearing.as_ref().is_none_or(JoinHandle::is_finished);
        hearing || self.model.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Measures the shortest latency of the transport. This is the median over the reads from one
    /// CPU, and the minimum over a few CPUs. A read from another CPU than that of the receiving
    /// thread also waits until that CPU wakes up. Not every program has this delay, so the minimum
    /// is used. A larger value would make the disk faster than its model.
    fn measure_floor(&self) -> Result<Nanos, ServeError> {
        let system = |source| ServeError::System {
            what: "cannot read the disk for measuring",
            source,
        };
        let path = self.file();
        let mut least = u64::MAX;
        let allowed = sched_getaffinity(None).unwrap_or_default();
        for cpu in (0..CpuSet::MAX_CPU)
            .filter(|c| allowed.is_set(*c))
            .take(FLOOR_CPUS)
        {
            // A separate thread is used, so that the calling thread is not bound to this CPU.
            let median = thread::scope(|s| s.spawn(|| median_read(&path, self.size, cpu)).join());
            least = match median {
                Ok(m) => least.min(m.map_err(system)?),
                Err(_) => least,
            };
        }
        Ok(Nanos(if least == u64::MAX { 0 } else { least }))
    }

    /// Answers the outstanding requests, unmounts, and computes the verdict.
    ///
    /// If the mount is still in use, for example by a loop device, it is detached. Its users then
    /// get errors. The second value names these users.
    pub fn stop(mut self) -> Result<(Account, Vec<String>), ServeError> {
        let users = self.unmount();
        let panicked = |what| ServeError::System {
            what,
            source: io::Error::other("it panicked"),
        };
        let model = self.model.take().map(JoinHandle::join);
        let mut account = match model {
            Some(Ok(account)) => account,
            _ => return Err(panicked("the model's thread failed")),
        };
        account.used_bytes = self.store.used_bytes();
        account.backing_syncs = self.store.syncs();
        account.close();
        if let Some(log) = self.log.take() {
            log.join()
                .map_err(|_| panicked("the log's thread failed"))??;
        }
        if let Some(syncing) = self.syncing.take() {
            // This thread ends after the model's thread, which sends its jobs.
            let _ = syncing.join();
        }
        self.store.close().map_err(|source| ServeError::System {
            what: "the data may not be on the medium",
            source,
        })?;
        Ok((account, users))
    }

    fn unmount(&mut self) -> Vec<String> {
        let mut users = Vec::new();
        let Some(hearing) = self.hearing.take() else {
            // The file system is mounted, but no thread has received requests yet.
            if self.model.is_none() {
                mount::unmount(&self.mount, true);
            }
            self.inbox.close();
            return users;
        };
        if !hearing.is_finished() {
            users = loops_over(&self.file());
            // Outstanding requests are answered in the meantime, because unmounting does not wait
            // for them.
            if !users.is_empty() || !mount::unmount(&self.mount, false) {
                // A program still has open files. They work until this server ends.
                if users.is_empty() {
                    users.push("a program".to_owned());
                }
                mount::unmount(&self.mount, true);
            }
        }
        self.inbox.close();
        if users.is_empty() {
            let _ = hearing.join();
        }
        users
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.unmount();
        if let Some(model) = self.model.take() {
            let _ = model.join();
        }
        if let Some(log) = self.log.take() {
            let _ = log.join();
        }
        if let Some(syncing) = self.syncing.take() {
            let _ = syncing.join();
        }
    }
}

/// Returns the median time of reading 4 KiB from one CPU, ns.
fn median_read(path: &Path, size: u64, cpu: usize) -> io::Result<u64> {
    let mut only = CpuSet::new();
    only.set(cpu);
    // If the thread cannot be bound to the CPU, the current CPU is measured.
    let _ = sched_setaffinity(None, &only);
    // With FOPEN_DIRECT_IO every read is direct, and the buffer needs no alignment.
    let file = File::open(path)?;
    let mut buf = [0u8; 4096];
    let mut latency = Latency::default();
    for i in 0..FLOOR_READS {
        let at = i * 4096 % size.saturating_sub(4096).max(1);
        let t = std::time::Instant::now();
        file.read_at(&mut buf, at)?;
        latency.record(t.elapsed().as_nanos() as u64);
    }
    Ok(latency.percentile_ns(50.0))
}

/// Starts the thread that receives requests. The library creates another thread for its loop, which
/// inherits the priority, the timer slack and the I/O flusher flag.
fn hear(session: Session<DiskFs>) -> Result<JoinHandle<io::Result<()>>, ServeError> {
    let work = move || {
        punctual(PRIORITY_HEAR);
        sys::io_flusher();
        session.run()
    };
    let thread = thread::Builder::new().name("hearing".into()).spawn(work);
    thread.map_err(|source| ServeError::System {
        what: "cannot start a thread",
        source,
    })
}

fn check_rate(device: &str, rate: u64, force: bool) -> Result<(), ServeError> {
    if rate > RATE_MAX && !force {
        return Err(ServeError::TooFast {
            device: device.to_owned(),
            rate,
            max: RATE_MAX,
        });
    }
    Ok(())
}

fn disk_size(wanted: Option<u64>, capacity: u64) -> Result<u64, ServeError> {
    let size = wanted.unwrap_or(capacity);
    let bad = |what: String| Err(ServeError::Size { size, what });
    if size == 0 || !size.is_multiple_of(4096) {
        return bad("the size of a disk must be a positive multiple of 4096 bytes".into());
    }
    if size > capacity {
        return bad(format!(
            "the device has only {capacity} bytes: choose a smaller size"
        ));
    }
    Ok(size)
}

/// Checks that the backing file and the log are different files, and that the mount would not hide
/// them.
fn check_files(mount: &Path, o: &DiskOptions) -> Result<(), ServeError> {
    let files = [o.backing.as_deref(), o.log.as_deref()];
    if let [Some(backing), Some(log)] = files
        && seekwell_files::same(backing, log)
    {
        return Err(ServeError::Same {
            path: log.to_owned(),
            other: backing.to_owned(),
        });
    }
    for file in files.into_iter().flatten() {
        let parent = file.parent().filter(|p| !p.as_os_str().is_empty());
        let dir = parent.unwrap_or(Path::new(".")).canonicalize();
        if dir.is_ok_and(|d| d.starts_with(mount)) {
            return Err(ServeError::MountPoint {
                path: file.to_owned(),
                what: "is below the mount point, so the mount would hide it".to_owned(),
                remedy: "give a path outside the mount point",
            });
        }
    }
    if let Some(log) = &o.log {
        seekwell_files::check(log).map_err(|source| ServeError::Unwritable {
            path: log.clone(),
            source,
        })?;
    }
    Ok(())
}

/// Returns the full path of an empty directory. If the mount of a killed server is there, it is
/// removed. The second value then names the loop devices that are still attached to it.
fn check_mount(path: &Path) -> Result<(PathBuf, Option<Vec<String>>), ServeError> {
    let bad = |what: String, remedy| ServeError::MountPoint {
        path: path.to_owned(),
        what,
        remedy,
    };
    let remedy = "name an empty directory that you own";
    if !Path::new("/dev/fuse").exists() {
        return Err(ServeError::NoFuse {
            what: "does not exist".into(),
        });
    }
    let took_over = match dead_mount(path) {
        Some(dead) if dead.kind == FS_TYPE => {
            let loops = loops_over(&dead.at.join(FILE_NAME));
            if !mount::unmount(&dead.at, true) {
                return Err(ServeError::Dead {
                    what: "the mount of a `seekwell serve` that was killed is still there",
                    path: dead.at,
                });
            }
            Some(loops)
        }
        Some(dead) => {
            return Err(ServeError::Dead {
                what: "the mount of a server that has ended is still there",
                path: dead.at,
            });
        }
        None => None,
    };
    let full = path
        .canonicalize()
        .map_err(|e| bad(e.to_string(), remedy))?;
    let mut entries = std::fs::read_dir(&full).map_err(|e| bad(e.to_string(), remedy))?;
    if entries.next().is_some() {
        return Err(bad("is not empty".into(), remedy));
    }
    let dev = |p: &Path| std::fs::metadata(p).map(|m| m.dev());
    if let (Some(parent), Ok(own)) = (full.parent(), dev(&full))
        && dev(parent).is_ok_and(|d| d != own)
    {
        return Err(bad("something is mounted there already".into(), remedy));
    }
    Ok((full, took_over))
}

/// Returns the names of the loop devices that are attached to a file.
fn loops_over(file: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir("/sys/block") else {
        return found;
    };
    for e in entries.filter_map(Result::ok) {
        let backing = std::fs::read_to_string(e.path().join("loop/backing_file"));
        if backing.is_ok_and(|b| Path::new(b.trim_end()) == file) {
            found.push(e.file_name().to_string_lossy().into_owned());
        }
    }
    found.sort();
    found
}

type LogThread = (JoinHandle<Result<(), TraceError>>, mpsc::Sender<Logged>);

/// Starts a thread that writes completed commands to the log, in order of their arrival.
fn start_log(path: &Path) -> Result<LogThread, ServeError> {
    let format = seekwell_trace::find_format("csv")?;
    let options = WriteOptions {
        name: path.display().to_string(),
        ..WriteOptions::default()
    };
    let file = seekwell_files::stream(path).map_err(|source| ServeError::Unwritable {
        path: path.to_owned(),
        source,
    })?;
    let mut writer = seekwell_trace::write_to(Box::new(file), format, &options)?;
    let (tx, rx): (_, Receiver<Logged>) = mpsc::channel();
    let work = move || {
        let mut early = BTreeMap::new();
        let mut next = 0;
        for (number, record) in rx {
            early.insert(number, record);
            while let Some(record) = early.remove(&next) {
                writer.write(&record)?;
                next += 1;
            }
        }
        writer.finish()
    };
    let thread = thread::Builder::new().name("log".into()).spawn(work);
    let thread = thread.map_err(|source| ServeError::System {
        what: "cannot start a thread",
        source,
    })?;
    Ok((thread, tx))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_sizes_are_checked() {
        assert_eq!(disk_size(None, 1 << 30).expect("the device's"), 1 << 30);
        assert_eq!(disk_size(Some(8192), 1 << 30).expect("smaller"), 8192);
        for (wanted, word) in [
            (Some(0), "4096"),
            (Some(4097), "4096"),
            (Some(1 << 31), "smaller"),
        ] {
            let e = disk_size(wanted, 1 << 30).expect_err("bad").to_string();
            assert!(e.contains(word), "{e}");
        }
    }

    #[test]
    fn too_fast_device_is_rejected_unless_forced() {
        let rate = |spec| seekwell_device::probe::best_rate(spec, 1).expect(spec) as u64;
        let nvme = rate("ssd:nvme-dc-2t");
        let e = check_rate("nvme", nvme, false).expect_err("too fast");
        let e = e.to_string();
        assert!(
            e.contains("--force") && e.contains(&nvme.to_string()),
            "{e}"
        );
        assert!(check_rate("nvme", nvme, true).is_ok());
        for spec in ["ssd:s3700-100", "hdd:exos-x18", "emmc:motog"] {
            assert!(check_rate(spec, rate(spec), false).is_ok(), "{spec}");
        }
    }

    #[test]
    fn mount_point_must_be_an_empty_directory() {
        for (path, word) in [("/no/such/place", "No such file"), ("/proc", "not empty")] {
            let e = check_mount(Path::new(path)).expect_err("bad").to_string();
            assert!(e.contains(word), "{e}");
        }
    }
}
