//! Who listens to a run, and a queue that tells him.

use crate::drive::{Progress, RunError, Source, drive_until};
use crate::setup::Queue;
use seekwell_core::event::Member;
use seekwell_core::result::Record;
use seekwell_core::{
    Bio, BioDone, BioSink, Control, Event, Instant, Nanos, SchedulerWork, Sector, Snapshot, Tap,
    TaskId,
};

/// Listens to a run. A function of an event does, too: it hears nothing else.
pub trait Listen {
    /// Something happened. Events come in the order of their writing, which is that of time; only
    /// the host of a guest, which goes on while the guest rests, is told of late.
    fn event(&mut self, e: &Event);
    /// The workload's clock starts (again): what came before belongs to no measure.
    fn clock(&mut self, at: Instant) {
        let _ = at;
    }
    /// Something is about to happen at `at`, and nothing has since the last event. The time that a
    /// snapshot is wanted for, if one is wanted now.
    fn wants_snapshot(&mut self, at: Instant) -> Option<Instant> {
        let _ = at;
        None
    }
    /// The snapshot: every member, and those of them that hold something.
    fn snapshot(&mut self, members: Vec<Member>, inside: Vec<Snapshot>) {
        let _ = (members, inside);
    }
    /// The run is over; `names` of tasks.
    fn over(&mut self, at: Instant, names: &dyn Fn(TaskId) -> Option<String>) {
        let _ = (at, names);
    }
}

impl<F: FnMut(&Event)> Listen for F {
    fn event(&mut self, e: &Event) {
        self(e);
    }
}

/// Somebody who listens.
pub type Watch = Box<dyn Listen>;

/// The listener's end of a queue and of all that is below.
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
    /// Before something happens at `at`.
    pub(crate) fn before(&mut self, queue: &Queue, at: Instant) {
        if let Some(at) = self.watch.wants_snapshot(at) {
            let mut inside = Vec::new();
            queue.snapshot(at, &mut inside);
            self.watch.snapshot(self.tap.members(), inside);
        }
    }
    /// What happened since the listener was last told.
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

/// The queue. Without a listener it is driven as if this were not here.
pub(crate) struct Told {
    pub(crate) queue: Queue,
    ear: Option<Ear>,
}

impl Told {
    /// Tells `watch` from now on.
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
    /// The run is over.
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
