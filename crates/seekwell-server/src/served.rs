//! A served disk: a device model, either without a scheduler or behind a block layer.

use crate::direct::Direct;
use seekwell_core::{
    Accept, BioSink, Command, Device, DeviceFacts, DeviceStats, Done, Instant, Sectors, Snapshot,
    Tap,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A device model that can be moved to another thread.
pub type AnyDevice = Box<dyn Device + Send>;

/// A modelled disk that accepts bios.
pub struct Served {
    pub(crate) facts: DeviceFacts,
    pub(crate) sink: Box<dyn BioSink + Send>,
    pub(crate) depth_max: Arc<AtomicU32>,
}

impl Served {
    /// Returns a disk without a scheduler. It serves commands in order of arrival, up to its queue
    /// depth.
    pub fn device(device: AnyDevice) -> Self {
        let (facts, device, depth_max) = Gauge::over(device);
        let sink = Box::new(Direct::new(device));
        Served {
            facts,
            sink,
            depth_max,
        }
    }
    /// Returns a device behind a block layer with a scheduler. The closure `put_in_front` builds
    /// the block layer.
    ///
    /// # Errors
    /// Returns the errors of `put_in_front`.
    pub fn behind<E>(
        device: AnyDevice,
        put_in_front: impl FnOnce(AnyDevice) -> Result<Box<dyn BioSink + Send>, E>,
    ) -> Result<Self, E> {
        let (facts, device, depth_max) = Gauge::over(device);
        let sink = put_in_front(device)?;
        Ok(Served {
            facts,
            sink,
            depth_max,
        })
    }
    /// Returns the object that accepts bios, for callers with their own clock.
    pub fn into_sink(self) -> Box<dyn BioSink + Send> {
        self.sink
    }
}

/// Wraps a device and counts the commands in it.
struct Gauge {
    device: AnyDevice,
    inside: u32,
    most: Arc<AtomicU32>,
}

impl Gauge {
    fn over(device: AnyDevice) -> (DeviceFacts, AnyDevice, Arc<AtomicU32>) {
        let (facts, most) = (device.facts().clone(), Arc::default());
        let gauge = Gauge {
            device,
            inside: 0,
            most: Arc::clone(&most),
        };
        (facts, Box::new(gauge), most)
    }
    fn took(&mut self, accept: &Accept, n: u32) {
        if *accept != Accept::Busy {
            self.inside += n;
            self.most.fetch_max(self.inside, Ordering::Relaxed);
        }
    }
}

impl Device for Gauge {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        let accept = self.device.accept(now, command);
        self.took(&accept, 1);
        accept
    }
    fn accept_packed(&mut self, now: Instant, group: &[Command]) -> Accept {
        let accept = self.device.accept_packed(now, group);
        self.took(&accept, group.len() as u32);
        accept
    }
    fn next_event(&self) -> Option<Instant> {
        self.device.next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        let before = out.len();
        self.device.advance(to, out);
        let done = (out.len() - before) as u32;
        self.inside -= done.min(self.inside);
    }
    fn facts(&self) -> &DeviceFacts {
        self.device.facts()
    }
    fn stats(&self) -> DeviceStats {
        self.device.stats()
    }
    fn stop(&mut self, now: Instant, id: u32) -> Option<Sectors> {
        let left = self.device.stop(now, id);
        self.inside -= u32::from(left.is_some()).min(self.inside);
        left
    }
    fn state(&self, out: &mut String) {
        self.device.state(out);
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        self.device.listen(tap);
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        self.device.snapshot(now, out);
    }
}
