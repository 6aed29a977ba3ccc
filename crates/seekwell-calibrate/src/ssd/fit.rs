//! Derives the parameters of an `ssd` preset from the measurements of a drive.
//!
//! Formulas give a first estimate of all parameters. The model with these parameters, the
//! candidate, then goes through the same measurements as the drive. Each parameter is corrected by
//! the error of the measurement that depends on it. The number of units has no such measurement.
//! Several numbers are tried, and the number with the best throughput at all depths is taken.
//!
//! Different sets of parameters can give the same measurements. For example, the measurements do
//! not show how a latency is divided between flash array, look-up and transfer. Such parameters are
//! marked as a guess.

use super::measure::{Effort, Shown, shown};
use crate::probe::Facts;
use crate::session::{Options, Session};
use crate::sim::SimProbe;
use seekwell_device::Preset;
use seekwell_device::ssd::{CheapSsd, DEFS, SsdParams};

/// A set of parameters to be tried. Times are in us, rates in MB/s.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub link: &'static str,
    pub link_rate: f64,
    pub depth: u32,
    pub channels: u32,
    pub units: u32,
    pub program_unit: u32,
    pub t_read: f64,
    pub t_fw_read: f64,
    pub channel_rate: f64,
    pub read_ahead_kib: f64,
    pub t_fw_write: f64,
    pub t_ack: f64,
    pub t_prog: f64,
    pub t_flush: f64,
    pub plp: bool,
}

/// Default of a parameter that the measurements do not determine: pages per program operation.
const PROGRAM_UNIT: u32 = 4;
/// Number of program operations per block.
const PROGRAMS: u32 = 256;
pub(crate) const ERASE_US: f64 = 3000.0;
pub(crate) const BUFFER_KIB: f64 = 8192.0;
const PAGE: f64 = 4096.0;
/// Size of a command in sequential reads and writes, bytes. Divided by a rate in MB/s, it gives a
/// time in us.
const COMMAND: f64 = 131_072.0;

impl Candidate {
    /// Returns the first estimate, by inverting formulas for the measurements.
    pub fn guess(facts: &Facts, m: &Shown) -> Candidate {
        let most = m.rate.value;
        let depth = facts.depth.unwrap_or(if most < 600.0 { 31 } else { 1023 });
        let link = match most {
            ..145.0 if depth <= 32 => "sata-1.5",
            ..300.0 if depth <= 32 => "sata-3",
            ..600.0 if depth <= 32 => "sata-6",
            ..3600.0 => "pcie-3x4",
            ..7500.0 => "pcie-4x4",
            _ => "pcie-5x4",
        };
        let latency = m.latency.value * 1e3;
        let serial = 1e6 / m.ceiling();
        let mut c = Candidate {
            link,
            link_rate: most,
            depth,
            channels: 8,
            units: 32,
            program_unit: PROGRAM_UNIT,
            t_read: (latency * 0.8).max(0.1),
            t_fw_read: (serial * 0.9).min(latency * 0.5).max(0.01),
            channel_rate: (most / 2.0).max(400.0),
            read_ahead_kib: 0.0,
            t_fw_write: 5.0,
            t_ack: 5.0,
            t_prog: 1000.0,
            t_flush: 0.0,
            plp: false,
        };
        if let Some(w) = &m.writes {
            c.t_fw_write = (1e6 / w.burst).min(w.latency.value * 1e3).max(0.01);
            c.t_ack = (w.latency.value * 1e3 - c.t_fw_write).max(0.0);
            c.t_prog = c.program_us(w.rate.value);
            let (one, idle) = (w.flush.0 * 1e3, w.idle_flush * 1e3);
            // A flush that waits for a program operation takes at least the program time.
            c.plp = one < 0.5 * c.t_prog;
            c.t_flush = if c.plp { one } else { one - c.t_prog }
                .max(idle.min(one))
                .max(0.0);
        }
        c
    }

