//! How far a run is, for whoever waits for it.

use super::exec::World;
use crate::drive::Progress;
use seekwell_core::Nanos;

/// Whom to tell how far a run is.
pub(super) struct Tell<'a> {
    pub(super) progress: Option<Progress<'a>>,
    /// How long the workload's clock runs, if that is given.
    pub(super) span: Option<Nanos>,
}

/// Calls that returned, from one report to the next.
pub(super) const TELL_EACH: u64 = 256;

impl Tell<'_> {
    /// Of a span the time since the workload's clock started, else the calls that returned. False:
    /// stop.
    pub(super) fn told(&mut self, w: &World, calls: u64) -> bool {
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
