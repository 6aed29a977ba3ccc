//! Invariants of row.

use super::lists::{Shape, any_case};
use super::replay::{Replay, Request, gaps, service_ns, tunable};
use proptest::prelude::*;
use seekwell_core::Action;
use seekwell_microscope::Case;

const QUANTA: [&str; 7] = [
    "hp_read_quantum",
    "hp_swrite_quantum",
    "rp_read_quantum",
    "rp_swrite_quantum",
    "rp_write_quantum",
    "lp_read_quantum",
    "lp_swrite_quantum",
];

fn queue(case: &Case, r: &Request) -> usize {
    let class = case
        .contexts
        .iter()
        .find(|c| c[0] == r.pid)
        .map_or(0, |c| c[1]);
    match (class, r.is_write(), r.is_sync()) {
        (_, true, false) => 4,
        (1, write, _) => usize::from(write),
        (3, write, _) => 5 + usize::from(write),
        (_, write, _) => 2 + usize::from(write),
    }
}
/// RT, BE, IDLE as 0, 1, 2.
fn class(queue: usize) -> usize {
    [0, 0, 1, 1, 1, 2, 2][queue]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Each queue is served in order of arrival, except for urgent requests. Lower classes overtake
    /// higher ones only at their limits. A queue gets at most its quantum between two cycles of its
    /// class, except for urgent requests.
    #[test]
    fn queues_are_fifo_and_classes_and_quanta_are_respected(case in any_case(&["row", "row-hisi", "row-mid"], Shape::plain())) {
        let limits = case.elevator != "row-mid";
        let replay = Replay::of(&case);
        let of = |id: u64| queue(&case, &replay.requests[&id]);
        let (mut reg, mut low) = (0u64, 0u64);
        let mut served = [0u64; 7];
        let mut urgent_served = [0u64; 7];
        for d in &replay.decisions {
            let (q, urgent) = (of(d.id), d.by("urgent-first"));
            let c = class(q);
            let waits = |c: usize| d.queued.iter().any(|&o| o != d.id && class(of(o)) == c);
            if d.rules.iter().any(|r| r.1.contains("new cycle")) {
                for o in (0..7).filter(|&o| class(o) == c) {
                    (served[o], urgent_served[o]) = (0, 0);
                }
            }
            if urgent {
                prop_assert!(q == 0 || q == 2, "urgent, and no read of RT or BE");
                urgent_served[q] += 1;
            } else {
                prop_assert_eq!(replay.oldest(d, |r| queue(&case, r) == q), Some(d.id));
                if c == 1 && waits(0) {
                    prop_assert!(limits && reg >= tunable(&case, "reg_starv_limit"));
                }
                if c == 2 && (waits(0) || waits(1)) {
                    prop_assert!(limits && low >= tunable(&case, "low_starv_limit"));
                }
            }
            served[q] += 1;
            let allowed = tunable(&case, QUANTA[q]) + urgent_served[q];
            prop_assert!(served[q] <= allowed, "queue {q}: {} of {allowed}", served[q]);
            match c {
                0 if waits(1) => reg += 1,
                1 => reg = 0,
                _ => {}
            }
            if c == 2 {
                low = 0;
            } else if waits(2) {
                low += 1;
            }
        }
    }

    /// The first posting: each queue is served in order of arrival, and ioprio is ignored. A queue
    /// gets at most its quantum before the next queue's turn, while others wait.
    #[test]
    fn first_posting_serves_queues_in_order_within_quanta(case in any_case(&["row-v1"], Shape::plain())) {
        let replay = Replay::of(&case);
        let of = |r: &Request| match (r.is_write(), r.is_sync()) {
            (true, false) => 4,
            (write, _) => 2 + usize::from(write),
        };
        let (mut last, mut run) = (0, 0u64);
        for d in &replay.decisions {
            let q = of(&replay.requests[&d.id]);
            prop_assert_eq!(replay.oldest(d, |r| of(r) == q), Some(d.id));
            prop_assert!(!d.by("urgent-first"));
            let waits = d.queued.iter().any(|o| of(&replay.requests[o]) != q);
            run = match waits {
                true if q == last => run + 1,
                waits => u64::from(waits),
            };
            last = q;
            let allowed = tunable(&case, QUANTA[q]);
            prop_assert!(run <= allowed, "queue {q}: {run} of {allowed}");
        }
    }

    /// The timer expires exactly rd_idle_data after it was last armed, and is armed only for HR and
    /// RR.
    #[test]
    fn idle_timer_expires_after_rd_idle_data(case in any_case(&["row", "row-hisi", "row-mid"], Shape::plain())) {
        let replay = Replay::of(&case);
        let idle_ns = tunable(&case, "rd_idle_data") * 1_000_000;
        let mut armed = None;
        for s in &replay.out.events {
            match s.event.action {
                Action::Why if s.event.detail.contains("is empty: idle") => {
                    prop_assert!(["HR", "RR"].contains(&&s.event.detail[..2]));
                    armed = Some(s.event.at);
                }
                Action::Timer => {
                    let since = armed.take().map(|a| s.event.at.since(a).0);
                    prop_assert_eq!(since, Some(idle_ns));
                }
                _ => {}
            }
        }
    }

    /// At depth 1 the device is idle with queued requests only while the timer runs. The wait ends
    /// by expiry or by a new read.
    #[test]
    fn device_idles_with_queued_requests_only_while_the_timer_runs(
        case in any_case(&["row", "row-hisi", "row-mid"], Shape::plain().depth_1()),
    ) {
        let replay = Replay::of(&case);
        for gap in gaps(&replay.out, service_ns(&case)) {
            if gap.queued.is_empty() {
                continue;
            }
            let fired = replay.out.timers.contains(&gap.until);
            let read_came = replay.requests.values().any(|r| r.at == gap.until && !r.is_write());
            let rt_came = replay
                .requests
                .values()
                .any(|r| r.at == gap.until && class(queue(&case, r)) == 0);
            prop_assert!(fired || read_came || rt_came, "waits until {} for nothing", gap.until);
        }
    }
}
