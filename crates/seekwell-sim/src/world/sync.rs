//! Locks, barriers and channels. Waiting tasks are served in the order of their requests.

use seekwell_core::Errno;
use std::collections::VecDeque;

/// Number of a task in the executor.
pub(super) type Task = u32;

#[derive(Default)]
struct Lock {
    holder: Option<Task>,
    waiting: VecDeque<Task>,
}

struct Barrier {
    size: usize,
    here: Vec<Task>,
}

struct Channel {
    room: usize,
    items: VecDeque<u64>,
    ended: bool,
    senders: VecDeque<(Task, u64)>,
    receivers: VecDeque<Task>,
}

/// The result that a waiting task gets. A receiver gets a number, or `None` if the channel has
/// ended.
pub(super) type Answer = Result<Option<u64>, Errno>;

/// All synchronisation objects of a run. A call that need not wait returns immediately. Otherwise
/// the task is queued, and a later call of another task puts its result into `wake`.
#[derive(Default)]
pub(super) struct Syncs {
    locks: Vec<Lock>,
    barriers: Vec<Barrier>,
    channels: Vec<Channel>,
    /// Results for waiting tasks, in order.
    pub(super) wake: Vec<(Task, Answer)>,
}

fn push<T>(all: &mut Vec<T>, value: T) -> u32 {
    all.push(value);
    (all.len() - 1) as u32
}

