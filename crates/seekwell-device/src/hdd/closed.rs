//! Closed formulas for the times of a hard disk. Tests compare the models with these formulas, and
//! the fast model uses them.

use super::geometry::Geometry;
use super::params::{HddParams, Layout};
use super::seek::SeekCurve;
use crate::error::ParamError;
use libm::{ceil, pow};

/// Exponent of destaging throughput as a function of the number of extents (up to 256): each
/// doubling multiplies throughput by 2^[`DESTAGE_GAMMA`].
pub const DESTAGE_GAMMA: f64 = 0.175;

/// Closed formulas with the parameters of one drive. Times are in ms.
#[derive(Debug, Clone)]
pub struct ClosedForms {
    p: HddParams,
    geometry: Geometry,
    curve: SeekCurve,
}

impl ClosedForms {
    /// Makes the formulas of a drive.
    pub fn new(p: &HddParams) -> Result<Self, ParamError> {
        let geometry = Geometry::new(p)?;
        let curve = SeekCurve::new(&p.seek, geometry.cylinders())?;
        Ok(ClosedForms {
            p: p.clone(),
            geometry,
            curve,
        })
    }
    /// Returns the mapping of addresses to positions of this drive.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    pub(super) fn curve(&self) -> &SeekCurve {
        &self.curve
    }
    /// Returns the sustained rate at an address, in MB/s. The rate is the bytes of a cylinder,
    /// divided by the time of its revolutions and of the switches between its tracks.
    pub fn sustained_mb(&self, lba: u64) -> f64 {
        let (t, h) = (self.p.revolution_ms(), f64::from(self.p.surfaces));
        let s = f64::from(self.geometry.track_sectors(lba));
        let skew = |ms: f64| (ceil(ms / t * s) + 1.0) / s * t;
        let band = self
            .p
            .head_switch_ms
            .max(self.p.seek_track_ms)
            .max(self.p.band_switch_ms);
        let (steps, step, ends) = match self.p.layout {
            Layout::Cylinder => (h - 1.0, self.p.head_switch_ms, 1.0),
            Layout::Serpentine(w) => {
                let w = f64::from(w);
                (h * (w - 1.0) / w, self.p.seek_track_ms, h / w)
            }
        };
        512.0 * s * h / (h * t + steps * skew(step) + ends * skew(band)) / 1e3
    }
    /// Returns the mean number of sectors per track over all addresses.
    pub fn mean_track(&self) -> f64 {
        let n = 1000u64;
        let at = |i| u64::from(self.geometry.track_sectors(self.p.capacity / n * i));
        (0..n).map(at).sum::<u64>() as f64 / n as f64
    }
    /// Returns the mean time of a random read of `n` sectors at depth 1, in ms. Uniformly
    /// distributed addresses are more often on the long outer tracks. Therefore the mean seek time
    /// is 0.99 of the mean over cylinders.
    pub fn random_read_ms(&self, n: u32) -> f64 {
        let t = self.p.revolution_ms();
        let seek = 0.99 * self.curve.mean_ms(self.geometry.cylinders());
        self.p.overhead_ms
            + seek
            + t / 2.0
            + f64::from(n) * t / self.mean_track()
            + 512.0 / self.p.bus_mb / 1e3
            + self.p.status_ms
    }
    /// Returns the time to destage `n` scattered extents of 4 KiB, in ms.
    pub fn flush_ms(&self, n: u32) -> f64 {
        let window = if self.p.destage_window == 0 {
            u32::MAX
        } else {
            self.p.destage_window
        };
        let one = self.random_read_ms(8) + self.p.write_settle_ms;
        f64::from(n) * one / pow(f64::from(n.min(window).max(1)), DESTAGE_GAMMA)
    }
    /// Returns the period of a loop that writes the same block, sends a FLUSH and pauses for
    /// `think` ms. The period is a whole number of revolutions, in ms.
    pub fn commit_ms(&self, think: f64, n: u32, lba: u64) -> f64 {
        let t = self.p.revolution_ms();
        let s = f64::from(self.geometry.track_sectors(lba));
        let own = self.p.hit_overhead_ms + self.p.overhead_ms + f64::from(n) * t / s;
        t * ceil((think + own) / t)
    }
}
