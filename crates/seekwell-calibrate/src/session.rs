//! A calibration in progress: the probe, the remaining budget, and the findings so far.

use crate::fit::{Curve, Estimate, Fit, Kind};
use crate::probe::{Io, Probe, Stop, Timed};
use rand::RngCore;
use seekwell_core::rng::{self, Pcg64Mcg};

/// Limits and options set by the user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Time budget for the whole calibration, s.
    pub budget_s: f64,
    /// Seed of the probed places.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            budget_s: 180.0,
            seed: 1,
        }
    }
}

/// Progress of the calibration, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// What is being measured.
    pub stage: &'static str,
    /// Time used, s.
    pub used_s: f64,
    /// Time budget, s.
    pub budget_s: f64,
}

/// Sectors of the small reads that most probes use: 4 KiB.
pub(crate) const SMALL: u32 = 8;

/// A calibration in progress.
pub struct Session<'a> {
    probe: &'a mut dyn Probe,
    tell: &'a mut dyn FnMut(Progress),
    rng: Pcg64Mcg,
    start: u64,
    options: Options,
    stage: &'static str,
    told: u64,
    ios: u64,
    times: Vec<Timed>,
    estimates: Vec<Estimate>,
    curves: Vec<Curve>,
    notes: Vec<String>,
    /// See [`Fit::demerit`].
    pub(crate) demerit: Option<crate::fit::Demerit>,
}

impl<'a> Session<'a> {
    /// Starts a calibration.
    pub fn new(
        probe: &'a mut dyn Probe,
        options: Options,
        tell: &'a mut dyn FnMut(Progress),
    ) -> Self {
        Session {
            start: probe.now(),
            probe,
            tell,
            rng: rng::stream(options.seed, "calibrate"),
            options,
            stage: "",
            told: 0,
            ios: 0,
            times: vec![],
            estimates: vec![],
            curves: vec![],
            notes: vec![],
            demerit: None,
        }
    }
    /// Sectors of the device.
    pub(crate) fn capacity(&self) -> u64 {
        self.probe.facts().capacity
    }
    pub(crate) fn facts(&self) -> &crate::probe::Facts {
        self.probe.facts()
    }
    pub(crate) fn seed(&self) -> u64 {
        self.options.seed
    }
    /// Scale of the sample counts, within limits: 1 at a budget of three minutes, which allows a
    /// full calibration of a disk.
    pub(crate) fn scale(&self) -> f64 {
        (self.options.budget_s / 180.0).clamp(0.1, 4.0)
    }
    /// `n` samples at a scale of 1, at least `least`.
    pub(crate) fn count(&self, n: usize, least: usize) -> usize {
        ((n as f64 * self.scale()) as usize).max(least)
    }
    /// Seconds used so far.
    pub(crate) fn used_s(&self) -> f64 {
        self.probe.now().saturating_sub(self.start) as f64 / 1e9
    }
    /// Seconds left.
    pub(crate) fn left_s(&self) -> f64 {
        (self.options.budget_s - self.used_s()).max(0.0)
    }
    /// `n` I/Os of about `each_ms`, or as many as fit into this share of the remaining budget.
    pub(crate) fn within(&self, n: usize, each_ms: f64, share: f64) -> usize {
        let most = self.left_s() * share * 1e3 / each_ms.max(1e-4);
        n.min(most as usize).max(8)
    }
    /// Starts the next stage.
    pub(crate) fn stage(&mut self, name: &'static str) {
        self.stage = name;
        self.report();
    }
    fn report(&mut self) {
        self.told = self.probe.now();
        let p = Progress {
            stage: self.stage,
            used_s: self.used_s(),
            budget_s: self.options.budget_s,
        };
        (self.tell)(p);
    }
    fn check(&mut self) -> Result<(), Stop> {
        if self.probe.now().saturating_sub(self.told) > 100_000_000 {
            self.report();
        }
        if self.used_s() > self.options.budget_s {
            return Err(Stop::Budget);
        }
        Ok(())
    }
    /// Runs I/O at a depth.
    pub(crate) fn run(&mut self, ios: &[Io], depth: usize) -> Result<&[Timed], Stop> {
        self.check()?;
        self.probe.run(ios, depth, &mut self.times)?;
        self.ios += ios.len() as u64;
        Ok(&self.times)
    }
    /// Sends one I/O and waits for it.
    pub(crate) fn one(&mut self, io: Io) -> Result<Timed, Stop> {
        Ok(self.run(&[io], 1)?[0])
    }
    /// One small read, waited for.
    pub(crate) fn read(&mut self, lba: u64) -> Result<Timed, Stop> {
        self.one(Io::read(lba, SMALL))
    }
    /// Lets time pass.
    pub(crate) fn sleep_ms(&mut self, ms: f64) -> Result<(), Stop> {
        self.check()?;
        self.probe.sleep((ms * 1e6) as u64)
    }
    /// Uniform over [0, n).
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(n.max(1))) >> 64) as u64
    }
    /// A random aligned place for a small read.
    pub(crate) fn anywhere(&mut self) -> u64 {
        let n = self.capacity() / u64::from(SMALL);
        self.below(n) * u64::from(SMALL)
    }
    /// Records an estimate.
    pub(crate) fn found(&mut self, e: Estimate) {
        self.estimates.push(e);
    }
    /// Records a curve.
    pub(crate) fn curve(&mut self, c: Curve) {
        self.curves.push(c);
    }
    /// Records a remark.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
    /// The estimates so far.
    pub(crate) fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }
    /// Ends the calibration.
    pub(crate) fn finish(self, kind: Kind, because: String, cut: Option<Stop>) -> Fit {
        Fit {
            kind,
            because,
            facts: self.probe.facts().clone(),
            seconds: self.used_s(),
            estimates: self.estimates,
            curves: self.curves,
            notes: self.notes,
            demerit: self.demerit,
            ios: self.ios,
            cut,
        }
    }
}
