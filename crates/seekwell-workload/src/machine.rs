//! The machine that a script runs on: files, tasks, time, random numbers.
//!
//! Two worlds implement it. In the *virtual* world, one single-threaded executor drives all tasks
//! of a run over the modelled page cache, file system, block layer and device. A call that waits
//! suspends the future, and only the executor wakes it (a no-op waker suffices). In the *real*
//! world, each task is a thread that drives its own future over real files. Every call has finished
//! when its future is first polled.
//!
//! Rules for both:
//! - A task makes one blocking call at a time. The types ensure this: methods take `&mut self`, and
//!   a machine is neither cloned nor shared. Each task has its own machine, made by
//!   [`Machine::spawn`].
//! - Handles ([`Fd`], [`Lock`], ...) are plain numbers, valid in every task of the run: tasks are
//!   threads of one program and share the table of open files. So they also share an open file's
//!   read-ahead state and its position for [`Machine::append`].
//! - Paths are relative to the directory of the run, with '/' between components. An empty or
//!   absolute path, or one with `..`, is EINVAL, so a script cannot leave its directory.
//! - Calls take and return lengths only. The world chooses the contents.
//! - The world accounts for the cost of calls and copies; [`Machine::compute`] is additional work.
//! - When a run is stopped (a signal, a time limit, another task that failed), every later call
//!   that waits or moves data returns `Errno::ECANCELED`. The methods `now`, `close`, `unlink`,
//!   `rmdir`, `readdir`, `stat`, `unmap`, `aio_close`, `join` and the notes still work, so that a
//!   script can remove its files. A task that returns an error stops the run. The world reports
//!   that error, whatever the first task returns.

use crate::fail::Outcome;
use crate::note::{Mark, Note, Running};
use crate::scripts::common::read_whole;
use seekwell_core::rng::Pcg64Mcg;
use seekwell_core::{
    Access, Advice, CgroupId, Errno, Instant, IoPrio, Nanos, OpenFlags, Stat, SyncRange,
};
use std::borrow::Cow;
use std::future::Future;

/// An open file, directory or raw device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fd(pub u32);
/// A mapped range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Map(pub u32);
/// A queue of asynchronous operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Aio(pub u32);
/// A started task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Join(pub u32);
/// A lock that one task holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lock(pub u32);
/// A barrier for a fixed number of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Barrier(pub u32);
/// A bounded queue of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u32);

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name without the directory.
    pub name: String,
    /// Whether it is a directory.
    pub dir: bool,
}

/// An asynchronous operation's kind.
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
    /// File or device.
    pub fd: Fd,
    /// Operation.
    pub op: AioOp,
    /// Offset in bytes.
    pub off: u64,
    /// Length in bytes.
    pub len: u32,
    /// Returned with the completion.
    pub tag: u64,
}

/// A completed asynchronous operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AioDone {
    /// Tag of the request.
    pub tag: u64,
    /// Number of bytes moved, or the error.
    pub result: Result<u32, Errno>,
}

/// The io context of a new task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoContextOf {
    /// A new one (a process, or a thread without CLONE_IO: the usual case).
    #[default]
    New,
    /// The starter's (CLONE_IO). A world without this possibility (a host's threads) gives it a new
    /// one and records a warning.
    Share,
}

/// How to start a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Name of the task, which is part of its path and determines its random stream. Unique among
    /// the tasks of one starter.
    pub name: String,
    /// ioprio_set(2); class None leaves it unset.
    pub ioprio: IoPrio,
    /// Nice value, -20..=19.
    pub nice: i8,
    /// The cgroup, from [`Machine::cgroup`].
    pub cgroup: CgroupId,
    /// The io context.
    pub io_context: IoContextOf,
}

impl How {
    /// A task with this name and defaults for everything else.
    pub fn named(name: impl Into<String>) -> Self {
        How {
            name: name.into(),
            ..How::default()
        }
    }
}

