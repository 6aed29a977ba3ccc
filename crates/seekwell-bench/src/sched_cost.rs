//! The cost of a scheduler alone: insert, dispatch and completion, without a block layer. Scenarios
//! differ in the numbers of queued requests and of processes.

use crate::scenario::Scenario;
use rand::Rng;
use seekwell_core::rng::stream;
use seekwell_core::{
    Bio, CgroupId, Flags, Instant, IoPrio, Nanos, Op, RqId, State, TaskId, TickClock,
};
use seekwell_sched::{Cx, Insert, IocEvent, Layer, QueueFacts, SchedulerInfo, registry};

/// Largest number of calls without a request, for schedulers that idle. More calls are an error.
const PATIENCE: u32 = 1_000;

fn cost(info: &'static SchedulerInfo, queued: u64, processes: u32, ios: u64) -> u64 {
    let (version, era) = info.versions[0];
    let facts = QueueFacts {
        depth: 4,
        nr_requests: 8192,
        ..QueueFacts::example(era)
    };
    let mut cx = Cx::new(facts, TickClock::new(1000));
    let mut s = (info.make)(&cx, version);
    let iocs: Vec<_> = (0..processes)
        .map(|p| {
            let ioc = cx.iocs.create(TaskId(p), IoPrio::NONE, CgroupId::ROOT);
            s.ioc_event(&mut cx, ioc, IocEvent::Attach);
            ioc
        })
        .collect();
    let mut rng = stream(11, "cost");
    let mut now = Instant::START;
    let mut sum = 0u64;
    let mut made = 0u64;
    let mut insert = |cx: &mut Cx, s: &mut dyn seekwell_sched::Scheduler| {
        let who = rng.random_range(0..processes);
        let (op, flags) = if rng.random_range(0..4u32) == 0 {
            (Op::Write, Flags::empty())
        } else {
            (Op::Read, Flags::empty())
        };
        let sector = rng.random_range(0..1u64 << 28) * 8;
        let bio = Bio::new(made, TaskId(who), op, flags, sector, 8);
        made += 1;
        let ioc = iocs[who as usize];
        cx.iocs.get_mut(ioc).requests += 1;
        let at = cx.now();
        let rq = cx.rqs.alloc(bio, ioc, IoPrio::be(4), era, at);
        s.prepare(cx, rq);
        cx.rqs[rq].state = State::Sorted;
        cx.nr_sorted += 1;
        cx.merge.add(rq, bio.end());
        s.insert(cx, rq, Insert::Sorted);
    };
    for _ in 0..queued.min(ios) {
        insert(&mut cx, &mut *s);
    }
    for i in 0..ios {
        let rq: RqId = take(&mut cx, &mut *s, &mut now);
        cx.rqs[rq].state = State::InFlight;
        cx.rqs[rq].issue = now;
        cx.in_driver += 1;
        s.activate(&mut cx, rq);
        now = now + Nanos::from_us(100);
        cx.set_now(now);
        cx.in_driver -= 1;
        s.completed(&mut cx, rq);
        let r = &cx.rqs[rq];
        sum = sum.wrapping_mul(31).wrapping_add(r.sector.0 ^ now.0);
        let ioc = r.ioc;
        s.finish(&mut cx, rq);
        cx.iocs.get_mut(ioc).requests -= 1;
        cx.rqs.free(rq);
        if i + queued < ios {
            insert(&mut cx, &mut *s);
        }
        cx.take_kick();
        cx.take_run();
    }
    sum
}

/// Calls the scheduler until it dispatches a request. Fires timers that expire meanwhile.
fn take(cx: &mut Cx, s: &mut dyn seekwell_sched::Scheduler, now: &mut Instant) -> RqId {
    for _ in 0..PATIENCE {
        if let Some(rq) = cx.out.pop() {
            return rq;
        }
        if s.dispatch(cx, 0, false) == 0 && cx.out.is_empty() {
            let (at, slot) = cx
                .next_timer()
                .unwrap_or((*now + Nanos::from_ms(1), u8::MAX));
            *now = (*now).max(at);
            cx.set_now(*now);
            if slot != u8::MAX {
                cx.fired(slot);
                s.timer(cx, slot);
            }
        }
    }
    panic!(
        "{} returns no request although requests are queued",
        s.tunables().len()
    );
}

/// Returns scenarios for every scheduler, with three queue lengths and three numbers of processes.
pub fn all() -> Vec<Scenario> {
    let mut v = Vec::new();
    for info in registry() {
        for (queued, processes) in [
            (1u64, 1u32),
            (32, 1),
            (32, 8),
            (32, 256),
            (4096, 8),
            (4096, 256),
        ] {
            let layer = if info.layer == Layer::Mq {
                "blk-mq"
            } else {
                "single-queue"
            };
            v.push(Scenario {
                name: format!("{}-q{queued}-p{processes}", info.name),
                what: format!(
                    "{} ({layer}): insert + dispatch + complete, {queued} queued, {processes} processes",
                    info.name
                ),
                ios: 300_000,
                run: Box::new(move |ios| cost(info, queued, processes, ios)),
            });
        }
    }
    v
}
