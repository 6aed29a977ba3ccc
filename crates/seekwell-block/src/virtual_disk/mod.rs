//! The disk of a guest. It is a device that contains a whole block layer of the host.
//!
//! ```text
//! guest's queue -> ring -> exit -> I/O thread (serial) -> [host page cache] -> host's queue -> irq
//! ```
//!
//! The host issues all I/O of one guest in one io context. The sink determines the sectors on the
//! host's device. A volume is a [`crate::raid::Linear`] or the queue itself. An aged image is a
//! [`crate::raid::Remapped`]. Neighbours are other programs on the same host, each with its own
//! context. If a host has several guests, each guest is a neighbour of the others.
//!
//! Not modelled: the image's own metadata writes, huge pages, live migration, throttling by the
//! host, and polled rings. A thread always serves the same ring.

mod neighbours;
mod page_cache;

use neighbours::Crowd;
use page_cache::PageCache;
use seekwell_core::{
    Accept, Action, Bio, BioDone, BioSink, Command, Device, DeviceFacts, DeviceStats, Done, Event,
    EventLog, Flags, Instant, MemberId, More, Nanos, Op, Sectors, Snapshot, Tap, TaskId,
};
use seekwell_device::GuestParams;
use seekwell_device::guest::CacheMode;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Task of the host's thread that writes back its page cache.
const FLUSHER: TaskId = TaskId(2);
/// Task of the QEMU process.
const GUEST: TaskId = TaskId(1);
/// Task of the first neighbour.
const NEIGHBOUR: u32 = 10;
/// Sectors of a page.
const PAGE: u64 = 8;
/// Largest number of pages written back in one bio.
const RUN: u64 = 256;
/// Neighbours continue while the guest is idle. If it is idle for longer than this, only the end of
/// the idle time is simulated.
const CATCH_UP: Nanos = Nanos::from_secs(10);
/// First bio id for bios of the disk itself. Commands of the guest have lower ids.
const WRITE_BACK: u64 = 1 << 32;
const CROWD: u64 = 1 << 48;

/// A command of the guest.
#[derive(Debug, Clone, Copy)]
struct Inside {
    command: Command,
    left: u32,
    error: bool,
    /// The data must reach the medium, so the host flushes its cache after the command.
    sync: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The I/O thread has taken a command.
    Taken(u32),
    /// The guest is notified.
    Done(u32),
}

/// The disk of a guest, as described in the module.
pub struct VirtualDisk<B> {
    facts: DeviceFacts,
    p: GuestParams,
    host: B,
    inside: Vec<Inside>,
    free: Vec<u32>,
    outstanding: u32,
    threads: Vec<Instant>,
    next_thread: usize,
    events: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    sequence: u64,
    now: Instant,
    cache: PageCache,
    /// Writes that wait until the dirty pages are below the limit. `flushing`: flushes that wait
    /// until pages are written.
    throttled: Vec<u32>,
    flushing: Vec<u32>,
    write_backs: u32,
    /// Number of the next write-back bio.
    next_write_back: u32,
    crowd: Crowd,
    buf: Vec<BioDone>,
    stats: DeviceStats,
    busy_since: Option<Instant>,
    /// Log of events, with the number of the host in the stream.
    log: EventLog,
    host_id: MemberId,
}

