//! A device without a scheduler. While the device is full, commands wait in order of arrival. If
//! the device cannot queue a flush together with other commands, the flush is sent alone.

use seekwell_core::{
    Accept, Bio, BioDone, BioId, BioSink, Command, Control, Device, Done, Instant, Op, Sector,
};
use std::collections::VecDeque;

/// The driver of the device. A bio and its command have the same number, which fits into 32 bits
/// and is unique among outstanding commands.
pub struct Direct<D> {
    device: D,
    /// Commands that the device has not accepted yet, in order of arrival.
    waiting: VecDeque<Command>,
    done: Vec<Done>,
    now: Instant,
    in_device: u32,
    flushing: bool,
    flush_alone: bool,
}

impl<D: Device> Direct<D> {
    /// Returns a driver for an idle device.
    pub fn new(device: D) -> Self {
        let flush_alone = !device.facts().flush_queueable;
        let room = device.facts().depth.min(1 << 12) as usize;
        Direct {
            device,
            waiting: VecDeque::with_capacity(room),
            done: Vec::with_capacity(room),
            now: Instant::default(),
            in_device: 0,
            flushing: false,
            flush_alone,
        }
    }

    /// Sends waiting commands until the device accepts no more.
    fn feed(&mut self) {
        while let Some(&command) = self.waiting.front() {
            let alone = self.flush_alone && command.op == Op::Flush;
            if self.flushing || (alone && self.in_device > 0) {
                break;
            }
            if self.device.accept(self.now, command) == Accept::Busy {
                break;
            }
            self.waiting.pop_front();
            self.in_device += 1;
            self.flushing = alone;
        }
    }
}

impl<D: Device> BioSink for Direct<D> {
    fn submit(&mut self, now: Instant, bio: Bio) {
        self.now = self.now.max(now);
        self.waiting.push_back(Command {
            id: bio.id.0 as u32,
            op: bio.op,
            sector: bio.sector,
            sectors: bio.sectors,
            fua: false,
        });
        self.feed();
    }
    fn next_event(&self) -> Option<Instant> {
        self.device.next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        while let Some(at) = self.device.next_event().filter(|t| *t <= to) {
            self.now = self.now.max(at);
            self.device.advance(at, &mut self.done);
            let done = self.done.len() as u32;
            self.in_device -= done.min(self.in_device);
            self.flushing &= self.in_device > 0;
            out.extend(self.done.drain(..).map(|d| BioDone {
                id: BioId(u64::from(d.id)),
                at: d.at,
                error: d.error,
            }));
            if done > 0 {
                self.feed();
            }
        }
        self.now = self.now.max(to);
    }
    fn control(&mut self, _: Instant, _: Control) {}
    fn capacity(&self) -> Sector {
        self.device.facts().capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use seekwell_core::{Flags, Nanos, TaskId};
    use seekwell_device::Constant;

    fn bio(id: u64, op: Op, sector: u64) -> Bio {
        let n = if op == Op::Flush { 0 } else { 8 };
        Bio::new(id, TaskId(1), op, Flags::empty(), sector, n)
    }

    #[test]
    fn device_receives_a_command_at_its_arrival_time() {
        // The device serves one command at a time, and the first completes at 100 us. The second
        // request arrives at 150 us. Its service must start at 150 us and not earlier, although the
        // host calls `run_to` only at 1 ms.
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
    fn flush_is_issued_alone_if_the_device_requires_it() {
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
    fn commands_beyond_the_device_depth_wait_in_order() {
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