    /// Returns the program time with which all units together write at `mb` MB/s, us.
    fn program_us(&self, mb: f64) -> f64 {
        let unit = f64::from(self.program_unit);
        let all = f64::from(self.units) * unit * PAGE / mb;
        (all - ERASE_US / f64::from(PROGRAMS) - unit * PAGE / self.channel_rate).max(0.1)
    }
    /// Returns the number of pages per block.
    pub fn block(&self) -> u32 {
        self.program_unit * PROGRAMS
    }

    /// Returns the candidate as the text of a preset.
    pub fn text(&self, capacity: u64) -> String {
        let capacity = capacity / 8 * 8;
        let e = "source = \"estimate\"";
        let lines = [
            format!("capacity = {{ value = {capacity}, unit = \"sectors\", {e} }}"),
            format!("link = {{ value = \"{}\", {e} }}", self.link),
            format!("plp = {{ value = {}, {e} }}", self.plp),
            self.line("link_rate", self.link_rate, "MB/s"),
            self.line("depth", f64::from(self.depth), "commands"),
            self.line("channels", f64::from(self.channels), "channels"),
            self.line("units", f64::from(self.units), "units"),
            self.line("program_unit", f64::from(self.program_unit), "pages"),
            self.line("block", f64::from(self.block()), "pages"),
            self.line("t_read", self.t_read, "us"),
            self.line("t_prog", self.t_prog, "us"),
            self.line("t_erase", ERASE_US, "us"),
            self.line("channel_rate", self.channel_rate, "MB/s"),
            self.line("t_fw_read", self.t_fw_read, "us"),
            self.line("t_fw_write", self.t_fw_write, "us"),
            self.line("t_ack", self.t_ack, "us"),
            self.line("t_flush", self.t_flush, "us"),
            self.line("buffer", BUFFER_KIB, "KiB"),
            self.line("rho", 0.07, "ratio"),
            self.line("read_ahead", self.read_ahead_kib, "KiB"),
        ];
        format!(
            "kind = \"ssd\"\nname = \"fitted\"\nsummary = \"a candidate\"\n\n[params]\n{}\n",
            lines.join("\n")
        )
    }
    fn line(&self, key: &str, value: f64, unit: &str) -> String {
        format!("{key} = {{ value = {value:.6}, unit = \"{unit}\", source = \"estimate\" }}")
            .replace(".000000,", ",")
    }

    /// Runs the measurements on a model with the parameters of the candidate.
    pub fn shows(&self, facts: &Facts, seed: u64, write: bool) -> Result<Shown, String> {
        let text = self.text(facts.capacity);
        let p = Preset::parse("ssd", DEFS, "candidate", &text).map_err(|e| e.to_string())?;
        let p = SsdParams::from_preset(&p).map_err(|e| e.what)?;
        let mut probe = SimProbe::new(CheapSsd::new(&p, seed), seed, 0.0).with_facts(|f| {
            f.depth = Some(self.depth);
            f.may_write = write;
        });
        let options = Options {
            budget_s: 1e6,
            seed,
        };
        let mut quiet = |_| {};
        let mut s = Session::new(&mut probe, options, &mut quiet);
        match shown(&mut s, Effort { ios: 2400, ms: 1e5 }) {
            Ok((m, None)) => Ok(m),
            Ok((_, Some(e))) | Err(e) => Err(e.to_string()),
        }
    }
}

/// Returns the relative error of a candidate's throughput over all depths: the root mean square of
/// the logarithm of the ratio.
fn misfit(m: &Shown, c: &Shown) -> f64 {
    let sum: f64 = m
        .depths
        .iter()
        .zip(&c.depths)
        .map(|(a, b)| {
            let d = libm::log(b.1 / a.1);
            d * d
        })
        .sum();
    libm::sqrt(sum / m.depths.len() as f64)
}

