//! The cleaning cost per written page. It depends on the share of the drive that holds data, the
//! share that is written at random, and the duration of random writing.

use super::super::params::{SsdParams, State};
use super::super::regions::{Kind, REGION, Regions};
use super::super::wa::{ramp, write_amplification};

/// Background work per written page; see the module.
#[derive(Debug, Clone)]
pub(super) struct Wear {
    user: f64,
    physical: f64,
    /// Pages that can be written at random before the first cleaning.
    budget: f64,
    /// Pages written since then, at random or to empty regions.
    written: f64,
    aged: bool,
    /// Time to clean one page by copying, and erase time per written page, ns.
    copy_ns: f64,
    erase_ns: f64,
    factor: f64,
    /// Write amplification of random writes.
    pub wa: f64,
    /// Background work per page written at random, and per page written in order, ns.
    pub random_ns: u64,
    pub ordered_ns: u64,
    /// Usable pages of the fast region.
    pub slc_limit: u64,
    slc: (u64, u64),
    /// Number of programs until the figures are recomputed.
    left: u32,
    period: u32,
}

impl Wear {
    pub fn new(p: &SsdParams, regions: &Regions) -> Self {
        let k = f64::from(p.k);
        let copies = if p.copyback { 0 } else { 2 } * u64::from(p.k) * p.xfer_ns;
        let mut w = Wear {
            user: p.pages as f64,
            physical: p.pages as f64 * (1.0 + p.rho),
            budget: 0.0,
            written: 0.0,
            aged: matches!(p.state, State::Used | State::Steady),
            copy_ns: (p.prog_ns + p.read_ns + copies) as f64 / k,
            erase_ns: p.erase_ns as f64 / f64::from(p.block),
            factor: p.write_factor,
            wa: 1.0,
            random_ns: 0,
            ordered_ns: 0,
            slc_limit: 0,
            slc: (p.slc_static, p.slc_pages),
            left: 0,
            period: ((p.spare() / k / 256.0) as u32).clamp(16, 1024),
        };
        w.budget = w.physical - w.valid(regions);
        w.refresh(regions);
        w
    }
    fn valid(&self, regions: &Regions) -> f64 {
        let n = regions.count(Kind::Ordered) + regions.count(Kind::Random);
        ((n * REGION) as f64).min(self.user)
    }
    /// Records pages written at random or to empty regions.
    #[inline]
    pub fn wrote(&mut self, pages: u32) {
        self.written += f64::from(pages);
    }
    /// Counts a program, and recomputes the figures from time to time.
    #[inline]
    pub fn tick(&mut self, regions: &Regions) {
        if self.left == 0 {
            self.refresh(regions);
        }
        self.left -= 1;
    }
    /// Recomputes the figures.
    pub fn refresh(&mut self, regions: &Regions) {
        self.left = self.period;
        let valid = self.valid(regions);
        let random = ((regions.count(Kind::Random) * REGION) as f64).min(self.user);
        let spare = self.physical - valid;
        if random == 0.0 {
            // The drive was erased or rewritten in order: start over.
            self.aged = false;
            self.written = 0.0;
            self.budget = spare;
            self.wa = 1.0;
        } else {
            let steady = write_amplification(spare / random);
            let share = if self.aged {
                1.0
            } else {
                ramp(self.written - self.budget, self.physical - self.user)
            };
            self.wa = 1.0 + (steady - 1.0) * share;
        }
        let cost = |wa: f64| {
            let wa = wa * self.factor;
            ((wa - 1.0) * self.copy_ns + wa * self.erase_ns) as u64
        };
        self.random_ns = cost(self.wa);
        self.ordered_ns = cost(1.0);
        let (fixed, all) = self.slc;
        let free = 1.0 - valid / self.user;
        self.slc_limit = fixed + ((all - fixed) as f64 * free) as u64;
    }
}
