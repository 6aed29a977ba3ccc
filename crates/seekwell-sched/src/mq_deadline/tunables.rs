//! mq-deadline's files in `iosched/`.

use super::{MqDeadline, READ, WRITE};
use crate::cx::Cx;
use crate::tunable::{INT_MAX, StoreError, Tunable, strict_int};

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

const READ_EXPIRE: Tunable = Tunable::ms(
    "read_expire",
    "500",
    "Time from the insertion of a read to its deadline, which is checked only when a batch \
     starts. 0: always expired, so every new batch starts at the oldest read.",
);
const WRITE_EXPIRE: Tunable = Tunable::ms(
    "write_expire",
    "5000",
    "Time from the insertion of a write to its deadline.",
);
const WRITES_STARVED: Tunable = Tunable::count(
    "writes_starved",
    "read batches",
    "2",
    "Number of read batches that may start while writes of the same class wait. 0: writes go \
     first whenever both wait; negative: reads always go first.",
)
.range(i32::MIN as i64, INT_MAX);
const FRONT_MERGES: Tunable = Tunable::flag(
    "front_merges",
    "1",
    "Try to merge a new bio at the front of a queued request that starts where the bio ends.",
);
const ASYNC_DEPTH: Tunable = Tunable::count(
    "async_depth",
    "requests",
    "nr_requests",
    "Number of scheduler tags that requests other than reads may hold. It is reset to \
     nr_requests when nr_requests changes. Lower: a flood of writes leaves tags for reads, \
     but sweeps are shorter.",
)
.range(1, INT_MAX);
const FIFO_BATCH: Tunable = Tunable::count(
    "fifo_batch",
    "requests",
    "16",
    "Number of requests per batch. Larger: fewer seeks, longer waits; 0 and 1: every request \
     is a batch.",
);
const PRIO_AGING_EXPIRE: Tunable = Tunable::ms(
    "prio_aging_expire",
    "10000",
    "Age at which a request of a lower class may go before the higher classes.",
);

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
