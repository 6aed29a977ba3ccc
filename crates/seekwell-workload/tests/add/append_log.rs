//! append-log: a log that grows record by record and is made durable in groups.
//!
//! One task appends records to a file, and calls fsync after each group. The result is the number
//! of durable records per second.
//! Left out: several writers, the wait for a full group, and rotation of the log.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{Fd, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param};
use crate::row::{Needs, Workload};
use seekwell_core::OpenFlags;

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "append-log",
    summary: "append records to a log, with one fsync per group of records",
    metric: "records/s, higher is better",
    stresses: "fsync: the journal of the file system and the flushes of the device",
    source: "the example of docs/add-a-workload.md",
    params: &[
        param(
            "records",
            Kind::Count(1, 1_000_000_000),
            "10000",
            "number of records",
        ),
        param("size", Kind::Bytes(1, 1 << 30), "4KiB", "size of a record"),
        param(
            "group",
            Kind::Count(1, 1_000_000_000),
            "10",
            "number of records per fsync",
        ),
    ],
    profiles: &[],
    needs: Needs::Directory,
    space: |p| p.int("records") * p.int("size"),
    check: |p| {
        if p.int("group") <= p.int("records") {
            Ok(())
        } else {
            Err("group must be at most records".into())
        }
    },
};

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let path = format!("{dir}/log");
    let fd = open(m, &path, OpenFlags::CREATE | OpenFlags::APPEND).await?;
    m.mark(Mark::ClockStart);
    let start = m.now();
    let mut durable = 0;
    let outcome = write(m, p, fd, &path, &mut durable).await;
    // A run that ends early reports the records so far.
    if durable > 0 {
        let secs = seconds(m, start);
        m.counts("append");
        m.metric("log records", "records/s", rate(durable as f64, secs), true);
    }
    outcome?;
    close(m, fd, &path).await
}

async fn write<M: Machine>(
    m: &mut M,
    p: &Params,
    fd: Fd,
    path: &str,
    durable: &mut u64,
) -> Outcome {
    let (records, group, size) = (p.int("records"), p.int("group"), p.small("size"));
    for n in 1..=records {
        let op = m.op_begin("append");
        let done = m.append(fd, size).await;
        let bytes = done.doing(|| format!("append {size} bytes to {path}"))?;
        m.op_end(op, u64::from(bytes));
        if n % group == 0 || n == records {
            fsync(m, fd, path).await?;
            *durable = n;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::WORKLOAD;
    use crate::testing::Trial;

    #[test]
    fn each_group_is_appended_and_then_synced() {
        let given = [("records", "25"), ("group", "10"), ("size", "100")];
        let t = Trial::run(WORKLOAD.name, &given);
        let mut calls = vec!["open"];
        for n in [10, 10, 5] {
            calls.extend(["append"].repeat(n));
            calls.push("fsync");
        }
        calls.extend(["close", "unlink"]);
        assert_eq!(t.sequence("/log"), calls);
        assert_eq!((t.ops("append"), t.ops("fsync")), (25, 3));
        assert_eq!(t.bytes_written(), 2500);
        assert_eq!(t.left_over(), 0);
    }
}
