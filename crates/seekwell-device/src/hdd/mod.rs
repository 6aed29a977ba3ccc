//! A hard disk: one arm, one spindle, a segmented read cache with read-ahead, a write cache, and
//! the command queue of the drive.
//!
//! The model computes the position of each sector and the time at which it passes under its head.
//! All times are integers in units of 1/1024 ns, so rounding errors cannot make sequential access
//! lose a revolution. When the mechanism becomes free, the model selects one of the waiting
//! commands. It then computes the whole media operation in one step.
//!
//! The model leaves out shingled drives, drives with two actuators, thermal recalibration,
//! vibration, power states and adaptive segmentation. Transfers over the link overlap with the work
//! of the mechanism. The link limits the rate of cache hits, and the rate of reads if it is slower
//! than the medium. If the link is at least as fast as the medium, cache hits do not wait for the
//! transfers of other reads. Read-ahead does not count as busy time.

mod choice;
mod clock;
mod closed;
mod dirty;
mod fast;
mod geometry;
mod laps;
mod mech;
mod params;
mod queue;
mod readahead;
mod seek;
mod segments;
mod service;

pub use closed::ClosedForms;
pub use fast::FastHdd;
pub use geometry::{Geometry, Place};
pub use params::{Choice, DEFS, HddParams, Layout, Zones};
pub use seek::{SeekCurve, SeekForm};

use crate::constant::out_of_range;
use crate::error::ParamError;
use choice::Rules;
use clock::Clock;
use dirty::{Dirty, Flight};
use mech::Mech;
use queue::{Queue, Queued};
use rand::RngCore;
use readahead::ReadAhead;
use seekwell_core::rng::{self, Pcg64Mcg};
use seekwell_core::{
    Accept, Action, Command, Device, DeviceFacts, DeviceStats, Done, Event, EventLog, More, RqId,
    Sector, Sectors, Tap,
};
use seekwell_core::{Instant, Nanos, Op};
use segments::Segments;
use std::collections::VecDeque;

/// Time in units of 1/1024 ns.
pub(crate) type Ticks = u64;

const TICK_BITS: u32 = 10;
/// The time of an event that never occurs.
const NEVER: Ticks = Ticks::MAX;

pub(crate) fn ticks_ms(ms: f64) -> Ticks {
    libm::round(ms * 1_024_000_000.0) as Ticks
}
/// Returns a uniformly distributed random number in [0, 1).
fn unit(rng: &mut Pcg64Mcg) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// The current activity of the mechanism.
#[derive(Debug, Clone, Copy)]
enum Activity {
    Idle,
    /// Command overhead of the firmware, before it selects a command.
    Think,
    /// Reads, writes or destages until a known time.
    Read {
        from: u64,
        to: u64,
        sequential: bool,
    },
    Write {
        from: u64,
        to: u64,
    },
    Destage(Flight),
    /// Reads ahead, as described in [`Hdd::ra`].
    ReadAhead,
}

/// The target of a head movement. Background work has no command id.
struct Moved {
    id: Option<u32>,
    lba: u64,
    n: u32,
    write: bool,
}

/// A write that waits for space in the cache.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    id: u32,
    lba: u64,
    n: u32,
    arrived: Ticks,
}

/// A completion in the future.
#[derive(Debug, Clone, Copy)]
struct Finish {
    at: Ticks,
    id: u32,
    error: bool,
}

/// Times and sizes that the service loop needs, in ticks and sectors.
#[derive(Debug, Clone)]
struct Costs {
    overhead: Ticks,
    hit: Ticks,
    status: Ticks,
    /// Transfer time of a sector on the link, in 1/1024 ticks.
    link: u64,
    /// Minimum time between the end of a media operation and the completion of its command. It does
    /// not apply to flushes.
    gap: Ticks,
    ra_max: u64,
    ra_min: u64,
    wc_idle: Ticks,
    wc_hi: f64,
    wc_lo: f64,
    write_cache: bool,
    p_miss: f64,
    p_err: f64,
    t_err: Ticks,
    physical: u64,
}

