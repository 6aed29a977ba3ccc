//! Runs the built binary on mutated inputs and specifications. For any input, it must end by
//! itself, within limits of CPU time and memory. Its exit code must be one that the help lists. If
//! something is wrong, it must print a message.
//!
//! A usual run has a few hundred inputs. `SEEKWELL_CAMPAIGN=31000,12000` sets the numbers of inputs
//! and specifications, and `SEEKWELL_CAMPAIGN_FROM=N,M` the first ones. Each number determines its
//! input, so the number alone reproduces a failure.

mod inputs;
mod specs;

use rand::{Rng, RngCore};
use seekwell_core::rng::{Pcg64Mcg, stream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Limits of a run: private memory in KiB and CPU time in seconds. The memory limit covers all
/// private memory that the run may write, so it is stricter than a limit of resident memory.
const MEMORY_KIB: u32 = 256 << 10;
const CPU_S: u32 = 20;
/// Exit codes that the help lists and with which a run may end.
const CODES: [i32; 5] = [0, 1, 2, 3, 4];

/// The random stream of a round, with helper functions.
pub struct Dice(Pcg64Mcg);

impl Dice {
    fn new(what: &str, round: u64) -> Self {
        Dice(stream(round, what))
    }
    /// Returns a random number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n.max(1))
    }
    /// Returns true with probability 1 in `n`.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    /// Returns one of these items.
    pub fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
    /// Returns a random byte.
    pub fn byte(&mut self) -> u8 {
        self.0.next_u32() as u8
    }
}

/// A file of the project.
pub fn project(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// Path of a file of the campaign.
pub fn scratch(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("campaign-{name}"));
    path.display().to_string()
}

/// Runs the binary with these arguments. Returns a description if a signal ended it, if it
/// panicked, or if its exit code or message is wrong.
fn failure_of_run(args: &[String]) -> Option<String> {
    // Several seeds would take longer and would find no more faults than one seed.
    let several = args
        .first()
        .is_some_and(|a| ["compare", "run", "replay"].contains(&a.as_str()));
    let said = args
        .iter()
        .any(|a| ["--seeds", "--dir"].contains(&a.as_str()));
    let one: &[&str] = if several && !said {
        &["--seeds", "1"]
    } else {
        &[]
    };
    let limits = format!("ulimit -c 0; ulimit -d {MEMORY_KIB}; ulimit -t {CPU_S}; exec \"$@\"");
    let out = Command::new("sh")
        .args(["-c", &limits, "sh", env!("CARGO_BIN_EXE_seekwell")])
        .args(args)
        .args(one)
        .env("COLUMNS", "100")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let err = String::from_utf8_lossy(&out.stderr);
    let last = err.lines().last().unwrap_or_default();
    let Some(code) = out.status.code() else {
        return Some(format!("{}: {last}", out.status));
    };
    if err.contains("panicked") {
        let line = err.lines().find(|l| l.contains("panicked"));
        return Some(format!("{}: {last}", line.unwrap_or_default()));
    }
    if !CODES.contains(&code) {
        return Some(format!("exit code {code}: {last}"));
    }
    if code >= 2 && !err.contains("error: ") {
        return Some(format!("exit code {code} without a message: {err}"));
    }
    None
}

/// Returns two numbers from an environment variable, or the defaults.
fn numbers(name: &str, default: [u64; 2]) -> [u64; 2] {
    let Ok(text) = std::env::var(name) else {
        return default;
    };
    let n: Vec<u64> = text
        .split(',')
        .filter_map(|n| n.trim().parse().ok())
        .collect();
    match n.as_slice() {
        [a, b] => [*a, *b],
        _ => panic!("{name}={text}: two numbers with a comma"),
    }
}

/// Makes and runs all rounds, and reports their failures together.
fn rounds(kind: usize, what: &str, make: impl Fn(&mut Dice, u64) -> Vec<String>) {
    let n = numbers("SEEKWELL_CAMPAIGN", [200, 100])[kind];
    let from = numbers("SEEKWELL_CAMPAIGN_FROM", [0, 0])[kind];
    let mut bad = Vec::new();
    for round in from..from + n {
        let args = make(&mut Dice::new(what, round), round);
        if let Some(why) = failure_of_run(&args) {
            println!("{what} {round}: {why}\n  seekwell {}", args.join(" "));
            bad.push(round);
        }
        if (round + 1).is_multiple_of(100) && n > 1000 {
            println!("{what}: to {round}, {} wrong", bad.len());
        }
    }
    assert!(bad.is_empty(), "{} of {n} {what}: {bad:?}", bad.len());
    println!("{n} {what}, from {from}");
}

#[test]
fn mutated_input_files_end_within_limits() {
    let seeds = inputs::seeds();
    rounds(0, "inputs", |d, round| inputs::args(&seeds, d, round));
}

#[test]
fn mutated_specifications_end_within_limits() {
    let trace = scratch("fixed.csv");
    std::fs::write(&trace, specs::TRACE).expect("scratch file");
    rounds(1, "specifications", |d, _| specs::args(d, &trace));
}
