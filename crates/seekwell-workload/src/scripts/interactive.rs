//! An interactive reader against bulk writers.
//!
//! The reader thinks, then reads a small block at a random place of a cold file and waits for it;
//! the writers fill files through the page cache all the time. What counts is how long a read
//! takes.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::registry::{Needs, Workload};
use seekwell_core::{Instant, NSEC_PER_SEC, Nanos, OpenFlags};

/// Documentation.
pub const WORKLOAD: Workload = Workload {
    name: "interactive",
    summary: "a thinking reader against bulk writers",
    metric: "ms of a read, mean, lower is better; 99th percentile and writers' MB/s beside it",
    stresses: "a lone synchronous read behind a full queue of writeback",
    source: "the case that asynchronous limits, read expiry and idling were made for",
    params: &[
        param(
            "seconds",
            Kind::Time(NSEC_PER_SEC / 10, 24 * 3600 * NSEC_PER_SEC),
            "60s",
            "how long",
        ),
        param("writers", Kind::Count(0, 1024), "1", "bulk writers"),
        param(
            "size",
            Kind::Bytes(1 << 20, 1 << 44),
            "2GiB",
            "bytes of the file that is read",
        ),
        param(
            "bulk",
            Kind::Bytes(1 << 20, 1 << 44),
            "1GiB",
            "bytes after which a writer starts over in a new file",
        ),
        param(
            "block",
            Kind::Bytes(512, 16 << 20),
            "4KiB",
            "bytes of a read",
        ),
        param(
            "think",
            Kind::Time(0, 3600 * NSEC_PER_SEC),
            "50ms",
            "between reads",
        ),
    ],
    profiles: &[profile(
        "alone",
        "no writer: the device's own latency",
        &[("writers", "0")],
    )],
    needs: Needs::Directory,
    space: |p| p.int("size") + (p.int("writers") + 1) * p.int("bulk"),
    check: |p| {
        if p.int("block") <= p.int("size") {
            Ok(())
        } else {
            Err("block must not exceed size".into())
        }
    },
};

const CALL: u32 = 256 << 10;

/// The script.
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
    let mb = rate(mib(written.with(|w| *w)), seconds(m, start));
    m.metric("bulk write", "MB/s", mb, true);
    outcome
}

/// Mean and 99th percentile of latencies, as metrics.
pub(super) fn report<M: Machine>(m: &mut M, what: &'static str, mut ns: Vec<u64>) {
    if ns.is_empty() {
        return;
    }
    ns.sort_unstable();
    let mean = ns.iter().map(|n| *n as f64).sum::<f64>() / ns.len() as f64;
    // Nearest rank.
    let rank = (ns.len() * 99).div_ceil(100) - 1;
    m.metric(what, "ms", mean / 1e6, false);
    m.metric("99th percentile", "ms", ns[rank] as f64 / 1e6, false);
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

/// Writes files front to back, one after the other, each replacing the one before last.
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
            written.with(|w| *w += u64::from(len));
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
    fn reads_are_spaced_by_thinking_and_writers_never_rest() {
        let given = [("seconds", "1s"), ("size", "4m"), ("bulk", "64m")];
        let t = Trial::run("interactive", &given);
        // One each 50 ms and 5 us.
        assert_eq!(t.ops("read"), 20);
        // 4 KiB take 5.096 us in the test world.
        assert!((t.metric() - 0.005_096).abs() < 1e-9, "{}", t.metric());
        let mb = t.world.measures().metrics()[2].value;
        assert!(mb > 900.0, "a gigabyte a second, was {mb}");
        assert_eq!(t.left_over(), 0);
    }
}
