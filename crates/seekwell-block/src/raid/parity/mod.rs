//! Parity arrays (md RAID 5 and 6, left-symmetric).
//!
//! Writes go through the stripe cache in rows of 4 KiB pages. A row waits for the plug of its
//! submitter, for the thread, or for pages to be read. Data that arrive for the row during this
//! time are written together. A row that is overwritten completely needs no reads. For other rows,
//! the array compares read-modify-write with reconstruct-write, and uses the method with fewer disk
//! operations. Pages stay in the cache until their head is reused. Reads go directly to the member
//! with the data, on behalf of their submitter. Reads of a failed member are computed from the
//! other members, through the cache.
//!
//! One kernel thread issues all I/O of the cache, in its own io context and under its own plug. The
//! schedulers of the members therefore get the writes of all tasks in one io context.
//!
//! Not modelled: several worker threads, growth of the cache under load, journals, the partial
//! parity log, and the limit on concurrent stripe reads. Several full stripes are not handled at
//! once, but neighbouring pages merge in the queues of the members.

mod heads;
mod options;
pub mod plan;

use super::array::{Array, Io, JoinId, Level};
use super::smallest;
use heads::{At, Heads};
pub use options::{ParityOptions, ParityStats, Step};
use plan::{How, Row, Set};
use seekwell_core::{Bio, BioSink, Control, Flags, Instant, Nanos, Op, Sector, Sectors, TaskId};
use seekwell_device::ParamError;
use seekwell_device::raid::{self, Layout};
use std::collections::VecDeque;

/// Sectors per page.
const PAGE: u64 = 8;
const FULL: u8 = 0xff;

/// A bio of which a part waits for a stripe head.
#[derive(Clone, Copy, Debug)]
struct Blocked {
    bio: Bio,
    join: JoinId,
    /// First sector that is not in the cache.
    at: u64,
}

/// The level: the stripe cache and its thread.
pub struct Striped {
    layout: Layout,
    options: ParityOptions,
    failed: Set,
    heads: Heads,
    plugs: Vec<TaskId>,
    blocked: VecDeque<Blocked>,
    /// Time until which the thread is busy.
    free_at: Instant,
    plugged: bool,
    bypassed: u32,
    watched: Option<Vec<Step>>,
    stats: ParityStats,
}

/// A RAID 5 or RAID 6 array.
pub type Parity<B> = Array<B, Striped>;

impl<B: BioSink> Parity<B> {
    /// Creates a RAID 5 or RAID 6 array. `failed` lists the failed members. `reserve` sectors at
    /// the end of every member stay unused.
    pub fn new(
        members: Vec<B>,
        level: raid::Level,
        chunk: Sectors,
        options: ParityOptions,
        failed: &[usize],
        reserve: u64,
    ) -> Result<Self, ParamError> {
        let n = members.len();
        let size = Sector(smallest(&members).0.saturating_sub(reserve));
        let layout = Layout::new(level, n, chunk, size)?;
        if n > 64 {
            return Err(ParamError::new(
                "members",
                format!("parity covers at most 64 members, not {n}"),
                "use several smaller arrays and stripe over them",
            ));
        }
        let flags = super::failures(failed, n)?;
        let failed = (0..n).filter(|m| flags[*m]).fold(0, |s, m| s | 1 << m);
        if u64::from(Set::count_ones(failed)) > level.parities() {
            return Err(ParamError::new(
                "failed",
                format!(
                    "{} survives {} failures, not {}",
                    level.text(),
                    level.parities(),
                    Set::count_ones(failed)
                ),
                "let fewer members fail",
            ));
        }
        if options.stripe_cache < 16 {
            return Err(ParamError::new(
                "stripe_cache",
                format!("{} stripe heads are not enough", options.stripe_cache),
                "give stripe_cache=17 or more, as md does",
            ));
        }
        let level = Striped {
            layout,
            options,
            failed,
            heads: Heads::new(options.stripe_cache as usize, n),
            plugs: Vec::new(),
            blocked: VecDeque::new(),
            free_at: Instant::default(),
            plugged: false,
            bypassed: 0,
            watched: None,
            stats: ParityStats::default(),
        };
        Ok(Array::with_level(members, level))
    }
}

