//! The cleaning work per written page. It depends on the fraction of the drive that holds data, on
//! the fraction that was written at random, and on how long random writing has lasted.

use super::super::params::{SsdParams, State};
use super::super::regions::{Kind, REGION, Regions};
use super::super::wa::{ramp, write_amplification};

/// Computes the background work per written page; see the module.
#[derive(Debug, Clone)]
pub(super) struct Wear {
    user: f64,
    physical: f64,
    /// Number of pages that can be written at random before the first cleaning.
    budget: f64,
    /// Number of pages written at random or to empty regions since the drive was last empty or in
    /// order.
    written: f64,
    aged: bool,
    /// Time to copy one page in cleaning, and erase time per written page, in ns.
    copy_ns: f64,
    erase_ns: f64,
    factor: f64,
    /// Current write amplification of random writes.
    pub wa: f64,
    /// Background work in ns: per page written at random (`random_ns`), and per page written in
    /// order (`ordered_ns`).
    pub random_ns: u64,
    pub ordered_ns: u64,
    /// Current size of the fast region, in pages.
    pub slc_limit: u64,
    slc: (u64, u64),
    /// Number of programs until the values are computed again.
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
    /// Counts pages that were written at random or to empty regions.
    #[inline]
    pub fn wrote(&mut self, pages: u32) {
        self.written += f64::from(pages);
    }
    /// Counts a program. Computes the values again after a fixed number of programs.
    #[inline]
    pub fn tick(&mut self, regions: &Regions) {
        if self.left == 0 {
            self.refresh(regions);
        }
        self.left -= 1;
    }
    /// Computes all values from the current state of the regions.
    pub fn refresh(&mut self, regions: &Regions) {
        self.left = self.period;
        let valid = self.valid(regions);
        let random = ((regions.count(Kind::Random) * REGION) as f64).min(self.user);
        let spare = self.physical - valid;
        if random == 0.0 {
            // The drive was erased or rewritten in order, so its history is irrelevant.
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
