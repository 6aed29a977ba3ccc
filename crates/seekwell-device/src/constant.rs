//! A device with the same service time for every command.
//!
//! This device is the null model: it has no position, no cache and no randomness. Therefore
//! schedulers cause every difference between two results on this device. The recorded test cases of
//! scheduler decisions and the measurements of scheduler cost use this device. A flush takes as
//! long as any other command.

use crate::preset::{Def, Dim};
use seekwell_core::{Accept, Command, Device, DeviceFacts, DeviceStats, Done};
use seekwell_core::{Instant, Nanos, Op, Sector};
use std::collections::VecDeque;

/// Default size of a constant device: 2 TiB, in sectors.
pub const DEFAULT_CAPACITY: Sector = Sector(1 << 32);

/// Every parameter of the kind `constant`.
#[rustfmt::skip]
pub static DEFS: &[Def] = &[
    Def::new("depth", Dim::Count("commands"), Some("32"), (1.0, 65_536.0),
        "maximum number of commands accepted at a time"),
    Def::new("service_us", Dim::Real("us"), Some("100"), (0.0, 1e9), "service time of a command"),
    Def::new("servers", Dim::Word(&["serial", "parallel"]), Some("serial"), (0.0, 0.0),
        "one server in order of acceptance, or one server per command"),
    Def::new("rotational", Dim::Flag, Some("no"), (0.0, 0.0),
        "whether the device reports a rotating medium"),
    Def::new("write_cache", Dim::Flag, Some("no"), (0.0, 0.0),
        "whether the device reports a volatile write cache"),
    Def::new("capacity", Dim::Count("sectors"), None, (1.0, 1e15), "size; absent: 2 TiB"),
];

/// A device of constant latency; see the module.
#[derive(Clone, Debug)]
pub struct Constant {
    facts: DeviceFacts,
    service: Nanos,
    serial: bool,
    /// Commands in flight in order of completion, which is the order of acceptance in both
    /// variants.
    in_flight: VecDeque<Done>,
    last_done: Instant,
    busy: Nanos,
    served: u64,
}

impl Constant {
    /// Makes a device with one server that serves commands in order of arrival. A command completes
    /// `service` after the later of two times: its acceptance, and the completion of the previous
    /// command. The device accepts up to `depth` commands (at least 1) at a time.
    pub fn serial(depth: u32, service: Nanos) -> Self {
        Self::new(true, depth, service)
    }
    /// Makes a device with `depth` servers. A command completes `service` after its acceptance.
    pub fn parallel(depth: u32, service: Nanos) -> Self {
        Self::new(false, depth, service)
    }
    fn new(serial: bool, depth: u32, service: Nanos) -> Self {
        let depth = depth.max(1);
        Constant {
            facts: DeviceFacts::plain("constant", DEFAULT_CAPACITY, depth),
            service,
            serial,
            in_flight: VecDeque::with_capacity(depth.min(1 << 16) as usize),
            last_done: Instant::default(),
            busy: Nanos::ZERO,
            served: 0,
        }
    }
    /// Sets whether the device reports a rotating medium. Some schedulers behave differently on a
    /// rotating medium. The timing of the device does not change.
    pub fn rotational(mut self, yes: bool) -> Self {
        self.facts.rotational = yes;
        self
    }
    /// Sets the size of the device.
    pub fn capacity(mut self, sectors: Sector) -> Self {
        self.facts.capacity = sectors;
        self
    }
    /// Sets whether the device reports a volatile write cache. If it does, a block layer sends
    /// flushes.
    pub fn write_cache(mut self, yes: bool) -> Self {
        self.facts.write_cache = yes;
        self
    }
    /// Replaces all reported facts. A depth of 0 becomes 1.
    pub fn with_facts(mut self, facts: DeviceFacts) -> Self {
        self.facts = facts;
        self.facts.depth = self.facts.depth.max(1);
        self
    }
    /// Returns the number of completed commands.
    pub fn served(&self) -> u64 {
        self.served
    }
}

/// Returns true if the command reaches past the end of a device of this size, or if the end address
/// overflows.
pub(crate) fn out_of_range(command: &Command, capacity: Sector) -> bool {
    command.op != Op::Flush
        && command
            .sector
            .0
            .checked_add(u64::from(command.sectors.0))
            .is_none_or(|end| end > capacity.0)
}

