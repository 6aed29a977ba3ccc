//! Flush sequencing: PREFLUSH, DATA, POSTFLUSH (2.6.37 and later), and the draining barriers of
//! earlier 2.6 kernels.
//!
//! From 2.6.37 on a flush guarantees durability, not order. It never enters the elevator, and
//! waiting requests share a flush. Only one flush runs at a time. No flush starts while data of a
//! sequence is in flight, unless the oldest waiter is older than 5 s. In earlier kernels a barrier
//! stops the pipeline: all earlier requests complete, the cache is flushed, the write is issued,
//! and the cache is flushed again. Only then do later requests follow.

use seekwell_core::{Instant, Nanos, RqId};
use std::collections::VecDeque;

/// A waiter this old gets its flush even while sequence data is in flight.
const PENDING_TIMEOUT: Nanos = Nanos::from_secs(5);

/// The next step of a request in a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Waits for a flush before its data.
    Pre,
    /// Its data must be written.
    Data,
    /// Waits for a flush after its data.
    Post,
    /// Finished.
    Done,
}

/// A request in progress.
#[derive(Clone, Copy, Debug)]
pub struct Sequenced {
    /// The request.
    pub rq: RqId,
    pre: bool,
    data: bool,
    post: bool,
}

impl Sequenced {
    /// A sequence with these parts.
    pub fn new(rq: RqId, pre: bool, data: bool, post: bool) -> Self {
        Sequenced {
            rq,
            pre,
            data,
            post,
        }
    }
    /// Moves to the next step and returns it; the step then counts as started.
    fn advance(&mut self) -> Step {
        if std::mem::take(&mut self.pre) {
            Step::Pre
        } else if std::mem::take(&mut self.data) {
            Step::Data
        } else if std::mem::take(&mut self.post) {
            Step::Post
        } else {
            Step::Done
        }
    }
}

/// The flush state machine of 2.6.37 and later.
#[derive(Debug, Default)]
pub struct FlushMachine {
    pending: Vec<Sequenced>,
    pending_since: Instant,
    running: Vec<Sequenced>,
    in_flight: bool,
    data: Vec<Sequenced>,
}

/// An action for the layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Write this request's data, at the head of the dispatch list.
    Write(RqId),
    /// The sequence is complete: complete the request.
    Complete(RqId),
}

impl FlushMachine {
    /// A request enters.
    pub fn enter(&mut self, now: Instant, s: Sequenced, acts: &mut VecDeque<Act>) {
        self.step(now, s, acts);
    }
    fn step(&mut self, now: Instant, mut s: Sequenced, acts: &mut VecDeque<Act>) {
        match s.advance() {
            Step::Pre | Step::Post => {
                if self.pending.is_empty() {
                    self.pending_since = now;
                }
                self.pending.push(s);
            }
            Step::Data => {
                self.data.push(s);
                acts.push_back(Act::Write(s.rq));
            }
            Step::Done => acts.push_back(Act::Complete(s.rq)),
        }
    }
    /// Whether a flush command should be issued; if so, it counts as issued.
    pub fn wants_flush(&mut self, now: Instant) -> bool {
        if self.in_flight || self.pending.is_empty() {
            return false;
        }
        if !self.data.is_empty() && now.since(self.pending_since) < PENDING_TIMEOUT {
            return false;
        }
        self.in_flight = true;
        std::mem::swap(&mut self.pending, &mut self.running);
        true
    }
    /// Whether a flush command is in the driver or on its way there.
    pub fn flushing(&self) -> bool {
        self.in_flight
    }
    /// When the oldest waiter's timeout ends, if data delays its flush.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        let held = !self.in_flight && !self.pending.is_empty() && !self.data.is_empty();
        held.then(|| self.pending_since + PENDING_TIMEOUT)
    }
    /// The flush command has completed.
    pub fn flushed(&mut self, now: Instant, acts: &mut VecDeque<Act>) {
        self.in_flight = false;
        for s in std::mem::take(&mut self.running) {
            self.step(now, s, acts);
        }
    }
    /// The data of `rq` has completed. False if `rq` is not in progress here.
    pub fn data_done(&mut self, now: Instant, rq: RqId, acts: &mut VecDeque<Act>) -> bool {
        let Some(i) = self.data.iter().position(|s| s.rq == rq) else {
            return false;
        };
        let s = self.data.remove(i);
        self.step(now, s, acts);
        true
    }
    /// Whether nothing waits or runs.
    pub fn idle(&self) -> bool {
        self.pending.is_empty() && self.data.is_empty() && !self.in_flight
    }
}

/// State of a barrier of the kernels before 2.6.37 at the head of the dispatch list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Barrier {
    /// Earlier requests are still in flight.
    Draining,
    /// The cache is being flushed before the write.
    PreFlush,
    /// The write is in flight.
    Write,
    /// The cache is being flushed after the write of this request.
    PostFlush(RqId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_share_a_flush_and_the_next_one_waits_for_data() {
        let (mut m, mut acts, t) = (FlushMachine::default(), VecDeque::new(), Instant::START);
        m.enter(t, Sequenced::new(RqId(1), true, true, true), &mut acts);
        assert!(m.wants_flush(t));
        m.enter(t, Sequenced::new(RqId(2), true, false, false), &mut acts);
        m.enter(t, Sequenced::new(RqId(3), true, false, false), &mut acts);
        assert!(!m.wants_flush(t), "one at a time");
        m.flushed(t, &mut acts);
        assert_eq!(acts.pop_front(), Some(Act::Write(RqId(1))));
        assert!(!m.wants_flush(t), "data of a sequence is in flight");
        assert!(
            m.wants_flush(t + Nanos::from_secs(5)),
            "unless a waiter is 5 s old"
        );
        m.flushed(t, &mut acts);
        assert_eq!(
            acts.drain(..).collect::<Vec<_>>(),
            [Act::Complete(RqId(2)), Act::Complete(RqId(3))]
        );
        assert!(m.data_done(t, RqId(1), &mut acts));
        assert!(m.wants_flush(t), "post-flush");
        m.flushed(t, &mut acts);
        assert_eq!(acts.pop_front(), Some(Act::Complete(RqId(1))));
        assert!(m.idle());
    }
}
