//! A modelled disk from start to end: checks, threads, mount, floor, and clean-up.
//!
//! One thread receives requests (real-time priority 11, above the model's, so that an arrival is
//! stamped while the model spins). One thread owns the model (10), and one writes the log. All are
//! created here, and all end here.

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

/// Name of the file inside the mount.
pub const FILE_NAME: &str = "disk";
/// Devices with more commands per second than this are refused.
pub const RATE_MAX: u64 = 150_000;
const PRIORITY_HEAR: i32 = 11;
const PRIORITY_MODEL: i32 = 10;
/// Number of reads that measure the latency of the transport.
const FLOOR_READS: u64 = 200;
/// Number of CPUs that these reads are issued from, in turn.
const FLOOR_CPUS: usize = 4;

/// Treatment of the latency of the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Floor {
    /// Measured and subtracted from each completion where it matters. For a rotational disk nothing
    /// is subtracted, so its model never runs ahead of an arrival.
    #[default]
    Auto,
    /// This time is subtracted (0: nothing). The model runs ahead by it, so an arrival within that
    /// time before a completion comes too late to change it; such arrivals are counted.
    Fixed(Nanos),
}

/// How to serve.
#[derive(Clone, Debug, Default)]
pub struct DiskOptions {
    /// Empty directory to mount on.
    pub mount: PathBuf,
    /// Bytes; the device's own capacity if not given. A larger one is refused.
    pub size: Option<u64>,
    /// Sparse file for the data; memory if not given.
    pub backing: Option<PathBuf>,
    /// Latency of the transport.
    pub floor: Floor,
    /// Log every command to this file, in order of arrival: a CSV for `seekwell replay`, with the
    /// model's completion times.
    pub log: Option<PathBuf>,
    /// Whether the scheduler in front distinguishes processes; the account then reports how many
    /// were known.
    pub per_process: bool,
    /// Maximum rate of the model, commands per second; 0: unknown, and then the device is not
    /// refused for its rate.
    pub rate: u64,
    /// Serve a device that is too fast.
    pub force: bool,
}

/// A modelled disk in service. [`Disk::stop`] ends it; dropping it unmounts as well as possible.
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
    /// Mounts and serves. On an error nothing is left mounted.
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

        // From here on dropping it unmounts.
        disk.hearing = Some(hear(session)?);
        // Emptied only now: a start that fails leaves an older log as it was.
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

        // The receiving thread answers reads until the floor is known.
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

    /// The file to use, or to attach a loop device to.
    pub fn file(&self) -> PathBuf {
        self.mount.join(FILE_NAME)
    }
    /// Bytes of the disk.
    pub fn size(&self) -> u64 {
        self.size
    }
    /// How its loop waits.
    pub fn margin(&self) -> &Margin {
        &self.margin
    }
    /// Time subtracted from each completion.
    pub fn floor(&self) -> Nanos {
        self.floor
    }
    /// If the mount of a killed server was removed here: names of the loop devices that are still
    /// attached to its file.
    pub fn took_over(&self) -> Option<&[String]> {
        self.took_over.as_deref()
    }
    /// Whether the mount ended by itself (somebody unmounted it), or the model's thread ended.
    pub fn ended(&self) -> bool {
        let hearing = self.hearing.as_ref().is_none_or(JoinHandle::is_finished);
        hearing || self.model.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The latency of the transport at its best: the median of reads from one CPU, and the minimum
    /// over a few CPUs. A read from another CPU than the receiving thread's also waits for that CPU
    /// to wake up, which is not true for every program. Subtracting too much would make the disk
    /// faster than its model.
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
            // In a separate thread, so that no other thread is bound to the CPU.
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
    /// If something still uses the mount (a loop device), it is detached, and its users get errors
    /// from then on; the second value names them.
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
            // Ends with the model, which sends its jobs.
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
            // Mounted, but no thread received requests yet.
            if self.model.is_none() {
                mount::unmount(&self.mount, true);
            }
            self.inbox.close();
            return users;
        };
        if !hearing.is_finished() {
            users = loops_over(&self.file());
            // Outstanding requests are answered meanwhile: unmounting does not wait for them.
            if !users.is_empty() || !mount::unmount(&self.mount, false) {
                // Somebody has open files, which work until this server ends.
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

/// Median time of reading a page, ns, from one CPU.
fn median_read(path: &Path, size: u64, cpu: usize) -> io::Result<u64> {
    let mut only = CpuSet::new();
    only.set(cpu);
    // If that is refused, it measures from the current CPU.
    let _ = sched_setaffinity(None, &only);
    // With FOPEN_DIRECT_IO every read is direct, with any buffer.
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
        return bad("a disk has a positive multiple of 4096 bytes".into());
    }
    if size > capacity {
        return bad(format!("the device has {capacity} bytes: ask for no more"));
    }
    Ok(size)
}

/// The two files must differ, and must not be below the mount, which would hide them.
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
                what: "would be hidden under the mount".to_owned(),
                remedy: "name a place outside of it",
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

/// The full path of an empty directory. If a killed server's mount was there, removes it and
/// returns its loop devices.
fn check_mount(path: &Path) -> Result<(PathBuf, Option<Vec<String>>), ServeError> {
    let bad = |what: String, remedy| ServeError::MountPoint {
        path: path.to_owned(),
        what,
        remedy,
    };
    let remedy = "name an empty directory of yours";
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

/// Names of loop devices over this file.
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

/// Starts a thread that writes finished commands in order of their arrival.
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
    fn sizes_are_checked() {
        assert_eq!(disk_size(None, 1 << 30).expect("the device's"), 1 << 30);
        assert_eq!(disk_size(Some(8192), 1 << 30).expect("smaller"), 8192);
        for (wanted, word) in [
            (Some(0), "4096"),
            (Some(4097), "4096"),
            (Some(1 << 31), "no more"),
        ] {
            let e = disk_size(wanted, 1 << 30).expect_err("bad").to_string();
            assert!(e.contains(word), "{e}");
        }
    }

    #[test]
    fn what_is_too_fast_is_refused_with_its_own_figure_unless_forced() {
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
    fn a_mount_point_is_an_empty_directory() {
        for (path, word) in [("/no/such/place", "No such file"), ("/proc", "not empty")] {
            let e = check_mount(Path::new(path)).expect_err("bad").to_string();
            assert!(e.contains(word), "{e}");
        }
    }
}
