//! N sequential streams, each with its own file, for a fixed time.
//!
//! Readers read files that are not in the page cache, through read-ahead or with O_DIRECT. Before
//! each further pass, a reader drops its file from the page cache. Writers write with O_DIRECT or
//! through the page cache; there, files smaller than the dirty limits are rewritten in memory. Only
//! work that completes within the time counts. The metrics are the total rate and its fairness,
//! given as Jain's index. The index is 1 if all streams are equal, and 1/N if one stream gets
//! everything.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload};
use seekwell_core::{Instant, IoPrio, NSEC_PER_SEC, Nanos, OpenFlags};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "streams",
    summary: "N parallel sequential streams",
    metric: "total MB/s (MiB), higher is better; also Jain's fairness index",
    stresses: "seeks between streams: idling and time slices, or strict order; disk time by priority",
    source: "the situation for which time slices were designed (CFQ, BFQ, anticipatory)",
    #[rustfmt::skip]
    params: &[
        param("streams", Kind::Count(1, 1024), "4", "number of tasks, each with its own file"),
        param("kind", Kind::Choice(&["read", "write"]), "read", "readers or writers"),
        param("size", Kind::Bytes(1 << 20, 1 << 44), "1GiB",
            "size of a file; at its end, a stream starts again"),
        param("block", Kind::Bytes(4096, 16 << 20), "64KiB", "size of a call"),
        param("direct", Kind::Flag, "no", "bypass the page cache"),
        param("think", Kind::Time(0, 3600 * NSEC_PER_SEC), "0", "sleep between calls"),
        param("seconds", Kind::Time(NSEC_PER_SEC / 100, 24 * 3600 * NSEC_PER_SEC), "30s",
            "duration"),
        param("priorities", Kind::Choice(&["equal", "spread"]), "equal",
            "spread: best-effort levels 0 to 7 in turn"),
    ],
    profiles: &[profile(
        "one",
        "a single stream: the scheduler should have no effect",
        &[("streams", "1")],
    )],
    needs: Needs::Directory,
    space: |p| p.int("streams") * p.int("size"),
    check: |p| {
        if p.flag("direct") && p.int("block") % 4096 != 0 {
            return Err("block must be a multiple of 4096 with direct=yes".into());
        }
        if p.int("size") % p.int("block") != 0 {
            return Err("size must be a multiple of block".into());
        }
        Ok(())
    },
};

#[derive(Clone)]
struct Job {
    path: String,
    size: u64,
    block: u32,
    write: bool,
    how: OpenFlags,
    think: Nanos,
    end: Instant,
    bytes: Shared<Vec<u64>>,
    index: usize,
}

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let n = p.int("streams");
    let write = p.word("kind") == "write";
    let size = p.int("size");
    m.mark(Mark::Phase("lay out"));
    for s in 0..n {
        lay_out(m, &format!("{dir}/stream{s}"), size).await?;
    }
    m.syncfs().await.doing(|| "sync")?;
    m.drop_caches().await.doing(|| "drop caches")?;
    let mut how = if write {
        OpenFlags::empty()
    } else {
        OpenFlags::RDONLY
    };
    if p.flag("direct") {
        how |= OpenFlags::DIRECT;
    }
    m.mark(Mark::ClockStart);
    let start = m.now();
    let mut job = Job {
        path: String::new(),
        size,
        block: p.small("block"),
        write,
        how,
        think: p.time("think"),
        end: start + p.time("seconds"),
        bytes: Shared::new(vec![0; n as usize]),
        index: 0,
    };
    let mut group = Group::new();
    for s in 0..n {
        job.path = format!("{dir}/stream{s}");
        job.index = s as usize;
        let mut how = How::named(format!("stream{s}"));
        if p.word("priorities") == "spread" {
            how.ioprio = IoPrio::be((s % 8) as u8);
        }
        let job = job.clone();
        group.spawn(m, how, move |m| stream(m, job)).await?;
    }
    let outcome = group.join(m).await;
    let bytes = job.bytes.with(|b| b.clone());
    let sum: u64 = bytes.iter().sum();
    if sum > 0 {
        // If the run is stopped, the time counts up to the stop.
        let secs = seconds(m, start).min(p.time("seconds").as_secs_f64());
        m.counts(if write { "write" } else { "read" });
        m.metric("streams", "MB/s", rate(mib(sum), secs), true);
        let squares: f64 = bytes.iter().map(|b| (*b as f64) * (*b as f64)).sum();
        let jain = (sum as f64) * (sum as f64) / (n as f64 * squares);
        m.metric("fairness", "Jain's index", jain, true);
    }
    outcome
}

