//! Demos of the single-queue schedulers.

use super::{DISK, Demo, DemoError, Lab, Shown, bytes, ios, latency_ms, mb_s, run};
use seekwell_core::numbers::signed;
use seekwell_core::{Class, Instant, IoPrio, Nanos, Sector};
use seekwell_sim::procs::{Pattern, Process};

/// The demos of this file.
pub(super) const DEMOS: &[Demo] = &[
    Demo {
        name: "deceptive-idleness",
        claim: "For two distant sequential readers, schedulers that idle are several times faster \
                than schedulers that seek away at once.",
        runs: 4,
        each: 1,
        run: deceptive_idleness,
    },
    Demo {
        name: "deadline-reads",
        claim: "deadline bounds how long a reader waits behind a heavy writer.",
        runs: 3,
        each: 1,
        run: deadline_reads,
    },
    Demo {
        name: "cfq-ioprio",
        claim: "CFQ shares the disk by ioprio level in the ratios of its slices.",
        runs: 1,
        each: 0,
        run: cfq_ioprio,
    },
    Demo {
        name: "cfq-idle-class",
        claim: "The IDLE class yields: it gets next to nothing while others are busy.",
        runs: 2,
        each: 1,
        run: cfq_idle_class,
    },
    Demo {
        name: "cfq-async",
        claim: "Under CFQ async writers cannot starve a sync reader.",
        runs: 3,
        each: 1,
        run: cfq_async,
    },
    Demo {
        name: "bfq-v7r8-weights",
        claim: "BFQ gives equal streams shares by weight within 5 %.",
        runs: 1,
        each: 0,
        run: bfq_weights,
    },
    Demo {
        name: "bfq-v7r8-startup",
        claim: "BFQ starts an application quickly although readers keep the disk busy.",
        runs: 4,
        each: 1,
        run: bfq_startup,
    },
    Demo {
        name: "fiops-iops",
        claim: "FIOPS equalises requests per second, not time or bytes.",
        runs: 2,
        each: 1,
        run: fiops_iops,
    },
    Demo {
        name: "row-reads",
        claim: "ROW favours reads and still serves writes in a fixed share.",
        runs: 2,
        each: 1,
        run: row_reads,
    },
    Demo {
        name: "sio-order",
        claim: "SIO never orders by sector: it seeks as far as noop.",
        runs: 3,
        each: 1,
        run: sio_order,
    },
    Demo {
        name: "vr-penalty",
        claim: "VR prefers one direction, according to rev_penalty.",
        runs: 6,
        each: 0,
        run: vr_penalty,
    },
];

/// End of the disk range that demos use, in sectors (40 GB).
const SPAN: u64 = 80_000_000;

fn two_readers() -> Vec<Process> {
    let think = Nanos::from_us(200);
    vec![
        Process {
            sectors: 32,
            think,
            ..Process::reader(1, 0)
        },
        Process {
            sectors: 32,
            think,
            ..Process::reader(2, SPAN)
        },
    ]
}

fn deceptive_idleness(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "two processes read 16 KiB sequentially, 40 GB apart, with 0.2 ms think time, for 10 s on \
         a 7200 rpm laptop disk without command queueing",
        &["scheduler", "MB/s", "mean latency ms", "mean seek sectors"],
    );
    let mut rate = Vec::new();
    for s in lab.schedulers(&["noop", "deadline", "anticipatory", "cfq"]) {
        let r = run(DISK, &s, lab, two_readers(), &[])?;
        let v = mb_s(&r, (r.read.bytes) as f64);
        rate.push(v);
        shown.row(vec![
            s.clone(),
            format!("{v:.1}"),
            format!("{:.2}", r.read.latency.mean_ns() / 1e6),
            format!("{:.0}", r.mean_seek_sectors),
        ]);
    }
    let best = rate[0].max(rate[1]);
    for (s, v) in ["anticipatory", "cfq"].iter().zip(&rate[2..]) {
        let factor = v / best;
        let words = format!("{s} is {factor:.1} times the better of noop and deadline (3 or more)");
        shown.check(words, factor >= 3.0);
    }
    Ok(shown)
}