impl Syncs {
    pub(super) fn lock(&mut self) -> u32 {
        push(&mut self.locks, Lock::default())
    }
    pub(super) fn acquire(&mut self, lock: u32, task: Task) -> Option<Answer> {
        let Some(l) = self.locks.get_mut(lock as usize) else {
            return Some(Err(Errno::EBADF));
        };
        if l.holder.is_none() {
            l.holder = Some(task);
            return Some(Ok(None));
        }
        l.waiting.push_back(task);
        None
    }
    pub(super) fn release(&mut self, lock: u32, task: Task) {
        if let Some(l) = self.locks.get_mut(lock as usize)
            && l.holder == Some(task)
        {
            l.holder = l.waiting.pop_front();
            self.wake.extend(l.holder.map(|t| (t, Ok(None))));
        }
    }
    pub(super) fn holder(&self, lock: u32) -> Option<Task> {
        self.locks.get(lock as usize)?.holder
    }
    pub(super) fn barrier(&mut self, tasks: u32) -> u32 {
        let size = tasks.max(1) as usize;
        push(
            &mut self.barriers,
            Barrier {
                size,
                here: Vec::new(),
            },
        )
    }
    pub(super) fn arrive(&mut self, barrier: u32, task: Task) -> Option<Answer> {
        let Some(b) = self.barriers.get_mut(barrier as usize) else {
            return Some(Err(Errno::EBADF));
        };
        if b.here.len() + 1 < b.size {
            b.here.push(task);
            return None;
        }
        self.wake.extend(b.here.drain(..).map(|t| (t, Ok(None))));
        Some(Ok(None))
    }
    /// Returns the number of tasks that a barrier still waits for.
    pub(super) fn missing(&self, barrier: u32) -> usize {
        let b = self.barriers.get(barrier as usize);
        b.map_or(0, |b| b.size - b.here.len())
    }
    pub(super) fn channel(&mut self, room: u32) -> u32 {
        let room = room.max(1) as usize;
        push(
            &mut self.channels,
            Channel {
                room,
                items: VecDeque::new(),
                ended: false,
                senders: VecDeque::new(),
                receivers: VecDeque::new(),
            },
        )
    }
    pub(super) fn send(&mut self, channel: u32, value: u64, task: Task) -> Option<Answer> {
        let Some(c) = self.channels.get_mut(channel as usize) else {
            return Some(Err(Errno::EBADF));
        };
        if c.ended {
            return Some(Err(Errno::EBADF));
        }
        if let Some(r) = c.receivers.pop_front() {
            self.wake.push((r, Ok(Some(value))));
        } else if c.items.len() < c.room {
            c.items.push_back(value);
        } else {
            c.senders.push_back((task, value));
            return None;
        }
        Some(Ok(None))
    }
    pub(super) fn recv(&mut self, channel: u32, task: Task) -> Option<Answer> {
        let Some(c) = self.channels.get_mut(channel as usize) else {
            return Some(Err(Errno::EBADF));
        };
        if let Some(v) = c.items.pop_front() {
            if let Some((s, value)) = c.senders.pop_front() {
                c.items.push_back(value);
                self.wake.push((s, Ok(None)));
            }
            return Some(Ok(Some(v)));
        }
        if c.ended {
            return Some(Ok(None));
        }
        c.receivers.push_back(task);
        None
    }
    pub(super) fn end_channel(&mut self, channel: u32) {
        if let Some(c) = self.channels.get_mut(channel as usize) {
            c.ended = true;
            self.wake
                .extend(c.senders.drain(..).map(|(t, _)| (t, Err(Errno::EBADF))));
            self.wake
                .extend(c.receivers.drain(..).map(|t| (t, Ok(None))));
        }
    }
    /// Wakes all waiting tasks because the run is stopped, in the order of the objects that they
    /// wait for.
    pub(super) fn cancel(&mut self) {
        let stop = |t| (t, Err(Errno::ECANCELED));
        for l in &mut self.locks {
            self.wake.extend(l.waiting.drain(..).map(stop));
        }
        for b in &mut self.barriers {
            self.wake.extend(b.here.drain(..).map(stop));
        }
        for c in &mut self.channels {
            self.wake.extend(c.senders.drain(..).map(|(t, _)| stop(t)));
            self.wake.extend(c.receivers.drain(..).map(stop));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO: Option<Answer> = Some(Ok(None));

    #[test]
    fn lock_is_granted_in_request_order_and_released_only_by_its_holder() {
        let mut s = Syncs::default();
        let l = s.lock();
        assert_eq!(s.acquire(l, 1), GO);
        assert_eq!((s.acquire(l, 2), s.acquire(l, 3)), (None, None));
        s.release(l, 3);
        assert!(s.wake.is_empty() && s.holder(l) == Some(1));
        s.release(l, 1);
        s.release(l, 2);
        assert_eq!(s.wake, [(2, Ok(None)), (3, Ok(None))]);
        assert_eq!(s.acquire(9, 1), Some(Err(Errno::EBADF)));
    }

    #[test]
    fn barrier_opens_with_the_last_arrival_and_is_reusable() {
        let mut s = Syncs::default();
        let b = s.barrier(3);
        for _ in 0..2 {
            assert_eq!((s.arrive(b, 1), s.arrive(b, 2)), (None, None));
            assert_eq!(s.missing(b), 1);
            assert_eq!(s.arrive(b, 3), GO);
            assert_eq!(s.wake, [(1, Ok(None)), (2, Ok(None))]);
            s.wake.clear();
        }
    }

    #[test]
    fn channel_keeps_order_when_full_and_empty() {
        let mut s = Syncs::default();
        let c = s.channel(1);
        assert_eq!((s.send(c, 10, 1), s.send(c, 11, 1)), (GO, None));
        assert_eq!(s.recv(c, 2), Some(Ok(Some(10))));
        assert_eq!(s.wake.pop(), Some((1, Ok(None))));
        assert_eq!(s.recv(c, 2), Some(Ok(Some(11))));
        assert_eq!(s.recv(c, 2), None);
        assert_eq!(s.send(c, 12, 1), GO);
        assert_eq!(s.wake.pop(), Some((2, Ok(Some(12)))));
        assert_eq!(s.recv(c, 3), None);
        s.end_channel(c);
        assert_eq!(s.wake.pop(), Some((3, Ok(None))));
        assert_eq!(s.send(c, 1, 1), Some(Err(Errno::EBADF)));
    }
}
