//! mq-deadline's files in `iosched/`.

use super::{MqDeadline, READ, WRITE};
use crate::cx::Cx;
use crate::tunable::{INT_MAX, Kind, StoreError, Tunable, strict_int};

/// Files of 5.14 and later.
pub const ALL: &[Tunable] = &[
    READ_EXPIRE,
    WRITE_EXPIRE,
    WRITES_STARVED,
    FRONT_MERGES,
    ASYNC_DEPTH,
    FIFO_BATCH,
    PRIO_AGING_EXPIRE,
];
/// Files of 4.11 to 5.13.
pub const BEFORE_5_14: &[Tunable] = &[
    READ_EXPIRE,
    WRITE_EXPIRE,
    WRITES_STARVED,
    FRONT_MERGES,
    FIFO_BATCH,
];

/// Returns the files of a version of the registry.
pub fn list(version: &str) -> &'static [Tunable] {
    if version == "5.10" { BEFORE_5_14 } else { ALL }
}

const READ_EXPIRE: Tunable = Tunable {
    name: "read_expire",
    kind: Kind::MsJiffies,
    unit: "ms",
    default: "500",
    min: 0,
    max: INT_MAX,
    help: "Time from the insertion of a read to its deadline, which is checked only when a batch \
           starts. 0: always expired, so every new batch starts at the oldest read.",
};
const WRITE_EXPIRE: Tunable = Tunable {
    name: "write_expire",
    kind: Kind::MsJiffies,
    unit: "ms",
    default: "5000",
    min: 0,
    max: INT_MAX,
    help: "Time from the insertion of a write to its deadline.",
};
const WRITES_STARVED: Tunable = Tunable {
    name: "writes_starved",
    kind: Kind::Count,
    unit: "read batches",
    default: "2",
    min: i32::MIN as i64,
    max: INT_MAX,
    help: "Number of read batches that may start while writes of the same class wait. 0: writes go \
           first whenever both wait; negative: reads always go first.",
};
const FRONT_MERGES: Tunable = Tunable {
    name: "front_merges",
    kind: Kind::Bool,
    unit: "bool",
    default: "1",
    min: 0,
    max: 1,
    help: "Try to merge a new bio at the front of a queued request that starts where the bio ends.",
};
const ASYNC_DEPTH: Tunable = Tunable {
    name: "async_depth",
    kind: Kind::Count,
    unit: "requests",
    default: "nr_requests",
    min: 1,
    max: INT_MAX,
    help: "Number of scheduler tags that requests other than reads may hold. It is reset to \
           nr_requests when nr_requests changes. Lower: a flood of writes leaves tags for reads, \
           but sweeps are shorter.",
};
const FIFO_BATCH: Tunable = Tunable {
    name: "fifo_batch",
    kind: Kind::Count,
    unit: "requests",
    default: "16",
    min: 0,
    max: INT_MAX,
    help: "Number of requests per batch. Larger: fewer seeks, longer waits; 0 and 1: every request \
           is a batch.",
};
const PRIO_AGING_EXPIRE: Tunable = Tunable {
    name: "prio_aging_expire",
    kind: Kind::MsJiffies,
    unit: "ms",
    default: "10000",
    min: 0,
    max: INT_MAX,
    help: "Age at which a request of a lower class may go before the higher classes.",
};

impl MqDeadline {
    pub(super) fn show_tunable(&self, cx: &Cx, name: &str) -> Option<String> {
        let ms = |j| cx.clock().to_ms(j).to_string();
        if !list_of(self).iter().any(|t| t.name == name) {
            return None;
        }
        Some(match name {
            "read_expire" => ms(self.expire_j[READ]),
            "write_expire" => ms(self.expire_j[WRITE]),
            "writes_starved" => self.writes_starved.to_string(),
            "front_merges" => u8::from(self.front_merges).to_string(),
            "async_depth" => self.async_depth.to_string(),
            "fifo_batch" => self.fifo_batch.to_string(),
            "prio_aging_expire" => ms(self.prio_aging_j),
            _ => return None,
        })
    }

    pub(super) fn store_tunable(
        &mut self,
        cx: &Cx,
        name: &str,
        text: &str,
    ) -> Result<(), StoreError> {
        if !list_of(self).iter().any(|t| t.name == name) {
            return Err(StoreError::unknown(name));
        }
        let v = strict_int(name, text)?;
        let positive = v.clamp(0, INT_MAX);
        let jiffies = cx.ms_to_jiffies(positive as u64);
        match name {
            "read_expire" => self.expire_j[READ] = jiffies,
            "write_expire" => self.expire_j[WRITE] = jiffies,
            "writes_starved" => self.writes_starved = v as i32,
            "front_merges" => self.front_merges = v > 0,
            "async_depth" => self.async_depth = v.clamp(1, INT_MAX) as u32,
            "fifo_batch" => self.fifo_batch = positive as i32,
            _ => self.prio_aging_j = jiffies,
        }
        Ok(())
    }
}

fn list_of(s: &MqDeadline) -> &'static [Tunable] {
    if s.generation.classes {
        ALL
    } else {
        BEFORE_5_14
    }
}
