//! What scripts share: groups of tasks, state between tasks, whole files, laws of sizes.

use crate::fail::{Context, Fail, Outcome};
use crate::machine::{Fd, How, Join, Machine};
use rand::Rng;
use seekwell_core::rng::Pcg64Mcg;
use seekwell_core::{Advice, Errno, Instant, Nanos, OpenFlags};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

/// Tasks that are waited for together.
#[derive(Default)]
pub struct Group {
    tasks: Vec<Join>,
}

impl Group {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// Starts one more.
    pub async fn spawn<M, F, Fut>(&mut self, m: &mut M, how: How, script: F) -> Outcome
    where
        M: Machine,
        F: FnOnce(M) -> Fut + Send + 'static,
        Fut: Future<Output = Outcome> + 'static,
    {
        let name = how.name.clone();
        let task = m.spawn(how, script).await;
        let task = task.doing(|| format!("start task {name}"))?;
        self.tasks.push(task);
        Ok(())
    }
    /// Waits for all. The failure that counts is the first that is not merely "stopped".
    pub async fn join<M: Machine>(self, m: &mut M) -> Outcome {
        let mut first: Option<Fail> = None;
        for t in self.tasks {
            if let Err(e) = m.join(t).await
                && first.as_ref().is_none_or(|f| f.stopped() && !e.stopped())
            {
                first = Some(e);
            }
        }
        first.map_or(Ok(()), Err)
    }
}

/// Holds the memory of a program's buffers. Too much for the machine is told with what it has.
pub async fn hold<M: Machine>(m: &mut M, bytes: u64, name: &str) -> Outcome {
    let cache = m.facts().cache_bytes;
    m.hold_memory(bytes).await.doing(|| {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        format!(
            "hold {} MiB for {name} of the {} MiB that the machine has for programs and caches",
            mib(bytes),
            mib(cache)
        )
    })
}

/// Both must be well. Of two failures the one that is not merely "stopped" counts: a task that was
/// stopped because another failed is not the cause.
pub fn both(a: Outcome, b: Outcome) -> Outcome {
    match (a, b) {
        (Err(a), Err(b)) if a.stopped() && !b.stopped() => Err(b),
        (Err(a), _) => Err(a),
        (Ok(()), b) => b,
    }
}

/// State that tasks of a script share. It is touched inside a closure, so that it cannot be held
/// while a task waits: waiting is the business of the machine's locks.
pub struct Shared<T>(Arc<Mutex<T>>);

