//! The policies by which the drive selects one of its waiting commands.

use super::Ticks;
use super::laps::Laps;
use super::mech::{Mech, SLACK};
use super::params::Choice;
use super::queue::{INDEX_BITS, Queue, Queued};

/// The selected command. `by_position` is true if its position was compared with those of other
/// commands.
pub(super) struct Picked {
    pub index: usize,
    pub by_position: bool,
}

/// The properties of the drive that affect the selection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub choice: Choice,
    pub window: usize,
    pub guard: Ticks,
    pub age_limit: Ticks,
    pub age_weight: f64,
}

impl Rules {
    /// Returns true if the oldest command has exceeded the age limit.
    #[inline]
    pub fn overdue(&self, queue: &Queue, t: Ticks) -> bool {
        self.age_limit > 0
            && queue
                .first()
                .is_some_and(|q| t.saturating_sub(q.arrived) > self.age_limit)
    }

    /// Selects one of the oldest commands. The queue must not be empty.
    pub fn pick(&self, queue: &Queue, mech: &Mech, t: Ticks) -> Picked {
        let by_age = |index| Picked {
            index,
            by_position: false,
        };
        if queue.len() == 1 || self.overdue(queue, t) {
            return by_age(0);
        }
        let seen = queue.len().min(self.window);
        match self.choice {
            Choice::Fifo => by_age(0),
            Choice::Sstf => by_age(least(queue, seen, |cyl| {
                u64::from(cyl.abs_diff(mech.at.cyl))
            })),
            Choice::Clook => by_age(least(queue, seen, |cyl| {
                let behind = u64::from(cyl < mech.at.cyl);
                (behind << 40) + u64::from(cyl)
            })),
            Choice::Sptf => Picked {
                index: first_of_run(queue, seen, self.soonest(queue, seen, mech, t)),
                by_position: seen > 1,
            },
            Choice::Asptf => {
                // The constant keeps the result positive for old commands.
                let index = self.nearest(queue, seen, mech, t, |q| {
                    let age = t.saturating_sub(q.arrived) as f64;
                    (1u64 << 62) - ((age * self.age_weight) as u64).min(1 << 61)
                });
                Picked {
                    index: first_of_run(queue, seen, index),
                    by_position: seen > 1,
                }
            }
        }
    }

    /// Returns true if the policy selects command `k` next. Command `k` begins at the sector that
    /// the head reaches at `t`, so it needs no positioning. This is an advantage only under a
    /// policy that considers positions. Such a command never overtakes an overdue command.
    pub fn goes_on(&self, queue: &Queue, k: usize, mech: &Mech, t: Ticks) -> bool {
        if k == 0 {
            return true;
        }
        if k >= self.window || self.overdue(queue, t) {
            return false;
        }
        match self.choice {
            Choice::Fifo => false,
            Choice::Sptf => true,
            Choice::Sstf | Choice::Clook => self.pick(queue, mech, t).index == k,
            Choice::Asptf => {
                let psi = mech.phase_at(t);
                let aged =
                    |q: &Queued| (t.saturating_sub(q.arrived) as f64 * self.age_weight) as u64;
                let mine = aged(&queue[k]);
                queue.iter().take(self.window).enumerate().all(|(i, q)| {
                    i == k || aged(q) <= mine || self.takes(q, mech, psi) > aged(q) - mine
                })
            }
        }
    }

    /// Returns the positioning time of a command if the platter phase is `psi`.
    #[inline]
    fn takes(&self, q: &Queued, mech: &Mech, psi: Ticks) -> Ticks {
        mech.estimate(psi, q.place.cyl, q.place.head, q.theta, q.write, self.guard)
    }

