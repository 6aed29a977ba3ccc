//! What a program can ask of the modelled kernel: one blocking step per task at a time.

use seekwell_core::{
    Access, Advice, CgroupId, Errno, IoPrio, Nanos, OpenFlags, Policy, Stat, SyncRange, TaskId,
};

/// An open file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fd(pub u32);

impl Fd {
    /// The block device through its page cache; always open.
    pub const DEVICE: Fd = Fd(super::files::DEVICE_FD);
    /// The block device past its page cache; always open.
    pub const DEVICE_DIRECT: Fd = Fd(super::files::DEVICE_DIRECT_FD);
}

/// A mapping of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MapId(pub u32);

/// An asynchronous I/O context.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AioId(pub u32);

/// What a call returns: a number (bytes, a descriptor, a count: see [`Call`]) or an error.
pub type Ret = Result<u64, Errno>;

/// A step of a program. Offsets and lengths are bytes; paths are absolute (`/dir/file`).
///
/// The tag is a word: copies of what follows a narrower one overlap, and wait for each other.
#[derive(Clone, Debug, PartialEq)]
#[repr(u64)]
pub enum Call {
    /// Opens a file; returns the descriptor ([`Fd`]).
    Open {
        /// Which.
        path: Box<str>,
        /// How.
        flags: OpenFlags,
    },
    /// Closes it.
    Close {
        /// Descriptor.
        fd: Fd,
    },
    /// Reads; returns bytes read (0 at the end of the file).
    Read {
        /// Descriptor.
        fd: Fd,
        /// Where.
        off: u64,
        /// How much.
        len: u64,
    },
    /// Writes; returns bytes written.
    Write {
        /// Descriptor.
        fd: Fd,
        /// Where.
        off: u64,
        /// How much.
        len: u64,
    },
    /// Writes at the end; returns bytes written.
    Append {
        /// Descriptor.
        fd: Fd,
        /// How much.
        len: u64,
    },
    /// Data and metadata to the medium.
    Fsync {
        /// Descriptor.
        fd: Fd,
    },
    /// Data, and metadata only if the data cannot be found without.
    Fdatasync {
        /// Descriptor.
        fd: Fd,
    },
    /// sync_file_range: writes and waits as told, no metadata, no flush.
    SyncRange {
        /// Descriptor.
        fd: Fd,
        /// Where.
        off: u64,
        /// How much; 0 for all behind `off`.
        len: u64,
        /// Steps.
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
        /// Where.
        off: u64,
        /// How much.
        len: u64,
    },
    /// A hint.
    Fadvise {
        /// Descriptor.
        fd: Fd,
        /// Where.
        off: u64,
        /// How much; 0 for all behind `off`.
        len: u64,
        /// Which.
        advice: Advice,
    },
    /// Renames, over an existing file too.
    Rename {
        /// Old name.
        from: Box<str>,
        /// New name.
        to: Box<str>,
    },
    /// Removes a name; the file goes with its last descriptor.
    Unlink {
        /// Which.
        path: Box<str>,
    },
    /// Makes a directory.
    Mkdir {
        /// Which.
        path: Box<str>,
    },
    /// Removes an empty directory.
    Rmdir {
        /// Which.
        path: Box<str>,
    },
    /// Lists a directory; returns the number of names, which [`Outcome::names`] holds.
    Readdir {
        /// Which.
        path: Box<str>,
    },
    /// Facts of a file; returns its length, [`Outcome::stat`] holds the rest.
    Stat {
        /// Which.
        path: Box<str>,
    },
    /// Facts of an open file, as [`Call::Stat`].
    Fstat {
        /// Descriptor.
        fd: Fd,
    },
    /// fsync of a directory.
    FsyncDir {
        /// Which.
        path: Box<str>,
    },
    /// echo 3 > drop_caches: clean pages go.
    DropCaches,
    /// A program keeps memory for itself: the page cache has so much less from now on.
    Hold {
        /// How much.
        bytes: u64,
    },
    /// Maps a file; returns the [`MapId`].
    Map {
        /// Descriptor.
        fd: Fd,
        /// Where.
        off: u64,
        /// How much.
        len: u64,
    },
    /// Ends a mapping.
    Unmap {
        /// Which.
        map: MapId,
    },
    /// Loads or stores over a range of a mapping (offsets from its start): faults as needed.
    Touch {
        /// Which.
        map: MapId,
        /// Where.
        off: u64,
        /// How much.
        len: u64,
        /// Load or store.
        access: Access,
    },
    /// Writes a range of a mapping back and waits (MS_SYNC).
    Msync {
        /// Which.
        map: MapId,
        /// Where.
        off: u64,
        /// How much.
        len: u64,
    },
    /// An AIO context; returns the [`AioId`].
    AioNew {
        /// Operations at once.
        depth: u32,
    },
    /// Hands an operation over; EAGAIN if `depth` are under way. A buffered operation blocks here
    /// (as io_submit does), a direct one does not.
    AioSubmit {
        /// Context.
        aio: AioId,
        /// Descriptor.
        fd: Fd,
        /// Write or read.
        write: bool,
        /// Where.
        off: u64,
        /// How much.
        len: u64,
        /// Comes back with the completion.
        tag: u64,
    },
    /// Waits for the next completion; returns its tag, [`Outcome::aio`] holds its result.
    /// EINVAL if nothing is under way.
    AioReap {
        /// Context.
        aio: AioId,
    },
    /// Reads the block device.
    RawRead {
        /// Where.
        off: u64,
        /// How much.
        len: u64,
        /// Past the cache.
        direct: bool,
    },
    /// Writes the block device.
    RawWrite {
        /// Where.
        off: u64,
        /// How much.
        len: u64,
        /// Past the cache.
        direct: bool,
    },
    /// Writes what is dirty of the block device and empties the drive's cache.
    RawFlush,
    /// Discards a range of the block device.
    RawDiscard {
        /// Where.
        off: u64,
        /// How much.
        len: u64,
    },
    /// Computes: occupies a core for so long.
    Compute(Nanos),
    /// Sleeps.
    Sleep(Nanos),
}

/// What a call gave beside its number; valid until the task's next call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Names of a directory, sorted.
    pub names: Vec<Box<str>>,
    /// Is it a directory itself, for each of `names`?
    pub dirs: Vec<bool>,
    /// Facts of a file.
    pub stat: Stat,
    /// Tag and result of the AIO operation reaped.
    pub aio: Option<(u64, Ret)>,
}

/// How a task starts.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskConfig {
    /// For reports.
    pub name: String,
    /// As set by ioprio_set; [`IoPrio::NONE`] if never.
    pub ioprio: IoPrio,
    /// -20..=19.
    pub nice: i8,
    /// CPU policy.
    pub policy: Policy,
    /// Cgroup that pays.
    pub cgroup: CgroupId,
    /// Shares the io context of this task (CLONE_IO).
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
