//! Demos of the whole machine: page cache, file system, journal and flusher above the queue.
//!
//! Each demo shows an effect of published comparisons, then repeats the run without the cause of
//! the effect. The effect must then disappear. The demos are small, so they claim only the sign of
//! the effect and not its size.

use super::{Demo, DemoError, Lab, Shown, scheduler_spec};
use rand::Rng;
use seekwell_core::numbers::signed;
use seekwell_core::{Nanos, OpenFlags};
use seekwell_sim::setup::Setup;
use seekwell_sim::world::{Beside, Drive, Ran, SimMachine, WorldSetup, run_beside, script_beside};
use seekwell_workload::{Context, How, Machine, Outcome, Plan};
use std::future::Future;
use std::ops::{Deref, DerefMut};

/// The demos of this file.
pub(super) const DEMOS: &[Demo] = &[
    Demo {
        name: "sorted-writeback",
        claim: "On a disk, a sorted queue writes scattered dirty files back faster than a FIFO.",
        runs: 6,
        each: 0,
        run: sorted_writeback,
    },
    Demo {
        name: "left-over-writeback",
        claim: "CFQ delays the writeback of an earlier phase until a timed reader has ended.",
        runs: 6,
        each: 2,
        run: left_over,
    },
    Demo {
        name: "wal-overtakes-writeback",
        claim: "On a fast SSD, CFQ lets commits and reads overtake steady writeback.",
        runs: 6,
        each: 2,
        run: wal_overtakes,
    },
    Demo {
        name: "scan-and-intruder",
        claim: "Idling keeps a table scan sequential while a second program reads occasionally.",
        runs: 8,
        each: 0,
        run: scan_and_intruder,
    },
    Demo {
        name: "raised-at-start",
        claim: "BFQ favours the first seconds of a phase, and idles at each hand-over to the \
                journal.",
        runs: 3,
        each: 0,
        run: raised_at_start,
    },
];

/// A simulated machine, and the demo to which its runs report progress.
pub(super) struct Stage<'s, 'p> {
    world: WorldSetup,
    lab: &'s Lab<'p>,
}

impl Deref for Stage<'_, '_> {
    type Target = WorldSetup;
    fn deref(&self) -> &WorldSetup {
        &self.world
    }
}

impl DerefMut for Stage<'_, '_> {
    fn deref_mut(&mut self) -> &mut WorldSetup {
        &mut self.world
    }
}

/// Returns a machine with a device and a scheduler, such as "cfq:slice_idle=0".
pub(super) fn world<'s, 'p>(
    device: &str,
    scheduler: &str,
    options: &str,
    lab: &'s Lab<'p>,
) -> Result<Stage<'s, 'p>, DemoError> {
    let (name, tunables) = scheduler_spec(scheduler);
    let mut w = WorldSetup::new(Setup {
        device: device.to_owned(),
        scheduler: name,
        tunables,
        seed: lab.seed,
        ..Setup::default()
    })?;
    w.apply(options)
        .map_err(|e| DemoError::Text(e.to_string()))?;
    Ok(Stage { world: w, lab })
}

pub(super) fn play<F, Fut>(w: &Stage<'_, '_>, script: F) -> Result<Ran, DemoError>
where
    F: FnOnce(SimMachine) -> Fut,
    Fut: Future<Output = Outcome> + 'static,
{
    let mut going = |_, _| w.lab.going();
    let beside = Beside {
        progress: Some(&mut going),
        ..Beside::default()
    };
    let mut drive = Drive::open(&w.setup)?;
    ended(
        w,
        script_beside("demo", w, &mut drive, beside, None, script)?,
    )
}

pub(super) fn workload(w: &Stage<'_, '_>, text: &str) -> Result<Ran, DemoError> {
    let plan = Plan::new(text, &[]).map_err(|e| DemoError::Text(e.to_string()))?;
    let mut going = |_, _| w.lab.going();
    let beside = Beside {
        progress: Some(&mut going),
        ..Beside::default()
    };
    ended(
        w,
        run_beside(&plan, w, &mut Drive::open(&w.setup)?, beside)?,
    )
}

fn ended(w: &Stage<'_, '_>, ran: Ran) -> Result<Ran, DemoError> {
    w.lab.count(&ran.record);
    match ran.stopped {
        None => Ok(ran),
        Some(why) => Err(DemoError::Text(why)),
    }
}

pub(super) fn metric(r: &Ran) -> f64 {
    r.record.metric.as_ref().map_or(0.0, |m| m.value)
}
pub(super) fn more(r: &Ran, name: &str) -> f64 {
    let m = r.record.more_metrics.iter().find(|m| m.name == name);
    m.map_or(0.0, |m| m.value)
}

