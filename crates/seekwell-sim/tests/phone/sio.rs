//! Invariants of sio.

use super::lists::{Shape, any_case};
use super::replay::{Replay, Request, jiffy, ms_j, tunable};
use proptest::prelude::*;

const SIO: &[&str] = &["sio", "sio-tuned", "sio-zenkernel"];

/// Order in which expired heads are searched: (sync, write).
const LOOK: [(bool, bool); 4] = [(false, true), (false, false), (true, true), (true, false)];

fn expire_name(list: (bool, bool)) -> &'static str {
    match list {
        (true, false) => "sync_read_expire",
        (true, true) => "sync_write_expire",
        (false, false) => "async_read_expire",
        (false, true) => "async_write_expire",
    }
}

fn list(r: &Request) -> (bool, bool) {
    (r.is_sync(), r.is_write())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Each list is served in order of arrival. A write is dispatched before a waiting read only if
    /// it is the turn of a write or the write has expired. A read is dispatched before a waiting
    /// write only if it is the turn of a read or the read has expired. An async write is dispatched
    /// before a waiting sync write only if it has expired. An expired request that is dispatched is
    /// the first in the search order, and it is dispatched soon after it expired.
    #[test]
    fn writes_overtake_reads_only_at_their_turn_or_by_expiry(case in any_case(SIO, Shape::plain())) {
        let writes_starved = tunable(&case, "writes_starved");
        let fifo_batch = tunable(&case, "fifo_batch");
        let replay = Replay::of(&case);
        let late = |id: u64, now| {
            let r = &replay.requests[&id];
            jiffy(&case, now) > jiffy(&case, r.at) + ms_j(&case, expire_name(list(r)))
        };
        let (mut starved, mut late_waits) = (0u64, 0u64);
        for d in &replay.decisions {
            let r = &replay.requests[&d.id];
            let looked = d.by("head-expired");
            prop_assert_eq!(replay.oldest(d, |q| list(q) == list(r)), Some(d.id), "not the oldest");
            let head = |l| replay.oldest(d, |q| list(q) == l);
            let reads_wait = replay.oldest(d, |q| !q.is_write()).is_some();
            let writes_wait = replay.oldest(d, Request::is_write).is_some();
            if r.is_write() && reads_wait {
                prop_assert!(looked || starved > writes_starved, "a write out of turn");
            }
            if !r.is_write() && writes_wait {
                prop_assert!(looked || starved <= writes_starved, "a read out of turn");
            }
            if list(r) == (false, true) && head((true, true)).is_some() {
                prop_assert!(looked, "an async write before a sync one");
            }
            let first_late = LOOK.into_iter().filter_map(head).find(|&h| late(h, d.at));
            if looked {
                prop_assert_eq!(first_late, Some(d.id), "not the first late head");
            }
            late_waits = if looked || first_late.is_none() { 0 } else { late_waits + 1 };
            prop_assert!(late_waits <= fifo_batch + 1, "a look was missed");
            starved = if r.is_write() { 0 } else { starved + 1 };
        }
    }
}
