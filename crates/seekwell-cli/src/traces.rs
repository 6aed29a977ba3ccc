//! Converts options to trace inputs: the files and how to read them.

use crate::cli::TraceInput;
use crate::fail::Failure;
use seekwell_trace::{Format, ReadOptions, TraceError, device_number, find_format};

/// Converts an error of a trace to a failure for wrong input.
pub fn failed(e: TraceError) -> Failure {
    Failure::input(e.to_string())
}

/// Parses a device number such as `8,16`.
fn major_minor(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once([',', ':'])?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    (major < 4096 && minor < 1 << 20).then(|| device_number(major, minor))
}

/// The option that selects a volume, if a trace contains several.
pub const CHOOSE: &str = "--trace-device NAME";

/// Returns the requested format, if any, and the options for reading.
pub fn reading(a: &TraceInput) -> Result<(Option<Format>, ReadOptions), Failure> {
    let format = a.format.as_deref().map(find_format).transpose();
    let from = a.from.unwrap_or(0);
    if a.until.is_some_and(|until| until <= from) {
        return Err(Failure::input(
            "--until must be later than --from. Both count from the first record: --from 10 \
             --until 20 selects ten seconds",
        ));
    }
    let read = ReadOptions {
        stream: a.stream.into(),
        device: a.trace_device.as_deref().and_then(major_minor),
        volume: a.trace_device.clone(),
        from_ns: from,
        until_ns: a.until,
        pids: a.pid.iter().copied().collect(),
        columns: a.columns.clone(),
        allow_truncated: a.allow_truncated,
        vscsi_response: a.response_unit.map(Into::into),
        ..ReadOptions::default()
    };
    Ok((format.map_err(failed)?, read))
}
