//! Names of schedulers: what a queue offers instead of one, and the module that has it.

use crate::block::{Device, Tree};
use seekwell_core::prose::all_in_prose;
use seekwell_core::suggest;
use std::path::Path;

/// A name that many kernels lack, the nearest names of other kernels, and the difference in a
/// sentence.
struct Retired {
    name: &'static str,
    when: &'static str,
    nearest: &'static [&'static str],
    difference: &'static str,
}

const fn retired(
    name: &'static str,
    when: &'static str,
    nearest: &'static [&'static str],
    difference: &'static str,
) -> Retired {
    Retired {
        name,
        when,
        nearest,
        difference,
    }
}

const UNTIL_5: &str = "kernels had it until 4.20";
const OUTSIDE: &str = "it was never in the mainline kernel";
const SINGLE: &str = "kernels have it for blk-mq queues, and this is a single queue";

const RETIRED: &[Retired] = &[
    retired(
        "noop",
        UNTIL_5,
        &["none"],
        "noop kept one queue in order of arrival and merged neighbours in it; none has no queue at \
         all, requests go to the device as they come",
    ),
    retired(
        "deadline",
        UNTIL_5,
        &["mq-deadline"],
        "mq-deadline is the same method for blk-mq queues, and since 5.14 heeds I/O classes",
    ),
    retired(
        "cfq",
        UNTIL_5,
        &["bfq", "mq-deadline"],
        "cfq gave each task slices of time; bfq, which grew out of it, gives budgets of sectors and \
         raises what seems interactive, and mq-deadline shares nothing between tasks",
    ),
    retired(
        "anticipatory",
        "kernels had it until 2.6.32",
        &["bfq", "mq-deadline"],
        "anticipatory waited after a read for the next one of the same task; bfq does so too \
         (slice_idle), for tasks that it deems worth it, and mq-deadline never waits",
    ),
    retired(
        "row",
        OUTSIDE,
        &["mq-deadline"],
        "row, of phones, served reads before writes from queues by class; mq-deadline prefers reads \
         too, but lets writes through after writes_starved batches",
    ),
    retired(
        "sio",
        OUTSIDE,
        &["mq-deadline"],
        "sio kept order of arrival and expiry times without sorting; mq-deadline sorts by sector, \
         too",
    ),
    retired(
        "zen",
        OUTSIDE,
        &["mq-deadline"],
        "zen served in order of arrival with expiry times by class; mq-deadline sorts by sector, too",
    ),
    retired(
        "vr",
        OUTSIDE,
        &["mq-deadline"],
        "vr took the nearest request, with a penalty for those behind the head; mq-deadline sweeps \
         in one direction and starts over",
    ),
    retired(
        "fiops",
        OUTSIDE,
        &["bfq", "kyber"],
        "fiops gave each task equal numbers of requests on flash; bfq shares sectors instead, and \
         kyber shares between reads and writes, not tasks",
    ),
    retired(
        "adios",
        OUTSIDE,
        &["kyber", "mq-deadline"],
        "adios sets deadlines by latencies it learns; kyber holds latency by limiting depth, and \
         mq-deadline by fixed expiry times",
    ),
    retired(
        "bfq-sq",
        OUTSIDE,
        &["bfq"],
        "bfq is the same for blk-mq queues",
    ),
    retired(
        "bfq-mq",
        OUTSIDE,
        &["bfq"],
        "bfq is what became of it in mainline",
    ),
    retired(
        "mq-deadline",
        SINGLE,
        &["deadline"],
        "deadline is the same method for one queue, without I/O classes",
    ),
    retired(
        "none",
        SINGLE,
        &["noop"],
        "noop is the least there is: order of arrival, neighbours merged",
    ),
    retired(
        "bfq",
        "kernels have it since 4.12, for blk-mq queues",
        &["cfq", "mq-deadline"],
        "cfq shares time between tasks where bfq shares sectors; deadline and mq-deadline share \
         nothing between tasks",
    ),
    retired(
        "kyber",
        "kernels have it since 4.12, for blk-mq queues",
        &["mq-deadline", "deadline"],
        "mq-deadline and deadline hold latency by expiry times, where kyber limits depth",
    ),
];

