//! hdparm -t (9.65): buffered sequential reads of a raw device.
//!
//! The script syncs, sleeps for 3 s, and then reads 2 MiB at a time from offset 0. It also accesses
//! the data in memory. It stops when the time is over, or when fewer than 2 MiB are left. At the
//! end it syncs again and drops the cached pages of the device, so that the next run also reads
//! from the device. It drops no pages before the first read.

use super::common::*;
use super::device;
use crate::fail::{Context, Fail, Outcome};
use crate::machine::{Fd, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param};
use crate::row::{Needs, Workload, any};
use seekwell_core::{Errno, NSEC_PER_SEC};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "hdparm",
    summary: "buffered sequential read of the raw device (hdparm -t)",
    metric: "MB/s (MiB), higher is better",
    stresses: "one reader with read-ahead: depth 1 to 2, requests as large as the read-ahead window",
    source: "hdparm 9.65 -t",
    #[rustfmt::skip]
    params: &[
        param("seconds", Kind::Time(NSEC_PER_SEC / 100, 3600 * NSEC_PER_SEC), "3s", "duration"),
        param("direct", Kind::Flag, "no", "read without the page cache (--direct)"),
        param("settle", Kind::Time(0, 60 * NSEC_PER_SEC), "3s", "sleep before the first read"),
        param("touch", Kind::Time(0, NSEC_PER_SEC), "50us", "CPU time to access 2 MiB in memory"),
    ],
    profiles: &[],
    needs: Needs::Device,
    space: |_| 0,
    check: any,
};

const CALL: u32 = 2 << 20;

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, _: &str) -> Outcome {
    let (fd, size) = device::open(m, p.flag("direct")).await?;
    if size < u64::from(CALL) {
        return Err(Fail {
            what: format!("the raw device has only {size} bytes, but hdparm needs at least 2 MiB"),
            errno: Errno::EINVAL,
        });
    }
    m.syncfs().await.doing(|| "sync")?;
    m.sleep(p.time("settle")).await.doing(|| "settle")?;
    m.mark(Mark::ClockStart);
    let start = m.now();
    let mut off = 0;
    let outcome = read(m, p, fd, size, &mut off).await;
    if off > 0 {
        let mb = rate(mib(off), seconds(m, start));
        m.counts("read");
        m.metric("buffered read", "MB/s", hundredths(mb), true);
    }
    outcome?;
    m.syncfs().await.doing(|| "sync")?;
    m.fsync(fd).await.doing(|| "fsync the device")?;
    m.drop_caches().await.doing(|| "drop the device's pages")?;
    close(m, fd, "the device").await
}

async fn read<M: Machine>(m: &mut M, p: &Params, fd: Fd, size: u64, off: &mut u64) -> Outcome {
    let (end, touch) = (m.now() + p.time("seconds"), p.time("touch"));
    while m.now() < end && *off + u64::from(CALL) <= size {
        let op = m.op_begin("read");
        let n = m.read(fd, *off, CALL).await;
        let n = n.doing(|| format!("read {CALL} bytes at {off} of the device"))?;
        if n < CALL {
            return Err(Fail {
                what: format!("read {CALL} bytes at {off} of the device: the device ends there"),
                errno: Errno::EIO,
            });
        }
        m.op_end(op, u64::from(n));
        m.compute(touch).await.doing(|| "compute")?;
        *off += u64::from(n);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn device_is_read_front_to_back_until_the_time_is_up() {
        let t = Trial::run("hdparm", &[("seconds", "50ms"), ("settle", "0")]);
        let reads = t.ranges("read", "device");
        assert!(
            reads
                .iter()
                .enumerate()
                .all(|(i, r)| *r == ((i as u64) << 21, 2 << 20))
        );
        // A read of 2 MiB takes 2.098 ms, and access to the data 50 us. The 24th call is the last
        // that begins in time.
        assert_eq!(reads.len(), 24);
        assert!((t.metric() - 931.0).abs() < 1.0, "{}", t.metric());
    }

    #[test]
    fn script_syncs_sleeps_three_seconds_and_reads_for_three() {
        let t = Trial::run("hdparm", &[]);
        let log = t.world.log();
        let names: Vec<&str> = log.iter().map(|c| c.name).collect();
        assert_eq!(names[..4], ["open_device", "fstat", "syncfs", "read"]);
        let first = log[3].at.since_start();
        assert!((3_000_000_000..3_000_100_000).contains(&first), "{first}");
        let ends = ["read", "syncfs", "fsync", "drop_caches", "close"];
        assert_eq!(
            names[names.len() - 5..],
            ends,
            "the next run finds nothing cached"
        );
        let took = log[log.len() - 5].at.since_start() - first;
        assert!((2_997_000_000..3_000_000_000).contains(&took), "{took}");
        // The result is N MB in S seconds, where N is even, with two decimals.
        let n = (names.len() - 8) as f64 * 2.0;
        let secs = n / 2.0 * (2_097_152.0 + 1_000.0 + 50_000.0) / 1e9;
        assert_eq!(t.metric(), (n / secs * 100.0).round() / 100.0);
    }

    #[test]
    fn end_of_the_device_ends_the_run() {
        let t = Trial::with("hdparm", &[("settle", "0")], |w| w.device = 5 << 20);
        assert_eq!(t.outcome, Ok(()));
        assert_eq!(t.calls("read"), 2, "2 MiB each, nothing less");
        let none = Trial::with("hdparm", &[], |w| w.device = 0);
        let e = none.outcome.expect_err("no device").to_string();
        assert_eq!(e, "open the raw device: no such device (ENODEV)");
        let small = Trial::with("hdparm", &[], |w| w.device = 3 << 19);
        let e = small.outcome.expect_err("too small").to_string();
        assert!(
            e.contains("only 1572864 bytes, but hdparm needs at least 2 MiB"),
            "{e}"
        );
    }
}
