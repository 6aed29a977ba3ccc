//! Rules that change at an exact time or distance.

use super::*;

/// A queue whose requests have all completed, and which is out of service.
fn idle_queue() -> (Bench<Bfq>, QId) {
    let mut b = bench(true);
    let rq = b.insert(1, Op::Read, 1000);
    let q = b.s.core.queue_of(rq).expect("its queue");
    for rq in b.take_all() {
        b.complete(rq);
    }
    assert!(b.fire(), "the idle timer");
    b.pass_us(30_000_000);
    (b, q)
}

#[test]
fn a_seek_is_more_than_800_sectors_from_a_known_position() {
    let mut b = bench(true);
    let rq = b.insert(1, Op::Read, 10_000);
    let seek = |last| b.s.is_seek(&b.cx, Sector(last), rq);
    assert!(!seek(0), "no position is known");
    assert!(seek(1));
    assert!(!seek(9200) && seek(9199));
    assert!(!seek(10_800) && seek(10_801));
}

#[test]
fn think_time_is_not_judged_for_two_seconds_after_a_split() {
    for (since_j, short) in [(2000, true), (2001, false)] {
        let (mut b, q) = idle_queue();
        let j = b.cx.jiffies();
        let x = b.s.queue_mut(q);
        x.short_think = true;
        x.own.split_j = j - since_j;
        let t = &mut x.own.think;
        (t.samples, t.total) = (256, 256 * 8_000_000);
        b.insert(1, Op::Read, 2000);
        assert_eq!(b.s.queue(q).short_think, short, "{since_j}");
    }
}

#[test]
fn a_queue_leaves_its_burst_after_more_than_10_s() {
    for (since_j, in_burst) in [(10_000, true), (10_001, false)] {
        let (mut b, q) = idle_queue();
        let j = b.cx.jiffies();
        let x = b.s.queue_mut(q);
        x.in_large_burst = true;
        x.own.just_created = false;
        x.budget_timeout_j = j - since_j;
        b.insert(1, Op::Read, 2000);
        assert_eq!(b.s.queue(q).in_large_burst, in_burst, "{since_j}");
    }
}

#[test]
fn a_queue_that_split_in_the_last_10_ms_is_not_part_of_a_burst() {
    for (since_j, counts) in [(10, false), (11, true)] {
        let (mut b, q) = idle_queue();
        b.s.core.large_burst = true;
        b.s.core.last_in_burst_j = b.cx.jiffies();
        b.s.core.burst_group = b.s.queue(q).group;
        b.s.core.burst_remove(q);
        b.s.queue_mut(q).own.split_j = b.cx.jiffies() - since_j;
        b.s.handle_burst(&mut b.cx, q);
        assert_eq!(b.s.queue(q).in_large_burst, counts, "{since_j}");
    }
}

#[test]
fn new_raising_counts_the_service_from_zero() {
    let (mut b, q) = idle_queue();
    b.s.core.set_coeff(q, 1);
    b.s.queue_mut(q).own.service_from_wr = 700;
    b.insert(1, Op::Read, 2000);
    assert!(b.s.core.raised(q), "it rested for more than 2 s");
    assert_eq!(b.s.queue(q).own.service_from_wr, 0);
}

#[test]
fn interactive_raising_continues_after_soft_real_time_if_its_time_is_not_over() {
    for (since_j, raised) in [(10_500, true), (10_501, false)] {
        let (mut b, q) = idle_queue();
        b.insert(1, Op::Read, 2000);
        b.s.core.set_coeff(q, 3000);
        let (j, rt) = (b.cx.jiffies(), b.s.spans.wr_rt);
        let x = b.s.queue_mut(q);
        (x.wr_max_j, x.last_wr_j, x.wr_switch_j) = (rt, j - rt - 1, j - since_j);
        b.s.update_raising(&mut b.cx, q);
        assert_eq!(b.s.core.raised(q), raised, "{since_j}");
    }
}

#[test]
fn low_latency_0_ends_the_raising_of_all_queues() {
    let mut b = bench(true);
    let rqs = [1, 2, 3].map(|task| b.insert(task, Op::Read, 1000 * u64::from(task)));
    let queues = rqs.map(|rq| b.s.core.queue_of(rq).expect("its queue"));
    assert!(queues.contains(&0), "the first queue is one of them");
    assert!(queues.iter().all(|q| b.s.core.raised(*q)));
    b.set("low_latency", "0");
    assert!(!queues.iter().any(|q| b.s.core.raised(*q)));
}
