//! Entry points for the fuzzers of user input. A text is read as a device, a preset file, a
//! machine, a list of schedulers, a workload or a background workload. The result must be an error
//! message or a specification. If the specification is written as text and read again, the result
//! must be the same. The same must hold for a run as JSON.
//!
//! The tests call these functions in a short deterministic run. The targets in `fuzz/` call them,
//! too.

use seekwell_device::{describe, footprint, open, over_queues, with_files};
use seekwell_sim::spec::{RunSpec, cgroup, checked, machine, scheduler, words, workload};
use std::collections::BTreeMap;

/// Devices with larger tables are described but not opened.
const TABLES_MAX: u64 = 8 << 20;
/// Name of a preset that exists only in this module.
const PRESET: &str = "fuzzed.toml";

/// Reads `text` as an input of this kind, and checks the properties above.
///
/// # Panics
/// Panics if a property is violated.
pub fn fuzz_one(kind: &str, text: &str) {
    // A fuzzer must not find files of the host.
    if text.contains('/') || text.contains(".toml") || text.contains(".fio") {
        return;
    }
    match kind {
        "device" => device(text),
        "preset" => {
            let files = BTreeMap::from([(PRESET.to_owned(), text.to_owned())]);
            with_files(&files, || device(PRESET));
        }
        "machine" => typed_machine(text),
        "schedulers" => {
            let Ok(all) = scheduler::list(text) else {
                return;
            };
            for t in all {
                match scheduler::checked(&t.spec) {
                    Ok((_, whole)) => assert!(scheduler::checked(&whole).is_ok(), "{}", t.text),
                    // Each setting was valid on its own.
                    Err(e) => assert!(e.to_string().contains("two units"), "{}: {e}", t.text),
                }
            }
        }
        "workload" => {
            if let Ok(spec) = workload::typed(text, &[]) {
                assert_eq!(workload::checked(&spec).expect("checked before"), spec);
            }
        }
        "beside" => {
            if let Ok(b) = workload::typed_beside(text) {
                assert_eq!(
                    workload::background_spec(&b).expect("checked before"),
                    b.workload
                );
            }
        }
        _ => panic!("{kind}: no kind of text"),
    }
}

/// Checks that a specification of a run is rejected with a message or completed. A completed
/// specification must not change when it is completed again.
///
/// # Panics
/// Panics if a property is violated.
pub fn fuzz_run(spec: &RunSpec) {
    // A fuzzer must not find files of the host.
    if format!("{spec:?}").contains('/') {
        return;
    }
    match checked(spec) {
        Ok(whole) => {
            let again = checked(&whole).expect("what is stated is good");
            assert_eq!(again, whole, "stated twice is stated once");
        }
        Err(e) => assert!(!e.to_string().is_empty()),
    }
}

/// Checks that a device can be described, measured and opened, or that all three reject it with a
/// message.
fn device(text: &str) {
    let (described, weighed) = (describe(text), footprint(text));
    if let Err(e) = &described {
        assert!(!e.to_string().is_empty());
        return;
    }
    let _ = words::device(text);
    let small = weighed.is_ok_and(|f| f.bytes <= TABLES_MAX);
    let own = described.is_ok_and(|p| !over_queues(p.kind));
    if small && own {
        // Parameters that exclude each other are reported here.
        if let Err(e) = open(text, 1) {
            assert!(!e.to_string().is_empty());
        }
    }
}

