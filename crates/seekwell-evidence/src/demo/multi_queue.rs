//! Demos of the blk-mq schedulers.

use super::{DISK, Demo, DemoError, Lab, On, Shown, bytes, ios, latency_ms, mb_s, run};
use seekwell_core::numbers::signed;
use seekwell_core::prose::in_prose;
use seekwell_core::{Class, Instant, IoPrio, Nanos, Sector};
use seekwell_sim::procs::{Pattern, Process};

/// The demos of this file.
pub(super) const DEMOS: &[Demo] = &[
    Demo {
        name: "kyber-target",
        claim: "kyber holds its read target under a write flood by shrinking the writers' pool.",
        runs: 3,
        each: 1,
        run: kyber_target,
    },
    Demo {
        name: "mq-deadline-classes",
        claim: "mq-deadline serves the RT class first, but also serves requests of the other \
                classes that have waited too long.",
        runs: 2,
        each: 0,
        run: mq_deadline_classes,
    },
    Demo {
        name: "bfq-startup",
        claim: "BFQ starts an application quickly under ten readers, at some cost in throughput.",
        runs: 4,
        each: 1,
        run: bfq_startup,
    },
    Demo {
        name: "bfq-weights",
        claim: "BFQ shares equal streams by ioprio level within 5 %.",
        runs: 1,
        each: 0,
        run: bfq_weights,
    },
    Demo {
        name: "bfq-groups",
        claim: "BFQ shares between cgroups by weight within 5 %.",
        runs: 1,
        each: 0,
        run: bfq_groups,
    },
    Demo {
        name: "adios-window",
        claim: "ADIOS limits the requests in a disk to a window of predicted latency.",
        runs: 9,
        each: 0,
        run: adios_window,
    },
    Demo {
        name: "none-fast",
        claim: "On a fast device, BFQ loses throughput only if it gives unequal shares; `none` \
                loses nothing.",
        runs: 12,
        each: 0,
        run: none_fast,
    },
];

const SPAN: u64 = 80_000_000;
/// A flash device that serves 32 commands in parallel, in 0.4 ms each.
const FLASH: On = On {
    device: "constant:depth=32,service_us=400,servers=parallel",
    depth: None,
};
/// A device with one server and 256 tags, so that commands wait inside the device.
const SERIAL: On = On {
    device: "constant:depth=256,service_us=60",
    depth: None,
};
/// The laptop disk with command queueing.
const NCQ: On = On {
    device: "hdd:hitachi-7k200",
    depth: None,
};

fn random(task: u32, depth: u32) -> Process {
    Process {
        pattern: Pattern::Random(Sector(0), Sector(SPAN)),
        sectors: 8,
        depth,
        ..Process::reader(task, 0)
    }
}

fn kyber_target(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "a device with one server of 60 us behind 256 tags; 4 random reads outstanding beside 64 \
         sync writes, 10 s; kyber's targets: 2 ms for reads, 10 ms for writes",
        &[
            "scheduler",
            "mean read ms",
            "p90 read ms",
            "p99 read ms",
            "reads/s",
            "writes/s",
        ],
    );
    let mut p90 = Vec::new();
    for s in lab.schedulers(&["none", "mq-deadline", "kyber"]) {
        let writer = Process {
            flags: seekwell_core::Flags::SYNC,
            ..Process::writer(2, SPAN, 64)
        };
        let r = run(SERIAL, &s, lab, vec![random(1, 4), writer], &[])?;
        let l = &r.read.latency;
        p90.push(l.percentile_ns(90.0) as f64 / 1e6);
        shown.row(vec![
            s.to_owned(),
            format!("{:.2}", l.mean_ns() / 1e6),
            format!("{:.2}", l.percentile_ns(90.0) as f64 / 1e6),
            format!("{:.2}", l.percentile_ns(99.0) as f64 / 1e6),
            format!("{:.0}", r.rate(ios(&r, 1))),
            format!("{:.0}", r.rate(ios(&r, 2))),
        ]);
    }
    let (none, kyber) = (p90[0], p90[2]);
    shown.check(
        format!("p90 of reads under kyber is {kyber:.2} ms, at most its target of 2 ms"),
        kyber <= 2.0,
    );
    shown.check(
        format!("under `none` it is {none:.2} ms, over three times as long"),
        none > 3.0 * kyber,
    );
    Ok(shown)
}

