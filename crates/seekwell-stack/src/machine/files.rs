//! Tables of open files, mappings and AIO contexts.

use super::call::Ret;
use super::io::NIL;
use super::world::World;
use crate::memory::ReadAhead;
use seekwell_core::{Errno, List, OpenFlags};
use std::collections::VecDeque;

/// An open file. `ino` is [`NIL`] if the file was closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) ino: u32,
    pub(crate) flags: OpenFlags,
    pub(crate) ra: ReadAhead,
}

impl File {
    pub(crate) fn is_direct(&self) -> bool {
        self.flags.contains(OpenFlags::DIRECT)
    }
}

/// A mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    pub(crate) fd: u32,
    pub(crate) ino: u32,
    pub(crate) off: u64,
    pub(crate) len: u64,
}

/// An AIO context.
#[derive(Debug, Default)]
pub(crate) struct Aio {
    pub(crate) depth: u32,
    pub(crate) under_way: u32,
    pub(crate) done: VecDeque<(u64, Ret)>,
    pub(crate) wait: List,
}

/// Descriptor of the block device through its page cache. It is always open.
pub(crate) const DEVICE_FD: u32 = 0;
/// Descriptor of the block device without its page cache.
pub(crate) const DEVICE_DIRECT_FD: u32 = 1;

impl World {
    pub(crate) fn file(&self, fd: u32) -> Result<File, Errno> {
        let f = self.files.get(fd as usize).filter(|f| f.ino != NIL);
        f.copied().ok_or(Errno::EBADF)
    }
    /// Frees a descriptor.
    pub(crate) fn fd_free(&mut self, fd: u32) {
        self.files[fd as usize].ino = NIL;
        self.free_files.push(fd);
    }
    /// Decrements the open count of a file. Returns true if no descriptor refers to the file.
    pub(crate) fn file_closed(&mut self, f: &File) -> bool {
        let i = &mut self.fs.inodes[f.ino as usize];
        i.opens -= 1;
        i.writers -= u32::from(!f.flags.contains(OpenFlags::RDONLY));
        if i.opens == 0 && i.delayed == 0 {
            self.fs.alloc.drop_window(i);
        }
        i.opens == 0
    }
    pub(crate) fn file_new(&mut self, ino: u32, flags: OpenFlags) -> u32 {
        let i = &mut self.fs.inodes[ino as usize];
        i.opens += 1;
        i.writers += u32::from(!flags.contains(OpenFlags::RDONLY));
        let file = File {
            ino,
            flags,
            ra: ReadAhead::default(),
        };
        match self.free_files.pop() {
            Some(i) => {
                self.files[i as usize] = file;
                i
            }
            None => {
                self.files.push(file);
                (self.files.len() - 1) as u32
            }
        }
    }
}

/// Tells an AIO context that a group of bios has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notify {
    pub(crate) aio: u32,
    pub(crate) tag: u64,
    pub(crate) len: u64,
    /// Inode that stays in memory until the operation ends.
    pub(crate) ino: u32,
}

impl World {
    /// Completes an AIO operation whose bios have ended.
    pub(crate) fn aio_ended(&mut self, n: Notify, error: bool) {
        let ret = if error { Err(Errno::EIO) } else { Ok(n.len) };
        self.aio_done(n.aio, n.tag, ret);
        self.unpin_inode(n.ino);
    }
    /// Completes an AIO operation and wakes the tasks that wait for its context.
    pub(crate) fn aio_done(&mut self, aio: u32, tag: u64, ret: Ret) {
        let c = &mut self.aios[aio as usize];
        c.done.push_back((tag, ret));
        self.rt.wake_all(&mut c.wait);
    }
}
