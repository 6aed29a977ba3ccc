//! Inspection of a queue, for both layers: events for a listener, and snapshots of the contents.

use seekwell_core::event::{Asleep, Waiting};
use seekwell_core::{Device, Instant, MemberKind, Snapshot, Tap};
use seekwell_sched::{Cx, Scheduler};

/// Makes the queue and its device write events to a stream. `None` ends this.
pub(crate) fn listen<D: Device>(tap: Option<&Tap>, cx: &mut Cx, dev: &mut D) {
    if let Some(tap) = tap {
        tap.introduce(MemberKind::Queue, &cx.queue.name);
    }
    cx.log.join(tap.cloned());
    dev.listen(tap);
}

/// Takes a snapshot of the queue (requests, timers, states, and bios that sleep in the layer) and
/// then of the device.
pub(crate) fn snapshot<S: Scheduler + ?Sized, D: Device>(
    now: Instant,
    cx: &Cx,
    sched: &S,
    dev: &D,
    asleep: Vec<Asleep>,
    out: &mut Vec<Snapshot>,
) {
    let mut own = Snapshot::take(now, cx.log.member(), &cx.rqs, &cx.iocs);
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
