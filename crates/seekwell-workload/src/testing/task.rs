//! A task of the test machine, and the helper functions of its calls.

use super::world::{File, Node, Shared};
use crate::machine::Fd;
use seekwell_core::rng::{Pcg64Mcg, stream};
use seekwell_core::{Errno, Nanos, OpenFlags};
use std::future::poll_fn;
use std::task::Poll;

/// The machine object of a task.
pub struct TestMachine {
    pub(super) world: Shared,
    pub(super) task: usize,
    pub(super) rng: Pcg64Mcg,
}

pub(super) type Res<T = ()> = Result<T, Errno>;

/// Time of a call in ns, in addition to 1 ns per copied byte.
pub(super) const CALL_NS: u64 = 1_000;
/// Time of a sync in ns.
pub(super) const SYNC_NS: u64 = 100_000;

impl TestMachine {
    pub(super) fn new(world: Shared, path: String) -> Self {
        let (task, seed) = {
            let mut w = world.borrow_mut();
            (w.add_task(path.clone()), w.seed)
        };
        TestMachine {
            world,
            task,
            rng: stream(seed, &path),
        }
    }
    pub(super) fn task(&self) -> usize {
        self.task
    }

    /// Suspends this task until the executor resumes it.
    pub(super) async fn park(&self) {
        let mut parked = false;
        poll_fn(|_| {
            if std::mem::replace(&mut parked, true) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
    /// Advances the time of this task by `ns`.
    pub(super) async fn pass(&self, ns: u64) {
        {
            let mut w = self.world.borrow_mut();
            let at = w.now + Nanos(ns);
            w.wake_at(self.task, at);
        }
        self.park().await;
    }
    pub(super) async fn path_call(&self, name: &'static str, path: &str) -> Res {
        let parts: Vec<&str> = path.split('/').collect();
        if path.starts_with('/') || parts.iter().any(|p| p.is_empty() || *p == "..") {
            return Err(Errno::EINVAL);
        }
        self.world
            .borrow_mut()
            .call(self.task, name, path.into(), 0, 0)?;
        self.pass(CALL_NS).await;
        Ok(())
    }
    /// Logs a call that takes no time.
    pub(super) fn log(&self, name: &'static str, len: u64) -> Res {
        self.world
            .borrow_mut()
            .call(self.task, name, "".into(), 0, len)
    }
    pub(super) async fn fd_call(
        &self,
        name: &'static str,
        fd: Fd,
        off: u64,
        len: u64,
        ns: u64,
    ) -> Res {
        {
            let mut w = self.world.borrow_mut();
            let path = match w.files.get(fd.0 as usize) {
                Some(Some(f)) => f.path.clone(),
                _ => return Err(Errno::EBADF),
            };
            w.call(self.task, name, path, off, len)?;
        }
        self.pass(ns).await;
        Ok(())
    }
    pub(super) fn node(&self, path: &str) -> Option<Node> {
        self.world.borrow().nodes.get(path).copied()
    }
    pub(super) fn parent_exists(&self, path: &str) -> bool {
        match path.rsplit_once('/') {
            None => true,
            Some((dir, _)) => self.node(dir) == Some(Node::Dir),
        }
    }
    /// Returns the inode, the flags, and true if the file is the raw device.
    pub(super) fn file(&self, fd: Fd) -> Res<(usize, OpenFlags, bool)> {
        match self.world.borrow().files.get(fd.0 as usize) {
            Some(Some(f)) => Ok((f.ino, f.flags, f.device)),
            _ => Err(Errno::EBADF),
        }
    }
    pub(super) fn aligned(&self, fd: Fd, off: u64, len: u64) -> Res {
        let (_, flags, _) = self.file(fd)?;
        let odd = !(off | len).is_multiple_of(512);
        if flags.contains(OpenFlags::DIRECT) && odd {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }
    pub(super) fn length(&self, ino: usize, device: bool) -> u64 {
        let w = self.world.borrow();
        if device { w.device } else { w.inodes[ino] }
    }
    pub(super) fn grow(&self, ino: usize, end: u64) -> Res {
        let mut w = self.world.borrow_mut();
        let len = w.inodes[ino];
        if end > len {
            if w.used + (end - len) > w.capacity {
                return Err(Errno::ENOSPC);
            }
            w.set_len(ino, end);
        }
        Ok(())
    }
    pub(super) fn add_file(&self, file: File) -> Fd {
        let mut w = self.world.borrow_mut();
        w.files.push(Some(file));
        Fd((w.files.len() - 1) as u32)
    }
    pub(super) async fn wait(&self) -> Res {
        self.park().await;
        if self.world.borrow().stopped {
            Err(Errno::ECANCELED)
        } else {
            Ok(())
        }
    }
    pub(super) fn stopped(&self) -> Res {
        if self.world.borrow().stopped {
            Err(Errno::ECANCELED)
        } else {
            Ok(())
        }
    }
}
