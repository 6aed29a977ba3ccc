//! Merge checks for a bio and a request: position, size and the conditions that blk-mq adds. Also
//! the walk over a plain list that `none` and kyber do in place of a search.

use crate::contract::{BioMerge, MergeKind};
use crate::cx::Cx;
use seekwell_core::{Bio, Class, Flags, IoPrio, IocId, Links, List, Op, RqId};

/// How many entries of a per-CPU list are compared with a bio, newest first.
pub const SCAN_LIMIT: usize = 8;

/// Flags that forbid merging, of bios and requests alike.
const NEVER: Flags = Flags::NOMERGE
    .union(Flags::PREFLUSH)
    .union(Flags::FUA)
    .union(Flags::BARRIER);

/// Whether this bio may be merged at all.
pub fn bio_mergeable(bio: &Bio) -> bool {
    !bio.flags.intersects(NEVER) && bio.op != Op::Flush && bio.sectors.0 > 0
}

impl Cx {
    /// The priority of a bio of this context: the bio's own, else the one in force for the context.
    pub fn bio_prio(&self, bio: &Bio, ioc: IocId) -> IoPrio {
        match bio.ioprio {
            Some(p) if p.class != Class::None => p,
            _ => self.iocs.get(ioc).effective(self.queue.era),
        }
    }
    /// True for the same operation, the same cgroup and exactly the same priority, if both may be
    /// merged. Does not check position and size, nor sync and async (BFQ's own hook does).
    pub fn merge_ok(&self, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
        let r = &self.rqs[rq];
        r.mergeable()
            && bio_mergeable(bio)
            && r.op == bio.op
            && r.cgroup == bio.cgroup
            && r.ioprio == self.bio_prio(bio, ioc)
    }
    /// Which end of the request the bio touches.
    pub fn merge_kind(&self, rq: RqId, bio: &Bio) -> Option<MergeKind> {
        let r = &self.rqs[rq];
        if r.end() == bio.sector {
            Some(MergeKind::Back)
        } else if bio.end() == r.sector {
            Some(MergeKind::Front)
        } else {
            None
        }
    }
    /// Whether the request with the bio stays within max_sectors and max_segments.
    pub fn fits(&self, rq: RqId, bio: &Bio) -> bool {
        let r = &self.rqs[rq];
        let sectors = u64::from(r.sectors.0) + u64::from(bio.sectors.0);
        sectors <= u64::from(self.queue.max_sectors.0) && self.lists_fit(r.segments, bio.segments())
    }
    /// Whether two scatter lists fit into one.
    #[inline]
    pub fn lists_fit(&self, entries: u32, more: u32) -> bool {
        entries.saturating_add(more) <= self.queue.max_segments
    }
    /// Walks a list from its newest entry, at most [`SCAN_LIMIT`] of them. A request that touches
    /// the bio but would grow too large ends the walk.
    pub fn scan_for_merge(&self, links: &Links, list: &List, bio: &Bio, ioc: IocId) -> BioMerge {
        let mut at = list.last();
        for _ in 0..SCAN_LIMIT {
            let Some(i) = at else { break };
            at = links.prev(i);
            let rq = RqId(i);
            if !self.merge_ok(rq, bio, ioc) {
                continue;
            }
            if let Some(kind) = self.merge_kind(rq, bio) {
                return if self.fits(rq, bio) {
                    BioMerge::Found(rq, kind)
                } else {
                    BioMerge::No
                };
            }
        }
        BioMerge::No
    }
}