impl Striped {
    /// Starts to record the steps of the thread.
    pub fn watch(&mut self) {
        self.watched = Some(Vec::new());
    }
    /// Returns the steps since the last call.
    pub fn steps(&mut self) -> Vec<Step> {
        self.watched
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }
    /// Returns the counters.
    pub fn stats(&self) -> ParityStats {
        self.stats
    }
    /// Returns the layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
    fn note(&mut self, step: impl FnOnce() -> Step) {
        if let Some(w) = &mut self.watched {
            w.push(step());
        }
    }

    /// Adds the parts of a bio to the cache, from `at` on. Returns false if no head is free. The
    /// rest of the bio then waits.
    fn enter<B: BioSink>(&mut self, io: &mut Io<B>, mut b: Blocked) -> bool {
        let end = b.bio.end().0;
        while b.at < end {
            let n = (PAGE - b.at % PAGE).min(end - b.at);
            let spot = self.layout.copy(b.at, 0);
            let Some(h) = self.heads.of_row(spot.sector / PAGE) else {
                self.stats.waits += 1;
                self.blocked.push_back(b);
                // The submitter goes to sleep, which flushes its plug.
                self.release_plugged();
                return false;
            };
            let from = spot.sector % PAGE;
            let mask = (((1u16 << n) - 1) << from) as u8;
            io.hold(b.join);
            let page = self.heads.page(h, spot.member);
            if b.bio.op == Op::Read {
                page.readers.push(b.join);
            } else {
                page.dirty |= mask;
                page.writers.push(b.join);
                self.heads.head(h).flags |= b.bio.flags & (Flags::SYNC | Flags::FUA);
            }
            if self.heads.at(h) != At::Busy {
                let plugged = b.bio.op != Op::Read && self.plugs.contains(&b.bio.task);
                self.queue(h, plugged);
            }
            b.at += n;
        }
        io.release(b.join, false);
        true
    }

    /// Puts a head that is not busy into the queue for its state.
    fn queue(&mut self, h: u32, plugged: bool) {
        let plugged = plugged && matches!(self.heads.at(h), At::Rest | At::Plugged);
        let to = match plugged {
            true => At::Plugged,
            false if self.needs_reads(h) => At::Hold,
            false => At::Ready,
        };
        if self.heads.at(h) != to {
            self.heads.move_to(h, to);
        }
    }
    fn set(&self, h: u32, f: impl Fn(&heads::Page) -> bool) -> Set {
        let all = self.heads.pages(h).iter().enumerate();
        all.filter(|(_, p)| f(p)).fold(0, |s, (m, _)| s | 1 << m)
    }
    /// Returns the state of a head's row, and the member with P as a set.
    fn known(&self, h: u32) -> (Row, Set) {
        let row = self.layout.row(self.heads.row(h) * PAGE);
        let (p, q) = self.layout.parity(row);
        let parity = 1 << p | q.map_or(0, |q| 1 << q);
        let all = Set::MAX >> (64 - self.layout.members());
        let known = Row {
            data: all & !parity,
            parity,
            failed: self.failed,
            fresh: self.set(h, |p| p.fresh),
            dirty: self.set(h, |p| p.dirty != 0),
            full: self.set(h, |p| p.dirty == FULL),
        };
        (known, 1 << p)
    }
    fn needs_reads(&self, h: u32) -> bool {
        let (row, p) = self.known(h);
        let wanted = self.set(h, |p| !p.readers.is_empty()) & !row.fresh;
        wanted != 0 || row.plan(p, self.options.modify_on_tie).reads != 0
    }

    /// Returns the next head to handle. Heads that need no reads come first, up to a limit.
    fn pick(&mut self) -> Option<u32> {
        let (ready, hold) = (self.heads.first(At::Ready), self.heads.first(At::Hold));
        if ready.is_some() && (hold.is_none() || self.bypassed < self.options.preread_bypass) {
            self.bypassed += u32::from(hold.is_some());
            return ready;
        }
        self.bypassed = 0;
        hold.or(ready)
    }