fn mq_deadline_classes(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "three processes with 16 random reads outstanding each, in classes RT, BE and IDLE, on a \
         disk without command queueing, 30 s",
        &[
            "prio_aging_expire ms",
            "RT reads/s",
            "BE reads/s",
            "IDLE reads/s",
            "BE max ms",
        ],
    );
    let mut seen = Vec::new();
    for aging in ["10000", "500"] {
        let stop = Instant::START + Nanos::from_secs(30);
        let of = |task, class| Process {
            ioprio: IoPrio { class, level: 4 },
            stop,
            ..random(task, 16)
        };
        let list = vec![of(1, Class::Rt), of(2, Class::Be), of(3, Class::Idle)];
        let s = format!("mq-deadline:prio_aging_expire={aging}");
        let r = run(DISK, &s, lab, list, &[])?;
        let n = [1, 2, 3].map(|t| ios(&r, t));
        seen.push(n);
        shown.row(vec![
            aging.to_owned(),
            format!("{:.1}", n[0] / 30.0),
            format!("{:.2}", n[1] / 30.0),
            format!("{:.2}", n[2] / 30.0),
            format!("{:.0}", latency_ms(&r, 2)),
        ]);
    }
    let [rt, be, idle] = seen[0];
    shown.check(
        format!(
            "RT gets {:.0} % of the disk by default (90 or more)",
            rt / (rt + be + idle) * 100.0
        ),
        rt >= 0.9 * (rt + be + idle),
    );
    shown.check(
        "the lower classes still get some reads, because waiting requests age".to_owned(),
        be > 0.0 && idle > 0.0,
    );
    shown.check(
        format!(
            "with aging after 0.5 s they get more ({:.0} and {:.0} reads of BE)",
            be, seen[1][1]
        ),
        seen[1][1] > be,
    );
    Ok(shown)
}

fn bfq_startup(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "after 5 s of ten sequential readers an application starts: 200 random reads of 16 KiB, one \
         after the other; disk with command queueing",
        &["scheduler", "start-up s", "readers MB/s"],
    );
    let mut times = Vec::new();
    for s in lab.schedulers(&["none", "mq-deadline", "kyber", "bfq"]) {
        let stop = Instant::START + Nanos::from_secs(40);
        let mut list: Vec<Process> = (0..10)
            .map(|i| Process {
                stop,
                ..Process::reader(i + 1, u64::from(i) * SPAN / 10)
            })
            .collect();
        list.push(Process {
            name: "application".to_owned(),
            start: Instant::START + Nanos::from_secs(5),
            sectors: 32,
            limit: 200,
            stop: Instant::FAR,
            ..random(99, 1)
        });
        let r = run(NCQ, &s, lab, list, &[])?;
        let took = latency_ms(&r, 99) * ios(&r, 99) / 1e3;
        let rest: f64 = (1..11).map(|t| bytes(&r, t)).sum();
        times.push(took);
        shown.row(vec![
            s.to_owned(),
            format!("{took:.2}"),
            format!("{:.1}", mb_s(&r, rest)),
        ]);
    }
    let bfq = times[3];
    for (s, t) in ["none", "mq-deadline", "kyber"].iter().zip(&times) {
        shown.check(
            format!(
                "BFQ's {bfq:.2} s is under half of {}'s {t:.2} s",
                in_prose(s)
            ),
            bfq < t / 2.0,
        );
    }
    Ok(shown)
}

