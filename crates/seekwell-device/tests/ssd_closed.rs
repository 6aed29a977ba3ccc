//! Closed formulas: results that follow from the parameters without a simulation. They check the
//! models.

use seekwell_device::ssd::SsdParams;
use seekwell_device::ssd::wa::write_amplification;

/// The closed formulas with the parameters of one drive. Rates are in commands per second or MB/s
/// (10^6 bytes per second), times in us.
#[derive(Debug, Clone)]
pub struct ClosedForms {
    p: SsdParams,
}

impl ClosedForms {
    /// Makes the formulas for these parameters.
    pub fn new(p: &SsdParams) -> Self {
        ClosedForms { p: p.clone() }
    }
    fn page_link_ns(&self) -> f64 {
        self.p.cmd_ns as f64 + 4096e3 / self.p.link_mb
    }
    /// Returns the latency of a random 4 KiB read on an idle drive, in us.
    pub fn read_us(&self) -> f64 {
        let p = &self.p;
        let add: u64 = p.read_add_ns.iter().sum();
        let ns = p.fw_read_ns + p.lat_ns + p.read_ns + p.xfer_ns;
        (ns as f64 + add as f64 / 3.0 + self.page_link_ns()) / 1e3
    }
    /// Returns an upper bound of the random 4 KiB reads per second at any queue depth.
    pub fn read_ceiling(&self) -> f64 {
        let p = &self.p;
        let add: u64 = p.read_add_ns.iter().sum();
        let unit = p.read_ns as f64 + add as f64 / 3.0 + p.xfer_ns as f64;
        let stages = [
            p.fw_read_ns as f64,
            p.xfer_ns as f64 / f64::from(p.channels),
            self.page_link_ns(),
            unit / f64::from(p.units),
        ];
        1e9 / stages.into_iter().fold(0.0, f64::max)
    }
    /// Returns the mean number of busy units under `depth` random reads.
    pub fn busy_units(&self, depth: f64) -> f64 {
        let n = f64::from(self.p.units);
        n * (1.0 - libm::pow(1.0 - 1.0 / n, depth))
    }
    fn program_rate(&self, wa: f64) -> f64 {
        let p = &self.p;
        let (k, xfer) = (f64::from(p.k), p.xfer_ns as f64);
        let copies = if p.copyback { 0.0 } else { 2.0 * k * xfer };
        let wa = wa * p.write_factor;
        let each = p.prog_ns as f64
            + k * xfer
            + (wa - 1.0) * (p.prog_ns as f64 + p.read_ns as f64 + copies)
            + wa * p.erase_ns as f64 * k / f64::from(p.block);
        f64::from(p.units) * k * 1e9 / each
    }
    /// Returns the rate of sequential writes outside the fast region, in MB/s.
    pub fn sequential_write_mb(&self) -> f64 {
        (self.program_rate(1.0) * 4096.0 / 1e6).min(self.p.link_mb)
    }
    /// Returns the random 4 KiB writes per second at write amplification `wa`.
    pub fn random_write(&self, wa: f64) -> f64 {
        self.program_rate(wa)
            .min(1e9 / self.p.fw_write_ns as f64)
            .min(1e9 / self.page_link_ns())
    }
    /// Returns the random 4 KiB writes per second over the whole capacity in the steady state.
    pub fn steady_random_write(&self) -> f64 {
        self.random_write(write_amplification(self.p.rho))
    }
}
