//! The runtime inside the kernel model: actors (programs and kernel threads) as futures, wait
//! queues, timers, cores.
//!
//! A system call that sleeps in several places reads best as straight code, so each actor is one
//! future, made once; what it waits for is a wait queue of the world or a timer. Nothing is
//! allocated for a wait: queues are index-linked lists over actor numbers, and an actor is on at
//! most one. Wake-ups are served first come, first served, at the instant they happen.

use super::cores::CoreState;
use super::turns::{Ends, NEVER, Turns, key};
use seekwell_core::{Instant, Links, List};
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

/// Waits, timers and cores.
pub(crate) struct Rt {
    pub(crate) now: Instant,
    /// Ends of sleeps, by time and number.
    pub(super) timers: BinaryHeap<Reverse<(u128, Actor)>>,
    pub(super) seq: u64,
    /// Actors to be polled, in order.
    pub(crate) ready: VecDeque<Actor>,
    pub(super) waits: Vec<Wait>,
    pub(super) links: Links,
    pub(super) cores: Vec<CoreState>,
    pub(super) ends: Ends,
    /// Cores of the machine; there may be more if CPU time is not to limit.
    pub(super) first_cores: u16,
    pub(super) idle_cores: Vec<u16>,
    /// Cores whose actor has had what it asked for, while others wait: who goes on at once still
    /// has its place among them.
    pub(super) offered: Vec<u16>,
    /// Who wants a core, by the CPU time it had (its virtual runtime), then by who came first.
    pub(super) runq: Turns,
    pub(super) cpu_left: Vec<u64>,
    /// What was left when a core was taken from an actor, or not given at once: all of it.
    pub(super) cut: Vec<u64>,
    /// Virtual runtime of each actor, ns: what it had, and what it gave up by sleeping.
    pub(super) had: Vec<u64>,
    /// The virtual runtime of whoever was given a core last; never falls.
    pub(super) least: u64,
    /// How far behind the others a sleeper comes back, ns.
    pub(super) credit_ns: u64,
    /// Who wakes up takes a core from an actor that is further ahead than this, ns.
    pub(super) wakeup_ns: u64,
    /// The core an actor ran on last: it goes there again if that is idle, and what it submits
    /// comes from there.
    pub(super) core_of: Vec<u16>,
    /// Where an idle core stands in `idle_cores`.
    pub(super) idle_at: Vec<u32>,
    /// Nanoseconds of CPU an actor owes for what it did since it last paid.
    pub(crate) debt: Vec<u64>,
    pub(super) slice_ns: u64,
    /// Speed of a core, thousandths of the one that costs are stated for.
    pub(super) cpu_permille: u64,
    /// There is always one core more.
    pub(super) unlimited: bool,
    /// CPU time used by all.
    pub(crate) cpu_used: u64,
    #[cfg(test)]
    pub(super) looks: std::cell::Cell<(Instant, u32)>,
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
