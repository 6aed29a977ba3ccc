//! Code that all arrays share: members that advance together, bios whose parts complete one by one,
//! flushes to every member, and writes that wait for the bitmap.

use super::bitmap::{Bitmap, BitmapOptions};
use seekwell_core::{
    Action, Bio, BioDone, BioId, BioSink, Control, Event, EventLog, Flags, Instant, MemberId,
    MemberKind, More, Op, Sector, Sectors, Snapshot, Tap, TaskId,
};

/// A bio in progress inside an array.
pub type JoinId = u32;

/// A RAID level. It divides a bio into parts, and does the array's own operations.
pub trait Level {
    /// Handles a transfer, after its flush. The level must send every part with [`Io::send`], or
    /// hold it with [`Io::hold`].
    fn data<B: BioSink>(&mut self, io: &mut Io<B>, bio: Bio, join: JoinId);
    /// Handles the return of a part from `member`. The part was sent for a bio.
    fn returned(&mut self, member: usize) {
        let _ = member;
    }
    /// Handles the return of a bio that the level sent by itself.
    fn done<B: BioSink>(&mut self, io: &mut Io<B>, tag: u64, error: bool) {
        let _ = (io, tag, error);
    }
    /// Returns the time at which the level must run. A time in the past means immediately.
    fn next_event(&self) -> Option<Instant> {
        None
    }
    /// Runs the level.
    fn run<B: BioSink>(&mut self, io: &mut Io<B>) {
        let _ = io;
    }
    /// Handles a control message to the members.
    fn control(&mut self, what: Control) {
        let _ = what;
    }
    /// Returns the size of the array.
    fn size(&self) -> Sector;
    /// Returns whether this member works.
    fn alive(&self, member: usize) -> bool {
        let _ = member;
        true
    }
    /// Returns whether bios inside the array wait for space.
    fn crowded(&self) -> bool {
        false
    }
    /// Returns whether a bio of `task` is one of those that wait for space.
    fn sleeps(&self, task: TaskId) -> bool {
        let _ = task;
        false
    }
}

/// Elements with an index. The index of a freed element is reused.
#[derive(Debug)]
struct Slab<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    const fn new() -> Self {
        Slab {
            all: Vec::new(),
            free: Vec::new(),
        }
    }
    fn add(&mut self, x: T) -> u32 {
        match self.free.pop() {
            Some(i) => {
                self.all[i as usize] = x;
                i
            }
            None => {
                self.all.push(x);
                (self.all.len() - 1) as u32
            }
        }
    }
    fn take(&mut self, i: u32) -> T {
        self.free.push(i);
        self.all[i as usize]
    }
}

#[derive(Clone, Copy, Debug)]
enum To {
    Bio(JoinId),
    Flush(JoinId),
    Level(u64),
    Bitmap,
}

#[derive(Clone, Copy, Debug)]
struct Parent {
    id: BioId,
    left: u32,
    error: bool,
    /// The bio whose data are written after a flush.
    then: Option<Bio>,
    /// First and end sector of a write that the bitmap counts.
    marked: Option<(u64, u64)>,
}

/// The members and the bios in progress. This is the interface for a level.
pub struct Io<B> {
    members: Vec<B>,
    now: Instant,
    children: Slab<To>,
    joins: Slab<Parent>,
    ready: Vec<BioDone>,
    /// Bios whose last part has returned.
    whole: Vec<JoinId>,
    inbox: Vec<(usize, BioDone)>,
    buf: Vec<BioDone>,
    /// Log of the array's own events, and the numbers of its members in the stream.
    log: EventLog,
    ids: Vec<MemberId>,
}

