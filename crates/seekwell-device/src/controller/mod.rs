//! A hardware RAID controller. Its disks are devices without a host scheduler.
//!
//! ```text
//! host queue -> firmware (serial engines) -> cache (read, write) -> queue of each disk -> disk
//! ```
//!
//! The host sees one virtual drive with a limited queue depth. A scheduler of the host does not
//! influence the order of commands inside this drive. With write-back, a write completes when it is
//! in the cache. With write-through, a write completes when it is on the disks.
//!
//! Write-back of the cache starts when a timer expires, or when the dirty fraction of the cache
//! reaches a limit. It proceeds in one direction over the array, and writes all dirty sectors of a
//! stripe together. Reads take precedence over write-back until the cache is full. Then reads and
//! write-back alternate.
//!
//! No manufacturer publishes the order of commands in the firmware, the write-back policy or the
//! firmware times. These parameters are estimates, so check a conclusion with other values. The
//! model leaves out locks between writes to the same stripe, patrol reads, rebuilds, and the time
//! that a battery protects the cache.

mod array;
mod dirty;
mod issue;
mod params;
mod strips;

pub use params::{Ahead, ControllerParams, DEFS};

use crate::constant::out_of_range;
use crate::error::ParamError;
use crate::raid::Layout;
use array::{Operation, Owner, Part};
use dirty::Extents;
use seekwell_core::{
    Accept, Action, Command, Device, DeviceFacts, DeviceStats, Done, Event, EventLog, Instant,
    Nanos, Op, Sectors, Snapshot, Tap,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use strips::{Held, Strips};

type Member = Box<dyn Device + Send>;

/// A disk with its queues.
struct Disk {
    device: Member,
    failed: bool,
    urgent: VecDeque<u32>,
    lazy: VecDeque<u32>,
    in_flight: u32,
    /// Number of commands that are queued or in flight.
    pending: u32,
    /// Sector after the last queued command.
    head: u64,
    /// True if the previous command was part of write-back.
    turn: bool,
    log: EventLog,
}

/// A command of the host inside the controller.
#[derive(Debug, Clone, Copy)]
struct Inside {
    command: Command,
    left: u32,
    error: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The firmware has processed the command in this slot.
    Looked(u32),
    /// The command in this slot is complete.
    Done(u32),
}

/// A hardware RAID controller; see the module.
pub struct Controller {
    facts: DeviceFacts,
    p: ControllerParams,
    layout: Layout,
    disks: Vec<Disk>,
    inside: Vec<Inside>,
    free: Vec<u32>,
    outstanding: u32,
    engines: Vec<Instant>,
    link_free: Instant,
    events: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    sequence: u64,
    now: Instant,
    dirty: Extents,
    /// Extents that are being written to the disks: (first sector, end sector).
    flying: Vec<(u64, u64)>,
    flying_sectors: u64,
    flying_units: u32,
    cursor: u64,
    /// Addresses of cached writes, oldest first, for write-back in order of age.
    ages: VecDeque<u64>,
    forced: bool,
    draining: bool,
    timer: Option<Instant>,
    /// Slots of writes that wait for space in the cache.
    waiting: VecDeque<u32>,
    /// Slots of flushes that wait until the cache is empty.
    flushes: VecDeque<u32>,
    strips: Strips,
    operations: Vec<Operation>,
    free_operations: Vec<u32>,
    parts: Vec<Part>,
    free_parts: Vec<u32>,
    closed: Vec<(Owner, bool)>,
    pieces: Vec<(usize, u64, u64)>,
    scratch: Vec<(u64, u64)>,
    buf: Vec<Done>,
    stats: DeviceStats,
    busy_since: Option<Instant>,
    log: EventLog,
}

impl Controller {
    /// Makes a controller with disks of equal size.
    pub fn new(p: ControllerParams, members: Vec<Member>) -> Result<Self, ParamError> {
        let sizes = members.iter().map(|m| m.facts().capacity);
        let size = sizes.min().unwrap_or_default();
        let layout = Layout::new(p.level, members.len(), p.strip, size)?;
        let failed = p.failed_members(members.len())?;
        let lost = failed.iter().filter(|f| **f).count() as u64;
        let spare = match layout.copies() as u64 {
            1 => p.level.parities(),
            c => c - 1,
        };
        if lost > spare {
            return Err(ParamError::new(
                "failed",
                format!(
                    "{} survives {spare} failed disks, not {lost}",
                    p.level.text()
                ),
                "use fewer failed disks",
            ));
        }
        let rotational = p
            .rotational
            .unwrap_or_else(|| members.iter().any(|m| m.facts().rotational));
        let volatile = (p.write_back() && !p.battery) || p.disk_cache;
        let facts = DeviceFacts {
            rotational,
            write_cache: volatile,
            max_sectors: p.max_transfer,
            physical_block_bytes: members
                .iter()
                .map(|m| m.facts().physical_block_bytes)
                .max()
                .unwrap_or(512),
            io_opt_bytes: layout.optimal_bytes().min(u64::from(u32::MAX)) as u32,
            ..DeviceFacts::plain(&p.name, layout.capacity(), p.depth)
        };
        let disks = members
            .into_iter()
            .zip(failed)
            .map(|(device, failed)| Disk {
                device,
                failed,
                urgent: VecDeque::new(),
                lazy: VecDeque::new(),
                in_flight: 0,
                pending: 0,
                head: 0,
                turn: false,
                log: EventLog::default(),
            });
        Ok(Controller {
            facts,
            layout,
            disks: disks.collect(),
            inside: Vec::new(),
            free: Vec::new(),
            outstanding: 0,
            engines: vec![Instant::default(); p.engines.max(1) as usize],
            link_free: Instant::default(),
            events: BinaryHeap::new(),
            sequence: 0,
            now: Instant::default(),
            dirty: Extents::default(),
            flying: Vec::new(),
            flying_sectors: 0,
            flying_units: 0,
            cursor: 0,
            ages: VecDeque::new(),
            forced: false,
            draining: false,
            timer: None,
            waiting: VecDeque::new(),
            flushes: VecDeque::new(),
            strips: Strips::new(p.read_strips()),
            operations: Vec::new(),
            free_operations: Vec::new(),
            parts: Vec::new(),
            free_parts: Vec::new(),
            closed: Vec::new(),
            pieces: Vec::new(),
            scratch: Vec::new(),
            buf: Vec::new(),
            stats: DeviceStats::default(),
            busy_since: None,
            log: EventLog::default(),
            p,
        })
    }
    /// Returns the number of sectors in the write cache, including sectors that are being written
    /// to the disks.
    pub fn dirty_sectors(&self) -> u64 {
        self.dirty.sectors() + self.flying_sectors
    }
    /// Returns the mapping of array sectors to disk sectors.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    fn event(&mut self, at: Instant, e: Due) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, e)));
    }
    /// Completes a command after its data have crossed the link to the host.
    fn transfer(&mut self, id: u32) {
        let c = self.inside[id as usize].command;
        let mut at = self.now;
        if c.op != Op::Flush && c.op != Op::Discard {
            let ns = (u64::from(c.sectors.0) * self.p.sector_ps).div_ceil(1000);
            at = at.max(self.link_free) + Nanos(ns);
            self.link_free = at;
        }
        self.event(at, Due::Done(id));
    }
    fn strips_of(&self, at: u64, end: u64) -> (u64, u64) {
        let strip = u64::from(self.p.strip.0);
        (at / strip, (end - 1) / strip)
    }

    /// Decides what to do with a command that the firmware has processed.
    fn looked(&mut self, id: u32) {
        let c = self.inside[id as usize].command;
        let (at, end) = (c.sector.0, c.sector.0 + u64::from(c.sectors.0));
        match c.op {
            _ if self.inside[id as usize].error => self.event(self.now, Due::Done(id)),
            Op::Flush => {
                self.flushes.push_back(id);
                self.flush_if_empty();
            }
            Op::Discard => self.event(self.now, Due::Done(id)),
            _ if at == end => self.event(self.now, Due::Done(id)),
            Op::Read => self.read_command(id, at, end),
            Op::Write | Op::WriteZeroes => {
                let (from, to) = self.strips_of(at, end);
                self.strips.forget(from, to);
                if self.p.write_back() {
                    self.waiting.push_back(id);
                    self.admit();
                } else {
                    self.inside[id as usize].left = 1;
                    let made = self.write(Owner::Host(id), &[(at, end)], false);
                    self.inside[id as usize].left += made;
                    self.host_part(id, false);
                }
            }
        }
    }
    fn read_command(&mut self, id: u32, at: u64, end: u64) {
        let (from, to) = self.strips_of(at, end);
        let written =
            self.dirty.covers(at, end) || self.flying.iter().any(|f| f.0 <= at && end <= f.1);
        let held = match written {
            true => Held::All,
            false => self.strips.look(from, to),
        };
        match held {
            Held::All => {
                self.stats.cache_hits += 1;
                let (now, c) = (self.now, self.inside[id as usize].command);
                self.log
                    .push(|| Event::of_command(now, Action::CacheHit, &c));
                self.transfer(id);
            }
            Held::Soon(n) => {
                self.stats.cache_hits += 1;
                self.inside[id as usize].left = n;
                self.strips.wait(from, to, id);
            }
            Held::No => {
                self.inside[id as usize].left = 1;
                self.read(Owner::Host(id), at, end, false);
            }
        }
        let sequential = self.strips.sequential(at, end);
        let ahead = match self.p.ahead {
            Ahead::None => false,
            Ahead::Always => true,
            Ahead::Adaptive => sequential,
        };
        if !ahead {
            return;
        }
        let strip = u64::from(self.p.strip.0);
        for s in to + 1..=to + u64::from(self.p.ahead_strips) {
            let next = (s * strip, ((s + 1) * strip).min(self.facts.capacity.0));
            if next.0 < next.1 && self.strips.add(s, true) {
                self.stats.internal_bytes += (next.1 - next.0) * 512;
                self.read(Owner::Ahead(s), next.0, next.1, false);
            }
        }
    }
    /// Counts one completed disk command of a host command.
    fn host_part(&mut self, id: u32, error: bool) {
        let i = &mut self.inside[id as usize];
        i.left -= 1;
        i.error |= error;
        if i.left == 0 {
            self.transfer(id);
        }
    }

    /// Moves waiting writes into the cache while it has space.
    fn admit(&mut self) {
        while let Some(id) = self.waiting.front().copied() {
            let c = self.inside[id as usize].command;
            let n = u64::from(c.sectors.0);
            let used = self.dirty_sectors();
            if used > 0 && used + n > self.p.hi_sectors() {
                self.forced = true;
                return;
            }
            self.waiting.pop_front();
            self.dirty.insert(c.sector.0, c.sector.0 + n);
            if !self.p.in_order {
                self.ages.push_back(c.sector.0);
            }
            if self.timer.is_none() && !self.draining {
                self.timer = Some(self.now + self.p.timer);
            }
            self.transfer(id);
        }
    }
    /// Completes the flushes whose data can no longer be lost in a power failure.
    fn flush_if_empty(&mut self) {
        let drain = self.p.write_back() && !self.p.battery;
        if drain && self.dirty_sectors() > 0 {
            return;
        }
        while let Some(id) = self.flushes.pop_front() {
            if !self.p.disk_cache {
                self.event(self.now, Due::Done(id));
                continue;
            }
            self.inside[id as usize].left = 1;
            let o = self.operation(Owner::Host(id), false);
            for d in 0..self.disks.len() {
                if !self.disks[d].failed {
                    self.part(o, d, Op::Flush, 0, 0);
                }
            }
            self.close(o, false);
        }
    }
    /// Returns the first sector to write back.
    fn next_dirty(&mut self) -> Option<u64> {
        if self.p.in_order {
            return self.dirty.next(self.cursor);
        }
        while let Some(at) = self.ages.pop_front() {
            if self.dirty.next(at) == Some(at) {
                return Some(at);
            }
        }
        self.dirty.next(0)
    }
    /// Starts the write-back of the next extents, up to the limit of operations in flight.
    fn write_back(&mut self) {
        let drain = !self.flushes.is_empty() && !self.p.battery;
        let most = self.disks.len() as u32 * self.p.disk_depth;
        while (self.forced || self.draining || drain) && self.flying_units < most {
            let Some(at) = self.next_dirty() else {
                break;
            };
            let row = self.layout.chunk() * self.layout.width();
            let (lo, hi) = match self.p.level.parities() {
                0 => (at, at + self.layout.rest(at)),
                _ => (at / row * row, (at / row + 1) * row),
            };
            let mut extents = std::mem::take(&mut self.scratch);
            extents.clear();
            self.dirty.take(lo, hi, &mut extents);
            self.cursor = hi;
            let sectors: u64 = extents.iter().map(|e| e.1 - e.0).sum();
            self.flying.extend(extents.iter().copied());
            self.flying_sectors += sectors;
            self.flying_units += 1;
            let start = extents[0].0;
            self.write(Owner::Destage(start), &extents, true);
            self.scratch = extents;
            self.forced &= self.dirty.sectors() > self.p.lo_sectors();
        }
    }
    /// Removes the extents whose write-back began at `start` from the cache.
    fn destaged(&mut self, start: u64) {
        // A write-back operation never crosses the end of its chunk or stripe.
        let row = self.layout.chunk() * self.layout.width();
        let end = match self.p.level.parities() {
            0 => start + self.layout.rest(start),
            _ => (start / row + 1) * row,
        };
        let mut gone = 0;
        self.flying.retain(|f| {
            let mine = f.0 >= start && f.0 < end;
            gone += if mine { f.1 - f.0 } else { 0 };
            !mine
        });
        self.flying_sectors -= gone;
        self.flying_units -= 1;
        if self.dirty_sectors() == 0 {
            self.draining = false;
            self.timer = None;
        }
        self.admit();
        self.flush_if_empty();
    }

    /// Processes all completions, and all actions that follow from them at the same time.
    fn settle(&mut self) {
        loop {
            while let Some((owner, error)) = self.closed.pop() {
                match owner {
                    Owner::Host(id) => self.host_part(id, error),
                    Owner::Destage(start) => self.destaged(start),
                    Owner::Ahead(strip) => {
                        for id in self.strips.loaded(strip) {
                            self.host_part(id, error);
                        }
                    }
                }
            }
            self.write_back();
            self.issue();
            if self.closed.is_empty() {
                return;
            }
        }
    }
}

