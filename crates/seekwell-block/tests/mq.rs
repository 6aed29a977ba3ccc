//! The multi-queue layer through its public interface: flush sequences, clocks of requests, tags,
//! nr_requests.

use seekwell_block::{MqDriver, MqQueue};
use seekwell_core::{
    Accept, Bio, BioDone, BioSink, Command, Control, Device, DeviceFacts, Done, Era, Flags,
    Instant, Nanos, Op, TaskId, TickClock,
};
use seekwell_device::Constant;
use seekwell_sched::mq_deadline::{Generation, MqDeadline};
use seekwell_sched::none::NoScheduler;
use seekwell_sched::{QueueFacts, Scheduler};

/// A device that records its commands.
struct Witness(Constant, Vec<(Op, u64, bool)>);

impl Device for Witness {
    fn accept(&mut self, now: Instant, c: Command) -> Accept {
        let a = self.0.accept(now, c);
        if a == Accept::Accepted {
            self.1.push((c.op, c.sector.0, c.fua));
        }
        a
    }
    fn next_event(&self) -> Option<Instant> {
        self.0.next_event()
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        self.0.advance(to, out);
    }
    fn facts(&self) -> &DeviceFacts {
        self.0.facts()
    }
}

fn queue<S: Scheduler>(
    era: Era,
    facts: impl FnOnce(&mut DeviceFacts),
    depth: u32,
    make: impl FnOnce(&seekwell_sched::Cx) -> S,
) -> MqQueue<S, Witness> {
    let dev = Constant::serial(depth, Nanos::from_ms(1));
    let mut f = dev.facts().clone();
    facts(&mut f);
    let dev = Witness(dev.with_facts(f), Vec::new());
    let clock = TickClock::new(1000);
    let facts = QueueFacts::example(era);
    let driver = MqDriver::Tag { depth };
    MqQueue::new(facts, clock, driver, true, dev, |cx| Box::new(make(cx)))
}

/// A SATA drive without a scheduler, which takes no command during a flush.
fn sata(depth: u32) -> MqQueue<NoScheduler, Witness> {
    let dev = Constant::serial(depth, Nanos::from_ms(1));
    let mut f = dev.facts().clone();
    (f.write_cache, f.flush_queueable) = (true, false);
    let dev = Witness(dev.with_facts(f), Vec::new());
    let facts = QueueFacts::example(Era::Mq);
    let driver = MqDriver::Scsi { depth };
    let make = |cx: &seekwell_sched::Cx| Box::new(NoScheduler::new(cx));
    MqQueue::new(facts, TickClock::new(1000), driver, true, dev, make)
}

fn deadline(era: Era, cache: bool, fua: bool, depth: u32) -> MqQueue<MqDeadline, Witness> {
    let facts = |f: &mut DeviceFacts| (f.write_cache, f.fua) = (cache, fua);
    let generation = Generation::named(if era == Era::Mq6_1 { "6.1" } else { "6.12" });
    queue(era, facts, depth, |cx| MqDeadline::new(cx, generation))
}

fn bio(id: u64, op: Op, flags: Flags, sector: u64) -> Bio {
    let n = if op == Op::Flush { 0 } else { 8 };
    Bio::new(id, TaskId(id as u32), op, flags, sector, n)
}

fn finish<S: Scheduler>(q: &mut MqQueue<S, Witness>) -> Vec<(u64, u64)> {
    let mut out: Vec<BioDone> = Vec::new();
    while let Some(t) = q.next_event() {
        q.advance(t, &mut out);
        q.check();
    }
    assert!(q.cx.rqs.is_empty(), "every request is freed");
    out.iter()
        .map(|d| (d.id.0, d.at.since_start() / 1000))
        .collect()
}

const COMMIT: Flags = Flags::PREFLUSH.union(Flags::FUA);

#[test]
fn mq_without_write_cache_drops_flush_flags_and_completes_flushes_at_once() {
    let mut q = deadline(Era::Mq, false, false, 1);
    q.submit(Instant::START, bio(1, Op::Write, COMMIT, 100));
    q.submit(Instant::START, bio(2, Op::Flush, Flags::PREFLUSH, 0));
    assert_eq!(finish(&mut q), [(2, 0), (1, 1_000)]);
    assert_eq!(q.device().1, [(Op::Write, 100, false)]);
}