fn deadline_reads(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "one process reads 4 KiB at random places every 20 ms while another keeps 120 random \
         writes outstanding, 10 s",
        &[
            "scheduler",
            "mean read ms",
            "p99 read ms",
            "max read ms",
            "writes/s",
        ],
    );
    let mut max = Vec::new();
    for s in lab.schedulers(&["noop", "deadline", "deadline:read_expire=100"]) {
        let reader = Process {
            pattern: Pattern::Random(Sector(0), Sector(SPAN)),
            sectors: 8,
            think: Nanos::from_ms(20),
            ..Process::reader(1, 0)
        };
        let r = run(
            DISK,
            &s,
            lab,
            vec![reader, Process::writer(2, SPAN, 120)],
            &[],
        )?;
        let l = &r.read.latency;
        max.push(l.max_ns() as f64 / 1e6);
        shown.row(vec![
            s.clone(),
            format!("{:.1}", l.mean_ns() / 1e6),
            format!("{:.1}", l.percentile_ns(99.0) as f64 / 1e6),
            format!("{:.1}", l.max_ns() as f64 / 1e6),
            format!("{:.0}", r.rate(r.write.ios as f64)),
        ]);
    }
    let (noop, deadline) = (max[0], max[1]);
    shown.check(
        format!("the longest read under deadline, {deadline:.0} ms, is under half of noop's {noop:.0} ms"),
        deadline < noop / 2.0,
    );
    Ok(shown)
}

fn cfq_ioprio(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "three sequential readers of 128 KiB at best-effort levels 0, 4 and 7, 30 s; CFQ's slices \
         for them are 180, 100 and 40 ms",
        &["level", "MB/s", "share %", "slice share %"],
    );
    let stop = Instant::START + Nanos::from_secs(30);
    let levels = [0u8, 4, 7];
    let reader = |(i, level): (usize, &u8)| Process {
        ioprio: IoPrio::be(*level),
        stop,
        ..Process::reader(i as u32 + 1, i as u64 * 12_000_000)
    };
    let list = levels.iter().enumerate().map(reader).collect();
    let r = run(DISK, "cfq", lab, list, &[])?;
    let all: f64 = r.read.bytes as f64;
    let want = [180.0 / 320.0, 100.0 / 320.0, 40.0 / 320.0];
    for (i, level) in levels.iter().enumerate() {
        let b = bytes(&r, i as u32 + 1);
        let share = b / all;
        shown.row(vec![
            level.to_string(),
            format!("{:.1}", mb_s(&r, b)),
            format!("{:.1}", share * 100.0),
            format!("{:.1}", want[i] * 100.0),
        ]);
        let off = (share / want[i] - 1.0) * 100.0;
        shown.check(
            format!(
                "level {level} gets its slice share within 15 % ({} %)",
                signed(off, 1)
            ),
            off.abs() <= 15.0,
        );
    }
    Ok(shown)
}

fn idle_pair(lab: &Lab<'_>, scheduler: &str) -> Result<(f64, f64), DemoError> {
    let idle = IoPrio {
        class: Class::Idle,
        level: 7,
    };
    let list = vec![
        Process::reader(1, 0),
        Process {
            ioprio: idle,
            ..Process::reader(2, SPAN)
        },
    ];
    let r = run(DISK, scheduler, lab, list, &[])?;
    Ok((mb_s(&r, bytes(&r, 1)), mb_s(&r, bytes(&r, 2))))
}

fn cfq_idle_class(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "two sequential readers, the second in the IDLE class, 10 s",
        &[
            "scheduler",
            "normal MB/s",
            "idle class MB/s",
            "idle share %",
        ],
    );
    for s in lab.schedulers(&["noop", "cfq"]) {
        let (a, b) = idle_pair(lab, &s)?;
        let share = b / (a + b) * 100.0;
        shown.row(vec![
            s.clone(),
            format!("{a:.1}"),
            format!("{b:.2}"),
            format!("{share:.1}"),
        ]);
        if s == "cfq" {
            shown.check(
                format!("the idle class gets {share:.1} % (under 5 %)"),
                share < 5.0,
            );
        }
    }
    Ok(shown)
}

fn cfq_async(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "one sequential reader of 128 KiB beside a process with 120 random async writes \
         outstanding, 10 s",
        &["scheduler", "reader MB/s", "read latency ms", "writes/s"],
    );
    let alone = run(DISK, "cfq", lab, vec![Process::reader(1, 0)], &[])?;
    let alone = mb_s(&alone, alone.read.bytes as f64);
    shown.row(vec![
        "cfq, alone".to_owned(),
        format!("{alone:.1}"),
        "-".to_owned(),
        "-".to_owned(),
    ]);
    let mut rate = Vec::new();
    for s in lab.schedulers(&["noop", "cfq"]) {
        let list = vec![Process::reader(1, 0), Process::writer(2, SPAN, 120)];
        let r = run(DISK, &s, lab, list, &[])?;
        rate.push(mb_s(&r, bytes(&r, 1)));
        shown.row(vec![
            s.clone(),
            format!("{:.1}", mb_s(&r, bytes(&r, 1))),
            format!("{:.1}", latency_ms(&r, 1)),
            format!("{:.0}", r.rate(ios(&r, 2))),
        ]);
    }
    let (noop, cfq) = (rate[0], rate[1]);
    let part = cfq / alone * 100.0;
    shown.check(
        format!("the reader keeps {part:.0} % of its rate under CFQ (over 40 %)"),
        part > 40.0,
    );
    shown.check(
        format!("CFQ's {cfq:.1} MB/s is over five times noop's {noop:.1}"),
        cfq > noop * 5.0,
    );
    Ok(shown)
}

