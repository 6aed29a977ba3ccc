//! The fast model of a hard disk. It has random service times; it has no angles, no zones and no
//! read cache.
//!
//! Use this model for parameter sweeps of more than ten million requests. Its mean throughput is
//! close to that of the full model, but its tail latencies are wrong. The times of commit loops and
//! of flushes of few extents are also wrong, because they are random here and not whole
//! revolutions. The model serves commands in order of arrival, and divides the positioning time by
//! a factor that stands for the gain from reordering. Mark all results of this model as such.

use super::clock::Clock;
use super::closed::{ClosedForms, DESTAGE_GAMMA};
use super::params::HddParams;
use super::seek::SeekTable;
use super::{Finish, Ticks, ticks_ms};
use crate::constant::out_of_range;
use crate::error::ParamError;
use libm::pow;
use rand::RngCore;
use seekwell_core::rng::{self, Pcg64Mcg};
use seekwell_core::{Accept, Command, Device, DeviceFacts, DeviceStats, Done};
use seekwell_core::{Instant, Nanos, Op, Sector};

/// A hard disk of the fast model; see the module.
#[derive(Debug, Clone)]
pub struct FastHdd {
    facts: DeviceFacts,
    rng: Pcg64Mcg,
    clock: Clock,
    table: SeekTable,
    cylinders: u64,
    turn: Ticks,
    overhead: Ticks,
    hit: Ticks,
    /// Transfer time of a sector on the link.
    link: Ticks,
    /// Coefficients of the transfer rate as a function of the address (as a fraction of the
    /// capacity): constant, linear and quadratic, in sectors per tick. The tracks become shorter
    /// evenly from zone to zone, so a quadratic function fits well.
    rate: [f64; 3],
    /// 1024 divided by the gain from reordering, by queue depth.
    gain: Vec<u64>,
    /// Time to destage `c` scattered extents, for `c` = 0, 1, 2 and so on.
    destage: Vec<Ticks>,
    high: usize,
    /// Number of extents to destage. `stream` is the medium time of the cached sequential writes.
    dirty: usize,
    stream: Ticks,
    free: Ticks,
    link_free: Ticks,
    at: u64,
    write_end: u64,
    finished: Vec<Finish>,
    busy: Ticks,
    hits: u64,
    media_ops: u64,
}

impl FastHdd {
    /// Makes a drive of the fast model.
    pub fn new(p: &HddParams, seed: u64) -> Result<Self, ParamError> {
        let closed = ClosedForms::new(p)?;
        let cylinders = closed.geometry().cylinders();
        let per_tick = |share: f64| {
            let lba = (share * (p.capacity - 1) as f64) as u64;
            closed.sustained_mb(lba) / (512.0 * 1024.0 * 1e3)
        };
        // The quadratic curve passes through the rates at the outer edge, the middle and the inner
        // edge.
        let (a, m, z) = (per_tick(0.0), per_tick(0.5), per_tick(1.0));
        let rate = [a, 4.0 * m - 3.0 * a - z, 2.0 * (a + z) - 4.0 * m];
        let total = closed.random_read_ms(8);
        let fixed = p.overhead_ms + 8.0 * 512.0 / closed.sustained_mb(p.capacity / 2) / 1e3;
        let position = total - fixed;
        let gain = (0..=p.depth)
            .map(|q| {
                let q = f64::from(q.min(p.window).max(1));
                let left = (total / pow(q, p.fast_gamma) - fixed).max(position / 64.0);
                (left / position * 1024.0) as u64
            })
            .collect();
        let window = if p.destage_window == 0 {
            p.wc_cmds
        } else {
            p.destage_window
        };
        let one = total + p.write_settle_ms;
        let mut destage = vec![0];
        for c in 1..=p.wc_cmds {
            let each = one / pow(f64::from(c.min(window)), DESTAGE_GAMMA);
            destage.push(destage[c as usize - 1] + ticks_ms(each));
        }
        Ok(FastHdd {
            facts: DeviceFacts {
                rotational: true,
                write_cache: p.write_cache,
                flush_queueable: false,
                physical_block_bytes: p.physical as u32 * 512,
                // The device name marks the results of this model, because its tail latencies and
                // commit loops are not valid.
                ..DeviceFacts::plain(
                    &format!("{} (fast model)", p.name),
                    Sector(p.capacity),
                    p.depth,
                )
            },
            rng: rng::stream(seed, "hdd-fast"),
            clock: Clock::default(),
            table: SeekTable::new(closed.curve(), cylinders),
            cylinders: u64::from(cylinders),
            turn: closed.geometry().turn(),
            overhead: ticks_ms(p.overhead_ms),
            hit: ticks_ms(p.hit_overhead_ms),
            link: ticks_ms(512.0 / p.bus_mb / 1e3),
            rate,
            gain,
            high: (p.wc_marks.0 * f64::from(p.wc_cmds)) as usize,
            destage,
            dirty: 0,
            stream: 0,
            free: 0,
            link_free: 0,
            at: 0,
            write_end: u64::MAX,
            finished: Vec::with_capacity(p.depth as usize + 1),
            busy: 0,
            hits: 0,
            media_ops: 0,
        })
    }

    fn transfer(&self, lba: u64, n: u32) -> Ticks {
        let x = lba as f64 / self.facts.capacity.0 as f64;
        let [a, b, c] = self.rate;
        (f64::from(n) / (a + b * x + c * x * x)) as Ticks
    }
    /// Returns the time of the seek to `lba` and of a random rotation.
    fn position(&mut self, lba: u64) -> Ticks {
        let moved = u128::from(lba.abs_diff(self.at)) * u128::from(self.cylinders);
        let d = (moved / u128::from(self.facts.capacity.0)) as u32;
        let drawn = u128::from(self.rng.next_u64()) * u128::from(self.turn);
        self.table.ticks(d) + (drawn >> 64) as Ticks
    }

