//! `io.latency` (`blk-iolatency.c`, 6.1 to 6.18): while a cgroup misses its latency target, the
//! queue depth of its siblings is halved step by step.
//!
//! Each level has a *cookie* that counts these steps. Each cgroup follows the cookie of its level
//! when it submits. Windows, the protected group and the recovery are also modelled. This module
//! does not depend on a queue. Tests replay rounds that were recorded on a running kernel
//! (`tests/iolatency.rs`).
//!
//! Not modelled: the delays on return to user space that the kernel adds to a cgroup at depth 1.
//! They matter only for swap and for metadata that other tasks wait for.

pub(super) mod rules;
mod stat;

use super::groups::{Groups, ROOT};
use super::jiffies::{Moment, fires_at};
use seekwell_core::CgroupId;
use stat::Stat;
use std::collections::VecDeque;

/// Value of the cookie of a level without throttling (`DEFAULT_SCALE_COOKIE`).
const FREE: u32 = 1_000_000;
/// Length of a window in latency targets. `WINDOW_NS` bounds this length, ns.
const WINDOW_TARGETS: u64 = 16;
const WINDOW_NS: (u64, u64) = (100_000_000, 1_000_000_000);
/// Minimum time between two changes of the cookie, ns (`BLKIOLATENCY_MIN_ADJUST_TIME`).
const ADJUST_NS: u64 = 500_000_000;
/// Number of samples that a recovery needs (`BLKIOLATENCY_MIN_GOOD_SAMPLES`).
const GOOD_SAMPLES: u64 = 5;
/// Time without an event after which no group is protected, ns.
const FORGET_NS: u64 = 5_000_000_000;
/// Depth of a group without limit.
const UNLIMITED: u32 = u32::MAX;

/// Data of a level about its child groups (`child_latency_info`).
#[derive(Clone, Copy, Debug)]
struct Level {
    cookie: u32,
    event_ns: Option<u64>,
    /// The smallest latency target that was missed, ns. 0: none was missed.
    protected_ns: u64,
    protected: Option<usize>,
    /// Number of samples of all children.
    samples: u64,
}

impl Default for Level {
    fn default() -> Self {
        Level {
            cookie: FREE,
            event_ns: None,
            protected_ns: 0,
            protected: None,
            samples: 0,
        }
    }
}

#[derive(Clone, Debug)]
struct Group {
    /// Latency target, ns. 0: no target.
    target_ns: u64,
    used: u32,
    limit: u32,
    cookie: u32,
    /// Number of times that a depth of 1 was not small enough.
    punished: u32,
    window_ns: Option<u64>,
    window: Stat,
    kept: Stat,
    samples: u64,
    waiting: VecDeque<u64>,
    level: Level,
}

impl Default for Group {
    fn default() -> Self {
        Group {
            target_ns: 0,
            used: 0,
            limit: UNLIMITED,
            cookie: FREE,
            punished: 0,
            window_ns: None,
            window: Stat::default(),
            kept: Stat::default(),
            samples: 0,
            waiting: VecDeque::new(),
            level: Level::default(),
        }
    }
}

/// The controller for one disk.
#[derive(Clone, Debug)]
pub struct IoLatency {
    hz: i64,
    nr_requests: u32,
    rotational: bool,
    groups: Groups<Group>,
    on: bool,
    timer: Option<i64>,
    granted: VecDeque<u64>,
}

