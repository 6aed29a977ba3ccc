//! Passes requests from the receiving threads to the model's thread.
//!
//! On arrival, a request gets a timestamp. Then its data are moved, and the request is put into the
//! inbox. Until then the model must not run past the timestamp. [`Inbox::drain`] returns up to
//! which time the model may run.

use crate::asker::Asker;
use seekwell_core::{Instant, Nanos, Op, Sector, Sectors};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

/// The clock of a run. It follows the kernel's monotonic clock and starts at [`Instant::START`].
#[derive(Clone, Copy, Debug)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// Starts the clock.
    pub fn start() -> Self {
        Clock(std::time::Instant::now())
    }
    /// Returns the current time.
    pub fn now(&self) -> Instant {
        Instant::START + Nanos(self.0.elapsed().as_nanos() as u64)
    }
}

/// The reply to a request, in the form of the transport's protocol. The model's thread decides only
/// when the reply is sent, and whether the request failed.
pub trait Reply: Send + 'static {
    /// Sends the reply.
    fn answer(self, failed: bool);
}

/// A request whose data have been moved.
pub struct Request<R> {
    /// Time of arrival.
    pub at: Instant,
    /// Operation for the model.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Whether the program wrote with O_SYNC or O_DSYNC, so that the write completes only when it
    /// is durable.
    pub durable: bool,
    /// Thread that issued the request. Behind a loop device this is a kernel worker.
    pub asker: Asker,
    /// The reply.
    pub reply: R,
}

/// Result of fdatasync(2) for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synced {
    /// Number of the job.
    pub id: u32,
    /// Whether the data of the job are on the medium.
    pub kept: bool,
}

struct State<R> {
    batch: Vec<Request<R>>,
    /// Timestamps of requests that are not in the inbox yet, at most one per receiving thread.
    open: Vec<Instant>,
    /// Jobs whose fdatasync(2) has succeeded or failed.
    synced: Vec<Synced>,
    closed: bool,
}

/// The inbox, which all threads share.
pub struct Inbox<R> {
    clock: Clock,
    state: Mutex<State<R>>,
    /// Whether the inbox contains something. The waiting thread polls it while it spins.
    pending: AtomicBool,
    /// Whether the receiving threads answer reads without the model, to measure the transport.
    pub null: AtomicBool,
    model: OnceLock<Thread>,
}

impl<R: Reply> Inbox<R> {
    /// Returns an empty inbox.
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
    /// Returns the clock of all timestamps.
    pub fn clock(&self) -> Clock {
        self.clock
    }
    /// Declares that new entries wake the calling thread.
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
    /// Returns the timestamp of a new request. The caller must then call [`Inbox::push`] or
    /// [`Inbox::dismiss`].
    pub fn stamp(&self) -> Instant {
        let mut s = self.state();
        let now = self.clock.now();
        s.open.push(now);
        now
    }
    /// Puts a request with a timestamp into the inbox.
    pub fn push(&self, request: Request<R>) {
        let mut s = self.state();
        forget(&mut s.open, request.at);
        s.batch.push(request);
        drop(s);
        self.wake();
    }
    /// Discards the timestamp of a request that does not reach the model.
    pub fn dismiss(&self, at: Instant) {
        forget(&mut self.state().open, at);
    }
    /// Adds the results of the fdatasync(2) calls of these jobs.
    pub fn synced(&self, jobs: impl Iterator<Item = Synced>) {
        self.state().synced.extend(jobs);
        self.wake();
    }
    /// Announces that no more requests will come, so that the model's thread may end.
    pub fn close(&self) {
        self.state().closed = true;
        self.wake();
    }
    /// Returns whether the inbox contains something.
    pub fn pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }
    /// Moves all requests to `into` in order of timestamps, and the finished jobs to `synced`.
    /// Returns the time up to which all arrivals are known, and whether the inbox is closed.
    pub fn drain(&self, into: &mut Vec<Request<R>>, synced: &mut Vec<Synced>) -> (Instant, bool) {
        let mut s = self.state();
        synced.append(&mut s.synced);
        self.pending.store(false, Ordering::Release);
        let until = s.open.iter().copied().fold(self.clock.now(), Instant::min);
        let closed = s.closed;
        if s.open.is_empty() {
            into.append(&mut s.batch);
        } else {
            // Requests with a later timestamp stay in the inbox while the data of an earlier
            // request are being moved.
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
