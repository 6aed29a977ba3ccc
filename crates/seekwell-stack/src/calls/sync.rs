//! fsync, fdatasync, sync_file_range, syncfs and sync.

use super::direct::page_of;
use super::raw;
use crate::config::Fs;
use crate::executor::Actor;
use crate::fs::BDEV;
use crate::journal::wait_commit;
use crate::machine::{K, lock};
use crate::memory::Find;
use crate::writeback::{
    Pass, have_all_written, wait_all_converted, wait_converted, wait_written, write_inode,
};
use seekwell_core::{Era, Errno, SyncRange};

/// Writes a file to the medium and waits (fsync). With `data_only`, changed file times alone cause
/// no commit (fdatasync).
pub(crate) async fn fsync(k: &K, a: Actor, ino: u32, data_only: bool) -> Result<(), Errno> {
    let locks = k.w().cfg.constants.fsync_locks != 0;
    if locks {
        lock(k, a, ino).await;
    }
    let r = sync_range_file(k, a, ino, 0, u32::MAX, !data_only).await;
    if locks {
        k.w().unlock(ino);
    }
    r
}

/// Writes pages `from..=to` of a file and waits, without holding the inode's lock. `times`: changed
/// file times cause a commit.
pub(crate) async fn sync_range_file(
    k: &K,
    a: Actor,
    ino: u32,
    from: u32,
    to: u32,
    times: bool,
) -> Result<(), Errno> {
    k.w().stats.fsyncs += 1;
    let ext3 = k.w().fs.kind == Fs::Ext3;
    // ext3 submits the data here, and the commit waits for the data.
    write_inode(k, a, ino, from, to, Pass::Sync, u64::MAX).await;
    if !ext3 {
        wait_written(k, a, ino, from, to).await;
    }
    wait_converted(k, a, ino).await;
    let (tid, committed, flushes, flushed_by_commit, dir) = {
        let w = k.w();
        let i = &w.fs.inodes[ino as usize];
        let own = if times { i.sync_tid } else { i.data_tid };
        // Counted on 6.18: fsync of a directory commits the running transaction even if the
        // directory did not change. SQLite with a persistent journal calls fsync this way in every
        // transaction.
        let held = w.journal.running.as_ref();
        let held = held.filter(|t| !t.blocks.is_empty() && i.dir.is_some() && !ext3);
        let tid = held.map_or(own, |t| t.tid.max(own));
        (
            tid,
            tid <= w.journal.committed,
            w.cfg.flushes(),
            w.journal.will_flush(tid),
            i.dir.is_some(),
        )
    };
    if !committed {
        wait_commit(k, a, tid).await;
    }
    if ext3 {
        wait_written(k, a, ino, from, to).await;
    }
    // A flush is sent here if no other flush covers these data. fsync of ext3 sends none, and a
    // directory has no data. Counted on 6.18: fsync of a directory whose change is already
    // committed sends nothing to the disk. SQLite calls fsync this way in every transaction.
    if flushes && !flushed_by_commit && !ext3 && !dir {
        k.w().mark(crate::stats::Mark::Flush);
        raw::flush(k, a).await?;
    }
    let failed = std::mem::take(&mut k.w().fs.inodes[ino as usize].failed);
    if failed { Err(Errno::EIO) } else { Ok(()) }
}

/// Writes the dirty pages of the device and flushes the drive's cache (fsync of the device).
pub(crate) async fn fsync_device(k: &K, a: Actor) -> Result<(), Errno> {
    write_inode(k, a, BDEV, 0, u32::MAX, Pass::Sync, u64::MAX).await;
    wait_written(k, a, BDEV, 0, u32::MAX).await;
    raw::flush(k, a).await?;
    let failed = std::mem::take(&mut k.w().fs.inodes[BDEV as usize].failed);
    if failed { Err(Errno::EIO) } else { Ok(()) }
}

