//! The runtime inside the kernel model: actors (programs and kernel threads) as futures, wait
//! queues, timers and cores.
//!
//! A system call that sleeps in several places is clearest as sequential code. Each actor is
//! therefore one future, which is made once. An actor waits in a wait queue or for a timer. A wait
//! allocates no memory, because a queue is a list of actor numbers linked by index. An actor is in
//! at most one queue. Wake-ups are served in order, at the instant at which they happen.

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

/// The actors' shared state, which contains a runtime.
pub(crate) trait Runs {
    /// Returns the runtime.
    fn rt(&mut self) -> &mut Rt;
}

/// The state `W` that all actors of a kernel share. It is borrowed only between waits.
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

/// A timed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The sleep of an actor ends, unless the actor was woken earlier. The number identifies the
    /// timer.
    Wake(Actor, u64),
    /// A core reaches the end of its work.
    Core(u16),
}

/// The reason why an actor sleeps. Only an event of the same kind wakes the actor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sleep {
    #[default]
    Awake,
    /// It waits in a wait queue.
    Queued,
    /// It sleeps for a given time.
    Timed,
    /// A kernel thread without work. It sleeps until a given time, if any, and can be woken
    /// earlier.
    Idle,
    /// It waits for a free request in the block layer.
    Starved,
    /// It waits for CPU time.
    Cpu,
}

/// State of an actor's wait. An actor has at most one armed timer, even if many of its sleeps end
/// early. The timer stays armed. When it fires, it is armed again for the end of the present sleep.
/// So a thread that is woken thousands of times per second, with a timeout of five seconds each
/// time, leaves no timers behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    sleep: Sleep,
    woken: bool,
    /// End of this sleep, and its number among the timers of that instant. Number 0: no end.
    due: (Instant, u64),
    /// The earliest armed timer of the actor.
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

/// State of waits, timers and cores.
pub(crate) struct Rt {
    pub(crate) now: Instant,
    /// Ends of sleeps, ordered by time and number.
    pub(super) timers: BinaryHeap<Reverse<(u128, Actor)>>,
    pub(super) seq: u64,
    /// Actors to be polled, in order.
    pub(crate) ready: VecDeque<Actor>,
    pub(super) waits: Vec<Wait>,
    pub(super) links: Links,
    pub(super) cores: Vec<CoreState>,
    pub(super) ends: Ends,
    /// Number of cores of the machine. More are added if CPU time is unlimited.
    pub(super) first_cores: u16,
    pub(super) idle_cores: Vec<u16>,
    /// Cores whose actor has received its time while other actors wait. An actor that continues at
    /// the same instant keeps its core.
    pub(super) offered: Vec<u16>,
    /// Actors that want a core, ordered by virtual runtime, then by order of request.
    pub(super) runq: Turns,
    pub(super) cpu_left: Vec<u64>,
    /// For each actor, how much of its piece was left when it lost its core. This is the whole
    /// piece if the actor had to wait for a core.
    pub(super) cut: Vec<u64>,
    /// Virtual runtime of each actor, ns: its CPU time, plus the credit that it lost by sleeping.
    pub(super) had: Vec<u64>,
    /// Virtual runtime of the actor that most recently got a core. It never decreases.
    pub(super) least: u64,
    /// Largest difference by which a waking actor's virtual runtime may be below the others', ns.
    pub(super) credit_ns: u64,
    /// A waking actor preempts a running actor that is ahead of it by more than this time, ns.
    pub(super) wakeup_ns: u64,
    /// The last core of each actor. The actor returns to this core if the core is idle, and submits
    /// bios from it.
    pub(super) core_of: Vec<u16>,
    /// For each core, its index in `idle_cores` if it is idle.
    pub(super) idle_at: Vec<u32>,
    /// CPU time that each actor owes for its work since its last payment, ns.
    pub(crate) debt: Vec<u64>,
    pub(super) slice_ns: u64,
    /// Speed of a core, in thousandths of the reference core that the CPU costs refer to.
    pub(super) cpu_permille: u64,
    /// CPU time is unlimited, so another core is always available.
    pub(super) unlimited: bool,
    /// CPU time used by all actors, ns.
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
        // Programs start on different cores.
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
    /// Takes the first timer that is due.
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

    /// Puts an actor to sleep. It must then await [`parked`].
    pub(crate) fn sleep(&mut self, a: Actor, why: Sleep) {
        let w = &mut self.waits[a as usize];
        w.sleep = why;
        w.due.1 = 0;
    }
    /// Puts an actor to sleep on a queue.
    pub(crate) fn sleep_on(&mut self, q: &mut List, a: Actor) {
        self.links.push_back(q, a);
        self.sleep(a, Sleep::Queued);
    }
    /// Puts an actor to sleep until a time.
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
    /// Wakes an actor if it sleeps for this reason.
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
    /// Wakes all actors of a queue, in order.
    pub(crate) fn wake_all(&mut self, q: &mut List) {
        while let Some(a) = self.links.pop_front(q) {
            self.wake(a, Sleep::Queued);
        }
    }
    /// Wakes the first actor of a queue.
    pub(crate) fn wake_one(&mut self, q: &mut List) {
        if let Some(a) = self.links.pop_front(q) {
            self.wake(a, Sleep::Queued);
        }
    }
    /// Handles a timer with number `seq`. The actor's sleep ends, or it already ended and the timer
    /// is armed for a later sleep.
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

    /// Makes a test fail that loops forever at one instant.
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

pub(crate) async fn sleep_until<W: Runs>(k: &Shared<W>, a: Actor, at: Instant) {
    k.w().rt().sleep_until(at, a, Sleep::Timed);
    parked(k, a).await;
}

/// Lets a kernel thread sleep until it is woken, or until `at` if that is given.
pub(crate) async fn idle<W: Runs>(k: &Shared<W>, a: Actor, at: Option<Instant>) {
    match at {
        Some(at) => k.w().rt().sleep_until(at, a, Sleep::Idle),
        None => k.w().rt().sleep(a, Sleep::Idle),
    }
    parked(k, a).await;
}

/// Spends, on a core, the CPU time that an actor owes.
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
