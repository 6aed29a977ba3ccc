//! The script that runs a fio job file.

use super::figures::{Figure, Kind, each_direction, word};
use super::job::{Dir, Engine, Hint, Job, JobFile};
use super::places::{Call, Places};
use crate::fail::{Context, Fail, Outcome};
use crate::machine::{Aio, AioDone, AioOp, AioRequest, Fd, How, Machine};
use crate::note::{Mark, Running};
use crate::scripts::common::*;
use seekwell_core::result::Latency;
use seekwell_core::{Advice, CgroupId, Errno, Instant, NSEC_PER_SEC, Nanos, OpenFlags};

/// Totals over the clones of a section, without the ramp times.
#[derive(Clone, Default)]
struct Total {
    /// Number of calls and number of bytes, by direction.
    of: [(u64, u64); 3],
    /// Latencies of the calls, by direction.
    latency: [Option<Box<Latency>>; 3],
    fsync: Option<Box<Latency>>,
    fdatasync: Option<Box<Latency>>,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Total {
    /// Counts a call that lasted from `begin` to `end`.
    fn count(&mut self, dir: Dir, bytes: u64, begin: Instant, end: Instant) {
        let d = dir as usize;
        self.of[d] = (self.of[d].0 + 1, self.of[d].1 + bytes);
        let latency = self.latency[d].get_or_insert_default();
        latency.record(end.since(begin).0);
        self.first = [self.first, Some(begin)].into_iter().flatten().min();
        self.last = self.last.max(Some(end));
    }
    fn seconds(&self) -> Option<f64> {
        Some(self.last?.since(self.first?).as_secs_f64())
    }
    /// Returns the value of a metric, or `None` if there were no such operations.
    fn value(&self, kind: Kind) -> Option<f64> {
        let ms = |l: &Option<Box<Latency>>, f: fn(&Latency) -> f64| Some(f(l.as_ref()?) / 1e6);
        let p99 = |l: &Latency| l.percentile_ns(99.0) as f64;
        let of = |d: Dir| self.of[d as usize];
        match kind {
            Kind::Iops(d) | Kind::Bandwidth(d) if of(d).0 == 0 => None,
            Kind::Iops(d) => Some(rate(of(d).0 as f64, self.seconds()?)),
            Kind::Bandwidth(d) => Some(rate(mib(of(d).1), self.seconds()?)),
            Kind::Mean(d) => ms(&self.latency[d as usize], Latency::mean_ns),
            Kind::P99(d) => ms(&self.latency[d as usize], p99),
            Kind::FsyncP99 => ms(&self.fsync, p99),
            Kind::FdatasyncP99 => ms(&self.fdatasync, p99),
        }
    }
}

/// State that the tasks of a section share.
#[derive(Clone)]
struct Section {
    total: Shared<Total>,
    /// True after a job with the option exitall has ended. Then all jobs end.
    over: Shared<bool>,
}

/// Runs a job file in the directory `dir`.
pub(crate) async fn run<M: Machine>(m: &mut M, file: &JobFile, dir: &str) -> Outcome {
    m.mark(Mark::Phase("lay out"));
    let mut told = false;
    for (n, job) in file.jobs.iter().enumerate().filter(|j| !j.1.raw) {
        for clone in 0..job.numjobs {
            for path in paths(dir, n, job, clone) {
                prepare(m, job, &path, &mut told).await?;
            }
        }
    }
    if !file.raw() {
        m.syncfs().await.doing(|| "sync")?;
    }
    m.mark(Mark::ClockStart);
    let over = Shared::new(false);
    let mut sections: Vec<Section> = Vec::new();
    let mut outcome = Ok(());
    let mut group = Group::new();
    for (n, job) in file.jobs.iter().enumerate() {
        if job.stonewall {
            outcome = both(outcome, std::mem::take(&mut group).join(m).await);
        }
        let section = Section {
            total: Shared::new(Total::default()),
            over: over.clone(),
        };
        sections.push(section.clone());
        let cgroup = match job.cgroup_weight {
            Some(w) => {
                let made = m.cgroup(CgroupId::default(), w).await;
                made.doing(|| format!("make a cgroup of weight {w} for job {}", job.name))?
            }
            None => CgroupId::default(),
        };
        for clone in 0..job.numjobs {
            let files = paths(dir, n, job, clone);
            let (job, section) = (job.clone(), section.clone());
            let how = How {
                ioprio: job.prio,
                nice: job.nice,
                cgroup,
                ..How::named(format!("{}{n}.{clone}", job.name))
            };
            let started = group
                .spawn(m, how, move |m| task(m, job, files, section))
                .await;
            outcome = both(outcome, started);
        }
    }
    outcome = both(outcome, group.join(m).await);
    let each: Vec<Total> = sections
        .iter()
        .map(|s| s.total.with(|t| t.clone()))
        .collect();
    report(m, file, &each);
    outcome
}

/// Reports the metrics of a run. First come the deciding metrics of each section, then the totals
/// of all jobs, then the other metrics of each section.
fn report<M: Machine>(m: &mut M, file: &JobFile, each: &[Total]) {
    let firsts = each.iter().filter_map(|t| t.first);
    let lasts = each.iter().filter_map(|t| t.last);
    let (Some(first), Some(last)) = (firsts.min(), lasts.max()) else {
        return;
    };
    let mut given: Vec<Figure> = Vec::new();
    for figure in file.figures() {
        if let Some(value) = each[figure.section].value(figure.kind) {
            if given.is_empty() {
                m.counts(figure.kind.operation());
            }
            tell(m, &figure, value);
            given.push(figure);
        }
    }
    let secs = last.since(first).as_secs_f64();
    let sum = |f: fn(&(u64, u64)) -> u64| each.iter().flat_map(|t| &t.of).map(f).sum::<u64>();
    m.metric("IOPS", "I/Os/s", rate(sum(|d| d.0) as f64, secs), true);
    m.metric("bandwidth", "MiB/s", rate(mib(sum(|d| d.1)), secs), true);
    for (section, total) in each.iter().enumerate() {
        for kind in [Dir::Read, Dir::Write, Dir::Trim]
            .into_iter()
            .flat_map(each_direction)
        {
            let figure = file.figure(section, kind);
            if let Some(value) = total.value(kind).filter(|_| !given.contains(&figure)) {
                tell(m, &figure, value);
            }
        }
    }
}

fn tell<M: Machine>(m: &mut M, figure: &Figure, value: f64) {
    let kind = figure.kind;
    m.metric_of(
        figure.name.clone(),
        kind.unit(),
        value,
        kind.higher_is_better(),
    );
}

/// Returns the paths of the files of a clone. They are the given names, or they consist of the
/// numbers of job, clone and file.
fn paths(dir: &str, n: usize, job: &Job, clone: u32) -> Vec<String> {
    if job.filenames.is_empty() {
        return (0..job.nrfiles)
            .map(|f| format!("{dir}/job{n}.{clone}.{f}"))
            .collect();
    }
    let names = job.filenames.iter();
    names.map(|name| format!("{dir}/{name}")).collect()
}

/// Prepares a file. If the job reads or overwrites it, the file is written and synced. Otherwise,
/// its blocks are allocated. `told` becomes true when the warning is given that the file system
/// cannot preallocate, so that it is given only once.
async fn prepare<M: Machine>(m: &mut M, job: &Job, path: &str, told: &mut bool) -> Outcome {
    let need = job.offset + job.each();
    let there = m.stat(path).await.map_or(0, |s| s.len);
    if there >= need {
        return Ok(());
    }
    let fd = open(m, path, OpenFlags::CREATE).await?;
    if job.fallocate {
        match m.fallocate(fd, 0, need).await {
            // ext3 cannot preallocate. fio warns and continues, and later the writes allocate the
            // blocks.
            Err(Errno::EOPNOTSUPP) => {
                if !std::mem::replace(told, true) {
                    m.mark(Mark::Other("goes on without fallocate"));
                }
            }
            done => done.doing(|| format!("give {need} bytes to {path}"))?,
        }
    }
    if job.pattern.reads || job.overwrite {
        let mut off = 0;
        while off < need {
            let len = size_of_call(1 << 20, need - off);
            let n = m.write(fd, off, len).await;
            off += u64::from(n.doing(|| format!("write {len} bytes at {off} of {path}"))?);
        }
        m.fsync(fd).await.doing(|| format!("fsync {path}"))?;
    }
    close(m, fd, path).await
}

async fn task<M: Machine>(mut m: M, job: Job, files: Vec<String>, section: Section) -> Outcome {
    let m = &mut m;
    m.sleep(job.startdelay).await.doing(|| "startdelay")?;
    let changes = job.pattern.writes || job.pattern.trims;
    let mut how = OpenFlags::empty();
    how.set(OpenFlags::DIRECT, job.direct);
    how.set(OpenFlags::SYNC, job.sync);
    how.set(OpenFlags::DSYNC, job.dsync);
    how.set(OpenFlags::CREATE, changes && !job.raw);
    how.set(OpenFlags::RDONLY, !changes);
    let mut fds = Vec::new();
    for path in &files {
        let fd = match job.raw {
            true => m.open_device(how).await.doing(|| "open the device")?,
            false => open(m, path, how).await?,
        };
        if job.invalidate {
            let done = m.fadvise(fd, 0, 0, Advice::DontNeed).await;
            done.doing(|| format!("drop {path}"))?;
        }
        let hint = match job.fadvise_hint {
            Hint::None => None,
            Hint::Pattern if job.pattern.random => Some(Advice::Random),
            Hint::Pattern | Hint::Sequential => Some(Advice::Sequential),
            Hint::Random => Some(Advice::Random),
        };
        if let Some(hint) = hint {
            let done = m.fadvise(fd, 0, 0, hint).await;
            done.doing(|| format!("advise {path}"))?;
        }
        fds.push(fd);
    }
    let mut each = job.each();
    if job.raw {
        let len = m.fstat(fds[0]).await.doing(|| "size of the device")?.len;
        let room = len.saturating_sub(job.offset);
        if each > room || room < u64::from(job.smallest()) {
            return Err(Fail {
                what: format!(
                    "job {}: {each} bytes at {} of a device of {len}",
                    job.name, job.offset
                ),
                errno: Errno::ENOSPC,
            });
        }
        each = if each == 0 { room } else { each };
    }
    let mut w = Worker {
        places: Places::new(&job, &fds, each),
        synced: true,
        start: m.now(),
        job,
        section,
    };
    let done = match w.job.engine {
        Engine::Async if w.job.depth > 1 => deep(m, &mut w).await,
        _ => plain(m, &mut w).await,
    };
    done?;
    for (fd, path) in fds.iter().zip(&files) {
        if w.job.fsync_on_close || (w.job.end_fsync && changes) {
            fsync(m, *fd, path).await?;
        }
        close(m, *fd, path).await?;
    }
    if w.job.exitall {
        w.section.over.with(|o| *o = true);
    }
    let now = m.now();
    let total = &w.section.total;
    total.with(|t| t.last = t.first.map(|_| now).max(t.last));
    Ok(())
}

struct Worker {
    job: Job,
    places: Places,
    section: Section,
    start: Instant,
    /// True if the last call was a sync, or if there was no call yet.
    synced: bool,
}

impl Worker {
    fn more<M: Machine>(&self, m: &M) -> bool {
        let until = |r: Nanos| m.now() < self.start + r + self.job.ramp_time;
        self.job.runtime.is_none_or(until)
            && !self.section.over.with(|o| *o)
            && self.places.more(&self.job)
    }

