//! A measured scenario, and the scenarios of one layer with one device. Each runs a number of I/Os
//! through a part of the stack. It returns a sum
//! that depends on all I/Os, so that the compiler cannot remove the work.

use rand::Rng;
use seekwell_block::host::MqDriver;
use seekwell_block::mq::MqQueue;
use seekwell_block::{HostDriver, LegacyOptions, LegacyQueue};
use seekwell_core::rng::{Pcg64Mcg, stream};
use seekwell_core::{
    Bio, BioDone, BioSink, Device, Era, Flags, Instant, Nanos, Op, TaskId, TickClock,
};
use seekwell_device::Constant;
use seekwell_sched::deadline::{Deadline, Generation};
use seekwell_sched::noop::Noop;
use seekwell_sched::{Cx, QueueFacts, Scheduler};

/// A measured scenario.
pub struct Scenario {
    /// Name on the command line and in the file of committed counts.
    pub name: String,
    /// Description.
    pub what: String,
    /// Number of I/Os of a run whose time is measured.
    pub ios: u64,
    /// Runs this many I/Os and returns a sum that depends on all of them.
    pub run: Box<dyn Fn(u64) -> u64>,
}

fn facts(depth: u32) -> QueueFacts {
    QueueFacts {
        depth,
        ..QueueFacts::example(Era::K4_0)
    }
}

/// Number of tasks that submit requests.
const TASKS: u32 = 4;

/// Runs random 4 KiB reads with a constant number of outstanding requests. Adjacent positions,
/// whose requests could be merged, are rare.
fn closed<S: Scheduler + ?Sized, D: Device>(
    q: LegacyQueue<S, D>,
    outstanding: u64,
    ios: u64,
) -> u64 {
    closed_loop(q, TASKS, outstanding, ios)
}

/// Runs the same reads as `closed` on any sink. `tasks` tasks submit in turn.
pub(crate) fn closed_loop(mut q: impl BioSink, tasks: u32, outstanding: u64, ios: u64) -> u64 {
    let mut rng: Pcg64Mcg = stream(7, "bench");
    let pages = (q.capacity().0 / 8).min(1 << 40);
    let mut bio = |id: u64| {
        let page = rng.random_range(0..pages);
        Bio::new(
            id,
            TaskId((id % u64::from(tasks)) as u32),
            Op::Read,
            Flags::empty(),
            page * 8,
            8,
        )
    };
    let mut done: Vec<BioDone> = Vec::with_capacity(64);
    for id in 0..outstanding.min(ios) {
        let b = bio(id);
        q.submit(Instant::START, b);
    }
    let (mut next, mut sum) = (outstanding.min(ios), 0u64);
    while let Some(t) = q.next_event() {
        q.advance(t, &mut done);
        for d in done.drain(..) {
            sum = sum.wrapping_mul(31).wrapping_add(d.id.0 ^ d.at.0);
            if next < ios {
                let b = bio(next);
                q.submit(t, b);
                next += 1;
            }
        }
    }
    sum
}

fn layer<S: Scheduler>(make: impl FnOnce(&Cx) -> Box<S>, depth: u32) -> LegacyQueue<S, Constant> {
    let dev = Constant::serial(depth, Nanos::from_us(10));
    let host = HostDriver::Simple { depth };
    LegacyQueue::new(
        facts(depth),
        TickClock::new(1000),
        LegacyOptions::default(),
        host,
        dev,
        make,
    )
}

/// Runs random reads at depth 32 through scheduler, layer and constant device. Half of the
/// outstanding requests wait in the scheduler.
fn constant_noop(ios: u64) -> u64 {
    closed(layer(|_| Box::new(Noop::new()), 16), 32, ios)
}
fn constant_deadline(ios: u64) -> u64 {
    closed(
        layer(|cx| Box::new(Deadline::new(cx, Generation::D40)), 16),
        32,
        ios,
    )
}
fn constant_deadline_dyn(ios: u64) -> u64 {
    let dev = Constant::serial(16, Nanos::from_us(10));
    let host = HostDriver::Simple { depth: 16 };
    let opts = LegacyOptions::default();
    let make = |cx: &Cx| -> Box<dyn Scheduler> { Box::new(Deadline::new(cx, Generation::D40)) };
    closed(
        LegacyQueue::new(facts(16), TickClock::new(1000), opts, host, dev, make),
        32,
        ios,
    )
}

/// Runs random reads on the complete hard-disk model, with `depth` requests in the device.
fn hdd(depth: u32, ios: u64) -> u64 {
    let dev = seekwell_device::open_hdd("hdd:hitachi-7k200", 7).expect("an embedded preset");
    let host = HostDriver::Simple { depth };
    let make = |_: &Cx| Box::new(Noop::new());
    let opts = LegacyOptions::default();
    let q = LegacyQueue::new(facts(depth), TickClock::new(1000), opts, host, dev, make);
    closed(q, u64::from(depth), ios)
}

/// Runs random reads under a multi-queue scheduler, through the blk-mq layer.
fn constant_mq<S: Scheduler>(make: impl FnOnce(&Cx) -> Box<S>, ios: u64) -> u64 {
    let facts = QueueFacts {
        depth: 16,
        ..QueueFacts::example(Era::Mq)
    };
    let dev = Constant::serial(16, Nanos::from_us(10));
    let driver = MqDriver::Tag { depth: 16 };
    closed_loop(
        MqQueue::new(facts, TickClock::new(1000), driver, true, dev, make),
        TASKS,
        32,
        ios,
    )
}

pub(crate) fn named(
    name: &str,
    what: &str,
    ios: u64,
    run: impl Fn(u64) -> u64 + 'static,
) -> Scenario {
    Scenario {
        name: name.to_owned(),
        what: what.to_owned(),
        ios,
        run: Box::new(run),
    }
}

/// Returns the scenarios of one layer with one device.
pub fn all() -> Vec<Scenario> {
    let mut v = vec![
        named(
            "constant-noop",
            "noop, layer, constant device, 32 outstanding",
            2_000_000,
            constant_noop,
        ),
        named(
            "constant-deadline",
            "deadline, layer, constant device, 32 outstanding",
            1_000_000,
            constant_deadline,
        ),
        named(
            "constant-deadline-dyn",
            "the same through Box<dyn Scheduler>",
            1_000_000,
            constant_deadline_dyn,
        ),
    ];
    v.push(named(
        "constant-none",
        "none, blk-mq layer, constant device, 32 outstanding from 4 tasks",
        1_000_000,
        |ios| {
            constant_mq(
                |cx| Box::new(seekwell_sched::none::NoScheduler::new(cx)),
                ios,
            )
        },
    ));
    v.push(named(
        "hdd-depth-1",
        "noop, layer, full hard-disk model, 1 outstanding",
        1_000_000,
        |ios| hdd(1, ios),
    ));
    v.push(named(
        "hdd-depth-31",
        "noop, layer, full hard-disk model, 31 outstanding",
        500_000,
        |ios| hdd(31, ios),
    ));
    v
}
