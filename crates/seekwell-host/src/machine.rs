//! The implementation of the trait [`Machine`] that runs scripts on the real kernel. Every call is
//! a blocking system call, so its future is ready when it is polled first.

pub mod tasks;

use crate::buffer::{Aligned, Noise};
use crate::files::{self, OpenFile, checked, raw, retry};
use crate::place::MARKER;
use crate::ring::Ring;
use crate::shared::{Mapping, Shared};
use crate::stop::NOTICE;
use rustix::fs::{AtFlags, FallocateFlags, Mode};
use rustix::time::{ClockId, clock_gettime};
use seekwell_core::rng::{Pcg64Mcg, stream};
use seekwell_core::{
    Access, Advice, CgroupId, Errno, Instant, IoPrio, Nanos, OpenFlags, Stat, SyncRange,
};
use seekwell_workload::{
    Aio, AioDone, AioRequest, Barrier, Channel, Entry, Facts, Fd, How, Join, Lock, Machine, Map,
    Mark, Note, Outcome, Tally,
};
use std::future::Future;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Number of [`Note`]s about operations that a task collects before it adds them to the measures of
/// the run. All tasks share the measures, so each task takes their lock only rarely.
const NOTES: usize = 256;

/// The host, as used by one task.
pub struct HostMachine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) path: String,
    /// Index of the task in the measures of the run.
    task: usize,
    rng: Pcg64Mcg,
    input: Aligned,
    noise: Noise,
    notes: Vec<Note>,
    tally: Tally,
}

impl HostMachine {
    /// Returns a machine for a task. It must be used on the task's own thread.
    pub(crate) fn new(shared: Arc<Shared>, path: String) -> Self {
        let rng = stream(shared.seed, &path);
        let task = shared.measures().begin(&path, shared.now());
        HostMachine {
            shared,
            path,
            task,
            rng,
            input: Aligned::default(),
            noise: Noise::default(),
            notes: Vec::new(),
            tally: Tally::default(),
        }
    }
    /// Records that the task requested an I/O priority.
    pub(crate) fn set_priority(&self, ioprio: IoPrio) {
        let mut all = self.shared.measures();
        all.set_priority(self.task, ioprio.to_string());
    }
    /// Returns the directory of the run's files, for libraries that open files themselves.
    pub(crate) fn directory(&self) -> &std::path::Path {
        self.shared.path()
    }
    /// Returns ECANCELED if the run is stopped.
    fn going(&self) -> Result<(), Errno> {
        if self.shared.stop.is_raised() {
            Err(Errno::ECANCELED)
        } else {
            Ok(())
        }
    }
    fn file(&self, fd: Fd) -> Result<Arc<OpenFile>, Errno> {
        self.shared.files.get(fd.0)
    }
    fn put(&mut self, fd: Fd, len: u32, at: Option<u64>) -> Result<u32, Errno> {
        self.going()?;
        let file = self.file(fd)?;
        file.aligned(at.unwrap_or(0), len)?;
        let mut rest: &[u8] = self.noise.take(len as usize);
        // With O_APPEND the kernel finds the end of the file itself.
        let end = (at.is_none() && !file.append).then(|| file.end.lock());
        let mut off = match at {
            Some(_) if file.append => return Err(Errno::EINVAL),
            Some(off) => off,
            None if file.append => 0,
            None => rustix::fs::fstat(&file).map_err(raw)?.st_size as u64,
        };
        while !rest.is_empty() {
            let n = retry(|| {
                if file.append {
                    rustix::io::write(&file, rest).map_err(raw)
                } else {
                    rustix::io::pwrite(&file, rest, off).map_err(raw)
                }
            })?;
            if n == 0 {
                return Err(Errno::ENOSPC);
            }
            rest = &rest[n..];
            off += n as u64;
        }
        drop(end);
        file.wrote();
        self.tally.written(self.shared.clock(), u64::from(len));
        Ok(len)
    }
    fn sync(&mut self, fd: Fd, data_only: bool) -> Result<(), Errno> {
        self.going()?;
        let file = self.file(fd)?;
        file.syncing();
        retry(|| {
            let r = if data_only {
                rustix::fs::fdatasync(&file)
            } else {
                rustix::fs::fsync(&file)
            };
            r.map_err(raw)
        })
    }
    fn ring(&self, aio: Aio) -> Result<Arc<Ring>, Errno> {
        self.shared.rings.get(aio.0)
    }
    fn flush_notes(&mut self) {
        let mut m = self.shared.measures();
        for n in self.notes.drain(..) {
            m.note(self.task, &n);
        }
    }
}