/// A hard disk of the full model; see the module.
#[derive(Debug, Clone)]
pub struct Hdd {
    facts: DeviceFacts,
    rng: Pcg64Mcg,
    clock: Clock,
    mech: Mech,
    segments: Segments,
    dirty: Dirty,
    rules: Rules,
    cost: Costs,
    queue: Queue,
    waiting: VecDeque<Waiting>,
    flush: Option<u32>,
    activity: Activity,
    ra: ReadAhead,
    /// Time at which the activity ends, or at which the mechanism must be checked again.
    next: Ticks,
    /// Completions in the future, latest first.
    finished: Vec<Finish>,
    outstanding: u32,
    link_free: Ticks,
    /// True while destaging is forced, which lasts until the fill level reaches the low mark.
    /// `destage_turn` is true if the next media operation is a destage operation.
    forced: bool,
    destage_turn: bool,
    /// Time of the last command or completion of the host.
    host_at: Ticks,
    /// Sector after the last accepted read. `write_end` is the sector after the last write on the
    /// medium, and the time of that write.
    read_end: u64,
    write_end: (u64, Ticks),
    busy_to: Ticks,
    busy: Ticks,
    hits: u64,
    media_ops: u64,
    internal: u64,
    log: EventLog,
    /// Time of the current decision, which events report. The operation itself can begin slightly
    /// later.
    told: Ticks,
}

impl Hdd {
    /// Makes a drive. The platter phase depends on the seed.
    pub fn new(p: &HddParams, seed: u64) -> Result<Self, ParamError> {
        let mut rng = rng::stream(seed, "hdd");
        let mech = Mech::new(p, &mut rng)?;
        let disorder = match p.layout {
            Layout::Cylinder => 0,
            Layout::Serpentine(w) => w.saturating_mul(2),
        };
        let facts = DeviceFacts {
            rotational: true,
            write_cache: p.write_cache,
            fua: p.fua,
            flush_queueable: false,
            physical_block_bytes: p.physical as u32 * 512,
            ..DeviceFacts::plain(&p.name, Sector(p.capacity), p.depth)
        };
        let depth = p.depth as usize;
        let (hit, status) = (ticks_ms(p.hit_overhead_ms), ticks_ms(p.status_ms));
        let link = (512.0 / p.bus_mb * 1000.0 * 1024.0 * 1024.0) as u64;
        let most = mech.geometry.zones().map(|z| z.1).max().unwrap_or(1);
        let sector = mech.turn() / Ticks::from(most.max(1));
        let queue = Queue::with_capacity(depth, mech.turn());
        Ok(Hdd {
            facts,
            rng,
            clock: Clock::default(),
            mech,
            segments: Segments::new(p.segments_read, p.segments_write, p.segment),
            dirty: Dirty::new(
                p.wc_sectors,
                p.wc_cmds,
                p.destage_window,
                disorder,
                p.physical,
            ),
            rules: Rules {
                choice: p.choice,
                window: p.window.max(1) as usize,
                guard: ticks_ms(p.guard_ms),
                age_limit: ticks_ms(p.age_limit_ms),
                age_weight: p.age_weight,
            },
            cost: Costs {
                overhead: ticks_ms(p.overhead_ms),
                hit,
                status,
                link,
                // A cache hit, and a read from the medium, transfers at least one sector over the
                // link. A write takes at least the time of one sector on the medium.
                gap: (hit + (link >> 10)).min(status + (link >> 10).min(sector)),
                ra_max: p.ra_max,
                ra_min: p.ra_min,
                wc_idle: ticks_ms(p.wc_idle_ms),
                wc_hi: p.wc_marks.0,
                wc_lo: p.wc_marks.1,
                write_cache: p.write_cache,
                p_miss: p.p_miss,
                p_err: p.p_err,
                t_err: ticks_ms(p.t_err_ms),
                physical: p.physical,
            },
            queue,
            waiting: VecDeque::with_capacity(depth),
            flush: None,
            activity: Activity::Idle,
            ra: ReadAhead::default(),
            next: NEVER,
            finished: Vec::with_capacity(depth + 1),
            outstanding: 0,
            link_free: 0,
            forced: false,
            destage_turn: false,
            host_at: 0,
            read_end: u64::MAX,
            write_end: (u64::MAX, 0),
            busy_to: 0,
            busy: 0,
            hits: 0,
            media_ops: 0,
            internal: 0,
            log: EventLog::default(),
            told: 0,
        })
    }

