//! Fits the parameters of an `ssd` preset to a flash drive: latency, parallelism, rates, the write
//! buffer and the duration of a flush.
//!
//! Reads are always measured. Writes are measured only with permission. The drive is measured in
//! its current state. This has two effects: reads of blocks without data do not access the flash,
//! and a drive without recent random writes is as fast as a fresh drive.

mod fit;
mod measure;

use crate::fit::{Curve, Estimate, Val};
use crate::probe::Stop;
use crate::session::Session;
use fit::{BUFFER_KIB, Candidate, ERASE_US};
use measure::{Effort, Shown};

/// Measures the drive and fits a preset. If no model fits, the inner `Err` contains the reason.
pub(crate) fn run(s: &mut Session<'_>) -> Result<Result<(), String>, Stop> {
    let effort = Effort {
        ios: s.count(24_000, 6_000).min(60_000),
        ms: (1_000.0 * s.scale()).clamp(200.0, 3_000.0),
    };
    let (m, cut) = measure::shown(s, effort)?;
    s.stage("fit");
    match fit::fit(s.facts(), &m, s.seed()) {
        Ok((c, got)) => {
            found(s, &m, &c, &got);
            cut.map_or(Ok(Ok(())), Err)
        }
        Err(why) => Ok(Err(format!("no flash model fits: {why}"))),
    }
}

fn found(s: &mut Session<'_>, m: &Shown, c: &Candidate, got: &Shown) {
    let capacity = s.facts().capacity / 8 * 8;
    let sectors = |n: u64| Estimate::num("capacity", n as f64, "sectors", "size of the device");
    s.found(sectors(capacity).stated());
    s.found(Estimate::new_value(
        "link",
        Val::Word(c.link),
        "",
        "S2: the slowest link that allows the sequential rate",
    ));
    let n = m.latency.n;
    let us = |ms: f64| ms * 1e3;
    s.found(
        Estimate::num(
            "link_rate",
            c.link_rate,
            "MB/s",
            "S2: sequential reads, many at a time",
        )
        .pm(m.rate.pm)
        .n(m.rate.n),
    );
    let depth = Estimate::num(
        "depth",
        f64::from(c.depth),
        "commands",
        "the host's queue_depth",
    );
    s.found(if s.facts().depth.is_some() {
        depth.stated()
    } else {
        depth.unknown()
    });
    let guess = "a guess; several values give the same measurements";
    s.found(Estimate::num("channels", f64::from(c.channels), "channels", guess).unknown());
    s.found(
        Estimate::num(
            "units",
            f64::from(c.units),
            "units",
            "S3: throughput by depth; powers of 2 were tried",
        )
        .between(f64::from(c.units) / 2.0, f64::from(c.units) * 2.0)
        .n(m.depths.len()),
    );
    s.found(Estimate::num("program_unit", f64::from(c.program_unit), "pages", guess).unknown());
    s.found(Estimate::num("block", f64::from(c.block()), "pages", guess).unknown());
    s.found(
        Estimate::num(
            "t_read",
            c.t_read,
            "us",
            "S2: latency of a random 4 KiB read, less what the other stages take",
        )
        .pm(us(m.latency.pm))
        .n(n),
    );
    s.found(
        Estimate::num(
            "t_fw_read",
            c.t_fw_read,
            "us",
            "S3: reads per second at full depth",
        )
        .n(m.depths.len()),
    );
    s.found(Estimate::num("channel_rate", c.channel_rate, "MB/s", guess).unknown());
    s.found(
        Estimate::num(
            "read_ahead",
            c.read_ahead_kib,
            "KiB",
            "S12: one sequential reader against one at random",
        )
        .n(m.rate.n),
    );
    s.found(
        Estimate::num(
            "rho",
            0.07,
            "ratio",
            "a measurement needs hours of writing; a typical minimum is used",
        )
        .unknown(),
    );
    s.found(Estimate::num("t_erase", ERASE_US, "us", guess).unknown());
    s.found(Estimate::num("buffer", BUFFER_KIB, "KiB", "a typical size").unknown());
    let write = |key, value, unit, how: &str| Estimate::num(key, value, unit, how);
    match &m.writes {
        Some(w) => {
            s.found(
                write(
                    "t_fw_write",
                    c.t_fw_write,
                    "us",
                    "S6: a burst of writes at depth",
                )
                .n(5),
            );
            s.found(
                write("t_ack", c.t_ack, "us", "S6: latency of one 4 KiB write")
                    .pm(us(w.latency.pm))
                    .n(w.latency.n),
            );
            let share = w.rate.pm / w.rate.value;
            s.found(
                write(
                    "t_prog",
                    c.t_prog,
                    "us",
                    "S7: rate of a long sequential write",
                )
                .pm(c.t_prog * share)
                .n(w.rate.n),
            );
            s.found(Estimate::new_value(
                "plp",
                Val::Flag(c.plp),
                "",
                "S8: whether a flush is shorter than a program operation",
            ));
            s.found(write("t_flush", c.t_flush, "us", "S8: flush after one write").n(7));
        }
        None => {
            let how = "writes were not permitted; a typical value is used";
            s.found(write("t_fw_write", 5.0, "us", how).unknown());
            s.found(write("t_ack", 10.0, "us", how).unknown());
            s.found(write("t_prog", 1000.0, "us", how).unknown());
        }
    }
    curves(s, m, got);
    if m.latency.value < 0.03 {
        s.note(
            "reads are faster than flash: the device is memory, or the blocks hold no data; reads \
             of written blocks may take longer",
        );
    }
    if m.writes.is_some() {
        s.note(
            "the drive was measured in its current state; a fresh drive writes faster than one \
             after many random writes",
        );
    }
}

fn curves(s: &mut Session<'_>, m: &Shown, got: &Shown) {
    let pair = |a: &[(usize, f64)], b: &[(usize, f64)]| {
        let both = a.iter().zip(b);
        both.map(|(a, b)| (a.0 as f64, a.1, b.1)).collect()
    };
    s.curve(Curve {
        title: "random 4 KiB reads per second".into(),
        x: "depth".into(),
        y: "1/s".into(),
        points: pair(&m.depths, &got.depths),
        log_x: true,
    });
    let sizes = m.sizes.iter().zip(&got.sizes);
    s.curve(Curve {
        title: "one read at a time".into(),
        x: "KiB".into(),
        y: "ms".into(),
        points: sizes
            .map(|(a, b)| (f64::from(a.0) / 2.0, a.1, b.1))
            .collect(),
        log_x: true,
    });
    let mut table = vec![
        (1.0, m.rate_one, got.rate_one),
        (2.0, m.rate.value, got.rate.value),
    ];
    if let (Some(a), Some(b)) = (&m.writes, &got.writes) {
        table.push((3.0, a.rate.value, b.rate.value));
    }
    s.curve(Curve {
        title: "sequential: read one (1), many (2), write (3)".into(),
        x: "measurement".into(),
        y: "MB/s".into(),
        points: table,
        log_x: false,
    });
}