impl IoLatency {
    /// Creates a controller without targets, which does nothing.
    pub fn new(hz: u32, nr_requests: u32, rotational: bool) -> Self {
        IoLatency {
            hz: hz.into(),
            nr_requests: nr_requests.max(1),
            rotational,
            groups: Groups::new(),
            on: false,
            timer: None,
            granted: VecDeque::new(),
        }
    }
    /// Adds a cgroup below a parent.
    pub fn made(&mut self, id: CgroupId, parent: CgroupId) {
        let at = self.groups.place(id);
        if self.groups[at].used == 0 && self.groups[at].waiting.is_empty() {
            self.groups.made(id, parent);
        }
    }
    /// Removes a cgroup together with its target.
    pub fn gone(&mut self, id: CgroupId, now: Moment) {
        self.set_target(id, None, now);
        if let Some(at) = self.groups.find(id) {
            self.groups[at].limit = UNLIMITED;
            self.wake(at, now);
        }
    }
    /// Handles a change of `queue/nr_requests`.
    pub fn depth_changed(&mut self, nr_requests: u32) {
        self.nr_requests = nr_requests.max(1);
    }
    /// Writes the `io.latency` of a cgroup, us. `None` or 0 removes the target. The root has no
    /// target.
    pub fn set_target(&mut self, id: CgroupId, us: Option<u64>, now: Moment) {
        let at = self.groups.place(id);
        let target_ns = us.unwrap_or(0).saturating_mul(1000);
        let Some(parent) = self.groups.parent(at) else {
            return;
        };
        if self.groups[at].target_ns == target_ns {
            return;
        }
        self.groups[at].target_ns = target_ns;
        let level = &mut self.groups[parent].level;
        *level = Level {
            samples: level.samples,
            ..Level::default()
        };
        self.on = self.groups.iter().any(|g| g.target_ns > 0);
        if !self.on {
            // The last target is gone, so all sleeping bios continue.
            for at in 0..self.groups.len() {
                self.groups[at].limit = UNLIMITED;
                self.groups[at].cookie = FREE;
                self.wake(at, now);
            }
            self.timer = None;
        }
    }
    /// Returns whether any cgroup has a target.
    #[inline]
    pub fn on(&self) -> bool {
        self.on
    }
    /// Returns the limit of a cgroup (`None` for no limit), and the number of its bios in progress.
    pub fn depth(&self, id: CgroupId) -> (Option<u32>, u32) {
        let g = self.groups.find(id).map(|at| &self.groups[at]);
        g.map_or((None, 0), |g| {
            (Some(g.limit).filter(|l| *l != UNLIMITED), g.used)
        })
    }
    /// Returns the number of sleeping bios.
    pub fn waiting(&self) -> usize {
        self.groups.iter().map(|g| g.waiting.len()).sum()
    }
    /// Returns the number of slots in use by all cgroups.
    pub fn used(&self) -> u32 {
        self.groups.iter().map(|g| g.used).sum()
    }

    /// Asks for the slots of a bio (`blkcg_iolatency_throttle`). Returns true if the bio gets them.
    /// Returns false if it sleeps until [`IoLatency::granted`] returns its `id`.
    pub fn ask(&mut self, id: u64, cgroup: CgroupId, now: Moment) -> bool {
        if self.timer.is_none() {
            self.timer = Some(fires_at(now.jiffy, now.jiffy + self.hz));
        }
        let at = self.groups.place(cgroup);
        self.climb(id, at, now)
    }
    /// Takes a slot of a group and of each of its ancestors. Returns false if the bio sleeps at one
    /// of them.
    fn climb(&mut self, id: u64, mut at: usize, now: Moment) -> bool {
        while let Some(parent) = self.groups.parent(at) {
            self.follow(at, parent, now);
            let g = &mut self.groups[at];
            if !g.waiting.is_empty() || g.used >= g.limit {
                g.waiting.push_back(id);
                return false;
            }
            g.used += 1;
            at = parent;
        }
        true
    }
    /// Returns the next sleeping bio that has got its slots.
    pub fn granted(&mut self) -> Option<u64> {
        self.granted.pop_front()
    }
    /// Returns whether `granted` has more bios to return.
    pub fn has_granted(&self) -> bool {
        !self.granted.is_empty()
    }
    fn wake(&mut self, at: usize, now: Moment) {
        while self.groups[at].used < self.groups[at].limit
            && let Some(id) = self.groups[at].waiting.pop_front()
        {
            self.groups[at].used += 1;
            let up = self.groups.parent(at).unwrap_or(ROOT);
            if self.climb(id, up, now) {
                self.granted.push_back(id);
            }
        }
    }

    /// Lets a group follow the cookie of its level by one step, even if the cookie has moved
    /// further (`check_scale_change`).
    fn follow(&mut self, at: usize, parent: usize, now: Moment) {
        let level = self.groups[parent].level;
        let most = self.nr_requests;
        let g = &mut self.groups[at];
        let before = std::mem::replace(&mut g.cookie, level.cookie);
        if before == level.cookie {
            return;
        }
        if level.cookie < before {
            let few = (level.samples * 5 / 100).max(1);
            let spared =
                level.protected_ns == 0 || g.target_ns <= level.protected_ns || g.samples <= few;
            if g.target_ns > 0 && spared {
                return;
            }
            match g.limit {
                1 => g.punished += 1,
                limit => g.limit = (limit.min(most) / 2).max(1),
            }
            return;
        }
        if level.cookie == FREE {
            (g.limit, g.punished) = (UNLIMITED, 0);
        } else if g.limit == 1 && g.punished > 0 {
            g.punished -= 1;
            return;
        } else if g.limit < most {
            g.limit = most.min(g.limit + (most / 16).max(1));
        } else {
            return;
        }
        self.wake(at, now);
    }

