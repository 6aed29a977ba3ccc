//! Several runs on one drive, as in a real experiment. The drive keeps its state from run to run:
//! write cache, flash mapping, wear, and the open segments of a card. Each run makes a new file
//! system, with or without a TRIM of the whole drive, and boots everything above the drive.

use super::run::run_checked;
use super::{DeviceSpec, Hooks, RunFailure, RunSpec, SpecErrors, WorkloadSpec, checked, run};
use crate::world::{Drive, WorldError};
use seekwell_core::Nanos;
use seekwell_core::result::{Carried, Record};
use seekwell_device::with_files;

/// What happens to the drive between two runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// Time for which the drive is idle. It may do housekeeping in this time.
    pub pause: Nanos,
    /// Whether the whole drive is discarded before the file system is made.
    pub trim: bool,
}

/// A drive that keeps its state from run to run.
pub struct Carrier {
    between: Between,
    /// The drive, and the specification from which it was made.
    drive: Option<(DeviceSpec, Drive)>,
    /// Hash of the previous run. It is empty before the first run.
    after: String,
    place: u32,
    lost: bool,
}

impl Carrier {
    /// Creates a carrier without a drive. The first run creates the drive from its specification.
    pub fn new(between: Between) -> Self {
        Carrier {
            between,
            drive: None,
            after: String::new(),
            place: 0,
            lost: false,
        }
    }
    /// Runs a specification on the drive in its present state. The seed of the first run is also
    /// the seed of the drive.
    ///
    /// # Errors
    /// Returns all faults of the specification. These include a device that differs from the drive,
    /// an array (each run needs a new one), and a trace (it replays on its own drive). Otherwise
    /// returns the reason why the run failed. A run that breaks off loses the drive, and every
    /// further run reports this.
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
            let what = "the state of the drive is lost, because an earlier run of the sequence \
                        failed";
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
                    return Err(SpecErrors::single("device", what).into());
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
        // Reset to false when the drive is back. If the run panics, the drive is lost.
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
