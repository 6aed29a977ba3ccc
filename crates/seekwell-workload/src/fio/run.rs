//! Runs a job file.

use super::job::{Distribution, Engine, Job, JobFile};
use crate::fail::{Context, Fail, Outcome};
use crate::machine::{Aio, AioDone, AioOp, AioRequest, Fd, How, Machine};
use crate::note::{Mark, Running};
use crate::scripts::common::*;
use rand::Rng;
use rand::seq::SliceRandom;
use seekwell_core::{Advice, Instant, NSEC_PER_SEC, Nanos, OpenFlags};

/// A map of places visited is kept up to so many blocks; beyond, places may repeat.
const MAP_BLOCKS: u64 = 1 << 24;

#[derive(Clone, Copy, Default)]
struct Total {
    ios: u64,
    bytes: u64,
    first: Option<Instant>,
    last: Option<Instant>,
}

/// The script of a job file.
pub(crate) async fn run<M: Machine>(m: &mut M, file: &JobFile, dir: &str) -> Outcome {
    m.mark(Mark::Phase("lay out"));
    for (n, job) in file.jobs.iter().enumerate() {
        for clone in 0..job.numjobs {
            for path in paths(dir, n, job, clone) {
                prepare(m, job, &path).await?;
            }
        }
    }
    m.syncfs().await.doing(|| "sync")?;
    m.mark(Mark::ClockStart);
    let total: Shared<Total> = Shared::new(Total::default());
    let mut outcome = Ok(());
    let mut group = Group::new();
    for (n, job) in file.jobs.iter().enumerate() {
        if job.stonewall {
            outcome = both(outcome, std::mem::take(&mut group).join(m).await);
        }
        for clone in 0..job.numjobs {
            let files = paths(dir, n, job, clone);
            let (job, total) = (job.clone(), total.clone());
            let how = How {
                ioprio: job.prio,
                nice: job.nice,
                ..How::named(format!("{}{n}.{clone}", job.name))
            };
            let started = group
                .spawn(m, how, move |m| task(m, job, files, total))
                .await;
            outcome = both(outcome, started);
        }
    }
    outcome = both(outcome, group.join(m).await);
    let t = total.with(|t| *t);
    if let (Some(first), Some(last)) = (t.first, t.last) {
        let secs = last.since(first).as_secs_f64();
        m.metric("IOPS", "I/Os/s", rate(t.ios as f64, secs), true);
        m.metric("bandwidth", "MiB/s", rate(mib(t.bytes), secs), true);
    }
    outcome
}

/// fio's names: the job's, the clone's number, the file's number.
fn paths(dir: &str, n: usize, job: &Job, clone: u32) -> Vec<String> {
    match &job.filename {
        Some(name) => vec![format!("{dir}/{name}")],
        None => (0..job.nrfiles)
            .map(|f| format!("{dir}/job{n}.{clone}.{f}"))
            .collect(),
    }
}

/// Bytes of each file.
fn each(job: &Job) -> u64 {
    let files = if job.filename.is_some() {
        1
    } else {
        job.nrfiles
    };
    job.size / u64::from(files)
}

/// What is read, or written at random, must be there.
async fn prepare<M: Machine>(m: &mut M, job: &Job, path: &str) -> Outcome {
    if !job.pattern.reads && !job.pattern.random {
        return Ok(());
    }
    let need = job.offset + each(job);
    let there = m.stat(path).await.map_or(0, |s| s.len);
    if there < need {
        lay_out(m, path, need).await?;
    }
    Ok(())
}

struct Worker {
    fds: Vec<Fd>,
    /// Bytes of each file's region.
    each: u64,
    /// Next sequential place.
    at: u64,
    /// Places not yet visited, of random jobs with a map.
    map: Vec<u32>,
    /// Sum of weights below each rank, of zipf.
    zipf: Option<(f64, f64)>,
    ios: u64,
    bytes: u64,
    writes: u64,
}

