//! Expands an experiment on this machine into cells, treatments and runs.

use super::device::DeviceOf;
use super::words::{What, placement_of};
use super::{HostDesign, HostWork};
use crate::experiment::{CellPlan, Deciding, Experiment, Faults, Place, Primary};
use crate::results::{About, Cell, MetricInfo, Treatment};
use seekwell::{DeviceSpec, RunSpec, SchedulerSpec, SpecErrors, Substrate};
use seekwell_core::once::Once;
use seekwell_core::prose::in_prose;
use seekwell_host::block::Device;
use seekwell_host::switch::{Wish, check, names};
use seekwell_sched::{WBT_LAT_USEC, wbt};
use std::collections::BTreeMap;

impl HostDesign {
    /// Returns the experiment in the directory of `on`. Checks the programs, schedulers and
    /// tunables of every run.
    ///
    /// # Errors
    /// All errors in the design.
    pub fn experiment(&self, on: &DeviceOf) -> Result<Experiment, Faults> {
        let mut faults = Faults::default();
        let wanted = self.schedulers(on, &mut faults);
        let mut notes = self.notes(on, &wanted);
        let mut cells = Vec::new();
        for w in &self.work {
            let label = format!("workload `{}`", w.label);
            let deciding = faults.take(Place::default(), &label, deciding(w));
            if let Some((deciding, info)) = deciding {
                cells.push(self.cell(on, w, &wanted, deciding, info));
            }
        }
        if self.work.is_empty() {
            faults.push(
                Place::default(),
                "workload",
                "there is none: name at least one",
            );
        }
        let treatments = wanted.iter().map(|s| Treatment {
            label: s.label.clone(),
            scheduler: s.name.clone(),
            version: String::new(),
            tunables: s.own.clone(),
        });
        let treatments = treatments.collect();
        faults.or(())?;
        notes.extend(on.warnings());
        Ok(Experiment {
            about: About {
                name: self.design.name.clone(),
                description: self.design.description.clone(),
                method: self.design.method.clone(),
                source: "experiment".to_owned(),
                paired: true,
                notes,
            },
            cells,
            treatments,
            text: self.text.clone(),
            design: self.design.clone(),
        })
    }

