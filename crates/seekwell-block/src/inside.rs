//! What is inside a queue at an instant, for snapshots.

use seekwell_core::event::Waiting;
use seekwell_core::{Device, Instant, Snapshot};
use seekwell_sched::{Cx, Scheduler};

/// Requests, timers and states; the sleepers are the layer's.
pub(crate) fn snapshot<S: Scheduler + ?Sized, D: Device>(
    now: Instant,
    cx: &Cx,
    sched: &S,
    dev: &D,
) -> Snapshot {
    let mut s = Snapshot::of(now, cx.log.member(), &cx.rqs, &cx.iocs);
    let timer = |(slot, until): (&str, Instant)| Waiting {
        slot: slot.to_owned(),
        until: until.since_start(),
    };
    s.timers = cx.timers().map(timer).collect();
    sched.state(cx, &mut s.scheduler);
    dev.state(&mut s.device);
    s
}
