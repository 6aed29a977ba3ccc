//! Finds schedulers and devices in the names of systems, tests and files.
//!
//! For example, "Penryn + HDD: CFQ" is a machine and a scheduler, "MQ Deadline" is one scheduler,
//! and "BFQ low_latency" is a scheduler with a setting. In `laptop-mq-deadline-run3.json`, "laptop"
//! is the device and "run3" is ignored. A name without a known scheduler becomes a treatment of its
//! own.

use super::harvest::short;
use super::input::base;
use seekwell_sched::registry;

/// The kind of name that contains the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameFrom {
    /// The name of the system, that is, the column or configuration.
    #[default]
    System,
    /// The name of the test.
    Test,
    /// The name of the file or of its directory.
    File,
}

/// The parts of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Label of the treatment in tables.
    pub label: String,
    /// Name of the scheduler in the kernel; empty if no known scheduler was found.
    pub scheduler: String,
    /// Version of the scheduler; empty if the name has none.
    pub version: String,
    /// The rest of the name, which does not belong to the treatment.
    pub rest: String,
}

/// Spellings of schedulers in publications, in addition to the names in the registry.
const SPELT: &[(&str, &str)] = &[
    ("as", "anticipatory"),
    ("no-op", "noop"),
    ("nop", "noop"),
    ("mq-none", "none"),
    ("none-mq", "none"),
    ("no-scheduler", "none"),
    ("mqdeadline", "mq-deadline"),
    ("deadline-mq", "mq-deadline"),
    ("mq-kyber", "kyber"),
    ("mq-bfq", "bfq"),
    ("bfq-mq", "bfq"),
    ("v(r)", "vr"),
];

/// Words in file names that describe neither a device nor a treatment.
const EMPTY_WORDS: &[&str] = &[
    "run",
    "rep",
    "repeat",
    "iter",
    "iteration",
    "pass",
    "json",
    "result",
    "results",
    "log",
    "out",
    "output",
    "txt",
    "fio",
    "pgbench",
    "sysbench",
    "hyperfine",
    "ioping",
    "hdparm",
    "kdiskmark",
    "crystaldiskmark",
    "dd",
    "text",
    "terse",
    "composite",
    "csv",
    "xml",
];

/// The scheduler's name in the kernel, and its version (empty if the name has none).
type Found = (&'static str, String);

/// Returns the scheduler with this spelling.
pub fn known(word: &str) -> Option<Found> {
    let mut name: String = word.trim().to_lowercase().replace([' ', '_'], "-");
    for ending in ["-iosched", "-i/o-scheduler", "-io-scheduler", "-scheduler"] {
        name = name.strip_suffix(ending).unwrap_or(&name).to_owned();
    }
    let name = name.strip_prefix("elevator=").unwrap_or(&name);
    let spelt = SPELT.iter().find(|s| s.0 == name);
    let name = spelt.map_or(name, |s| s.1);
    let (info, version, _) = registry::find(name)?;
    let told = if name == info.name { "" } else { version };
    Some((info.name, told.to_owned()))
}

fn treatment((scheduler, version): Found, label: &str) -> Named {
    let canonical = match version.as_str() {
        "" => scheduler.to_owned(),
        v => format!("{scheduler}-{v}"),
    };
    Named {
        label: if label.is_empty() {
            canonical
        } else {
            short(label)
        },
        scheduler: scheduler.to_owned(),
        version,
        rest: String::new(),
    }
}

/// Returns the byte ranges of words: letters, digits, dots and the characters that join them.
fn words(name: &str) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut start = None;
    for (i, c) in name.char_indices() {
        let part = c.is_alphanumeric() || c == '.';
        match (part, start) {
            (true, None) => start = Some(i),
            (false, Some(s)) => {
                out.push((s, i));
                start = None;
            }
            _ => {}
        }
    }
    out.extend(start.map(|s| (s, name.len())));
    out
}

/// Finds the first and longest sequence of words that names a scheduler. Returns the scheduler and
/// the byte range of the words.
fn inside(name: &str) -> Option<(Found, (usize, usize))> {
    let words = words(name);
    for long in (1..=3).rev() {
        for w in words.windows(long) {
            let (from, to) = (w.first()?.0, w.last()?.1);
            let text = &name[from..to];
            // Inside a longer name, "as" is usually the English word and not the scheduler.
            if let Some(found) = known(text).filter(|_| !text.eq_ignore_ascii_case("as")) {
                return Some((found, (from, to)));
            }
        }
    }
    None
}

