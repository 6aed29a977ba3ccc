//! Metadata blocks: pages of the block device that a transaction changes.

use crate::executor::Actor;
use crate::fs::BDEV;
use crate::machine::{K, Meta, NIL, Q, Target, Want, World, after_submit, wait};
use crate::memory::{NONE, flag};
use seekwell_core::{Flags, Op, PAGE_SECTORS};
use std::ops::Range;

impl World {
    fn meta_of(&mut self, page: u32, block: u32) -> u32 {
        let id = self.cache.pages[page as usize].meta;
        if id != NONE {
            return id;
        }
        let new = Meta {
            page,
            block,
            log_bio: NIL,
            used: true,
            ..Meta::default()
        };
        let j = &mut self.journal;
        let id = match j.free_meta.pop() {
            Some(i) => {
                j.meta[i as usize] = new;
                i
            }
            None => {
                j.meta.push(new);
                (j.meta.len() - 1) as u32
            }
        };
        self.cache.pages[page as usize].meta = id;
        self.cache.pin(page);
        id
    }
    /// Removes a freed block from the transaction, because it need not be written.
    pub(crate) fn meta_forget(&mut self, block: u32) {
        let tree = &self.fs.inodes[BDEV as usize].tree;
        let Some(p) = self.cache.lookup(tree, block) else {
            return;
        };
        if self.cache.pages[p as usize].is(flag::DIRTY) {
            self.clean_page(BDEV, p);
        }
        if !self.cache.pages[p as usize].is(flag::WRITEBACK) {
            self.meta_home(p);
        }
    }
}

/// Reads a metadata block into memory. `read` is false if the disk has no content for the block.
/// `near` gives the blocks that are read together with it. `flags` mark the read.
pub(crate) async fn read_meta(
    k: &K,
    a: Actor,
    block: u32,
    read: bool,
    near: Range<u32>,
    flags: Flags,
) {
    let start = {
        let mut w = k.w();
        let p = w.meta_page(block);
        w.page_used(BDEV, p);
        let page = &w.cache.pages[p as usize];
        if page.is(flag::UPTODATE) {
            return;
        }
        if !page.is(flag::READING) && (!read || w.cfg.ablations.metadata_cached) {
            w.cache.pages[p as usize].flags |= flag::UPTODATE;
            w.cache.settle(p);
            return;
        }
        !w.cache.pages[p as usize].is(flag::READING)
    };
    if start {
        for b in near.filter(|b| *b != block) {
            read_block(k, a, b, flags | Flags::RAHEAD).await;
        }
        read_block(k, a, block, flags).await;
        k.w().stats.metadata_reads += 1;
    }
    wait(k, a, |w| {
        let tree = &w.fs.inodes[BDEV as usize].tree;
        let p = w.cache.lookup(tree, block)?;
        let page = &w.cache.pages[p as usize];
        page.is(flag::READING).then_some(Q::Bio(page.bio))
    })
    .await;
}

async fn read_block(k: &K, a: Actor, block: u32, flags: Flags) {
    {
        let mut w = k.w();
        if block >= w.fs.alloc.blocks {
            return;
        }
        let p = w.meta_page(block);
        if w.cache.pages[p as usize].is(flag::UPTODATE | flag::READING) {
            return;
        }
        let target = Target::Read {
            ino: BDEV,
            idx: block,
            n: 1,
        };
        let bio = w.submit(
            a,
            Want {
                op: Op::Read,
                flags,
                sector: u64::from(block) * 8,
                sectors: 8,
                target,
                group: NIL,
                segment: PAGE_SECTORS,
            },
        );
        let page = &mut w.cache.pages[p as usize];
        page.flags |= flag::READING;
        page.bio = bio;
        w.cache.pin(p);
    }
    after_submit(k, a).await;
}

/// Changes a metadata block under a handle. First waits until the block is not being logged or
/// written. Then adds the block to the running transaction.
pub(crate) async fn modify(k: &K, a: Actor, block: u32) {
    wait(k, a, |w| {
        let tree = &w.fs.inodes[BDEV as usize].tree;
        let p = w.cache.lookup(tree, block)?;
        let page = &w.cache.pages[p as usize];
        if page.is(flag::WRITEBACK | flag::READING) {
            return Some(Q::Bio(page.bio));
        }
        let m = w.journal.meta.get(page.meta as usize)?;
        (m.shadow && !w.cfg.ablations.no_shadows).then_some(Q::Shadow(page.meta))
    })
    .await;
    let mut w = k.w();
    let p = w.meta_page(block);
    w.cache.pages[p as usize].flags |= flag::UPTODATE;
    w.page_used(BDEV, p);
    let id = w.meta_of(p, block);
    if w.cache.pages[p as usize].is(flag::DIRTY) {
        // The block belongs to the journal again, so the flusher must not write it.
        w.clean_page(BDEV, p);
    }
    let w = &mut *w;
    let m = &mut w.journal.meta[id as usize];
    if !m.running {
        m.running = true;
        let t = w.journal.running.as_mut().expect("under a handle");
        t.blocks.push(id);
    }
}