    /// Returns the mapping of addresses to positions of this drive.
    pub fn geometry(&self) -> &Geometry {
        &self.mech.geometry
    }
    /// Returns the number of extents in the write cache.
    pub fn dirty_extents(&self) -> usize {
        self.dirty.len()
    }

    fn note_busy(&mut self, from: Ticks, to: Ticks) {
        self.busy += to.saturating_sub(from.max(self.busy_to));
        self.busy_to = self.busy_to.max(to);
    }

    /// Schedules the completion of command `id` at `at`.
    fn complete(&mut self, at: Ticks, arrived: Ticks, id: u32, error: bool) {
        self.note_busy(arrived, at);
        self.host_at = self.host_at.max(at);
        // Few completions are pending, and most new ones belong near the end of the list that is
        // searched.
        let i = self.finished.partition_point(|f| f.at > at);
        self.finished.insert(i, Finish { at, id, error });
    }

    /// Returns the time at which a transfer of `n` sectors over the link ends, if it is requested
    /// at `t`.
    fn link(&mut self, t: Ticks, n: u32) -> Ticks {
        let end = t.max(self.link_free) + ((u64::from(n) * self.cost.link) >> 10);
        self.link_free = end;
        end
    }
    /// Returns the time at which `n` sectors, whose last one the head passed at `end`, have reached
    /// the host. If the link is as fast as the medium, the transfer ends one sector later than
    /// `end`. On a slower link, the transfer starts with the first sector, or when the link is
    /// free. The link is then occupied until the transfer ends.
    fn over_link(&mut self, n: u32, end: Ticks) -> Ticks {
        let took = (u64::from(n) * self.cost.link) >> 10;
        let passed = self.mech.on_medium(end);
        if took <= passed + (self.cost.link >> 10) {
            return end + (self.cost.link >> 10);
        }
        self.link(end - passed, n)
    }
    /// Serves a command from a cache at `t`, and schedules its completion.
    fn hit(&mut self, t: Ticks, arrived: Ticks, id: u32, n: u32) {
        self.hits += 1;
        let (clock, told) = (self.clock, self.told);
        self.log.push(|| Event {
            rq: Some(RqId(id)),
            ..Event::new(clock.instant(told), Action::CacheHit)
        });
        let at = self.link(t + self.cost.hit, n);
        self.complete(at, arrived, id, false);
    }

    /// Logs that the head leaves sector `from` at `t` for an operation that ends at `end`.
    fn note_head(&mut self, t: Ticks, from: u64, moved: &Moved, end: Ticks) {
        let (clock, told) = (self.clock, self.told);
        self.log.push(|| Event {
            rq: moved.id.map(RqId),
            op: if moved.write { Op::Write } else { Op::Read },
            sector: Sector(moved.lba),
            sectors: Sectors(moved.n),
            more: More::Head {
                from: Sector(from),
                begin: clock.instant(t),
                until: clock.instant(end),
            },
            ..Event::new(clock.instant(told), Action::Head)
        });
    }

