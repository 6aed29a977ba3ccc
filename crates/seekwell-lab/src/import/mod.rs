//! Imports results of other tools as [`crate::data::Results`]. Nothing in a file is executed,
//! and all values are checked against bounds.
//!
//! Each format has a file in this module and an entry in [`formats`]. An import has three steps:
//!
//! 1. The reader of the format extracts runs and published means with their original names
//!    ([`Harvest`]).
//! 2. [`names`] finds schedulers and devices in these names.
//! 3. [`assemble`] builds the results.
//!
//! The order of imported runs is usually not known. They are therefore analysed without blocks
//! ([`crate::analysis::unpaired`]).
//!
//! Not imported: series within a run (fio's `*_lat.log`, pgbench's progress lines), and histograms,
//! except for the quantiles by which runs are compared.

mod assemble;
mod averages;
mod dd;
mod diskmark;
mod error;
mod fio;
mod fio_terse;
mod fio_text;
mod harvest;
mod hdparm;
mod hyperfine;
mod input;
mod ioping;
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

pub use averages::remedy as averages_remedy;
pub use error::{ImportError, Place};
pub use input::Input;
pub use names::NameFrom;

use crate::data::Results;
use harvest::Harvest;
use seekwell_core::suggest;

/// Reads the files of one measurement. This is usually one file; some logs have one file per
/// thread.
type Read = fn(&[Input], &mut Harvest) -> Result<(), ImportError>;

/// An entry in the list of formats.
pub struct Format {
    /// Name of the format.
    pub name: &'static str,
    /// Description of the format in one line.
    pub summary: &'static str,
    /// Which parts of a file become device, scheduler and workload.
    pub becomes: &'static str,
    /// Whether a file contains runs, or only means with their errors.
    pub gives: &'static str,
    /// The kind of name that contains the scheduler, unless the options say otherwise.
    pub scheduler_from: NameFrom,
    /// Returns whether a text looks like this format.
    known: fn(&str) -> bool,
    /// Returns the key of a file name; files with the same key are one measurement. `None` if each
    /// file is a measurement.
    part_of: Option<fn(&str) -> String>,
    read: Read,
}

/// Returns all formats, in the order in which they are tried for detection.
pub fn formats() -> &'static [Format] {
    const ALL: &[Format] = &[
        pts_xml::FORMAT,
        fio::FORMAT,
        fio_text::FORMAT,
        fio_terse::FORMAT,
        hyperfine::FORMAT,
        pts_json::FORMAT,
        pts_text::FORMAT,
        pts_csv::RAW,
        pts_csv::FORMAT,
        pgbench::FORMAT,
        sysbench::FORMAT,
        diskmark::FORMAT,
        ioping::FORMAT,
        hdparm::FORMAT,
        dd::FORMAT,
        plain_csv::FORMAT,
        pgbench_log::FORMAT,
    ];
    ALL
}

/// Returns the format with this name. The error lists similar names.
pub fn find_format(name: &str) -> Result<&'static Format, String> {
    let known: Vec<_> = formats().iter().map(|f| f.name).collect();
    let named = formats().iter().find(|f| f.name == name);
    named.ok_or_else(|| {
        let remedy = suggest::remedy(name, &known, &[], "`seekwell import --list`");
        format!("no format is called \"{name}\"; {remedy}")
    })
}

/// Options of an import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Format of all files; `None` detects the format of each file from its content.
    pub format: Option<String>,
    /// The kind of name that contains the scheduler; `None` for the format's default.
    pub scheduler_from: Option<NameFrom>,
    /// Replacements for names in the files: systems, tests and file names.
    pub renamed: Vec<(String, String)>,
    /// Column names of a table in order, for a text that has lost them.
    pub columns: Vec<String>,
    /// Name of the device; replaces the names in the files.
    pub device: Option<String>,
    /// Label or scheduler of the reference treatment; `None` for the first treatment.
    pub reference: Option<String>,
    /// The relative difference that matters (margin); `None` for the default.
    pub margin: Option<f64>,
}

/// Detects the format of a text from its content.
pub fn detect(input: &Input) -> Result<&'static Format, ImportError> {
    let all = formats();
    all.iter().find(|f| (f.known)(&input.text)).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|f| f.name).collect();
        let what = if input.text.trim().is_empty() {
            "is empty".to_owned()
        } else if let Some(what) = averages_remedy(&input.text) {
            what
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

/// Imports files of any supported format.
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
            "pgbench's reports and logs cannot be imported together, because runs in both would \
             count twice; import only one of the two",
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
