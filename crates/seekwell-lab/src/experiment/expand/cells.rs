//! Builds the cells with their runs, and finds faults in combinations of two factors.

use super::{Places, at};
use crate::data::{Cell, Treatment};
use crate::experiment::design::{Design, Labels, Work};
use crate::experiment::fault::Faults;
use crate::experiment::{CellPlan, Deciding, Pick, Primary, reference};
use seekwell::{MachineSpec, RunSpec, SpecErrors, WorkloadSpec, aligned, checked, words};
use seekwell_workload::params::time_text;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of faults that are reported for each pair of factors, because a thousand similar
/// messages do not help.
const TOLD_MAX: usize = 20;

/// A cell, given by the index of a level in each factor.
#[derive(Clone, Copy)]
struct Combination {
    device: usize,
    workload: usize,
    machine: Option<usize>,
    queue: usize,
}

/// The levels of all factors with their names. Defaults are filled in.
pub(super) struct Factors {
    pub design: Design,
    pub devices: Vec<String>,
    pub schedulers: Vec<String>,
    pub workloads: Vec<String>,
    pub machines: Vec<String>,
    pub queues: Vec<String>,
}

/// Checked parts of specifications. Each combination of factors is checked only once, and not again
/// for each cell.
#[derive(Default)]
struct Checks {
    /// Device, scheduler and queue, checked with the first workload.
    below: BTreeMap<(usize, usize, usize), Option<RunSpec>>,
    /// Workload, machine and scheduler. All values of the machine are filled in.
    above: BTreeMap<(usize, Option<usize>, usize), Option<RunSpec>>,
    /// Device, queue and schedulers, with the largest request size that all schedulers use.
    requests: BTreeMap<(usize, usize, Vec<usize>), Option<Vec<RunSpec>>>,
    /// Whether a device has several hardware queues, by device.
    several: BTreeMap<usize, bool>,
}

impl Factors {
    fn metric(&self, w: &Work) -> Result<Deciding, SpecErrors> {
        match &w.metric {
            Some(text) => Primary::parse(text, &w.spec).map(Deciding::alone),
            None => Ok(Deciding::usual(&w.spec)),
        }
    }

    /// Returns all combinations, in the order of the file. A trace appears only once, because it
    /// uses no machine.
    fn combinations(&self) -> Vec<Combination> {
        let d = &self.design;
        let mut all = Vec::new();
        for device in 0..d.devices.len() {
            for workload in 0..d.workloads.len() {
                let trace = matches!(d.workloads[workload].spec.spec, WorkloadSpec::Trace { .. });
                let machines: Vec<Option<usize>> = match trace {
                    true => vec![None],
                    false => (0..d.machines.len()).map(Some).collect(),
                };
                for machine in machines {
                    for queue in 0..d.queues.len() {
                        all.push(Combination {
                            device,
                            workload,
                            machine,
                            queue,
                        });
                    }
                }
            }
        }
        all
    }

    fn machine_name(&self, c: Combination) -> &str {
        c.machine.map_or("", |m| &self.machines[m])
    }

    /// Returns the schedulers that run in a cell. Adds the picks that matched to `used`.
    fn picked(&self, c: Combination, used: &mut BTreeSet<(bool, usize)>) -> Vec<usize> {
        let d = &self.design;
        let mut run = Vec::new();
        for (s, scheduler) in self.schedulers.iter().enumerate() {
            let labels = Labels {
                device: &self.devices[c.device],
                scheduler,
                workload: &self.workloads[c.workload],
                machine: self.machine_name(c),
            };
            let mut wanted = d.only.is_empty();
            for (i, pick) in d.only.iter().enumerate() {
                if pick.picks(labels) {
                    wanted = true;
                    used.insert((true, i));
                }
            }
            for (i, pick) in d.exclude.iter().enumerate() {
                if pick.picks(labels) {
                    wanted = false;
                    used.insert((false, i));
                }
            }
            if wanted {
                run.push(s);
            }
        }
        run
    }

