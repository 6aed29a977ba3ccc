//! Worked examples of kyber's arithmetic: tokens, windows, sizes of pools.

mod resize;
mod wakes;

use super::*;
use crate::cx::QueueFacts;
use seekwell_core::{CgroupId, Flags, Instant, IoPrio, State, TaskId, TickClock};

fn queue() -> (Cx, Kyber) {
    let mut facts = QueueFacts::example(Era::Mq);
    facts.nr_requests = 256;
    let cx = Cx::new(facts, TickClock::new(1000));
    let kyber = Kyber::new(&cx, false);
    (cx, kyber)
}

fn insert(cx: &mut Cx, k: &mut Kyber, id: u64, op: Op) -> RqId {
    let task = TaskId(1);
    let ioc = match cx.iocs.find(task) {
        Some(ioc) => ioc,
        None => cx.iocs.create(task, IoPrio::be(4), CgroupId::ROOT),
    };
    let bio = Bio::new(id, task, op, Flags::empty(), id * 100, 8);
    let now = cx.now();
    let rq = cx.rqs.alloc(bio, ioc, IoPrio::be(4), Era::Mq, now);
    k.prepare(cx, rq);
    cx.rqs[rq].state = State::Sorted;
    cx.nr_sorted += 1;
    k.insert(cx, rq, Insert::Sorted);
    rq
}

fn call(cx: &mut Cx, k: &mut Kyber) -> Option<RqId> {
    k.dispatch(cx, 0, false);
    k.check(cx);
    cx.out.pop()
}

fn end(cx: &mut Cx, k: &mut Kyber, rq: RqId) {
    k.completed(cx, rq);
    k.finish(cx, rq);
    cx.rqs.free(rq);
}

#[test]
fn a_drain_needs_no_tokens() {
    let (mut cx, mut k) = queue();
    for pool in &mut k.pools {
        pool.size = 1;
    }
    let writes = [1, 2].map(|id| insert(&mut cx, &mut k, id, Op::Write));
    let reads = [3, 4].map(|id| insert(&mut cx, &mut k, id, Op::Read));
    let sent: Vec<_> = (0..3).map(|_| call(&mut cx, &mut k)).collect();
    assert_eq!(
        sent,
        [Some(reads[0]), Some(writes[0]), None],
        "no tokens are left"
    );
    for want in [reads[1], writes[1]] {
        assert_eq!(k.dispatch(&mut cx, 0, true), 1);
        assert_eq!(cx.out.pop(), Some(want), "reads are the first domain");
    }
    assert_eq!(k.dispatch(&mut cx, 0, true), 0);
    assert!(k.pools.iter().all(|p| p.size == 1), "the limits stay");
}

#[test]
fn domain_without_tokens_waits_without_blocking_other_domains() {
    let (mut cx, mut k) = queue();
    k.pools[WRITE].size = 2;
    let w: Vec<_> = (0..4)
        .map(|i| insert(&mut cx, &mut k, i, Op::Write))
        .collect();
    let r = insert(&mut cx, &mut k, 9, Op::Read);
    let order: Vec<_> = (0..4).map(|_| call(&mut cx, &mut k)).collect();
    assert_eq!(order, [Some(r), Some(w[0]), Some(w[1]), None]);
    assert!(!cx.take_kick(), "nobody is woken without a token");
    end(&mut cx, &mut k, w[0]);
    assert!(cx.take_kick(), "a freed token wakes who waits for it");
    assert_eq!(call(&mut cx, &mut k), Some(w[2]));
    assert_eq!(call(&mut cx, &mut k), None);
}

#[test]
fn slow_device_shrinks_pools_by_their_own_latency() {
    let (mut cx, mut k) = queue();
    let us = 1_000;
    for i in 0..600 {
        k.histograms
            .add(READ, 1_900 * us, 1_500 * us, k.target_ns[READ]);
        if i < 500 {
            let io = if i < 400 { 3_000 } else { 12_000 };
            k.histograms
                .add(WRITE, 4_000 * us, io * us, k.target_ns[WRITE]);
        }
    }
    k.timer(&mut cx, 0);
    assert_eq!(k.pool_sizes(), [256, 64, 64, 16]);
    for i in 0..600 {
        k.histograms
            .add(READ, 3_100 * us, 1_500 * us, k.target_ns[READ]);
        if i < 500 {
            k.histograms
                .add(WRITE, 40_000 * us, 2_000 * us, k.target_ns[WRITE]);
        }
    }
    cx.set_now(Instant::at_us(1_100_000));
    k.timer(&mut cx, 0);
    assert_eq!(
        k.pool_sizes(),
        [256, 128, 64, 16],
        "a good device: pools only grow"
    );
}

#[test]
fn at_low_rates_the_pool_size_follows_stored_latencies() {
    let (mut cx, mut k) = queue();
    let (mut io_read_at, mut total_read_at) = (vec![], vec![]);
    for tick in 1..=121u64 {
        cx.set_now(Instant::at_us(tick * 100_000));
        for _ in 0..5 {
            k.histograms
                .add(READ, 5_000_000, 2_600_000, k.target_ns[READ]);
        }
        k.timer(&mut cx, 0);
        if k.histograms.io[READ].samples() == 0 {
            io_read_at.push(tick);
        }
        if k.histograms.total[READ].samples() == 0 {
            total_read_at.push(tick);
            assert_eq!(k.p99_kept[READ], Some(7));
        }
        assert_eq!(k.pool_sizes()[READ], 256, "it never shrinks");
    }
    assert_eq!(io_read_at, [11, 21, 31, 41, 51, 61, 71, 81, 91, 111, 121]);
    assert_eq!(total_read_at, [100]);
    assert_eq!(k.p99_kept[READ], None, "used up at tick 111");
}

