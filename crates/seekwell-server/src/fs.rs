//! A FUSE file system: a directory with one file. Reads, writes, fsync and hole punching become
//! commands of the modelled device. All other requests are answered immediately.
//!
//! The file behaves like a disk. Its size is fixed, and opening it with O_TRUNC changes nothing.
//! FOPEN_DIRECT_IO bypasses the page cache, even if a program opens the file without O_DIRECT. In
//! this mode the kernel sends no fsync after a write with O_SYNC or O_DSYNC. Only the flags of the
//! write show that it must be durable. Such a write becomes a write command and a flush.
//!
//! The crate `fuser` implements the protocol. If the model's thread has ended, a reply is never
//! sent, and the waiting program gets an input/output error.

use crate::asker::Asker;
use crate::inbox::{Inbox, Reply, Request as Arrival};
use crate::store::Store;
use fuser::{
    AccessFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, WriteFlags,
};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{Op, Sector, Sectors};
use std::ffi::OsStr;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

const ROOT: INodeNo = INodeNo(1);
const FILE: INodeNo = INodeNo(2);
/// Maximum size of one read or write request, bytes.
const TRANSFER_MAX: u32 = 1 << 20;
/// Maximum number of outstanding requests in the kernel. It must be at least the number of tags of
/// a loop device, which is 128.
const BACKGROUND_MAX: u16 = 256;
/// Maximum number of spare read buffers.
const SPARES_MAX: usize = 256;
/// How long the kernel may cache attributes. They never change.
const VALID: Duration = Duration::from_secs(3600);

/// Free buffers for the data of reads.
pub type Spares = Arc<Mutex<Vec<Vec<u8>>>>;

/// A reply to the kernel. It is sent at the completion time of the model.
pub enum FuseReply {
    /// Data of a read. After the reply, the buffer is returned to the free buffers.
    Data(ReplyData, Vec<u8>, Spares),
    /// Number of bytes that were written.
    Written(ReplyWrite, u32),
    /// A reply without data.
    Empty(ReplyEmpty),
}

impl Reply for FuseReply {
    fn answer(self, failed: bool) {
        let error = failed.then_some(Errno::EIO);
        match (self, error) {
            (FuseReply::Data(r, ..), Some(e)) => r.error(e),
            (FuseReply::Written(r, _), Some(e)) => r.error(e),
            (FuseReply::Empty(r), Some(e)) => r.error(e),
            (FuseReply::Data(r, buf, spares), None) => {
                r.data(&buf);
                let mut spares = spares.lock().unwrap_or_else(PoisonError::into_inner);
                // A surplus buffer is freed after the lock is released.
                if spares.len() < SPARES_MAX {
                    spares.push(buf);
                }
            }
            (FuseReply::Written(r, n), None) => r.written(n),
            (FuseReply::Empty(r), None) => r.ok(),
        }
    }
}

/// The file system.
pub struct DiskFs {
    pub inbox: Arc<Inbox<FuseReply>>,
    pub store: Arc<Store>,
    pub spares: Spares,
    pub size: u64,
    pub name: &'static str,
    /// Whether the device has a volatile write cache, so that fsync becomes a flush.
    pub write_cache: bool,
    /// Whether the device supports discards. A rotational disk does not.
    pub discards: bool,
    pub owner: (u32, u32),
    pub made: SystemTime,
}

/// Returns the range of sectors that contain the bytes `at..at + len`.
fn touched(at: u64, len: u64) -> (Sector, Sectors) {
    let first = at / SECTOR_BYTES;
    let end = (at + len).div_ceil(SECTOR_BYTES);
    (Sector(first), Sectors((end - first) as u32))
}

