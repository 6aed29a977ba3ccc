//! The machine a script runs on: files, tasks, time, chance.
//!
//! Two worlds implement it. In the *virtual* world one single-threaded executor drives all tasks
//! of a run over the modelled page cache, file system, block layer and device; a call that waits
//! suspends the future, and nothing but the executor wakes it (a no-op waker suffices). In the
//! *real* world each task is a thread that drives its own future over real files; every call has
//! finished when its future is first polled.
//!
//! Rules for both:
//! - A task does one blocking call at a time, by type: methods take `&mut self`, and a machine is
//!   neither cloned nor shared. Each task has its own machine, made by [`Machine::spawn`].
//! - Handles ([`Fd`], [`Lock`], ...) are plain numbers, valid in every task of the run: tasks are
//!   threads of one program and share the table of open files, and with an open file its
//!   read-ahead state and its position for [`Machine::append`].
//! - Paths are relative to the directory the run was given, parts joined by '/'. A path that is
//!   empty, absolute or has a `..` is EINVAL: a script cannot leave its directory.
//! - Only lengths go in and out. What is in the bytes is the world's affair.
//! - Cost of calls and copies belongs to the world; [`Machine::compute`] is work beyond them.
//! - When a run is stopped (a signal, a time limit, another task that failed), every call that
//!   waits or moves data answers `Errno::ECANCELED` from then on; `now`, `close`, `unlink`,
//!   `rmdir`, `readdir`, `stat`, `unmap`, `aio_close`, `join` and the notes go on working, so that
//!   a script can remove its files. A task that returns an error stops the run, and that
//!   error is what the world reports, whatever the first task makes of it.

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
/// A task that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Join(pub u32);
/// A lock that one task holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lock(pub u32);
/// A meeting point of a fixed number of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Barrier(pub u32);
/// A bounded queue of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u32);

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Without the directory.
    pub name: String,
    /// A directory itself?
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
    /// On what.
    pub fd: Fd,
    /// What.
    pub op: AioOp,
    /// At which byte.
    pub off: u64,
    /// Bytes.
    pub len: u32,
    /// Comes back with the completion.
    pub tag: u64,
}

/// A completed asynchronous operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AioDone {
    /// As submitted.
    pub tag: u64,
    /// Bytes moved, or why not.
    pub result: Result<u32, Errno>,
}

/// Whose io context a new task uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoContextOf {
    /// Its own (a process or a thread without CLONE_IO: the usual case).
    #[default]
    New,
    /// The starter's (CLONE_IO). A world that cannot (a host's threads) gives it its own and
    /// warns in the record.
    Share,
}

/// How a task is to be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Its name: part of its path and so of its random stream. Unique among the tasks of one
    /// starter.
    pub name: String,
    /// ioprio_set(2); class None leaves it unset.
    pub ioprio: IoPrio,
    /// Nice value, -20..=19.
    pub nice: i8,
    /// From [`Machine::cgroup`].
    pub cgroup: CgroupId,
    /// Whose io context.
    pub io_context: IoContextOf,
}

impl How {
    /// With defaults for everything but the name.
    pub fn named(name: impl Into<String>) -> Self {
        How {
            name: name.into(),
            ..How::default()
        }
    }
}

/// What a machine is, for scripts whose original looks (jobs = 2 x CPUs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Logical CPUs.
    pub cpus: u32,
    /// Bytes of memory the page cache can use at most.
    pub cache_bytes: u64,
}