    /// Handles the completion of a bio, which was submitted at `submitted_ns`
    /// (`blkcg_iolatency_done_bio`).
    pub fn done(&mut self, cgroup: CgroupId, submitted_ns: u64, now: Moment) {
        let Some(mut at) = self.groups.find(cgroup) else {
            return;
        };
        while let Some(parent) = self.groups.parent(at) {
            let g = &mut self.groups[at];
            g.used = g.used.saturating_sub(1);
            if g.target_ns > 0 {
                g.window
                    .sample(now.ns.saturating_sub(submitted_ns), g.target_ns);
                let (least, most) = WINDOW_NS;
                let length_ns = (g.target_ns.saturating_mul(WINDOW_TARGETS)).clamp(least, most);
                if g.window_ns.is_none_or(|began| now.ns - began >= length_ns) {
                    g.window_ns = Some(now.ns);
                    self.window_ended(at, parent, now);
                }
            }
            self.wake(at, now);
            at = parent;
        }
    }
    /// Evaluates the window of a group (`iolatency_check_latencies`).
    fn window_ended(&mut self, at: usize, parent: usize, now: Moment) {
        let rotational = self.rotational;
        let g = &mut self.groups[at];
        let target_ns = g.target_ns;
        let window = std::mem::take(&mut g.window);
        let good = window.good(rotational, target_ns);
        let (mut kept, before) = (g.kept, g.samples);
        let level = &mut self.groups[parent].level;
        if good && level.cookie == FREE {
            return;
        }
        kept.add(window);
        level.samples = level.samples.saturating_sub(before) + kept.total;
        let too_early = level.event_ns.is_some_and(|e| now.ns - e < ADJUST_NS);
        let better = good && kept.good(rotational, target_ns);
        let mut up = None;
        let keeps = if too_early {
            true
        } else if better {
            if kept.total >= GOOD_SAMPLES && level.protected == Some(at) {
                level.event_ns = Some(now.ns);
                up = Some(true);
            }
            kept.total < GOOD_SAMPLES
        } else {
            if level.protected_ns == 0 || level.protected_ns >= target_ns {
                level.event_ns = Some(now.ns);
                if level.protected.is_none() || level.protected_ns > target_ns {
                    (level.protected_ns, level.protected) = (target_ns, Some(at));
                }
                up = Some(false);
            }
            false
        };
        let g = &mut self.groups[at];
        g.samples = kept.total;
        g.kept = if keeps { kept } else { Stat::default() };
        if let Some(up) = up {
            self.scale(parent, up);
        }
    }
    /// Raises or lowers the cookie of a level (`scale_cookie_change`).
    fn scale(&mut self, parent: usize, up: bool) {
        let most = self.nr_requests;
        let cookie = &mut self.groups[parent].level.cookie;
        let below = FREE - *cookie;
        *cookie = match up {
            true if *cookie + (most / 16).max(1) > FREE => FREE,
            true if below > most => *cookie + 1,
            true => *cookie + (most / 16).max(1),
            false if below > most => *cookie - u32::from(below < 2 * most),
            false => *cookie - (most / 4).max(1),
        };
    }

    /// Returns the jiffy in which the timer fires.
    pub fn timer(&self) -> Option<i64> {
        self.timer
    }
    /// Fires the timer (`blkiolatency_timer_fn`). Levels without a protected group recover.
    pub fn fire(&mut self, now: Moment) {
        self.timer = None;
        for parent in 0..self.groups.len() {
            let level = &mut self.groups[parent].level;
            if level.cookie == FREE {
                continue;
            }
            if level.protected.is_none() {
                self.scale(parent, true);
            } else if level.event_ns.is_none_or(|e| now.ns - e >= FORGET_NS) {
                level.protected = None;
            }
        }
    }
}