fn shares(shown: &mut Shown, r: &seekwell_core::result::Record, rows: &[(u32, String, f64)]) {
    let all: f64 = rows.iter().map(|x| bytes(r, x.0)).sum();
    let weights: f64 = rows.iter().map(|x| x.2).sum();
    for (task, name, weight) in rows {
        let (share, want) = (bytes(r, *task) / all, weight / weights);
        shown.row(vec![
            name.clone(),
            format!("{weight}"),
            format!("{:.1}", mb_s(r, bytes(r, *task))),
            format!("{:.1}", share * 100.0),
            format!("{:.1}", want * 100.0),
        ]);
        let off = (share / want - 1.0) * 100.0;
        shown.check(
            format!("{name} is within 5 % of its weight ({} %)", signed(off, 1)),
            off.abs() <= 5.0,
        );
    }
}

fn bfq_weights(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "three sequential readers of 128 KiB at levels 0, 4 and 6, 60 s, low_latency off, disk \
         without command queueing",
        &["level", "weight", "MB/s", "share %", "by weight %"],
    );
    let stop = Instant::START + Nanos::from_secs(60);
    let levels = [0u8, 4, 6];
    let list = levels
        .iter()
        .enumerate()
        .map(|(i, l)| Process {
            ioprio: IoPrio::be(*l),
            stop,
            ..Process::reader(i as u32 + 1, i as u64 * 12_000_000)
        })
        .collect();
    let r = run(DISK, "bfq:low_latency=0", lab, list, &[])?;
    let rows: Vec<_> = levels
        .iter()
        .enumerate()
        .map(|(i, l)| {
            (
                i as u32 + 1,
                format!("level {l}"),
                f64::from(10 * (8 - u32::from(*l))),
            )
        })
        .collect();
    shares(&mut shown, &r, &rows);
    Ok(shown)
}

fn bfq_groups(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "two sequential readers of 128 KiB in cgroups of weight 300 and 100, 60 s, low_latency off, \
         disk without command queueing",
        &["group", "weight", "MB/s", "share %", "by weight %"],
    );
    let stop = Instant::START + Nanos::from_secs(60);
    let of = |task: u32, cg: u32| Process {
        cgroup: seekwell_core::CgroupId(cg),
        stop,
        ..Process::reader(task, u64::from(task) * 12_000_000)
    };
    let weights = [(1, 300), (2, 100)];
    let r = run(
        DISK,
        "bfq:low_latency=0",
        lab,
        vec![of(1, 1), of(2, 2)],
        &weights,
    )?;
    let rows = [
        (1, "group 1".to_owned(), 300.0),
        (2, "group 2".to_owned(), 100.0),
    ];
    shares(&mut shown, &r, &rows);
    Ok(shown)
}

fn adios_window(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "4 random reads outstanding beside 60 random writes of 4 KiB; 30 s on a disk without \
         command queueing (window 22 ms by default) and 3 s on a flash device (16 ms)",
        &["device", "scheduler", "mean read ms", "p99 read ms", "IOPS"],
    );
    let wide = "adios:global_latency_window=400000000";
    let sorted = "adios:global_latency_window=400000000,batch_order=1";
    let mut seen = Vec::new();
    for (name, on, list) in [
        (
            "disk",
            DISK,
            ["none", "mq-deadline", "adios", wide, sorted].as_slice(),
        ),
        (
            "flash",
            FLASH,
            ["none", "mq-deadline", "adios", wide].as_slice(),
        ),
    ] {
        for s in list {
            let seconds = if name == "flash" { 3 } else { 30 };
            let stop = Instant::START + Nanos::from_secs(seconds);
            let list = vec![
                Process {
                    stop,
                    ..random(1, 4)
                },
                Process {
                    stop,
                    ..Process::writer(2, SPAN, 60)
                },
            ];
            let r = run(on, s, lab, list, &[])?;
            let mean = r.read.latency.mean_ns() / 1e6;
            seen.push((name, *s, mean, r.iops()));
            shown.row(vec![
                name.to_owned(),
                (*s).to_owned(),
                format!("{mean:.2}"),
                format!("{:.2}", r.read.latency.percentile_ns(99.0) as f64 / 1e6),
                format!("{:.0}", r.iops()),
            ]);
        }
    }
    let of = |device: &str, s: &str| {
        let hit = seen.iter().find(|x| x.0 == device && x.1 == s);
        hit.map_or((f64::NAN, f64::NAN), |x| (x.2, x.3))
    };
    let (none, adios) = (of("disk", "none"), of("disk", "adios"));
    shown.check(
        format!(
            "on the disk reads take {:.0} ms under adios and {:.0} under `none`",
            adios.0, none.0
        ),
        adios.0 < none.0,
    );
    let (wide, sorted) = (of("disk", wide), of("disk", sorted));
    shown.check(
        format!(
            "batch_order=1 has an effect only if a page holds more than one request: with a window \
             of 400 ms {:.0} IOPS, by type {:.0}",
            sorted.1, wide.1
        ),
        sorted.1 != wide.1,
    );
    let (none, adios) = (of("flash", "none"), of("flash", "adios"));
    shown.check(
        format!(
            "on flash the window costs throughput: {:.0} IOPS against {:.0}",
            adios.1, none.1
        ),
        adios.1 <= none.1,
    );
    Ok(shown)
}

