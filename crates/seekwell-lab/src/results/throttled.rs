//! Writeback throttling as runs had it: part of what is compared, whoever set it.

use super::{Cell, Run};
use seekwell_core::result::Record;
use seekwell_sched::WBT_LAT_USEC;
use serde::{Deserialize, Serialize};

/// What `queue/wbt_lat_usec` read in the runs of a treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Which, by place in [`super::Results::treatments`].
    pub treatment: usize,
    /// Target of throttling, us; 0: off.
    pub wbt_lat_usec: u64,
}

/// What a run's record says of it; `None`: its block layer has none.
pub(crate) fn usec(record: &Record) -> Option<u64> {
    record
        .scheduler
        .tunables
        .get(WBT_LAT_USEC.name)?
        .parse()
        .ok()
}

/// That of a cell's treatments, by the first run of each that knows it.
pub(super) fn throttled(cell: &Cell, runs: &[Run]) -> Vec<Throttled> {
    let of = |treatment: &usize| {
        let own = runs.iter().filter(|r| r.key.treatment == *treatment);
        let wbt_lat_usec = own.filter_map(|r| r.wbt_lat_usec).next()?;
        Some(Throttled {
            treatment: *treatment,
            wbt_lat_usec,
        })
    };
    cell.treatments.iter().filter_map(of).collect()
}
