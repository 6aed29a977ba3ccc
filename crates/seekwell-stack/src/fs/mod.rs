//! The file system on the disk: inodes, directories, and the placement of blocks and inodes.
//!
//! The model contains the parts of ext4 and ext3 that determine locality and journal traffic: block
//! groups, flex_bg, the journal in the middle of the disk, and the pools and windows of the
//! allocators. Not modelled: contents, htree splits, quota, inline data, and the splitting of
//! partly converted extents.

mod alloc;
mod bits;
mod inode;
mod names;
mod paths;
mod unwritten;

pub(crate) use alloc::{Alloc, Window};

pub(crate) fn group_of(block: u32) -> u32 {
    Alloc::group_of(block)
}
pub(crate) use inode::{BDEV, Dir, Inode, Kind, ROOT, WbList};

use crate::config::{Config, Fs};
use paths::Paths;
use seekwell_core::{Errno, List, soon};

/// Blocks of 4 KiB per group.
pub(crate) const GROUP: u32 = 32_768;
/// Sectors per block.
pub(crate) const BLOCK_SECTORS: u64 = 8;

/// The whole file system.
pub(crate) struct FileSystem {
    pub(crate) inodes: Vec<Inode>,
    free_inodes: Vec<u32>,
    pub(crate) alloc: Alloc,
    /// Number of blocks reserved for delayed pages.
    pub(crate) reserved: u64,
    /// Incremented when caches are dropped. Names and inodes must then be read again.
    pub(crate) epoch: u32,
    pub(crate) kind: Fs,
    paths: Paths,
}

impl FileSystem {
    /// Makes a new file system on a disk of `capacity` sectors.
    pub(crate) fn make(cfg: &Config, capacity: u64) -> Self {
        let alloc = Alloc::new(
            cfg,
            (capacity / BLOCK_SECTORS).min(u64::from(u32::MAX) - 1) as u32,
        );
        let mut fs = FileSystem {
            inodes: Vec::new(),
            free_inodes: Vec::new(),
            alloc,
            reserved: 0,
            epoch: 0,
            kind: cfg.fs,
            paths: Paths::new(),
        };
        fs.inodes.push(Inode::new(Kind::Device, 0, 0));
        fs.inodes[BDEV as usize].len = capacity * 512;
        // The root directory is inode 2 of group 0, after the reserved inodes.
        let mut root = Inode::new(Kind::Directory, 0, 1);
        let block = fs.alloc.run(fs.alloc.first_data(0), 1).map(|r| r.0);
        root.dir = Some(Box::new(Dir::new(ROOT)));
        root.len = 4096;
        if let Some(b) = block {
            root.map_insert(0, b, 1);
        }
        fs.inodes.push(root);
        fs
    }
    pub(crate) fn new_inode(&mut self, kind: Kind, group: u32, slot: u32) -> u32 {
        let mut inode = Inode::new(kind, group, slot);
        inode.epoch = self.epoch;
        match self.free_inodes.pop() {
            Some(i) => {
                self.inodes[i as usize] = inode;
                i
            }
            None => {
                self.inodes.push(inode);
                (self.inodes.len() - 1) as u32
            }
        }
    }
    /// Frees the number of an inode that nothing refers to.
    pub(crate) fn release_inode(&mut self, ino: u32) {
        let i = &mut self.inodes[ino as usize];
        debug_assert!(i.tree.pages == 0 && i.on == WbList::None && i.lock_wait == List::new());
        i.kind = Kind::Free;
        i.dir = None;
        i.ext = Vec::new();
        self.free_inodes.push(ino);
    }
    /// Returns the block of the inode table that contains an inode.
    pub(crate) fn inode_block(&self, ino: u32) -> u32 {
        let i = &self.inodes[ino as usize];
        self.alloc.inode_block(i.group, i.slot)
    }
    /// Returns the number of blocks that are free for new data.
    pub(crate) fn available(&self) -> u64 {
        self.alloc.available().saturating_sub(self.reserved)
    }
    /// Looks up a path. Returns its inode and the directory of its last component. Models no I/O.
    pub(crate) fn walk(&mut self, path: &str) -> Result<Walk, Errno> {
        // Task number 0 is not used.
        self.walk_on(0, path)
    }
    /// Looks up a path for a task. A task usually stays in the same directory, which makes this
    /// fast.
    pub(crate) fn walk_on(&mut self, who: u32, path: &str) -> Result<Walk, Errno> {
        // Most paths consist of a known directory and a name in it.
        let usual = |name: &str| {
            let dots = name.starts_with('.');
            !name.is_empty() && !dots && name.len() <= 255
        };
        let again = self.paths.again(who, path);
        if let Some((dir, steps, name)) = again.filter(|a| usual(a.2) && !a.2.contains('/')) {
            return self.name_in(dir, steps, name);
        }
        let parts = path.rsplit_once('/').filter(|p| usual(p.1));
        let Some((before, name)) = parts else {
            return self.walk_all(path);
        };
        if let Some((dir, steps)) = self.paths.get(who, before) {
            return self.name_in(dir, steps, name);
        }
        let walk = self.walk_all(path)?;
        self.paths.learn(before, walk.dir, walk.steps - 1);
        Ok(walk)
    }
    /// Looks up a name in a directory. `steps` names were looked up to find that directory.
    #[inline]
    fn name_in(&self, dir: u32, steps: u32, name: &str) -> Result<Walk, Errno> {
        let d = self.inodes[dir as usize].dir.as_ref();
        let found = d.ok_or(Errno::ENOTDIR)?.entries.get_in_turn(name);
        if let Some(next) = found.and_then(|(_, next)| self.inodes.get(next? as usize)) {
            soon(next);
        }
        let ino = found.map(|(e, _)| e.ino);
        let steps = steps + 1;
        Ok(Walk { dir, ino, steps })
    }
    /// Handles the renaming or the removal of a directory.
    pub(crate) fn directory_gone(&mut self) {
        self.paths.forget();
    }
    fn walk_all(&self, path: &str) -> Result<Walk, Errno> {
        let (mut dir, mut ino, mut steps) = (ROOT, Some(ROOT), 0);
        for part in path.split('/').filter(|p| !p.is_empty() && *p != ".") {
            dir = ino.ok_or(Errno::ENOENT)?;
            let d = self.inodes[dir as usize].dir.as_ref();
            let d = d.ok_or(Errno::ENOTDIR)?;
            if part.len() > 255 {
                return Err(Errno::ENAMETOOLONG);
            }
            ino = d.entries.get(part).map(|e| e.ino);
            steps += 1;
        }
        Ok(Walk { dir, ino, steps })
    }
}

/// The result of a path look-up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    /// Directory of the last component.
    pub(crate) dir: u32,
    /// Inode of the last component, if it exists.
    pub(crate) ino: Option<u32>,
    /// Number of names that were looked up.
    pub(crate) steps: u32,
}

/// Returns the last component of a path.
pub(crate) fn last_name(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit_once('/').map_or(path, |p| p.1)
}