pub(super) const SSD: &str = "ssd:x25m-g2-160";
const DISK: &str = "hdd:hitachi-7k200";
const CREATE: OpenFlags = OpenFlags::CREATE;

/// Writes a file in pieces of 64 KiB.
pub(super) async fn put(m: &mut SimMachine, name: &str, bytes: u64) -> Outcome {
    let f = m.open(name, CREATE).await.doing(|| "open")?;
    let mut off = 0;
    while off < bytes {
        let n = (bytes - off).min(65_536) as u32;
        m.write(f, off, n).await.doing(|| "write")?;
        off += u64::from(n);
    }
    m.close(f).await.doing(|| "close")
}

/// Creates files one after the other, overwrites some in the given order, and times the sync.
async fn dirty_and_sync(mut m: SimMachine, shuffled: bool) -> Outcome {
    const FILES: usize = 3000;
    for k in 0..FILES {
        put(&mut m, &format!("f{k}"), 16 << 10).await?;
    }
    m.syncfs().await.doing(|| "sync")?;
    let mut order: Vec<usize> = (0..FILES).collect();
    if shuffled {
        for i in (1..FILES).rev() {
            let j = m.rng().random_range(0..=i);
            order.swap(i, j);
        }
    }
    // Neighbouring files would be merged into one write, so only every fourth file is overwritten.
    let start = m.now();
    for k in order.into_iter().filter(|k| k % 4 == 0) {
        put(&mut m, &format!("f{k}"), 16 << 10).await?;
    }
    m.syncfs().await.doing(|| "sync")?;
    let s = m.now().since(start).as_secs_f64();
    m.metric("written back", "s", s, false);
    Ok(())
}

fn sorted_writeback(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "disk without command queueing and write cache; 750 of 3000 files of 16 KiB are \
         overwritten, in random order and in the order of their position on the disk, and then \
         synced",
        &["scheduler", "random order, s", "in order, s"],
    );
    let mut times = Vec::new();
    for s in ["noop-3.4", "cfq-3.4", "deadline-3.4"] {
        let mut w = world("hdd:hitachi-7k200,write_cache=no", s, "", lab)?;
        w.setup.depth = Some(1);
        let random = metric(&play(&w, |m| dirty_and_sync(m, true))?);
        let ordered = metric(&play(&w, |m| dirty_and_sync(m, false))?);
        times.push((random, ordered));
        shown.row(vec![
            s.to_owned(),
            format!("{random:.2}"),
            format!("{ordered:.2}"),
        ]);
    }
    let gain = times[0].0 / times[2].0 - 1.0;
    shown.check(
        format!(
            "deadline is {:.0} % faster than noop, at least 10 %",
            gain * 100.0
        ),
        gain >= 0.1,
    );
    let gain = times[0].0 / times[1].0 - 1.0;
    shown.check(
        format!(
            "cfq is {:.0} % faster than noop, at least 10 %",
            gain * 100.0
        ),
        gain >= 0.1,
    );
    let gain = times[0].1 / times[2].1 - 1.0;
    shown.check(
        format!(
            "with ordered writes, noop is {:.1} % behind (within 3 %)",
            gain * 100.0
        ),
        gain.abs() <= 0.03,
    );
    Ok(shown)
}

/// Creates dirty pages, then measures the read of a file that is not cached.
async fn timed_read(mut m: SimMachine, sync: bool) -> Outcome {
    const MIB: u64 = 64;
    put(&mut m, "cold", MIB << 20).await?;
    m.syncfs().await.doing(|| "sync")?;
    m.drop_caches().await.doing(|| "drop")?;
    for k in 0..6800 {
        put(&mut m, &format!("n{k}"), 64 << 10).await?;
    }
    if sync {
        m.syncfs().await.doing(|| "sync")?;
    }
    let f = m.open("cold", OpenFlags::RDONLY).await.doing(|| "open")?;
    let start = m.now();
    for k in 0..MIB * 16 {
        m.read(f, k << 16, 65_536).await.doing(|| "read")?;
    }
    let s = m.now().since(start).as_secs_f64();
    m.metric("read", "MB/s", (MIB << 20) as f64 / 1e6 / s, true);
    Ok(())
}

