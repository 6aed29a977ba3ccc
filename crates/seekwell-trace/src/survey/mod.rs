//! What a trace holds, from one reading: sizes, distances, where time is spent between being
//! asked for and done, merges, processes, and the course of it over time and place.
//!
//! The phases are those of btt, by the letters of blktrace: Q asked for (a bio arrives), G a
//! request is allocated, M merged into one that waits, I inserted into the scheduler, D sent to the
//! driver, C complete. Traces that tell of events (blktrace, blkparse, ftrace) are followed event
//! by event, as btt does; of others each record tells what it knows. Phases, distances and merges
//! leave flushes out, which move nothing.
//!
//! Memory does not grow with the trace: times and places are kept in bins that double, distances
//! exactly up to 2^18 different ones and to 0.2 % beyond.
//!
//! Left out: plugging, remaps between stacked devices, splits (a bio that was split is done when
//! its last part is).

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

/// Records between two calls of `told`.
const TOLD_EVERY: u64 = 4096;

/// Surveys a trace that was opened with `options`, in which [`ReadOptions::keep_events`] should be
/// set; at most `limit` records. `told` hears how far the reading is and says whether to go on.
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
