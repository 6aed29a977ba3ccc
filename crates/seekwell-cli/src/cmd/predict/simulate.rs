//! A prediction that is ready to be simulated: the settings of the real machine, the plan of the
//! simulation, and the record on which the probabilities are calibrated.

use crate::cells::cancelling;
use crate::fail::Failure;
use crate::out::note;
use seekwell::{Cancel, WorkloadSpec};
use seekwell_host::MachineFacts;
use seekwell_lab::analysis::analyse;
use seekwell_lab::conduct::{How, Memory, Simulated, conduct};
use seekwell_lab::experiment::Experiment;
use seekwell_lab::predict::track::{Places, Track};
use seekwell_lab::predict::{Forecast, Plan, Translation, simulation};

/// A prediction that is ready to be simulated.
pub struct Prepared {
    /// The settings of both sides.
    pub translation: Translation,
    /// The runs of the simulation.
    pub plan: Plan,
    /// The modelled device as the user named it.
    pub device: String,
    /// The record of earlier predictions.
    pub track: Track,
}

impl Prepared {
    /// Translates the machine and plans the simulation of an experiment on it.
    pub fn new(e: &Experiment, facts: &MachineFacts, device: &str) -> Result<Self, Failure> {
        let mut all = e.cells.iter().flat_map(|c| &c.specs);
        let recorded = all.any(|s| matches!(s.workload, WorkloadSpec::Trace { .. }));
        let translation = match recorded {
            true => Translation::of_recording(facts, device),
            false => Translation::new(facts, device),
        };
        let translation = translation.map_err(|e| Failure::words("", &e))?;
        let plan = simulation(e, &translation).map_err(Failure::input)?;
        let track = Track::read(&Places::here().to_read())
            .map_err(|e| Failure::input(format!("the record of predictions: {e}")))?;
        Ok(Prepared {
            translation,
            plan,
            device: device.to_owned(),
            track,
        })
    }

    /// Returns the names of the schedulers.
    pub fn schedulers(&self) -> Vec<&str> {
        let all = &self.plan.experiment.treatments;
        let mut names: Vec<&str> = all.iter().map(|t| t.scheduler.as_str()).collect();
        names.dedup();
        names
    }

    /// Returns everything that the simulation cannot carry, in words.
    pub fn left(&self) -> Vec<String> {
        let all = self.plan.left.iter().chain(self.translation.left());
        all.cloned().collect()
    }

    /// Runs the simulation and returns the predictions.
    pub fn simulate(&self, quiet: bool) -> Result<Forecast, Failure> {
        let cancel = Cancel::new();
        let how = How {
            cancel: cancel.clone(),
            ..How::default()
        };
        let e = &self.plan.experiment;
        let (mut store, runner) = (Memory::default(), Simulated::default());
        let done = cancelling(&cancel, || conduct(e, &runner, &mut store, &how))?;
        let done = done.map_err(|e| Failure::input(e.to_string()))?;
        if done.cancelled {
            let signal = seekwell_host::stop::signal().unwrap_or(2);
            return Err(Failure::Interrupted {
                signal,
                what: "stopped in the simulation: nothing was predicted".to_owned(),
            });
        }
        if done.failed > 0 {
            note(
                quiet,
                &format!("{} runs of the simulation failed", done.failed),
            );
        }
        let model = analyse(&done.results(e, store.runs));
        Ok(Forecast::of(&self.plan, &model, &self.track.lines))
    }
}
