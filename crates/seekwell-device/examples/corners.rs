//! Speed of a flash drive in its corner cases:
//! `cargo run --release --example corners -- ssd:s3700-100`.

use rand::RngCore;
use seekwell_core::{Device, Nanos, Op, rng};
use seekwell_device::open;
use seekwell_device::probe::{Client, Run, command};

/// CPU time of this thread in seconds; 0 if the kernel does not report it.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.unwrap_or(0.0) / 1e9
}

fn run(spec: &str, what: &str, depth: usize, n: usize, sectors: u32, writes: u32, random: bool) {
    let mut client = match open(spec, 1) {
        Ok(d) => Client::new(d),
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(2);
        }
    };
    let blocks = client.device.facts().capacity.0 / u64::from(sectors);
    let mut rng = rng::stream(1, "corners");
    let start = cpu_seconds();
    let run: Run = client.run(n, depth, Nanos::ZERO, |i| {
        let at = if random {
            (rng.next_u64() >> 20) % blocks
        } else {
            i as u64 % blocks
        };
        let write = rng.next_u32() % 100 < writes;
        let op = if write { Op::Write } else { Op::Read };
        command(op, at * u64::from(sectors), sectors)
    });
    println!(
        "{what:<28} depth {depth:>3} {:>10.0} IOPS {:>8.1} MB/s  mean {:>8.1} us  p99 {:>9.1} us   {:>6.2} M/s of CPU",
        run.iops(),
        run.mb(),
        run.mean_ms() * 1e3,
        run.quantile_ms(0.99) * 1e3,
        n as f64 / (cpu_seconds() - start) / 1e6,
    );
}

fn main() {
    let base = std::env::args().nth(1).unwrap_or("ssd:s3700-100".into());
    let n: usize = std::env::args()
        .nth(2)
        .map_or(200_000, |n| n.parse().unwrap_or(200_000));
    for depth in [1, 3, 8, 32, 256] {
        run(&base, "random read 4 KiB", depth, n, 8, 0, true);
    }
    run(&base, "sequential read 128 KiB", 1, n / 16, 256, 0, false);
    run(&base, "sequential read 128 KiB", 8, n / 16, 256, 0, false);
    run(&base, "sequential write 128 KiB", 4, n / 8, 256, 100, false);
    run(&base, "random write 4 KiB", 1, n, 8, 100, true);
    run(&base, "random write 4 KiB", 32, n, 8, 100, true);
    run(&base, "mixed 70/30", 32, n, 8, 30, true);
    let steady = format!("{base},state=steady");
    run(&steady, "steady random write 4 KiB", 32, n, 8, 100, true);
    run(&steady, "steady mixed 70/30", 32, n, 8, 30, true);
    run(&steady, "steady mixed 70/30", 8, n, 8, 30, true);
}
