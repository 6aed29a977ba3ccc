//! `io.max` (`blk-throttle.c`, 6.1 to 6.18): a limit for the bytes and operations per second of a
//! cgroup on a disk. A bio that comes too early is held before any other processing. Its submitter
//! continues.
//!
//! Modelled: slices of 100 ms, a budget for each direction, the levels of cgroups, the timer and
//! the bios that it releases, and splits. Like the writeback throttle, this module does not depend
//! on a queue. Tests replay rounds that were recorded on a running kernel (`tests/iomax.rs`).
//!
//! Not modelled: the files of cgroup v1, the "low" limits that were removed from the kernel, and
//! the carry-over when limits change. (In the model, a new slice begins then.)

mod lane;
pub(super) mod rules;
mod slice;

use super::jiffies::fires_at;
use lane::Lane;
use seekwell_core::{CgroupId, IoMaxLimits};
use slice::{Rate, Slice, Ticks};
use std::collections::{BTreeMap, VecDeque};

/// Number of reads and of writes in a group of eight bios that a cgroup may send at a time
/// (`THROTL_GRP_QUANTUM`).
const QUANTUM: [u32; 2] = [6, 2];
/// Number of bios after which the timer starts a new round (`THROTL_QUANTUM`).
const ROUND: u32 = 32;
/// Largest number of slices by which a timer is set ahead.
const LONGEST_SLICES: i64 = 8;
/// Index of the root, which has no parent.
const ROOT: usize = 0;

/// A bio, with the properties that `io.max` uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Number that is returned when the bio is released.
    pub id: u64,
    /// Whether the bio is not a read.
    pub write: bool,
    /// Bytes of the bio, or `None` if they were charged before a split.
    pub bytes: Option<u64>,
    /// Whether the bio passes the limit and is only charged, because other tasks may wait for it
    /// (metadata).
    pub passes: bool,
}

#[derive(Clone, Debug, Default)]
struct Group {
    parent: Option<usize>,
    rates: [Rate; 2],
    slices: [Slice; 2],
    waiting: [Lane; 2],
    /// Whether the queue of a direction was empty before its last bio arrived.
    was_empty: bool,
    /// Time at which the first bio may leave. `stood`: order in which the group joined the queue of
    /// its parent.
    due: i64,
    stood: u64,
    /// Timer for the children of the group.
    timer: Option<i64>,
}

impl Group {
    fn waits(&self) -> bool {
        self.waiting.iter().any(|l| !l.is_empty())
    }
}

/// The limits of all cgroups on one disk.
#[derive(Clone, Debug)]
pub struct IoMax {
    ticks: Ticks,
    groups: Vec<Group>,
    by_id: BTreeMap<CgroupId, usize>,
    limited: bool,
    stood: u64,
    released: VecDeque<u64>,
}

impl IoMax {
    /// Creates a controller without limits.
    pub fn new(hz: u32) -> Self {
        let hz = i64::from(hz);
        IoMax {
            ticks: Ticks {
                hz,
                slice: (hz / 10).max(1),
            },
            groups: vec![Group::default()],
            by_id: BTreeMap::from([(CgroupId::ROOT, ROOT)]),
            limited: false,
            stood: 0,
            released: VecDeque::new(),
        }
    }
    fn group(&mut self, id: CgroupId) -> usize {
        let new = self.groups.len();
        let at = *self.by_id.entry(id).or_insert(new);
        if at == new {
            self.groups.push(Group {
                parent: Some(ROOT),
                ..Group::default()
            });
        }
        at
    }
    /// Adds a cgroup below a parent. If the parent is unknown, it is added below the root.
    pub fn made(&mut self, id: CgroupId, parent: CgroupId) {
        let (at, above) = (self.group(id), self.group(parent));
        let mut up = Some(above);
        while let Some(u) = up.filter(|u| *u != at) {
            up = self.groups[u].parent;
        }
        // A cgroup must not become its own ancestor, and the root must have no parent.
        if at != ROOT && up.is_none() && !self.groups[at].waits() {
            self.groups[at].parent = Some(above);
        }
    }
    /// Removes a cgroup and its limits. The bios that it holds are released immediately.
    pub fn gone(&mut self, id: CgroupId, now: i64) {
        if let Some(at) = self.by_id.get(&id).copied().filter(|g| *g != ROOT) {
            self.limit(id, IoMaxLimits::default(), now);
            let waiting = std::mem::take(&mut self.groups[at].waiting);
            for mut lane in waiting {
                while let Some(bio) = lane.pop() {
                    self.released.push_back(bio.id);
                }
            }
        }
    }
    /// Writes the `io.max` of a cgroup. The root has no such file.
    pub fn limit(&mut self, id: CgroupId, limits: IoMaxLimits, now: i64) {
        let at = self.group(id);
        if at == ROOT {
            return;
        }
        let slice = Slice::begin(&self.ticks, now);
        let g = &mut self.groups[at];
        g.rates = [
            Rate {
                bps: limits.rbps,
                iops: limits.riops,
            },
            Rate {
                bps: limits.wbps,
                iops: limits.wiops,
            },
        ];
        g.slices = [slice; 2];
        self.limited = (self.groups.iter()).any(|g| g.rates.iter().any(Rate::is_limited));
        if self.groups[at].waits() {
            self.set_due(at, now);
            if let Some(parent) = self.groups[at].parent {
                self.set_timer(parent, now, true);
            }
        }
    }
    /// Returns whether any bio is checked.
    #[inline]
    pub fn on(&self) -> bool {
        self.limited
    }
    /// Returns the number of held bios.
    pub fn held(&self) -> usize {
        let of = |g: &Group| g.waiting.iter().map(Lane::len).sum::<usize>();
        self.groups.iter().map(of).sum()
    }

