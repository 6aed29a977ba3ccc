//! x
use rand::RngCore;
use seekwell_core::{Device, Nanos, Op, rng};
use seekwell_device::probe::{Client, command};
use seekwell_device::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let d = open_hdd(&a[1], 1).unwrap();
    let cap = d.facts().capacity.0;
    let mut r = rng::stream(1, "x");
    let mut cl = Client::new(d);
    let op = if a[3] == "w" { Op::Write } else { Op::Read };
    let run = cl.run(3000000, a[2].parse().unwrap(), Nanos::ZERO, |_| {
        command(op, (r.next_u64() >> 20) % (cap / 8) * 8, 8)
    });
    println!("{}", run.iops());
}
