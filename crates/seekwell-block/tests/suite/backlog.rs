//! The cost of a request does not grow with the number of requests that wait behind it.

use seekwell_block::{MqDriver, MqQueue};
use seekwell_core::{Bio, BioDone, BioSink, Flags, Instant, Nanos, Op, TaskId, TickClock};
use seekwell_device::Constant;
use seekwell_sched::{Layer, QueueFacts};

/// Submits bios of `tasks` tasks at once under every multi-queue scheduler; returns the number of
/// list entries examined per bio.
fn looked_at_each(scheduler: &str, bios: u64, tasks: u64) -> f64 {
    let dev = Constant::serial(31, Nanos::from_us(50));
    let (info, version, era) = seekwell_sched::find(scheduler).expect("it is there");
    let driver = MqDriver::Scsi { depth: 31 };
    let mut q: MqQueue<dyn seekwell_sched::Scheduler, Constant> = MqQueue::new(
        QueueFacts::example(era),
        TickClock::new(250),
        driver,
        (info.hash)(version),
        dev,
        |cx| (info.make)(cx, version),
    );
    for i in 0..bios {
        let task = TaskId((i % tasks) as u32);
        let op = if i % 4 == 3 { Op::Write } else { Op::Read };
        let sector = i * 7_919 % 1_000_000 * 8;
        q.submit(
            Instant::START,
            Bio::new(i, task, op, Flags::empty(), sector, 8),
        );
    }
    assert!(
        q.asleep() as u64 >= 1.max(tasks / 2),
        "{scheduler}: a backlog"
    );
    let mut out: Vec<BioDone> = Vec::new();
    while let Some(t) = q.next_event() {
        q.advance(t, &mut out);
    }
    q.check();
    assert_eq!(out.len() as u64, bios, "{scheduler}");
    q.sleepers_looked_at() as f64 / bios as f64
}

#[test]
fn cost_per_request_is_independent_of_backlog_length() {
    let all = crate::registered().iter().filter(|s| s.layer == Layer::Mq);
    let mut seen = 0;
    for s in all {
        // In one case a single task has all bios. In the other case each bio has its own task.
        for own in [false, true] {
            let tasks = |n| if own { n } else { 1 };
            let short = looked_at_each(s.name, 2_000, tasks(2_000));
            let long = looked_at_each(s.name, 16_000, tasks(16_000));
            println!("{} ({own}): {short:.2}, {long:.2} entries a bio", s.name);
            assert!(long < 1.2 * short + 0.5, "{}: {short} {long}", s.name);
            assert!(long < 64.0, "{}: {long}", s.name);
        }
        seen += 1;
    }
    assert!(seen > 0, "no multi-queue scheduler");
}
