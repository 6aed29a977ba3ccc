//! The driver of eMMC and SD cards, rule by rule: when it asks the elevator, what it packs, and
//! what an urgent request stops and returns.

use proptest::prelude::*;
use seekwell_block::{HostDriver, LegacyOptions, LegacyQueue};
use seekwell_core::{
    Bio, BioDone, BioSink, Device, Era, Flags, Instant, Links, List, MmcHost, Nanos, Op, Packing,
    RqId, TaskId, TickClock,
};
use seekwell_device::{Emmc, EmmcParams, read_preset};
use seekwell_sched::{Cx, Emit, Insert, QueueFacts, Scheduler};
use std::sync::{Arc, Mutex};

/// A FIFO that records when it is asked and what it returned, and treats reads as urgent.
#[derive(Default)]
struct Fifo {
    fifo: List,
    links: Links,
    urgent_reads: bool,
    urgent: Option<RqId>,
    asked: Asked,
}

/// When the elevator was asked, us, and whether it returned a request.
type Asked = Arc<Mutex<Vec<(u64, bool)>>>;

impl Scheduler for Fifo {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        let read = cx.rqs[rq].op == Op::Read;
        match how {
            Insert::Sorted if self.urgent_reads && read && self.urgent.is_none() => {
                self.urgent = Some(rq);
            }
            Insert::Reinsert | Insert::AtHead => self.links.push_front(&mut self.fifo, rq.0),
            _ => self.links.push_back(&mut self.fifo, rq.0),
        }
    }
    fn dispatch(&mut self, cx: &mut Cx, _: u16, _: bool) -> u32 {
        let next = self.urgent.take();
        let next = next.or_else(|| self.links.pop_front(&mut self.fifo).map(RqId));
        let mut asked = self.asked.lock().unwrap();
        asked.push((cx.now().since_start() / 1000, next.is_some()));
        next.map_or(0, |rq| {
            cx.emit(rq, Emit::Tail);
            1
        })
    }
    fn has_work(&self, _: &Cx, _: u16) -> bool {
        !self.fifo.is_empty()
    }
    fn joined(&mut self, _: &mut Cx, _: RqId, gone: RqId) {
        self.links.remove(&mut self.fifo, gone.0);
    }
    fn urgent(&self) -> bool {
        self.urgent.is_some()
    }
}

type Q = LegacyQueue<Fifo, Emmc>;

/// The card takes 1 ms per read, 10 ms per write, 1 ms per further write of a group, and 100 us per
/// stop.
const CARD: &str = "emmc:motog-sandisk8,noise_read=0,noise_write=0,read_base=996us,read_per_kib=1,\
    write_base=9.996,write_per_kib=1,map_miss=0,place_penalty=0,clean_pool=0,pack_item=1,\
    hpi_stop=100us,page=4KiB";

fn host(packing: Packing) -> MmcHost {
    MmcHost {
        max_packed: 63,
        packing,
        wakes: true,
        prepare: Nanos::ZERO,
    }
}

/// The card, with its options replaced by `options`.
fn card(options: &str) -> String {
    let name = |option: &str| option.split('=').next().unwrap().to_owned();
    let given: Vec<String> = options.split(',').map(name).collect();
    let own = CARD.split(',').filter(|own| !given.contains(&name(own)));
    own.collect::<Vec<_>>().join(",") + options
}

fn queue(options: &str, host: MmcHost, sched: Fifo) -> Q {
    let preset = read_preset(&card(options)).unwrap();
    let dev = Emmc::new(&EmmcParams::from_preset(&preset).unwrap(), 1);
    let facts = QueueFacts {
        can_stop: dev.facts().can_stop,
        rotational: false,
        ..QueueFacts::example(Era::K3_4)
    };
    let opts = LegacyOptions::default();
    let driver = HostDriver::Mmc(host);
    LegacyQueue::new(facts, TickClock::new(1000), opts, driver, dev, |_| {
        Box::new(sched)
    })
}

fn io(id: u64, op: Op, sector: u64) -> Bio {
    Bio::new(id, TaskId(1), op, Flags::empty(), sector, 8)
}
/// A write far from all others, so that nothing merges.
fn write(id: u64) -> Bio {
    io(id, Op::Write, id * 1000)
}
fn read(id: u64) -> Bio {
    io(id, Op::Read, id * 1000)
}

/// Runs up to `to`; returns (id, us) in order of completion.
fn until(q: &mut Q, to: Instant) -> Vec<(u64, u64)> {
    let mut out: Vec<BioDone> = Vec::new();
    let mut steps = 0;
    while let Some(t) = q.next_event().filter(|t| *t <= to) {
        q.advance(t, &mut out);
        q.check();
        steps += 1;
        assert!(steps < 100_000, "it never ends");
    }
    let row = |d: &BioDone| (d.id.0, d.at.since_start() / 1000);
    out.iter().map(row).collect()
}
fn finish(q: &mut Q) -> Vec<(u64, u64)> {
    until(q, Instant::FAR)
}

