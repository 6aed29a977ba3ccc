//! The file system: a directory with one file. Reads, writes, fsync and hole punching become the
//! device's commands; the rest is answered at once.
//!
//! The file is a disk: its size is fixed, opening it with O_TRUNC changes nothing, and the page
//! cache stays out of the way (FOPEN_DIRECT_IO) for whoever opens it without O_DIRECT. Then the
//! kernel sends no fsync behind a write under O_SYNC or O_DSYNC; the flags inside the write are the
//! only sign, and such a write is a write and a flush here.

use crate::inbox::{Inbox, Reply, Request as Arrival};
use crate::model::Spares;
use crate::store::Store;
use crate::wire::{self, Agreed, Ask, Asked, Attr, Bytes};
use rustix::io::{Errno, IoSlice};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_core::{Op, Sector, Sectors};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

const ROOT: u64 = 1;
const FILE: u64 = 2;
/// Largest write (and read) in one request.
const TRANSFER_MAX: u32 = 1 << 20;
/// Requests the kernel keeps in flight for us: no less than the tags of a loop device (128).
const BACKGROUND_MAX: u16 = 256;
/// Buffers kept for reads to come.
const SPARES_MAX: usize = 256;
/// The protocol spoken: 7.31 (Linux 5.4) has all that is needed.
const MINOR: u32 = 31;

/// The way back to the kernel.
#[derive(Clone)]
pub struct Answers(pub Arc<OwnedFd>);

impl Answers {
    /// Sends one answer; the kernel does not want those of requests that were interrupted.
    pub fn send(&self, unique: u64, result: Result<&[u8], Errno>) {
        let (errno, body) = match result {
            Ok(body) => (0, body),
            Err(e) => (e.raw_os_error(), &[][..]),
        };
        let header = wire::header(unique, errno, body.len());
        let both = [IoSlice::new(&header), IoSlice::new(body)];
        let _ = rustix::io::writev(&*self.0, &both);
    }
}

/// The file system.
pub struct DiskFs {
    pub answers: Answers,
    pub inbox: Arc<Inbox>,
    pub store: Arc<Store>,
    pub spares: Spares,
    pub size: u64,
    pub name: &'static str,
    /// Has a volatile cache: fsync is a flush.
    pub write_cache: bool,
    /// Takes discards (a spinning disk does not).
    pub discards: bool,
    pub owner: (u32, u32),
    pub made: SystemTime,
}

/// Sectors that bytes `at..at + len` touch.
fn touched(at: u64, len: u64) -> (Sector, Sectors) {
    let first = at / SECTOR_BYTES;
    let end = (at + len).div_ceil(SECTOR_BYTES);
    (Sector(first), Sectors((end - first) as u32))
}

type Answer = Result<Bytes, Errno>;

impl DiskFs {
    /// Hears requests until the mount is gone.
    pub fn serve(&self) -> io::Result<()> {
        let mut buf = vec![0; TRANSFER_MAX as usize + wire::OVERHEAD];
        loop {
            let n = match rustix::io::read(&*self.answers.0, &mut buf[..]) {
                Ok(n) => n,
                // Unmounted.
                Err(Errno::NODEV) => return Ok(()),
                // A request that was taken back between announcing and reading it.
                Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => continue,
                Err(e) => return Err(e.into()),
            };
            let Some(asked) = wire::parse(&buf[..n]) else {
                continue;
            };
            if matches!(asked.ask, Ask::Destroy) {
                self.answers.send(asked.unique, Ok(&[]));
                return Ok(());
            }
            if let Some(answer) = self.hear(&asked) {
                let answer = answer.as_ref().map(|b| &b.0[..]).map_err(|e| *e);
                self.answers.send(asked.unique, answer);
            }
        }
    }