/// Parses the name of a system: "MACHINE: TREATMENT" or only a treatment.
pub fn of_system(name: &str) -> Named {
    if let Some(found) = known(name) {
        return treatment(found, "");
    }
    let parts = name.rsplit_once(": ").or_else(|| name.rsplit_once(" - "));
    if let Some((before, word)) = parts {
        if let Some(found) = known(word) {
            let rest = short(before);
            return Named {
                rest,
                ..treatment(found, "")
            };
        }
        if let Some(found) = known(before) {
            let rest = short(word);
            return Named {
                rest,
                ..treatment(found, "")
            };
        }
        if let Some((found, _)) = inside(word) {
            let rest = short(before);
            return Named {
                rest,
                ..treatment(found, word)
            };
        }
    }
    match inside(name) {
        Some((found, _)) => treatment(found, name),
        None => Named {
            label: short(name),
            ..Named::default()
        },
    }
}

/// Parses the name of a test and removes the scheduler from it.
pub fn of_test(name: &str) -> Named {
    let Some((found, (from, to))) = inside(name) else {
        return Named {
            rest: short(name),
            ..Named::default()
        };
    };
    let trimmed = |s: &str| {
        s.trim_matches([' ', '-', '_', ',', ':', '/', '(', ')'])
            .to_owned()
    };
    let (before, after) = (trimmed(&name[..from]), trimmed(&name[to..]));
    let between = if before.is_empty() || after.is_empty() {
        ""
    } else {
        " "
    };
    Named {
        rest: short(&format!("{before}{between}{after}")),
        ..treatment(found, "")
    }
}

/// Parses the name of a file. If it contains no scheduler, parses the name of its directory.
pub fn of_file(path: &str) -> Named {
    let file = base(path);
    let folder = path.rsplit('/').nth(1).unwrap_or("");
    let stem = match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => file,
    };
    for (name, other) in [(stem, ""), (folder, stem)] {
        if let Some((found, (from, to))) = inside(name) {
            let rest = [&name[..from], &name[to..], other]
                .map(meaningful_words)
                .to_vec();
            let rest: Vec<_> = rest.into_iter().filter(|r| !r.is_empty()).collect();
            return Named {
                rest: rest.join("-"),
                ..treatment(found, "")
            };
        }
    }
    Named {
        label: meaningful_words(stem),
        ..Named::default()
    }
}

/// Returns the words of a part of a file name, without run numbers and names of tools.
fn meaningful_words(part: &str) -> String {
    let tells = |w: &&str| {
        let lower = w.to_lowercase();
        let bare = lower.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let numbered = bare.len() < lower.len() && matches!(bare, "" | "r" | "n" | "run" | "rep");
        !numbered && !EMPTY_WORDS.contains(&bare)
    };
    let all = words(part).into_iter().map(|(from, to)| &part[from..to]);
    short(&all.filter(tells).collect::<Vec<_>>().join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(n: &Named) -> (&str, &str, &str) {
        (&n.label, &n.scheduler, &n.rest)
    }

    #[test]
    fn system_names_contain_machine_and_scheduler() {
        for (name, said) in [
            ("Penryn + HDD: CFQ", ("cfq", "cfq", "Penryn + HDD")),
            ("CFQ: Penryn", ("cfq", "cfq", "Penryn")),
            ("MQ Deadline", ("mq-deadline", "mq-deadline", "")),
            ("MQ None", ("none", "none", "")),
            ("No-op", ("noop", "noop", "")),
            ("BFQ low_latency", ("BFQ low_latency", "bfq", "")),
            (
                "ssd: bfq (slice_idle=0)",
                ("bfq (slice_idle=0)", "bfq", "ssd"),
            ),
            ("Linux 5.4", ("Linux 5.4", "", "")),
            ("deadline", ("deadline", "deadline", "")),
            ("cfq-2.6.18", ("cfq-2.6.18", "cfq", "")),
        ] {
            assert_eq!(parts(&of_system(name)), said, "{name}");
        }
        assert_eq!(of_system("cfq-2.6.18").version, "2.6.18");
        assert_eq!(of_system("cfq").version, "", "the version is not known");
    }

    #[test]
    fn file_names_contain_device_and_scheduler_and_run_numbers_are_ignored() {
        for (path, said) in [
            ("none-1.json", ("none", "none", "")),
            ("mq-deadline-run03.json", ("mq-deadline", "mq-deadline", "")),
            ("laptop-ssd-cfq-1.json", ("cfq", "cfq", "laptop-ssd")),
            ("out/bfq/run1.json", ("bfq", "bfq", "")),
            ("out/kyber/randread-2.json", ("kyber", "kyber", "randread")),
            ("results.json", ("", "", "")),
            ("before-3.txt", ("before", "", "")),
        ] {
            assert_eq!(parts(&of_file(path)), said, "{path}");
        }
    }

    #[test]
    fn scheduler_is_removed_from_the_test_name() {
        let n = of_test("dbench - 12 clients (mq-deadline)");
        assert_eq!(
            parts(&n),
            ("mq-deadline", "mq-deadline", "dbench - 12 clients")
        );
        assert_eq!(parts(&of_test("dbench")), ("", "", "dbench"));
    }
}
