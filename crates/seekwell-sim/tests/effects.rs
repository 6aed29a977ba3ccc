//! Effects that were known before any fitting, in complete worlds; the tests print the numbers.

use seekwell_core::{Nanos, OpenFlags};
use seekwell_sim::Setup;
use seekwell_sim::compare::run_all;
use seekwell_sim::world::{Drive, Ran, SimMachine, WorldSetup, run_script, run_simulated};
use seekwell_workload::{Context, Machine, Outcome, Plan};
use std::future::Future;

const DISK: &str = "hdd:hitachi-7k200";
const SSD: &str = "ssd:x25m-g2-160";

fn world(device: &str, scheduler: &str, options: &str) -> WorldSetup {
    let setup = Setup {
        device: device.to_owned(),
        scheduler: scheduler.to_owned(),
        ..Setup::default()
    };
    let mut w = WorldSetup::new(setup).expect("a scheduler");
    w.apply(options).expect("good options");
    w
}

/// A workload ("NAME:param=value,...") in a world.
fn run(device: &str, scheduler: &str, options: &str, workload: &str) -> Ran {
    let plan = Plan::new(workload, &[]).expect("good parameters");
    let ran = run_simulated(&plan, &world(device, scheduler, options)).expect("it runs");
    assert_eq!(ran.stopped, None);
    ran
}

fn metric(r: &Ran) -> f64 {
    r.record.metric.as_ref().map_or(0.0, |m| m.value)
}

fn script<F, Fut>(w: &WorldSetup, f: F) -> Ran
where
    F: FnOnce(SimMachine) -> Fut,
    Fut: Future<Output = Outcome> + 'static,
{
    let mut drive = Drive::open(&w.setup).expect("a device");
    let ran = run_script("script", w, &mut drive, f).expect("it runs");
    assert_eq!(ran.stopped, None);
    ran
}

fn mean_ms(r: &Ran, kind: &str) -> f64 {
    let o = r.record.operation(kind);
    o.map_or(0.0, |o| o.latency.mean_ns() / 1e6)
}

#[test]
fn scheduler_has_no_effect_on_a_single_stream() {
    let eras = [
        &["noop", "deadline", "cfq"][..],
        &["none", "mq-deadline", "kyber", "bfq"][..],
    ];
    for device in [DISK, SSD] {
        for era in eras {
            let of = |i: usize| metric(&run(device, era[i], "", "fs-mark:files=40"));
            let all = run_all(era.len(), 2, of);
            println!("{device}, fs-mark with 1 thread, files/s: {era:?} {all:.2?}");
            for (name, v) in era.iter().zip(&all) {
                // BFQ idles for the writer while the writer waits for the journal thread: they are
                // two contexts, although they belong to one program.
                let least = if *name == "bfq" { 0.9 } else { 0.99 };
                assert!(
                    *v > 1.0 && *v >= least * all[0] && *v <= all[0] / 0.99,
                    "{device}, {name}: {all:?}"
                );
            }
        }
    }
}

/// Repeatedly appends 4 KiB and syncs.
async fn appends(mut m: SimMachine) -> Outcome {
    let f = m.open("log", OpenFlags::CREATE).await.doing(|| "open")?;
    for _ in 0..60 {
        m.append(f, 4096).await.doing(|| "append")?;
        let op = m.op_begin("fsync");
        m.fsync(f).await.doing(|| "fsync")?;
        m.op_end(op, 0);
        m.sleep(Nanos::from_us(700)).await.doing(|| "sleep")?;
    }
    Ok(())
}

/// Makes the same I/O by hand, without the page cache: a page of data, four pages of journal in the
/// middle of the device, a flush, the commit record, a flush.
async fn by_hand(mut m: SimMachine) -> Outcome {
    let f = m.open_device(OpenFlags::DIRECT).await.doing(|| "open")?;
    let middle = m.fstat(f).await.doing(|| "size")?.len / 2 / 4096 * 4096;
    for k in 0..60u64 {
        let op = m.op_begin("chain");
        let journal = middle + k * 5 * 4096;
        for (off, len, flush) in [
            ((1 << 30) + k * 4096, 4096, false),
            (journal, 4 * 4096, true),
            (journal + 4 * 4096, 4096, true),
        ] {
            m.write(f, off, len).await.doing(|| "write")?;
            if flush {
                m.fsync(f).await.doing(|| "flush")?;
            }
        }
        m.op_end(op, 0);
        m.sleep(Nanos::from_us(700)).await.doing(|| "sleep")?;
    }
    Ok(())
}

