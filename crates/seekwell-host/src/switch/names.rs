//! Names of schedulers: suggests a scheduler that a queue offers if it does not have the requested
//! one, and finds kernel modules.

use crate::block::{Device, Tree};
use seekwell_core::prose::all_in_prose;
use seekwell_core::suggest;
use std::path::Path;

/// A scheduler that many kernels do not have, with the most similar schedulers of other kernels and
/// the difference between them.
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
const SINGLE: &str = "kernels have it only for blk-mq queues, and this is a single queue";

#[rustfmt::skip]
const RETIRED: &[Retired] = &[
    retired("noop", UNTIL_5, &["none"],
        "noop had one queue in order of arrival and merged neighbouring requests in it; with none \
         the device gets the requests directly, in order of arrival"),
    retired("deadline", UNTIL_5, &["mq-deadline"],
        "mq-deadline is the same method for blk-mq queues; since 5.14 it also uses I/O classes"),
    retired("cfq", UNTIL_5, &["bfq", "mq-deadline"],
        "cfq gave each task slices of time; bfq, its successor, gives each task budgets of sectors \
         and prefers tasks that seem interactive; mq-deadline does not distinguish tasks"),
    retired("anticipatory", "kernels had it until 2.6.32", &["bfq", "mq-deadline"],
        "anticipatory waited after a read for the next read of the same task; bfq also waits \
         (slice_idle), but only for tasks that are likely to benefit; mq-deadline never waits"),
    retired("row", OUTSIDE, &["mq-deadline"],
        "row, made for phones, served reads before writes, from one queue per class; mq-deadline \
         also prefers reads, but serves writes after writes_starved batches of reads"),
    retired("sio", OUTSIDE, &["mq-deadline"],
        "sio used the order of arrival and expiry times; mq-deadline has expiry times too, but \
         also sorts by sector"),
    retired("zen", OUTSIDE, &["mq-deadline"],
        "zen used the order of arrival and expiry times by class; mq-deadline has expiry times \
         too, but also sorts by sector"),
    retired("vr", OUTSIDE, &["mq-deadline"],
        "vr took the nearest request, with a penalty for requests behind the head; mq-deadline \
         moves in one direction and then starts again at the lowest sector"),
    retired("fiops", OUTSIDE, &["bfq", "kyber"],
        "fiops gave each task the same number of requests on flash; bfq gives each task the same \
         number of sectors; kyber distinguishes reads and writes, but not tasks"),
    retired("adios", OUTSIDE, &["kyber", "mq-deadline"],
        "adios measures latencies and derives deadlines from them; kyber limits latency by \
         limiting the queue depth; mq-deadline limits latency by fixed expiry times"),
    retired("bfq-sq", OUTSIDE, &["bfq"], "bfq is the same for blk-mq queues"),
    retired("bfq-mq", OUTSIDE, &["bfq"], "bfq is its successor in the mainline kernel"),
    retired("mq-deadline", SINGLE, &["deadline"],
        "deadline is the same method for one queue, without I/O classes"),
    retired("none", SINGLE, &["noop"],
        "noop uses the order of arrival and merges neighbouring requests"),
    retired("bfq", "kernels have it since 4.12, for blk-mq queues", &["cfq", "mq-deadline"],
        "cfq gives each task a share of time, bfq a share of sectors; deadline and mq-deadline do \
         not distinguish tasks"),
    retired("kyber", "kernels have it since 4.12, for blk-mq queues", &["mq-deadline", "deadline"],
        "mq-deadline and deadline limit latency by expiry times; kyber limits the queue depth"),
];

/// Other common names of schedulers.
const ALIASES: &[(&str, &str)] = &[
    ("as", "anticipatory"),
    ("mq", "mq-deadline"),
    ("dl", "deadline"),
    ("budget", "bfq"),
    ("noqueue", "none"),
];

/// Returns the loadable module of a scheduler, by its name for modprobe.
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

/// Explains why a scheduler cannot be set on a device, and which schedulers can be set.
pub fn answer(tree: &Tree, d: &Device, asked: &str) -> String {
    let offered = d.scheduler.offered();
    let has = |name: &str| offered.iter().any(|o| o == name);
    let all = format!("{} offers {}", d.name, all_in_prose(offered).join(", "));
    if let Some(m) = module(tree, asked) {
        return format!(
            "\"{asked}\" is a module of this kernel that is not loaded: run `sudo modprobe {m}` \
             and try again ({all})"
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
        return format!("no scheduler is called \"{asked}\"{meant} ({all})");
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
            None => format!("{head} and no similar scheduler; {all}"),
        },
    }
}

/// Tunables of the schedulers of Linux 6.18 with their default values, read from a running kernel.
/// Values that are counted in ticks are for HZ=250.
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

/// Returns the value of a tunable after a switch to its scheduler, if it is known.
pub fn default_of(scheduler: &str, tunable: &str) -> Option<&'static str> {
    let all = DEFAULTS.iter().find(|d| d.0 == scheduler)?.1;
    all.iter().find(|t| t.0 == tunable).map(|t| t.1)
}

/// Returns the schedulers that have a tunable with this name, as far as their tunables are known.
pub fn owners(tunable: &str) -> Vec<&'static str> {
    let has = |d: &&(&str, &[(&str, &str)])| d.1.iter().any(|t| t.0 == tunable);
    DEFAULTS.iter().filter(has).map(|d| d.0).collect()
}

/// Returns the names of a scheduler's tunables, if they are known.
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
    fn scheduler_of_another_era_gets_the_nearest_offered_one() {
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
            a.ends_with("and no similar scheduler; sda offers `none`"),
            "{a}"
        );
    }

    #[test]
    fn misspelt_scheduler_gets_a_suggestion() {
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
            "no scheduler is called \"quantum\" (sda offers `none`, mq-deadline, kyber, bfq)"
        );
    }

    #[test]
    fn unloaded_scheduler_module_is_named() {
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
