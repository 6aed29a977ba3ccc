//! `io.cost` (`blk-iocost.c`, 6.1 to 6.18): it divides the time of a device by weight. A model of
//! the device gives the cost of a bio. The clock of the device gives budget to each cgroup, in
//! proportion to the weights in use. A task whose cgroup has no budget left sleeps. The rate of the
//! clock follows the performance of the device.
//!
//! Modelled:
//! - the linear cost model with its default numbers;
//! - the fractions of a cgroup over all levels;
//! - the wake-up timer, periods, latency misses and waits;
//! - the rate of the clock;
//! - the donation of budget by idle or slow cgroups.
//!
//! This module does not depend on a queue. Tests replay rounds that were recorded on a running
//! kernel (`tests/iocost.rs`).
//!
//! Not modelled:
//! - debts of swap, and of metadata that other tasks wait for (they pay like all bios);
//! - a cgroup's own bios next to those of its children;
//! - weights of single devices, and other cost models;
//! - donations to cgroups other than the siblings of the donor.

mod clock;
mod params;
pub(super) mod rules;

use super::groups::Groups;
use super::jiffies::{Moment, fires_at};
pub use clock::Report;
use clock::{Clock, Seen};
use params::{Class, PER_US, Params};
use seekwell_core::{CgroupId, IoCostModel, IoCostQos};
use std::collections::VecDeque;

/// The sum of the fractions of all groups.
const WHOLE: u64 = 1 << 16;
/// The default `io.weight`.
const WEIGHT: u32 = 100;
/// Limits in percent of a period. A group whose margin is below the first limit has too little
/// budget. A donor whose margin is below the second limit takes back its whole fraction. The third
/// limit is the largest credit that a group may keep.
const LOW_PCT: u64 = 20;
const LEAST_PCT: u64 = 10;
const CREDIT_PCT: u64 = 50;
/// Delay of the wake-up timer, with its slack, percent of a period.
const TIMER_PCT: u64 = 2;
/// Upper bound of a cost: one hour.
const DEAREST: u64 = 3600 << 37;
/// Time at the end of its range after which a device moves to another class, us.
const CLASS_US: u64 = 10_000_000;

/// A bio, with the properties that `io.cost` uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asks {
    /// Identifies the bio. If the bio sleeps, the number is returned when the bio has paid.
    pub id: u64,
    /// Whether the bio is not a read.
    pub write: bool,
    /// First sector.
    pub sector: u64,
    /// Length in sectors. An empty bio costs nothing.
    pub sectors: u32,
}

/// A payment. It must be passed back with the completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paid(i64);

#[derive(Clone, Debug, Default)]
struct Group {
    weight: Option<u32>,
    active: bool,
    /// The group's own time: the sum of all that it paid. `done`: the sum of all that completed.
    paid: i64,
    done: i64,
    /// End sector of the last bio.
    end: Option<u64>,
    /// Cost of the group's bios in this period, not divided by weight.
    usage: u64,
    /// Whether the group paid anything in this period, and in the previous period.
    fresh: [bool; 2],
    /// The weight that the group keeps while it donates the rest to its siblings, in units of
    /// [`WHOLE`]. `margin`: the margin of the group at the time of the donation.
    keeps: Option<u64>,
    margin: i64,
    activated_us: u64,
    waiting: VecDeque<(u64, u64)>,
    wakes_us: Option<u64>,
}

/// The controller for one disk.
#[derive(Clone, Debug)]
pub struct IoCost {
    hz: i64,
    class: Class,
    class_since_us: Option<u64>,
    qos: IoCostQos,
    model: Option<IoCostModel>,
    by_hand: bool,
    params: Params,
    groups: Groups<Group>,
    clock: Clock,
    seen: Seen,
    timer: Option<i64>,
    granted: VecDeque<(u64, Paid)>,
    report: Report,
}

