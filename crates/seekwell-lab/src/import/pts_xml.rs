//! Reads `composite.xml` of the Phoronix Test Suite. The runs are in `RawString`, separated by
//! colons.
//!
//! Sources: `result-file.xsd` and `types.xsd` of the client, and its result writers of 2012 and
//! 2026. Document types and entity declarations are rejected, because no client writes them.

use super::harvest::{Harvest, HarvestFigure, HarvestRun, Of, number, short, value};
use super::pts_names::{disk_of, metric_of, scheduler_in, test_of};
use super::{Format, ImportError, Input, NameFrom, Place};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::BTreeMap;

pub const FORMAT: Format = Format {
    name: "pts-xml",
    summary: "Phoronix Test Suite, composite.xml of a result",
    becomes: "system \"MACHINE: SCHEDULER\" or \"SCHEDULER\" -> machine and scheduler; the \
              system's Disk -> device; title, version and description -> workload",
    gives: "runs (RawString), else means without error",
    scheduler_from: NameFrom::System,
    known: |t| t.trim_start().starts_with('<') && t.contains("<PhoronixTestSuite"),
    part_of: None,
    read,
};

/// Largest depth of nested elements. The format needs five.
const DEPTH_MAX: usize = 16;
/// Largest text of one element in bytes. A series of a whole day is smaller.
const TEXT_MAX: usize = 4 << 20;

/// Texts by element name, for one System, Result or Entry.
type Fields = BTreeMap<String, String>;

fn get<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).map_or("", |t| t.trim())
}

/// The parser's position, and the elements that have been read.
#[derive(Default)]
struct Document {
    path: Vec<String>,
    text: String,
    generated: Fields,
    system: Fields,
    systems: Vec<Fields>,
    result: Fields,
    entry: Fields,
    entries: Vec<Fields>,
    results: Vec<(Fields, Vec<Fields>)>,
}

impl Document {
    /// Returns the position as a path of elements.
    fn place(&self) -> Place {
        let Some(last) = self.path.last() else {
            return Place::File;
        };
        let mut at = match self.path.get(1).map(String::as_str) {
            Some("Result") => format!("Result {}", self.results.len() + 1),
            Some("System") => format!("System {}", self.systems.len() + 1),
            _ => self.path[0].clone(),
        };
        if self.path.iter().any(|p| p == "Entry") {
            at += &format!("/Data/Entry {}", self.entries.len() + 1);
        }
        if !at.starts_with(last.as_str()) && !["Entry", "Data"].contains(&last.as_str()) {
            at += &format!("/{}", short(last));
        }
        Place::Element(at)
    }

    fn open(&mut self, name: &str) -> Result<(), String> {
        if self.path.is_empty() && name != "PhoronixTestSuite" {
            return Err(format!(
                "begins with <{}>, not <PhoronixTestSuite>: not a result of the Phoronix Test Suite",
                short(name)
            ));
        }
        if self.path.len() >= DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} elements inside each other"));
        }
        self.path.push(name.to_owned());
        self.text.clear();
        Ok(())
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        if self.text.len() + text.len() > TEXT_MAX {
            return Err(format!("more than {} MiB in one element", TEXT_MAX >> 20));
        }
        self.text.push_str(text);
        Ok(())
    }

    fn close(&mut self) {
        let Some(name) = self.path.pop() else {
            return;
        };
        let text = std::mem::take(&mut self.text);
        let path: Vec<&str> = self.path.iter().skip(1).map(String::as_str).collect();
        match (path.as_slice(), name.as_str()) {
            ([], "System") => self.systems.push(std::mem::take(&mut self.system)),
            ([], "Result") => {
                let result = std::mem::take(&mut self.result);
                self.results
                    .push((result, std::mem::take(&mut self.entries)));
            }
            (["Result", "Data"], "Entry") => self.entries.push(std::mem::take(&mut self.entry)),
            (["Generated"], _) => {
                self.generated.insert(name, text);
            }
            (["System"], _) => {
                self.system.insert(name, text);
            }
            (["Result"], _) => {
                self.result.insert(name, text);
            }
            (["Result", "Data", "Entry"], _) => {
                self.entry.insert(name, text);
            }
            _ => {}
        }
    }
}

/// Returns the text of a predefined entity, which needs no document type.
fn resolve(name: &str) -> Option<&'static str> {
    Some(match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => return None,
    })
}

fn event(d: &mut Document, event: Event) -> Result<bool, String> {
    match event {
        Event::Start(e) => d.open(e.name().as_ref())?,
        Event::Empty(e) => {
            d.open(e.name().as_ref())?;
            d.close();
        }
        Event::End(_) => d.close(),
        Event::Text(t) => d.add(&t.xml10_content())?,
        Event::CData(t) => d.add(&t.xml10_content())?,
        Event::GeneralRef(r) => {
            let name = r.xml10_content();
            match (r.resolve_char_ref(), resolve(&name)) {
                (Ok(Some(c)), _) => d.add(c.encode_utf8(&mut [0; 4]))?,
                (_, Some(text)) => d.add(text)?,
                _ => {
                    return Err(format!(
                        "&{}; is not one of XML's five predefined entities; others are not \
                         supported",
                        short(&name)
                    ));
                }
            }
        }
        Event::DocType(_) => {
            return Err(
                "has a document type (<!DOCTYPE ...>), which is not supported; remove it"
                    .to_owned(),
            );
        }
        Event::Decl(decl) => {
            if let Some(Ok(encoding)) = decl.encoding()
                && !["utf-8", "utf8", "us-ascii"].contains(&encoding.to_lowercase().as_str())
            {
                return Err(format!(
                    "is declared to be {}; convert it and its declaration to UTF-8 first (iconv)",
                    short(&encoding)
                ));
            }
        }
        Event::Comment(_) | Event::PI(_) => {}
        Event::Eof => return Ok(false),
    }
    Ok(true)
}

