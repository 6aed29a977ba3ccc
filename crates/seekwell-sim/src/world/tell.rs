//! Reports the progress of a run.

use super::exec::World;
use crate::drive::Progress;
use seekwell_core::Nanos;

/// The receiver of progress reports.
pub(super) struct Tell<'a> {
    pub(super) progress: Option<Progress<'a>>,
    /// Duration of the workload's clock, if it is fixed.
    pub(super) span: Option<Nanos>,
}

/// Number of finished calls between two reports.
pub(super) const TELL_EACH: u64 = 256;

impl Tell<'_> {
    /// Reports the progress. With a fixed duration, this is the time since the workload's clock
    /// started. Otherwise it is the number of finished calls. Returns false if the run should stop.
    pub(super) fn report(&mut self, w: &World, calls: u64) -> bool {
        let Some(progress) = &mut self.progress else {
            return true;
        };
        match self.span {
            Some(span) => {
                let since = w.clock_start.map_or(Nanos::ZERO, |c| w.now.since(c));
                progress(since.0.min(span.0), span.0)
            }
            None => progress(calls, 0),
        }
    }
}