    /// The answer, unless it comes later or never.
    fn hear(&self, asked: &Asked<'_>) -> Option<Answer> {
        let node = asked.node;
        Some(match asked.ask {
            Ask::Init {
                major,
                readahead,
                flags,
                ..
            } => Ok(wire::init_out(&agree(major, readahead, flags))),
            Ask::Lookup(name) if node == ROOT && name == self.name => {
                Ok(wire::entry_out(&self.attr(FILE)))
            }
            Ask::Lookup(_) => Err(Errno::NOENT),
            Ask::Getattr if matches!(node, ROOT | FILE) => Ok(wire::attr_out(&self.attr(node))),
            Ask::Getattr => Err(Errno::NOENT),
            // O_TRUNC asks for size 0 and gets what a block device gives: nothing.
            Ask::Setattr { size } => match size {
                Some(n) if n != 0 && n != self.size => Err(Errno::INVAL),
                _ => Ok(wire::attr_out(&self.attr(node))),
            },
            Ask::Open if node == FILE => {
                let parallel = wire::open::PARALLEL_DIRECT_WRITES;
                let flags = wire::open::DIRECT_IO | wire::open::NOFLUSH | parallel;
                Ok(wire::open_out(flags))
            }
            Ask::Open => Ok(wire::open_out(0)),
            Ask::Read { at, len } => return self.read(asked, at, len),
            Ask::Write { at, data, flags } => return self.write(asked, at, data, flags),
            Ask::Fsync => return self.fsync(asked),
            Ask::Fallocate { at, len, mode } => return self.fallocate(asked, at, len, mode),
            Ask::Readdir { from, len } => Ok(self.names(from, len as usize)),
            Ask::Statfs => {
                let blocks = self.size / 4096;
                let free = blocks.saturating_sub(self.store.used_bytes() / 4096);
                Ok(wire::statfs_out(blocks, free))
            }
            Ask::Fine => Ok(Bytes::default()),
            Ask::Silent | Ask::Destroy => return None,
            Ask::Unknown => Err(Errno::NOSYS),
            Ask::Broken => Err(Errno::INVAL),
        })
    }

    fn attr(&self, node: u64) -> Attr {
        let made = self.made.duration_since(UNIX_EPOCH).unwrap_or_default();
        Attr {
            node,
            size: if node == FILE { self.size } else { 0 },
            dir: node != FILE,
            owner: self.owner,
            since_epoch: (made.as_secs(), made.subsec_nanos()),
        }
    }

    fn names(&self, from: u64, max: usize) -> Bytes {
        let entries = [
            (ROOT, true, "."),
            (ROOT, true, ".."),
            (FILE, false, self.name),
        ];
        let mut out = Bytes::default();
        for (i, (node, dir, name)) in (1..).zip(entries).skip(from as usize) {
            if !wire::dirent(&mut out, max, node, i, dir, name) {
                break;
            }
        }
        out
    }

    fn buffer(&self, len: usize) -> Vec<u8> {
        let mut spares = self.spares.lock().unwrap_or_else(PoisonError::into_inner);
        spares.truncate(SPARES_MAX);
        let mut buf = spares.pop().unwrap_or_default();
        drop(spares);
        buf.resize(len, 0);
        buf
    }

    fn read(&self, asked: &Asked<'_>, offset: u64, len: u32) -> Option<Answer> {
        let len = u64::from(len.min(TRANSFER_MAX)).min(self.size.saturating_sub(offset));
        if len == 0 {
            return Some(Ok(Bytes::default()));
        }
        let at = self.inbox.stamp();
        let mut buf = self.buffer(len as usize);
        if self.store.read(offset, &mut buf).is_err() {
            self.inbox.dismiss(at);
            return Some(Err(Errno::IO));
        }
        if self.inbox.null.load(Ordering::Acquire) {
            self.inbox.dismiss(at);
            return Some(Ok(Bytes(buf)));
        }
        let (sector, sectors) = touched(offset, len);
        self.inbox.push(Arrival {
            at,
            op: Op::Read,
            sector,
            sectors,
            durable: false,
            pid: asked.pid,
            unique: asked.unique,
            reply: Reply::Data(buf),
        });
        None
    }

