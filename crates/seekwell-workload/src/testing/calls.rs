//! The test machine, with every call of the interface.

use super::task::{CALL_NS, Res, SYNC_NS, TestMachine};
use super::world::{BarrierState, ChannelState, File, LockState, Node};
use crate::fail::{Fail, Outcome};
use crate::machine::{
    Aio, AioDone, AioOp, AioRequest, Barrier, Channel, Entry, Facts, Fd, How, Join, Lock, Machine,
    Map,
};
use crate::note::Note;
use seekwell_core::rng::Pcg64Mcg;
use seekwell_core::{Access, Advice, CgroupId, Errno, Instant, Nanos, OpenFlags, Stat, SyncRange};
use std::future::Future;
use std::rc::Rc;

impl Machine for TestMachine {
    fn now(&self) -> Instant {
        self.world.borrow().now
    }
    fn rng(&mut self) -> &mut Pcg64Mcg {
        &mut self.rng
    }
    fn facts(&self) -> Facts {
        Facts {
            cpus: 4,
            cache_bytes: 3 << 30,
        }
    }
    async fn compute(&mut self, d: Nanos) -> Res {
        if d == Nanos::ZERO {
            return Ok(());
        }
        self.sleep(d).await
    }
    async fn sleep(&mut self, d: Nanos) -> Res {
        self.stopped()?;
        self.pass(d.0).await;
        self.stopped()
    }

