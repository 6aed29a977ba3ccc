//! A queue that tells somebody what happens in it.

use crate::drive::{Progress, RunError, Source, drive};
use crate::setup::Queue;
use seekwell_core::result::Record;
use seekwell_core::{Bio, BioDone, BioSink, Control, Event, Instant, Sector, TaskId};

/// Sees every event of a run's block layer.
pub type Watch = Box<dyn FnMut(&Event)>;

/// The queue. Without a watcher it is driven as if this were not here.
pub(crate) struct Told {
    pub(crate) queue: Queue,
    watch: Option<Watch>,
}

impl Told {
    /// Tells `watch` from now on.
    pub(crate) fn new(mut queue: Queue, watch: Option<Watch>) -> Self {
        queue.parts().1.log.listen(watch.is_some());
        Told { queue, watch }
    }
    /// Drives `source` against the queue.
    pub(crate) fn drive<S: Source>(
        &mut self,
        source: &mut S,
        record: &mut Record,
        progress: Progress<'_>,
    ) -> Result<(), RunError> {
        match self.watch {
            None => drive(&mut self.queue, source, record, progress),
            Some(_) => drive(self, source, record, progress),
        }
    }
    /// What happened since the watcher was last told.
    #[inline]
    fn tell(&mut self) {
        if self.watch.is_some() {
            self.tell_all();
        }
    }
    #[cold]
    fn tell_all(&mut self) {
        if let Some(watch) = &mut self.watch {
            for e in self.queue.parts().1.log.events.drain(..) {
                watch(&e);
            }
        }
    }
}

impl BioSink for Told {
    #[inline]
    fn submit(&mut self, now: Instant, bio: Bio) {
        self.queue.submit(now, bio);
        self.tell();
    }
    #[inline]
    fn next_event(&self) -> Option<Instant> {
        self.queue.next_event()
    }
    #[inline]
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        self.queue.advance(to, out);
        self.tell();
    }
    #[inline]
    fn control(&mut self, now: Instant, what: Control) {
        self.queue.control(now, what);
        self.tell();
    }
    fn capacity(&self) -> Sector {
        self.queue.capacity()
    }
    #[inline]
    fn congested(&self, write: bool) -> bool {
        self.queue.congested(write)
    }
    #[inline]
    fn waits(&self, task: TaskId) -> bool {
        self.queue.waits(task)
    }
}
