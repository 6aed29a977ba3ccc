//! The registry entry of a format. Each format has one in its own file.

use crate::error::TraceError;
use crate::input::Input;
pub use crate::keeps::Keeps;
use crate::notes::Notes;
use crate::options::{ReadOptions, WriteOptions};
use crate::source::Source;
use crate::writer::Writer;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Whether a format contains some information.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Has {
    /// Never.
    No,
    /// Only if it was recorded.
    Maybe,
    /// Always.
    Yes,
}

impl fmt::Display for Has {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Has::No => "no",
            Has::Maybe => "if recorded",
            Has::Yes => "yes",
        })
    }
}

/// The information that a format contains in addition to operation and position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carries {
    /// Process that submitted the I/O.
    pub pids: Has,
    /// Completion times.
    pub completions: Has,
    /// Times of insertion into the scheduler and of issue to the driver.
    pub issues: Has,
    /// I/O priorities.
    pub ioprio: Has,
    /// Flags (sync, metadata, FUA ...).
    pub flags: Has,
    /// Resolution of times, as text for users.
    pub time: &'static str,
}

/// Whether a format has several devices, and how they are identified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Volumes {
    /// The format has one device.
    One,
    /// The format has several devices with major and minor numbers.
    Numbered,
    /// The format has several volumes with names or numbers of the collection.
    Named,
}

/// Opens the inputs of a trace. There are several inputs only if [`FormatInfo::parts`] returned
/// several files.
pub type Open = fn(Vec<Input>, &ReadOptions, &mut Notes) -> Result<Box<dyn Source>, TraceError>;
/// Starts writing a trace.
pub type Create = fn(Box<dyn Write + Send>, &WriteOptions) -> Result<Box<dyn Writer>, TraceError>;

/// Returns the files of a trace from a path that the user typed, or `None` if the trace is a single
/// file.
pub type Parts = fn(&Path) -> Option<Vec<PathBuf>>;

/// The entry of a format in the registry.
pub struct FormatInfo {
    /// Name of the format.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Usual extensions of file names, without that of the compression.
    pub extensions: &'static [&'static str],
    /// Description for users in a few sentences: what the format is, where it comes from, and what
    /// is lost.
    pub help: &'static str,
    /// Information that the format contains.
    pub carries: Carries,
    /// Parts of a record that the format can store.
    pub keeps: Keeps,
    /// How devices are identified.
    pub volumes: Volumes,
    /// True if a trace consists of lines of text.
    pub text: bool,
    /// Returns true if the first bytes of a trace look like this format. It gets at most
    /// [`crate::input::SNIFF_BYTES`] bytes.
    pub detect: fn(&[u8]) -> bool,
    /// Returns the files of the trace at a path. `None` if a trace of this format is always a
    /// single file.
    pub parts: Option<Parts>,
    /// Opens a reader.
    pub open: Open,
    /// Starts a writer. `None` if the format cannot be written.
    pub create: Option<Create>,
}

/// A format of the registry.
pub type Format = &'static FormatInfo;

impl fmt::Debug for FormatInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FormatInfo({})", self.name)
    }
}
