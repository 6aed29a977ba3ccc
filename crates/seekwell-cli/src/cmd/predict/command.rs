//! `seekwell predict PATH -- COMMAND`: records a command once, and repeats its requests in the
//! simulation under each scheduler.

use super::recording::Recording;
use super::simulate::Prepared;
use super::{device, schedulers, show};
use crate::cli::Predict;
use crate::cmd::switch::show::{program, quoted};
use crate::fail::Failure;
use crate::out::{Out, width};
use seekwell_host::MachineFacts;
use seekwell_lab::host::HostWork;
use seekwell_lab::predict::{Claim, Translation, experiment_of_recording};
use std::path::Path;

/// Largest probability of a predicted difference. In two checks on served disks, no sign of 7
/// measured differences was right (docs/predict.md), so the score of scripts does not apply.
const CHANCE: f64 = 0.5;

/// Returns how to verify the prediction on the disk. A command that ends when its work is done is
/// repeated under each scheduler. Rates and latencies are measured while the command repeats.
fn verification(a: &Predict, path: &Path, r: &Recording, facts: &MachineFacts) -> String {
    let mut words = vec!["sudo".to_owned(), program()];
    let compare = r.by_duration() && !facts.fs.is_empty();
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    words.extend(match compare {
        true => ["compare", "--host"].map(str::to_owned).to_vec(),
        false => vec!["trial".to_owned()],
    });
    words.push(quoted(&path.display().to_string()));
    if compare {
        let cwd = std::env::current_dir().unwrap_or_default();
        let line = format!(
            "cmd:cd {} && {}",
            quoted(&cwd.display().to_string()),
            r.command
        );
        words.extend(["-w".to_owned(), quoted(&line)]);
    } else {
        words.extend(["--for", "30m"].map(str::to_owned));
    }
    if let Some(list) = &a.schedulers {
        words.extend(["-s".to_owned(), quoted(list)]);
    }
    words.extend(["--confirm".to_owned(), quoted(&facts.device)]);
    match compare {
        true => words.join(" "),
        false => format!(
            "{} (while {} runs again and again)",
            words.join(" "),
            r.label
        ),
    }
}

/// Runs and records the command, and predicts.
pub fn run(a: &Predict, path: &Path, facts: &MachineFacts, quiet: bool) -> Result<(), Failure> {
    let output = a.output.output.as_deref();
    let schedulers = schedulers(a, facts, quiet)?;
    let (device, origin) = device(a, facts, quiet)?;
    // A wrong device is reported before the command runs.
    Translation::of_recording(facts, &device).map_err(|e| Failure::words("", &e))?;
    let r = Recording::make(a, path, facts, quiet)?;
    let work = HostWork::alone(r.label.clone(), r.workload()?);
    let e = experiment_of_recording(work, r.deciding(), &schedulers, facts, path);
    let e = e.map_err(|e| Failure::input(e.to_string()))?;
    let mut prepared = Prepared::new(&e, facts, &device)?;
    prepared.plan.left.extend(r.limits());
    let mut forecast = prepared.simulate(quiet)?;
    for p in forecast
        .predictions
        .iter_mut()
        .filter(|p| p.claim != Claim::Level)
    {
        p.odds.probability = p.odds.probability.min(CHANCE);
    }
    let verify = verification(a, path, &r, facts);
    let mut out = Out::open(output)?;
    if a.json {
        let mut doc = show::json(&prepared, &forecast, origin, &verify);
        doc["recording"] = r.json(&forecast);
        out.json(&doc)?;
    } else {
        let recorded = r.text(&forecast, width());
        let text = show::text(&prepared, &forecast, origin, &recorded, &verify, width());
        out.text(&text)?;
    }
    out.done()
}
