//! Starts of an application while other programs use the disk.
//!
//! A start is a sequence of dependent reads. Libraries are mapped and read by page faults, piece by
//! piece, and small files are opened and read. There is a little CPU work between the reads.
//! Meanwhile, sequential readers and writers keep the disk busy. A background reader drops its file
//! from the page cache before each further pass. Each start is a new process, and its files are not
//! in the page cache. The files, sizes and order of a start are drawn at random once per run, so
//! all starts of a run are the same.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload, any};
use rand::seq::SliceRandom;
use seekwell_core::{Access, NSEC_PER_SEC, Nanos, OpenFlags};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "app-start",
    summary: "start an application while other tasks read and write",
    metric: "mean seconds per start, lower is better",
    stresses: "a chain of small dependent reads against bulk load: idling, read preference, weight \
               raising",
    source: "after the start-up tests published with BFQ (file list and sizes are estimates)",
    #[rustfmt::skip]
    params: &[
        param("starts", Kind::Count(1, 10_000), "5", "number of starts"),
        param("libraries", Kind::Count(1, 10_000), "60", "number of mapped files"),
        param("small", Kind::Count(0, 100_000), "150",
            "number of small files that are read completely"),
        param("readers", Kind::Count(0, 1024), "2",
            "number of sequential readers in the background"),
        param("writers", Kind::Count(0, 1024), "2",
            "number of sequential writers in the background"),
        param("bulk", Kind::Bytes(1 << 20, 1 << 44), "1GiB",
            "size of the file of each reader and writer"),
        param("pause", Kind::Time(0, 3600 * NSEC_PER_SEC), "3s", "between starts"),
    ],
    #[rustfmt::skip]
    profiles: &[
        profile("readers", "10 readers", &[("readers", "10"), ("writers", "0")]),
        profile("mixed", "5 readers, 5 writers", &[("readers", "5"), ("writers", "5")]),
        profile("idle", "no other load", &[("readers", "0"), ("writers", "0")]),
    ],
    needs: Needs::Directory,
    space: |p| {
        let bulk = p.int("readers") + p.int("writers");
        bulk * p.int("bulk") + p.int("libraries") * (4 << 20) + p.int("small") * (64 << 10)
    },
    check: any,
};

/// A step of a start.
#[derive(Clone, Copy)]
enum Step {
    /// Page faults in a range of a library: (library, offset, length).
    Fault(u64, u64, u64),
    /// Reads all of the small file with this number.
    Read(u64),
}

const BULK_CALL: u32 = 256 << 10;
const CPU: Nanos = Nanos::from_us(200);

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    m.mark(Mark::Phase("install"));
    let mut steps = Vec::new();
    for l in 0..p.int("libraries") {
        let size = (lognormal(m, 400e3, 900e3) as u64).clamp(64 << 10, 4 << 20);
        lay_out(m, &format!("{dir}/lib{l}.so"), size).await?;
        // A start uses a third of each library, in pieces of up to 128 KiB.
        for _ in 0..(size / (192 << 10)).max(1) {
            let len = uniform(m, 1, 32) * 4096;
            let off = uniform(m, 0, size.saturating_sub(len) / 4096) * 4096;
            steps.push(Step::Fault(l, off, len.min(size - off)));
        }
    }
    for s in 0..p.int("small") {
        let size = (lognormal(m, 4e3, 8e3) as u64).clamp(100, 64 << 10);
        lay_out(m, &format!("{dir}/small{s}"), size).await?;
        steps.push(Step::Read(s));
    }
    steps.shuffle(m.rng());
    let bulk = p.int("bulk");
    for r in 0..p.int("readers") {
        lay_out(m, &format!("{dir}/bulk{r}"), bulk).await?;
    }
    m.syncfs().await.doing(|| "sync")?;
    m.drop_caches().await.doing(|| "drop caches")?;
    let stop = Shared::new(false);
    let mut others = Group::new();
    for (kind, write) in [("reader", false), ("writer", true)] {
        for i in 0..p.int(&format!("{kind}s")) {
            let name = if write { "written" } else { "bulk" };
            let (path, stop) = (format!("{dir}/{name}{i}"), stop.clone());
            let how = How::named(format!("{kind}{i}"));
            others
                .spawn(m, how, move |m| bulk_task(m, path, bulk, write, stop))
                .await?;
        }
    }
    m.mark(Mark::ClockStart);
    let outcome = starts(m, p, dir, &steps).await;
    stop.with(|s| *s = true);
    let others = others.join(m).await;
    both(outcome, others)
}

/// Makes starts with an empty page cache, one after another. The metric is their mean duration.
async fn starts<M: Machine>(m: &mut M, p: &Params, dir: &str, steps: &[Step]) -> Outcome {
    let (mut sum, mut done) = (0.0, 0);
    let mut outcome = Ok(());
    for n in 0..p.int("starts") {
        outcome = cold_start(m, p.time("pause"), n, dir, steps, &mut sum).await;
        if outcome.is_err() {
            break;
        }
        done += 1;
    }
    if done > 0 {
        // The metric counts steps. A start consists of many steps, and their number shows on how
        // many samples its duration is based.
        m.counts("step");
        m.metric("start-up", "s", sum / f64::from(done), false);
    }
    outcome
}

async fn cold_start<M: Machine>(
    m: &mut M,
    pause: Nanos,
    n: u64,
    dir: &str,
    steps: &[Step],
    sum: &mut f64,
) -> Outcome {
    m.sleep(pause).await.doing(|| "pause")?;
    m.drop_caches().await.doing(|| "drop caches")?;
    m.mark(Mark::Other("application start"));
    let started = m.now();
    // Each start is a new process with a new io context.
    let (mine, dir) = (steps.to_vec(), dir.to_owned());
    let mut app = Group::new();
    app.spawn(m, How::named(format!("app{n}")), move |m| {
        start(m, dir, mine)
    })
    .await?;
    app.join(m).await?;
    *sum += seconds(m, started);
    Ok(())
}

