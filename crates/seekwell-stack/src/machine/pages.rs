//! Pages of inodes: creation, dirtying, cleaning, eviction, and the effects of completed bios.

use super::{Ret, world::World};
use crate::fs::{BDEV, Kind, WbList};
use crate::memory::{NONE, flag};
use seekwell_core::{Errno, Instant};

impl World {
    /// Creates a page of a folio of `order`, on no list. Evicts old clean pages if memory is full.
    pub(crate) fn new_page(&mut self, ino: u32, idx: u32, order: u8) -> u32 {
        let kept = self.cfg.constants.kept_pages as usize;
        while self.cache.count >= self.cache.limit && self.cache.lru.len() > kept {
            let Some(p) = self.cache.victim(&mut self.fs.inodes) else {
                break;
            };
            self.drop_page(p);
            self.stats.evicted += 1;
        }
        let tree = &mut self.fs.inodes[ino as usize].tree;
        self.cache.insert(tree, ino, idx, order)
    }
    /// Takes a program's own memory from the page cache. The cache shrinks by evicting clean pages
    /// when new pages are created. A sixteenth of the cache remains, and at least a few pages.
    pub(crate) fn hold(&mut self, bytes: u64) -> Ret {
        let left = self.cache.limit.saturating_sub(bytes.div_ceil(4096));
        if left < 64 || left < self.cfg.cache_pages() / 16 {
            return Err(Errno::ENOMEM);
        }
        self.cache.limit = left;
        Ok(0)
    }
    /// Removes a clean idle page.
    pub(crate) fn drop_page(&mut self, p: u32) {
        let ino = self.cache.pages[p as usize].ino;
        let tree = &mut self.fs.inodes[ino as usize].tree;
        self.cache.remove(tree, p);
    }
    #[inline]
    pub(crate) fn page(&self, ino: u32, idx: u32) -> Option<u32> {
        self.cache.lookup(&self.fs.inodes[ino as usize].tree, idx)
    }
    /// Marks a page as used: eviction skips it once.
    #[inline]
    pub(crate) fn page_used(&mut self, ino: u32, p: u32) {
        self.cache.used(&mut self.fs.inodes[ino as usize].tree, p);
    }
    /// Marks a page dirty. The first dirty page puts the inode on the flusher's list. Returns true
    /// if the page was clean.
    pub(crate) fn dirty_page(&mut self, ino: u32, p: u32, now: Instant) -> bool {
        let i = &mut self.fs.inodes[ino as usize];
        if !self.cache.set_dirty(&mut i.tree, p) {
            return false;
        }
        self.bw.dirtied += 1;
        if i.on == WbList::None {
            i.dirtied_at = now;
            i.on = WbList::Dirty;
            self.flusher.links.push_back(&mut self.flusher.dirty, ino);
        }
        true
    }
    pub(crate) fn clean_page(&mut self, ino: u32, p: u32) {
        let tree = &mut self.fs.inodes[ino as usize].tree;
        self.cache.clear_dirty(tree, p);
        self.cache.settle(p);
    }
    pub(crate) fn writeback_page(&mut self, ino: u32, p: u32, bio: u32) {
        let tree = &mut self.fs.inodes[ino as usize].tree;
        self.cache.set_wb(tree, p, bio);
    }
    /// Handles the end of a read of pages.
    pub(crate) fn pages_read(&mut self, ino: u32, idx: u32, n: u32, error: bool) {
        for i in idx..idx + n {
            if let Some(p) = self.page(ino, i) {
                let page = &mut self.cache.pages[p as usize];
                page.flags &= !flag::READING;
                page.bio = NONE;
                if !error {
                    page.flags |= flag::UPTODATE;
                }
                self.cache.settle(p);
            }
        }
    }
    /// Handles the end of a write of pages. A failed write loses the data, as in Linux.
    pub(crate) fn pages_written(&mut self, ino: u32, idx: u32, n: u32, error: bool) {
        for i in idx..idx + n {
            if let Some(p) = self.page(ino, i) {
                let tree = &mut self.fs.inodes[ino as usize].tree;
                self.cache.clear_wb(tree, p);
                if ino == BDEV {
                    self.meta_home(p);
                }
            }
        }
        self.bw.written += u64::from(n);
        if error {
            self.fs.inodes[ino as usize].failed = true;
        } else {
            self.data_landed(ino, idx, n);
        }
    }
    /// Removes a reference that kept an inode in memory.
    pub(crate) fn unpin_inode(&mut self, ino: u32) {
        self.fs.inodes[ino as usize].pins -= 1;
        self.maybe_release(ino);
    }
    /// Frees an inode's number when nothing refers to the inode.
    pub(crate) fn maybe_release(&mut self, ino: u32) {
        let i = &self.fs.inodes[ino as usize];
        let used = i.links > 0 || i.opens > 0 || i.pins > 0 || i.tree.pages > 0;
        if used || !i.emptied || i.locked || !i.lock_wait.is_empty() {
            return;
        }
        if i.kind == Kind::Free || i.kind == Kind::Device {
            return;
        }
        self.flusher_forget(ino);
        self.fs.release_inode(ino);
    }
}
