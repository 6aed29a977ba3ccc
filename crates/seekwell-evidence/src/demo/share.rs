//! Demo of readers and writers that share an SSD, after a published comparison (blogbench, 2012).
//!
//! Twelve programs read files at random and use the CPU while the files are cached. Four programs
//! write new files, which are then read as well. The files soon outgrow the page cache, so that
//! reads begin to miss. Under noop, such a read waits behind the written pages. CFQ sends no
//! written pages while a read is pending. This slows the writers, so the files grow more slowly and
//! fewer reads miss.

use super::worlds::{SSD, play, put, world};
use super::{Demo, DemoError, Lab, Shown};
use rand::Rng;
use seekwell_core::{Nanos, OpenFlags};
use seekwell_sim::world::{Ran, SimMachine};
use seekwell_workload::{Context, How, Machine, Outcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The demo of this file.
pub(super) const DEMOS: &[Demo] = &[Demo {
    name: "async-share",
    claim: "On an SSD, CFQ's preference for readers starves programs that write new files.",
    runs: 6,
    each: 0,
    run: async_share,
}];

const FILE: u64 = 64 << 10;
/// Number of files at the start (100 MiB).
const OLD: u64 = 1600;
const SPAN: Nanos = Nanos::from_secs(6);
/// CPU time that a program uses between two files.
const THINK: Nanos = Nanos::from_us(50);

/// Runs twelve programs that read 16 KiB of a random file, and four that write new files.
async fn readers_and_creators(mut m: SimMachine) -> Outcome {
    for k in 0..OLD {
        put(&mut m, &format!("f{k}"), FILE).await?;
    }
    m.syncfs().await.doing(|| "sync")?;
    let end = m.now() + SPAN;
    // Number of completely written files, and of files that were created.
    let whole = Arc::new(AtomicU64::new(OLD));
    let named = Arc::new(AtomicU64::new(OLD));
    let mut joins = Vec::new();
    for r in 0..12 {
        let whole = whole.clone();
        let reader = async move |mut m: SimMachine| -> Outcome {
            while m.now() < end {
                let n = whole.load(Ordering::Relaxed);
                let k = m.rng().random_range(0..n);
                // Files are written concurrently, so a file can be complete before one with a
                // smaller number exists.
                let Ok(f) = m.open(&format!("f{k}"), OpenFlags::RDONLY).await else {
                    continue;
                };
                let op = m.op_begin("read");
                m.read(f, 0, 16 << 10).await.doing(|| "read")?;
                m.op_end(op, 16 << 10);
                m.close(f).await.doing(|| "close")?;
                m.compute(THINK).await.doing(|| "compute")?;
            }
            Ok(())
        };
        let j = m.spawn(How::named(format!("reader{r}")), reader).await;
        joins.push(j.doing(|| "spawn")?);
    }
    for c in 0..4 {
        let (whole, named) = (whole.clone(), named.clone());
        let creator = async move |mut m: SimMachine| -> Outcome {
            while m.now() < end {
                let k = named.fetch_add(1, Ordering::Relaxed);
                let op = m.op_begin("create");
                put(&mut m, &format!("f{k}"), FILE).await?;
                m.op_end(op, FILE);
                whole.fetch_add(1, Ordering::Relaxed);
                m.compute(THINK).await.doing(|| "compute")?;
            }
            Ok(())
        };
        let j = m.spawn(How::named(format!("creator{c}")), creator).await;
        joins.push(j.doing(|| "spawn")?);
    }
    for j in joins {
        m.join(j).await?;
    }
    Ok(())
}

/// Returns the number of operations of a kind in each whole second of a run.
fn seconds(r: &Ran, kind: &str) -> Vec<u64> {
    let all = r.record.operation(kind).map(|o| o.seconds.as_slice());
    let all = all.unwrap_or_default().iter().map(|s| s.ops);
    all.skip_while(|n| *n == 0).collect()
}

fn async_share(lab: &Lab<'_>) -> Result<Shown, DemoError> {
    let mut shown = Shown::new(
        "SSD of 2009, kernel 3.4, 2 cores; 12 programs read 16 KiB of random files (100 MiB at \
         first), 4 write new files of 64 KiB, 6 s; page cache 128 MiB, and 2 GiB, where all reads hit",
        &[
            "scheduler",
            "new files",
            "in the last 3 s",
            "reads",
            "new files, all cached",
            "reads, all cached",
        ],
    );
    let (mut small, mut late, mut reads, mut large) = (vec![], vec![], vec![], vec![]);
    for s in ["noop-3.4", "deadline-3.4", "cfq-3.4"] {
        let of = |options| play(&world(SSD, s, options, lab)?, readers_and_creators);
        let tight = of("cores=2,cache=128M")?;
        let ample = of("cores=2,cache=2G")?;
        let n = |r: &Ran, kind| r.record.operation(kind).map_or(0, |o| o.latency.count());
        let last: u64 = seconds(&tight, "create").iter().skip(3).take(3).sum();
        shown.row(vec![
            s.to_owned(),
            n(&tight, "create").to_string(),
            last.to_string(),
            n(&tight, "read").to_string(),
            n(&ample, "create").to_string(),
            n(&ample, "read").to_string(),
        ]);
        small.push(n(&tight, "create") as f64);
        late.push(last as f64);
        reads.push(n(&tight, "read") as f64);
        large.push(n(&ample, "create") as f64);
    }
    shown.check(
        format!(
            "noop and deadline write {:.2} and {:.2} times as many files as cfq, at least 1.3",
            small[0] / small[2],
            small[1] / small[2]
        ),
        small[0] >= 1.3 * small[2] && small[1] >= 1.3 * small[2],
    );
    shown.check(
        format!(
            "in the last 3 s, when reads miss the cache, {:.2} and {:.2} times as many, at least \
             1.7",
            late[0] / late[2],
            late[1] / late[2]
        ),
        late[0] >= 1.7 * late[2] && late[1] >= 1.7 * late[2],
    );
    // The files that cfq does not write leave time for its readers.
    shown.check(
        format!(
            "cfq reads {:.2} and {:.2} times as often as noop and deadline, at least 1.1",
            reads[2] / reads[0],
            reads[2] / reads[1]
        ),
        reads[2] >= 1.1 * reads[0] && reads[2] >= 1.1 * reads[1],
    );
    shown.check(
        format!(
            "if all reads hit the cache, {:.2} and {:.2} times as many, within 2 %",
            large[0] / large[2],
            large[1] / large[2]
        ),
        large[..2].iter().all(|n| (n / large[2] - 1.0).abs() < 0.02),
    );
    Ok(shown)
}
