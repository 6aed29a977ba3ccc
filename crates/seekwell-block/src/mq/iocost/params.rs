//! The assumed performance of a device: cost coefficients, latency targets, and bounds for the rate
//! of its clock.

use seekwell_core::{IoCostModel, IoCostQos};

/// One second, in units of the device's clock.
pub(super) const PER_SEC: u64 = 1 << 37;
/// One microsecond at a rate of 100 %, in units of the device's clock.
pub(super) const PER_US: u64 = PER_SEC / 1_000_000;
const PAGE_BYTES: u64 = 4096;
/// 100 % in ppm.
pub(super) const MILLION: u64 = 1_000_000;

/// The classes of devices that the kernel distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Rotational,
    SsdDepthOne,
    Ssd,
    FastSsd,
}

impl Class {
    /// Returns the initial class of a device.
    pub fn for_device(rotational: bool, depth: u32) -> Self {
        match (rotational, depth) {
            (true, _) => Class::Rotational,
            (_, 1) => Class::SsdDepthOne,
            _ => Class::Ssd,
        }
    }
    fn latency_us(self) -> u32 {
        match self {
            Class::Rotational => 250_000,
            Class::SsdDepthOne | Class::Ssd => 25_000,
            Class::FastSsd => 5_000,
        }
    }
    fn model(self) -> IoCostModel {
        let [rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops] = match self {
            Class::Rotational => [174_019_176, 41_708, 370, 178_075_866, 42_705, 378],
            Class::SsdDepthOne => [245_855_193, 61_575, 6_946, 141_365_009, 33_716, 26_796],
            Class::Ssd => [488_636_629, 8_932, 8_518, 427_891_549, 28_755, 21_940],
            Class::FastSsd => [
                3_102_524_156,
                724_816,
                778_122,
                1_742_780_862,
                425_702,
                443_193,
            ],
        };
        IoCostModel {
            rbps,
            rseqiops,
            rrandiops,
            wbps,
            wseqiops,
            wrandiops,
        }
    }
}

/// Costs in one direction: of a page, of a sequential request, and of a random request.
#[derive(Clone, Copy, Debug)]
struct Coefficients {
    page: u64,
    sequential: u64,
    random: u64,
}

impl Coefficients {
    fn from_rates(bps: u64, sequential: u64, random: u64) -> Self {
        let page = PER_SEC.div_ceil(bps.div_ceil(PAGE_BYTES).max(1));
        let request = |iops: u64| PER_SEC.div_ceil(iops.max(1)).saturating_sub(page);
        Coefficients {
            page,
            sequential: request(sequential),
            random: request(random),
        }
    }
}

/// All parameters of a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    costs: [Coefficients; 2],
    /// Allowed misses of reads and of writes, ppm. A million means that there is no target.
    pub allowed_ppm: [u64; 2],
    /// Latency targets of reads and of writes, ns.
    pub latency_ns: [u64; 2],
    pub period_us: u64,
    /// Lower and upper bound for the rate of the clock, per microsecond.
    pub rates: [u64; 2],
}

/// If at least this fraction of misses is allowed (ppm), a period is two latencies long. A smaller
/// fraction needs longer periods.
const MISSES_OF_TWO: u64 = 50_000;

impl Params {
    pub fn for_class(class: Class, qos: &IoCostQos, model: Option<&IoCostModel>) -> Self {
        let usual = class.model();
        let m = model.unwrap_or(&usual);
        let goal = |pct: Option<u32>| u64::from(pct.unwrap_or(0)).min(MILLION);
        let us = |lat: Option<u32>| u64::from(lat.unwrap_or(class.latency_us()));
        let (goals, lats) = (
            [goal(qos.rpct_ppm), goal(qos.wpct_ppm)],
            [us(qos.rlat_us), us(qos.wlat_us)],
        );
        // The direction with the larger latency target determines the period. If both are equal,
        // reads do.
        let longest = usize::from(lats[0] < lats[1]);
        let times = match goals[longest] {
            0 => 2,
            goal => ((MILLION - goal) / MISSES_OF_TWO).max(2),
        };
        let rate = |pct: u32| (u64::from(pct) * PER_US).div_ceil(100);
        Params {
            costs: [
                Coefficients::from_rates(m.rbps, m.rseqiops, m.rrandiops),
                Coefficients::from_rates(m.wbps, m.wseqiops, m.wrandiops),
            ],
            allowed_ppm: goals.map(|g| MILLION - g),
            latency_ns: lats.map(|l| l * 1000),
            period_us: (lats[longest] * times).clamp(1000, 1_000_000),
            rates: [
                rate(qos.min_pct.unwrap_or(1)),
                rate(qos.max_pct.unwrap_or(10_000)),
            ],
        }
    }
    /// Returns the cost of the bytes of a transfer.
    pub fn of_size(&self, write: bool, sectors: u32) -> u64 {
        let pages = u64::from(sectors / 8).max(1);
        pages.saturating_mul(self.costs[usize::from(write)].page)
    }
    /// Returns the cost of a bio. `distance` is its distance in sectors from the end of the
    /// previous bio.
    pub fn of_bio(&self, write: bool, sectors: u32, distance: u64) -> u64 {
        let c = &self.costs[usize::from(write)];
        let request = match distance >> 3 > 4096 {
            true => c.random,
            false => c.sequential,
        };
        request.saturating_add(self.of_size(write, sectors))
    }
}
