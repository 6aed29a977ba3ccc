//! Mounts and unmounts the file system by system calls.
//!
//! The crate `fuser` (0.18) implements the protocol, but its own mount function is not used. The
//! session of `fuser` unmounts the path even if somebody else has already done this. It may then
//! unmount another file system.

use crate::error::ServeError;
use crate::fs::DiskFs;
use crate::stale::FS_TYPE;
use fuser::{Config, Session, SessionACL};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Mounts the file system at `dir` and negotiates its capabilities with the kernel.
pub fn mount(dir: &Path, owner: (u32, u32), fs: DiskFs) -> Result<Session<DiskFs>, ServeError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let fd = rustix::fs::open("/dev/fuse", flags, Mode::empty());
    let fd = fd.map_err(|e| ServeError::NoFuse {
        what: std::io::Error::from(e).to_string(),
    })?;
    let failed = |what: String| ServeError::Mount {
        path: dir.to_owned(),
        what,
    };
    // Only the owner has access. The worker of a loop device needs no access, because it uses the
    // open file.
    let options = format!(
        "fd={},rootmode=40000,user_id={},group_id={}",
        fd.as_raw_fd(),
        owner.0,
        owner.1
    );
    let options = CString::new(options).map_err(|e| failed(e.to_string()))?;
    let how = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::NOATIME;
    rustix::mount::mount("seekwell", dir, FS_TYPE, how, &*options)
        .map_err(|e| failed(std::io::Error::from(e).to_string()))?;
    Session::from_fd(fs, fd, SessionACL::Owner, Config::default()).map_err(|e| {
        unmount(dir, true);
        failed(e.to_string())
    })
}

/// Unmounts the file system at `dir`, and returns whether this succeeded. With `detach` the mount
/// disappears immediately, and open files stay usable.
pub fn unmount(dir: &Path, detach: bool) -> bool {
    let flags = match detach {
        true => UnmountFlags::DETACH,
        false => UnmountFlags::empty(),
    };
    rustix::mount::unmount(dir, flags).is_ok()
}
