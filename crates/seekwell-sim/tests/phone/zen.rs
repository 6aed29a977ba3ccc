//! Invariants of zen.

use super::lists::{Shape, any_case};
use super::replay::{Replay, Request, jiffy, ms_j, run_case, tunable};
use proptest::prelude::*;
use serde_json::json;

const ZEN: &[&str] = &["zen", "zen-v1", "zen-jf", "zen-ge"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Each class is served in order of arrival. An async request is dispatched before a waiting
    /// sync request only at a check of the deadlines. It must have expired, and (unless the model
    /// is repaired) the sync head must not have expired. Between two such dispatches there are at
    /// least fifo_batch other requests.
    #[test]
    fn async_requests_precede_sync_requests_only_when_expired(case in any_case(ZEN, Shape::plain())) {
        let v1 = case.elevator == "zen-v1";
        let strict = v1 || case.elevator == "zen";
        let sync = |r: &Request| if v1 { r.is_write() } else { r.is_sync() };
        let repaired = tunable(&case, "fix_both_expired") == 1;
        let fifo_batch = tunable(&case, "fifo_batch");
        let replay = Replay::of(&case);
        let expired = |id: u64, now| {
            let r = &replay.requests[&id];
            let expire_j = ms_j(&case, if sync(r) { "sync_expire" } else { "async_expire" });
            let (due, now) = (jiffy(&case, r.at) + expire_j, jiffy(&case, now));
            now > due || (now == due && (!strict || expire_j == 0))
        };
        let mut others = u64::MAX;
        for d in &replay.decisions {
            let is_sync = sync(&replay.requests[&d.id]);
            prop_assert_eq!(replay.oldest(d, |r| sync(r) == is_sync), Some(d.id), "not the oldest");
            let waiting = replay.oldest(d, sync);
            if let (false, Some(head)) = (is_sync, waiting) {
                prop_assert!(d.by("head-expired"));
                prop_assert!(expired(d.id, d.at), "async {} is not late", d.id);
                prop_assert!(repaired || !expired(head, d.at), "both are late");
                prop_assert!(others >= fifo_batch, "only {others} since the last");
                others = 0;
            } else {
                others = others.saturating_add(1);
            }
        }
    }

    /// Sectors and processes do not matter.
    #[test]
    fn dispatch_order_is_independent_of_sectors_and_pids(case in any_case(ZEN, Shape::plain())) {
        let mut other = case.clone();
        for row in &mut other.input {
            row[2] = json!(7);
            row[4] = json!(row[4].as_u64().unwrap_or(0) * 7919 % 100_003);
        }
        prop_assert_eq!(run_case(&case).dispatch, run_case(&other).dispatch);
    }
}
