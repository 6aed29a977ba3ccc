//! Plans the simulation of an experiment on this machine: the same cells, treatments and metrics,
//! on a modelled device with the settings of the real one.

use super::Translation;
use crate::data::{About, Cell, Method, MetricInfo, StopRule, Treatment};
use crate::experiment::{CellPlan, Deciding, Experiment, Faults, Place};
use crate::host::HostWork;
use crate::host::words::PLACING;
use seekwell::{DeviceSpec, RunSpec, SchedulerSpec, Substrate, WorkloadSpec, checked, words};
use seekwell_host::MachineFacts;
use std::path::Path;

/// Number of blocks of a simulation, with one seed each. The intervals of five blocks are already
/// much narrower than the error of the model.
pub const BLOCKS: u32 = 5;

/// The simulation of an experiment.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The experiment in simulation. Its treatments have the indices of the real ones.
    pub experiment: Experiment,
    /// For each cell of `experiment`, its index in the real experiment.
    pub of: Vec<usize>,
    /// Workloads, schedulers and tunables that cannot be simulated, in words.
    pub left: Vec<String>,
}

/// Returns whether the simulator can run the workload.
pub fn can_simulate(w: &WorkloadSpec) -> bool {
    match w {
        WorkloadSpec::Script { name, params } => {
            !name.contains('/') && PLACING.iter().all(|p| !params.contains_key(*p))
        }
        WorkloadSpec::Fio { .. } | WorkloadSpec::Trace { .. } => true,
    }
}

/// Removes the tunables that the simulator's version of the scheduler does not have.
fn known_tunables(s: &mut SchedulerSpec, left: &mut Vec<String>) {
    let Ok(found) = words::named(&s.versioned()) else {
        return;
    };
    s.tunables.retain(|name, value| {
        let good = seekwell_sim::spec::scheduler::tunable(&found, name, value);
        if good.is_err() {
            left.push(format!("tunable {name} of {}", s.name));
        }
        good.is_ok()
    });
}

/// Returns the simulation of a real experiment.
///
/// # Errors
/// No workload or no scheduler can be simulated, or a setting is invalid in simulation.
pub fn simulation(e: &Experiment, t: &Translation) -> Result<Plan, String> {
    let mut left = Vec::new();
    let (mut cells, mut of) = (Vec::new(), Vec::new());
    for (i, c) in e.cells.iter().enumerate() {
        let Some(first) = c.specs.first() else {
            continue;
        };
        let beside = first.beside.iter().all(|b| can_simulate(&b.workload));
        if !can_simulate(&first.workload) || !beside {
            left.push(format!(
                "workload {}: programs only run for real",
                c.cell.workload
            ));
            continue;
        }
        let (mut specs, mut treatments) = (Vec::new(), Vec::new());
        for (spec, treatment) in c.specs.iter().zip(&c.cell.treatments) {
            if seekwell_sched::find(&spec.scheduler.name).is_none() {
                left.push(format!("scheduler {}: has no model", spec.scheduler.name));
                continue;
            }
            let mut spec = spec.clone();
            t.carry(&mut spec);
            known_tunables(&mut spec.scheduler, &mut left);
            if let Some(m) = &mut spec.machine {
                // A real program starts at no particular time of the kernel's timers.
                m.phase = Some("drawn".to_owned());
            }
            let spec = checked(&spec).map_err(|e| format!("{}: {e}", c.cell.name))?;
            specs.push(spec);
            treatments.push(*treatment);
        }
        if specs.is_empty() {
            continue;
        }
        let reference = match treatments.contains(&c.cell.reference) {
            true => c.cell.reference,
            false => treatments[0],
        };
        let cell = Cell {
            substrate: Substrate::Sim.name().to_owned(),
            treatments,
            reference,
            ..c.cell.clone()
        };
        cells.push(CellPlan {
            cell,
            deciding: c.deciding.clone(),
            specs,
        });
        of.push(i);
    }
    left.sort();
    left.dedup();
    if cells.is_empty() {
        return Err(format!(
            "nothing here can be simulated ({}). Use scripts from `seekwell workloads`; programs \
             only run for real",
            left.join("; ")
        ));
    }
    let about = About {
        name: format!("{}, simulated", e.about.name),
        method: Method {
            stop: StopRule::Fixed,
            repeats_min: BLOCKS,
            repeats_max: BLOCKS,
            budget_s: None,
            ..e.about.method.clone()
        },
        notes: Vec::new(),
        ..e.about.clone()
    };
    let experiment = Experiment {
        about,
        cells,
        text: String::new(),
        ..e.clone()
    };
    Ok(Plan {
        experiment,
        of,
        left,
    })
}

/// Returns the experiment that would run on the device: each workload under each scheduler that
/// the device offers, with the active scheduler as the reference. It needs no rights.
///
/// # Errors
/// A metric of a workload is unknown, or the device offers no scheduler.
pub fn experiment_of(
    work: &[HostWork],
    schedulers: &[(String, SchedulerSpec)],
    facts: &MachineFacts,
    path: &Path,
) -> Result<Experiment, Faults> {
    let mut faults = Faults::default();
    let mut judged = Vec::new();
    for w in work {
        let label = format!("workload `{}`", w.label);
        if let Some(d) = faults.take(Place::default(), &label, crate::host::deciding(w)) {
            judged.push((w.clone(), d));
        }
    }
    experiment(&judged, schedulers, facts, path, faults)
}

