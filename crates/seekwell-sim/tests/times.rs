//! Replays with extreme times: a trace that counts from 1970, from the Big Bang or to the largest
//! time ends like any other.

use super::fuzz_replay::{DEVICES, fuzz_one};
use rand::RngCore;
use seekwell_core::rng;
use seekwell_trace::TIME_MAX_NS;
use suite::{HEADER, bursts, run};

#[path = "suite/times.rs"]
mod suite;

#[test]
fn trace_with_a_gap_of_months_ends_on_a_hard_disk() {
    let text = "t_ns,op,sector,sectors\n0,R,400,8\n10000000000000000,W,800,8\n";
    let r = run("hdd:hitachi-7k200", "noop", "timed", text).expect("it ends");
    assert_eq!((r.read.ios, r.write.ios), (1, 1));
    assert!(r.write.latency.max_ns() < 100_000_000);
    assert_eq!(r.seconds.len(), 2);
}

#[test]
fn every_kind_of_device_handles_extreme_times() {
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

/// The clock of a trace that counts from 1970 starts at its first record.
#[test]
fn trace_with_unix_times_replays_like_one_from_0() {
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
fn time_beyond_the_maximum_is_rejected_with_its_record() {
    let text = format!(
        "{HEADER}0,R,0,8,1\n5,R,8,8,1\n{},R,16,8,1\n",
        TIME_MAX_NS + 1
    );
    let e = run("hdd:hitachi-7k200", "noop", "timed", &text).expect_err("too late");
    let e = e.to_string();
    assert!(
        e.contains("line 4: record 3 is 285 years later than the first record"),
        "{e}"
    );
    let text = bursts(&[0, TIME_MAX_NS / 2]);
    let e = run("hdd:hitachi-7k200", "noop", "scaled:3", &text).expect_err("too late");
    assert!(e.to_string().contains("record 21 would be due"), "{e}");
    assert!(e.to_string().contains("stretch the trace less"), "{e}");
}

#[test]
fn impossible_request_length_is_rejected_with_its_record() {
    let text = format!("{HEADER}0,R,0,8,1\n5,R,8,8388608,1\n");
    let e = run("hdd:hitachi-7k200", "noop", "timed", &text).expect_err("too long");
    let e = e.to_string();
    assert!(e.contains("record 2: a request of 8388608 sectors"), "{e}");
}

/// A short run of the fuzzer; the long one is in `fuzz/`.
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