impl IoCost {
    /// Creates a controller that is off. `depth` is the `nr_requests` of the queue.
    pub fn new(hz: u32, rotational: bool, depth: u32) -> Self {
        let class = Class::for_device(rotational, depth);
        let qos = IoCostQos::default();
        IoCost {
            hz: hz.into(),
            class,
            class_since_us: None,
            qos,
            model: None,
            by_hand: false,
            params: Params::for_class(class, &qos, None),
            groups: Groups::new(),
            clock: Clock::new(),
            seen: Seen::default(),
            timer: None,
            granted: VecDeque::new(),
            report: Report::default(),
        }
    }
    /// Returns whether the controller is on.
    #[inline]
    pub fn on(&self) -> bool {
        self.qos.enable
    }
    /// Returns the results of the last period.
    pub fn report(&self) -> Report {
        self.report
    }
    /// Returns the number of sleeping bios.
    pub fn waiting(&self) -> usize {
        self.groups.iter().map(|g| g.waiting.len()).sum()
    }

    /// Adds a cgroup below a parent.
    pub fn made(&mut self, id: CgroupId, parent: CgroupId) {
        self.groups.made(id, parent);
    }
    /// Removes a cgroup. Its sleeping bios continue without paying.
    pub fn gone(&mut self, id: CgroupId) {
        if let Some(at) = self.groups.find(id) {
            self.let_all_go(at);
            self.groups[at] = Group::default();
        }
    }
    fn let_all_go(&mut self, at: usize) {
        let g = &mut self.groups[at];
        g.wakes_us = None;
        let all = g.waiting.drain(..).map(|w| (w.0, Paid::default()));
        self.granted.extend(all);
    }
    /// Writes the `io.weight` of a cgroup, 1 to 10,000.
    pub fn set_weight(&mut self, id: CgroupId, weight: u32) {
        let at = self.groups.place(id);
        self.groups[at].weight = Some(weight.clamp(1, 10_000));
    }
    /// Writes the `io.cost.qos` of the root.
    pub fn set_qos(&mut self, qos: IoCostQos) {
        let bare = IoCostQos {
            enable: qos.enable,
            ..IoCostQos::default()
        };
        self.by_hand |= qos != bare;
        if self.qos.enable && !qos.enable {
            (0..self.groups.len()).for_each(|at| self.let_all_go(at));
            self.groups.iter_mut().for_each(|g| g.active = false);
            self.timer = None;
        }
        self.qos = qos;
        self.renew();
    }
    /// Writes the `io.cost.model` of the root.
    pub fn set_model(&mut self, model: IoCostModel) {
        (self.model, self.by_hand) = (Some(model), true);
        self.renew();
    }
    fn renew(&mut self) {
        self.params = Params::for_class(self.class, &self.qos, self.model.as_ref());
    }

    /// Returns a percentage of a period, in units of the clock.
    fn margin(&self, pct: u64) -> i64 {
        (self.params.period_us * pct / 100 * self.clock.base) as i64
    }
    /// Returns whether the group is active or contains an active group.
    fn is_active(&self, at: usize) -> bool {
        self.groups[at].active
            || (0..self.groups.len())
                .any(|c| self.groups.parent(c) == Some(at) && self.is_active(c))
    }
    fn weight(&self, at: usize) -> u64 {
        u64::from(self.groups[at].weight.unwrap_or(WEIGHT)) * WHOLE
    }
    /// Returns the group's fraction of the weights of all active groups.
    fn share(&self, at: usize) -> u64 {
        self.share_by(at, |g| self.weight(g))
    }
    /// Returns the group's fraction of the weights in use. It is smaller than `share` while the
    /// group donates, and larger while a sibling donates.
    fn in_use(&self, at: usize) -> u64 {
        self.share_by(at, |g| self.groups[g].keeps.unwrap_or(self.weight(g)))
    }
    fn share_by(&self, mut at: usize, weight: impl Fn(usize) -> u64) -> u64 {
        let mut share = WHOLE;
        while let Some(parent) = self.groups.parent(at) {
            let siblings =
                (0..self.groups.len()).filter(|s| self.groups.parent(*s) == Some(parent));
            let all: u64 = (siblings.filter(|s| *s == at || self.is_active(*s)))
                .map(&weight)
                .sum();
            share = (share * weight(at)).div_ceil(all.max(1));
            at = parent;
        }
        share
    }
    fn cost(&self, at: usize, absolute: u64) -> i64 {
        let cost = u128::from(absolute) * u128::from(WHOLE);
        let cost = cost.div_ceil(u128::from(self.in_use(at).max(1)));
        cost.min(DEAREST.into()) as i64
    }

