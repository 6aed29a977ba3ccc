//! The models of each kernel release, as tables.
//!
//! Each table contains the releases at which behaviour changed. They come from the specifications
//! of the schedulers and the block layer. Entries marked "change log" were written from memory of
//! the Linux kernel's change log, and were not checked against the kernel's source.

use super::Release;
use seekwell_core::Era;

/// The block layers of a range of releases. The range begins at release `from` and ends before the
/// `from` of the next row.
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

/// The block layers of each release, sorted by release. Each row applies until the release of the
/// next row. The reasons for the rows are:
///
/// - 2.6.22: other dirty limits and read-ahead, and CFQ sorts its queues in trees (change log);
/// - 2.6.33: CFQ has groups;
/// - 3.13: the first blk-mq layer;
/// - 3.19: a request can be larger than 512 KiB;
/// - 5.0: the single-queue layer is removed;
/// - 6.5: the writes of a flush sequence bypass the scheduler, and a plug keeps the order of its
///   requests (change log);
/// - 6.16: ext4 has large folios;
/// - 6.17: a request can have 4 MiB.
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

/// A scheduler that is or was part of the Linux kernel. `since` is the first release with the
/// scheduler, and `gone` is the first release without it (`None` if the newest release has it).
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

/// The schedulers that are or were part of the Linux kernel. A scheduler that is not in this table
/// was never part of the kernel.
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

/// The version that models a scheduler in a range of releases. The range begins at release `from`
/// and ends before the `from` of the scheduler's next row.
#[derive(Debug)]
pub(super) struct Stands {
    pub scheduler: &'static str,
    pub from: Release,
    pub version: &'static str,
    /// Describes how the scheduler of these releases is known to differ from `version`. Empty if
    /// the rules are the same.
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

/// The difference that is stated if the source of a scheduler in these releases was not compared
/// with the version.
pub const UNREAD: &str = "not compared with that release";
const BFQ_OLD: &str =
    "bfq changed in most releases until 6.1, and its earlier rules are not modelled";
const BFQ_SINCE: &str = "the changes of bfq between 6.1 and 6.12 are not known here";
const CFQ_NEW: &str = "cfq was rewritten to nanoseconds in 4.8, and 4.15 changed the preemption \
                       rules";

/// The versions of all schedulers, grouped by scheduler, with the oldest release first.
#[rustfmt::skip]
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
    stands("cfq", r26(26), "2.6.25", "cfq changed with most releases from 2.6.26 to 2.6.34"),
    stands("cfq", r26(33), "3.4", "cfq changed with most releases from 2.6.26 to 2.6.34"),
    stands("cfq", r26(35), "3.4", UNREAD),
    stands("cfq", r(3, 4), "3.4", ""),
    stands("cfq", r(3, 5), "3.4", UNREAD),
    stands("cfq", r(3, 18), "3.4", "on rotating disks cfq of 3.18 is that of 4.0"),
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
    // mq-deadline has I/O priority classes, aging and async_depth since 5.14.
    stands("mq-deadline", r(4, 11), "5.10", UNREAD),
    stands("mq-deadline", r(5, 0), "5.10", ""),
    stands("mq-deadline", r(5, 14), "6.1", ""),
    stands("mq-deadline", r(6, 2), "6.1", UNREAD),
    stands("mq-deadline", r(6, 5), "6.12", UNREAD),
    stands("mq-deadline", r(6, 6), "6.12", ""),
    stands("mq-deadline", r(6, 17), "6.18", ""),
    stands("kyber", r(4, 12), "6.1", "until 4.19 kyber judged latencies by simpler rules"),
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
    stands("zen", r26(33), "1.1",
        "the only known difference of zen in 3.18 is its fifo_batch of 25 (`zen:fifo_batch=25`)"),
];
