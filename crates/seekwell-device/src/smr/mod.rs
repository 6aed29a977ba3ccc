//! A drive-managed shingled disk (SMR): the mechanics of a hard disk, and a translation of
//! addresses above them.
//!
//! Tracks of a shingled band overlap, so the drive can write a band only as a whole. It appends
//! other writes to a log, the persistent cache, and merges them into their bands later. The work
//! per cleaned band is large, so a drive with a full persistent cache becomes very slow.
//!
//! ```text
//! host -> volatile buffer -> persistent cache (log) -> cleaning -> bands
//!                      \--> bands (runs that fill a whole band)
//! ```
//!
//! Sources: A. Aghayev and P. Desnoyers, Skylight: A Window on Shingled Disk Operation, FAST 2015
//! (persistent cache, static mapping of addresses to bands, order of cleaning), as far as it could
//! be recalled, and published measurements of the Seagate Archive v2. The preset names the source
//! of each value.
//!
//! - A write that does not fill a band is appended to the log. The drive appends its
//!   buffered data in groups of up to `group` bytes, each with a record of the map. Each group
//!   costs about one revolution.
//! - A sequential run that fills a band is written in place, once.
//! - A read takes each part from the buffer, the log or the band.
//! - Cleaning takes the oldest data of the log, reads its band, merges all data of that band, and
//!   writes the band. Cleaning starts after `clean_idle` without commands of the host. A command of
//!   the host cancels cleaning that has not written yet. If the log or the map is full, writes of
//!   the host wait until a band has been cleaned.
//!
//! The model leaves out TRIM, rewrites of a part of a band, and zones that the host manages.

mod bands;
mod map;
mod params;
mod work;

pub(crate) use params::footprint;
pub use params::{DEFS, SmrParams};

use crate::constant::out_of_range;
use bands::Bands;
use map::{Map, Place};
use rand::RngCore;
use seekwell_core::{
    Accept, Command, Device, DeviceFacts, DeviceStats, Done, Instant, Nanos, Op, Sector, Sectors,
    rng,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt::Write;
use work::Work;

/// The mechanics: a hard disk with its own volatile cache.
type Mechanics = Box<dyn Device + Send>;

/// A command of the host inside the drive.
#[derive(Debug, Clone, Copy)]
struct Host {
    command: Command,
    /// Number of parts that are not complete.
    left: u32,
    error: bool,
}

/// What a command to the mechanics is a part of.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// A read of the host.
    Read(u32),
    /// The drive's own work.
    Work,
    Flush,
}

/// A sequential write that may fill a band.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// First sector that is held back: the beginning of a band. `None`: the run began inside a
    /// band, whose rest goes to the log.
    held: Option<u64>,
    next: u64,
    last: Instant,
}

/// Data in the volatile buffer that is to be appended to the log.
#[derive(Debug, Clone, Copy)]
struct Pending {
    from: u64,
    to: u64,
    write: u64,
    /// The command that completes with it, if it is not complete yet.
    host: Option<u32>,
}

/// A drive-managed shingled disk; see the module.
pub struct Smr {
    p: SmrParams,
    facts: DeviceFacts,
    mechanics: Mechanics,
    bands: Bands,
    map: Map,
    now: Instant,
    hosts: Vec<Host>,
    free: Vec<u32>,
    outstanding: u32,
    parts: Vec<Part>,
    free_parts: Vec<u32>,
    to_mechanics: VecDeque<Command>,
    /// Completions of commands of the host, with the order in which they were decided.
    finished: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    sequence: u64,
    link_free: Instant,
    /// Writes that wait for space in the volatile buffer.
    waiting: VecDeque<u32>,
    flush: Option<u32>,
    flush_sent: bool,
    /// The runs, the one that was written last at the end.
    runs: Vec<Run>,
    /// Bands that runs have filled.
    ready: VecDeque<(u64, u64)>,
    pending: VecDeque<Pending>,
    writes: u64,
    work: Work,
    /// Groups since the last update of the map's root.
    groups: u32,
    /// Until this time the drive updates the map's root.
    busy_to: Instant,
    host_at: Instant,
    internal_bytes: u64,
    buffer_hits: u64,
    buf: Vec<Done>,
}

