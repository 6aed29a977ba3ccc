//! The interface of the modelled kernel for an executor of programs. Calls go in and results come
//! out, in virtual time.

use super::aio::Operation;
use super::short::{AtOnce, Parts};
use super::{aio, direct, mapped, names, raw, read, sync, truncate, write};
use crate::config::Config;
use crate::executor::{Actor, Timer, pay, sleep_until};
use crate::fs::BDEV;
use crate::machine::{
    AioId, CONVERTER, Call, DEVICE_FD, FIRST_USER_TASK, FLUSHER, Fd, JOURNAL, K, Outcome, PDFLUSH,
    PDFLUSH_PERIODIC, Ret, TaskConfig, World, kernel_thread_name,
};
use crate::stats::{Mark, Stats};
use crate::{journal, writeback};
use seekwell_core::{BioSink, Control, Errno, Instant, IoPrio, Nanos, Op, OpenFlags, TaskId};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

type Program = Pin<Box<dyn Future<Output = ()>>>;

/// A modelled kernel that uses a disk.
///
/// The caller controls time, and time never goes back. Before a call at `now`, the caller must
/// advance the kernel through all events before `now`.
pub struct Kernel {
    k: K,
    programs: Vec<Option<Program>>,
}

impl Kernel {
    /// Boots a kernel at [`Instant::START`].
    pub fn new(config: Config, disk: Box<dyn BioSink>) -> Self {
        let old = config.constants.dirtier_writes != 0;
        let journal_prio = IoPrio::be(config.constants.journal_prio as u8);
        let mut kernel = Kernel {
            k: K::new(World::new(config, disk)),
            programs: (0..FIRST_USER_TASK).map(|_| None).collect(),
        };
        let k = kernel.k.clone();
        kernel.thread(
            JOURNAL,
            journal_prio,
            journal::thread(k.clone(), writeback::OrderedData),
        );
        if old {
            for a in [PDFLUSH, PDFLUSH_PERIODIC] {
                kernel.thread(a, IoPrio::NONE, writeback::pdflush(k.clone(), a));
            }
        } else {
            kernel.thread(FLUSHER, IoPrio::NONE, writeback::flusher_thread(k));
        }
        let k = kernel.k.clone();
        kernel.thread(CONVERTER, IoPrio::NONE, writeback::conversion_thread(k));
        kernel.run_ready();
        kernel
    }
    fn thread(&mut self, a: Actor, ioprio: IoPrio, life: impl Future<Output = ()> + 'static) {
        let config = TaskConfig {
            name: kernel_thread_name(TaskId(a)).unwrap_or_default().to_owned(),
            ioprio,
            ..TaskConfig::default()
        };
        let mut w = self.k.w();
        w.add_task(a, config);
        w.rt.ready.push_back(a);
        drop(w);
        self.programs[a as usize] = Some(Box::pin(life));
    }
    /// Makes a task. The task may make calls immediately.
    pub fn task_new(&mut self, now: Instant, config: TaskConfig) -> TaskId {
        let a = self.programs.len() as Actor;
        {
            let mut w = self.k.w();
            w.rt.now = now.max(w.rt.now);
            w.add_task(a, config);
            w.tasks[a as usize].idle = true;
        }
        self.programs.push(Some(Box::pin(serve(self.k.clone(), a))));
        TaskId(a)
    }
    /// Ends a task. Also ends its io context, unless another task shares it. The task must have no
    /// unfinished call.
    pub fn task_exit(&mut self, now: Instant, tid: TaskId) {
        let mut w = self.k.w();
        w.rt.now = now.max(w.rt.now);
        let now = w.now();
        let Some(t) = w.tasks.get_mut(tid.0 as usize).filter(|t| t.exists) else {
            return;
        };
        debug_assert!(t.call.is_none(), "a task exits between calls");
        (t.exists, t.idle) = (false, false);
        w.sink.control(now, Control::Exit(tid));
        w.sink_changed();
        drop(w);
        self.programs[tid.0 as usize] = None;
    }
    /// Passes a control operation to the block layer, for example the weight of a cgroup.
    pub fn control(&mut self, now: Instant, what: Control) {
        let mut w = self.k.w();
        w.rt.now = now.max(w.rt.now);
        let now = w.now();
        w.sink.control(now, what);
        w.sink_changed();
    }
    /// Starts the next call of a task. The result of the call comes from [`Kernel::advance`], even
    /// if the call ends immediately.
    ///
    /// # Panics
    /// Panics if the task does not exist or has an unfinished call.
    pub fn call(&mut self, now: Instant, tid: TaskId, call: Call) {
        {
            let mut w = self.k.w();
            let t = w.begins(now, tid);
            t.idle = false;
            // All operations of a batch have the same submission time.
            if !matches!(call, Call::AioSubmit { .. }) {
                t.held = Nanos::ZERO;
            }
            if w.short(tid.0, &call) {
                return;
            }
            w.tasks[tid.0 as usize].call = Some(call);
            w.rt.ready.push_back(tid.0);
        }
        self.run_ready();
    }
    /// Makes the next call of a task, [`Call::Open`], if it is a short call. Returns false if the
    /// call is not short; then nothing has happened.
    ///
    /// # Panics
    /// Panics if the task does not exist or has an unfinished call.
    pub fn open_short(&mut self, now: Instant, tid: TaskId, path: &str, flags: OpenFlags) -> bool {
        self.k
            .w()
            .if_short(now, tid, |w| w.short_open(tid.0, path, flags))
    }
    /// Opens a file that the program will read to its end in calls of `chunk` bytes. If the calls
    /// are short and one call reads all of it, also reads and closes the file, and sets `parts`.
    /// Returns `None` if the open is not a short call; then nothing has happened.
    ///
    /// # Panics
    /// Panics under the same conditions as [`Kernel::open_short`].
    pub fn whole_short(
        &mut self,
        now: Instant,
        tid: TaskId,
        path: &str,
        chunk: u64,
        parts: &mut Parts,
    ) -> Option<AtOnce> {
        let mut done = None;
        self.k.w().if_short(now, tid, |w| {
            done = w.short_whole(tid.0, path, chunk, parts);
            done.is_some()
        });
        done
    }
    /// Returns how much of a task's most recent piece of CPU time was left when the task lost its
    /// core. Returns the whole piece if the task only had to wait for a core.
    pub fn left_at_cut(&self, tid: TaskId) -> Nanos {
        self.k.w().rt.left_at_cut(tid.0)
    }
    /// Makes the next call of a task, [`Call::Read`], if it is a short call.
    ///
    /// # Panics
    /// Panics under the same conditions as [`Kernel::open_short`].
    #[inline]
    pub fn read_short(&mut self, now: Instant, tid: TaskId, fd: Fd, off: u64, len: u64) -> bool {
        let read = |w: &mut World| w.short_read(tid.0, fd.0, off, len);
        self.k.w().if_short(now, tid, read)
    }
    /// Makes the next call of a task, [`Call::Close`], if it is a short call.
    ///
    /// # Panics
    /// Panics under the same conditions as [`Kernel::open_short`].
    #[inline]
    pub fn close_short(&mut self, now: Instant, tid: TaskId, fd: Fd) -> bool {
        self.k
            .w()
            .if_short(now, tid, |w| w.short_close(tid.0, fd.0))
    }
    /// Begins a batch. The following [`Call::AioSubmit`]s of the task count as submitted now.
    pub fn batch(&mut self, tid: TaskId) {
        self.k.w().tasks[tid.0 as usize].held = Nanos::ZERO;
    }
    /// Returns the number of completions that [`Call::AioReap`] can return without waiting.
    pub fn aio_ready(&self, aio: AioId) -> usize {
        let w = self.k.w();
        w.aios.get(aio.0 as usize).map_or(0, |a| a.done.len())
    }
    /// Returns the time of the next internal event.
    pub fn next_event(&self) -> Option<Instant> {
        let mut w = self.k.w();
        if !w.ended.is_empty() || !w.rt.ready.is_empty() || w.rt.offers() {
            return Some(w.now());
        }
        match (w.rt.next_timer(), w.sink_next()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    /// Advances time to `to`, or to the first earlier instant at which calls end. Appends these
    /// calls to `out` in the order of their ends. The caller must make the next calls of these
    /// tasks before it advances further.
    pub fn advance(&mut self, to: Instant, out: &mut Vec<(TaskId, Ret)>) {
        loop {
            self.run_ready();
            {
                let mut w = self.k.w();
                if !w.ended.is_empty() {
                    out.append(&mut w.ended);
                    return;
                }
                if w.rt.offers() {
                    w.rt.settle();
                }
                let disk = w.sink_next().filter(|t| *t <= to);
                let timer = w.rt.next_timer().filter(|t| *t <= to);
                let Some(t) = disk.into_iter().chain(timer).min() else {
                    w.rt.now = w.rt.now.max(to);
                    return;
                };
                w.rt.now = w.rt.now.max(t);
                if disk.is_some_and(|d| d <= t) {
                    w.run_disk();
                }
                while let Some(t) = w.rt.pop_due() {
                    match t {
                        Timer::Wake(a, seq) => w.rt.timer_wake(a, seq),
                        Timer::Core(c) => {
                            if let Some(a) = w.rt.core_event(c) {
                                w.cpu_had(a);
                            }
                        }
                    }
                }
            }
        }
    }
    /// Returns the further results of a task's last call.
    pub fn outcome(&self, tid: TaskId) -> Outcome {
        std::mem::take(&mut self.k.w().tasks[tid.0 as usize].out)
    }
    /// Must be called after a change of the disk's queue that the kernel did not make.
    pub fn disk_changed(&self) {
        self.k.w().sink_changed();
    }
    /// Returns the present time.
    pub fn now(&self) -> Instant {
        self.k.w().now()
    }
    /// Returns the counters.
    pub fn stats(&self) -> Stats {
        self.k.w().stats
    }
    /// Takes the marks recorded since the last call of this function.
    pub fn take_marks(&mut self) -> Vec<(Instant, Mark)> {
        std::mem::take(&mut self.k.w().marks)
    }
    /// Returns the space for new data, bytes.
    pub fn available_bytes(&self) -> u64 {
        self.k.w().fs.available() * 4096
    }
    /// Returns the number of bios in the block layer.
    pub fn in_flight(&self) -> u32 {
        self.k.w().bios.in_flight
    }

    #[cfg(test)]
    pub(crate) fn world(&self) -> std::cell::RefMut<'_, World> {
        self.k.w()
    }
    fn run_ready(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            let a = {
                let mut w = self.k.w();
                let Some(a) = w.rt.ready.pop_front() else {
                    return;
                };
                if w.short_ended(a) {
                    continue;
                }
                a
            };
            if let Some(p) = &mut self.programs[a as usize] {
                // Kernel threads and the actors that serve programs never return.
                let _ = p.as_mut().poll(&mut cx);
            }
        }
    }
}

