//! Prints the peak memory of runs of different lengths, which must not grow with the length. A run
//! replays a generated trace through reader, layer and device, or it runs programs on a simulated
//! machine.

use seekwell_core::numbers::signed;
use seekwell_sim::{ReplayOptions, Setup, replay};
use std::io::Read;
use std::process::{Command, ExitCode};

/// A VMware vscsi trace that is generated while it is read. It is never complete in memory or on
/// disk.
struct Made {
    left: u64,
    serial: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl Made {
    fn fill(&mut self) {
        self.buffer.clear();
        self.at = 0;
        for _ in 0..self.left.min(1024) {
            let i = self.serial;
            self.serial += 1;
            let sector = i.wrapping_mul(2_654_435_761) % 50_000_000 * 8;
            let op: u16 = if i.is_multiple_of(3) { 42 } else { 40 };
            self.buffer.extend((i as u32).to_le_bytes());
            self.buffer.extend(4096u32.to_le_bytes());
            self.buffer.extend(1u32.to_le_bytes());
            self.buffer.extend(op.to_le_bytes());
            self.buffer.extend(256u16.to_le_bytes());
            self.buffer.extend(sector.to_le_bytes());
            self.buffer.extend((i * 100).to_le_bytes());
        }
        self.left -= self.left.min(1024);
    }
}

impl Read for Made {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.buffer.len() {
            self.fill();
        }
        let n = out.len().min(self.buffer.len() - self.at);
        out[..n].copy_from_slice(&self.buffer[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

fn replayed(records: u64) -> Result<u64, String> {
    let input = Made {
        left: records,
        serial: 0,
        buffer: Vec::new(),
        at: 0,
    };
    let reader = seekwell_trace::from_reader("made", input, None, &Default::default())
        .map_err(|e| e.to_string())?;
    let setup = Setup {
        device: "constant:depth=32,service_us=50".to_owned(),
        scheduler: "deadline".to_owned(),
        ..Setup::default()
    };
    let r = replay(&setup, reader, &ReplayOptions::default(), &mut |_, _| true)
        .map_err(|e| e.to_string())?;
    Ok(r.read.ios + r.write.ios)
}

fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Given one number, replays this many records and prints "records peak-KiB". Given several
/// numbers, runs each in a separate process and compares their peaks with the first.
pub fn memory(counts: &[&str]) -> ExitCode {
    peaks("memory", "records", replayed, counts)
}

/// Does the same as `memory` for operations of programs, on a simulated machine with a full page
/// cache.
pub fn world(counts: &[&str]) -> ExitCode {
    peaks(
        "world-memory",
        "operations",
        |n| Ok(crate::world::churn(n)),
        counts,
    )
}

fn peaks(
    command: &str,
    unit: &str,
    one: fn(u64) -> Result<u64, String>,
    counts: &[&str],
) -> ExitCode {
    let numbers: Option<Vec<u64>> = counts.iter().map(|c| c.parse().ok()).collect();
    let Some(numbers) = numbers.filter(|n| !n.is_empty()) else {
        eprintln!("{command}: give numbers of {unit}");
        return ExitCode::from(2);
    };
    if let [n] = numbers[..] {
        return match one(n) {
            Ok(done) => {
                println!("{done} {}", peak_kib().unwrap_or(0));
                ExitCode::SUCCESS
            }
            Err(e) => {
                eprintln!("{command}: {e}");
                ExitCode::from(2)
            }
        };
    }
    let mut first = None;
    let mut grown = false;
    for n in numbers {
        let Ok(exe) = std::env::current_exe() else {
            return ExitCode::from(2);
        };
        let out = Command::new(exe).args([command, &n.to_string()]).output();
        let text = out
            .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
            .unwrap_or_default();
        let peak: Option<f64> = text.split_whitespace().nth(1).and_then(|p| p.parse().ok());
        let Some(peak) = peak else {
            eprintln!("{command}: the run of {n} {unit} failed");
            return ExitCode::from(2);
        };
        let base = *first.get_or_insert(peak);
        let change = (peak / base - 1.0) * 100.0;
        println!(
            "{n:>10} {unit}: peak {peak:>8.0} KiB ({} %)",
            signed(change, 1)
        );
        grown |= change > 10.0;
    }
    if grown {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    }
}