async fn start<M: Machine>(mut m: M, dir: String, steps: Vec<Step>) -> Outcome {
    let m = &mut m;
    let whole = m.op_begin("start");
    for s in steps {
        let op = m.op_begin("step");
        match s {
            Step::Fault(l, off, len) => {
                let path = format!("{dir}/lib{l}.so");
                let fd = open(m, &path, OpenFlags::RDONLY).await?;
                let map = m.map(fd, off, len).await.doing(|| format!("map {path}"))?;
                let done = m.touch(map, 0, len, Access::Read).await;
                done.doing(|| format!("touch {path}"))?;
                m.unmap(map).await.doing(|| format!("unmap {path}"))?;
                close(m, fd, &path).await?;
            }
            Step::Read(s) => {
                let path = format!("{dir}/small{s}");
                let fd = open(m, &path, OpenFlags::RDONLY).await?;
                read_all(m, fd, 16 << 10, &path).await?;
                close(m, fd, &path).await?;
            }
        }
        m.op_end(op, 0);
        m.compute(CPU).await.doing(|| "compute")?;
    }
    m.op_end(whole, 0);
    Ok(())
}

/// Reads or writes a file from start to end, repeatedly.
async fn bulk_task<M: Machine>(
    mut m: M,
    path: String,
    size: u64,
    write: bool,
    stop: Shared<bool>,
) -> Outcome {
    let m = &mut m;
    let how = if write { FRESH } else { OpenFlags::RDONLY };
    let kind = if write { "bulk write" } else { "bulk read" };
    let fd = open(m, &path, how).await?;
    let mut off = 0;
    while !stop.with(|s| *s) {
        let op = m.op_begin(kind);
        let len = size_of_call(BULK_CALL, size - off);
        let done = if write {
            m.write(fd, off, len).await
        } else {
            m.read(fd, off, len).await
        };
        done.doing(|| format!("{kind} of {len} bytes at {off} of {path}"))?;
        m.op_end(op, u64::from(len));
        off += u64::from(len);
        if off == size {
            off = 0;
            if !write {
                forget(m, fd, &path).await?;
            }
        }
    }
    close(m, fd, &path).await
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn every_start_makes_the_same_steps() {
        let given = [
            ("starts", "3"),
            ("pause", "10ms"),
            ("bulk", "1m"),
            ("libraries", "10"),
            ("small", "20"),
        ];
        let t = Trial::run("app-start", &given);
        assert_eq!(t.ops("start"), 3);
        assert_eq!(t.ops("step") % 3, 0);
        assert_eq!(t.calls_on("read", "small") % 3, 0);
        assert!(t.ops("bulk read") > 0 && t.ops("bulk write") > 0);
        assert_eq!(t.calls("drop_caches"), 4);
        assert_eq!(t.tasks(), 1 + 4 + 3);
        assert_eq!(t.left_over(), 0);
        // Before every pass of a reader except the first, its pages are dropped.
        let passes = t
            .ranges("read", "bulk0")
            .iter()
            .filter(|r| r.0 == 0)
            .count();
        assert!(passes > 5, "{passes}");
        assert!(t.calls_on("fadvise", "bulk0").abs_diff(passes - 1) <= 1);
        assert_eq!(t.calls_on("fadvise", "written"), 0);
        let steps = t.ops("step") / 3;
        // Each step takes 200 us of CPU time and little else.
        assert!(t.metric() > steps as f64 * 200e-6 && t.metric() < steps as f64 * 400e-6);
    }

    #[test]
    fn start_faults_in_libraries_and_reads_small_files_whole() {
        let given = [
            ("starts", "2"),
            ("readers", "0"),
            ("writers", "0"),
            ("libraries", "10"),
            ("small", "20"),
        ];
        let t = Trial::run("app-start", &given);
        // Per start there are 20 small files and a few ranges of each library, after a pause of 3
        // s.
        assert_eq!(t.calls_on("open", "small"), 20 + 2 * 20);
        let faults = t.ranges("touch", "lib");
        assert_eq!(t.ops("step") as usize, 2 * 20 + faults.len());
        let (one, two) = faults.split_at(faults.len() / 2);
        assert_eq!(one, two, "the same steps");
        assert!(faults.len() >= 2 * 10);
        assert!(faults.iter().all(|r| (4096..=128 << 10).contains(&r.1)));
        let maps: Vec<u64> = t.ranges("map", "lib").iter().map(|r| r.1).collect();
        let touched: Vec<u64> = faults.iter().map(|r| r.1).collect();
        assert_eq!(maps, touched, "whole runs");
        // Libraries and small files alternate as specified.
        let log = t.world.log().iter();
        let read_only = log.filter(|c| c.name == "open" && c.at.since_start() > 3_000_000_000);
        let small: Vec<bool> = read_only.map(|c| c.path.contains("small")).collect();
        let turns = small.windows(2).filter(|w| w[0] != w[1]).count();
        assert!(turns > 20, "{turns}");
        let starts = t.marks(crate::note::Mark::Other("application start"));
        assert!(starts[0] > 3.0 && starts[1] > starts[0] + 3.0, "{starts:?}");
        // Pages are dropped after the preparation, and after each pause.
        assert_eq!(t.calls("drop_caches"), 1 + 2);
    }
}
