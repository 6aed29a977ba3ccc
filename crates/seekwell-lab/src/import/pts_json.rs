//! Reads JSON results of the Phoronix Test Suite and of OpenBenchmarking.org. The current form has
//! `systems`, and `results` by hash. Clients until about 2021 wrote a list of results.

use super::harvest::{Harvest, Of, short};
use super::json::{first, mentions, text};
use super::pts_names::{disk_of, metric_of, test_of};
use super::pts_xml::figures;
use super::{Format, ImportError, Input, NameFrom, Place};
use serde_json::Value;

pub const FORMAT: Format = Format {
    name: "openbenchmarking-json",
    summary: "OpenBenchmarking.org or phoronix-test-suite result-file-to-json",
    becomes: "as pts-xml",
    gives: "runs (raw_values, all_results), else means without error",
    scheduler_from: NameFrom::System,
    known: |t| {
        mentions(t, &["\"results\""])
            && (mentions(t, &["\"systems\""])
                || mentions(t, &["\"all_results\""])
                || mentions(t, &["\"raw_values\""]))
    },
    part_of: None,
    read,
};

/// Returns the text of a number, or of a string that contains a number.
fn scalar(v: &Value) -> String {
    match v {
        Value::String(s) => s.clone(),
        Value::Number(n) => n.to_string(),
        _ => String::new(),
    }
}

/// Returns the values of single runs, from a list or from a string with colons.
fn runs(entry: &Value) -> Vec<String> {
    let named = ["raw_values", "all_results", "raw"];
    let Some(raw) = named.iter().find_map(|n| entry.get(n)) else {
        return Vec::new();
    };
    match raw {
        Value::Array(all) => all.iter().map(scalar).collect(),
        Value::String(s) if s.is_empty() => Vec::new(),
        Value::String(s) => s.split(':').map(str::to_owned).collect(),
        Value::Number(n) => vec![n.to_string()],
        _ => Vec::new(),
    }
}

/// Returns the disk of a system, whose hardware is an object or a list of lines.
fn disk(system: Option<&Value>) -> String {
    let hardware = system.and_then(|s| s.get("hardware"));
    match hardware {
        Some(Value::Object(parts)) => {
            short(parts.get("Disk").map_or("", |d| d.as_str().unwrap_or("")))
        }
        Some(Value::String(line)) => disk_of(line),
        _ => String::new(),
    }
}

fn recorded(system: Option<&Value>) -> String {
    let data = system.and_then(|s| s.get("data"));
    short(data.map_or("", |d| text(d, "disk-scheduler")))
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let (document, _) = first(input)?;
        if harvest.title.is_empty() {
            harvest.title = short(text(&document, "title"));
            harvest.description = short(text(&document, "description"));
        }
        let results: Vec<(String, &Value)> = match document.get("results") {
            Some(Value::Object(all)) => all.iter().map(|(k, v)| (k.clone(), v)).collect(),
            Some(Value::Array(all)) => all
                .iter()
                .enumerate()
                .map(|(i, v)| ((i + 1).to_string(), v))
                .collect(),
            _ => {
                let what = "has no `results`, neither an object nor a list";
                return Err(input.error(Place::File, what));
            }
        };
        for (key, result) in results {
            let title = match text(result, "title") {
                "" => text(result, "test"),
                title => title,
            };
            let described = match text(result, "description") {
                "" => text(result, "arguments"),
                d => d,
            };
            let scale = match text(result, "scale") {
                "" => text(result, "units"),
                s => s,
            };
            let test = test_of(title, text(result, "app_version"), described);
            let metric = metric_of(scale, text(result, "proportion"), harvest);
            let Some(Value::Object(entries)) = result.get("results") else {
                let at = Place::Element(format!("results/{}", short(&key)));
                return Err(input.error(at, "has no `results` by system"));
            };
            for (name, entry) in entries {
                let system = document.get("systems").and_then(|s| s.get(name));
                let of = Of {
                    system: short(name),
                    recorded: recorded(system),
                    device: disk(system),
                    test: test.clone(),
                    ..Of::default()
                };
                let raw = runs(entry);
                let raw: Vec<&str> = raw.iter().map(String::as_str).collect();
                let shown = entry.get("value").map(scalar).unwrap_or_default();
                figures(of, &metric, &shown, &raw, harvest)?;
            }
        }
    }
    Ok(())
}