impl<B: BioSink> VirtualDisk<B> {
    /// Creates a disk on the sink of a host. `seed` varies the neighbours.
    pub fn new(p: GuestParams, host: B, seed: u64) -> Self {
        let cached = !matches!(p.cache, CacheMode::None | CacheMode::Directsync);
        let facts = DeviceFacts {
            rotational: p.rotational,
            hw_queues: p.queues.min(u32::from(u16::MAX)) as u16,
            // A disk with `unsafe` also reports a cache. Its flushes cost only an exit of the
            // guest.
            write_cache: !matches!(p.cache, CacheMode::Writethrough | CacheMode::Directsync),
            max_sectors: Sectors(p.max_sectors),
            ..DeviceFacts::plain(&p.name, host.capacity(), p.depth)
        };
        let crowd = Crowd::new(
            &p.neighbours,
            p.neighbour_depth,
            NEIGHBOUR,
            host.capacity().0,
            seed,
        );
        VirtualDisk {
            facts,
            host,
            inside: Vec::new(),
            free: Vec::new(),
            outstanding: 0,
            threads: vec![Instant::default(); p.threads.max(1) as usize],
            next_thread: 0,
            events: BinaryHeap::new(),
            sequence: 0,
            now: Instant::default(),
            cache: PageCache::new(if cached { p.pages as usize } else { 0 }, p.expire),
            throttled: Vec::new(),
            flushing: Vec::new(),
            write_backs: 0,
            next_write_back: 0,
            crowd,
            buf: Vec::new(),
            stats: DeviceStats::default(),
            busy_since: None,
            log: EventLog::default(),
            host_id: MemberId::default(),
            p,
        }
    }
    /// Returns the sink of the host.
    pub fn host(&self) -> &B {
        &self.host
    }
    /// Returns the number of requests that each neighbour has completed.
    pub fn neighbours(&self) -> &[u64] {
        self.crowd.completed()
    }