    /// Asks for budget for a bio of a cgroup (`ioc_rqos_throttle`). Returns its payment, or `None`
    /// if the bio sleeps until [`IoCost::granted`] returns its number. Bios of the root pay
    /// nothing.
    pub fn ask(&mut self, cgroup: CgroupId, asks: Asks, now: Moment) -> Option<Paid> {
        let at = self.groups.place(cgroup);
        if self.groups.parent(at).is_none() || asks.sectors == 0 {
            return Some(Paid::default());
        }
        let us = now.ns / 1000;
        let absolute = self.price(at, &asks);
        if !self.groups[at].active {
            self.activate(at, now);
        }
        let vnow = self.clock.at(us);
        self.take_back(at, absolute, vnow);
        let cost = self.cost(at, absolute);
        let g = &mut self.groups[at];
        if g.waiting.is_empty() && g.paid + cost <= vnow {
            return Some(self.pay(at, absolute, cost));
        }
        // A group with sleeping bios gets its full weight.
        g.keeps = None;
        g.waiting.push_back((asks.id, absolute));
        self.kick(at, us);
        // With the full weight, the budget may already be sufficient.
        match self.granted.back() {
            Some((id, paid)) if *id == asks.id && self.groups[at].waiting.is_empty() => {
                let paid = *paid;
                self.granted.pop_back();
                Some(paid)
            }
            _ => None,
        }
    }
    fn price(&mut self, at: usize, asks: &Asks) -> u64 {
        let g = &mut self.groups[at];
        let distance = g.end.map_or(0, |e| e.abs_diff(asks.sector));
        g.end = Some(asks.sector + u64::from(asks.sectors));
        self.params.of_bio(asks.write, asks.sectors, distance)
    }
    /// Charges a bio that was merged into a request. It pays for its bytes and never waits.
    pub fn merged(&mut self, cgroup: CgroupId, asks: Asks) -> Paid {
        let at = self.groups.place(cgroup);
        if self.groups.parent(at).is_none() || !self.groups[at].active {
            return Paid::default();
        }
        self.groups[at].end = Some(asks.sector + u64::from(asks.sectors));
        let absolute = self.params.of_size(asks.write, asks.sectors);
        let cost = self.cost(at, absolute);
        self.pay(at, absolute, cost)
    }
    fn pay(&mut self, at: usize, absolute: u64, cost: i64) -> Paid {
        let g = &mut self.groups[at];
        g.paid += cost;
        g.usage += absolute;
        g.fresh[0] = true;
        Paid(cost)
    }
    /// Activates a group. It starts with a limited credit (`iocg_activate`).
    fn activate(&mut self, at: usize, now: Moment) {
        let us = now.ns / 1000;
        if self.timer.is_none() {
            self.clock.begin(us);
            self.set_timer(now);
        }
        let paid = self.clock.at(us) - self.margin(CREDIT_PCT);
        let g = &mut self.groups[at];
        (g.active, g.activated_us) = (true, us);
        (g.paid, g.done) = (paid, paid);
        (g.usage, g.fresh, g.keeps) = (0, [true, false], None);
    }
    fn set_timer(&mut self, now: Moment) {
        let ticks = (self.params.period_us * self.hz as u64).div_ceil(1_000_000);
        self.timer = Some(fires_at(now.jiffy, now.jiffy + ticks as i64));
    }
    /// Takes back the weight of a donor, in quarters, until its bio fits
    /// (`adjust_inuse_and_calc_cost`).
    fn take_back(&mut self, at: usize, absolute: u64, vnow: i64) {
        let weight = self.weight(at);
        let left = |c: &Self| vnow - c.groups[at].paid - c.cost(at, absolute);
        let margin = left(self);
        let g = &self.groups[at];
        if g.keeps.is_none() || margin >= g.margin || margin >= self.margin(LOW_PCT) {
            return;
        }
        while let Some(keeps) = self.groups[at].keeps {
            let more = keeps + weight.div_ceil(4);
            self.groups[at].keeps = Some(more).filter(|w| *w < weight);
            if left(self) >= 0 {
                break;
            }
        }
        self.groups[at].margin = vnow - self.groups[at].paid;
    }