fn typed_machine(text: &str) {
    if let Ok(groups) = cgroup::typed(text) {
        let written: Vec<String> = groups.iter().map(|(n, s)| format!("{n}:{s}")).collect();
        let again = cgroup::typed(&written.join("+"));
        assert_eq!(again.expect("its own words"), groups, "{text}");
    }
    if let Ok(t) = machine::typed(text) {
        // An invalid value must cause an error and not a panic.
        let _ = machine::config(&t.spec, seekwell_core::Era::Mq, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;
    use seekwell_core::rng;

    const SEEDS: [(&str, &str); 16] = [
        ("device", "hdd:hitachi-7k200,rpm=5400,write_cache=no"),
        (
            "device",
            "raid5:members=3,of=(hdd:hitachi-7k200,rpm=5400),chunk=64KiB",
        ),
        ("device", "constant:depth=32,service_us=100"),
        ("device", "emmc:motog-sandisk8,packing=always"),
        (
            "device",
            "virtual:over=hdd:hitachi-7k200,format=qcow2,aged=0.5",
        ),
        ("device", "ssd:sata3-256-2011,state=used"),
        (
            "machine",
            "laptop,memory=2G,cores=2,cpu=0.6,fs=ext3,without=readahead+plugging",
        ),
        (
            "machine",
            "root:enable=1:rpct=99.5:rlat=5ms+a:weight=200:latency=3ms",
        ),
        (
            "machine",
            "cgroup=bulk:tasks=writer:wbps=2M+b:bfq.weight=300,limit=60",
        ),
        (
            "schedulers",
            "cfq-2.6.18:slice_idle=0,mq-deadline:fifo_batch=1:read_expire=50,bfq",
        ),
        ("workload", "fs-mark:profile=4-threads,files=100"),
        ("workload", "pgbench:clients=8,seconds=30s"),
        ("beside", "loop:streams:kind=read"),
        (
            "preset",
            include_str!("../../../seekwell-device/presets/hdd-hitachi-7k200.toml"),
        ),
        (
            "preset",
            include_str!("../../../seekwell-device/presets/emmc-motog-sandisk8.toml"),
        ),
        ("run", ""),
    ];
    const WORDS: [&str; 16] = [
        ",",
        ":",
        "=",
        "+",
        "(",
        ")",
        "-1",
        "0",
        "99999999999999999999",
        "NaN",
        "1e300",
        "\n",
        "\"",
        "ms",
        "é",
        "[[",
    ];

    fn fuzz_text(kind: &str, text: &str) {
        if kind != "run" {
            fuzz_one(kind, text);
        } else if let Ok(spec) = serde_json::from_str(text) {
            fuzz_run(&spec);
        }
    }

    #[test]
    fn mutated_words_are_parsed_or_rejected() {
        // For longer runs by hand, set SEEKWELL_FUZZ_ROUNDS=1000.
        let more = std::env::var("SEEKWELL_FUZZ_ROUNDS").ok();
        let more: u32 = more.and_then(|n| n.parse().ok()).unwrap_or(1);
        let mut rng = rng::stream(1, "words");
        let run = words::run("fs-mark:files=3", "hdd:hitachi-7k200", "cfq:slice_idle=0");
        let run = serde_json::to_string(&run.expect("good")).expect("JSON");
        for (kind, seed) in SEEDS {
            let seed = if seed.is_empty() { &run } else { seed };
            fuzz_text(kind, seed);
            // Files and runs take longer, so they get fewer rounds.
            let rounds = if seed.len() > 300 { 50 } else { 200 };
            for _ in 0..rounds * more {
                let mut text: Vec<char> = seed.chars().collect();
                for _ in 0..rng.random_range(1..5) {
                    let at = rng.random_range(0..=text.len());
                    match rng.random_range(0..4) {
                        0 => {
                            let end = (at + rng.random_range(0..9)).min(text.len());
                            text.drain(at..end);
                        }
                        1 => {
                            let end = (at + rng.random_range(0..20)).min(text.len());
                            let copy = text[at..end].to_vec();
                            let to = rng.random_range(0..=text.len());
                            text.splice(to..to, copy);
                        }
                        _ => {
                            let word = WORDS[rng.random_range(0..WORDS.len())];
                            text.splice(at..at, word.chars());
                        }
                    }
                }
                fuzz_text(kind, &text.into_iter().collect::<String>());
            }
        }
    }
}
