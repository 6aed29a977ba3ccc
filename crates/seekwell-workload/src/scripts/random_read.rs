//! Direct random reads of a file. This is the simplest workload, with one or more tasks and a fixed
//! queue depth.
//!
//! The file is written, synced and dropped from the page cache. Then each task reads aligned blocks
//! at uniformly distributed positions with O_DIRECT. With a depth above 1, a task keeps this number
//! of reads in flight.

use super::common::*;
use crate::fail::{Context, Fail, Outcome};
use crate::machine::{Aio, AioDone, AioOp, AioRequest, Fd, How, Machine};
use crate::note::{Mark, Running};
use crate::params::{Kind, Params, param};
use crate::row::{Needs, Workload};
use seekwell_core::{Instant, NSEC_PER_SEC, Nanos, OpenFlags};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "random-read",
    summary: "direct random reads of a file, by tasks with a fixed queue depth",
    metric: "reads/s, higher is better",
    stresses: "only the device: no page cache, no journal, no writes",
    source: "fio rw=randread direct=1",
    #[rustfmt::skip]
    params: &[
        param("size", Kind::Bytes(1 << 20, 1 << 44), "1GiB", "size of the file"),
        param("block", Kind::Bytes(4096, 16 << 20), "4KiB", "size of a read"),
        param("tasks", Kind::Count(1, 1024), "1", "number of tasks that read"),
        param("depth", Kind::Count(1, 1024), "1", "number of reads that each task keeps in flight"),
        param("seconds", Kind::Time(NSEC_PER_SEC / 100, 24 * 3600 * NSEC_PER_SEC), "10s",
            "duration"),
    ],
    profiles: &[],
    needs: Needs::Directory,
    space: |p| p.int("size"),
    check: |p| {
        if p.int("block") % 4096 == 0 && p.int("block") <= p.int("size") {
            Ok(())
        } else {
            Err("block must be a multiple of 4096 and at most size".into())
        }
    },
};

#[derive(Clone)]
struct Job {
    path: String,
    blocks: u64,
    block: u32,
    depth: u32,
    time: Nanos,
    count: Shared<u64>,
}

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let job = Job {
        path: format!("{dir}/file"),
        blocks: p.int("size") / p.int("block"),
        block: p.small("block"),
        depth: p.small("depth"),
        time: p.time("seconds"),
        count: Shared::new(0),
    };
    m.mark(Mark::Phase("lay out"));
    lay_out(m, &job.path, p.int("size")).await?;
    m.syncfs().await.doing(|| "sync")?;
    m.drop_caches().await.doing(|| "drop caches")?;
    m.mark(Mark::ClockStart);
    let start = m.now();
    let mut group = Group::new();
    for t in 0..p.int("tasks") {
        let job = job.clone();
        let name = How::named(format!("reader{t}"));
        group.spawn(m, name, move |m| reader(m, job)).await?;
    }
    let outcome = group.join(m).await;
    let count = job.count.with(|c| *c);
    if count > 0 {
        let secs = seconds(m, start);
        m.counts("read");
        m.metric("random reads", "reads/s", rate(count as f64, secs), true);
    }
    outcome
}

async fn reader<M: Machine>(mut m: M, job: Job) -> Outcome {
    let m = &mut m;
    let fd = open(m, &job.path, OpenFlags::DIRECT | OpenFlags::RDONLY).await?;
    let end = m.now() + job.time;
    if job.depth > 1 {
        let aio = m.aio(job.depth).await.doing(|| "make a queue")?;
        deep(m, &job, fd, aio, end).await?;
        m.aio_close(aio).await.doing(|| "end the queue")?;
    } else {
        while m.now() < end {
            let off = place(m, &job);
            let op = m.op_begin("read");
            let n = m.read(fd, off, job.block).await;
            let n = n.doing(|| format!("read {} bytes at {off} of {}", job.block, job.path))?;
            m.op_end(op, u64::from(n));
            job.count.with(|c| *c += 1);
        }
    }
    close(m, fd, &job.path).await
}

fn place<M: Machine>(m: &mut M, job: &Job) -> u64 {
    uniform(m, 0, job.blocks - 1) * u64::from(job.block)
}

async fn deep<M: Machine>(m: &mut M, job: &Job, fd: Fd, aio: Aio, end: Instant) -> Outcome {
    let request = |tag: usize, off: u64| AioRequest {
        fd,
        op: AioOp::Read,
        off,
        len: job.block,
        tag: tag as u64,
    };
    let mut running: Vec<Running> = Vec::new();
    let mut batch = Vec::new();
    for tag in 0..job.depth as usize {
        running.push(m.op_begin("read"));
        batch.push(request(tag, place(m, job)));
    }
    let mut done: Vec<AioDone> = Vec::new();
    let mut out = batch.len();
    while out > 0 {
        m.aio_submit(aio, &batch).await.doing(|| "submit reads")?;
        batch.clear();
        done.clear();
        m.aio_reap(aio, 1, &mut done).await.doing(|| "reap reads")?;
        let on = m.now() < end;
        for d in &done {
            let n = d.result.map_err(|errno| Fail {
                what: format!("read {} bytes of {}", job.block, job.path),
                errno,
            })?;
            let tag = d.tag as usize;
            m.op_end(running[tag], u64::from(n));
            job.count.with(|c| *c += 1);
            out -= 1;
            if on {
                running[tag] = m.op_begin("read");
                batch.push(request(tag, place(m, job)));
                out += 1;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn reads_are_aligned_and_inside_the_file() {
        for depth in ["1", "8"] {
            let given = [
                ("size", "4m"),
                ("seconds", "10ms"),
                ("depth", depth),
                ("tasks", "2"),
            ];
            let t = Trial::run("random-read", &given);
            let reads = t.ranges("read", "file");
            assert!(
                reads
                    .iter()
                    .all(|r| r.0 % 4096 == 0 && r.0 + r.1 <= 4 << 20)
            );
            assert_eq!(t.ops("read"), reads.len() as u64);
            assert!(reads.len() > 1000, "{}", reads.len());
            assert_eq!(t.calls("drop_caches"), 1);
            assert_eq!(t.left_over(), 0);
        }
    }

    #[test]
    fn unaligned_blocks_are_rejected() {
        let given = [("block".to_owned(), "5000".to_owned())];
        let e = crate::Plan::new("random-read", &given).expect_err("refused");
        assert!(e.to_string().contains("multiple of 4096"), "{e}");
    }
}
