//! The eMMC storage of a phone, SD cards, and USB sticks. Such a card executes one command at a time. The time
//! of a write depends on its address.
//!
//! The model covers:
//! - reads: a base time and a time per KiB, plus a delay if the needed part of the address map is
//!   not loaded
//! - writes: a base time and a time per KiB, plus a delay if the address is outside the open
//!   segments, plus pauses for garbage collection
//! - packed groups of writes
//! - a volatile cache, which the card writes to the flash in the background
//! - reliable writes (FUA)
//! - the high-priority interrupt (HPI), which stops a running write for an urgent read
//! - random (log-normal) variation of times
//!
//! The block layer models the driver on the host: two requests in preparation, packing, and
//! reinsertion of stopped writes. The card only reports which of these functions it supports
//! ([`seekwell_core::MmcHost`]).
//!
//! The model leaves out the pages and blocks of the flash, so a garbage collection is a pause of
//! random length. It also leaves out command queueing of eMMC 5.1, and merging of cached writes to
//! the same address.

mod lru;
mod params;

pub use params::{DEFS, EmmcParams};

use crate::constant::out_of_range;
use libm::{cos, exp, log, sqrt};
use lru::Lru;
use rand::RngCore;
use seekwell_core::rng::{self, Pcg64Mcg};
use seekwell_core::{
    Accept, Action, Command, Device, DeviceFacts, DeviceStats, Done, Event, EventLog, Tap,
};
use seekwell_core::{Instant, Nanos, Op, Sector, Sectors};
use std::collections::VecDeque;

/// The command or packed group that is running for the host.
#[derive(Debug, Clone, Default)]
struct Running {
    commands: Vec<Command>,
    start: Instant,
    end: Instant,
    /// True if the write goes to the flash. Such a write can be stopped.
    medium: bool,
    /// True if the command reaches past the end of the card.
    error: bool,
}

/// An eMMC or SD card; see the module.
#[derive(Debug, Clone)]
pub struct Emmc {
    p: EmmcParams,
    facts: DeviceFacts,
    rng: Pcg64Mcg,
    open: Lru,
    map: Lru,
    /// The running command. Its list of commands is empty if no command is running.
    running: Running,
    /// Time at which the card is free next. It is also later than `now` while the card writes its
    /// cache, or stops a write.
    free: Instant,
    /// Latest time that was passed to the card.
    now: Instant,
    /// Sectors written since the last idle period.
    since_rest: u64,
    /// Cached writes (address, sectors), oldest first.
    cached: VecDeque<(u64, u32)>,
    cached_sectors: u64,
    /// Number of cached writes that were written since the last one that paid `write_base`.
    drained: u32,
    /// Commands of the group that was stopped last, and the number of sectors of each that were
    /// written.
    stopped: Vec<(u32, Sectors)>,
    busy: u64,
    hits: u64,
    log: EventLog,
    media_ops: u64,
    internal: u64,
}

impl Emmc {
    /// Makes a card. The same seed gives the same card.
    pub fn new(p: &EmmcParams, seed: u64) -> Self {
        let facts = DeviceFacts {
            write_cache: p.cache > 0,
            fua: p.fua,
            flush_queueable: false,
            max_sectors: Sectors(p.max_request),
            can_stop: p.hpi,
            mmc: p.host,
            // USB sticks do not say how their medium works, so Linux takes them for hard disks.
            rotational: p.host.is_none(),
            ..DeviceFacts::plain(&p.name, Sector(p.capacity), 1)
        };
        Emmc {
            facts,
            rng: rng::stream(seed, "emmc"),
            open: Lru::new(p.open_segments),
            map: Lru::new(p.map_entries),
            running: Running::default(),
            free: Instant::default(),
            now: Instant::default(),
            since_rest: 0,
            cached: VecDeque::new(),
            cached_sectors: 0,
            drained: 0,
            stopped: Vec::with_capacity(64),
            busy: 0,
            hits: 0,
            log: EventLog::default(),
            media_ops: 0,
            internal: 0,
            p: p.clone(),
        }
    }
    /// Returns the number of sectors that are in the cache and not yet in the flash.
    pub fn dirty_sectors(&self) -> u64 {
        self.cached_sectors
    }

