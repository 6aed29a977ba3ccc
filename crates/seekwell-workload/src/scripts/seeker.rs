//! seeker 2.0 (2007): random reads of a raw device, one at a time.
//!
//! The script reads 512 bytes at uniformly distributed positions for 30 s. The reads go through the
//! page cache, so each read fetches one page. An alarm ends the run, so the read in progress does
//! not count. The result is the number of reads divided by the nominal time, in whole seeks per
//! second, and the time per read in milliseconds with two decimals. Version 3.0 (2009) adds
//! threads; the parameter `threads` sets their number. Each reader has its own random numbers.

use super::common::*;
use super::device;
use crate::fail::{Context, Outcome};
use crate::machine::{How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param};
use crate::row::{Needs, Workload, any};
use seekwell_core::{NSEC_PER_SEC, Nanos};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "seeker",
    summary: "random 512-byte reads of the raw device, one at a time",
    metric: "whole seeks/s, higher is better; also ms per seek",
    stresses: "a single synchronous reader: device latency, CPU per request, idling",
    source: "seeker 2.0 (linuxinsight.com, 2007); threads as in 3.0",
    #[rustfmt::skip]
    params: &[
        param("seconds", Kind::Time(NSEC_PER_SEC / 100, 3600 * NSEC_PER_SEC), "30s", "duration"),
        param("threads", Kind::Count(1, 1024), "1", "number of reader threads (version 3.0)"),
        param("direct", Kind::Flag, "no", "read 4 KiB with O_DIRECT instead"),
        param("think", Kind::Time(0, NSEC_PER_SEC), "0",
            "CPU time per seek in addition to its system calls"),
    ],
    profiles: &[],
    needs: Needs::Device,
    space: |_| 0,
    check: any,
};

#[derive(Clone)]
struct Job {
    direct: bool,
    think: Nanos,
    time: Nanos,
    count: Shared<u64>,
}

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, _: &str) -> Outcome {
    let job = Job {
        direct: p.flag("direct"),
        think: p.time("think"),
        time: p.time("seconds"),
        count: Shared::new(0),
    };
    m.mark(Mark::ClockStart);
    let start = m.now();
    let outcome = match p.int("threads") {
        1 => seek(m, &job).await,
        n => {
            let mut group = Group::new();
            for t in 0..n {
                let job = job.clone();
                let name = How::named(format!("seeker{t}"));
                group
                    .spawn(
                        m,
                        name,
                        move |mut m| async move { seek(&mut m, &job).await },
                    )
                    .await?;
            }
            group.join(m).await
        }
    };
    let count = job.count.with(|c| *c);
    if count > 0 {
        // If the run is stopped, the time counts up to the stop.
        let secs = seconds(m, start).min(job.time.as_secs_f64());
        m.counts("seek");
        m.metric("seeks", "seeks/s", rate(count as f64, secs).floor(), true);
        let ms = hundredths(secs * 1000.0 / count as f64);
        m.metric("seek time", "ms", ms, false);
    }
    outcome
}

async fn seek<M: Machine>(m: &mut M, job: &Job) -> Outcome {
    let (fd, size) = device::open(m, job.direct).await?;
    let (unit, len) = if job.direct { (4096, 4096) } else { (512, 512) };
    let end = m.now() + job.time;
    while m.now() < end {
        m.compute(job.think).await.doing(|| "compute")?;
        let off = uniform(m, 0, size / unit - 1) * unit;
        let op = m.op_begin("seek");
        let n = m.read(fd, off, len).await;
        let n = n.doing(|| format!("read {len} bytes at {off} of the device"))?;
        m.op_end(op, u64::from(n));
        if m.now() <= end {
            job.count.with(|c| *c += 1);
        }
    }
    close(m, fd, "the device").await
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn seeks_are_uniform_over_the_device() {
        let t = Trial::run("seeker", &[("seconds", "100ms")]);
        let reads = t.ranges("read", "device");
        assert!(reads.len() > 10_000);
        assert_eq!(t.ops("seek"), reads.len() as u64);
        assert!(reads.iter().all(|r| r.1 == 512 && r.0 % 512 == 0));
        let mean = reads.iter().map(|r| r.0 as f64).sum::<f64>() / reads.len() as f64;
        let half = (50u64 << 30) as f64;
        assert!((mean / half - 1.0).abs() < 0.03, "uniform: {mean}");
        // 512 bytes take 1.512 us on the test machine: 66137 reads in 100 ms, and one read that the
        // alarm interrupts.
        assert_eq!(reads.len(), 66_138);
        assert_eq!(t.metric(), 661_370.0);
    }

    #[test]
    fn seeker_runs_30_s_and_reports_whole_seeks_and_hundredths_of_a_ms() {
        let t = Trial::run("seeker", &[("think", "11ms")]);
        // Each read takes 11.001512 ms: 2726 reads in 30 s, and one read that ends too late.
        assert_eq!(t.calls("read"), 2727);
        let metrics = t.world.measures().metrics();
        assert_eq!((metrics[0].value, &*metrics[0].unit), (90.0, "seeks/s"));
        assert_eq!((metrics[1].value, &*metrics[1].unit), (11.01, "ms"));
        let direct = Trial::run("seeker", &[("seconds", "10ms"), ("direct", "yes")]);
        let reads = direct.ranges("read", "device");
        assert!(reads.iter().all(|r| r.1 == 4096 && r.0 % 4096 == 0));
    }

    #[test]
    fn rates_of_threads_add_up() {
        let one = Trial::run("seeker", &[("seconds", "10ms")]);
        let four = Trial::run("seeker", &[("seconds", "10ms"), ("threads", "4")]);
        assert!((four.metric() / one.metric() - 4.0).abs() < 0.02);
    }
}
