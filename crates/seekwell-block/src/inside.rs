//! What both layers do for whoever looks inside: they write into his stream, and tell what is in
//! them at an instant.

use seekwell_core::event::{Asleep, Waiting};
use seekwell_core::{Device, Instant, MemberKind, Snapshot, Tap};
use seekwell_sched::{Cx, Scheduler};

/// Queue and device write into a stream from now on, or into none.
pub(crate) fn listen<D: Device>(tap: Option<&Tap>, cx: &mut Cx, dev: &mut D) {
    if let Some(tap) = tap {
        tap.introduce(MemberKind::Queue, &cx.queue.name);
    }
    cx.log.join(tap.cloned());
    dev.listen(tap);
}

/// Requests, timers, states, and who is asleep in the layer; then what the device has inside.
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
