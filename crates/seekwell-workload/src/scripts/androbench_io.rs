//! The file tests of AndroBench 3.4: sequential and random reads and writes without the page cache.
//!
//! Each thread has one file, which was written before the test, and runs four phases: sequential
//! read, sequential write, random read, random write. All threads begin a phase together.
//! AndroBench is closed-source, so some details are estimates: sizes, calls, the open flags for
//! writes, and that the file was written before. The important ones are parameters. A direct write
//! is one request. O_DSYNC adds a flush. O_SYNC adds a commit of the file's timestamps, and two
//! flushes.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{Barrier, Fd, How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload};
use seekwell_core::{NSEC_PER_SEC, OpenFlags};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "androbench-io",
    summary: "phone benchmark: direct sequential and random reads and writes",
    metric: "MB/s (sequential; 1 MB is 1048576 bytes), IOPS (random), higher is better",
    stresses: "the device, with one request per thread at a time",
    source: "AndroBench 3.4 (Kim and Kim, 2012), default settings",
    #[rustfmt::skip]
    params: &[
        param("size", Kind::Bytes(4096, 1 << 44), "32MiB", "number of bytes to read"),
        param("write_size", Kind::Bytes(4096, 1 << 44), "32MiB",
            "number of bytes to write, from the start of the same file"),
        param("sequential", Kind::Bytes(4096, 1 << 30), "256KiB", "size of a sequential call"),
        param("random", Kind::Bytes(4096, 1 << 30), "4KiB", "size of a random call"),
        param("calls", Kind::Count(0, 1_000_000_000), "0",
            "number of random calls per phase; 0: as many as blocks in the size"),
        param("write", Kind::Choice(&["direct", "dsync", "sync"]), "direct",
            "open flags for writing: O_DIRECT, or also O_DSYNC or O_SYNC"),
        param("threads", Kind::Count(1, 256), "1", "number of threads, each with its own file"),
        param("services", Kind::Time(0, 3600 * NSEC_PER_SEC), "0",
            "mean time between groups of three fsyncs by other services; 0: no services"),
    ],
    profiles: &[
        profile(
            "v5",
            "defaults of versions 4 and 5, one thread",
            &[
                ("size", "64m"),
                ("write_size", "64m"),
                ("sequential", "32m"),
            ],
        ),
        profile("v5-threads", "as v5, with eight threads", V5_THREADS),
        profile(
            "anandtech",
            "100 MB files, because the defaults are too small for repeatable results",
            &[("size", "100m"), ("write_size", "100m")],
        ),
    ],
    needs: Needs::Directory,
    space: |p| p.int("size").max(p.int("write_size")) * p.int("threads") + (64 << 20),
    check: |p| {
        for name in ["sequential", "random", "size", "write_size"] {
            let least = p.int("size").min(p.int("write_size"));
            if p.int(name) % 4096 != 0 || (!name.ends_with("size") && p.int(name) > least) {
                return Err(format!(
                    "{name} must be a multiple of 4096, and a call must not exceed its size"
                ));
            }
        }
        Ok(())
    },
};

const V5_THREADS: &[(&str, &str)] = &[
    ("size", "64m"),
    ("write_size", "64m"),
    ("sequential", "32m"),
    ("threads", "8"),
];

/// A phase: (name, true if it writes, true if positions are random).
type Phase = (&'static str, bool, bool);
const PHASES: [Phase; 4] = [
    ("sequential read", false, false),
    ("sequential write", true, false),
    ("random read", false, true),
    ("random write", true, true),
];

/// The settings that all threads share.
#[derive(Clone)]
struct Setting {
    sizes: [u64; 2],
    lens: [u32; 2],
    calls: u64,
    write: OpenFlags,
    /// Barrier at the start and end of each phase, for all threads and the task that measures the
    /// time.
    together: Barrier,
}

impl Setting {
    fn len(&self, phase: Phase) -> u64 {
        u64::from(self.lens[usize::from(phase.2)])
    }
    /// Returns the number of calls in a phase, and the number of positions.
    fn calls(&self, phase: Phase) -> (u64, u64) {
        let places = self.sizes[usize::from(phase.1)] / self.len(phase);
        let calls = match self.calls {
            n if phase.2 && n > 0 => n,
            _ => places,
        };
        (calls, places)
    }
}

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let threads = p.int("threads");
    let sizes = [p.int("size"), p.int("write_size")];
    for t in 0..threads {
        let largest = sizes[0].max(sizes[1]);
        lay_out(m, &format!("{dir}/androbench{t}"), largest).await?;
    }
    m.syncfs().await.doing(|| "sync")?;
    m.drop_caches().await.doing(|| "drop caches")?;
    let s = Setting {
        sizes,
        lens: [p.small("sequential"), p.small("random")],
        calls: p.int("calls"),
        write: OpenFlags::DIRECT
            | match p.word("write") {
                "dsync" => OpenFlags::DSYNC,
                "sync" => OpenFlags::SYNC,
                _ => OpenFlags::empty(),
            },
        together: m.barrier(p.small("threads") + 1),
    };
    let stop = Shared::new(false);
    let mut others = Group::new();
    if p.int("services") > 0 {
        let (path, mean, stop) = (format!("{dir}/services"), p.time("services"), stop.clone());
        let script = move |m| services(m, path, mean, stop);
        others.spawn(m, How::named("services"), script).await?;
    }
    m.mark(Mark::ClockStart);
    let mut group = Group::new();
    for t in 0..threads {
        let (path, s) = (format!("{dir}/androbench{t}"), s.clone());
        let script = move |m| thread(m, path, s);
        group
            .spawn(m, How::named(format!("thread{t}")), script)
            .await?;
    }
    let timed = clock(m, &s, threads).await;
    let outcome = both(timed, group.join(m).await);
    stop.with(|s| *s = true);
    both(outcome, others.join(m).await)
}

