//! Writeback of dirty pages by the flusher thread of the device, or by pdflush.
//!
//! Every five seconds, the flusher writes data that have been dirty for 30 seconds. Above the
//! background threshold, it writes everything until dirty memory is below the threshold. It also
//! does the writes of sync. It visits each inode once, in the order in which the inodes became
//! dirty. If an inode has pages left after the visit, the inode goes to the end of the queue. The
//! flusher waits only for free requests, except in a sync.

use super::inode::{Pass, wait_written, write_inode};
use crate::executor::{Actor, Sleep, idle, sleep_until};
use crate::fs::WbList;
use crate::machine::{FLUSHER, K, PDFLUSH, Q, Work, World, wait};
use seekwell_core::{Instant, Nanos};

impl World {
    /// Returns two numbers of dirty pages: background writeback starts at the first, and dirtying
    /// tasks are throttled at the second.
    pub(crate) fn dirty_limits(&self) -> (u64, u64) {
        let c = &self.cfg.constants;
        let pages = self.cache.limit;
        let at = |bytes: Option<u64>, percent: u64| match bytes {
            Some(bytes) => bytes.div_ceil(4096),
            None => pages * percent / 100,
        };
        let limit = at(self.cfg.dirty_bytes, c.dirty_limit_percent);
        let background = at(self.cfg.dirty_background_bytes, c.dirty_background_percent);
        // As in the kernel, background writeback must start before tasks are throttled.
        if background >= limit {
            return (limit / 2, limit);
        }
        (background, limit)
    }
    pub(crate) fn over_background(&self) -> bool {
        self.cache.nr_dirty > self.dirty_limits().0
    }
    /// Wakes the flusher, because a task has dirtied many pages and background writeback may start.
    pub(crate) fn kick_flusher(&mut self) {
        if !self.flusher.kicked {
            self.flusher.kicked = true;
            let a = if self.cfg.constants.dirtier_writes != 0 {
                PDFLUSH
            } else {
                FLUSHER
            };
            self.rt.wake(a, Sleep::Idle);
        }
    }
    /// Fills the inode list of a pass: first the inodes left over from earlier passes, then those
    /// that have been dirty since before `before`.
    fn queue_io(&mut self, before: Instant) {
        while let Some(ino) = self.flusher.more.first() {
            self.move_inode(ino, WbList::Io);
        }
        while let Some(ino) = self.flusher.dirty.first() {
            if self.fs.inodes[ino as usize].dirtied_at > before {
                break;
            }
            self.move_inode(ino, WbList::Io);
        }
    }
    /// Returns the number of pages that a visit writes at most.
    fn visit_pages(&self) -> u64 {
        let c = &self.cfg.constants;
        let min = c.visit_pages.max(1);
        if c.visit_by_bandwidth == 0 {
            return min;
        }
        let pages = self.bw.bandwidth() / 2;
        match self.dirty_limits().1.checked_div(c.visit_limit_parts) {
            Some(part) => (pages.min(part) / min + 1) * min,
            None => (pages / min * min).max(min),
        }
    }
    /// Puts the inode on its next list after a visit. `whole`: the visit examined the whole inode.
    fn after_visit(&mut self, ino: u32, whole: bool) {
        let now = self.now();
        let i = &mut self.fs.inodes[ino as usize];
        if i.tree.dirty == 0 {
            return self.move_inode(ino, WbList::None);
        }
        if whole {
            // The inode became dirty again during the visit, so its age starts again.
            i.dirtied_at = now;
            return self.move_inode(ino, WbList::Dirty);
        }
        self.move_inode(ino, WbList::More);
    }
}