impl Smr {
    /// Makes a drive. The capacity of the mechanics must be at least [`Smr::needed`].
    pub fn new(p: SmrParams, mechanics: Mechanics, seed: u64) -> Self {
        let inner = mechanics.facts().clone();
        let facts = DeviceFacts {
            name: p.name.clone(),
            capacity: Sector(p.capacity),
            write_cache: p.write_cache,
            max_sectors: Sectors(params::MAX_SECTORS as u32),
            depth: p.depth,
            ..inner
        };
        let mut map = Map::new(p.cache);
        if p.full {
            fill(&mut map, &p, seed);
        }
        Smr {
            bands: Bands::new(p.capacity, p.bands),
            map,
            facts,
            mechanics,
            now: Instant::default(),
            hosts: vec![],
            free: vec![],
            outstanding: 0,
            parts: vec![],
            free_parts: vec![],
            to_mechanics: VecDeque::new(),
            finished: BinaryHeap::new(),
            sequence: 0,
            link_free: Instant::default(),
            waiting: VecDeque::new(),
            flush: None,
            flush_sent: false,
            runs: vec![],
            ready: VecDeque::new(),
            pending: VecDeque::new(),
            writes: 0,
            work: Work::None,
            groups: 0,
            busy_to: Instant::default(),
            host_at: Instant::START,
            internal_bytes: 0,
            buffer_hits: 0,
            buf: vec![],
            p,
        }
    }
    /// Returns the number of sectors that the mechanics of this drive must have: the bands, the
    /// persistent cache, and the place for a safe copy of a band.
    pub fn needed(p: &SmrParams) -> u64 {
        p.capacity + p.cache + p.bands.0
    }
    /// Returns the sector of the mechanics at which an address is in its band.
    fn home(&self, lba: u64) -> u64 {
        self.p.cache + self.p.bands.0 + lba
    }

    /// Schedules the completion of a command.
    fn complete(&mut self, host: u32, at: Instant, error: bool) {
        self.hosts[host as usize].error |= error;
        self.sequence += 1;
        self.finished.push(Reverse((at, self.sequence, host)));
        self.host_at = self.host_at.max(at);
    }
    /// Schedules the completion of a command that the buffer serves.
    fn hit(&mut self, host: u32, sectors: u32) {
        self.buffer_hits += 1;
        let transfer = Nanos(u64::from(sectors) * self.p.hit.1 / 1000);
        self.link_free = self.link_free.max(self.now + self.p.hit.0) + transfer;
        self.complete(host, self.link_free, false);
    }
    /// Records that a part of a command is complete.
    fn part_done(&mut self, host: u32, error: bool) {
        let h = &mut self.hosts[host as usize];
        h.left -= 1;
        h.error |= error;
        if h.left == 0 {
            self.complete(host, self.now, false);
        }
    }

    /// Sends a command to the mechanics.
    fn send(&mut self, part: Part, op: Op, sector: u64, sectors: u64, fua: bool) {
        let id = match self.free_parts.pop() {
            Some(id) => {
                self.parts[id as usize] = part;
                id
            }
            None => {
                self.parts.push(part);
                (self.parts.len() - 1) as u32
            }
        };
        self.to_mechanics.push_back(Command {
            id,
            op,
            sector: Sector(sector),
            sectors: Sectors(sectors as u32),
            fua,
        });
    }
    fn issue(&mut self) {
        while let Some(c) = self.to_mechanics.front() {
            if self.mechanics.accept(self.now, *c) == Accept::Busy {
                break;
            }
            self.to_mechanics.pop_front();
        }
    }

    fn arrive_read(&mut self, host: u32, a: u64, b: u64) {
        let mut list = vec![];
        self.map.parts(a, b, |x, y, place| list.push((x, y, place)));
        for (x, y, place) in list {
            let at = match place {
                Some(Place::Buffer(_)) => continue,
                Some(Place::Log { at, .. }) => at,
                None => self.home(x),
            };
            self.hosts[host as usize].left += 1;
            self.send(Part::Read(host), Op::Read, at, y - x, false);
        }
        if self.hosts[host as usize].left == 0 {
            self.hit(host, (b - a) as u32);
        }
    }

