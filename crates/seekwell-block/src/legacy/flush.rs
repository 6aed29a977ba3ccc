//! Sequences for flushes. From 2.6.37 on, the steps are PREFLUSH, DATA and POSTFLUSH. Earlier 2.6
//! kernels use barriers that drain the queue.
//!
//! From 2.6.37 on, a flush guarantees durability but no order. It does not enter the elevator.
//! Requests that wait for a flush share one flush command, and only one such command runs at a
//! time. No flush starts while data of a sequence is in flight, unless the oldest waiting request
//! is older than 5 s.
//!
//! In earlier kernels, a barrier stops the queue. First, all earlier requests complete. Then the
//! cache is flushed, the write is issued, and the cache is flushed again. Only then are later
//! requests issued.

use seekwell_core::{Instant, Nanos, RqId};
use std::collections::VecDeque;

/// Age from which a waiting request gets its flush even while data of a sequence is in flight.
const PENDING_TIMEOUT: Nanos = Nanos::from_secs(5);

/// The next step of a request in a flush sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The request waits for a flush before its data are written.
    Pre,
    /// The data of the request must be written.
    Data,
    /// The request waits for a flush after its data were written.
    Post,
    /// The sequence is complete.
    Done,
}

/// A request in a flush sequence.
#[derive(Clone, Copy, Debug)]
pub struct Sequenced {
    /// The request.
    pub rq: RqId,
    pre: bool,
    data: bool,
    post: bool,
}

impl Sequenced {
    /// Creates a sequence with the given steps.
    pub fn new(rq: RqId, pre: bool, data: bool, post: bool) -> Self {
        Sequenced {
            rq,
            pre,
            data,
            post,
        }
    }
    /// Moves to the next step and returns it. The step then counts as started.
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

/// An action that the layer must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Write the data of this request, at the head of the dispatch list.
    Write(RqId),
    /// Complete this request, because its sequence is complete.
    Complete(RqId),
}

impl FlushMachine {
    /// Starts the sequence of a request.
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
    /// Returns whether a flush command should be issued. If so, the command counts as issued.
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
    /// Returns whether a flush command is in the driver or will be sent to it.
    pub fn flushing(&self) -> bool {
        self.in_flight
    }
    /// Returns the time at which the oldest waiting request times out, if data in flight delay its
    /// flush.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        let held = !self.in_flight && !self.pending.is_empty() && !self.data.is_empty();
        held.then(|| self.pending_since + PENDING_TIMEOUT)
    }
    /// Handles the completion of the flush command.
    pub fn flushed(&mut self, now: Instant, acts: &mut VecDeque<Act>) {
        self.in_flight = false;
        for s in std::mem::take(&mut self.running) {
            self.step(now, s, acts);
        }
    }
    /// Handles the completion of the data of `rq`. Returns false if `rq` is not in a sequence here.
    pub fn data_done(&mut self, now: Instant, rq: RqId, acts: &mut VecDeque<Act>) -> bool {
        let Some(i) = self.data.iter().position(|s| s.rq == rq) else {
            return false;
        };
        let s = self.data.remove(i);
        self.step(now, s, acts);
        true
    }
    /// Returns whether no request is in a sequence.
    pub fn idle(&self) -> bool {
        self.pending.is_empty() && self.data.is_empty() && !self.in_flight
    }
}

/// State of a barrier at the head of the dispatch list, in kernels before 2.6.37.
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
    fn flush_is_shared_by_waiting_sequences_and_deferred_while_data_is_in_flight() {
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
