//! The cost of a simulated operation in script, executor and kernel model together.

use crate::scenario::{Scenario, named};
use rand::Rng;
use seekwell_core::{Nanos, OpenFlags};
use seekwell_sim::Setup;
use seekwell_sim::world::{Drive, SimMachine, WorldSetup, run_script};
use seekwell_workload::{Context, Fd, How, Machine, Outcome};

const TASKS: u64 = 4;

fn setup() -> WorldSetup {
    let setup = Setup {
        device: "constant:depth=32,service_us=100".to_owned(),
        scheduler: "deadline".to_owned(),
        ..Setup::default()
    };
    WorldSetup::new(setup).expect("a known scheduler")
}

/// Runs `ops` operations in four tasks. Each task runs `body` with a quarter of the operations.
fn tasks<F, Fut>(ops: u64, body: F) -> u64
where
    F: Fn(SimMachine, u64) -> Fut + Copy + Send + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    tasks_on(&setup(), ops, body)
}

fn tasks_on<F, Fut>(setup: &WorldSetup, ops: u64, body: F) -> u64
where
    F: Fn(SimMachine, u64) -> Fut + Copy + Send + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    let mut drive = Drive::open(&setup.setup).expect("a device");
    let ran = run_script(
        "bench",
        setup,
        &mut drive,
        async move |mut m: SimMachine| {
            let mut joins = Vec::new();
            for k in 0..TASKS {
                let script = move |m| body(m, ops / TASKS);
                let j = m.spawn(How::named(format!("w{k}")), script).await;
                joins.push(j.doing(|| "spawn")?);
            }
            for j in joins {
                m.join(j).await?;
            }
            Ok(())
        },
    );
    let ran = ran.expect("it runs");
    assert!(ran.stopped.is_none(), "{:?}", ran.stopped);
    ran.record.duration_ns ^ ran.record.operations.iter().map(|o| o.bytes).sum::<u64>()
}

/// Computes for 500 ns per operation, which needs only the kernel's clock and cores.
async fn compute(mut m: SimMachine, ops: u64) -> Outcome {
    for _ in 0..ops {
        let op = m.op_begin("step");
        m.compute(Nanos(500)).await.doing(|| "compute")?;
        m.op_end(op, 0);
    }
    Ok(())
}

/// Reads directly from the device.
async fn direct(mut m: SimMachine, ops: u64) -> Outcome {
    let fd = m.open_device(OpenFlags::DIRECT).await.doing(|| "open")?;
    for k in 0..ops {
        let op = m.op_begin("read");
        m.read(fd, k * 8192, 4096).await.doing(|| "read")?;
        m.op_end(op, 4096);
    }
    Ok(())
}

/// Number of pages in the file of each task of [`cached`].
const PAGES: u64 = 256;

/// Creates a file for the calling task, with all pages in the page cache.
async fn own_file(m: &mut SimMachine, pages: u64) -> Outcome<Fd> {
    let name = format!("file{}", m.rng().random::<u64>());
    let how = OpenFlags::CREATE | OpenFlags::EXCL;
    let fd = m.open(&name, how).await.doing(|| "open")?;
    for _ in 0..pages {
        m.append(fd, 4096).await.doing(|| "fill")?;
    }
    Ok(fd)
}

/// Alternates reads and writes of 4 KiB in the page cache, without I/O.
async fn cached(mut m: SimMachine, ops: u64) -> Outcome {
    let fd = own_file(&mut m, PAGES).await?;
    for k in 0..ops {
        let at = k * 7 % PAGES * 4096;
        if k % 2 == 0 {
            let op = m.op_begin("read");
            m.read(fd, at, 4096).await.doing(|| "read")?;
            m.op_end(op, 4096);
        } else {
            let op = m.op_begin("write");
            m.write(fd, at, 4096).await.doing(|| "write")?;
            m.op_end(op, 4096);
        }
    }
    Ok(())
}

/// Appends 4 KiB and syncs: data, journal, commit block and flush.
async fn fsync(mut m: SimMachine, ops: u64) -> Outcome {
    let fd = own_file(&mut m, 0).await?;
    for _ in 0..ops {
        let op = m.op_begin("append");
        m.append(fd, 4096).await.doing(|| "append")?;
        m.fsync(fd).await.doing(|| "fsync")?;
        m.op_end(op, 4096);
    }
    Ok(())
}

/// Number of 64 KiB files that each task of [`files`] keeps, together 64 MiB.
const KEPT: u64 = 1024;

/// Writes one file after another, removes the oldest, syncs every sixteenth, and reads an existing
/// one. The simulated machine must free all memory that it used for removed files.
async fn files(mut m: SimMachine, ops: u64) -> Outcome {
    let dir = format!("dir{}", m.rng().random::<u64>());
    m.mkdir(&dir).await.doing(|| "mkdir")?;
    for k in 0..ops {
        let op = m.op_begin("file");
        let name = format!("{dir}/{}", k % KEPT);
        if k >= KEPT {
            m.unlink(&name).await.doing(|| "unlink")?;
        }
        let how = OpenFlags::CREATE | OpenFlags::EXCL;
        let fd = m.open(&name, how).await.doing(|| "open")?;
        m.append(fd, 65_536).await.doing(|| "append")?;
        if k % 16 == 0 {
            m.fsync(fd).await.doing(|| "fsync")?;
        }
        m.close(fd).await.doing(|| "close")?;
        let any = m.rng().random_range(0..(k + 1).min(KEPT));
        let how = OpenFlags::RDONLY;
        let fd = m
            .open(&format!("{dir}/{any}"), how)
            .await
            .doing(|| "open")?;
        m.read(fd, 0, 65_536).await.doing(|| "read")?;
        m.close(fd).await.doing(|| "close")?;
        m.op_end(op, 65_536);
    }
    Ok(())
}

/// Writes this many files with a page cache of 128 MiB, which holds half of the kept files. Returns
/// the number of written files.
pub fn churn(ops: u64) -> u64 {
    let mut setup = setup();
    setup.config.cache_bytes = Some(128 << 20);
    std::hint::black_box(tasks_on(&setup, ops, files));
    ops
}

/// Returns all scenarios of this file.
pub fn all() -> Vec<Scenario> {
    vec![
        named(
            "world-step",
            "4 tasks of a simulated world, steps of 500 ns on 4 cores",
            2_000_000,
            |ops| tasks(ops, compute),
        ),
        named(
            "world-direct",
            "4 tasks of a simulated world, direct reads over deadline and a constant device",
            400_000,
            |ops| tasks(ops, direct),
        ),
        named(
            "world-cached",
            "4 tasks of a simulated world, alternating 4 KiB reads and writes in the page cache",
            2_000_000,
            |ops| tasks(ops, cached),
        ),
        named(
            "world-fsync",
            "4 tasks of a simulated world, 4 KiB appended and synced through file system and journal",
            100_000,
            |ops| tasks(ops, fsync),
        ),
    ]
}
