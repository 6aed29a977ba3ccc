//! `seekwell check-worlds`, with what must agree on any machine.

use crate::disk::{have, turn};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Rows that a busy machine does not change.
fn counts_agree(workload: &Value) -> Vec<String> {
    let rows = workload["verdict"]["rows"].as_array().expect("rows");
    let mut bad = Vec::new();
    for row in rows.iter().filter(|r| r["name"] != "throughput") {
        let number = |key: &str| row[key].as_f64().unwrap_or_default();
        let Some(limit) = row["limit"].as_f64() else {
            continue;
        };
        let (real, sim) = (number("real"), number("sim"));
        if (sim - real).abs() > (real * limit).max(number("slack")) {
            bad.push(format!(
                "{} {}: real {real}, simulated {sim}",
                row["name"], row["unit"]
            ));
        }
    }
    bad
}

#[test]
fn both_worlds_ask_the_disk_for_the_same() {
    let _turn = turn();
    let needed = ["losetup", "mkfs.ext4", "debugfs", "e2fsck", "mount"];
    if let Some(skip) = have(&needed) {
        println!("skipped: check-worlds: {skip}");
        return;
    }
    let out = Command::new(env!("CARGO_BIN_EXE_seekwell"))
        .args([
            "check-worlds",
            "--json",
            "--size",
            "1G",
            "fs-mark:files=60,size=16KiB",
        ])
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let err = String::from_utf8_lossy(&out.stderr);
    if err.contains("tracefs") {
        println!("skipped: check-worlds: {}", err.trim());
        return;
    }
    // 1: something differs, which is looked at here; anything else is a failure.
    assert!(matches!(out.status.code(), Some(0 | 1)), "{err}");
    let all: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    for workload in all["workloads"].as_array().expect("workloads") {
        let name = &workload["verdict"]["workload"];
        let bad = counts_agree(workload);
        assert!(bad.is_empty(), "{name}: {}", bad.join("; "));
        let throughput = &workload["verdict"]["rows"];
        let row = throughput
            .as_array()
            .and_then(|r| r.last())
            .expect("throughput");
        println!(
            "{name}: {} {} real, {} simulated",
            row["real"], row["unit"], row["sim"]
        );
    }
    assert_eq!(
        all["missed"].as_array().map(Vec::len),
        Some(0),
        "{}",
        all["missed"]
    );
}
