//! The budget of one cgroup in one direction (read or write), in slices of 100 ms.

/// The limits of a cgroup in one direction: bytes and operations per second. `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rate {
    pub bps: Option<u64>,
    pub iops: Option<u64>,
}

impl Rate {
    pub fn is_limited(&self) -> bool {
        self.bps.is_some() || self.iops.is_some()
    }
}

/// A slice of time, and the amount used in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slice {
    start: i64,
    end: i64,
    bytes: u64,
    ops: u64,
}

/// Lengths of time in jiffies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    pub hz: i64,
    /// Length of a slice (`throtl_slice`).
    pub slice: i64,
}

impl Ticks {
    fn up(&self, jiffy: i64) -> i64 {
        (jiffy + self.slice - 1).div_euclid(self.slice) * self.slice
    }
    /// Returns the amount that a rate allows in this number of jiffies.
    fn gives(&self, rate: u64, jiffies: i64) -> u64 {
        let all = u128::from(rate) * jiffies.max(0) as u128 / self.hz as u128;
        all.min(u128::from(u64::MAX)) as u64
    }
}

impl Slice {
    /// Starts a new slice.
    pub fn begin(t: &Ticks, now: i64) -> Self {
        Slice {
            start: now,
            end: now + t.slice,
            ..Slice::default()
        }
    }
    fn outside(&self, now: i64) -> bool {
        now < self.start || now > self.end
    }
    /// Returns the number of jiffies until a bio of this many bytes fits, or 0 if it fits
    /// immediately (`tg_may_dispatch`). `queued`: other bios are already waiting. `bytes` is `None`
    /// if the bytes were charged before.
    pub fn wait(
        &mut self,
        t: &Ticks,
        rate: &Rate,
        queued: bool,
        bytes: Option<u64>,
        now: i64,
    ) -> i64 {
        if !rate.is_limited() {
            return 0;
        }
        if self.outside(now) && !queued {
            *self = Slice::begin(t, now);
        } else if self.end < now + t.slice {
            self.end = t.up(now + t.slice);
        }
        let elapsed = now - self.start;
        let for_bytes = match (rate.bps, bytes) {
            (Some(bps), Some(bytes)) => {
                let until = t.up(elapsed.max(1));
                let over = (self.bytes + bytes).saturating_sub(t.gives(bps, until));
                match over {
                    0 => 0,
                    _ => {
                        let more = u128::from(over) * t.hz as u128 / u128::from(bps.max(1));
                        (more.min(1 << 60) as i64).max(1) + (until - elapsed)
                    }
                }
            }
            _ => 0,
        };
        let for_ops = match rate.iops {
            Some(iops) => {
                let until = t.up(elapsed + 1);
                match self.ops < t.gives(iops, until) {
                    true => 0,
                    false => (until - elapsed).max(t.hz / iops.max(1) as i64 + 1),
                }
            }
            None => 0,
        };
        let wait = for_bytes.max(for_ops);
        if wait > 0 && self.end < now + wait {
            self.end = t.up(now + wait);
        }
        wait
    }
    /// Charges a bio that may pass (`throtl_charge_bio`, then `throtl_trim_slice`).
    pub fn charge(&mut self, t: &Ticks, rate: &Rate, bytes: Option<u64>, now: i64) {
        self.bytes = self.bytes.saturating_add(bytes.unwrap_or(0));
        self.ops += 1;
        if self.outside(now) {
            return;
        }
        self.end = t.up(now + t.slice);
        let whole = (now - self.start).div_euclid(t.slice) * t.slice;
        if whole > 0 {
            let gave = |rate: Option<u64>| rate.map_or(u64::MAX, |r| t.gives(r, whole));
            self.bytes = self.bytes.saturating_sub(gave(rate.bps));
            self.ops = self.ops.saturating_sub(gave(rate.iops));
            self.start += whole;
        }
    }
}