#[test]
fn mmc_driver_fetches_one_request_ahead() {
    let (sched, asked) = watched(false);
    let mut q = queue("", host(Packing::Off), sched);
    for id in 1..=3 {
        q.submit(Instant::START, write(id));
    }
    // Request 1 is on the bus, 2 is fetched, and 3 is not. The first of the four calls found
    // nothing.
    assert_eq!((q.in_flight(), q.cx.in_driver), (1, 2));
    let at_start = asked.lock().unwrap().iter().filter(|a| a.1).count();
    assert_eq!(at_start, 2);
    assert_eq!(finish(&mut q), [(1, 10_000), (2, 20_000), (3, 30_000)]);
    let found: Vec<u64> = asked
        .lock()
        .unwrap()
        .iter()
        .filter(|a| a.1)
        .map(|a| a.0)
        .collect();
    assert_eq!(
        found,
        [0, 0, 10_000],
        "asked when one was issued, not when it was done"
    );
}

fn watched(urgent_reads: bool) -> (Fifo, Asked) {
    let asked = Asked::default();
    let sched = Fifo {
        urgent_reads,
        asked: Arc::clone(&asked),
        ..Fifo::default()
    };
    (sched, asked)
}

#[test]
fn idle_mmc_queue_costs_two_empty_fetches() {
    let (sched, asked) = watched(false);
    let mut q = queue("", host(Packing::Off), sched);
    q.submit(Instant::START, write(1));
    finish(&mut q);
    let empty: Vec<u64> = asked
        .lock()
        .unwrap()
        .iter()
        .filter(|a| !a.1)
        .map(|a| a.0)
        .collect();
    assert_eq!(
        empty,
        [0, 10_000],
        "behind the issue, and behind the completion"
    );
}

/// The option `wakes` decides whether an arrival wakes the worker that waits for the card.
#[test]
fn request_arriving_during_a_transfer_is_fetched_at_once_only_if_it_wakes_the_driver() {
    for (wakes, fetched) in [(true, 3_000), (false, 10_000)] {
        let (sched, asked) = watched(false);
        let host = MmcHost {
            wakes,
            ..host(Packing::Off)
        };
        let mut q = queue("", host, sched);
        q.submit(Instant::START, write(1));
        until(&mut q, Instant::at_us(3_000));
        q.submit(Instant::at_us(3_000), read(2));
        assert_eq!(finish(&mut q), [(1, 10_000), (2, 11_000)]);
        let found: Vec<u64> = asked
            .lock()
            .unwrap()
            .iter()
            .filter(|a| a.1)
            .map(|a| a.0)
            .collect();
        assert_eq!(found, [0, fetched], "wakes: {wakes}");
    }
}

#[test]
fn preparation_overlaps_a_transfer_and_delays_only_an_idle_queue() {
    let host = MmcHost {
        prepare: Nanos::from_us(50),
        ..host(Packing::Off)
    };
    let mut q = queue("", host, Fifo::default());
    q.submit(Instant::START, read(1));
    q.submit(Instant::START, read(2));
    assert_eq!(finish(&mut q), [(1, 1_050), (2, 2_050)]);
}

#[test]
fn consecutive_writes_are_packed_into_a_group() {
    let mut q = queue("", host(Packing::Always), Fifo::default());
    for id in 1..=5 {
        q.submit(Instant::START, write(id));
    }
    // Request 1 was issued alone. Request 2 was then fetched, and no write was behind it at that
    // time.
    let rest = [(3, 34_012), (4, 34_012), (5, 34_012)];
    let mut expected = vec![(1, 10_000), (2, 20_000)];
    // The group takes a base time and three writes: 9996 + 3 (4 + 1000) us.
    expected.extend(rest.map(|(id, _)| (id, 20_000 + 9_996 + 3 * 1_004)));
    assert_eq!(finish(&mut q), expected);
    assert_eq!(q.stats().packed, 1);
    assert_eq!(q.stats().requests, 5);
}