/// When the script of a task ends, the machine of the task is dropped. The drop records the end of
/// the task in the measures of the run.
impl Drop for HostMachine {
    fn drop(&mut self) {
        self.flush_notes();
        let now = self.shared.now();
        let mut measures = self.shared.measures();
        let moved = self.tally.moved(measures.clock());
        measures.end(self.task, now, moved);
    }
}

impl HostMachine {
    /// Lets virtual time pass, in which code takes no time. The tasks share the only CPU in turns.
    async fn compute_in_virtual_time(&mut self, d: Nanos) -> Result<(), Errno> {
        let mut rest = d.0;
        while rest > 0 {
            let turn = rest.min(TURN_NS);
            let shared = Arc::clone(&self.shared);
            let cpu = shared.cpu.lock().unwrap_or_else(PoisonError::into_inner);
            std::thread::sleep(Duration::from_nanos(turn));
            drop(cpu);
            self.going()?;
            rest -= turn;
        }
        Ok(())
    }
}

/// Longest time that a task uses the CPU of a guest while others wait, ns. It is about the slice of
/// the kernel's scheduler.
const TURN_NS: u64 = 3_000_000;

/// Returns the CPU time that this thread has used, ns.
fn cpu_time() -> u64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

impl Machine for HostMachine {
    fn now(&self) -> Instant {
        self.shared.now()
    }
    fn rng(&mut self) -> &mut Pcg64Mcg {
        &mut self.rng
    }
    fn facts(&self) -> Facts {
        self.shared.facts
    }
    async fn compute(&mut self, d: Nanos) -> Result<(), Errno> {
        if self.shared.virtual_time {
            return self.compute_in_virtual_time(d).await;
        }
        let end = cpu_time() + d.0;
        while cpu_time() < end {
            self.going()?;
            // Reading the clock is a system call of about 100 ns, so some work is done between two
            // reads.
            for _ in 0..16 {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }
    async fn compute_if_simulated(&mut self, _: Nanos) -> Result<(), Errno> {
        self.going()
    }
    async fn sleep(&mut self, d: Nanos) -> Result<(), Errno> {
        let end = std::time::Instant::now() + Duration::from_nanos(d.0);
        loop {
            self.going()?;
            let rest = end.saturating_duration_since(std::time::Instant::now());
            if rest.is_zero() {
                return Ok(());
            }
            std::thread::sleep(rest.min(NOTICE));
        }
    }

    async fn open(&mut self, path: &str, how: OpenFlags) -> Result<Fd, Errno> {
        self.going()?;
        let file = files::open(self.shared.dir(), path, how)?;
        Ok(Fd(self.shared.files.insert(file)))
    }
    async fn close(&mut self, fd: Fd) -> Result<(), Errno> {
        self.shared.files.remove(fd.0)
    }
    async fn read(&mut self, fd: Fd, off: u64, len: u32) -> Result<u32, Errno> {
        self.going()?;
        let file = self.file(fd)?;
        file.aligned(off, len)?;
        let room = self.input.room(len as usize);
        let mut got = 0;
        while got < room.len() {
            let n = retry(|| {
                rustix::io::pread(&file, &mut room[got..], off + got as u64).map_err(raw)
            })?;
            got += n;
            // In the middle of a file, a signal may cause a short read. At the end of the file
            // another read would return 0. O_DIRECT would reject an offset that is not aligned.
            if n == 0 || file.align > 1 {
                break;
            }
        }
        self.tally.read(self.shared.clock(), got as u64);
        Ok(got as u32)
    }
    async fn write(&mut self, fd: Fd, off: u64, len: u32) -> Result<u32, Errno> {
        self.put(fd, len, Some(off))
    }
    async fn append(&mut self, fd: Fd, len: u32) -> Result<u32, Errno> {
        self.put(fd, len, None)
    }
    async fn fsync(&mut self, fd: Fd) -> Result<(), Errno> {
        self.sync(fd, false)
    }
    async fn fdatasync(&mut self, fd: Fd) -> Result<(), Errno> {
        self.sync(fd, true)
    }
    async fn sync_range(
        &mut self,
        fd: Fd,
        off: u64,
        len: u64,
        how: SyncRange,
    ) -> Result<(), Errno> {
        self.going()?;
        let file = self.file(fd)?;
        crate::sys::sync_file_range(&file, off, len, how)
    }
    async fn syncfs(&mut self) -> Result<(), Errno> {
        self.going()?;
        self.shared.syncfs()
    }
    async fn truncate(&mut self, fd: Fd, len: u64) -> Result<(), Errno> {
        self.going()?;
        let file = self.file(fd)?;
        retry(|| rustix::fs::ftruncate(&file, len).map_err(raw))
    }
    async fn fallocate(&mut self, fd: Fd, off: u64, len: u64) -> Result<(), Errno> {
        self.going()?;
        let file = self.file(fd)?;
        retry(|| rustix::fs::fallocate(&file, FallocateFlags::empty(), off, len).map_err(raw))
    }
    async fn fadvise(&mut self, fd: Fd, off: u64, len: u64, advice: Advice) -> Result<(), Errno> {
        use rustix::fs::Advice as A;
        self.going()?;
        let how = match advice {
            Advice::Normal => A::Normal,
            Advice::Sequential => A::Sequential,
            Advice::Random => A::Random,
            Advice::WillNeed => A::WillNeed,
            Advice::DontNeed => A::DontNeed,
        };
        let file = self.file(fd)?;
        rustix::fs::fadvise(&file, off, std::num::NonZeroU64::new(len), how).map_err(raw)
    }
    async fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        self.going()?;
        let d = self.shared.dir();
        rustix::fs::renameat(d, checked(from)?, d, checked(to)?).map_err(raw)
    }
    async fn unlink(&mut self, path: &str) -> Result<(), Errno> {
        rustix::fs::unlinkat(self.shared.dir(), checked(path)?, AtFlags::empty()).map_err(raw)
    }
    async fn mkdir(&mut self, path: &str) -> Result<(), Errno> {
        self.going()?;
        rustix::fs::mkdirat(self.shared.dir(), checked(path)?, Mode::from(0o755)).map_err(raw)
    }
    async fn rmdir(&mut self, path: &str) -> Result<(), Errno> {
        rustix::fs::unlinkat(self.shared.dir(), checked(path)?, AtFlags::REMOVEDIR).map_err(raw)
    }
    async fn readdir(&mut self, path: &str) -> Result<Vec<Entry>, Errno> {
        let d = files::open(self.shared.dir(), path, OpenFlags::DIRECTORY)?;
        let mut out = Vec::new();
        for e in rustix::fs::Dir::read_from(&d).map_err(raw)? {
            let e = e.map_err(raw)?;
            let name = e.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." && name != MARKER {
                let dir = match e.file_type() {
                    // Some file systems do not store the type of a file in the directory.
                    rustix::fs::FileType::Unknown => {
                        let s = rustix::fs::statat(&d, &name, AtFlags::SYMLINK_NOFOLLOW);
                        let mode = s.map_err(raw)?.st_mode;
                        rustix::fs::FileType::from_raw_mode(mode).is_dir()
                    }
                    t => t.is_dir(),
                };
                out.push(Entry { name, dir });
            }
        }
        Ok(out)
    }
    async fn stat(&mut self, path: &str) -> Result<Stat, Errno> {
        let s = rustix::fs::statat(self.shared.dir(), checked(path)?, AtFlags::SYMLINK_NOFOLLOW);
        crate::sys::stat(&s.map_err(raw)?)
    }
    async fn fstat(&mut self, fd: Fd) -> Result<Stat, Errno> {
        let file = self.file(fd)?;
        let s = rustix::fs::fstat(&file).map_err(raw)?;
        let mut stat = crate::sys::stat(&s)?;
        if file.raw && rustix::fs::FileType::from_raw_mode(s.st_mode).is_block_device() {
            stat.len = crate::sys::device_bytes(&file)?;
        }
        Ok(stat)
    }
    async fn drop_caches(&mut self) -> Result<(), Errno> {
        self.going()?;
        self.shared.drop_caches()
    }