/// Does the writes and waits that `how` selects (sync_file_range).
pub(crate) async fn sync_range(k: &K, a: Actor, ino: u32, off: u64, len: u64, how: SyncRange) {
    let from = page_of(off);
    let to = match len {
        0 => u32::MAX,
        _ => page_of(off.saturating_add(len - 1)),
    };
    if how.contains(SyncRange::WAIT_BEFORE) {
        wait_written(k, a, ino, from, to).await;
    }
    if how.contains(SyncRange::WRITE) {
        // Without a wait before it, the pass skips pages under writeback.
        let pass = if how.contains(SyncRange::WAIT_BEFORE | SyncRange::WAIT_AFTER) {
            Pass::Sync
        } else {
            Pass::Async
        };
        write_inode(k, a, ino, from, to, pass, u64::MAX).await;
    }
    if how.contains(SyncRange::WAIT_AFTER) {
        wait_written(k, a, ino, from, to).await;
    }
}

/// Writes the dirty pages of the device, in the context of the calling task.
async fn write_device(k: &K, a: Actor, wait: bool) {
    let pass = if wait { Pass::Sync } else { Pass::Async };
    write_inode(k, a, BDEV, 0, u32::MAX, pass, u64::MAX).await;
    if wait {
        wait_written(k, a, BDEV, 0, u32::MAX).await;
    }
}

/// Syncs the file system (syncfs(2)). It differs from sync(2) in the first pass, which waits for
/// nothing. That pass starts a commit and starts the writes of metadata to their home locations.
/// Data of that pass that reach the disk later belong to the next transaction. Counted on 6.18: a
/// syncfs of many files takes two commits.
pub(crate) async fn syncfs(k: &K, a: Actor) -> Result<(), Errno> {
    if k.w().cfg.era >= Era::K4_0 {
        have_all_written(k, a, false).await;
        let tid = k.w().journal.running_tid();
        if let Some(tid) = tid {
            k.w().request_commit(tid);
        }
        write_device(k, a, false).await;
    }
    sync_all(k, a).await
}

/// Syncs all data (sync(2)).
pub(crate) async fn sync_all(k: &K, a: Actor) -> Result<(), Errno> {
    let era = k.w().cfg.era;
    // The first pass does not wait.
    have_all_written(k, a, false).await;
    if era < Era::K4_0 {
        // Before 4.0, the first pass waited and started a commit.
        wait_all(k, a).await;
        let tid = k.w().journal.running_tid();
        if let Some(tid) = tid {
            k.w().request_commit(tid);
        }
        write_device(k, a, false).await;
    }
    have_all_written(k, a, true).await;
    // Wait also for data that other tasks submitted before this call.
    wait_all(k, a).await;
    wait_all_converted(k, a).await;
    let running = k.w().journal.running_tid();
    let tid = running.unwrap_or(k.w().journal.last_tid());
    let (pending, flushes) = {
        let w = k.w();
        (tid > w.journal.committed, w.cfg.flushes())
    };
    if pending {
        wait_commit(k, a, tid).await;
    } else if flushes && k.w().fs.kind == Fs::Ext4 {
        raw::flush(k, a).await?;
    }
    write_device(k, a, true).await;
    Ok(())
}

/// Waits for all pages that are under writeback at the start.
async fn wait_all(k: &K, a: Actor) {
    let busy: Vec<u32> = {
        let w = k.w();
        let has = |i: &u32| {
            let t = &w.fs.inodes[*i as usize].tree;
            t.wb > 0 && w.cache.next(t, 0, Find::Writeback).is_some()
        };
        (1..w.fs.inodes.len() as u32).filter(has).collect()
    };
    for ino in &busy {
        k.w().fs.inodes[*ino as usize].pins += 1;
    }
    for ino in busy {
        wait_written(k, a, ino, 0, u32::MAX).await;
        k.w().unpin_inode(ino);
    }
}