    /// Counts a completed call, unless it began during the ramp time.
    fn count<M: Machine>(&self, m: &mut M, op: Running, dir: Dir, len: u32) {
        if op.since < self.start + self.job.ramp_time {
            return;
        }
        let (bytes, begin, end) = (u64::from(len), op.since, m.now());
        self.section.total.with(|t| t.count(dir, bytes, begin, end));
        m.op_end(op, u64::from(len));
    }

    /// Returns `Some` if a sync must precede the next call. The value is true for fdatasync and
    /// false for fsync.
    fn sync_due(&self) -> Option<bool> {
        let n = self.places.of[Dir::Write as usize].0;
        let due = |every: u64| every > 0 && n > 0 && n.is_multiple_of(every);
        if self.synced {
            None
        } else if due(self.job.fsync) {
            Some(false)
        } else {
            due(self.job.fdatasync).then_some(true)
        }
    }

    async fn sync<M: Machine>(&mut self, m: &mut M, data_only: bool) -> Outcome {
        self.synced = true;
        let fd = self.places.file(m, &self.job);
        let begin = m.now();
        match data_only {
            true => fdatasync(m, fd, &self.job.name).await?,
            false => fsync(m, fd, &self.job.name).await?,
        }
        if begin >= self.start + self.job.ramp_time {
            let took = m.now().since(begin).0;
            self.section.total.with(|t| {
                let of = if data_only {
                    &mut t.fdatasync
                } else {
                    &mut t.fsync
                };
                of.get_or_insert_default().record(took);
            });
        }
        Ok(())
    }

