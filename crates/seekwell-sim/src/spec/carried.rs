//! One drive through several runs, as an experimenter's has to go: what a run left in it (its write
//! cache, its flash map, its wear, the segments of a card that are open) meets the next. The file
//! system is made anew for each, with or without a TRIM of everything, and everything above it is
//! booted afresh.

use super::run::run_checked;
use super::{DeviceSpec, Hooks, RunFailure, RunSpec, SpecErrors, WorkloadSpec, checked, run};
use crate::world::{Drive, WorldError};
use seekwell_core::Nanos;
use seekwell_core::result::{Carried, Record};
use seekwell_device::with_files;

/// What happens to the drive between two runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// It is idle for so long, and may tidy up.
    pub pause: Nanos,
    /// Everything on it is discarded before the file system is made.
    pub trim: bool,
}

/// A drive and what it has been through.
pub struct Carrier {
    between: Between,
    /// With the specification it was made from.
    drive: Option<(DeviceSpec, Drive)>,
    /// Hash of the last run; empty: nothing ran yet.
    after: String,
    place: u32,
    lost: bool,
}

impl Carrier {
    /// A drive that is not made yet: the first run says what it is.
    pub fn new(between: Between) -> Self {
        Carrier {
            between,
            drive: None,
            after: String::new(),
            place: 0,
            lost: false,
        }
    }
    /// Time it has run, rests included.
    pub fn age(&self) -> Nanos {
        self.drive.as_ref().map_or(Nanos::ZERO, |d| d.1.age())
    }
    /// Runs a specification on the drive as the last run left it. The seed of the first is the
    /// drive's own.
    ///
    /// # Errors
    /// Everything that is wrong with the specification: another device than before, an array (each
    /// run gets a new one), a trace (it replays on a drive of its own). Or why the run is worth
    /// nothing: if it broke off, the drive is lost, and every further run says so.
    pub fn run(&mut self, spec: &RunSpec, hooks: Hooks<'_>) -> Result<Record, RunFailure> {
        let spec = self.fitting(checked(spec)?)?;
        let files = spec.device.files.clone();
        with_files(&files, || self.run_fitting(spec, hooks))
    }

    /// The specification, if this drive is meant.
    fn fitting(&self, spec: RunSpec) -> Result<RunSpec, SpecErrors> {
        let mut errors = SpecErrors::default();
        if matches!(spec.workload, WorkloadSpec::Trace { .. }) {
            let what = "a trace replays on a drive of its own: it cannot be one of a sequence";
            errors.push("workload", what);
        }
        if self.lost {
            let what = "the drive was lost in an earlier run of the sequence, which broke off";
            errors.push("device", what);
        }
        if let Some((own, _)) = self.drive.as_ref().filter(|d| d.0 != spec.device) {
            let what = format!(
                "the sequence goes on on {}, not on {}",
                own.spec, spec.device.spec
            );
            errors.push("device", what);
        }
        errors.or(spec)
    }

    fn run_fitting(&mut self, spec: RunSpec, hooks: Hooks<'_>) -> Result<Record, RunFailure> {
        let (device, mut drive) = match self.drive.take() {
            Some(own) => own,
            None => {
                let drive = Drive::open(&run::setup(&spec)).map_err(WorldError::from)?;
                if drive.is_array() {
                    let what = "is an array, which each run gets anew: carry one drive";
                    return Err(SpecErrors::one("device", what).into());
                }
                (spec.device.clone(), drive)
            }
        };
        if self.place > 0 {
            drive.rest(self.between.pause);
            if self.between.trim {
                drive.trim();
            }
        }
        // Until it is back: whatever unwinds from here takes it along.
        self.lost = true;
        let ran = run_checked(spec, hooks, Some(&mut drive));
        if ran.is_ok() {
            (self.drive, self.lost) = (Some((device, drive)), false);
        }
        let mut record = ran?;
        if self.place > 0 {
            let carried = Carried {
                place: self.place,
                after: std::mem::take(&mut self.after),
                pause_ns: self.between.pause.0,
                trim: self.between.trim,
            };
            if let Some(spec) = &record.spec {
                record.spec_hash = spec.hash_after(&carried);
            }
            record.carried = Some(carried);
        }
        self.after.clone_from(&record.spec_hash);
        self.place += 1;
        Ok(record)
    }
}