    /// Handles a head once.
    fn handle<B: BioSink>(&mut self, io: &mut Io<B>, h: u32) {
        self.heads.move_to(h, At::Busy);
        self.free_at = io.now() + self.options.handling;
        if std::mem::take(&mut self.heads.head(h).error) {
            self.give_up(io, h);
            return self.settle(h);
        }
        let (mut row, p) = self.known(h);
        let wanted = self.set(h, |p| !p.readers.is_empty());
        let plan = row.plan(p, self.options.modify_on_tie);
        let recover = wanted & !row.fresh != 0 || (row.dirty != 0 && plan.how == How::RecoverFirst);
        let reads = if recover { row.recovery(p) } else { 0 };
        let reads = if row.dirty != 0 {
            reads | plan.reads
        } else {
            reads
        };
        if reads != 0 {
            return self.read(io, h, reads);
        }
        if recover {
            let lost = row.data & row.failed;
            for m in members(lost) {
                self.heads.page(h, m).fresh = true;
            }
            row.fresh |= lost;
            let at = self.heads.row(h);
            self.note(|| Step::Recover { row: at });
        }
        for m in members(wanted) {
            let mut readers = std::mem::take(&mut self.heads.page(h, m).readers);
            for j in readers.drain(..) {
                io.release(j, false);
            }
            self.heads.page(h, m).readers = readers;
        }
        if row.dirty != 0 {
            self.write(io, h, row, p);
        }
        self.settle(h);
    }
    fn read<B: BioSink>(&mut self, io: &mut Io<B>, h: u32, reads: Set) {
        let sector = self.heads.row(h) * PAGE;
        for m in members(reads) {
            self.heads.head(h).reads += 1;
            self.stats.prereads += 1;
            let bio = Bio::new(
                0,
                self.options.thread,
                Op::Read,
                Flags::empty(),
                sector,
                PAGE as u32,
            );
            io.own(tag(h, m, false), m, bio);
        }
    }
    fn write<B: BioSink>(&mut self, io: &mut Io<B>, h: u32, row: Row, p: Set) {
        let plan = row.plan(p, self.options.modify_on_tie);
        debug_assert_eq!(plan.reads, 0, "everything is there");
        let at = self.heads.row(h);
        match plan.how {
            _ if row.full == row.data => self.stats.full_rows += 1,
            How::ReadModifyWrite => self.stats.modified += 1,
            _ => self.stats.reconstructed += 1,
        }
        for m in members(row.dirty) {
            let page = self.heads.page(h, m);
            let sectors = std::mem::take(&mut page.dirty);
            page.fresh = true;
            std::mem::swap(&mut page.writers, &mut page.flying);
            self.note(|| Step::Drain {
                row: at,
                member: m,
                sectors,
            });
        }
        let parity = row.parity & !row.failed;
        for m in members(parity) {
            self.heads.page(h, m).fresh = true;
        }
        self.note(|| Step::Compute {
            row: at,
            how: plan.how,
        });
        let pages = u64::from((row.dirty & !row.failed).count_ones());
        let computed = self.options.compute.0 * u64::from(parity.count_ones()) * pages.max(1);
        self.free_at = self.free_at + Nanos(computed);
        let flags = std::mem::take(&mut self.heads.head(h).flags);
        for m in members((row.dirty | parity) & !row.failed) {
            self.note(|| Step::Write { row: at, member: m });
            self.heads.head(h).writes += 1;
            self.stats.pages_written += 1;
            let bio = Bio::new(
                0,
                self.options.thread,
                Op::Write,
                flags,
                at * PAGE,
                PAGE as u32,
            );
            io.own(tag(h, m, true), m, bio);
        }
    }
    /// Handles a failed read: all bios that wait for the row end with an error.
    fn give_up<B: BioSink>(&mut self, io: &mut Io<B>, h: u32) {
        for m in 0..self.layout.members() {
            let page = self.heads.page(h, m);
            page.dirty = 0;
            for j in page.writers.drain(..).chain(page.readers.drain(..)) {
                io.release(j, true);
            }
        }
    }
    /// Updates the state of a head after a pass. It becomes unused, unless I/O is in progress or
    /// more data arrived.
    fn settle(&mut self, h: u32) {
        let head = self.heads.head(h);
        if head.reads > 0 || head.writes > 0 {
            return;
        }
        self.heads.move_to(h, At::Rest);
        let work = |p: &heads::Page| p.dirty != 0 || !p.readers.is_empty();
        if self.heads.pages(h).iter().any(work) {
            self.queue(h, false);
        }
    }
    /// Returns whether sleeping tasks may wake, because a quarter of the heads is unused.
    fn may_wake(&self) -> bool {
        !self.blocked.is_empty() && self.heads.resting() * 4 >= self.heads.count()
    }
    fn release_plugged(&mut self) {
        while let Some(h) = self.heads.first(At::Plugged) {
            self.heads.move_to(h, At::Rest);
            self.queue(h, false);
        }
    }
}

fn tag(h: u32, member: usize, write: bool) -> u64 {
    u64::from(h) << 32 | (member as u64) << 1 | u64::from(write)
}