fn bfq_weights(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "two sequential readers of 128 KiB at levels 0 (weight 8) and 4 (weight 4), 30 s, no \
         low_latency",
        &["level", "weight", "MB/s", "share %", "by weight %"],
    );
    let stop = Instant::START + Nanos::from_secs(30);
    let list = vec![
        Process {
            ioprio: IoPrio::be(0),
            stop,
            ..Process::reader(1, 0)
        },
        Process {
            ioprio: IoPrio::be(4),
            stop,
            ..Process::reader(2, SPAN / 8)
        },
    ];
    let r = run(DISK, "bfq-v7r8:low_latency=0", lab, list, &[])?;
    let all = r.read.bytes as f64;
    for (task, level, weight) in [(1, 0, 8.0), (2, 4, 4.0)] {
        let (b, want) = (bytes(&r, task), weight / 12.0);
        let share = b / all;
        shown.row(vec![
            level.to_string(),
            format!("{weight}"),
            format!("{:.1}", mb_s(&r, b)),
            format!("{:.1}", share * 100.0),
            format!("{:.1}", want * 100.0),
        ]);
        let off = (share / want - 1.0) * 100.0;
        shown.check(
            format!(
                "level {level} is within 5 % of its weight ({} %)",
                signed(off, 1)
            ),
            off.abs() <= 5.0,
        );
    }
    Ok(shown)
}

fn bfq_startup(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "after 5 s of four sequential readers an application starts: 200 random reads of 16 KiB, \
         one after the other",
        &["scheduler", "start-up s", "readers MB/s"],
    );
    let mut times = Vec::new();
    for s in lab.schedulers(&["noop", "deadline", "cfq", "bfq-v7r8"]) {
        let stop = Instant::START + Nanos::from_secs(20);
        let mut list: Vec<Process> = (0..4)
            .map(|i| Process {
                stop,
                ..Process::reader(i + 1, u64::from(i) * SPAN / 4)
            })
            .collect();
        list.push(Process {
            name: "application".to_owned(),
            start: Instant::START + Nanos::from_secs(5),
            pattern: Pattern::Random(Sector(0), Sector(SPAN)),
            sectors: 32,
            limit: 200,
            stop: Instant::FAR,
            ..Process::reader(9, 0)
        });
        let r = run(DISK, &s, lab, list, &[])?;
        // The process never waits between reads, so its start-up time is the sum of its latencies.
        let took = latency_ms(&r, 9) * ios(&r, 9) / 1e3;
        let rest: f64 = (1..5).map(|t| bytes(&r, t)).sum();
        times.push(took);
        shown.row(vec![
            s.clone(),
            format!("{took:.2}"),
            format!("{:.1}", mb_s(&r, rest)),
        ]);
    }
    let bfq = times[3];
    for (s, t) in ["noop", "deadline", "cfq"].iter().zip(&times) {
        shown.check(
            format!("BFQ's {bfq:.2} s is under {s}'s {t:.2} s"),
            bfq < *t,
        );
    }
    Ok(shown)
}

fn fiops_iops(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "two processes with 16 random reads outstanding each, one of 4 KiB and one of 256 KiB, 10 s",
        &[
            "scheduler",
            "small IOPS",
            "large IOPS",
            "ratio",
            "bytes ratio",
        ],
    );
    let mut ratios = Vec::new();
    for s in lab.schedulers(&["fiops", "cfq"]) {
        let random = |task: u32, sectors: u32| Process {
            pattern: Pattern::Random(Sector(0), Sector(SPAN)),
            sectors,
            depth: 16,
            ..Process::reader(task, 0)
        };
        let r = run(DISK, &s, lab, vec![random(1, 8), random(2, 512)], &[])?;
        let (a, b) = (ios(&r, 1), ios(&r, 2));
        ratios.push(a / b);
        shown.row(vec![
            s.clone(),
            format!("{:.1}", r.rate(a)),
            format!("{:.1}", r.rate(b)),
            format!("{:.2}", a / b),
            format!("{:.1}", bytes(&r, 2) / bytes(&r, 1)),
        ]);
    }
    let fiops = ratios[0];
    shown.check(
        format!("under FIOPS both get the same number of requests (ratio {fiops:.3}, within 2 %)"),
        (fiops - 1.0).abs() < 0.02,
    );
    let cfq = ratios[1];
    shown.check(
        format!("under CFQ, which shares time, the small requests get more ({cfq:.2})"),
        cfq > 1.1,
    );
    Ok(shown)
}

