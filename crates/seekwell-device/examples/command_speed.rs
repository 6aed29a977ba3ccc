//! Simulated commands per second of CPU time: `cargo run --release --example command_speed`.

use rand::RngCore;
use seekwell_core::{Device, Nanos, Op, rng};
use seekwell_device::probe::{Client, command};
use seekwell_device::{Constant, open_hdd, read_preset};

/// CPU time of this thread in seconds, which other load on the machine disturbs least. Wall time if
/// the kernel does not report it.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()) {
        Some(ns) => ns / 1e9,
        None => {
            let now = std::time::SystemTime::now();
            now.duration_since(std::time::UNIX_EPOCH)
                .map_or(0.0, |d| d.as_secs_f64())
        }
    }
}

fn measure<D: Device>(name: &str, device: D, depth: usize, n: usize, sequential: bool, op: Op) {
    let capacity = device.facts().capacity.0;
    let mut random = rng::stream(1, "speed");
    let mut client = Client::new(device);
    let start = cpu_seconds();
    let run = client.run(n, depth, Nanos::ZERO, |i| {
        let at = if sequential {
            i as u64 * 8
        } else {
            (random.next_u64() >> 20) % (capacity / 8) * 8
        };
        command(op, at, 8)
    });
    let took = cpu_seconds() - start;
    println!(
        "{name:<40} depth {depth:>3}  {:>7.2} M I/O/s  (simulated {:>9.0} IOPS)",
        n as f64 / took / 1e6,
        run.iops()
    );
}

fn main() {
    let spec = std::env::args()
        .nth(1)
        .unwrap_or("hdd:hitachi-7k200".into());
    let full = || open_hdd(&spec, 1).unwrap();
    let n = 2_000_000;
    measure(
        "constant (null)",
        Constant::serial(32, Nanos(100_000)),
        1,
        n,
        false,
        Op::Read,
    );
    measure(
        "constant (null)",
        Constant::serial(32, Nanos(100_000)),
        31,
        n,
        false,
        Op::Read,
    );
    for depth in [1, 2, 4, 8, 16, 31] {
        measure("random read", full(), depth, n, false, Op::Read);
    }
    measure("sequential read", full(), 1, n, true, Op::Read);
    measure("sequential read", full(), 31, n, true, Op::Read);
    measure("random cached write", full(), 1, n, false, Op::Write);
    measure("random cached write", full(), 31, n, false, Op::Write);
    let boxed: Box<dyn Device + Send> = Box::new(full());
    measure("random read, boxed", boxed, 31, n, false, Op::Read);
    let fast = read_preset(&spec).unwrap();
    let fast = seekwell_device::HddParams::from_preset(&fast).unwrap();
    for depth in [1, 31] {
        let device = seekwell_device::FastHdd::new(&fast, 1).unwrap();
        measure(
            "fast variant, random read",
            device,
            depth,
            n,
            false,
            Op::Read,
        );
    }
}