async fn stream<M: Machine>(mut m: M, job: Job) -> Outcome {
    let m = &mut m;
    let fd = open(m, &job.path, job.how).await?;
    let kind = if job.write { "write" } else { "read" };
    let mut off = 0;
    while m.now() < job.end {
        let op = m.op_begin(kind);
        let n = if job.write {
            m.write(fd, off, job.block).await
        } else {
            m.read(fd, off, job.block).await
        };
        let n = n.doing(|| format!("{kind} {} bytes at {off} of {}", job.block, job.path))?;
        m.op_end(op, u64::from(n));
        if m.now() <= job.end {
            job.bytes.with(|b| b[job.index] += u64::from(n));
        }
        off += u64::from(job.block);
        if off == job.size {
            off = 0;
            if !job.write {
                forget(m, fd, &job.path).await?;
            }
        }
        if job.think > Nanos::ZERO {
            m.sleep(job.think).await.doing(|| "think")?;
        }
    }
    close(m, fd, &job.path).await
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn streams_are_sequential_and_share_evenly_without_contention() {
        for kind in ["read", "write"] {
            let given = [("size", "4m"), ("seconds", "20ms"), ("kind", kind)];
            let t = Trial::run("streams", &given);
            let r = t.ranges(kind, "stream2");
            let timed = &r[r.len() - 100..];
            assert!(
                timed
                    .windows(2)
                    .all(|w| w[1].0 == (w[0].0 + 65_536) % (4 << 20))
            );
            let jain = t.world.measures().metrics()[1].value;
            assert!((jain - 1.0).abs() < 1e-9, "{jain}");
            assert_eq!(t.left_over(), 0);
        }
    }

    #[test]
    fn each_further_pass_drops_the_file_from_the_cache_only_for_reads() {
        for (kind, forgets) in [("read", true), ("write", false)] {
            let given = [("size", "1m"), ("seconds", "20ms"), ("kind", kind)];
            let t = Trial::run("streams", &given);
            // The first pass of a reader needs no drop. The first pass of a writer is the
            // preparation of its file.
            let calls = t.ranges(kind, "stream1");
            let passes = calls.iter().filter(|r| r.0 == 0).count() - 1;
            assert!(passes > 5, "{passes}");
            let dropped = t.ranges("fadvise", "stream1").len();
            assert_eq!(dropped, if forgets { passes } else { 0 }, "{kind}");
        }
    }

    #[test]
    fn completed_work_is_divided_by_the_run_time() {
        let given = [
            ("size", "1m"),
            ("seconds", "10ms"),
            ("streams", "2"),
            ("think", "3ms"),
        ];
        let t = Trial::run("streams", &given);
        // There are calls at 0, 3.07, 6.13 and 9.2 ms. The next call would begin too late.
        assert_eq!(t.calls("read"), 8);
        let mib = 8.0 * 64.0 / 1024.0;
        assert!((t.metric() - mib / 0.01).abs() < 1e-9, "{}", t.metric());
        let late = [("size", "1m"), ("seconds", "10ms"), ("block", "1m")];
        let t = Trial::run("streams", &late);
        // A call of 1 MiB takes 1.05 ms. Nine calls end in time, and the tenth does not.
        assert_eq!(t.calls("read"), 40);
        assert!((t.metric() - 36.0 / 0.01).abs() < 1e-9, "{}", t.metric());
    }

    #[test]
    fn file_size_must_be_a_multiple_of_the_block_size() {
        let given = [("block".to_owned(), "5000".to_owned())];
        assert!(crate::Plan::new("streams", &given).is_err());
    }
}