/// Facts about a machine, for scripts whose original reads them (jobs = 2 x CPUs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Logical CPUs.
    pub cpus: u32,
    /// Upper bound of the page cache in bytes.
    pub cache_bytes: u64,
}

/// The interface for workload scripts. The module describes the rules for all methods.
#[expect(
    async_fn_in_trait,
    reason = "no Send wanted: the virtual world is one thread, the real one drives each future on its own"
)]
pub trait Machine: Sized + 'static {
    // ---- time and random numbers

    /// The present time. Virtual: the time of the current event. Real: the monotonic clock, shifted
    /// so that the run begins at [`Instant::START`].
    fn now(&self) -> Instant;
    /// This task's random stream. The run's seed and the task's path ("main/worker3") determine it,
    /// so it gives the same numbers in both worlds, however tasks interleave.
    fn rng(&mut self) -> &mut Pcg64Mcg;
    /// Facts about the machine; constant during a run.
    fn facts(&self) -> Facts;
    /// CPU work in addition to system calls. Virtual: occupies a core for `d` of CPU time, and
    /// shares cores with the other tasks. Real: spins until the thread has used `d` of CPU time.
    async fn compute(&mut self, d: Nanos) -> Result<(), Errno>;
    /// Uses the CPU time of system calls that a simulated machine does not model. A real machine
    /// does nothing, because its calls take their own time.
    async fn compute_if_simulated(&mut self, d: Nanos) -> Result<(), Errno> {
        self.compute(d).await
    }
    /// Waits without using the CPU.
    async fn sleep(&mut self, d: Nanos) -> Result<(), Errno>;

    // ---- files

    /// Opens a file, or with DIRECTORY a directory. Errors as open(2). With DIRECT, offsets and
    /// lengths that are not aligned to the device's logical block are EINVAL; a script should use
    /// multiples of 4096. With APPEND, `write` at an offset is EINVAL.
    async fn open(&mut self, path: &str, how: OpenFlags) -> Result<Fd, Errno>;
    /// Closes the file in all tasks. Dirty data stay in the cache.
    async fn close(&mut self, fd: Fd) -> Result<(), Errno>;
    /// pread(2): `len` bytes at `off`; fewer at the end of the file, 0 after it.
    async fn read(&mut self, fd: Fd, off: u64, len: u32) -> Result<u32, Errno>;
    /// Reads a whole file like a program that does not know its length: opens it, reads from the
    /// start in calls of `chunk` until a call returns nothing, and closes it. Calls that returned
    /// data are operations "read". False: the file does not exist. The virtual world makes the same
    /// calls at the same times, with less work for the simulator.
    async fn read_whole(&mut self, path: &str, chunk: u32) -> Outcome<bool> {
        read_whole(self, path, chunk).await
    }
    /// pwrite(2), which can extend the file. Both worlds write everything or fail.
    async fn write(&mut self, fd: Fd, off: u64, len: u32) -> Result<u32, Errno>;
    /// write(2) at the end of the file, which other tasks may also move.
    async fn append(&mut self, fd: Fd, len: u32) -> Result<u32, Errno>;
    /// fsync(2): data and metadata, and a flush of the device's cache. For a directory: its
    /// entries.
    async fn fsync(&mut self, fd: Fd) -> Result<(), Errno>;
    /// fdatasync(2): data, and the metadata that are needed to read them.
    async fn fdatasync(&mut self, fd: Fd) -> Result<(), Errno>;
    /// sync_file_range(2).
    async fn sync_range(&mut self, fd: Fd, off: u64, len: u64, how: SyncRange)
    -> Result<(), Errno>;
    /// sync(2), limited to the file system of the run's directory (syncfs(2)).
    async fn syncfs(&mut self) -> Result<(), Errno>;
    /// ftruncate(2): longer or shorter.
    async fn truncate(&mut self, fd: Fd, len: u64) -> Result<(), Errno>;
    /// fallocate(2), mode 0: allocates unwritten blocks, and extends the file to at least the end
    /// of the range.
    async fn fallocate(&mut self, fd: Fd, off: u64, len: u64) -> Result<(), Errno>;
    /// posix_fadvise(2) on a range; length 0 means to the end.
    async fn fadvise(&mut self, fd: Fd, off: u64, len: u64, advice: Advice) -> Result<(), Errno>;
    /// rename(2); replaces an existing file of the new name.
    async fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno>;
    /// unlink(2).
    async fn unlink(&mut self, path: &str) -> Result<(), Errno>;
    /// mkdir(2).
    async fn mkdir(&mut self, path: &str) -> Result<(), Errno>;
    /// rmdir(2).
    async fn rmdir(&mut self, path: &str) -> Result<(), Errno>;
    /// All names in a directory except `.` and `..`, in the order of the file system.
    async fn readdir(&mut self, path: &str) -> Result<Vec<Entry>, Errno>;
    /// stat(2).
    async fn stat(&mut self, path: &str) -> Result<Stat, Errno>;
    /// fstat(2), for files and raw devices.
    async fn fstat(&mut self, fd: Fd) -> Result<Stat, Errno>;
    /// Drops the clean pages of the run's own files, without writing or waiting, like
    /// /proc/sys/vm/drop_caches. A script calls `syncfs` first. Virtual: drops all clean pages and
    /// metadata. Real: POSIX_FADV_DONTNEED on every file of the run, except open files that were
    /// written after their last sync. The rest of the host's cache stays.
    async fn drop_caches(&mut self) -> Result<(), Errno>;
    /// Reserves memory for the program until the run ends, like a database for its buffers, in
    /// bytes. The page cache becomes smaller by this amount. Virtual: taken from the machine's
    /// memory; ENOMEM if less than a sixteenth of it would be left. Real: takes no memory, because
    /// scripts only track which pages are in their buffers; the host's cache is not changed.
    async fn hold_memory(&mut self, bytes: u64) -> Result<(), Errno> {
        let _ = bytes;
        Ok(())
    }

    // ---- mapped files

    /// mmap(2), shared, of a range of an open file.
    async fn map(&mut self, fd: Fd, off: u64, len: u64) -> Result<Map, Errno>;
    /// Touches each page of a range of the mapping once, in order; offsets are within the mapping.
    /// Virtual: a fault is a read of the page with mapped read-around. Real: a load or store.
    async fn touch(&mut self, map: Map, off: u64, len: u64, how: Access) -> Result<(), Errno>;
    /// msync(2) with MS_SYNC.
    async fn msync(&mut self, map: Map, off: u64, len: u64) -> Result<(), Errno>;
    /// munmap(2).
    async fn unmap(&mut self, map: Map) -> Result<(), Errno>;

    // ---- many operations at a time

    /// Makes a queue for at most `depth` operations (1..=4096). Real: an io_uring.
    async fn aio(&mut self, depth: u32) -> Result<Aio, Errno>;
    /// Submits in order, in one call and under one plug. EAGAIN if they do not all fit, and then
    /// none is submitted. May wait for free requests of the block layer, like io_submit.
    async fn aio_submit(&mut self, aio: Aio, what: &[AioRequest]) -> Result<(), Errno>;
    /// Waits until at least `min` operations have completed, or none is outstanding. Appends all
    /// completions in order.
    async fn aio_reap(&mut self, aio: Aio, min: usize, out: &mut Vec<AioDone>)
    -> Result<(), Errno>;
    /// Waits for outstanding operations and closes the queue.
    async fn aio_close(&mut self, aio: Aio) -> Result<(), Errno>;

    // ---- the raw device

    /// Opens the raw device (of the flags, RDONLY and DIRECT have an effect). `read`, `write`,
    /// `fsync` (with a flush), `fadvise`, `fstat` and `aio` work on it. Without DIRECT it has its
    /// own page cache. ENODEV if there is none. Virtual: the modelled device. Real: the device or
    /// file that the user named for this purpose, never another one.
    async fn open_device(&mut self, how: OpenFlags) -> Result<Fd, Errno>;
    /// Discards a range of the raw device.
    async fn discard(&mut self, fd: Fd, off: u64, len: u64) -> Result<(), Errno>;

    // ---- tasks and synchronisation

    /// Makes a cgroup with an I/O weight (1..=1000) under a parent. EOPNOTSUPP in a world without
    /// cgroups (real: writes to the cgroup tree would change the host).
    async fn cgroup(&mut self, parent: CgroupId, weight: u32) -> Result<CgroupId, Errno>;
    /// Starts a task. `script` makes its future from its own machine; it runs at once, in parallel
    /// with the starter. When the future returns, the task and its io context end. Virtual: another
    /// future of the executor. Real: a thread, which calls `script` (so `script` is Send, while the
    /// future is not).
    async fn spawn<F, Fut>(&mut self, how: How, script: F) -> Result<Join, Errno>
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = Outcome> + 'static;
    /// Waits for the end of a task and returns its outcome, once.
    async fn join(&mut self, task: Join) -> Outcome;

    /// A new, free lock.
    fn lock(&mut self) -> Lock;
    /// Waits until the lock is free and takes it. Virtual: in order of the calls.
    async fn acquire(&mut self, lock: Lock) -> Result<(), Errno>;
    /// Frees a lock that this task holds.
    fn release(&mut self, lock: Lock);
    /// A new barrier for `tasks` tasks (at least 1), which can be used repeatedly.
    fn barrier(&mut self, tasks: u32) -> Barrier;
    /// Waits until all tasks of the barrier have arrived.
    async fn arrive(&mut self, barrier: Barrier) -> Result<(), Errno>;
    /// A new channel with room for `room` numbers (at least 1).
    fn channel(&mut self, room: u32) -> Channel;
    /// Waits for room, then sends a number. EBADF if the channel has ended.
    async fn send(&mut self, channel: Channel, value: u64) -> Result<(), Errno>;
    /// Waits for a number and takes it; `None` when the channel has ended and is empty.
    async fn recv(&mut self, channel: Channel) -> Result<Option<u64>, Errno>;
    /// Ends a channel: receivers get the remaining numbers, then `None`.
    fn end_channel(&mut self, channel: Channel);

    // ---- measures

    /// Records a note for this task in the run's measures.
    fn note(&mut self, note: Note);
    /// The file system disappears with the run, so the script need not remove its files.
    fn disposable(&self) -> bool {
        false
    }
    /// Records a mark at the present time.
    fn mark(&mut self, mark: Mark) {
        let now = self.now();
        self.note(Note::Mark(now, mark));
    }
    /// Begins an operation.
    fn op_begin(&self, kind: &'static str) -> Running {
        Running {
            kind,
            since: self.now(),
        }
    }
    /// Ends an operation that moved `bytes`, and records its latency.
    fn op_end(&mut self, op: Running, bytes: u64) {
        let end = self.now();
        self.note(Note::Op {
            kind: op.kind,
            start: op.since,
            end,
            bytes,
        });
    }
    /// Records a metric. The first of a run is the original's metric.
    fn metric(&mut self, name: &'static str, unit: &'static str, value: f64, higher: bool) {
        self.metric_of(Cow::Borrowed(name), unit, value, higher);
    }
    /// Declares that the principal metric counts operations of this kind, or is their mean.
    fn counts(&mut self, kind: &'static str) {
        self.note(Note::Counts(kind));
    }
    /// Records a metric whose name is made during the run, such as one of a job file's section.
    fn metric_of(&mut self, name: Cow<'static, str>, unit: &'static str, value: f64, higher: bool) {
        self.note(Note::Metric {
            name,
            unit,
            value,
            higher_is_better: higher,
        });
    }
}