/// Shows the throughput that each scheduler costs on a fast device. The schedulers' CPU time is
/// another cost, which this demo does not model.
fn none_fast(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "two random readers with 4 outstanding each, on a device that serves 32 side by side in \
         0.4 ms, 5 s; at equal priority, and at levels 0 and 7 of the best-effort class. The model \
         charges no CPU time, so the CPU time that `none` saves is not shown",
        &[
            "priorities",
            "scheduler",
            "IOPS",
            "first's share %",
            "mean ms",
        ],
    );
    let schedulers = [
        "none",
        "mq-deadline",
        "kyber",
        "bfq",
        "bfq:slice_idle=0",
        "adios",
    ];
    let mut seen = Vec::new();
    for (name, levels) in [("equal", [4, 4]), ("0 and 7", [0, 7])] {
        for s in schedulers {
            let stop = Instant::START + Nanos::from_secs(5);
            let reader = |(task, level): (u32, u8)| Process {
                stop,
                ioprio: IoPrio::be(level),
                ..random(task, 4)
            };
            let list = [(1, levels[0]), (2, levels[1])].map(reader);
            let r = run(FLASH, s, lab, list.to_vec(), &[])?;
            let share = ios(&r, 1) / (ios(&r, 1) + ios(&r, 2)) * 100.0;
            seen.push((name, s, r.iops(), share));
            shown.row(vec![
                name.to_owned(),
                s.to_owned(),
                format!("{:.0}", r.iops()),
                format!("{share:.1}"),
                format!("{:.2}", r.read.latency.mean_ns() / 1e6),
            ]);
        }
    }
    let of = |name: &str, s: &str| {
        let hit = seen.iter().find(|x| x.0 == name && x.1 == s);
        hit.map_or((f64::NAN, f64::NAN), |x| (x.2, x.3))
    };
    let (none, bfq) = (of("0 and 7", "none"), of("0 and 7", "bfq"));
    shown.check(
        format!(
            "at unequal priorities BFQ excludes one reader while it serves the other: {:.0} IOPS, \
             at most two thirds of `none`'s {:.0}",
            bfq.0, none.0
        ),
        bfq.0 <= none.0 * 2.0 / 3.0,
    );
    shown.check(
        format!(
            "in return the first reader gets {:.0} % of them (over 75), instead of {:.0} % under \
             `none`",
            bfq.1, none.1
        ),
        bfq.1 > 75.0 && none.1 < 55.0,
    );
    let free = of("0 and 7", "bfq:slice_idle=0");
    shown.check(
        format!(
            "without idling (slice_idle=0) the loss is gone: {:.0} IOPS",
            free.0
        ),
        free.0 >= none.0 * 0.95,
    );
    let none = of("equal", "none");
    for s in ["mq-deadline", "kyber", "bfq", "adios"] {
        let v = of("equal", s).0;
        shown.check(
            format!("at equal priority {s} costs nothing: {v:.0} IOPS, within 2 % of `none`"),
            (v / none.0 - 1.0).abs() <= 0.02,
        );
    }
    Ok(shown)
}
