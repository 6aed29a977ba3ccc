//! Follows each bio from Q to C, using the events that cover its range.
//!
//! The rules are those of btt, determined from its output for traces of a few events. A bio that
//! was inserted has a phase I2D, even if its request was later merged into another. A bio that was
//! only merged has a phase M2D. After a requeue, the phases up to the driver count again. In
//! contrast to btt, this module also follows split bios, requests that complete in parts, and two
//! bios at the same sectors.

use super::sums::{Known, Sums};
use crate::blk::BlkEvent;
use seekwell_core::{Action, Op};
use std::collections::{BTreeMap, VecDeque};

/// (device, first sector, number of the bio).
type Key = (u32, u64, u64);

/// Maximum number of ranges to which one event is applied. A request of the maximum size has 2,560
/// bios of one sector.
const WALK_MAX: usize = 4096;

/// A bio in flight.
struct Trip {
    end: u64,
    /// Number of sectors that are not complete.
    left: u64,
    known: Known,
    merged_ns: Option<u64>,
    /// Number of the request in which the bio was issued to the driver.
    request: Option<u64>,
}

/// A flush in flight. It has no range.
struct Flush {
    device: u32,
    queued_ns: u64,
    write_bit: bool,
    task: u32,
}

/// All bios and flushes in flight.
pub(super) struct Trips {
    trips: BTreeMap<Key, Trip>,
    /// Bios in order of time, to find those that never complete.
    order: VecDeque<(u64, Key)>,
    flushes: VecDeque<Flush>,
    /// Requests at the driver, each with the number of its incomplete bios.
    requests: BTreeMap<u64, u32>,
    number: u64,
    /// Length of the longest read or write, in sectors.
    longest: u64,
    saw_queue: bool,
    pending_max: usize,
    pending_ns: u64,
    keys: Vec<Key>,
    pub unfinished: u64,
    pub orphans: u64,
}

impl Trips {
    pub fn new(pending_max: usize, pending_ns: u64) -> Self {
        Trips {
            trips: BTreeMap::new(),
            order: VecDeque::new(),
            flushes: VecDeque::new(),
            requests: BTreeMap::new(),
            number: 0,
            longest: 0,
            saw_queue: false,
            pending_max,
            pending_ns,
            keys: Vec::new(),
            unfinished: 0,
            orphans: 0,
        }
    }

    /// Processes the next event in order of time. `counts` is true if a bio that begins with this
    /// event belongs to the survey.
    pub fn event(&mut self, e: &BlkEvent, counts: bool, sums: &mut Sums) {
        self.give_up(e.t_ns, sums);
        if e.is_flush() {
            return self.flush(e, counts, sums);
        }
        match e.action {
            Action::Queue if counts => {
                self.saw_queue = true;
                self.begin(e, sums);
            }
            Action::GetRq => self.each(
                e,
                |t| t.getrq_or_merged(),
                |t, s| {
                    s.got(&mut t.known, e.t_ns);
                },
                sums,
            ),
            Action::Insert => self.each(
                e,
                |t| t.known.inserted_ns.is_some() || t.merged_ns.is_some(),
                |t, s| {
                    s.inserted(&mut t.known, e.t_ns);
                },
                sums,
            ),
            Action::BackMerge | Action::FrontMerge => self.merge(e, sums),
            Action::Issue => self.issue(e, counts, sums),
            Action::Requeue => self.requeue(e, sums),
            Action::Complete => self.complete(e, sums),
            _ => {}
        }
    }

    /// Returns true if the trace has queue events.
    pub fn saw_queue(&self) -> bool {
        self.saw_queue
    }

    fn begin(&mut self, e: &BlkEvent, sums: &mut Sums) {
        let sectors = u64::from(e.sectors);
        let Some(end) = e.sector.checked_add(sectors).filter(|_| sectors > 0) else {
            return;
        };
        if e.op != Op::Discard {
            self.longest = self.longest.max(sectors);
        }
        self.number += 1;
        let key = (e.device, e.sector, self.number);
        let known = sums.queued(e);
        let trip = Trip {
            end,
            left: sectors,
            known,
            merged_ns: None,
            request: None,
        };
        self.trips.insert(key, trip);
        self.order.push_back((e.t_ns, key));
    }

    /// Finds the bios that the event covers. Among bios with the same start, selects the oldest for
    /// which `past` returns false.
    fn find(&mut self, e: &BlkEvent, past: impl Fn(&Trip) -> bool) {
        self.keys.clear();
        let end = e.sector.saturating_add(u64::from(e.sectors));
        let from = e.sector.saturating_sub(self.longest);
        let mut at = e.sector;
        // A bio that began at a lower sector and was split.
        let before = self.trips.range((e.device, from, 0)..(e.device, at, 0));
        let mut before = before.rev().take(WALK_MAX);
        if let Some((key, t)) =
            before.find(|(_, t)| t.known.op == e.op && t.end > e.sector && !past(t))
        {
            self.keys.push(*key);
            at = t.end;
        }
        if at < end {
            let range = self.trips.range((e.device, at, 0)..(e.device, end, 0));
            for (key, t) in range.take(WALK_MAX) {
                if key.1 >= at && t.known.op == e.op && !past(t) {
                    self.keys.push(*key);
                    at = t.end;
                }
            }
        }
    }

