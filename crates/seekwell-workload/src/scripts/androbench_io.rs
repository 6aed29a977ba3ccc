//! AndroBench 3.4, the file part: sequential and random read and write past the page cache.
//!
//! One thread on one laid-out file, in this order: sequential read, sequential write, random read,
//! random write. File size and whether the write goes into existing blocks are estimates: the app
//! is closed.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{Fd, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::registry::{Needs, Workload};
use seekwell_core::OpenFlags;

/// Documentation.
pub const WORKLOAD: Workload = Workload {
    name: "androbench-io",
    summary: "sequential and random read and write of a phone benchmark, direct",
    metric: "MB/s (sequential), IOPS (random), higher is better",
    stresses: "the device, one request at a time",
    source: "AndroBench 3.4 (Kim and Kim, 2012), default settings",
    params: &[
        param(
            "size",
            Kind::Bytes(4096, 1 << 44),
            "32MiB",
            "bytes of the file",
        ),
        param(
            "sequential",
            Kind::Bytes(4096, 1 << 30),
            "256KiB",
            "bytes of a sequential call",
        ),
        param(
            "random",
            Kind::Bytes(4096, 1 << 30),
            "4KiB",
            "bytes of a random call",
        ),
    ],
    profiles: &[profile(
        "v5",
        "defaults of versions 4 and 5, one thread",
        &[("size", "64m"), ("sequential", "32m")],
    )],
    needs: Needs::Directory,
    space: |p| p.int("size"),
    check: |p| {
        for name in ["sequential", "random"] {
            if p.int(name) % 4096 != 0 || p.int(name) > p.int("size") {
                return Err(format!(
                    "{name} must be a multiple of 4096 and not above size"
                ));
            }
        }
        Ok(())
    },
};

/// The script.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let path = format!("{dir}/androbench");
    let size = p.int("size");
    lay_out(m, &path, size).await?;
    m.syncfs().await.doing(|| "sync")?;
    m.drop_caches().await.doing(|| "drop caches")?;
    let fd = open(m, &path, OpenFlags::DIRECT).await?;
    m.mark(Mark::ClockStart);
    for (phase, write, random) in [
        ("sequential read", false, false),
        ("sequential write", true, false),
        ("random read", false, true),
        ("random write", true, true),
    ] {
        m.mark(Mark::Phase(phase));
        let len = p.small(if random { "random" } else { "sequential" });
        let calls = size / u64::from(len);
        let start = m.now();
        for i in 0..calls {
            let n = if random { uniform(m, 0, calls - 1) } else { i };
            let op = m.op_begin(phase);
            call(m, fd, write, n * u64::from(len), len, &path).await?;
            m.op_end(op, u64::from(len));
        }
        let secs = seconds(m, start);
        if random {
            m.metric(phase, "IOPS", rate(calls as f64, secs), true);
        } else {
            m.metric(phase, "MB/s", rate(mib(calls * u64::from(len)), secs), true);
        }
    }
    close(m, fd, &path).await
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
    fn four_phases() {
        let t = Trial::run("androbench-io", &[("size", "4m")]);
        for (phase, n) in [
            ("sequential read", 16),
            ("sequential write", 16),
            ("random read", 1024),
            ("random write", 1024),
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
}
