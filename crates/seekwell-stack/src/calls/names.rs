//! System calls that take names: opening, making, removing, renaming and listing files.

use super::truncate;
use crate::config::Fs;
use crate::executor::Actor;
use crate::fs::{Dir, Kind, Walk, last_name};
use crate::journal::{handle_start, modify, read_meta};
use crate::machine::{File, K, Ret, World, lock};
use crate::writeback::{Fresh, Pass, allocate_in, inode_changed, read_inode, write_inode};
use seekwell_core::{Errno, OpenFlags, Stat};

/// The block of the superblock, which contains the head of the orphan list.
pub(crate) const SUPERBLOCK: u32 = 0;

impl World {
    /// Returns the block of a directory that contains a name, counted from the directory's start.
    fn entry_block(&self, dir: u32, name: &str) -> u32 {
        let d = self.fs.inodes[dir as usize].dir.as_ref();
        d.and_then(|d| d.entries.get(name)).map_or(0, |e| e.block)
    }
    /// Returns the disk block that contains block `n` of a directory.
    fn dir_block(&self, dir: u32, n: u32) -> Option<u32> {
        self.fs.inodes[dir as usize].map(n).map(|m| m.0)
    }
}

/// Looks up a path. Reads inodes and directory blocks that are not in memory.
async fn lookup(k: &K, a: Actor, path: &str) -> Result<Walk, Errno> {
    {
        let mut w = k.w();
        let walk = w.fs.walk(path)?;
        let cost = w.cfg.constants.lookup_ns * u64::from(walk.steps.max(1));
        w.spend(a, cost);
        if w.fs.epoch == 0 {
            return Ok(walk);
        }
    }
    let mut at = crate::fs::ROOT;
    for part in path.split('/').filter(|p| !p.is_empty() && *p != ".") {
        let found = {
            let w = k.w();
            let dir = w.fs.inodes[at as usize].dir.as_ref();
            let e = dir.and_then(|d| d.entries.get(part));
            let Some(e) = e else { break };
            let old = w.fs.inodes[e.ino as usize].epoch != w.fs.epoch;
            let block = if old { w.dir_block(at, e.block) } else { None };
            (e.ino, block, w.meta_flags())
        };
        if let Some(block) = found.1 {
            read_meta(k, a, block, true, 0..0, found.2).await;
            let there = k.w().fs.inodes[found.0 as usize].kind != Kind::Free;
            if there {
                read_inode(k, a, found.0).await;
            }
        }
        at = found.0;
    }
    k.w().fs.walk(path)
}

/// Opens a file (open(2)). Returns the descriptor.
pub(crate) async fn open(k: &K, a: Actor, path: &str, flags: OpenFlags) -> Ret {
    let walk = lookup(k, a, path).await?;
    let ino = match walk.ino {
        Some(_) if flags.contains(OpenFlags::CREATE | OpenFlags::EXCL) => {
            return Err(Errno::EEXIST);
        }
        Some(ino) => ino,
        None if flags.contains(OpenFlags::CREATE) => make(k, a, walk.dir, path, Kind::File).await?,
        None => return Err(Errno::ENOENT),
    };
    let fd = {
        let mut w = k.w();
        // A directory can be opened for fsync.
        let makes = OpenFlags::CREATE | OpenFlags::TRUNC | OpenFlags::DIRECT;
        if w.fs.inodes[ino as usize].kind == Kind::Directory && flags.intersects(makes) {
            return Err(Errno::EISDIR);
        }
        w.file_new(ino, flags)
    };
    if flags.contains(OpenFlags::TRUNC) && k.w().fs.inodes[ino as usize].len > 0 {
        lock(k, a, ino).await;
        let r = truncate::to(k, a, ino, 0).await;
        k.w().unlock(ino);
        r?;
    }
    Ok(u64::from(fd))
}

