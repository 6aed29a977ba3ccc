//! The table of open files, and paths that cannot leave the run's directory.

use rustix::fs::{Mode, OFlags};
use seekwell_core::{Errno, OpenFlags};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// An open file, directory or device.
#[derive(Debug)]
pub struct OpenFile {
    fd: OwnedFd,
    /// Offsets and lengths must be multiples of this: 1 without O_DIRECT.
    pub align: u32,
    /// O_APPEND.
    pub append: bool,
    /// A block device or a file that stands for one.
    pub raw: bool,
    /// write(2) for `append` where the file was not opened with O_APPEND: one at a time.
    pub end: Mutex<()>,
}

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
    /// EINVAL as O_DIRECT gives it, the same on every file system.
    pub fn aligned(&self, off: u64, len: u32) -> Result<(), Errno> {
        let a = u64::from(self.align);
        if off.is_multiple_of(a) && u64::from(len).is_multiple_of(a) {
            Ok(())
        } else {
            Err(Errno::EINVAL)
        }
    }
}

/// Open files by number.
#[derive(Debug, Default)]
pub struct Files(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    all: Vec<Option<Arc<OpenFile>>>,
    free: Vec<u32>,
}

impl Files {
    /// The file of a number.
    pub fn get(&self, fd: u32) -> Result<Arc<OpenFile>, Errno> {
        let t = self.0.read().unwrap_or_else(PoisonError::into_inner);
        t.all
            .get(fd as usize)
            .cloned()
            .flatten()
            .ok_or(Errno::EBADF)
    }
    /// Gives a file a number.
    pub fn insert(&self, file: OpenFile) -> u32 {
        let mut t = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let file = Some(Arc::new(file));
        match t.free.pop() {
            Some(i) => {
                t.all[i as usize] = file;
                i
            }
            None => {
                t.all.push(file);
                (t.all.len() - 1) as u32
            }
        }
    }
    /// Takes the number away; the file closes when nobody uses it any more.
    pub fn remove(&self, fd: u32) -> Result<(), Errno> {
        let mut t = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let slot = t.all.get_mut(fd as usize).ok_or(Errno::EBADF)?;
        slot.take().ok_or(Errno::EBADF)?;
        t.free.push(fd);
        Ok(())
    }
}

/// A path that stays below the run's directory: relative, not empty, without `..`.
pub fn checked(path: &str) -> Result<&str, Errno> {
    let bad = path.is_empty()
        || path.contains('\0')
        || path.split('/').any(|p| p.is_empty() || p == "..");
    if bad { Err(Errno::EINVAL) } else { Ok(path) }
}

/// Opens a path below `dir`. Symbolic links, of which a run makes none, are not followed.
pub fn open(dir: BorrowedFd<'_>, path: &str, how: OpenFlags) -> Result<OpenFile, Errno> {
    let flags = flags(how) | OFlags::NOFOLLOW;
    let fd =
        retry(|| rustix::fs::openat(dir, checked(path)?, flags, Mode::from(0o644)).map_err(raw))?;
    wrap(fd, how, false)
}

/// Opens the device the user named. A block device that is mounted or otherwise held is EBUSY.
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
        // Cold, as hdparm makes it (BLKFLSBUF): else the second run measures memory.
        crate::sys::drop_pages(&fd)?;
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
    })
}

/// Logical block of O_DIRECT: what statx tells (6.1 and later), else 512.
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

/// Again after EINTR: our own signals only set a flag.
pub fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            r => return r,
        }
    }
}

/// The number of a rustix error.
pub fn raw(e: rustix::io::Errno) -> Errno {
    Errno(e.raw_os_error().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for bad in ["", "/etc", "a/../b", "..", "a//b", "a/", "a\0b"] {
            assert_eq!(checked(bad), Err(Errno::EINVAL), "{bad:?}");
        }
        for good in ["a", "a/b.c", "a/..b", "."] {
            assert_eq!(checked(good), Ok(good));
        }
    }

    #[test]
    fn numbers_are_given_back() {
        let t = crate::place::Scratch::new(&std::env::temp_dir(), "files").expect("made");
        let dir = rustix::fs::open(t.path(), OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty())
            .expect("opened");
        let files = Files::default();
        let new = |name| {
            files.insert(
                open(dir.as_fd(), name, OpenFlags::CREATE | OpenFlags::TRUNC).expect("opened"),
            )
        };
        let (a, b) = (new("a"), new("b"));
        assert!(files.get(a).is_ok() && a != b);
        assert_eq!(files.remove(a), Ok(()));
        assert_eq!(files.remove(a), Err(Errno::EBADF));
        assert_eq!(files.get(a).err(), Some(Errno::EBADF));
        assert_eq!(new("c"), a);
        let again = open(dir.as_fd(), "c", OpenFlags::CREATE | OpenFlags::EXCL);
        assert_eq!(again.err(), Some(Errno::EEXIST));
        assert_eq!(
            open(dir.as_fd(), "d", OpenFlags::empty()).err(),
            Some(Errno::ENOENT)
        );
    }
}