/// Corrects each parameter by the error of the measurement that depends on it.
fn improve(c: &mut Candidate, m: &Shown, got: &Shown) {
    let ratio = |want: f64, have: f64| (want / have).clamp(0.3, 3.0);
    let latency = (m.latency.value - got.latency.value) * 1e3;
    // At full depth the rate is limited by the firmware time, unless the number of units limits it.
    let serial = ratio(got.ceiling(), m.ceiling());
    let fw = (c.t_fw_read * serial).clamp(0.01, m.latency.value * 900.0);
    // With sequential reads, the firmware time of a command cannot exceed the command's time at the
    // measured rate.
    let fw = fw.min(COMMAND / m.rate.value);
    c.t_read = (c.t_read + latency - (fw - c.t_fw_read)).max(0.05);
    c.t_fw_read = fw;
    let rate = ratio(m.rate.value, got.rate.value);
    if got.rate.value > 0.97 * c.link_rate {
        c.link_rate *= rate;
    } else {
        // The rate of the candidate is limited by the flash channels and not by the link.
        c.channel_rate = (c.channel_rate * rate * rate).clamp(10.0, 1e5);
        c.link_rate = c.link_rate.max(m.rate.value);
    }
    if let (Some(want), Some(have)) = (&m.writes, &got.writes) {
        c.t_fw_write = (c.t_fw_write * ratio(have.burst, want.burst))
            .min(want.latency.value * 1e3)
            .min(COMMAND / want.rate.value)
            .max(0.01);
        c.t_ack = (c.t_ack + (want.latency.value - have.latency.value) * 1e3).max(0.0);
        c.t_prog = (c.t_prog * ratio(have.rate.value, want.rate.value)).clamp(0.1, 9e5);
        c.t_flush = (c.t_flush + (want.flush.0 - have.flush.0) * 1e3).max(0.0);
    }
}

/// Fits a candidate and returns it with its measurements.
pub(crate) fn fit(facts: &Facts, m: &Shown, seed: u64) -> Result<(Candidate, Shown), String> {
    let write = m.writes.is_some();
    let start = Candidate::guess(facts, m);
    let mut best: Option<(f64, Candidate, Shown)> = None;
    for units in [1u32, 2, 4, 8, 16, 32, 64, 128, 256] {
        let mut c = Candidate {
            units,
            channels: units.min(8),
            ..start.clone()
        };
        if let Some(w) = &m.writes {
            c.t_prog = c.program_us(w.rate.value);
        }
        let fits = u64::from(units) * u64::from(c.block()) * 8 <= facts.capacity;
        if !fits && units > 1 {
            break;
        }
        let mut got = c.shows(facts, seed, false)?;
        for _ in 0..3 {
            let before = c.clone();
            improve(&mut c, m, &got);
            if c == before {
                break;
            }
            got = c.shows(facts, seed, false)?;
        }
        let off = misfit(m, &got);
        if best.as_ref().is_none_or(|b| off < b.0 * 0.97) {
            best = Some((off, c, got));
        }
    }
    let (_, mut c, mut got) = best.ok_or("no candidate fits the capacity")?;
    // If the units are too few for the sequential rate, the contiguous runs in each unit are made
    // longer.
    while got.rate.value < 0.95 * m.rate.value && c.program_unit < 64 {
        let mut wider = Candidate {
            program_unit: c.program_unit * 2,
            t_prog: c.t_prog * 2.0,
            ..c.clone()
        };
        if u64::from(wider.units) * u64::from(wider.block()) * 8 > facts.capacity {
            break;
        }
        wider.channel_rate = start.channel_rate;
        wider.link_rate = start.link_rate;
        for _ in 0..3 {
            got = wider.shows(facts, seed, false)?;
            improve(&mut wider, m, &got);
        }
        c = wider;
    }
    // A single sequential reader can be faster than the candidate because of read-ahead. Several
    // sizes are tried.
    if m.rate_one > 1.15 * got.rate_one {
        let mut tries = vec![];
        for kib in [128.0, 256.0, 512.0, 1024.0, 2048.0] {
            let t = Candidate {
                read_ahead_kib: kib,
                ..c.clone()
            };
            let g = t.shows(facts, seed, false)?;
            tries.push((libm::fabs(libm::log(g.rate_one / m.rate_one)), t));
        }
        if let Some(t) = tries.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)) {
            c = t.1;
        }
    }
    for _ in 0..5 {
        got = c.shows(facts, seed, write)?;
        improve(&mut c, m, &got);
    }
    got = c.shows(facts, seed, write)?;
    Ok((c, got))
}
