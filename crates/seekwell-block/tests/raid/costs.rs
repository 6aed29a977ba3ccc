//! The cost of each level, request by request.

use super::{Memory, SIZE, bio, finish};
use seekwell_block::raid::{BitmapOptions, ParityOptions, ReadPolicy};
use seekwell_block::{HostDriver, LegacyOptions, LegacyQueue, Mirror, Parity, Stripe};
use seekwell_core::{
    Bio, BioSink, Control, Era, Flags, Instant, Nanos, Op, Sector, Sectors, TaskId, TickClock,
};
use seekwell_device::Constant;
use seekwell_device::raid::Level;
use seekwell_sched::QueueFacts;
use seekwell_sched::noop::Noop;

fn queue(service: Nanos) -> LegacyQueue<Noop, Constant> {
    let facts = QueueFacts::example(Era::K4_0);
    let host = HostDriver::Simple { depth: 1 };
    let dev = Constant::serial(1, service).capacity(Sector(1 << 20));
    LegacyQueue::new(
        facts,
        TickClock::new(1000),
        LegacyOptions::default(),
        host,
        dev,
        |_| Box::new(Noop::new()),
    )
}

fn parity_of(n: usize, level: Level, failed: &[usize]) -> Parity<LegacyQueue<Noop, Constant>> {
    let members = (0..n).map(|_| queue(Nanos::from_ms(1))).collect();
    let options = ParityOptions {
        handling: Nanos::ZERO,
        compute: Nanos::ZERO,
        ..ParityOptions::default()
    };
    Parity::new(members, level, Sectors(128), options, failed, 0).unwrap()
}

fn requests<B>(members: &[LegacyQueue<Noop, B>]) -> u64
where
    B: seekwell_core::Device,
{
    members.iter().map(|m| m.stats().requests).sum()
}

#[test]
fn small_writes_cost_four_or_six_operations_and_full_stripes_one_per_member() {
    for (level, n, ops) in [(Level::Raid5, 8, 4), (Level::Raid6, 8, 6)] {
        let mut a = parity_of(n, level, &[]);
        a.submit(Instant::START, bio(0, Op::Write, 4096, 8));
        let done = finish(&mut a);
        assert_eq!(requests(a.members()), ops);
        assert_eq!(done[0].at, Instant::at_us(2_000), "reads, then writes");
    }
    // A whole stripe is written and stays in the cache: a small write into it needs no reads.
    let mut a = parity_of(5, Level::Raid5, &[]);
    a.submit(Instant::START, bio(0, Op::Write, 0, 512));
    assert_eq!(finish(&mut a)[0].at, Instant::at_us(1_000));
    assert_eq!(
        requests(a.members()),
        5,
        "64 KiB chunks in one request a member"
    );
    assert_eq!(a.level().stats().full_rows, 16);
    a.submit(Instant::at_us(5_000), bio(1, Op::Write, 8, 8));
    assert_eq!(finish(&mut a)[0].at, Instant::at_us(6_000));
    assert_eq!((requests(a.members()), a.level().stats().prereads), (7, 0));
}

#[test]
fn writes_to_one_row_are_combined_in_the_stripe_cache() {
    let mut a = parity_of(5, Level::Raid5, &[]);
    let t = Instant::START;
    a.control(t, Control::Plug(TaskId(1)));
    for chunk in 0..4 {
        a.submit(t, bio(chunk, Op::Write, chunk * 128, 8));
    }
    assert_eq!(a.next_event(), None, "they wait for the plug");
    a.control(Instant::at_us(10), Control::Unplug(TaskId(1)));
    let done = finish(&mut a);
    assert_eq!(
        (done.len(), requests(a.members())),
        (4, 5),
        "a full row, no reads"
    );
    assert_eq!(a.level().stats().prereads, 0);
}

#[test]
fn data_of_a_failed_member_is_read_from_all_others() {
    let mut a = parity_of(5, Level::Raid5, &[1]);
    let lost = (0..4)
        .find(|i| a.level().layout().copy(i * 128, 0).member == 1)
        .unwrap();
    a.submit(Instant::START, bio(0, Op::Read, lost * 128, 8));
    assert_eq!(finish(&mut a)[0].at, Instant::at_us(1_000));
    let each: Vec<_> = a.members().iter().map(|m| m.stats().requests).collect();
    assert_eq!(each, [1, 0, 1, 1, 1]);
    // A write to the failed member reads the other data and writes only parity.
    let mut a = parity_of(5, Level::Raid5, &[1]);
    a.submit(Instant::START, bio(0, Op::Write, lost * 128, 8));
    finish(&mut a);
    assert_eq!(requests(a.members()), 3 + 1);
}

#[test]
fn full_stripe_cache_makes_writers_wait_and_completes_every_bio() {
    let mut a = parity_of(4, Level::Raid5, &[]);
    for i in 0..2_000 {
        a.submit(Instant::START, bio(i, Op::Write, i * 4099 % (1 << 20), 8));
    }
    assert!(a.congested(true));
    assert_eq!(finish(&mut a).len(), 2_000);
    assert!(a.level().stats().waits >= 1_500 && !a.congested(true));
}

