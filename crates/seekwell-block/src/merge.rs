//! Merging of bios and requests, for both layers. It covers the search for a request (one-hit
//! cache, hash of end sectors, front search of the elevator), the size limits, and the joining of
//! neighbours.

#[cfg(test)]
mod tests;

use crate::stats::QueueStats;
use seekwell_core::{Action, Bio, Flags, IocId, RqId, State};
use seekwell_sched::{BioMerge, Cx, MergeKind, Scheduler};

/// Effects of merging that the layer must handle: counters, and requests that became empty. The
/// layer tells the elevator about these requests and frees their pool entry or tag.
#[derive(Debug, Default)]
pub struct Account {
    /// Counters.
    pub stats: QueueStats,
    /// Requests to be freed.
    pub freed: Vec<RqId>,
}

pub use seekwell_sched::admit::bio_mergeable;

/// Returns the end of `rq` that the bio continues. The end of the request is checked before its
/// start.
#[inline]
pub fn touches(cx: &Cx, rq: RqId, bio: &Bio) -> Option<MergeKind> {
    cx.merge_kind(rq, bio)
}

/// Returns whether the operations are equal and the request still accepts bios. blk-mq also
/// requires the same priority and cgroup.
#[inline]
pub fn compatible(cx: &Cx, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
    let r = &cx.rqs[rq];
    if !r.mergeable() || r.op != bio.op {
        return false;
    }
    !cx.queue.era.is_mq() || cx.merge_ok(rq, bio, ioc)
}

/// Finds a request that `bio` extends. `hash`: the layer searches the hash of end sectors.
pub fn find<S: Scheduler + ?Sized>(
    cx: &mut Cx,
    sched: &mut S,
    bio: &Bio,
    ioc: IocId,
    hash: bool,
) -> Option<(RqId, MergeKind)> {
    match sched.bio_merge(cx, bio, ioc) {
        BioMerge::Found(rq, kind) => return Some((rq, kind)),
        BioMerge::No => return None,
        BioMerge::UseElevator => {}
    }
    // As in the kernel, the elevator is asked before the positions are compared. This order
    // matters, because BFQ may merge queues when it is asked.
    if let Some(last) = cx.merge.last
        && compatible(cx, last, bio, ioc)
        && sched.allow_merge(cx, last, bio, ioc)
        && let Some(kind) = touches(cx, last, bio)
    {
        return Some((last, kind));
    }
    if cx.queue.nomerges >= 1 {
        return None;
    }
    if hash {
        let rqs = &cx.rqs;
        let hit = cx.merge.find(bio.sector, |r| rqs[r].mergeable());
        if let Some(rq) = hit
            && compatible(cx, rq, bio, ioc)
            && sched.allow_merge(cx, rq, bio, ioc)
        {
            return Some((rq, MergeKind::Back));
        }
    }
    let rq = sched.find_front(cx, bio, ioc)?;
    (cx.rqs[rq].sector == bio.end()
        && compatible(cx, rq, bio, ioc)
        && sched.allow_merge(cx, rq, bio, ioc))
    .then_some((rq, MergeKind::Front))
}

/// Marks a request that would become too large. No bio is merged into it afterwards.
fn refuse(cx: &mut Cx, rq: RqId) {
    cx.rqs[rq].flags |= Flags::NOMERGE;
    if cx.merge.last == Some(rq) {
        cx.merge.last = None;
    }
}

/// Adds `bio` to `rq`, the request that [`find`] returned. Returns false if the result would exceed
/// a size limit.
pub fn merge_bio<S: Scheduler + ?Sized>(
    cx: &mut Cx,
    sched: &mut S,
    acct: &mut Account,
    rq: RqId,
    bio: &Bio,
    kind: MergeKind,
) -> bool {
    if !cx.fits(rq, bio) {
        refuse(cx, rq);
        return false;
    }
    let now = cx.now();
    let neighbour = match kind {
        MergeKind::Back => {
            cx.rqs.append_bio(rq, *bio, now);
            acct.stats.back_merges += 1;
            cx.event(Action::BackMerge, rq);
            sched
                .latter(cx, rq)
                .filter(|n| joinable(cx, rq, *n))
                .map(|n| (rq, n))
        }
        MergeKind::Front => {
            cx.rqs.prepend_bio(rq, *bio, now);
            acct.stats.front_merges += 1;
            cx.event(Action::FrontMerge, rq);
            sched
                .former(cx, rq)
                .filter(|p| joinable(cx, *p, rq))
                .map(|p| (p, rq))
        }
    };
    match neighbour {
        Some((kept, gone)) => join(cx, sched, acct, kept, gone),
        None => {
            sched.merged(cx, rq, kind);
            if kind == MergeKind::Back {
                rehash(cx, rq);
            }
            cx.merge.last = Some(rq);
        }
    }
    true
}