/// Common names for schedulers.
const ALIASES: &[(&str, &str)] = &[
    ("as", "anticipatory"),
    ("mq", "mq-deadline"),
    ("dl", "deadline"),
    ("budget", "bfq"),
    ("noqueue", "none"),
];

/// Whether the name belongs to the scheduler of any kernel version.
pub fn known(name: &str) -> bool {
    RETIRED.iter().any(|r| r.name == name)
}

/// The loadable module of a scheduler, by its name for modprobe.
pub fn module(tree: &Tree, name: &str) -> Option<String> {
    let read = |path: &str| std::fs::read_to_string(tree.at(path)).unwrap_or_default();
    let release = read("/proc/sys/kernel/osrelease");
    let list = read(&format!("/lib/modules/{}/modules.dep", release.trim()));
    let files = list.lines().filter_map(|l| l.split(':').next());
    let mut names = files.filter_map(|f| Path::new(f).file_name()?.to_str()?.split('.').next());
    let wanted = [format!("{name}-iosched"), name.to_owned()];
    names
        .find(|n| wanted.iter().any(|w| w == n))
        .map(str::to_owned)
}

/// Why a scheduler cannot be set on a device, and which ones can.
pub fn answer(tree: &Tree, d: &Device, asked: &str) -> String {
    let offered = d.scheduler.offered();
    let has = |name: &str| offered.iter().any(|o| o == name);
    let all = format!("{} offers {}", d.name, all_in_prose(offered).join(", "));
    if let Some(m) = module(tree, asked) {
        return format!(
            "`{asked}` is a module of this kernel that is not loaded: `sudo modprobe {m}`, then \
             again ({all})"
        );
    }
    let name = ALIASES.iter().find(|a| a.0 == asked).map_or(asked, |a| a.1);
    let Some(r) = RETIRED.iter().find(|r| r.name == name) else {
        let words = offered.iter().map(|o| &**o);
        let meant = suggest::did_you_mean(asked, words, &[]).or_else(|| {
            let names = RETIRED.iter().map(|r| r.name);
            suggest::did_you_mean(asked, names, ALIASES)
        });
        let meant = meant.map_or(String::new(), |m| format!("; {m}"));
        return format!("no scheduler is called `{asked}`{meant} ({all})");
    };
    let head = match has(name) {
        true => format!("it is called `{name}`"),
        false => format!("this queue has no `{name}` ({})", r.when),
    };
    match r.nearest.iter().find(|n| has(n)) {
        _ if has(name) => format!("{head} ({all})"),
        Some(n) => format!("{head}; nearest here is `{n}`: {}", r.difference),
        None => match r.nearest.iter().find_map(|n| Some((n, module(tree, n)?))) {
            Some((n, m)) => format!(
                "{head}; nearest is `{n}`, a module that is not loaded: `sudo modprobe {m}`; {} ({all})",
                r.difference
            ),
            None => format!("{head}, nor anything near it; {all}"),
        },
    }
}

/// Tunables of the schedulers of Linux 6.18 with their values after a switch, read from a running
/// kernel (HZ=250 for those counted in ticks).
const DEFAULTS: &[(&str, &[(&str, &str)])] = &[
    (
        "mq-deadline",
        &[
            ("fifo_batch", "16"),
            ("front_merges", "1"),
            ("prio_aging_expire", "10000"),
            ("read_expire", "500"),
            ("write_expire", "5000"),
            ("writes_starved", "2"),
        ],
    ),
    (
        "kyber",
        &[("read_lat_nsec", "2000000"), ("write_lat_nsec", "10000000")],
    ),
    (
        "bfq",
        &[
            ("back_seek_max", "16384"),
            ("back_seek_penalty", "2"),
            ("fifo_expire_async", "250"),
            ("fifo_expire_sync", "125"),
            ("low_latency", "1"),
            ("max_budget", "0"),
            ("slice_idle", "8"),
            ("slice_idle_us", "8000"),
            ("strict_guarantees", "0"),
            ("timeout_sync", "124"),
        ],
    ),
];

