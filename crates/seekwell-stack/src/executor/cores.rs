//! CPU scheduling: the choice of the actor that runs on each core, and the time for which it runs.
//!
//! Cores are shared fairly, as in CFS. If more actors want a core than there are cores, the actor
//! with the least virtual runtime is next. The virtual runtime of a waking actor is raised, so that
//! it is at most `sleeper_credit_ns` behind the others. A program with many short calls therefore
//! gets as much CPU time as a program with few long calls.
//!
//! An actor keeps its core across calls until its slice ends. It loses the core earlier if an actor
//! wakes up there whose virtual runtime is lower by more than the wake-up granularity. The waking
//! actor then preempts it immediately.
//!
//! Not modelled: one run queue per core (all cores use the same queue), the clock tick (a slice
//! ends exactly), nice levels, and the interactivity estimator of kernels before 2.6.23.

use super::rt::{Actor, Rt};
use super::turns::key;
use seekwell_core::{Instant, Nanos};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CoreState {
    pub(super) runs: Option<Actor>,
    pub(super) since: Instant,
    pub(super) until: Instant,
    /// CPU time of the core's actor since the actor got the core, ns. Excludes the running piece.
    pub(super) turn_ns: u64,
    /// An actor woke up that must run before the core's actor.
    pub(super) yields: bool,
}

impl Rt {
    /// Requests `ns` of CPU time for actor `a`. [`Rt::core_event`] returns the actor when it has
    /// received this time.
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
            // Actors that ran without a limit get a slice, counted from their start.
            for i in 0..self.cores.len() {
                let (c, slice) = (self.cores[i], Nanos(self.slice_ns));
                if c.until > c.since + slice {
                    self.set_core(i as u16, c.since, (c.since + slice).max(self.now));
                }
            }
        }
        self.preempt(a);
    }
    /// Returns the time in ns that a core of this machine needs for a cost of `ns`.
    #[inline]
    pub(crate) fn lasts(&self, ns: u64) -> u64 {
        match self.cpu_permille {
            1000 => ns,
            speed => (ns.saturating_mul(1000) / speed).max(1),
        }
    }
    /// Returns how much of an actor's most recent piece was left when the actor lost its core.
    /// Returns the whole piece if the actor only had to wait for a core.
    pub(crate) fn left_at_cut(&self, a: Actor) -> Nanos {
        Nanos(self.cut[a as usize])
    }
    /// Lets an actor keep its core if it requests more time at the instant when its last piece
    /// ends. Returns false if its slice is over or if it must yield.
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
    /// Lets a queued actor, which has woken up or used up its slice, preempt the actor on its last
    /// core. This happens only if that actor is far enough ahead.
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
    /// Takes an idle core: the wanted core if it is idle, otherwise the core that became idle last.
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
    /// Returns the CPU from which an actor submits. It is below the number of cores.
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
    /// Handles a core that has reached the end of its work. Returns the actor if it has received
    /// all the time that it requested.
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
    /// Makes a core idle after its piece has ended.
    fn idle(&mut self, core: u16) {
        self.cores[core as usize].runs = None;
        self.idle_at[core as usize] = self.idle_cores.len() as u32;
        self.idle_cores.push(core);
    }
    /// Gives the core to the actor with the least virtual runtime.
    fn next(&mut self, core: u16) {
        match self.runq.pop() {
            Some(a) => self.start(core, a),
            None => self.idle(core),
        }
    }
    /// Returns whether cores must be reassigned at this instant.
    #[inline]
    pub(crate) fn offers(&self) -> bool {
        !self.offered.is_empty()
    }
    /// Reassigns the offered cores. Called when all actors that continue at this instant have
    /// requested their time.
    pub(crate) fn settle(&mut self) {
        while let Some(core) = self.offered.pop() {
            self.next(core);
        }
    }
    #[cfg(test)]
    pub(crate) fn busy_cores(&self) -> usize {
        self.cores.len() - self.idle_cores.len()
    }
}

#[cfg(test)]
mod tests;