fn left_over(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "laptop disk, 4 GiB of memory; 425 MiB of new files are written, then 64 MiB of an old \
         file read at once, and the same with a sync between",
        &["scheduler", "read MB/s", "after a sync, MB/s"],
    );
    let mut rates = Vec::new();
    for s in lab.schedulers(&["noop", "deadline", "cfq"]) {
        let w = world(DISK, &s, "memory=4G", lab)?;
        let at_once = metric(&play(&w, |m| timed_read(m, false))?);
        let synced = metric(&play(&w, |m| timed_read(m, true))?);
        rates.push((at_once, synced));
        shown.row(vec![
            s.to_owned(),
            format!("{at_once:.1}"),
            format!("{synced:.1}"),
        ]);
    }
    let (noop, deadline, cfq) = (rates[0], rates[1], rates[2]);
    shown.check(
        format!(
            "cfq reads {:.2} times as fast as noop and {:.2} times as deadline, at least 1.05",
            cfq.0 / noop.0,
            cfq.0 / deadline.0
        ),
        cfq.0 >= 1.05 * noop.0 && cfq.0 >= 1.05 * deadline.0,
    );
    shown.check(
        format!(
            "after a sync, {:.2} and {:.2} times as fast, within 3 %",
            cfq.1 / noop.1,
            cfq.1 / deadline.1
        ),
        [noop.1, deadline.1]
            .iter()
            .all(|n| (cfq.1 / n - 1.0).abs() <= 0.03),
    );
    Ok(shown)
}

fn wal_overtakes(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "DC SSD with power-loss protection, 8 cores; pgbench for 10 s, 2 GB of tables, of which \
         0.8 GB are in memory, no whole pages in the log; 16 clients, and one",
        &["scheduler", "16 clients, tps", "mean ms", "one client, tps"],
    );
    let mut tps = Vec::new();
    for s in lab.schedulers(&["noop", "deadline", "cfq"]) {
        let w = world("ssd:s3700-100", &s, "cores=8,memory=1750M", lab)?;
        // The published comparison had 16 GB of data and 8 GB of memory; this demo uses an eighth
        // of both. Full-page writes to the log (41 MB/s) would leave the drive no idle time for
        // writeback, and cfq would then gain at most 2 %.
        let pgbench = |clients: u32| {
            format!(
                "pgbench:transactions=0,seconds=10s,scale=135,clients={clients},shared_buffers=128m,\
                 wal_buffers=16m,segments=8,full_page_writes=no"
            )
        };
        let many = workload(&w, &pgbench(16))?;
        let one = metric(&workload(&w, &pgbench(1))?);
        tps.push((metric(&many), one));
        shown.row(vec![
            s.to_owned(),
            format!("{:.0}", metric(&many)),
            format!("{:.2}", more(&many, "mean latency")),
            format!("{one:.0}"),
        ]);
    }
    let (noop, deadline, cfq) = (tps[0], tps[1], tps[2]);
    shown.check(
        format!(
            "cfq is ahead of noop by {} % and of deadline by {} %",
            signed((cfq.0 / noop.0 - 1.0) * 100.0, 1),
            signed((cfq.0 / deadline.0 - 1.0) * 100.0, 1)
        ),
        cfq.0 > 1.01 * noop.0 && cfq.0 > 1.01 * deadline.0,
    );
    shown.check(
        format!(
            "with one client, there is nothing to overtake: {} and {} %, within 1 %",
            signed((cfq.1 / noop.1 - 1.0) * 100.0, 1),
            signed((cfq.1 / deadline.1 - 1.0) * 100.0, 1)
        ),
        [noop.1, deadline.1]
            .iter()
            .all(|n| (cfq.1 / n - 1.0).abs() <= 0.01),
    );
    Ok(shown)
}

/// Runs a scan of a fragmented table, and a program that reads 16 KiB elsewhere and then waits.
async fn scan(mut m: SimMachine, span: Nanos) -> Outcome {
    let end = m.now() + span;
    let intruder = async move |mut m: SimMachine| -> Outcome {
        let d = m.open_device(OpenFlags::RDONLY | OpenFlags::DIRECT).await;
        let d = d.doing(|| "open")?;
        let pages = m.fstat(d).await.doing(|| "size")?.len / 16_384;
        while m.now() < end {
            let at = m.rng().random_range(0..pages) * 16_384;
            m.read(d, at, 16_384).await.doing(|| "read")?;
            m.sleep(Nanos::from_ms(30)).await.doing(|| "sleep")?;
        }
        Ok(())
    };
    let j = m.spawn(How::named("intruder"), intruder).await;
    let j = j.doing(|| "spawn")?;
    let d = m.open_device(OpenFlags::RDONLY | OpenFlags::DIRECT).await;
    let d = d.doing(|| "open")?;
    let (start, mut bytes) = (m.now(), 0u64);
    // Pieces of 1 MiB, read in steps of 40 KiB. The program processes a step before the next read.
    'table: for piece in 0u64.. {
        let at = (piece * 7919 % 13_000) << 20;
        for k in 0..26 {
            if m.now() >= end {
                break 'table;
            }
            m.read(d, at + k * 40_960, 40_960).await.doing(|| "read")?;
            bytes += 40_960;
            m.compute(Nanos::from_us(150)).await.doing(|| "compute")?;
        }
    }
    let s = m.now().since(start).as_secs_f64();
    m.metric("scan", "MB/s", bytes as f64 / 1e6 / s, true);
    m.join(j).await
}

