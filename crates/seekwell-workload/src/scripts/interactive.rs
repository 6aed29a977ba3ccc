//! An interactive reader while other tasks write large amounts of data.
//!
//! The reader pauses, then reads a small block at a random position of a file that is not in the
//! page cache, and waits for it. Each writer continuously fills two files alternately through the
//! page cache. The metric is the latency of the reads. It includes the read that is in progress
//! when the time is over.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload};
use seekwell_core::{Instant, NSEC_PER_SEC, Nanos, OpenFlags};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "interactive",
    summary: "small reads by one task while other tasks write continuously",
    metric: "mean ms per read, lower is better; also 99th percentile and writers' MB/s",
    stresses: "a single synchronous read that waits for a full queue of writeback",
    source: "the situation for which asynchronous limits, read expiry and idling were designed",
    #[rustfmt::skip]
    params: &[
        param("seconds", Kind::Time(NSEC_PER_SEC / 10, 24 * 3600 * NSEC_PER_SEC), "60s",
            "duration"),
        param("writers", Kind::Count(0, 1024), "1", "number of tasks that write continuously"),
        param("size", Kind::Bytes(1 << 20, 1 << 44), "2GiB", "size of the file that is read"),
        param("bulk", Kind::Bytes(1 << 20, 1 << 44), "1GiB",
            "size at which a writer begins a new file"),
        param("block", Kind::Bytes(512, 16 << 20), "4KiB", "size of a read"),
        param("think", Kind::Time(0, 3600 * NSEC_PER_SEC), "50ms", "between reads"),
    ],
    profiles: &[profile(
        "alone",
        "no writers: only the latency of the device",
        &[("writers", "0")],
    )],
    needs: Needs::Directory,
    space: |p| p.int("size") + 2 * p.int("writers") * p.int("bulk"),
    check: |p| {
        if p.int("block") <= p.int("size") {
            Ok(())
        } else {
            Err("block must not exceed size".into())
        }
    },
};

const CALL: u32 = 256 << 10;

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let path = format!("{dir}/data");
    let (size, block, think) = (p.int("size"), p.small("block"), p.time("think"));
    m.mark(Mark::Phase("lay out"));
    lay_out(m, &path, size).await?;
    m.syncfs().await.doing(|| "sync")?;
    m.drop_caches().await.doing(|| "drop caches")?;
    m.mark(Mark::ClockStart);
    let start = m.now();
    let end = start + p.time("seconds");
    let times: Shared<Vec<u64>> = Shared::new(Vec::new());
    let written = Shared::new(0);
    let mut group = Group::new();
    let mine = times.clone();
    group
        .spawn(m, How::named("reader"), move |m| {
            reader(m, path, size / u64::from(block), block, think, end, mine)
        })
        .await?;
    for w in 0..p.int("writers") {
        let (path, bulk, written) = (format!("{dir}/bulk{w}"), p.int("bulk"), written.clone());
        group
            .spawn(m, How::named(format!("writer{w}")), move |m| {
                writer(m, path, bulk, end, written)
            })
            .await?;
    }
    let outcome = group.join(m).await;
    report(m, "read", times.with(std::mem::take));
    report_writers(m, written.with(|w| *w), start, p.time("seconds"));
    outcome
}

/// Reports the mean and the 99th percentile of latencies as metrics.
pub(super) fn report<M: Machine>(m: &mut M, what: &'static str, ns: Vec<u64>) {
    if let Some((mean, high)) = summary(ns) {
        m.counts(what);
        m.metric(what, "ms", mean, false);
        m.metric("99th percentile", "ms", high, false);
    }
}

/// Returns the mean and the 99th percentile (nearest rank) in milliseconds, of latencies in
/// nanoseconds.
pub(super) fn summary(mut ns: Vec<u64>) -> Option<(f64, f64)> {
    ns.sort_unstable();
    let mean = ns.iter().map(|n| *n as f64).sum::<f64>() / ns.len() as f64;
    let rank = (ns.len() * 99).div_ceil(100).checked_sub(1)?;
    Some((mean / 1e6, ns[rank] as f64 / 1e6))
}

/// Reports the rate of the writers, as bytes divided by `time`. The last read or fsync may end
/// later.
pub(super) fn report_writers<M: Machine>(m: &mut M, bytes: u64, start: Instant, time: Nanos) {
    let secs = seconds(m, start).min(time.as_secs_f64());
    m.metric("bulk write", "MB/s", rate(mib(bytes), secs), true);
}