    /// Moves a write to the volatile buffer, if there is space.
    fn admit(&mut self, host: u32) -> bool {
        let c = self.hosts[host as usize].command;
        let (a, b) = (c.sector.0, c.sector.0 + u64::from(c.sectors.0));
        let full =
            self.pending.len() >= self.p.buffered || self.map.buffered() + b - a > self.p.buffer;
        // A command that is larger than the buffer passes through an empty one.
        if full && (self.map.buffered() > 0 || !self.pending.is_empty()) {
            return false;
        }
        self.writes += 1;
        self.map.buffer(a, b, self.writes);
        let write = self.writes;
        let pending = |from, to, host| Pending {
            from,
            to,
            write,
            host,
        };
        if !self.p.write_cache || c.fua {
            let mut at = a;
            while at < b {
                let to = b.min(at + params::MAX_SECTORS);
                self.hosts[host as usize].left += 1;
                self.pending.push_back(pending(at, to, Some(host)));
                at = to;
            }
            return true;
        }
        let mut at = a;
        while at < b {
            let (start, end) = self.bands.around(at);
            let to = b.min(end);
            if !self.follow(at, to, start, end) {
                self.pending.push_back(pending(at, to, None));
            }
            at = to;
        }
        self.hit(host, c.sectors.0);
        true
    }

    /// Follows the runs: [at, to) was written in the band [start, end). Returns whether the data is
    /// held back, because the run may fill the band.
    fn follow(&mut self, at: u64, to: u64, start: u64, end: u64) -> bool {
        if self.p.runs == 0 {
            return false;
        }
        let found = self.runs.iter().position(|r| r.next == at);
        let before = found.map(|i| self.runs.remove(i));
        let held = match at == start {
            true => Some(start),
            false => before.and_then(|r| r.held),
        };
        // The band is written again from its beginning, before the former run had filled it.
        while let Some(i) = self.runs.iter().position(|r| at == start && r.held == held) {
            self.give_up(i);
        }
        let full = held.is_some() && to == end;
        if full && !self.ready.contains(&(start, end)) {
            self.ready.push_back((start, end));
        }
        while self.runs.len() >= self.p.runs {
            // Runs that cannot fill a band are the least valuable.
            let idle = self.runs.iter().position(|r| r.held.is_none());
            self.give_up(idle.unwrap_or(0));
        }
        self.runs.push(Run {
            held: held.filter(|_| !full),
            next: to,
            last: self.now,
        });
        held.is_some()
    }

    /// Forgets a run. What was held back goes to the log.
    fn give_up(&mut self, run: usize) {
        let run = self.runs.remove(run);
        let Some(from) = run.held else { return };
        let mut parts = vec![];
        self.map.parts(from, run.next, |x, y, place| {
            if let Some(Place::Buffer(write)) = place {
                parts.push((x, y, write));
            }
        });
        let pending = parts.into_iter().map(|(from, to, write)| Pending {
            from,
            to,
            write,
            host: None,
        });
        self.pending.extend(pending);
    }

    /// Returns the time of the next change that is not an event of the mechanics.
    fn timer(&self) -> Option<Instant> {
        if !self.work.is_none() {
            return None;
        }
        if self.busy_to > self.now {
            return Some(self.busy_to);
        }
        let held = self.runs.iter().filter(|r| r.held.is_some());
        let idle = held.map(|r| r.last + self.p.run_idle).min();
        let clean = self.may_clean().then_some(self.host_at + self.p.clean_idle);
        let next = [idle, clean].into_iter().flatten().min();
        next.map(|t| t.max(self.now))
    }

