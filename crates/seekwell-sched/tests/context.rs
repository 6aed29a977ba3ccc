//! Facts of the registry and of the context that no decision of a scheduler shows.

use seekwell_core::{
    Bio, CgroupId, Era, Flags, IoPrio, Nanos, Op, SchedulerWork, TaskId, TickClock,
};
use seekwell_sched::{Cx, QueueFacts, Waiting};

#[test]
fn the_bound_of_a_wait_counts_clock_time_and_requests() {
    let w = Waiting {
        fixed_ms: 100,
        requests: 7,
        per_task_ms: 20,
        per_task_requests: 3,
        writes_before_read: 0,
        except: &[],
    };
    // 100 ms + 5 x 20 ms; 7 requests, 5 x (3 + 1) of other tasks, and the request itself.
    let service = Nanos::from_ms(2);
    assert_eq!(w.bound(5, service), Nanos::from_ms(200 + 28 * 2));
    assert_eq!(w.bound(0, service), Nanos::from_ms(100 + 8 * 2));
}

#[test]
fn work_is_counted_by_request_and_taken_once() {
    let mut cx = Cx::new(QueueFacts::example(Era::Mq), TickClock::new(1000));
    let ioc = cx.iocs.create(TaskId(1), IoPrio::be(4), CgroupId::ROOT);
    let enter = |cx: &mut Cx, hctx| {
        let bio = Bio::new(1, TaskId(1), Op::Read, Flags::empty(), 8, 8);
        let now = cx.now();
        let rq = cx.rqs.alloc(bio, ioc, IoPrio::be(4), Era::Mq, now);
        cx.rqs[rq].hctx = hctx;
        cx.entered(rq);
    };
    cx.count_work(true);
    enter(&mut cx, 0);
    assert_eq!(cx.take_work(), None, "the cost is not known");
    let cost = SchedulerWork {
        requests: 0,
        instructions: 900,
        fifo_instructions: 600,
        lock: None,
    };
    cx.cost = Some(cost);
    cx.count_work(true);
    assert_eq!(cx.take_work(), None, "no request has entered");
    enter(&mut cx, 2);
    enter(&mut cx, 2);
    let work = cx.take_work().expect("two requests");
    assert_eq!(
        (work.requests, work.lock),
        (2, Some(3)),
        "own lock of a hardware queue"
    );
    assert_eq!(cx.take_work(), None, "it is taken");
    // One lock for all hardware queues.
    cx.cost = Some(SchedulerWork {
        lock: Some(0),
        ..cost
    });
    cx.count_work(true);
    enter(&mut cx, 2);
    let work = cx.take_work().expect("one request");
    assert_eq!((work.requests, work.lock), (1, Some(0)));
    assert_eq!(cx.nr_sorted, 4);
}

#[test]
fn cpus_share_hardware_contexts_in_equal_contiguous_groups() {
    let mut facts = QueueFacts::example(Era::Mq);
    (facts.cpus, facts.hctxs) = (6, 3);
    let all: Vec<u16> = (0..8).map(|cpu| facts.hctx_of(cpu)).collect();
    assert_eq!(all, [0, 0, 1, 1, 2, 2, 0, 0]);
    (facts.cpus, facts.hctxs) = (0, 2);
    assert_eq!(facts.hctx_of(1), 0, "no CPU counts as one");
    facts.hctxs = 1;
    assert_eq!(facts.hctx_of(5), 0);
}

#[test]
fn the_queue_of_the_examples() {
    let facts = QueueFacts::example(Era::K4_0);
    assert_eq!((facts.depth, facts.nr_requests), (1, 128));
    assert_eq!((facts.hctxs, facts.cpus, facts.nomerges), (1, 1, 0));
    assert_eq!(facts.max_sectors.0, 1024);
}

#[test]
fn costs_are_found_by_name() {
    use seekwell_sched::costs::instructions;
    assert_eq!(instructions("noop"), Some(635));
    assert_eq!(instructions("nop"), None);
}
