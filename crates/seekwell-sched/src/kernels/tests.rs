use super::*;
use crate::registry::{find, named, registry, unknown_scheduler};

fn version(name: &str) -> &'static str {
    find(name).map_or("", |f| f.1)
}

fn release(text: &str) -> Release {
    Release::parse(text).expect(text)
}

/// A release selects the version that models it. For mq-deadline: before 5.14 there is one class
/// and no aging, and sweeps use pointers up to 6.1.
#[test]
fn release_selects_the_version_that_models_it() {
    for (asked, stands) in [
        ("mq-deadline-5.4", "5.10"),
        ("mq-deadline-5.13", "5.10"),
        ("mq-deadline-5.14", "6.1"),
        ("mq-deadline-5.15.0-91-generic", "6.1"),
        ("mq-deadline-6.3", "6.1"),
        ("mq-deadline-6.6", "6.12"),
        ("mq-deadline-6.14", "6.12"),
        ("mq-deadline-6.18", "6.18"),
        ("mq-deadline-7.0", "6.18"),
        ("mq-deadline-4.19", "5.10"),
        ("none-6.8", "6.12"),
        ("bfq-5.15", "6.1"),
        ("bfq-6.6", "6.12"),
        ("cfq-4.1", "4.0"),
        ("cfq-4.2", "4.4"),
        ("cfq-4.19", "4.4"),
        ("cfq-2.6.24", "2.6.24"),
        ("cfq-2.6.32", "2.6.25"),
        ("deadline-3.4.113", "3.4"),
        ("zen-3.18", "1.1"),
        ("turns-6.18", "1"),
    ] {
        assert_eq!(version(asked), stands, "{asked}");
    }
}

#[test]
fn release_selects_its_block_layer() {
    for (asked, era, stated) in [
        ("none-6.1", Era::Mq6_1, "6.1"),
        ("none-6.8", Era::Mq, "6.12"),
        ("none-6.16", Era::Mq6_16, "6.16"),
        ("none-6.17", Era::Mq6_18, "6.18"),
        ("bfq-5.15", Era::Mq6_1, "6.1"),
        // A scheduler from outside the tree is used unchanged, in the layer of the release.
        ("turns-6.18", Era::Mq6_18, "6.18"),
        // 3.4 and 2.6.25 have the same rules, but not the same block layer.
        ("deadline-2.6.27", Era::K2_6_24, "2.6.27"),
        ("cfq", Era::K4_0, "4.0"),
    ] {
        let found = named(asked).expect(asked);
        assert_eq!((found.era, &*found.stated()), (era, stated), "{asked}");
        // The name that a specification states selects the same version.
        let again = named(&format!("{}-{stated}", found.info.name)).expect(asked);
        assert_eq!((again.version, again.era), (found.version, era), "{asked}");
    }
}

#[test]
fn kernel_without_the_scheduler_is_rejected_with_its_schedulers() {
    for (asked, words) in [
        (
            "cfq-6.8",
            [
                "cfq was removed in 5.0",
                "kernel 6.8 has none, mq-deadline, kyber, bfq",
            ],
        ),
        (
            "bfq-4.11",
            [
                "bfq came with 4.12",
                "noop, deadline, cfq, none, mq-deadline",
            ],
        ),
        (
            "anticipatory-2.6.33",
            ["was removed in 2.6.33", "has noop, deadline, cfq"],
        ),
        (
            "vr-6.8",
            ["vr needs the single-queue layer", "removed in 5.0"],
        ),
        (
            "vr-2.6.24",
            ["a patch for kernels like 3.4", "anticipatory"],
        ),
        ("turns-3.4", ["turns needs blk-mq", "3.13"]),
        (
            "deadline-2.6.9",
            ["older than 2.6.18", "oldest that is modelled"],
        ),
        ("none-7.1", ["newer than 7.0", "write 7.0"]),
        // The number is the scheduler's own version, not a kernel release.
        ("adios-3.2.7", ["it has 3.1.9", "3.2.0"]),
    ] {
        assert!(find(asked).is_none(), "{asked}");
        let said = unknown_scheduler(asked);
        assert!(words.iter().all(|w| said.contains(w)), "{asked}: {said}");
    }
}

/// Every release from 2.6.18 to 7.0 selects an era, and a version of each scheduler that it
/// contains.
#[test]
fn every_release_is_modelled() {
    let old = (18..=39).map(|n| Release::new(2, 6, n));
    let series = [(3, 19), (4, 20), (5, 19), (6, 19), (7, 0)];
    let new = series
        .iter()
        .flat_map(|(major, last)| (0..=*last).map(|minor| Release::new(*major, minor, 0)));
    let mut n = 0;
    for r in old.chain(new) {
        assert_eq!(known(r), Ok(()), "{r}");
        assert!(machine(r).is_some(), "{r}");
        let shipped = shipped(r);
        assert!(shipped.len() >= 3, "{r}: {shipped:?}");
        for name in shipped {
            let info = find(name).expect(name).0;
            let m = modelled(info, r).expect(name);
            assert!(info.version(m.version).is_some(), "{name}-{r}: {m:?}");
            assert_eq!(m.era.is_mq(), info.layer == Layer::Mq, "{name}-{r}");
        }
        n += 1;
    }
    assert_eq!(n, 22 + 20 + 21 + 20 + 20 + 1);
}

/// If a version has the name of a release, that release selects the version.
#[test]
fn version_named_like_a_release_is_selected_by_it() {
    for info in registry().iter().filter(|s| in_tree(s.name)) {
        for (own, era) in info.versions {
            let m = modelled(info, release(own)).expect(own);
            assert_eq!((m.version, m.era, m.why), (*own, *era, ""), "{}", info.name);
        }
    }
    for s in STANDS {
        let (info, ..) = find(s.scheduler).expect(s.scheduler);
        assert!(info.version(s.version).is_some(), "{s:?}");
    }
    let ascending = |a: &Release, b: &Release| a < b;
    assert!(
        LAYERS
            .iter()
            .map(|l| l.from)
            .is_sorted_by(|a, b| ascending(a, b))
    );
    for pair in STANDS
        .windows(2)
        .filter(|p| p[0].scheduler == p[1].scheduler)
    {
        assert!(pair[0].from < pair[1].from, "{pair:?}");
    }
}

#[test]
fn version_lists_state_their_range_of_releases() {
    let of = |name| {
        let all = stands_for(name).into_iter();
        all.map(|(v, span, same)| format!("{v}: {span}{}", if same { "" } else { ", near" }))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("mq-deadline"),
        [
            "5.10: 4.11 to 4.20, near",
            "5.10: 5.0 to 5.13",
            "6.1: 5.14 to 6.1",
            "6.1: 6.2 to 6.4, near",
            "6.12: 6.5, near",
            "6.12: 6.6 to 6.16",
            "6.18: since 6.17",
        ]
    );
    assert_eq!(
        of("noop").last().map(String::as_str),
        Some("4.0: 3.19 to 4.20")
    );
    assert!(of("turns").is_empty());
}
