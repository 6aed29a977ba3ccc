//! The way from the threads that hear requests to the one that owns the model.
//!
//! A request is stamped when it is seen, its data are moved, then it is handed over. Between stamp
//! and hand-over the model may not run past the stamp: [`Inbox::drain`] says how far it may go.

use crate::asker::Asker;
use crate::syncer::Synced;
use seekwell_core::{Instant, Nanos, Op, Sector, Sectors};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

/// The wall clock of a run: the kernel's monotonic one, from [`Instant::START`] on.
#[derive(Clone, Copy, Debug)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Clock(std::time::Instant::now())
    }
    /// The time.
    pub fn now(&self) -> Instant {
        Instant::START + Nanos(self.0.elapsed().as_nanos() as u64)
    }
}

/// The answer to a request, in the words of the way it came by. The model's thread knows only when
/// its time has come, and whether it failed.
pub trait Reply: Send + 'static {
    /// Sends it.
    fn answer(self, failed: bool);
}

/// A request with its data moved.
pub struct Request<R> {
    /// When it was seen.
    pub at: Instant,
    /// What the model is to do.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Written with O_SYNC or O_DSYNC: done when it is durable.
    pub durable: bool,
    /// Thread that asked; a kernel worker under a loop device.
    pub asker: Asker,
    /// The answer.
    pub reply: R,
}

struct State<R> {
    batch: Vec<Request<R>>,
    /// Stamps given and not handed over yet; one a listening thread, so there are few.
    open: Vec<Instant>,
    /// Jobs whose promise is kept by now, or broken.
    synced: Vec<Synced>,
    closed: bool,
}

/// The box itself.
pub struct Inbox<R> {
    clock: Clock,
    state: Mutex<State<R>>,
    /// Something is in it: looked at while spinning.
    pending: AtomicBool,
    /// Reads are answered where they are heard, without the model: for measuring the way itself.
    pub null: AtomicBool,
    model: OnceLock<Thread>,
}

impl<R: Reply> Inbox<R> {
    /// Empty.
    pub fn new(clock: Clock) -> Self {
        Inbox {
            clock,
            state: Mutex::new(State {
                batch: Vec::new(),
                open: Vec::new(),
                synced: Vec::new(),
                closed: false,
            }),
            pending: AtomicBool::new(false),
            null: AtomicBool::new(false),
            model: OnceLock::new(),
        }
    }
    /// The clock of all stamps.
    pub fn clock(&self) -> Clock {
        self.clock
    }
    /// The calling thread is the one to wake.
    pub fn owned_by_this_thread(&self) {
        let _ = self.model.set(std::thread::current());
    }
    fn state(&self) -> MutexGuard<'_, State<R>> {
        // What is inside stays whole at every step, so a panicking thread leaves it usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn wake(&self) {
        self.pending.store(true, Ordering::Release);
        if let Some(t) = self.model.get() {
            t.unpark();
        }
    }
    /// Stamps a request that was just seen. [`Inbox::push`] or [`Inbox::dismiss`] must follow.
    pub fn stamp(&self) -> Instant {
        let mut s = self.state();
        let now = self.clock.now();
        s.open.push(now);
        now
    }
    /// Hands a stamped request over.
    pub fn push(&self, request: Request<R>) {
        let mut s = self.state();
        forget(&mut s.open, request.at);
        s.batch.push(request);
        drop(s);
        self.wake();
    }
    /// A stamped request that never reaches the model.
    pub fn dismiss(&self, at: Instant) {
        forget(&mut self.state().open, at);
    }
    /// These jobs' data are on the backing file's medium, or are not.
    pub fn synced(&self, jobs: impl Iterator<Item = Synced>) {
        self.state().synced.extend(jobs);
        self.wake();
    }
    /// No more requests will come: the model may end.
    pub fn close(&self) {
        self.state().closed = true;
        self.wake();
    }
    /// Is there something to drain?
    pub fn pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }
    /// Takes everything, in order of stamps; says until when nothing else can have arrived, and
    /// whether the box is closed.
    pub fn drain(&self, into: &mut Vec<Request<R>>, synced: &mut Vec<Synced>) -> (Instant, bool) {
        let mut s = self.state();
        synced.append(&mut s.synced);
        self.pending.store(false, Ordering::Release);
        let until = s.open.iter().copied().fold(self.clock.now(), Instant::min);
        let closed = s.closed;
        if s.open.is_empty() {
            into.append(&mut s.batch);
        } else {
            // A later stamp may have overtaken one whose data still move: it waits for that.
            let mut i = 0;
            while i < s.batch.len() {
                if s.batch[i].at <= until {
                    into.push(s.batch.remove(i));
                } else {
                    i += 1;
                }
            }
        }
        drop(s);
        into.sort_by_key(|r| r.at);
        (until, closed)
    }
}

fn forget(open: &mut Vec<Instant>, at: Instant) {
    if let Some(i) = open.iter().position(|&t| t == at) {
        open.swap_remove(i);
    }
}
