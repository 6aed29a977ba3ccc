//! Replays far away in time: a trace that counts from 1970, from the Big Bang or to the end of time
//! ends as any other does.

use rand::RngCore;
use seekwell_core::result::Record;
use seekwell_core::rng;
use seekwell_sched::registry;
use seekwell_sim::fuzz::{DEVICES, fuzz_one};
use seekwell_sim::{ReplayError, ReplayOptions, Setup, replay};
use seekwell_trace::TIME_MAX_NS;
use std::io::Cursor;

fn run(device: &str, scheduler: &str, mode: &str, text: &str) -> Result<Record, ReplayError> {
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

const HEADER: &str = "t_ns,op,sector,sectors,pid\n";

/// Bursts of reads and writes of three processes at these times.
fn bursts(at: &[u64]) -> String {
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
fn the_trace_that_hung_every_hard_disk() {
    let text = "t_ns,op,sector,sectors\n0,R,400,8\n10000000000000000,W,800,8\n";
    let r = run("hdd:hitachi-7k200", "noop", "timed", text).expect("it ends");
    assert_eq!((r.read.ios, r.write.ios), (1, 1));
    assert!(r.write.latency.max_ns() < 100_000_000);
    assert_eq!(r.seconds.len(), 2);
}

#[test]
fn every_scheduler_bears_times_up_to_the_last() {
    let year = 31_557_600_000_000_000;
    let last = TIME_MAX_NS - 1_000_000;
    let text = bursts(&[0, 1 << 53, year, 53 * year, last]);
    for s in registry() {
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

#[test]
fn every_kind_of_device_bears_them() {
    let text = bursts(&[
        0,
        1 << 53,
        1_700_000_000_000_000_000,
        TIME_MAX_NS - 1_000_000,
    ]);
    for device in DEVICES {
        for scheduler in ["deadline", "mq-deadline"] {
            let r = run(device, scheduler, "timed", &text);
            let r = r.unwrap_or_else(|e| panic!("{device} {scheduler}: {e}"));
            assert_eq!(r.read.ios + r.write.ios, 80, "{device}");
            assert!(r.read.latency.max_ns() < 60_000_000_000, "{device}");
        }
    }
}

/// A trace that counts from 1970 begins with its first record.
#[test]
fn a_trace_that_counts_from_1970_is_the_trace_that_counts_from_0() {
    let hours = 3_600_000_000_000;
    let at = |base: u64| bursts(&[base, base + hours]);
    for scheduler in ["cfq", "bfq", "kyber"] {
        let json = |base| {
            let r = run("hdd:hitachi-7k200", scheduler, "timed", &at(base)).expect("it ends");
            serde_json::to_string(&r).expect("a record")
        };
        assert_eq!(json(0), json(1_700_000_000_000_000_000), "{scheduler}");
    }
}

#[test]
fn a_time_beyond_the_last_is_refused_with_its_record() {
    let text = format!(
        "{HEADER}0,R,0,8,1\n5,R,8,8,1\n{},R,16,8,1\n",
        TIME_MAX_NS + 1
    );
    let e = run("hdd:hitachi-7k200", "noop", "timed", &text).expect_err("too late");
    let e = e.to_string();
    assert!(
        e.contains("line 4: record 3 has a time 285 years after"),
        "{e}"
    );
    let text = bursts(&[0, TIME_MAX_NS / 2]);
    let e = run("hdd:hitachi-7k200", "noop", "scaled:3", &text).expect_err("too late");
    assert!(e.to_string().contains("record 21 would be due"), "{e}");
    assert!(e.to_string().contains("stretch the trace less"), "{e}");
}

#[test]
fn a_length_that_no_kernel_sends_is_refused_with_its_record() {
    let text = format!("{HEADER}0,R,0,8,1\n5,R,8,8388608,1\n");
    let e = run("hdd:hitachi-7k200", "noop", "timed", &text).expect_err("too long");
    let e = e.to_string();
    assert!(
        e.contains("record 2: 8388608 sectors in one request"),
        "{e}"
    );
}

/// The fuzzer's short run; the long one is in `fuzz/`.
#[test]
fn any_records_on_any_device_end() {
    let mut rng = rng::stream(1, "replay fuzz");
    let mut bytes = vec![0; 4 + 8 * 60];
    for round in 0..200u32 {
        let n = 4 + 8 * (round as usize % 60);
        rng.fill_bytes(&mut bytes[..n]);
        let result = std::panic::catch_unwind(|| fuzz_one(&bytes[..n]));
        assert!(result.is_ok(), "round {round} of seed 1");
    }
}
