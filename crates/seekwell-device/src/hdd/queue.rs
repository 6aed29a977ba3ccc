//! Commands waiting for the mechanism, oldest first, and the choice among them.

use super::Ticks;
use super::geometry::Place;
use super::mech::Mech;
use super::params::Choice;

/// A queued command. Its place is worked out once, on arrival.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queued {
    pub id: u32,
    pub write: bool,
    /// It continues the read accepted before it.
    pub sequential: bool,
    pub lba: u64,
    /// Sectors on the medium (a cached beginning is left out).
    pub n: u32,
    /// Sectors over the link.
    pub bus: u32,
    pub arrived: Ticks,
    /// Where the first sector lay when it arrived.
    pub place: Place,
    /// Angle of that place.
    pub theta: Ticks,
}

impl Queued {
    /// Behind its last sector.
    pub fn end(&self) -> u64 {
        self.lba + u64::from(self.n)
    }
}

/// Which command, and was it picked by position among several?
pub(super) struct Picked {
    pub index: usize,
    pub by_position: bool,
}

/// What the choice needs to know of the drive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub choice: Choice,
    pub window: usize,
    pub guard: Ticks,
    pub age_limit: Ticks,
    pub age_weight: f64,
}

impl Rules {
    /// Has the oldest command waited too long?
    #[inline]
    pub fn overdue(&self, queue: &[Queued], t: Ticks) -> bool {
        self.age_limit > 0
            && queue
                .first()
                .is_some_and(|q| t.saturating_sub(q.arrived) > self.age_limit)
    }

    /// Chooses among the oldest commands of a queue that is not empty.
    pub fn pick(&self, queue: &[Queued], mech: &Mech, t: Ticks) -> Picked {
        let by_age = |index| Picked {
            index,
            by_position: false,
        };
        if queue.len() == 1 || self.overdue(queue, t) {
            return by_age(0);
        }
        let seen = &queue[..queue.len().min(self.window)];
        match self.choice {
            Choice::Fifo => by_age(0),
            Choice::Sstf => by_age(least(seen, |q| {
                u64::from(q.place.cyl.abs_diff(mech.at.cyl))
            })),
            Choice::Clook => by_age(least(seen, |q| {
                let behind = u64::from(q.place.cyl < mech.at.cyl);
                (behind << 40) + u64::from(q.place.cyl)
            })),
            Choice::Sptf => Picked {
                index: first_of_run(seen, self.nearest(seen, mech, t, |_| 0)),
                by_position: seen.len() > 1,
            },
            Choice::Asptf => {
                // Shifted up so that old commands stay above zero.
                let index = self.nearest(seen, mech, t, |q| {
                    let age = t.saturating_sub(q.arrived) as f64;
                    (1u64 << 62) - ((age * self.age_weight) as u64).min(1 << 61)
                });
                Picked {
                    index: first_of_run(seen, index),
                    by_position: seen.len() > 1,
                }
            }
        }
    }

    /// Command `k` goes on where the head stands at `t`: is it the one to take now? To continue
    /// costs no positioning, which is an advantage in each policy only as far as that policy looks
    /// at places; it is none over commands that are overdue.
    pub fn goes_on(&self, queue: &[Queued], k: usize, mech: &Mech, t: Ticks) -> bool {
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
                    let place = || {
                        mech.estimate(psi, q.place.cyl, q.place.head, q.theta, q.write, self.guard)
                    };
                    i == k || aged(q) <= mine || place() > aged(q) - mine
                })
            }
        }
    }

    /// Shortest positioning time, on top of what `from` says, which falls with age; ties go to the
    /// older.
    #[inline]
    fn nearest(
        &self,
        seen: &[Queued],
        mech: &Mech,
        t: Ticks,
        from: impl Fn(&Queued) -> Ticks,
    ) -> usize {
        let psi = mech.phase_at(t);
        // What every command takes beside the arm's way, and how far away one may be to be better.
        let least = from(&seen[0]) + self.guard;
        let (mut best, mut index, mut reach) = (Ticks::MAX, 0, u32::MAX);
        for (i, q) in seen.iter().enumerate() {
            if q.place.cyl.abs_diff(mech.at.cyl) > reach {
                continue;
            }
            let mv = mech.move_time(q.place.cyl, q.place.head, q.write) + self.guard;
            let all = from(q) + mech.comes_round(psi, mv, q.theta);
            if all < best {
                (best, index) = (all, i);
                reach = mech.reach(best.saturating_sub(least));
            }
        }
        index
    }
}

/// Commands that continue one another are taken in order: the first of the run that `index` is in.
/// Without this, two sequential writes that meet an idle drive may start with the second and stay
/// out of step, a revolution each, for ever.
fn first_of_run(seen: &[Queued], mut index: usize) -> usize {
    let before = |q: &Queued| {
        seen.iter()
            .position(|p| p.end() == q.lba && p.write == q.write)
    };
    while let Some(i) = before(&seen[index]) {
        index = i;
    }
    index
}

fn least(seen: &[Queued], cost: impl Fn(&Queued) -> u64) -> usize {
    let mut best = (u64::MAX, 0);
    for (i, q) in seen.iter().enumerate() {
        let c = cost(q);
        if c < best.0 {
            best = (c, i);
        }
    }
    best.1
}