/// Measures the duration of each phase.
async fn clock<M: Machine>(m: &mut M, s: &Setting, threads: u64) -> Outcome {
    m.counts(PHASES[0].0);
    for phase in PHASES {
        m.mark(Mark::Phase(phase.0));
        m.arrive(s.together).await.doing(|| "begin a phase")?;
        let start = m.now();
        m.arrive(s.together).await.doing(|| "end a phase")?;
        let secs = seconds(m, start);
        let calls = s.calls(phase).0 * threads;
        if phase.2 {
            m.metric(phase.0, "IOPS", rate(calls as f64, secs), true);
        } else {
            let moved = mib(calls * s.len(phase));
            m.metric(phase.0, "MB/s", rate(moved, secs), true);
        }
    }
    Ok(())
}

async fn thread<M: Machine>(mut m: M, path: String, s: Setting) -> Outcome {
    let m = &mut m;
    let read = open(m, &path, OpenFlags::DIRECT | OpenFlags::RDONLY).await?;
    let write = open(m, &path, s.write).await?;
    for phase in PHASES {
        let (name, writes, random) = phase;
        m.arrive(s.together).await.doing(|| "begin a phase")?;
        let len = s.lens[usize::from(random)];
        let (calls, places) = s.calls(phase);
        let fd = if writes { write } else { read };
        for i in 0..calls {
            let n = if random { uniform(m, 0, places - 1) } else { i };
            let op = m.op_begin(name);
            call(m, fd, writes, n * u64::from(len), len, &path).await?;
            m.op_end(op, u64::from(len));
        }
        m.arrive(s.together).await.doing(|| "end a phase")?;
    }
    close(m, read, &path).await?;
    close(m, write, &path).await
}

async fn call<M: Machine>(
    m: &mut M,
    fd: Fd,
    write: bool,
    off: u64,
    len: u32,
    path: &str,
) -> Outcome {
    let done = if write {
        m.write(fd, off, len).await
    } else {
        m.read(fd, off, len).await
    };
    let word = if write { "write" } else { "read" };
    done.doing(|| format!("{word} {len} bytes at {off} of {path}"))
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn four_phases_are_run_and_reported() {
        let t = Trial::run("androbench-io", &[("size", "4m"), ("write_size", "2m")]);
        for (phase, n) in [
            ("sequential read", 16),
            ("sequential write", 8),
            ("random read", 1024),
            ("random write", 512),
        ] {
            assert_eq!(t.ops(phase), n, "{phase}");
        }
        let units: Vec<&str> = t
            .world
            .measures()
            .metrics()
            .iter()
            .map(|m| &*m.unit)
            .collect();
        assert_eq!(units, ["MB/s", "MB/s", "IOPS", "IOPS"]);
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn calls_are_aligned_in_range_and_random_in_random_phases() {
        let given = [("size", "4m"), ("write_size", "2m"), ("calls", "300")];
        let t = Trial::run("androbench-io", &given);
        assert_eq!((t.ops("random read"), t.ops("random write")), (300, 300));
        let reads = t.ranges("read", "androbench0");
        assert!(
            reads[..16]
                .iter()
                .enumerate()
                .all(|(i, r)| r.0 == i as u64 * 262_144)
        );
        let writes = t.ranges("write", "androbench0");
        let random: Vec<u64> = writes.iter().filter(|r| r.1 == 4096).map(|r| r.0).collect();
        assert_eq!(random.len(), 300);
        assert!(random.iter().all(|o| o % 4096 == 0 && *o < 2 << 20));
        // The positions are uniform over 512 values: chi-square test with 8 groups of 64, 7 degrees
        // of freedom, p = 0.001.
        let mut parts = [0.0f64; 8];
        random.iter().for_each(|o| parts[(o >> 18) as usize] += 1.0);
        let chi: f64 = parts.iter().map(|n| (n - 37.5).powi(2) / 37.5).sum();
        assert!(chi < 24.3, "{parts:?}");
    }

    #[test]
    fn threads_have_own_files_and_start_phases_together() {
        let t = Trial::run(
            "androbench-io",
            &[("size", "1m"), ("write_size", "1m"), ("threads", "3")],
        );
        assert_eq!(t.ops("random read"), 3 * 256);
        let log = t.world.log();
        let last = log
            .iter()
            .rposition(|c| c.name == "read" && c.len == 262_144);
        let first = log
            .iter()
            .position(|c| c.name == "write" && c.len == 262_144 && c.path.contains("androbench"));
        assert!(first > last, "no thread writes before all have read");
    }

    #[test]
    fn sizes_that_are_not_whole_blocks_are_rejected() {
        for (k, v) in [
            ("size", "5000"),
            ("sequential", "64m"),
            ("random", "1000000"),
        ] {
            let given = [(k.to_owned(), v.to_owned())];
            let e = crate::Plan::new("androbench-io", &given)
                .expect_err("refused")
                .to_string();
            assert!(e.contains("multiple of 4096"), "{e}");
        }
    }
}
