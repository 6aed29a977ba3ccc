//! tiobench 0.3.3 (tiotest): random writes of many threads, each to its own file.
//!
//! In phase 1, all threads write their files from start to end, with an fsync at the end. This
//! phase allocates the files and leaves them in the page cache. In phase 2, the threads write
//! blocks at uniformly distributed positions and then call fsync, which causes nearly all I/O. The
//! rate is the number of bytes divided by the time from the start of the first thread to the end of
//! the last thread, with three decimals. Files consist of whole blocks. The original program never
//! writes the last block in phase 2, because its modulus is too small by one. This script does not
//! write it either.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{Barrier, How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload};
use seekwell_core::{Instant, OpenFlags};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "tiobench",
    summary: "random writes by threads, each to its own file, synced at the end",
    metric: "MB/s (MiB) of the random writes, higher is better; also of the sequential writes \
             before",
    stresses: "sorting across submitters: concurrent fsyncs, each of which writes a few blocks \
               across its file",
    source: "tiobench 0.3.3 (tiotest -k3 -k2); pts/tiobench-1.1.0",
    #[rustfmt::skip]
    params: &[
        param("size", Kind::Bytes(4096, 1 << 40), "64MiB",
            "size of each thread's file, in whole blocks (-f)"),
        param("threads", Kind::Count(1, 1024), "8", "number of threads (-t)"),
        param("block", Kind::Bytes(512, 16 << 20), "4KiB", "size of a call (-b)"),
        param("random", Kind::Count(1, 10_000_000), "1000",
            "number of random writes per thread (-r)"),
    ],
    #[rustfmt::skip]
    profiles: &[
        profile("64mb-8", "64MB, 8 threads", &[]),
        profile("64mb-16", "64MB, 16 threads", &[("threads", "16")]),
        profile("128mb-8", "128MB, 8 threads", &[("size", "128m")]),
        profile("128mb-16", "128MB, 16 threads", &[("size", "128m"), ("threads", "16")]),
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
    /// Start of the first thread and end of the last thread in this phase.
    span: Shared<(Instant, Instant)>,
}

/// Runs the workload.
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
    let mut rates = Vec::new();
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
        let (start, end) = job.span.with(|s| *s);
        let calls = if random { job.random } else { job.blocks() };
        let bytes = u64::from(threads) * calls * u64::from(job.block);
        let mb = rate(mib(bytes), end.since(start).as_secs_f64());
        rates.push((phase, (mb * 1000.0).round() / 1000.0));
    }
    m.counts("random write");
    // The requested metric comes first.
    for (phase, mb) in rates.into_iter().rev() {
        m.metric(phase, "MB/s", mb, true);
    }
    Ok(())
}

impl Job {
    /// Returns the number of whole blocks of a file.
    fn blocks(&self) -> u64 {
        self.size / u64::from(self.block)
    }
}

async fn thread<M: Machine>(mut m: M, job: Job, random: bool) -> Outcome {
    let m = &mut m;
    let path = &job.path;
    m.arrive(job.gate).await.doing(|| "wait for the start")?;
    let now = m.now();
    job.span.with(|s| s.0 = s.0.min(now));
    if random {
        let fd = open(m, path, OpenFlags::empty()).await?;
        // The last block is never drawn, unless the file has only one block.
        let last = job.blocks().saturating_sub(2);
        for _ in 0..job.random {
            let off = uniform(m, 0, last) * u64::from(job.block);
            let op = m.op_begin("random write");
            let n = m.write(fd, off, job.block).await;
            let n = n.doing(|| format!("write {} bytes at {off} of {path}", job.block))?;
            m.op_end(op, u64::from(n));
        }
        fsync(m, fd, path).await?;
        close(m, fd, path).await?;
    } else {
        let fd = open(m, path, FRESH).await?;
        let whole = job.blocks() * u64::from(job.block);
        write_all(m, fd, whole, job.block, path).await?;
        m.fsync(fd).await.doing(|| format!("fsync {path}"))?;
        close(m, fd, path).await?;
    }
    let now = m.now();
    job.span.with(|s| s.1 = s.1.max(now));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Plan;
    use crate::testing::Trial;

    #[test]
    fn both_phases_make_the_expected_calls() {
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
        let mut calls = vec!["open"];
        calls.extend(["write"; 256]);
        calls.extend(["fsync", "close", "open"]);
        calls.extend(["write"; 100]);
        calls.extend(["fsync", "close", "unlink"]);
        assert_eq!(t.sequence("tiotest.3"), calls);
        let ranges = t.ranges("write", "tiotest.3");
        let front: Vec<(u64, u64)> = (0..256).map(|i| (i << 12, 4096)).collect();
        assert_eq!(ranges[..256], front);
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn random_writes_are_uniform_excluding_the_last_block() {
        let t = Trial::run("tiobench", &[("size", "64k"), ("random", "4000")]);
        let log = t.world.log();
        let written = log.iter().filter(|c| c.name == "write");
        let random: Vec<u64> = written.map(|c| c.off).skip(8 * 16).collect();
        assert_eq!(random.len(), 32_000);
        let mut count = [0u32; 16];
        for off in &random {
            assert_eq!(off % 4096, 0);
            count[(off / 4096) as usize] += 1;
        }
        assert_eq!(count[15], 0);
        // 32 000 draws from 15 positions: 2133 each, with a standard deviation of 45.
        assert!(
            count[..15].iter().all(|n| (1950..2320).contains(n)),
            "{count:?}"
        );
        assert!(random.windows(2).any(|w| w[1] < w[0]), "not in order");
    }

    #[test]
    fn rate_counts_only_the_random_writes() {
        // A call of 4096 bytes takes 5096 ns and a sync 100 us on the test machine, where threads
        // do not compete. The time includes open (1 us) and close, as in the original program.
        let t = Trial::run("tiobench", &[("size", "1m"), ("random", "100")]);
        let of = |calls: f64| {
            let secs = (1_000.0 + calls * 5_096.0 + 100_000.0 + 1_000.0) / 1e9;
            (8.0 * calls / 256.0 / secs * 1000.0).round() / 1000.0
        };
        assert_eq!(t.metric(), of(100.0));
        assert_eq!(t.world.measures().metrics()[1].value, of(256.0));
    }

    #[test]
    fn profiles_write_the_published_amounts() {
        for (profile, span_mib, random_mib) in [
            ("64mb-8", 512, 31.25),
            ("64mb-16", 1024, 62.5),
            ("128mb-8", 1024, 31.25),
            ("128mb-16", 2048, 62.5),
        ] {
            let plan = Plan::new(&format!("tiobench:profile={profile}"), &[]).expect("fits");
            assert_eq!(plan.space() >> 20, span_mib, "{profile}");
            let p = plan.values();
            let bytes = p.int("threads") * p.int("random") * p.int("block");
            assert_eq!(bytes as f64 / f64::from(1 << 20), random_mib, "{profile}");
        }
    }

    #[test]
    fn sizes_are_rounded_up_to_whole_blocks() {
        let t = Trial::run("tiobench", &[("size", "10k"), ("random", "3")]);
        assert_eq!(t.bytes_written(), 8 * (2 + 3) * 4096);
        let t = Trial::run("tiobench", &[("size", "4k"), ("random", "3")]);
        assert!(t.ranges("write", "tiotest").iter().all(|r| r.0 == 0));
        let e = Plan::new("tiobench:size=4k,block=8k", &[]).expect_err("refused");
        assert!(e.to_string().contains("block must not exceed size"), "{e}");
    }
}
