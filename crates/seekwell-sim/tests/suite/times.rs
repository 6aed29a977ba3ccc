//! Replays with extreme times under every scheduler: a trace that counts from 1970, from the Big
//! Bang or to the largest time ends like any other.

use seekwell_core::result::Record;
use seekwell_sim::{ReplayError, ReplayOptions, Setup, replay};
use seekwell_trace::TIME_MAX_NS;
use std::io::Cursor;

/// Replays a trace.
pub fn run(device: &str, scheduler: &str, mode: &str, text: &str) -> Result<Record, ReplayError> {
    let setup = Setup {
        device: device.to_owned(),
        scheduler: scheduler.to_owned(),
        ..Setup::default()
    };
    let bytes = Cursor::new(text.to_owned());
    let reader = seekwell_trace::from_reader("made", bytes, None, &Default::default())?;
    let options = ReplayOptions {
        mode: mode.parse().expect("a mode"),
        ..ReplayOptions::default()
    };
    replay(&setup, reader, &options, &mut |_, _| true)
}

/// First line of a trace.
pub const HEADER: &str = "t_ns,op,sector,sectors,pid\n";

/// Bursts of reads and writes of three processes at these times.
pub fn bursts(at: &[u64]) -> String {
    let mut text = HEADER.to_owned();
    for (b, at) in at.iter().enumerate() {
        for k in 0..20u64 {
            let op = if k % 3 == 0 { 'W' } else { 'R' };
            let sector = (b as u64 * 977 + k * k * 131) * 8;
            text += &format!("{},{op},{sector},8,{}\n", at + k * 50_000, 1 + k % 3);
        }
    }
    text
}

#[test]
fn every_scheduler_handles_times_up_to_the_maximum() {
    let year = 31_557_600_000_000_000;
    let last = TIME_MAX_NS - 1_000_000;
    let text = bursts(&[0, 1 << 53, year, 53 * year, last]);
    for s in crate::registered() {
        for device in ["hdd:hitachi-7k200", "constant:depth=4,service_us=100"] {
            for mode in ["timed", "scaled:1/3", "depth:4"] {
                let r = run(device, s.name, mode, &text);
                let r = r.unwrap_or_else(|e| panic!("{} {device} {mode}: {e}", s.name));
                assert_eq!(r.read.ios + r.write.ios, 100, "{}", s.name);
                let longest = r.read.latency.max_ns().max(r.write.latency.max_ns());
                assert!(longest < 8_000_000_000, "{} {mode}: {longest}", s.name);
            }
        }
    }
}
