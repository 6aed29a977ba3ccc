//! Checks whether a bio can be merged into a request: position, size and the conditions of blk-mq.
//! Also searches a list for a request to merge into, as `none` and kyber do.

#[cfg(test)]
mod tests;

use crate::contract::{BioMerge, MergeKind};
use crate::cx::Cx;
use seekwell_core::{Bio, Class, Flags, IoPrio, IocId, Links, List, Op, RqId};

/// Maximum number of entries of a CPU's list that are compared with a bio, from the newest on.
pub const SCAN_LIMIT: usize = 8;

/// Flags that forbid a merge, for bios and for requests.
const NEVER: Flags = Flags::NOMERGE
    .union(Flags::PREFLUSH)
    .union(Flags::FUA)
    .union(Flags::BARRIER);

/// Returns true if this bio may be merged into any request.
pub fn bio_mergeable(bio: &Bio) -> bool {
    !bio.flags.intersects(NEVER) && bio.op != Op::Flush && bio.sectors.0 > 0
}

impl Cx {
    /// Returns the priority of a bio: its own, or else the effective priority of its context.
    pub fn bio_prio(&self, bio: &Bio, ioc: IocId) -> IoPrio {
        match bio.ioprio {
            Some(p) if p.class != Class::None => p,
            _ => self.iocs.get(ioc).effective(self.queue.era),
        }
    }
    /// Returns true if both may be merged and have the same operation, the same cgroup and exactly
    /// the same priority. Does not check position and size. Does not check sync against async,
    /// which only BFQ forbids.
    pub fn merge_ok(&self, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
        let r = &self.rqs[rq];
        r.mergeable()
            && bio_mergeable(bio)
            && r.op == bio.op
            && r.cgroup == bio.cgroup
            && r.ioprio == self.bio_prio(bio, ioc)
    }
    /// Returns the end of the request that the bio touches, if any.
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
    /// Returns true if the request stays within max_sectors and max_segments after the merge.
    pub fn fits(&self, rq: RqId, bio: &Bio) -> bool {
        let r = &self.rqs[rq];
        let sectors = u64::from(r.sectors.0) + u64::from(bio.sectors.0);
        sectors <= u64::from(self.queue.max_sectors.0) && self.lists_fit(r.segments, bio.segments())
    }
    /// Returns true if two scatter lists together are within max_segments.
    #[inline]
    pub fn lists_fit(&self, entries: u32, more: u32) -> bool {
        entries.saturating_add(more) <= self.queue.max_segments
    }
    /// Searches a list for a request to merge the bio into. Compares at most [`SCAN_LIMIT`]
    /// entries, from the newest on. The search ends at a request that touches the bio but would
    /// become too large.
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