impl<B: BioSink> Io<B> {
    fn new(members: Vec<B>) -> Self {
        Io {
            members,
            now: Instant::default(),
            children: Slab::new(),
            joins: Slab::new(),
            ready: Vec::new(),
            whole: Vec::new(),
            inbox: Vec::new(),
            buf: Vec::new(),
            log: EventLog::default(),
            ids: Vec::new(),
        }
    }
    /// Returns the present time.
    pub fn now(&self) -> Instant {
        self.now
    }
    /// Returns the number of members.
    pub fn count(&self) -> usize {
        self.members.len()
    }
    /// Adds an outstanding part to a bio, which [`Io::release`] ends.
    pub fn hold(&mut self, join: JoinId) {
        self.joins.all[join as usize].left += 1;
    }
    /// Ends a held part.
    pub fn release(&mut self, join: JoinId, error: bool) {
        let p = &mut self.joins.all[join as usize];
        p.left -= 1;
        p.error |= error;
        if p.left == 0 {
            self.whole.push(join);
        }
    }
    /// Sends a part of `bio` to a member. The part belongs to the submitter of `bio`.
    pub fn send(&mut self, join: JoinId, bio: &Bio, member: usize, sector: u64, sectors: u32) {
        self.hold(join);
        let (sector, sectors) = (Sector(sector), Sectors(sectors));
        let part = Bio {
            sector,
            sectors,
            ..*bio
        };
        self.submit(To::Bio(join), member, bio, part);
    }
    /// Sends a bio of the level itself. Its id is replaced, and `tag` is returned with the
    /// completion.
    pub fn own(&mut self, tag: u64, member: usize, bio: Bio) {
        self.submit(To::Level(tag), member, &bio, bio);
    }
    /// Sends a control message to every member, from a thread of the array.
    pub fn tell(&mut self, what: Control) {
        for m in &mut self.members {
            m.control(self.now, what);
        }
    }
    /// Submits `bio` to a member. `bio` is a part of `whole`, or all of it.
    fn submit(&mut self, to: To, member: usize, whole: &Bio, bio: Bio) {
        let id = BioId(u64::from(self.children.add(to)));
        if self.log.listening() {
            self.remapped(to, member, whole, &Bio { id, ..bio });
        }
        self.members[member].submit(self.now, Bio { id, ..bio });
    }
    #[cold]
    #[inline(never)]
    fn remapped(&mut self, to: To, member: usize, whole: &Bio, part: &Bio) {
        // The array's own operations belong to no bio of a submitter.
        let of = match to {
            To::Bio(j) | To::Flush(j) => Some(self.joins.all[j as usize].id),
            To::Level(_) | To::Bitmap => None,
        };
        let (now, ids) = (self.now, &self.ids);
        let member = ids.get(member).copied().unwrap_or_default();
        self.log.push(|| Event {
            bio: of,
            more: More::To {
                member,
                bio: part.id,
                sector: part.sector,
                sectors: part.sectors,
            },
            ..Event::of_bio(now, Action::Remap, whole)
        });
    }
    fn begin(&mut self, id: BioId, then: Option<Bio>, marked: Option<(u64, u64)>) -> JoinId {
        self.joins.add(Parent {
            id,
            left: 1,
            error: false,
            then,
            marked,
        })
    }
    fn finish(&mut self, id: BioId, error: bool) {
        let at = self.now;
        self.log.push(|| Event {
            bio: Some(id),
            ..Event::new(at, Action::Complete)
        });
        self.ready.push(BioDone { id, at, error });
    }
    fn next_event(&self) -> Option<Instant> {
        self.members.iter().filter_map(|m| m.next_event()).min()
    }
    /// Advances the members to `now` and collects completions.
    fn step(&mut self) {
        let now = self.now;
        for (i, m) in self.members.iter_mut().enumerate() {
            if m.next_event().is_some_and(|t| t <= now) {
                m.advance(now, &mut self.buf);
                self.inbox.extend(self.buf.drain(..).map(|d| (i, d)));
            }
        }
    }
}

/// An array of a given level, with its members.
pub struct Array<B, L> {
    io: Io<B>,
    level: L,
    bitmap: Option<Bitmap>,
}

impl<B: BioSink, L: Level> Array<B, L> {
    pub(super) fn with_level(members: Vec<B>, level: L) -> Self {
        Array {
            io: Io::new(members),
            level,
            bitmap: None,
        }
    }
    /// Adds a write-intent bitmap in the last 4 KiB of every member. The level must not use this
    /// space.
    pub fn with_bitmap(mut self, options: BitmapOptions) -> Self {
        self.bitmap = Some(Bitmap::new(options));
        self
    }
    /// Returns the members.
    pub fn members(&self) -> &[B] {
        &self.io.members
    }
    /// Returns the members, mutable.
    pub fn members_mut(&mut self) -> &mut [B] {
        &mut self.io.members
    }
    /// Returns the level.
    pub fn level(&self) -> &L {
        &self.level
    }
    /// Returns the level, mutable.
    pub fn level_mut(&mut self) -> &mut L {
        &mut self.level
    }

    #[cfg(test)]
    pub(super) fn into_level(self) -> L {
        self.level
    }