/// Closes a descriptor (close(2)).
pub(crate) async fn close(k: &K, a: Actor, fd: u32) -> Ret {
    let f: File = k.w().file(fd)?;
    let flush = {
        let mut w = k.w();
        if w.fs.inodes[f.ino as usize].kind == Kind::Device {
            return Err(Errno::EBADF);
        }
        w.fd_free(fd);
        std::mem::take(&mut w.fs.inodes[f.ino as usize].flush_on_close)
    };
    if flush {
        write_inode(k, a, f.ino, 0, u32::MAX, Pass::Async, u64::MAX).await;
    }
    let gone = {
        let mut w = k.w();
        w.file_closed(&f) && w.fs.inodes[f.ino as usize].links == 0
    };
    if gone {
        truncate::evict(k, a, f.ino).await;
    }
    Ok(0)
}

/// Makes a file or directory if it does not exist. Returns the inode.
async fn make(k: &K, a: Actor, dir: u32, path: &str, kind: Kind) -> Result<u32, Errno> {
    lock(k, a, dir).await;
    let r = make_locked(k, a, dir, path, kind).await;
    k.w().unlock(dir);
    r
}

async fn make_locked(k: &K, a: Actor, dir: u32, path: &str, kind: Kind) -> Result<u32, Errno> {
    let name = last_name(path);
    let is_dir = kind == Kind::Directory;
    {
        let mut w = k.w();
        // Another task may have made the file, or removed the directory.
        let d = &w.fs.inodes[dir as usize];
        let entries = &d.dir.as_ref().ok_or(Errno::ENOENT)?.entries;
        if let Some(e) = entries.get(name) {
            return if is_dir {
                Err(Errno::EEXIST)
            } else {
                Ok(e.ino)
            };
        }
        if w.fs.available() < 8 {
            return Err(Errno::ENOSPC);
        }
        let c = &w.cfg.constants;
        let cost = if is_dir { c.mkdir_ns } else { c.create_ns };
        w.spend(a, cost);
    }
    handle_start(k, a).await;
    let r = make_in(k, a, dir, name, kind).await;
    k.w().handle_stop();
    r
}

async fn make_in(k: &K, a: Actor, dir: u32, name: &str, kind: Kind) -> Result<u32, Errno> {
    let is_dir = kind == Kind::Directory;
    let block = enter_room(k, a, dir, name).await?;
    let (ino, group) = {
        let mut w = k.w();
        // While this task waited for the handle, other tasks may have taken the last blocks.
        if is_dir && w.fs.available() == 0 {
            return Err(Errno::ENOSPC);
        }
        let near = w.fs.inodes[dir as usize].group;
        let top = dir == crate::fs::ROOT;
        let near = w.fs.alloc.inode_group(is_dir, near, top, name);
        let (group, slot) = w.fs.alloc.inode(near, is_dir).ok_or(Errno::ENOSPC)?;
        let ino = w.fs.new_inode(kind, group, slot);
        if is_dir {
            w.fs.inodes[ino as usize].dir = Some(Box::new(Dir::new(dir)));
            w.fs.inodes[ino as usize].len = 4096;
        }
        let d = w.fs.inodes[dir as usize].dir.as_mut();
        d.ok_or(Errno::ENOENT)?.add(name, ino, block);
        w.set_times(ino);
        w.set_times(dir);
        w.inode_in_txn(ino, true);
        w.inode_in_txn(dir, true);
        w.stats.created += 1;
        (ino, group)
    };
    if is_dir {
        // Allocate the first block of the directory.
        allocate_in(k, a, ino, 0, 1, Fresh::Ordered).await;
        let b = k.w().dir_block(ino, 0);
        if let Some(b) = b {
            read_meta(k, a, b, false, 0..0, seekwell_core::Flags::empty()).await;
            modify(k, a, b).await;
        }
    }
    inode_bitmap_changed(k, a, group).await;
    entry_changed(k, a, dir, block).await;
    inode_changed(k, a, ino).await;
    Ok(ino)
}

