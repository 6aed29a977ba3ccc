//! The parts of the system-call interface that programs, the modelled kernel and a real host share:
//! error numbers, open flags, advice, file attributes.

use crate::time::Nanos;
use std::fmt;

/// An error number of Linux (`errno(3)`, generic numbering). It can be any number that a host
/// returns. The common numbers have names.
///
/// The number has the same size as the normal result of a call, so that both use the same register.
/// With a smaller type, each result would go through memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub i64);

macro_rules! errnos {
    ($($(#[$m:meta])* $name:ident = $n:literal, $text:literal;)*) => {
        impl Errno {
            $($(#[$m])* pub const $name: Errno = Errno($n);)*
            /// Returns the symbolic name, if the number has one in this list.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($n => Some(stringify!($name)),)*
                    _ => None,
                }
            }
            /// Returns the error in words, for messages.
            pub const fn text(self) -> &'static str {
                match self.0 {
                    $($n => $text,)*
                    _ => "unknown error of the host",
                }
            }
        }
    };
}

errnos! {
    /// Not permitted.
    EPERM = 1, "operation not permitted";
    /// No such file or directory.
    ENOENT = 2, "no such file or directory";
    /// Interrupted.
    EINTR = 4, "interrupted";
    /// The device failed.
    EIO = 5, "input/output error";
    /// Not an open file.
    EBADF = 9, "bad file descriptor";
    /// Nothing available yet.
    EAGAIN = 11, "try again";
    /// No memory.
    ENOMEM = 12, "out of memory";
    /// Access denied.
    EACCES = 13, "permission denied";
    /// Busy.
    EBUSY = 16, "device or resource busy";
    /// Already exists.
    EEXIST = 17, "file exists";
    /// No such device.
    ENODEV = 19, "no such device";
    /// A part of the path is not a directory.
    ENOTDIR = 20, "not a directory";
    /// It is a directory.
    EISDIR = 21, "is a directory";
    /// Invalid argument; also unaligned direct I/O.
    EINVAL = 22, "invalid argument";
    /// Too many open files.
    EMFILE = 24, "too many open files";
    /// Too large for the file system.
    EFBIG = 27, "file too large";
    /// The file system is full.
    ENOSPC = 28, "no space left on device";
    /// Read-only file system.
    EROFS = 30, "read-only file system";
    /// Name too long.
    ENAMETOOLONG = 36, "file name too long";
    /// The directory is not empty.
    ENOTEMPTY = 39, "directory not empty";
    /// Not supported here.
    EOPNOTSUPP = 95, "operation not supported";
    /// The run was stopped.
    ECANCELED = 125, "stopped";
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(n) => f.write_str(n),
            None => write!(f, "errno {}", self.0),
        }
    }
}
impl Errno {
    /// Returns the number in the type of the host's own functions.
    pub const fn host(self) -> i32 {
        self.0 as i32
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({self:?})", self.text())
    }
}
impl std::error::Error for Errno {}

bitflags::bitflags! {
    /// Flags with which a file is opened (`open(2)`). A file can be read and written unless
    /// `RDONLY` is set.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct OpenFlags: u16 {
        /// Reads and writes bypass the page cache (O_DIRECT).
        const DIRECT = 1;
        /// Each write includes an fsync (O_SYNC).
        const SYNC = 1 << 1;
        /// Each write includes an fdatasync (O_DSYNC).
        const DSYNC = 1 << 2;
        /// The file is created if it does not exist (O_CREAT).
        const CREATE = 1 << 3;
        /// With `CREATE`: opening fails if the file exists (O_EXCL).
        const EXCL = 1 << 4;
        /// The file is truncated to length 0 (O_TRUNC).
        const TRUNC = 1 << 5;
        /// Writes append to the file (O_APPEND).
        const APPEND = 1 << 6;
        /// The file is opened for reading only, because the device or file must not be written
        /// (O_RDONLY).
        const RDONLY = 1 << 7;
        /// The file is a directory, opened for an `fsync` of its entries (O_DIRECTORY).
        const DIRECTORY = 1 << 8;
    }
}

bitflags::bitflags! {
    /// Steps of `sync_file_range(2)`, in this order.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct SyncRange: u8 {
        /// Wait for writes that have already started.
        const WAIT_BEFORE = 1;
        /// Start to write dirty pages.
        const WRITE = 1 << 1;
        /// Wait for these writes.
        const WAIT_AFTER = 1 << 2;
    }
}

/// Hints of `posix_fadvise(2)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Advice {
    /// The default read-ahead.
    Normal,
    /// No read-ahead.
    Random,
    /// A read-ahead of twice the default size.
    Sequential,
    /// Start to read the range.
    WillNeed,
    /// Start to write the dirty pages of the range, and drop its clean pages.
    DontNeed,
}

/// An access to a memory mapping.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// A load from memory.
    Read,
    /// A store to memory.
    Write,
}

/// File attributes from `stat(2)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stat {
    /// Length in bytes.
    pub len: u64,
    /// Allocated space in bytes.
    pub allocated: u64,
    /// True for a directory.
    pub dir: bool,
    /// Inode number.
    pub ino: u64,
    /// Time of the last change of the contents, since the run began.
    pub mtime: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_is_printed_with_text_and_symbol() {
        assert_eq!(
            Errno::ENOSPC.to_string(),
            "no space left on device (ENOSPC)"
        );
        assert_eq!(
            Errno(123).to_string(),
            "unknown error of the host (errno 123)"
        );
        assert_eq!(Errno::EINVAL.0, 22);
    }
}
