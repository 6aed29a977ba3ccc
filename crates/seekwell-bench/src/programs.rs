//! The CPU time that the simulation of each workload takes. The workloads have default parameters
//! and run under cfq, on a laptop disk and on an SSD.

use seekwell_sim::Setup;
use seekwell_sim::world::{WorldSetup, run_simulated};
use seekwell_workload::Plan;
use std::process::ExitCode;

const DEVICES: [&str; 2] = ["hdd:hitachi-7k200", "ssd:x25m-g2-160"];
/// Clock ticks per second in /proc, which are the same on every Linux.
const TICKS_PER_S: f64 = 100.0;

/// Returns the CPU time of this process in seconds.
fn cpu_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // utime and stime are the fields 14 and 15 of proc(5); the name before them may contain spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS_PER_S)
}

/// Runs a workload. Returns the simulated seconds, the script's operations and the requests to the
/// device.
fn run_one(plan: &Plan, device: &str) -> Result<(f64, u64, u64), String> {
    let setup = Setup {
        device: device.to_owned(),
        scheduler: "cfq".to_owned(),
        ..Setup::default()
    };
    let world = WorldSetup::new(setup).map_err(|e| e.to_string())?;
    let r = run_simulated(plan, &world)
        .map_err(|e| e.to_string())?
        .record;
    let ops = r.operations.iter().map(|o| o.latency.count()).sum();
    Ok((r.duration_ns as f64 / 1e9, ops, r.requests))
}

/// Runs the named workloads, or all if none is named. `NAME:param=value,...` sets parameters.
pub fn programs(names: &[&str]) -> ExitCode {
    let all = seekwell_workload::workloads().iter().map(|w| w.name);
    let names: Vec<&str> = if names.is_empty() {
        all.collect()
    } else {
        names.to_vec()
    };
    println!("{}", crate::BUILT);
    println!(
        "{:20} {:20} {:>9} {:>12} {:>12} {:>12} {:>12}",
        "workload", "device", "CPU s", "virtual s", "operations", "requests", "ops/CPU s"
    );
    for name in names {
        let (word, list) = name.split_once(':').unwrap_or((name, ""));
        let given: Vec<(String, String)> = list
            .split(',')
            .filter_map(|p| p.split_once('='))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect();
        let plan = match Plan::new(word, &given) {
            Ok(p) => p,
            Err(e) => {
                eprintln!("{name}: {e}");
                return ExitCode::from(2);
            }
        };
        for device in DEVICES {
            let before = cpu_s();
            let ran = run_one(&plan, device);
            let cpu = cpu_s().zip(before).map_or(f64::NAN, |(a, b)| a - b);
            match ran {
                Ok((s, ops, requests)) => println!(
                    "{name:20} {device:20} {cpu:9.2} {s:12.1} {ops:12} {requests:12} {:12.0}",
                    ops as f64 / cpu.max(0.01)
                ),
                Err(e) => println!("{name:20} {device:20} {e}"),
            }
        }
    }
    ExitCode::SUCCESS
}
