//! Arrivals and a device model's own events, merged strictly in order of time.
//!
//! The clock is the caller's. However late [`Engine::run_to`] is called, the model sees every
//! command at its stamp and no command before it: a late host must not let a disk choose among
//! requests that had not come yet. The next operation starts at the model's end of the one before
//! it, even if that completion is posted late.
//!
//! In front of the model stands what a driver is: commands the device has no room for wait first
//! in, first out; a flush that the device cannot take beside other commands goes alone.

use seekwell_core::{Accept, Command, Device, Done, Instant, Nanos, Op};
use std::collections::VecDeque;

/// A device model and the commands on their way to it.
pub struct Engine<D> {
    device: D,
    /// Stamped, not yet seen by the model; in order of their stamps.
    coming: VecDeque<(Instant, Command)>,
    /// Seen by the driver, no room in the device; in order of arrival.
    waiting: VecDeque<Command>,
    clock: Instant,
    in_device: u32,
    flushing: bool,
    flush_alone: bool,
    raised: u64,
    raised_max: Nanos,
    depth_max: u32,
}

impl<D: Device> Engine<D> {
    /// Around a device at rest.
    pub fn new(device: D) -> Self {
        let flush_alone = !device.facts().flush_queueable;
        let room = device.facts().depth.min(1 << 12) as usize;
        Engine {
            device,
            coming: VecDeque::with_capacity(room),
            waiting: VecDeque::with_capacity(room),
            clock: Instant::default(),
            in_device: 0,
            flushing: false,
            flush_alone,
            raised: 0,
            raised_max: Nanos::ZERO,
            depth_max: 0,
        }
    }

    /// The model.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// A command arrives at `at`. Stamps should not decrease; one before the model's clock (the
    /// model had run ahead, see [`Engine::run_to`]) is raised to it and counted.
    pub fn arrive(&mut self, at: Instant, command: Command) {
        let floor = self.coming.back().map_or(self.clock, |last| last.0);
        if at < floor {
            self.raised += 1;
            self.raised_max = self.raised_max.max(floor.since(at));
        }
        self.coming.push_back((at.max(floor), command));
    }

    /// Everything that happens up to `to` inclusive, appending completions in order of time.
    ///
    /// The caller must know every command stamped up to `to`, or else accept that a later one is
    /// raised.
    pub fn run_to(&mut self, to: Instant, out: &mut Vec<Done>) {
        loop {
            let arrival = self.coming.front().map(|c| c.0).filter(|&t| t <= to);
            let event = self.device.next_event().filter(|&t| t <= to);
            match (event, arrival) {
                // At the same instant the device is done before the host comes with more.
                (Some(e), a) if a.is_none_or(|a| e <= a) => {
                    self.clock = self.clock.max(e);
                    let before = out.len();
                    self.device.advance(e, out);
                    let done = (out.len() - before) as u32;
                    self.in_device -= done.min(self.in_device);
                    self.flushing &= self.in_device > 0;
                    if done > 0 {
                        self.feed();
                    }
                }
                (_, Some(a)) => {
                    self.clock = self.clock.max(a);
                    if let Some((_, command)) = self.coming.pop_front() {
                        self.waiting.push_back(command);
                        self.feed();
                    }
                }
                _ => break,
            }
        }
        self.clock = self.clock.max(to);
    }

    /// Hands over what the device takes.
    fn feed(&mut self) {
        while let Some(&command) = self.waiting.front() {
            let alone = self.flush_alone && command.op == Op::Flush;
            if self.flushing || (alone && self.in_device > 0) {
                break;
            }
            if self.device.accept(self.clock, command) == Accept::Busy {
                break;
            }
            self.waiting.pop_front();
            self.in_device += 1;
            self.flushing = alone;
            self.depth_max = self.depth_max.max(self.in_device);
        }
    }