/// A group ends at a read, a flush or FUA write, a discard, a write that would make it too large,
/// and at its limit. The request that ended it comes next.
#[test]
fn request_that_does_not_fit_a_packed_group_is_served_next() {
    let large = |id| Bio::new(id, TaskId(1), Op::Write, Flags::empty(), id * 5000, 1000);
    let fua = |id| Bio::new(id, TaskId(1), Op::Write, Flags::FUA, id * 1000, 8);
    for (what, ends, groups) in [
        ("a read", read(5), 1),
        ("a discard", io(5, Op::Discard, 5000), 1),
        ("too large", large(5), 2),
    ] {
        let mut q = queue("", host(Packing::Always), Fifo::default());
        for id in 1..=4 {
            q.submit(
                Instant::START,
                if id == 4 { large_half(4) } else { write(id) },
            );
        }
        q.submit(Instant::START, ends);
        q.submit(Instant::START, write(6));
        let order: Vec<u64> = finish(&mut q).iter().map(|d| d.0).collect();
        assert_eq!(order, [1, 2, 3, 4, 5, 6], "{what}");
        assert_eq!(
            q.stats().packed,
            groups,
            "{what}: 3 and 4; 5 and 6 if it is a write"
        );
    }
    let mut q = queue("", host(Packing::Always), Fifo::default());
    for id in 1..=3 {
        q.submit(Instant::START, write(id));
    }
    q.submit(Instant::START, fua(4));
    finish(&mut q);
    assert_eq!(q.stats().packed, 0, "a reliable write goes alone");
    let two = MmcHost {
        max_packed: 2,
        ..host(Packing::Always)
    };
    let mut q = queue("", two, Fifo::default());
    for id in 1..=7 {
        q.submit(Instant::START, write(id));
    }
    finish(&mut q);
    assert_eq!(q.stats().packed, 2, "1, 2, 3+4, 5+6, 7");
}
fn large_half(id: u64) -> Bio {
    Bio::new(id, TaskId(1), Op::Write, Flags::empty(), id * 5000, 600)
}

/// With the packing of Code Aurora, packing begins after a given number of writes in a row. A read
/// ends it.
#[test]
fn packing_starts_after_a_configured_run_of_writes() {
    let mut q = queue("", host(Packing::After(3)), Fifo::default());
    for id in 1..=9 {
        q.submit(Instant::START, write(id));
    }
    let times: Vec<u64> = finish(&mut q).iter().map(|d| d.1).collect();
    assert_eq!(times[..3], [10_000, 20_000, 30_000], "one by one");
    assert!(
        times[3..].iter().all(|t| *t == times[8]),
        "then 4 to 9 together"
    );
    let mut q = queue("", host(Packing::After(3)), Fifo::default());
    for id in 1..=9 {
        q.submit(Instant::START, if id == 3 { read(3) } else { write(id) });
    }
    finish(&mut q);
    assert_eq!(q.stats().packed, 1);
    assert_eq!(q.stats().requests, 9);
    let mut q = queue("", host(Packing::After(3)), Fifo::default());
    for id in 1..=9 {
        q.submit(
            Instant::START,
            if id % 3 == 0 { read(id) } else { write(id) },
        );
    }
    finish(&mut q);
    assert_eq!(q.stats().packed, 0, "reads between them");
}

#[test]
fn mmc_driver_fetches_nothing_during_a_flush() {
    let (sched, asked) = watched(false);
    let mut q = queue(",cache=512KiB,flush_base=5", host(Packing::Off), sched);
    q.submit(
        Instant::START,
        Bio::new(1, TaskId(1), Op::Flush, Flags::empty(), 0, 0),
    );
    q.submit(Instant::at_us(1_000), read(2));
    assert_eq!(finish(&mut q), [(1, 5_000), (2, 6_000)]);
    let found = asked.lock().unwrap().iter().find(|a| a.1).map(|a| a.0);
    assert_eq!(found, Some(5_000));
}

#[test]
fn without_write_cache_flushes_complete_at_once_and_fua_is_a_reliable_write() {
    let mut q = queue("", host(Packing::Off), Fifo::default());
    q.submit(
        Instant::START,
        Bio::new(1, TaskId(1), Op::Flush, Flags::empty(), 0, 0),
    );
    q.submit(
        Instant::START,
        Bio::new(2, TaskId(1), Op::Write, Flags::FUA, 0, 8),
    );
    assert_eq!(finish(&mut q), [(1, 0), (2, 10_000)]);
    assert_eq!(q.stats().flushes, 0);
}

/// The read goes at once. Half of the write is on the medium, and the other half follows before the
/// write that was fetched after it.
#[test]
fn urgent_read_stops_the_running_write_and_passes_the_prefetched_one() {
    let (sched, _) = watched(true);
    let mut q = queue(",write_base=0,write_per_kib=100", host(Packing::Off), sched);
    let long = Bio::new(1, TaskId(1), Op::Write, Flags::empty(), 0, 200);
    q.submit(Instant::START, long);
    q.submit(Instant::START, write(2));
    until(&mut q, Instant::at_us(5_000));
    q.submit(Instant::at_us(5_000), read(3));
    // The stop takes 100 us and the read 1 ms. Before the stop, 96 of the 200 sectors (twelve
    // pages) were written.
    let rest = 6_100 + 104 * 50;
    assert_eq!(finish(&mut q), [(3, 6_100), (1, rest), (2, rest + 400)]);
    assert_eq!((q.stats().stops, q.stats().requests), (1, 4));
}

