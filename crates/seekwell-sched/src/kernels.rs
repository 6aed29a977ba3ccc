//! Kernel releases people name a scheduler by (`mq-deadline-5.4`), and the version that holds for
//! each.
//!
//! A version is called after the kernel its rules were read in. Where those rules are known to be
//! another release's as well, the name of that release finds the version; where they are known to
//! differ, or nobody looked, the name is refused with what is known and the nearest version there
//! is. Left out: the block layer around, which is that of the version, not of the release.

use crate::registry::SchedulerInfo;

/// Releases for which a version of another name holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stands {
    /// The scheduler.
    pub scheduler: &'static str,
    /// Its version that holds.
    pub version: &'static str,
    /// The first release for which it does, as numbers.
    from: [u16; 2],
    /// The last one.
    to: [u16; 2],
    /// In words, for lists.
    pub kernels: &'static str,
}

/// From the differences between releases, as the specifications of the schedulers list them.
pub const STANDS: &[Stands] = &[
    Stands {
        scheduler: "cfq",
        version: "4.0",
        from: [4, 1],
        to: [4, 1],
        kernels: "4.1",
    },
    Stands {
        scheduler: "cfq",
        version: "4.4",
        from: [4, 2],
        to: [4, 3],
        kernels: "4.2, 4.3",
    },
    // No classes, no aging, no async_depth until 5.13.
    Stands {
        scheduler: "mq-deadline",
        version: "5.10",
        from: [5, 0],
        to: [5, 13],
        kernels: "5.0 to 5.13 (5.4)",
    },
    Stands {
        scheduler: "mq-deadline",
        version: "6.1",
        from: [5, 14],
        to: [6, 0],
        kernels: "5.14 to 6.0 (5.15)",
    },
    Stands {
        scheduler: "mq-deadline",
        version: "6.12",
        from: [6, 6],
        to: [6, 17],
        kernels: "6.6 to 6.17",
    },
];

/// Versions people ask for that no text specifies: what is known of them.
const UNSPECIFIED: &[(&str, [u16; 2], [u16; 2], &str)] = &[
    (
        "bfq",
        [4, 12],
        [6, 0],
        "bfq changed with most releases until 6.1, and its rules of then are not known here",
    ),
    (
        "bfq",
        [6, 2],
        [6, 11],
        "what changed between 6.1 and 6.12, and when, is not known here",
    ),
    (
        "zen",
        [3, 18],
        [3, 18],
        "all that is known of the zen of 3.18 is its fifo_batch of 25 (`zen:fifo_batch=25`)",
    ),
    (
        "cfq",
        [3, 18],
        [3, 18],
        "on rotating disks it is 4.0; on flash it also idles differently for the last queue of a \
         group",
    ),
    (
        "cfq",
        [4, 5],
        [4, 20],
        "cfq was rewritten to nanoseconds in 4.8, and 4.15 changed who preempts whom",
    ),
];

/// Leading numbers of a release as `uname -r` prints it: `5.15.0-91-generic` is `[5, 15, 0]`.
fn numbers(text: &str) -> Option<[u16; 3]> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let text = text[..end.unwrap_or(text.len())].trim_end_matches('.');
    let mut out = [0; 3];
    let mut n = 0;
    for part in text.split('.') {
        *out.get_mut(n)? = part.parse().ok()?;
        n += 1;
    }
    (n >= 2).then_some(out)
}

/// Is it one of a series of releases? From 3.0 on the third number is a stable update.
fn within(release: [u16; 3], from: [u16; 2], to: [u16; 2]) -> bool {
    let series = [release[0], release[1]];
    release[0] >= 3 && (from..=to).contains(&series)
}

/// The version of `info` that holds for a kernel release, by its name or by [`STANDS`].
pub fn version_for(info: &SchedulerInfo, release: &str) -> Option<&'static str> {
    let asked = numbers(release)?;
    // A version of three numbers is no kernel's from 3.0 on: it is the scheduler's own.
    let same = |v: &&str| {
        let series = v.matches('.').count() == 1;
        asked[0] >= 3 && series && numbers(v).is_some_and(|own| own[..2] == asked[..2])
    };
    let own = info.versions.iter().map(|v| v.0).find(same);
    own.or_else(|| {
        let all = STANDS.iter().filter(|s| s.scheduler == info.name);
        let mut of = all.filter(|s| within(asked, s.from, s.to));
        of.next().map(|s| s.version)
    })
}