/// What a workload script sees. See the module for the rules that hold for every method.
#[expect(
    async_fn_in_trait,
    reason = "no Send wanted: the virtual world is one thread, the real one drives each future on its own"
)]
pub trait Machine: Sized + 'static {
    // ---- time and chance

    /// The time. Virtual: of the event being served. Real: the monotonic clock, shifted so that
    /// the run begins at [`Instant::START`].
    fn now(&self) -> Instant;
    /// This task's random stream, named by the run's seed and the task's path ("main/worker3"):
    /// the same numbers in both worlds, however tasks interleave.
    fn rng(&mut self) -> &mut Pcg64Mcg;
    /// Of the machine; constant over a run.
    fn facts(&self) -> Facts;
    /// Work of the CPU beyond system calls. Virtual: occupies a core for `d` of CPU time, sharing
    /// cores with the other tasks. Real: spins until the thread has used `d` of CPU time.
    async fn compute(&mut self, d: Nanos) -> Result<(), Errno>;
    /// Waits without using the CPU.
    async fn sleep(&mut self, d: Nanos) -> Result<(), Errno>;

    // ---- files

    /// Opens a file, or with DIRECTORY a directory. Errors as open(2). With DIRECT, offsets and
    /// lengths not aligned to the device's logical block are EINVAL; a script keeps to 4096.
    /// With APPEND, `write` at an offset is EINVAL.
    async fn open(&mut self, path: &str, how: OpenFlags) -> Result<Fd, Errno>;
    /// Closes it in all tasks. Dirty data stays in the cache.
    async fn close(&mut self, fd: Fd) -> Result<(), Errno>;
    /// pread(2): `len` bytes at `off`; fewer at the end of the file, 0 behind it.
    async fn read(&mut self, fd: Fd, off: u64, len: u32) -> Result<u32, Errno>;
    /// Reads a whole file as programs do that do not know how long it is: opens it, reads in calls
    /// of `chunk` from front to back until one gives nothing, closes it. Calls that gave something
    /// are operations "read". False: there is no file of that name. The virtual world makes the same
    /// calls at the same times, at less cost.
    async fn read_whole(&mut self, path: &str, chunk: u32) -> Outcome<bool> {
        read_whole(self, path, chunk).await
    }
    /// pwrite(2): extends the file if it ends beyond it. Both worlds write everything or fail.
    async fn write(&mut self, fd: Fd, off: u64, len: u32) -> Result<u32, Errno>;
    /// write(2) at the end of the file, wherever other tasks have moved it.
    async fn append(&mut self, fd: Fd, len: u32) -> Result<u32, Errno>;
    /// fsync(2): data and metadata, and the device's cache. Of a directory: its entries.
    async fn fsync(&mut self, fd: Fd) -> Result<(), Errno>;
    /// fdatasync(2): data, and metadata only if needed to read it back.
    async fn fdatasync(&mut self, fd: Fd) -> Result<(), Errno>;
    /// sync_file_range(2).
    async fn sync_range(&mut self, fd: Fd, off: u64, len: u64, how: SyncRange)
    -> Result<(), Errno>;
    /// sync(2), limited to the file system of the run's directory (syncfs(2)).
    async fn syncfs(&mut self) -> Result<(), Errno>;
    /// ftruncate(2): longer or shorter.
    async fn truncate(&mut self, fd: Fd, len: u64) -> Result<(), Errno>;
    /// fallocate(2), mode 0: blocks are there, unwritten, and the file is at least that long.
    async fn fallocate(&mut self, fd: Fd, off: u64, len: u64) -> Result<(), Errno>;
    /// posix_fadvise(2) on a range; length 0 means to the end.
    async fn fadvise(&mut self, fd: Fd, off: u64, len: u64, advice: Advice) -> Result<(), Errno>;
    /// rename(2); an existing file of the new name is replaced.
    async fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno>;
    /// unlink(2).
    async fn unlink(&mut self, path: &str) -> Result<(), Errno>;
    /// mkdir(2).
    async fn mkdir(&mut self, path: &str) -> Result<(), Errno>;
    /// rmdir(2).
    async fn rmdir(&mut self, path: &str) -> Result<(), Errno>;
    /// All names in a directory but `.` and `..`, in the order the file system gives them.
    async fn readdir(&mut self, path: &str) -> Result<Vec<Entry>, Errno>;
    /// stat(2).
    async fn stat(&mut self, path: &str) -> Result<Stat, Errno>;
    /// fstat(2), of files and raw devices.
    async fn fstat(&mut self, fd: Fd) -> Result<Stat, Errno>;
    /// Makes the run's own files cold: their clean pages go, nothing is written and nothing is
    /// waited for, as with /proc/sys/vm/drop_caches. A script calls `syncfs` first. Virtual: drops
    /// all clean pages and metadata. Real: POSIX_FADV_DONTNEED on every file of the run but those
    /// that are open and were written since they were synced; the rest of the host's cache stays.
    async fn drop_caches(&mut self) -> Result<(), Errno>;
    /// Bytes of memory that the program keeps for itself until the run ends, as a database its
    /// buffers: so much less is there for the page cache. Virtual: taken from the machine's;
    /// ENOMEM if a sixteenth of it would not be left. Real: nothing is taken, since scripts know of
    /// their buffers only which pages are in them; the host's cache is what it is.
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
    /// Submits in order, in one call and under one plug. EAGAIN if they do not all fit; then
    /// none is submitted. May wait for requests of the block layer, as io_submit does.
    async fn aio_submit(&mut self, aio: Aio, what: &[AioRequest]) -> Result<(), Errno>;
    /// Waits until at least `min` completions are there (or none is outstanding) and appends all
    /// that are, in order of completion.
    async fn aio_reap(&mut self, aio: Aio, min: usize, out: &mut Vec<AioDone>)
    -> Result<(), Errno>;
    /// Waits for what is outstanding and ends the queue.
    async fn aio_close(&mut self, aio: Aio) -> Result<(), Errno>;

    // ---- the device below

    /// Opens the raw device (RDONLY and DIRECT count): `read`, `write`, `fsync` (a flush with
    /// it), `fadvise`, `fstat` and `aio` work on it; without DIRECT through its own page cache.
    /// ENODEV where there is none. Virtual: the modelled device. Real: a device or a file the user
    /// named for it; never one that was not named.
    async fn open_device(&mut self, how: OpenFlags) -> Result<Fd, Errno>;
    /// Discards a range of the raw device.
    async fn discard(&mut self, fd: Fd, off: u64, len: u64) -> Result<(), Errno>;

    // ---- tasks and waiting for each other

    /// Makes a cgroup with an I/O weight (1..=1000) under a parent. EOPNOTSUPP where the world has
    /// none (real: writing to the cgroup tree would change the host).
    async fn cgroup(&mut self, parent: CgroupId, weight: u32) -> Result<CgroupId, Errno>;
    /// Starts a task. `script` makes its future from its own machine; it runs at once, beside the
    /// starter. When the future returns, the process exits, and its io context with it.
    /// Virtual: one more future of the executor. Real: a thread, on which `script` is called (so
    /// it is Send, while the future is not).
    async fn spawn<F, Fut>(&mut self, how: How, script: F) -> Result<Join, Errno>
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = Outcome> + 'static;
    /// Waits for a task's end and gives its outcome, once.
    async fn join(&mut self, task: Join) -> Outcome;

    /// A new lock, free.
    fn lock(&mut self) -> Lock;
    /// Waits until the lock is free and takes it; virtual: in order of asking.
    async fn acquire(&mut self, lock: Lock) -> Result<(), Errno>;
    /// Frees a lock this task holds.
    fn release(&mut self, lock: Lock);
    /// A new barrier for `tasks` tasks (at least 1); it can be used again and again.
    fn barrier(&mut self, tasks: u32) -> Barrier;
    /// Waits until all have come.
    async fn arrive(&mut self, barrier: Barrier) -> Result<(), Errno>;
    /// A new channel that holds at most `room` numbers (at least 1).
    fn channel(&mut self, room: u32) -> Channel;
    /// Waits for room, then puts a number in. EBADF if the channel is ended.
    async fn send(&mut self, channel: Channel, value: u64) -> Result<(), Errno>;
    /// Waits for a number and takes it; `None` when the channel is ended and empty.
    async fn recv(&mut self, channel: Channel) -> Result<Option<u64>, Errno>;
    /// Ends a channel: receivers get what is in it, then `None`.
    fn end_channel(&mut self, channel: Channel);

    // ---- measures

    /// Hands a message to the run's measures, in this task's name.
    fn note(&mut self, note: Note);
    /// The file system vanishes with the run: the script need not remove its files.
    fn disposable(&self) -> bool {
        false
    }
    /// Marks this instant.
    fn mark(&mut self, mark: Mark) {
        let now = self.now();
        self.note(Note::Mark(now, mark));
    }
    /// An operation begins.
    fn op_begin(&self, kind: &'static str) -> Running {
        Running {
            kind,
            since: self.now(),
        }
    }
    /// It ended, having moved `bytes`: its latency is counted.
    fn op_end(&mut self, op: Running, bytes: u64) {
        let end = self.now();
        self.note(Note::Op {
            kind: op.kind,
            start: op.since,
            end,
            bytes,
        });
    }
    /// The metric of the original (the first of a run) or a further one.
    fn metric(&mut self, name: &'static str, unit: &'static str, value: f64, higher: bool) {
        self.metric_of(Cow::Borrowed(name), unit, value, higher);
    }
    /// The principal metric counts operations of this kind, or is their mean.
    fn counts(&mut self, kind: &'static str) {
        self.note(Note::Counts(kind));
    }
    /// A metric whose name is made in the run, as that of a job file's section.
    fn metric_of(&mut self, name: Cow<'static, str>, unit: &'static str, value: f64, higher: bool) {
        self.note(Note::Metric {
            name,
            unit,
            value,
            higher_is_better: higher,
        });
    }
}