    /// Lets sleeping bios pay in their order, as long as the budget lasts (`iocg_kick_waitq`).
    fn kick(&mut self, at: usize, us: u64) {
        let vnow = self.clock.at(us);
        while let Some(&(id, absolute)) = self.groups[at].waiting.front() {
            let cost = self.cost(at, absolute);
            let short = self.groups[at].paid + cost - vnow;
            if short > 0 {
                // The wait is computed with the base rate, without the compensation for unused
                // time.
                let wait_us = (short as u64).div_ceil(self.clock.base.max(1));
                let slack_us = self.params.period_us * TIMER_PCT / 100;
                self.groups[at].wakes_us = Some(us + wait_us + slack_us);
                return;
            }
            self.groups[at].waiting.pop_front();
            let paid = self.pay(at, absolute, cost);
            self.granted.push_back((id, paid));
        }
        self.groups[at].wakes_us = None;
    }
    /// Returns the next sleeping bio that has paid, and its payment.
    pub fn granted(&mut self) -> Option<(u64, Paid)> {
        self.granted.pop_front()
    }
    /// Returns whether `granted` has more bios to return.
    pub fn has_granted(&self) -> bool {
        !self.granted.is_empty()
    }
    /// Handles the completion of a bio.
    pub fn done(&mut self, cgroup: CgroupId, paid: Paid) {
        if let Some(at) = self.groups.find(cgroup) {
            self.groups[at].done += paid.0;
        }
    }
    /// Handles the completion of a request. `latency_ns` is the time since the request passed the
    /// controller. `rq_wait_ns` is the part of this time that the request waited for a tag.
    pub fn completed(&mut self, write: bool, sectors: u32, latency_ns: u64, rq_wait_ns: u64) {
        let dir = usize::from(write);
        let size_ns = self.params.of_size(write, sectors) * 1000 / PER_US;
        match latency_ns.saturating_sub(size_ns) <= self.params.latency_ns[dir] {
            true => self.seen.met[dir] += 1,
            false => self.seen.missed[dir] += 1,
        }
        self.seen.rq_wait_ns += rq_wait_ns;
    }