impl Device for Constant {
    #[inline]
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        if self.in_flight.len() >= self.facts.depth as usize {
            return Accept::Busy;
        }
        let start = if self.serial {
            now.max(self.last_done)
        } else {
            now
        };
        let at = start + self.service;
        // Busy time is the union of the service times, so count only the part after the last
        // completion.
        self.busy += at.since(now.max(self.last_done));
        self.last_done = self.last_done.max(at);
        self.in_flight.push_back(Done {
            id: command.id,
            at,
            error: out_of_range(&command, self.facts.capacity),
        });
        Accept::Accepted
    }
    #[inline]
    fn next_event(&self) -> Option<Instant> {
        self.in_flight.front().map(|d| d.at)
    }
    #[inline]
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        while let Some(d) = self.in_flight.front() {
            if d.at > to {
                break;
            }
            out.push(*d);
            self.served += 1;
            self.in_flight.pop_front();
        }
    }
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn stats(&self) -> DeviceStats {
        DeviceStats {
            busy: self.busy,
            media_ops: self.served,
            ..DeviceStats::default()
        }
    }
    fn state(&self, out: &mut String) {
        use std::fmt::Write;
        let _ = write!(
            out,
            "{} in flight of {}",
            self.in_flight.len(),
            self.facts.depth
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use seekwell_core::Sectors;

    fn cmd(id: u32) -> Command {
        Command {
            id,
            op: Op::Read,
            sector: Sector(8 * u64::from(id)),
            sectors: Sectors(8),
            fua: false,
        }
    }

    #[test]
    fn serial_constant_device_serves_commands_in_order_of_acceptance() {
        let mut d = Constant::serial(2, Nanos::from_us(100));
        assert_eq!(d.accept(Instant::at_us(0), cmd(1)), Accept::Accepted);
        assert_eq!(d.accept(Instant::at_us(10), cmd(2)), Accept::Accepted);
        assert_eq!(d.accept(Instant::at_us(10), cmd(3)), Accept::Busy);
        let mut out = vec![];
        d.advance(Instant::at_us(199), &mut out);
        assert_eq!((out.len(), out[0].at), (1, Instant::at_us(100)));
        assert_eq!(d.next_event(), Some(Instant::at_us(200)));
        d.advance(Instant::at_us(200), &mut out);
        assert_eq!((out[1].id, out[1].at), (2, Instant::at_us(200)));
        assert_eq!(d.accept(Instant::at_us(500), cmd(3)), Accept::Accepted);
        assert_eq!(d.next_event(), Some(Instant::at_us(600)));
        assert_eq!(d.stats().busy, Nanos::from_us(300));
    }

    #[test]
    fn parallel_constant_device_serves_each_command_from_its_acceptance() {
        let mut d = Constant::parallel(2, Nanos::from_us(100));
        d.accept(Instant::at_us(0), cmd(1));
        d.accept(Instant::at_us(10), cmd(2));
        let mut out = vec![];
        d.advance(Instant::at_us(1000), &mut out);
        assert_eq!(out[0].at, Instant::at_us(100));
        assert_eq!(out[1].at, Instant::at_us(110));
        assert_eq!(d.stats().busy, Nanos::from_us(110));
    }

    #[test]
    fn command_past_the_end_reports_an_error() {
        let mut d = Constant::parallel(4, Nanos::from_us(1)).capacity(Sector(100));
        for (id, sector, n) in [(0, 92, 8), (1, 93, 8), (2, u64::MAX, 1)] {
            let c = Command {
                sector: Sector(sector),
                sectors: Sectors(n),
                ..cmd(id)
            };
            d.accept(Instant::START, c);
        }
        let mut out = vec![];
        d.advance(Instant::at_us(1), &mut out);
        assert_eq!(
            out.iter().map(|d| d.error).collect::<Vec<_>>(),
            [false, true, true]
        );
    }

    proptest! {
        /// Each accepted command completes once, in order, and not before its service time has
        /// passed.
        #[test]
        fn every_command_completes_once_and_in_order(gaps in proptest::collection::vec(0u64..300, 1..100),
                              depth in 1u32..5, serial: bool) {
            let service = Nanos::from_us(100);
            let mut d = Constant::new(serial, depth, service);
            let (mut now, mut out, mut accepted) = (Instant::START, vec![], vec![]);
            for (id, gap) in gaps.into_iter().enumerate() {
                now = now + Nanos::from_us(gap);
                d.advance(now, &mut out);
                if d.accept(now, cmd(id as u32)) == Accept::Accepted {
                    accepted.push((id as u32, now));
                }
            }
            d.advance(Instant::FAR, &mut out);
            prop_assert_eq!(d.next_event(), None);
            prop_assert_eq!(out.len(), accepted.len());
            let mut last = Instant::default();
            for (done, (id, at)) in out.iter().zip(accepted) {
                prop_assert_eq!(done.id, id);
                prop_assert!(done.at >= at + service && done.at >= last);
                last = done.at;
            }
        }
    }
}
