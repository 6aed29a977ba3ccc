//! fs_mark 3.3: creation of files, each synced before it is closed.
//!
//! Each worker makes its files in a shared directory: open, `size` bytes in calls of 16 KiB, fsync,
//! close. The clock of a worker covers its loop; removing the files is outside. With several
//! workers the rates are summed. With `-D` and without `-N` the original picks the subdirectory by
//! the clock, one for 180 s at a time: the spread that its published profile's name promises does
//! not happen, here neither.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::registry::{Needs, Workload, any};
use seekwell_core::{NSEC_PER_SEC, Nanos};

/// Documentation.
pub const WORKLOAD: Workload = Workload {
    name: "fs-mark",
    summary: "create files, fsync each before closing it",
    metric: "files/s, higher is better (sum over workers)",
    stresses: "the fsync chain: data, journal, flush, commit record, flush; with sync=none dirty throttling",
    source: "fs_mark 3.3; profiles of pts/fs-mark-1.0.0",
    params: &[
        param(
            "files",
            Kind::Count(1, 10_000_000),
            "1000",
            "files of each worker (-n)",
        ),
        param(
            "size",
            Kind::Bytes(1, 1 << 40),
            "1MiB",
            "bytes of a file (-s)",
        ),
        param(
            "workers",
            Kind::Count(1, 1024),
            "1",
            "processes at work (-t)",
        ),
        param(
            "dirs",
            Kind::Count(0, 10_000),
            "0",
            "subdirectories, one used for 180 s at a time (-D); 0: none",
        ),
        param(
            "sync",
            Kind::Choice(&["fsync", "none"]),
            "fsync",
            "fsync before close (-S 1), or not at all (-S 0)",
        ),
        param(
            "think",
            Kind::Time(0, NSEC_PER_SEC),
            "0",
            "CPU time of a file beyond its system calls",
        ),
    ],
    profiles: &[
        profile("1000-files", "1000 Files, 1MB Size", &[]),
        profile(
            "no-sync",
            "1000 Files, 1MB Size, No Sync/FSync",
            &[("sync", "none")],
        ),
        profile(
            "4-threads",
            "5000 Files, 1MB Size, 4 Threads",
            &[("files", "5000"), ("workers", "4")],
        ),
        profile(
            "32-dirs",
            "4000 Files, 32 Sub Dirs, 1MB Size",
            &[("files", "4000"), ("dirs", "32")],
        ),
    ],
    needs: Needs::Directory,
    space: |p| p.int("files") * p.int("workers") * p.int("size").next_multiple_of(4096),
    check: any,
};

const CALL: u32 = 16 << 10;
/// How long the original stays in one subdirectory.
const DIR_NS: u64 = 180 * NSEC_PER_SEC;

#[derive(Clone)]
struct Job {
    dir: String,
    files: u64,
    size: u64,
    dirs: u64,
    sync: bool,
    think: Nanos,
    rates: Shared<f64>,
}

/// The script.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let job = Job {
        dir: dir.to_owned(),
        files: p.int("files"),
        size: p.int("size"),
        dirs: p.int("dirs"),
        sync: p.word("sync") == "fsync",
        think: p.time("think"),
        rates: Shared::new(0.0),
    };
    for d in 0..job.dirs {
        let sub = format!("{dir}/{d:02x}");
        m.mkdir(&sub).await.doing(|| format!("make {sub}"))?;
    }
    m.mark(Mark::ClockStart);
    let mut group = Group::new();
    for w in 0..p.int("workers") {
        let job = job.clone();
        let name = How::named(format!("worker{w}"));
        group.spawn(m, name, move |m| worker(m, job, w)).await?;
    }
    let done = group.join(m).await;
    let rate = job.rates.with(|r| *r);
    if rate > 0.0 {
        m.metric("files", "files/s", (rate * 10.0).round() / 10.0, true);
    }
    done
}

async fn worker<M: Machine>(mut m: M, job: Job, w: u64) -> Outcome {
    let start = m.now();
    let mut made = 0;
    let done = files(&mut m, &job, w, &mut made).await;
    let rate = rate(made as f64, seconds(&m, start));
    job.rates.with(|r| *r += rate);
    done
}

async fn files<M: Machine>(m: &mut M, job: &Job, w: u64, made: &mut u64) -> Outcome {
    for i in 0..job.files {
        let file = m.op_begin("file");
        // 40 bytes: 16 of sequence and time, 24 at random.
        let tail = uniform(m, 0, u64::MAX);
        let name = format!("{w:04x}{i:012x}{tail:024x}");
        let path = match job.dirs {
            0 => format!("{}/{name}", job.dir),
            n => {
                let d = m.now().since_start() / DIR_NS % n;
                format!("{}/{d:02x}/{name}", job.dir)
            }
        };
        m.compute(job.think).await.doing(|| "compute")?;
        let create = m.op_begin("create");
        let fd = open(m, &path, FRESH).await?;
        m.op_end(create, 0);
        write_all(m, fd, job.size, CALL, &path).await?;
        if job.sync {
            fsync(m, fd, &path).await?;
        }
        close(m, fd, &path).await?;
        m.op_end(file, job.size);
        *made += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn calls_of_a_file() {
        let t = Trial::run("fs-mark", &[("files", "10")]);
        assert_eq!(t.calls("open"), 10);
        assert_eq!(t.calls("write"), 640);
        assert_eq!(t.calls("fsync"), 10);
        assert_eq!(t.bytes_written(), 10 << 20);
        assert_eq!(t.largest_write(), 16 << 10);
        assert_eq!(t.before("fsync", "close"), 10, "synced, then closed");
        assert!(t.metric() > 0.0);
        assert_eq!(t.left_over(), 0, "the directory is gone");
    }

    #[test]
    fn without_sync_nothing_is_synced_and_workers_add_up() {
        let t = Trial::run("fs-mark", &[("files", "5"), ("sync", "none")]);
        assert_eq!(t.calls("fsync"), 0);
        let four = Trial::run(
            "fs-mark:profile=4-threads",
            &[("files", "5"), ("size", "16k")],
        );
        let one = Trial::run("fs-mark", &[("files", "5"), ("size", "16k")]);
        assert_eq!(four.calls("fsync"), 20);
        assert!((four.metric() / one.metric() - 4.0).abs() < 0.01);
    }

    #[test]
    fn one_subdirectory_at_a_time() {
        let t = Trial::run(
            "fs-mark:profile=32-dirs",
            &[("files", "50"), ("size", "4k")],
        );
        assert_eq!(t.calls("mkdir"), 33);
        assert_eq!(t.directories_written(), 1);
    }
}
