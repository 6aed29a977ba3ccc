//! The detailed variant of a flash drive. It has a page map, and an event for every flash
//! operation.
//!
//! The order of service of a unit is: map reads and user reads, read-ahead, programs of host pages,
//! cleaning. If few blocks are free, cleaning takes precedence over programs as often as needed to
//! keep up with them. Cleaning copies at most the pages of one program at a time, so a read never
//! waits for more than one operation. Programs go to the next idle unit. Reads go to the unit that
//! holds the page.
//!
//! Only pages that can hold old data count as over-provisioning. Open blocks and reserved free
//! blocks are added to `rho`. Therefore the write amplification does not depend on the scale of the
//! model.
//!
//! Simplifications: The fast region changes program times, but not the place of data. Pages that
//! cleaning copies count as buffered, and their old block can be erased before the copy is
//! programmed.

mod commands;
mod fill;
mod map;
mod service;
mod unit;

pub use map::Counts;

use super::host::{Busy, Finishes, Front, NEVER, facts};
use super::map_cache::MapCache;
use super::params::SsdParams;
use super::streams::{STREAMS, Streams};
use super::tree::Tree;
use crate::constant::out_of_range;
use crate::error::ParamError;
use map::{Map, NONE};
use seekwell_core::rng::{self, Pcg64Mcg};
use seekwell_core::{
    Accept, Action, Command, Device, DeviceFacts, DeviceStats, Done, Event, EventLog, Instant, Op,
    RqId, Tap,
};
use std::collections::VecDeque;
use unit::{Ops, Unit};

/// Tables up to this size, in bytes, are not scaled down unless the user asks for it.
const TABLE_BYTES: u64 = 128 << 20;
/// Minimum number of blocks per unit of a scaled drive. If necessary, its blocks are made smaller.
const UNIT_BLOCKS: u64 = 512;

/// Numbers of flash operations since the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wear {
    /// Number of host pages programmed.
    pub host_pages: u64,
    /// Number of pages that cleaning copied.
    pub copied_pages: u64,
    /// Number of pages left empty, because a FLUSH could not wait for a full program.
    pub padded_pages: u64,
    /// Number of blocks erased.
    pub erases: u64,
    /// Number of array reads: user pages, map pages and read-ahead.
    pub array_reads: u64,
    /// Number of programs and erases that were suspended for a read.
    pub suspensions: u64,
}

impl Wear {
    /// Returns the number of pages programmed per page written by the host; 1 before the first
    /// write.
    pub fn amplification(&self) -> f64 {
        if self.host_pages == 0 {
            1.0
        } else {
            1.0 + (self.copied_pages + self.padded_pages) as f64 / self.host_pages as f64
        }
    }
}

/// A command in the drive.
#[derive(Debug, Clone, Copy)]
struct Cmd {
    id: u32,
    op: Op,
    fua: bool,
    /// Pages that are still to be processed: [first, end).
    first: u32,
    end: u32,
    /// Number of sectors that have not crossed the link yet.
    sectors: u32,
    /// Number of reads that the command waits for, plus 1 while its pages are being looked up.
    parts: u32,
    /// True if the command has used the link.
    linked: bool,
    /// Number of end pages (0 to 2) that are written only in part.
    partial: u8,
    /// The stream to which the read belongs, and the generation of that stream.
    stream: Option<(u8, u32)>,
}

/// Entry of a page that has been read ahead.
const READY: u32 = NONE;
/// Entry of a page that is being read while no command waits for it.
const COMING: u32 = NONE - 1;

/// Pages [from, to) of a stream's read-ahead. The entry of a page in the ring is [`READY`],
/// [`COMING`], or the command that waits for the page.
#[derive(Debug, Clone, Default)]
struct Ahead {
    from: u32,
    to: u32,
    life: u32,
    ring: Vec<u32>,
}

/// The write buffer: pages in RAM.
#[derive(Debug, Clone, Default)]
struct Buffer {
    /// User page of each slot, or [`NONE`]. The slots of the host come first, then the slots of
    /// cleaning.
    lpn: Vec<u32>,
    /// Flush period of each host slot. A new period begins with each flush.
    period: Vec<u64>,
    /// True if the slot belongs to a running program.
    taken: Vec<bool>,
    free: Vec<u32>,
    /// Slots that wait for a program, oldest first. The first `forced` of them must not wait until
    /// a program is full.
    line: VecDeque<u32>,
    forced: usize,
    /// Writes that wait for free slots.
    waiting: VecDeque<u32>,
    /// Number of unprogrammed pages of each flush period, from period `oldest` on. `flushes` holds
    /// the waiting flushes, each with the last period that it waits for.
    left: VecDeque<u32>,
    oldest: u64,
    flushes: VecDeque<(u64, u32)>,
    dirty: bool,
}

