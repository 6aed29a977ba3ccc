//! A calibration in progress: the probe, the remaining budget, and the results so far.

use crate::fit::{Curve, Estimate, Fit, Kind};
use crate::probe::{Io, Probe, Stop, Timed};
use rand::RngCore;
use seekwell_core::rng::{self, Pcg64Mcg};

/// Options of a calibration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Time budget for the whole calibration, s.
    pub budget_s: f64,
    /// Seed of the random addresses that are probed.
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
    /// Name of the current measurement.
    pub stage: &'static str,
    /// Time used, s.
    pub used_s: f64,
    /// Time budget, s.
    pub budget_s: f64,
}

/// Size of the small reads that most probes use, sectors: 4 KiB.
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
    /// Result of the comparison with the fitted model, see [`Fit::demerit`].
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
    /// Returns the size of the device, sectors.
    pub(crate) fn capacity(&self) -> u64 {
        self.probe.facts().capacity
    }
    pub(crate) fn facts(&self) -> &crate::probe::Facts {
        self.probe.facts()
    }
    pub(crate) fn seed(&self) -> u64 {
        self.options.seed
    }
    /// Returns the factor for the number of samples, from 0.1 to 4. It is 1 with a budget of three
    /// minutes, which is enough for a full calibration of a disk.
    pub(crate) fn scale(&self) -> f64 {
        (self.options.budget_s / 180.0).clamp(0.1, 4.0)
    }
    /// Returns `n` times the factor of [`Session::scale`], but at least `least`.
    pub(crate) fn count(&self, n: usize, least: usize) -> usize {
        ((n as f64 * self.scale()) as usize).max(least)
    }
    /// Returns the time used so far, s.
    pub(crate) fn used_s(&self) -> f64 {
        self.probe.now().saturating_sub(self.start) as f64 / 1e9
    }
    /// Returns the time left, s.
    pub(crate) fn left_s(&self) -> f64 {
        (self.options.budget_s - self.used_s()).max(0.0)
    }
    /// Returns how many I/Os of about `each_ms` fit into a fraction `share` of the remaining
    /// budget, but at most `n` and at least 8.
    pub(crate) fn within(&self, n: usize, each_ms: f64, share: f64) -> usize {
        let most = self.left_s() * share * 1e3 / each_ms.max(1e-4);
        n.min(most as usize).max(8)
    }
    /// Starts the next stage and reports its name.
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
    /// Runs I/Os with at most `depth` outstanding.
    pub(crate) fn run(&mut self, ios: &[Io], depth: usize) -> Result<&[Timed], Stop> {
        self.check()?;
        self.probe.run(ios, depth, &mut self.times)?;
        self.ios += ios.len() as u64;
        Ok(&self.times)
    }
    /// Sends one I/O and waits for its completion.
    pub(crate) fn send(&mut self, io: Io) -> Result<Timed, Stop> {
        Ok(self.run(&[io], 1)?[0])
    }
    /// Reads 4 KiB and waits for the completion.
    pub(crate) fn read(&mut self, lba: u64) -> Result<Timed, Stop> {
        self.send(Io::read(lba, SMALL))
    }
    /// Waits for `ms` milliseconds.
    pub(crate) fn sleep_ms(&mut self, ms: f64) -> Result<(), Stop> {
        self.check()?;
        self.probe.sleep((ms * 1e6) as u64)
    }
    /// Returns a uniform random number in [0, n).
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(n.max(1))) >> 64) as u64
    }
    /// Returns a random aligned address for a small read.
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
    /// Records a note.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
    /// Returns the estimates so far.
    pub(crate) fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }
    /// Returns why the results so far cannot be trusted, if a model of this kind was fitted.
    pub(crate) fn misfit(&self, kind: Kind) -> Option<String> {
        crate::misfit::misfit(kind, &self.curves, self.demerit)
    }
    /// Discards the results so far, for another attempt with other addresses.
    pub(crate) fn again(&mut self, why: &str) {
        self.estimates.clear();
        self.curves.clear();
        self.notes.clear();
        self.demerit = None;
        self.note(format!("an attempt was repeated: {why}"));
    }
    /// Ends the calibration and returns its result.
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