/// Iterates over the members of a set.
fn members(mut s: Set) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (s != 0).then(|| {
            let m = s.trailing_zeros() as usize;
            s &= s - 1;
            m
        })
    })
}

impl Level for Striped {
    fn data<B: BioSink>(&mut self, io: &mut Io<B>, bio: Bio, join: JoinId) {
        // By default, md offers no discard on parity arrays, so a discard does nothing.
        if bio.op == Op::Discard {
            return;
        }
        let (mut at, end) = (bio.sector.0, bio.end().0);
        if bio.op == Op::Read {
            while at < end {
                let n = self.layout.rest(at).min(end - at);
                let spot = self.layout.copy(at, 0);
                if self.failed & 1 << spot.member == 0 {
                    io.send(join, &bio, spot.member, spot.sector, n as u32);
                } else {
                    let (sector, sectors) = (Sector(at), Sectors(n as u32));
                    let bio = Bio {
                        sector,
                        sectors,
                        ..bio
                    };
                    self.queue_or_enter(io, Blocked { bio, join, at });
                }
                at += n;
            }
        } else {
            self.queue_or_enter(io, Blocked { bio, join, at });
        }
    }
    fn done<B: BioSink>(&mut self, io: &mut Io<B>, tag: u64, error: bool) {
        let (h, member) = ((tag >> 32) as u32, (tag as u32 >> 1) as usize);
        let head = self.heads.head(h);
        head.error |= error;
        if tag & 1 == 0 {
            head.reads -= 1;
            let (left, row) = (head.reads, head.row);
            if !error {
                self.heads.page(h, member).fresh = true;
                self.note(|| Step::Read { row, member });
            }
            if left == 0 {
                self.heads.move_to(h, At::Ready);
            }
            return;
        }
        head.writes -= 1;
        if head.writes > 0 {
            return;
        }
        let failed = std::mem::take(&mut head.error);
        for m in 0..self.layout.members() {
            let mut flying = std::mem::take(&mut self.heads.page(h, m).flying);
            for j in flying.drain(..) {
                io.release(j, failed);
            }
            self.heads.page(h, m).flying = flying;
        }
        self.settle(h);
    }
    fn next_event(&self) -> Option<Instant> {
        let work = self.heads.first(At::Ready).is_some()
            || self.heads.first(At::Hold).is_some()
            || self.plugged
            || self.may_wake();
        work.then_some(self.free_at)
    }
    fn run<B: BioSink>(&mut self, io: &mut Io<B>) {
        let thread = self.options.thread;
        while self.may_wake() {
            if let Some(b) = self.blocked.pop_front()
                && !self.enter(io, b)
            {
                // The rest that did not fit stays the first.
                self.blocked.rotate_right(1);
                break;
            }
        }
        while self.free_at <= io.now()
            && let Some(h) = self.pick()
        {
            if !std::mem::replace(&mut self.plugged, true) {
                io.tell(Control::Plug(thread));
            }
            self.handle(io, h);
        }
        let idle = self.heads.first(At::Ready).is_none() && self.heads.first(At::Hold).is_none();
        if idle && self.free_at <= io.now() && std::mem::take(&mut self.plugged) {
            io.tell(Control::Unplug(thread));
        }
    }
    fn control(&mut self, what: Control) {
        match what {
            Control::Plug(t) => self.plugs.push(t),
            Control::Unplug(t) | Control::Sleep(t) => {
                if let Some(i) = self.plugs.iter().position(|p| *p == t)
                    && !matches!(what, Control::Sleep(_))
                {
                    self.plugs.swap_remove(i);
                }
                self.release_plugged();
            }
            Control::Exit(t) => {
                self.plugs.retain(|p| *p != t);
                self.release_plugged();
            }
            _ => {}
        }
    }
    fn size(&self) -> Sector {
        self.layout.capacity()
    }
    fn alive(&self, member: usize) -> bool {
        self.failed & 1 << member == 0
    }
    fn crowded(&self) -> bool {
        !self.blocked.is_empty()
    }
    fn sleeps(&self, task: TaskId) -> bool {
        self.blocked.iter().any(|b| b.bio.task == task)
    }
}

impl Striped {
    fn queue_or_enter<B: BioSink>(&mut self, io: &mut Io<B>, b: Blocked) {
        io.hold(b.join);
        if self.blocked.is_empty() {
            self.enter(io, b);
        } else {
            self.stats.waits += 1;
            self.blocked.push_back(b);
        }
    }
}
