//! The clock of a device: its rate, and the rules that change the rate.

use super::params::{MILLION, PER_US, Params};

/// Limits for the time that requests wait for tags, percent of a period. Above the first limit, the
/// device is too busy. Up to the second limit, it is not busy.
const RQ_WAIT_PCT: (u64, u64) = (5, 3);
/// The device is not busy if it has at most this percentage of the allowed misses.
const UNBUSY_PCT: u64 = 75;
const MOST_BUSY: i32 = 1000;
/// Percentage by which a rate outside its bounds moves back per period.
const BACK_PCT: u64 = 4;

/// Measurements of a period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Number of reads and of writes that met their latency target. `missed`: those that did not.
    pub met: [u64; 2],
    pub missed: [u64; 2],
    pub rq_wait_ns: u64,
}

/// Results of a period, in the form of the kernel's tracepoint for the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rate before and after the period, per microsecond. 137438 is 100 %.
    pub rates: [u64; 2],
    /// Above 0: number of periods for which the device was too busy. Below 0: number of periods in
    /// which some cgroup could have used more.
    pub busy: i32,
    /// Fraction of reads and of writes that missed their latency target, ppm.
    pub missed_ppm: [u64; 2],
    /// Time that requests waited for tags, percent of the period.
    pub rq_wait_pct: u64,
    /// Number of cgroups whose oldest bio is older than a period.
    pub lagging: u32,
    /// Number of cgroups whose budget was too small.
    pub short: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// The adjusted rate (`base`). `rate` also compensates for unused time.
    pub base: u64,
    pub rate: u64,
    pub busy: i32,
    /// Start of the period, in real time and on this clock.
    pub began_us: u64,
    pub began: i64,
    /// Unused time that the clock must give back, as a negative number.
    pub error: i64,
}

impl Clock {
    pub fn new() -> Self {
        Clock {
            base: PER_US,
            rate: PER_US,
            busy: 0,
            began_us: 0,
            began: 0,
            error: 0,
        }
    }
    pub fn at(&self, us: u64) -> i64 {
        self.began + (us.saturating_sub(self.began_us) * self.rate) as i64
    }
    pub fn begin(&mut self, us: u64) {
        (self.began, self.began_us) = (self.at(us), us);
    }
    /// Returns the percentage by which the rate changes after this number of busy periods.
    fn step_pct(busy: i32) -> u64 {
        match busy.unsigned_abs() {
            0..4 => 0,
            4..20 => 1,
            20..36 => 2,
            36..44 => 4,
            44..52 => 8,
            _ => 16,
        }
    }
    /// Evaluates a period and adjusts the rate (`ioc_timer_fn`, `ioc_adjust_base_vrate`).
    pub fn judge(&mut self, p: &Params, seen: &Seen, short: u32, lagging: u32) -> Report {
        let ppm = |dir: usize| {
            let all = seen.met[dir] + seen.missed[dir];
            (seen.missed[dir] * MILLION).div_ceil(all.max(1))
        };
        let missed_ppm = [ppm(0), ppm(1)];
        let rq_wait_pct = seen.rq_wait_ns * 100 / (p.period_us * 1000);
        let within = |share: u64| {
            let good = |dir: usize| missed_ppm[dir] <= p.allowed_ppm[dir] * share / 100;
            good(0) && good(1)
        };
        if rq_wait_pct > RQ_WAIT_PCT.0 || !within(100) {
            self.busy = self.busy.max(0) + 1;
        } else if rq_wait_pct <= RQ_WAIT_PCT.1 && within(UNBUSY_PCT) && short > 0 {
            self.busy = self.busy.min(0) - i32::from(lagging == 0);
        } else {
            self.busy = 0;
        }
        self.busy = self.busy.clamp(-MOST_BUSY, MOST_BUSY);
        let old = self.base;
        if self.busy != 0 && !(self.busy < 0 && lagging > 0) {
            self.base = self.adjusted(p);
        }
        Report {
            rates: [old, self.base],
            busy: self.busy,
            missed_ppm,
            rq_wait_pct,
            lagging,
            short,
        }
    }
    fn adjusted(&self, p: &Params) -> u64 {
        let [least, most] = p.rates;
        if self.base < least {
            (self.base * (100 + BACK_PCT)).div_ceil(100).min(least)
        } else if self.base > most {
            (self.base * (100 - BACK_PCT)).div_ceil(100).max(most)
        } else {
            let pct = Clock::step_pct(self.busy);
            let pct = match self.busy > 0 {
                true => 100 - pct,
                false => 100 + pct,
            };
            (self.base * pct).div_ceil(100).clamp(least, most)
        }
    }
    /// Gives back the unused time within the next period. The rate stays between half and double
    /// the adjusted rate (`ioc_refresh_vrate`).
    pub fn make_up(&mut self, period_us: u64) {
        let base = self.base as i64;
        let more = (-self.error / period_us.max(1) as i64).clamp(-base / 2, base);
        self.rate = (base + more) as u64;
        self.error += more * period_us as i64;
        let most = base * period_us as i64;
        self.error = self.error.clamp(-most, most);
    }
}