    fn next<M: Machine>(&mut self, m: &mut M) -> Call {
        self.synced = false;
        self.places.next(m, &self.job)
    }

    /// Waits until the rate limits permit the next call.
    async fn pace<M: Machine>(&self, m: &mut M) -> Outcome {
        let after = |n: u64, per_second: u64| {
            let ns = u128::from(n) * u128::from(NSEC_PER_SEC) / u128::from(per_second.max(1));
            self.start + Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
        };
        let mut at = self.start;
        for (i, (ios, bytes)) in self.places.of.into_iter().enumerate() {
            if let Some(r) = self.job.rate_iops[i] {
                at = at.max(after(ios, r));
            }
            if let Some(r) = self.job.rate[i] {
                at = at.max(after(bytes, r));
            }
        }
        let now = m.now();
        if at > now {
            m.sleep(at.since(now)).await.doing(|| "rate")?;
        }
        Ok(())
    }

    /// Pauses after every `thinktime_blocks` calls, even after the last call.
    async fn think<M: Machine>(&self, m: &mut M) -> Outcome {
        if self.job.thinktime > Nanos::ZERO
            && self.places.ios.is_multiple_of(self.job.thinktime_blocks)
        {
            m.sleep(self.job.thinktime).await.doing(|| "thinktime")?;
        }
        Ok(())
    }
}

/// Makes one call and waits until it completes.
async fn make_call<M: Machine>(m: &mut M, w: &Worker, call: Call) -> Outcome {
    let op = m.op_begin(word(call.dir));
    let done = match call.dir {
        Dir::Read => m.read(call.fd, call.off, call.len).await,
        Dir::Write => m.write(call.fd, call.off, call.len).await,
        Dir::Trim => {
            let done = m.discard(call.fd, call.off, u64::from(call.len)).await;
            done.map(|()| call.len)
        }
    };
    let n = done.doing(|| format!("{} {} bytes at {}", op.kind, call.len, call.off))?;
    w.count(m, op, call.dir, n);
    Ok(())
}

async fn plain<M: Machine>(m: &mut M, w: &mut Worker) -> Outcome {
    while w.more(m) {
        if let Some(data_only) = w.sync_due() {
            w.sync(m, data_only).await?;
            continue;
        }
        w.pace(m).await?;
        let call = w.next(m);
        make_call(m, w, call).await?;
        w.think(m).await?;
    }
    Ok(())
}

/// An asynchronous call in flight.
#[derive(Clone, Copy)]
struct Slot {
    op: Running,
    dir: Dir,
}

async fn deep<M: Machine>(m: &mut M, w: &mut Worker) -> Outcome {
    let depth = w.job.depth as usize;
    let aio = m.aio(w.job.depth).await.doing(|| "make a queue")?;
    let none = Slot {
        op: m.op_begin("read"),
        dir: Dir::Read,
    };
    let mut running: Vec<Slot> = vec![none; depth];
    let mut free: Vec<u64> = (0..w.job.depth.into()).rev().collect();
    let mut batch: Vec<AioRequest> = Vec::new();
    let mut done: Vec<AioDone> = Vec::new();
    let low = w.job.low.map_or(depth, |l| l as usize).min(depth - 1);
    loop {
        while !free.is_empty() && w.more(m) {
            if let Some(data_only) = w.sync_due() {
                submit(m, aio, &mut batch).await?;
                w.sync(m, data_only).await?;
                continue;
            }
            w.pace(m).await?;
            let call = w.next(m);
            if call.dir == Dir::Trim {
                // The engines of fio make this call synchronously, too.
                make_call(m, w, call).await?;
                continue;
            }
            let Some(tag) = free.pop() else { break };
            running[tag as usize] = Slot {
                op: m.op_begin(word(call.dir)),
                dir: call.dir,
            };
            batch.push(request(call.fd, call, tag));
            if batch.len() >= w.job.batch as usize || w.job.thinktime > Nanos::ZERO {
                submit(m, aio, &mut batch).await?;
                w.think(m).await?;
            }
        }
        submit(m, aio, &mut batch).await?;
        if free.len() == depth {
            return m.aio_close(aio).await.doing(|| "end the queue");
        }
        // At the end, wait for all calls. Before the end, wait for the configured number of calls.
        let least = w.job.batch_complete as usize;
        loop {
            let least = least.min(depth - free.len()).max(1);
            done.clear();
            m.aio_reap(aio, least, &mut done).await.doing(|| "reap")?;
            for d in &done {
                let slot = running[d.tag as usize];
                let n = d.result.map_err(|errno| Fail {
                    what: format!("{} of job {}", slot.op.kind, w.job.name),
                    errno,
                })?;
                w.count(m, slot.op, slot.dir, n);
                free.push(d.tag);
            }
            if depth - free.len() <= low {
                break;
            }
        }
    }
}

fn request(fd: Fd, call: Call, tag: u64) -> AioRequest {
    AioRequest {
        fd,
        op: match call.dir {
            Dir::Write => AioOp::Write,
            Dir::Read | Dir::Trim => AioOp::Read,
        },
        off: call.off,
        len: call.len,
        tag,
    }
}

async fn submit<M: Machine>(m: &mut M, aio: Aio, batch: &mut Vec<AioRequest>) -> Outcome {
    if !batch.is_empty() {
        m.aio_submit(aio, batch).await.doing(|| "submit")?;
        batch.clear();
    }
    Ok(())
}
