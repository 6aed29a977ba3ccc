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

/// A step of a program. Offsets and lengths are in bytes. Paths are absolute (`/dir/file`).
///
/// The enum's tag has the width of a machine word. With a narrower tag, the CPU copies the fields
/// with overlapping loads and stores, which wait for each other.
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
    /// fsync: writes the data and the metadata of a file to the medium.
    Fsync {
        /// Descriptor.
        fd: Fd,
    },
    /// fdatasync: writes the data, and writes the metadata only if they are needed to find the
    /// data.
    Fdatasync {
        /// Descriptor.
        fd: Fd,
    },
    /// sync_file_range: does the writes and waits that `how` selects. Writes no metadata and sends
    /// no flush.
    SyncRange {
        /// Descriptor.
        fd: Fd,
        /// Offset.
        off: u64,
        /// Length; 0 for everything after `off`.
        len: u64,
        /// The steps to take.
        how: SyncRange,
    },
    /// Syncs the whole file system.
    Syncfs,
    /// Sets the length of a file.
    Truncate {
        /// Descriptor.
        fd: Fd,
        /// New length.
        len: u64,
    },
    /// Allocates space for a file. The file grows to `off + len`.
    Fallocate {
        /// Descriptor.
        fd: Fd,
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
    },
    /// Gives the kernel a hint about the accesses to a file.
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
    /// Renames a file. If the new name exists, its file is replaced.
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
    /// Returns the length of a file. [`Outcome::stat`] has its other attributes.
    Stat {
        /// Path.
        path: Box<str>,
    },
    /// Returns the attributes of an open file, like [`Call::Stat`].
    Fstat {
        /// Descriptor.
        fd: Fd,
    },
    /// Writes a directory to the medium (fsync).
    FsyncDir {
        /// Path.
        path: Box<str>,
    },
    /// Drops all clean pages (`echo 3 > drop_caches`).
    DropCaches,
    /// Allocates memory for the program itself. This makes the page cache smaller from then on.
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
    /// Loads from or stores to a range of a mapping. Offsets count from the start of the mapping.
    /// Missing pages cause page faults.
    Touch {
        /// Mapping.
        map: MapId,
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
        /// Whether the program loads or stores.
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
    /// Submits an operation. Fails with EAGAIN if `depth` operations are in progress. As in
    /// io_submit, a buffered operation blocks in this call, and a direct operation does not.
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
        /// Tag that is returned with the completion.
        tag: u64,
    },
    /// Waits for the next completion and returns its tag. [`Outcome::aio`] has its result. Fails
    /// with EINVAL if no operation is in progress.
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
        /// Whether the read bypasses the page cache.
        direct: bool,
    },
    /// Writes the block device.
    RawWrite {
        /// Offset.
        off: u64,
        /// Length.
        len: u64,
        /// Whether the write bypasses the page cache.
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
    /// Computes: occupies a core for the given time.
    Compute(Nanos),
    /// Sleeps for the given time.
    Sleep(Nanos),
}

/// Further results of a call; valid until the task's next call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Names of a directory, sorted.
    pub names: Vec<Box<str>>,
    /// For each of `names`, whether it is a directory.
    pub dirs: Vec<bool>,
    /// Attributes of a file.
    pub stat: Stat,
    /// Tag and result of the completed AIO operation.
    pub aio: Option<(u64, Ret)>,
}

/// The initial state of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskConfig {
    /// Name of the task in reports.
    pub name: String,
    /// I/O priority, as set by ioprio_set. [`IoPrio::NONE`] if it was never set.
    pub ioprio: IoPrio,
    /// Nice value, -20..=19.
    pub nice: i8,
    /// CPU scheduling policy.
    pub policy: Policy,
    /// The cgroup that is charged for the task's I/O.
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
