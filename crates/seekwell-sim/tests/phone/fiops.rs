//! Invariants of fiops.

use super::lists::{Shape, any_case};
use super::replay::{Replay, run_case, tunable};
use proptest::prelude::*;
use seekwell_core::Action;
use seekwell_microscope::Case;
use serde_json::json;
use std::collections::BTreeMap;

/// Class (RT, BE, IDLE as 0, 1, 2) and level of a pid of a case.
fn prio(case: &Case, pid: u64) -> (u64, i64) {
    let set = case.contexts.iter().find(|c| c[0] == pid);
    match set.map(|c| (c[1], c[2])) {
        Some((1, level)) => (0, level as i64),
        Some((2, level)) => (1, level as i64),
        Some((3, _)) => (2, 7),
        _ => (1, 4),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Each context is served in order of arrival. No lower class is served while a higher class
    /// has requests.
    #[test]
    fn contexts_are_fifo_and_classes_strict(
        case in any_case(&["fiops", "fiops-preempt"], Shape::plain()),
    ) {
        let replay = Replay::of(&case);
        for d in &replay.decisions {
            let pid = replay.requests[&d.id].pid;
            prop_assert_eq!(replay.oldest(d, |r| r.pid == pid), Some(d.id), "not the oldest");
            let class = prio(&case, pid).0;
            let best = d.queued.iter().map(|q| prio(&case, replay.requests[q].pid).0).min();
            prop_assert_eq!(best, Some(class), "a higher class waits");
        }
    }

    /// If fiops dispatches nothing although requests are queued, there is a single context with an
    /// async head, and sync requests are in flight.
    #[test]
    fn only_a_single_async_head_is_held_back(case in any_case(&["fiops"], Shape::plain())) {
        let replay = Replay::of(&case);
        let (mut queued, mut flying) = (Vec::<u64>::new(), Vec::<u64>::new());
        let steps: Vec<_> = replay
            .out
            .events
            .iter()
            .filter(|s| s.event.rule_id() != "least-served")
            .collect();
        for (i, step) in steps.iter().enumerate() {
            let id = step.bios.first().map_or(0, |b| b.0);
            match step.event.action {
                Action::Insert => queued.push(id),
                Action::Elevator => {
                    queued.retain(|&q| q != id);
                    flying.push(id);
                }
                Action::Complete => flying.retain(|&q| q != id),
                Action::Why if step.event.rule_id() == "async-waits" => {
                    let top = queued.iter().map(|q| prio(&case, replay.requests[q].pid).0).min();
                    let in_top = |q: &&u64| Some(prio(&case, replay.requests[*q].pid).0) == top;
                    let heads: Vec<_> = queued.iter().filter(in_top).collect();
                    let Some(first) = heads.first() else {
                        return Err(TestCaseError::fail("waits with nothing queued"));
                    };
                    let pid = replay.requests[*first].pid;
                    prop_assert!(heads.iter().all(|q| replay.requests[*q].pid == pid));
                    prop_assert!(!replay.requests[*first].is_sync());
                    prop_assert!(flying.iter().any(|q| replay.requests[q].is_sync()));
                }
                _ => {}
            }
            // A step ends when the clock advances. If a request is queued and a slot is free at
            // that time, the scheduler held it back.
            let ends = steps.get(i + 1).is_none_or(|n| n.event.at > step.event.at);
            if ends && !queued.is_empty() && flying.len() < case.device.depth as usize {
                prop_assert_eq!(step.event.rule_id(), "async-waits", "held back for another reason");
            }
        }
    }

    /// Two contexts that always have work get equal service, measured in cost, up to one request
    /// each.
    #[test]
    fn busy_contexts_get_equal_cost(
        ops in prop::collection::vec(prop::sample::select(vec!["R", "W", "S"]), 40..80),
        levels in (0..8u64, 0..8u64),
        scales in prop::collection::vec(1..6u64, 4),
    ) {
        let input: Vec<_> = ops
            .iter()
            .enumerate()
            .map(|(i, op)| json!([0, i + 1, i % 2 + 1, op, 1000 * i, 8]))
            .collect();
        let case = json!({
            "case": "fair", "elevator": "fiops", "harness": {"drain": 0},
            "contexts": [[1, 2, levels.0], [2, 2, levels.1]],
            "tunables": {"read_scale": scales[0].to_string(), "write_scale": scales[1].to_string(),
                         "sync_scale": scales[2].to_string(), "async_scale": scales[3].to_string()},
            "input": input,
        });
        let case: Case = serde_json::from_value(case).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let scale = |name| tunable(&case, name) as i64;
        let cost = |id: u64| {
            let op = ops[id as usize - 1];
            let mut c = 1024;
            if op != "R" {
                c = c * scale("write_scale") / scale("read_scale");
            }
            if op == "W" {
                c = c * scale("async_scale") / scale("sync_scale");
            }
            let level = prio(&case, (id - 1) % 2 + 1).1;
            (c + c * (level - 4) / 5).max(1)
        };
        let of = |pid: u64| (1..=ops.len() as u64).filter(move |id| (id - 1) % 2 + 1 == pid);
        let bound: i64 = [1, 2].iter().map(|&p| of(p).map(cost).max().unwrap_or(0)).sum();
        let mut left: BTreeMap<u64, usize> = [1, 2].map(|p| (p, of(p).count())).into();
        let mut served = 0i64;
        for d in &run_case(&case).dispatch {
            if left.values().any(|&n| n == 0) {
                break;
            }
            let id = d.1[0].0;
            let pid = (id - 1) % 2 + 1;
            served += if pid == 1 { cost(id) } else { -cost(id) };
            left.entry(pid).and_modify(|n| *n -= 1);
            prop_assert!(served.abs() <= bound, "{served} apart, {bound} allowed");
        }
    }
}