    async fn open(&mut self, path: &str, how: OpenFlags) -> Res<Fd> {
        self.path_call("open", path).await?;
        if !self.parent_exists(path) {
            return Err(Errno::ENOENT);
        }
        let ino = match self.node(path) {
            Some(Node::Dir) if how.contains(OpenFlags::DIRECTORY) => usize::MAX,
            Some(Node::Dir) => return Err(Errno::EISDIR),
            Some(Node::File(_)) if how.contains(OpenFlags::DIRECTORY) => {
                return Err(Errno::ENOTDIR);
            }
            Some(Node::File(_)) if how.contains(OpenFlags::CREATE | OpenFlags::EXCL) => {
                return Err(Errno::EEXIST);
            }
            Some(Node::File(ino)) => ino,
            None if how.contains(OpenFlags::CREATE) => {
                let mut w = self.world.borrow_mut();
                w.inodes.push(0);
                let ino = w.inodes.len() - 1;
                w.nodes.insert(path.to_owned(), Node::File(ino));
                ino
            }
            None => return Err(Errno::ENOENT),
        };
        if how.contains(OpenFlags::TRUNC) {
            self.world.borrow_mut().set_len(ino, 0);
        }
        Ok(self.add_file(File {
            ino,
            path: path.into(),
            flags: how,
            device: false,
        }))
    }
    async fn close(&mut self, fd: Fd) -> Res {
        self.fd_call("close", fd, 0, 0, CALL_NS).await?;
        self.world.borrow_mut().files[fd.0 as usize] = None;
        Ok(())
    }
    async fn read(&mut self, fd: Fd, off: u64, len: u32) -> Res<u32> {
        let len64 = u64::from(len);
        self.fd_call("read", fd, off, len64, CALL_NS + len64)
            .await?;
        self.aligned(fd, off, len64)?;
        let (ino, _, device) = self.file(fd)?;
        let left = self.length(ino, device).saturating_sub(off);
        Ok(u32::try_from(left).unwrap_or(u32::MAX).min(len))
    }
    async fn write(&mut self, fd: Fd, off: u64, len: u32) -> Res<u32> {
        let len64 = u64::from(len);
        self.fd_call("write", fd, off, len64, CALL_NS + len64)
            .await?;
        self.aligned(fd, off, len64)?;
        let (ino, flags, device) = self.file(fd)?;
        if flags.contains(OpenFlags::APPEND) {
            return Err(Errno::EINVAL);
        }
        if flags.contains(OpenFlags::RDONLY) {
            return Err(Errno::EBADF);
        }
        if !device {
            self.grow(ino, off + len64)?;
        }
        Ok(len)
    }
    async fn append(&mut self, fd: Fd, len: u32) -> Res<u32> {
        let len64 = u64::from(len);
        let (ino, _, _) = self.file(fd)?;
        let end = self.length(ino, false);
        self.fd_call("append", fd, end, len64, CALL_NS + len64)
            .await?;
        self.grow(ino, self.length(ino, false) + len64)?;
        Ok(len)
    }
    async fn fsync(&mut self, fd: Fd) -> Res {
        self.fd_call("fsync", fd, 0, 0, SYNC_NS).await
    }
    async fn fdatasync(&mut self, fd: Fd) -> Res {
        self.fd_call("fdatasync", fd, 0, 0, SYNC_NS).await
    }
    async fn sync_range(&mut self, fd: Fd, off: u64, len: u64, _: SyncRange) -> Res {
        self.fd_call("sync_range", fd, off, len, CALL_NS).await
    }
    async fn syncfs(&mut self) -> Res {
        self.path_call("syncfs", ".").await
    }
    async fn truncate(&mut self, fd: Fd, len: u64) -> Res {
        self.fd_call("truncate", fd, 0, len, CALL_NS).await?;
        let (ino, _, _) = self.file(fd)?;
        self.grow(ino, len)?;
        self.world.borrow_mut().set_len(ino, len);
        Ok(())
    }
    async fn fallocate(&mut self, fd: Fd, off: u64, len: u64) -> Res {
        self.fd_call("fallocate", fd, off, len, CALL_NS).await?;
        let (ino, _, _) = self.file(fd)?;
        self.grow(ino, off + len)
    }
    async fn fadvise(&mut self, fd: Fd, off: u64, len: u64, _: Advice) -> Res {
        self.fd_call("fadvise", fd, off, len, CALL_NS).await
    }
    async fn rename(&mut self, from: &str, to: &str) -> Res {
        self.path_call("rename", from).await?;
        if !self.parent_exists(to) {
            return Err(Errno::ENOENT);
        }
        let node = self.node(from).ok_or(Errno::ENOENT)?;
        if let Some(Node::File(old)) = self.node(to) {
            self.world.borrow_mut().set_len(old, 0);
        }
        let mut w = self.world.borrow_mut();
        w.nodes.remove(from);
        w.nodes.insert(to.to_owned(), node);
        Ok(())
    }
    async fn unlink(&mut self, path: &str) -> Res {
        self.path_call("unlink", path).await?;
        match self.node(path) {
            None => Err(Errno::ENOENT),
            Some(Node::Dir) => Err(Errno::EISDIR),
            Some(Node::File(ino)) => {
                let mut w = self.world.borrow_mut();
                w.nodes.remove(path);
                w.set_len(ino, 0);
                Ok(())
            }
        }
    }
    async fn mkdir(&mut self, path: &str) -> Res {
        self.path_call("mkdir", path).await?;
        if !self.parent_exists(path) {
            return Err(Errno::ENOENT);
        }
        let mut w = self.world.borrow_mut();
        if w.nodes.contains_key(path) {
            return Err(Errno::EEXIST);
        }
        w.nodes.insert(path.to_owned(), Node::Dir);
        Ok(())
    }
    async fn rmdir(&mut self, path: &str) -> Res {
        self.path_call("rmdir", path).await?;
        let mut w = self.world.borrow_mut();
        let prefix = format!("{path}/");
        let below = w.nodes.range(prefix.clone()..).next();
        if below.is_some_and(|n| n.0.starts_with(&prefix)) {
            return Err(Errno::ENOTEMPTY);
        }
        match w.nodes.remove(path) {
            Some(Node::Dir) => Ok(()),
            _ => Err(Errno::ENOENT),
        }
    }
    async fn readdir(&mut self, path: &str) -> Res<Vec<Entry>> {
        self.path_call("readdir", path).await?;
        if self.node(path) != Some(Node::Dir) {
            return Err(Errno::ENOENT);
        }
        let w = self.world.borrow();
        let prefix = format!("{path}/");
        let inside = w.nodes.range(prefix.clone()..);
        let inside = inside.take_while(|n| n.0.starts_with(&prefix));
        let mut all: Vec<Entry> = inside
            .map(|(name, node)| (&name[prefix.len()..], *node == Node::Dir))
            .filter(|(name, _)| !name.contains('/'))
            .map(|(name, dir)| Entry {
                name: name.to_owned(),
                dir,
            })
            .collect();
        // The order is not that of names, as in a hashed directory.
        all.sort_by_key(|e| e.name.bytes().rev().collect::<Vec<u8>>());
        Ok(all)
    }
    async fn stat(&mut self, path: &str) -> Res<Stat> {
        self.path_call("stat", path).await?;
        let (ino, dir) = match self.node(path) {
            None => return Err(Errno::ENOENT),
            Some(Node::Dir) => (0, true),
            Some(Node::File(ino)) => (ino, false),
        };
        let len = if dir { 0 } else { self.length(ino, false) };
        Ok(Stat {
            len,
            dir,
            ..Stat::default()
        })
    }
    async fn fstat(&mut self, fd: Fd) -> Res<Stat> {
        self.fd_call("fstat", fd, 0, 0, CALL_NS).await?;
        let (ino, _, device) = self.file(fd)?;
        Ok(Stat {
            len: self.length(ino, device),
            ..Stat::default()
        })
    }
    async fn drop_caches(&mut self) -> Res {
        self.path_call("drop_caches", ".").await
    }

