//! The one list of formats that the command line, the documentation and the tests read.
//!
//! To add a format is to add a file under `formats/` and a line here.

use crate::error::{ErrorKind, Place, TraceError};
use crate::input::Input;
pub use crate::keeps::Keeps;
use crate::notes::Notes;
use crate::options::{ReadOptions, WriteOptions};
use crate::reader::Source;
use crate::writer::Writer;
use seekwell_core::suggest;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Does a format tell it?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Has {
    /// Never.
    No,
    /// If it was recorded.
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

/// What a format tells beside operation and place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carries {
    /// Submitting process.
    pub pids: Has,
    /// Completion times.
    pub completions: Has,
    /// Times of insertion into the scheduler and of issue to the driver.
    pub issues: Has,
    /// I/O priorities.
    pub ioprio: Has,
    /// Flags (sync, metadata, FUA ...).
    pub flags: Has,
    /// Resolution of its times, for people.
    pub time: &'static str,
}

/// Does a format tell of several devices, and how are they named?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Volumes {
    /// One device.
    One,
    /// By major and minor number.
    Numbered,
    /// By names or numbers of the collection.
    Named,
}

/// Opens inputs of the format; several only where [`FormatInfo::parts`] gave several.
pub type Open = fn(Vec<Input>, &ReadOptions, &mut Notes) -> Result<Box<dyn Source>, TraceError>;
/// Starts a trace of the format.
pub type Create = fn(Box<dyn Write + Send>, &WriteOptions) -> Result<Box<dyn Writer>, TraceError>;

/// The files of one trace by the path a user names; `None` if that is just one file.
pub type Parts = fn(&Path) -> Option<Vec<PathBuf>>;

/// What the registry knows of a format.
pub struct FormatInfo {
    /// Name to ask for it by.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Usual endings of its file names (compression comes on top).
    pub extensions: &'static [&'static str],
    /// What it is, where it comes from, what is lost, in a few sentences.
    pub help: &'static str,
    /// What it tells.
    pub carries: Carries,
    /// What it keeps of records that are written in it.
    pub keeps: Keeps,
    /// How its devices are named.
    pub volumes: Volumes,
    /// Lines of text?
    pub text: bool,
    /// Do these first bytes look like it? Called with at most [`crate::input::SNIFF_BYTES`].
    pub detect: fn(&[u8]) -> bool,
    /// The files that make up the trace at this path, where one trace may be several files.
    pub parts: Option<Parts>,
    /// Reads it.
    pub open: Open,
    /// Writes it, if it is written.
    pub create: Option<Create>,
}

/// A format of the registry.
pub type Format = &'static FormatInfo;

impl fmt::Debug for FormatInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FormatInfo({})", self.name)
    }
}

/// All formats, in the order in which they are asked whether they recognise a file.
pub fn formats() -> &'static [FormatInfo] {
    static ALL: &[FormatInfo] = &[
        crate::formats::blktrace::INFO,
        crate::formats::parquet::INFO,
        crate::formats::iolog::INFO_V3,
        crate::formats::iolog::INFO_V2,
        crate::formats::csv::INFO,
        crate::formats::msr::INFO,
        crate::formats::systor::INFO,
        crate::formats::alibaba::INFO,
        crate::formats::tencent::INFO,
        crate::formats::vscsi::INFO,
        crate::formats::ftrace::INFO,
        crate::formats::blkparse::INFO,
    ];
    ALL
}

/// Other names people know formats by.
const ALSO: &[(&str, &str)] = &[
    ("iolog", "fio-iolog-v3"),
    ("fio", "fio-iolog-v3"),
    ("fio-iolog", "fio-iolog-v3"),
    ("trace-cmd", "ftrace"),
    ("btt", "blkparse"),
    ("msrc", "msr"),
    ("cambridge", "msr"),
    ("vdi", "systor"),
    ("alicloud", "alibaba"),
    ("cbs", "tencent"),
    ("vmware", "vscsi"),
    ("cloudphysics", "vscsi"),
    ("text", "blkparse"),
    ("pq", "parquet"),
];

/// The format of that name; the error suggests the nearest, or lists the names there are.
pub fn find_format(name: &str) -> Result<Format, TraceError> {
    formats().iter().find(|f| f.name == name).ok_or_else(|| {
        let known: Vec<_> = formats().iter().map(|f| f.name).collect();
        TraceError::new(
            ErrorKind::UnknownFormat,
            name,
            Place::File,
            "no trace format is called that",
            suggest::remedy(name, &known, ALSO, "`seekwell formats`"),
        )
    })
}

/// The format whose files usually end so (compression left off); the first of several.
pub fn format_of_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?;
    let name = name
        .strip_suffix(".zst")
        .or(name.strip_suffix(".gz"))
        .unwrap_or(name);
    let ends = |f: &&FormatInfo| {
        let ending = |e: &&&str| name.strip_suffix(**e).is_some_and(|n| n.ends_with('.'));
        f.create.is_some() && f.extensions.iter().any(|e| ending(&e))
    };
    formats().iter().find(ends)
}
