//! The file `composite.xml` of the Phoronix Test Suite. The elements have the order of its schema.
//! Each combination of device, machine and scheduler is a system. Each combination of workload,
//! axis values and metric is a result, which contains the values of all runs. The settings and the
//! environment are in the elements `Hardware` and `Software` of a system.
//!
//! The file does not contain failed runs. It does not contain blocks either, because the format
//! cannot express them.

use crate::results::{Cell, Outcome, Results, Run, Treatment, Value};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Largest length of the title of a result, in characters.
const TITLE_MAX: usize = 50;
/// Largest length of the title of a file and of the name of a system, in characters.
const NAME_MAX: usize = 126;
/// Largest length of the description of a file, in characters.
const DESCRIPTION_MAX: usize = 2048;

struct Xml<'a>(Writer<&'a mut dyn Write>);

impl Xml<'_> {
    fn begin(&mut self, name: &str) -> io::Result<()> {
        self.0.write_event(Event::Start(BytesStart::new(name)))
    }
    fn end(&mut self, name: &str) -> io::Result<()> {
        self.0.write_event(Event::End(BytesEnd::new(name)))
    }
    fn leaf(&mut self, name: &str, text: &str) -> io::Result<()> {
        let text = legal(text);
        self.0
            .create_element(name)
            .write_text_content(BytesText::new(&text))
            .map(|_| ())
    }
}

/// Replaces the characters that XML cannot represent with U+FFFD.
fn legal(text: &str) -> String {
    let bad = |c: char| {
        (c.is_control() && !matches!(c, '\t' | '\n')) || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    text.replace(bad, "\u{fffd}")
}

/// Shortens a text to `most` characters. The last character of a shortened text is an ellipsis.
fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['\u{2026}']).collect()
}

/// Formats a list of `Key: value` pairs. The characters that separate pairs are removed from the
/// values.
fn list(pairs: &[(&str, &str)]) -> String {
    let some = pairs.iter().filter(|p| !p.1.is_empty());
    let texts: Vec<String> = some
        .map(|(k, v)| format!("{k}: {}", v.replace(", ", ",")))
        .collect();
    texts.join(", ")
}

fn joined(map: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = map.iter().map(|(k, v)| format!("{k}={v}")).collect();
    pairs.join(" ")
}

/// Returns the name of a system: device, machine and scheduler.
fn system(cell: &Cell, treatment: &Treatment) -> String {
    let place = match cell.machine.as_str() {
        "" => cell.device.clone(),
        machine => format!("{} {machine}", cell.device),
    };
    format!("{place}: {}", treatment.label)
}

/// The values of one combination of workload, axis values and metric.
struct Test<'a> {
    cell: &'a Cell,
    metric: &'a crate::results::MetricInfo,
    /// The name and the values of each system: either the single runs or a published mean.
    entries: Vec<(String, Entry)>,
}

enum Entry {
    Runs(Vec<f64>),
    Mean(f64),
}

fn tests(results: &Results) -> Vec<Test<'_>> {
    let mut all: Vec<Test<'_>> = Vec::new();
    let mut at: BTreeMap<(usize, &str, &str), usize> = BTreeMap::new();
    for (place, cell) in results.cells.iter().enumerate() {
        // Cells with the same workload and axis values on other devices or machines belong to the
        // same test.
        let alike = |c: &Cell| (&c.workload, &c.axes) == (&cell.workload, &cell.axes);
        let first = results.cells.iter().position(alike).unwrap_or(place);
        // If an earlier cell of this test has the same device and machine, the cell becomes a
        // separate test.
        let clash = results.cells[..place]
            .iter()
            .any(|c| alike(c) && (&c.device, &c.machine) == (&cell.device, &cell.machine));
        let first = if clash { place } else { first };
        let mut add = |metric, treatment: usize, value: Result<f64, f64>| {
            let Some(treatment) = results.treatments.get(treatment) else {
                return;
            };
            let metric: &crate::results::MetricInfo = metric;
            let key = (first, metric.name.as_str(), metric.unit.as_str());
            let test = *at.entry(key).or_insert_with(|| {
                all.push(Test {
                    cell: &results.cells[first],
                    metric,
                    entries: Vec::new(),
                });
                all.len() - 1
            });
            let id = system(cell, treatment);
            let entries = &mut all[test].entries;
            let found = entries.iter().position(|e| e.0 == id);
            let found = found.unwrap_or_else(|| {
                entries.push((id, Entry::Runs(Vec::new())));
                entries.len() - 1
            });
            match (&mut entries[found].1, value) {
                (Entry::Runs(runs), Ok(value)) => runs.push(value),
                (entry, Err(mean)) => *entry = Entry::Mean(mean),
                (Entry::Mean(_), Ok(_)) => {}
            }
        };
        let runs = results.runs.iter().filter(|r| r.key.cell == place);
        let counts = |r: &&Run| !matches!(r.outcome, Outcome::Failed(_) | Outcome::Censored(_));
        let mut values: Vec<(usize, usize, &Value)> = Vec::new();
        for run in runs.filter(counts) {
            let finite = run
                .values
                .iter()
                .enumerate()
                .filter(|v| v.1.value.is_finite());
            values.extend(finite.map(|(i, v)| (i, run.key.treatment, v)));
        }
        // The primary metric comes first. The systems have the order of the cell.
        let primary = |v: &Value| v.metric.name != cell.primary.name;
        let order = |t: usize| cell.treatments.iter().position(|x| *x == t);
        values.sort_by_key(|(i, t, v)| (primary(v), *i, order(*t)));
        for (_, treatment, v) in values {
            add(&v.metric, treatment, Ok(v.value));
        }
        for s in results.summaries.iter().filter(|s| s.cell == place) {
            add(&s.metric, s.treatment, Err(s.mean));
        }
    }
    all
}

