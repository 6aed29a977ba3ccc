//! Open files, and paths that must be below the directory of the run.

use rustix::fs::{Mode, OFlags};
use seekwell_core::{Errno, OpenFlags};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// An open file, directory or device.
#[derive(Debug)]
pub struct OpenFile {
    fd: OwnedFd,
    /// Offsets and lengths must be multiples of this number of bytes. It is 1 without O_DIRECT.
    pub align: u32,
    /// Whether the file was opened with O_APPEND.
    pub append: bool,
    /// Whether this is a block device, or a file that is used instead of a block device.
    pub raw: bool,
    /// Lock for appends to a file that was not opened with O_APPEND. The end of the file must not
    /// move between reading its position and writing there. Only appends take this lock.
    pub end: Mutex<()>,
    /// Whether the file was written since its last sync.
    unsynced: AtomicBool,
}

/// Device and number of an inode.
pub type Inode = (u64, u64);

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
impl AsRawFd for OpenFile {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl OpenFile {
    /// Returns EINVAL for an unaligned access, as O_DIRECT does. The result is the same on every
    /// file system.
    pub fn aligned(&self, off: u64, len: u32) -> Result<(), Errno> {
        let a = u64::from(self.align);
        if off.is_multiple_of(a) && u64::from(len).is_multiple_of(a) {
            Ok(())
        } else {
            Err(Errno::EINVAL)
        }
    }
    /// Marks the file as dirty. Call it after each write.
    pub fn wrote(&self) {
        self.unsynced.store(true, Ordering::Relaxed);
    }
    /// Marks the file as synced. Call it before each sync that includes the file.
    pub fn syncing(&self) {
        self.unsynced.store(false, Ordering::Relaxed);
    }
    /// Returns the inode if the file was written since its last sync.
    pub fn unsynced(&self) -> Option<Inode> {
        if !self.unsynced.load(Ordering::Relaxed) {
            return None;
        }
        let s = rustix::fs::fstat(self).ok()?;
        Some((s.st_dev, s.st_ino))
    }
}

/// Checks that a path stays below the directory of the run: it must be relative, not empty, and
/// without `..`. Otherwise returns an error.
pub fn checked(path: &str) -> Result<&str, Errno> {
    let bad = path.is_empty()
        || path.contains('\0')
        || path.split('/').any(|p| p.is_empty() || p == "..");
    if bad { Err(Errno::EINVAL) } else { Ok(path) }
}

/// Opens a path below `dir`. Symbolic links are not followed. A run never creates links.
pub fn open(dir: BorrowedFd<'_>, path: &str, how: OpenFlags) -> Result<OpenFile, Errno> {
    let flags = flags(how) | OFlags::NOFOLLOW;
    let fd =
        retry(|| rustix::fs::openat(dir, checked(path)?, flags, Mode::from(0o644)).map_err(raw))?;
    wrap(fd, how, false)
}

/// Opens the device that the user named. Returns EBUSY if it is a block device that is mounted or
/// opened exclusively.
pub fn open_raw(path: &std::path::Path, how: OpenFlags) -> Result<OpenFile, Errno> {
    let how = how & (OpenFlags::RDONLY | OpenFlags::DIRECT);
    let block = std::fs::metadata(path).map_err(crate::errno)?;
    let block = std::os::unix::fs::FileTypeExt::is_block_device(&block.file_type());
    let mut flags = flags(how);
    if block && !how.contains(OpenFlags::RDONLY) {
        flags |= OFlags::EXCL;
    }
    let fd = retry(|| rustix::fs::open(path, flags, Mode::empty()).map_err(raw))?;
    if !how.contains(OpenFlags::DIRECT) {
        // The pages of the device are removed from the page cache, as hdparm does (BLKFLSBUF).
        // Otherwise a second run would read from memory.
        rustix::fs::fdatasync(&fd).map_err(raw)?;
        drop_clean(&fd)?;
    }
    wrap(fd, how, true)
}

fn wrap(fd: OwnedFd, how: OpenFlags, raw: bool) -> Result<OpenFile, Errno> {
    let align = if how.contains(OpenFlags::DIRECT) {
        direct_align(&fd)
    } else {
        1
    };
    Ok(OpenFile {
        fd,
        align,
        append: how.contains(OpenFlags::APPEND),
        raw,
        end: Mutex::new(()),
        unsynced: AtomicBool::new(false),
    })
}

/// Returns the alignment for O_DIRECT, bytes. It comes from statx(2) since Linux 6.1, else it is
/// 512.
fn direct_align(fd: &OwnedFd) -> u32 {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let asked = StatxFlags::DIOALIGN;
    match statx(fd, "", AtFlags::EMPTY_PATH, asked) {
        Ok(x) if x.stx_mask & asked.bits() != 0 && x.stx_dio_offset_align > 0 => {
            x.stx_dio_offset_align.max(512)
        }
        _ => 512,
    }
}

fn flags(how: OpenFlags) -> OFlags {
    let read_only = OpenFlags::RDONLY | OpenFlags::DIRECTORY;
    let mut f = if how.intersects(read_only) {
        OFlags::CLOEXEC | OFlags::RDONLY
    } else {
        OFlags::CLOEXEC | OFlags::RDWR
    };
    for (ours, theirs) in [
        (OpenFlags::DIRECT, OFlags::DIRECT),
        (OpenFlags::SYNC, OFlags::SYNC),
        (OpenFlags::DSYNC, OFlags::DSYNC),
        (OpenFlags::CREATE, OFlags::CREATE),
        (OpenFlags::EXCL, OFlags::EXCL),
        (OpenFlags::TRUNC, OFlags::TRUNC),
        (OpenFlags::APPEND, OFlags::APPEND),
        (OpenFlags::DIRECTORY, OFlags::DIRECTORY),
    ] {
        if how.contains(ours) {
            f |= theirs;
        }
    }
    f
}

/// Drops a file's clean pages from the page cache. For dirty pages the kernel starts writeback and
/// does not wait for it.
pub fn drop_clean(file: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).map_err(raw)
}