    async fn map(&mut self, fd: Fd, off: u64, len: u64) -> Res<Map> {
        self.fd_call("map", fd, off, len, CALL_NS).await?;
        let mut w = self.world.borrow_mut();
        w.maps.push(fd.0 as usize);
        Ok(Map((w.maps.len() - 1) as u32))
    }
    async fn touch(&mut self, map: Map, off: u64, len: u64, _: Access) -> Res {
        let fd = self.world.borrow().maps.get(map.0 as usize).copied();
        let fd = Fd(fd.ok_or(Errno::EINVAL)? as u32);
        self.fd_call("touch", fd, off, len, CALL_NS).await
    }
    async fn msync(&mut self, map: Map, off: u64, len: u64) -> Res {
        let fd = self.world.borrow().maps.get(map.0 as usize).copied();
        let fd = Fd(fd.ok_or(Errno::EINVAL)? as u32);
        self.fd_call("msync", fd, off, len, SYNC_NS).await
    }
    async fn unmap(&mut self, map: Map) -> Res {
        let known = self.world.borrow().maps.len() > map.0 as usize;
        if known { Ok(()) } else { Err(Errno::EINVAL) }
    }

    async fn aio(&mut self, depth: u32) -> Res<Aio> {
        if !(1..=4096).contains(&depth) {
            return Err(Errno::EINVAL);
        }
        let mut w = self.world.borrow_mut();
        w.aios.push((depth as usize, Default::default()));
        Ok(Aio((w.aios.len() - 1) as u32))
    }
    async fn aio_submit(&mut self, aio: Aio, what: &[AioRequest]) -> Res {
        let (depth, out) = {
            let w = self.world.borrow();
            let a = w.aios.get(aio.0 as usize).ok_or(Errno::EINVAL)?;
            (a.0, a.1.len())
        };
        if out + what.len() > depth {
            return Err(Errno::EAGAIN);
        }
        let n = what.len() as u64;
        self.log("aio_submit", n)?;
        for r in what {
            // The operations are executed one after another, and each takes the time of a call.
            // There is no device on which they could overlap.
            let result = match r.op {
                AioOp::Read => self.read(r.fd, r.off, r.len).await,
                AioOp::Write => self.write(r.fd, r.off, r.len).await,
                AioOp::Fsync => self.fsync(r.fd).await.map(|()| 0),
                AioOp::Fdatasync => self.fdatasync(r.fd).await.map(|()| 0),
            };
            if result == Err(Errno::ECANCELED) {
                return Err(Errno::ECANCELED);
            }
            let done = AioDone { tag: r.tag, result };
            self.world.borrow_mut().aios[aio.0 as usize]
                .1
                .push_back(done);
        }
        Ok(())
    }
    async fn aio_reap(&mut self, aio: Aio, min: usize, out: &mut Vec<AioDone>) -> Res {
        self.stopped()?;
        let mut w = self.world.borrow_mut();
        let a = w.aios.get_mut(aio.0 as usize).ok_or(Errno::EINVAL)?;
        // Return only the requested number of completions, because a script must not rely on more.
        let n = min.max(1).min(a.1.len());
        out.extend(a.1.drain(..n));
        Ok(())
    }
    async fn aio_close(&mut self, aio: Aio) -> Res {
        let mut w = self.world.borrow_mut();
        let a = w.aios.get_mut(aio.0 as usize).ok_or(Errno::EINVAL)?;
        a.1.clear();
        Ok(())
    }

    async fn open_device(&mut self, how: OpenFlags) -> Res<Fd> {
        self.path_call("open_device", "device").await?;
        if self.world.borrow().device == 0 {
            return Err(Errno::ENODEV);
        }
        Ok(self.add_file(File {
            ino: usize::MAX,
            path: Rc::from("device"),
            flags: how,
            device: true,
        }))
    }
    async fn discard(&mut self, fd: Fd, off: u64, len: u64) -> Res {
        self.fd_call("discard", fd, off, len, CALL_NS).await
    }

