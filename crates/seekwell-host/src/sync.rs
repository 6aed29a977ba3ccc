//! Locks, barriers and channels between tasks, on real threads.
//!
//! A waiting task checks the stop flag regularly, so that a run can always be stopped. The kernel
//! chooses the next owner of a lock, as it does for real programs.

use crate::stop::{NOTICE, Stop};
use seekwell_core::Errno;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

/// A state with a condition variable that signals changes of the state.
#[derive(Debug, Default)]
struct Bell<T> {
    state: Mutex<T>,
    changed: Condvar,
}

impl<T> Bell<T> {
    fn new(state: T) -> Arc<Self> {
        Arc::new(Bell {
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }
    fn get(&self) -> MutexGuard<'_, T> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Waits until `ready` returns a value. Returns ECANCELED if the run is stopped.
    fn wait<R>(&self, stop: &Stop, mut ready: impl FnMut(&mut T) -> Option<R>) -> Result<R, Errno> {
        let mut state = self.get();
        loop {
            if stop.is_raised() {
                return Err(Errno::ECANCELED);
            }
            if let Some(r) = ready(&mut state) {
                return Ok(r);
            }
            let (s, _) = self
                .changed
                .wait_timeout(state, NOTICE)
                .unwrap_or_else(PoisonError::into_inner);
            state = s;
        }
    }
}

#[derive(Debug)]
struct Meeting {
    tasks: u32,
    come: u32,
    round: u64,
}

#[derive(Debug)]
struct Pipe {
    room: usize,
    inside: VecDeque<u64>,
    ended: bool,
}

/// All locks, barriers and channels of a run, by number.
#[derive(Debug, Default)]
pub struct Syncs {
    locks: RwLock<Vec<Arc<Bell<bool>>>>,
    barriers: RwLock<Vec<Arc<Bell<Meeting>>>>,
    channels: RwLock<Vec<Arc<Bell<Pipe>>>>,
}

fn push<T>(table: &RwLock<Vec<T>>, value: T) -> u32 {
    let mut t = table.write().unwrap_or_else(PoisonError::into_inner);
    t.push(value);
    (t.len() - 1) as u32
}

fn get<T: Clone>(table: &RwLock<Vec<T>>, i: u32) -> Result<T, Errno> {
    let t = table.read().unwrap_or_else(PoisonError::into_inner);
    t.get(i as usize).cloned().ok_or(Errno::EBADF)
}

impl Syncs {
    /// Creates a lock and returns its number.
    pub fn lock(&self) -> u32 {
        push(&self.locks, Bell::new(false))
    }
    /// Waits until the lock is free, and takes it.
    pub fn acquire(&self, lock: u32, stop: &Stop) -> Result<(), Errno> {
        get(&self.locks, lock)?.wait(stop, |held| (!std::mem::replace(held, true)).then_some(()))
    }
    /// Releases the lock.
    pub fn release(&self, lock: u32) {
        if let Ok(l) = get(&self.locks, lock) {
            *l.get() = false;
            l.changed.notify_one();
        }
    }
    /// Creates a barrier for `tasks` tasks and returns its number.
    pub fn barrier(&self, tasks: u32) -> u32 {
        push(
            &self.barriers,
            Bell::new(Meeting {
                tasks: tasks.max(1),
                come: 0,
                round: 0,
            }),
        )
    }
    /// Waits until all tasks have arrived at the barrier.
    pub fn arrive(&self, barrier: u32, stop: &Stop) -> Result<(), Errno> {
        let b = get(&self.barriers, barrier)?;
        let mine = {
            let mut m = b.get();
            m.come += 1;
            if m.come == m.tasks {
                (m.come, m.round) = (0, m.round + 1);
                drop(m);
                b.changed.notify_all();
                return Ok(());
            }
            m.round
        };
        b.wait(stop, |m| (m.round != mine).then_some(()))
    }
    /// Creates a channel for at most `room` numbers and returns its number.
    pub fn channel(&self, room: u32) -> u32 {
        push(
            &self.channels,
            Bell::new(Pipe {
                room: room.max(1) as usize,
                inside: VecDeque::new(),
                ended: false,
            }),
        )
    }
    /// Sends a number. Waits while the channel is full.
    pub fn send(&self, channel: u32, value: u64, stop: &Stop) -> Result<(), Errno> {
        let c = get(&self.channels, channel)?;
        c.wait(stop, |p| {
            if p.ended {
                return Some(Err(Errno::EBADF));
            }
            (p.inside.len() < p.room).then(|| {
                p.inside.push_back(value);
                Ok(())
            })
        })??;
        c.changed.notify_all();
        Ok(())
    }
    /// Receives a number. Waits while the channel is empty. Returns `None` if the channel is closed
    /// and empty.
    pub fn recv(&self, channel: u32, stop: &Stop) -> Result<Option<u64>, Errno> {
        let c = get(&self.channels, channel)?;
        let got = c.wait(stop, |p| match p.inside.pop_front() {
            Some(v) => Some(Some(v)),
            None if p.ended => Some(None),
            None => None,
        })?;
        c.changed.notify_all();
        Ok(got)
    }
    /// Closes the channel.
    pub fn end_channel(&self, channel: u32) {
        if let Ok(c) = get(&self.channels, channel) {
            c.get().ended = true;
            c.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    #[test]
    fn lock_excludes_other_tasks() {
        let (s, stop, inside) = (Syncs::default(), Stop::new(None, false), AtomicU32::new(0));
        let l = s.lock();
        thread::scope(|t| {
            for _ in 0..4 {
                t.spawn(|| {
                    for _ in 0..200 {
                        s.acquire(l, &stop).expect("taken");
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        s.release(l);
                    }
                });
            }
        });
    }

    #[test]
    fn barrier_waits_for_all_tasks_and_is_reusable() {
        let (s, stop, come) = (Syncs::default(), Stop::new(None, false), AtomicU32::new(0));
        let b = s.barrier(3);
        thread::scope(|t| {
            for _ in 0..3 {
                t.spawn(|| {
                    for round in 1..=5 {
                        come.fetch_add(1, Ordering::SeqCst);
                        s.arrive(b, &stop).expect("met");
                        assert!(come.load(Ordering::SeqCst) >= 3 * round);
                        s.arrive(b, &stop).expect("met");
                    }
                });
            }
        });
    }

    #[test]
    fn channel_delivers_everything_in_order_until_its_end() {
        let (s, stop) = (Syncs::default(), Stop::new(None, false));
        let c = s.channel(2);
        thread::scope(|t| {
            t.spawn(|| {
                for v in 0..100 {
                    s.send(c, v, &stop).expect("sent");
                }
                s.end_channel(c);
            });
            let got = std::iter::from_fn(|| s.recv(c, &stop).expect("received"));
            assert!(got.eq(0..100));
        });
        assert_eq!(s.send(c, 1, &stop), Err(Errno::EBADF));
    }

    #[test]
    fn stopped_run_wakes_waiting_tasks() {
        let (s, stop) = (Syncs::default(), Stop::new(None, false));
        let (b, c) = (s.barrier(2), s.channel(1));
        thread::scope(|t| {
            let a = t.spawn(|| s.arrive(b, &stop));
            let r = t.spawn(|| s.recv(c, &stop));
            stop.raise("test");
            assert_eq!(a.join().expect("no panic"), Err(Errno::ECANCELED));
            assert_eq!(r.join().expect("no panic"), Err(Errno::ECANCELED));
        });
        assert_eq!(s.acquire(99, &Stop::new(None, false)), Err(Errno::EBADF));
    }
}