/// Repeats a call that returned EINTR. The signal handlers of Seekwell only set a flag.
pub fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            r => return r,
        }
    }
}

/// Converts the error number of a rustix error.
pub fn raw(e: rustix::io::Errno) -> Errno {
    Errno(e.raw_os_error().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_run_directory_are_rejected() {
        for bad in ["", "/etc", "a/../b", "..", "a//b", "a/", "a\0b"] {
            assert_eq!(checked(bad), Err(Errno::EINVAL), "{bad:?}");
        }
        for good in ["a", "a/b.c", "a/..b", "."] {
            assert_eq!(checked(good), Ok(good));
        }
    }

    #[test]
    fn open_flags_behave_like_the_kernels() {
        let t = crate::place::Scratch::new(&std::env::temp_dir(), "files").expect("made");
        let dir = rustix::fs::open(t.path(), OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty())
            .expect("opened");
        let try_open = |name, how| open(dir.as_fd(), name, how).err();
        assert_eq!(try_open("c", OpenFlags::CREATE | OpenFlags::TRUNC), None);
        let again = try_open("c", OpenFlags::CREATE | OpenFlags::EXCL);
        assert_eq!(again, Some(Errno::EEXIST));
        assert_eq!(try_open("d", OpenFlags::empty()), Some(Errno::ENOENT));
    }

    #[test]
    fn file_is_unsynced_from_a_write_to_the_next_sync() {
        let t = crate::place::Scratch::new(&std::env::temp_dir(), "unsynced").expect("made");
        let dir = rustix::fs::open(t.path(), OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty())
            .expect("opened");
        let file = open(dir.as_fd(), "a", OpenFlags::CREATE).expect("opened");
        assert_eq!(file.unsynced(), None);
        file.wrote();
        let inode = rustix::fs::fstat(&file).map(|s| (s.st_dev, s.st_ino));
        assert_eq!(file.unsynced(), inode.ok());
        file.syncing();
        assert_eq!(file.unsynced(), None);
        file.wrote();
        assert_eq!(file.unsynced(), inode.ok());
    }
}
