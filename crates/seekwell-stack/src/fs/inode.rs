//! Inodes, their extents, directories.

use crate::fs::Window;
use crate::fs::names::Names;
use crate::fs::unwritten::Unwritten;
use crate::memory::{Owner, Tree};
use seekwell_core::{Instant, List};

/// The inode of the block device. Its pages are blocks of the disk, including metadata.
pub(crate) const BDEV: u32 = 0;
/// The root directory.
pub(crate) const ROOT: u32 = 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Free,
    Device,
    Directory,
    File,
}

/// The flusher's list that an inode is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WbList {
    None,
    Dirty,
    Io,
    More,
}

/// A run of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) log: u32,
    pub(crate) phys: u32,
    pub(crate) len: u32,
}

/// A name in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) ino: u32,
    /// Block of the directory that contains the name.
    pub(crate) block: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Dir {
    pub(crate) entries: Names,
    pub(crate) parent: u32,
    /// Number of used bytes in each block.
    fill: Vec<u16>,
    /// A block that may have room.
    hint: u32,
}

impl Dir {
    pub(crate) fn new(parent: u32) -> Self {
        Dir {
            entries: Names::default(),
            parent,
            fill: vec![24],
            hint: 0,
        }
    }
    fn size(name: &str) -> u16 {
        8 + (name.len() as u16).next_multiple_of(4)
    }
    pub(crate) fn blocks(&self) -> u32 {
        self.fill.len() as u32
    }
    /// The block for a new name; equal to [`Dir::blocks`] if another block is needed.
    pub(crate) fn block_for(&self, name: &str) -> u32 {
        let fits = |b: &u32| self.fill[*b as usize] + Self::size(name) <= 4096;
        let last = self.blocks() - 1;
        [self.hint.min(last), last]
            .into_iter()
            .find(fits)
            .unwrap_or(last + 1)
    }
    pub(crate) fn add(&mut self, name: &str, ino: u32, block: u32) {
        if block == self.blocks() {
            self.fill.push(12);
        }
        self.fill[block as usize] += Self::size(name);
        self.entries.insert(name, Entry { ino, block });
    }
    pub(crate) fn remove(&mut self, name: &str) -> Option<Entry> {
        let e = self.entries.remove(name)?;
        self.fill[e.block as usize] -= Self::size(name);
        self.hint = e.block;
        Some(e)
    }
}

/// An inode. The fields used by opening, reading and closing a cached file come first, on one cache
/// line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Inode {
    pub(crate) len: u64,
    pub(crate) dir: Option<Box<Dir>>,
    pub(crate) kind: Kind,
    /// The file was truncated to length 0: its new data are written when it is closed.
    pub(crate) flush_on_close: bool,
    pub(crate) locked: bool,
    /// A write of its data failed, which the next fsync reports.
    pub(crate) failed: bool,
    /// It is unlinked and its blocks are freed.
    pub(crate) emptied: bool,
    pub(crate) on: WbList,
    pub(crate) links: u32,
    pub(crate) opens: u32,
    /// Number of these that can write.
    pub(crate) writers: u32,
    /// Number of delayed pages.
    pub(crate) delayed: u32,
    pub(crate) window: Window,
    pub(crate) tree: Tree,
    pub(crate) ext: Vec<Extent>,
    /// Pages that have blocks but no data on the disk.
    pub(crate) unwritten: Unwritten,
    /// Number of writes whose pages wait for conversion.
    pub(crate) converting: u32,
    /// Blocks of the extent tree below the inode.
    pub(crate) index: Vec<u32>,
    pub(crate) blocks: u32,
    pub(crate) group: u32,
    pub(crate) slot: u32,
    pub(crate) dirtied_at: Instant,
    pub(crate) wb_next: u32,
    /// The last transactions that changed the inode, and that changed what is needed to find its
    /// data.
    pub(crate) sync_tid: u64,
    pub(crate) data_tid: u64,
    /// Transaction that has the inode in its list of ordered data.
    pub(crate) ordered_tid: u64,
    pub(crate) lock_wait: List,
    pub(crate) mtime: Instant,
    pub(crate) mtime_tick: u64,
    pub(crate) epoch: u32,
    /// Number of operations that need the inode to stay.
    pub(crate) pins: u32,
}

impl Owner for Inode {
    #[inline]
    fn tree(&mut self) -> &mut Tree {
        &mut self.tree
    }
}

