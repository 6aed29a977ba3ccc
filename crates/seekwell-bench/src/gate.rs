//! Checks instruction counts with callgrind, because these do not depend on the load of the
//! machine.

use crate::catalogue;
use seekwell_core::numbers::signed;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Lengths of the two counted runs, in I/Os. The difference of their counts excludes the start-up.
const SHORT: u64 = 2_000;
const LONG: u64 = 12_000;
/// Lengths for deep queues. The queue must be full before the shorter run ends.
const DEEP_SHORT: u64 = 10_000;
const DEEP_LONG: u64 = 20_000;
/// The check fails if a count exceeds the committed count by more than this percentage.
const SLACK_PERCENT: f64 = 5.0;

/// Returns whether the check includes a scenario: the block layer, the device models, schedulers
/// with complete devices, the simulated machine, and every scheduler at 32 and 4,096 queued
/// requests.
fn gated(name: &str) -> bool {
    name.starts_with("constant-")
        || name.starts_with("hdd-")
        || name.starts_with("ssd-")
        || name.starts_with("world-")
        || name.starts_with("pair-")
        || name.ends_with("-q32-p8")
        || name.ends_with("-q4096-p8")
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.toml")
}

fn count(name: &str, ios: u64) -> Result<u64, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(exe)
        .args(["stream", name, &ios.to_string()])
        .output()
        .map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&out.stderr);
    let line = text.lines().find_map(|l| l.split("Collected :").nth(1));
    line.and_then(|n| n.trim().parse().ok())
        .ok_or_else(|| format!("callgrind said:\n{text}"))
}

fn per_io(name: &str) -> Result<f64, String> {
    let deep = name.contains("-q4096-");
    let (short, long) = if deep {
        (DEEP_SHORT, DEEP_LONG)
    } else {
        (SHORT, LONG)
    };
    let (a, b) = (count(name, short)?, count(name, long)?);
    Ok((b.saturating_sub(a)) as f64 / (long - short) as f64)
}

/// Counts instructions and compares them with the committed counts. With `write`, replaces those.
pub fn gate(write: bool) -> ExitCode {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind is not installed, so no instructions are counted");
        return ExitCode::SUCCESS;
    }
    let text = std::fs::read_to_string(file()).unwrap_or_default();
    let committed: BTreeMap<String, f64> = match toml::from_str(&text) {
        Ok(m) => m,
        Err(e) => {
            eprintln!("{}: {e}", file().display());
            return ExitCode::from(2);
        }
    };
    let names: Vec<String> = catalogue::all()
        .into_iter()
        .map(|s| s.name)
        .filter(|n| gated(n))
        .collect();
    let (mut counted, mut failed) = (BTreeMap::new(), 0);
    println!(
        "{:28} {:>12} {:>12} {:>8}",
        "instructions per I/O", "counted", "committed", ""
    );
    for name in names {
        let n = match per_io(&name) {
            Ok(n) => n,
            Err(e) => {
                eprintln!("{name}: {e}");
                return ExitCode::from(2);
            }
        };
        let old = committed.get(&name).copied();
        let change = old.map(|o| (n / o - 1.0) * 100.0);
        let bad = change.is_some_and(|c| c > SLACK_PERCENT);
        let show = |v: Option<f64>, f: fn(f64) -> String| v.map_or("-".to_owned(), f);
        println!(
            "{name:28} {n:12.1} {:>12} {:>8}{}",
            show(old, |v| format!("{v:.1}")),
            show(change, |v| format!("{}%", signed(v, 1))),
            if bad && !write { "  FAILED" } else { "" }
        );
        failed += usize::from(bad);
        counted.insert(name, (n * 10.0).round() / 10.0);
    }
    if write {
        let head = "# Instructions per I/O, counted by `seekwell-bench gate --write`.\n";
        let body = toml::to_string(&counted).unwrap_or_default();
        if let Err(e) = std::fs::write(file(), format!("{head}{body}")) {
            eprintln!("{}: {e}", file().display());
            return ExitCode::from(2);
        }
        return ExitCode::SUCCESS;
    }
    println!("{} passed, {failed} failed", counted.len() - failed);
    if failed > 0 {
        eprintln!("more than {SLACK_PERCENT} % above {}", file().display());
        return ExitCode::from(1);
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_sched::{costs, registry};

    /// The CPU time that the model charges for a scheduler must equal the committed count.
    #[test]
    fn charged_scheduler_cpu_cost_equals_committed_instruction_count() {
        let text = std::fs::read_to_string(file()).expect("the gate's file");
        let counted: BTreeMap<String, f64> = toml::from_str(&text).expect("figures");
        for info in registry() {
            let name = format!("{}-q32-p8", info.name);
            let charged = costs::instructions(info.name).map(f64::from);
            let gated = counted.get(&name).map(|n| n.round());
            assert_eq!(charged, gated, "{name}");
        }
    }
}