    fn event(&mut self, at: Instant, e: Due) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, e)));
    }
    /// Called when all parts of a command have completed. Notifies the guest, or flushes before
    /// that.
    fn finished(&mut self, id: u32) {
        let i = &mut self.inside[id as usize];
        if std::mem::take(&mut i.sync) && !i.error {
            return self.host_flush(id);
        }
        self.event(self.now + self.p.irq, Due::Done(id));
    }
    fn part_done(&mut self, id: u32, error: bool) {
        let i = &mut self.inside[id as usize];
        i.left -= 1;
        i.error |= error;
        if i.left == 0 {
            self.finished(id);
        }
    }
    fn host_flush(&mut self, id: u32) {
        self.inside[id as usize].left = 1;
        let bio = Bio::new(u64::from(id), GUEST, Op::Flush, Flags::SYNC, 0, 0);
        self.below(Some(id), bio);
    }
    fn host_io(&mut self, id: u32, op: Op, sector: u64, sectors: u32) {
        self.inside[id as usize].left += 1;
        // The host waits for O_DIRECT writes and synchronous writes.
        let flags = if op == Op::Read {
            Flags::empty()
        } else {
            Flags::SYNC
        };
        let bio = Bio::new(u64::from(id), GUEST, op, flags, sector, sectors);
        self.below(Some(id), bio);
    }
    /// Submits a bio to the host, for a command of the guest or for the page cache.
    fn below(&mut self, id: Option<u32>, bio: Bio) {
        let (now, member, inside) = (self.now, self.host_id, &self.inside);
        self.log.push(|| {
            let command = id.map(|i| inside[i as usize].command);
            let blank = || Event::new(now, Action::Remap);
            Event {
                more: More::To {
                    member,
                    bio: bio.id,
                    sector: bio.sector,
                    sectors: bio.sectors,
                },
                ..command.map_or_else(blank, |c| Event::of_command(now, Action::Remap, &c))
            }
        });
        self.host.submit(now, bio);
    }

    /// Handles a command that the I/O thread has taken.
    fn taken(&mut self, id: u32) {
        let c = self.inside[id as usize].command;
        let (at, n) = (c.sector.0, c.sectors.0);
        let beyond = at
            .checked_add(u64::from(n))
            .is_none_or(|e| e > self.facts.capacity.0);
        if c.op != Op::Flush && beyond {
            self.inside[id as usize].error = true;
            return self.event(self.now + self.p.irq, Due::Done(id));
        }
        let direct = matches!(self.p.cache, CacheMode::None | CacheMode::Directsync);
        match c.op {
            Op::Flush => match self.p.cache {
                CacheMode::Unsafe => self.event(self.now + self.p.irq, Due::Done(id)),
                _ => {
                    // fsync: the dirty pages are written, and then the cache of the host's device
                    // is flushed.
                    self.flushing.push(id);
                    self.write_back(usize::MAX);
                    self.flush_waiters();
                }
            },
            _ if n == 0 || c.op == Op::Discard => {
                self.event(self.now + self.p.irq, Due::Done(id));
            }
            Op::Read if direct => self.host_io(id, Op::Read, at, n),
            Op::Read => self.cached_read(id, at, u64::from(n)),
            _ => {
                let sync = matches!(
                    self.p.cache,
                    CacheMode::Writethrough | CacheMode::Directsync
                );
                self.inside[id as usize].sync = sync || c.fua;
                match self.p.cache {
                    CacheMode::None | CacheMode::Directsync => self.host_io(id, Op::Write, at, n),
                    CacheMode::Writethrough => {
                        self.cache.fill(
                            at / PAGE,
                            (at + u64::from(n)).div_ceil(PAGE),
                            false,
                            self.now,
                        );
                        self.host_io(id, Op::Write, at, n);
                    }
                    CacheMode::Writeback | CacheMode::Unsafe => {
                        self.throttled.push(id);
                        self.admit();
                    }
                }
            }
        }
    }
    fn cached_read(&mut self, id: u32, at: u64, n: u64) {
        let (from, to) = (at / PAGE, (at + n).div_ceil(PAGE));
        if self.cache.has(from, to) {
            self.stats.cache_hits += 1;
            let (now, command) = (self.now, self.inside[id as usize].command);
            self.log
                .push(|| Event::of_command(now, Action::CacheHit, &command));
            let copied = Nanos(self.p.copy_page.0 * (to - from));
            return self.event(self.now + copied + self.p.irq, Due::Done(id));
        }
        let end = (to * PAGE).min(self.facts.capacity.0);
        self.cache.fill(from, to, false, self.now);
        self.host_io(id, Op::Read, from * PAGE, (end - from * PAGE) as u32);
    }
    /// Lets waiting writes use the page cache as long as it is below its limit.
    fn admit(&mut self) {
        let limit = self.p.dirty.1 as usize;
        while let Some(id) = self.throttled.first().copied() {
            if self.cache.dirty() + self.write_backs as usize >= limit {
                self.write_back(limit / 4 + 1);
                return;
            }
            self.throttled.remove(0);
            let c = self.inside[id as usize].command;
            let (from, to) = (
                c.sector.0 / PAGE,
                (c.sector.0 + u64::from(c.sectors.0)).div_ceil(PAGE),
            );
            self.cache.fill(from, to, true, self.now);
            let copied = Nanos(self.p.copy_page.0 * (to - from));
            self.event(self.now + copied + self.p.irq, Due::Done(id));
            if self.cache.dirty() > self.p.dirty.0 as usize {
                self.write_back(self.cache.dirty() - self.p.dirty.0 as usize);
            }
        }
    }
    /// Writes back dirty pages in the order of their addresses. A contiguous run is one bio.
    fn write_back(&mut self, mut pages: usize) {
        while pages > 0 {
            let Some((page, n)) = self.cache.take_run(RUN) else {
                return;
            };
            pages = pages.saturating_sub(n as usize);
            let end = ((page + n) * PAGE).min(self.facts.capacity.0);
            self.write_backs += n as u32;
            // Bios in progress must have different ids. The host may split a bio and then counts
            // the pieces by id.
            let id = WRITE_BACK + (n << 33) + u64::from(self.next_write_back);
            self.next_write_back = self.next_write_back.wrapping_add(1);
            let sync = !self.flushing.is_empty();
            let flags = if sync { Flags::SYNC } else { Flags::empty() };
            let sectors = (end - page * PAGE) as u32;
            let bio = Bio::new(id, FLUSHER, Op::Write, flags, page * PAGE, sectors);
            self.below(None, bio);
        }
    }
    /// Sends flushes to the device, if the pages that they waited for have been written.
    fn flush_waiters(&mut self) {
        if self.write_backs > 0 || self.cache.dirty() > 0 {
            return;
        }
        for id in std::mem::take(&mut self.flushing) {
            self.host_flush(id);
        }
    }
    fn host_done(&mut self, d: BioDone) {
        match d.id.0 {
            id if id >= CROWD => self.crowd.done(self.now, (id - CROWD) as usize),
            id if id >= WRITE_BACK => {
                self.write_backs -= ((id - WRITE_BACK) >> 33) as u32;
                if !self.flushing.is_empty() {
                    self.write_back(usize::MAX);
                }
                self.flush_waiters();
                self.admit();
            }
            id => self.part_done(id as u32, d.error),
        }
    }
}