#[test]
fn write_with_preflush_and_fua_becomes_flush_data_flush() {
    let mut q = deadline(Era::Mq, true, false, 1);
    q.submit(Instant::START, bio(1, Op::Write, COMMIT, 100));
    assert_eq!(finish(&mut q), [(1, 3_000)]);
    let ops: Vec<_> = q.device().1.iter().map(|c| c.0).collect();
    assert_eq!(ops, [Op::Flush, Op::Write, Op::Flush]);
    assert_eq!(q.stats().flushes, 2);
}

#[test]
fn device_with_fua_needs_no_second_flush() {
    let mut q = deadline(Era::Mq, true, true, 1);
    q.submit(Instant::START, bio(1, Op::Write, COMMIT, 100));
    q.submit(Instant::START, bio(2, Op::Write, Flags::FUA, 900));
    finish(&mut q);
    assert_eq!(
        q.device().1,
        [
            (Op::Flush, 0, false),
            (Op::Write, 900, true),
            (Op::Write, 100, true)
        ]
    );
}

#[test]
fn flushes_submitted_during_a_flush_share_the_next_one() {
    let mut q = deadline(Era::Mq, true, true, 4);
    for id in 1..=4 {
        q.submit(Instant::START, bio(id, Op::Flush, Flags::PREFLUSH, 0));
        if id == 1 {
            q.advance(Instant::START, &mut Vec::new());
        }
    }
    assert_eq!(
        finish(&mut q),
        [(1, 1_000), (2, 2_000), (3, 2_000), (4, 2_000)]
    );
    assert_eq!(q.stats().flushes, 2);
}

#[test]
fn flush_sequence_data_is_scheduled_since_6_2_and_bypasses_the_scheduler_before() {
    // More writes arrive while the flush runs. In 6.12 the data write is sorted among these writes.
    // In 6.1 it goes before all others.
    let order = |era| {
        let mut q = deadline(era, true, true, 1);
        q.submit(Instant::START, bio(1, Op::Write, Flags::PREFLUSH, 500));
        q.advance(Instant::START, &mut Vec::new());
        q.submit(Instant::at_us(100), bio(2, Op::Write, Flags::empty(), 100));
        q.submit(Instant::at_us(100), bio(3, Op::Write, Flags::empty(), 900));
        q.submit(Instant::at_us(100), bio(4, Op::Write, Flags::empty(), 950));
        finish(&mut q);
        q.device().1.iter().map(|c| c.1).collect::<Vec<_>>()
    };
    // The write at sector 100 left the scheduler while the flush ran, and was parked.
    assert_eq!(order(Era::Mq), [0, 100, 500, 900, 950]);
    assert_eq!(order(Era::Mq6_1), [0, 500, 100, 900, 950]);
}

#[test]
fn device_without_queueable_flushes_gets_no_command_during_a_flush() {
    let facts = |f: &mut DeviceFacts| (f.write_cache, f.flush_queueable) = (true, false);
    let mut q = queue(Era::Mq, facts, 4, |cx| {
        MqDeadline::new(cx, Generation::V6_12)
    });
    q.submit(Instant::START, bio(1, Op::Read, Flags::empty(), 100));
    q.advance(Instant::START, &mut Vec::new());
    q.submit(Instant::at_us(10), bio(2, Op::Flush, Flags::PREFLUSH, 0));
    q.submit(Instant::at_us(20), bio(3, Op::Read, Flags::empty(), 200));
    let done = finish(&mut q);
    assert_eq!(done, [(1, 1_000), (2, 2_000), (3, 3_000)]);
}

/// Two readers always have a request in the drive. Their reads go directly to the drive. While the
/// flush is deferred, no read may be issued, or the flush would wait for ever.
#[test]
fn direct_issue_does_not_pass_a_flush_deferred_by_sata() {
    let mut q = sata(4);
    let read = |id: u64| bio(id, Op::Read, Flags::empty(), 1000 * id);
    q.submit(Instant::START, read(1));
    q.submit(Instant::START, read(2));
    let (mut next, mut asked, mut flushed_us, mut done) = (3, false, None, Vec::new());
    while flushed_us.is_none() && next < 200 {
        let t = q.next_event().expect("readers never rest");
        q.advance(t, &mut done);
        q.check();
        if next == 10 && !asked {
            asked = true;
            q.submit(t, bio(1000, Op::Flush, Flags::PREFLUSH, 0));
        }
        for d in done.drain(..) {
            if d.id.0 == 1000 {
                flushed_us = Some(t.since_start() / 1000);
                continue;
            }
            q.submit(t, read(next));
            next += 1;
        }
    }
    // The flush arrived at 8 ms, when one read was in the drive. The read and the flush took one
    // millisecond each.
    assert_eq!(flushed_us, Some(10_000));
    // The waiting reads are issued after the flush.
    finish(&mut q);
    let behind = q.device().1.iter().skip_while(|c| c.0 != Op::Flush).count();
    assert_eq!(behind, 3);
}

