//! Experiments on a real kernel in virtual time, over modelled devices. Results name this way of
//! execution `kernel`.
//!
//! The runs themselves are made by the program, because it starts itself inside the guest. This
//! module says which specifications a guest can execute: [`to_kernel`] checks one, [`moved`]
//! converts a simulated experiment, and [`KernelDesign`] describes an experiment with programs and
//! scripts, as on a host.

use crate::data::{About, Cell, Method, Treatment};
use crate::experiment::{
    CellPlan, Deciding, Design, Experiment, Faults, Level, Place, Work, kernels_choice,
};
use crate::host::HostWork;
use crate::host::expand::deciding;
use seekwell::words::{TypedMachine, TypedScheduler};
use seekwell::{DeviceSpec, MachineSpec, QueueSpec, RunSpec, SpecErrors, Substrate, WorkloadSpec};

/// The file systems that a guest can have.
pub const FILE_SYSTEMS: [&str; 4] = ["ext4", "xfs", "btrfs", "f2fs"];

/// Changes a specification from the simulation to a guest.
///
/// # Errors
/// All settings that a guest does not have.
pub fn to_kernel(spec: &mut RunSpec) -> Result<(), SpecErrors> {
    let mut errors = SpecErrors::default();
    spec.substrate = Substrate::Kernel;
    if let Some(m) = &spec.machine {
        machine(m, &mut errors);
    }
    let usual = QueueSpec::default();
    if spec.queue.hz != usual.hz {
        errors.push(
            "queue.hz",
            "the guest's kernel determines CONFIG_HZ: omit it",
        );
    }
    if spec.queue.max_segments.is_some() {
        errors.push(
            "queue.max_segments",
            "the guest's disk driver determines it: omit it",
        );
    }
    if matches!(spec.workload, WorkloadSpec::Trace { .. }) {
        errors.push(
            "workload",
            "a guest cannot replay a trace: use --substrate sim",
        );
    }
    errors.or(())
}

fn machine(m: &MachineSpec, errors: &mut SpecErrors) {
    let mut not = |given: bool, name: &str, what: &str| {
        if given {
            errors.push(format!("machine.{name}"), what);
        }
    };
    not(
        m.kernel.is_some(),
        "kernel",
        "the guest's kernel is real: choose it with --kernel, from `seekwell guest list`",
    );
    not(
        m.cores.is_some_and(|n| n != 1),
        "cores",
        "a guest has one CPU, whose time is free: omit it",
    );
    let modelled = "it is part of the simulation's model and does not exist in a guest: omit it";
    not(m.cache_bytes.is_some(), "cache", modelled);
    not(m.aged_run_blocks != 0, "aged", modelled);
    not(m.placement.is_some(), "placement", modelled);
    not(m.phase.is_some(), "phase", modelled);
    not(m.cpu_permille.is_some(), "cpu", modelled);
    not(!m.without.is_empty(), "without", modelled);
    not(
        !m.cgroups.is_empty(),
        "cgroup",
        "in a guest, give the limits to a program: cmd:COMMAND:rbps=8m,weight=200",
    );
    if let Some(fs) = &m.fs
        && !FILE_SYSTEMS.contains(&fs.as_str())
    {
        let what = format!("no file system of a guest is called \"{fs}\"");
        errors.unknown("machine.fs", &what, fs, &FILE_SYSTEMS);
    }
}

/// Converts a simulated experiment: the same devices, schedulers and workloads run in guests.
///
/// # Errors
/// All settings that a guest does not have.
pub fn moved(mut e: Experiment) -> Result<Experiment, Faults> {
    let mut faults = Faults::default();
    let machine = match e.design.machines.as_slice() {
        [] => MachineSpec::default(),
        [only] => only.spec.spec.clone(),
        several => {
            let what = format!(
                "an experiment in guests has one machine, not {}",
                several.len()
            );
            return Err(Faults::single("machine", what));
        }
    };
    for plan in &mut e.cells {
        Substrate::Kernel
            .name()
            .clone_into(&mut plan.cell.substrate);
        for spec in &mut plan.specs {
            // A checked specification states the defaults of the simulated machine and its request
            // size. A guest has its own.
            spec.machine = spec.machine.take().map(|_| machine.clone());
            (spec.queue.max_segments, spec.queue.max_sectors_kb) = (None, None);
            faults.take(Place::default(), &plan.cell.name, to_kernel(spec));
        }
    }
    for level in &e.design.queues {
        if let Some(kb) = level.spec.max_sectors_kb {
            for spec in e.cells.iter_mut().flat_map(|c| &mut c.specs) {
                spec.queue.max_sectors_kb = Some(kb);
            }
        }
    }
    faults.or(e)
}

