//! Counts requests by kind, with the same rules for a kernel's trace and for simulated events.

use seekwell_core::{Action, Event, Flags, Op, TaskId};
use seekwell_trace::blk::BlkEvent;
use serde::Serialize;
use std::ops::RangeInclusive;

/// Number and size of requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Number of requests that were issued to the device.
    pub requests: u64,
    /// Size of these requests in bytes.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, sectors: u32) {
        self.requests += 1;
        self.bytes += u64::from(sectors) * 512;
    }
}

/// All issued requests, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Reads, including read-ahead.
    pub read: Count,
    /// Synchronous writes.
    pub data_sync: Count,
    /// Asynchronous writes of the flusher.
    pub data_async: Count,
    /// Writes to the journal, including commit blocks.
    pub journal: Count,
    /// Metadata written in place.
    pub metadata: Count,
    /// Flushes.
    pub flush: Count,
    /// Discards and requests that write zeroes.
    pub other: Count,
}

impl Tally {
    fn add(&mut self, op: Op, flags: Flags, sectors: u32, journal: bool, metadata: bool) {
        let kind = match op {
            Op::Read => &mut self.read,
            Op::Flush => &mut self.flush,
            Op::Discard | Op::WriteZeroes => &mut self.other,
            Op::Write if journal => &mut self.journal,
            Op::Write if metadata => &mut self.metadata,
            Op::Write if flags.contains(Flags::SYNC) => &mut self.data_sync,
            Op::Write => &mut self.data_async,
        };
        kind.add(sectors);
    }

    /// Counts the requests that the kernel issued within `window`, in ns on the trace's clock. A
    /// write belongs to the journal if it starts in one of the sector ranges `journal`.
    pub fn of_trace(
        events: &[BlkEvent],
        journal: &[RangeInclusive<u64>],
        window: (u64, u64),
    ) -> Self {
        let mut t = Tally::default();
        for e in events {
            if e.action == Action::Issue && (window.0..=window.1).contains(&e.t_ns) {
                let inside = journal.iter().any(|r| r.contains(&e.sector));
                let meta = e.flags.contains(Flags::META);
                t.add(e.op, e.flags, e.sectors, inside, meta);
            }
        }
        t
    }

    /// Counts a simulated event. A write by the thread `journal` is a journal write.
    pub fn event(&mut self, e: &Event, journal: TaskId) {
        if e.action == Action::Issue {
            let meta = e.flags.contains(Flags::META);
            self.add(e.op, e.flags, e.sectors.0, e.task == Some(journal), meta);
        }
    }

    /// Returns the kinds with their counts, in display order.
    pub fn rows(&self) -> [(&'static str, Count); 7] {
        [
            ("sync data", self.data_sync),
            ("journal", self.journal),
            ("flush", self.flush),
            ("metadata", self.metadata),
            ("async data", self.data_async),
            ("read", self.read),
            ("other", self.other),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_counted_by_place_and_letters() {
        let text = include_str!("../../../seekwell-trace/tests/data/ftrace-6.18.txt");
        let mut events = Vec::new();
        for line in text.lines() {
            if let Ok(seekwell_trace::formats::ftrace::Line::Event(e, _)) =
                seekwell_trace::formats::ftrace::parse(line.as_bytes())
            {
                events.push(e);
            }
        }
        let journal = [491_520 * 8..=507_903 * 8 + 7];
        let t = Tally::of_trace(&events, &journal, (0, u64::MAX));
        let count = |requests, sectors: u64| Count {
            requests,
            bytes: sectors * 512,
        };
        assert_eq!(t.data_sync, count(1, 8));
        assert_eq!(t.journal, count(2, 56));
        assert_eq!(t.flush, count(2, 0));
        assert_eq!(t.read, count(3, 2560));
        assert_eq!(
            (t.metadata, t.data_async),
            (Count::default(), Count::default())
        );
        assert_eq!(Tally::of_trace(&events, &journal, (0, 1)), Tally::default());
    }
}
