//! The calls that a program can make to the modelled kernel: one blocking call per task at a time.

use seekwell_core::{
    Access, Advice, CgroupId, Errno, IoPrio, Nanos, OpenFlags, Policy, Stat, SyncRange, TaskId,
};

/// An open file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fd(pub u32);

impl Fd {
    /// The block device through its page cache. It is always open.
    pub const DEVICE: Fd = Fd(super::files::DEVICE_FD);
    /// The block device without its page cache. It is always open.
    pub const DEVICE_DIRECT: Fd = Fd(super::files::DEVICE_DIRECT_FD);
}

/// A mapping of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MapId(pub u32);

/// An asynchronous I/O context.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AioId(pub u32);

/// The result of a call: a number (bytes, a descriptor, a count: see [`Call`]) or an error.
pub type Ret = Result<u64, Errno>;

/// A step of a program. Offsets and lengths are bytes; paths are absolute (`/dir/file`).
///
/// The tag has the width of a machine word. With a narrower tag, the copies of the fields overlap
/// and stall each other.
#[derive(Clone, Debug, PartialEq)]
#[repr(u64)]
pub enum Call {
    /// Opens a file; returns the descriptor ([`Fd`]).
    Open {
        /// Path.
        path: Box<str>,
        /// Mode and flags.
        flags: OpenFlags,
    },
    /// Closes a file.
    Close {
        /// Descriptor.
        fd: Fd,
    },
    /// Reads; returns bytes read (0 at the end of the file).
    Read {
        /// Descriptor.
        fd: Fd,
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
    },
    /// Writes; returns bytes written.
    Write {
        /// Descriptor.
        fd: Fd,
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
    },
    /// Writes at the end of the file; returns bytes written.
    Append {
        /// Descriptor.
        fd: Fd,
        /// Length.
        len: u64,
    },
    /// Writes data and metadata to the medium.
    Fsync {
        /// Descriptor.
        fd: Fd,
    },
    /// Writes the data, and the metadata only if the data cannot be found without them.
    Fdatasync {
        /// Descriptor.
        fd: Fd,
    },
    /// sync_file_range: writes and waits as `how` says. Writes no metadata and sends no flush.
    SyncRange {
        /// Descriptor.
        fd: Fd,
        /// Offset.
        off: u64,
        /// Length; 0 for everything after `off`.
        len: u64,
        /// Steps to take.
        how: SyncRange,
    },
    /// sync of the whole file system.
    Syncfs,
    /// Sets the length.
    Truncate {
        /// Descriptor.
        fd: Fd,
        /// New length.
        len: u64,
    },
    /// Allocates space; the file grows to `off + len`.
    Fallocate {
        /// Descriptor.
        fd: Fd,
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
    },
    /// Gives a hint about access to a file.
    Fadvise {
        /// Descriptor.
        fd: Fd,
        /// Offset.
        off: u64,
        /// Length; 0 for everything after `off`.
        len: u64,
        /// The hint.
        advice: Advice,
    },
    /// Renames a file, which may replace another.
    Rename {
        /// Old name.
        from: Box<str>,
        /// New name.
        to: Box<str>,
    },
    /// Removes a name. The file is removed with its last descriptor.
    Unlink {
        /// Path.
        path: Box<str>,
    },
    /// Makes a directory.
    Mkdir {
        /// Path.
        path: Box<str>,
    },
    /// Removes an empty directory.
    Rmdir {
        /// Path.
        path: Box<str>,
    },
    /// Lists a directory. Returns the number of names; [`Outcome::names`] has the names.
    Readdir {
        /// Path.
        path: Box<str>,
    },
    /// Facts of a file. Returns its length; [`Outcome::stat`] has the rest.
    Stat {
        /// Path.
        path: Box<str>,
    },
    /// Facts of an open file, as [`Call::Stat`].
    Fstat {
        /// Descriptor.
        fd: Fd,
    },
    /// fsync of a directory.
    FsyncDir {
        /// Path.
        path: Box<str>,
    },
    /// echo 3 > drop_caches: drops all clean pages.
    DropCaches,
    /// A program allocates memory for itself, which reduces the page cache from now on.
    Hold {
        /// Amount.
        bytes: u64,
    },
    /// Maps a file; returns the [`MapId`].
    Map {
        /// Descriptor.
        fd: Fd,
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
    },
    /// Ends a mapping.
    Unmap {
        /// Mapping.
        map: MapId,
    },
    /// Loads from or stores to a range of a mapping (offsets from its start), with page faults as
    /// needed.
    Touch {
        /// Mapping.
        map: MapId,
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
        /// Load or store.
        access: Access,
    },
    /// Writes a range of a mapping back and waits (MS_SYNC).
    Msync {
        /// Mapping.
        map: MapId,
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
    },
    /// Makes an AIO context; returns the [`AioId`].
    AioNew {
        /// Largest number of operations in progress.
        depth: u32,
    },
    /// Submits an operation; EAGAIN if `depth` are in progress. A buffered operation blocks in this
    /// call (as in io_submit), a direct one does not.
    AioSubmit {
        /// Context.
        aio: AioId,
        /// Descriptor.
        fd: Fd,
        /// Whether the operation writes.
        write: bool,
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
        /// Returned with the completion.
        tag: u64,
    },
    /// Waits for the next completion. Returns its tag; [`Outcome::aio`] has its result. EINVAL if
    /// no operation is in progress.
    AioReap {
        /// Context.
        aio: AioId,
    },
    /// Reads the block device.
    RawRead {
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
        /// Without the cache.
        direct: bool,
    },
    /// Writes the block device.
    RawWrite {
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
        /// Without the cache.
        direct: bool,
    },
    /// Writes the dirty pages of the block device and flushes the drive's cache.
    RawFlush,
    /// Discards a range of the block device.
    RawDiscard {
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
    },
    /// Computes: occupies a core for this time.
    Compute(Nanos),
    /// Sleeps.
    Sleep(Nanos),
}

/// Further results of a call; valid until the task's next call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Names of a directory, sorted.
    pub names: Vec<Box<str>>,
    /// For each of `names`, whether it is a directory.
    pub dirs: Vec<bool>,
    /// Facts of a file.
    pub stat: Stat,
    /// Tag and result of the completed AIO operation.
    pub aio: Option<(u64, Ret)>,
}

/// The initial state of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskConfig {
    /// Name in reports.
    pub name: String,
    /// As set by ioprio_set; [`IoPrio::NONE`] if never.
    pub ioprio: IoPrio,
    /// Nice value, -20..=19.
    pub nice: i8,
    /// CPU policy.
    pub policy: Policy,
    /// The cgroup that is charged.
    pub cgroup: CgroupId,
    /// The task whose io context this task shares (CLONE_IO).
    pub share_io: Option<TaskId>,
}

impl Default for TaskConfig {
    fn default() -> Self {
        TaskConfig {
            name: String::new(),
            ioprio: IoPrio::NONE,
            nice: 0,
            policy: Policy::Normal,
            cgroup: CgroupId::ROOT,
            share_io: None,
        }
    }
}