/// What a call is.
#[derive(Clone, Copy)]
struct Call {
    fd: Fd,
    write: bool,
    off: u64,
    len: u32,
}

async fn task<M: Machine>(mut m: M, job: Job, files: Vec<String>, total: Shared<Total>) -> Outcome {
    let m = &mut m;
    m.sleep(job.startdelay).await.doing(|| "startdelay")?;
    let mut how = OpenFlags::empty();
    how.set(OpenFlags::DIRECT, job.direct);
    how.set(OpenFlags::SYNC, job.sync);
    how.set(OpenFlags::DSYNC, job.dsync);
    how.set(OpenFlags::CREATE, job.pattern.writes);
    how.set(OpenFlags::RDONLY, !job.pattern.writes);
    let mut fds = Vec::new();
    for path in &files {
        let fd = open(m, path, how).await?;
        if job.invalidate {
            m.fadvise(fd, 0, 0, Advice::DontNeed)
                .await
                .doing(|| format!("drop {path}"))?;
        }
        if job.fadvise_hint {
            let hint = if job.pattern.random {
                Advice::Random
            } else {
                Advice::Sequential
            };
            m.fadvise(fd, 0, 0, hint)
                .await
                .doing(|| format!("advise {path}"))?;
        }
        fds.push(fd);
    }
    let mut c = Worker {
        each: each(&job),
        at: 0,
        map: Vec::new(),
        zipf: None,
        ios: 0,
        bytes: 0,
        writes: 0,
        fds,
    };
    let start = m.now();
    let done = match job.engine {
        Engine::Async if job.depth > 1 => deep(m, &job, &mut c, start, &total).await,
        _ => plain(m, &job, &mut c, start, &total).await,
    };
    done?;
    for (fd, path) in c.fds.iter().zip(&files) {
        if job.fsync_on_close || (job.end_fsync && job.pattern.writes) {
            fsync(m, *fd, path).await?;
        }
        close(m, *fd, path).await?;
    }
    let now = m.now();
    total.with(|t| t.last = t.last.max(Some(now)));
    Ok(())
}

impl Worker {
    /// Is there more to do?
    fn more<M: Machine>(&self, m: &M, job: &Job, start: Instant) -> bool {
        let time_left = job
            .runtime
            .is_none_or(|r| m.now() < start + r + job.ramp_time);
        if !time_left || job.number_ios.is_some_and(|n| self.ios >= n) {
            return false;
        }
        let whole = self.each * self.fds.len() as u64;
        let goal = job.io_size.unwrap_or(whole).saturating_mul(job.loops);
        job.time_based || self.bytes < goal
    }

    fn next<M: Machine>(&mut self, m: &mut M, job: &Job) -> Call {
        let p = job.pattern;
        let write = p.writes && (!p.reads || m.rng().random_range(0..100) >= job.mix_read);
        let (lo, hi) = if write {
            job.write_block
        } else {
            job.read_block
        };
        let unit = if lo % 4096 == 0 { 4096 } else { 512 };
        let steps = (hi - lo) / unit;
        let len = lo
            + unit
                * if steps > 0 {
                    m.rng().random_range(0..=steps)
                } else {
                    0
                };
        let whole = self.each * self.fds.len() as u64;
        let place = if p.random {
            let blocks = whole / u64::from(lo);
            self.random(m, job, blocks) * u64::from(lo)
        } else {
            let at = if self.at + u64::from(len) > whole {
                0
            } else {
                self.at
            };
            self.at = at + u64::from(len);
            at
        };
        let file = ((place / self.each) as usize).min(self.fds.len() - 1);
        // A block that would reach over the file's end moves down.
        let inside = (place - file as u64 * self.each).min(self.each - u64::from(len));
        let inside = inside - inside % u64::from(unit);
        self.ios += 1;
        self.bytes += u64::from(len);
        self.writes += u64::from(write);
        Call {
            fd: self.fds[file],
            write,
            off: job.offset + inside,
            len,
        }
    }