    pub(super) fn cells(&self, places: &Places, faults: &mut Faults) -> Vec<CellPlan> {
        let d = &self.design;
        let mut checks = Checks::default();
        let mut used = BTreeSet::new();
        let mut cells = Vec::new();
        let mut all_deciding = Vec::new();
        for (i, w) in d.workloads.iter().enumerate() {
            let place = at(&places.workloads, i);
            let deciding = faults.take(place, "workload.metric", self.metric(&w.spec));
            let deciding = deciding.unwrap_or_default();
            let time_ns = deciding.primary.paced(&w.spec.spec).map(|p| p.time_ns);
            if let (Some(warm), Some(time_ns)) = (d.method.warmup_s, time_ns)
                && warm * 1e9 >= time_ns as f64
            {
                let (warm, time) = ((warm * 1e9) as u64, time_text(time_ns));
                let what = format!(
                    "runs for {time}, and experiment.warmup = \"{}\" leaves nothing of this time; let \
                     it run longer, or write warmup = \"auto\"",
                    time_text(warm)
                );
                faults.push(place, "workload.seconds", what);
            }
            all_deciding.push(deciding);
        }
        for c in self.combinations() {
            let run = self.picked(c, &mut used);
            if run.is_empty() {
                continue;
            }
            let specs = self.specs(c, &run, &mut checks, places, faults);
            if specs.len() == run.len() {
                let deciding: Deciding = all_deciding[c.workload].clone();
                let reference = self.reference(c, &run, &mut checks);
                cells.push(CellPlan {
                    cell: self.cell(c, &run, reference, &deciding),
                    deciding,
                    specs,
                });
            }
            if faults.0.len() > TOLD_MAX {
                return cells;
            }
        }
        self.useless(&used, places, faults);
        if cells.is_empty() && faults.0.is_empty() {
            let what = "`only` and `exclude` leave nothing to run";
            faults.push(places.top, "", what);
        }
        cells
    }

    /// Reports picks that match no run, because they are probably mistakes.
    fn useless(&self, used: &BTreeSet<(bool, usize)>, places: &Places, faults: &mut Faults) {
        let d = &self.design;
        for (only, picks, places) in [
            (true, &d.only, &places.only),
            (false, &d.exclude, &places.exclude),
        ] {
            let field = if only { "only" } else { "exclude" };
            for (i, pick) in picks.iter().enumerate() {
                if used.contains(&(only, i)) {
                    continue;
                }
                let mut told = false;
                for (name, pattern) in pick.conditions() {
                    let Some(pattern) = pattern else { continue };
                    let known = match name {
                        "device" => &self.devices,
                        "scheduler" => &self.schedulers,
                        "workload" => &self.workloads,
                        _ => &self.machines,
                    };
                    let alone = |label: &str| {
                        let labels = Labels {
                            device: label,
                            scheduler: label,
                            workload: label,
                            machine: label,
                        };
                        Pick {
                            device: Some(pattern.clone()),
                            ..Default::default()
                        }
                        .picks(labels)
                    };
                    if !known.iter().any(|k| alone(k)) {
                        let known: Vec<&str> = known.iter().map(String::as_str).collect();
                        let what = format!("no {name} is called \"{pattern}\"");
                        let field = format!("{field}.{name}");
                        faults.unknown(at(places, i), &field, &what, pattern, &known);
                        told = true;
                    }
                }
                if !told {
                    faults.push(at(places, i), field, "it matches no run of this experiment");
                }
            }
        }
    }

    /// Returns the run of each treatment in a cell.
    fn specs(
        &self,
        c: Combination,
        run: &[usize],
        checks: &mut Checks,
        places: &Places,
        faults: &mut Faults,
    ) -> Vec<RunSpec> {
        let mut specs = Vec::new();
        for &s in run {
            let below = self.below(c, s, checks, places, faults);
            let above = self.above(c, s, checks, places, faults);
            if let (Some(below), Some(above)) = (below, above) {
                specs.push(RunSpec {
                    workload: above.workload,
                    beside: above.beside,
                    machine: above.machine,
                    limit_s: above.limit_s,
                    ..below
                });
            }
        }
        if specs.len() < run.len() {
            return Vec::new();
        }
        let key = (c.device, c.queue, run.to_vec());
        let group = checks.requests.entry(key).or_insert_with(|| {
            let mut group = specs.clone();
            faults
                .take(at(&places.devices, c.device), "", aligned(&mut group))
                .map(|()| group)
        });
        let Some(group) = group else {
            return Vec::new();
        };
        for (spec, same) in specs.iter_mut().zip(group) {
            spec.queue = same.queue.clone();
        }
        specs
    }

    /// Returns a run with the checked device, scheduler and queue.
    fn below(
        &self,
        c: Combination,
        s: usize,
        checks: &mut Checks,
        places: &Places,
        faults: &mut Faults,
    ) -> Option<RunSpec> {
        let d = &self.design;
        let make = || {
            // Uses a workload that is always valid, because the faults of the real workload are
            // reported elsewhere.
            let mut spec = RunSpec::new(
                d.devices[c.device].spec.clone(),
                d.schedulers[s].spec.clone(),
                WorkloadSpec::Script {
                    name: "hdparm".to_owned(),
                    params: BTreeMap::new(),
                },
            );
            spec.queue = d.queues[c.queue].spec.clone();
            spec.seed = d.method.seed;
            spec.label = Some(self.schedulers[s].clone());
            match checked(&spec) {
                Ok(spec) => Some(spec),
                Err(e) => {
                    for e in e.0 {
                        let place = match e.field.split('.').next() {
                            Some("scheduler") => at(&places.schedulers, s),
                            Some("queue") => at(&places.queues, c.queue),
                            _ => at(&places.devices, c.device),
                        };
                        faults.add(place, e);
                    }
                    None
                }
            }
        };
        let key = (c.device, s, c.queue);
        checks.below.entry(key).or_insert_with(make).clone()
    }

