//! Tests of the levels of `nomerges`.

use super::*;
use seekwell_core::{CgroupId, IoPrio, Op, TaskId, TickClock};
use seekwell_sched::QueueFacts;

/// A scheduler with two requests: `near` is in the one-hit cache, `far` only in the hash.
struct Queued {
    cx: Cx,
    sched: Box<dyn Scheduler>,
    ioc: IocId,
    near: RqId,
    far: RqId,
}

const NEAR: u64 = 1000;
const FAR: u64 = 500_000;

fn bio(sector: u64) -> Bio {
    Bio::new(sector, TaskId(1), Op::Read, Flags::empty(), sector, 8)
}

fn alloc(cx: &mut Cx, sched: &mut dyn Scheduler, ioc: IocId, sector: u64) -> RqId {
    let (era, now) = (cx.queue.era, cx.now());
    let rq = cx.rqs.alloc(bio(sector), ioc, IoPrio::be(4), era, now);
    sched.prepare(cx, rq);
    rq
}

fn queued(scheduler: &str, nomerges: u8) -> Queued {
    let (info, version, era) = seekwell_sched::find(scheduler).expect("a scheduler");
    let mut facts = QueueFacts::example(era);
    facts.nomerges = nomerges;
    let mut cx = Cx::new(facts, TickClock::new(1000));
    let mut sched = (info.make)(&cx, version);
    let ioc = cx.iocs.create(TaskId(1), IoPrio::be(4), CgroupId::ROOT);
    sched.ioc_event(&mut cx, ioc, seekwell_sched::IocEvent::Attach);
    let [near, far] = [NEAR, FAR].map(|sector| {
        let rq = alloc(&mut cx, &mut *sched, ioc, sector);
        enter(&mut cx, rq, true);
        sched.insert(&mut cx, rq, seekwell_sched::Insert::Sorted);
        rq
    });
    Queued {
        cx,
        sched,
        ioc,
        near,
        far,
    }
}

impl Queued {
    fn find(&mut self, sector: u64) -> Option<(RqId, MergeKind)> {
        find(&mut self.cx, &mut *self.sched, &bio(sector), self.ioc, true)
    }
    /// Inserts a plugged request. Returns true if it was merged.
    fn insert(&mut self, sector: u64) -> bool {
        let rq = alloc(&mut self.cx, &mut *self.sched, self.ioc, sector);
        let mut acct = Account::default();
        insert_merge(&mut self.cx, &mut *self.sched, &mut acct, rq)
    }
}

#[test]
fn nomerges_1_looks_up_bios_only_in_the_one_hit_cache() {
    for scheduler in ["deadline", "mq-deadline"] {
        for nomerges in [0, 1] {
            let mut q = queued(scheduler, nomerges);
            let (near, far) = (q.near, q.far);
            assert_eq!(q.cx.merge.last, Some(near));
            assert_eq!(q.find(NEAR + 8), Some((near, MergeKind::Back)));
            assert_eq!(q.find(NEAR - 8), Some((near, MergeKind::Front)));
            let all = nomerges == 0;
            let back = all.then_some((far, MergeKind::Back));
            assert_eq!(q.find(FAR + 8), back, "{scheduler} {nomerges}: hash");
            if scheduler == "deadline" {
                let front = all.then_some((far, MergeKind::Front));
                assert_eq!(q.find(FAR - 8), front, "{nomerges}: front");
            }
        }
    }
}

#[test]
fn nomerges_1_looks_up_plugged_requests_only_in_the_one_hit_cache() {
    for (nomerges, near, far) in [(0, true, true), (1, true, false), (2, false, false)] {
        let merged = |sector| queued("deadline", nomerges).insert(sector);
        assert_eq!(merged(NEAR + 8), near, "{nomerges}: one-hit cache");
        assert_eq!(merged(FAR + 8), far, "{nomerges}: hash");
    }
}