    fn each(
        &mut self,
        e: &BlkEvent,
        past: impl Fn(&Trip) -> bool,
        mut act: impl FnMut(&mut Trip, &mut Sums),
        sums: &mut Sums,
    ) {
        self.find(e, past);
        for key in &self.keys {
            if let Some(t) = self.trips.get_mut(key) {
                act(t, sums);
            }
        }
    }

    fn merge(&mut self, e: &BlkEvent, sums: &mut Sums) {
        self.find(e, |t| t.merged_ns.is_some() || t.request.is_some());
        let front = e.action == Action::FrontMerge;
        for key in &self.keys {
            if let Some(t) = self.trips.get_mut(key) {
                t.merged_ns = Some(e.t_ns);
                sums.merged(&t.known, e.t_ns, front);
            }
        }
    }

    fn issue(&mut self, e: &BlkEvent, counts: bool, sums: &mut Sums) {
        self.find(e, |t| t.request.is_some());
        if self.keys.is_empty() {
            // A trace with D and C events only: every issued request counts as a bio.
            if self.saw_queue || !counts {
                return;
            }
            self.begin(e, sums);
            self.find(e, |t| t.request.is_some());
        }
        self.number += 1;
        self.requests.insert(self.number, self.keys.len() as u32);
        for key in &self.keys {
            if let Some(t) = self.trips.get_mut(key) {
                t.request = Some(self.number);
                sums.issued(&mut t.known, t.merged_ns, e.t_ns, self.saw_queue);
            }
        }
        sums.request(e);
    }

    fn requeue(&mut self, e: &BlkEvent, sums: &mut Sums) {
        self.find(e, |t| t.request.is_none());
        let mut any = false;
        for key in &self.keys {
            if let Some(t) = self.trips.get_mut(key) {
                any = true;
                sums.taken_back(&mut t.known, e.t_ns);
                if let Some(request) = t.request.take() {
                    self.requests.remove(&request);
                }
            }
        }
        if any {
            sums.requeued(e.t_ns);
        }
    }

    fn complete(&mut self, e: &BlkEvent, sums: &mut Sums) {
        self.find(e, |t| t.request.is_none());
        if self.keys.is_empty() {
            self.find(e, |_| false);
        }
        if self.keys.is_empty() {
            self.orphans += u64::from(e.sectors > 0 && self.number > 0);
            return;
        }
        let end = e.sector.saturating_add(u64::from(e.sectors));
        for i in 0..self.keys.len() {
            let key = self.keys[i];
            let Some(t) = self.trips.get_mut(&key) else {
                continue;
            };
            let covered = t.end.min(end).saturating_sub(key.1.max(e.sector));
            t.left = t.left.saturating_sub(covered);
            if t.left > 0 {
                continue;
            }
            if let Some(t) = self.trips.remove(&key) {
                let was_last = self.last_of(t.request);
                sums.completed(&t.known, e.t_ns, was_last);
            }
        }
    }

    /// Removes a bio from a request. Returns true if it was the last bio of the request.
    fn last_of(&mut self, request: Option<u64>) -> bool {
        let Some(request) = request else { return false };
        match self.requests.get_mut(&request) {
            Some(n) if *n > 1 => {
                *n -= 1;
                false
            }
            Some(_) => {
                self.requests.remove(&request);
                true
            }
            None => false,
        }
    }

    fn flush(&mut self, e: &BlkEvent, counts: bool, sums: &mut Sums) {
        match e.action {
            Action::Queue if counts => {
                self.saw_queue = true;
                sums.flush(e);
                if self.flushes.len() >= self.pending_max {
                    self.flushes.pop_front();
                }
                self.flushes.push_back(Flush {
                    device: e.device,
                    queued_ns: e.t_ns,
                    write_bit: e.write_bit,
                    task: e.task,
                });
            }
            Action::Complete => {
                // The flush of the kernel's flush machinery (`FN`) ends before the submitter's
                // flush.
                let own = e.write_bit || e.op == Op::Write;
                let mut all = self.flushes.iter();
                let found = all.position(|f| f.device == e.device && f.write_bit == own);
                if let Some(f) = found.and_then(|i| self.flushes.remove(i)) {
                    sums.flushed(f.task, f.queued_ns, e.t_ns);
                }
            }
            _ => {}
        }
    }

    /// Abandons bios that have been in flight for too long, and the oldest bios if there are too
    /// many.
    fn give_up(&mut self, now_ns: u64, sums: &mut Sums) {
        while let Some(&(t_ns, key)) = self.order.front() {
            let overdue = now_ns.saturating_sub(t_ns) > self.pending_ns;
            let there = self.trips.contains_key(&key);
            if there && !overdue && self.trips.len() <= self.pending_max {
                return;
            }
            self.order.pop_front();
            self.lost(key, now_ns, sums);
        }
    }

    fn lost(&mut self, key: Key, now_ns: u64, sums: &mut Sums) {
        if let Some(t) = self.trips.remove(&key) {
            self.unfinished += 1;
            let was_last = self.last_of(t.request);
            sums.lost(&t.known, now_ns, was_last);
        }
    }

    /// Counts the remaining bios as incomplete, at the end of the trace.
    pub fn end(&mut self, sums: &mut Sums) {
        let now_ns = sums.last_ns();
        while let Some((_, key)) = self.order.pop_front() {
            self.lost(key, now_ns, sums);
        }
    }
}

impl Trip {
    fn getrq_or_merged(&self) -> bool {
        self.known.getrq_ns.is_some() || self.merged_ns.is_some()
    }
}
