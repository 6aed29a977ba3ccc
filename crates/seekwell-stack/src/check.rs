//! Checks for tests: the counters of the model are compared with a recount of its state.

use crate::calls::Kernel;
use crate::fs::Kind;
use crate::machine::Fd;
use crate::memory::{Find, flag};

impl Kernel {
    /// Panics if a counter differs from the recount.
    pub(crate) fn check(&self) {
        let w = self.world();
        let (mut dirty, mut wb, mut pages, mut delayed) = (0, 0, 0, 0);
        for (ino, i) in w.fs.inodes.iter().enumerate() {
            if i.kind == Kind::Free {
                continue;
            }
            let (mut own_dirty, mut own_wb, mut own_delayed, mut at) = (0, 0, 0, 0);
            while let Some((idx, p)) = w.cache.next(&i.tree, at, Find::Present) {
                let page = &w.cache.pages[p as usize];
                assert_eq!(
                    (page.ino as usize, page.idx),
                    (ino, idx),
                    "a page knows its place"
                );
                own_dirty += u32::from(page.is(flag::DIRTY));
                own_wb += u32::from(page.is(flag::WRITEBACK));
                own_delayed += u32::from(page.is(flag::DELAYED));
                if page.is(flag::DELAYED) {
                    assert!(i.map(idx).is_none(), "a delayed page has no block");
                    assert!(page.is(flag::DIRTY), "and is dirty");
                }
                if page.is(flag::DIRTY) {
                    assert!(page.is(flag::UPTODATE) && !page.is(flag::READING));
                }
                if w.cache.is_ready(&i.tree, p) {
                    assert!(page.is(flag::UPTODATE) && !page.is(flag::MARK));
                }
                if page.is(flag::READING | flag::WRITEBACK) {
                    assert!(w.bios.is_under_way(page.bio), "its bio is under way");
                }
                pages += 1;
                at = idx + 1;
            }
            assert_eq!(
                (own_dirty, own_wb),
                (i.tree.dirty, i.tree.wb),
                "inode {ino}"
            );
            assert_eq!(own_delayed, i.delayed, "inode {ino}");
            if own_dirty > 0 {
                assert_ne!(
                    i.on,
                    crate::fs::WbList::None,
                    "the flusher knows inode {ino}"
                );
            }
            dirty += u64::from(own_dirty);
            wb += u64::from(own_wb);
            delayed += u64::from(own_delayed);
        }
        assert_eq!((dirty, wb), (w.cache.nr_dirty, w.cache.nr_wb));
        assert_eq!(pages, w.cache.count);
        assert_eq!(delayed, w.fs.reserved);
        assert!(
            w.fs.reserved <= w.fs.alloc.available(),
            "promises can be kept"
        );
        let (counted, believed) = w.fs.alloc.recount();
        assert_eq!(counted, believed, "free blocks");
        let on_lru = w.cache.lru.len() as u64;
        assert!(on_lru <= pages);
        for c in &w.journal.checkpoints {
            let of = |m: &&crate::machine::Meta| m.checkpoint == c.tid;
            let n = w.journal.meta.iter().filter(of).count();
            assert_eq!(
                n as u32, c.left,
                "blocks of transaction {} not at home",
                c.tid
            );
        }
    }
    /// Describes the tasks with unfinished calls, and the state of the machine.
    pub(crate) fn stuck(&self) -> String {
        let w = self.world();
        let tasks = w
            .tasks
            .iter()
            .enumerate()
            .filter(|t| t.1.exists && !t.1.idle);
        let tasks: Vec<_> = tasks
            .map(|t| format!("{} {:?}", t.0, w.rt.why(t.0 as u32)))
            .collect();
        format!(
            "{tasks:?}; dirty {} wb {} limit {:?}; cached {} of {}; journal {:?}; in flight {}",
            w.cache.nr_dirty,
            w.cache.nr_wb,
            w.dirty_limits(),
            w.cache.count,
            w.cache.limit,
            w.journal.running,
            w.bios.in_flight
        )
    }
    pub(crate) fn dirty_pages(&self) -> u64 {
        let w = self.world();
        w.cache.nr_dirty + w.cache.nr_wb
    }
    pub(crate) fn block_of(&self, fd: Fd, page: u64) -> Option<u64> {
        let w = self.world();
        let ino = w.file(fd.0).ok()?.ino;
        let m = w.fs.inodes[ino as usize].map(page as u32)?;
        Some(u64::from(m.0))
    }
}