fn rehash(cx: &mut Cx, rq: RqId) {
    if cx.merge.hashed(rq) {
        cx.merge.del(rq);
        let end = cx.rqs[rq].end();
        cx.merge.add(rq, end);
    }
}

/// Returns whether two queued requests may be joined.
pub fn joinable(cx: &Cx, a: RqId, b: RqId) -> bool {
    let (x, y) = (&cx.rqs[a], &cx.rqs[b]);
    x.end() == y.sector
        && x.op == y.op
        && x.mergeable()
        && y.mergeable()
        && x.sectors.0 + y.sectors.0 <= cx.queue.max_sectors.0
        && cx.lists_fit(x.segments, y.segments)
        && (!cx.queue.era.is_mq() || (x.ioprio == y.ioprio && x.cgroup == y.cgroup))
}

/// Joins two queued requests: `kept` takes the bios of `gone`. `gone` is added to the requests to
/// be freed.
pub fn join<S: Scheduler + ?Sized>(
    cx: &mut Cx,
    sched: &mut S,
    acct: &mut Account,
    kept: RqId,
    gone: RqId,
) {
    cx.rqs.join(kept, gone);
    cx.joined_event(kept, gone);
    acct.stats.joins += 1;
    sched.joined(cx, kept, gone);
    rehash(cx, kept);
    cx.merge.forget(gone);
    cx.nr_sorted -= 1;
    cx.merge.last = Some(kept);
    acct.freed.push(gone);
}

/// Records that a request is in the scheduler, adds it to the hash, and puts it into the one-hit
/// cache if that is empty.
#[inline]
pub fn enter(cx: &mut Cx, rq: RqId, hash: bool) {
    cx.rqs[rq].state = State::Sorted;
    cx.entered(rq);
    if cx.rqs[rq].mergeable() && cx.queue.nomerges < 2 {
        if hash {
            let end = cx.rqs[rq].end();
            cx.merge.add(rq, end);
        }
        if cx.merge.last.is_none() {
            cx.merge.last = Some(rq);
        }
    }
}

/// Merges a plugged request into queued requests at its insertion (append only). Tries the one-hit
/// cache first, and then the hash. If the merged request can again be merged with the request
/// before it, the search in the hash is repeated. Returns true if `rq` was merged. The caller must
/// then free it.
pub fn insert_merge<S: Scheduler + ?Sized>(
    cx: &mut Cx,
    sched: &mut S,
    acct: &mut Account,
    rq: RqId,
) -> bool {
    if cx.queue.nomerges >= 2 {
        return false;
    }
    if let Some(last) = cx.merge.last
        && joinable(cx, last, rq)
    {
        swallow(cx, sched, acct, last, rq);
        return true;
    }
    if cx.queue.nomerges >= 1 {
        return false;
    }
    let mut swallowed = false;
    let mut rq = rq;
    loop {
        let (start, rqs) = (cx.rqs[rq].sector, &cx.rqs);
        let hit = cx.merge.find(start, |r| r != rq && rqs[r].mergeable());
        let Some(before) = hit.filter(|b| joinable(cx, *b, rq)) else {
            return swallowed;
        };
        if swallowed {
            join(cx, sched, acct, before, rq);
        } else {
            swallow(cx, sched, acct, before, rq);
        }
        swallowed = true;
        rq = before;
    }
}

/// Appends `rq`, which is not in the scheduler, to the queued request `into`.
fn swallow<S: Scheduler + ?Sized>(
    cx: &mut Cx,
    sched: &mut S,
    acct: &mut Account,
    into: RqId,
    rq: RqId,
) {
    cx.rqs.join(into, rq);
    sched.insert_merged(cx, into, rq);
    acct.stats.joins += 1;
    cx.event(Action::BackMerge, into);
    cx.joined_event(into, rq);
    // As in the kernel, this neither asks the elevator nor joins neighbours. Only the hash changes.
    rehash(cx, into);
    cx.merge.last = Some(into);
    acct.freed.push(rq);
}
