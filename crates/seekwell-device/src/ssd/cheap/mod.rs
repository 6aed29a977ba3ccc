//! The cheap variant of a flash drive. It has one clock per flash unit, a few shared clocks, and a
//! count of pending cleaning work per unit. It computes the result of a command when the command
//! arrives, in constant time per 4 KiB.
//!
//! A request enters a shared clock at the time when it begins to wait. Background work does not
//! enter shared clocks. Otherwise a shared clock would look busy far into the future, and later
//! requests would wait for no reason.
//!
//! The variant knows only one state per MiB of addresses: never written, written in order, or
//! written at random. It takes the write amplification from a closed formula. Reads during heavy
//! cleaning are up to 10 % too fast, because they do not compete with the transfers of cleaning on
//! the channels. Use the detailed variant for tail latencies under cleaning, for TRIMs of less than
//! a MiB, and for workloads with hot and cold data.

mod flash;
mod read;
mod wear;

use super::host::{Busy, Finishes, Front, NEVER, facts, pages};
use super::map_cache::MapCache;
use super::params::{SsdParams, State};
use super::regions::{Kind, REGION, Regions};
use super::streams::{Found, STREAMS, Streams};
use crate::constant::out_of_range;
use crate::divide::Divisor;
use flash::Flash;
use rand::RngCore;
use seekwell_core::rng;
use seekwell_core::{
    Accept, Action, Command, Device, DeviceFacts, DeviceStats, Done, Event, Instant, Op, Sectors,
    Tap,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use wear::Wear;

/// Number of consecutive pages after which a writer counts as sequential.
const ORDERED: u64 = 64;

/// Pages [from, to) that were read ahead for one stream. The ring holds, for each page, the time at
/// which the page is in RAM.
#[derive(Debug, Clone, Default)]
struct Ahead {
    from: u64,
    to: u64,
    ready: Vec<u64>,
}

/// The write buffer. `free` is the number of free slots. `ends` holds, for each program, its end
/// and the number of slots that it then frees.
#[derive(Debug, Clone)]
struct Buffer {
    free: u32,
    ends: BinaryHeap<Reverse<(u64, u32)>>,
    /// Pages that wait until there are enough for a full program. `random` of them were written at
    /// random. `partial` of them were written only in part, so the drive must first read their old
    /// contents.
    pending: Vec<u64>,
    random: u32,
    partial: u32,
    /// Pages that can still be read from the buffer: (page, time until then), in a hash table.
    recent: Vec<(u64, u64)>,
}

/// A flash drive of the cheap variant; see the module.
#[derive(Debug, Clone)]
pub struct CheapSsd {
    facts: DeviceFacts,
    p: SsdParams,
    /// Random number that determines the units of randomly written pages.
    salt: u64,
    front: Front,
    flash: Flash,
    regions: Regions,
    wear: Wear,
    buffer: Buffer,
    map: MapCache,
    readers: Streams,
    ahead: Vec<Ahead>,
    writers: Streams,
    /// Number of consecutive pages that each stream has written.
    runs: [u64; STREAMS],
    by_k: Divisor,
    by_units: Divisor,
    typed: bool,
    slc_used: u64,
    finishes: Finishes,
    /// The command in the drive that must run alone, if there is one.
    alone: Option<u32>,
    latest: u64,
    /// True if data were written since the last flush.
    dirty: bool,
    busy: Busy,
    hits: u64,
    internal: u64,
}

fn spread(page: u64) -> u64 {
    let h = page.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (h ^ h >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

impl CheapSsd {
    /// Makes a drive. The parameters determine the state before the run.
    pub fn new(p: &SsdParams, seed: u64) -> Self {
        let regions = Regions::new(p);
        let ring = (2 * p.read_ahead as usize).next_power_of_two();
        let ahead = Ahead {
            ready: vec![0; if p.read_ahead > 0 { ring } else { 0 }],
            ..Ahead::default()
        };
        let slots = (p.buffer as usize).next_power_of_two().min(1 << 15);
        let wear = Wear::new(p, &regions);
        CheapSsd {
            facts: facts(p, &p.name, p.pages),
            salt: rng::stream(seed, "ssd").next_u64(),
            front: Front::new(p),
            flash: Flash::new(p),
            regions,
            buffer: Buffer {
                free: p.buffer,
                // Space for the buffers of usual drives. The heap of a larger buffer grows during
                // the run.
                ends: BinaryHeap::with_capacity((p.buffer + 1).min(1 << 18) as usize),
                pending: Vec::with_capacity(p.k as usize),
                random: 0,
                partial: 0,
                recent: vec![(u64::MAX, 0); slots],
            },
            map: MapCache::new(p.pages, p.map_cache),
            readers: Streams::new(),
            ahead: vec![ahead; STREAMS],
            writers: Streams::new(),
            runs: [0; STREAMS],
            by_k: Divisor::new(u64::from(p.k)),
            by_units: Divisor::new(u64::from(p.units)),
            typed: p.read_add_ns != [0; 3],
            slc_used: match p.state {
                State::Steady | State::Used => wear.slc_limit,
                _ => 0,
            },
            wear,
            finishes: Finishes::new(p.depth),
            alone: None,
            latest: 0,
            dirty: false,
            busy: Busy::default(),
            hits: 0,
            internal: 0,
            p: p.clone(),
        }
    }

    /// Returns the current write amplification of random writes.
    pub fn write_amplification(&self) -> f64 {
        self.wear.wa * self.p.write_factor
    }

    /// Programs the pending pages, even if they are fewer than a full program. Their data are in
    /// the buffer at `at`. The command arrived at `since`.
    #[inline]
    fn program(&mut self, since: u64, at: u64) -> u64 {
        let n = self.buffer.pending.len() as u32;
        self.wear.tick(&self.regions);
        let (random, rest) = (
            u64::from(self.buffer.random),
            u64::from(n - self.buffer.random),
        );
        let mut debt = random * self.wear.random_ns + rest * self.wear.ordered_ns;
        debt += u64::from(self.buffer.partial) * (self.p.read_ns + self.p.xfer_ns);
        self.internal += (random as f64 * (self.wear.wa - 1.0) * 4096.0) as u64;
        let fast = self.slc_used < self.wear.slc_limit;
        let prog = fast.then_some(self.p.slc_prog_ns);
        self.slc_used += if fast { u64::from(n) } else { 0 };
        let end = self.flash.program(since, at, n, prog, debt);
        self.buffer.ends.push(Reverse((end, n)));
        let mask = self.buffer.recent.len() - 1;
        for page in self.buffer.pending.drain(..) {
            self.buffer.recent[spread(page) as usize & mask] = (page, end);
        }
        (self.buffer.random, self.buffer.partial) = (0, 0);
        end
    }

    /// Programs the pending pages if they fill a program. Returns its end, or 0.
    #[inline]
    fn program_if_full(&mut self, since: u64, at: u64) -> u64 {
        let full = if self.slc_used < self.wear.slc_limit {
            self.p.slc_k
        } else {
            self.p.k
        };
        if self.buffer.pending.len() as u32 >= full {
            self.program(since, at)
        } else {
            0
        }
    }

    /// Puts a changed page of the map into the buffer, like a page of the host, if there is space.
    fn write_map_page(&mut self, since: u64, at: u64) -> u64 {
        while let Some(Reverse((freed, pages))) = self.buffer.ends.peek().copied()
            && freed <= at
        {
            self.buffer.ends.pop();
            self.buffer.free += pages;
        }
        if self.buffer.free == 0 {
            return 0;
        }
        self.buffer.free -= 1;
        self.buffer.pending.push(NEVER);
        self.internal += 4096;
        self.program_if_full(since, at)
    }

    /// Records the address of a write. Returns true if the write continues a sequential stream.
    #[inline]
    fn classify(&mut self, sector: u64, sectors: u32, first: u64, n: u32) -> bool {
        let run = match self.writers.note(sector, sector + u64::from(sectors)) {
            Found::Alone => u64::from(n),
            Found::Begins(i) => {
                self.runs[i] = 2 * u64::from(n);
                self.runs[i]
            }
            Found::Continues(i) => {
                self.runs[i] += u64::from(n);
                self.runs[i]
            }
        };
        let last = first + u64::from(n) - 1;
        if run >= ORDERED {
            // The first pages of the stream were recorded as random, so record the whole run again.
            let back = if run - u64::from(n) < ORDERED {
                run
            } else {
                u64::from(n)
            };
            for r in (last + 1).saturating_sub(back) / REGION..=last / REGION {
                if self.regions.get(r) == Kind::Empty {
                    self.wear.wrote(REGION as u32);
                }
                self.regions.set(r, Kind::Ordered);
            }
            return true;
        }
        self.wear.wrote(n);
        for r in first / REGION..=last / REGION {
            self.regions.set(r, Kind::Random);
        }
        false
    }

    fn write(&mut self, t: u64, c: &Command) -> u64 {
        let (sector, sectors) = (c.sector.0, c.sectors.0);
        let (first, n, partial) = pages(sector, sectors);
        let f = self.front.command(t, 1);
        let data = if c.op == Op::Write { sectors } else { 0 };
        let ns = self.front.link_ns(data);
        let mut at = self.front.link(t, 1, ns).max(f + ns);
        let since = at;
        let ordered = self.classify(sector, sectors, first, n);
        self.dirty = true;
        self.buffer.partial += partial;
        let mut end = 0;
        for page in first..first + u64::from(n) {
            if self.buffer.free == 0 {
                if self.buffer.ends.is_empty() {
                    // All pages of the buffer wait for a full program, which cannot occur because
                    // no slot is free.
                    end = end.max(self.program(since, at));
                }
                if let Some(Reverse((freed, pages))) = self.buffer.ends.pop() {
                    at = at.max(freed);
                    self.buffer.free = pages;
                }
            }
            self.buffer.free -= 1;
            let look = self.map.touch(page, true);
            if look.miss || look.write_back {
                let unit = self.somewhere(page);
                self.flash.read(since, unit, 1, 0);
                if look.write_back {
                    end = end.max(self.write_map_page(since, at));
                }
            }
            let mask = self.buffer.recent.len() - 1;
            self.buffer.recent[spread(page) as usize & mask] = (page, NEVER);
            self.buffer.pending.push(page);
            self.buffer.random += u32::from(!ordered);
            end = end.max(self.program_if_full(since, at));
        }
        if c.fua && !self.p.plp {
            if !self.buffer.pending.is_empty() {
                end = end.max(self.program(since, at));
            }
            return at.max(end) + self.p.flush_ns;
        }
        at + self.p.ack_ns
    }

    fn flush(&mut self, t: u64) -> u64 {
        let f = self.front.command(t, 1);
        if !std::mem::take(&mut self.dirty) {
            return f;
        }
        if self.p.plp {
            return f + self.p.flush_ns;
        }
        if !self.buffer.pending.is_empty() {
            self.program(f, f);
        }
        f.max(self.flash.last_end) + self.p.flush_ns
    }

    fn trim(&mut self, t: u64, sector: u64, sectors: u32) -> u64 {
        let (first, last) = (sector.div_ceil(8), (sector + u64::from(sectors)) / 8);
        let user = self.p.pages;
        for r in first.div_ceil(REGION)..last.div_ceil(REGION) {
            if (r + 1) * REGION <= last || last == user {
                self.regions.set(r, Kind::Empty);
            }
        }
        self.wear.refresh(&self.regions);
        self.front.command(t, 1) + self.p.trim_ns
    }

    /// Moves data out of the fast region while the drive is idle.
    fn fold(&mut self, t: u64) {
        if self.slc_used > 0 && self.finishes.len() == 0 {
            let idle = t.saturating_sub(self.latest.max(Instant::START.0));
            let folded = idle as f64 * 1e-9 * self.p.slc_fold;
            self.slc_used = self.slc_used.saturating_sub(folded as u64);
        }
    }
}

impl Device for CheapSsd {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        if self.finishes.len() >= self.facts.commands() || self.alone.is_some() {
            return Accept::Busy;
        }
        let t = now.0;
        self.flash.now = t;
        let hits = self.hits;
        let (sector, Sectors(n)) = (command.sector.0, command.sectors);
        let error = out_of_range(&command, self.facts.capacity);
        if self.p.slc_pages > 0 {
            self.fold(t);
        }
        // A command that runs alone waits for all earlier commands, and delays all later commands.
        let alone = !self.p.queued_flush && matches!(command.op, Op::Flush | Op::Discard);
        let begin = if alone { t.max(self.latest) } else { t };
        let at = match command.op {
            Op::Flush => self.flush(begin),
            _ if error || n == 0 => self.front.command(begin, 1),
            Op::Read => self.read(t, sector, n),
            Op::Write | Op::WriteZeroes => self.write(t, &command),
            Op::Discard => self.trim(begin, sector, n),
        };
        if self.hits > hits {
            let log = &mut self.flash.log;
            log.push(|| Event::of_command(now, Action::CacheHit, &command));
        }
        self.alone = alone.then_some(command.id);
        self.latest = self.latest.max(at);
        self.busy.note(t, at);
        self.finishes.push(at, command.id, error);
        Accept::Accepted
    }

    fn next_event(&self) -> Option<Instant> {
        let at = self.finishes.next();
        (at != NEVER).then_some(Instant(at))
    }

    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        while let Some(d) = self.finishes.pop(to.0) {
            if self.alone == Some(d.id) {
                self.alone = None;
            }
            out.push(d);
        }
    }

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn stats(&self) -> DeviceStats {
        DeviceStats {
            busy: self.busy.total(),
            cache_hits: self.hits,
            media_ops: self.flash.ops,
            internal_bytes: self.internal,
            ..DeviceStats::default()
        }
    }

    fn listen(&mut self, tap: Option<&Tap>) {
        self.flash.log.join(tap.cloned());
    }
    fn state(&self, out: &mut String) {
        use std::fmt::Write;
        let at = self.busy.until();
        let _ = write!(
            out,
            "cheap variant at full scale; {} in flight, {} pages of the buffer free; random writes \
             amplified {:.2} times, {:.1} ms of cleaning owed; regions of 1 MiB: {} empty, {} \
             written in order, {} at random",
            self.finishes.len(),
            self.buffer.free,
            self.write_amplification(),
            self.flash.owed(at) as f64 / 1e6,
            self.regions.count(Kind::Empty),
            self.regions.count(Kind::Ordered),
            self.regions.count(Kind::Random),
        );
        if self.wear.slc_limit > 0 {
            let _ = write!(
                out,
                "; fast region {} of {} MiB used",
                self.slc_used / REGION,
                self.wear.slc_limit / REGION
            );
        }
    }
}