    /// Moves the completions up to `to` into `out`.
    fn take(&mut self, to: Instant, out: &mut Vec<Done>) {
        while let Some(f) = self.finished.last() {
            let at = self.clock.instant(f.at);
            if at > to {
                break;
            }
            out.push(Done {
                id: f.id,
                at,
                error: f.error,
            });
            self.outstanding -= 1;
            self.finished.pop();
        }
    }

    /// Processes the internal events up to `to`.
    fn run_to(&mut self, to: Ticks) {
        while self.next <= to {
            let t = self.next;
            self.told = t;
            self.step(t);
        }
    }
}

impl Device for Hdd {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        if self.outstanding >= self.facts.depth || self.flush.is_some() {
            return Accept::Busy;
        }
        let t = self.ticks(now);
        self.run_to(t);
        self.told = t;
        self.outstanding += 1;
        self.host_at = self.host_at.max(t);
        let (lba, n) = (command.sector.0, command.sectors.0);
        if out_of_range(&command, self.facts.capacity) {
            self.complete(t + self.cost.hit, t, command.id, true);
            return Accept::Accepted;
        }
        match command.op {
            Op::Flush => self.arrive_flush(t, command.id),
            Op::Discard => self.complete(t + self.cost.hit, t, command.id, false),
            _ if n == 0 => self.complete(t + self.cost.hit, t, command.id, false),
            Op::Read => self.arrive_read(t, command.id, lba, n),
            Op::Write | Op::WriteZeroes => self.arrive_write(t, command.id, lba, n, command.fua),
        }
        Accept::Accepted
    }

    fn next_event(&self) -> Option<Instant> {
        let done = self.finished.last().map_or(NEVER, |f| f.at);
        // A media operation usually ends shortly before its command completes. The end of the
        // operation can be processed at the completion, unless an event log is attached.
        let unseen = self.next.saturating_add(self.cost.gap);
        let t = if done <= unseen && self.flush.is_none() && !self.log.listening() {
            done
        } else {
            done.min(self.next)
        };
        (t != NEVER).then(|| self.clock.instant(t))
    }

    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        // If `to` is beyond the range of ticks, only background work of the disk can remain.
        let reach = self.clock.ticks(to);
        self.run_to(reach);
        self.take(to, out);
        if to != Instant::FAR && self.clock.beyond(to) {
            let t = self.ticks(to);
            self.run_to(t);
            self.take(to, out);
        }
    }

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn stats(&self) -> DeviceStats {
        let nanos = |t: Ticks| Nanos(t >> TICK_BITS);
        let spent = self.mech.spent;
        DeviceStats {
            busy: nanos(self.busy),
            cache_hits: self.hits,
            media_ops: self.media_ops,
            seek_sectors: spent.sectors,
            seeks: spent.seeks,
            seek_time: nanos(spent.seek),
            rotation_time: nanos(spent.rotation),
            internal_bytes: self.internal,
        }
    }

    fn listen(&mut self, tap: Option<&Tap>) {
        self.log.join(tap.cloned());
    }
    fn state(&self, out: &mut String) {
        use std::fmt::Write;
        let doing = match self.activity {
            Activity::Idle => "idle",
            Activity::Think => "choosing",
            Activity::Read { .. } => "reading",
            Activity::Write { .. } => "writing",
            Activity::Destage(_) => "destaging",
            Activity::ReadAhead => "reading ahead",
        };
        let at = self.mech.at;
        let _ = write!(
            out,
            "{doing}, cylinder {} head {} sector {}; {} queued, {} waiting for room, {} dirty \
             extents{}",
            at.cyl,
            at.head,
            at.lba,
            self.queue.len(),
            self.waiting.len(),
            self.dirty.len(),
            if self.flush.is_some() {
                ", flushing"
            } else {
                ""
            }
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parameters of an embedded drive.
    pub(super) fn params(name: &str) -> HddParams {
        let preset = crate::read_preset(&format!("hdd:{name}")).unwrap();
        HddParams::from_preset(&preset).unwrap()
    }
}
