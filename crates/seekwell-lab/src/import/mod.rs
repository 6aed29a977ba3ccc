//! Imports results made elsewhere into [`crate::results::Results`]. Nothing in a file is executed,
//! and all values are checked against bounds.
//!
//! Each format has a file here and an entry in [`formats`]. Its reader converts a text into runs
//! and published figures with their original names ([`Harvest`]). [`names`] finds schedulers and
//! devices in those names. [`assemble`] builds results from them. These are judged without blocks
//! ([`crate::analysis::unpaired`]), because the order of imported runs is not known.
//!
//! Not imported: series within a run (fio's `*_lat.log`, pgbench's progress lines), and histograms
//! beyond the quantiles that runs are compared by.

mod assemble;
mod error;
mod fio;
mod fuzz;
mod harvest;
mod hyperfine;
mod input;
mod json;
mod names;
mod pgbench;
mod pgbench_log;
mod plain_csv;
mod pts_csv;
mod pts_json;
mod pts_names;
mod pts_text;
mod pts_xml;
mod sysbench;

pub use error::{ImportError, Place};
pub use fuzz::fuzz_one;
pub use input::Input;
pub use names::NameFrom;

use crate::results::Results;
use harvest::Harvest;
use seekwell_core::suggest;

/// Reads the texts of one measurement (usually one; some logs have one file per thread).
type Read = fn(&[Input], &mut Harvest) -> Result<(), ImportError>;

/// Registry entry of a format.
pub struct Format {
    /// Name of the format.
    pub name: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Which parts become device, scheduler and workload.
    pub becomes: &'static str,
    /// Whether it gives runs, or only means with their errors.
    pub gives: &'static str,
    /// Where the scheduler is named, unless the options say otherwise.
    pub scheduler_from: NameFrom,
    /// Whether a text looks like this format.
    known: fn(&str) -> bool,
    /// Files with the same key are parts of one measurement; `None` if each file is a measurement.
    part_of: Option<fn(&str) -> String>,
    read: Read,
}

/// All formats, in the order of detection.
pub fn formats() -> &'static [Format] {
    const ALL: &[Format] = &[
        pts_xml::FORMAT,
        fio::FORMAT,
        hyperfine::FORMAT,
        pts_json::FORMAT,
        pts_text::FORMAT,
        pts_csv::RAW,
        pts_csv::FORMAT,
        pgbench::FORMAT,
        sysbench::FORMAT,
        plain_csv::FORMAT,
        pgbench_log::FORMAT,
    ];
    ALL
}

/// The format with this name; the error lists similar names.
pub fn find_format(name: &str) -> Result<&'static Format, String> {
    let known: Vec<_> = formats().iter().map(|f| f.name).collect();
    let named = formats().iter().find(|f| f.name == name);
    named.ok_or_else(|| {
        let remedy = suggest::remedy(name, &known, &[], "`seekwell import --list`");
        format!("no format is called `{name}`; {remedy}")
    })
}

/// Options for reading files.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Format of all files; `None` detects each by its content.
    pub format: Option<String>,
    /// Where schedulers are named; `None` uses the format's default.
    pub scheduler_from: Option<NameFrom>,
    /// Names in the files (systems, tests, file names) and their replacements.
    pub renamed: Vec<(String, String)>,
    /// Names of a table's columns in order, if the file's text lost them.
    pub columns: Vec<String>,
    /// Name of the device, if files do not give it or give it badly.
    pub device: Option<String>,
    /// Label or scheduler of the reference; `None` for the first treatment.
    pub reference: Option<String>,
    /// Relative difference that matters.
    pub margin: Option<f64>,
}

/// Detects the format of a text by its content.
pub fn detect(input: &Input) -> Result<&'static Format, ImportError> {
    let all = formats();
    all.iter().find(|f| (f.known)(&input.text)).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|f| f.name).collect();
        let what = if input.text.trim().is_empty() {
            "is empty".to_owned()
        } else {
            format!(
                "matches none of the formats {}; --format NAME forces one, and a CSV needs columns \
                 named scheduler, workload and value",
                names.join(", ")
            )
        };
        input.error(Place::File, what)
    })
}

/// Imports files.
pub fn import(inputs: &[Input], options: &Options) -> Result<Results, ImportError> {
    let forced = options.format.as_deref().map(find_format).transpose();
    let forced = forced.map_err(|what| ImportError::general(&what))?;
    let mut groups: Vec<(&Format, String, Vec<Input>)> = Vec::new();
    for input in inputs {
        let format = forced.map_or_else(|| detect(input), Ok)?;
        let key = format.part_of.map(|key| key(&input.name));
        let same = |g: &&mut (&Format, String, Vec<Input>)| {
            g.0.name == format.name && key.as_ref() == Some(&g.1)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.2.push(input.clone()),
            None => groups.push((format, key.unwrap_or_default(), vec![input.clone()])),
        }
    }
    let has = |name: &str| groups.iter().any(|g| g.0.name == name);
    if has(pgbench::FORMAT.name) && has(pgbench_log::FORMAT.name) {
        return Err(ImportError::general(
            "pgbench's reports and logs are imported together, so runs in both would count twice; \
             import one of the two",
        ));
    }
    let mut harvest = Harvest {
        columns: options.columns.clone(),
        ..Harvest::default()
    };
    for (format, _, parts) in &groups {
        let name = parts.first().map_or("", |p| p.name.as_str());
        harvest.begin(format, name);
        (format.read)(parts, &mut harvest)?;
    }
    assemble::assemble(harvest, options)
}
