//! Tunables of row, and the differences between its published versions.

use crate::tunable::{INT_MAX, Kind, Tunable};

const fn quantum(name: &'static str, default: &'static str, help: &'static str) -> Tunable {
    Tunable::count(name, "requests per cycle of the class", default, help).range(1, INT_MAX)
}
const fn idle_ms(name: &'static str, default: &'static str, help: &'static str) -> Tunable {
    Tunable::new(name, Kind::Ms, "ms", default, (1, INT_MAX), help)
}
const fn limit(name: &'static str, default: &'static str, help: &'static str) -> Tunable {
    Tunable::count(name, "requests", default, help).range(1, INT_MAX)
}

/// Makes the table of tunables. `d` contains the default quanta in the order of the queues, then
/// the defaults of rd_idle_data and rd_idle_data_freq.
#[rustfmt::skip]
const fn tunables(d: [&'static str; 9]) -> [Tunable; 11] {
    [
        quantum("hp_read_quantum", d[0],
            "Number of real-time reads in a cycle of the real-time class."),
        quantum("hp_swrite_quantum", d[1],
            "Number of real-time sync writes in a cycle of the real-time class."),
        quantum("rp_read_quantum", d[2],
            "Number of best effort reads in a cycle of the best effort class. It sets the share of \
             reads against writes."),
        quantum("rp_swrite_quantum", d[3],
            "Number of best effort sync writes (fsync, direct I/O) in a cycle of the best effort class."),
        quantum("rp_write_quantum", d[4],
            "Number of async writes (writeback) of any class in a cycle of the best effort class."),
        quantum("lp_read_quantum", d[5],
            "Number of idle-class reads in a cycle of the idle class."),
        quantum("lp_swrite_quantum", d[6],
            "Number of idle-class sync writes in a cycle of the idle class."),
        idle_ms("rd_idle_data", d[7],
            "How long the device idles for another read. Longer: reads stay together, but all \
             writes wait longer."),
        idle_ms("rd_idle_data_freq", d[8],
            "If two reads enter a queue within this time, the device idles for that queue. 1: only \
             within the same millisecond; idling cannot be turned off."),
        limit("reg_starv_limit", "5000",
            "Number of real-time requests that may be dispatched while best effort requests wait."),
        limit("low_starv_limit", "10000",
            "Number of real-time and best effort requests that may be dispatched while idle-class \
             requests wait."),
    ]
}

/// Makes a tunable for a queue that the first posting has but does not use.
const fn unused(name: &'static str, default: &'static str) -> Tunable {
    quantum(
        name,
        default,
        "Not used: ioprio is ignored, so that every request goes to a regular queue.",
    )
}
const V1: [Tunable; 11] = tunables(["100", "2", "100", "1", "1", "1", "1", "5", "20"]);
const fn called(name: &'static str, t: Tunable) -> Tunable {
    Tunable { name, ..t }
}

/// Tunables of the first posting. It has other names for the two times of idling.
static TUNABLES_V1: [Tunable; 9] = [
    unused("hp_read_quantum", "100"),
    unused("hp_swrite_quantum", "2"),
    V1[2],
    V1[3],
    V1[4],
    unused("lp_read_quantum", "1"),
    unused("lp_swrite_quantum", "1"),
    called("read_idle", V1[7]),
    called("read_idle_freq", V1[8]),
];
static TUNABLES: [Tunable; 11] = tunables(["100", "5", "75", "4", "4", "3", "2", "10", "25"]);
static TUNABLES_HISI: [Tunable; 11] = tunables(["10", "1", "100", "1", "1", "1", "1", "5", "5"]);
static TUNABLES_MID: [Tunable; 11] = tunables(["10", "1", "100", "1", "1", "1", "1", "5", "20"]);

/// Names of the quantum tunables, by queue.
pub const QUANTA: [&str; 7] = [
    "hp_read_quantum",
    "hp_swrite_quantum",
    "rp_read_quantum",
    "rp_swrite_quantum",
    "rp_write_quantum",
    "lp_read_quantum",
    "lp_swrite_quantum",
];

/// A published version of row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// Late 2013 and 2014.
    Late,
    /// Like `Late`, but with the numbers of older versions.
    Hisi,
    /// Mid 2013: a class can starve the classes below it without limit.
    Mid,
    /// The first posting, 2012: one cycle over all queues and no classes.
    V1,
}

impl Variant {
    /// Returns the variant with a version name of [`INFO`].
    pub fn named(version: &str) -> Self {
        match version {
            "mid" => Variant::Mid,
            "hisi" => Variant::Hisi,
            "v1" => Variant::V1,
            _ => Variant::Late,
        }
    }
    /// Returns the tunables of the variant.
    pub fn tunables(self) -> &'static [Tunable] {
        match self {
            Variant::Late => &TUNABLES,
            Variant::Hisi => &TUNABLES_HISI,
            Variant::Mid => &TUNABLES_MID[..9],
            Variant::V1 => &TUNABLES_V1,
        }
    }
    /// Returns the default quanta, in requests, by queue.
    pub fn quanta(self) -> [u32; 7] {
        match self {
            Variant::Late => [100, 5, 75, 4, 4, 3, 2],
            Variant::Hisi | Variant::Mid => [10, 1, 100, 1, 1, 1, 1],
            Variant::V1 => [100, 2, 100, 1, 1, 1, 1],
        }
    }
    /// Returns the default length of an idle wait, and the interval of insertions below which the
    /// device idles, both in ms.
    pub fn idle_ms(self) -> [u64; 2] {
        match self {
            Variant::Late => [10, 25],
            Variant::Hisi => [5, 5],
            Variant::Mid | Variant::V1 => [5, 20],
        }
    }
    /// Returns true if a lower class is served after a limited number of requests of higher
    /// classes.
    pub fn limits_starvation(self) -> bool {
        matches!(self, Variant::Late | Variant::Hisi)
    }
}