fn scan_and_intruder(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "SATA disk of 2006, kernel 2.6.24, no command queueing; a scan in pieces of 1 MiB next to \
         a program that reads 16 KiB at random with 30 ms think time, 20 s; then with idling off",
        &["scheduler", "scan MB/s", "idling off, MB/s"],
    );
    let cells = [
        ("noop-2.6.24", "noop-2.6.24"),
        ("deadline-2.6.24", "deadline-2.6.24"),
        ("anticipatory", "anticipatory:antic_expire=0"),
        ("cfq-2.6.25", "cfq-2.6.25:slice_idle=0"),
    ];
    let mut rates = Vec::new();
    for (on, off) in cells {
        let mut pair = [0.0; 2];
        for (to, s) in pair.iter_mut().zip([on, off]) {
            let mut w = world("hdd:sata320-2006", s, "", lab)?;
            w.setup.depth = Some(1);
            *to = metric(&play(&w, |m| scan(m, Nanos::from_secs(20)))?);
        }
        rates.push(pair);
        shown.row(vec![
            on.to_owned(),
            format!("{:.1}", pair[0]),
            format!("{:.1}", pair[1]),
        ]);
    }
    let (noop, antic, cfq) = (rates[0], rates[2], rates[3]);
    shown.check(
        format!(
            "anticipatory scans {:.2} and cfq {:.2} times as fast as noop, at least 1.2",
            antic[0] / noop[0],
            cfq[0] / noop[0]
        ),
        antic[0] >= 1.2 * noop[0] && cfq[0] >= 1.2 * noop[0],
    );
    shown.check(
        format!(
            "without idling, {:.2} and {:.2} times as fast, within 10 %",
            antic[1] / noop[1],
            cfq[1] / noop[1]
        ),
        [antic[1], cfq[1]]
            .iter()
            .all(|r| (r / noop[1] - 1.0).abs() <= 0.1),
    );
    Ok(shown)
}

fn raised_at_start(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "a phone's eMMC, kernel 3.4, HZ 100; SQLite inserts, updates, deletes, 300 of each after \
         a pause of 3 s, journal kept (Android)",
        &[
            "scheduler",
            "insert/s",
            "update/s",
            "delete/s",
            "first 2 s of a phase, /s",
        ],
    );
    let mut seconds = Vec::new();
    for s in ["noop-3.4", "bfq-sq", "bfq-sq:low_latency=0"] {
        let mut w = world("emmc:motog-sandisk8", s, "memory=1G", lab)?;
        w.setup.hz = 100;
        let r = workload(&w, "sqlite:profile=android,pause=3s")?;
        let rates = [metric(&r), more(&r, "update"), more(&r, "delete")];
        // Number of transactions in the first two whole seconds of a phase.
        let first = |kind: &str| {
            let phase = r.record.marks.iter().find(|m| m.name == kind);
            let from = phase.map_or(0, |m| m.at_ns.div_ceil(1_000_000_000)) as usize;
            let all = r.record.operation(kind).map(|o| o.seconds.as_slice());
            let two = all.unwrap_or_default().iter().skip(from).take(2);
            two.map(|s| s.ops).sum::<u64>() as f64 / 2.0
        };
        let early = ["insert", "update", "delete"]
            .map(first)
            .iter()
            .sum::<f64>()
            / 3.0;
        seconds.push(rates.iter().map(|v| 300.0 / v.max(1e-9)).sum::<f64>());
        let mut cells = vec![s.to_owned()];
        cells.extend(rates.iter().map(|v| format!("{v:.1}")));
        cells.push(format!("{early:.1}"));
        shown.row(cells);
    }
    let lost = |s: f64| (1.0 - seconds[0] / s) * 100.0;
    shown.check(
        format!(
            "bfq takes {:.1} s for all 900, noop {:.1} s: {:.1} % of the rate lost, at least 3 %",
            seconds[1],
            seconds[0],
            lost(seconds[1])
        ),
        lost(seconds[1]) >= 3.0,
    );
    shown.check(
        format!(
            "with low_latency off {:.1} % are lost, within 1 %",
            lost(seconds[2])
        ),
        lost(seconds[2]).abs() <= 1.0,
    );
    Ok(shown)
}