    /// Returns the index of the command with the shortest positioning time among the `seen` oldest
    /// commands. On a tie, the older command wins. Computing a positioning time is slow, so the
    /// function first finds the command with the smallest lower bound of its positioning time. If
    /// the positioning time of this command equals the bound, no other command can be faster. This
    /// is the usual case.
    #[inline]
    fn soonest(&self, queue: &Queue, seen: usize, mech: &Mech, t: Ticks) -> usize {
        if self.guard <= SLACK {
            return self.nearest(queue, seen, mech, t, |_| 0);
        }
        let psi = mech.phase_at(t);
        let first = first_possible(queue, seen, &mech.laps, psi, mech.at.cyl);
        let (bound, mut index) = (first >> INDEX_BITS, first as usize % (1 << INDEX_BITS));
        let mut best = self.takes(&queue[index], mech, psi);
        // If the time is zero, an older command may have the same time, so compare all commands.
        if best + SLACK == bound && best > 0 {
            return index;
        }
        for (i, spot) in queue.spots(seen).enumerate() {
            let away = spot.cyl.abs_diff(mech.at.cyl);
            if (mech.laps.at_least(psi, spot, away), i) < (best, index) {
                let all = self.takes(&queue[i], mech, psi);
                if (all, i) < (best, index) {
                    (best, index) = (all, i);
                }
            }
        }
        index
    }

    /// Returns the index of the command with the smallest sum of positioning time and `from`, among
    /// the `seen` oldest commands. `from` must decrease with the age of the command. On a tie, the
    /// older command wins.
    #[inline]
    fn nearest(
        &self,
        queue: &Queue,
        seen: usize,
        mech: &Mech,
        t: Ticks,
        from: impl Fn(&Queued) -> Ticks,
    ) -> usize {
        let psi = mech.phase_at(t);
        // `least` is a lower bound of the cost of any command, without the seek. `reach` is the
        // largest distance, in cylinders, at which a command can have a lower cost than the best
        // one so far.
        let least = queue.first().map_or(0, &from) + self.guard;
        let (mut best, mut index, mut reach) = (Ticks::MAX, 0, u32::MAX);
        for (i, q) in queue.iter().take(seen).enumerate() {
            if q.place.cyl.abs_diff(mech.at.cyl) > reach {
                continue;
            }
            let all = from(q) + self.takes(q, mech, psi);
            if all < best {
                (best, index) = (all, i);
                reach = mech.reach(best.saturating_sub(least));
            }
        }
        index
    }
}

/// Finds the command with the smallest lower bound of its positioning time, among the `seen` oldest
/// commands. Returns its index and the bound, packed as by [`Laps::first`]. This is a separate
/// function, so that the loop can use all processor registers.
#[inline(never)]
fn first_possible(queue: &Queue, seen: usize, laps: &Laps, psi: Ticks, cyl: u32) -> u64 {
    laps.first(psi, cyl, queue.spots(seen))
}

/// Returns the first command of the contiguous run of commands that contains `index`. Without this
/// rule, an idle drive that receives two sequential writes could start with the second. All later
/// writes of the stream would then stay in the wrong order, and each would lose a revolution.
fn first_of_run(queue: &Queue, seen: usize, mut index: usize) -> usize {
    while queue.may_end(queue[index].lba) {
        let q = queue[index];
        let before = |p: &Queued| p.end() == q.lba && p.write == q.write;
        match queue.iter().take(seen).position(before) {
            Some(i) => index = i,
            None => break,
        }
    }
    index
}