    /// Moves the origin of the clock. The model computes all background work later, on demand.
    #[cold]
    fn follow(&mut self, now: Instant) {
        let untaken = self.finished.last().map(|f| f.at);
        let by = self.clock.step(now, true, untaken);
        self.clock.shift(by);
        by.time(&mut self.free);
        by.time(&mut self.link_free);
        self.finished.iter_mut().for_each(|f| by.time(&mut f.at));
    }

    /// Destages extents while the mechanism is idle.
    fn idle_until(&mut self, t: Ticks) {
        if self.free >= t {
            return;
        }
        let mut gap = t - self.free;
        let streamed = gap.min(self.stream);
        self.stream -= streamed;
        gap -= streamed;
        if self.dirty > 0 {
            let owed = self.destage[self.dirty];
            let left = self
                .destage
                .partition_point(|d| d + gap < owed)
                .min(self.dirty);
            self.busy += owed - self.destage[left];
            self.media_ops += (self.dirty - left) as u64;
            self.dirty = left;
        }
        self.busy += streamed;
        self.free = t;
    }
    /// Writes one extent to the medium. Returns the time at which the mechanism is free; it is free
    /// to start at `t`.
    fn one_extent(&mut self, t: Ticks) -> Ticks {
        let took = self.destage[self.dirty] - self.destage[self.dirty - 1];
        self.dirty -= 1;
        self.media_ops += 1;
        t + took
    }

    fn medium(&mut self, t: Ticks, lba: u64, n: u32) -> Ticks {
        let mut start = t.max(self.free);
        if self.dirty > self.high {
            start = self.one_extent(start);
        }
        let depth = (self.finished.len() + 1).min(self.gain.len() - 1);
        let read = self.transfer(lba, n);
        let mut took = read;
        if lba != self.at {
            took += self.overhead + ((self.position(lba) * self.gain[depth]) >> 10);
        }
        self.at = lba + u64::from(n);
        self.media_ops += 1;
        self.busy += start + took - t.max(self.free);
        self.free = start + took;
        // A sequential command also has its overhead, but the mechanism does not wait for it.
        self.over_link(read, n).max(t + self.hit) + self.link
    }
    /// Returns the time at which the transfer of a read of `n` sectors ends, except for its last
    /// sector. `read` is the time that the medium needed. A link that is slower than the medium is
    /// occupied longer.
    fn over_link(&mut self, read: Ticks, n: u32) -> Ticks {
        let carry = u64::from(n.saturating_sub(1)) * self.link;
        if carry <= read {
            return self.free;
        }
        self.link_free = (self.free - read).max(self.link_free) + carry;
        self.link_free
    }

    fn cached(&mut self, t: Ticks, lba: u64, n: u32) -> Ticks {
        self.hits += 1;
        let mut done = t + self.hit + u64::from(n) * self.link;
        let full = self.destage.len() - 1;
        if lba == self.write_end {
            self.stream += self.transfer(lba, n);
            // A sequential stream of writes waits when it is faster than the medium.
            let room = self.destage[full.min(4)];
            if self.stream > room {
                let start = t.max(self.free);
                self.free = start + (self.stream - room);
                self.busy += self.stream - room;
                self.stream = room;
                done = done.max(self.free);
            }
        } else {
            if self.dirty == full {
                let start = t.max(self.free);
                self.free = self.one_extent(start);
                self.busy += self.free - start;
                done = done.max(self.free);
            }
            self.dirty += 1;
        }
        self.write_end = lba + u64::from(n);
        done
    }
}

impl Device for FastHdd {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        if self.finished.len() >= self.facts.depth as usize {
            return Accept::Busy;
        }
        if self.clock.beyond(now) {
            self.follow(now);
        }
        let t = self.clock.ticks(now);
        self.idle_until(t);
        let (lba, n) = (command.sector.0, command.sectors.0);
        let error = out_of_range(&command, self.facts.capacity);
        let at = match command.op {
            _ if error => t + self.hit,
            Op::Flush => {
                let owed = self.destage[self.dirty] + self.stream;
                if owed == 0 {
                    t.max(self.free) + self.hit
                } else {
                    self.media_ops += self.dirty as u64;
                    self.busy += owed;
                    (self.dirty, self.stream) = (0, 0);
                    self.free = self.free.max(t) + owed;
                    self.free
                }
            }
            Op::Discard => t + self.hit,
            _ if n == 0 => t + self.hit,
            Op::Write | Op::WriteZeroes if self.facts.write_cache && !command.fua => {
                self.cached(t, lba, n)
            }
            _ => self.medium(t, lba, n),
        };
        let i = self.finished.partition_point(|f| f.at > at);
        self.finished.insert(
            i,
            Finish {
                at,
                id: command.id,
                error,
            },
        );
        Accept::Accepted
    }
    fn next_event(&self) -> Option<Instant> {
        self.finished.last().map(|f| self.clock.instant(f.at))
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
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
            self.finished.pop();
        }
    }
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn stats(&self) -> DeviceStats {
        DeviceStats {
            busy: Nanos(self.busy >> super::TICK_BITS),
            cache_hits: self.hits,
            media_ops: self.media_ops,
            ..DeviceStats::default()
        }
    }
}
