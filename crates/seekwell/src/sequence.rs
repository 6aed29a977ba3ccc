//! Runs one after the other on one drive.

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
    /// With a new drive, which the first run names; the seed of that is the drive's own.
    pub fn new(between: Between) -> Self {
        Sequence(Carrier::new(between))
    }
    /// Runs a specification on the drive as the last run left it. [`Record::carried`] says after
    /// what, and the hash in the record depends on it: it is no key of the same run on a new drive.
    ///
    /// # Errors
    /// As [`crate::run`]; and another device than before, an array, a trace. A run that gives no
    /// record for another reason than its specification takes the drive with it.
    pub fn run(&mut self, spec: &RunSpec, hooks: Hooks<'_>) -> Result<Record, Error> {
        let carrier = &mut self.0;
        guarded(spec, hooks, |spec, hooks| carrier.run(spec, hooks))
    }
}

/// Runs them all in this order on one drive, and hands each result over as its run ends. Nothing is
/// begun once `cancel` is set.
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