    /// Handles a bio of a cgroup (`blk_throtl_bio`). Returns true if the bio continues. Returns
    /// false if the bio is held until [`IoMax::released`] returns its number.
    pub fn ask(&mut self, id: CgroupId, bio: Held, now: i64) -> bool {
        let dir = usize::from(bio.write);
        let Some(&own) = self.by_id.get(&id) else {
            return true;
        };
        let (mut any, mut up) = (false, Some(own));
        while let Some(g) = up {
            any |= self.groups[g].rates[dir].is_limited();
            up = self.groups[g].parent;
        }
        if !any {
            return true;
        }
        let (mut at, mut from) = (own, own);
        while let Some(parent) = self.groups[at].parent {
            let g = &mut self.groups[at];
            let queued = !g.waiting[dir].is_empty();
            let (rate, slice) = (g.rates[dir], &mut g.slices[dir]);
            let fits = !queued && slice.wait(&self.ticks, &rate, queued, bio.bytes, now) == 0;
            if !fits && !bio.passes {
                self.hold(at, dir, from, bio);
                if self.groups[at].was_empty {
                    self.set_due(at, now);
                    self.set_timer(parent, now, true);
                }
                return false;
            }
            self.groups[at].slices[dir].charge(&self.ticks, &rate, bio.bytes, now);
            (from, at) = (at, parent);
        }
        true
    }
    /// Returns the number of the next released bio.
    pub fn released(&mut self) -> Option<u64> {
        self.released.pop_front()
    }
    /// Returns whether `released` has more bios to return.
    pub fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    fn hold(&mut self, at: usize, dir: usize, from: usize, bio: Held) {
        let g = &mut self.groups[at];
        g.was_empty |= g.waiting[dir].is_empty();
        g.waiting[dir].push(from, bio);
    }
    /// Sets the time at which the first read or write of a group may leave (`tg_update_disptime`).
    fn set_due(&mut self, at: usize, now: i64) {
        let mut least = i64::MAX;
        for dir in 0..2 {
            let g = &mut self.groups[at];
            if let Some(first) = g.waiting[dir].first() {
                let rate = g.rates[dir];
                let wait = g.slices[dir].wait(&self.ticks, &rate, true, first.bytes, now);
                least = least.min(wait);
            }
        }
        self.stood += 1;
        let g = &mut self.groups[at];
        (g.due, g.stood) = (now.saturating_add(least), self.stood);
        g.was_empty = false;
    }
    /// Returns the child of a group that is due first.
    fn first_due(&self, parent: usize) -> Option<usize> {
        let all = self.groups.iter().enumerate();
        let children = all.filter(|(_, g)| g.parent == Some(parent) && g.waits());
        children.min_by_key(|(_, g)| (g.due, g.stood)).map(|c| c.0)
    }
    /// Sets the timer of a group for its children. If a child is already due, sets the timer only
    /// with `even_if_due` (`throtl_schedule_next_dispatch`). Returns false if a child is due and
    /// the timer was not set.
    fn set_timer(&mut self, parent: usize, now: i64, even_if_due: bool) -> bool {
        let Some(first) = self.first_due(parent) else {
            return true;
        };
        let due = self.groups[first].due;
        if !even_if_due && due <= now {
            return false;
        }
        let expires = due.min(now + LONGEST_SLICES * self.ticks.slice);
        self.groups[parent].timer = Some(fires_at(now, expires));
        true
    }

    /// Returns the next jiffy in which a timer fires.
    pub fn timer(&self) -> Option<i64> {
        self.groups.iter().filter_map(|g| g.timer).min()
    }
    /// Fires the timers that are set for this jiffy or an earlier one (`throtl_pending_timer_fn`).
    pub fn fire(&mut self, now: i64) {
        while let Some(mut at) =
            (self.groups.iter()).position(|g| g.timer.is_some_and(|t| t <= now))
        {
            self.groups[at].timer = None;
            while self.send(at, now)
                && let Some(parent) = self.groups[at].parent
                && self.groups[at].was_empty
            {
                self.set_due(at, now);
                if self.set_timer(parent, now, false) {
                    break;
                }
                at = parent;
            }
        }
        for dir in 0..2 {
            while let Some(bio) = self.groups[ROOT].waiting[dir].pop() {
                self.released.push_back(bio.id);
            }
        }
    }
    /// Lets the due children of a group pass their bios on to the group. Returns true if any child
    /// did.
    fn send(&mut self, parent: usize, now: i64) -> bool {
        let mut any = false;
        loop {
            let mut sent = 0;
            while sent < ROUND
                && let Some(child) = self.first_due(parent)
                && self.groups[child].due <= now
            {
                sent += self.send_of(child, parent, now);
                if self.groups[child].waits() {
                    self.set_due(child, now);
                }
            }
            any |= sent > 0;
            if self.set_timer(parent, now, false) {
                return any;
            }
        }
    }
    fn send_of(&mut self, child: usize, parent: usize, now: i64) -> u32 {
        let mut sent = 0;
        for (dir, most) in QUANTUM.into_iter().enumerate() {
            for _ in 0..most {
                let g = &mut self.groups[child];
                let (rate, slice) = (g.rates[dir], &mut g.slices[dir]);
                let Some(bio) = g.waiting[dir].first().copied() else {
                    break;
                };
                if slice.wait(&self.ticks, &rate, true, bio.bytes, now) > 0 {
                    break;
                }
                g.waiting[dir].pop();
                slice.charge(&self.ticks, &rate, bio.bytes, now);
                self.hold(parent, dir, child, bio);
                sent += 1;
            }
        }
        sent
    }
}
