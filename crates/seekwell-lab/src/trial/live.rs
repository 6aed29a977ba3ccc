//! A trial on this machine.

use super::{Bed, Figure};
use crate::host::{Bench, DeviceOf};
use seekwell::result::Record;
use seekwell::{Cancel, RunSpec};
use seekwell_host::observe::{Interval, MetricError, Observer, UserMetric};
use seekwell_host::switch::Switched;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which a wait checks for a stop.
const LOOK: Duration = Duration::from_millis(100);

/// The devices below a directory of this machine, at work.
pub struct LiveBed {
    bench: Bench,
    observer: Mutex<Observer>,
}

impl LiveBed {
    /// Starts to observe the devices. `switched` has locked them. The second value says why no
    /// percentiles can be measured, if so.
    ///
    /// # Errors
    /// A metric of the user cannot be read.
    pub fn new(
        on: &DeviceOf,
        switched: Switched,
        figures: &[Figure],
        histograms: bool,
    ) -> Result<(LiveBed, Option<String>), MetricError> {
        let user: Vec<UserMetric> = figures
            .iter()
            .filter_map(|f| match f {
                Figure::User(_, m) => Some(m.clone()),
                _ => None,
            })
            .collect();
        let (observer, why) = Observer::begin(on.tree(), on.devices(), histograms, &user)?;
        let bed = LiveBed {
            bench: Bench::new(on.clone(), Some(switched), 0.0, ""),
            observer: Mutex::new(observer),
        };
        Ok((bed, why))
    }
    /// Returns the settings that must be restored. Afterwards nothing is set.
    pub fn take_switched(&self) -> Option<Switched> {
        self.bench.take_switched()
    }
}

impl Bed for LiveBed {
    fn set(&self, spec: &RunSpec) -> Result<(), String> {
        self.bench.set(spec)
    }
    fn set_original(&self, spec: &RunSpec) -> Result<Vec<String>, String> {
        // The scheduler is set again first, so that no period inherits its state.
        self.bench.set(spec)?;
        self.bench.write_back()
    }
    fn wait(&self, seconds: f64, cancel: &Cancel) {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while Instant::now() < end && !cancel.is_set() {
            std::thread::sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
        }
    }
    fn since_last(&self, user: bool) -> Interval {
        let mut observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        observer.since_last(user)
    }
    fn interference(&self, spec: &RunSpec) -> (Option<String>, Vec<String>) {
        self.bench.meddled(spec)
    }
    fn over(&self) -> Option<String> {
        self.bench.gone()
    }
    fn describe(&self, spec: &RunSpec, record: &mut Record) {
        self.bench.describe(spec, record);
    }
}