fn row_reads(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "a process keeps 16 random reads outstanding, another 32 random async writes, 120 s",
        &[
            "scheduler",
            "reads/s",
            "writes/s",
            "mean read ms",
            "writes per 100 reads",
        ],
    );
    let stop = Instant::START + Nanos::from_secs(120);
    let mut shares = Vec::new();
    for s in lab.schedulers(&["noop", "row"]) {
        let reader = Process {
            pattern: Pattern::Random(Sector(0), Sector(SPAN)),
            sectors: 8,
            depth: 16,
            stop,
            ..Process::reader(1, 0)
        };
        let writer = Process {
            stop,
            ..Process::writer(2, SPAN, 32)
        };
        let r = run(DISK, &s, lab, vec![reader, writer], &[])?;
        let per = ios(&r, 2) / ios(&r, 1) * 100.0;
        shares.push(per);
        shown.row(vec![
            s.clone(),
            format!("{:.1}", r.rate(ios(&r, 1))),
            format!("{:.1}", r.rate(ios(&r, 2))),
            format!("{:.1}", latency_ms(&r, 1)),
            format!("{per:.1}"),
        ]);
    }
    let row = shares[1];
    shown.check(
        format!(
            "while both always wait, ROW serves 4 writes per 75 reads ({row:.1} per 100, 4.8 to 6)"
        ),
        (4.8..6.0).contains(&row),
    );
    shown.check(
        format!("noop serves {:.0} per 100", shares[0]),
        shares[0] > 100.0,
    );
    Ok(shown)
}

fn sio_order(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "one process keeps 32 random reads of 4 KiB outstanding, 10 s",
        &["scheduler", "mean seek sectors", "IOPS"],
    );
    let mut seeks = Vec::new();
    for s in lab.schedulers(&["noop", "sio", "deadline"]) {
        let reader = Process {
            pattern: Pattern::Random(Sector(0), Sector(SPAN)),
            sectors: 8,
            depth: 32,
            ..Process::reader(1, 0)
        };
        let r = run(DISK, &s, lab, vec![reader], &[])?;
        seeks.push(r.mean_seek_sectors);
        shown.row(vec![
            s.clone(),
            format!("{:.0}", r.mean_seek_sectors),
            format!("{:.1}", r.iops()),
        ]);
    }
    let off = (seeks[1] / seeks[0] - 1.0) * 100.0;
    shown.check(
        format!(
            "SIO seeks as far as noop ({} %, within 3 %)",
            signed(off, 1)
        ),
        off.abs() < 3.0,
    );
    let less = seeks[0] / seeks[2];
    shown.check(
        format!("a sorting scheduler seeks {less:.1} times less (2 or more)"),
        less > 2.0,
    );
    Ok(shown)
}

fn vr_penalty(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "one process keeps 32 random reads of 4 KiB outstanding, 10 s; deadlines disabled. The \
         shipped kernels use the remainder of a division; the documentation specifies the quotient",
        &[
            "penalty_mode",
            "rev_penalty",
            "mean seek sectors",
            "IOPS",
            "p99 ms",
        ],
    );
    let mut seen = Vec::new();
    for (mode, p) in [("remainder", "0"), ("remainder", "1"), ("remainder", "10")]
        .into_iter()
        .chain([("quotient", "0"), ("quotient", "1"), ("quotient", "10")])
    {
        let s = format!(
            "vr:penalty_mode={mode},rev_penalty={p},sync_expire=100000,async_expire=100000"
        );
        let reader = Process {
            pattern: Pattern::Random(Sector(0), Sector(SPAN)),
            sectors: 8,
            depth: 32,
            ..Process::reader(1, 0)
        };
        let r = run(DISK, &s, lab, vec![reader], &[])?;
        let p99 = r.read.latency.percentile_ns(99.0) as f64 / 1e6;
        seen.push((r.mean_seek_sectors, p99));
        shown.row(vec![
            mode.to_owned(),
            p.to_owned(),
            format!("{:.0}", r.mean_seek_sectors),
            format!("{:.1}", r.iops()),
            format!("{p99:.0}"),
        ]);
    }
    let (sstf, look) = (seen[0], seen[1]);
    shown.check(
        "as shipped, rev_penalty=1 gives LOOK, which the documentation specifies for 0".to_owned(),
        look == seen[3],
    );
    shown.check(
        "as shipped, rev_penalty=0 gives shortest seek first, which the documentation specifies \
         for 1"
            .to_owned(),
        sstf == seen[4],
    );
    shown.check(
        format!(
            "one direction at a time has the shorter tail: p99 {:.0} and {:.0} ms",
            look.1, sstf.1
        ),
        look.1 < sstf.1,
    );
    Ok(shown)
}
