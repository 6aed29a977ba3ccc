//! Summary of a trace, from one pass: sizes, distances, the time in each phase from queueing to
//! completion, merges, processes, and activity over time and place.
//!
//! The phases are those of btt, with the letters of blktrace: Q queued (a bio arrives), G a request
//! is allocated, M merged into a waiting one, I inserted into the scheduler, D issued to the
//! driver, C complete. Traces with events (blktrace, blkparse, ftrace) are followed event by event,
//! like in btt; in other traces each record gives the known times. Phases, distances and merges
//! exclude flushes, which move no data.
//!
//! Memory does not grow with the trace: times and places are kept in bins that double. Distances
//! are exact up to 2^18 different ones, and within 0.2 % beyond.
//!
//! Left out: plugging, remaps between stacked devices, and splits (a split bio is complete when its
//! last part is).

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

/// Surveys at most `limit` records of a trace. It should have been opened with `options` that set
/// [`ReadOptions::keep_events`]. `told` receives the progress and returns whether to continue.
///
/// # Errors
/// Those of the reader.
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
