//! Common parts of scripts: groups of tasks, shared state, whole files, distributions of sizes.

use crate::fail::{Context, Fail, Outcome};
use crate::machine::{Fd, How, Join, Machine};
pub use crate::machine::{read_to_end, read_whole};
use rand::Rng;
use seekwell_core::rng::Pcg64Mcg;
use seekwell_core::{Advice, Instant, Nanos, OpenFlags};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

/// Tasks for which a script waits together.
#[derive(Default)]
pub struct Group {
    tasks: Vec<Join>,
}

impl Group {
    /// Makes a group without tasks.
    pub fn new() -> Self {
        Self::default()
    }
    /// Starts a task and adds it to the group.
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
    /// Waits for all tasks. Returns the first failure of a task that was not only stopped because
    /// of another task.
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

/// Reserves memory for a program's buffers. If the request is too large, the error contains the
/// available memory.
pub async fn hold<M: Machine>(m: &mut M, bytes: u64, name: &str) -> Outcome {
    let cache = m.facts().cache_bytes;
    m.hold_memory(bytes).await.doing(|| {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        format!(
            "reserve {} MiB for {name} (the machine has {} MiB for programs and caches)",
            mib(bytes),
            mib(cache)
        )
    })
}

/// Combines two outcomes. If both are failures, returns the one whose task was not only stopped,
/// because a task that was stopped is not the cause.
pub fn both(a: Outcome, b: Outcome) -> Outcome {
    match (a, b) {
        (Err(a), Err(b)) if a.stopped() && !b.stopped() => Err(b),
        (Err(a), _) => Err(a),
        (Ok(()), b) => b,
    }
}

/// State that the tasks of a script share. It is accessible only inside a closure, so no task can
/// hold it while it waits. Use the machine's locks for waiting.
pub struct Shared<T>(Arc<Mutex<T>>);

impl<T> Shared<T> {
    /// Makes shared state with an initial value.
    pub fn new(value: T) -> Self {
        Shared(Arc::new(Mutex::new(value)))
    }
    /// Calls `f` with the state, and returns the result of `f`.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

/// Returns a uniformly distributed random number in `lo..=hi`.
pub fn uniform<M: Machine>(m: &mut M, lo: u64, hi: u64) -> u64 {
    m.rng().random_range(lo..=hi)
}

/// Returns a random boolean.
pub fn coin<M: Machine>(m: &mut M) -> bool {
    m.rng().random::<bool>()
}

/// Returns a normally distributed number with mean 0 and standard deviation 1 (Marsaglia's polar
/// method).
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

/// Returns a lognormally distributed number with this median and mean, from the given generator.
/// The mean must be greater than the median.
pub fn lognormal_of(rng: &mut Pcg64Mcg, median: f64, mean: f64) -> f64 {
    let sigma = libm::sqrt(2.0 * libm::log(mean / median));
    median * libm::exp(sigma * normal(rng))
}

/// Returns a lognormally distributed number with this median and mean. The mean must be greater
/// than the median.
pub fn lognormal<M: Machine>(m: &mut M, median: f64, mean: f64) -> f64 {
    lognormal_of(m.rng(), median, mean)
}

/// Returns an exponentially distributed time with this mean, which is the interval between
/// independent events.
pub fn exponential<M: Machine>(m: &mut M, mean: Nanos) -> Nanos {
    let u = 1.0 - m.rng().random::<f64>();
    Nanos((-libm::log(u) * mean.0 as f64) as u64)
}

/// Simulates background services of a phone until `stop` is set: groups of three small appends with
/// syncs, at exponentially distributed intervals.
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
            // Sleep in short intervals, so that the end of the run does not wait for the next
            // group.
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

/// Returns the seconds since `start`.
pub fn seconds<M: Machine>(m: &M, start: Instant) -> f64 {
    m.now().since(start).as_secs_f64()
}

/// Returns `n` divided by `secs`, or 0 if `secs` is 0.
pub fn rate(n: f64, secs: f64) -> f64 {
    if secs > 0.0 { n / secs } else { 0.0 }
}

/// Rounds to two decimals, as many programs do.
pub fn hundredths(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

/// Converts bytes to MiB.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 20) as f64
}

/// Writes `size` bytes from start to end in calls of `chunk` bytes. Each call counts as an
/// operation "write".
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

/// Reads a file from start to end in calls of `chunk` bytes, until a call returns fewer bytes than
/// requested. Each call counts as an operation "read". Returns the number of bytes read.
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

/// Drops the clean pages of a file, so that later reads come from the disk.
pub async fn forget<M: Machine>(m: &mut M, fd: Fd, path: &str) -> Outcome {
    let done = m.fadvise(fd, 0, 0, Advice::DontNeed).await;
    done.doing(|| format!("drop the pages of {path}"))
}

/// Opens a file. The error contains its path.
pub async fn open<M: Machine>(m: &mut M, path: &str, how: OpenFlags) -> Outcome<Fd> {
    m.open(path, how).await.doing(|| format!("open {path}"))
}

/// Closes a file. The error contains its path.
pub async fn close<M: Machine>(m: &mut M, fd: Fd, path: &str) -> Outcome {
    m.close(fd).await.doing(|| format!("close {path}"))
}

/// Calls fsync and counts it as an operation "fsync".
pub async fn fsync<M: Machine>(m: &mut M, fd: Fd, path: &str) -> Outcome {
    let op = m.op_begin("fsync");
    m.fsync(fd).await.doing(|| format!("fsync {path}"))?;
    m.op_end(op, 0);
    Ok(())
}

/// Calls fdatasync and counts it as an operation "fdatasync".
pub async fn fdatasync<M: Machine>(m: &mut M, fd: Fd, path: &str) -> Outcome {
    let op = m.op_begin("fdatasync");
    m.fdatasync(fd)
        .await
        .doing(|| format!("fdatasync {path}"))?;
    m.op_end(op, 0);
    Ok(())
}

/// The flags O_RDWR|O_CREAT|O_TRUNC.
pub const FRESH: OpenFlags = OpenFlags::CREATE.union(OpenFlags::TRUNC);

/// Makes a file of this size in calls of up to 1 MiB, to prepare a test. The calls do not count as
/// operations.
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

/// Returns the length of the next call.
pub fn size_of_call(chunk: u32, left: u64) -> u32 {
    u32::try_from(left).map_or(chunk, |l| l.min(chunk))
}