    async fn map(&mut self, fd: Fd, off: u64, len: u64) -> Result<Map, Errno> {
        self.going()?;
        let file = self.file(fd)?;
        Ok(Map(self.shared.maps.insert(Mapping::new(&file, off, len)?)))
    }
    async fn touch(&mut self, map: Map, off: u64, len: u64, how: Access) -> Result<(), Errno> {
        self.going()?;
        self.shared.maps.get(map.0)?.touch(off, len, how)
    }
    async fn msync(&mut self, map: Map, off: u64, len: u64) -> Result<(), Errno> {
        self.going()?;
        self.shared.maps.get(map.0)?.sync(off, len)
    }
    async fn unmap(&mut self, map: Map) -> Result<(), Errno> {
        self.shared.maps.remove(map.0)
    }

    async fn aio(&mut self, depth: u32) -> Result<Aio, Errno> {
        self.going()?;
        Ok(Aio(self.shared.rings.insert(Ring::new(depth)?)))
    }
    async fn aio_submit(&mut self, aio: Aio, what: &[AioRequest]) -> Result<(), Errno> {
        self.going()?;
        let ring = self.ring(aio)?;
        let mut with = Vec::with_capacity(what.len());
        for r in what {
            with.push((*r, self.file(r.fd)?));
        }
        ring.submit(&with)
    }
    async fn aio_reap(
        &mut self,
        aio: Aio,
        min: usize,
        out: &mut Vec<AioDone>,
    ) -> Result<(), Errno> {
        self.going()?;
        let ring = self.ring(aio)?;
        ring.reap(min, out)?;
        self.tally.add(self.shared.clock(), ring.moved());
        Ok(())
    }
    async fn aio_close(&mut self, aio: Aio) -> Result<(), Errno> {
        // The last owner drops the ring. The drop waits for outstanding operations.
        self.shared.rings.remove(aio.0)
    }

