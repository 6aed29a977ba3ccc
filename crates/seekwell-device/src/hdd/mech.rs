//! The mechanism of a hard disk: arm, heads and platter phase. It computes how long an access takes
//! and where it ends.
//!
//! The model leaves out thermal recalibration, vibration and power states.

use super::geometry::{Geometry, Place};
use super::laps::Laps;
use super::params::HddParams;
use super::seek::{Reach, SeekCurve, SeekTable};
use super::{Ticks, ticks_ms, unit};
use crate::divide::Divisor;
use crate::error::ParamError;
use rand::RngCore;
use seekwell_core::rng::Pcg64Mcg;

/// Possible error of fixed-point angles, in ticks. A wait that is shorter than a revolution by less
/// than this counts as zero.
pub(super) const SLACK: Ticks = 64;

/// Position of the head, described by the next sector that passes under it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    /// The next sector; equal to the capacity after the last sector.
    pub lba: u64,
    /// Cylinder and head of the arm.
    pub cyl: u32,
    pub head: u32,
    /// Zone and slot of `lba`, and number of sectors left on this track. If `left` is 0, `lba` is
    /// on the next track.
    pub zone: u32,
    pub slot: u32,
    pub left: u32,
    /// Time at which the sector `lba` starts to pass, if the head has just passed the sector before
    /// it.
    pub passes: Ticks,
}

/// Totals over all accesses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    pub seek: Ticks,
    pub rotation: Ticks,
    /// Number of moves to a sector that is not the next one. `sectors` is the sum of their
    /// distances.
    pub seeks: u64,
    pub sectors: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Mech {
    pub geometry: Geometry,
    table: SeekTable,
    reach: Reach,
    pub laps: Laps,
    turn: Ticks,
    by_turn: Divisor,
    phase: Ticks,
    head_switch: Ticks,
    write_settle: Ticks,
    /// Factors of the seek time in 1/1024, inward and outward. `None` if both factors are 1.
    factor: Option<(u64, u64)>,
    sigma: f64,
    zero_latency: bool,
    /// A sector is remapped if its 64-bit hash is less than this value. `salt` is the key of the
    /// hash.
    remap: u64,
    /// Distance between spare tracks, in cylinders.
    spare_interval: u32,
    salt: u64,
    pub at: Cursor,
    /// A sector whose position is already computed.
    pub known: Option<(u64, Place)>,
    pub spent: Spent,
    /// Time at which the first sector of the current access began to pass.
    began: Option<Ticks>,
}

impl Mech {
    pub fn new(p: &HddParams, rng: &mut Pcg64Mcg) -> Result<Self, ParamError> {
        let geometry = Geometry::new(p)?;
        let curve = SeekCurve::new(&p.seek, geometry.cylinders())?;
        let turn = geometry.turn();
        let factor = |x: f64| libm::round(x * 1024.0) as u64;
        let factor = (factor(p.seek_factor.0), factor(p.seek_factor.1));
        let first = geometry.locate(0);
        let remap = p.remap_ppm * 1e-6 * 18_446_744_073_709_551_615.0;
        let table = SeekTable::new(&curve, geometry.cylinders());
        let reach = table.reach(factor.0.min(factor.1));
        Ok(Mech {
            laps: Laps::new(&reach, turn, ticks_ms(p.guard_ms)),
            reach,
            table,
            turn,
            by_turn: Divisor::new(turn),
            phase: rng.next_u64() % turn,
            head_switch: ticks_ms(p.head_switch_ms),
            write_settle: ticks_ms(p.write_settle_ms),
            factor: (factor != (1024, 1024)).then_some(factor),
            sigma: p.settle_sigma_ms,
            zero_latency: p.zero_latency,
            remap: remap as u64,
            spare_interval: p.spare_interval,
            salt: rng.next_u64(),
            at: Cursor {
                lba: 0,
                cyl: 0,
                head: 0,
                zone: 0,
                slot: first.slot,
                left: first.left,
                passes: Ticks::MAX,
            },
            known: None,
            spent: Spent::default(),
            began: None,
            geometry,
        })
    }

    /// Returns the time of a revolution, in ticks.
    pub fn turn(&self) -> Ticks {
        self.turn
    }

    /// Returns the platter phase at the origin of the clock.
    pub fn phase_mut(&mut self) -> &mut Ticks {
        &mut self.phase
    }

    /// Returns the time to move the arm to cylinder `cyl`, without head switch and settling time.
    #[inline]
    pub fn seek(&self, cyl: u32) -> Ticks {
        let t = self.table.ticks(cyl.abs_diff(self.at.cyl));
        match self.factor {
            None => t,
            Some((inward, outward)) => (t * if cyl > self.at.cyl { inward } else { outward }) >> 10,
        }
    }