/// Returns the directory block for a new name. Extends the directory if all its blocks are full.
async fn enter_room(k: &K, a: Actor, dir: u32, name: &str) -> Result<u32, Errno> {
    let (block, grow) = {
        let w = k.w();
        let d = w.fs.inodes[dir as usize].dir.as_ref();
        let d = d.ok_or(Errno::ENOENT)?;
        let b = d.block_for(name);
        (b, b == d.blocks())
    };
    if grow && allocate_in(k, a, dir, block, 1, Fresh::Ordered).await == 0 {
        return Err(Errno::ENOSPC);
    }
    if grow {
        let mut w = k.w();
        w.fs.inodes[dir as usize].len += 4096;
        if let Some(b) = w.dir_block(dir, block) {
            let p = w.meta_page(b);
            w.cache.pages[p as usize].flags |= crate::memory::flag::UPTODATE;
            w.cache.settle(p);
        }
    }
    Ok(block)
}

/// Adds a changed directory block and the directory's inode to the running transaction.
async fn entry_changed(k: &K, a: Actor, dir: u32, block: u32) {
    let (b, flags) = {
        let w = k.w();
        (w.dir_block(dir, block), w.meta_flags())
    };
    if let Some(b) = b {
        read_meta(k, a, b, true, 0..0, flags).await;
        modify(k, a, b).await;
    }
    inode_changed(k, a, dir).await;
}

/// Adds a group's inode bitmap and descriptor to the running transaction.
pub(crate) async fn inode_bitmap_changed(k: &K, a: Actor, group: u32) {
    let (bitmap, descriptor, read, flags) = {
        let mut w = k.w();
        let read = w.fs.alloc.inodes_on_disk(group);
        let alloc = &w.fs.alloc;
        (
            alloc.inode_bitmap(group),
            alloc.descriptor(group),
            read,
            w.bitmap_flags(),
        )
    };
    read_meta(k, a, bitmap, read, 0..0, flags).await;
    modify(k, a, bitmap).await;
    modify(k, a, descriptor).await;
}

/// Makes a directory (mkdir(2)).
pub(crate) async fn mkdir(k: &K, a: Actor, path: &str) -> Ret {
    let walk = lookup(k, a, path).await?;
    if walk.ino.is_some() {
        return Err(Errno::EEXIST);
    }
    make(k, a, walk.dir, path, Kind::Directory).await.map(|_| 0)
}

/// Removes a file or an empty directory (unlink(2), rmdir(2)).
pub(crate) async fn unlink(k: &K, a: Actor, path: &str, is_dir: bool) -> Ret {
    let walk = lookup(k, a, path).await?;
    let ino = walk.ino.ok_or(Errno::ENOENT)?;
    if ino == crate::fs::ROOT {
        return Err(Errno::EBUSY);
    }
    lock(k, a, walk.dir).await;
    let r = unlink_locked(k, a, walk.dir, last_name(path), is_dir).await;
    k.w().unlock(walk.dir);
    let gone = r?;
    if let Some(ino) = gone {
        truncate::evict(k, a, ino).await;
    }
    Ok(0)
}

/// Removes a name. Also removes the inode if nothing refers to it.
async fn unlink_locked(
    k: &K,
    a: Actor,
    dir: u32,
    name: &str,
    is_dir: bool,
) -> Result<Option<u32>, Errno> {
    {
        let mut w = k.w();
        let d = w.fs.inodes[dir as usize].dir.as_ref();
        let e = d.and_then(|d| d.entries.get(name));
        let ino = e.ok_or(Errno::ENOENT)?.ino;
        match (&w.fs.inodes[ino as usize].dir, is_dir) {
            (Some(_), false) => return Err(Errno::EISDIR),
            (None, true) => return Err(Errno::ENOTDIR),
            (Some(d), true) if !d.entries.is_empty() => return Err(Errno::ENOTEMPTY),
            _ => {}
        }
        let cost = w.cfg.constants.create_ns;
        w.spend(a, cost);
    }
    handle_start(k, a).await;
    let gone = remove_in(k, a, dir, name).await;
    k.w().handle_stop();
    Ok(gone)
}

