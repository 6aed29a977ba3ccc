//! Listeners of a run, and a queue that reports to them.

use crate::drive::{Progress, RunError, Source, drive_until};
use crate::setup::Queue;
use seekwell_core::event::Member;
use seekwell_core::result::Record;
use seekwell_core::{
    Bio, BioDone, BioSink, Control, Event, Instant, Nanos, SchedulerWork, Sector, Snapshot, Tap,
    TaskId,
};

/// Listens to a run. A closure that takes an event is a listener for events only.
pub trait Listen {
    /// An event. Events arrive in the order in which they were written, which is the order of time.
    /// The only exception is a guest's host, which works while the guest rests: its events can
    /// arrive late.
    fn event(&mut self, e: &Event);
    /// The workload's clock starts or restarts; everything before is excluded from the measurement.
    fn clock(&mut self, at: Instant) {
        let _ = at;
    }
    /// Called before something happens at `at`; nothing has happened since the last event. Returns
    /// the time of the snapshot if the listener wants one.
    fn wants_snapshot(&mut self, at: Instant) -> Option<Instant> {
        let _ = at;
        None
    }
    /// The snapshot: all members, and the contents of those that hold something.
    fn snapshot(&mut self, members: Vec<Member>, inside: Vec<Snapshot>) {
        let _ = (members, inside);
    }
    /// The run is over; `names` returns the names of tasks.
    fn over(&mut self, at: Instant, names: &dyn Fn(TaskId) -> Option<String>) {
        let _ = (at, names);
    }
}

impl<F: FnMut(&Event)> Listen for F {
    fn event(&mut self, e: &Event) {
        self(e);
    }
}

/// A listener.
pub type Watch = Box<dyn Listen>;

/// Connects a listener to a queue and everything below it.
pub(crate) struct Ear {
    tap: Tap,
    watch: Watch,
    heard: Vec<Event>,
}

impl Ear {
    pub(crate) fn of(queue: &mut Queue, watch: Option<Watch>) -> Option<Self> {
        let watch = watch?;
        let tap = Tap::new();
        queue.listen(Some(&tap));
        Some(Ear {
            tap,
            watch,
            heard: Vec::new(),
        })
    }
    /// Called before something happens at `at`.
    pub(crate) fn before(&mut self, queue: &Queue, at: Instant) {
        if let Some(at) = self.watch.wants_snapshot(at) {
            let mut inside = Vec::new();
            queue.snapshot(at, &mut inside);
            self.watch.snapshot(self.tap.members(), inside);
        }
    }
    /// Passes on the events since the last call.
    pub(crate) fn tell(&mut self) {
        self.tap.take(&mut self.heard);
        for e in self.heard.drain(..) {
            self.watch.event(&e);
        }
    }
    pub(crate) fn clock(&mut self, at: Instant) {
        self.watch.clock(at);
    }
    pub(crate) fn over(&mut self, at: Instant, names: &dyn Fn(TaskId) -> Option<String>) {
        self.tell();
        self.watch.over(at, names);
    }
}

/// A queue. Without a listener it behaves as if this wrapper did not exist.
pub(crate) struct Told {
    pub(crate) queue: Queue,
    ear: Option<Ear>,
}

impl Told {
    /// From here on, `watch` receives the queue's events.
    pub(crate) fn new(mut queue: Queue, watch: Option<Watch>) -> Self {
        let ear = Ear::of(&mut queue, watch);
        Told { queue, ear }
    }
    /// Drives `source` against the queue, until `limit` at most.
    pub(crate) fn drive<S: Source>(
        &mut self,
        source: &mut S,
        record: &mut Record,
        limit: Option<Nanos>,
        progress: Progress<'_>,
    ) -> Result<(), RunError> {
        match self.ear {
            None => drive_until(&mut self.queue, source, record, limit, progress),
            Some(_) => drive_until(self, source, record, limit, progress),
        }
    }
    /// Ends the run for the listener.
    pub(crate) fn over(&mut self, at: Instant, names: &dyn Fn(TaskId) -> Option<String>) {
        if let Some(ear) = &mut self.ear {
            ear.over(at, names);
        }
    }
    fn before(&mut self, at: Instant) {
        if let Some(ear) = &mut self.ear {
            ear.before(&self.queue, at);
        }
    }
    fn tell(&mut self) {
        if let Some(ear) = &mut self.ear {
            ear.tell();
        }
    }
}

impl BioSink for Told {
    fn submit(&mut self, now: Instant, bio: Bio) {
        self.before(now);
        self.queue.submit(now, bio);
        self.tell();
    }
    fn next_event(&self) -> Option<Instant> {
        self.queue.next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        self.before(to);
        self.queue.advance(to, out);
        self.tell();
    }
    fn control(&mut self, now: Instant, what: Control) {
        self.before(now);
        self.queue.control(now, what);
        self.tell();
    }
    fn capacity(&self) -> Sector {
        self.queue.capacity()
    }
    fn congested(&self, write: bool) -> bool {
        self.queue.congested(write)
    }
    fn waits(&self, task: TaskId) -> bool {
        self.queue.waits(task)
    }
    fn count_work(&mut self, counts: bool) {
        self.queue.count_work(counts);
    }
    fn take_work(&mut self) -> Option<SchedulerWork> {
        self.queue.take_work()
    }
}