#[test]
fn merged_request_keeps_the_start_time_of_its_oldest_part() {
    let mut q = deadline(Era::Mq, false, false, 1);
    let at = Instant::at_us;
    q.set_nr_requests(at(0), 64).unwrap();
    q.submit(at(0), bio(1, Op::Read, Flags::empty(), 5000));
    q.submit(at(0), bio(9, Op::Read, Flags::empty(), 9000));
    q.advance(at(0), &mut Vec::new());
    q.submit(at(5), bio(2, Op::Read, Flags::empty(), 16));
    q.submit(at(10), bio(3, Op::Read, Flags::empty(), 0));
    q.submit(at(15), bio(4, Op::Read, Flags::empty(), 8));
    let fused: Vec<_> = q.cx.rqs.iter().filter(|r| r.1.bios == 3).collect();
    assert_eq!((fused.len(), fused[0].1.start), (1, at(5)));
    assert_eq!(
        q.tags_used().0,
        3,
        "the tags of what was merged away are back"
    );
    finish(&mut q);
}

#[test]
fn requests_of_a_plug_share_their_start_time_since_6_9() {
    for (era, second) in [(Era::Mq, 0), (Era::Mq6_1, 40)] {
        let mut q = deadline(era, false, false, 1);
        let mut one = bio(1, Op::Read, Flags::empty(), 100);
        let mut two = bio(2, Op::Read, Flags::empty(), 900);
        (one.task, two.task) = (TaskId(7), TaskId(7));
        q.control(Instant::START, Control::Plug(TaskId(7)));
        q.submit(Instant::START, one);
        q.submit(Instant::at_us(40), two);
        let starts: Vec<_> = q.cx.rqs.iter().map(|r| r.1.start).collect();
        assert_eq!(starts, [Instant::START, Instant::at_us(second)]);
        q.control(Instant::at_us(50), Control::Unplug(TaskId(7)));
        finish(&mut q);
    }
}

/// Lets a task submit bios of these sizes (KiB) under a plug, each at another place. Returns the
/// number of requests that were issued before the plug closed.
fn issued_before_unplug(era: Era, kib: &[u64]) -> usize {
    let mut q = deadline(era, false, false, 32);
    q.control(Instant::START, Control::Plug(TaskId(1)));
    for (i, kib) in (0..).zip(kib) {
        let at = 100_000 * (i + 1);
        let sectors = (kib * 2) as u32;
        let b = Bio::new(i, TaskId(1), Op::Write, Flags::empty(), at, sectors);
        q.submit(Instant::START, b);
    }
    let before = q.device().1.len();
    q.control(Instant::START, Control::Unplug(TaskId(1)));
    finish(&mut q);
    before
}

#[test]
fn large_oldest_request_flushes_a_plug_since_6_12() {
    for (kib, until_6_11, since_6_12) in [
        (vec![128, 4, 4, 4], 1, 1),
        (vec![4, 128, 4, 128], 2, 0),
        (vec![124, 124, 124, 124], 0, 0),
    ] {
        assert_eq!(
            issued_before_unplug(Era::Mq6_1, &kib),
            until_6_11,
            "{kib:?}"
        );
        for era in [Era::Mq, Era::Mq6_16, Era::Mq6_18] {
            assert_eq!(issued_before_unplug(era, &kib), since_6_12, "{kib:?}");
        }
    }
}

#[test]
fn task_that_sleeps_for_a_tag_does_not_flush_its_plug_after_it_wakes() {
    // There are two tags. The third bio sleeps, and its task says so. After the task wakes, both
    // further requests stay in the plug until it closes, so that the scheduler gets them together.
    let mut q = queue(Era::Mq, |_| {}, 2, NoScheduler::new);
    q.control(Instant::START, Control::Plug(TaskId(1)));
    for (id, sector) in [(1, 100), (2, 900), (3, 500)] {
        let mut b = bio(id, Op::Read, Flags::empty(), sector);
        b.task = TaskId(1);
        q.submit(Instant::START, b);
    }
    assert!(q.is_asleep(TaskId(1)));
    q.control(Instant::START, Control::Sleep(TaskId(1)));
    let mut out = Vec::new();
    q.advance(Instant::at_us(1_500), &mut out);
    assert!(!q.is_asleep(TaskId(1)));
    assert_eq!(q.device().1.len(), 2, "the third is in the plug");
    q.control(Instant::at_us(1_500), Control::Unplug(TaskId(1)));
    assert_eq!(q.device().1.len(), 3);
    finish(&mut q);
}