    fn start(&mut self, bio: Bio) {
        let io = &mut self.io;
        if bio.op == Op::Flush || bio.sectors.0 == 0 {
            return self.flush(bio, None);
        }
        let end = bio.sector.0.checked_add(u64::from(bio.sectors.0));
        if end.is_none_or(|e| e > self.level.size().0) {
            return io.finish(bio.id, true);
        }
        if bio.flags.contains(Flags::PREFLUSH) {
            let flags = bio.flags.difference(Flags::PREFLUSH);
            return self.flush(bio, Some(Bio { flags, ..bio }));
        }
        let mut marked = None;
        if bio.op.is_write()
            && let Some(map) = &mut self.bitmap
        {
            if map.must_wait(&bio) {
                return self.write_bitmap();
            }
            marked = Some((bio.sector.0, bio.end().0));
        }
        let join = self.io.begin(bio.id, None, marked);
        self.level.data(&mut self.io, bio, join);
        self.io.release(join, false);
        self.joined();
    }
    fn flush(&mut self, bio: Bio, then: Option<Bio>) {
        let join = self.io.begin(bio.id, then, None);
        for m in 0..self.io.count() {
            if self.level.alive(m) {
                let flush = Bio {
                    op: Op::Flush,
                    sector: Sector(0),
                    sectors: Sectors(0),
                    ..bio
                };
                self.io.hold(join);
                self.io.submit(To::Flush(join), m, &flush, flush);
            }
        }
        self.io.release(join, false);
        self.joined();
    }
    fn write_bitmap(&mut self) {
        let Some(map) = &mut self.bitmap else { return };
        while let Some(bio) = map.next_write() {
            for m in 0..self.io.count() {
                if self.level.alive(m) {
                    let sector = Sector(self.io.members[m].capacity().0.saturating_sub(8));
                    map.sent();
                    let bio = Bio { sector, ..bio };
                    self.io.submit(To::Bitmap, m, &bio, bio);
                }
            }
        }
    }
    /// Ends the bios whose last part has returned. Starts the data transfers of bios whose flush
    /// has completed.
    fn joined(&mut self) {
        while let Some(join) = self.io.whole.pop() {
            let p = self.io.joins.take(join);
            if let (Some((from, to)), Some(map)) = (p.marked, &mut self.bitmap) {
                map.written(self.io.now, from, to);
            }
            match p.then.filter(|_| !p.error) {
                Some(bio) => self.start(bio),
                None => self.io.finish(p.id, p.error),
            }
        }
    }
    /// Handles all completions.
    fn receive(&mut self) {
        let mut inbox = std::mem::take(&mut self.io.inbox);
        for (member, d) in inbox.drain(..) {
            match self.io.children.take(d.id.0 as u32) {
                To::Bio(join) => {
                    self.level.returned(member);
                    self.io.release(join, d.error);
                }
                To::Flush(join) => self.io.release(join, d.error),
                To::Level(tag) => self.level.done(&mut self.io, tag, d.error),
                To::Bitmap => {
                    if let Some(map) = &mut self.bitmap
                        && map.back()
                    {
                        for bio in map.released() {
                            self.start(bio);
                        }
                        self.write_bitmap();
                    }
                }
            }
            self.joined();
        }
        self.io.inbox = inbox;
    }
}

impl<B: BioSink, L: Level> BioSink for Array<B, L> {
    fn submit(&mut self, now: Instant, bio: Bio) {
        self.io.now = now;
        let log = &mut self.io.log;
        log.push(|| Event::of_bio(now, Action::Queue, &bio));
        self.start(bio);
    }
    fn next_event(&self) -> Option<Instant> {
        if !self.io.ready.is_empty() {
            return Some(self.io.now);
        }
        let own = self.level.next_event();
        let map = self.bitmap.as_ref().and_then(Bitmap::next_event);
        self.io.next_event().into_iter().chain(own).chain(map).min()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        out.append(&mut self.io.ready);
        while let Some(t) = self.next_event().filter(|t| *t <= to) {
            self.io.now = t.max(self.io.now);
            self.io.step();
            self.receive();
            if self.level.next_event().is_some_and(|t| t <= self.io.now) {
                self.level.run(&mut self.io);
                self.joined();
            }
            if let Some(map) = &mut self.bitmap
                && map.next_event().is_some_and(|t| t <= self.io.now)
            {
                map.clean(self.io.now);
                self.write_bitmap();
            }
            out.append(&mut self.io.ready);
        }
    }
    fn control(&mut self, now: Instant, what: Control) {
        self.io.now = now;
        self.io.tell(what);
        self.level.control(what);
    }
    fn capacity(&self) -> Sector {
        self.level.size()
    }
    fn congested(&self, write: bool) -> bool {
        self.level.crowded() || self.io.members.iter().any(|m| m.congested(write))
    }
    fn waits(&self, task: TaskId) -> bool {
        self.level.sleeps(task) || self.io.members.iter().any(|m| m.waits(task))
    }
    fn listen(&mut self, tap: Option<&Tap>) {
        let io = &mut self.io;
        io.log.join(tap.cloned());
        io.ids.clear();
        if let Some(tap) = tap {
            tap.introduce(MemberKind::Array, "");
        }
        for (i, m) in io.members.iter_mut().enumerate() {
            let own = tap.map(|t| t.member(&i.to_string()));
            io.ids.extend(own.as_ref().map(Tap::id));
            m.listen(own.as_ref());
        }
    }
    fn snapshot(&self, now: Instant, out: &mut Vec<Snapshot>) {
        for m in &self.io.members {
            m.snapshot(now, out);
        }
    }
}