fn parse(input: &Input) -> Result<Document, ImportError> {
    let mut reader = Reader::from_str(&input.text);
    let mut d = Document::default();
    let line = |at: u64| {
        let at = usize::try_from(at)
            .unwrap_or(usize::MAX)
            .min(input.text.len());
        Place::Line(
            1 + input.text.as_bytes()[..at]
                .iter()
                .filter(|b| **b == b'\n')
                .count(),
        )
    };
    loop {
        let next = match reader.read_event() {
            Ok(next) => next,
            Err(e) => {
                let what = format!("is not well-formed XML: {e}");
                return Err(input.error(line(reader.error_position()), what));
            }
        };
        match event(&mut d, next) {
            Ok(true) => {}
            Ok(false) => break,
            Err(what) => {
                let place = match d.path.is_empty() {
                    true => line(reader.buffer_position()),
                    false => d.place(),
                };
                return Err(input.error(place, what));
            }
        }
    }
    if let Some(open) = d.path.last() {
        let what = format!("ends inside <{}>: the file was truncated", short(open));
        return Err(input.error(d.place(), what));
    }
    Ok(d)
}

fn read(inputs: &[Input], harvest: &mut Harvest) -> Result<(), ImportError> {
    for input in inputs {
        let d = parse(input)?;
        if harvest.title.is_empty() {
            harvest.title = short(get(&d.generated, "Title"));
            harvest.description = short(get(&d.generated, "Description"));
        }
        let systems: BTreeMap<&str, &Fields> = d
            .systems
            .iter()
            .map(|s| (get(s, "Identifier"), s))
            .collect();
        for (number, (result, entries)) in d.results.iter().enumerate() {
            let test = test_of(
                get(result, "Title"),
                get(result, "AppVersion"),
                get(result, "Description"),
            );
            let scale = get(result, "Scale");
            let metric = metric_of(scale, get(result, "Proportion"), harvest);
            for (e, entry) in entries.iter().enumerate() {
                let name = get(entry, "Identifier");
                let at = format!("Result {}/Data/Entry {}", number + 1, e + 1);
                if name.is_empty() {
                    let what = "has no Identifier, so its system is unknown";
                    return Err(input.error(Place::Element(at), what));
                }
                let system = systems.get(name);
                let of = Of {
                    system: short(name),
                    recorded: system.map_or(String::new(), |s| scheduler_in(get(s, "JSON"))),
                    device: system.map_or(String::new(), |s| disk_of(get(s, "Hardware"))),
                    test: test.clone(),
                    ..Of::default()
                };
                entry_of(entry, of, &metric, harvest)?;
            }
        }
    }
    Ok(())
}

/// Adds the values of one bar of a chart.
pub(super) fn figures(
    of: Of,
    metric: &crate::data::MetricInfo,
    shown: &str,
    raw: &[&str],
    harvest: &mut Harvest,
) -> Result<(), ImportError> {
    if !raw.is_empty() {
        check_mean(&of, shown, raw, harvest);
        return harvest.runs_of(&of, metric, raw);
    }
    if shown.is_empty() {
        harvest.note(format!("{}, {}: no value, left out", of.test, of.system));
        return Ok(());
    }
    let series: Vec<&str> = shown.split(',').collect();
    if series.len() > 1 {
        let seconds: Result<Vec<f64>, _> =
            series.iter().map(|t| number(t).map(|n| n.value)).collect();
        return match seconds {
            Ok(all) => {
                harvest.note(format!(
                    "{}: a series; its mean is used as one run",
                    of.test
                ));
                let mean = all.iter().sum::<f64>() / all.len() as f64;
                harvest.run(HarvestRun {
                    of,
                    values: vec![value(metric.clone(), mean, 0)],
                    ..HarvestRun::default()
                })
            }
            Err(_) => {
                harvest.note(format!("{}: not numbers, left out", of.test));
                Ok(())
            }
        };
    }
    match number(shown) {
        Ok(mean) => harvest.figure(HarvestFigure {
            of,
            metric: metric.clone(),
            mean,
            ..HarvestFigure::default()
        }),
        Err(why) => {
            harvest.note(format!("{}, {}: {why}, left out", of.test, of.system));
            Ok(())
        }
    }
}

fn entry_of(
    entry: &Fields,
    of: Of,
    metric: &crate::data::MetricInfo,
    harvest: &mut Harvest,
) -> Result<(), ImportError> {
    let raw = get(entry, "RawString");
    let raw: Vec<&str> = match raw.is_empty() {
        true => Vec::new(),
        false => raw.split(':').collect(),
    };
    figures(of, metric, get(entry, "Value"), &raw, harvest)
}

/// Adds a note if Value is not the mean of the runs, to its own digits or half a percent.
fn check_mean(of: &Of, shown: &str, raw: &[&str], harvest: &mut Harvest) {
    let Ok(told) = number(shown) else {
        return;
    };
    let runs: Vec<f64> = raw
        .iter()
        .filter_map(|t| number(t).ok().map(|n| n.value))
        .collect();
    if runs.is_empty() {
        return;
    }
    let mean = runs.iter().sum::<f64>() / runs.len() as f64;
    let allowed = told.step.unwrap_or(0.0).max(0.005 * mean.abs());
    if (mean - told.value).abs() > allowed {
        harvest.note(format!(
            "{}, {}: Value {} is not the mean of its runs ({mean:.6}); the runs are used",
            of.test, of.system, told.value
        ));
    }
}
