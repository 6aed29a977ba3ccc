//! Makes several runs, one after the other, on one drive.

use crate::many::Cancel;
use crate::one::{Error, Hooks, guarded};
use seekwell_core::result::Record;
use seekwell_core::spec::RunSpec;
use seekwell_sim::spec::Carrier;

pub use seekwell_sim::spec::Between;

/// A drive that keeps its state from run to run.
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
    /// A sequence with a new drive, which the first run names; the drive uses the first run's seed.
    pub fn new(between: Between) -> Self {
        Sequence(Carrier::new(between))
    }
    /// Runs a specification on the drive in its current state. [`Record::carried`] names the
    /// preceding run. The record's hash depends on it and so differs from the hash of the same run
    /// on a new drive.
    ///
    /// # Errors
    /// Those of [`crate::run`]; also a device that differs from the drive, an array, or a trace. If
    /// a run fails for another reason than its specification, the drive is lost.
    pub fn run(&mut self, spec: &RunSpec, hooks: Hooks<'_>) -> Result<Record, Error> {
        let carrier = &mut self.0;
        guarded(spec, hooks, |spec, hooks| carrier.run(spec, hooks))
    }
}

/// Makes all runs in this order on one drive, and passes on each result as its run ends. No run
/// starts once `cancel` is set.
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