impl<T> Shared<T> {
    /// With a first value.
    pub fn new(value: T) -> Self {
        Shared(Arc::new(Mutex::new(value)))
    }
    /// Looks at it or changes it.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

/// Uniform in `lo..=hi`.
pub fn uniform<M: Machine>(m: &mut M, lo: u64, hi: u64) -> u64 {
    m.rng().random_range(lo..=hi)
}

/// One in two.
pub fn coin<M: Machine>(m: &mut M) -> bool {
    m.rng().random::<bool>()
}

/// A standard normal number, by Marsaglia's polar method.
pub fn normal(rng: &mut Pcg64Mcg) -> f64 {
    loop {
        let x = rng.random::<f64>() * 2.0 - 1.0;
        let y = rng.random::<f64>() * 2.0 - 1.0;
        let s = x * x + y * y;
        if s > 0.0 && s < 1.0 {
            return x * libm::sqrt(-2.0 * libm::log(s) / s);
        }
    }
}

/// Lognormal with this median and mean (mean above median), drawn from a given stream.
pub fn lognormal_of(rng: &mut Pcg64Mcg, median: f64, mean: f64) -> f64 {
    let sigma = libm::sqrt(2.0 * libm::log(mean / median));
    median * libm::exp(sigma * normal(rng))
}

/// Lognormal with this median and mean (mean above median).
pub fn lognormal<M: Machine>(m: &mut M, median: f64, mean: f64) -> f64 {
    lognormal_of(m.rng(), median, mean)
}

/// Exponential with this mean: the distance of events that do not know of each other.
pub fn exponential<M: Machine>(m: &mut M, mean: Nanos) -> Nanos {
    let u = 1.0 - m.rng().random::<f64>();
    Nanos((-libm::log(u) * mean.0 as f64) as u64)
}

/// What else a phone does: at exponential distances a burst of three small appends, each synced,
/// until `stop`.
pub async fn services<M: Machine>(
    mut m: M,
    path: String,
    mean: Nanos,
    stop: Shared<bool>,
) -> Outcome {
    let m = &mut m;
    let fd = open(m, &path, OpenFlags::CREATE).await?;
    let mut due = m.now();
    loop {
        due = due + exponential(m, mean);
        while m.now() < due {
            if stop.with(|s| *s) {
                return close(m, fd, &path).await;
            }
            // In pieces, or the end of the run would wait for the next burst.
            let left = due.since(m.now()).min(Nanos::from_ms(100));
            m.sleep(left).await.doing(|| "sleep")?;
        }
        for _ in 0..3 {
            let op = m.op_begin("service fsync");
            m.append(fd, 4096)
                .await
                .doing(|| format!("append to {path}"))?;
            m.fsync(fd).await.doing(|| format!("fsync {path}"))?;
            m.op_end(op, 4096);
        }
    }
}

/// Seconds since `start`.
pub fn seconds<M: Machine>(m: &M, start: Instant) -> f64 {
    m.now().since(start).as_secs_f64()
}

/// `n` a second of `secs`; 0 if no time passed.
pub fn rate(n: f64, secs: f64) -> f64 {
    if secs > 0.0 { n / secs } else { 0.0 }
}

/// To two decimals, as many programs print.
pub fn hundredths(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

/// Mebibytes.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 20) as f64
}

/// Writes `size` bytes front to back in calls of `chunk`, each counted as "write".
pub async fn write_all<M: Machine>(
    m: &mut M,
    fd: Fd,
    size: u64,
    chunk: u32,
    path: &str,
) -> Outcome {
    let mut off = 0;
    while off < size {
        let len = size_of_call(chunk, size - off);
        let op = m.op_begin("write");
        let n = m.write(fd, off, len).await;
        let n = n.doing(|| format!("write {len} bytes at {off} of {path}"))?;
        m.op_end(op, u64::from(n));
        off += u64::from(n);
    }
    Ok(())
}

/// Reads front to back in calls of `chunk`, each counted as "read", until a call gives less than
/// it asked for. Bytes read.
pub async fn read_all<M: Machine>(m: &mut M, fd: Fd, chunk: u32, path: &str) -> Outcome<u64> {
    let mut off = 0;
    loop {
        let op = m.op_begin("read");
        let n = m.read(fd, off, chunk).await;
        let n = n.doing(|| format!("read {chunk} bytes at {off} of {path}"))?;
        m.op_end(op, u64::from(n));
        off += u64::from(n);
        if n < chunk {
            return Ok(off);
        }
    }
}

/// Reads front to back in calls of `chunk` until a call gives nothing, as programs do that do not
/// know how long a file is. The calls that gave something are counted as "read". Bytes read.
pub async fn read_to_end<M: Machine>(m: &mut M, fd: Fd, chunk: u32, path: &str) -> Outcome<u64> {
    let mut off = 0;
    loop {
        let op = m.op_begin("read");
        let n = m.read(fd, off, chunk).await;
        let n = n.doing(|| format!("read {chunk} bytes at {off} of {path}"))?;
        if n == 0 {
            return Ok(off);
        }
        m.op_end(op, u64::from(n));
        off += u64::from(n);
    }
}

/// [`Machine::read_whole`], call by call.
pub async fn read_whole<M: Machine>(m: &mut M, path: &str, chunk: u32) -> Outcome<bool> {
    let fd = match m.open(path, OpenFlags::RDONLY).await {
        Err(Errno::ENOENT) => return Ok(false),
        r => r.doing(|| format!("open {path}"))?,
    };
    read_to_end(m, fd, chunk, path).await?;
    close(m, fd, path).await?;
    Ok(true)
}

/// Drops a file's clean pages: what is read again comes from the disk again.
pub async fn forget<M: Machine>(m: &mut M, fd: Fd, path: &str) -> Outcome {
    let done = m.fadvise(fd, 0, 0, Advice::DontNeed).await;
    done.doing(|| format!("drop the pages of {path}"))
}

/// Opens, saying which file it was when that fails.
pub async fn open<M: Machine>(m: &mut M, path: &str, how: OpenFlags) -> Outcome<Fd> {
    m.open(path, how).await.doing(|| format!("open {path}"))
}

/// Closes.
pub async fn close<M: Machine>(m: &mut M, fd: Fd, path: &str) -> Outcome {
    m.close(fd).await.doing(|| format!("close {path}"))
}

/// fsync, counted as "fsync".
pub async fn fsync<M: Machine>(m: &mut M, fd: Fd, path: &str) -> Outcome {
    let op = m.op_begin("fsync");
    m.fsync(fd).await.doing(|| format!("fsync {path}"))?;
    m.op_end(op, 0);
    Ok(())
}

/// fdatasync, counted as "fdatasync".
pub async fn fdatasync<M: Machine>(m: &mut M, fd: Fd, path: &str) -> Outcome {
    let op = m.op_begin("fdatasync");
    m.fdatasync(fd)
        .await
        .doing(|| format!("fdatasync {path}"))?;
    m.op_end(op, 0);
    Ok(())
}

/// O_RDWR|O_CREAT|O_TRUNC.
pub const FRESH: OpenFlags = OpenFlags::CREATE.union(OpenFlags::TRUNC);

/// Makes a file of a size in calls of up to 1 MiB, without counting operations: the preparation of
/// a test.
pub async fn lay_out<M: Machine>(m: &mut M, path: &str, size: u64) -> Outcome {
    let fd = open(m, path, FRESH).await?;
    let mut off = 0;
    while off < size {
        let len = size_of_call(1 << 20, size - off);
        let n = m.write(fd, off, len).await;
        off += u64::from(n.doing(|| format!("write {len} bytes at {off} of {path}"))?);
    }
    close(m, fd, path).await
}

/// The next call's length.
pub fn size_of_call(chunk: u32, left: u64) -> u32 {
    u32::try_from(left).map_or(chunk, |l| l.min(chunk))
}
