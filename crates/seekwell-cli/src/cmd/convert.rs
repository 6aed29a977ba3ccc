//! `seekwell convert IN... -o OUT`: converts a trace to another format, or extracts a part of it.

use crate::cells::{self, catching};
use crate::cli::Convert;
use crate::fail::Failure;
use crate::out::{Out, note};
use crate::progress::Progress;
use crate::traces::{failed, reading};
use seekwell_host::stop::signal;
use seekwell_report::units::count as counted;
use seekwell_trace::{
    Format, Losses, Merge, Packed, WriteOptions, Writer, find_format, format_of_name, formats,
    open_once,
};
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of bytes that are buffered before a write to the file.
const PIECE_BYTES: usize = 256 << 10;
/// Maximum number of process names that are copied to the output.
const NAMES_MAX: usize = 1 << 20;
/// Number of records between checks for progress and signals.
const LOOK_RECORDS: u64 = 4096;

/// Bytes that the writer of a format has produced, and that are not in the file yet.
#[derive(Clone, Default)]
struct Pending(Arc<Mutex<Vec<u8>>>);

impl Pending {
    fn take(&self, at_least: usize) -> Option<Vec<u8>> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (bytes.len() >= at_least.max(1)).then(|| std::mem::take(&mut *bytes))
    }
}

impl Write for Pending {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.extend_from_slice(buf);
        Ok(buf.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the output format: the requested one, or that of the output's name, or CSV.
fn target(a: &Convert) -> Result<Format, Failure> {
    let named =
        a.to.as_deref()
            .map(find_format)
            .transpose()
            .map_err(failed)?;
    let by_name = || a.output.as_deref().and_then(format_of_name);
    let plain = || match a.output {
        None => find_format("csv").ok(),
        Some(_) => None,
    };
    let written = || {
        let names = formats().iter().filter(|f| f.create.is_some());
        names.map(|f| f.name).collect::<Vec<_>>().join(", ")
    };
    let Some(to) = named.or_else(by_name).or_else(plain) else {
        return Err(Failure::input(format!(
            "{}: the name does not determine a format; give --to FORMAT, one of {}",
            a.output.as_deref().unwrap_or("-".as_ref()).display(),
            written()
        )));
    };
    if to.create.is_none() {
        return Err(Failure::input(format!(
            "the format {} can be read but not written; --to takes {}",
            to.name,
            written()
        )));
    }
    if !to.text && a.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::input(format!(
            "the format {} is binary, and standard output is a terminal; give -o OUT",
            to.name
        )));
    }
    Ok(to)
}

fn start(a: &Convert, to: Format, pending: &Pending) -> Result<Box<dyn Writer>, Failure> {
    let name = a.output.as_deref().map(|p| p.display().to_string());
    let name = name.unwrap_or_else(|| "standard output".to_owned());
    let packed = a.output.as_deref().map_or(Packed::No, Packed::of_name);
    let bytes = packed
        .wrap(pending.clone())
        .map_err(|source| Failure::Output {
            what: format!("{name}: cannot be compressed"),
            source,
        })?;
    let options = WriteOptions {
        name,
        iolog_file: a.iolog_file.clone(),
        ..WriteOptions::default()
    };
    // `target` ensures that the format can be written.
    let create = to
        .create
        .ok_or_else(|| Failure::input("the format cannot be written"))?;
    create(bytes, &options).map_err(failed)
}

/// Converts the trace and prints which information was lost.
pub fn run(a: &Convert, quiet: bool) -> Result<(), Failure> {
    let to = target(a)?;
    let (format, read) = reading(&a.input)?;
    Out::apart(a.output.as_deref(), a.files.iter().map(|f| f.as_path()))?;
    Out::check(a.output.as_deref())?;
    let mut readers = Vec::new();
    for file in &a.files {
        readers.push(open_once(file, format, &read).map_err(failed)?);
    }
    let mut records = Merge::new(readers).map_err(failed)?;
    let from = records.source().format();
    let pending = Pending::default();
    let mut writer = start(a, to, &pending)?;
    let mut out = Out::open(a.output.as_deref())?;
    let mut losses = Losses::new(to);
    let (mut named, mut count) = (BTreeSet::new(), 0);
    let progress = Progress::new(quiet, "conversions", 1, 1);
    let stopped = catching(|| -> Result<Option<i32>, Failure> {
        let mut far = progress.task(0, "");
        while count < a.input.limit.unwrap_or(u64::MAX) {
            if count % LOOK_RECORDS == 0 && !far.read_of(records.readers()) {
                return Ok(signal());
            }
            let Some(r) = records.next() else { break };
            let r = r.map_err(failed)?;
            count += 1;
            losses.see(&r);
            if let Some(pid) = r.task.map(|t| t.0)
                && named.len() < NAMES_MAX
                && named.insert(pid)
                && let Some(name) = records.source().tasks().and_then(|t| t.get(&pid))
            {
                writer.name(pid, name);
            }
            writer.write(&r).map_err(failed)?;
            if let Some(bytes) = pending.take(PIECE_BYTES) {
                out.bytes(&bytes)?;
            }
        }
        Ok(None)
    })??;
    drop(progress);
    writer.finish().map_err(failed)?;
    if let Some(bytes) = pending.take(0) {
        out.bytes(&bytes)?;
    }
    out.done()?;
    for w in records.readers().iter().flat_map(|r| r.warnings()) {
        note(quiet, &w);
    }
    let all = records.readers().iter();
    let names = all
        .clone()
        .any(|r| r.tasks().is_some_and(|t| !t.is_empty()));
    if let Some(line) = losses.line(from, names) {
        note(quiet, &line);
    }
    if count == 0 {
        note(quiet, "no record was converted");
    }
    match stopped {
        None => Ok(()),
        Some(signal) => Err(cells::stopped(
            signal,
            &format!("the first {} records are converted", counted(count)),
        )),
    }
}
