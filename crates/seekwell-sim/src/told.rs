//! Listeners of a run, and a queue that passes its events to a listener.

use crate::drive::{Progress, RunError, Source, drive_until};
use crate::setup::Queue;
use seekwell_core::event::Member;
use seekwell_core::result::Record;
use seekwell_core::{
    Bio, BioDone, BioSink, Control, Event, Instant, Nanos, SchedulerWork, Sector, Snapshot, Tap,
    TaskId,
};

/// A listener of a run. A closure that takes an event is a listener that gets only events.
pub trait Listen {
    /// Handles an event. Events arrive in the order of time, with one exception: events of a
    /// guest's host can arrive late, because the host works while the guest is idle.
    fn event(&mut self, e: &Event);
    /// Handles a start or restart of the workload's clock. Everything before it is excluded from
    /// the measurement.
    fn clock(&mut self, at: Instant) {
        let _ = at;
    }
    /// Called before something happens at time `at`. Nothing has happened since the last event.
    /// Returns the time for a snapshot if the listener wants a snapshot.
    fn wants_snapshot(&mut self, at: Instant) -> Option<Instant> {
        let _ = at;
        None
    }
    /// Handles a snapshot: all members of the device, and the contents of the members that hold
    /// requests or data.
    fn snapshot(&mut self, members: Vec<Member>, inside: Vec<Snapshot>) {
        let _ = (members, inside);
    }
    /// Handles the end of the run. `names` returns the name of a task.
    fn over(&mut self, at: Instant, names: &dyn Fn(TaskId) -> Option<String>) {
        let _ = (at, names);
    }
}

impl<F: FnMut(&Event)> Listen for F {
    fn event(&mut self, e: &Event) {
        self(e);
    }
}

/// A boxed listener.
pub type Watch = Box<dyn Listen>;

/// Connects a listener to a queue and everything below it.
pub(crate) struct Ear {
    tap: Tap,
    watch: Watch,
    heard: Vec<Event>,
}

impl Ear {
    pub(crate) fn new(queue: &mut Queue, watch: Option<Watch>) -> Option<Self> {
        let watch = watch?;
        let tap = Tap::new();
        queue.listen(Some(&tap));
        Some(Ear {
            tap,
            watch,
            heard: Vec::new(),
        })
    }
    /// Takes a snapshot if the listener wants one. Called before something happens at time `at`.
    pub(crate) fn before(&mut self, queue: &Queue, at: Instant) {
        if let Some(at) = self.watch.wants_snapshot(at) {
            let mut inside = Vec::new();
            queue.snapshot(at, &mut inside);
            self.watch.snapshot(self.tap.members(), inside);
        }
    }
    /// Passes the events since the last call to the listener.
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

/// A queue that passes its events to a listener, if there is one. The listener has no effect on the
/// queue.
pub(crate) struct Told {
    pub(crate) queue: Queue,
    ear: Option<Ear>,
}

impl Told {
    /// Creates a queue whose events go to `watch`.
    pub(crate) fn new(mut queue: Queue, watch: Option<Watch>) -> Self {
        let ear = Ear::new(&mut queue, watch);
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
    /// Tells the listener that the run is over.
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