/// A flash drive of the detailed variant; see the module.
#[derive(Debug, Clone)]
pub struct DetailedSsd {
    facts: DeviceFacts,
    p: SsdParams,
    scale: u64,
    rng: Pcg64Mcg,
    front: Front,
    map: Map,
    cache: MapCache,
    units: Vec<Unit>,
    /// Time of the next event of each unit.
    events: Tree,
    /// Idle units, one bit each.
    idle: [u64; 4],
    channels: Vec<u64>,
    ops: Ops,
    cmds: Vec<Cmd>,
    cmd_free: Vec<u32>,
    /// Commands in the command stage: reads found in RAM (`hits_in`), reads from flash
    /// (`reads_in`), and all other commands (`writes_in`).
    hits_in: VecDeque<(u64, u32)>,
    reads_in: VecDeque<(u64, u32)>,
    writes_in: VecDeque<(u64, u32)>,
    buffer: Buffer,
    readers: Streams,
    ahead: Vec<Ahead>,
    /// With striped programs, the unit that receives the next program. Otherwise, the unit at which
    /// the search for an idle unit starts.
    turn: usize,
    slc_used: u64,
    slc_limit: u64,
    finishes: Finishes,
    /// Number of commands whose completion time is unknown. `latest` is the latest known completion
    /// time.
    open: u32,
    latest: u64,
    /// A command that must run alone, and whether it has begun.
    alone: Option<(u32, bool)>,
    busy: Busy,
    now: u64,
    hits: u64,
    wear: Wear,
    /// Maximum number of valid pages per unit.
    unit_max: u32,
    owed_max: f64,
    log: EventLog,
}

/// Returns the parameters of the scaled-down drive, and the scale.
pub(super) fn scaled(p: &SsdParams) -> Result<(SsdParams, u64), ParamError> {
    let bytes = |pages: u64| (pages as f64 * (2.0 + p.rho) * 4.0) as u64;
    let mut scale = p.scale.max(1);
    while p.scale == 0 && bytes(p.pages / scale) > TABLE_BYTES {
        scale *= 2;
    }
    let mut q = p.clone();
    q.pages = p.pages / scale;
    if scale > 1 {
        q.slc_pages /= scale;
        q.slc_static /= scale;
        q.map_cache = p.map_cache.div_ceil(scale as u32);
        let fits = |block: u32| block >= 64 && block.is_multiple_of(p.k);
        while fill::blocks(&q) < UNIT_BLOCKS && q.block.is_multiple_of(2) && fits(q.block / 2) {
            q.block /= 2;
            q.erase_ns /= 2;
        }
    }
    let blocks = fill::blocks(&q);
    if q.pages < u64::from(p.units) * u64::from(q.block) {
        return Err(ParamError::new(
            "scale",
            format!("1/{scale} of the capacity is less than one block per unit"),
            "give a smaller scale",
        ));
    }
    if blocks * u64::from(q.units) * u64::from(q.block) >= 1 << 31 {
        return Err(ParamError::new(
            "scale",
            format!("the map at 1/{scale} has more than 2^31 pages"),
            "give a larger scale",
        ));
    }
    Ok((q, scale))
}

/// Returns the size of the tables that grow with the capacity: map, reverse map and block counts,
/// in bytes.
pub(super) fn table_bytes(p: &SsdParams) -> u64 {
    let blocks = fill::blocks(p) * u64::from(p.units);
    4 * (p.pages + blocks * u64::from(p.block)) + 12 * blocks
}

