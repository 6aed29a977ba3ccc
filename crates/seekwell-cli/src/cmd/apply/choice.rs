//! The scheduler to apply, given by name or by the recommendation of results.

use super::is_path;
use crate::cli::Apply;
use crate::cmd::switch::tunables;
use crate::fail::Failure;
use seekwell_core::prose::in_prose;
use seekwell_host::block::Device;
use seekwell_lab::analysis::{Analysis, Group, analyse};
use seekwell_lab::results::{Results, read};
use std::path::Path;

/// A scheduler with tunables, and notes for the user.
pub struct Choice {
    pub scheduler: String,
    pub tunables: Vec<(String, String)>,
    pub says: Vec<String>,
}

impl Choice {
    pub fn read(a: &Apply, what: &str, device: &Device) -> Result<Choice, Failure> {
        let asked = tunables(&a.tunable)?;
        let mut choice = match is_path(what) {
            true => Choice::of_results(a, Path::new(what), device)?,
            false => Choice {
                scheduler: what.to_owned(),
                tunables: Vec::new(),
                says: Vec::new(),
            },
        };
        for (name, value) in asked {
            choice.tunables.retain(|t| t.0 != name);
            choice.tunables.push((name, value));
        }
        Ok(choice)
    }

    fn of_results(a: &Apply, dir: &Path, device: &Device) -> Result<Choice, Failure> {
        let results = read(dir).map_err(|e| Failure::input(e.to_string()))?;
        let analysis = analyse(&results);
        let name = dir.display();
        let group =
            group(a, &analysis.groups).map_err(|why| Failure::input(format!("{name}: {why}")))?;
        let label = |t: usize| analysis.treatments.get(t).map_or("?", String::as_str);
        let Some(pick) = group.pick else {
            let least = group.not_beaten.iter().map(|t| in_prose(label(*t)));
            let least: Vec<String> = least.collect();
            return Err(Failure::input(format!(
                "{name}: the results do not show a single best scheduler (not behind any: {}); \
                 name one of them, or run more repeats",
                least.join(", ")
            )));
        };
        let Some(treatment) = results.treatments.get(pick) else {
            return Err(Failure::input(format!("{name}: is damaged")));
        };
        let mut says = vec![format!(
            "{name}: {} on {} ({})",
            in_prose(&treatment.label),
            group.device,
            group.decision
        )];
        says.extend(warned(&results, &analysis, group, device));
        Ok(Choice {
            scheduler: treatment.scheduler.clone(),
            tunables: treatment.tunables.clone().into_iter().collect(),
            says,
        })
    }
}

/// Returns the device of the results that the user selects with `--measured-on`, or the only one.
fn group<'a>(a: &Apply, groups: &'a [Group]) -> Result<&'a Group, String> {
    let named = |g: &&Group| a.measured_on.as_ref().is_none_or(|d| g.device == *d);
    let mut all = groups.iter().filter(named);
    let list = || {
        let names: Vec<&str> = groups.iter().map(|g| g.device.as_str()).collect();
        names.join(", ")
    };
    match (all.next(), all.next()) {
        (Some(one), None) => Ok(one),
        (None, _) if groups.is_empty() => Err("contains no comparison".to_owned()),
        (None, _) => Err(format!("has no such device: there are {}", list())),
        (Some(_), Some(_)) => Err(format!(
            "has several devices or machines ({}): select one with --measured-on",
            list()
        )),
    }
}

/// Returns a warning for each difference between the measured device and the device to set.
fn warned(results: &Results, analysis: &Analysis, group: &Group, device: &Device) -> Vec<String> {
    let mut says = Vec::new();
    if analysis.measured(results, group).any(|c| c.virtual_time()) {
        says.push(format!(
            "these are results of a modelled disk ({}), not of {}: `seekwell compare --host` measures \
             the real one",
            group.device, device.name
        ));
    }
    says
}