/// An experiment in guests, with the programs and scripts of a host.
#[derive(Clone, Debug, Default)]
pub struct KernelDesign {
    /// Name of the experiment.
    pub name: String,
    /// The rules for repetitions and verdicts.
    pub method: Method,
    /// The devices.
    pub devices: Vec<DeviceSpec>,
    /// The schedulers.
    pub schedulers: Vec<TypedScheduler>,
    /// True if the reference is the scheduler that the kernel uses by default for the device,
    /// instead of the first one.
    pub usual_reference: bool,
    /// The workloads.
    pub work: Vec<HostWork>,
    /// The machine.
    pub machine: MachineSpec,
    /// Most seconds of a run.
    pub limit_s: Option<u64>,
    /// Settings of the queue.
    pub queue: QueueSpec,
}

impl KernelDesign {
    /// Returns the experiment.
    ///
    /// # Errors
    /// All faults of the design.
    pub fn experiment(&self) -> Result<Experiment, Faults> {
        let mut faults = Faults::default();
        let mut cells = Vec::new();
        for device in &self.devices {
            for w in &self.work {
                let label = format!("workload `{}`", w.label);
                let known = faults.take(Place::default(), &label, deciding(w));
                let specs: Vec<RunSpec> = self
                    .schedulers
                    .iter()
                    .map(|s| self.spec(device, w, s))
                    .collect();
                let mut checked = specs.clone();
                for spec in &mut checked {
                    faults.take(Place::default(), &label, to_kernel(spec));
                }
                if let Some((deciding, _)) = known {
                    cells.push(self.cell(device, w, deciding, checked));
                }
            }
        }
        let treatments = self.schedulers.iter().map(|s| Treatment {
            label: s.text.clone(),
            scheduler: s.spec.name.clone(),
            version: String::new(),
            tunables: s.spec.tunables.clone(),
        });
        faults.or(Experiment {
            about: About {
                name: self.name.clone(),
                method: self.method.clone(),
                source: "experiment".to_owned(),
                paired: true,
                ..About::default()
            },
            cells,
            treatments: treatments.collect(),
            text: String::new(),
            design: self.design(),
        })
    }

    fn spec(&self, device: &DeviceSpec, w: &HostWork, s: &TypedScheduler) -> RunSpec {
        RunSpec {
            queue: self.queue.clone(),
            machine: Some(self.machine.clone()),
            seed: self.method.seed,
            limit_s: w.limit_s.or(self.limit_s),
            label: Some(s.text.clone()),
            beside: w.beside.clone(),
            ..RunSpec::new(device.clone(), s.spec.clone(), w.spec.clone())
        }
    }

    fn cell(
        &self,
        device: &DeviceSpec,
        w: &HostWork,
        by: Deciding,
        specs: Vec<RunSpec>,
    ) -> CellPlan {
        let name = device.spec.clone();
        CellPlan {
            cell: Cell {
                name: format!("{name} / {}", w.label),
                device: name,
                workload: w.label.clone(),
                substrate: Substrate::Kernel.name().to_owned(),
                primary: by.primary.info(&w.spec),
                rows: by.rows_info(&w.spec),
                checks: by.checks.clone(),
                treatments: (0..specs.len()).collect(),
                reference: match self.usual_reference {
                    true => kernels_choice(&specs),
                    false => 0,
                },
                ..Cell::default()
            },
            deciding: by,
            specs,
        }
    }

