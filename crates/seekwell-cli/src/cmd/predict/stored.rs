//! `seekwell predict --of RESULTS`: predicts a stored experiment on a real disk, and scores the
//! predictions by its results. Nothing runs on the disk.

use super::scored::Compared;
use super::simulate::Prepared;
use crate::cli::Predict;
use crate::fail::Failure;
use crate::out::{Out, note, width};
use seekwell::result::{DeviceInfo, Host, QueueUsed, SchedulerUsed};
use seekwell::{Record, Substrate};
use seekwell_host::MachineFacts;
use seekwell_lab::analysis::analyse;
use seekwell_lab::predict::nearest;
use seekwell_lab::results::{environment, planned, read, records};
use serde::Deserialize;
use serde_json::json;
use std::path::Path;

/// The parts of a stored record that describe the machine.
#[derive(Deserialize)]
struct Part {
    host: Option<Host>,
    device: DeviceInfo,
    scheduler: SchedulerUsed,
    queue: Option<QueueUsed>,
}

impl From<Part> for Record {
    fn from(p: Part) -> Record {
        Record {
            host: p.host,
            device: p.device,
            scheduler: p.scheduler,
            queue: p.queue,
            ..Record::default()
        }
    }
}

/// Returns the facts about the machine of the runs.
fn facts(dir: &Path, active: &str) -> Result<MachineFacts, Failure> {
    let bad = |e: &dyn std::fmt::Display| Failure::input(format!("{}: {e}", dir.display()));
    let mut all: Vec<Record> = Vec::new();
    records(dir, |_, _, record| {
        let part = record.and_then(|r| serde_json::from_str::<Part>(r).ok());
        all.extend(part.map(Record::from));
    })
    .map_err(|e| bad(&e))?;
    if all.is_empty() {
        return Err(bad(&"contains no record of a run"));
    }
    let mut facts = MachineFacts::of_records(all.iter());
    active.clone_into(&mut facts.scheduler);
    Ok(facts)
}

/// Predicts and scores the stored experiment.
pub fn run(a: &Predict, dir: &Path, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    Out::check(output)?;
    let bad = |e: &dyn std::fmt::Display| Failure::input(format!("{}: {e}", dir.display()));
    let results = read(dir).map_err(|e| Failure::input(e.to_string()))?;
    if results
        .cells
        .iter()
        .any(|c| c.substrate != Substrate::Host.name())
    {
        return Err(bad(
            &"is not an experiment on a real disk; --of needs results of compare --host",
        ));
    }
    let e = planned(dir).map_err(|e| Failure::input(e.to_string()))?;
    let first = e.cells.first().map(|c| c.cell.reference);
    let active = first.and_then(|r| e.treatments.get(r));
    let active = active.map_or("none", |t| t.scheduler.as_str());
    let facts = facts(dir, active)?;
    let device = match &a.device {
        Some(device) => device.clone(),
        None => {
            let found = nearest(&facts);
            note(
                quiet,
                &format!(
                    "simulated on {}, {}: not your disk",
                    found.preset, found.class
                ),
            );
            found.preset.to_owned()
        }
    };
    let mut prepared = Prepared::new(&e, &facts, &device)?;
    // A prediction may not know the scores of the runs that it predicts.
    let began = environment(dir).map_err(|e| Failure::input(e.to_string()))?;
    let began = began.sessions.first().map_or(0, |s| s.began_unix_s);
    prepared.track.lines.retain(|l| l.unix_s < began);
    let forecast = prepared.simulate(quiet)?;
    let compared = Compared::new(prepared, &forecast, &analyse(&results));
    let mut out = Out::open(output)?;
    match a.json {
        true => out.json(&json!({
            "schema": 1, "command": "predict", "of": dir, "simulation": compared.json(),
        }))?,
        false => out.text(&compared.text(width()))?,
    }
    out.done()
}