    /// Returns an upper bound of the number of cylinders that the arm can cross in less than `t`.
    #[inline]
    pub fn reach(&self, t: Ticks) -> u32 {
        self.reach.cylinders(t)
    }

    /// Returns the time to move `head` to `cyl`. A write adds settling time if the arm moves or the
    /// head changes.
    #[inline]
    pub fn move_time(&self, cyl: u32, head: u32, write: bool) -> Ticks {
        // The code contains no branches, because the processor could not predict them.
        let switch = if head != self.at.head {
            self.head_switch
        } else {
            0
        };
        let t = self.seek(cyl).max(switch);
        if write && (cyl != self.at.cyl || head != self.at.head) {
            return t + self.write_settle;
        }
        t
    }

    /// Returns the phase of the platter at `t`, in ticks after the index mark.
    #[inline]
    pub fn phase_at(&self, t: Ticks) -> Ticks {
        // The sum cannot overflow, because times use at most half of the range of ticks and the
        // phase is less than a revolution.
        self.by_turn.rest(t + self.phase)
    }

    /// Returns the time from phase `psi` until the angle `theta` passes.
    #[inline]
    pub fn wait(&self, psi: Ticks, theta: Ticks) -> Ticks {
        let around = if theta >= psi { 0 } else { self.turn };
        let w = theta + around - psi;
        if w >= self.turn - SLACK { 0 } else { w }
    }

    /// Returns the positioning time that the drive estimates if the phase of the platter is `psi`.
    /// If the target passes less than `guard` after the arm settles, the estimate includes one more
    /// revolution. On the track under the head, nothing moves or settles. There the drive knows its
    /// position exactly, and no guard time applies.
    #[inline]
    pub fn estimate(
        &self,
        psi: Ticks,
        cyl: u32,
        head: u32,
        theta: Ticks,
        write: bool,
        guard: Ticks,
    ) -> Ticks {
        let here = cyl == self.at.cyl && head == self.at.head;
        let guard = if here { 0 } else { guard };
        self.comes_round(psi, self.move_time(cyl, head, write) + guard, theta)
    }

    /// Returns the time of a move of `mv` ticks that starts at phase `psi`, plus the wait until
    /// `theta` passes.
    #[inline]
    pub fn comes_round(&self, psi: Ticks, mv: Ticks, theta: Ticks) -> Ticks {
        let arrive = self.by_turn.rest(psi + mv);
        mv + self.wait(arrive, theta)
    }

    /// Reads or writes `n` sectors from `lba`. The arm starts to move at `t`. Returns the time at
    /// which the last sector has passed. If `streaming` is true, the access continues the previous
    /// access, so a write has no settling time. Leaves the arm after the last sector.
    pub fn access(
        &mut self,
        t: Ticks,
        lba: u64,
        n: u32,
        write: bool,
        streaming: bool,
        rng: &mut Pcg64Mcg,
    ) -> Ticks {
        if lba != self.at.lba {
            self.spent.seeks += 1;
            self.spent.sectors += lba.abs_diff(self.at.lba);
        }
        let (mut t, mut lba, mut n) = (t, lba, n);
        let mut settle = write && !streaming;
        self.began = None;
        while n > 0 {
            let place = self.place(lba);
            let mut len = n.min(place.left);
            if self.remap > 0 {
                let good = (0..len).find(|i| self.remapped(lba + u64::from(*i)));
                match good {
                    Some(0) => {
                        t = self.spare(t, lba, place.zone, settle, rng);
                        (lba, n) = (lba + 1, n - 1);
                        settle = write;
                        continue;
                    }
                    Some(i) => len = i,
                    None => {}
                }
            }
            t = self.piece(t, place, lba, len, settle, rng);
            settle = false;
            lba += u64::from(len);
            n -= len;
        }
        t
    }

    /// Returns how long an access that ended at `end` transferred data.
    pub fn on_medium(&self, end: Ticks) -> Ticks {
        self.began.map_or(0, |t| end.saturating_sub(t))
    }

    /// Moves the head to the start of `lba` for sequential reading; it starts at `t`. Returns the
    /// time of arrival. Leaves the arm before that sector.
    pub fn approach(&mut self, t: Ticks, lba: u64, rng: &mut Pcg64Mcg) -> Ticks {
        if t == self.at.passes && lba == self.at.lba && self.at.left > 0 {
            return t;
        }
        let place = self.place(lba);
        let t = self.position(t, place, false, rng);
        let wait = self.wait(
            self.phase_at(t),
            self.geometry.angle(place.zone, place.slot),
        );
        self.spent.rotation += wait;
        self.stand(place, lba, 0, t + wait);
        t + wait
    }