#[test]
fn throttle_of_a_disk_does_not_count_the_start_of_a_run_as_a_sleep_for_dirty_pages() {
    // At step 0, 8 writes may be in progress, and 16 within a second after such a sleep. A disk that
    // has just appeared counts as one with a sleep. The disk of a run appeared earlier.
    let mut q = deadline(Era::Mq, true, false, 32);
    q.throttle_writeback(Instant::START, None);
    for id in 0..12 {
        q.submit(
            Instant::START,
            bio(id, Op::Write, Flags::empty(), 1000 * id),
        );
    }
    assert_eq!(q.asleep(), 4);
    finish(&mut q);
}

#[test]
fn nr_requests_sets_tags_and_resets_async_depth() {
    for (depth, tags) in [
        (1, 2),
        (31, 62),
        (32, 64),
        (64, 128),
        (128, 256),
        (1023, 256),
    ] {
        assert_eq!(
            deadline(Era::Mq, false, false, depth).cx.queue.nr_requests,
            tags
        );
    }
    let mut q = deadline(Era::Mq, false, false, 32);
    q.set_nr_requests(Instant::START, 1).unwrap();
    assert_eq!(q.cx.queue.nr_requests, 4, "less than 4 counts as 4");
    q.set_nr_requests(Instant::START, 2048).unwrap();
    let (sched, cx) = q.parts();
    assert_eq!(
        sched.show(cx, "async_depth").as_deref(),
        Some("2048"),
        "reset with it"
    );
    assert!(q.set_nr_requests(Instant::START, 2049).is_err());

    let mut q = queue(Era::Mq, |_| {}, 32, NoScheduler::new);
    assert_eq!(q.cx.queue.nr_requests, 32);
    let e = q.set_nr_requests(Instant::START, 33).unwrap_err();
    assert!(e.to_string().contains("33 is outside 4..=32"), "{e}");
}

#[test]
fn sleeping_task_submits_nothing_until_it_wakes() {
    // There is only one tag, so the second bio of the task sleeps. The close of its plug and its
    // exit wait too.
    let mut q = queue(Era::Mq, |_| {}, 1, NoScheduler::new);
    q.control(Instant::START, Control::Plug(TaskId(1)));
    for (id, sector) in [(1, 100), (2, 900), (3, 500)] {
        let mut b = bio(id, Op::Read, Flags::empty(), sector);
        b.task = TaskId(1);
        q.submit(Instant::START, b);
    }
    q.control(Instant::START, Control::Unplug(TaskId(1)));
    q.control(Instant::START, Control::Exit(TaskId(1)));
    assert_eq!((q.asleep(), q.tags_used()), (1, (0, 1)));
    assert_eq!(finish(&mut q), [(1, 1_000), (2, 2_000), (3, 3_000)]);
    assert_eq!(q.cx.iocs.living().count(), 0, "it is gone now");
}

#[test]
fn hardware_queue_reruns_after_3_ms_if_the_scheduler_returned_nothing() {
    // A real-time request is in flight, so mq-deadline has work but returns nothing. No request was
    // parked, so a completion does not restart this queue, which is limited by tags. The 3 ms timer
    // restarts it.
    let mut q = deadline(Era::Mq, false, false, 4);
    let rt = seekwell_core::IoPrio {
        class: seekwell_core::Class::Rt,
        level: 4,
    };
    q.control(Instant::START, Control::Prio(TaskId(1), rt));
    q.submit(Instant::START, bio(1, Op::Read, Flags::empty(), 100));
    q.submit(Instant::START, bio(2, Op::Read, Flags::empty(), 200));
    assert_eq!(finish(&mut q), [(1, 1_000), (2, 4_000)]);
}

