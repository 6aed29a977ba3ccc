//! The SSD models alone, without a queue: the cost of a command, for the cheap and the detailed
//! variant.

use crate::scenario::Scenario;
use rand::Rng;
use seekwell_core::rng::stream;
use seekwell_core::{Device, Nanos, Op};
use seekwell_device::probe::{Client, command};
use seekwell_device::ssd::{CheapSsd, DetailedSsd, SsdParams};

/// The benchmarked drive. `scale` makes the detailed variant small, so that its preparation takes
/// almost no time. With rho = 0.1, a page written at random is programmed 5.7 times.
const DRIVE: &str = "ssd:nvme-dc-2t,rho=0.1,buffer=1MiB,scale=256";

fn params(state: &str) -> SsdParams {
    let preset = seekwell_device::read_preset(&format!("{DRIVE},state={state}"));
    preset
        .ok()
        .and_then(|p| SsdParams::from_preset(&p).ok())
        .expect("an embedded preset")
}

/// Runs random 4 KiB commands at depth 32.
fn random<D: Device>(device: D, op: Op, ios: u64) -> u64 {
    let mut rng = stream(7, "bench");
    let pages = device.facts().capacity.0 / 8;
    let mut client = Client::new(device);
    let run = client.run(ios as usize, 32, Nanos::ZERO, |_| {
        command(op, rng.random_range(0..pages) * 8, 8)
    });
    run.latency_ns
        .iter()
        .fold(run.took.0, |sum, ns| sum.wrapping_mul(31).wrapping_add(*ns))
}

fn cheap(op: Op, ios: u64) -> u64 {
    random(CheapSsd::new(&params("steady"), 7), op, ios)
}

fn detailed(state: &str, op: Op, ios: u64) -> u64 {
    let device = DetailedSsd::new(&params(state), 7).expect("an embedded preset");
    random(device, op, ios)
}

/// Returns scenarios for both variants, with reads and with writes.
pub fn all() -> Vec<Scenario> {
    let row = |name: &str, what: &str, ios, run: fn(u64) -> u64| Scenario {
        name: name.to_owned(),
        what: what.to_owned(),
        ios,
        run: Box::new(run),
    };
    vec![
        row(
            "ssd-cheap-read",
            "cheap flash drive alone, random 4 KiB reads, 32 outstanding",
            4_000_000,
            |ios| cheap(Op::Read, ios),
        ),
        row(
            "ssd-cheap-write",
            "cheap flash drive alone, random 4 KiB writes in steady state",
            4_000_000,
            |ios| cheap(Op::Write, ios),
        ),
        row(
            "ssd-detailed-read",
            "page-mapping flash drive alone, random 4 KiB reads, 32 outstanding",
            2_000_000,
            // A filled drive does not need garbage collection for reads.
            |ios| detailed("filled", Op::Read, ios),
        ),
        row(
            "ssd-detailed-write",
            "page-mapping flash drive alone, random 4 KiB writes, amplified 5.7 times",
            1_000_000,
            |ios| detailed("steady", Op::Write, ios),
        ),
    ]
}
