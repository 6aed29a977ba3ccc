//! Executes several runs one after the other on the same drive.

use crate::cancel::Cancel;
use crate::hooks::{Error, Hooks};
use crate::one::guarded;
use seekwell_core::result::Record;
use seekwell_core::spec::RunSpec;
use seekwell_sim::spec::Carrier;

pub use seekwell_sim::spec::Between;

/// A drive that keeps its state between runs.
///
/// ```
/// use seekwell::{Between, Hooks, Sequence};
/// let mut drive = Sequence::new(Between::default());
/// for scheduler in ["noop", "deadline"] {
///     let spec = seekwell::spec("fs-mark:files=5", "emmc:motog-sandisk8", scheduler)?;
///     let record = drive.run(&spec, Hooks::default())?;
///     assert_eq!(record.carried.is_some(), scheduler == "deadline");
/// }
/// # Ok::<(), seekwell::Error>(())
/// ```
pub struct Sequence(Carrier);

impl Sequence {
    /// Creates a sequence. The first run defines the drive, which is then new and uses that run's
    /// seed.
    pub fn new(between: Between) -> Self {
        Sequence(Carrier::new(between))
    }
    /// Executes a run on the drive in its current state. [`Record::carried`] contains the hash of
    /// the preceding run, and the record's hash depends on it. The hash therefore differs from that
    /// of the same run on a new drive.
    ///
    /// # Errors
    /// Returns the errors of [`crate::run`]. It is also an error if the device differs from the
    /// drive, or if the device is an array or the workload is a trace. If a run fails for another
    /// reason than its specification, the drive cannot be used any more.
    pub fn run(&mut self, spec: &RunSpec, hooks: Hooks<'_>) -> Result<Record, Error> {
        let carrier = &mut self.0;
        guarded(spec, hooks, |spec, hooks| carrier.run(spec, hooks))
    }
}

/// Executes all runs in order on one drive, and passes each result to a function as soon as its run
/// ends. If `cancel` is set, no further run starts.
pub fn run_sequence(
    specs: &[RunSpec],
    between: Between,
    cancel: &Cancel,
    mut ended: impl FnMut(usize, Result<Record, Error>),
) {
    let mut drive = Sequence::new(between);
    for (i, spec) in specs.iter().enumerate() {
        ended(i, drive.run(spec, Hooks::default().cancel(cancel)));
    }
}