async fn reader<M: Machine>(
    mut m: M,
    path: String,
    blocks: u64,
    block: u32,
    think: Nanos,
    end: Instant,
    times: Shared<Vec<u64>>,
) -> Outcome {
    let m = &mut m;
    let fd = open(m, &path, OpenFlags::RDONLY).await?;
    while m.now() < end {
        m.sleep(think).await.doing(|| "think")?;
        let off = uniform(m, 0, blocks - 1) * u64::from(block);
        let op = m.op_begin("read");
        let n = m.read(fd, off, block).await;
        let n = n.doing(|| format!("read {block} bytes at {off} of {path}"))?;
        let took = m.now().since(op.since).0;
        m.op_end(op, u64::from(n));
        times.with(|t| t.push(took));
    }
    close(m, fd, &path).await
}

/// Writes files from start to end, one after another. Each file replaces the file before the
/// previous one.
pub(super) async fn writer<M: Machine>(
    mut m: M,
    path: String,
    bulk: u64,
    end: Instant,
    written: Shared<u64>,
) -> Outcome {
    let m = &mut m;
    for n in 0.. {
        let file = format!("{path}.{}", n % 2);
        let fd = open(m, &file, FRESH).await?;
        let mut off = 0;
        while off < bulk && m.now() < end {
            let len = size_of_call(CALL, bulk - off);
            let op = m.op_begin("bulk write");
            let done = m.write(fd, off, len).await;
            done.doing(|| format!("write {len} bytes at {off} of {file}"))?;
            m.op_end(op, u64::from(len));
            off += u64::from(len);
            if m.now() <= end {
                written.with(|w| *w += u64::from(len));
            }
        }
        close(m, fd, &file).await?;
        if m.now() >= end {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn reads_are_spaced_by_think_time_and_writers_never_pause() {
        let given = [("seconds", "1s"), ("size", "4m"), ("bulk", "64m")];
        let t = Trial::run("interactive", &given);
        // One read takes 50 ms of pause and 5 us.
        assert_eq!(t.ops("read"), 20);
        // 4 KiB take 5.096 us on the test machine.
        assert!((t.metric() - 0.005_096).abs() < 1e-9, "{}", t.metric());
        let mb = t.world.measures().metrics()[2].value;
        assert!(mb > 900.0, "a gigabyte a second, was {mb}");
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn metrics_are_mean_and_99th_percentile_of_read_latency() {
        // On the test machine, all reads take the same time.
        let t = Trial::run(
            "interactive:profile=alone",
            &[("size", "4m"), ("seconds", "1s")],
        );
        let metrics = t.world.measures().metrics();
        let names: Vec<&str> = metrics.iter().map(|m| &*m.name).collect();
        assert_eq!(names, ["read", "99th percentile", "bulk write"]);
        assert_eq!(metrics[0].value, metrics[1].value);
        assert_eq!(metrics[2].value, 0.0);
        assert!(
            metrics[..2]
                .iter()
                .all(|m| !m.higher_is_better && m.unit == "ms")
        );
        let ns: Vec<u64> = (1..=200).rev().map(|n| n * 1_000_000).collect();
        assert_eq!(super::summary(ns), Some((100.5, 198.0)));
        assert_eq!(super::summary(vec![7_000_000]), Some((7.0, 7.0)));
        assert_eq!(super::summary(Vec::new()), None);
    }

    #[test]
    fn reads_are_uniform_in_a_cold_file_and_writers_alternate_files() {
        let given = [
            ("seconds", "2s"),
            ("size", "64k"),
            ("bulk", "64m"),
            ("think", "1ms"),
        ];
        let given = given.map(|(k, v)| (k, if k == "size" { "1m" } else { v }));
        let t = Trial::run("interactive", &given);
        let reads = t.ranges("read", "data");
        let mean = reads.iter().map(|r| r.0 as f64).sum::<f64>() / reads.len() as f64;
        assert!((mean / (510.0 * 1024.0) - 1.0).abs() < 0.05, "{mean}");
        assert!(reads.iter().all(|r| r.0 % 4096 == 0 && r.1 == 4096));
        assert_eq!(t.calls("drop_caches"), 1);
        let log = t.world.log().iter();
        let opened = log.filter(|c| c.name == "open" && c.path.contains("bulk0"));
        let names: Vec<char> = opened.filter_map(|c| c.path.chars().last()).collect();
        assert!(names.len() > 10);
        assert!(
            names
                .iter()
                .enumerate()
                .all(|(i, c)| *c == ['0', '1'][i % 2])
        );
    }
}
