//! The interface of workload scripts to the machine that they run on: files, tasks, time, random
//! numbers.
//!
//! There are two kinds of machine. On the *simulated* machine, one single-threaded executor runs
//! all tasks of a run on the modelled page cache, file system, block layer and device. A call that
//! waits suspends the future of its task. Only the executor resumes it, so a no-op waker is enough.
//! On the *real* machine (the host), each task is a thread that runs its own future and uses real
//! files. Every call has already completed when its future is first polled.
//!
//! Rules for both kinds of machine:
//! - A task makes one blocking call at a time. The types ensure this rule: methods take `&mut
//!   self`, and a machine object is neither cloned nor shared. Each task has its own machine
//!   object, made by [`Machine::spawn`].
//! - Handles ([`Fd`], [`Lock`] and so on) are plain numbers, and are valid in every task of the
//!   run. Tasks are like threads of one program and share its table of open files. Tasks that use
//!   the same file handle therefore share the read-ahead state and the position for
//!   [`Machine::append`].
//! - Paths are relative to the directory of the run, with '/' between components. An empty path, an
//!   absolute path or a path with `..` returns EINVAL, so a script cannot leave its directory.
//! - Calls take and return lengths only. The machine determines the contents.
//! - The machine accounts for the CPU cost of calls and copies. [`Machine::compute`] is additional
//!   work.
//! - A signal, a time limit or a failed task stops the run. After that, every call that waits or
//!   transfers data returns `Errno::ECANCELED`. The methods `now`, `close`, `unlink`, `rmdir`,
//!   `readdir`, `stat`, `unmap`, `aio_close`, `join` and `note` still work, so that a script can
//!   remove its files.
//! - A task that returns an error stops the run. The run reports this error, even if the main task
//!   returns success.

use crate::fail::{Context, Outcome};
use crate::note::{Mark, Note, Running};
use seekwell_core::rng::Pcg64Mcg;
use seekwell_core::{
    Access, Advice, CgroupId, Errno, Instant, IoPrio, Nanos, OpenFlags, Stat, SyncRange,
};
use std::borrow::Cow;
use std::future::Future;

/// An open file, directory or raw device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fd(pub u32);
/// A memory mapping of a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Map(pub u32);
/// A queue of asynchronous operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Aio(pub u32);
/// A task that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Join(pub u32);
/// A lock. At most one task holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lock(pub u32);
/// A barrier for a fixed number of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Barrier(pub u32);
/// A bounded queue of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u32);

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name without the directory.
    pub name: String,
    /// True if the entry is a directory.
    pub dir: bool,
}

/// The kind of an asynchronous operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AioOp {
    /// Read.
    Read,
    /// Write.
    Write,
    /// fsync; offset and length are ignored.
    Fsync,
    /// fdatasync; offset and length are ignored.
    Fdatasync,
}

/// An asynchronous operation to submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AioRequest {
    /// File or raw device.
    pub fd: Fd,
    /// Kind of operation.
    pub op: AioOp,
    /// Offset in bytes.
    pub off: u64,
    /// Length in bytes.
    pub len: u32,
    /// Number that the completion returns.
    pub tag: u64,
}

/// A completed asynchronous operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AioDone {
    /// Tag of the request.
    pub tag: u64,
    /// Number of bytes transferred, or the error.
    pub result: Result<u32, Errno>,
}

/// The io context of a new task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoContextOf {
    /// A new io context. This is the usual case (a process, or a thread without CLONE_IO).
    #[default]
    New,
    /// The io context of the task that starts it (CLONE_IO). The real machine cannot do this, so
    /// the new task gets a new io context, and the run records a warning.
    Share,
}

/// The properties of a new task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Name of the task. It is a part of the task's path and determines the task's random numbers.
    /// It must be unique among the tasks that one task starts.
    pub name: String,
    /// I/O priority, as set by ioprio_set(2). Class None means that it is not set.
    pub ioprio: IoPrio,
    /// Nice value, -20..=19.
    pub nice: i8,
    /// Cgroup of the task, made by [`Machine::cgroup`].
    pub cgroup: CgroupId,
    /// The io context of the task.
    pub io_context: IoContextOf,
}

impl How {
    /// Makes the properties of a task with this name, and with the default values otherwise.
    pub fn named(name: impl Into<String>) -> Self {
        How {
            name: name.into(),
            ..How::default()
        }
    }
}

/// Properties of a machine. Some original programs read them, for example to run 2 jobs per CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Number of logical CPUs.
    pub cpus: u32,
    /// Upper bound of the size of the page cache, in bytes.
    pub cache_bytes: u64,
}

