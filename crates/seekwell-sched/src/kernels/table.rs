//! The models of each kernel release, as tables.
//!
//! Each table contains the releases at which behaviour changed. They come from the specifications
//! of the schedulers and the block layer. Entries marked "change log" were written from memory of
//! the kernel's change log.

use super::Release;
use seekwell_core::Era;

/// The block layers of a span of releases: from release `from` to the last release before the next
/// row.
pub(super) struct Layers {
    pub from: Release,
    /// The single-queue layer, if the releases have it.
    pub legacy: Option<Era>,
    /// The blk-mq layer, if the releases have it.
    pub mq: Option<Era>,
}

const fn layers(from: Release, legacy: Option<Era>, mq: Option<Era>) -> Layers {
    Layers { from, legacy, mq }
}

const fn r(major: u16, minor: u16) -> Release {
    Release::new(major, minor, 0)
}

const fn r26(patch: u16) -> Release {
    Release::new(2, 6, patch)
}

/// The oldest release that is modelled.
pub(super) const OLDEST: Release = r26(18);
/// The newest release that is modelled.
pub(super) const NEWEST: Release = r(7, 0);
/// The first release without the single-queue layer.
pub(super) const NO_LEGACY: Release = r(5, 0);
/// The first release with blk-mq.
pub(super) const FIRST_MQ: Release = r(3, 13);

/// Layers by release; these changes begin a row. 2.6.22: dirty limits, read-ahead and the trees of
/// CFQ (change log). 2.6.33: groups of CFQ. 3.19: requests can exceed 512 KiB. 6.5: writes of a
/// flush bypass the scheduler, and plugs keep their order (change log). 6.16: large folios of ext4.
/// 6.17: requests of 4 MiB.
pub(super) const LAYERS: &[Layers] = &[
    layers(r26(18), Some(Era::K2_6_18), None),
    layers(r26(22), Some(Era::K2_6_24), None),
    layers(r26(33), Some(Era::K3_4), None),
    layers(FIRST_MQ, Some(Era::K3_4), Some(Era::Mq6_1)),
    layers(r(3, 19), Some(Era::K4_0), Some(Era::Mq6_1)),
    layers(NO_LEGACY, None, Some(Era::Mq6_1)),
    layers(r(6, 5), None, Some(Era::Mq)),
    layers(r(6, 16), None, Some(Era::Mq6_16)),
    layers(r(6, 17), None, Some(Era::Mq6_18)),
];

/// A scheduler of the kernel's own tree: its first release (`since`), and the first release without
/// it (`gone`).
pub(super) struct InTree {
    pub scheduler: &'static str,
    pub since: Release,
    pub gone: Option<Release>,
}

const fn in_tree(scheduler: &'static str, since: Release, gone: Option<Release>) -> InTree {
    InTree {
        scheduler,
        since,
        gone,
    }
}

/// The schedulers that are or were part of the kernel. A scheduler that is missing here was never
/// part of it.
pub(super) const IN_TREE: &[InTree] = &[
    in_tree("noop", r26(10), Some(NO_LEGACY)),
    in_tree("deadline", r26(0), Some(NO_LEGACY)),
    in_tree("anticipatory", r26(0), Some(r26(33))),
    in_tree("cfq", r26(6), Some(NO_LEGACY)),
    in_tree("none", FIRST_MQ, None),
    in_tree("mq-deadline", r(4, 11), None),
    in_tree("kyber", r(4, 12), None),
    in_tree("bfq", r(4, 12), None),
];

/// The version that models a scheduler in a span of releases: from release `from` to the last
/// release before the scheduler's next row.
#[derive(Debug)]
pub(super) struct Stands {
    pub scheduler: &'static str,
    pub from: Release,
    pub version: &'static str,
    /// The known difference between these releases and the version; empty if their rules are the
    /// same.
    pub why: &'static str,
}

const fn stands(
    scheduler: &'static str,
    from: Release,
    version: &'static str,
    why: &'static str,
) -> Stands {
    Stands {
        scheduler,
        from,
        version,
        why,
    }
}

/// The rules of these releases were not compared with the rules of the version.
pub const UNREAD: &str = "not compared with that release";
const BFQ_OLD: &str =
    "bfq changed in most releases until 6.1, and its earlier rules are not modelled";
