//! A common part of the scripts that read a raw device.

use crate::fail::{Context, Fail, Outcome};
use crate::machine::{Fd, Machine};
use seekwell_core::{Errno, OpenFlags};

/// Opens the raw device for reading. Returns its handle and its size in bytes.
pub async fn open<M: Machine>(m: &mut M, direct: bool) -> Outcome<(Fd, u64)> {
    let mut how = OpenFlags::RDONLY;
    if direct {
        how |= OpenFlags::DIRECT;
    }
    let fd = m.open_device(how).await.doing(|| "open the raw device")?;
    let size = m.fstat(fd).await.doing(|| "ask the raw device's size")?.len;
    if size < 1 << 20 {
        return Err(Fail {
            what: format!("the raw device has {size} bytes: at least 1 MiB is needed"),
            errno: Errno::EINVAL,
        });
    }
    Ok((fd, size))
}