#[test]
fn parity_writes_share_one_io_context_and_reads_keep_theirs() {
    let (members, log) = Memory::set(4, SIZE, 1);
    let mut a = Parity::new(
        members,
        Level::Raid5,
        Sectors(16),
        ParityOptions::default(),
        &[],
        0,
    )
    .unwrap();
    for task in 1..=3 {
        let b = bio(u64::from(task), Op::Write, u64::from(task) * 100, 8);
        a.submit(
            Instant::START,
            Bio {
                task: TaskId(task),
                ..b
            },
        );
    }
    finish(&mut a);
    assert!(log.borrow().iter().all(|e| e.4 == u32::MAX));
    log.borrow_mut().clear();
    a.submit(
        Instant::at_us(9_000),
        Bio {
            task: TaskId(3),
            ..bio(9, Op::Read, 500, 8)
        },
    );
    finish(&mut a);
    assert!(log.borrow().iter().all(|e| e.4 == 3));
}

#[test]
fn flush_goes_to_every_member_before_the_data_that_requests_it() {
    let (members, log) = Memory::set(3, SIZE, 1);
    let mut s = Stripe::new(members, Sectors(16)).unwrap();
    let b = Bio {
        flags: Flags::PREFLUSH | Flags::FUA,
        ..bio(0, Op::Write, 0, 8)
    };
    s.submit(Instant::START, b);
    assert_eq!(finish(&mut s).len(), 1);
    let ops: Vec<_> = log.borrow().iter().map(|e| e.1).collect();
    assert_eq!(ops, [Op::Flush, Op::Flush, Op::Flush, Op::Write]);
    s.submit(Instant::at_us(9_000), bio(1, Op::Flush, 0, 0));
    assert_eq!(finish(&mut s).len(), 1);
    assert_eq!(log.borrow().len(), 7);
    let beyond = bio(2, Op::Read, u64::MAX - 3, 8);
    s.submit(Instant::at_us(9_900), beyond);
    assert!(finish(&mut s)[0].error);
}

#[test]
fn bitmap_costs_one_write_per_newly_dirty_region() {
    let (members, log) = Memory::set(2, SIZE, 1);
    let policy = ReadPolicy::Md;
    let options = BitmapOptions {
        region: 256,
        delay: Nanos::from_ms(5),
        thread: TaskId(99),
    };
    let mut m = Mirror::new(members, Level::Raid1, Sectors(8), policy, true, &[], 8)
        .unwrap()
        .with_bitmap(options);
    let own = || {
        log.borrow()
            .iter()
            .filter(|e| e.4 == 99 && e.1 == Op::Write)
            .count()
    };
    for (i, at) in [0u64, 8, 16, 300].into_iter().enumerate() {
        m.submit(Instant::START, bio(i as u64, Op::Write, at, 8));
    }
    let mut out = Vec::new();
    m.advance(Instant::at_us(4_000), &mut out);
    assert_eq!(
        (out.len(), own()),
        (4, 4),
        "two members, once for the first, once for those behind"
    );
    m.submit(Instant::at_us(4_000), bio(9, Op::Write, 24, 8));
    m.advance(Instant::at_us(4_990), &mut out);
    assert_eq!((out.len(), own()), (5, 4), "dirty already");
    finish(&mut m);
    assert_eq!(own(), 4 + 2, "cleaned by the daemon, all together");
    m.submit(Instant::at_us(50_000), bio(10, Op::Write, 24, 8));
    finish(&mut m);
    assert_eq!(own(), 6 + 2 + 2, "dirty anew, and cleaned again");
}

#[test]
fn mirror_read_policies_choose_the_documented_member() {
    let served = |policy, rotating, at: &[u64]| {
        let (members, log) = Memory::set(2, SIZE, 1);
        let mut m =
            Mirror::new(members, Level::Raid1, Sectors(8), policy, rotating, &[], 0).unwrap();
        for (i, at) in at.iter().enumerate() {
            m.submit(Instant::START, bio(i as u64, Op::Read, *at, 8));
        }
        log.borrow().iter().map(|e| e.0).collect::<Vec<_>>()
    };
    assert_eq!(
        served(ReadPolicy::RoundRobin, true, &[0, 0, 0, 0]),
        [1, 0, 1, 0]
    );
    assert_eq!(served(ReadPolicy::Fixed(1), true, &[0, 500]), [1, 1]);
    assert_eq!(
        served(ReadPolicy::Region, true, &[0, 500, 512, 1000]),
        [0, 0, 1, 1]
    );
    assert_eq!(
        served(ReadPolicy::FewestPending, true, &[0, 0, 0, 0]),
        [0, 1, 0, 1]
    );
    // A stream continues on its member; any other read goes to the nearer head.
    assert_eq!(
        served(ReadPolicy::Md, true, &[0, 8, 900, 16, 908, 24]),
        [0, 0, 0, 1, 0, 1]
    );
    assert_eq!(
        served(ReadPolicy::Md, false, &[500, 508, 100, 200]),
        [0, 0, 1, 1]
    );
    let none = Mirror::new(
        Memory::set(2, SIZE, 1).0,
        Level::Raid1,
        Sectors(8),
        ReadPolicy::Md,
        true,
        &[0, 1],
        0,
    );
    assert!(none.is_err_and(|e| e.key == "failed"));
}
