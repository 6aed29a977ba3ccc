//! [`Machine`] in the simulated world. A call goes to the kernel model, and the task sleeps until
//! the call returns.

use super::exec::{Queue, Shared, Wait, World};
use super::paths::path;
use super::phase;
use super::programs::Program;
use super::sync::{Answer, Task};
use super::whole::Step;
use seekwell_core::rng::{Pcg64Mcg, stream};
use seekwell_core::{
    Access, Advice, CgroupId, Control, Errno, Instant, Nanos, OpenFlags, Stat, SyncRange,
};
use seekwell_stack::{AioId, Call, MapId};
use seekwell_workload::{
    Aio, AioDone, AioOp, AioRequest, Barrier, Channel, Context, Entry, Facts, Fd, How, Join, Lock,
    Machine, Map, Note, Outcome, Tally,
};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

/// Bit that marks descriptors of the raw device. The other bits are the open flags.
const RAW: u32 = 1 << 31;

/// The modelled machine, as one task uses it.
pub struct SimMachine {
    world: Shared,
    task: Task,
    program: Program,
    part: usize,
    rng: Pcg64Mcg,
    facts: Facts,
    tally: Tally,
}

/// Bit that marks descriptors of directories. The other bits are an index into the table of paths.
const DIR: u32 = 1 << 30;

fn fd(f: Fd) -> Result<seekwell_stack::Fd, Errno> {
    if f.0 & (RAW | DIR) == 0 {
        Ok(seekwell_stack::Fd(f.0))
    } else {
        Err(Errno::EINVAL)
    }
}

/// Returns the open flags of a descriptor of the raw device.
fn raw(f: Fd) -> Option<OpenFlags> {
    (f.0 & RAW != 0).then(|| OpenFlags::from_bits_truncate(f.0 as u16))
}

impl SimMachine {
    pub(super) fn new(world: &Shared, task: Task) -> Self {
        let w = world.borrow();
        SimMachine {
            task,
            program: w.program(task),
            part: w.part(task),
            rng: stream(w.seed, w.path(task)),
            facts: w.facts,
            tally: Tally::default(),
            world: Rc::clone(world),
        }
    }
    /// Makes a call, even if the run is stopped.
    #[inline]
    async fn always(&mut self, call: Call) -> Result<u64, Errno> {
        self.world.borrow_mut().call(self.task, call);
        self.answered().await
    }
    /// Waits for the result of the active call.
    #[inline]
    async fn answered(&mut self) -> Result<u64, Errno> {
        poll_fn(|_| match self.world.borrow_mut().ret(self.task) {
            Some(r) => Poll::Ready(r),
            None => Poll::Pending,
        })
        .await
    }
    #[inline]
    async fn call(&mut self, call: Call) -> Result<u64, Errno> {
        self.world.borrow().going()?;
        self.always(call).await
    }
    async fn unit(&mut self, call: Call) -> Result<(), Errno> {
        self.call(call).await.map(|_| ())
    }
    /// Makes a call that may have to wait for another task.
    async fn sync(
        &mut self,
        wait: Wait,
        ask: impl FnOnce(&mut World, Task) -> Option<Answer>,
    ) -> Answer {
        {
            let w = &mut *self.world.borrow_mut();
            w.going()?;
            let now = ask(w, self.task);
            w.wake();
            match now {
                Some(a) => return a,
                None => w.wait(self.task, wait),
            }
        }
        poll_fn(|_| match self.world.borrow_mut().answer(self.task) {
            Some(a) => Poll::Ready(a),
            None => Poll::Pending,
        })
        .await
    }
    /// Opens a directory for fsync. Only its path is stored.
    async fn open_directory(&mut self, path: Box<str>) -> Result<Fd, Errno> {
        self.always(Call::Stat { path: path.clone() }).await?;
        let mut w = self.world.borrow_mut();
        if !w.kernel.outcome(w.tid(self.task)).stat.dir {
            return Err(Errno::ENOTDIR);
        }
        let known = w.directories.iter().position(|d| *d == path);
        let n = known.unwrap_or_else(|| {
            w.directories.push(path);
            w.directories.len() - 1
        });
        Ok(Fd(DIR | n as u32))
    }
    fn directory(&self, f: Fd) -> Result<Box<str>, Errno> {
        let w = self.world.borrow();
        let d = w.directories.get((f.0 & !DIR) as usize);
        d.cloned().ok_or(Errno::EBADF)
    }
    fn read_done(&mut self, n: u64) -> u32 {
        let clock = self.world.borrow().measures.clock();
        self.tally.read(clock, n);
        n as u32
    }
    fn write_done(&mut self, n: u64) -> u32 {
        let clock = self.world.borrow().measures.clock();
        self.tally.written(clock, n);
        n as u32
    }
}

