//! May this bio go into that request? Position, size, the conditions blk-mq adds, and the walk over
//! a plain list that `none` and kyber make instead of a search.

use crate::contract::{BioMerge, MergeKind};
use crate::cx::Cx;
use seekwell_core::{Bio, Class, Flags, IoPrio, IocId, Links, List, Op, RqId};

/// Entries of a per-CPU list that a bio is held against, newest first.
pub const SCAN_LIMIT: usize = 8;

/// Flags that forbid merging, of bios and requests alike.
const NEVER: Flags = Flags::NOMERGE
    .union(Flags::PREFLUSH)
    .union(Flags::FUA)
    .union(Flags::BARRIER);

/// May this bio be merged at all?
pub fn bio_mergeable(bio: &Bio) -> bool {
    !bio.flags.intersects(NEVER) && bio.op != Op::Flush && bio.sectors.0 > 0
}

impl Cx {
    /// The priority a bio of this context carries: its own, else the one in force for the context.
    pub fn bio_prio(&self, bio: &Bio, ioc: IocId) -> IoPrio {
        match bio.ioprio {
            Some(p) if p.class != Class::None => p,
            _ => self.iocs.get(ioc).effective(self.queue.era),
        }
    }
    /// Same operation, same cgroup, exactly the same priority, and both may be merged. Position and
    /// size are not looked at; neither is sync or async (BFQ's own hook is).
    pub fn merge_ok(&self, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
        let r = &self.rqs[rq];
        r.mergeable()
            && bio_mergeable(bio)
            && r.op == bio.op
            && r.cgroup == bio.cgroup
            && r.ioprio == self.bio_prio(bio, ioc)
    }
    /// Where the bio touches the request.
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
    /// Would the request stay within max_sectors and max_segments?
    pub fn fits(&self, rq: RqId, bio: &Bio) -> bool {
        let r = &self.rqs[rq];
        let sectors = u64::from(r.sectors.0) + u64::from(bio.sectors.0);
        sectors <= u64::from(self.queue.max_sectors.0) && self.lists_fit(r.segments, bio.segments())
    }
    /// Do two scatter lists fit into one?
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
