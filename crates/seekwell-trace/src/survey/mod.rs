//! The survey: a summary of a trace, made in one pass. It contains sizes, distances, the time in
//! each phase from queueing to completion, merges, processes, and activity over time and sector.
//!
//! The phases are those of btt. A phase is named by the blktrace letters of the two events at its
//! ends:
//! - Q: a bio is queued.
//! - G: a request is allocated.
//! - M: a bio is merged into a waiting request.
//! - I: a request is inserted into the scheduler.
//! - D: a request is issued to the driver.
//! - C: a request is complete.
//!
//! If a trace has events (blktrace, blkparse, ftrace), the survey follows every event, like btt. In
//! other traces, each record gives the times that it contains. Phases, distances and merges do not
//! include flushes, because flushes transfer no data.
//!
//! The memory does not grow with the trace. Times and sectors are counted in bins that double in
//! size. Up to 2^18 different distances are stored exactly; beyond that, distances have an error of
//! up to 0.2 %.
//!
//! The survey leaves out plugging, remaps between stacked devices, and splits (a split bio is
//! complete when its last part is complete).

mod course;
mod data;
mod follow;
mod heat;
mod seeks;
mod sums;
mod tasks;
mod trips;

#[cfg(test)]
mod tests;

pub use data::{
    Course, Depth, Heat, KindPart, Merges, Phase, SEEK_CLASSES, SURVEY_VERSION, Seeks, SizeClass,
    Spread, Survey, TaskShare,
};

use crate::error::TraceError;
use crate::options::ReadOptions;
use crate::reader::Reader;
use follow::Follow;

/// Number of records between two calls of `told`.
const TOLD_EVERY: u64 = 4096;

/// Makes the survey of a trace, or of its first `limit` records. The options with which the trace
/// is opened should set [`ReadOptions::keep_events`]. `told` receives the progress, and returns
/// true to continue.
///
/// # Errors
/// Returns the errors of the reader.
pub fn survey(
    reader: &mut Reader,
    options: &ReadOptions,
    limit: Option<u64>,
    mut told: impl FnMut(&Reader) -> bool,
) -> Result<Survey, TraceError> {
    let mut follow = Follow::new(options, reader.tells_events());
    let mut events = Vec::new();
    let mut records = 0;
    while records < limit.unwrap_or(u64::MAX) {
        let Some(record) = reader.next() else { break };
        let record = record?;
        records += 1;
        follow.record(&record);
        reader.take_events(&mut events);
        follow.events(reader.base_ns().unwrap_or(0), &mut events);
        if records % TOLD_EVERY == 0 && !told(reader) {
            break;
        }
    }
    reader.take_events(&mut events);
    follow.events(reader.base_ns().unwrap_or(0), &mut events);
    Ok(follow.done(reader))
}
