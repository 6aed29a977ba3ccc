//! Demos of arrays, controllers and guests: whether a scheduler above or below them has an effect.

use super::{Demo, DemoError, Lab, Shown, bytes, ios, latency_ms, mb_s};
use seekwell_core::result::Record;
use seekwell_core::{BioSink, Flags, Instant, IoPrio, Nanos, Op, Sector};
use seekwell_sim::procs::{Pattern, Process, Processes};
use seekwell_sim::setup::Setup;

/// The demos of this file.
pub(super) const DEMOS: &[Demo] = &[
    Demo {
        name: "array-backlog",
        claim: "A scheduler above an array can reorder requests only while more are outstanding \
                than the array accepts.",
        runs: 12,
        each: 0,
        run: backlog,
    },
    Demo {
        name: "array-idling",
        claim: "Idling for one process leaves the other disks of an array idle: the gain of \
                slice_idle=0 under CFQ rises with the number of disks.",
        runs: 6,
        each: 0,
        run: idling,
    },
    Demo {
        name: "controller-read-ahead",
        claim: "Behind a controller with read-ahead, idling gains less than on a bare disk.",
        runs: 4,
        each: 0,
        run: read_ahead,
    },
    Demo {
        name: "controller-cache",
        claim: "While a battery-backed cache absorbs writes, the scheduler does not affect them. \
                When it is full, the cache has already sorted them, and little gain remains.",
        runs: 4,
        each: 0,
        run: cache,
    },
    Demo {
        name: "guest-priorities",
        claim: "Priorities in a guest work only while the backlog is in the guest: a deep ring \
                moves it to the host.",
        runs: 2,
        each: 0,
        run: priorities,
    },
    Demo {
        name: "aged-image",
        claim: "Sorting in a guest pays off on a plain volume, but not on an aged thin volume, \
                where only the host knows the disk's order.",
        runs: 12,
        each: 0,
        run: aged,
    },
    Demo {
        name: "idling-twice",
        claim: "The host sees a guest as one process, so its CFQ idles for the whole guest.",
        runs: 4,
        each: 0,
        run: idling_twice,
    },
    Demo {
        name: "guest-merging",
        claim: "A request through a ring costs the same at any length, so merging small writes \
                pays off even on flash.",
        runs: 2,
        each: 0,
        run: merging,
    },
    Demo {
        name: "flush-path",
        claim: "The flush path limits a program that waits for flushes, whatever the scheduler.",
        runs: 15,
        each: 0,
        run: flush_path,
    },
];

/// Returns a setup with a device and a scheduler (such as "cfq:slice_idle=0"), changed by `change`.
fn on(
    device: &str,
    scheduler: &str,
    lab: &Lab<'_>,
    change: impl FnOnce(&mut Setup),
    processes: impl FnOnce(u64) -> Vec<Process>,
) -> Result<Record, DemoError> {
    let (name, rest) = scheduler.split_once(':').unwrap_or((scheduler, ""));
    let pairs = rest.split(',').filter_map(|p| p.split_once('='));
    let mut setup = Setup {
        device: device.to_owned(),
        scheduler: name.to_owned(),
        tunables: pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        hz: 1000,
        seed: lab.seed,
        ..Setup::default()
    };
    change(&mut setup);
    let mut queue = setup.build()?;
    let mut record = setup.record("demo");
    let mut source = Processes::new(processes(queue.capacity().0), lab.seed);
    lab.drive(&mut queue, &mut source, &mut record)?;
    queue.fill(&mut record);
    Ok(record)
}

