//! Chooses the default reference. It is the scheduler that the kernel uses by default for the class
//! of the device, if this scheduler is among the treatments.
//!
//! Single-queue kernels since 2.6.18 use CFQ for every disk. blk-mq kernels use mq-deadline for a
//! device with one hardware queue, and `none` for a device with several (block/elevator.c,
//! `elevator_get_default`). Schedulers that distributions set by udev rules are not taken into
//! account.

use seekwell::{DeviceSpec, RunSpec, SchedulerSpec, words};
use seekwell_core::prose::all_in_prose;
use seekwell_core::suggest;
use seekwell_device::{describe, with_files};

/// Returns whether the device has several hardware queues.
pub(super) fn several_queues(device: &DeviceSpec) -> bool {
    let preset = with_files(&device.files, || describe(&device.spec));
    preset.is_ok_and(|p| p.has_several_queues())
}

/// A treatment of a cell: its label and its scheduler.
pub(super) type Candidate<'a> = (&'a str, &'a SchedulerSpec);

/// Returns the index in `all` of the scheduler that the kernel uses by default. If it is not in
/// `all`, returns 0.
pub(super) fn usual(all: &[Candidate<'_>], several_queues: bool) -> usize {
    let blk_mq = if several_queues {
        "none"
    } else {
        "mq-deadline"
    };
    // The newest layer among the treatments decides, because its default is the one in use today.
    let order = [blk_mq, "cfq"];
    for name in order {
        let version = |s: &SchedulerSpec| {
            let found = words::named(name);
            found.is_ok_and(|f| s.version.as_deref().is_none_or(|v| v == f.version))
        };
        let of_name = |c: &&Candidate<'_>| c.1.name == name;
        let plain = |c: &&Candidate<'_>| of_name(c) && c.1.tunables.is_empty();
        let best = all.iter().find(|c| plain(c) && version(c.1));
        let best = best.or_else(|| all.iter().find(plain));
        if let Some(found) = best.or_else(|| all.iter().find(of_name)) {
            let same = |c: &Candidate<'_>| std::ptr::eq(c.1, found.1);
            return all.iter().position(same).unwrap_or_default();
        }
    }
    0
}

/// Returns the index of the scheduler that a kernel uses by default for the device of these runs.
/// If it is not among the runs, returns 0.
pub fn kernels_choice(specs: &[RunSpec]) -> usize {
    let Some(first) = specs.first() else { return 0 };
    let all: Vec<Candidate<'_>> = specs.iter().map(|s| ("", &s.scheduler)).collect();
    usual(&all, several_queues(&first.device))
}

/// Returns the treatment with this label. If there is none, returns the treatment with this
/// scheduler name and without tunables, or the only treatment with this scheduler name.
pub(super) fn named(all: &[Candidate<'_>], name: &str) -> Option<usize> {
    if let Some(at) = all.iter().position(|c| c.0 == name) {
        return Some(at);
    }
    let mut of = (0..all.len()).filter(|i| {
        let s = all[*i].1;
        s.name == name || s.versioned() == name
    });
    let plain = |i: &usize| all[*i].1.tunables.is_empty();
    match (of.clone().find(plain), of.next(), of.next()) {
        (Some(plain), ..) => Some(plain),
        (None, Some(one), None) => Some(one),
        _ => None,
    }
}

/// Returns the message for a name that no treatment has, and the nearest valid name.
pub(super) fn unknown(all: &[Candidate<'_>], name: &str) -> (String, Option<String>) {
    let labels: Vec<&str> = all.iter().map(|c| c.0).collect();
    let near = suggest::nearest(name, labels.iter().copied(), &[]);
    let remedy = match suggest::question(&near) {
        Some(question) => question,
        None => format!("there are {}", all_in_prose(&labels).join(", ")),
    };
    let what = format!("no scheduler of the experiment is called \"{name}\"; {remedy}");
    (what, near.first().map(|n| (*n).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: &[&str]) -> Vec<(String, SchedulerSpec)> {
        let typed = |t: &&str| words::scheduler(t).expect("a scheduler");
        let pair = |t: &&str| ((*t).to_owned(), typed(t).spec);
        texts.iter().map(pair).collect()
    }

    #[test]
    fn reference_is_the_current_then_the_former_kernel_default_then_the_first() {
        for (texts, several, reference) in [
            (&["noop", "cfq", "mq-deadline"][..], false, 2),
            (&["noop", "cfq", "mq-deadline", "none"], true, 3),
            (&["noop", "cfq", "none"], false, 1),
            (&["noop", "deadline"], false, 0),
            (
                &["mq-deadline:fifo_batch=1", "mq-deadline", "kyber"],
                false,
                1,
            ),
            (&["cfq-3.4", "cfq"], false, 1),
        ] {
            let own = all(texts);
            let own: Vec<Candidate<'_>> = own.iter().map(|(t, s)| (&**t, s)).collect();
            assert_eq!(usual(&own, several), reference, "{texts:?}");
        }
    }

    #[test]
    fn reference_name_is_a_label_or_a_unique_scheduler() {
        let own = all(&[
            "cfq:slice_idle=0",
            "cfq",
            "bfq:low_latency=0",
            "noop-2.6.18",
        ]);
        let own: Vec<Candidate<'_>> = own.iter().map(|(t, s)| (&**t, s)).collect();
        assert_eq!(named(&own, "cfq:slice_idle=0"), Some(0));
        assert_eq!(named(&own, "cfq"), Some(1));
        assert_eq!(named(&own, "bfq"), Some(2));
        assert_eq!(named(&own, "noop"), Some(3));
        assert_eq!(named(&own, "kyber"), None);
        let (said, near) = unknown(&own, "cfg");
        assert_eq!(near.as_deref(), Some("cfq"), "{said}");
    }

    #[test]
    fn kernel_default_depends_on_the_device() {
        let of = |device: &str, list: &str| {
            let device = words::device(device).expect("a device");
            let work = words::workload("fs-mark", &[]).expect("a workload");
            let typed = words::schedulers(list).expect("schedulers");
            let spec = |t: &words::TypedScheduler| {
                RunSpec::new(device.clone(), t.spec.clone(), work.clone())
            };
            kernels_choice(&typed.iter().map(spec).collect::<Vec<_>>())
        };
        let today = "none,mq-deadline,kyber,bfq";
        assert_eq!(of("ssd:nvme-gen4-tlc-2t", today), 0);
        assert_eq!(of("ssd:sata-tlc-1t", today), 1);
        assert_eq!(of("hdd:st2000dm006", "kyber,bfq"), 0, "the first");
    }

    #[test]
    fn devices_with_several_queues_are_recognised() {
        let of = |d: &str| several_queues(&words::device(d).expect("a device"));
        assert!(of("ssd:nvme-dc-2t") && !of("hdd:hitachi-7k200") && !of("ssd:sata3-256-2011"));
        assert!(of("virtual:vm-virtio-nvme") && !of("virtual:vm-virtio-hdd"));
    }
}
