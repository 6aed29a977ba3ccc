//! The queue of runs that wait for a thread.

use super::Due;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Position of a run in the order of all runs.
pub(super) type Turn = (usize, usize, usize, usize);

#[derive(Default)]
struct Waiting {
    jobs: BTreeMap<Turn, Due>,
    /// Cells and blocks of which at least one run has started.
    begun: BTreeSet<(usize, u32)>,
    closed: bool,
}

#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    more: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // The data is consistent after every statement, so it can be used even if a thread panicked
        // while holding the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub fn add(&self, jobs: impl IntoIterator<Item = (Turn, Due)>) -> usize {
        let mut w = self.lock();
        let before = w.jobs.len();
        w.jobs.extend(jobs);
        let added = w.jobs.len() - before;
        drop(w);
        self.more.notify_all();
        added
    }
    /// Waits for the next run and returns it. Returns `None` when the queue is empty and closed.
    pub fn take(&self) -> Option<Due> {
        let mut w = self.lock();
        loop {
            if let Some((_, job)) = w.jobs.pop_first() {
                w.begun.insert((job.key.cell, job.key.block));
                return Some(job);
            }
            if w.closed {
                return None;
            }
            w = self.more.wait(w).unwrap_or_else(PoisonError::into_inner);
        }
    }
    /// Removes the runs that have not started, and returns them. If `blocks` is set, the runs of
    /// blocks with a started run remain.
    pub fn withdraw(&self, blocks: bool) -> Vec<Due> {
        let mut w = self.lock();
        let all = std::mem::take(&mut w.jobs);
        let (keep, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = all
            .into_iter()
            .partition(|(_, j)| blocks && w.begun.contains(&(j.key.cell, j.key.block)));
        w.jobs = keep;
        gone.into_values().collect()
    }
    /// Closes the queue: no more runs will be added.
    pub fn close(&self) {
        self.lock().closed = true;
        self.more.notify_all();
    }
}