    /// Returns a run with the checked workload and machine.
    fn above(
        &self,
        c: Combination,
        s: usize,
        checks: &mut Checks,
        places: &Places,
        faults: &mut Faults,
    ) -> Option<RunSpec> {
        let d = &self.design;
        let make = || {
            let work = &d.workloads[c.workload].spec;
            let device = words::device("constant:").ok()?;
            let scheduler = d.schedulers[s].spec.clone();
            let mut spec = RunSpec::new(device, scheduler, work.spec.clone());
            spec.beside.clone_from(&work.beside);
            let machine = c.machine.map(|m| &d.machines[m].spec);
            spec.machine = machine.map(|m| MachineSpec::clone(&m.spec));
            spec.limit_s = work.limit_s.or(machine.and_then(|m| m.limit_s));
            match checked(&spec) {
                Ok(spec) => Some(spec),
                Err(e) => {
                    for e in e.0 {
                        let part = e.field.split('.').next();
                        let place = match (part, c.machine) {
                            // This fault is reported when the device is checked.
                            (Some("scheduler" | "device"), _) => continue,
                            (Some("machine"), Some(m)) => at(&places.machines, m),
                            _ => at(&places.workloads, c.workload),
                        };
                        faults.add(place, e);
                    }
                    None
                }
            }
        };
        let key = (c.workload, c.machine, s);
        checks.above.entry(key).or_insert_with(make).clone()
    }

    /// Reports a fault if the requested reference is not one of the schedulers.
    pub(super) fn known_reference(&self, places: &Places, faults: &mut Faults) {
        let d = &self.design;
        let candidate = |s: usize| (&*self.schedulers[s], &d.schedulers[s].spec);
        let every: Vec<_> = (0..d.schedulers.len()).map(candidate).collect();
        let Some(name) = &d.reference else { return };
        if reference::named(&every, name).is_none() {
            let (what, nearest) = reference::unknown(&every, name);
            let field = "experiment.reference".to_owned();
            let error = seekwell::SpecError {
                field,
                what,
                nearest,
            };
            faults.add(places.reference, error);
        }
    }

    /// Returns the index of the reference in a cell.
    fn reference(&self, c: Combination, run: &[usize], checks: &mut Checks) -> usize {
        let d = &self.design;
        let candidate = |s: usize| (&*self.schedulers[s], &d.schedulers[s].spec);
        let all: Vec<_> = run.iter().map(|s| candidate(*s)).collect();
        // If the cell does not contain the requested reference, the default reference is used.
        let named = d.reference.as_ref();
        if let Some(i) = named.and_then(|name| reference::named(&all, name)) {
            return run[i];
        }
        let several = checks.several.entry(c.device);
        let several =
            *several.or_insert_with(|| reference::several_queues(&d.devices[c.device].spec));
        run[reference::usual(&all, several)]
    }

    fn cell(&self, c: Combination, run: &[usize], reference: usize, by: &Deciding) -> Cell {
        let d = &self.design;
        let (device, workload) = (&self.devices[c.device], &self.workloads[c.workload]);
        let (machine, queue) = (self.machine_name(c), &self.queues[c.queue]);
        let parts = [device, workload, machine, queue];
        let parts: Vec<&str> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        let mut axes = BTreeMap::new();
        let mut add = |factor: &str, of: &BTreeMap<String, String>| {
            for (k, v) in of {
                axes.insert(format!("{factor}.{k}"), v.clone());
            }
        };
        add("device", &d.devices[c.device].axes);
        add("workload", &d.workloads[c.workload].axes);
        if let Some(m) = c.machine {
            add("machine", &d.machines[m].axes);
        }
        add("queue", &d.queues[c.queue].axes);
        Cell {
            name: parts.join(" / "),
            device: device.clone(),
            workload: workload.clone(),
            machine: machine.to_owned(),
            substrate: seekwell::Substrate::Sim.name().to_owned(),
            axes,
            primary: by.primary.info(&d.workloads[c.workload].spec.spec),
            rows: by.rows_info(&d.workloads[c.workload].spec.spec),
            checks: by.checks.clone(),
            treatments: run.to_vec(),
            reference,
            ..Cell::default()
        }
    }

    pub(super) fn treatments(&self, faults: &mut Faults, places: &Places) -> Vec<Treatment> {
        let mut all = Vec::new();
        for (i, (level, label)) in self
            .design
            .schedulers
            .iter()
            .zip(&self.schedulers)
            .enumerate()
        {
            let checked = seekwell_sim::spec::scheduler::checked(&level.spec);
            if let Some((_, s)) = faults.take(at(&places.schedulers, i), "scheduler", checked) {
                all.push(Treatment {
                    label: label.clone(),
                    scheduler: s.name,
                    version: s.version.unwrap_or_default(),
                    tunables: s.tunables,
                });
            }
        }
        all
    }
}