impl DetailedSsd {
    /// Makes a drive. The parameters determine the state before the run. The drive is scaled down
    /// if the parameters ask for it, or if the tables would be too large. [`DetailedSsd::scale`]
    /// returns the scale.
    pub fn new(p: &SsdParams, seed: u64) -> Result<Self, ParamError> {
        let (p, scale) = scaled(p)?;
        let mut rng = rng::stream(seed, "ssd-detailed");
        let mut map = Map::new(&p, fill::blocks(&p) as u32);
        let host = p.buffer;
        let mut units: Vec<Unit> = (0..p.units)
            .map(|u| {
                let from = host + u * 2 * p.k;
                Unit::new(u % p.channels, p.k, from..from + 2 * p.k)
            })
            .collect();
        fill::prepare(&p, &mut map, &mut units, &mut rng);
        let slots = (host + p.units * 2 * p.k) as usize;
        let ring = if p.read_ahead > 0 {
            (2 * p.read_ahead as usize).next_power_of_two()
        } else {
            0
        };
        let ahead = Ahead {
            ring: vec![READY; ring],
            ..Ahead::default()
        };
        let share = p.pages as f64 / f64::from(p.units);
        let name = if scale > 1 {
            format!("{} at 1/{scale} of its capacity", p.name)
        } else {
            p.name.clone()
        };
        let held: u64 = (0..units.len()).map(|u| u64::from(map.held(u))).sum();
        let free = 1.0 - held as f64 / p.pages as f64;
        let slc_limit = p.slc_static + ((p.slc_pages - p.slc_static) as f64 * free) as u64;
        let mut idle = [0; 4];
        for u in 0..units.len() {
            idle[u / 64] |= 1 << (u % 64);
        }
        let aged = matches!(p.state, super::State::Used | super::State::Steady);
        Ok(DetailedSsd {
            facts: facts(&p, &name, p.pages),
            scale,
            rng,
            front: Front::new(&p),
            map,
            cache: MapCache::new(p.pages, p.map_cache),
            events: Tree::new(units.len()),
            units,
            idle,
            channels: vec![0; p.channels as usize],
            ops: Ops::default(),
            cmds: Vec::with_capacity(p.depth as usize),
            cmd_free: Vec::with_capacity(p.depth as usize),
            hits_in: VecDeque::with_capacity(p.depth as usize),
            reads_in: VecDeque::with_capacity(p.depth as usize),
            writes_in: VecDeque::with_capacity(p.depth as usize),
            buffer: Buffer {
                lpn: vec![NONE; slots],
                period: vec![0; host as usize],
                taken: vec![false; slots],
                free: (0..host).rev().collect(),
                line: VecDeque::with_capacity(host as usize),
                left: VecDeque::from([0]),
                ..Buffer::default()
            },
            readers: Streams::new(),
            ahead: vec![ahead; STREAMS],
            turn: 0,
            slc_used: if aged { slc_limit } else { 0 },
            slc_limit,
            finishes: Finishes::new(p.depth),
            open: 0,
            latest: 0,
            alone: None,
            busy: Busy::default(),
            now: 0,
            hits: 0,
            wear: Wear::default(),
            unit_max: (share * (1.0 + p.rho / 2.0)) as u32,
            owed_max: 2.0 * f64::from(p.block),
            log: EventLog::default(),
            p,
        })
    }

    /// Returns the scale: the modelled drive has 1/`scale` of the capacity.
    pub fn scale(&self) -> u64 {
        self.scale
    }
    /// Returns the numbers of flash operations so far.
    pub fn wear(&self) -> Wear {
        self.wear
    }
    /// Returns the size of the tables that grow with the capacity, in bytes.
    pub fn table_bytes(&self) -> u64 {
        table_bytes(&self.p)
    }
    /// Checks every count against the whole map. Returns the numbers of user pages by place.
    pub fn check(&self) -> Result<Counts, String> {
        self.map.check()
    }
    /// Returns the lowest and the highest erase count among the blocks of a unit.
    pub fn erase_spread(&self, unit: u32) -> (u32, u32) {
        let from = unit * self.map.blocks;
        let erases = || (from..from + self.map.blocks).map(|b| self.map.erases(b));
        (erases().min().unwrap_or(0), erases().max().unwrap_or(0))
    }

    /// Processes the internal events up to `to`.
    #[inline]
    fn run_to(&mut self, to: u64) {
        loop {
            let front = |q: &VecDeque<(u64, u32)>| q.front().map_or(NEVER, |e| e.0);
            let (h, r, w) = (
                front(&self.hits_in),
                front(&self.reads_in),
                front(&self.writes_in),
            );
            let u = self.events.least();
            let t = h.min(r).min(w).min(u);
            if t > to || t == NEVER {
                break;
            }
            self.now = t;
            if h == t {
                if let Some((_, c)) = self.hits_in.pop_front() {
                    self.reply(c, t);
                }
            } else if r == t {
                if let Some((_, c)) = self.reads_in.pop_front() {
                    self.arrive_read(c, t);
                }
            } else if w == t {
                if let Some((_, c)) = self.writes_in.pop_front() {
                    self.arrive_other(c, t);
                }
            } else {
                let unit = self.events.winner();
                self.unit_event(unit, t);
            }
        }
    }