impl DiskFs {
    fn attributes(&self, node: INodeNo) -> FileAttr {
        let (size, kind, perm, nlink) = match node == FILE {
            true => (self.size, FileType::RegularFile, 0o600, 1),
            false => (0, FileType::Directory, 0o700, 2),
        };
        FileAttr {
            ino: node,
            size,
            blocks: size / 512,
            atime: self.made,
            mtime: self.made,
            ctime: self.made,
            crtime: self.made,
            kind,
            perm,
            nlink,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn buffer(&self, len: usize) -> Vec<u8> {
        let mut spares = self.spares.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buf = spares.pop().unwrap_or_default();
        drop(spares);
        buf.resize(len, 0);
        buf
    }
}

impl Filesystem for DiskFs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without asynchronous direct I/O, the kernel sends the requests of one caller one at a
        // time. If the kernel does not support it, the disk is slower than its model. The account's
        // maximum of outstanding commands shows this.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(TRANSFER_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == ROOT && name == self.name {
            reply.entry(&VALID, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match node {
            ROOT | FILE => reply.attr(&VALID, &self.attributes(node)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<fuser::TimeOrNow>,
        _mtime: Option<fuser::TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // O_TRUNC requests the size 0. As on a block device, this has no effect.
        match size {
            Some(n) if n != 0 && n != self.size => reply.error(Errno::EINVAL),
            _ => reply.attr(&VALID, &self.attributes(node)),
        }
    }

    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        reply.ok();
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // No page cache, no flush request at close, parallel direct writes.
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_NOFLUSH
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        from: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (ROOT, FileType::Directory, "."),
            (ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, self.name),
        ];
        for (next, (node, kind, name)) in (1..).zip(entries).skip(from as usize) {
            if reply.add(node, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.size / 4096;
        let free = blocks.saturating_sub(self.store.used_bytes() / 4096);
        reply.statfs(blocks, free, free, 1, 0, 4096, 255, 4096);
    }

    fn read(
        &self,
        asked: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        len: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let len = u64::from(len.min(TRANSFER_MAX)).min(self.size.saturating_sub(offset));
        if len == 0 {
            return reply.data(&[]);
        }
        let at = self.inbox.stamp();
        let mut buf = self.buffer(len as usize);
        if self.store.read(offset, &mut buf).is_err() {
            self.inbox.dismiss(at);
            return reply.error(Errno::EIO);
        }
        if self.inbox.null.load(Ordering::Acquire) {
            self.inbox.dismiss(at);
            return reply.data(&buf);
        }
        let (sector, sectors) = touched(offset, len);
        self.inbox.push(Arrival {
            at,
            op: Op::Read,
            sector,
            sectors,
            durable: false,
            asker: Asker::look_up(asked.pid()),
            reply: FuseReply::Data(reply, buf, Arc::clone(&self.spares)),
        });
    }

    fn write(
        &self,
        asked: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let len = (data.len() as u64).min(self.size.saturating_sub(offset));
        if len == 0 {
            return match data.is_empty() {
                true => reply.written(0),
                false => reply.error(Errno::ENOSPC),
            };
        }
        let at = self.inbox.stamp();
        if let Err(e) = self.store.write(offset, &data[..len as usize]) {
            self.inbox.dismiss(at);
            let full = e.kind() == io::ErrorKind::StorageFull;
            return reply.error(if full { Errno::ENOSPC } else { Errno::EIO });
        }
        let (sector, sectors) = touched(offset, len);
        self.inbox.push(Arrival {
            at,
            op: Op::Write,
            sector,
            sectors,
            durable: flags.0 & libc::O_DSYNC != 0,
            asker: Asker::look_up(asked.pid()),
            reply: FuseReply::Written(reply, len as u32),
        });
    }

    fn fsync(&self, asked: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        // Without a volatile cache, the device does nothing, but the backing file must still be
        // synced.
        if node != FILE || !(self.write_cache || self.store.durable()) {
            return reply.ok();
        }
        let at = self.inbox.stamp();
        self.inbox.push(Arrival {
            at,
            op: Op::Flush,
            sector: Sector(0),
            sectors: Sectors(0),
            durable: false,
            asker: Asker::look_up(asked.pid()),
            reply: FuseReply::Empty(reply),
        });
    }

    fn fallocate(
        &self,
        asked: &Request,
        _: INodeNo,
        _: FileHandle,
        at: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        const KEEP: i32 = libc::FALLOC_FL_KEEP_SIZE;
        const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | KEEP;
        const ZERO: i32 = libc::FALLOC_FL_ZERO_RANGE;
        let inside = at.checked_add(len).is_some_and(|end| end <= self.size);
        let op = match mode {
            PUNCH if self.discards => Op::Discard,
            m if self.discards && m & !KEEP == ZERO => Op::WriteZeroes,
            0 if inside => return reply.ok(),
            0 => return reply.error(Errno::ENOSPC),
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        if len == 0 || !inside {
            return reply.error(Errno::EINVAL);
        }
        // The data are discarded immediately. The reply waits for the completion time of the model.
        let stamp = self.inbox.stamp();
        if self.store.punch(at, len).is_err() {
            self.inbox.dismiss(stamp);
            return reply.error(Errno::EIO);
        }
        let (sector, sectors) = touched(at, len);
        self.inbox.push(Arrival {
            at: stamp,
            op,
            sector,
            sectors,
            durable: false,
            asker: Asker::look_up(asked.pid()),
            reply: FuseReply::Empty(reply),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_ranges_cover_whole_sectors() {
        assert_eq!(touched(0, 512), (Sector(0), Sectors(1)));
        assert_eq!(touched(4096, 4096), (Sector(8), Sectors(8)));
        assert_eq!(touched(511, 2), (Sector(0), Sectors(2)));
        assert_eq!(touched(1000, 1), (Sector(1), Sectors(1)));
    }
}
