//! Passes requests from the receiving threads to the thread that owns the model.
//!
//! A request gets a timestamp on arrival, then its data are moved, then it is passed on. In between
//! the model must not run past the timestamp: [`Inbox::drain`] returns how far it may run.

use crate::asker::Asker;
use crate::syncer::Synced;
use seekwell_core::{Instant, Nanos, Op, Sector, Sectors};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

/// The wall clock of a run: the kernel's monotonic clock, starting at [`Instant::START`].
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

/// The reply to a request, in the form of its protocol. The model's thread only decides when to
/// send it, and whether the request failed.
pub trait Reply: Send + 'static {
    /// Sends it.
    fn answer(self, failed: bool);
}

/// A request whose data were moved.
pub struct Request<R> {
    /// Time of arrival.
    pub at: Instant,
    /// Operation for the model.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Written with O_SYNC or O_DSYNC: completes only when durable.
    pub durable: bool,
    /// Thread that issued it; a kernel worker under a loop device.
    pub asker: Asker,
    /// The reply.
    pub reply: R,
}

struct State<R> {
    batch: Vec<Request<R>>,
    /// Timestamps of requests not passed on yet: at most one per receiving thread.
    open: Vec<Instant>,
    /// Jobs whose fdatasync has finished or failed.
    synced: Vec<Synced>,
    closed: bool,
}

/// The shared inbox.
pub struct Inbox<R> {
    clock: Clock,
    state: Mutex<State<R>>,
    /// Whether it holds something; polled while spinning.
    pending: AtomicBool,
    /// Whether the receiving threads answer reads without the model, to measure the transport.
    pub null: AtomicBool,
    model: OnceLock<Thread>,
}

impl<R: Reply> Inbox<R> {
    /// An empty inbox.
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
    /// Makes the calling thread the one to wake.
    pub fn owned_by_this_thread(&self) {
        let _ = self.model.set(std::thread::current());
    }
    fn state(&self) -> MutexGuard<'_, State<R>> {
        // The state is consistent at every step, so it stays usable after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn wake(&self) {
        self.pending.store(true, Ordering::Release);
        if let Some(t) = self.model.get() {
            t.unpark();
        }
    }
    /// Takes the timestamp of a new request. [`Inbox::push`] or [`Inbox::dismiss`] must follow.
    pub fn stamp(&self) -> Instant {
        let mut s = self.state();
        let now = self.clock.now();
        s.open.push(now);
        now
    }
    /// Passes on a request with a timestamp.
    pub fn push(&self, request: Request<R>) {
        let mut s = self.state();
        forget(&mut s.open, request.at);
        s.batch.push(request);
        drop(s);
        self.wake();
    }
    /// Drops the timestamp of a request that never reaches the model.
    pub fn dismiss(&self, at: Instant) {
        forget(&mut self.state().open, at);
    }
    /// Records that the sync of these jobs has ended.
    pub fn synced(&self, jobs: impl Iterator<Item = Synced>) {
        self.state().synced.extend(jobs);
        self.wake();
    }
    /// No more requests will come, so the model may end.
    pub fn close(&self) {
        self.state().closed = true;
        self.wake();
    }
    /// Whether there is something to drain.
    pub fn pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }
    /// Takes everything, in order of timestamps. Returns the time up to which all arrivals are
    /// known, and whether the inbox is closed.
    pub fn drain(&self, into: &mut Vec<Request<R>>, synced: &mut Vec<Synced>) -> (Instant, bool) {
        let mut s = self.state();
        synced.append(&mut s.synced);
        self.pending.store(false, Ordering::Release);
        let until = s.open.iter().copied().fold(self.clock.now(), Instant::min);
        let closed = s.closed;
        if s.open.is_empty() {
            into.append(&mut s.batch);
        } else {
            // Later requests wait for one whose data are still being moved.
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