/// Visits an inode and writes about `limit` pages at most. Returns the number of pages written, and
/// true if the whole inode was examined.
async fn visit(k: &K, a: Actor, ino: u32, pass: Pass, limit: u64) -> (u64, bool) {
    k.w().fs.inodes[ino as usize].pins += 1;
    let start = if limit == u64::MAX {
        0
    } else {
        k.w().fs.inodes[ino as usize].wb_next
    };
    let (mut written, mut pos) = write_inode(k, a, ino, start, u32::MAX, pass, limit).await;
    let mut whole = written < limit;
    if whole && start > 0 {
        // Continue from the start of the file up to the page where the visit began.
        let (more, at) = write_inode(k, a, ino, 0, start - 1, pass, limit - written).await;
        written += more;
        pos = at;
        whole = written < limit;
    }
    if pass == Pass::Sync {
        wait_written(k, a, ino, 0, u32::MAX).await;
    }
    let mut w = k.w();
    let timid = pass == Pass::Timid && w.flusher.congested;
    w.fs.inodes[ino as usize].wb_next = if whole && !timid { 0 } else { pos };
    w.unpin_inode(ino);
    (written, whole && !timid)
}

/// The purpose of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    /// Write until dirty pages are below the background threshold.
    Background,
    /// Write inodes dirtied before a given time.
    Old,
    /// Write this number of pages. In 2.6, a throttled task does this.
    Amount(u64),
}

/// Makes a pass over dirty inodes. Returns the number of pages written.
async fn pass_over(k: &K, a: Actor, why: Why, before: Instant, pass: Pass) -> u64 {
    plug_batch(k, a, true);
    let n = pass_unplugged(k, a, why, before, pass).await;
    plug_batch(k, a, false);
    n
}

/// Opens or closes the plug that covers a whole batch of inodes (4.3 and later). The plug is
/// flushed when its task sleeps.
fn plug_batch(k: &K, a: Actor, open: bool) {
    let mut w = k.w();
    if w.cfg.constants.plug_batch != 0 {
        w.plug(a, open);
    }
}

async fn pass_unplugged(k: &K, a: Actor, why: Why, before: Instant, pass: Pass) -> u64 {
    let mut total = 0;
    loop {
        let begun = {
            let mut w = k.w();
            if why == Why::Background && !w.over_background() {
                return total;
            }
            if w.flusher.io.is_empty() {
                w.queue_io(before);
            }
            w.flusher.congested = false;
            w.now()
        };
        let mut progress = 0;
        loop {
            let (ino, limit) = {
                let mut w = k.w();
                let Some(ino) = w.flusher.io.first() else {
                    break;
                };
                let limit = match why {
                    Why::Amount(n) => (n - total).clamp(1, w.visit_pages()),
                    _ => w.visit_pages(),
                };
                // Keep the inode off the list of other passes during the visit.
                w.move_inode(ino, WbList::More);
                (ino, limit)
            };
            let (n, whole) = visit(k, a, ino, pass, limit).await;
            progress += n;
            total += n;
            let mut w = k.w();
            if w.fs.inodes[ino as usize].on == WbList::More {
                w.after_visit(ino, whole);
            }
            let enough = match why {
                Why::Background => !w.over_background(),
                Why::Amount(n) => total >= n,
                Why::Old => false,
            };
            if enough || w.flusher.congested {
                return total;
            }
            if w.now().since(begun).0 > w.cfg.constants.batch_ns {
                break;
            }
        }
        let w = k.w();
        if progress == 0 && w.flusher.io.is_empty() {
            return total;
        }
    }
}

/// Writes once everything that is dirty at the start. With `wait`, writes as sync does and waits
/// for each inode.
async fn sync_all(k: &K, a: Actor, wait: bool) {
    let mut all: Vec<(Instant, u32)> = {
        let w = k.w();
        let f = &w.flusher;
        let inodes = f.links.iter(&f.io).chain(f.links.iter(&f.more));
        let inodes = inodes.chain(f.links.iter(&f.dirty));
        inodes
            .map(|i| (w.fs.inodes[i as usize].dirtied_at, i))
            .collect()
    };
    all.sort();
    let pass = if wait { Pass::Sync } else { Pass::Requested };
    for (_, ino) in &all {
        k.w().fs.inodes[*ino as usize].pins += 1;
    }
    plug_batch(k, a, true);
    for (_, ino) in all {
        if ino != crate::fs::BDEV {
            visit(k, a, ino, pass, u64::MAX).await;
            let mut w = k.w();
            if w.fs.inodes[ino as usize].on != WbList::None {
                w.after_visit(ino, true);
            }
        }
        k.w().unpin_inode(ino);
    }
    plug_batch(k, a, false);
}

