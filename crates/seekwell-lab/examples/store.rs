//! Measures the cost of storing runs: CPU time per run and memory, for 1,000 cells with 10 runs
//! each. The size is compared with the record as JSON, which a simple store would write.
//!
//!     cargo run --release -p seekwell-lab --example store [CELLS]

use seekwell::Hooks;
use seekwell_lab::experiment::Experiment;
use seekwell_lab::results::{Ended, Folder, Results, Run, RunKey, Value};
use std::path::Path;

/// User and system CPU time of this process, in ms. The kernel's unit is a hundredth of a second.
fn cpu_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let ticks = |i: usize| {
        fields
            .get(i)
            .and_then(|f| f.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    10.0 * (ticks(11) + ticks(12))
}

/// Peak memory of this process, in kB.
fn peak_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with("VmHWM:"));
    let number = line.and_then(|l| l.split_whitespace().nth(1));
    number.and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let cells = std::env::args().nth(1).map_or(Ok(1_000), |a| a.parse())?;
    let files: Vec<String> = (1..=cells).map(|n: u32| n.to_string()).collect();
    let text = format!(
        "device = 'hdd:hitachi-7k200'\nschedulers = ['noop', 'cfq']\n[[workload]]\nuse = \
         'fs-mark'\nfiles = [{}]\n",
        files.join(", ")
    );
    let e = Experiment::from_toml(&text, Path::new("/")).map_err(|e| e.to_string())?;
    // A typical record: half a minute of several kinds of operations.
    let spec = seekwell::spec("interactive:seconds=30s", "hdd:hitachi-7k200", "cfq")?;
    let record = seekwell::run(&spec, Hooks::default())?;
    let json = serde_json::to_string(&record)?.len();
    let start = cpu_ms();
    for _ in 0..100 {
        serde_json::to_writer(std::io::sink(), &record)?;
    }
    println!(
        "the record as JSON: {json} bytes, {:.2} ms of CPU; {} kinds of operations, {} seconds",
        (cpu_ms() - start) / 100.0,
        record.operations.len(),
        record.seconds.len(),
    );
    let dir = std::env::temp_dir().join(format!("seekwell-store-{}", std::process::id()));
    let mut folder = Folder::create(&dir, &e)?;
    let (start, before) = (cpu_ms(), peak_kb());
    for cell in 0..e.cells.len() {
        for block in 0..5 {
            for treatment in 0..2 {
                let key = RunKey {
                    cell,
                    block,
                    treatment,
                };
                let metric = record.metric.clone().unwrap_or_default();
                let value = Value {
                    metric: std::sync::Arc::new((&metric).into()),
                    value: metric.value * (1.0 + f64::from(block) / 100.0),
                    n: metric.n,
                };
                let run = Run {
                    key,
                    spec_hash: record.spec_hash.clone(),
                    values: vec![value],
                    duration_ns: record.duration_ns,
                    ..Run::default()
                };
                folder.add(&Ended {
                    run: &run,
                    spec: &spec,
                    record: Some(&record),
                })?;
            }
        }
    }
    let runs = e.cells.len() * 10;
    let added = cpu_ms();
    let journal = dir.join("journal").metadata()?.len();
    println!(
        "{runs} runs kept: {:.3} ms of CPU a run, {} bytes a run in the journal, memory {} kB \
         more",
        (added - start) / runs as f64,
        journal / runs as u64,
        peak_kb() - before,
    );
    let results = Results {
        about: e.about.clone(),
        cells: e.cells.iter().map(|c| c.cell.clone()).collect(),
        treatments: e.treatments.clone(),
        ..Results::default()
    };
    folder.finish(&results)?;
    println!(
        "finished: {:.3} ms of CPU a run more, memory {} kB more than at the start",
        (cpu_ms() - added) / runs as f64,
        peak_kb() - before,
    );
    let bytes: u64 = std::fs::read_dir(&dir)?
        .filter_map(|f| Some(f.ok()?.metadata().ok()?.len()))
        .sum();
    println!("the folder: {} bytes a run", bytes / runs as u64);
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
