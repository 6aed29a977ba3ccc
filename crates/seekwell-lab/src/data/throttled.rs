//! The setting of writeback throttling in the runs of each treatment. It can differ between
//! schedulers.

use super::{Cell, Run};
use seekwell_core::result::Record;
use seekwell_sched::WBT_LAT_USEC;
use serde::{Deserialize, Serialize};

/// Value of `queue/wbt_lat_usec` in the runs of a treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Index of the treatment in [`super::Results::treatments`].
    pub treatment: usize,
    /// Throttling target in us; 0 if throttling is off.
    pub wbt_lat_usec: u64,
}

/// Returns the setting in the record of a run; `None` if the block layer of the run has no
/// writeback throttling.
pub(crate) fn usec(record: &Record) -> Option<u64> {
    record
        .scheduler
        .tunables
        .get(WBT_LAT_USEC.name)?
        .parse()
        .ok()
}

/// Returns the setting of each treatment in a cell, taken from the first run that has it.
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