    /// Returns the time at which the next wake-up timer fires, us.
    pub fn wakes_us(&self) -> Option<u64> {
        self.groups.iter().filter_map(|g| g.wakes_us).min()
    }
    /// Fires the wake-up timers that are due.
    pub fn wake(&mut self, now: Moment) {
        let us = now.ns / 1000;
        for at in 0..self.groups.len() {
            if self.groups[at].wakes_us.is_some_and(|w| w <= us) {
                self.kick(at, us);
            }
        }
    }
    /// Returns the jiffy in which the period ends.
    pub fn timer(&self) -> Option<i64> {
        self.timer
    }
    /// Ends the period (`ioc_timer_fn`).
    pub fn fire(&mut self, now: Moment) -> Report {
        let us = now.ns / 1000;
        self.timer = None;
        let vnow = self.clock.at(us);
        self.idle_or_awake(us, vnow);
        let (mut short, mut lagging) = (0, 0);
        let mut give = Vec::new();
        let spent = vnow - self.clock.began;
        for at in 0..self.groups.len() {
            if !self.groups[at].active {
                continue;
            }
            let g = &self.groups[at];
            let has_goal = self.params.allowed_ppm.iter().any(|a| *a < params::MILLION);
            lagging += u32::from(has_goal && g.paid > g.done && g.done < vnow - spent);
            let waits = !g.waiting.is_empty();
            let behind = !waits && g.paid < vnow - self.margin(LOW_PCT);
            let kept = match g.keeps.is_some() || behind {
                true => self.would_keep(at, us, vnow),
                false => None,
            };
            match kept {
                Some(keeps) => give.push((at, keeps)),
                None => {
                    short += 1;
                    self.groups[at].keeps = None;
                }
            }
            self.groups[at].usage = 0;
        }
        if short > 0 {
            self.give(&give, vnow);
        }
        let seen = std::mem::take(&mut self.seen);
        self.report = self.clock.judge(&self.params, &seen, short, lagging);
        self.clock.begin(us);
        if self.groups.iter().any(|g| g.active) {
            self.set_timer(now);
        } else {
            (self.clock.busy, self.clock.error) = (0, 0);
        }
        self.clock.make_up(self.params.period_us);
        self.reclass(us);
        self.report
    }
    /// Reduces groups to the given fractions. Their siblings divide the rest by weight
    /// (`transfer_surpluses`).
    fn give(&mut self, all: &[(usize, u64)], vnow: i64) {
        for &(at, keeps) in all {
            let parent = self.groups.parent(at);
            let gives = |g: usize| all.iter().find(|a| a.0 == g).map(|a| a.1);
            let (mut kept, mut full) = (0, 0);
            for g in 0..self.groups.len() {
                if self.groups.parent(g) == parent && self.is_active(g) {
                    match gives(g) {
                        Some(keeps) => kept += keeps,
                        None => full += self.weight(g),
                    }
                }
            }
            let above = parent.map_or(WHOLE, |p| self.in_use(p));
            let rest = above.saturating_sub(kept);
            if full == 0 || rest == 0 {
                continue;
            }
            let in_use = (u128::from(full) * u128::from(keeps)).div_ceil(u128::from(rest));
            let weight = self.weight(at);
            let in_use = u64::try_from(in_use).unwrap_or(weight).max(1);
            let g = &mut self.groups[at];
            g.keeps = Some(in_use).filter(|w| *w < weight);
            g.margin = vnow - g.paid;
        }
    }
    /// Checks the sleeping bios. Deactivates groups that had no bios for a period.
    fn idle_or_awake(&mut self, us: u64, vnow: i64) {
        for at in 0..self.groups.len() {
            if !self.groups[at].active {
                continue;
            }
            if !self.groups[at].waiting.is_empty() {
                self.kick(at, us);
            }
            let g = &mut self.groups[at];
            let [this, _] = g.fresh;
            let idle = !this && g.paid == g.done && g.waiting.is_empty();
            g.fresh = [false, this];
            if idle {
                let share = self.in_use(at);
                let excess = vnow - self.groups[at].paid - self.margin(CREDIT_PCT);
                self.throw_away(excess, share);
                let g = &mut self.groups[at];
                (g.active, g.keeps) = (false, None);
            }
        }
    }
    fn throw_away(&mut self, excess: i64, share: u64) {
        if excess > 0 {
            self.clock.error -= (i128::from(excess) * i128::from(share) / WHOLE as i128) as i64;
        }
    }
    /// Returns the fraction that a group would keep, if it is less than the group's own fraction
    /// (`hweight_after_donation`).
    fn would_keep(&mut self, at: usize, us: u64, vnow: i64) -> Option<u64> {
        let own = self.share(at);
        let share = self.in_use(at);
        let g = &self.groups[at];
        if !g.waiting.is_empty() || g.paid > vnow - self.margin(LEAST_PCT) {
            return None;
        }
        let excess = vnow - g.paid - self.margin(CREDIT_PCT);
        let (usage, under_way) = (g.usage, (g.paid - g.done).max(0) as u64);
        let began_us = self.clock.began_us.max(g.activated_us);
        if excess > 0 {
            let g = &mut self.groups[at];
            g.paid += excess;
            g.done += excess;
            self.throw_away(excess, share);
        }
        // The group used at least the cost of its bios in progress.
        let used =
            usage.max((u128::from(under_way) * u128::from(share) / u128::from(WHOLE)) as u64);
        let used_us = used / self.clock.base.max(1);
        let length_us = us.saturating_sub(began_us).max(1);
        let used = (used_us * WHOLE).div_ceil(length_us);
        // As in the kernel's calculation, a use of 100 % counts as almost no use.
        let used = if used >= WHOLE { 1 } else { used.max(1) };
        let credit = (vnow - self.groups[at].paid).max(0) as u64;
        let spent = (vnow - self.clock.began).max(1) as u64;
        let credit = (u128::from(credit) * u128::from(WHOLE) / u128::from(spent)) as u64;
        let keeps = (used * WHOLE).div_ceil(WHOLE / 2 + credit).max(1);
        Some(keeps).filter(|k| *k < own)
    }
    /// Changes the class of a device whose performance is far from the default numbers. Done only
    /// if the user wrote neither a model nor latency targets.
    fn reclass(&mut self, us: u64) {
        let to = match self.class {
            Class::Ssd if self.clock.base >= 5 * PER_US => Class::FastSsd,
            Class::FastSsd if self.clock.base <= PER_US / 10 => Class::Ssd,
            _ => {
                self.class_since_us = None;
                return;
            }
        };
        let since = *self.class_since_us.get_or_insert(us);
        if !self.by_hand && us - since >= CLASS_US {
            (self.class, self.class_since_us) = (to, None);
            (self.clock.base, self.clock.rate) = (PER_US, PER_US);
            self.renew();
        }
    }
}
