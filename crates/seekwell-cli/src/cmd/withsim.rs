//! Simulates an experiment of a real disk with the settings of the real machine, and scores the
//! simulation by the measurement.

use super::predict::scored::Compared;
use super::predict::simulate::Prepared;
use crate::fail::Failure;
use crate::out::note;
use seekwell_host::MachineFacts;
use seekwell_lab::analysis::Analysis;
use seekwell_lab::experiment::Experiment;
use seekwell_lab::host::DeviceOf;

/// Reads the settings of the machine and plans the simulation. Call this before the real runs,
/// because they change the settings.
pub fn prepare(e: &Experiment, on: &DeviceOf, device: &str) -> Result<Prepared, Failure> {
    let facts = MachineFacts::read(on.tree(), on.path());
    let facts = facts.map_err(|e| Failure::input(format!("--with-sim: {e}")))?;
    Prepared::new(e, &facts, device).map_err(|e| match e {
        Failure::Input(why) => Failure::Input(format!("--with-sim: {why}")),
        other => other,
    })
}

/// Runs the simulation, scores it by the measurements in `real`, and adds the scores to the record.
pub fn run(prepared: Prepared, real: &Analysis, quiet: bool) -> Result<Compared, Failure> {
    note(
        quiet,
        &format!("the same workloads in simulation, on {}", prepared.device),
    );
    let forecast = prepared.simulate(quiet)?;
    let compared = Compared::new(prepared, &forecast, real);
    compared.keep(quiet);
    Ok(compared)
}
