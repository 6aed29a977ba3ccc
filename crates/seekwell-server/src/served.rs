//! A served disk: a device model, either without a scheduler or behind a block layer.

use seekwell_core::{
    Accept, BioSink, Command, Device, DeviceFacts, DeviceStats, Direct, Done, Instant, Sectors,
    Snapshot, Tap,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use seekwell_core::{Bio, Flags, Nanos, Op, TaskId};
    use seekwell_device::Constant;

    fn bio(id: u64, op: Op, sector: u64) -> Bio {
        let n = if op == Op::Flush { 0 } else { 8 };
        Bio::new(id, TaskId(1), op, Flags::empty(), sector, n)
    }

    #[test]
    fn a_device_sees_nothing_before_its_time() {
        // The device serves one command at a time, and the first completes at 100 us. The second
        // request arrives at 150 us, so its service must start at 150 us and not earlier, although
        // the host calls `run_to` only at 1 ms.
        let device = Direct::new(Constant::serial(1, Nanos::from_us(100)));
        let mut e = Engine::new(device);
        let mut out = Vec::new();
        e.arrive(Instant::at_us(0), bio(1, Op::Read, 0));
        e.arrive(Instant::at_us(150), bio(2, Op::Read, 8));
        e.arrive(Instant::at_us(160), bio(3, Op::Read, 8));
        e.run_to(Instant::at_us(1000), &mut out);
        let at: Vec<_> = out.iter().map(|d| (d.id.0, d.at)).collect();
        let us = Instant::at_us;
        assert_eq!(at, [(1, us(100)), (2, us(250)), (3, us(350))]);
    }

    #[test]
    fn a_flush_goes_alone_where_the_device_asks_for_it() {
        let facts = |alone: bool| {
            let mut f = Constant::parallel(8, Nanos::ZERO).facts().clone();
            f.flush_queueable = !alone;
            f
        };
        for (alone, expected) in [(true, [100, 200, 300]), (false, [100, 100, 100])] {
            let device = Constant::parallel(8, Nanos::from_us(100)).with_facts(facts(alone));
            let mut e = Engine::new(Direct::new(device));
            let mut out = Vec::new();
            for (id, op) in [(0, Op::Write), (1, Op::Flush), (2, Op::Write)] {
                e.arrive(Instant::START, bio(id, op, 0));
            }
            e.run_to(Instant::at_us(1000), &mut out);
            assert_eq!(
                out.iter().map(|d| d.at).collect::<Vec<_>>(),
                expected.map(Instant::at_us)
            );
        }
    }

    #[test]
    fn what_the_device_cannot_take_waits_in_order() {
        let mut e = Engine::new(Direct::new(Constant::serial(1, Nanos::from_us(10))));
        let mut out = Vec::new();
        for id in 0..5 {
            e.arrive(Instant::START, bio(id, Op::Read, (5 - id) * 8));
        }
        e.run_to(Instant::at_us(100), &mut out);
        let ids: Vec<u64> = out.iter().map(|d| d.id.0).collect();
        assert_eq!(ids, [0, 1, 2, 3, 4]);
    }
}