/// The value of a tunable after a switch to its scheduler, if known.
pub fn default_of(scheduler: &str, tunable: &str) -> Option<&'static str> {
    let all = DEFAULTS.iter().find(|d| d.0 == scheduler)?.1;
    all.iter().find(|t| t.0 == tunable).map(|t| t.1)
}

/// Schedulers that have a tunable, among those with known tunables.
pub fn owners(tunable: &str) -> Vec<&'static str> {
    let has = |d: &&(&str, &[(&str, &str)])| d.1.iter().any(|t| t.0 == tunable);
    DEFAULTS.iter().filter(has).map(|d| d.0).collect()
}

/// Names of a scheduler's tunables, if known.
pub fn tunables_of(scheduler: &str) -> Option<Vec<&'static str>> {
    let all = DEFAULTS.iter().find(|d| d.0 == scheduler)?.1;
    Some(all.iter().map(|t| t.0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::made_up::MadeUp;

    fn answered(offered: &str, asked: &str, modules: &str) -> String {
        let t = MadeUp::new("names");
        t.disk("sda", "", offered);
        t.put("proc/sys/kernel/osrelease", "6.1.0\n");
        t.put("lib/modules/6.1.0/modules.dep", modules);
        let m = t.machine();
        answer(m.tree(), m.device("sda").expect("sda"), asked)
    }

    #[test]
    fn names_of_other_times_are_answered_with_the_nearest_here() {
        let today = "none [mq-deadline] kyber bfq";
        for (asked, near) in [
            ("noop", "none"),
            ("deadline", "mq-deadline"),
            ("cfq", "bfq"),
            ("anticipatory", "bfq"),
            ("as", "bfq"),
            ("sio", "mq-deadline"),
            ("row", "mq-deadline"),
            ("fiops", "bfq"),
        ] {
            let a = answered(today, asked, "");
            assert!(
                a.contains(&format!("nearest here is `{near}`: ")),
                "{asked}: {a}"
            );
        }
        let a = answered("none [mq-deadline]", "cfq", "");
        assert!(a.contains("nearest here is `mq-deadline`"), "{a}");
        let phone = "noop deadline row [cfq]";
        for (asked, near) in [
            ("mq-deadline", "deadline"),
            ("none", "noop"),
            ("bfq", "cfq"),
        ] {
            let a = answered(phone, asked, "");
            assert!(
                a.contains(&format!("nearest here is `{near}`: ")),
                "{asked}: {a}"
            );
        }
        let a = answered("[none]", "cfq", "");
        assert!(
            a.ends_with("nor anything near it; sda offers `none`"),
            "{a}"
        );
    }

    #[test]
    fn slips_are_answered_with_the_right_word() {
        let today = "none [mq-deadline] kyber bfq";
        for (asked, meant) in [
            ("kiber", "kyber"),
            ("mqdeadline", "mq-deadline"),
            ("bqf", "bfq"),
            ("cqf", "cfq"),
        ] {
            let a = answered(today, asked, "");
            assert!(a.contains(&format!("`{meant}`")), "{asked}: {a}");
        }
        let a = answered(today, "quantum", "");
        assert_eq!(
            a,
            "no scheduler is called `quantum` (sda offers `none`, mq-deadline, kyber, bfq)"
        );
    }

    #[test]
    fn modules_are_named() {
        let modules = "kernel/block/bfq.ko.xz:\nkernel/block/kyber-iosched.ko: kernel/x.ko\n";
        let a = answered("[none] mq-deadline", "kyber", modules);
        assert!(a.contains("`sudo modprobe kyber-iosched`"), "{a}");
        let a = answered("[none]", "cfq", modules);
        assert!(
            a.contains("nearest is `bfq`, a module that is not loaded: `sudo modprobe bfq`"),
            "{a}"
        );
    }
}
