//! Requests, which contain bios for a device. They are stored in a table (slab) and have an index.
//!
//! When the table has reached the size of the deepest queue, no more memory is allocated.

use crate::bio::{Bio, Flags, Op};
use crate::ioc::{CgroupId, Era, IoPrio, IocId};
use crate::time::Instant;
use crate::units::{Sector, Sectors};

/// Index of a request in the table of its queue. It is used again after the request was freed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RqId(pub u32);

impl RqId {
    /// Returns the index for side tables.
    pub const fn idx(self) -> usize {
        self.0 as usize
    }
}

/// State of a request. The state moves down this list, and a requeue moves it back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum State {
    /// Not in use.
    #[default]
    Free,
    /// The submitter is creating the request, or the request is on a plug list.
    Plugged,
    /// The request is in the scheduler.
    Sorted,
    /// The request left the scheduler and is on a dispatch list.
    Dispatched,
    /// The driver has taken the request. Nothing can be merged into it.
    Started,
    /// The request is in the device.
    InFlight,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Operation, which is the same for all its bios.
    pub op: Op,
    /// Flags of the first bio, and NOMERGE after a merge was refused.
    pub flags: Flags,
    /// True if the request is sync. The kernel decides this from the first bio.
    pub sync: bool,
    /// State of the request.
    pub state: State,
    /// True if the request goes through the elevator. (False for a flush sequence, for a barrier,
    /// and during an elevator switch.)
    pub elv: bool,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: Sectors,
    /// Number of entries in a scatter list, the sum over all its bios.
    pub segments: u32,
    /// Io context of the first bio.
    pub ioc: IocId,
    /// Priority in force when the request was created; its class is never `None`.
    pub ioprio: IoPrio,
    /// Cgroup of the first bio.
    pub cgroup: CgroupId,
    /// Number of bios in the request.
    pub bios: u32,
    /// The software context (CPU) that submitted the request.
    pub cpu: u16,
    /// The hardware context of the request.
    pub hctx: u16,
    /// Time of creation. For joined requests: the earliest of their times.
    pub start: Instant,
    /// Time at which the driver got the request.
    pub issue: Instant,
    /// Number in the order of allocation. It decides between otherwise equal requests.
    pub seq: u64,
    bio_first: u32,
    bio_last: u32,
}

impl Request {
    /// Returns the first sector after the request.
    #[inline]
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }
    /// Returns 0 for reads and 1 for writes.
    #[inline]
    pub fn dir(&self) -> usize {
        self.op.dir()
    }
    /// Returns true for a write, discard or write-zeroes.
    #[inline]
    pub fn is_write(&self) -> bool {
        self.op.is_write()
    }
    /// Returns true if a bio or another request may be merged into the request.
    #[inline]
    pub fn mergeable(&self) -> bool {
        let bad = Flags::NOMERGE
            .union(Flags::PREFLUSH)
            .union(Flags::FUA)
            .union(Flags::BARRIER);
        self.state <= State::Sorted && !self.flags.intersects(bad) && self.op != Op::Flush
    }
}

#[derive(Clone, Debug)]
struct BioNode {
    bio: Bio,
    arrived: Instant,
    next: u32,
}

const NIL: u32 = u32::MAX;

/// The table (slab) of requests, with the bios of each request.
#[derive(Debug, Default)]
pub struct Requests {
    rqs: Vec<Request>,
    free: Vec<u32>,
    bios: Vec<BioNode>,
    bios_free: Vec<u32>,
    seq: u64,
}

impl std::ops::Index<RqId> for Requests {
    type Output = Request;
    #[inline]
    fn index(&self, i: RqId) -> &Request {
        &self.rqs[i.idx()]
    }
}
impl std::ops::IndexMut<RqId> for Requests {
    #[inline]
    fn index_mut(&mut self, i: RqId) -> &mut Request {
        &mut self.rqs[i.idx()]
    }
}

impl Requests {
    /// Returns an empty table.
    pub fn new() -> Self {
        Self::default()
    }
    /// Returns the number of requests in use.
    pub fn len(&self) -> usize {
        self.rqs.len() - self.free.len()
    }
    /// Returns true if no request is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the number of indices used so far, which is the size that a side table needs.
    pub fn capacity(&self) -> usize {
        self.rqs.len()
    }

    fn bio_node(&mut self, bio: Bio, arrived: Instant) -> u32 {
        let node = BioNode {
            bio,
            arrived,
            next: NIL,
        };
        match self.bios_free.pop() {
            Some(i) => {
                self.bios[i as usize] = node;
                i
            }
            None => {
                self.bios.push(node);
                (self.bios.len() - 1) as u32
            }
        }
    }

