//! Writeback throttling in effect during the runs. It is part of the comparison.

use super::{Cell, Run};
use seekwell_core::result::Record;
use seekwell_sched::WBT_LAT_USEC;
use serde::{Deserialize, Serialize};

/// Value of `queue/wbt_lat_usec` in the runs of a treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Treatment, as an index into [`super::Results::treatments`].
    pub treatment: usize,
    /// Throttling target in us; 0 if throttling is off.
    pub wbt_lat_usec: u64,
}

/// The value in a run's record; `None` if its block layer has none.
pub(crate) fn usec(record: &Record) -> Option<u64> {
    record
        .scheduler
        .tunables
        .get(WBT_LAT_USEC.name)?
        .parse()
        .ok()
}

/// The values for a cell's treatments, each from the first run that has one.
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