impl<B: BioSink> Device for VirtualDisk<B> {
    fn accept(&mut self, now: Instant, command: Command) -> Accept {
        if self.outstanding as usize >= self.facts.commands() {
            return Accept::Busy;
        }
        let rests = self.outstanding == 0 && self.write_backs == 0 && self.cache.dirty() == 0;
        if rests {
            let late = Instant(now.0.saturating_sub(CATCH_UP.0));
            self.now = self.now.max(late);
        }
        self.outstanding += 1;
        self.busy_since.get_or_insert(now);
        self.crowd.begin(now);
        let i = Inside {
            command,
            left: 0,
            error: false,
            sync: false,
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
        // The threads are used in turn. A thread serves one request at a time.
        let thread = self.next_thread % self.threads.len();
        self.next_thread += 1;
        let t = &mut self.threads[thread];
        *t = (now + self.p.exit).max(*t) + self.p.thread;
        let at = *t;
        self.event(at, Due::Taken(id));
        Accept::Accepted
    }
    fn next_event(&self) -> Option<Instant> {
        let own = self.events.peek().map(|e| e.0.0);
        // Neighbours alone do not keep the simulation running. They run while a request of the
        // guest waits.
        let busy = self.outstanding > 0 || self.write_backs > 0 || self.cache.dirty() > 0;
        let below = self.host.next_event().filter(|_| busy);
        let crowd = self.crowd.next().filter(|_| busy);
        let expire = self.cache.next_expiry();
        own.into_iter()
            .chain(below)
            .chain(crowd)
            .chain(expire)
            .min()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        while let Some(t) = self.next_event().filter(|t| *t <= to) {
            let t = t.max(self.now);
            self.now = t;
            let mut buf = std::mem::take(&mut self.buf);
            if self.host.next_event().is_some_and(|e| e <= t) {
                self.host.advance(t, &mut buf);
            }
            for d in buf.drain(..) {
                self.host_done(d);
            }
            self.buf = buf;
            while let Some(Reverse((at, _, e))) = self.events.peek().copied()
                && at <= t
            {
                self.events.pop();
                match e {
                    Due::Taken(id) => self.taken(id),
                    Due::Done(id) => {
                        let i = self.inside[id as usize];
                        self.free.push(id);
                        self.outstanding -= 1;
                        if self.outstanding == 0
                            && let Some(since) = self.busy_since.take()
                        {
                            self.stats.busy += at.since(since);
                        }
                        self.stats.media_ops += 1;
                        out.push(Done {
                            id: i.command.id,
                            at,
                            error: i.error,
                        });
                    }
                }
            }
            while let Some((i, bio)) = self.crowd.take(t) {
                let id = seekwell_core::BioId(CROWD + i as u64);
                self.host.submit(t, Bio { id, ..bio });
            }
            if self.cache.next_expiry().is_some_and(|e| e <= t) {
                self.cache.expire(t);
                self.write_back(usize::MAX);
            }
        }
    }
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn stats(&self) -> DeviceStats {
        self.stats
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        self.log.join(tap.cloned());
        let host = tap.map(|t| t.member("host"));
        self.host_id = host.as_ref().map(Tap::id).unwrap_or_default();
        self.host.listen(host.as_ref());
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        self.host.snapshot(now, out);
    }
    fn state(&self, out: &mut String) {
        use std::fmt::Write;
        let _ = write!(
            out,
            "{} inside, {} pages dirty on the host",
            self.outstanding,
            self.cache.dirty()
        );
    }
}