impl Drop for SimMachine {
    fn drop(&mut self) {
        // If the run of a world failed, the world may still be borrowed while its scripts are
        // dropped.
        if let Ok(mut w) = self.world.try_borrow_mut() {
            if let Some(whole) = w.whole(self.task).take() {
                self.tally = whole.tally;
            }
            let moved = self.tally.moved(w.measures.clock());
            w.leave(self.task, moved);
        }
    }
}

impl Machine for SimMachine {
    fn now(&self) -> Instant {
        self.world.borrow().time_of(self.program)
    }
    fn rng(&mut self) -> &mut Pcg64Mcg {
        &mut self.rng
    }
    fn facts(&self) -> Facts {
        self.facts
    }
    async fn compute(&mut self, d: Nanos) -> Result<(), Errno> {
        self.unit(Call::Compute(d)).await
    }
    async fn sleep(&mut self, d: Nanos) -> Result<(), Errno> {
        self.unit(Call::Sleep(d)).await
    }

    async fn open(&mut self, name: &str, how: OpenFlags) -> Result<Fd, Errno> {
        if how.contains(OpenFlags::DIRECTORY) {
            let path = path(name)?;
            self.world.borrow().going()?;
            return self.open_directory(path).await;
        }
        self.world.borrow_mut().open(self.task, name, how)?;
        self.answered().await.map(|n| Fd(n as u32))
    }
    async fn read_whole(&mut self, name: &str, chunk: u32) -> Outcome<bool> {
        let tally = self.tally;
        let begun = (self.world.borrow_mut()).read_whole(self.task, name, chunk, tally);
        begun.doing(|| format!("open {name}"))?;
        let ended = poll_fn(|_| {
            let mut world = self.world.borrow_mut();
            match world.whole_done(self.task, &mut self.tally) {
                Some(ended) => Poll::Ready(ended),
                None => Poll::Pending,
            }
        })
        .await;
        match ended {
            Ok(()) => Ok(true),
            Err((Step::Open, Errno::ENOENT)) => Ok(false),
            Err((step, e)) => Err(e).doing(|| match step {
                Step::Open => format!("open {name}"),
                Step::Read(off) => format!("read {chunk} bytes at {off} of {name}"),
                Step::Close => format!("close {name}"),
            }),
        }
    }
    async fn close(&mut self, f: Fd) -> Result<(), Errno> {
        if f.0 & (RAW | DIR) != 0 {
            return Ok(());
        }
        self.always(Call::Close { fd: fd(f)? }).await.map(|_| ())
    }
    async fn read(&mut self, f: Fd, off: u64, len: u32) -> Result<u32, Errno> {
        let len = u64::from(len);
        let call = match raw(f) {
            Some(how) => Call::RawRead {
                off,
                len,
                direct: how.contains(OpenFlags::DIRECT),
            },
            None => Call::Read {
                fd: fd(f)?,
                off,
                len,
            },
        };
        let n = self.call(call).await?;
        Ok(self.read_done(n))
    }
    async fn write(&mut self, f: Fd, off: u64, len: u32) -> Result<u32, Errno> {
        let len = u64::from(len);
        let call = match raw(f) {
            Some(how) if how.contains(OpenFlags::RDONLY) => return Err(Errno::EBADF),
            Some(how) => Call::RawWrite {
                off,
                len,
                direct: how.contains(OpenFlags::DIRECT),
            },
            None => Call::Write {
                fd: fd(f)?,
                off,
                len,
            },
        };
        let n = self.call(call).await?;
        Ok(self.write_done(n))
    }
    async fn append(&mut self, f: Fd, len: u32) -> Result<u32, Errno> {
        let call = Call::Append {
            fd: fd(f)?,
            len: u64::from(len),
        };
        let n = self.call(call).await?;
        Ok(self.write_done(n))
    }
    async fn fsync(&mut self, f: Fd) -> Result<(), Errno> {
        let call = match raw(f) {
            Some(_) => Call::RawFlush,
            None if f.0 & DIR != 0 => Call::FsyncDir {
                path: self.directory(f)?,
            },
            None => Call::Fsync { fd: fd(f)? },
        };
        self.unit(call).await
    }
    async fn fdatasync(&mut self, f: Fd) -> Result<(), Errno> {
        let call = match raw(f) {
            Some(_) => Call::RawFlush,
            None if f.0 & DIR != 0 => Call::FsyncDir {
                path: self.directory(f)?,
            },
            None => Call::Fdatasync { fd: fd(f)? },
        };
        self.unit(call).await
    }
    async fn sync_range(&mut self, f: Fd, off: u64, len: u64, how: SyncRange) -> Result<(), Errno> {
        let fd = fd(f)?;
        self.unit(Call::SyncRange { fd, off, len, how }).await
    }
    async fn syncfs(&mut self) -> Result<(), Errno> {
        self.unit(Call::Syncfs).await
    }
    async fn truncate(&mut self, f: Fd, len: u64) -> Result<(), Errno> {
        self.unit(Call::Truncate { fd: fd(f)?, len }).await
    }
    async fn fallocate(&mut self, f: Fd, off: u64, len: u64) -> Result<(), Errno> {
        let fd = fd(f)?;
        self.unit(Call::Fallocate { fd, off, len }).await
    }
    async fn fadvise(&mut self, f: Fd, off: u64, len: u64, advice: Advice) -> Result<(), Errno> {
        if raw(f).is_some() {
            return self.world.borrow().going();
        }
        let fd = fd(f)?;
        let call = Call::Fadvise {
            fd,
            off,
            len,
            advice,
        };
        self.unit(call).await
    }
    async fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        let (from, to) = (path(from)?, path(to)?);
        self.unit(Call::Rename { from, to }).await
    }
    async fn unlink(&mut self, name: &str) -> Result<(), Errno> {
        let call = Call::Unlink { path: path(name)? };
        self.always(call).await.map(|_| ())
    }
    async fn mkdir(&mut self, name: &str) -> Result<(), Errno> {
        self.unit(Call::Mkdir { path: path(name)? }).await
    }
    async fn rmdir(&mut self, name: &str) -> Result<(), Errno> {
        let call = Call::Rmdir { path: path(name)? };
        self.always(call).await.map(|_| ())
    }
    async fn readdir(&mut self, name: &str) -> Result<Vec<Entry>, Errno> {
        self.always(Call::Readdir { path: path(name)? }).await?;
        let w = self.world.borrow();
        let got = w.kernel.outcome(w.tid(self.task));
        let entry = |(name, dir): (Box<str>, bool)| Entry {
            name: name.into_string(),
            dir,
        };
        Ok(got.names.into_iter().zip(got.dirs).map(entry).collect())
    }
    async fn stat(&mut self, name: &str) -> Result<Stat, Errno> {
        self.always(Call::Stat { path: path(name)? }).await?;
        let w = self.world.borrow();
        Ok(w.kernel.outcome(w.tid(self.task)).stat)
    }
    async fn fstat(&mut self, f: Fd) -> Result<Stat, Errno> {
        let w = self.world.borrow();
        if raw(f).is_some() {
            return Ok(Stat {
                len: w.capacity.0 * seekwell_core::units::SECTOR_BYTES,
                ..Stat::default()
            });
        }
        drop(w);
        let call = match f.0 & DIR {
            0 => Call::Fstat { fd: fd(f)? },
            _ => Call::Stat {
                path: self.directory(f)?,
            },
        };
        self.always(call).await?;
        let w = self.world.borrow();
        Ok(w.kernel.outcome(w.tid(self.task)).stat)
    }
    async fn hold_memory(&mut self, bytes: u64) -> Result<(), Errno> {
        self.unit(Call::Hold { bytes }).await
    }
    async fn drop_caches(&mut self) -> Result<(), Errno> {
        let own = self.world.borrow().directory_of(self.program);
        match own {
            // A background program must not drop the cached pages of other programs.
            Some(directory) => self.drop_own(directory).await,
            None => self.unit(Call::DropCaches).await,
        }
    }

    async fn map(&mut self, f: Fd, off: u64, len: u64) -> Result<Map, Errno> {
        let fd = fd(f)?;
        let n = self.call(Call::Map { fd, off, len }).await?;
        Ok(Map(n as u32))
    }
    async fn touch(&mut self, map: Map, off: u64, len: u64, how: Access) -> Result<(), Errno> {
        let call = Call::Touch {
            map: MapId(map.0),
            off,
            len,
            access: how,
        };
        self.unit(call).await
    }
    async fn msync(&mut self, map: Map, off: u64, len: u64) -> Result<(), Errno> {
        let map = MapId(map.0);
        self.unit(Call::Msync { map, off, len }).await
    }
    async fn unmap(&mut self, map: Map) -> Result<(), Errno> {
        let map = MapId(map.0);
        self.always(Call::Unmap { map }).await.map(|_| ())
    }

    async fn aio(&mut self, depth: u32) -> Result<Aio, Errno> {
        if !(1..=4096).contains(&depth) {
            return Err(Errno::EINVAL);
        }
        let n = self.call(Call::AioNew { depth }).await? as u32;
        self.world.borrow_mut().queues.insert(n, Queue::new(depth));
        Ok(Aio(n))
    }
    async fn aio_submit(&mut self, aio: Aio, what: &[AioRequest]) -> Result<(), Errno> {
        {
            let w = &mut *self.world.borrow_mut();
            w.going()?;
            let tid = w.tid(self.task);
            w.kernel.batch(tid);
            let q = w.queues.get(&aio.0).ok_or(Errno::EBADF)?;
            if q.under_way as usize + q.done.len() + what.len() > q.depth as usize {
                return Err(Errno::EAGAIN);
            }
        }
        for r in what {
            let file = match raw(r.fd) {
                Some(how) if how.contains(OpenFlags::DIRECT) => seekwell_stack::Fd::DEVICE_DIRECT,
                Some(_) => seekwell_stack::Fd::DEVICE,
                None => fd(r.fd)?,
            };
            let (off, len, tag) = (r.off, u64::from(r.len), r.tag);
            let write = r.op == AioOp::Write;
            // A sync is not queued. It completes before the next operation is submitted.
            let sync = match r.op {
                AioOp::Read | AioOp::Write => None,
                AioOp::Fsync => Some(self.fsync(r.fd).await),
                AioOp::Fdatasync => Some(self.fdatasync(r.fd).await),
            };
            let refused = match sync {
                Some(_) => None,
                None => {
                    let call = Call::AioSubmit {
                        aio: AioId(aio.0),
                        fd: file,
                        write,
                        off,
                        len,
                        tag,
                    };
                    self.always(call).await.err()
                }
            };
            let mut w = self.world.borrow_mut();
            let q = w.queues.get_mut(&aio.0).ok_or(Errno::EBADF)?;
            // An operation that the kernel rejects counts as failed.
            match sync.or(refused.map(Err)) {
                Some(r) => q.done.push_back(AioDone {
                    tag,
                    result: r.map(|()| 0),
                }),
                None => {
                    q.under_way += 1;
                    drop(w);
                    if write {
                        self.write_done(len);
                    } else {
                        self.read_done(len);
                    }
                }
            }
        }
        Ok(())
    }
    async fn aio_reap(
        &mut self,
        aio: Aio,
        min: usize,
        out: &mut Vec<AioDone>,
    ) -> Result<(), Errno> {
        self.world.borrow().going()?;
        self.reap(aio, min, out).await
    }
    async fn aio_close(&mut self, aio: Aio) -> Result<(), Errno> {
        let mut rest = Vec::new();
        self.reap(aio, usize::MAX, &mut rest).await?;
        self.world.borrow_mut().queues.remove(&aio.0);
        Ok(())
    }

    async fn open_device(&mut self, how: OpenFlags) -> Result<Fd, Errno> {
        self.world.borrow().going()?;
        let how = how & (OpenFlags::RDONLY | OpenFlags::DIRECT);
        Ok(Fd(RAW | u32::from(how.bits())))
    }
    async fn discard(&mut self, f: Fd, off: u64, len: u64) -> Result<(), Errno> {
        match raw(f) {
            Some(how) if how.contains(OpenFlags::RDONLY) => Err(Errno::EBADF),
            Some(_) => self.unit(Call::RawDiscard { off, len }).await,
            None => Err(Errno::EINVAL),
        }
    }

    async fn cgroup(&mut self, parent: CgroupId, weight: u32) -> Result<CgroupId, Errno> {
        let mut w = self.world.borrow_mut();
        w.going()?;
        if !(1..=1000).contains(&weight) {
            return Err(Errno::EINVAL);
        }
        let (id, now) = (w.cgroup(), w.now);
        w.kernel.control(now, Control::CgroupNew(id, parent));
        w.kernel.control(now, Control::Weight(id, weight));
        Ok(id)
    }
    async fn spawn<F, Fut>(&mut self, how: How, script: F) -> Result<Join, Errno>
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = Outcome> + 'static,
    {
        self.world.borrow().going()?;
        let t = self.world.borrow_mut().spawn(self.task, how);
        let machine = SimMachine::new(&self.world, t);
        let script = Box::pin(script(machine));
        let future = phase::behind(&self.world, t, phase::WAKE_UP, script);
        self.world.borrow_mut().push(t, future);
        Ok(Join(t))
    }
    async fn join(&mut self, task: Join) -> Outcome {
        poll_fn(|_| {
            let w = &mut *self.world.borrow_mut();
            match w.reap(task.0) {
                Some(o) => Poll::Ready(o),
                None => {
                    w.wait(self.task, Wait::Join(task.0));
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn lock(&mut self) -> Lock {
        Lock(self.world.borrow_mut().syncs.lock())
    }
    async fn acquire(&mut self, lock: Lock) -> Result<(), Errno> {
        let ask = |w: &mut World, t| w.syncs.acquire(lock.0, t);
        self.sync(Wait::Lock(lock.0), ask).await.map(|_| ())
    }
    fn release(&mut self, lock: Lock) {
        let w = &mut *self.world.borrow_mut();
        w.syncs.release(lock.0, self.task);
        w.wake();
    }
    fn barrier(&mut self, tasks: u32) -> Barrier {
        Barrier(self.world.borrow_mut().syncs.barrier(tasks))
    }
    async fn arrive(&mut self, barrier: Barrier) -> Result<(), Errno> {
        let ask = |w: &mut World, t| w.syncs.arrive(barrier.0, t);
        self.sync(Wait::Barrier(barrier.0), ask).await.map(|_| ())
    }
    fn channel(&mut self, room: u32) -> Channel {
        Channel(self.world.borrow_mut().syncs.channel(room))
    }
    async fn send(&mut self, channel: Channel, value: u64) -> Result<(), Errno> {
        let ask = |w: &mut World, t| w.syncs.send(channel.0, value, t);
        self.sync(Wait::Send(channel.0), ask).await.map(|_| ())
    }
    async fn recv(&mut self, channel: Channel) -> Result<Option<u64>, Errno> {
        let ask = |w: &mut World, t| w.syncs.recv(channel.0, t);
        self.sync(Wait::Recv(channel.0), ask).await
    }
    fn end_channel(&mut self, channel: Channel) {
        let w = &mut *self.world.borrow_mut();
        w.syncs.end_channel(channel.0);
        w.wake();
    }

    fn note(&mut self, note: Note) {
        let mut w = self.world.borrow_mut();
        match self.program {
            0 => w.note(self.part, &note),
            p => w.note_beside(p, self.part, note),
        }
    }
    /// Returns true, because the modelled file system is discarded with the run.
    fn disposable(&self) -> bool {
        true
    }
}

impl SimMachine {
    async fn reap(&mut self, aio: Aio, min: usize, out: &mut Vec<AioDone>) -> Result<(), Errno> {
        let mut got = 0;
        loop {
            {
                let mut w = self.world.borrow_mut();
                let q = w.queues.get_mut(&aio.0).ok_or(Errno::EBADF)?;
                got += q.done.len();
                out.extend(q.done.drain(..));
                // Take all available results, as io_getevents does. Another call would wait for
                // results that the script did not request.
                let under_way = q.under_way;
                if under_way == 0 || got >= min && w.kernel.aio_ready(AioId(aio.0)) == 0 {
                    return Ok(());
                }
                let q = w.queues.get_mut(&aio.0).ok_or(Errno::EBADF)?;
                q.under_way -= 1;
            }
            self.always(Call::AioReap { aio: AioId(aio.0) }).await?;
            let w = self.world.borrow();
            let done = w.kernel.outcome(w.tid(self.task)).aio;
            let (tag, result) = done.ok_or(Errno::EIO)?;
            let result = result.map(|n| n as u32);
            out.push(AioDone { tag, result });
            got += 1;
        }
    }
}
