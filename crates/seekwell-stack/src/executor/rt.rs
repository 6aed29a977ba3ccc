//! The runtime inside the kernel model: actors (programs and kernel threads) as futures, wait
//! queues, timers, cores.
//!
//! A system call that sleeps in several places reads best as straight code, so each actor is one
//! future, made once; what it waits for is a wait queue of the world or a timer. Nothing is
//! allocated for a wait: queues are index-linked lists over actor numbers, and an actor is on at
//! most one. Wake-ups are served first come, first served, at the instant they happen.
//!
//! Cores are shared fairly, as CFS shares them: where more want one than there are, whoever had
//! the least CPU time is next, and who slept comes back at most a credit behind the others. So a
//! program of many short calls gets as much as one of few long ones. Who has a core keeps it from
//! call to call until its slice is over (a call's end is no reason to switch), or until somebody
//! wakes up on that core who is behind it by more than the wake-up granularity: that one has the
//! core at once. Left out: a run queue a core (all share one), the clock tick (a slice ends when it
//! is over), nice levels, and the interactivity estimator of kernels before 2.6.23.

use super::turns::{Ends, NEVER, Turns, key};
use seekwell_core::{Instant, Links, List, Nanos};
use std::cell::{RefCell, RefMut};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// An actor: the number of its task.
pub(crate) type Actor = u32;

/// What actors share has a runtime inside.
pub(crate) trait Runs {
    /// It.
    fn rt(&mut self) -> &mut Rt;
}

/// The world `W`, shared by all actors of one kernel; borrowed only between waits.
pub(crate) struct Shared<W>(Rc<RefCell<W>>);

impl<W> Clone for Shared<W> {
    fn clone(&self) -> Self {
        Shared(Rc::clone(&self.0))
    }
}

impl<W: Runs> Shared<W> {
    pub(crate) fn new(w: W) -> Self {
        Shared(Rc::new(RefCell::new(w)))
    }
    #[inline]
    pub(crate) fn w(&self) -> RefMut<'_, W> {
        let w = self.0.borrow_mut();
        #[cfg(test)]
        let w = watched(w);
        w
    }
}

#[cfg(test)]
fn watched<W: Runs>(mut w: RefMut<'_, W>) -> RefMut<'_, W> {
    w.rt().watch();
    w
}

/// What happens by itself at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// An actor's sleep ends, or would have ended; the number of the timer.
    Wake(Actor, u64),
    /// A core reaches the end of what it runs.
    Core(u16),
}

/// Why an actor sleeps: only that wakes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sleep {
    #[default]
    Awake,
    /// On a wait queue.
    Queued,
    /// For a time.
    Timed,
    /// A kernel thread with nothing to do, perhaps until a time: may be called.
    Idle,
    /// For a request of the block layer.
    Starved,
    /// For CPU time.
    Cpu,
}

/// One timer an actor is enough for any number of sleeps that others cut short: it stays where it is,
/// and when it fires it is armed again for the sleep of then. So a thread that is called thousands of
/// times a second, and would else look again in five, leaves no timers behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    sleep: Sleep,
    woken: bool,
    /// End of this sleep and its place among the timers of that instant; 0: it has none.
    due: (Instant, u64),
    /// The first timer that is armed for the actor.
    armed: Instant,
}