    fn random<M: Machine>(&mut self, m: &mut M, job: &Job, blocks: u64) -> u64 {
        match job.distribution {
            Distribution::Uniform if job.norandommap || blocks > MAP_BLOCKS => {
                uniform(m, 0, blocks - 1)
            }
            Distribution::Uniform => {
                if self.map.is_empty() {
                    self.map = (0..blocks as u32).collect();
                    self.map.shuffle(m.rng());
                }
                u64::from(self.map.pop().unwrap_or_default())
            }
            Distribution::Zipf(theta) => {
                let z = *self
                    .zipf
                    .get_or_insert_with(|| (theta, zeta(blocks, theta)));
                spread(zipf(m, blocks, z), blocks)
            }
            Distribution::Pareto(power) => {
                let u: f64 = m.rng().random();
                let h = libm::log(power) / libm::log(1.0 - power);
                let x = (libm::pow(u, 1.0 / h) * blocks as f64) as u64;
                spread(x.min(blocks - 1), blocks)
            }
        }
    }
}

/// Sum of 1/k^theta for k = 1..=n: the first ten thousand terms, the rest by its integral.
fn zeta(n: u64, theta: f64) -> f64 {
    let exact = n.min(10_000);
    let head: f64 = (1..=exact).map(|k| libm::pow(k as f64, -theta)).sum();
    if n == exact {
        return head;
    }
    let integral = |a: f64, b: f64| {
        if (theta - 1.0).abs() < 1e-9 {
            libm::log(b / a)
        } else {
            (libm::pow(b, 1.0 - theta) - libm::pow(a, 1.0 - theta)) / (1.0 - theta)
        }
    };
    head + integral(exact as f64 + 0.5, n as f64 + 0.5)
}

