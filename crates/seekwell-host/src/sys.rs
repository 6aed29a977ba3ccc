//! System calls that have no safe wrapper. Each call has a reason why it is safe.

use crate::files::{OpenFile, raw, retry};
use seekwell_core::{Class, Errno, IoPrio, Nanos, Stat, SyncRange};
use std::os::fd::AsRawFd;

fn last() -> Errno {
    crate::errno(std::io::Error::last_os_error())
}

/// Calls sync_file_range(2).
pub fn sync_file_range(file: &OpenFile, off: u64, len: u64, how: SyncRange) -> Result<(), Errno> {
    let mut flags = 0;
    for (ours, theirs) in [
        (SyncRange::WAIT_BEFORE, libc::SYNC_FILE_RANGE_WAIT_BEFORE),
        (SyncRange::WRITE, libc::SYNC_FILE_RANGE_WRITE),
        (SyncRange::WAIT_AFTER, libc::SYNC_FILE_RANGE_WAIT_AFTER),
    ] {
        if how.contains(ours) {
            flags |= theirs;
        }
    }
    let offset = |v: u64| libc::off64_t::try_from(v).map_err(|_| Errno::EINVAL);
    let (off, len) = (offset(off)?, offset(len)?);
    retry(|| {
        #[expect(unsafe_code, reason = "no safe wrapper exists")]
        // SAFETY: the call gets numbers and a file descriptor, which `file` keeps open. It accesses
        // no memory.
        let r = unsafe { libc::sync_file_range(file.as_raw_fd(), off, len, flags) };
        if r == 0 { Ok(()) } else { Err(last()) }
    })
}

/// Calls ioprio_set(2) for the calling thread.
pub fn set_ioprio(prio: IoPrio) -> Result<(), Errno> {
    const WHO_PROCESS: libc::c_int = 1;
    let class = match prio.class {
        Class::None => 0,
        Class::Rt => 1,
        Class::Be => 2,
        Class::Idle => 3,
    };
    let value: libc::c_int = class << 13 | libc::c_int::from(prio.level);
    #[expect(unsafe_code, reason = "the C library has no function for it")]
    // SAFETY: the call gets three numbers; 0 means the calling thread.
    let r = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) };
    if r == 0 { Ok(()) } else { Err(last()) }
}

/// Sets the nice value of the calling thread.
pub fn set_nice(nice: i8) -> Result<(), Errno> {
    let me = rustix::thread::gettid();
    rustix::process::setpriority_process(Some(me), i32::from(nice)).map_err(raw)
}

/// Returns the size of a block device, bytes.
pub fn device_bytes(file: &OpenFile) -> Result<u64, Errno> {
    let end = rustix::fs::seek(file, rustix::fs::SeekFrom::End(0)).map_err(raw)?;
    Ok(end)
}

/// Converts the facts that scripts use. The modification time is left out, because the clock of a
/// file system is not the clock of the run.
pub fn stat(s: &rustix::fs::Stat) -> Result<Stat, Errno> {
    let number = |v: i64| u64::try_from(v).map_err(|_| Errno::EIO);
    Ok(Stat {
        len: number(s.st_size)?,
        allocated: number(s.st_blocks)? * 512,
        dir: rustix::fs::FileType::from_raw_mode(s.st_mode).is_dir(),
        ino: s.st_ino,
        mtime: Nanos::ZERO,
    })
}