#[test]
fn shrunk_pool_recalls_no_issued_token() {
    let (mut cx, mut k) = queue();
    for i in 0..101 {
        insert(&mut cx, &mut k, i, Op::Write);
    }
    let out: Vec<_> = (0..100).filter_map(|_| call(&mut cx, &mut k)).collect();
    assert_eq!(out.len(), 100);
    k.pools[WRITE].size = 64;
    for (freed, rq) in out.into_iter().enumerate() {
        let last = call(&mut cx, &mut k);
        if freed <= 36 {
            assert_eq!(last, None, "{} tokens are out", 100 - freed);
        } else {
            assert!(last.is_some());
            return;
        }
        end(&mut cx, &mut k, rq);
    }
    panic!("the last write never left");
}

#[test]
fn no_domain_waits_longer_than_a_round_of_batches() {
    let (mut cx, mut k) = queue();
    for i in 0..120 {
        for op in [Op::Read, Op::Write, Op::Discard, Op::WriteZeroes] {
            insert(&mut cx, &mut k, i, op);
        }
    }
    let mut since = [0u32; DOMAINS];
    for _ in 0..150 {
        let rq = call(&mut cx, &mut k).expect("work conserving");
        let d = domain_of(cx.rqs[rq].op);
        assert!(
            since[d] <= 16 + 8 + 1 + 1,
            "{} waited {}",
            NAMES[d],
            since[d]
        );
        since.iter_mut().for_each(|s| *s += 1);
        since[d] = 0;
        end(&mut cx, &mut k, rq);
    }
}

mod random {
    use super::*;
    use proptest::prelude::*;
    use seekwell_core::Nanos;
    use std::collections::{BTreeMap, VecDeque};

    const OPS: [Op; 4] = [Op::Read, Op::Write, Op::Discard, Op::WriteZeroes];

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        /// The invariants hold for random sequences. The targets are low, so that the device is
        /// often slow.
        #[test]
        fn kyber_invariants_hold_for_random_operations(
            ops in prop::collection::vec((0u8..10, 0usize..4, 0u16..3, 0u64..60_000_000), 1..400),
            target in prop::sample::select(vec![0u64, 4_000_000, 40_000_000]),
        ) {
            let mut facts = QueueFacts::example(Era::Mq);
            facts.cpus = 3;
            let mut cx = Cx::new(facts, TickClock::new(1000));
            let mut k = Kyber::new(&cx, false);
            k.store(&mut cx, "read_lat_nsec", &target.to_string()).unwrap();
            let ioc = cx.iocs.create(TaskId(1), IoPrio::be(4), CgroupId::ROOT);
            let mut fifo: BTreeMap<(u16, usize), VecDeque<RqId>> = BTreeMap::new();
            let mut flying: Vec<RqId> = vec![];
            let mut samples = [0u64; MEASURED];
            for (what, d, cpu, ns) in ops {
                match what {
                    0..=4 => {
                        let bio = Bio::new(0, TaskId(1), OPS[d], Flags::empty(), ns / 4096 * 8, 8);
                        let now = cx.now();
                        let rq = cx.rqs.alloc(bio, ioc, IoPrio::be(4), Era::Mq, now);
                        k.prepare(&mut cx, rq);
                        (cx.rqs[rq].state, cx.rqs[rq].cpu) = (State::Sorted, cpu);
                        cx.nr_sorted += 1;
                        k.insert(&mut cx, rq, Insert::Sorted);
                        fifo.entry((cpu, d)).or_default().push_back(rq);
                    }
                    5..=7 => {
                        let free = |d: usize| k.pools[d].used < k.pools[d].size;
                        let waits = |d: usize| fifo.iter().any(|(key, q)| key.1 == d && !q.is_empty());
                        let possible = (0..DOMAINS).any(|d| free(d) && waits(d));
                        k.dispatch(&mut cx, 0, false);
                        let Some(rq) = cx.out.pop() else {
                            prop_assert!(!possible, "a token and a request, and nothing is given");
                            continue;
                        };
                        let d = domain_of(cx.rqs[rq].op);
                        prop_assert!(k.pools[d].used <= k.pools[d].size, "P1");
                        let first = fifo.get_mut(&(cx.rqs[rq].cpu, d)).and_then(VecDeque::pop_front);
                        prop_assert_eq!(first, Some(rq), "P3");
                        (cx.rqs[rq].state, cx.rqs[rq].issue) = (State::InFlight, cx.now());
                        flying.push(rq);
                    }
                    8 if !flying.is_empty() => {
                        cx.set_now(cx.now() + Nanos(ns / 16));
                        let rq = flying.remove(ns as usize % flying.len());
                        let d = domain_of(cx.rqs[rq].op);
                        end(&mut cx, &mut k, rq);
                        if d < MEASURED {
                            samples[d] += 1;
                            prop_assert_eq!(k.histograms.total[d].samples(), samples[d], "P8");
                        }
                    }
                    _ => {
                        let before = k.pool_sizes();
                        cx.set_now(cx.now() + Nanos::from_ms(1100));
                        cx.log.listen(true);
                        cx.log.events.clear();
                        k.timer(&mut cx, 0);
                        let bad = cx.log.events.iter().any(|e| e.detail.contains("device slow"));
                        cx.log.listen(false);
                        for (old, new) in before.iter().zip(k.pool_sizes()) {
                            prop_assert!(new >= *old || bad, "P5");
                        }
                        for (count, h) in samples.iter_mut().zip(&k.histograms.total) {
                            *count = h.samples();
                        }
                    }
                }
                k.check(&cx);
            }
        }
    }
}