    fn write(&self, asked: &Asked<'_>, offset: u64, data: &[u8], flags: u32) -> Option<Answer> {
        let len = (data.len() as u64).min(self.size.saturating_sub(offset));
        if len == 0 {
            return Some(match data.is_empty() {
                true => Ok(wire::write_out(0)),
                false => Err(Errno::NOSPC),
            });
        }
        let at = self.inbox.stamp();
        if let Err(e) = self.store.write(offset, &data[..len as usize]) {
            self.inbox.dismiss(at);
            let full = e.kind() == io::ErrorKind::StorageFull;
            return Some(Err(if full { Errno::NOSPC } else { Errno::IO }));
        }
        let (sector, sectors) = touched(offset, len);
        self.inbox.push(Arrival {
            at,
            op: Op::Write,
            sector,
            sectors,
            durable: flags & libc::O_DSYNC as u32 != 0,
            pid: asked.pid,
            unique: asked.unique,
            reply: Reply::Written(len as u32),
        });
        None
    }

    fn fsync(&self, asked: &Asked<'_>) -> Option<Answer> {
        if !self.write_cache || asked.node != FILE {
            return Some(Ok(Bytes::default()));
        }
        let at = self.inbox.stamp();
        self.inbox.push(Arrival {
            at,
            op: Op::Flush,
            sector: Sector(0),
            sectors: Sectors(0),
            durable: false,
            pid: asked.pid,
            unique: asked.unique,
            reply: Reply::Empty,
        });
        None
    }

    fn fallocate(&self, asked: &Asked<'_>, at: u64, len: u64, mode: u32) -> Option<Answer> {
        const KEEP: u32 = libc::FALLOC_FL_KEEP_SIZE as u32;
        const PUNCH: u32 = libc::FALLOC_FL_PUNCH_HOLE as u32 | KEEP;
        const ZERO: u32 = libc::FALLOC_FL_ZERO_RANGE as u32;
        let inside = at.checked_add(len).is_some_and(|end| end <= self.size);
        let op = match mode {
            PUNCH if self.discards => Op::Discard,
            m if self.discards && m & !KEEP == ZERO => Op::WriteZeroes,
            0 if inside => return Some(Ok(Bytes::default())),
            0 => return Some(Err(Errno::NOSPC)),
            _ => return Some(Err(Errno::OPNOTSUPP)),
        };
        if len == 0 || !inside {
            return Some(Err(Errno::INVAL));
        }
        // The data are gone at once, the model takes its time.
        let stamp = self.inbox.stamp();
        if self.store.punch(at, len).is_err() {
            self.inbox.dismiss(stamp);
            return Some(Err(Errno::IO));
        }
        let (sector, sectors) = touched(at, len);
        self.inbox.push(Arrival {
            at: stamp,
            op,
            sector,
            sectors,
            durable: false,
            pid: asked.pid,
            unique: asked.unique,
            reply: Reply::Empty,
        });
        None
    }
}

/// What both sides can. What a kernel lacks it lacks: without asynchronous direct I/O the disk is
/// slower than its model, which the largest number outstanding shows.
fn agree(_major: u32, readahead: u32, flags: u32) -> Agreed {
    let wanted = wire::init::ASYNC_DIO
        | wire::init::ASYNC_READ
        | wire::init::BIG_WRITES
        | wire::init::MAX_PAGES;
    Agreed {
        minor: MINOR,
        readahead,
        flags: flags & wanted,
        background: BACKGROUND_MAX,
        max_write: TRANSFER_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_touch_whole_sectors() {
        assert_eq!(touched(0, 512), (Sector(0), Sectors(1)));
        assert_eq!(touched(4096, 4096), (Sector(8), Sectors(8)));
        assert_eq!(touched(511, 2), (Sector(0), Sectors(2)));
        assert_eq!(touched(1000, 1), (Sector(1), Sectors(1)));
    }
}
