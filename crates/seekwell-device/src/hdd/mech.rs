//! The mechanism: arm, heads and platter phase; the duration and end of an access.
//!
//! Left out: thermal recalibration, vibration, power states.

use super::geometry::{Geometry, Place};
use super::laps::Laps;
use super::params::HddParams;
use super::seek::{Reach, SeekCurve, SeekTable};
use super::{Ticks, ticks_ms, unit};
use crate::divide::Divisor;
use crate::error::ParamError;
use rand::RngCore;
use seekwell_core::rng::Pcg64Mcg;

/// A wait this close below a whole turn counts as zero: the possible error of fixed-point angles.
pub(super) const SLACK: Ticks = 64;

/// Position of the head, as the next sector to pass under it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    /// That sector, or the capacity after the last one.
    pub lba: u64,
    /// Cylinder and head.
    pub cyl: u32,
    pub head: u32,
    /// Zone, slot of `lba`, and sectors left on this track (0: `lba` is on the next track).
    pub zone: u32,
    pub slot: u32,
    pub left: u32,
    /// When that sector starts to pass, if the head has just passed the sector before it.
    pub passes: Ticks,
}

/// Totals of all accesses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    pub seek: Ticks,
    pub rotation: Ticks,
    /// Number of moves to places that are not adjacent, and the distance in sectors.
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
    /// Seek factors in 1/1024, inward and outward; `None` if both are 1.
    factor: Option<(u64, u64)>,
    sigma: f64,
    zero_latency: bool,
    /// Probability of a remap as a bound on a 64-bit hash; then spare tracks, and the key of the
    /// hash.
    remap: u64,
    spare_interval: u32,
    salt: u64,
    pub at: Cursor,
    /// A sector whose place is already computed.
    pub known: Option<(u64, Place)>,
    pub spent: Spent,
    /// When the first sector of the present access began to pass.
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

    /// Ticks per revolution.
    pub fn turn(&self) -> Ticks {
        self.turn
    }

    /// Platter phase at the clock's origin.
    pub fn phase_mut(&mut self) -> &mut Ticks {
        &mut self.phase
    }

    /// Time to move the arm to cylinder `cyl`, without head switch and settling.
    #[inline]
    pub fn seek(&self, cyl: u32) -> Ticks {
        let t = self.table.ticks(cyl.abs_diff(self.at.cyl));
        match self.factor {
            None => t,
            Some((inward, outward)) => (t * if cyl > self.at.cyl { inward } else { outward }) >> 10,
        }
    }

    /// Upper bound on the cylinders that the arm can cross in less than `t`.
    #[inline]
    pub fn reach(&self, t: Ticks) -> u32 {
        self.reach.cylinders(t)
    }

    /// Time to move `head` over `cyl`. A write adds settling time if anything moves.
    #[inline]
    pub fn move_time(&self, cyl: u32, head: u32, write: bool) -> Ticks {
        // Written without branches, because they would be unpredictable.
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

    /// Platter phase at `t`, in ticks after the index mark.
    #[inline]
    pub fn phase_at(&self, t: Ticks) -> Ticks {
        // No overflow: ticks end at half of their range, and the phase is below a turn.
        self.by_turn.rest(t + self.phase)
    }

    /// Wait from phase `psi` until `theta` passes.
    #[inline]
    pub fn wait(&self, psi: Ticks, theta: Ticks) -> Ticks {
        let around = if theta >= psi { 0 } else { self.turn };
        let w = theta + around - psi;
        if w >= self.turn - SLACK { 0 } else { w }
    }

    /// The drive's estimate of a positioning time when the platter phase is `psi`. A target that
    /// passes less than `guard` after settling counts as a revolution later. On the track under the
    /// head nothing moves or settles, so the drive knows its position exactly and applies no guard.
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

    /// A move of `mv` that starts at phase `psi`, and the wait for `theta` after it.
    #[inline]
    pub fn comes_round(&self, psi: Ticks, mv: Ticks, theta: Ticks) -> Ticks {
        let arrive = self.by_turn.rest(psi + mv);
        mv + self.wait(arrive, theta)
    }

    /// Reads or writes `n` sectors from `lba`; the arm starts to move at `t`. Returns the time when
    /// the last sector has passed. `streaming`: the access continues the previous one, so a write
    /// has no settling time. Leaves the arm after the last sector.
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

    /// How long an access that ended at `end` was reading or writing.
    pub fn on_medium(&self, end: Ticks) -> Ticks {
        self.began.map_or(0, |t| end.saturating_sub(t))
    }

    /// When the head reaches the start of `lba` if it starts at `t` (sequential continuation).
    /// Leaves the arm before that sector.
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

    /// The place of `lba`. Needs no division if it is the next sector on this track, or already
    /// computed.
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

    /// Accesses `len` sectors on one track.
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
        // A zero-latency transfer pays from a quarter of a turn on. When the head arrives inside
        // the span, the transfer starts at the next sector and ends one revolution later.
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
    /// passes at `passes`.
    pub fn pass(&mut self, n: u32, passes: Ticks) {
        self.at.lba += u64::from(n);
        self.at.slot += n;
        self.at.left -= n;
        self.at.passes = passes;
    }

    /// Whether the sector is remapped.
    fn remapped(&self, lba: u64) -> bool {
        self.remap > 0 && self.hash(lba) < self.remap
    }
    fn hash(&self, lba: u64) -> u64 {
        let mut z = (lba ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        z ^ (z >> 32)
    }
    /// Accesses one remapped sector: moves to the nearest spare track and waits there. The next
    /// access pays for the way back.
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

/// A standard normal number (Box and Muller).
fn normal(rng: &mut Pcg64Mcg) -> f64 {
    let (u, v) = (1.0 - unit(rng), unit(rng));
    libm::sqrt(-2.0 * libm::log(u)) * libm::cos(core::f64::consts::TAU * v)
}