/// The interface for workload scripts. The description of the module has the rules for all methods.
#[expect(
    async_fn_in_trait,
    reason = "no Send bound is needed: a simulation has one thread, on a host each thread runs its own future"
)]
pub trait Machine: Sized + 'static {
    // ---- time and random numbers

    /// Returns the current time. On the simulated machine, it is the time of the current event. On
    /// the real machine, it is the monotonic clock, shifted so that the run begins at
    /// [`Instant::START`].
    fn now(&self) -> Instant;
    /// Returns this task's random number generator. The seed of the run and the path of the task
    /// ("main/worker3") determine its numbers. So both kinds of machine give the same numbers,
    /// however tasks interleave.
    fn rng(&mut self) -> &mut Pcg64Mcg;
    /// Returns properties of the machine, which are constant during a run.
    fn facts(&self) -> Facts;
    /// Does CPU work in addition to the cost of calls. On the simulated machine, the task uses `d`
    /// of CPU time, and shares the cores with the other tasks. On the real machine, it spins until
    /// the thread has used `d` of CPU time.
    async fn compute(&mut self, d: Nanos) -> Result<(), Errno>;
    /// Uses the CPU time of system calls that a simulated machine does not model. A real machine
    /// does nothing, because its calls take their own time.
    async fn compute_if_simulated(&mut self, d: Nanos) -> Result<(), Errno> {
        self.compute(d).await
    }
    /// Waits for `d` without using the CPU.
    async fn sleep(&mut self, d: Nanos) -> Result<(), Errno>;

    // ---- files

    /// Opens a file, or a directory with the flag DIRECTORY. Returns the errors of open(2). With
    /// DIRECT, offsets and lengths must be multiples of the device's logical block size, otherwise
    /// calls return EINVAL. A script should use multiples of 4096. With APPEND, `write` at an
    /// offset returns EINVAL.
    async fn open(&mut self, path: &str, how: OpenFlags) -> Result<Fd, Errno>;
    /// Closes the file in all tasks. Dirty data stay in the page cache.
    async fn close(&mut self, fd: Fd) -> Result<(), Errno>;
    /// Reads `len` bytes at `off` (pread(2)). Returns the number of bytes: less than `len` at the
    /// end of the file, and 0 after the end.
    async fn read(&mut self, fd: Fd, off: u64, len: u32) -> Result<u32, Errno>;
    /// Reads a whole file in the way of a program that does not know its length. The method opens
    /// the file, reads it from the start in calls of `chunk` bytes until a call returns 0, and
    /// closes it. Each call that returned data is recorded as an operation "read". Returns false if
    /// the file does not exist. The simulated machine makes the same calls at the same times, with
    /// less work for the simulator.
    async fn read_whole(&mut self, path: &str, chunk: u32) -> Outcome<bool> {
        read_whole(self, path, chunk).await
    }
    /// Writes `len` bytes at `off` (pwrite(2)). A write can extend the file. The call either writes
    /// all bytes or returns an error.
    async fn write(&mut self, fd: Fd, off: u64, len: u32) -> Result<u32, Errno>;
    /// Writes at the end of the file (write(2) with O_APPEND). Other tasks can also move this end.
    async fn append(&mut self, fd: Fd, len: u32) -> Result<u32, Errno>;
    /// Writes data and metadata of a file to the device and flushes the device's cache (fsync(2)).
    /// For a directory, it writes the entries.
    async fn fsync(&mut self, fd: Fd) -> Result<(), Errno>;
    /// Writes the data of a file and the metadata that are needed to read the data (fdatasync(2)).
    async fn fdatasync(&mut self, fd: Fd) -> Result<(), Errno>;
    /// Starts or waits for writeback of a range of a file (sync_file_range(2)).
    async fn sync_range(&mut self, fd: Fd, off: u64, len: u64, how: SyncRange)
    -> Result<(), Errno>;
    /// Writes all data of the file system that contains the directory of the run (syncfs(2)).
    async fn syncfs(&mut self) -> Result<(), Errno>;
    /// Sets the length of a file (ftruncate(2)).
    async fn truncate(&mut self, fd: Fd, len: u64) -> Result<(), Errno>;
    /// Allocates unwritten blocks for a range, and extends the file to at least the end of the
    /// range (fallocate(2), mode 0).
    async fn fallocate(&mut self, fd: Fd, off: u64, len: u64) -> Result<(), Errno>;
    /// Gives advice about a range (posix_fadvise(2)). Length 0 means up to the end of the file.
    async fn fadvise(&mut self, fd: Fd, off: u64, len: u64, advice: Advice) -> Result<(), Errno>;
    /// Renames a file, and replaces an existing file with the new name (rename(2)).
    async fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno>;
    /// Removes a file (unlink(2)).
    async fn unlink(&mut self, path: &str) -> Result<(), Errno>;
    /// Makes a directory (mkdir(2)).
    async fn mkdir(&mut self, path: &str) -> Result<(), Errno>;
    /// Removes an empty directory (rmdir(2)).
    async fn rmdir(&mut self, path: &str) -> Result<(), Errno>;
    /// Returns all names in a directory except `.` and `..`, in the order of the file system.
    async fn readdir(&mut self, path: &str) -> Result<Vec<Entry>, Errno>;
    /// Returns the properties of a path (stat(2)).
    async fn stat(&mut self, path: &str) -> Result<Stat, Errno>;
    /// Returns the properties of an open file or raw device (fstat(2)).
    async fn fstat(&mut self, fd: Fd) -> Result<Stat, Errno>;
    /// Drops clean pages without writing and without waiting, like /proc/sys/vm/drop_caches. A
    /// script should call `syncfs` first. The simulated machine drops all clean pages and metadata.
    /// The real machine calls POSIX_FADV_DONTNEED for every file of the run, except for open files
    /// that were written after their last sync. It does not change the rest of the host's page
    /// cache.
    async fn drop_caches(&mut self) -> Result<(), Errno>;
    /// Reserves `bytes` of memory until the run ends, as a database does for its buffers. On the
    /// simulated machine, the page cache becomes smaller by this amount. The call returns ENOMEM if
    /// less than a sixteenth of the memory would be left. The real machine reserves no memory and
    /// does not change the page cache, because scripts only track which pages are in their buffers.
    async fn hold_memory(&mut self, bytes: u64) -> Result<(), Errno> {
        let _ = bytes;
        Ok(())
    }

    // ---- mapped files

    /// Maps a range of an open file as shared memory (mmap(2)).
    async fn map(&mut self, fd: Fd, off: u64, len: u64) -> Result<Map, Errno>;
    /// Accesses each page of a range of the mapping once, in ascending order. `off` counts from the
    /// start of the mapping. On the simulated machine, a page fault reads the page with the
    /// read-around of memory mappings. The real machine executes a load or store instruction per
    /// page.
    async fn touch(&mut self, map: Map, off: u64, len: u64, how: Access) -> Result<(), Errno>;
    /// Writes the changed pages of a range and waits (msync(2) with MS_SYNC).
    async fn msync(&mut self, map: Map, off: u64, len: u64) -> Result<(), Errno>;
    /// Removes a mapping (munmap(2)).
    async fn unmap(&mut self, map: Map) -> Result<(), Errno>;

    // ---- many operations at a time

    /// Makes a queue for at most `depth` operations (1..=4096). The real machine uses io_uring.
    async fn aio(&mut self, depth: u32) -> Result<Aio, Errno>;
    /// Submits operations in order, in one call and under one plug. If not all of them fit, the
    /// call returns EAGAIN and submits none of them. The call can wait for free requests of the
    /// block layer, like io_submit.
    async fn aio_submit(&mut self, aio: Aio, what: &[AioRequest]) -> Result<(), Errno>;
    /// Waits until at least `min` operations have completed, or until no operation is in flight.
    /// Appends all completions to `out` in order.
    async fn aio_reap(&mut self, aio: Aio, min: usize, out: &mut Vec<AioDone>)
    -> Result<(), Errno>;
    /// Waits for the operations in flight and closes the queue.
    async fn aio_close(&mut self, aio: Aio) -> Result<(), Errno>;

    // ---- the raw device

    /// Opens the raw device. Of the flags, only RDONLY and DIRECT have an effect. The calls `read`,
    /// `write`, `fsync` (which sends a flush), `fadvise`, `fstat` and `aio` work on the raw device.
    /// Without DIRECT, it has its own page cache. Returns ENODEV if there is no raw device. On the
    /// simulated machine, it is the modelled device. On the real machine, it is the device or file
    /// that the user named for this purpose, and never any other.
    async fn open_device(&mut self, how: OpenFlags) -> Result<Fd, Errno>;
    /// Discards a range of the raw device.
    async fn discard(&mut self, fd: Fd, off: u64, len: u64) -> Result<(), Errno>;

    // ---- tasks and synchronisation

    /// Makes a cgroup with an I/O weight (1..=1000) under a parent. Returns EOPNOTSUPP on the real
    /// machine, because a new cgroup would change the host.
    async fn cgroup(&mut self, parent: CgroupId, weight: u32) -> Result<CgroupId, Errno>;
    /// Starts a task that runs in parallel with the calling task. `script` makes the future of the
    /// task from the task's own machine object. When the future returns, the task and its io
    /// context end. On the simulated machine, the task is another future of the executor. On the
    /// real machine, it is a thread that calls `script`, so `script` must be Send but the future
    /// need not be.
    async fn spawn<F, Fut>(&mut self, how: How, script: F) -> Result<Join, Errno>
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = Outcome> + 'static;
    /// Waits for the end of a task and returns its outcome. Call it at most once per task.
    async fn join(&mut self, task: Join) -> Outcome;

    /// Makes a lock that is free.
    fn lock(&mut self) -> Lock;
    /// Waits until the lock is free and takes it. On the simulated machine, tasks get the lock in
    /// the order of their calls.
    async fn acquire(&mut self, lock: Lock) -> Result<(), Errno>;
    /// Frees a lock that this task holds.
    fn release(&mut self, lock: Lock);
    /// Makes a barrier for `tasks` tasks (at least 1). It can be used repeatedly.
    fn barrier(&mut self, tasks: u32) -> Barrier;
    /// Waits until all tasks of the barrier have arrived.
    async fn arrive(&mut self, barrier: Barrier) -> Result<(), Errno>;
    /// Makes a channel with space for `room` numbers (at least 1).
    fn channel(&mut self, room: u32) -> Channel;
    /// Waits until the channel has space, then sends a number. Returns EBADF if the channel has
    /// ended.
    async fn send(&mut self, channel: Channel, value: u64) -> Result<(), Errno>;
    /// Waits for a number and takes it. Returns `None` if the channel has ended and is empty.
    async fn recv(&mut self, channel: Channel) -> Result<Option<u64>, Errno>;
    /// Ends a channel. Receivers still get the remaining numbers, and then `None`.
    fn end_channel(&mut self, channel: Channel);

    // ---- measures

    /// Records a note of this task in the measures of the run.
    fn note(&mut self, note: Note);
    /// Returns true if the file system is deleted after the run. Then the script need not remove
    /// its files.
    fn disposable(&self) -> bool {
        false
    }
    /// Records a mark at the current time.
    fn mark(&mut self, mark: Mark) {
        let now = self.now();
        self.note(Note::Mark(now, mark));
    }
    /// Begins an operation and returns its start.
    fn op_begin(&self, kind: &'static str) -> Running {
        Running {
            kind,
            since: self.now(),
        }
    }
    /// Ends an operation that transferred `bytes`, and records its latency.
    fn op_end(&mut self, op: Running, bytes: u64) {
        let end = self.now();
        self.note(Note::Op {
            kind: op.kind,
            start: op.since,
            end,
            bytes,
        });
    }
    /// Records a metric. The first metric of a run is that of the original program.
    fn metric(&mut self, name: &'static str, unit: &'static str, value: f64, higher: bool) {
        self.metric_of(Cow::Borrowed(name), unit, value, higher);
    }
    /// Declares that the principal metric counts operations of this kind, or is their mean.
    fn counts(&mut self, kind: &'static str) {
        self.note(Note::Counts(kind));
    }
    /// Records a metric whose name is made during the run, for example the metric of a section of a
    /// job file.
    fn metric_of(&mut self, name: Cow<'static, str>, unit: &'static str, value: f64, higher: bool) {
        self.note(Note::Metric {
            name,
            unit,
            value,
            higher_is_better: higher,
        });
    }
}

/// Reads a file from start to end in calls of `chunk` bytes until a call returns 0, like a program
/// that does not know the length of the file. Calls that returned data count as operations "read".
/// Returns the number of bytes read.
pub async fn read_to_end<M: Machine>(m: &mut M, fd: Fd, chunk: u32, path: &str) -> Outcome<u64> {
    let mut off = 0;
    loop {
        let op = m.op_begin("read");
        let n = m.read(fd, off, chunk).await;
        let n = n.doing(|| format!("read {chunk} bytes at {off} of {path}"))?;
        if n == 0 {
            return Ok(off);
        }
        m.op_end(op, u64::from(n));
        off += u64::from(n);
    }
}

/// Implements [`Machine::read_whole`] with single calls.
pub async fn read_whole<M: Machine>(m: &mut M, path: &str, chunk: u32) -> Outcome<bool> {
    let fd = match m.open(path, OpenFlags::RDONLY).await {
        Err(Errno::ENOENT) => return Ok(false),
        r => r.doing(|| format!("open {path}"))?,
    };
    read_to_end(m, fd, chunk, path).await?;
    m.close(fd).await.doing(|| format!("close {path}"))?;
    Ok(true)
}