impl Device for Controller {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        if self.outstanding >= self.facts.depth {
            return Accept::Busy;
        }
        self.outstanding += 1;
        self.busy_since.get_or_insert(now);
        let i = Inside {
            command,
            left: 0,
            error: out_of_range(&command, self.facts.capacity),
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.inside[id as usize] = i;
                id
            }
            None => {
                self.inside.push(i);
                (self.inside.len() - 1) as u32
            }
        };
        let first = (0..self.engines.len()).min_by_key(|e| self.engines[*e]);
        let engine = &mut self.engines[first.unwrap_or(0)];
        *engine = now.max(*engine) + self.p.firmware;
        let at = *engine;
        self.event(at, Due::Looked(id));
        Accept::Accepted
    }
    fn next_event(&self) -> Option<Instant> {
        let own = self.events.peek().map(|e| e.0.0);
        let disks = self.disks.iter().filter_map(|d| d.device.next_event());
        own.into_iter().chain(self.timer).chain(disks).min()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        while let Some(t) = self.next_event().filter(|t| *t <= to) {
            let t = t.max(self.now);
            self.now = t;
            for d in 0..self.disks.len() {
                if self.disks[d].device.next_event().is_none_or(|e| e > t) {
                    continue;
                }
                let mut buf = std::mem::take(&mut self.buf);
                self.disks[d].device.advance(t, &mut buf);
                for done in buf.drain(..) {
                    self.disks[d].in_flight -= 1;
                    self.disks[d].pending -= 1;
                    if self.disks[d].log.listening() {
                        let c = self.command(done.id);
                        let log = &mut self.disks[d].log;
                        log.push(|| Event::of_command(done.at, Action::Complete, &c));
                    }
                    self.free_parts.push(done.id);
                    let o = self.parts[done.id as usize].operation;
                    self.close(o, done.error);
                }
                self.buf = buf;
            }
            if self.timer.is_some_and(|at| at <= t) {
                self.timer = None;
                self.draining = self.dirty.count() > 0;
            }
            while let Some(Reverse((at, _, e))) = self.events.peek().copied()
                && at <= t
            {
                self.events.pop();
                match e {
                    Due::Looked(id) => self.looked(id),
                    Due::Done(id) => {
                        let i = self.inside[id as usize];
                        self.free.push(id);
                        self.outstanding -= 1;
                        if self.outstanding == 0
                            && let Some(since) = self.busy_since.take()
                        {
                            self.stats.busy += at.since(since);
                        }
                        out.push(Done {
                            id: i.command.id,
                            at,
                            error: i.error,
                        });
                    }
                }
            }
            self.settle();
        }
    }
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn stats(&self) -> DeviceStats {
        let mut s = self.stats;
        for d in &self.disks {
            let m = d.device.stats();
            s.cache_hits += m.cache_hits;
            s.media_ops += m.media_ops;
            s.seek_sectors += m.seek_sectors;
            s.seeks += m.seeks;
            s.seek_time += m.seek_time;
            s.rotation_time += m.rotation_time;
            s.internal_bytes += m.internal_bytes;
        }
        s
    }
    fn state(&self, out: &mut String) {
        use std::fmt::Write;
        let _ = write!(
            out,
            "{} commands inside; {} dirty sectors in {} extents, {} being written; {} writes wait \
             for room",
            self.outstanding,
            self.dirty.sectors(),
            self.dirty.count(),
            self.flying_sectors,
            self.waiting.len()
        );
        for (i, d) in self.disks.iter().enumerate() {
            let _ = write!(out, "; disk {i}: {} of {}", d.in_flight, d.pending);
        }
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        self.join(tap);
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        self.disks_inside(now, out);
    }
}

/// Converts bytes to sectors; used for parameters.
fn sectors(bytes: f64) -> Sectors {
    Sectors((bytes / 512.0) as u32)
}
