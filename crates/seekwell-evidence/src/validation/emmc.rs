//! The phone's eMMC with a scheduler: the difference between nine schedulers with one thread, and
//! the gain of ROW for reads beside a writer.

use super::figure::Bound::{Any, Range};
use super::figure::Relation::{HeldOut, Indicative};
use super::figure::{Bench, Figure, Group, Measured, SEED, row};
use seekwell_core::result::Record;
use seekwell_core::{Flags, Instant, Nanos, Op, Sector};
use seekwell_sim::procs::{Pattern, Process, Processes};
use seekwell_sim::{Setup, drive};

/// The published results of this family and their measurements.
pub static GROUP: Group = Group {
    title: "eMMC under a queue",
    note: "The nine schedulers of the phone comparison run on the same card with the same random \
           variation, with one thread. Only the schedulers differ. The published spread is the \
           fastest mean divided by the slowest, of three runs each, and is mostly noise. A model \
           should therefore have a smaller spread; the spread of a null model is always 1. The \
           gain of ROW is the vendor's claim for another phone, so only its direction can be \
           compared.",
    rule: "",
    figures: FIGURES,
};

/// The nine schedulers of the published comparison, in the versions of that time.
pub const NINE: [&str; 9] = [
    "fiops",
    "noop",
    "bfq-v7r5",
    "cfq-3.4",
    "deadline-3.4",
    "zen",
    "vr",
    "row",
    "sio",
];

const ANDROBENCH: &str = "AndroBench on a Moto G, May 2014, nine schedulers";

#[rustfmt::skip]
static FIGURES: &[Figure] = &[
    row("emmc:motog-sandisk8", "random 4 KiB read, best of nine over worst", "%", (0.0, 4.8),
        ANDROBENCH, HeldOut, Range, |b| spread(b, Op::Read, Some(32))),
    row("emmc:motog-sandisk8", "sequential 256 KiB read, best of nine over worst", "%", (0.0, 17.6),
        ANDROBENCH, HeldOut, Range, |b| spread(b, Op::Read, None)),
    row("emmc:motog-sandisk8", "random 4 KiB write, best of nine over worst", "%", (0.0, 7.3),
        ANDROBENCH, HeldOut, Range, |b| spread(b, Op::Write, Some(32))),
    row("emmc:motog-sandisk8", "sequential 256 KiB write, best of nine over worst", "%", (0.0, 28.8),
        ANDROBENCH, HeldOut, Range, |b| spread(b, Op::Write, None)),
    row("emmc:motog-sandisk8", "reads beside a sequential writer, ROW over CFQ", "x", (3.28, 3.28),
        "Code Aurora, ROW against CFQ on a Snapdragon 800 phone: 32.6 to 106.9 MB/s", Indicative, Any,
        |b| Ok(mixed(b, "row")?.reads() / mixed(b, "cfq-3.4")?.reads())),
];

fn run(b: &Bench, scheduler: &str, list: Vec<Process>) -> Measured<Record> {
    let setup = Setup {
        device: b.spec.clone(),
        scheduler: scheduler.to_owned(),
        hz: 100,
        seed: SEED,
        ..Setup::default()
    };
    let mut queue = setup.build_over(b.open("")?)?;
    let mut record = setup.record("validation");
    let mut source = Processes::new(list, SEED);
    drive(&mut queue, &mut source, &mut record, &mut |_, _| true)?;
    queue.fill(&mut record);
    Ok(record)
}

/// Returns by how many percent the slowest of the nine schedulers takes longer than the fastest.
/// One thread issues one synchronous request at a time.
fn spread(b: &Bench, op: Op, random_mib: Option<u64>) -> Measured<f64> {
    let process = || Process {
        op,
        // A program waits for each O_DIRECT request, so the requests are synchronous.
        flags: Flags::SYNC,
        pattern: match random_mib {
            Some(mib) => Pattern::Random(Sector(0), Sector(mib * 2048)),
            None => Pattern::Sequential(Sector(0)),
        },
        sectors: if random_mib.is_some() { 8 } else { 512 },
        limit: if random_mib.is_some() { 1000 } else { 128 },
        stop: Instant::FAR,
        ..Process::reader(1, 0)
    };
    let (mut least, mut most) = (u64::MAX, 0);
    for scheduler in NINE {
        let took = run(b, scheduler, vec![process()])?.duration_ns;
        (least, most) = (least.min(took), most.max(took));
    }
    Ok((most as f64 / least as f64 - 1.0) * 100.0)
}

/// Results of a reader and a writer that run together.
#[derive(Debug, Clone, Copy)]
pub struct Mixed {
    /// Number of completed reads.
    pub reads: u64,
    /// Mean latency of the reads.
    pub read_latency: Nanos,
    /// Bytes written.
    pub written: u64,
}

impl Mixed {
    fn reads(&self) -> f64 {
        self.reads as f64
    }
}

/// Runs a reader and a writer for 5 s. The reader reads 4 KiB at random positions and waits 1 ms
/// between reads. The sequential writer keeps eight asynchronous 512 KiB requests outstanding.
pub fn mixed(b: &Bench, scheduler: &str) -> Measured<Mixed> {
    let stop = Instant::START + Nanos::from_secs(5);
    let reader = Process {
        sectors: 8,
        pattern: Pattern::Random(Sector(0), Sector(1 << 21)),
        think: Nanos::from_ms(1),
        stop,
        ..Process::reader(1, 0)
    };
    let writer = Process {
        op: Op::Write,
        pattern: Pattern::Sequential(Sector(1 << 22)),
        sectors: 1024,
        depth: 8,
        stop,
        ..Process::reader(2, 0)
    };
    let r = run(b, scheduler, vec![reader, writer])?;
    Ok(Mixed {
        reads: r.read.ios,
        read_latency: Nanos(r.read.latency.mean_ns() as u64),
        written: r.write.bytes,
    })
}