/// Returns the experiment that would repeat a recorded workload under each scheduler.
///
/// # Errors
/// The device offers no scheduler.
pub fn experiment_of_recording(
    recording: HostWork,
    deciding: Deciding,
    schedulers: &[(String, SchedulerSpec)],
    facts: &MachineFacts,
    path: &Path,
) -> Result<Experiment, Faults> {
    let info = deciding.primary.info(&recording.spec);
    let judged = [(recording, (deciding, info))];
    experiment(&judged, schedulers, facts, path, Faults::default())
}

fn experiment(
    work: &[(HostWork, (Deciding, MetricInfo))],
    schedulers: &[(String, SchedulerSpec)],
    facts: &MachineFacts,
    path: &Path,
    mut faults: Faults,
) -> Result<Experiment, Faults> {
    if schedulers.is_empty() {
        let what = format!("{} offers no scheduler to choose", facts.device);
        faults.push(Place::default(), "device", what);
    }
    let active = |s: &(String, SchedulerSpec)| s.1.name == facts.scheduler;
    let reference = schedulers.iter().position(active).unwrap_or(0);
    let device = format!("{} on {}", path.display(), facts.device);
    let method = Method::default();
    let mut cells = Vec::new();
    for (w, (deciding, info)) in work {
        let specs = schedulers.iter().map(|(label, spec)| RunSpec {
            substrate: Substrate::Host,
            seed: method.seed,
            limit_s: w.limit_s,
            label: Some(label.clone()),
            beside: w.beside.clone(),
            ..RunSpec::new(DeviceSpec::default(), spec.clone(), w.spec.clone())
        });
        cells.push(CellPlan {
            specs: specs.collect(),
            cell: Cell {
                name: format!("{device} / {}", w.label),
                device: device.clone(),
                workload: w.label.clone(),
                substrate: Substrate::Host.name().to_owned(),
                primary: info.clone(),
                rows: deciding.rows_info(&w.spec),
                checks: deciding.checks.clone(),
                treatments: (0..schedulers.len()).collect(),
                reference,
                ..Cell::default()
            },
            deciding: deciding.clone(),
        });
    }
    let treatments = schedulers.iter().map(|(label, s)| Treatment {
        label: label.clone(),
        scheduler: s.name.clone(),
        version: String::new(),
        tunables: s.tunables.clone(),
    });
    let treatments = treatments.collect();
    faults.or(())?;
    Ok(Experiment {
        about: About {
            name: "prediction".to_owned(),
            method,
            source: "experiment".to_owned(),
            paired: true,
            ..About::default()
        },
        cells,
        treatments,
        text: String::new(),
        design: Default::default(),
    })
}

/// Returns the schedulers that a device offers, each with default tunables.
pub fn offered(facts: &MachineFacts) -> Vec<(String, SchedulerSpec)> {
    let one = |name: &String| {
        let spec = SchedulerSpec {
            name: name.clone(),
            ..SchedulerSpec::default()
        };
        (name.clone(), spec)
    };
    facts.offered.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::words;
    use std::collections::BTreeMap;

    fn facts(offered: &[&str]) -> MachineFacts {
        MachineFacts {
            device: "sda".to_owned(),
            scheduler: "bfq".to_owned(),
            offered: offered.iter().map(|s| (*s).to_owned()).collect(),
            rotational: Some(false),
            kernel: "6.12.1".to_owned(),
            fs: "ext4".to_owned(),
            ..MachineFacts::default()
        }
    }

    fn planned(work: &[&str], offered_names: &[&str]) -> Result<Plan, String> {
        let f = facts(offered_names);
        let work: Vec<HostWork> = work
            .iter()
            .map(|w| words::work(w, &BTreeMap::new()).expect("a workload"))
            .collect();
        let e = experiment_of(&work, &offered(&f), &f, Path::new("/srv")).expect("an experiment");
        let t = Translation::new(&f, "ssd:sata-tlc-1t").expect("a preset");
        simulation(&e, &t)
    }

    #[test]
    fn simulation_has_the_cells_metrics_and_reference_of_the_experiment() {
        let p = planned(&["fs-mark:files=5", "cmd:true"], &["none", "bfq"]).expect("a plan");
        assert_eq!(p.of, [0]);
        assert_eq!(p.left, ["workload true: programs only run for real"]);
        let c = &p.experiment.cells[0];
        assert_eq!((c.cell.reference, c.specs.len()), (1, 2), "bfq is active");
        assert_eq!(c.cell.primary.name, "files");
        assert_eq!(c.cell.substrate, "sim");
        assert_eq!(p.experiment.about.method.repeats_max, BLOCKS);
        let m = c.specs[0].machine.clone().expect("a machine");
        assert_eq!(m.phase.as_deref(), Some("drawn"));
    }

    #[test]
    fn an_unknown_scheduler_is_left_out_and_listed() {
        let p = planned(&["fs-mark:files=5"], &["none", "ssg"]).expect("a plan");
        assert_eq!(p.left, ["scheduler ssg: has no model"]);
        let c = &p.experiment.cells[0].cell;
        assert_eq!((c.treatments.as_slice(), c.reference), (&[0][..], 0));
    }

    #[test]
    fn an_experiment_of_programs_alone_is_refused() {
        let e = planned(&["cmd:true"], &["none"]).expect_err("nothing to simulate");
        assert!(e.contains("programs only run for real"), "{e}");
    }
}