    /// Returns the position of `lba`. No division is needed if `lba` is the next sector on this
    /// track, or if its position is already computed.
    #[inline]
    pub fn place(&self, lba: u64) -> Place {
        if lba == self.at.lba && self.at.left > 0 {
            return Place {
                cyl: self.at.cyl,
                head: self.at.head,
                zone: self.at.zone,
                slot: self.at.slot,
                left: self.at.left,
            };
        }
        match self.known {
            Some((known, place)) if known == lba => place,
            _ => self.geometry.locate(lba),
        }
    }

    #[inline]
    fn position(&mut self, t: Ticks, place: Place, settle: bool, rng: &mut Pcg64Mcg) -> Ticks {
        let mut mv = self.move_time(place.cyl, place.head, settle);
        if self.sigma > 0.0 && mv > 0 {
            mv += ticks_ms((normal(rng) * self.sigma).max(0.0));
        }
        self.spent.seek += mv;
        t + mv
    }

    #[inline]
    fn stand(&mut self, place: Place, lba: u64, passed: u32, passes: Ticks) {
        self.at = Cursor {
            lba: lba + u64::from(passed),
            cyl: place.cyl,
            head: place.head,
            zone: place.zone,
            slot: place.slot + passed,
            left: place.left - passed,
            passes,
        };
    }

    /// Accesses `len` sectors on one track. Returns the time at which the last of them has passed.
    #[inline]
    fn piece(
        &mut self,
        t: Ticks,
        place: Place,
        lba: u64,
        len: u32,
        settle: bool,
        rng: &mut Pcg64Mcg,
    ) -> Ticks {
        let t = self.position(t, place, settle, rng);
        let theta = self.geometry.angle(place.zone, place.slot);
        let span = self.geometry.angle(place.zone, place.slot + len) - theta;
        let mut wait = self.wait(self.phase_at(t), theta);
        let mut took = wait + span;
        let mut passes = t + took;
        // The code models a zero-latency transfer only if it is at least a quarter of a revolution
        // long. If the head arrives inside the range, the transfer starts at the next sector and
        // ends one revolution later.
        if self.zero_latency && wait > 0 && span * 4 >= self.turn && self.turn - wait < span {
            let inside = self.turn - wait;
            let next = self.geometry.slot_at(place.zone, theta + inside);
            if next < place.slot + len {
                let align = (self.geometry.angle(place.zone, next) - theta).saturating_sub(inside);
                took = align + self.turn;
                wait = took.saturating_sub(span);
                passes = Ticks::MAX;
            }
        }
        self.spent.rotation += wait;
        self.stand(place, lba, len, passes);
        self.began.get_or_insert(t + wait);
        t + took
    }

    /// Records that `n` sectors of this track have passed under the head. The sector after them
    /// starts to pass at `passes`.
    pub fn pass(&mut self, n: u32, passes: Ticks) {
        self.at.lba += u64::from(n);
        self.at.slot += n;
        self.at.left -= n;
        self.at.passes = passes;
    }

    /// Returns true if the sector is remapped.
    fn remapped(&self, lba: u64) -> bool {
        self.remap > 0 && self.hash(lba) < self.remap
    }
    fn hash(&self, lba: u64) -> u64 {
        let mut z = (lba ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        z ^ (z >> 32)
    }
    /// Accesses one remapped sector: moves the arm to the nearest spare track and waits for the
    /// sector there. The next access includes the time of the way back.
    fn spare(&mut self, t: Ticks, lba: u64, zone: u32, write: bool, rng: &mut Pcg64Mcg) -> Ticks {
        let last = self.geometry.cylinders() - 1;
        let cyl = self.geometry.locate(lba).cyl;
        let cyl = (cyl - cyl % self.spare_interval + self.spare_interval / 2).min(last);
        let place = Place {
            cyl,
            head: 0,
            zone,
            slot: 0,
            left: 0,
        };
        let t = self.position(t, place, write, rng);
        let theta = self.hash(lba).rotate_left(32) % self.turn;
        let wait = self.wait(self.phase_at(t), theta);
        self.spent.rotation += wait;
        self.stand(place, lba, 0, Ticks::MAX);
        self.at.lba = lba + 1;
        t + wait + self.geometry.angle(zone, 1)
    }
}

/// Returns a normally distributed number with mean 0 and standard deviation 1 (Box-Muller method).
fn normal(rng: &mut Pcg64Mcg) -> f64 {
    let (u, v) = (1.0 - unit(rng), unit(rng));
    libm::sqrt(-2.0 * libm::log(u)) * libm::cos(core::f64::consts::TAU * v)
}