    /// Returns the maximum number of writes per packed group.
    fn most_packed(&self) -> usize {
        self.p.host.map_or(0, |h| h.max_packed as usize)
    }
    fn uniform(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// Returns a random factor with mean 1.
    fn noise(&mut self, sigma: f64) -> f64 {
        if sigma == 0.0 {
            return 1.0;
        }
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        let normal = sqrt(-2.0 * log(u)) * cos(core::f64::consts::TAU * v);
        exp(sigma * normal - sigma * sigma / 2.0)
    }

    fn read_ns(&mut self, lba: u64, n: u32) -> f64 {
        let mut t = self.p.read_base_ns + self.p.read_sector_ns * f64::from(n);
        for part in parts(lba, n, self.p.map_segment) {
            if !self.map.touch(part) {
                t += self.p.map_miss_ns;
            }
        }
        t * self.noise(self.p.noise.0)
    }
    /// Returns a random duration of a garbage collection, in ns.
    fn gc_ns(&mut self) -> f64 {
        let (lo, hi) = self.p.gc_ns;
        let t = lo + (hi - lo) * self.uniform();
        self.internal += self.p.segment * 512;
        t
    }
    /// Computes the costs of a write that depend on its address. Returns two times in ns: the extra
    /// time (in addition to base time and time per KiB), and the time of the garbage collections
    /// that the write causes.
    fn place(&mut self, lba: u64, n: u32) -> (f64, f64) {
        let (mut t, mut gc) = (0.0, 0.0);
        for s in parts(lba, n, self.p.segment) {
            if self.open.touch(s) {
                continue;
            }
            t += self.p.place_penalty_ns;
            if self.p.gc_chance > 0.0 && self.uniform() < self.p.gc_chance {
                gc += self.gc_ns();
            }
        }
        for part in parts(lba, n, self.p.map_segment) {
            // A write also loads its part of the map. The base time of a write includes this.
            self.map.touch(part);
        }
        let page = self.p.page;
        if !lba.is_multiple_of(page) || !(lba + u64::from(n)).is_multiple_of(page) {
            t += self.p.rmw_ns;
        }
        self.since_rest += u64::from(n);
        if self.p.clean_pool > 0 && self.since_rest > self.p.clean_pool {
            self.since_rest = 0;
            gc += self.gc_ns();
        }
        self.media_ops += 1;
        (t, gc)
    }
    /// Returns the time of a write or of a packed group to the flash, in ns.
    fn write_ns(&mut self, commands: &[Command]) -> f64 {
        let (mut t, mut gc) = (self.p.write_base_ns, 0.0);
        if commands.len() > 1 {
            t += self.p.pack_item_ns * commands.len() as f64;
        }
        for c in commands {
            let (place, pause) = self.place(c.sector.0, c.sectors.0);
            t += place + self.p.write_sector_ns * f64::from(c.sectors.0);
            gc += pause;
        }
        t * self.noise(self.p.noise.1) + gc
    }
    /// Writes the oldest entry of the cache, and returns the time in ns. Adjacent entries share one
    /// base time, as in a packed group.
    fn drain_one(&mut self) -> f64 {
        let Some((lba, n)) = self.cached.pop_front() else {
            return 0.0;
        };
        self.cached_sectors -= u64::from(n);
        let mut t = self.p.pack_item_ns + self.p.write_sector_ns * f64::from(n);
        if self.drained == 0 {
            t += self.p.write_base_ns;
        }
        self.drained = (self.drained + 1) % self.most_packed().max(1) as u32;
        let (place, gc) = self.place(lba, n);
        (t + place) * self.noise(self.p.noise.1) + gc
    }

    fn take_time(&mut self, from: Instant, ns: f64) -> Instant {
        let d = Nanos(libm::round(ns) as u64);
        self.busy += d.0;
        self.free = from + d;
        self.free
    }
    /// Executes the card's background work up to `now`. Work that would begin after `now` does not
    /// start.
    fn catch_up(&mut self, now: Instant) {
        if self.running.commands.is_empty() {
            // Every cached write arrived before `free`, so it can start at `free`.
            while !self.cached.is_empty() && self.free < now {
                let ns = self.drain_one();
                self.take_time(self.free, ns);
            }
        }
        self.now = self.now.max(now);
    }

    fn service_ns(&mut self, c: &Command) -> f64 {
        let n = c.sectors.0;
        match c.op {
            Op::Read => self.read_ns(c.sector.0, n),
            Op::Discard => self.p.discard_ns,
            Op::Flush if self.p.cache == 0 => self.p.cache_base_ns,
            Op::Flush => {
                let mut t = self.p.flush_base_ns;
                while !self.cached.is_empty() {
                    t += self.drain_one();
                }
                t
            }
            Op::Write | Op::WriteZeroes => self.write_ns(std::slice::from_ref(c)),
        }
    }

    fn begin(&mut self, now: Instant, group: &[Command]) -> Accept {
        self.catch_up(now);
        if !self.running.commands.is_empty() {
            return Accept::Busy;
        }
        let rested = now.since(self.free);
        if rested.0 >= self.p.gc_idle_ns {
            self.since_rest = 0;
        }
        self.stopped.clear();
        self.drained = 0;
        let start = now.max(self.free);
        let error = group.iter().any(|c| out_of_range(c, self.facts.capacity));
        let n: u64 = group.iter().map(|c| u64::from(c.sectors.0)).sum();
        let write = matches!(group[0].op, Op::Write | Op::WriteZeroes);
        let empty = n == 0 && group[0].op != Op::Flush;
        let to_cache = write && !group[0].fua && self.cached_sectors + n <= self.p.cache;
        let ns = if error || empty {
            self.p.cache_base_ns
        } else if to_cache {
            self.hits += group.len() as u64;
            for c in group {
                self.log
                    .push(|| Event::of_command(now, Action::CacheHit, c));
            }
            for c in group {
                self.cached.push_back((c.sector.0, c.sectors.0));
            }
            self.cached_sectors += n;
            let items = if group.len() > 1 { group.len() } else { 0 };
            self.p.cache_base_ns
                + self.p.bus_sector_ns * n as f64
                + self.p.pack_item_ns * items as f64
        } else if group.len() > 1 {
            self.write_ns(group)
        } else {
            if group[0].op == Op::Read {
                self.media_ops += 1;
            }
            self.service_ns(&group[0])
        };
        let end = self.take_time(start, ns);
        let r = &mut self.running;
        r.commands.extend_from_slice(group);
        r.medium = write && !to_cache && !error && !empty;
        (r.start, r.end, r.error) = (start, end, error);
        Accept::Accepted
    }
}

/// Returns the numbers of the units of `unit` sectors that a command touches.
fn parts(lba: u64, n: u32, unit: u64) -> std::ops::RangeInclusive<u64> {
    let last = lba + u64::from(n.max(1)) - 1;
    lba / unit..=last / unit
}

impl Device for Emmc {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        self.begin(now, std::slice::from_ref(&command))
    }
    fn accept_packed(&mut self, now: Instant, group: &[Command]) -> Accept {
        let most = self.most_packed();
        if group.is_empty() || group.len() > most || group.iter().any(|c| c.op != Op::Write) {
            return Accept::Busy;
        }
        self.begin(now, group)
    }
    fn next_event(&self) -> Option<Instant> {
        // Background writes complete no command, so they are computed at the next call.
        (!self.running.commands.is_empty()).then_some(self.running.end)
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        let r = &mut self.running;
        if !r.commands.is_empty() && r.end <= to {
            let (at, error) = (r.end, r.error);
            out.extend(r.commands.drain(..).map(|c| Done {
                id: c.id,
                at,
                error,
            }));
            self.now = self.now.max(at);
        }
        self.catch_up(to);
    }
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn stats(&self) -> DeviceStats {
        // Work after `now` does not count as busy time.
        let ahead = self.free.since(self.now).0;
        DeviceStats {
            busy: Nanos(self.busy.saturating_sub(ahead)),
            cache_hits: self.hits,
            media_ops: self.media_ops,
            internal_bytes: self.internal,
            ..DeviceStats::default()
        }
    }
    fn stop(&mut self, now: Instant, id: u32) -> Option<Sectors> {
        if let Some(i) = self.stopped.iter().position(|s| s.0 == id) {
            return Some(self.stopped.swap_remove(i).1);
        }
        let r = &self.running;
        if !self.p.hpi || !r.medium || now >= r.end || r.commands.iter().all(|c| c.id != id) {
            return None;
        }
        // Progress is linear over the whole time. It is rounded down to whole pages.
        let all: u64 = r.commands.iter().map(|c| u64::from(c.sectors.0)).sum();
        let (gone, whole) = (now.since(r.start).0, r.end.since(r.start).0);
        let mut written = (u128::from(all) * u128::from(gone) / u128::from(whole.max(1))) as u64;
        self.stopped.clear();
        for c in r.commands.iter() {
            let (lba, n) = (c.sector.0, u64::from(c.sectors.0));
            let mut of_it = written.min(n);
            written -= of_it;
            if of_it < n {
                of_it -= ((lba + of_it) % self.p.page).min(of_it);
            }
            self.stopped.push((c.id, Sectors(of_it as u32)));
        }
        self.busy -= self.free.since(now.max(r.start)).0;
        self.free = now.max(r.start) + Nanos(self.p.hpi_stop_ns);
        self.busy += self.p.hpi_stop_ns;
        self.running.commands.clear();
        let i = self.stopped.iter().position(|s| s.0 == id)?;
        Some(self.stopped.swap_remove(i).1)
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        self.log.join(tap.cloned());
    }
    fn state(&self, out: &mut String) {
        use std::fmt::Write;
        let _ = write!(
            out,
            "{} commands in service, {} sectors in the cache, {} written since the last idle period",
            self.running.commands.len(),
            self.cached_sectors,
            self.since_rest
        );
    }
}