impl Default for Wait {
    fn default() -> Self {
        Wait {
            sleep: Sleep::Awake,
            woken: false,
            due: (Instant::FAR, 0),
            armed: Instant::FAR,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct CoreState {
    runs: Option<Actor>,
    since: Instant,
    until: Instant,
    /// CPU time its actor has had since it was given the core, ns, without the piece that runs.
    turn_ns: u64,
    /// Somebody woke up who goes before its actor.
    yields: bool,
}

/// Waits, timers and cores.
pub(crate) struct Rt {
    pub(crate) now: Instant,
    /// Ends of sleeps, by time and number.
    timers: BinaryHeap<Reverse<(u128, Actor)>>,
    seq: u64,
    /// Actors to be polled, in order.
    pub(crate) ready: VecDeque<Actor>,
    waits: Vec<Wait>,
    links: Links,
    cores: Vec<CoreState>,
    ends: Ends,
    /// Cores of the machine; there may be more if CPU time is not to limit.
    first_cores: u16,
    idle_cores: Vec<u16>,
    /// Cores whose actor has had what it asked for, while others wait: who goes on at once still
    /// has its place among them.
    offered: Vec<u16>,
    /// Who wants a core, by the CPU time it had (its virtual runtime), then by who came first.
    runq: Turns,
    cpu_left: Vec<u64>,
    /// What was left when a core was taken from an actor, or not given at once: all of it.
    cut: Vec<u64>,
    /// Virtual runtime of each actor, ns: what it had, and what it gave up by sleeping.
    had: Vec<u64>,
    /// The virtual runtime of whoever was given a core last; never falls.
    least: u64,
    /// How far behind the others a sleeper comes back, ns.
    credit_ns: u64,
    /// Who wakes up takes a core from an actor that is further ahead than this, ns.
    wakeup_ns: u64,
    /// The core an actor ran on last: it goes there again if that is idle, and what it submits
    /// comes from there.
    core_of: Vec<u16>,
    /// Where an idle core stands in `idle_cores`.
    idle_at: Vec<u32>,
    /// Nanoseconds of CPU an actor owes for what it did since it last paid.
    pub(crate) debt: Vec<u64>,
    slice_ns: u64,
    /// Speed of a core, thousandths of the one that costs are stated for.
    cpu_permille: u64,
    /// There is always one core more.
    unlimited: bool,
    /// CPU time used by all.
    pub(crate) cpu_used: u64,
    #[cfg(test)]
    looks: std::cell::Cell<(Instant, u32)>,
}

impl Rt {
    pub(crate) fn new(
        now: Instant,
        cores: u16,
        [slice_ns, credit_ns, wakeup_ns]: [u64; 3],
        unlimited: bool,
        cpu_permille: u32,
    ) -> Self {
        Rt {
            now,
            timers: BinaryHeap::new(),
            seq: 0,
            ready: VecDeque::new(),
            waits: Vec::new(),
            links: Links::new(),
            cores: vec![CoreState::default(); cores.max(1) as usize],
            ends: Ends::new(cores.into()),
            first_cores: cores.max(1),
            idle_cores: (0..cores.max(1)).rev().collect(),
            offered: Vec::new(),
            runq: Turns::default(),
            cpu_left: Vec::new(),
            cut: Vec::new(),
            had: Vec::new(),
            least: 0,
            credit_ns,
            wakeup_ns,
            core_of: Vec::new(),
            idle_at: (0..u32::from(cores.max(1))).rev().collect(),
            debt: Vec::new(),
            slice_ns: slice_ns.max(1),
            cpu_permille: u64::from(cpu_permille.max(1)),
            unlimited,
            cpu_used: 0,
            #[cfg(test)]
            looks: std::cell::Cell::default(),
        }
    }
    pub(crate) fn add_actor(&mut self, a: Actor) {
        let n = self.waits.len().max(a as usize + 1);
        self.waits.resize(n, Wait::default());
        self.cpu_left.resize(n, 0);
        self.cut.resize(n, 0);
        self.had.resize(n, 0);
        // Programs that have not computed yet are spread over the cores.
        let cores = self.first_cores;
        let known = self.core_of.len() as u32;
        let spread = |a: u32| (a % u32::from(cores)) as u16;
        self.core_of.extend((known..n as u32).map(spread));
        self.debt.resize(n, 0);
    }
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        let sleep = self.timers.peek().map_or(NEVER, |t| t.0.0);
        let first = sleep.min(self.ends.first().0);
        (first != NEVER).then_some(Instant((first >> 64) as u64))
    }
    /// The first timer that is due now.
    pub(crate) fn pop_due(&mut self) -> Option<Timer> {
        let sleep = self.timers.peek().map_or(NEVER, |t| t.0.0);
        let (end, core) = self.ends.first();
        let first = sleep.min(end);
        if first == NEVER || Instant((first >> 64) as u64) > self.now {
            return None;
        }
        if end < sleep {
            self.ends.set(core, NEVER);
            return Some(Timer::Core(core));
        }
        let Reverse((key, a)) = self.timers.pop()?;
        Some(Timer::Wake(a, key as u64))
    }

    /// Puts an actor to sleep; it has to await [`parked`] next.
    pub(crate) fn sleep(&mut self, a: Actor, why: Sleep) {
        let w = &mut self.waits[a as usize];
        w.sleep = why;
        w.due.1 = 0;
    }
    /// The same on a queue.
    pub(crate) fn sleep_on(&mut self, q: &mut List, a: Actor) {
        self.links.push_back(q, a);
        self.sleep(a, Sleep::Queued);
    }
    /// The same until a time.
    pub(crate) fn sleep_until(&mut self, at: Instant, a: Actor, why: Sleep) {
        self.seq += 1;
        let (at, seq) = (at.max(self.now), self.seq);
        let w = &mut self.waits[a as usize];
        w.sleep = why;
        w.due = (at, seq);
        if at < w.armed {
            w.armed = at;
            self.timers.push(Reverse((key(at.0, seq), a)));
        }
    }
    /// Wakes an actor if that is what it sleeps for.
    pub(crate) fn wake(&mut self, a: Actor, why: Sleep) {
        let Some(w) = self.waits.get_mut(a as usize) else {
            return;
        };
        if w.sleep == why {
            (w.sleep, w.woken) = (Sleep::Awake, true);
            w.due.1 = 0;
            self.ready.push_back(a);
        }
    }
    /// Wakes all of a queue, in order.
    pub(crate) fn wake_all(&mut self, q: &mut List) {
        while let Some(a) = self.links.pop_front(q) {
            self.wake(a, Sleep::Queued);
        }
    }
    /// Wakes the first of a queue.
    pub(crate) fn wake_one(&mut self, q: &mut List) {
        if let Some(a) = self.links.pop_front(q) {
            self.wake(a, Sleep::Queued);
        }
    }
    /// A timer of this number fires for an actor: its sleep is over, or another one has begun since.
    pub(crate) fn timer_wake(&mut self, a: Actor, seq: u64) {
        let now = self.now;
        let w = &mut self.waits[a as usize];
        let first = w.armed <= now;
        if first {
            w.armed = Instant::FAR;
        }
        let (sleep, (at, due)) = (w.sleep, w.due);
        if due == 0 {
            return;
        }
        debug_assert!(matches!(sleep, Sleep::Timed | Sleep::Idle));
        if due == seq {
            self.wake(a, sleep);
        } else if first {
            w.armed = at;
            self.timers.push(Reverse((key(at.0, due), a)));
        }
    }

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
    /// Tests end when something goes round and round at one instant.
    #[cfg(test)]
    fn watch(&self) {
        let (at, n) = self.looks.get();
        let n = if at == self.now { n + 1 } else { 0 };
        self.looks.set((self.now, n));
        assert!(n < 3_000_000, "time stands still");
    }
    #[cfg(test)]
    pub(crate) fn why(&self, a: Actor) -> Sleep {
        self.waits[a as usize].sleep
    }
    /// Cores at work now.
    pub(crate) fn busy_cores(&self) -> usize {
        self.cores.len() - self.idle_cores.len()
    }
}

/// Waits for the wake-up that was arranged before.
pub(crate) async fn parked<W: Runs>(k: &Shared<W>, a: Actor) {
    poll_fn(|_| {
        let mut w = k.w();
        let woken = &mut w.rt().waits[a as usize].woken;
        if std::mem::take(woken) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Sleeps until `at`.
pub(crate) async fn sleep_until<W: Runs>(k: &Shared<W>, a: Actor, at: Instant) {
    k.w().rt().sleep_until(at, a, Sleep::Timed);
    parked(k, a).await;
}

/// A kernel thread has nothing to do before `at`, if that is given, unless it is called.
pub(crate) async fn idle<W: Runs>(k: &Shared<W>, a: Actor, at: Option<Instant>) {
    match at {
        Some(at) => k.w().rt().sleep_until(at, a, Sleep::Idle),
        None => k.w().rt().sleep(a, Sleep::Idle),
    }
    parked(k, a).await;
}

/// Pays the CPU time an actor owes, on a core; nothing if it owes nothing.
pub(crate) async fn pay<W: Runs>(k: &Shared<W>, a: Actor) {
    {
        let mut w = k.w();
        let owed = std::mem::take(&mut w.rt().debt[a as usize]);
        if owed == 0 {
            return;
        }
        w.rt().sleep(a, Sleep::Cpu);
        w.rt().want_cpu(a, owed);
    }
    parked(k, a).await;
}
