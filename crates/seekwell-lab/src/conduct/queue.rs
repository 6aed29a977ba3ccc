//! Runs that wait for a thread, in the order in which they are to be made.

use super::Due;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Place in the order of all runs.
pub(super) type Turn = (usize, usize, usize, usize);

#[derive(Default)]
struct Waiting {
    jobs: BTreeMap<Turn, Due>,
    /// (Cell, block) of which a run was begun.
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
        // What it holds is whole between any two statements.
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
    /// The next, when there is one; `None` when there will be no more.
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
    /// Takes back what has not begun; with `blocks`, only blocks of which nothing has. Gives back
    /// how many runs those are.
    pub fn withdraw(&self, blocks: bool) -> Vec<Due> {
        let mut w = self.lock();
        let all = std::mem::take(&mut w.jobs);
        let (keep, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = all
            .into_iter()
            .partition(|(_, j)| blocks && w.begun.contains(&(j.key.cell, j.key.block)));
        w.jobs = keep;
        gone.into_values().collect()
    }
    /// No more will be added.
    pub fn close(&self) {
        self.lock().closed = true;
        self.more.notify_all();
    }
}