/// Removes a name and a link within an open handle. Returns the inode if this was its last link.
async fn remove_in(k: &K, a: Actor, dir: u32, name: &str) -> Option<u32> {
    let (e, last) = {
        let mut w = k.w();
        let e = w.fs.inodes[dir as usize].dir.as_mut()?.remove(name)?;
        w.set_times(dir);
        w.inode_in_txn(dir, true);
        w.inode_in_txn(e.ino, true);
        let i = &mut w.fs.inodes[e.ino as usize];
        i.links -= 1;
        i.pins += 1;
        let last = i.links == 0;
        if i.dir.is_some() {
            w.fs.directory_gone();
        }
        w.stats.removed += u64::from(last);
        (e, last)
    };
    entry_changed(k, a, dir, e.block).await;
    inode_changed(k, a, e.ino).await;
    if last {
        modify(k, a, SUPERBLOCK).await;
    }
    let mut w = k.w();
    let i = &mut w.fs.inodes[e.ino as usize];
    i.pins -= 1;
    (last && i.opens == 0).then_some(e.ino)
}

/// Renames a file or directory (rename(2)).
pub(crate) async fn rename(k: &K, a: Actor, from: &str, to: &str) -> Ret {
    let old = lookup(k, a, from).await?;
    let ino = old.ino.ok_or(Errno::ENOENT)?;
    let new = lookup(k, a, to).await?;
    if last_name(to).is_empty() || ino == crate::fs::ROOT {
        return Err(Errno::EBUSY);
    }
    let (one, two) = (old.dir.min(new.dir), old.dir.max(new.dir));
    lock(k, a, one).await;
    if two != one {
        lock(k, a, two).await;
    }
    let r = rename_locked(k, a, (old.dir, last_name(from)), (new.dir, last_name(to))).await;
    {
        let mut w = k.w();
        if two != one {
            w.unlock(two);
        }
        w.unlock(one);
    }
    if let Some(gone) = r? {
        truncate::evict(k, a, gone).await;
    }
    Ok(0)
}

async fn rename_locked(
    k: &K,
    a: Actor,
    from: (u32, &str),
    to: (u32, &str),
) -> Result<Option<u32>, Errno> {
    let (ino, over) = {
        let mut w = k.w();
        let entry = |dir: u32, name: &str| {
            let d = w.fs.inodes[dir as usize].dir.as_ref();
            d.and_then(|d| d.entries.get(name).map(|e| e.ino))
        };
        let ino = entry(from.0, from.1).ok_or(Errno::ENOENT)?;
        let over = entry(to.0, to.1);
        if over == Some(ino) {
            return Ok(None);
        }
        let source_dir = w.fs.inodes[ino as usize].dir.is_some();
        if let Some(o) = over {
            match (&w.fs.inodes[o as usize].dir, source_dir) {
                (Some(_), false) => return Err(Errno::EISDIR),
                (None, true) => return Err(Errno::ENOTDIR),
                (Some(d), _) if !d.entries.is_empty() => return Err(Errno::ENOTEMPTY),
                _ => {}
            }
        }
        let cost = w.cfg.constants.mkdir_ns;
        w.spend(a, cost);
        (ino, over)
    };
    if over.is_some() && k.w().fs.kind == Fs::Ext4 {
        // auto_da_alloc: a file that replaces another is written immediately.
        write_inode(k, a, ino, 0, u32::MAX, Pass::Async, u64::MAX).await;
    }
    handle_start(k, a).await;
    let r = rename_in(k, a, from, to, over.is_some()).await;
    k.w().handle_stop();
    r
}

