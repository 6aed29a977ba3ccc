//! Mounting and unmounting, by the system calls themselves.
//!
//! Not by `fuser` (0.18), which speaks the protocol: its session unmounts by path once more when
//! somebody else has unmounted it, whatever is mounted there by then.

use crate::error::ServeError;
use crate::fs::DiskFs;
use crate::stale::FS_TYPE;
use fuser::{Config, Session, SessionACL};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Mounts a file system at `dir`, and agrees with the kernel on what both can.
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
    // Only the owner may enter; a loop device's worker does not enter, it has the file.
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

/// Unmounts; `detach`: at once, users keep what they have.
pub fn unmount(dir: &Path, detach: bool) -> bool {
    let flags = match detach {
        true => UnmountFlags::DETACH,
        false => UnmountFlags::empty(),
    };
    rustix::mount::unmount(dir, flags).is_ok()
}