    /// Returns the design as in an experiment file, for a results folder.
    fn design(&self) -> Design {
        let scheduler = |s: &TypedScheduler| Level {
            name: Some(s.text.clone()),
            ..Level::unnamed(s.spec.clone())
        };
        let work = |w: &HostWork| Level {
            name: Some(w.label.clone()),
            ..Level::unnamed(Work {
                spec: w.spec.clone(),
                metric: w.metric.clone(),
                limit_s: w.limit_s,
                beside: w.beside.clone(),
            })
        };
        Design {
            name: self.name.clone(),
            method: self.method.clone(),
            devices: self.devices.iter().cloned().map(Level::unnamed).collect(),
            schedulers: self.schedulers.iter().map(scheduler).collect(),
            workloads: self.work.iter().map(work).collect(),
            machines: vec![Level::unnamed(TypedMachine {
                spec: self.machine.clone(),
                limit_s: self.limit_s,
            })],
            queues: vec![Level::unnamed(self.queue.clone())],
            ..Design::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell::words;
    use std::path::Path;

    fn spec(machine: &str) -> RunSpec {
        let workload = words::workload("fs-mark:files=5", &[]).expect("a workload");
        let device = words::device("hdd:hitachi-7k200").expect("a device");
        let mut spec = RunSpec::new(device, Default::default(), workload);
        spec.machine = Some(words::machine(machine).expect("a machine").spec);
        spec
    }

    #[test]
    fn guest_refuses_what_only_the_model_has() {
        for (machine, field) in [
            ("kernel=6.1", "machine.kernel"),
            ("cores=2", "machine.cores"),
            ("cache=64M", "machine.cache"),
            ("without=cpu", "machine.without"),
            ("cgroup=bulk:tasks=writer:wbps=2M", "machine.cgroup"),
        ] {
            let mut spec = spec(machine);
            let e = to_kernel(&mut spec).expect_err(machine);
            assert_eq!(e.0[0].field, field, "{machine}");
        }
        let mut ext3 = spec("fs=ext3");
        let e = to_kernel(&mut ext3).expect_err("no ext3").to_string();
        assert!(e.contains("did you mean"), "{e}");
    }

    #[test]
    fn guest_accepts_settings_that_a_kernel_has() {
        let mut spec = spec("memory=256M,fs=ext4,commit=1,dirty_ratio=5,cores=1");
        to_kernel(&mut spec).expect("all exist in a guest");
        assert_eq!(spec.substrate, Substrate::Kernel);
    }

    #[test]
    fn simulated_experiment_moves_without_the_defaults_of_the_model() {
        let text = "devices = [\"hdd:hitachi-7k200\"]\nschedulers = [\"none\", \"bfq\"]\n\
                    workloads = [\"fs-mark:files=5\"]\n[experiment]\nname = \"t\"\n";
        let e = Experiment::from_toml(text, Path::new(".")).expect("an experiment");
        let e = moved(e).expect("it can run in guests");
        assert_eq!(e.cells[0].cell.substrate, "kernel");
        for spec in &e.cells[0].specs {
            assert_eq!(spec.substrate, Substrate::Kernel);
            assert_eq!(spec.machine, Some(MachineSpec::default()));
            assert_eq!(spec.queue, QueueSpec::default());
        }
    }

    #[test]
    fn experiment_of_a_command_line_has_programs_and_scripts() {
        let work = |text: &str| crate::host::words::work(text, &Default::default()).expect(text);
        let design = KernelDesign {
            name: "t".to_owned(),
            devices: vec![words::device("hdd:hitachi-7k200").expect("a device")],
            schedulers: words::schedulers("none,bfq:low_latency=0").expect("schedulers"),
            usual_reference: false,
            work: vec![work("fs-mark:files=5"), work("cmd:true")],
            ..KernelDesign::default()
        };
        let e = design.experiment().expect("an experiment");
        assert_eq!((e.cells.len(), e.treatments.len()), (2, 2));
        assert_eq!(e.cells[1].cell.workload, "true");
        assert_eq!(e.treatments[1].tunables["low_latency"], "0");
    }
}