#[test]
fn requests_refused_by_a_busy_device_keep_their_order_and_are_issued_first() {
    // There are eight tags, but the device takes one command at a time. All five requests leave the
    // scheduler at once.
    let dev = Witness(Constant::serial(1, Nanos::from_ms(1)), Vec::new());
    let facts = QueueFacts::example(Era::Mq);
    let clock = TickClock::new(1000);
    let driver = MqDriver::Tag { depth: 8 };
    let mut q = MqQueue::new(facts, clock, driver, true, dev, |cx| {
        Box::new(MqDeadline::new(cx, Generation::V6_12))
    });
    for (id, sector) in [(1, 500), (2, 400), (3, 300), (4, 200), (5, 600)] {
        q.submit(Instant::START, bio(id, Op::Read, Flags::empty(), sector));
    }
    q.advance(Instant::START, &mut Vec::new());
    assert_eq!(q.parked(0), 4);
    // No bio merges into the parked requests, and a request between them does not pass them.
    q.submit(Instant::at_us(10), bio(6, Op::Read, Flags::empty(), 350));
    q.submit(Instant::at_us(10), bio(7, Op::Read, Flags::empty(), 308));
    finish(&mut q);
    let order: Vec<_> = q.device().1.iter().map(|c| c.1).collect();
    assert_eq!(order, [200, 300, 400, 500, 600, 350, 308]);
}

/// Four CPUs on `hctxs` hardware queues of this depth each, over a device that takes all commands.
fn wide<S: Scheduler>(
    hctxs: u16,
    depth: u32,
    make: impl FnOnce(&seekwell_sched::Cx) -> S,
) -> MqQueue<S, Witness> {
    let dev = Witness(Constant::parallel(64, Nanos::from_ms(1)), Vec::new());
    let facts = QueueFacts {
        hctxs,
        cpus: 4,
        ..QueueFacts::example(Era::Mq)
    };
    let driver = MqDriver::Tag { depth };
    MqQueue::new(facts, TickClock::new(1000), driver, true, dev, |cx| {
        Box::new(make(cx))
    })
}

fn from_cpu(id: u64, cpu: u16, sector: u64) -> Bio {
    Bio {
        cpu,
        ..bio(id, Op::Read, Flags::empty(), sector)
    }
}

#[test]
fn each_hardware_queue_has_its_own_tags() {
    for (hctxs, asleep, used) in [(1, 3, 1), (2, 2, 2), (4, 0, 4)] {
        let mut q = wide(hctxs, 1, NoScheduler::new);
        for cpu in 0..4 {
            q.submit(
                Instant::START,
                from_cpu(u64::from(cpu) + 1, cpu, u64::from(cpu) * 1000),
            );
        }
        assert_eq!(
            (q.asleep(), q.tags_used()),
            (asleep, (0, used)),
            "{hctxs} queues"
        );
        assert_eq!(finish(&mut q).len(), 4);
    }
}

#[test]
fn without_scheduler_only_requests_of_the_same_cpu_merge() {
    // All tags but one are taken. A request that waits for the driver is in the list of its CPU,
    // where its neighbour from another CPU does not find it.
    for (cpu, commands) in [(0, 2), (1, 3)] {
        let mut q = wide(1, 3, NoScheduler::new);
        q.submit(Instant::START, from_cpu(1, 0, 100));
        q.control(Instant::START, Control::Plug(TaskId(2)));
        q.submit(Instant::START, from_cpu(2, 0, 5000));
        // The task is scheduled out: its requests go into the list, and a worker runs the queue.
        q.control(Instant::START, Control::Sleep(TaskId(2)));
        q.submit(Instant::START, from_cpu(3, cpu, 5008));
        assert_eq!(finish(&mut q).len(), 3);
        assert_eq!(q.device().1.len(), commands, "from CPU {cpu}");
    }
}

#[test]
fn scheduler_state_is_shared_by_all_hardware_queues() {
    // All queues share one sorted state. Requests of four CPUs on four queues leave it in one
    // order, whichever queue asks.
    let mut q = wide(4, 2, |cx| MqDeadline::new(cx, Generation::V6_12));
    let sectors = [900, 300, 700, 100, 500, 800, 200, 600];
    for (i, sector) in sectors.into_iter().enumerate() {
        q.submit(Instant::START, from_cpu(i as u64 + 1, i as u16 % 4, sector));
    }
    q.advance(Instant::START, &mut Vec::new());
    let order: Vec<_> = q.device().1.iter().map(|c| c.1).collect();
    assert_eq!(order, [100, 200, 300, 500, 600, 700, 800, 900]);
    finish(&mut q);
}
