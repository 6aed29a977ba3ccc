//! Invariants of vr.

use super::lists::{Shape, any_case};
use super::replay::{Replay, jiffy, ms_j, run_case, tunable};
use proptest::prelude::*;
use seekwell_microscope::Case;
use serde_json::json;

const VR: &[&str] = &["vr", "vr-jf"];

/// The list with alias_evict off, because the dispatch of an alias is not a choice.
fn without_aliases(mut case: Case) -> Case {
    case.tunables.insert("alias_evict".to_owned(), json!("0"));
    case
}

/// With one request at `first` in the device, submits all `starts` at once; returns their order.
fn static_order(first: u64, starts: &[u64], rev_penalty: u64, mode: &str) -> Vec<u64> {
    let mut input = vec![json!([0, 0, 1, "R", first, 8])];
    for (i, s) in starts.iter().enumerate() {
        input.push(json!([500, i + 1, 1, "R", s, 8]));
    }
    let case = json!({
        "case": "static", "elevator": "vr", "harness": "serial", "nomerges": 2,
        "device": {"service_us": 1000},
        "tunables": {"sync_expire": 0, "async_expire": 0, "rev_penalty": rev_penalty,
                     "penalty_mode": mode},
        "input": input,
    });
    let case: Case = match serde_json::from_value(case) {
        Ok(case) => case,
        Err(e) => panic!("{e}"),
    };
    let out = run_case(&case);
    let start = |id: u64| starts[id as usize - 1];
    let ids = out.dispatch.iter().map(|d| d.1[0].0);
    ids.filter(|&id| id > 0).map(start).collect()
}

fn turns(first: u64, order: &[u64]) -> usize {
    let mut places = vec![first];
    places.extend(order);
    let up: Vec<bool> = places.windows(2).map(|w| w[1] > w[0]).collect();
    up.windows(2).filter(|w| w[0] != w[1]).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// A dispatched request starts at the last start, or is the nearest request above or below it.
    /// After a jump to one of several equal starts, the other requests with that start count as
    /// below, so a request above can come first. An expired request that is dispatched has the
    /// earliest deadline of the expired heads (async on a tie), and it is dispatched soon after it
    /// expired.
    #[test]
    fn dispatched_request_is_a_neighbour_or_expired(case in any_case(VR, Shape::plain()).prop_map(without_aliases)) {
        let fifo_batch = tunable(&case, "fifo_batch");
        let replay = Replay::of(&case);
        let due = |id: u64| {
            let r = &replay.requests[&id];
            let expire = ms_j(&case, if r.is_sync() { "sync_expire" } else { "async_expire" });
            (expire > 0).then(|| jiffy(&case, r.at) + expire)
        };
        let (mut last, mut late_waits) = (0u64, 0u64);
        for d in &replay.decisions {
            let now = jiffy(&case, d.at);
            let late = |sync: bool| {
                let head = replay.oldest(d, |r| r.is_sync() == sync)?;
                Some((due(head).filter(|&j| now > j)?, sync, head))
            };
            // (false, ...) sorts first, so the async head wins a tie.
            let first_late = [late(true), late(false)].into_iter().flatten().min();
            let at = replay.requests[&d.id].sector;
            if d.by("head-expired") {
                prop_assert_eq!(first_late.map(|l| l.2), Some(d.id));
                late_waits = 0;
            } else {
                let starts = || d.queued.iter().map(|q| replay.requests[q].sector);
                let above = starts().filter(|&s| s > last).min();
                let below = starts().filter(|&s| s < last).max();
                prop_assert!(
                    at == last || Some(at) == above || Some(at) == below,
                    "{at} is no neighbour"
                );
                late_waits = if first_late.is_some() { late_waits + 1 } else { 0 };
                prop_assert!(late_waits <= fifo_batch + 1, "a look was missed");
            }
            last = at;
        }
    }

    /// vr behaves like LOOK in two modes: as documented with a penalty of 0, and as shipped with a
    /// penalty of 1 and no equal starts.
    #[test]
    fn look_variant_reverses_at_most_once(
        first in 0..1000u64,
        starts in prop::collection::btree_set(0..1000u64, 1..20),
    ) {
        let starts: Vec<u64> = starts.into_iter().filter(|&s| s != first).collect();
        for (penalty, mode) in [(0, "quotient"), (1, "remainder")] {
            let order = static_order(first, &starts, penalty, mode);
            prop_assert!(turns(first, &order) <= 1, "{mode} {penalty}: {order:?}");
        }
    }

    /// vr behaves like SSTF, with ties upwards, in two modes: as shipped with a penalty of 0, and
    /// as documented with a penalty of 1.
    #[test]
    fn sstf_variant_always_serves_the_nearest_request(
        first in 0..1000u64,
        starts in prop::collection::btree_set(0..1000u64, 1..20),
    ) {
        let starts: Vec<u64> = starts.into_iter().collect();
        for (penalty, mode) in [(0, "remainder"), (1, "quotient")] {
            let order = static_order(first, &starts, penalty, mode);
            let (mut at, mut left) = (first, starts.clone());
            for s in order {
                let nearest = left.iter().copied().min_by_key(|&x| (x.abs_diff(at), x < at));
                prop_assert_eq!(Some(s), nearest, "from {} with {:?}", at, left);
                left.retain(|&x| x != s);
                at = s;
            }
        }
    }
}
