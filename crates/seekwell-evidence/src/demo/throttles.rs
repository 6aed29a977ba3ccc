//! Demos of the kernel's throttling of writes, which happens before a request reaches the
//! scheduler.

use super::worlds::{metric, more, workload, world};
use super::{Demo, DemoError, Lab, Shown};

/// The demos of this file.
pub(super) const DEMOS: &[Demo] = &[Demo {
    name: "writeback-throttling",
    claim: "Writeback throttling, not the scheduler, protects a reader from a flood of writes.",
    runs: 8,
    each: 2,
    run: writeback_throttling,
}];

const DISK: &str = "hdd:hitachi-7k200";
const LOAD: &str = "interactive:seconds=30s,size=512m,bulk=128m";

/// Returns the mean read latency in ms, and the writer's rate in MB/s.
fn flooded(lab: &Lab<'_>, scheduler: &str) -> Result<(f64, f64), DemoError> {
    let ran = workload(&world(DISK, scheduler, "", lab)?, LOAD)?;
    Ok((metric(&ran), more(&ran, "bulk write")))
}

fn writeback_throttling(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "disk of a desktop, 4 GiB of memory; a program reads 4 KiB every 50 ms while another writes \
         through the page cache without end, 30 s",
        &[
            "scheduler",
            "a read, ms",
            "writer MB/s",
            "off: a read, ms",
            "off: writer MB/s",
        ],
    );
    let own = ["none", "mq-deadline", "kyber", "bfq"];
    let mut reads = Vec::new();
    for s in lab.schedulers(&own) {
        let (on, on_rate) = flooded(lab, &s)?;
        let off = format!("{s}:wbt_lat_usec=0");
        let (off, off_rate) = flooded(lab, &off)?;
        shown.row(vec![
            s,
            format!("{on:.1}"),
            format!("{on_rate:.1}"),
            format!("{off:.1}"),
            format!("{off_rate:.1}"),
        ]);
        reads.push((on, off));
    }
    let (bfq, off_bfq) = reads[own.len() - 1];
    let others = &reads[..own.len() - 1];
    let least = others.iter().map(|r| r.1 / r.0).fold(f64::MAX, f64::min);
    shown.check(
        format!(
            "reads under the other schedulers are at least {least:.1} times as fast with \
             throttling (required: 2)"
        ),
        least >= 2.0,
    );
    shown.check(
        format!("bfq has no throttling by default: {bfq:.1} and {off_bfq:.1} ms are equal"),
        bfq.to_bits() == off_bfq.to_bits(),
    );
    let best = others.iter().map(|r| r.1).fold(f64::MAX, f64::min);
    shown.check(
        format!(
            "without throttling bfq's reads are the fastest: {off_bfq:.1} ms, others at best \
             {best:.1}"
        ),
        off_bfq < best,
    );
    let best = others.iter().map(|r| r.0).fold(f64::MAX, f64::min);
    shown.check(
        format!(
            "with throttling, bfq's reads are not the fastest: {bfq:.1} ms, others at best \
             {best:.1}"
        ),
        bfq > best,
    );
    Ok(shown)
}