    /// Creates a request with one bio, in state `Plugged`. `ioprio` is the priority in force.
    pub fn alloc(&mut self, bio: Bio, ioc: IocId, ioprio: IoPrio, era: Era, now: Instant) -> RqId {
        self.alloc_arrived(bio, ioc, ioprio, era, now, now)
    }
    /// Like [`Requests::alloc`], for a bio that arrived earlier and waited for a request.
    pub fn alloc_arrived(
        &mut self,
        bio: Bio,
        ioc: IocId,
        ioprio: IoPrio,
        era: Era,
        now: Instant,
        arrived: Instant,
    ) -> RqId {
        let b = self.bio_node(bio, arrived);
        self.seq += 1;
        let rq = Request {
            op: bio.op,
            flags: bio.flags,
            sync: bio.is_sync(era),
            state: State::Plugged,
            elv: true,
            sector: bio.sector,
            sectors: bio.sectors,
            segments: bio.segments(),
            ioc,
            ioprio,
            cgroup: bio.cgroup,
            bios: 1,
            cpu: bio.cpu,
            hctx: 0,
            start: now,
            issue: Instant(0),
            seq: self.seq,
            bio_first: b,
            bio_last: b,
        };
        match self.free.pop() {
            Some(i) => {
                self.rqs[i as usize] = rq;
                RqId(i)
            }
            None => {
                self.rqs.push(rq);
                RqId((self.rqs.len() - 1) as u32)
            }
        }
    }
    /// Adds a bio at the end. It must start where the request ends.
    pub fn append_bio(&mut self, rq: RqId, bio: Bio, now: Instant) {
        let b = self.bio_node(bio, now);
        let r = &mut self.rqs[rq.idx()];
        debug_assert_eq!(r.end(), bio.sector);
        r.sectors = r.sectors + bio.sectors;
        r.segments += bio.segments();
        r.bios += 1;
        self.bios[r.bio_last as usize].next = b;
        r.bio_last = b;
    }
    /// Adds a bio at the front. It must end where the request starts.
    pub fn prepend_bio(&mut self, rq: RqId, bio: Bio, now: Instant) {
        let b = self.bio_node(bio, now);
        let r = &mut self.rqs[rq.idx()];
        debug_assert_eq!(r.sector, bio.end());
        r.sector = bio.sector;
        r.sectors = r.sectors + bio.sectors;
        r.segments += bio.segments();
        r.bios += 1;
        self.bios[b as usize].next = r.bio_first;
        r.bio_first = b;
    }
    /// Moves the bios of `gone` to the end of `kept`. The two requests must be adjacent. `gone`
    /// keeps its fields, so that a scheduler can read them, but has no bios. The start time is the
    /// earlier one of the two.
    pub fn join(&mut self, kept: RqId, gone: RqId) {
        let g = self.rqs[gone.idx()].clone();
        let k = &mut self.rqs[kept.idx()];
        debug_assert_eq!(k.end(), g.sector);
        k.sectors = k.sectors + g.sectors;
        k.segments += g.segments;
        k.bios += g.bios;
        k.start = k.start.min(g.start);
        self.bios[k.bio_last as usize].next = g.bio_first;
        k.bio_last = g.bio_last;
        let g = &mut self.rqs[gone.idx()];
        (g.bio_first, g.bio_last, g.bios) = (NIL, NIL, 0);
    }
    /// Returns the bios of a request with their times of arrival, in ascending order of sectors.
    pub fn bios(&self, rq: RqId) -> impl Iterator<Item = (&Bio, Instant)> + '_ {
        let mut at = self.rqs[rq.idx()].bio_first;
        std::iter::from_fn(move || {
            let b = self.bios.get(at as usize)?;
            at = b.next;
            Some((&b.bio, b.arrived))
        })
    }
    /// Returns the bio with the lowest sector.
    pub fn first_bio(&self, rq: RqId) -> &Bio {
        &self.bios[self.rqs[rq.idx()].bio_first as usize].bio
    }
    /// Frees the request and its bios.
    pub fn free(&mut self, rq: RqId) {
        let mut at = self.rqs[rq.idx()].bio_first;
        while at != NIL {
            self.bios_free.push(at);
            at = self.bios[at as usize].next;
        }
        let r = &mut self.rqs[rq.idx()];
        debug_assert!(r.state != State::Free, "request freed twice");
        r.state = State::Free;
        (r.bio_first, r.bio_last) = (NIL, NIL);
        self.free.push(rq.0);
    }
    /// Returns all requests in use, by index.
    pub fn iter(&self) -> impl Iterator<Item = (RqId, &Request)> + '_ {
        let used = |(_, r): &(usize, &Request)| r.state != State::Free;
        self.rqs
            .iter()
            .enumerate()
            .filter(used)
            .map(|(i, r)| (RqId(i as u32), r))
    }
}

/// A side table: data of a scheduler or driver for each request (or context). It grows when needed.
#[derive(Clone, Debug, Default)]
pub struct Side<T>(Vec<T>);

impl<T: Clone + Default> Side<T> {
    /// Returns an empty table.
    pub const fn new() -> Self {
        Side(Vec::new())
    }
    /// Returns the entry of `i`. If it does not exist, it is created with its default value.
    #[inline]
    pub fn at(&mut self, i: usize) -> &mut T {
        if i >= self.0.len() {
            self.grow(i);
        }
        &mut self.0[i]
    }
    #[cold]
    fn grow(&mut self, i: usize) {
        self.0
            .resize((i + 1).next_power_of_two().max(64), T::default());
    }
    /// Returns the entry of `i`, which must exist.
    #[inline]
    pub fn get(&self, i: usize) -> &T {
        &self.0[i]
    }
    /// Returns the entry of `i`, if it exists.
    pub fn try_get(&self, i: usize) -> Option<&T> {
        self.0.get(i)
    }
}

impl<T> std::ops::Index<RqId> for Side<T> {
    type Output = T;
    #[inline]
    fn index(&self, i: RqId) -> &T {
        &self.0[i.idx()]
    }
}
impl<T> std::ops::IndexMut<RqId> for Side<T> {
    #[inline]
    fn index_mut(&mut self, i: RqId) -> &mut T {
        &mut self.0[i.idx()]
    }
}
impl<T> std::ops::Index<IocId> for Side<T> {
    type Output = T;
    #[inline]
    fn index(&self, i: IocId) -> &T {
        &self.0[i.idx()]
    }
}
impl<T> std::ops::IndexMut<IocId> for Side<T> {
    #[inline]
    fn index_mut(&mut self, i: IocId) -> &mut T {
        &mut self.0[i.idx()]
    }
}
