//! The block device itself: direct reads and writes, flush, discard.

use crate::call::Ret;
use crate::io::{NIL, Target, Want, after_submit, wait_group};
use crate::rt::{Actor, K};
use seekwell_core::{Errno, Flags, Op};

/// Direct transfer of a range of the device, aligned to 512 bytes; waits for it.
pub(crate) async fn direct(k: &K, a: Actor, op: Op, off: u64, len: u64) -> Ret {
    if !off.is_multiple_of(512) || !len.is_multiple_of(512) {
        return Err(Errno::EINVAL);
    }
    let end = k.w().sink.capacity().0 * 512;
    if off >= end {
        return if op == Op::Read {
            Ok(0)
        } else {
            Err(Errno::ENOSPC)
        };
    }
    let len = len.min(end - off);
    if len == 0 {
        return Ok(0);
    }
    let flags = match op {
        Op::Write => Flags::SYNC,
        _ => Flags::empty(),
    };
    let g = k.w().groups.alloc();
    let mut at = off / 512;
    let stop = at + len / 512;
    k.w().plug(a, true);
    while at < stop {
        {
            let mut w = k.w();
            let n = (stop - at).min(1024) as u32;
            w.submit(
                a,
                Want {
                    op,
                    flags,
                    sector: at,
                    sectors: n,
                    target: Target::Plain,
                    group: g,
                },
            );
            let cost = w.cfg.cpu.bio_ns;
            w.spend(a, cost);
            at += u64::from(n);
        }
        after_submit(k, a).await;
    }
    k.w().plug(a, false);
    wait_group(k, a, g).await?;
    Ok(len)
}

/// Empties the drive's cache and waits for it.
pub(crate) async fn flush(k: &K, a: Actor) -> Result<(), Errno> {
    let g = {
        let mut w = k.w();
        let g = w.groups.alloc();
        w.submit(
            a,
            Want {
                op: Op::Flush,
                flags: Flags::empty(),
                sector: 0,
                sectors: 0,
                target: Target::Plain,
                group: g,
            },
        );
        debug_assert_ne!(g, NIL);
        g
    };
    after_submit(k, a).await;
    wait_group(k, a, g).await
}