    async fn open_device(&mut self, how: OpenFlags) -> Result<Fd, Errno> {
        self.going()?;
        let path = self.shared.device.as_deref().ok_or(Errno::ENODEV)?;
        let file = files::open_raw(path, how)?;
        Ok(Fd(self.shared.files.insert(file)))
    }
    async fn discard(&mut self, fd: Fd, off: u64, len: u64) -> Result<(), Errno> {
        self.going()?;
        let file = self.file(fd)?;
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        retry(|| rustix::fs::fallocate(&file, how, off, len).map_err(raw))
    }

    async fn cgroup(&mut self, _: CgroupId, _: u32) -> Result<CgroupId, Errno> {
        Err(Errno::EOPNOTSUPP)
    }
    async fn spawn<F, Fut>(&mut self, how: How, script: F) -> Result<Join, Errno>
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = Outcome> + 'static,
    {
        self.going()?;
        tasks::start(self, how, script)
    }
    async fn join(&mut self, task: Join) -> Outcome {
        self.flush_notes();
        tasks::join(&self.shared, task.0)
    }

    fn lock(&mut self) -> Lock {
        Lock(self.shared.syncs.lock())
    }
    async fn acquire(&mut self, lock: Lock) -> Result<(), Errno> {
        self.shared.syncs.acquire(lock.0, &self.shared.stop)
    }
    fn release(&mut self, lock: Lock) {
        self.shared.syncs.release(lock.0);
    }
    fn barrier(&mut self, tasks: u32) -> Barrier {
        Barrier(self.shared.syncs.barrier(tasks))
    }
    async fn arrive(&mut self, barrier: Barrier) -> Result<(), Errno> {
        self.shared.syncs.arrive(barrier.0, &self.shared.stop)
    }
    fn channel(&mut self, room: u32) -> Channel {
        Channel(self.shared.syncs.channel(room))
    }
    async fn send(&mut self, channel: Channel, value: u64) -> Result<(), Errno> {
        self.shared.syncs.send(channel.0, value, &self.shared.stop)
    }
    async fn recv(&mut self, channel: Channel) -> Result<Option<u64>, Errno> {
        self.shared.syncs.recv(channel.0, &self.shared.stop)
    }
    fn end_channel(&mut self, channel: Channel) {
        self.shared.syncs.end_channel(channel.0);
    }

    fn note(&mut self, note: Note) {
        let clock = matches!(note, Note::Mark(_, Mark::ClockStart | Mark::ClockStop));
        if let Some(pulse) = &self.shared.pulse {
            pulse.note(&note);
        }
        self.notes.push(note);
        if clock || self.notes.len() >= NOTES {
            self.flush_notes();
        }
        if clock {
            self.shared.clock_changed();
        }
    }
    /// The directory of the run is removed completely after the run.
    fn disposable(&self) -> bool {
        true
    }
}
