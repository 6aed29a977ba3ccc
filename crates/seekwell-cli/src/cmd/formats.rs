//! `seekwell formats [NAME]`: lists or describes the trace formats.

use crate::cli::Formats;
use crate::fail::Failure;
use crate::out::{Out, width};
use seekwell_report::{brief, catalog};
use seekwell_trace::{FormatInfo, Volumes, find_format, formats};
use serde_json::{Value, json};

fn as_json(f: &FormatInfo) -> Value {
    let c = &f.carries;
    json!({
        "name": f.name, "summary": f.summary, "extensions": f.extensions, "help": f.help,
        "written": f.create.is_some(),
        "devices": match f.volumes {
            Volumes::One => "one",
            Volumes::Numbered => "major:minor",
            Volumes::Named => "named",
        },
        "times": c.time, "pids": c.pids.to_string(),
        "completions": c.completions.to_string(), "issues": c.issues.to_string(),
        "ioprio": c.ioprio.to_string(), "flags": c.flags.to_string(),
    })
}

/// Lists the formats, or describes one.
pub fn run(a: &Formats) -> Result<(), Failure> {
    let find = |name: &str| find_format(name).map_err(|e| Failure::input(e.to_string()));
    let chosen = a.name.as_deref().map(find).transpose()?;
    let mut out = Out::open(a.output.output.as_deref())?;
    match chosen {
        Some(f) if a.json => out.json(&as_json(f))?,
        Some(f) => out.text(&catalog::format(f, width()))?,
        None if a.markdown => out.text(&catalog::formats_markdown(formats()))?,
        None if a.json => out.json(&Value::from_iter(formats().iter().map(as_json)))?,
        None => {
            match a.details {
                true => out.text(&catalog::formats(formats(), width()))?,
                false => out.text(&brief::formats(formats(), width()))?,
            }
            out.prose(
                "\nTraces that are compressed with zstd or gzip are read directly. To write a format: \
                 seekwell convert IN -o OUT. Content of each format: --details. One format in full: \
                 seekwell formats NAME",
            )?;
        }
    }
    out.done()
}
