//! Measures the speed and memory of reading traces: `speed FILE...`. `speed make FORMAT FILE
//! RECORDS` makes a file for it.
//!
//! The null model reads the same file through the same decompressor. It examines the bytes only to
//! count lines or records of 32 bytes.

use seekwell_core::{Op, TaskId};
use seekwell_trace::input::Input;
use seekwell_trace::{Limits, Place, ReadOptions, Record, WriteOptions, create, find_format, open};
use std::path::Path;
use std::time::Instant;

/// Counts records or lines without parsing them.
fn null_model(path: &Path, text: bool) -> u64 {
    let mut input = Input::open(path, Limits::default(), true).expect("opened before");
    let mut n = 0;
    if text {
        while let Ok(Some(_)) = input.line(Place::File) {
            n += 1;
        }
    } else {
        while let Ok(Some(b)) = input.block::<32>(Place::File) {
            n += u64::from(b[0] != b[1] || b[2] == b[3]);
        }
    }
    n
}

/// A stopwatch. It measures CPU time if the system reports it, because a loaded machine then gives
/// nearly the same figures as an idle one. Otherwise it measures elapsed time.
struct Watch(Instant, Option<u64>);

impl Watch {
    fn start() -> Watch {
        Watch(Instant::now(), Watch::cpu_ns())
    }
    fn cpu_ns() -> Option<u64> {
        let stat = std::fs::read_to_string("/proc/self/schedstat").ok()?;
        stat.split_whitespace().next()?.parse().ok()
    }
    fn seconds(&self) -> f64 {
        let cpu = self.1.zip(Watch::cpu_ns()).map(|(from, to)| to - from);
        // The system counts CPU time in ticks. For a few ticks, the elapsed time is more precise.
        match cpu.filter(|&ns| ns > 50_000_000) {
            Some(ns) => ns as f64 / 1e9,
            None => self.0.elapsed().as_secs_f64().max(1e-9),
        }
    }
}

/// Returns the peak resident memory in KiB, if the system reports it.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn measure(path: &Path) -> Result<(), seekwell_trace::TraceError> {
    let mut reader = open(path, None, &ReadOptions::default())?;
    let text = matches!(
        reader.format().name,
        "blkparse" | "csv" | "fio-iolog-v2" | "fio-iolog-v3"
    );
    let watch = Watch::start();
    let (mut n, mut reads, mut bytes, mut done, mut last_ns) = (0u64, 0u64, 0u64, 0u64, 0);
    for r in reader.by_ref() {
        let r = r?;
        n += 1;
        reads += u64::from(r.op == Op::Read);
        bytes += r.sectors.bytes();
        done += u64::from(r.complete_ns.is_some());
        last_ns = r.t_ns;
    }
    let s = watch.seconds();
    let peak = peak_kib();
    let watch = Watch::start();
    let units = null_model(path, text);
    let null_s = watch.seconds();
    println!(
        "{}: {} {}: {n} records ({reads} reads, {done} with completion, {} MiB, {:.1} s) in {s:.3} s: {:.2} M \
         records/s, {:.2} M {}/s; null model {:.2} M/s; peak {} KiB",
        path.display(),
        reader.format().name,
        reader
            .version()
            .map_or(String::new(), |v| format!("version {v}")),
        bytes >> 20,
        last_ns as f64 / 1e9,
        n as f64 / s / 1e6,
        units as f64 / s / 1e6,
        if text { "lines" } else { "32-byte units" },
        units as f64 / null_s / 1e6,
        peak.map_or("?".to_string(), |k| k.to_string()),
    );
    for w in reader.warnings() {
        println!("  warning: {w}");
    }
    Ok(())
}

/// Writes a trace of random reads and writes by four processes. About eight requests are in flight
/// at a time.
fn make(format: &str, path: &str, n: u64) -> Result<(), seekwell_trace::TraceError> {
    let mut w = create(path, find_format(format)?, &WriteOptions::default())?;
    let mut x = 1u64;
    for i in 0..n {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let t = i * 100_000;
        let op = if x >> 63 == 0 { Op::Read } else { Op::Write };
        w.write(&Record {
            task: Some(TaskId(100 + (x >> 40 & 3) as u32)),
            cpu: Some((x >> 42 & 3) as u16),
            insert_ns: Some(t + 1_000),
            issue_ns: Some(t + 300_000),
            complete_ns: Some(t + 800_000 + (x >> 50)),
            ..Record::new(t, op, (x >> 30 & 0xff_ffff) * 8, 8)
        })?;
    }
    w.finish()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.as_slice() {
        [verb, format, path, n] if verb == "make" => {
            make(format, path, n.parse().expect("a number of records"))
        }
        [] => {
            eprintln!("usage: speed FILE... | speed make FORMAT FILE RECORDS");
            return;
        }
        files => files.iter().try_for_each(|f| measure(Path::new(f))),
    };
    if let Err(e) = result {
        eprintln!("{e}");
        std::process::exit(1);
    }
}
