//! Striping (md RAID 0, dm-striped) over queues that each have a scheduler.
//!
//! Ascending array addresses give ascending member addresses, so an elevator above a stripe is
//! still an elevator for every member. A bio is split at chunk ends; neighbouring pieces on one
//! member are contiguous there and merge in its queue.

use seekwell_core::{Bio, BioDone, BioId, BioSink, Control, Instant, Sector, Sectors, TaskId};

/// Splits bios over members and joins their completions.
#[derive(Default)]
pub struct Split {
    parents: Vec<Parent>,
    free: Vec<u32>,
    ready: Vec<BioDone>,
    now: Instant,
    buf: Vec<BioDone>,
}

#[derive(Clone, Copy)]
struct Parent {
    id: BioId,
    left: u32,
    error: bool,
}

impl Split {
    fn parent(&mut self, id: BioId, left: u32) -> u32 {
        let p = Parent {
            id,
            left,
            error: false,
        };
        match self.free.pop() {
            Some(i) => {
                self.parents[i as usize] = p;
                i
            }
            None => {
                self.parents.push(p);
                (self.parents.len() - 1) as u32
            }
        }
    }
    /// Sends the parts of `bio`: (member, first sector there, length), in ascending order.
    pub fn submit<B: BioSink>(
        &mut self,
        now: Instant,
        bio: Bio,
        parts: &[(usize, Sector, Sectors)],
        members: &mut [B],
    ) {
        self.now = now;
        let p = self.parent(bio.id, parts.len() as u32);
        for (m, sector, sectors) in parts.iter().copied() {
            let id = BioId(u64::from(p));
            members[m].submit(
                now,
                Bio {
                    id,
                    sector,
                    sectors,
                    ..bio
                },
            );
        }
    }
    /// A bio without data (a flush) goes to every member.
    pub fn to_all<B: BioSink>(&mut self, now: Instant, bio: Bio, members: &mut [B]) {
        let parts: Vec<_> = (0..members.len())
            .map(|m| (m, bio.sector, bio.sectors))
            .collect();
        self.submit(now, bio, &parts, members);
    }
    /// A bio beyond the end fails.
    pub fn fail(&mut self, now: Instant, bio: Bio) {
        self.now = now;
        self.ready.push(BioDone {
            id: bio.id,
            at: now,
            error: true,
        });
    }
    /// Earliest event of all members.
    pub fn next_event<B: BioSink>(&self, members: &[B]) -> Option<Instant> {
        if !self.ready.is_empty() {
            return Some(self.now);
        }
        members.iter().filter_map(|m| m.next_event()).min()
    }
    /// Advances all members in step and joins completions.
    pub fn advance<B: BioSink>(&mut self, to: Instant, members: &mut [B], out: &mut Vec<BioDone>) {
        out.append(&mut self.ready);
        while let Some(t) = self.next_event(members).filter(|t| *t <= to) {
            self.now = t;
            for m in members.iter_mut() {
                m.advance(t, &mut self.buf);
            }
            for d in self.buf.drain(..) {
                let p = &mut self.parents[d.id.0 as usize];
                p.left -= 1;
                p.error |= d.error;
                if p.left == 0 {
                    out.push(BioDone {
                        id: p.id,
                        at: d.at,
                        error: p.error,
                    });
                    self.free.push(d.id.0 as u32);
                }
            }
        }
    }
}

/// RAID 0 over equal members.
pub struct Stripe<B> {
    members: Vec<B>,
    chunk: u64,
    split: Split,
}

impl<B: BioSink> Stripe<B> {
    /// Over at least one member; `chunk` sectors, not 0.
    pub fn new(members: Vec<B>, chunk: Sectors) -> Self {
        assert!(
            !members.is_empty() && chunk.0 > 0,
            "a stripe has members and a chunk size"
        );
        Stripe {
            members,
            chunk: u64::from(chunk.0),
            split: Split::default(),
        }
    }
    /// The members.
    pub fn members(&self) -> &[B] {
        &self.members
    }
    /// Member and its sector for an array sector.
    pub fn map(&self, at: Sector) -> (usize, Sector) {
        let n = self.members.len() as u64;
        let q = at.0 / self.chunk;
        (
            (q % n) as usize,
            Sector(q / n * self.chunk + at.0 % self.chunk),
        )
    }
}

impl<B: BioSink> BioSink for Stripe<B> {
    fn submit(&mut self, now: Instant, bio: Bio) {
        if bio.sectors.0 == 0 {
            return self.split.to_all(now, bio, &mut self.members);
        }
        if bio.end() > self.capacity() {
            return self.split.fail(now, bio);
        }
        let mut parts = Vec::new();
        let (mut at, end) = (bio.sector.0, bio.end().0);
        while at < end {
            let n = (self.chunk - at % self.chunk).min(end - at);
            let (m, s) = self.map(Sector(at));
            parts.push((m, s, Sectors(n as u32)));
            at += n;
        }
        self.split.submit(now, bio, &parts, &mut self.members);
    }
    fn next_event(&self) -> Option<Instant> {
        self.split.next_event(&self.members)
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<BioDone>) {
        self.split.advance(to, &mut self.members, out);
    }
    fn control(&mut self, now: Instant, what: Control) {
        for m in &mut self.members {
            m.control(now, what);
        }
    }
    fn capacity(&self) -> Sector {
        let least = self
            .members
            .iter()
            .map(|m| m.capacity().0)
            .min()
            .unwrap_or(0);
        Sector(least / self.chunk * self.chunk * self.members.len() as u64)
    }
    fn congested(&self, write: bool) -> bool {
        self.members.iter().any(|m| m.congested(write))
    }
    fn waits(&self, task: TaskId) -> bool {
        self.members.iter().any(|m| m.waits(task))
    }
}
