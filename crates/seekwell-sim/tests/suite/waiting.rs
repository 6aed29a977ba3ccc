//! No request waits longer than its scheduler declares ([`seekwell_sched::Waiting`]). Tasks keep a
//! device busy for longer than this time. Some read and some write, at near or far addresses. Each
//! task has one request at a time and soon sends the next. A request that is starved or lost waits
//! too long.

use crate::versions::{Version, each, versions};
use proptest::prelude::*;
use seekwell_block::{HostDriver, LegacyOptions, LegacyQueue, MqDriver, MqQueue};
use seekwell_core::{Bio, BioSink, Flags, Instant, Nanos, Op, Sectors, TaskId, TickClock};
use seekwell_device::Constant;
use seekwell_sched::{Cx, Layer, QueueFacts};
use std::cell::RefCell;

/// The behaviour of a task: its kind of request, and the distance between two requests in units of
/// eight sectors (0: random).
type Habit = (u8, u64);

#[derive(Clone, Debug)]
struct Crowd {
    tasks: Vec<Habit>,
    service_ms: u64,
    depth: u32,
    hz: u32,
    rotational: bool,
    /// A task sends its next request at most this long after the last one completed.
    think_us: u64,
}

/// Any mixture of tasks. In one of four cases, there is a single writer among readers, or a single
/// reader among writers. Such a task is the first to be starved.
fn habits() -> impl Strategy<Value = Vec<Habit>> {
    let step = || prop::sample::select(vec![0u64, 1, 1, 5]);
    let lone = (
        prop::collection::vec(step(), 4..6),
        step(),
        prop::sample::select(vec![(0u8, 1u8), (0, 2), (1, 0), (2, 0)]),
    )
        .prop_map(|(many, one, (others, alone))| {
            let mut all: Vec<Habit> = many.into_iter().map(|s| (others, s)).collect();
            all.push((alone, one));
            all
        });
    prop_oneof![
        3 => prop::collection::vec((0u8..3, step()), 3..6),
        1 => lone,
    ]
}

fn crowd() -> impl Strategy<Value = Crowd> {
    (
        habits(),
        20u64..40,
        prop::sample::select(vec![1u32, 2]),
        prop::sample::select(vec![100u32, 250, 300, 1000]),
        any::<bool>(),
        1u64..1000,
    )
        .prop_map(
            |(tasks, service_ms, depth, hz, rotational, think_us)| Crowd {
                tasks,
                service_ms,
                depth,
                hz,
                rotational,
                think_us,
            },
        )
}

fn queue((info, version, era): Version, c: &Crowd) -> Box<dyn BioSink> {
    let facts = QueueFacts {
        depth: c.depth,
        max_sectors: Sectors(1024),
        rotational: c.rotational,
        ..QueueFacts::example(era)
    };
    let dev = Constant::serial(c.depth, Nanos::from_ms(c.service_ms));
    let clock = TickClock::new(c.hz);
    let hash = (info.hash)(version);
    let make = |cx: &Cx| (info.make)(cx, version);
    match info.layer {
        Layer::Legacy => {
            let opts = LegacyOptions {
                hash,
                ..LegacyOptions::default()
            };
            let host = HostDriver::Simple { depth: c.depth };
            Box::new(LegacyQueue::new(facts, clock, opts, host, dev, make))
        }
        Layer::Mq => {
            let driver = MqDriver::Tag { depth: c.depth };
            Box::new(MqQueue::new(facts, clock, driver, hash, dev, make))
        }
    }
}

/// The longest wait of a request, until some time after `bound`.
fn longest(v: Version, c: &Crowd, bound: Nanos) -> Nanos {
    let mut q = queue(v, c);
    let end = Instant::START + Nanos(bound.0 + bound.0 / 4);
    // Start of each task's wait.
    let mut since = vec![Instant::START; c.tasks.len()];
    let mut sent = 0u64;
    let mut send = |q: &mut dyn BioSink, now, task: usize| {
        let (kind, step) = c.tasks[task];
        sent += 1;
        let (op, flags) = match kind {
            0 => (Op::Read, Flags::empty()),
            1 => (Op::Write, Flags::SYNC),
            _ => (Op::Write, Flags::empty()),
        };
        // Each task has its own file; far accesses go to any part of it.
        let within = match step {
            0 => sent.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48,
            s => sent * s % (1 << 16),
        };
        let sector = ((task as u64) << 24) + within * 8;
        // The low digits of the id hold the task, because the completion contains nothing else.
        let id = sent * 8 + task as u64;
        q.submit(
            now,
            Bio::new(id, TaskId(task as u32 + 1), op, flags, sector, 8),
        );
    };
    for task in 0..c.tasks.len() {
        send(&mut *q, Instant::START, task);
    }
    let (mut out, mut most) = (Vec::new(), Nanos(0));
    // When each task sends its next request.
    let mut thinking: Vec<Option<Instant>> = vec![None; c.tasks.len()];
    let mut thoughts = 0u64;
    loop {
        let next = thinking.iter().flatten().min().copied();
        let events = [q.next_event(), next];
        let Some(now) = events.into_iter().flatten().min().filter(|t| *t <= end) else {
            break;
        };
        q.advance(now, &mut out);
        for d in out.drain(..) {
            let task = (d.id.0 % 8) as usize;
            most = most.max(now - since[task]);
            thoughts += 1;
            let think_us = thoughts.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            thinking[task] = Some(now + Nanos::from_us(think_us % (c.think_us + 1)));
        }
        for task in 0..c.tasks.len() {
            if thinking[task] == Some(now) {
                (thinking[task], since[task]) = (None, now);
                send(&mut *q, now, task);
            }
        }
    }
    // Tasks that are still waiting.
    let waits = (0..since.len()).filter(|t| thinking[*t].is_none());
    waits.fold(most, |m, t| m.max(end - since[t]))
}

/// The property as a function, for use without a test runner.
pub fn check_waiting_bounds(layer: Layer) {
    let all = versions(layer);
    // The longest wait under each version, as a fraction of the bound.
    let longest_seen = RefCell::new(vec![0.0f64; all.len()]);
    let excepted = |(info, version, _): &Version| info.waiting.except.contains(version);
    each(&all, crowd(), |which, c| {
        let others = c.tasks.len() as u32 - 1;
        let service = Nanos::from_ms(c.service_ms);
        let bound = all[which].0.waiting.bound(others, service);
        let waited = longest(all[which], &c, bound);
        let seen = &mut longest_seen.borrow_mut()[which];
        *seen = seen.max(waited.0 as f64 / bound.0 as f64);
        prop_assert!(
            waited <= bound || excepted(&all[which]),
            "waited {waited:?}, declared {bound:?}"
        );
        Ok(())
    });
    for (v, seen) in all.iter().zip(longest_seen.borrow().iter()) {
        let name = format!("{}-{}", v.0.name, v.1);
        // Without a test runner nothing is printed, and only a panic reports the result.
        #[cfg(test)]
        println!("{name}: waited {:.0} % of what it says", seen * 100.0);
        assert!(
            !excepted(v) || *seen > 1.0,
            "{name} is as good as the others"
        );
    }
}

#[test]
fn single_queue_waiting_bounds_hold() {
    check_waiting_bounds(Layer::Legacy);
}

#[test]
fn multi_queue_waiting_bounds_hold() {
    check_waiting_bounds(Layer::Mq);
}
