//! Reads hyperfine's `--export-json`, which contains all times of each command.

use super::harvest::{Harvest, HarvestRun, Of, measured, metric, short, value};
use super::json::{first, mentions, text};
use super::names::known;
use super::{Format, ImportError, Input, NameFrom, Place};
use crate::data::Outcome;
use serde_json::Value;

pub const FORMAT: Format = Format {
    name: "hyperfine",
    summary: "hyperfine --export-json",
    becomes: "a parameter that names schedulers, else the file's or its folder's name, else the \
              command or its parameters -> scheduler; the command -> workload",
    gives: "runs (times)",
    scheduler_from: NameFrom::File,
    known: |t| mentions(t, &["\"results\"", "\"command\""]),
    part_of: None,
    read,
};

/// Returns the names for one result: scheduler or command, and test.
fn names_of(result: &Value) -> Of {
    let command = short(text(result, "command"));
    let empty = serde_json::Map::new();
    let parameters = result
        .get("parameters")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let said: Vec<(&String, &str)> = parameters
        .iter()
        .filter_map(|(k, v)| Some((k, v.as_str()?)))
        .collect();
    let mut all = said.iter();
    let named = all.find(|(k, v)| {
        ["scheduler", "sched", "elevator"].contains(&k.to_lowercase().as_str())
            || known(v).is_some()
    });
    if let Some((_, scheduler)) = named {
        return Of {
            scheduler: short(scheduler),
            test: command.replace(scheduler, "*"),
            ..Of::default()
        };
    }
    let listed: Vec<String> = said.iter().map(|(k, v)| format!("{k}={v}")).collect();
    Of {
        system: if listed.is_empty() {
            command.clone()
        } else {
            short(&listed.join(" "))
        },
        test: command,
        ..Of::default()
    }
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let (document, _) = first(input)?;
        let results = document.get("results").and_then(Value::as_array);
        let Some(results) = results else {
            return Err(input.error(Place::File, "has no list `results`"));
        };
        let mut whose: Vec<Of> = results.iter().map(names_of).collect();
        // If the file's name contains a scheduler, each command is a workload. Otherwise the
        // commands are the treatments, and together they form one workload.
        let by_file = !super::names::of_file(&input.name).scheduler.is_empty();
        if !by_file && whose.len() > 1 && whose.iter().all(|o| o.scheduler.is_empty()) {
            let test = short(&format!("commands of {}", input.base()));
            whose.iter_mut().for_each(|o| o.test = test.clone());
        }
        let time = metric("time", "s", false);
        for (i, (result, of)) in results.iter().zip(whose).enumerate() {
            let Some(times) = result.get("times").and_then(Value::as_array) else {
                let what = "has no `times`: hyperfine's own summary cannot be tested without the \
                            number of runs; export JSON again with hyperfine 1.4 or newer";
                return Err(input.error(Place::Element(format!("results {}", i + 1)), what));
            };
            let codes = result.get("exit_codes").and_then(Value::as_array);
            for (n, t) in times.iter().enumerate() {
                let code = codes
                    .and_then(|c| c.get(n))
                    .and_then(Value::as_i64)
                    .unwrap_or(0);
                let seconds = t
                    .as_f64()
                    .ok_or("not a number".to_owned())
                    .and_then(measured);
                let outcome = match &seconds {
                    Err(why) => Outcome::Failed(why.clone()),
                    Ok(_) if code != 0 => Outcome::Failed(format!("exit code {code}")),
                    Ok(_) => Outcome::Done,
                };
                let seconds = seconds.unwrap_or(0.0);
                harvest.run(HarvestRun {
                    of: of.clone(),
                    outcome,
                    values: vec![value(time.clone(), seconds, 0)],
                    duration_ns: (seconds.max(0.0) * 1e9) as u64,
                    ..HarvestRun::default()
                })?;
            }
        }
    }
    Ok(())
}
