//! Read-ahead: the head continues to read after a request until it is stopped.

use super::Ticks;
use super::mech::Mech;
use seekwell_core::rng::Pcg64Mcg;

/// A running read-ahead. Its progress is computed on demand.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReadAhead {
    /// Index of the cache segment that receives the data.
    pub segment: usize,
    /// First sector of the current range, and the time when its transfer starts. The range is the
    /// rest of one track.
    lba: u64,
    start: Ticks,
    zone: u32,
    slot: u32,
    /// Number of sectors from `lba` to the end of that track.
    left: u32,
    /// Sector at which the read-ahead ends without interruption.
    pub limit: u64,
    /// Sector before which the read-ahead must not be interrupted.
    pub hold: u64,
}

impl ReadAhead {
    /// Starts a read-ahead at sector `lba`. The mechanism is free at `t`.
    pub fn new(
        segment: usize,
        mech: &mut Mech,
        t: Ticks,
        lba: u64,
        limit: u64,
        hold: u64,
        rng: &mut Pcg64Mcg,
    ) -> Self {
        let mut ra = ReadAhead {
            segment,
            lba,
            start: t,
            zone: 0,
            slot: 0,
            left: 0,
            limit,
            hold,
        };
        ra.enter(mech, t, lba, rng);
        ra
    }

    fn enter(&mut self, mech: &mut Mech, t: Ticks, lba: u64, rng: &mut Pcg64Mcg) {
        self.start = mech.approach(t, lba, rng);
        self.lba = lba;
        self.zone = mech.at.zone;
        self.slot = mech.at.slot;
        self.left = mech.at.left;
    }

    /// Returns the time at which the transfer of the current range starts.
    pub fn start_mut(&mut self) -> &mut Ticks {
        &mut self.start
    }

    /// Returns the number of sectors of the current range before the limit.
    fn len(&self) -> u32 {
        u64::from(self.left).min(self.limit.saturating_sub(self.lba)) as u32
    }
    /// Returns the time from the start of the range to the end of its `n`-th sector.
    fn span(&self, mech: &Mech, n: u32) -> Ticks {
        let g = &mech.geometry;
        g.angle(self.zone, self.slot + n) - g.angle(self.zone, self.slot)
    }

    /// Advances to `t`, and moves to the next track at each end of a track before `t`.
    fn follow(&mut self, mech: &mut Mech, t: Ticks, rng: &mut Pcg64Mcg) {
        loop {
            let n = self.len();
            let end = self.start + self.span(mech, n);
            let next = self.lba + u64::from(n);
            if end > t || n < self.left || next >= self.limit {
                return;
            }
            self.enter(mech, end, next, rng);
        }
    }

    /// Returns the progress at `t`: the first sector that is not read yet, and the time at which it
    /// begins to pass. This time is `t` or later, except when the read-ahead has reached its limit.
    pub fn boundary(&mut self, mech: &mut Mech, t: Ticks, rng: &mut Pcg64Mcg) -> (u64, Ticks) {
        self.follow(mech, t, rng);
        if t <= self.start {
            return (self.lba, self.start);
        }
        let g = &mech.geometry;
        let whole = self.len();
        let passed = (t - self.start).min(self.span(mech, whole));
        let from = g.angle(self.zone, self.slot);
        let n = (g.slot_at(self.zone, from + passed) - self.slot).min(whole);
        (self.lba + u64::from(n), self.start + self.span(mech, n))
    }

    /// Tries to end the read-ahead at `t`. While the head moves to a track, the read-ahead ends
    /// immediately. Otherwise it ends at the next sector boundary, and the arm stays there. Returns
    /// the first sector that was not read, and the time when the mechanism is free. If the
    /// read-ahead must not end yet, returns the time to try again, which is when it reaches `hold`
    /// or the end of this track.
    pub fn cut(
        &mut self,
        mech: &mut Mech,
        t: Ticks,
        rng: &mut Pcg64Mcg,
    ) -> Result<(u64, Ticks), Ticks> {
        let (lba, at) = self.boundary(mech, t, rng);
        let hold = self.hold.min(self.limit);
        if lba >= hold {
            mech.pass((lba - self.lba) as u32, at);
            return Ok((lba, if t < self.start { t } else { at.max(t) }));
        }
        let to = hold.min(self.lba + u64::from(self.left));
        Err(self.start + self.span(mech, (to - self.lba) as u32))
    }

    /// Ends the read-ahead. Returns the first sector that was not read at `t`, and the time at
    /// which that sector starts to pass. The arm stays there.
    pub fn stop(&mut self, mech: &mut Mech, t: Ticks, rng: &mut Pcg64Mcg) -> (u64, Ticks) {
        let (lba, at) = self.boundary(mech, t, rng);
        mech.pass((lba - self.lba) as u32, at);
        (lba, at.max(t))
    }
}
