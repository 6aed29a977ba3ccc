//! Inspection, shared by both layers: sending events to a stream, and snapshots of the contents.

use seekwell_core::event::{Asleep, Waiting};
use seekwell_core::{Device, Instant, MemberKind, Snapshot, Tap};
use seekwell_sched::{Cx, Scheduler};

/// Makes queue and device write to a stream, or to none.
pub(crate) fn listen<D: Device>(tap: Option<&Tap>, cx: &mut Cx, dev: &mut D) {
    if let Some(tap) = tap {
        tap.introduce(MemberKind::Queue, &cx.queue.name);
    }
    cx.log.join(tap.cloned());
    dev.listen(tap);
}

/// Takes a snapshot: requests, timers, states, and bios asleep in the layer; then the contents of
/// the device.
pub(crate) fn snapshot<S: Scheduler + ?Sized, D: Device>(
    now: Instant,
    cx: &Cx,
    sched: &S,
    dev: &D,
    asleep: Vec<Asleep>,
    out: &mut Vec<Snapshot>,
) {
    let mut own = Snapshot::of(now, cx.log.member(), &cx.rqs, &cx.iocs);
    let timer = |(slot, until): (&str, Instant)| Waiting {
        slot: slot.to_owned(),
        until: until.since_start(),
    };
    own.timers = cx.timers().map(timer).collect();
    sched.state(cx, &mut own.scheduler);
    dev.state(&mut own.device);
    own.asleep = asleep;
    out.push(own);
    dev.snapshot(now, out);
}