#[test]
fn fsync_costs_journal_and_flushes_on_each_device_class() {
    let devices = [DISK, "emmc:motog-sandisk8", SSD, "ssd:s3700-100"];
    let rows = run_all(devices.len(), 2, |i| {
        let of = |o: &str| mean_ms(&script(&world(devices[i], "noop", o), appends), "fsync");
        let hand = mean_ms(&script(&world(devices[i], "noop", ""), by_hand), "chain");
        (of("barriers=yes"), hand, of("barriers=no"))
    });
    println!(
        "fsync of 4 KiB appended, ms: device | measured | data, journal, flushes by hand | without flushes"
    );
    for (d, (whole, hand, without)) in devices.iter().zip(&rows) {
        println!("{d:22} | {whole:8.3} | {hand:8.3} | {without:8.3}");
        let ratio = whole / hand;
        assert!((0.6..1.6).contains(&ratio), "{d}: {whole:.3} for {hand:.3}");
        // A card without a volatile cache has nothing to flush.
        assert!(without <= whole, "{d}: {without:.3} of {whole:.3}");
    }
    let whole: Vec<f64> = rows.iter().map(|r| r.0).collect();
    assert!(whole[0] > 2.0 * whole[1] && whole[0] > 10.0 * whole[2] && whole[2] > 2.0 * whole[3]);
}

/// Writes a file, drops it from the cache, and reads it from start to end in steps of 4 KiB.
async fn cold_read(mut m: SimMachine) -> Outcome {
    let f = m.open("big", OpenFlags::CREATE).await.doing(|| "open")?;
    const MIB: u64 = 48;
    for k in 0..MIB {
        m.write(f, k << 20, 1 << 20).await.doing(|| "write")?;
    }
    m.syncfs().await.doing(|| "sync")?;
    m.drop_caches().await.doing(|| "drop")?;
    let (start, piece) = (m.now(), 4096u64);
    for k in 0..(MIB << 20) / piece {
        m.read(f, k * piece, piece as u32).await.doing(|| "read")?;
    }
    let s = m.now().since(start).as_secs_f64();
    m.metric("read", "MB/s", (MIB << 20) as f64 / 1e6 / s, true);
    Ok(())
}

/// Measures the rate of the device: 1 MiB at a time, two reads outstanding, without the page cache.
async fn raw_read(mut m: SimMachine) -> Outcome {
    use seekwell_workload::{AioOp, AioRequest};
    let fd = m.open_device(OpenFlags::DIRECT).await.doing(|| "open")?;
    let aio = m.aio(2).await.doing(|| "aio")?;
    let (start, mut done) = (m.now(), Vec::new());
    for k in 0..48u64 {
        if k >= 2 {
            m.aio_reap(aio, 1, &mut done).await.doing(|| "reap")?;
        }
        let r = AioRequest {
            fd,
            op: AioOp::Read,
            off: k << 20,
            len: 1 << 20,
            tag: k,
        };
        m.aio_submit(aio, &[r]).await.doing(|| "submit")?;
    }
    m.aio_reap(aio, 2, &mut done).await.doing(|| "reap")?;
    let s = m.now().since(start).as_secs_f64();
    m.metric("read", "MB/s", 48.0 * 1.048_576 / s, true);
    m.aio_close(aio).await.doing(|| "close")
}

#[test]
fn read_ahead_makes_a_sequential_reader_device_bound() {
    for (device, least) in [(DISK, 0.85), (SSD, 0.6)] {
        let of = |o: &str| metric(&script(&world(device, "noop", o), cold_read));
        let (with, without) = (of(""), of("without=readahead"));
        let raw = metric(&script(&world(device, "noop", ""), raw_read));
        println!("{device}: device {raw:.1}, with read-ahead {with:.1}, without {without:.1} MB/s");
        assert!(with >= least * raw, "{with} of {raw}");
        assert!(without < 0.8 * with, "{without} of {with}");
    }
}

