//! The event loop: it connects a source of bios with a sink, and advances the clock.
//!
//! If several things happen at one instant, the queue is served first (completions, timers,
//! deferred work). The submissions follow in the order of the source. Results do not depend on
//! wall-clock time or on threads.

use crate::meter::{Meter, Out};
use seekwell_core::result::Record;
use seekwell_core::{Bio, BioDone, BioSink, Control, Instant, Nanos};
use thiserror::Error;

/// A submission of a source.
#[derive(Clone, Copy, Debug)]
pub enum Submission {
    /// A bio, to which the event loop assigns an id. The token is returned with the completion.
    Bio(Bio, u64),
    /// A control message for the queue.
    Control(Control),
}

/// A source of bios: a trace replayed as an open loop, processes in a closed loop, or a trace with
/// a fixed queue depth.
pub trait Source {
    /// Returns the time of the next submission, or `None` if there is none before a completion.
    fn next(&mut self) -> Result<Option<Instant>, RunError>;
    /// Takes the submission whose time [`Source::next`] returned.
    fn take(&mut self) -> Submission;
    /// Handles the completion of a bio.
    fn done(&mut self, token: u64, at: Instant);
    /// Returns the progress and the total, in a unit of the source. `None` if they are unknown.
    fn far(&self) -> Option<(u64, u64)> {
        None
    }
}

/// Returns the remedy for a record that does not fit on the device, as a part of the message.
fn fitting(folds: &bool) -> &'static str {
    match folds {
        true => "it is longer than the whole device: choose a larger one",
        false => "choose a larger device, or fold addresses with --fit wrap",
    }
}

/// The reason why a run ended early.
#[derive(Error, Debug)]
pub enum RunError {
    /// A bio does not fit on the device.
    #[error(
        "record {record}: sectors {first}..{end} lie beyond the device, which ends at {capacity}; \
         {}",
        fitting(.folds)
    )]
    Beyond {
        /// Number of the record in the trace, from 1.
        record: u64,
        /// First sector.
        first: u64,
        /// First sector after the record.
        end: u64,
        /// Capacity of the device, in sectors.
        capacity: u64,
        /// Whether addresses beyond the device are already folded (`--fit wrap`).
        folds: bool,
    },
    /// A read or write is longer than the largest possible bio.
    #[error(
        "record {record}: a request of {sectors} sectors exceeds the kernel's limit of 4 GiB; is \
         this the right format?"
    )]
    Long {
        /// Number of the record in the trace, from 1.
        record: u64,
        /// Length of the request, in sectors.
        sectors: u32,
    },
    /// The record of a trace with scaled times is due after the largest representable time.
    #[error(
        "record {record} would be due {due_s} s after the start, but times are limited to 285 \
         years; stretch the trace less"
    )]
    Late {
        /// Number of the record in the trace, from 1.
        record: u64,
        /// Lower bound of the time at which the record is due, in s after the start.
        due_s: u64,
    },
    /// Bios wait and no event is pending, because a scheduler does not dispatch them.
    #[error("{scheduler}: {waiting} bios wait, but no timer, request or queue run is pending")]
    Stuck {
        /// Name of the scheduler.
        scheduler: String,
        /// Number of waiting bios.
        waiting: u64,
    },
    /// The trace cannot be read further.
    #[error(transparent)]
    Trace(#[from] seekwell_trace::TraceError),
    /// The requested combination cannot be run. The text says why.
    #[error("{0}")]
    Unusable(String),
    /// The caller's progress function stopped the run. The record holds the results up to that
    /// time.
    #[error("stopped after {0} completions")]
    Stopped(u64),
    /// The run reached its limit in simulated time. The record holds the results up to that time.
    #[error("stopped at the time limit of {} s", .0.as_secs_f64())]
    AtLimit(Nanos),
}

/// A function that a run calls from time to time with its progress and the total. The unit depends
/// on the run. The total is 0 if it is unknown. Runs of the same work report comparable progress in
/// both cases. If the function returns false, the run stops and keeps its results so far.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// Number of completions between two calls of [`Progress`].
const TELL_EACH: u64 = 1024;

/// Runs `source` against `sink` until no event is left. Fills the parts of `record` that can be
/// measured above the queue.
pub fn drive<B: BioSink, S: Source>(
    sink: &mut B,
    source: &mut S,
    record: &mut Record,
    progress: Progress<'_>,
) -> Result<(), RunError> {
    drive_until(sink, source, record, None, progress)
}

/// Does the same as [`drive`], but stops at `limit` after the start.
pub fn drive_until<B: BioSink, S: Source>(
    sink: &mut B,
    source: &mut S,
    record: &mut Record,
    limit: Option<Nanos>,
    progress: Progress<'_>,
) -> Result<(), RunError> {
    let end = limit.map_or(Instant::FAR, |l| Instant::START + l);
    let mut meter = Meter::default();
    let mut done: Vec<BioDone> = Vec::new();
    let mut completed = 0u64;
    let (mut first, mut last) = (None, Instant::START);
    let (mut stopped, mut at_limit) = (false, false);
    let mut tell = |completed: u64, source: &S| {
        let (done, total) = source.far().unwrap_or((completed, 0));
        progress(done, total)
    };
    while !stopped {
        let own = sink.next_event();
        let next = source.next()?;
        if limit.is_some() && own.into_iter().chain(next).min() > Some(end) {
            (at_limit, last) = (true, end);
            break;
        }
        match (own, next) {
            (None, None) => break,
            (Some(t), n) if n.is_none_or(|n| t <= n) => {
                sink.advance(t, &mut done);
                for d in done.drain(..) {
                    let o = meter.ended(&d, record);
                    last = last.max(d.at);
                    source.done(o.token, d.at);
                    completed += 1;
                    stopped |= completed.is_multiple_of(TELL_EACH) && !tell(completed, source);
                }
            }
            _ => {
                let Some(now) = next else { break };
                match source.take() {
                    Submission::Control(c) => sink.control(now, c),
                    Submission::Bio(bio, token) => {
                        first.get_or_insert(now);
                        let id = meter.came(Out {
                            token,
                            asked: now,
                            submitted: now,
                            task: bio.task,
                            write: bio.op.is_write(),
                            bytes: bio.sectors.bytes(),
                        });
                        sink.submit(now, Bio { id, ..bio });
                    }
                }
            }
        }
    }
    if meter.outstanding > 0 && !stopped && !at_limit {
        let scheduler = record.scheduler.spec.clone();
        return Err(RunError::Stuck {
            scheduler,
            waiting: meter.outstanding,
        });
    }
    tell(completed, source);
    record.duration_ns = last.since(first.unwrap_or(Instant::START)).0;
    record.outstanding_max = meter.peak;
    if record.duration_ns > 0 {
        record.outstanding_mean = meter.area as f64 / record.duration_ns as f64;
    }
    record.processes = meter.processes(|_| String::new());
    if stopped {
        return Err(RunError::Stopped(completed));
    }
    match limit.filter(|_| at_limit) {
        Some(limit) => Err(RunError::AtLimit(limit)),
        None => Ok(()),
    }
}
