//! hdparm -t (9.65): buffered sequential read of a raw device.
//!
//! Reads 2 MiB at a time from offset 0 until the time is up or the device ends, touching what it
//! read. The original first syncs and sleeps 3 s; the sleep is a parameter, the sync is the
//! world's state at the start.

use super::common::*;
use super::device;
use crate::fail::{Context, Outcome};
use crate::machine::Machine;
use crate::note::Mark;
use crate::params::{Kind, Params, param};
use crate::registry::{Needs, Workload, any};
use seekwell_core::NSEC_PER_SEC;

/// Documentation.
pub const WORKLOAD: Workload = Workload {
    name: "hdparm",
    summary: "buffered sequential read of the raw device (hdparm -t)",
    metric: "MB/s (MiB), higher is better",
    stresses: "one reader with read-ahead: depth 1 to 2, requests of the read-ahead window",
    source: "hdparm 9.65 -t",
    params: &[
        param(
            "seconds",
            Kind::Time(NSEC_PER_SEC / 100, 3600 * NSEC_PER_SEC),
            "3s",
            "how long",
        ),
        param("direct", Kind::Flag, "no", "past the page cache (--direct)"),
        param(
            "settle",
            Kind::Time(0, 60 * NSEC_PER_SEC),
            "3s",
            "sleep before the first read",
        ),
        param(
            "touch",
            Kind::Time(0, NSEC_PER_SEC),
            "50us",
            "CPU time to touch 2 MiB",
        ),
    ],
    profiles: &[],
    needs: Needs::Device,
    space: |_| 0,
    check: any,
};

const CALL: u32 = 2 << 20;

/// The script.
pub async fn run<M: Machine>(m: &mut M, p: &Params, _: &str) -> Outcome {
    let (fd, size) = device::open(m, p.flag("direct")).await?;
    m.sleep(p.time("settle")).await.doing(|| "settle")?;
    m.mark(Mark::ClockStart);
    let start = m.now();
    let (end, touch) = (start + p.time("seconds"), p.time("touch"));
    let mut off = 0;
    while m.now() < end && off < size {
        let op = m.op_begin("read");
        let n = m.read(fd, off, CALL).await;
        let n = n.doing(|| format!("read {CALL} bytes at {off} of the device"))?;
        m.op_end(op, u64::from(n));
        if n == 0 {
            break;
        }
        m.compute(touch).await.doing(|| "compute")?;
        off += u64::from(n);
    }
    let mb = rate(mib(off), seconds(m, start));
    m.metric("buffered read", "MB/s", (mb * 100.0).round() / 100.0, true);
    close(m, fd, "the device").await
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn front_to_back_until_the_time_is_up() {
        let t = Trial::run("hdparm", &[("seconds", "50ms"), ("settle", "0")]);
        let reads = t.ranges("read", "device");
        assert!(
            reads
                .iter()
                .enumerate()
                .all(|(i, r)| *r == ((i as u64) << 21, 2 << 20))
        );
        // 2 MiB take 2.098 ms and 50 us to touch: the 24th call is the last to begin in time.
        assert_eq!(reads.len(), 24);
        assert!((t.metric() - 931.0).abs() < 1.0, "{}", t.metric());
    }

    #[test]
    fn the_end_of_the_device_ends_it() {
        let t = Trial::with("hdparm", &[("settle", "0")], |w| w.device = 5 << 20);
        assert_eq!(t.outcome, Ok(()));
        assert_eq!(t.calls("read"), 3);
        let none = Trial::with("hdparm", &[], |w| w.device = 0);
        let e = none.outcome.expect_err("no device").to_string();
        assert_eq!(e, "open the raw device: no such device (ENODEV)");
    }
}
