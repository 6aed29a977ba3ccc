//! Flush and discard of the block device. Reads and writes of the device are in other modules: they
//! use the page cache, as those of files do, or bypass it.

use crate::executor::Actor;
use crate::machine::{K, Ret, Target, Want, after_submit, wait_group};
use seekwell_core::{Errno, Flags, Op, PAGE_SECTORS};

/// Flushes the drive's cache and waits for it.
pub(crate) async fn flush(k: &K, a: Actor) -> Result<(), Errno> {
    let group = {
        let mut w = k.w();
        let group = w.groups.alloc();
        w.stats.empty_flushes += 1;
        w.submit(
            a,
            Want {
                op: Op::Flush,
                flags: Flags::empty(),
                sector: 0,
                sectors: 0,
                target: Target::Plain,
                group,
                segment: PAGE_SECTORS,
            },
        );
        group
    };
    after_submit(k, a).await;
    wait_group(k, a, group).await
}

/// Discards a range of the device and waits for it.
pub(crate) async fn discard(k: &K, a: Actor, off: u64, len: u64) -> Ret {
    let end = k.w().sink.capacity().0 * 512;
    let aligned = off.is_multiple_of(512) && len.is_multiple_of(512);
    if !aligned || off.checked_add(len).is_none_or(|e| e > end) {
        return Err(Errno::EINVAL);
    }
    let group = k.w().groups.alloc();
    let (mut at, stop) = (off / 512, (off + len) / 512);
    while at < stop {
        {
            let mut w = k.w();
            let n = (stop - at).min(w.cfg.constants.discard_sectors);
            w.submit(
                a,
                Want {
                    op: Op::Discard,
                    flags: Flags::empty(),
                    sector: at,
                    sectors: n as u32,
                    target: Target::Plain,
                    group,
                    segment: PAGE_SECTORS,
                },
            );
            at += n;
        }
        after_submit(k, a).await;
    }
    wait_group(k, a, group).await?;
    Ok(len)
}
