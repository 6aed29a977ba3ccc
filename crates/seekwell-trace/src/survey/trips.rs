//! Follows each bio from Q to C through the events of its range.
//!
//! The rules are those of btt, determined from its output for traces of a few events. A bio that
//! was inserted counts I to D, even if its request was later merged into another. A bio that was
//! only merged counts M to D. After a requeue, the path to the driver counts again. Unlike btt,
//! this module follows split bios, requests that complete in parts, and two bios at the same place.

use super::sums::{Known, Sums};
use crate::blk::BlkEvent;
use seekwell_core::{Action, Op};
use std::collections::{BTreeMap, VecDeque};

/// (device, first sector, number).
type Key = (u32, u64, u64);

/// Most ranges that one event visits; a request of the largest size has 2,560 bios of one sector.
const WALK_MAX: usize = 4096;

/// A bio in flight.
struct Trip {
    end: u64,
    /// Number of sectors that are not complete.
    left: u64,
    known: Known,
    merged_ns: Option<u64>,
    /// The request in which it was issued to the driver.
    request: Option<u64>,
}

/// A flush in flight, which has no range to find it by.
struct Flush {
    device: u32,
    queued_ns: u64,
    write_bit: bool,
    task: u32,
}

/// All bios and flushes in flight.
pub(super) struct Trips {
    trips: BTreeMap<Key, Trip>,
    /// In order of time, to abandon those that never complete.
    order: VecDeque<(u64, Key)>,
    flushes: VecDeque<Flush>,
    /// Requests at the driver, with the number of their incomplete bios.
    requests: BTreeMap<u64, u32>,
    number: u64,
    /// Length of the longest read or write, sectors.
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

    /// Processes the next event in order of time. `counts`: a bio that begins with it is wanted.
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

    /// Whether the trace has queue events.
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

    /// Finds the bios that the event covers; among equal starts, the oldest for which `past` is
    /// false.
    fn find(&mut self, e: &BlkEvent, past: impl Fn(&Trip) -> bool) {
        self.keys.clear();
        let end = e.sector.saturating_add(u64::from(e.sectors));
        let from = e.sector.saturating_sub(self.longest);
        let mut at = e.sector;
        // A bio that began before and was split.
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
            // A trace with D and C only: every issued request is a bio.
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

    /// Removes a bio from a request. Returns whether it was the last.
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
                // The flush machinery's own flush (`FN`) ends before the submitter's.
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

    /// Abandons bios that have been in flight for too long, or that are too many.
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

    /// At the end, the remaining bios count as incomplete.
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