/// Runs the main loop of a task, which takes calls and returns their results.
async fn serve(k: K, a: Actor) {
    loop {
        let waits = called(&k, a).await;
        let ret = perform(&k, a).await;
        if !waits {
            let cost = k.w().cfg.constants.call_ns;
            k.w().spend(a, cost);
        }
        pay(&k, a).await;
        let mut w = k.w();
        debug_assert_eq!(w.tasks[a as usize].plugs, 0, "every plug is closed");
        w.stats.calls += 1;
        w.tasks[a as usize].idle = true;
        w.ended.push((TaskId(a), ret));
    }
}

/// Waits for a call of the task. Returns whether the call only waits. The call stays in its place
/// in memory, because passing it between futures would copy it each time.
async fn called(k: &K, a: Actor) -> bool {
    std::future::poll_fn(|_| match &k.w().tasks[a as usize].call {
        Some(c) => Poll::Ready(matches!(c, Call::Sleep(_) | Call::Compute(_))),
        None => Poll::Pending,
    })
    .await
}

async fn perform(k: &K, a: Actor) -> Ret {
    let call = k.w().tasks[a as usize].call.take();
    let Some(call) = call else {
        debug_assert!(false, "nobody takes a call but who performs it");
        return Err(Errno::EINTR);
    };
    match call {
        Call::Compute(d) => {
            k.w().spend(a, d.0);
            Ok(0)
        }
        Call::Sleep(d) => {
            let at = k.w().now() + d;
            sleep_until(k, a, at).await;
            Ok(0)
        }
        Call::Open { path, flags } => names::open(k, a, &path, flags).await,
        Call::Close { fd } => names::close(k, a, fd.0).await,
        Call::Read { fd, off, len } => {
            let f = k.w().file(fd.0)?;
            if f.is_direct() {
                direct::transfer(k, a, f.ino, Op::Read, off, len).await
            } else {
                read::read(k, a, fd.0, off, len).await
            }
        }
        Call::Write { fd, off, len } => file_write(k, a, fd.0, Some(off), len).await,
        Call::Append { fd, len } => file_write(k, a, fd.0, None, len).await,
        Call::Fsync { fd } => {
            let ino = k.w().file(fd.0)?.ino;
            sync::fsync(k, a, ino, false).await.map(|()| 0)
        }
        Call::Fdatasync { fd } => {
            let ino = k.w().file(fd.0)?.ino;
            sync::fsync(k, a, ino, true).await.map(|()| 0)
        }
        Call::SyncRange { fd, off, len, how } => {
            let ino = k.w().file(fd.0)?.ino;
            sync::sync_range(k, a, ino, off, len, how).await;
            Ok(0)
        }
        Call::Syncfs => sync::syncfs(k, a).await.map(|()| 0),
        Call::Truncate { fd, len } => truncate::truncate(k, a, fd.0, len).await,
        Call::Fallocate { fd, off, len } => truncate::fallocate(k, a, fd.0, off, len).await,
        Call::Fadvise {
            fd,
            off,
            len,
            advice,
        } => truncate::fadvise(k, a, fd.0, off, len, advice).await,
        Call::Rename { from, to } => names::rename(k, a, &from, &to).await,
        Call::Unlink { path } => names::unlink(k, a, &path, false).await,
        Call::Rmdir { path } => names::unlink(k, a, &path, true).await,
        Call::Mkdir { path } => names::mkdir(k, a, &path).await,
        Call::Readdir { path } => names::readdir(k, a, &path).await,
        Call::Stat { path } => names::stat(k, a, &path).await,
        Call::Fstat { fd } => names::fstat(k, a, fd.0),
        Call::FsyncDir { path } => names::fsync_dir(k, a, &path).await,
        Call::DropCaches => truncate::drop_caches(k),
        Call::Hold { bytes } => k.w().hold(bytes),
        Call::Map { fd, off, len } => mapped::map(k, fd.0, off, len),
        Call::Unmap { map } => mapped::unmap(k, a, map.0).await,
        Call::Touch {
            map,
            off,
            len,
            access,
        } => mapped::touch(k, a, map.0, off, len, access).await,
        Call::Msync { map, off, len } => mapped::msync(k, a, map.0, off, len).await,
        Call::AioNew { depth } => aio::new(k, depth),
        Call::AioSubmit {
            aio,
            fd,
            write,
            off,
            len,
            tag,
        } => {
            let o = Operation {
                fd: fd.0,
                write,
                off,
                len,
                tag,
            };
            aio::submit(k, a, aio.0, o).await
        }
        Call::AioReap { aio } => aio::reap(k, a, aio.0).await,
        Call::RawRead {
            off,
            len,
            direct: true,
        } => direct::transfer(k, a, BDEV, Op::Read, off, len).await,
        Call::RawWrite {
            off,
            len,
            direct: true,
        } => direct::transfer(k, a, BDEV, Op::Write, off, len).await,
        Call::RawRead { off, len, .. } => read::read(k, a, DEVICE_FD, off, len).await,
        Call::RawWrite { off, len, .. } => write::write_device(k, a, off, len).await,
        Call::RawFlush => sync::fsync_device(k, a).await.map(|()| 0),
        Call::RawDiscard { off, len } => raw::discard(k, a, off, len).await,
    }
}

async fn file_write(k: &K, a: Actor, fd: u32, off: Option<u64>, len: u64) -> Ret {
    let f = k.w().file(fd)?;
    let end = off.is_none() || f.flags.contains(seekwell_core::OpenFlags::APPEND);
    if f.is_direct() {
        let size = k.w().fs.inodes[f.ino as usize].len;
        let off = if end { size } else { off.unwrap_or(0) };
        let n = direct::transfer(k, a, f.ino, Op::Write, off, len).await?;
        let sync = seekwell_core::OpenFlags::SYNC;
        if f.flags.intersects(sync | seekwell_core::OpenFlags::DSYNC) && n > 0 {
            let (first, last) = (direct::page_of(off), direct::page_of(off + n - 1));
            let times = f.flags.contains(sync);
            sync::sync_range_file(k, a, f.ino, first, last, times).await?;
        }
        return Ok(n);
    }
    write::write(k, a, fd, off.unwrap_or(0), len, end).await
}
