//! `seekwell-bench list | stream NAME IOS | wall [NAME...] | memory RECORDS... |
//! world-memory OPS... | programs [NAME...] | gate [--write]`
//!
//! `wall` prints the best and the median of ten runs in nanoseconds per I/O. It also prints their
//! ratio to a reference operation (push and pop on a 32-entry binary heap) in the same process, so
//! that different machines can be compared. `programs` runs workloads with their defaults and
//! prints the CPU time that each simulation takes. `gate` counts instructions per I/O with
//! callgrind. It fails if a count exceeds the committed count by more than five per cent.

mod catalogue;
mod flash;
mod gate;
mod memory;
mod pairs;
mod programs;
mod scenario;
mod sched_cost;
mod world;

use seekwell_stats::{median, range};
use std::collections::BinaryHeap;
use std::process::ExitCode;
use std::time::Instant;

/// The allocator that the `seekwell` program uses.
#[cfg(target_os = "linux")]
#[global_allocator]
static MEMORY: seekwell_core::large::LargePages = seekwell_core::large::LargePages;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list"] => {
            for s in catalogue::all() {
                println!("{:28} {}", s.name, s.what);
            }
            ExitCode::SUCCESS
        }
        ["stream", name, ios] => stream(name, ios),
        ["wall", names @ ..] => wall(names),
        ["memory", counts @ ..] => memory::memory(counts),
        ["world-memory", counts @ ..] => memory::world(counts),
        ["programs", names @ ..] => programs::programs(names),
        ["gate", rest @ ..] => gate::gate(rest.contains(&"--write")),
        _ => {
            eprintln!(
                "seekwell-bench list | stream NAME IOS | wall [NAME...] | memory RECORDS... | \
                 world-memory OPS... | programs [NAME...] | gate [--write]"
            );
            ExitCode::from(2)
        }
    }
}

fn stream(name: &str, ios: &str) -> ExitCode {
    let Ok(ios) = ios.parse() else {
        eprintln!("stream: `{ios}` is not a number of I/Os");
        return ExitCode::from(2);
    };
    match catalogue::all().into_iter().find(|s| s.name == name) {
        Some(s) => {
            println!("{}", (s.run)(ios));
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("stream: no scenario `{name}`; `seekwell-bench list` has them");
            ExitCode::from(2)
        }
    }
}

/// Returns the nanoseconds per push and pop on a 32-entry binary heap.
fn yardstick() -> f64 {
    const N: u64 = 4_000_000;
    let mut heap: BinaryHeap<u64> = (0..32u64).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let mut x = 1u64;
    let start = Instant::now();
    for _ in 0..N {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        heap.push(x >> 20);
        x ^= heap.pop().unwrap_or(0);
    }
    let ns = start.elapsed().as_nanos() as f64 / N as f64;
    std::hint::black_box(x);
    ns
}

/// Whether the build used profile data. Times with and without profile data cannot be compared.
const BUILT: &str = if cfg!(seekwell_guided) {
    "built with profile data from pgo/"
} else {
    "built without profile data; `make install` and `make bench` use the data in pgo/"
};

fn wall(names: &[&str]) -> ExitCode {
    println!("{BUILT}");
    println!(
        "{:28} {:>9} {:>9} {:>8} {:>10}",
        "scenario", "best ns", "median ns", "x heap", "M I/O/s"
    );
    for s in catalogue::all() {
        if !names.is_empty() && !names.iter().any(|n| s.name.starts_with(n)) {
            continue;
        }
        let runs: Vec<(f64, f64)> = (0..10)
            .map(|_| {
                let heap = yardstick();
                let start = Instant::now();
                std::hint::black_box((s.run)(s.ios));
                (start.elapsed().as_nanos() as f64 / s.ios as f64, heap)
            })
            .collect();
        let times: Vec<f64> = runs.iter().map(|r| r.0).collect();
        let ratios: Vec<f64> = runs.iter().map(|r| r.0 / r.1).collect();
        let middle = |all: &[f64]| median(all).unwrap_or(f64::NAN);
        let (best, median, ratio) = (range(&times).0, middle(&times), middle(&ratios));
        println!(
            "{:28} {best:9.1} {median:9.1} {ratio:8.2} {:10.2}",
            s.name,
            1000.0 / best
        );
    }
    ExitCode::SUCCESS
}