/// Returns a process that keeps `depth` random 4 KiB reads outstanding for `seconds` seconds.
fn random(task: u32, end: u64, depth: u32, seconds: u64) -> Process {
    Process {
        pattern: Pattern::Random(Sector(0), Sector(end)),
        sectors: 8,
        depth,
        stop: Instant::START + Nanos::from_secs(seconds),
        ..Process::reader(task, 0)
    }
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

fn backlog(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "random 4 KiB reads for 20 s on a RAID 0 of four 7200 rpm disks behind a controller that \
         takes 4 commands (no command queueing) or 31",
        &[
            "array takes",
            "outstanding",
            "noop IOPS",
            "deadline IOPS",
            "gain",
        ],
    );
    let mut gains = Vec::new();
    for (depth, ncq) in [(4, 1), (31, 31)] {
        for outstanding in [2, 16, 100] {
            let device = format!(
                "controller:level=raid0,members=4,of=(hdd:hitachi-7k500,depth={ncq}),depth={depth},\
                 disk_depth={ncq},write_policy=write-through,cache=0bytes"
            );
            let run = |s| {
                let some = |end| vec![random(1, end, outstanding, 20)];
                on(&device, s, lab, |_| {}, some)
            };
            let (noop, sorted) = (run("noop")?.iops(), run("deadline")?.iops());
            let gain = ratio(sorted, noop);
            gains.push((depth, outstanding, gain));
            shown.row(vec![
                depth.to_string(),
                outstanding.to_string(),
                format!("{noop:.0}"),
                format!("{sorted:.0}"),
                format!("{gain:.2}"),
            ]);
        }
    }
    for (depth, outstanding, gain) in gains {
        // The driver holds one request in addition to those inside the device, because it takes a
        // request before the device has room.
        let words = format!("{outstanding} outstanding, room for {depth}: gain {gain:.2}");
        match outstanding <= depth {
            true => shown.check(format!("{words} (1.00)"), (gain - 1.0).abs() < 0.005),
            false => shown.check(format!("{words} (1.1 or more)"), gain >= 1.1),
        }
    }
    Ok(shown)
}

fn idling(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "eight processes read one file each in 16 KiB steps with 2 ms think time for 10 s, on a \
         RAID 0 that looks like one disk of depth 31",
        &["disks", "slice_idle=8 IOPS", "slice_idle=0 IOPS", "gain"],
    );
    let mut gains = Vec::new();
    for disks in [1, 4, 8] {
        let device = format!(
            "controller:level=raid0,members={disks},of=hdd:hitachi-7k500,depth=31,\
             write_policy=write-through,cache=0bytes"
        );
        let readers = |end: u64| {
            let one = |i: u64| Process {
                sectors: 32,
                think: Nanos::from_ms(2),
                ..Process::reader(1 + i as u32, end / 8 * i / 8 * 8)
            };
            (0..8).map(one).collect()
        };
        let run = |s: &str| on(&device, s, lab, |_| {}, readers);
        let (idle, busy) = (
            run("cfq")?.iops(),
            run("cfq:slice_idle=0,group_idle=0")?.iops(),
        );
        let gain = ratio(busy, idle);
        gains.push(gain);
        shown.row(vec![
            disks.to_string(),
            format!("{idle:.0}"),
            format!("{busy:.0}"),
            format!("{gain:.2}"),
        ]);
    }
    let words = format!(
        "slice_idle=0 gains {:.2}, {:.2}, {:.2} on 1, 4, 8 disks (rising, and 2 or more on 8)",
        gains[0], gains[1], gains[2]
    );
    let rising = gains[0] < gains[1] && gains[1] < gains[2] && gains[2] >= 2.0;
    shown.check(words, rising);
    Ok(shown)
}

fn read_ahead(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "four processes read sequentially in 16 KiB steps, far apart, with 0.2 ms think time for \
         10 s, on one disk behind a controller",
        &[
            "controller reads ahead",
            "deadline MB/s",
            "cfq MB/s",
            "gain",
        ],
    );
    let mut gains = Vec::new();
    for policy in ["none", "adaptive"] {
        let device = format!(
            "controller:level=raid0,members=1,of=(hdd:hitachi-7k500,depth=1),depth=1,disk_depth=1,\
             read_policy={policy},read_ahead=16"
        );
        let readers = |end: u64| {
            let one = |i: u64| Process {
                sectors: 32,
                think: Nanos::from_us(200),
                ..Process::reader(1 + i as u32, end / 4 * i / 8 * 8)
            };
            (0..4).map(one).collect()
        };
        let run = |s| on(&device, s, lab, |_| {}, readers);
        let (d, c) = (run("deadline")?, run("cfq")?);
        let (d, c) = (mb_s(&d, d.read.bytes as f64), mb_s(&c, c.read.bytes as f64));
        gains.push(ratio(c, d));
        shown.row(vec![
            policy.to_owned(),
            format!("{d:.1}"),
            format!("{c:.1}"),
            format!("{:.2}", ratio(c, d)),
        ]);
    }
    let words = format!(
        "idling gains {:.2} without read-ahead and {:.2} with it (less)",
        gains[0], gains[1]
    );
    shown.check(words, gains[1] < gains[0]);
    Ok(shown)
}