async fn rename_in(
    k: &K,
    a: Actor,
    from: (u32, &str),
    to: (u32, &str),
    over: bool,
) -> Result<Option<u32>, Errno> {
    let room = if over {
        0
    } else {
        enter_room(k, a, to.0, to.1).await?
    };
    let mut gone = None;
    let mut room = room;
    if over {
        room = k.w().entry_block(to.0, to.1);
        gone = remove_in(k, a, to.0, to.1).await;
    }
    let e = {
        let mut w = k.w();
        let d = w.fs.inodes[from.0 as usize].dir.as_mut();
        let e = d.and_then(|d| d.remove(from.1)).ok_or(Errno::ENOENT)?;
        let d = w.fs.inodes[to.0 as usize].dir.as_mut();
        d.ok_or(Errno::ENOENT)?.add(to.1, e.ino, room);
        if let Some(d) = &mut w.fs.inodes[e.ino as usize].dir {
            d.parent = to.0;
            w.fs.directory_gone();
        }
        w.set_times(e.ino);
        for ino in [from.0, to.0, e.ino] {
            w.inode_in_txn(ino, true);
        }
        e
    };
    entry_changed(k, a, from.0, e.block).await;
    entry_changed(k, a, to.0, room).await;
    inode_changed(k, a, e.ino).await;
    Ok(gone)
}

/// Reads all blocks of a directory (readdir).
pub(crate) async fn readdir(k: &K, a: Actor, path: &str) -> Ret {
    let ino = lookup(k, a, path).await?.ino.ok_or(Errno::ENOENT)?;
    let blocks = {
        let w = k.w();
        let d = w.fs.inodes[ino as usize].dir.as_ref();
        d.ok_or(Errno::ENOTDIR)?.blocks()
    };
    for n in 0..blocks {
        let (b, flags) = {
            let w = k.w();
            (w.dir_block(ino, n), w.meta_flags())
        };
        if let Some(b) = b {
            read_meta(k, a, b, true, 0..0, flags).await;
        }
    }
    let mut w = k.w();
    let d = w.fs.inodes[ino as usize].dir.as_ref();
    let entries = &d.ok_or(Errno::ENOENT)?.entries;
    let is_dir = |ino: u32| w.fs.inodes[ino as usize].dir.is_some();
    let (names, dirs): (Vec<Box<str>>, Vec<bool>) = entries
        .sorted()
        .into_iter()
        .map(|(name, e)| (name.into(), is_dir(e.ino)))
        .unzip();
    let n = names.len() as u64;
    let cost = w.cfg.constants.entry_ns * n;
    w.spend(a, cost);
    let out = &mut w.tasks[a as usize].out;
    (out.names, out.dirs) = (names, dirs);
    Ok(n)
}

/// Looks up a file (stat(2)). Returns its length.
pub(crate) async fn stat(k: &K, a: Actor, path: &str) -> Ret {
    let ino = lookup(k, a, path).await?.ino.ok_or(Errno::ENOENT)?;
    Ok(facts(k, a, ino))
}

/// Returns the length of an open file (fstat(2)).
pub(crate) fn fstat(k: &K, a: Actor, fd: u32) -> Ret {
    let ino = k.w().file(fd)?.ino;
    Ok(facts(k, a, ino))
}

fn facts(k: &K, a: Actor, ino: u32) -> u64 {
    let mut w = k.w();
    let i = &w.fs.inodes[ino as usize];
    let stat = Stat {
        len: i.len,
        allocated: u64::from(i.blocks + i.index.len() as u32) * 4096,
        dir: i.dir.is_some(),
        ino: u64::from(ino),
        mtime: seekwell_core::Nanos(i.mtime.since_start()),
    };
    w.tasks[a as usize].out.stat = stat;
    stat.len
}

/// Writes a directory to the medium (fsync). This is a commit if the directory has changed.
pub(crate) async fn fsync_dir(k: &K, a: Actor, path: &str) -> Ret {
    let ino = lookup(k, a, path).await?.ino.ok_or(Errno::ENOENT)?;
    super::sync::fsync(k, a, ino, false).await.map(|()| 0)
}