#[test]
fn urgent_read_stops_a_packed_group_and_its_written_part_completes() {
    let (sched, _) = watched(true);
    let mut q = queue(
        ",write_base=0,write_per_kib=100,pack_item=0",
        host(Packing::Always),
        sched,
    );
    for id in 1..=5 {
        q.submit(
            Instant::START,
            Bio::new(id, TaskId(1), Op::Write, Flags::empty(), id * 1000, 80),
        );
    }
    // Requests 1 and 2 are issued alone and take 4 ms each. Then 3, 4 and 5 are a group of 12 ms,
    // which is stopped in the middle of 4.
    let mut done = until(&mut q, Instant::at_us(14_000));
    q.submit(Instant::at_us(14_000), read(9));
    done.extend(finish(&mut q));
    let want = [(1, 4_000), (2, 8_000), (3, 14_000), (9, 15_100)];
    assert_eq!(done[..4], want);
    // Forty sectors of request 4 and all of request 5 are left. They follow one after the other.
    let order: Vec<u64> = done[4..].iter().map(|d| d.0).collect();
    assert_eq!(order, [4, 5]);
    let last = done.last().unwrap().1;
    assert_eq!(last, 15_100 + (40 + 80) * 50, "nothing is written twice");
}

#[test]
fn without_hpi_the_running_write_continues_and_the_prefetched_one_is_requeued() {
    let (sched, _) = watched(true);
    let mut q = queue(",hpi=no", host(Packing::Off), sched);
    q.cx.queue.can_stop = true;
    q.submit(Instant::START, write(1));
    q.submit(Instant::START, write(2));
    until(&mut q, Instant::at_us(5_000));
    q.submit(Instant::at_us(5_000), read(3));
    assert_eq!(finish(&mut q), [(1, 10_000), (3, 11_000), (2, 21_000)]);
    assert_eq!(q.stats().stops, 0);
}

fn step() -> impl Strategy<Value = (u64, u8, u64, u32)> {
    (
        prop_oneof![3 => Just(0u64), 2 => 0u64..40_000],
        0u8..12,
        0u64..2_000,
        prop_oneof![Just(8u32), Just(1024), 1u32..300],
    )
}

proptest! {
    /// For any input: every bio completes once, the queue becomes idle, and the medium gets only
    /// the submitted sectors and the repeated parts after stops.
    #[test]
    fn every_bio_completes_exactly_once(
        steps in proptest::collection::vec(step(), 1..80), pack in 0u8..3, wakes: bool,
        urgent: bool, cache: bool, prepare in 0u64..200,
    ) {
        let host = MmcHost {
            packing: [Packing::Off, Packing::Always, Packing::After(2)][usize::from(pack)],
            wakes,
            prepare: Nanos::from_us(prepare),
            max_packed: 7,
        };
        let (sched, _) = watched(urgent);
        let cache = if cache { ",cache=64KiB" } else { "" };
        let mut q = queue(&format!("{cache},max_packed=7"), host, sched);
        let (mut now, mut done, mut asked) = (Instant::START, vec![], 0u64);
        for (id, (gap, kind, place, n)) in steps.iter().enumerate() {
            now = now + Nanos::from_us(*gap);
            done.extend(until(&mut q, now));
            let (op, flags) = match kind {
                0..=3 => (Op::Read, Flags::empty()),
                4 => (Op::Flush, Flags::empty()),
                5 => (Op::Write, Flags::FUA | Flags::PREFLUSH),
                6 => (Op::Discard, Flags::empty()),
                _ => (Op::Write, Flags::empty()),
            };
            let n = if op == Op::Flush { 0 } else { *n };
            asked += u64::from(n);
            q.submit(now, Bio::new(id as u64, TaskId(1), op, flags, place * 1024, n));
        }
        done.extend(finish(&mut q));
        let mut ids: Vec<u64> = done.iter().map(|d| d.0).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..steps.len() as u64).collect::<Vec<_>>());
        prop_assert!(q.in_flight() == 0 && q.cx.rqs.is_empty() && q.cx.in_driver == 0);
        let again = q.stats().stops * 1024;
        prop_assert!((asked..=asked + again).contains(&q.stats().sectors));
        prop_assert!(done.windows(2).all(|w| w[0].1 <= w[1].1));
    }
}
