//! The clock of a device: its rate, and the rules that slow it down or speed it up.

use super::params::{MILLION, PER_US, Params};

/// Waits for tags: above the first value the device is too busy, up to the second it is not;
/// percent.
const RQ_WAIT_PCT: (u64, u64) = (5, 3);
/// The part of the allowed misses that a device may have and still count as not busy, percent.
const UNBUSY_PCT: u64 = 75;
const MOST_BUSY: i32 = 1000;
/// Percentage by which a rate outside its bounds moves back.
const BACK_PCT: u64 = 4;

/// Measurements of a period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Number of reads and writes within their latency and beyond it.
    pub met: [u64; 2],
    pub missed: [u64; 2],
    pub rq_wait_ns: u64,
}

/// Results of a period, as the tracepoint of the clock shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rate before and after, per microsecond; 137438 is 100 %.
    pub rates: [u64; 2],
    /// Above 0: too busy for this many periods; below 0: some cgroup could have used more.
    pub busy: i32,
    /// Reads and writes that missed their latency, ppm.
    pub missed_ppm: [u64; 2],
    /// Waits for tags, percent of the period.
    pub rq_wait_pct: u64,
    /// Number of cgroups whose oldest bio is older than a period.
    pub lagging: u32,
    /// Number of cgroups that were short of budget.
    pub short: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// The adjusted rate (`base`), and the rate that also compensates unused time (`rate`).
    pub base: u64,
    pub rate: u64,
    pub busy: i32,
    /// Start of the period, in real time and on this clock.
    pub began_us: u64,
    pub began: i64,
    /// Time thrown away (below 0).
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
    /// Percentage by which the rate changes after this many periods.
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
    /// Evaluates a period (`ioc_timer_fn`, `ioc_adjust_base_vrate`).
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
    /// Returns the unused time within the next period, at a rate between half and double
    /// (`ioc_refresh_vrate`).
    pub fn make_up(&mut self, period_us: u64) {
        let base = self.base as i64;
        let more = (-self.error / period_us.max(1) as i64).clamp(-base / 2, base);
        self.rate = (base + more) as u64;
        self.error += more * period_us as i64;
        let most = base * period_us as i64;
        self.error = self.error.clamp(-most, most);
    }
}
