//! `seekwell predict`: predicts by simulation which scheduler the disk below a path should have,
//! with the probability that the prediction is right.

mod command;
mod record;
mod recording;
pub mod scored;
mod show;
pub mod simulate;
mod stored;
mod verify;

use super::calibrate;
use crate::cli::Predict;
use crate::fail::Failure;
use crate::out::{Out, note, width};
use seekwell::SchedulerSpec;
use seekwell_host::MachineFacts;
use seekwell_host::block::Tree;
use seekwell_lab::host::file;
use seekwell_lab::host::words::{HostWork, SCRIPT, work};
use seekwell_lab::predict::{can_simulate, experiment_of, nearest, offered};
use seekwell_lab::usual::TODAY;
use show::Origin;
use simulate::Prepared;
use std::collections::BTreeMap;
use std::path::Path;

/// Returns a workload that can be simulated. For a program that has a script of the same name, it
/// is the script.
fn workload(text: &str, quiet: bool) -> Result<HostWork, Failure> {
    let found = work(text, &BTreeMap::new()).map_err(|e| Failure::words("", &e))?;
    if can_simulate(&found.spec) {
        return Ok(found);
    }
    let script = format!("{SCRIPT}{text}");
    match work(&script, &BTreeMap::new()) {
        Ok(own) if can_simulate(&own.spec) => {
            note(
                quiet,
                &format!("{text}: the script of this name is simulated, not the program"),
            );
            Ok(own)
        }
        _ => Err(Failure::input(format!(
            "{text}: programs cannot be simulated. Use a script (`seekwell workloads`), or record \
             the program: seekwell predict PATH -- COMMAND"
        ))),
    }
}

/// Returns the workloads: a text with a parameter is one workload, and other texts are lists.
fn workloads(a: &Predict, quiet: bool) -> Result<Vec<HostWork>, Failure> {
    if a.workload.is_empty() {
        return TODAY.workloads.iter().map(|w| workload(w, quiet)).collect();
    }
    let mut all = Vec::new();
    for text in &a.workload {
        let alone = text.contains([':', '/', ' ']) || text.ends_with(".toml");
        match alone {
            true => all.push(workload(text, quiet)?),
            false => {
                for one in text.split(',').map(str::trim).filter(|s| !s.is_empty()) {
                    all.push(workload(one, quiet)?);
                }
            }
        }
    }
    Ok(all)
}

/// Returns the modelled device and its origin.
fn device(
    a: &Predict,
    facts: &MachineFacts,
    quiet: bool,
) -> Result<(String, Origin<'static>), Failure> {
    if let Some(device) = &a.device {
        return Ok((device.clone(), Origin::Named));
    }
    if a.calibrate {
        let node = Path::new("/dev").join(facts.device.replace('!', "/"));
        let preset = calibrate::preset_of(&node, quiet)?;
        return Ok((preset, Origin::Calibrated));
    }
    let found = nearest(facts);
    Ok((found.preset.to_owned(), Origin::Nearest(found.class)))
}

/// Returns the schedulers to compare, with their labels.
fn schedulers(
    a: &Predict,
    facts: &MachineFacts,
    quiet: bool,
) -> Result<Vec<(String, SchedulerSpec)>, Failure> {
    let Some(list) = &a.schedulers else {
        return Ok(offered(facts));
    };
    let all = file::schedulers(list).map_err(|e| Failure::input(e.to_string()))?;
    let named = all.into_iter().map(|l| {
        let label = l.name.unwrap_or_else(|| l.spec.name.clone());
        (label, l.spec)
    });
    let named: Vec<_> = named.collect();
    if named.iter().all(|s| s.1.name != facts.scheduler) {
        note(
            quiet,
            &format!(
                "-s does not contain the active scheduler \"{}\": the predictions compare with the \
                 first one instead",
                facts.scheduler
            ),
        );
    }
    Ok(named)
}

/// Runs the command.
pub fn run(a: &Predict, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    if a.record {
        return record::run(output, a.json);
    }
    if let Some(dir) = &a.of {
        return stored::run(a, dir, quiet);
    }
    let path = a.path.as_deref().unwrap_or(Path::new("."));
    let facts = MachineFacts::read(&Tree::default(), path).map_err(Failure::input)?;
    if !a.command.is_empty() {
        return command::run(a, path, &facts, quiet);
    }
    let work = workloads(a, quiet)?;
    let schedulers = schedulers(a, &facts, quiet)?;
    let e = experiment_of(&work, &schedulers, &facts, path);
    let e = e.map_err(|e| Failure::input(e.to_string()))?;
    let (device, origin) = device(a, &facts, quiet)?;
    let prepared = Prepared::new(&e, &facts, &device)?;
    let forecast = prepared.simulate(quiet)?;
    let verify = verify::command(a, path, &work, &device, &facts);
    if !(a.verify && a.json) {
        // With --verify and --json, the only document is that of the measurement.
        let mut out = Out::open(output.filter(|_| !a.verify))?;
        match a.json {
            true => out.json(&show::json(&prepared, &forecast, origin, &verify))?,
            false => out.text(&show::text(
                &prepared,
                &forecast,
                origin,
                "",
                &verify,
                width(),
            ))?,
        }
        out.done()?;
    }
    match a.verify {
        true => verify::run(a, path, &work, &device, quiet),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_replaced_by_the_script_of_its_name() {
        let found = workload("pgbench", true).expect("there is a script");
        assert!(can_simulate(&found.spec));
        assert_eq!(found.asked.0, "script:pgbench");
        let e = workload("cmd:true", true).expect_err("no script");
        let e = e.to_string();
        assert!(e.contains("programs cannot be simulated"), "{e}");
    }
}