pub(super) fn write(results: &Results, date: Option<&str>, to: &mut dyn Write) -> io::Result<()> {
    let mut xml = Xml(Writer::new_with_indent(to, b' ', 2));
    let client = concat!("seekwell ", env!("CARGO_PKG_VERSION"));
    let when = format!("{}:00", date.unwrap_or("1970-01-01 00:00"));
    let about = &results.about;
    xml.0
        .write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    xml.begin("PhoronixTestSuite")?;
    xml.begin("Generated")?;
    let title = if about.name.is_empty() {
        "seekwell"
    } else {
        &about.name
    };
    xml.leaf("Title", &short(title, NAME_MAX))?;
    xml.leaf("LastModified", &when)?;
    xml.leaf("TestClient", client)?;
    xml.leaf("Description", &short(&about.description, DESCRIPTION_MAX))?;
    if !about.notes.is_empty() {
        xml.leaf("Notes", &about.notes.join("\n"))?;
    }
    xml.end("Generated")?;
    let mut seen = BTreeSet::new();
    for cell in &results.cells {
        for treatment in cell
            .treatments
            .iter()
            .filter_map(|t| results.treatments.get(*t))
        {
            let id = system(cell, treatment);
            if seen.insert(id.clone()) {
                one_system(&mut xml, &id, cell, treatment, &when, client)?;
            }
        }
    }
    for test in tests(results) {
        one_test(&mut xml, &test)?;
    }
    xml.end("PhoronixTestSuite")?;
    xml.0.get_mut().write_all(b"\n")
}

fn one_system(
    xml: &mut Xml<'_>,
    id: &str,
    cell: &Cell,
    treatment: &Treatment,
    when: &str,
    client: &str,
) -> io::Result<()> {
    xml.begin("System")?;
    xml.leaf("Identifier", id)?;
    xml.leaf(
        "Hardware",
        &list(&[("Disk", &cell.device), ("System", &cell.machine)]),
    )?;
    let tunables = joined(&treatment.tunables);
    let software = [
        ("Disk Scheduler", treatment.scheduler.as_str()),
        ("Version", &treatment.version),
        ("Tunables", &tunables),
        ("Substrate", &cell.substrate),
    ];
    xml.leaf("Software", &list(&software))?;
    xml.leaf("User", "")?;
    xml.leaf("TimeStamp", when)?;
    xml.leaf("TestClientVersion", client)?;
    xml.leaf("Notes", "")?;
    // The client of the suite stores the scheduler in this form, and importers read this element
    // first.
    let recorded = serde_json::json!({ "disk-scheduler": treatment.scheduler });
    xml.leaf("JSON", &recorded.to_string())?;
    xml.end("System")
}

fn one_test(xml: &mut Xml<'_>, test: &Test<'_>) -> io::Result<()> {
    let (cell, metric) = (test.cell, test.metric);
    let axes = joined(&cell.axes);
    let what: Vec<&str> = [cell.workload.as_str(), &axes, &metric.name]
        .into_iter()
        .filter(|t| !t.is_empty())
        .collect();
    let proportion = if metric.higher_is_better {
        "HIB"
    } else {
        "LIB"
    };
    xml.begin("Result")?;
    // The identifier is empty because this is not a test of the suite. With an identifier, the
    // suite would run that test again.
    xml.leaf("Identifier", "")?;
    xml.leaf("Title", &short(&cell.workload, TITLE_MAX))?;
    xml.leaf("AppVersion", "")?;
    // When the suite merges files, results with the same title and arguments are merged.
    xml.leaf("Arguments", &what.join(" "))?;
    xml.leaf("Description", &what[1..].join(" - "))?;
    xml.leaf("Scale", &metric.unit)?;
    xml.leaf("Proportion", proportion)?;
    xml.leaf("DisplayFormat", "BAR_GRAPH")?;
    xml.begin("Data")?;
    for (id, entry) in &test.entries {
        xml.begin("Entry")?;
        xml.leaf("Identifier", id)?;
        match entry {
            Entry::Runs(runs) => {
                let mean = runs.iter().sum::<f64>() / runs.len() as f64;
                xml.leaf("Value", &mean.to_string())?;
                let texts: Vec<String> = runs.iter().map(f64::to_string).collect();
                xml.leaf("RawString", &texts.join(":"))?;
            }
            Entry::Mean(mean) => {
                xml.leaf("Value", &mean.to_string())?;
                xml.leaf("RawString", "")?;
            }
        }
        xml.end("Entry")?;
    }
    xml.end("Data")?;
    xml.end("Result")
}
