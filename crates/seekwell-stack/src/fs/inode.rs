//! Inodes, their extents, and directories.

use crate::fs::Window;
use crate::fs::names::Names;
use crate::fs::unwritten::Unwritten;
use crate::memory::{Owner, Tree};
use seekwell_core::{Instant, List};

/// The inode of the block device. Its pages are the blocks of the disk, including metadata.
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

/// The list of the flusher that contains an inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WbList {
    None,
    Dirty,
    Io,
    More,
}

/// A contiguous run of blocks of a file.
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
    /// A block that may have space for a new name.
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
    /// Returns the block for a new name, counted from the directory's start. The result equals
    /// [`Dir::blocks`] if the directory needs another block.
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

/// An inode. The first fields are those that are used to open, read and close a cached file. They
/// are on one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Inode {
    pub(crate) len: u64,
    pub(crate) dir: Option<Box<Dir>>,
    pub(crate) kind: Kind,
    /// The file was truncated to length 0, so its new data are written when it is closed.
    pub(crate) flush_on_close: bool,
    pub(crate) locked: bool,
    /// A write of the file's data failed. The next fsync reports this.
    pub(crate) failed: bool,
    /// The file is unlinked and its blocks are freed.
    pub(crate) emptied: bool,
    pub(crate) on: WbList,
    pub(crate) links: u32,
    pub(crate) opens: u32,
    /// Number of open files that can write.
    pub(crate) writers: u32,
    /// Number of delayed pages.
    pub(crate) delayed: u32,
    pub(crate) window: Window,
    pub(crate) tree: Tree,
    pub(crate) ext: Vec<Extent>,
    /// Pages that have blocks, but whose data are not on the disk.
    pub(crate) unwritten: Unwritten,
    /// Number of completed writes whose pages wait for conversion.
    pub(crate) converting: u32,
    /// Blocks of the extent tree, without the part inside the inode.
    pub(crate) index: Vec<u32>,
    pub(crate) blocks: u32,
    pub(crate) group: u32,
    pub(crate) slot: u32,
    pub(crate) dirtied_at: Instant,
    pub(crate) wb_next: u32,
    /// The last transaction that changed the inode, and the last transaction that changed something
    /// needed to find the inode's data.
    pub(crate) sync_tid: u64,
    pub(crate) data_tid: u64,
    /// The transaction that has the inode in its list of ordered data.
    pub(crate) ordered_tid: u64,
    pub(crate) lock_wait: List,
    pub(crate) mtime: Instant,
    pub(crate) mtime_tick: u64,
    pub(crate) epoch: u32,
    /// Number of operations that need the inode to stay in memory.
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
    /// Returns the block of a page, and the length of the contiguous run from this block on.
    pub(crate) fn map(&self, log: u32) -> Option<(u32, u32)> {
        if self.kind == Kind::Device {
            return Some((log, u32::MAX - log));
        }
        let i = self.ext.partition_point(|e| e.log <= log);
        let e = self.ext[..i].last()?;
        let d = log - e.log;
        (d < e.len).then(|| (e.phys + d, e.len - d))
    }
    /// Returns the block of a page for a read. Pages without data on the disk have no such block.
    pub(crate) fn map_read(&self, log: u32) -> Option<(u32, u32)> {
        if !self.unwritten.is_empty() && self.unwritten.holds(log) {
            return None;
        }
        self.map(log)
    }
    /// Records the blocks of pages, and merges adjacent runs.
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
    /// Returns the number of extent tree blocks that the inode needs. Four extents fit into the
    /// inode, and 340 into a block.
    pub(crate) fn index_needed(&self) -> usize {
        if self.ext.len() <= 4 {
            0
        } else {
            self.ext.len().div_ceil(340)
        }
    }
    /// Returns whether blocks are reserved for the inode.
    pub(crate) fn window_left(&self) -> bool {
        self.window.left > 0
    }
    /// Returns the number of pages of the file, from its length.
    pub(crate) fn pages_len(&self) -> u32 {
        self.len.div_ceil(4096).min(u64::from(u32::MAX)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_extents_are_joined_and_truncated() {
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
    fn directory_blocks_are_filled_by_name_lengths() {
        let mut d = Dir::new(1);
        for n in 0..1000 {
            let name = format!("file{n:08}");
            let b = d.block_for(&name);
            d.add(&name, 5, b);
        }
        // A name of 12 characters takes 20 bytes. The first block has 203 entries, and the others
        // have 204.
        assert_eq!(d.blocks(), 5);
        let e = d.remove("file00000000").expect("there");
        assert_eq!((e.block, d.block_for("file00000000")), (0, 0));
    }
}
