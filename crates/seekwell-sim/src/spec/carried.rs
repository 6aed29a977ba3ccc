//! One drive for several runs, as in a real experiment. The drive's state (write cache, flash map,
//! wear, open segments of a card) carries over from run to run. Each run makes a new file system,
//! with or without a TRIM of the whole drive, and boots everything above it.

use super::run::run_checked;
use super::{DeviceSpec, Hooks, RunFailure, RunSpec, SpecErrors, WorkloadSpec, checked, run};
use crate::world::{Drive, WorldError};
use seekwell_core::Nanos;
use seekwell_core::result::{Carried, Record};
use seekwell_device::with_files;

/// What happens to the drive between two runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// The drive is idle for this long and may do housekeeping.
    pub pause: Nanos,
    /// Everything on the drive is discarded before the file system is made.
    pub trim: bool,
}

/// A drive and its history.
pub struct Carrier {
    between: Between,
    /// The drive, with the specification it was made from.
    drive: Option<(DeviceSpec, Drive)>,
    /// Hash of the last run; empty before the first run.
    after: String,
    place: u32,
    lost: bool,
}

impl Carrier {
    /// A drive that is created by the first run's specification.
    pub fn new(between: Between) -> Self {
        Carrier {
            between,
            drive: None,
            after: String::new(),
            place: 0,
            lost: false,
        }
    }
    /// Total running time, including pauses.
    pub fn age(&self) -> Nanos {
        self.drive.as_ref().map_or(Nanos::ZERO, |d| d.1.age())
    }
    /// Runs a specification on the drive in its current state. The seed of the first run is the
    /// drive's seed, too.
    ///
    /// # Errors
    /// All faults of the specification: a device that differs from the drive, an array (each run
    /// gets a new one), or a trace (it replays on its own drive). Otherwise the reason why the run
    /// failed; if it broke off, the drive is lost, and every further run reports that.
    pub fn run(&mut self, spec: &RunSpec, hooks: Hooks<'_>) -> Result<Record, RunFailure> {
        let spec = self.fitting(checked(spec)?)?;
        let files = spec.device.files.clone();
        with_files(&files, || self.run_fitting(spec, hooks))
    }

    /// Returns the specification if it matches this drive.
    fn fitting(&self, spec: RunSpec) -> Result<RunSpec, SpecErrors> {
        let mut errors = SpecErrors::default();
        if matches!(spec.workload, WorkloadSpec::Trace { .. }) {
            let what = "a trace replays on its own drive: it cannot be part of a sequence";
            errors.push("workload", what);
        }
        if self.lost {
            let what = "the drive was lost in an earlier run of the sequence, which broke off";
            errors.push("device", what);
        }
        if let Some((own, _)) = self.drive.as_ref().filter(|d| d.0 != spec.device) {
            let what = format!("the sequence uses {}, not {}", own.spec, spec.device.spec);
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
                    let what = "is an array, which each run builds again: use a single drive";
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
        // Reset when the drive is back: a panic below loses the drive.
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
