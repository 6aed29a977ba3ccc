//! A device without a scheduler. While the device is full, commands wait in order of arrival. If
//! the device cannot queue a flush together with other commands, the flush is sent alone.

use crate::bio::{Bio, BioId, Op};
use crate::device::{Accept, Command, Device, Done};
use crate::sink::{BioDone, BioSink, Control};
use crate::time::Instant;
use crate::units::Sector;
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
