//! The clock of a device: how fast it goes, and what makes it slower or faster.

use super::params::{MILLION, PER_US, Params};

/// Waits for tags from which a device is too busy, and up to which it is not, percent.
const RQ_WAIT_PCT: (u64, u64) = (5, 3);
/// Of the misses allowed, what a device that is not too busy may have.
const UNBUSY_PCT: u64 = 75;
const MOST_BUSY: i32 = 1000;
/// By how much a rate outside its bounds goes back, percent.
const BACK_PCT: u64 = 4;

/// What a period saw.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Reads and writes that were within their latency, and that were not.
    pub met: [u64; 2],
    pub missed: [u64; 2],
    pub rq_wait_ns: u64,
}

/// What was found at the end of a period, as the tracepoint of the clock shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rate before and after, a microsecond; 137438 is 100 %.
    pub rates: [u64; 2],
    /// Above 0: too busy for so many periods; below: some cgroup could have used more.
    pub busy: i32,
    /// Reads and writes that missed their latency, ppm.
    pub missed_ppm: [u64; 2],
    /// Waits for tags, percent of the period.
    pub rq_wait_pct: u64,
    /// Cgroups whose oldest bio is older than a period.
    pub lagging: u32,
    /// Cgroups that were short of budget.
    pub short: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// As adjusted, and with what makes up for time that nobody used.
    pub base: u64,
    pub rate: u64,
    pub busy: i32,
    /// When the period began, and what the clock said.
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
    /// By how many percent the rate changes after so many periods.
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
    /// Judges a period (`ioc_timer_fn`, `ioc_adjust_base_vrate`).
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
    /// What was thrown away is given back within the next period, between half and double the
    /// rate (`ioc_refresh_vrate`).
    pub fn make_up(&mut self, period_us: u64) {
        let base = self.base as i64;
        let more = (-self.error / period_us.max(1) as i64).clamp(-base / 2, base);
        self.rate = (base + more) as u64;
        self.error += more * period_us as i64;
        let most = base * period_us as i64;
        self.error = self.error.clamp(-most, most);
    }
}