    /// Schedules the completion of a command at `at`.
    fn finish(&mut self, c: u32, at: u64) {
        let id = self.cmds[c as usize].id;
        self.cmd_free.push(c);
        self.finishes.push(at, id, false);
        self.latest = self.latest.max(at);
        self.open -= 1;
        self.begin_alone();
    }

    /// Logs that a command found all its pages in RAM.
    #[inline]
    fn note_hit(&mut self, c: u32) {
        let (now, id) = (Instant(self.now), self.cmds[c as usize].id);
        self.log.push(|| Event {
            rq: Some(RqId(id)),
            ..Event::new(now, Action::CacheHit)
        });
    }

    /// Starts the command that runs alone, when it is the only remaining command.
    fn begin_alone(&mut self) {
        if let Some((c, false)) = self.alone
            && self.open == 1
        {
            self.alone = Some((c, true));
            let at = self.front.command(self.latest.max(self.now), 1);
            self.writes_in.push_back((at, c));
        }
    }
}

impl Device for DetailedSsd {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        if self.open as usize + self.finishes.len() >= self.facts.commands() || self.alone.is_some()
        {
            return Accept::Busy;
        }
        let t = now.0;
        self.run_to(t);
        self.now = t;
        if out_of_range(&command, self.facts.capacity)
            || command.sectors.0 == 0 && command.op != Op::Flush
        {
            let at = self.front.command(t, 1);
            self.latest = self.latest.max(at);
            self.busy.note(t, at);
            let error = out_of_range(&command, self.facts.capacity);
            self.finishes.push(at, command.id, error);
            return Accept::Accepted;
        }
        self.take_in(t, &command);
        Accept::Accepted
    }

    fn next_event(&self) -> Option<Instant> {
        let front = |q: &VecDeque<(u64, u32)>| q.front().map_or(NEVER, |e| e.0);
        let t = self
            .finishes
            .next()
            .min(self.events.least())
            .min(front(&self.hits_in))
            .min(front(&self.reads_in))
            .min(front(&self.writes_in));
        (t != NEVER).then_some(Instant(t))
    }

    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        self.run_to(to.0);
        while let Some(d) = self.finishes.pop(to.0) {
            self.busy.note(self.busy.until(), d.at.0);
            if self.open == 0 && self.finishes.len() == 0 {
                self.alone = None;
            }
            out.push(d);
        }
    }

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn stats(&self) -> DeviceStats {
        let w = &self.wear;
        DeviceStats {
            busy: self.busy.total(),
            cache_hits: self.hits,
            media_ops: w.array_reads
                + (w.host_pages + w.copied_pages + w.padded_pages) / u64::from(self.p.k)
                + w.erases,
            internal_bytes: (w.copied_pages + w.padded_pages) * 4096,
            ..DeviceStats::default()
        }
    }

    fn listen(&mut self, tap: Option<&Tap>) {
        self.log.join(tap.cloned());
    }
    fn state(&self, out: &mut String) {
        use std::fmt::Write;
        let free = self.units.iter().map(|u| u.free.len());
        let (least, most) = (free.clone().min().unwrap_or(0), free.max().unwrap_or(0));
        let _ = write!(
            out,
            "detailed variant at 1/{} of the capacity ({} MiB of tables); {} in flight, {} pages \
             of the buffer free; {least} to {most} of {} blocks of a unit free; written pages \
             amplified {:.2} times; {} erases, {} suspensions",
            self.scale,
            self.table_bytes() >> 20,
            self.open as usize + self.finishes.len(),
            self.buffer.free.len(),
            self.map.blocks,
            self.wear.amplification(),
            self.wear.erases,
            self.wear.suspensions,
        );
        if self.scale > 1 && u64::from(self.map.blocks) < UNIT_BLOCKS / 2 {
            let _ = write!(
                out,
                "; these are so few that write amplification is too low"
            );
        }
        if self.slc_limit > 0 {
            let _ = write!(
                out,
                "; fast region {} of {} MiB used",
                self.slc_used / 256,
                self.slc_limit / 256
            );
        }
    }
}