fn cache(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "100 random 4 KiB writes outstanding on a RAID 0 of two disks, 8 MB of cache with a \
         battery, depth 16: a burst that fits, and one of four times the cache",
        &["writes", "noop ms", "deadline ms", "gain"],
    );
    let device = "controller:level=raid0,members=2,of=hdd:hitachi-7k500,depth=16,cache=8MiB,\
                  read_share=0,disk_depth=1";
    let mut gains = Vec::new();
    for writes in [1_000, 6_000] {
        let writer = |end: u64| {
            vec![Process {
                limit: writes,
                stop: Instant::FAR,
                ..Process::writer(1, end, 100)
            }]
        };
        let run = |s| on(device, s, lab, |_| {}, writer);
        let (n, d) = (run("noop")?, run("deadline")?);
        let (n, d) = (n.duration_ns as f64 / 1e6, d.duration_ns as f64 / 1e6);
        gains.push(ratio(n, d));
        shown.row(vec![
            writes.to_string(),
            format!("{n:.0}"),
            format!("{d:.0}"),
            format!("{:.2}", ratio(n, d)),
        ]);
    }
    let words = format!(
        "a burst that fits into the cache: {:.2} (1.00 within 2 %)",
        gains[0]
    );
    shown.check(words, (gains[0] - 1.0).abs() < 0.02);
    let words = format!(
        "a longer burst: {:.2}; the cache itself sorts, so there is little left to gain (below \
         1.15)",
        gains[1]
    );
    shown.check(words, gains[1] < 1.15);
    Ok(shown)
}

fn priorities(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "two processes in a guest keep 16 random reads outstanding each for 20 s, ioprio 0 and 7, \
         guest cfq over host deadline, ring of 2 or 128",
        &["ring", "prio 0 IOPS", "prio 7 IOPS", "ratio"],
    );
    let mut ratios = Vec::new();
    for depth in [2, 128] {
        let device = format!("virtual:vm-virtio-hdd,depth={depth}");
        let two = |end| {
            let one = |task, level| Process {
                ioprio: IoPrio::be(level),
                ..random(task, end, 16, 20)
            };
            vec![one(1, 0), one(2, 7)]
        };
        let r = on(&device, "cfq:slice_idle=0", lab, |_| {}, two)?;
        let (a, b) = (r.rate(ios(&r, 1)), r.rate(ios(&r, 2)));
        ratios.push(ratio(a, b));
        shown.row(vec![
            depth.to_string(),
            format!("{a:.0}"),
            format!("{b:.0}"),
            format!("{:.2}", ratio(a, b)),
        ]);
    }
    let words = format!(
        "a ring of 2 keeps the ratio at {:.2} (2 or more), one of 128 leaves {:.2} (below 1.2)",
        ratios[0], ratios[1]
    );
    shown.check(words, ratios[0] >= 2.0 && ratios[1] < 1.2);
    Ok(shown)
}

fn aged(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "64 random reads outstanding in a guest for 20 s on a thin volume: a ring of 1 over a \
         host that does not sort, and a deep ring over a host that sorts",
        &[
            "aged",
            "guest noop",
            "guest deadline",
            "gain",
            "host deadline, ring 64",
        ],
    );
    let mut gains = Vec::new();
    for aged in ["0", "0.4", "0.8", "1"] {
        let device = |host: &str, depth: u32| {
            format!(
                "virtual:over=(hdd:hitachi-7k500,depth=1),host_scheduler={host},format=thin,\
                 depth={depth},aged={aged}"
            )
        };
        let some = |end| vec![random(1, end, 64, 20)];
        let run = |s, host, depth| on(&device(host, depth), s, lab, |_| {}, some);
        let (n, d) = (
            run("noop", "noop", 1)?.iops(),
            run("deadline", "noop", 1)?.iops(),
        );
        let host = run("noop", "deadline", 64)?.iops();
        gains.push((ratio(d, n), ratio(host, n)));
        shown.row(vec![
            aged.to_owned(),
            format!("{n:.0}"),
            format!("{d:.0}"),
            format!("{:.2}", ratio(d, n)),
            format!("{host:.0}"),
        ]);
    }
    let words = format!(
        "the guest's sorting gains {:.2} on a plain volume (1.3 or more), {:.2} on a fully aged \
         volume (1.00 within 3 %)",
        gains[0].0, gains[3].0
    );
    shown.check(words, gains[0].0 >= 1.3 && (gains[3].0 - 1.0).abs() < 0.03);
    let words = format!(
        "the host's sorting gains {:.2} even on the aged volume (1.3 or more)",
        gains[3].1
    );
    shown.check(words, gains[3].1 >= 1.3);
    Ok(shown)
}