    /// Processes everything up to `to`.
    fn run_to(&mut self, to: Instant) {
        loop {
            let next = [self.mechanics.next_event(), self.timer()];
            let Some(t) = next.into_iter().flatten().min().filter(|t| *t <= to) else {
                break;
            };
            self.now = self.now.max(t);
            let mut done = std::mem::take(&mut self.buf);
            self.mechanics.advance(self.now, &mut done);
            for d in done.drain(..) {
                self.free_parts.push(d.id);
                match self.parts[d.id as usize] {
                    Part::Read(host) => self.part_done(host, d.error),
                    Part::Work => self.work_done(),
                    Part::Flush => {
                        self.flush_sent = false;
                        if let Some(host) = self.flush.take() {
                            self.complete(host, self.now, false);
                        }
                    }
                }
            }
            self.buf = done;
            self.proceed();
        }
        if to != Instant::FAR {
            self.now = self.now.max(to);
        }
    }
}

/// Fills the persistent cache with small extents at random addresses.
fn fill(map: &mut Map, p: &SmrParams, seed: u64) {
    let mut rng = rng::stream(seed, "smr");
    let blocks = p.capacity / 8;
    let most = p.extents.min(blocks as usize / 2);
    let mut write = 0;
    while map.logged() < most && map.has_room(16) {
        write += 1;
        let a = rng.next_u64() % blocks * 8;
        map.buffer(a, a + 8, write);
        let (at, entry) = map.append(8, &[(a, a + 8)]);
        map.appended((a, a + 8), write, entry, at + 8);
        map.close();
    }
}

impl Device for Smr {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        self.run_to(now);
        if self.outstanding >= self.facts.depth || self.flush.is_some() {
            return Accept::Busy;
        }
        self.outstanding += 1;
        self.host_at = self.host_at.max(now);
        let host = Host {
            command,
            left: 0,
            error: false,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.hosts[id as usize] = host;
                id
            }
            None => {
                self.hosts.push(host);
                (self.hosts.len() - 1) as u32
            }
        };
        let (a, n) = (command.sector.0, u64::from(command.sectors.0));
        match command.op {
            _ if out_of_range(&command, self.facts.capacity) => {
                self.complete(id, now + self.p.hit.0, true);
            }
            Op::Flush => self.flush = Some(id),
            Op::Discard => self.hit(id, 0),
            _ if n == 0 => self.hit(id, 0),
            Op::Read => self.arrive_read(id, a, a + n),
            Op::Write | Op::WriteZeroes => {
                if !self.waiting.is_empty() || !self.admit(id) {
                    self.waiting.push_back(id);
                }
            }
        }
        self.stop_cleaning();
        self.proceed();
        Accept::Accepted
    }

    fn next_event(&self) -> Option<Instant> {
        let done = self.finished.peek().map(|f| f.0.0);
        // Cleaning in the background changes nothing that the host sees before its next command.
        let inside = self.outstanding as usize > self.finished.len();
        let own = [self.mechanics.next_event(), self.timer()];
        let own = own.into_iter().flatten().min().filter(|_| inside);
        [done, own].into_iter().flatten().min()
    }

    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        while let Some(t) = self.next_event().filter(|t| *t <= to) {
            self.run_to(t);
            while let Some(Reverse((at, _, host))) = self.finished.peek().copied() {
                if at > t {
                    break;
                }
                self.finished.pop();
                let h = self.hosts[host as usize];
                self.free.push(host);
                self.outstanding -= 1;
                out.push(Done {
                    id: h.command.id,
                    at,
                    error: h.error,
                });
            }
        }
        if to != Instant::FAR {
            self.run_to(to);
        }
    }

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn stats(&self) -> DeviceStats {
        let own = self.mechanics.stats();
        DeviceStats {
            // The hits of the mechanics are those of the drive's own work, too.
            cache_hits: self.buffer_hits,
            internal_bytes: own.internal_bytes + self.internal_bytes,
            ..own
        }
    }

    fn state(&self, out: &mut String) {
        let share = self.map.used() as f64 / self.p.cache as f64 * 100.0;
        let _ = write!(
            out,
            "persistent cache {share:.0} % full, {} extents; {} KiB in the buffer; {}; ",
            self.map.logged(),
            self.map.buffered() / 2,
            self.work.text(),
        );
        self.mechanics.state(out);
    }
}

#[cfg(test)]
mod tests;
