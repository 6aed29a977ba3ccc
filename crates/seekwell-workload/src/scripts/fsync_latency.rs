//! The latency of fsync while other tasks fill the page cache with dirty data.
//!
//! One task repeatedly appends a few bytes and calls fsync, like a mail server or a log. Other
//! tasks write files through the page cache, so that the kernel's flusher is always busy.

use super::common::*;
use super::interactive;
use crate::fail::{Context, Outcome};
use crate::machine::{How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload, any};
use seekwell_core::{Instant, NSEC_PER_SEC, Nanos, OpenFlags};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "fsync-latency",
    summary: "append and fsync while other tasks fill the page cache",
    metric: "mean ms per fsync, lower is better; also 99th percentile and writers' MB/s",
    stresses: "sync writes, journal and flushes that wait for writeback",
    source: "a common complaint about ext3 and ext4 under load",
    #[rustfmt::skip]
    params: &[
        param("seconds", Kind::Time(NSEC_PER_SEC / 10, 24 * 3600 * NSEC_PER_SEC), "60s",
            "duration"),
        param("writers", Kind::Count(0, 1024), "1", "number of tasks that write continuously"),
        param("bulk", Kind::Bytes(1 << 20, 1 << 44), "1GiB",
            "size at which a writer begins a new file"),
        param("append", Kind::Bytes(1, 1 << 30), "4KiB",
            "number of bytes appended before each fsync"),
        param("think", Kind::Time(0, 3600 * NSEC_PER_SEC), "100ms", "between fsyncs"),
    ],
    profiles: &[profile(
        "alone",
        "no writers: only the cost of an fsync",
        &[("writers", "0")],
    )],
    needs: Needs::Directory,
    // Each writer has two files. An fsync takes at least a millisecond.
    space: |p| {
        let round_ns = p.int("think").max(1_000_000);
        let log = (p.int("seconds") / round_ns + 1) * p.int("append").next_multiple_of(4096);
        2 * p.int("writers") * p.int("bulk") + log
    },
    check: any,
};

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    m.mark(Mark::ClockStart);
    let start = m.now();
    let end = start + p.time("seconds");
    let times: Shared<Vec<u64>> = Shared::new(Vec::new());
    let written = Shared::new(0);
    let mut group = Group::new();
    let (mine, path) = (times.clone(), format!("{dir}/log"));
    let (append, think) = (p.small("append"), p.time("think"));
    group
        .spawn(m, How::named("syncer"), move |m| {
            syncer(m, path, append, think, end, mine)
        })
        .await?;
    for w in 0..p.int("writers") {
        let (path, bulk, written) = (format!("{dir}/bulk{w}"), p.int("bulk"), written.clone());
        group
            .spawn(m, How::named(format!("writer{w}")), move |m| {
                interactive::writer(m, path, bulk, end, written)
            })
            .await?;
    }
    let outcome = group.join(m).await;
    interactive::report(m, "fsync", times.with(std::mem::take));
    interactive::report_writers(m, written.with(|w| *w), start, p.time("seconds"));
    outcome
}

async fn syncer<M: Machine>(
    mut m: M,
    path: String,
    append: u32,
    think: Nanos,
    end: Instant,
    times: Shared<Vec<u64>>,
) -> Outcome {
    let m = &mut m;
    let fd = open(m, &path, OpenFlags::CREATE | OpenFlags::APPEND).await?;
    while m.now() < end {
        m.sleep(think).await.doing(|| "think")?;
        let n = m.append(fd, append).await;
        n.doing(|| format!("append {append} bytes to {path}"))?;
        let since = m.now();
        fsync(m, fd, &path).await?;
        let took = m.now().since(since).0;
        times.with(|t| t.push(took));
    }
    close(m, fd, &path).await
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn each_round_appends_once_and_syncs_once() {
        let given = [("seconds", "1s"), ("bulk", "64m"), ("think", "10ms")];
        let t = Trial::run("fsync-latency", &given);
        let rounds = t.calls_on("append", "log");
        assert_eq!(t.ops("fsync") as usize, rounds);
        assert!((98..=100).contains(&rounds), "{rounds}");
        // An fsync takes 100 us on the test machine.
        assert!((t.metric() - 0.1).abs() < 1e-9, "{}", t.metric());
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn rounds_think_append_and_sync_and_writers_are_measured_separately() {
        let given = [("seconds", "1s"), ("bulk", "64m"), ("think", "300ms")];
        let t = Trial::run("fsync-latency", &given);
        let mut calls = vec!["open"];
        // There are calls at 0.3, 0.6 and 0.9 s, and one call that begins in time and ends late.
        calls.extend(["append", "fsync"].repeat(4));
        calls.extend(["close", "unlink"]);
        assert_eq!(t.sequence("/log"), calls);
        let mb = t.world.measures().metrics()[2].value;
        let written: u64 = t.ranges("write", "bulk0").iter().map(|r| r.1).sum();
        let mib = written as f64 / f64::from(1 << 20);
        // The rate counts all calls except the late one, during one second.
        assert!((mib - 0.25 - mb).abs() < 1e-9, "{mib} {mb}");
    }
}
