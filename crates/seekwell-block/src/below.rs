//! A device as a layer uses it: with a cache of the device's next event, and the facts that every
//! request needs.

use seekwell_core::{
    Accept, Command, Device, DeviceFacts, DeviceStats, Done, Instant, Sectors, Snapshot, Tap,
};
use std::cell::Cell;

/// The cached time of the next event.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// A call may have changed the device since the last query.
    Unasked,
    Said(Option<Instant>),
}

/// A device with a cache of its next event. Only a call can change a device. It is therefore asked
/// at most once between two calls, however often the layer checks for the next event.
#[derive(Debug)]
pub(crate) struct Below<D> {
    device: D,
    next: Cell<Next>,
    pub write_cache: bool,
    pub fua: bool,
    pub flush_queueable: bool,
}

impl<D: Device> Below<D> {
    pub fn new(device: D) -> Self {
        let f = device.facts();
        Below {
            write_cache: f.write_cache,
            fua: f.fua,
            flush_queueable: f.flush_queueable,
            next: Cell::new(Next::Unasked),
            device,
        }
    }
    /// Returns the device.
    pub fn device(&self) -> &D {
        &self.device
    }
    #[inline]
    fn changes(&mut self) -> &mut D {
        self.next.set(Next::Unasked);
        &mut self.device
    }
    fn ask(&self) -> Option<Instant> {
        let next = self.device.next_event();
        self.next.set(Next::Said(next));
        next
    }
}

impl<D: Device> Device for Below<D> {
    #[inline]
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        self.changes().accept(now, command)
    }
    fn accept_packed(&mut self, now: Instant, group: &[Command]) -> Accept {
        self.changes().accept_packed(now, group)
    }
    #[inline]
    fn next_event(&self) -> Option<Instant> {
        match self.next.get() {
            Next::Said(next) => next,
            Next::Unasked => self.ask(),
        }
    }
    #[inline]
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        self.changes().advance(to, out);
    }
    fn facts(&self) -> &DeviceFacts {
        self.device.facts()
    }
    fn stats(&self) -> DeviceStats {
        self.device.stats()
    }
    fn stop(&mut self, now: Instant, id: u32) -> Option<Sectors> {
        self.changes().stop(now, id)
    }
    fn state(&self, out: &mut String) {
        self.device.state(out);
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        self.changes().listen(tap);
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        self.device.snapshot(now, out);
    }
}
