//! tiobench 0.3.3 (tiotest): random writes of many threads, each into its own file.
//!
//! Phase 1 writes the files front to back, all threads together, with an fsync at the end: it
//! lays them out and leaves them in the cache. Phase 2 writes blocks at uniform places and ends
//! with the fsync, in which all the work is. Rate: bytes over the time from the release of the
//! threads to the end of the last.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{Barrier, How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::registry::{Needs, Workload};
use seekwell_core::{Instant, OpenFlags};

/// Documentation.
pub const WORKLOAD: Workload = Workload {
    name: "tiobench",
    summary: "random writes by threads, one file each, synced at the end",
    metric: "MB/s of the random writes, higher is better",
    stresses: "sorting across submitters: concurrent fsyncs, each a sparse sweep over its file",
    source: "tiobench 0.3.3 (tiotest -k3 -k2); pts/tiobench-1.1.0",
    params: &[
        param(
            "size",
            Kind::Bytes(4096, 1 << 40),
            "64MiB",
            "bytes of each thread's file (-f)",
        ),
        param("threads", Kind::Count(1, 1024), "8", "threads (-t)"),
        param(
            "block",
            Kind::Bytes(512, 16 << 20),
            "4KiB",
            "bytes of a call (-b)",
        ),
        param(
            "random",
            Kind::Count(1, 10_000_000),
            "1000",
            "random writes of each thread (-r)",
        ),
    ],
    profiles: &[
        profile("64mb-8", "64MB, 8 threads", &[]),
        profile("64mb-16", "64MB, 16 threads", &[("threads", "16")]),
        profile("128mb-8", "128MB, 8 threads", &[("size", "128m")]),
        profile(
            "128mb-16",
            "128MB, 16 threads",
            &[("size", "128m"), ("threads", "16")],
        ),
    ],
    needs: Needs::Directory,
    space: |p| p.int("size") * p.int("threads"),
    check: |p| {
        if p.int("block") <= p.int("size") {
            Ok(())
        } else {
            Err("block must not exceed size".into())
        }
    },
};

#[derive(Clone)]
struct Job {
    path: String,
    size: u64,
    block: u32,
    random: u64,
    gate: Barrier,
    /// First release and last end of the phase.
    span: Shared<(Instant, Instant)>,
}

/// The script.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let threads = p.small("threads");
    let job = Job {
        path: String::new(),
        size: p.int("size"),
        block: p.small("block"),
        random: p.int("random"),
        gate: m.barrier(threads),
        span: Shared::new((Instant::FAR, Instant::START)),
    };
    for (phase, random) in [("write", false), ("random write", true)] {
        m.mark(Mark::Phase(phase));
        if random {
            m.mark(Mark::ClockStart);
        }
        job.span.with(|s| *s = (Instant::FAR, Instant::START));
        let mut group = Group::new();
        for t in 0..threads {
            let mut job = job.clone();
            job.path = format!("{dir}/tiotest.{t}");
            let name = format!("{}{t}", if random { "random" } else { "write" });
            group
                .spawn(m, How::named(name), move |m| thread(m, job, random))
                .await?;
        }
        group.join(m).await?;
    }
    let (start, end) = job.span.with(|s| *s);
    let bytes = u64::from(threads) * job.random * u64::from(job.block);
    let mb = rate(mib(bytes), end.since(start).as_secs_f64());
    m.metric("random write", "MB/s", mb, true);
    Ok(())
}

async fn thread<M: Machine>(mut m: M, job: Job, random: bool) -> Outcome {
    let m = &mut m;
    let path = &job.path;
    m.arrive(job.gate).await.doing(|| "wait for the start")?;
    let now = m.now();
    job.span.with(|s| s.0 = s.0.min(now));
    if random {
        let fd = open(m, path, OpenFlags::empty()).await?;
        let blocks = job.size / u64::from(job.block);
        for _ in 0..job.random {
            let off = uniform(m, 0, blocks - 1) * u64::from(job.block);
            let op = m.op_begin("random write");
            let n = m.write(fd, off, job.block).await;
            let n = n.doing(|| format!("write {} bytes at {off} of {path}", job.block))?;
            m.op_end(op, u64::from(n));
        }
        fsync(m, fd, path).await?;
        close(m, fd, path).await?;
    } else {
        let fd = open(m, path, FRESH).await?;
        write_all(m, fd, job.size, job.block, path).await?;
        m.fsync(fd).await.doing(|| format!("fsync {path}"))?;
        close(m, fd, path).await?;
    }
    let now = m.now();
    job.span.with(|s| s.1 = s.1.max(now));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn calls_of_both_phases() {
        let t = Trial::run("tiobench", &[("size", "1m"), ("random", "100")]);
        assert_eq!(t.calls("write"), 8 * (256 + 100));
        assert_eq!(t.ops("random write"), 800);
        assert_eq!(t.calls("fsync"), 16, "at the end of each phase");
        assert_eq!(t.ops("fsync"), 8, "of the second phase");
        assert_eq!(
            t.tasks(),
            17,
            "new threads in each phase, and the first task"
        );
        let ranges = t.ranges("write", "tiotest.3");
        assert!(
            ranges
                .iter()
                .all(|r| r.0 + r.1 <= 1 << 20 && r.0 % 4096 == 0)
        );
        let second: Vec<u64> = ranges[256..].iter().map(|r| r.0).collect();
        assert!(second.windows(2).any(|w| w[1] < w[0]), "not in order");
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn the_rate_is_of_the_random_writes_alone() {
        // A call of 4096 bytes takes 5096 ns and a sync 100 us in the test world; threads do not
        // contend there. Opening (1 us) and closing are in the time, as in the original.
        let t = Trial::run("tiobench", &[("size", "1m"), ("random", "100")]);
        let secs = (1_000.0 + 100.0 * 5_096.0 + 100_000.0 + 1_000.0) / 1e9;
        let expect = 8.0 * 100.0 / 256.0 / secs;
        assert!(
            (t.metric() / expect - 1.0).abs() < 1e-9,
            "{} {expect}",
            t.metric()
        );
    }
}