fn least(queue: &Queue, seen: usize, cost: impl Fn(u32) -> u64) -> usize {
    let mut best = (u64::MAX, 0);
    for (i, spot) in queue.spots(seen).enumerate() {
        let c = cost(spot.cyl);
        if c < best.0 {
            best = (c, i);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdd::tests::params;
    use crate::hdd::ticks_ms;
    use proptest::prelude::*;
    use seekwell_core::rng;

    fn command(mech: &Mech, id: u32, lba: u64, write: bool) -> Queued {
        let place = mech.geometry.locate(lba);
        Queued {
            id,
            write,
            sequential: false,
            lba,
            n: 1,
            bus: 1,
            arrived: 0,
            place,
            theta: mech.geometry.angle(place.zone, place.slot),
        }
    }

    proptest! {
        /// The search with bounds finds the same command as a search that computes every
        /// positioning time. The test covers fast and slow spindles, seeks that are slower in one
        /// direction, and any guard time.
        #[test]
        fn soonest_search_with_bounds_agrees_with_exhaustive_search(
            drive in 0usize..4,
            guard_ms in prop_oneof![Just(0.0), Just(0.0001), 0.0..3.0],
            factor in prop_oneof![Just((1.0, 1.0)), (0.7..1.3, 0.7..1.3)],
            arm in 0.0..1.0,
            head in 0u32..2,
            // Random addresses, or addresses near each other. Near addresses give ties, and seeks
            // that are shorter than a head switch.
            commands in prop::collection::vec((0.0..1.0, any::<bool>(), any::<bool>()), 1..40),
            ns in 0u64..1 << 40,
            window in 1usize..40,
        ) {
            let names = ["hitachi-7k200", "st2000dm006", "hus728t8", "exos-x18"];
            let mut p = params(names[drive]);
            p.guard_ms = guard_ms;
            p.seek_factor = factor;
            let mut mech = Mech::new(&p, &mut rng::stream(1, "test")).unwrap();
            let lba = |share: f64| (share * (p.capacity - 1) as f64) as u64;
            let at = mech.geometry.locate(lba(arm));
            (mech.at.cyl, mech.at.head) = (at.cyl, head);
            let mut queue = Queue::with_capacity(31, mech.turn());
            for (i, (share, near, write)) in commands.into_iter().enumerate() {
                let near_by = (lba(arm) + (share * 20_000.0) as u64).min(p.capacity - 1);
                let lba = if near { near_by } else { lba(share) };
                queue.push(command(&mech, i as u32, lba, write));
            }
            let rules = Rules {
                choice: Choice::Sptf,
                window,
                guard: ticks_ms(guard_ms),
                age_limit: 0,
                age_weight: 0.0,
            };
            let seen = queue.len().min(window);
            let psi = mech.phase_at(ns << 10);
            for (q, s) in queue.iter().zip(queue.spots(usize::MAX)) {
                let bound = mech.laps.at_least(psi, s, s.cyl.abs_diff(mech.at.cyl));
                prop_assert!(rules.guard <= SLACK || bound <= rules.takes(q, &mech, psi));
            }
            let each = queue.iter().take(seen).map(|q| rules.takes(q, &mech, psi));
            let plain = each.enumerate().min_by_key(|e| (e.1, e.0)).map(|e| e.0);
            prop_assert_eq!(Some(rules.soonest(&queue, seen, &mech, ns << 10)), plain);
        }
    }

    /// The guard time does not apply on the track under the head, because nothing settles there.
    /// The drive selects the next command on this track at any distance, even if its sector passed
    /// within the rounding error of the clock.
    #[test]
    fn guard_time_does_not_apply_on_the_current_track() {
        let p = params("hitachi-7k200");
        let mut mech = Mech::new(&p, &mut rng::stream(1, "test")).unwrap();
        let at = mech.geometry.locate(1_000);
        (mech.at.cyl, mech.at.head) = (at.cyl, at.head);
        let mut queue = Queue::with_capacity(31, mech.turn());
        for (id, lba) in (0..).zip([90_000_000, 1_100, 40_000_000]) {
            queue.push(command(&mech, id, lba, true));
        }
        let rules = Rules {
            choice: Choice::Sptf,
            window: 31,
            guard: ticks_ms(0.5),
            age_limit: 0,
            age_weight: 0.0,
        };
        let theta = queue[1].theta;
        for before in [0, 1, ticks_ms(0.1), ticks_ms(0.4)] {
            for psi in [theta - before, theta + before.min(SLACK)] {
                let t = psi + 2 * mech.turn() - mech.phase_at(0);
                assert_eq!(mech.phase_at(t), psi % mech.turn());
                assert_eq!(rules.soonest(&queue, 3, &mech, t), 1, "{before}");
            }
        }
    }
}
