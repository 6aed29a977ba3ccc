//! A trace with the name that the user typed; `-` is standard input. It can be opened repeatedly.

use crate::error::{ErrorKind, Place, TraceError};
use crate::info::{Format, Volumes};
use crate::input::{Input, open_trace};
use crate::options::ReadOptions;
use crate::reader::{self, Reader};
use crate::spool::Spool;
use crate::tally::Tally;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of standard input in messages.
pub const STDIN_NAME: &str = "standard input";
/// Number of records at the start of a trace that are examined to list its volumes.
const SURVEY_RECORDS: usize = 1_000_000;
/// Maximum number of volumes in a message.
const LISTED: usize = 10;

/// A trace that can be opened more than once. Data from a pipe are stored in a temporary file while
/// they are read.
#[derive(Clone)]
pub struct Intake {
    path: PathBuf,
    spool: Option<Arc<Spool>>,
}

impl Intake {
    /// Examines the path. `-` is standard input.
    pub fn new(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Intake, TraceError> {
        let path = path.as_ref().to_path_buf();
        let bytes_max = options.limits.spool_bytes_max;
        let spool = match once(&path)? {
            Some((name, src)) => Some(Spool::new(&name, src, bytes_max)?),
            None => None,
        };
        Ok(Intake { path, spool })
    }

    /// Returns the name for messages.
    pub fn name(&self) -> String {
        match &self.spool {
            Some(spool) => spool.name().to_owned(),
            None => self.path.display().to_string(),
        }
    }

    /// Opens the trace from its beginning.
    pub fn open(
        &self,
        format: Option<Format>,
        options: &ReadOptions,
    ) -> Result<Reader, TraceError> {
        match &self.spool {
            None => reader::open(&self.path, format, options),
            Some(spool) => {
                let input = Input::spooled(spool, options.limits, options.allow_truncated)?;
                Reader::detect(input, format, options)
            }
        }
    }

    /// Returns an error if the trace has several volumes and the user selected none. The addresses
    /// of different volumes are unrelated, so the trace cannot be used as one disk. The error lists
    /// the volumes with the most requests among the first million records, and ends with the option
    /// that selects a volume.
    pub fn one_volume(
        &self,
        format: Option<Format>,
        options: &ReadOptions,
        how: &str,
    ) -> Result<(), TraceError> {
        let mut reader = self.open(format, options)?;
        if reader.format().volumes != Volumes::Named || options.volume.is_some() {
            return Ok(());
        }
        // Ignore invalid records here. They are reported when the trace is read.
        let looked = reader.by_ref().take(SURVEY_RECORDS).flatten().count();
        let tally: &Tally = reader.devices();
        if tally.kinds() < 2 {
            return Ok(());
        }
        let list = tally.busiest(LISTED, |d| reader.device_name(d));
        Err(TraceError::new(
            ErrorKind::Device,
            self.name(),
            Place::File,
            format!(
                "holds {} volumes (records in the first {looked}): {list}",
                tally.kinds()
            ),
            format!("choose one with {how}"),
        ))
    }
}

/// Opens a trace that is read only once. The data of a pipe are not stored.
pub fn open_once(
    path: impl AsRef<Path>,
    format: Option<Format>,
    options: &ReadOptions,
) -> Result<Reader, TraceError> {
    match once(path.as_ref())? {
        None => reader::open(path, format, options),
        Some((name, src)) => reader::from_reader(&name, src, format, options),
    }
}

/// A stream that can be read only once: its name and its bytes.
type Once = (String, Box<dyn Read + Send>);

/// Returns the stream of a path that can be read only once, or `None` for a file.
fn once(path: &Path) -> Result<Option<Once>, TraceError> {
    if path == Path::new("-") {
        return Ok(Some((STDIN_NAME.to_owned(), Box::new(std::io::stdin()))));
    }
    let Ok(meta) = std::fs::metadata(path) else {
        return Ok(None);
    };
    // Other types of files are rejected when they are opened.
    if !meta.file_type().is_fifo() {
        return Ok(None);
    }
    let name = path.display().to_string();
    Ok(Some((name, Box::new(open_trace(path)?))))
}