/// For lists: the releases that versions of a scheduler hold for besides their own, each behind the
/// version.
pub fn stands_for(scheduler: &str) -> impl Iterator<Item = &'static Stands> {
    STANDS.iter().filter(move |s| s.scheduler == scheduler)
}

/// What is known of a release that has no version.
pub fn unspecified(scheduler: &str, release: &str) -> Option<&'static str> {
    let asked = numbers(release)?;
    let mut all = UNSPECIFIED.iter().filter(|u| u.0 == scheduler);
    let found = all.find(|u| within(asked, u.1, u.2));
    found.map(|u| u.3)
}

/// The version nearest to a release that has none: the newest that is not younger, else the oldest.
pub fn nearest(info: &SchedulerInfo, release: &str) -> Option<&'static str> {
    let asked = numbers(release)?;
    let named = info.versions.iter().map(|v| v.0);
    let all: Vec<_> = named.filter_map(|v| Some((numbers(v)?, v))).collect();
    let before = all.iter().filter(|v| v.0 <= asked).max();
    before.or_else(|| all.iter().min()).map(|v| v.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{find, unknown_scheduler};

    fn version(name: &str) -> &'static str {
        find(name).map_or("", |f| f.1)
    }

    /// mq-deadline, rule 16: before 5.14 one class, no aging; 14, 15: pointers until 6.1 and later.
    #[test]
    fn a_release_is_answered_with_the_version_that_holds_for_it() {
        for (asked, holds) in [
            ("mq-deadline-5.4", "5.10"),
            ("mq-deadline-5.13", "5.10"),
            ("mq-deadline-5.14", "6.1"),
            ("mq-deadline-5.15", "6.1"),
            ("mq-deadline-6.6", "6.12"),
            ("mq-deadline-6.18", "6.18"),
            ("cfq-4.1", "4.0"),
            ("cfq-4.2", "4.4"),
            ("cfq-4.4", "4.4"),
            ("cfq-2.6.24", "2.6.24"),
            // As uname -r has it.
            ("mq-deadline-5.15.0-91-generic", "6.1"),
            ("mq-deadline-5.10.233", "5.10"),
            ("deadline-3.4.113", "3.4"),
            ("mq-deadline-6.14", "6.12"),
        ] {
            assert_eq!(version(asked), holds, "{asked}");
        }
    }

    #[test]
    fn releases_nobody_specified_are_refused_with_what_is_known_and_the_nearest() {
        for (asked, words) in [
            ("bfq-5.10", ["changed with most releases", "`bfq-6.1`"]),
            ("bfq-6.6", ["between 6.1 and 6.12", "`bfq-6.1`"]),
            ("zen-3.18", ["`zen:fifo_batch=25`", "it has 1.1"]),
            ("cfq-3.18", ["on flash", "`cfq-3.4`"]),
            ("cfq-4.19", ["4.15 changed", "`cfq-4.4`"]),
            ("cfq-2.6.32", ["it has 4.0", "`cfq-2.6.25`"]),
            ("deadline-2.6.9", ["it has 4.0", "`deadline-2.6.18`"]),
            ("mq-deadline-6.3", ["it has 6.12", "`mq-deadline-6.1`"]),
            // No kernel's, but its own: an update of it may differ.
            ("adios-3.2.7", ["it has 3.1.9", "`adios-3.2.0`"]),
            ("mq-deadline-4.19", ["it has 6.12", "`mq-deadline-5.10`"]),
        ] {
            assert!(find(asked).is_none(), "{asked}");
            let said = unknown_scheduler(asked);
            assert!(words.iter().all(|w| said.contains(w)), "{asked}: {said}");
        }
    }

    #[test]
    fn the_table_names_versions_there_are_and_hides_none() {
        for s in STANDS {
            let (info, ..) = find(s.scheduler).expect(s.scheduler);
            assert!(info.version(s.version).is_some(), "{s:?}");
            assert!(s.from <= s.to, "{s:?}");
            for (own, _) in info.versions {
                let own = numbers(own).expect("a release");
                let hidden = within(own, s.from, s.to);
                assert!(!hidden || numbers(s.version) == Some(own), "{s:?}: {own:?}");
            }
        }
        assert_eq!(numbers("5.15.0-91-generic"), Some([5, 15, 0]));
        assert_eq!(numbers("6.1."), Some([6, 1, 0]));
        for no in ["", "9", "v7r8", "late", "5.x", "1.2.3.4", "70000.1", "5..1"] {
            assert_eq!(numbers(no), None, "{no}");
        }
    }
}