    async fn cgroup(&mut self, _: CgroupId, _: u32) -> Res<CgroupId> {
        Err(Errno::EOPNOTSUPP)
    }
    async fn spawn<F, Fut>(&mut self, how: How, script: F) -> Res<Join>
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = Outcome> + 'static,
    {
        self.path_call("spawn", &how.name).await?;
        let path = {
            let w = self.world.borrow();
            let path = format!("{}/{}", w.tasks[self.task].path, how.name);
            let taken = w
                .tasks
                .iter()
                .any(|t| t.path == path && t.outcome.is_none());
            assert!(!taken, "two tasks are called {path}");
            path
        };
        let child = TestMachine::new(self.world.clone(), path);
        let id = child.task;
        let future = Box::pin(script(child));
        self.world.borrow_mut().start(id, future);
        Ok(Join(id as u32))
    }
    async fn join(&mut self, task: Join) -> Outcome {
        let id = task.0 as usize;
        loop {
            {
                let mut w = self.world.borrow_mut();
                match w.tasks.get_mut(id) {
                    None => {
                        return Err(Fail {
                            what: "wait for a task".into(),
                            errno: Errno::EINVAL,
                        });
                    }
                    Some(t) => {
                        if let Some(o) = &t.outcome {
                            return o.clone();
                        }
                        t.joiners.push(self.task);
                    }
                }
            }
            self.park().await;
        }
    }

    fn lock(&mut self) -> Lock {
        let mut w = self.world.borrow_mut();
        w.locks.push(LockState::default());
        Lock((w.locks.len() - 1) as u32)
    }
    async fn acquire(&mut self, lock: Lock) -> Res {
        self.stopped()?;
        {
            let mut w = self.world.borrow_mut();
            let l = &mut w.locks[lock.0 as usize];
            if !l.held {
                l.held = true;
                return Ok(());
            }
            l.queue.push_back(self.task);
        }
        self.wait().await
    }
    fn release(&mut self, lock: Lock) {
        let mut w = self.world.borrow_mut();
        let l = &mut w.locks[lock.0 as usize];
        assert!(l.held, "a lock is released that nobody holds");
        match l.queue.pop_front() {
            Some(next) => w.wake(next),
            None => l.held = false,
        }
    }
    fn barrier(&mut self, tasks: u32) -> Barrier {
        let mut w = self.world.borrow_mut();
        w.barriers.push(BarrierState {
            size: tasks.max(1) as usize,
            here: Vec::new(),
        });
        Barrier((w.barriers.len() - 1) as u32)
    }
    async fn arrive(&mut self, barrier: Barrier) -> Res {
        self.stopped()?;
        {
            let mut w = self.world.borrow_mut();
            let b = &mut w.barriers[barrier.0 as usize];
            b.here.push(self.task);
            if b.here.len() == b.size {
                for t in std::mem::take(&mut b.here) {
                    w.wake(t);
                }
            }
        }
        self.wait().await
    }
    fn channel(&mut self, room: u32) -> Channel {
        let mut w = self.world.borrow_mut();
        w.channels.push(ChannelState {
            room: room.max(1) as usize,
            items: Default::default(),
            ended: false,
            senders: Default::default(),
            receivers: Default::default(),
        });
        Channel((w.channels.len() - 1) as u32)
    }
    async fn send(&mut self, channel: Channel, value: u64) -> Res {
        loop {
            self.stopped()?;
            {
                let mut w = self.world.borrow_mut();
                let c = &mut w.channels[channel.0 as usize];
                if c.ended {
                    return Err(Errno::EBADF);
                }
                if c.items.len() < c.room {
                    c.items.push_back(value);
                    if let Some(t) = c.receivers.pop_front() {
                        w.wake(t);
                    }
                    return Ok(());
                }
                c.senders.push_back(self.task);
            }
            self.wait().await?;
        }
    }
    async fn recv(&mut self, channel: Channel) -> Res<Option<u64>> {
        loop {
            self.stopped()?;
            {
                let mut w = self.world.borrow_mut();
                let c = &mut w.channels[channel.0 as usize];
                if let Some(v) = c.items.pop_front() {
                    if let Some(t) = c.senders.pop_front() {
                        w.wake(t);
                    }
                    return Ok(Some(v));
                }
                if c.ended {
                    return Ok(None);
                }
                c.receivers.push_back(self.task);
            }
            self.wait().await?;
        }
    }
    fn end_channel(&mut self, channel: Channel) {
        let mut w = self.world.borrow_mut();
        let c = &mut w.channels[channel.0 as usize];
        c.ended = true;
        let mut waiting: Vec<usize> = c.receivers.drain(..).collect();
        waiting.extend(c.senders.drain(..));
        for t in waiting {
            w.wake(t);
        }
    }

    fn note(&mut self, note: Note) {
        let mut w = self.world.borrow_mut();
        let task = self.task;
        w.measures.note(task, &note);
    }
}
