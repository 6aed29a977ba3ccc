//! Merges several traces into one. The records are in order of time.
//!
//! If the clocks of the traces have a common origin (Unix time, or the uptime of one machine),
//! their records keep the recorded time differences. Traces whose clocks begin at zero run in
//! parallel.

use crate::error::TraceError;
use crate::reader::Reader;
use crate::record::Record;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An iterator over the records of several traces. After an error or the end, it returns `None`.
pub struct Merge {
    readers: Vec<Reader>,
    ahead: Vec<Option<Record>>,
    /// Number that is added to the times of each trace, in ns.
    shift_ns: Vec<u64>,
    /// (time, trace number). At equal times, the trace that the user named first comes first.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    at: usize,
    done: bool,
}

impl Merge {
    /// Makes the iterator, and reads the first record of each trace.
    pub fn new(mut readers: Vec<Reader>) -> Result<Merge, TraceError> {
        let mut ahead = Vec::new();
        for r in &mut readers {
            ahead.push(r.next().transpose()?);
        }
        let bases = readers.iter().filter_map(Reader::base_ns);
        let base = bases.min().unwrap_or(0);
        let shift_ns: Vec<u64> = readers
            .iter()
            .map(|r| r.base_ns().map_or(0, |b| b - base))
            .collect();
        let mut merge = Merge {
            readers,
            ahead,
            shift_ns,
            next: BinaryHeap::new(),
            at: 0,
            done: false,
        };
        for i in 0..merge.ahead.len() {
            merge.queue(i);
        }
        Ok(merge)
    }

    fn queue(&mut self, i: usize) {
        if let Some(r) = &self.ahead[i] {
            let t = r.t_ns.saturating_add(self.shift_ns[i]);
            self.next.push(Reverse((t, i)));
        }
    }

    /// Returns the trace of the last returned record.
    pub fn source(&self) -> &Reader {
        &self.readers[self.at]
    }
    /// Returns all traces.
    pub fn readers(&self) -> &[Reader] {
        &self.readers
    }

    fn take(&mut self) -> Result<Option<Record>, TraceError> {
        let Some(Reverse((_, i))) = self.next.pop() else {
            return Ok(None);
        };
        self.at = i;
        let Some(mut r) = self.ahead[i].take() else {
            return Ok(None);
        };
        self.ahead[i] = self.readers[i].next().transpose()?;
        self.queue(i);
        let shift = self.shift_ns[i];
        let times = [
            Some(&mut r.t_ns),
            r.insert_ns.as_mut(),
            r.issue_ns.as_mut(),
            r.complete_ns.as_mut(),
        ];
        for t in times.into_iter().flatten() {
            *t = t.saturating_add(shift);
        }
        Ok(Some(r))
    }
}

impl Iterator for Merge {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.take().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}