fn idling_twice(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "in a guest, two processes read 16 KiB sequentially from distant areas, with 0.2 ms think \
         time, for 10 s; on its host, a neighbour reads at random, one request at a time",
        &["guest", "host", "guest MB/s", "mean ms"],
    );
    let mut rate = Vec::new();
    for host in ["deadline", "cfq"] {
        for guest in ["noop", "cfq"] {
            let device = format!(
                "virtual:over=(hdd:hitachi-7k500,depth=1),host_scheduler={host},\
                 neighbours=random-reader"
            );
            let two = |end: u64| {
                let one = |task, at| Process {
                    sectors: 32,
                    think: Nanos::from_us(200),
                    ..Process::reader(task, at)
                };
                vec![one(1, 0), one(2, end / 4 / 8 * 8)]
            };
            let r = on(&device, guest, lab, |_| {}, two)?;
            let v = mb_s(&r, r.read.bytes as f64);
            rate.push(v);
            shown.row(vec![
                guest.to_owned(),
                host.to_owned(),
                format!("{v:.1}"),
                format!("{:.2}", latency_ms(&r, 1)),
            ]);
        }
    }
    // The guest also idles, so the host sees one sequential stream at a time and can idle for it.
    let words = format!(
        "if the host idles, additional idling in the guest gives {:.1} instead of {:.1} MB/s, \
         because the host cannot distinguish the guest's streams (1.5 times or more)",
        rate[3], rate[2]
    );
    shown.check(words, rate[3] >= 1.5 * rate[2]);
    let words = format!(
        "if the host does not idle, idling in the guest gives {:.1} instead of {:.1} MB/s, because \
         the other process gets the disk (below 1.5 times)",
        rate[1], rate[0]
    );
    shown.check(words, rate[1] < 1.5 * rate[0]);
    Ok(shown)
}

fn merging(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "4000 sequential 4 KiB writes in a guest, 64 outstanding, on a data-centre NVMe behind one \
         ring, noop, nomerges 0 and 2",
        &["nomerges", "MB/s", "requests"],
    );
    let mut rate = Vec::new();
    for nomerges in [0, 2] {
        let writer = |_| {
            vec![Process {
                op: Op::Write,
                sectors: 8,
                depth: 64,
                limit: 4_000,
                ..Process::reader(1, 0)
            }]
        };
        let device = "virtual:vm-virtio-nvme,queues=1,depth=8";
        let r = on(device, "noop", lab, |s| s.nomerges = nomerges, writer)?;
        let v = mb_s(&r, bytes(&r, 1));
        rate.push(v);
        shown.row(vec![
            nomerges.to_string(),
            format!("{v:.0}"),
            r.requests.to_string(),
        ]);
    }
    let words = format!(
        "merging gives {:.1} times (1.5 or more)",
        ratio(rate[0], rate[1])
    );
    shown.check(words, rate[0] >= 1.5 * rate[1]);
    Ok(shown)
}

fn flush_path(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "one process repeatedly writes 8 KiB and flushes it to the medium, for 10 s",
        &["device", "noop commits/s", "deadline", "cfq"],
    );
    let mut all = Vec::new();
    for device in [
        "hdd:hitachi-7k500",
        "controller:hwraid5-5-wt",
        "controller:hwraid5-5-bbu",
        "virtual:vm-virtio-hdd",
        "virtual:vm-virtio-hdd,cache=unsafe",
    ] {
        let commits = |_| {
            vec![Process {
                op: Op::Write,
                flags: Flags::SYNC | Flags::PREFLUSH | Flags::FUA,
                sectors: 16,
                ..Process::reader(1, 40_960)
            }]
        };
        let mut row = Vec::new();
        for s in ["noop", "deadline", "cfq"] {
            row.push(on(device, s, lab, |_| {}, commits)?.iops());
        }
        let mut cells = vec![device.to_owned()];
        cells.extend(row.iter().map(|v| format!("{v:.0}")));
        shown.row(cells);
        let (lo, hi) = (row[1].min(row[0]), row[1].max(row[0]));
        let words = format!("{device}: noop and deadline within 2 % ({lo:.0} and {hi:.0})");
        shown.check(words, hi <= 1.02 * lo);
        all.push(row[0]);
    }
    let words = format!(
        "the path decides: {:.0} through a cache with a battery, {:.0} without (10 times or more)",
        all[2], all[1]
    );
    shown.check(words, all[2] >= 10.0 * all[1]);
    Ok(shown)
}