/// A rank of 0..n by Zipf's law: by bisection over the sums of weights.
fn zipf<M: Machine>(m: &mut M, n: u64, (theta, all): (f64, f64)) -> u64 {
    let u = m.rng().random::<f64>() * all;
    let (mut lo, mut hi) = (0, n - 1);
    // Few ranks hold most of the weight: a walk finds them, the tail is inverted.
    let mut sum = 0.0;
    for k in 1..=64.min(n) {
        sum += libm::pow(k as f64, -theta);
        if u < sum {
            return k - 1;
        }
        lo = k.min(n - 1);
    }
    while lo < hi {
        let mid = lo + (hi - lo) / 2;
        let below = zeta(mid + 1, theta);
        if below > u {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    lo
}

/// Ranks lie all over the file, not at its start.
fn spread(rank: u64, blocks: u64) -> u64 {
    let odd = 0x9e37_79b9_7f4a_7c15u64;
    (u128::from(rank) * u128::from(odd) % u128::from(blocks)) as u64
}

/// Counts a call that ended, unless the ramp is still on.
fn count(
    total: &Shared<Total>,
    job: &Job,
    start: Instant,
    begun: Instant,
    end: Instant,
    len: u32,
) -> bool {
    let from = start + job.ramp_time;
    if begun < from {
        return false;
    }
    total.with(|t| {
        t.ios += 1;
        t.bytes += u64::from(len);
        t.first = Some(t.first.map_or(begun, |f| f.min(begun)));
        t.last = t.last.max(Some(end));
    });
    true
}

/// Waits until the rates allow the next call, and thinks.
async fn pace<M: Machine>(m: &mut M, job: &Job, c: &Worker, start: Instant) -> Outcome {
    if job.thinktime > Nanos::ZERO && c.ios > 0 && c.ios.is_multiple_of(job.thinktime_blocks) {
        m.sleep(job.thinktime).await.doing(|| "thinktime")?;
    }
    let after = |n: u64, per_second: u64| {
        let ns = u128::from(n) * u128::from(NSEC_PER_SEC) / u128::from(per_second.max(1));
        start + Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    };
    let mut at = start;
    if let Some(r) = job.rate_iops {
        at = at.max(after(c.ios, r));
    }
    if let Some(r) = job.rate {
        at = at.max(after(c.bytes, r));
    }
    let now = m.now();
    if at > now {
        m.sleep(at.since(now)).await.doing(|| "rate")?;
    }
    Ok(())
}

fn kind(write: bool) -> &'static str {
    if write { "write" } else { "read" }
}

async fn plain<M: Machine>(
    m: &mut M,
    job: &Job,
    c: &mut Worker,
    start: Instant,
    total: &Shared<Total>,
) -> Outcome {
    while c.more(m, job, start) {
        pace(m, job, c, start).await?;
        let call = c.next(m, job);
        let op = m.op_begin(kind(call.write));
        let done = if call.write {
            m.write(call.fd, call.off, call.len).await
        } else {
            m.read(call.fd, call.off, call.len).await
        };
        let n = done.doing(|| format!("{} {} bytes at {}", op.kind, call.len, call.off))?;
        let now = m.now();
        if count(total, job, start, op.since, now, n) {
            m.op_end(op, u64::from(n));
        }
        let every = |n: u64| n > 0 && call.write && c.writes.is_multiple_of(n);
        if every(job.fsync) {
            fsync(m, call.fd, &job.name).await?;
        }
        if every(job.fdatasync) {
            fdatasync(m, call.fd, &job.name).await?;
        }
    }
    Ok(())
}

async fn deep<M: Machine>(
    m: &mut M,
    job: &Job,
    c: &mut Worker,
    start: Instant,
    total: &Shared<Total>,
) -> Outcome {
    let aio = m.aio(job.depth).await.doing(|| "make a queue")?;
    let mut running: Vec<Running> = vec![m.op_begin("read"); job.depth as usize];
    let mut free: Vec<u64> = (0..u64::from(job.depth)).rev().collect();
    let mut batch: Vec<AioRequest> = Vec::new();
    let mut done: Vec<AioDone> = Vec::new();
    let paced = job.rate.is_some() || job.rate_iops.is_some() || job.thinktime > Nanos::ZERO;
    loop {
        while !free.is_empty() && c.more(m, job, start) {
            if paced {
                pace(m, job, c, start).await?;
            }
            let call = c.next(m, job);
            let Some(tag) = free.pop() else { break };
            running[tag as usize] = m.op_begin(kind(call.write));
            batch.push(AioRequest {
                fd: call.fd,
                op: if call.write {
                    AioOp::Write
                } else {
                    AioOp::Read
                },
                off: call.off,
                len: call.len,
                tag,
            });
            let every = |n: u64| n > 0 && call.write && c.writes.is_multiple_of(n);
            if paced || every(job.fsync) || every(job.fdatasync) {
                submit(m, aio, &mut batch).await?;
                if every(job.fsync) {
                    fsync(m, call.fd, &job.name).await?;
                } else if every(job.fdatasync) {
                    fdatasync(m, call.fd, &job.name).await?;
                }
            }
        }
        submit(m, aio, &mut batch).await?;
        if free.len() == job.depth as usize {
            return m.aio_close(aio).await.doing(|| "end the queue");
        }
        done.clear();
        m.aio_reap(aio, 1, &mut done).await.doing(|| "reap")?;
        let now = m.now();
        for d in &done {
            let op = running[d.tag as usize];
            let n = d.result.map_err(|errno| Fail {
                what: format!("{} of job {}", op.kind, job.name),
                errno,
            })?;
            if count(total, job, start, op.since, now, n) {
                m.op_end(op, u64::from(n));
            }
            free.push(d.tag);
        }
    }
}

async fn submit<M: Machine>(m: &mut M, aio: Aio, batch: &mut Vec<AioRequest>) -> Outcome {
    if !batch.is_empty() {
        m.aio_submit(aio, batch).await.doing(|| "submit")?;
        batch.clear();
    }
    Ok(())
}