/// Runs the flusher thread of 3.x and later.
pub(crate) async fn thread(k: K) {
    let a = FLUSHER;
    let period = Nanos(k.w().cfg.constants.dirty_writeback_ns);
    let mut next = k.w().now() + period;
    loop {
        let work = k.w().flusher.work.pop_front();
        if let Some(work) = work {
            sync_all(&k, a, work.wait).await;
            let mut w = k.w();
            w.flusher.done = work.number;
            let w = &mut *w;
            w.rt.wake_all(&mut w.flusher.work_wait);
            continue;
        }
        let now = k.w().now();
        if now >= next {
            next = now + period;
            let old = Nanos(k.w().cfg.constants.dirty_expire_ns);
            pass_over(
                &k,
                a,
                Why::Old,
                Instant(now.0.saturating_sub(old.0)),
                Pass::Async,
            )
            .await;
        }
        k.w().flusher.kicked = false;
        if k.w().over_background() {
            let n = pass_over(&k, a, Why::Background, Instant::FAR, Pass::Async).await;
            if n > 0 {
                continue;
            }
        }
        let rests = k.w().flusher.work.is_empty();
        if rests {
            idle(&k, a, Some(next)).await;
        }
    }
}

/// Runs a thread of pdflush in 2.6: the periodic thread (`PDFLUSH_PERIODIC`) or the background
/// thread (`PDFLUSH`). Only one of the two works on a device at a time.
pub(crate) async fn pdflush(k: K, a: Actor) {
    let c = k.w().cfg.constants.clone();
    let periodic = a != PDFLUSH;
    let mut next = k.w().now() + Nanos(c.dirty_writeback_ns);
    loop {
        if periodic {
            sleep_until(&k, a, next).await;
            next = k.w().now() + Nanos(c.dirty_writeback_ns);
        } else {
            let asleep = !k.w().flusher.kicked;
            if asleep {
                idle(&k, a, None).await;
            }
            k.w().flusher.kicked = false;
        }
        if std::mem::replace(&mut k.w().flusher.busy, true) {
            continue;
        }
        loop {
            let (why, before) = if periodic {
                let now = k.w().now();
                (Why::Old, Instant(now.0.saturating_sub(c.dirty_expire_ns)))
            } else {
                (Why::Background, Instant::FAR)
            };
            let n = pass_over(&k, a, why, before, Pass::Timid).await;
            let congested = k.w().flusher.congested;
            if !congested && n == 0 || (!periodic && !k.w().over_background()) {
                break;
            }
            if congested {
                // As in congestion_wait, the pause is a tenth of a second.
                let at = k.w().now() + Nanos(c.pause_max_ns);
                sleep_until(&k, a, at).await;
            } else if periodic {
                break;
            }
        }
        k.w().flusher.busy = false;
    }
}

/// Writes about this number of pages in the context of a throttled task (2.6). Returns the number
/// of pages written.
pub(crate) async fn write_some(k: &K, a: Actor, pages: u64) -> u64 {
    pass_over(k, a, Why::Amount(pages), Instant::FAR, Pass::Timid).await
}

/// Makes the flusher write all dirty data, and waits until it has finished.
pub(crate) async fn have_all_written(k: &K, a: Actor, wait_each: bool) {
    if k.w().cfg.constants.dirtier_writes != 0 {
        // In 2.6 the calling task writes.
        sync_all(k, a, wait_each).await;
        return;
    }
    let number = {
        let mut w = k.w();
        w.flusher.next_work += 1;
        let number = w.flusher.next_work;
        w.flusher.work.push_back(Work {
            number,
            wait: wait_each,
        });
        w.rt.wake(FLUSHER, Sleep::Idle);
        number
    };
    wait(k, a, |w| (w.flusher.done < number).then_some(Q::Flusher)).await;
}