    /// Returns the schedulers of the experiment. If schedulers cannot be set, this is only the
    /// active one.
    fn schedulers(&self, on: &DeviceOf, faults: &mut Faults) -> Vec<Wanted> {
        let mut all = Vec::new();
        if !on.may_set() {
            return vec![Wanted {
                label: on.in_force(),
                name: on.in_force(),
                own: BTreeMap::new(),
                set: BTreeMap::new(),
            }];
        }
        let asked: Vec<(String, SchedulerSpec)> = match self.design.schedulers.is_empty() {
            true => on
                .offered()
                .into_iter()
                .map(|name| (name.clone(), kernel_name(name)))
                .collect(),
            false => self
                .design
                .schedulers
                .iter()
                .map(|l| {
                    let label = l.name.clone().unwrap_or_else(|| label(&l.spec));
                    (label, l.spec.clone())
                })
                .collect(),
        };
        for (label, spec) in asked {
            let mut set = spec.tunables.clone();
            for (name, value) in &self.equal {
                // Under `none`, `nr_requests` changes the number of driver tags. The change remains
                // under other schedulers, and no attribute shows it.
                let hidden = name == "nr_requests" && spec.name == "none";
                if on.has(name) && !hidden {
                    set.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
            let tunables: Vec<(String, String)> = set.clone().into_iter().collect();
            for device in on.devices() {
                let wish = Wish {
                    device,
                    scheduler: &spec.name,
                    tunables: &tunables,
                };
                if let Err(why) = check(on.tree(), &wish) {
                    let field = format!("scheduler `{label}`");
                    faults.push(Place::default(), field, format!("{}: {why}", device.name));
                }
            }
            all.push(Wanted {
                label,
                name: spec.name,
                own: spec.tunables,
                set,
            });
        }
        all
    }

    fn notes(&self, on: &DeviceOf, wanted: &[Wanted]) -> Vec<String> {
        let mut notes = vec![format!("real runs: {}", on.describe())];
        if !on.may_set() {
            notes.push(match on.devices().is_empty() {
                true => "no scheduler can be chosen for this directory: the result is a \
                         measurement without a comparison"
                    .to_owned(),
                false => format!(
                    "nothing could be set (not root): measured under the active scheduler {}",
                    in_prose(&on.in_force())
                ),
            });
            return notes;
        }
        let equal: Vec<String> = self
            .equal
            .iter()
            .filter(|e| on.has(&e.0))
            .map(|(k, v)| format!("{k} {v}"))
            .collect();
        notes.push(match equal.is_empty() {
            true => "the other queue settings were those of the machine".to_owned(),
            false => format!("set for all runs: {}", equal.join(", ")),
        });
        notes.extend(on.devices().iter().filter_map(unusual_throttle));
        if wanted.iter().any(|w| w.own.contains_key(WBT_LAT_USEC.name)) {
            notes.push(
                "wbt_lat_usec is written for some schedulers and restored at the end; until the \
                 next boot, the kernel then neither disables it for bfq nor enables it for other \
                 schedulers"
                    .to_owned(),
            );
        }
        let depth = self.equal.iter().any(|e| e.0 == "nr_requests");
        if depth && wanted.iter().any(|w| w.name == "none") {
            notes.push(
                "nr_requests is not set under `none`, because it would change the number of driver \
                 tags".to_owned(),
            );
        }
        notes
    }

    fn cell(
        &self,
        on: &DeviceOf,
        w: &HostWork,
        wanted: &[Wanted],
        deciding: Deciding,
        info: MetricInfo,
    ) -> CellPlan {
        let specs = wanted.iter().map(|s| RunSpec {
            substrate: Substrate::Host,
            machine: None,
            seed: self.design.method.seed,
            limit_s: w.limit_s,
            label: Some(s.label.clone()),
            beside: w.beside.clone(),
            ..RunSpec::new(
                DeviceSpec {
                    spec: on.path().display().to_string(),
                    ..DeviceSpec::default()
                },
                SchedulerSpec {
                    name: s.name.clone(),
                    version: None,
                    tunables: s.set.clone(),
                },
                w.spec.clone(),
            )
        });
        let device = on.label();
        CellPlan {
            cell: Cell {
                name: format!("{device} / {}", w.label),
                device,
                workload: w.label.clone(),
                substrate: Substrate::Host.name().to_owned(),
                primary: info,
                rows: deciding.rows_info(&w.spec),
                checks: deciding.checks.clone(),
                treatments: (0..wanted.len()).collect(),
                reference: self.reference(on, wanted),
                ..Cell::default()
            },
            deciding,
            specs: specs.collect(),
        }
    }

    /// Returns the index of the reference: the requested, else the active, else the first
    /// scheduler.
    fn reference(&self, on: &DeviceOf, wanted: &[Wanted]) -> usize {
        let named = self.design.reference.clone();
        let named = named.unwrap_or_else(|| on.in_force());
        let is = |w: &Wanted| w.label == named || w.name == named;
        wanted.iter().position(is).unwrap_or(0)
    }
}

/// Returns a warning if the writeback throttling of a queue differs from the kernel's default.
fn unusual_throttle(d: &Device) -> Option<String> {
    let reads = u64::try_from(d.wbt_lat_usec?).ok()?;
    let scheduler = d.scheduler.active()?;
    let usual = wbt::default_usec(scheduler, d.rotational?);
    (reads != usual).then(|| {
        format!(
            "{}: wbt_lat_usec is {reads} under {}, but the kernel's default is {usual}: \
             it was changed, or the kernel was built differently; each scheduler uses the value \
             that the kernel derives from it",
            d.name,
            in_prose(scheduler)
        )
    })
}

struct Wanted {
    label: String,
    name: String,
    own: BTreeMap<String, String>,
    /// The scheduler's tunables, and the queue attributes that are the same for all runs.
    set: BTreeMap<String, String>,
}

fn kernel_name(name: String) -> SchedulerSpec {
    SchedulerSpec {
        name,
        ..SchedulerSpec::default()
    }
}

fn label(s: &SchedulerSpec) -> String {
    let mut text = s.name.clone();
    for (name, value) in &s.tunables {
        text += &format!(":{name}={value}");
    }
    text
}

/// Returns the metrics that decide, with the properties that are known before a run. A missing
/// program is an error.
pub(crate) fn deciding(w: &HostWork) -> Result<(Deciding, MetricInfo), SpecErrors> {
    let (what_runs, _) = placement_of(&w.spec)?;
    for b in &w.beside {
        if let (What::Program(recipe, _), _) = placement_of(&b.workload)? {
            let here = recipe.check();
            here.map_err(|e| SpecErrors::single("beside", e.to_string()))?;
        }
    }
    if let What::Program(recipe, _) = &what_runs {
        let here = recipe.check();
        here.map_err(|e| SpecErrors::single("", e.to_string()))?;
        let find = |name: &String| recipe.metrics.iter().find(|m| m.name == *name);
        let metric = match &w.metric {
            None => recipe.metrics.first(),
            Some(name) => {
                let known: Vec<&str> = recipe.metrics.iter().map(|m| m.name.as_str()).collect();
                let mut errors = SpecErrors::default();
                if find(name).is_none() {
                    let text = format!("{} has no metric \"{name}\"", recipe.name);
                    errors.unknown("", &text, name, &known);
                }
                errors.or(())?;
                find(name)
            }
        };
        let info = metric.map(|m| MetricInfo::from(&m.metric(0.0)));
        let info = info.unwrap_or_default();
        let primary = Primary::Metric(info.name.clone());
        return Ok((Deciding::alone(primary), info));
    }
    if let (What::OwnWork, Some(name)) = (&what_runs, &w.metric) {
        // The trial knows the unit and the direction of its metrics.
        let info = MetricInfo {
            name: name.clone(),
            ..MetricInfo::default()
        };
        return Ok((Deciding::alone(Primary::Metric(name.clone())), info));
    }
    let deciding = match &w.metric {
        Some(text) => Deciding::alone(Primary::parse(text, &w.spec)?),
        None => Deciding::usual(&w.spec),
    };
    let info = deciding.primary.info(&w.spec);
    Ok((deciding, info))
}

/// Parses schedulers as on a command line, such as `bfq:low_latency=0,none`, with the kernel's
/// names.
///
/// # Errors
/// The text cannot be parsed.
pub(super) fn schedulers(text: &str) -> Result<Vec<(String, SchedulerSpec)>, String> {
    let mut all = Vec::new();
    for one in text.split(',').map(str::trim).filter(|s| !s.is_empty()) {
        let mut parts = one.split(':');
        let name = parts.next().unwrap_or_default();
        let (mut tunables, mut once) = (BTreeMap::new(), Once::default());
        for p in parts {
            let Some((k, v)) = p.split_once('=') else {
                return Err(format!("{one}: \"{p}\" is not a tunable: write NAME=VALUE"));
            };
            let once = once.take(k.trim(), p);
            once.map_err(|what| format!("{one}: {what}"))?;
            tunables.insert(k.to_owned(), v.to_owned());
        }
        // A name with a version exists only in the simulator.
        if let Some((known, _)) = name.rsplit_once('-')
            && names::tunables_of(known).is_some()
            && names::tunables_of(name).is_none()
            && name != "mq-deadline"
        {
            return Err(format!(
                "{one}: the running kernel determines the version; write {known}"
            ));
        }
        let spec = SchedulerSpec {
            name: name.to_owned(),
            version: None,
            tunables,
        };
        all.push((one.to_owned(), spec));
    }
    match all.is_empty() {
        true => Err("name at least one scheduler".to_owned()),
        false => Ok(all),
    }
}
