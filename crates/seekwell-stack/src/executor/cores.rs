//! Cores: who runs, and for how long.
//!
//! Cores are shared fairly, as CFS shares them: where more want one than there are, whoever had
//! the least CPU time is next, and who slept comes back at most a credit behind the others. So a
//! program of many short calls gets as much as one of few long ones. Who has a core keeps it from
//! call to call until its slice is over (a call's end is no reason to switch), or until somebody
//! wakes up on that core who is behind it by more than the wake-up granularity: that one has the
//! core at once. Left out: a run queue a core (all share one), the clock tick (a slice ends when it
//! is over), nice levels, and the interactivity estimator of kernels before 2.6.23.

use super::rt::{Actor, Rt};
use super::turns::key;
use seekwell_core::{Instant, Nanos};

/// One of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CoreState {
    pub(super) runs: Option<Actor>,
    pub(super) since: Instant,
    pub(super) until: Instant,
    /// CPU time its actor has had since it was given the core, ns, without the piece that runs.
    pub(super) turn_ns: u64,
    /// Somebody woke up who goes before its actor.
    pub(super) yields: bool,
}

impl Rt {
    /// `a` wants a core for `ns`. [`Rt::core_event`] says when it has had it.
    pub(crate) fn want_cpu(&mut self, a: Actor, ns: u64) {
        let ns = self.lasts(ns);
        self.cpu_used += ns;
        (self.cpu_left[a as usize], self.cut[a as usize]) = (ns, ns);
        if self.goes_on(a) {
            return;
        }
        let had = &mut self.had[a as usize];
        *had = (*had).max(self.least.saturating_sub(self.credit_ns));
        if let Some(core) = self.idle_core(self.core_of[a as usize]) {
            return self.start(core, a);
        }
        if self.unlimited && self.cores.len() < usize::from(u16::MAX) {
            self.cores.push(CoreState::default());
            self.idle_at.push(0);
            self.ends.grow(self.cores.len());
            return self.start((self.cores.len() - 1) as u16, a);
        }
        let first = self.runq.is_empty();
        self.queue(a);
        if first {
            // Whoever ran without limit now has a slice, counted from where it began.
            for i in 0..self.cores.len() {
                let (c, slice) = (self.cores[i], Nanos(self.slice_ns));
                if c.until > c.since + slice {
                    self.set_core(i as u16, c.since, (c.since + slice).max(self.now));
                }
            }
        }
        self.preempt(a);
    }
    /// How long a core of this machine takes for what costs `ns`.
    #[inline]
    pub(crate) fn lasts(&self, ns: u64) -> u64 {
        match self.cpu_permille {
            1000 => ns,
            speed => (ns.saturating_mul(1000) / speed).max(1),
        }
    }
    /// What was left of an actor's last piece when it had to wait in it; all of it if it had to wait
    /// for its beginning only.
    pub(crate) fn left_at_cut(&self, a: Actor) -> Nanos {
        Nanos(self.cut[a as usize])
    }
    /// An actor that asks again at the instant at which it had what it asked for keeps its core,
    /// unless its slice is over or it is to yield.
    #[inline]
    fn goes_on(&mut self, a: Actor) -> bool {
        let core = self.core_of[a as usize];
        let c = self.cores[core as usize];
        if c.runs != Some(a) || c.yields || c.turn_ns >= self.slice_ns {
            return false;
        }
        self.offered.retain(|o| *o != core);
        let run = self.cpu_left[a as usize].min(self.slice_ns - c.turn_ns);
        self.set_core(core, self.now, self.now + Nanos(run));
        true
    }
    /// Who was queued has woken up, or used up its slice: it takes the core it ran on last from an
    /// actor that is far enough ahead of it.
    #[inline]
    fn preempt(&mut self, a: Actor) {
        let core = self.core_of[a as usize];
        let c = self.cores[core as usize];
        let Some(runs) = c.runs.filter(|r| *r != a) else {
            return;
        };
        let ahead = self.had[runs as usize] + self.now.since(c.since).0;
        if self.had[a as usize] + self.wakeup_ns < ahead {
            self.cores[core as usize].yields = true;
            if c.until > self.now {
                self.set_core(core, c.since, self.now);
            }
        }
    }
    fn queue(&mut self, a: Actor) {
        self.seq += 1;
        let had = self.had[a as usize];
        self.runq.push(key(had, self.seq), a);
    }
    /// Takes an idle core: the wanted one if it is, else the one that was idle last.
    #[inline]
    fn idle_core(&mut self, wanted: u16) -> Option<u16> {
        let is_idle = self.cores[wanted as usize].runs.is_none();
        let at = if is_idle {
            self.idle_at[wanted as usize] as usize
        } else {
            self.idle_cores.len().checked_sub(1)?
        };
        let core = self.idle_cores.swap_remove(at);
        if let Some(&moved) = self.idle_cores.get(at) {
            self.idle_at[moved as usize] = at as u32;
        }
        Some(core)
    }
    /// The CPU an actor submits from, of those the machine has.
    #[inline]
    pub(crate) fn cpu_of(&self, a: Actor) -> u16 {
        self.core_of[a as usize] % self.first_cores
    }
    fn set_core(&mut self, core: u16, since: Instant, until: Instant) {
        let c = &mut self.cores[core as usize];
        (c.since, c.until) = (since, until);
        self.seq += 1;
        self.ends.set(core, key(until.max(self.now).0, self.seq));
    }
    fn start(&mut self, core: u16, a: Actor) {
        let left = self.cpu_left[a as usize];
        let run = if self.runq.is_empty() {
            left
        } else {
            left.min(self.slice_ns)
        };
        let c = &mut self.cores[core as usize];
        (c.runs, c.turn_ns, c.yields) = (Some(a), 0, false);
        self.core_of[a as usize] = core;
        self.least = self.least.max(self.had[a as usize]);
        self.set_core(core, self.now, self.now + Nanos(run));
    }
    /// A core reached its end: the actor that has had all its time, if so.
    pub(crate) fn core_event(&mut self, core: u16) -> Option<Actor> {
        let c = &mut self.cores[core as usize];
        let a = c.runs?;
        let ran = self.now.since(c.since).0;
        c.turn_ns += ran;
        c.since = self.now;
        self.had[a as usize] += ran;
        let left = &mut self.cpu_left[a as usize];
        *left = left.saturating_sub(ran);
        let done = *left == 0;
        match (done, self.runq.is_empty()) {
            (true, true) => self.idle(core),
            (true, false) => self.offered.push(core),
            (false, _) => {
                self.cut[a as usize] = *left;
                self.queue(a);
                self.next(core);
            }
        }
        done.then_some(a)
    }
    /// A core whose end was reached has nobody to run.
    fn idle(&mut self, core: u16) {
        self.cores[core as usize].runs = None;
        self.idle_at[core as usize] = self.idle_cores.len() as u32;
        self.idle_cores.push(core);
    }
    /// The core goes to whoever had least.
    fn next(&mut self, core: u16) {
        match self.runq.pop() {
            Some(a) => self.start(core, a),
            None => self.idle(core),
        }
    }
    /// Are cores to be given away at this instant?
    #[inline]
    pub(crate) fn offers(&self) -> bool {
        !self.offered.is_empty()
    }
    /// Gives them away: all who go on at this instant have said so.
    pub(crate) fn settle(&mut self) {
        while let Some(core) = self.offered.pop() {
            self.next(core);
        }
    }
    /// Cores at work now.
    pub(crate) fn busy_cores(&self) -> usize {
        self.cores.len() - self.idle_cores.len()
    }
}

#[cfg(test)]
mod tests;
