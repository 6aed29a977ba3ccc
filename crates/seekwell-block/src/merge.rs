//! Merging, shared by both layers: the search (one-hit cache, end-sector hash, the elevator's front
//! search), size limits, and joining of neighbours.

use crate::stats::QueueStats;
use seekwell_core::{Action, Bio, Flags, IocId, RqId, State};
use seekwell_sched::{BioMerge, Cx, MergeKind, Scheduler};

/// Results of merging for the layer: counters, and emptied requests that the layer must free (it
/// tells the elevator and returns the pool place or tag).
#[derive(Debug, Default)]
pub struct Account {
    /// Counters.
    pub stats: QueueStats,
    /// Requests to free.
    pub freed: Vec<RqId>,
}

pub use seekwell_sched::admit::bio_mergeable;

/// Which end of `rq` the bio touches; the end of the request is checked first.
#[inline]
pub fn touches(cx: &Cx, rq: RqId, bio: &Bio) -> Option<MergeKind> {
    cx.merge_kind(rq, bio)
}

/// Whether the operation is the same and the request still accepts bios. blk-mq also requires the
/// same priority and cgroup.
#[inline]
pub fn compatible(cx: &Cx, rq: RqId, bio: &Bio, ioc: IocId) -> bool {
    let r = &cx.rqs[rq];
    if !r.mergeable() || r.op != bio.op {
        return false;
    }
    !cx.queue.era.is_mq() || cx.merge_ok(rq, bio, ioc)
}

/// Finds a request that `bio` extends. `hash`: the elevator keeps an end-sector hash.
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
    // As in the kernel, the elevator is asked before positions are compared: BFQ may merge queues
    // when it is asked.
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

/// Marks a request that would grow too large; it never grows again.
fn refuse(cx: &mut Cx, rq: RqId) {
    cx.rqs[rq].flags |= Flags::NOMERGE;
    if cx.merge.last == Some(rq) {
        cx.merge.last = None;
    }
}

/// Adds `bio` to `rq`, which [`find`] returned. False if that would exceed a size limit.
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

/// Whether these two queued requests may be joined.
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

/// `kept` takes over `gone`; both are queued. `gone` goes on the list of requests to free.
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

/// Counts a request as inside the scheduler, hashes it, and fills the empty one-hit cache.
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

/// Merges a plugged request into a queued one at insertion (append only): first by the one-hit
/// cache, then by the hash, as long as there is a match. True if `rq` was merged; the caller must
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

/// Appends `rq`, which is not in the scheduler yet, to the queued request `into`.
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
    // Here the kernel does not ask the elevator and does not join neighbours; only the hash
    // changes.
    rehash(cx, into);
    cx.merge.last = Some(into);
    acct.freed.push(rq);
}