    /// The earliest time at which something happens without a new arrival.
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.coming.front().map(|c| c.0);
        match (self.device.next_event(), arrival) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Commands that arrived and are not done.
    pub fn outstanding(&self) -> usize {
        self.coming.len() + self.waiting.len() + self.in_device as usize
    }
    /// Most commands the device held at a time.
    pub fn depth_max(&self) -> u32 {
        self.depth_max
    }
    /// How many stamps were raised, and the most by which one was.
    pub fn raised(&self) -> (u64, Nanos) {
        (self.raised, self.raised_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use seekwell_core::{Sector, Sectors};
    use seekwell_device::{Constant, open};

    fn command(id: u32, op: Op, sector: u64) -> Command {
        let sectors = Sectors(if op == Op::Flush { 0 } else { 8 });
        Command {
            id,
            op,
            sector: Sector(sector),
            sectors,
            fua: false,
        }
    }

    /// An open-loop list of (gap, operation, place), given to the engine that is only looked at
    /// whenever `wakes` says.
    fn times(spec: &str, list: &[(u64, u8, u64)], wakes: &[u64]) -> Vec<(u32, u64)> {
        let mut engine = Engine::new(open(spec, 7).expect("a device"));
        let (mut t, mut stamps) = (Instant::START, Vec::new());
        for (id, &(gap, op, place)) in list.iter().enumerate() {
            t = t + Nanos(gap);
            let op = [Op::Read, Op::Write, Op::Read, Op::Flush][usize::from(op % 4)];
            stamps.push((t, command(id as u32, op, place * 8)));
        }
        let mut now = Instant::START;
        let mut out = Vec::new();
        let mut next = 0;
        for wake in wakes.iter().cycle().take(1_000_000) {
            now = now + Nanos(*wake);
            while next < stamps.len() && stamps[next].0 <= now {
                engine.arrive(stamps[next].0, stamps[next].1);
                next += 1;
            }
            engine.run_to(now, &mut out);
            if next == stamps.len() && engine.outstanding() == 0 {
                break;
            }
        }
        assert_eq!(engine.raised().0, 0);
        out.iter().map(|d| (d.id, d.at.0)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Causality: late wake-ups change nothing that the model decides.
        #[test]
        fn lateness_changes_no_time(
            list in proptest::collection::vec((0u64..20_000_000, 0u8..4, 0u64..40_000_000), 1..40),
            wakes in proptest::collection::vec(1u64..60_000_000, 1..8),
            ncq: bool,
        ) {
            let spec = if ncq { "hdd:hus728t8" } else { "hdd:hitachi-7k200" };
            let punctual = times(spec, &list, &[50_000]);
            prop_assert_eq!(punctual.len(), list.len(), "each completes");
            let late = times(spec, &list, &wakes);
            prop_assert_eq!(punctual, late);
        }
    }

    #[test]
    fn a_device_sees_nothing_before_its_time() {
        // One at a time; A is done at 100 us. A second request stamped 150 us must not be served
        // as if it had waited since before, though the host looks only at 1 ms.
        let mut e = Engine::new(Constant::serial(1, Nanos::from_us(100)));
        let mut out = Vec::new();
        e.arrive(Instant::at_us(0), command(1, Op::Read, 0));
        e.arrive(Instant::at_us(150), command(2, Op::Read, 8));
        e.arrive(Instant::at_us(160), command(3, Op::Read, 8));
        e.run_to(Instant::at_us(1000), &mut out);
        let at: Vec<_> = out.iter().map(|d| (d.id, d.at)).collect();
        let us = Instant::at_us;
        assert_eq!(at, [(1, us(100)), (2, us(250)), (3, us(350))]);
        assert_eq!(e.depth_max(), 1);
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
            let mut e = Engine::new(device);
            let mut out = Vec::new();
            for (id, op) in [(0, Op::Write), (1, Op::Flush), (2, Op::Write)] {
                e.arrive(Instant::START, command(id, op, 0));
            }
            e.run_to(Instant::at_us(1000), &mut out);
            assert_eq!(
                out.iter().map(|d| d.at).collect::<Vec<_>>(),
                expected.map(Instant::at_us)
            );
        }
    }

    #[test]
    fn a_stamp_behind_the_model_is_raised_and_counted() {
        let mut e = Engine::new(Constant::serial(4, Nanos::from_us(10)));
        let mut out = Vec::new();
        e.run_to(Instant::at_us(50), &mut out);
        e.arrive(Instant::at_us(20), command(1, Op::Read, 0));
        e.run_to(Instant::at_us(100), &mut out);
        assert_eq!(out[0].at, Instant::at_us(60));
        assert_eq!(e.raised(), (1, Nanos::from_us(30)));
    }
}