#[test]
fn checkpoint_is_visible_in_the_per_second_series() {
    let pgbench = "pgbench:transactions=0,seconds=90s,clients=4,scale=8,checkpoint_timeout=30s,\
                   completion_target=0.2";
    let ran = run(DISK, "deadline", "", pgbench);
    let r = &ran.record;
    let at = |name: &str| {
        let all = r.marks.iter().filter(|m| m.name == name);
        all.map(|m| m.at_ns / 1_000_000_000).collect::<Vec<_>>()
    };
    let (begins, ends) = (at("checkpoint start"), at("checkpoint end"));
    assert!(!begins.is_empty() && !ends.is_empty(), "{:?}", r.marks);
    let clock = at("clock start")[0] + 1;
    let stop = at("clock stop").first().copied().unwrap_or(u64::MAX);
    let t = r.operation("transaction").expect("measured");
    let (mut inside, mut outside) = ((0, 0, 0), (0, 0, 0));
    for (s, sec) in t.seconds.iter().enumerate() {
        let s = s as u64;
        if s < clock || s >= stop {
            continue;
        }
        let busy = begins
            .iter()
            .zip(&ends)
            .any(|(b, e)| (*b..=*e).contains(&s));
        let sum = if busy { &mut inside } else { &mut outside };
        sum.0 += sec.latency_sum_ns;
        sum.1 += sec.ops;
        sum.2 += 1;
    }
    let ms = |s: (u64, u64, u64)| s.0 as f64 / s.1.max(1) as f64 / 1e6;
    let rate = |s: (u64, u64, u64)| s.1 as f64 / s.2.max(1) as f64;
    println!(
        "seconds with a checkpoint {}: {:.1} ms, {:.0}/s; without {}: {:.1} ms, {:.0}/s; \
         checkpoints at {begins:?} to {ends:?}",
        inside.2,
        ms(inside),
        rate(inside),
        outside.2,
        ms(outside),
        rate(outside)
    );
    assert!(inside.2 > 0 && outside.2 > 0);
    assert!(ms(inside) > 1.2 * ms(outside));
}

#[test]
fn pgbench_in_memory_matches_measured_transaction_rates() {
    // Transactions per second of PostgreSQL 15.20 and its pgbench on two cores of a machine of
    // 2026, with scale 8, 32 MB of buffers and no syncs. A model with 100 us per transaction or
    // SELECT and a thread per client gives 19,200 to 19,800 in all cases.
    let real = [
        ("clients=4,transactions=2000", 4_448.0),
        ("clients=8,transactions=1000", 4_797.0),
        ("clients=8,jobs=8,transactions=1000", 5_446.0),
        ("clients=4,mode=select,transactions=5000", 31_275.0),
        ("clients=4,jobs=4,mode=select,transactions=5000", 37_621.0),
    ];
    let ours = run_all(real.len(), 2, |i| {
        let pgbench = format!("pgbench:scale=8,shared_buffers=32m,{}", real[i].0);
        let options = "cores=2,memory=16G";
        metric(&run(
            "constant:depth=32,service_us=1",
            "none",
            options,
            &pgbench,
        ))
    });
    for ((what, real), ours) in real.into_iter().zip(ours) {
        println!("pgbench:{what}: {ours:.0}, the real one {real:.0}");
        assert!((0.85..1.15).contains(&(ours / real)), "{what}: {ours}");
    }
}

#[test]
fn more_clients_raise_the_rate_of_an_ssd_but_not_of_a_disk() {
    let select = |device: &str, clients: u32| {
        let pgbench =
            format!("pgbench:transactions=0,seconds=8s,mode=select,scale=40,clients={clients}");
        // A disk without command queueing, which serves one client as well as many.
        let mut w = world(device, "noop", "cache=64M");
        w.setup.depth = (device == DISK).then_some(1);
        let plan = Plan::new(&pgbench, &[]).expect("good parameters");
        metric(&run_simulated(&plan, &w).expect("it runs"))
    };
    let cells = [(DISK, 1), (DISK, 8), (SSD, 1), (SSD, 8)];
    let tps = run_all(cells.len(), 2, |i| select(cells[i].0, cells[i].1));
    println!(
        "select/s with 1 and 8 clients: disk {:.0?}, SSD {:.0?}",
        &tps[..2],
        &tps[2..]
    );
    assert!(tps[1] < 1.25 * tps[0] && tps[3] > 2.5 * tps[2]);
}