const BFQ_SINCE: &str = "the changes of bfq between 6.1 and 6.12 are not known here";
const CFQ_NEW: &str = "cfq was rewritten to nanoseconds in 4.8, and 4.15 changed the preemption \
                       rules";

/// Versions by scheduler; the oldest release first.
pub(super) const STANDS: &[Stands] = &[
    stands("noop", r26(18), "2.6.18", ""),
    stands("noop", r26(19), "2.6.24", ""),
    stands("noop", r26(33), "3.4", ""),
    stands("noop", r(3, 19), "4.0", ""),
    stands("deadline", r26(18), "2.6.18", ""),
    stands("deadline", r26(24), "2.6.24", ""),
    stands("deadline", r26(25), "3.4", ""),
    stands("deadline", r(3, 5), "3.4", UNREAD),
    stands("deadline", r(4, 0), "4.0", ""),
    stands("anticipatory", r26(18), "2.6.18", ""),
    stands("anticipatory", r26(19), "2.6.18", UNREAD),
    stands("anticipatory", r26(22), "2.6.24", UNREAD),
    stands("anticipatory", r26(24), "2.6.24", ""),
    stands("anticipatory", r26(25), "2.6.24", UNREAD),
    stands("cfq", r26(18), "2.6.18", ""),
    stands("cfq", r26(19), "2.6.18", UNREAD),
    stands("cfq", r26(22), "2.6.24", UNREAD),
    stands("cfq", r26(24), "2.6.24", ""),
    stands("cfq", r26(25), "2.6.25", ""),
    stands(
        "cfq",
        r26(26),
        "2.6.25",
        "cfq changed with most releases from 2.6.26 to 2.6.34",
    ),
    stands(
        "cfq",
        r26(33),
        "3.4",
        "cfq changed with most releases from 2.6.26 to 2.6.34",
    ),
    stands("cfq", r26(35), "3.4", UNREAD),
    stands("cfq", r(3, 4), "3.4", ""),
    stands("cfq", r(3, 5), "3.4", UNREAD),
    stands(
        "cfq",
        r(3, 18),
        "3.4",
        "on rotating disks cfq of 3.18 is that of 4.0",
    ),
    stands("cfq", r(3, 19), "4.0", UNREAD),
    stands("cfq", r(4, 0), "4.0", ""),
    stands("cfq", r(4, 2), "4.4", ""),
    stands("cfq", r(4, 5), "4.4", CFQ_NEW),
    stands("none", FIRST_MQ, "6.1", UNREAD),
    stands("none", r(6, 1), "6.1", ""),
    stands("none", r(6, 2), "6.1", UNREAD),
    stands("none", r(6, 5), "6.12", UNREAD),
    stands("none", r(6, 12), "6.12", ""),
    stands("none", r(6, 17), "6.18", ""),
    // Until 5.13 there are no classes, no aging and no async_depth.
    stands("mq-deadline", r(4, 11), "5.10", UNREAD),
    stands("mq-deadline", r(5, 0), "5.10", ""),
    stands("mq-deadline", r(5, 14), "6.1", ""),
    stands("mq-deadline", r(6, 2), "6.1", UNREAD),
    stands("mq-deadline", r(6, 5), "6.12", UNREAD),
    stands("mq-deadline", r(6, 6), "6.12", ""),
    stands("mq-deadline", r(6, 17), "6.18", ""),
    stands(
        "kyber",
        r(4, 12),
        "6.1",
        "until 4.19 kyber judged latencies by simpler rules",
    ),
    stands("kyber", r(4, 20), "6.1", ""),
    stands("kyber", r(6, 2), "6.1", UNREAD),
    stands("kyber", r(6, 5), "6.12", UNREAD),
    stands("kyber", r(6, 12), "6.12", ""),
    stands("kyber", r(6, 17), "6.18", ""),
    stands("bfq", r(4, 12), "6.1", BFQ_OLD),
    stands("bfq", r(6, 1), "6.1", ""),
    stands("bfq", r(6, 2), "6.1", BFQ_SINCE),
    stands("bfq", r(6, 5), "6.12", BFQ_SINCE),
    stands("bfq", r(6, 12), "6.12", ""),
    stands("bfq", r(6, 17), "6.18", ""),
    stands(
        "zen",
        r26(33),
        "1.1",
        "the only known difference of zen in 3.18 is its fifo_batch of 25 (`zen:fifo_batch=25`)",
    ),
];