impl Inode {
    pub(crate) fn new(kind: Kind, group: u32, slot: u32) -> Self {
        Inode {
            kind,
            links: 1,
            opens: 0,
            writers: 0,
            len: 0,
            tree: Tree::default(),
            ext: Vec::new(),
            unwritten: Unwritten::default(),
            converting: 0,
            index: Vec::new(),
            blocks: 0,
            group,
            slot,
            window: Window::default(),
            delayed: 0,
            dirtied_at: Instant(0),
            on: WbList::None,
            wb_next: 0,
            sync_tid: 0,
            data_tid: 0,
            ordered_tid: 0,
            locked: false,
            lock_wait: List::new(),
            mtime: Instant(0),
            mtime_tick: 0,
            epoch: 0,
            flush_on_close: false,
            dir: None,
            failed: false,
            emptied: false,
            pins: 0,
        }
    }
    /// The block of a page, and the length of the contiguous run from it on.
    pub(crate) fn map(&self, log: u32) -> Option<(u32, u32)> {
        if self.kind == Kind::Device {
            return Some((log, u32::MAX - log));
        }
        let i = self.ext.partition_point(|e| e.log <= log);
        let e = self.ext[..i].last()?;
        let d = log - e.log;
        (d < e.len).then(|| (e.phys + d, e.len - d))
    }
    /// The block of a page for a read: pages without data on the disk have none.
    pub(crate) fn map_read(&self, log: u32) -> Option<(u32, u32)> {
        if !self.unwritten.is_empty() && self.unwritten.holds(log) {
            return None;
        }
        self.map(log)
    }
    /// Records the blocks of pages; merges neighbours.
    pub(crate) fn map_insert(&mut self, log: u32, phys: u32, len: u32) {
        self.blocks += len;
        let i = self.ext.partition_point(|e| e.log <= log);
        if i > 0 {
            let e = &mut self.ext[i - 1];
            debug_assert!(e.log + e.len <= log, "no block twice");
            if e.log + e.len == log && e.phys + e.len == phys && e.len < 32_768 {
                e.len += len;
                return;
            }
        }
        self.ext.insert(i, Extent { log, phys, len });
    }
    /// Removes the blocks from page `from` on, and calls `free(start, length)` for each run.
    pub(crate) fn map_cut(&mut self, from: u32, mut free: impl FnMut(u32, u32)) {
        self.unwritten.take(from, u32::MAX);
        while let Some(e) = self.ext.last_mut() {
            if e.log + e.len <= from {
                break;
            }
            if e.log >= from {
                free(e.phys, e.len);
                self.blocks -= e.len;
                self.ext.pop();
            } else {
                let keep = from - e.log;
                free(e.phys + keep, e.len - keep);
                self.blocks -= e.len - keep;
                e.len = keep;
                break;
            }
        }
    }
    /// Number of extent tree blocks needed: four extents fit into the inode, 340 into a block.
    pub(crate) fn index_needed(&self) -> usize {
        if self.ext.len() <= 4 {
            0
        } else {
            self.ext.len().div_ceil(340)
        }
    }
    /// Whether blocks are reserved for the inode.
    pub(crate) fn window_left(&self) -> bool {
        self.window.left > 0
    }
    /// Number of pages up to its length.
    pub(crate) fn pages_len(&self) -> u32 {
        self.len.div_ceil(4096).min(u64::from(u32::MAX)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_join_and_are_cut() {
        let mut i = Inode::new(Kind::File, 0, 0);
        i.map_insert(0, 100, 4);
        i.map_insert(4, 104, 4);
        i.map_insert(20, 300, 2);
        i.map_insert(8, 400, 1);
        assert_eq!(i.ext.len(), 3);
        assert_eq!(i.map(7), Some((107, 1)));
        assert_eq!(i.map(9), None);
        assert_eq!(i.map(20), Some((300, 2)));
        let mut freed = Vec::new();
        i.map_cut(5, |s, n| freed.push((s, n)));
        assert_eq!(freed, [(300, 2), (400, 1), (105, 3)]);
        assert_eq!(i.blocks, 5);
    }

    #[test]
    fn names_fill_blocks() {
        let mut d = Dir::new(1);
        for n in 0..1000 {
            let name = format!("file{n:08}");
            let b = d.block_for(&name);
            d.add(&name, 5, b);
        }
        // 12 characters take 20 bytes per entry: 203 entries in the first block, 204 in the others.
        assert_eq!(d.blocks(), 5);
        let e = d.remove("file00000000").expect("there");
        assert_eq!((e.block, d.block_for("file00000000")), (0, 0));
    }
}
