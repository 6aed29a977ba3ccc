//! A trace by the name a user gave it, `-` for standard input, open as often as need be.

use crate::error::{ErrorKind, Place, TraceError};
use crate::input::{Input, open_trace};
use crate::options::ReadOptions;
use crate::reader::{self, Reader};
use crate::registry::{Format, Volumes};
use crate::spool::Spool;
use crate::tally::Tally;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What standard input is called in messages.
pub const STDIN_NAME: &str = "standard input";
/// Records looked through for the volumes of a trace.
const SURVEY_RECORDS: usize = 1_000_000;
/// Volumes listed.
const LISTED: usize = 10;

/// A trace that can be opened more than once. A pipe is kept in a temporary file as it is read.
#[derive(Clone)]
pub struct Intake {
    path: PathBuf,
    spool: Option<Arc<Spool>>,
}

impl Intake {
    /// Looks what the path is; `-` is standard input.
    pub fn new(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Intake, TraceError> {
        let path = path.as_ref().to_path_buf();
        let bytes_max = options.limits.spool_bytes_max;
        let spool = match once(&path)? {
            Some((name, src)) => Some(Spool::new(&name, src, bytes_max)?),
            None => None,
        };
        Ok(Intake { path, spool })
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        match &self.spool {
            Some(spool) => spool.name().to_owned(),
            None => self.path.display().to_string(),
        }
    }

    /// Opens it from its beginning.
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

    /// Refuses a trace of several volumes where none was chosen: their addresses have nothing to
    /// do with each other. The error lists the busiest of the first million records, and ends with
    /// how to choose one.
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
        // What is wrong with a record is told when it is read for good.
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

/// Opens a trace that is read only once: of a pipe nothing is kept.
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

/// What can be read only once: its name, its bytes.
type Once = (String, Box<dyn Read + Send>);

/// Name and bytes of what can be read only once; `None` for a file.
fn once(path: &Path) -> Result<Option<Once>, TraceError> {
    if path == Path::new("-") {
        return Ok(Some((STDIN_NAME.to_owned(), Box::new(std::io::stdin()))));
    }
    let Ok(meta) = std::fs::metadata(path) else {
        return Ok(None);
    };
    // What is neither a file nor a pipe is refused where it is opened.
    if !meta.file_type().is_fifo() {
        return Ok(None);
    }
    let name = path.display().to_string();
    Ok(Some((name, Box::new(open_trace(path)?))))
}
