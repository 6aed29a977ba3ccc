//! Tests which bios can be merged into which requests.

use super::*;
use crate::bench::mq_cx;
use seekwell_core::{CgroupId, Era, Sectors, TaskId};

const START: u64 = 1000;

fn bio(op: Op, flags: Flags, sector: u64, sectors: u32) -> Bio {
    Bio::new(sector, TaskId(1), op, flags, sector, sectors)
}

/// A context with one request of 8 sectors at [`START`].
fn context_with_request() -> (Cx, IocId, RqId) {
    let mut cx = mq_cx(true);
    let ioc = cx.iocs.create(TaskId(1), IoPrio::be(4), CgroupId::ROOT);
    let rq = add(&mut cx, ioc, START);
    (cx, ioc, rq)
}

fn add(cx: &mut Cx, ioc: IocId, sector: u64) -> RqId {
    let (now, read) = (cx.now(), bio(Op::Read, Flags::empty(), sector, 8));
    cx.rqs.alloc(read, ioc, IoPrio::be(4), Era::Mq, now)
}

#[test]
fn flushes_empty_and_marked_bios_never_merge() {
    let may = |op, flags, sectors| bio_mergeable(&bio(op, flags, 0, sectors));
    assert!(may(Op::Read, Flags::empty(), 1));
    assert!(may(Op::Write, Flags::SYNC, 8));
    assert!(!may(Op::Read, Flags::empty(), 0));
    assert!(!may(Op::Flush, Flags::empty(), 8));
    for flag in [Flags::NOMERGE, Flags::PREFLUSH, Flags::FUA, Flags::BARRIER] {
        assert!(!may(Op::Write, flag, 8), "{flag:?}");
    }
}

#[test]
fn blk_mq_compares_operation_cgroup_and_priority() {
    let (cx, ioc, rq) = context_with_request();
    let same = bio(Op::Read, Flags::empty(), START + 8, 8);
    assert!(cx.merge_ok(rq, &same, ioc));
    let write = bio(Op::Write, Flags::SYNC, START + 8, 8);
    assert!(!cx.merge_ok(rq, &write, ioc));
    let mut other = same;
    other.cgroup = CgroupId(3);
    assert!(!cx.merge_ok(rq, &other, ioc));
    // A bio without a class of its own has the priority of its context.
    for (prio, want) in [
        (IoPrio::be(4), true),
        (IoPrio::be(3), false),
        (IoPrio::NONE, true),
    ] {
        let mut bio = same;
        bio.ioprio = Some(prio);
        assert_eq!(cx.merge_ok(rq, &bio, ioc), want, "{prio:?}");
    }
}

#[test]
fn bio_merges_only_if_it_touches_the_end_or_the_start() {
    let (cx, _, rq) = context_with_request();
    for (sector, want) in [
        (START + 8, Some(MergeKind::Back)),
        (START - 8, Some(MergeKind::Front)),
        (START + 7, None),
        (START - 9, None),
        (START, None),
    ] {
        let bio = bio(Op::Read, Flags::empty(), sector, 8);
        assert_eq!(cx.merge_kind(rq, &bio), want, "{sector}");
    }
}

#[test]
fn request_grows_up_to_the_limits_of_the_queue() {
    let (mut cx, _, rq) = context_with_request();
    let more = bio(Op::Read, Flags::empty(), START + 8, 8);
    let entries = cx.rqs[rq].segments + more.segments();
    for (sectors, segments, want) in [
        (16, entries, true),
        (15, entries, false),
        (16, entries - 1, false),
    ] {
        (cx.queue.max_sectors, cx.queue.max_segments) = (Sectors(sectors), segments);
        assert_eq!(cx.fits(rq, &more), want, "{sectors} {segments}");
    }
}

#[test]
fn only_the_eight_newest_requests_are_compared() {
    for (newer, found) in [(0, true), (7, true), (8, false)] {
        let (mut cx, ioc, rq) = context_with_request();
        let (mut links, mut list) = (Links::new(), List::new());
        links.push_back(&mut list, rq.0);
        for i in 0..newer {
            let far = add(&mut cx, ioc, 100_000 + 100 * i);
            links.push_back(&mut list, far.0);
        }
        let bio = bio(Op::Read, Flags::empty(), START + 8, 8);
        let want = if found {
            BioMerge::Found(rq, MergeKind::Back)
        } else {
            BioMerge::No
        };
        let got = cx.scan_for_merge(&links, &list, &bio, ioc);
        assert_eq!(got, want, "{newer} newer requests");
    }
}

/// A request that the bio touches ends the search, even if it is full.
#[test]
fn full_request_that_touches_the_bio_ends_the_search() {
    let (mut cx, ioc, older) = context_with_request();
    let newer = add(&mut cx, ioc, START + 16);
    let (mut links, mut list) = (Links::new(), List::new());
    links.push_back(&mut list, older.0);
    links.push_back(&mut list, newer.0);
    let between = bio(Op::Read, Flags::empty(), START + 8, 8);
    let found = cx.scan_for_merge(&links, &list, &between, ioc);
    assert_eq!(found, BioMerge::Found(newer, MergeKind::Front));
    cx.queue.max_sectors = Sectors(15);
    let found = cx.scan_for_merge(&links, &list, &between, ioc);
    assert_eq!(found, BioMerge::No);
}
