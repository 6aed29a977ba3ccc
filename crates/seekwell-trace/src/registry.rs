//! The list of formats, which the command line, the documentation and the tests use.
//!
//! To add a format, add a file under `formats/` and a line here.

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

/// Whether a format has a kind of information.
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

/// The information that a format has in addition to operation and place.
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
    /// Resolution of its times, as text for users.
    pub time: &'static str,
}

/// Whether a format has several devices, and how they are named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Volumes {
    /// One device.
    One,
    /// Several devices, by major and minor number.
    Numbered,
    /// Several devices, by names or numbers of the collection.
    Named,
}

/// Opens inputs of the format; several only if [`FormatInfo::parts`] returned several.
pub type Open = fn(Vec<Input>, &ReadOptions, &mut Notes) -> Result<Box<dyn Source>, TraceError>;
/// Starts writing a trace of the format.
pub type Create = fn(Box<dyn Write + Send>, &WriteOptions) -> Result<Box<dyn Writer>, TraceError>;

/// The files of a trace, by a user-given path; `None` if it is a single file.
pub type Parts = fn(&Path) -> Option<Vec<PathBuf>>;

/// The registry entry of a format.
pub struct FormatInfo {
    /// Name of the format.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Usual extensions of its file names (without compression).
    pub extensions: &'static [&'static str],
    /// What it is, its origin and what is lost, in a few sentences.
    pub help: &'static str,
    /// The information that it has.
    pub carries: Carries,
    /// The parts of a record that it keeps.
    pub keeps: Keeps,
    /// How its devices are named.
    pub volumes: Volumes,
    /// Whether it consists of lines of text.
    pub text: bool,
    /// Whether these first bytes look like it. Called with at most [`crate::input::SNIFF_BYTES`].
    pub detect: fn(&[u8]) -> bool,
    /// The files of the trace at this path, if a trace of this format can have several files.
    pub parts: Option<Parts>,
    /// Its reader.
    pub open: Open,
    /// Its writer, if it has one.
    pub create: Option<Create>,
}

/// A format of the registry.
pub type Format = &'static FormatInfo;

impl fmt::Debug for FormatInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FormatInfo({})", self.name)
    }
}

/// All formats, in the order of detection.
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

/// Other names of formats.
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

/// The format of this name; the error suggests the nearest names, or lists all.
pub fn find_format(name: &str) -> Result<Format, TraceError> {
    formats().iter().find(|f| f.name == name).ok_or_else(|| {
        let known: Vec<_> = formats().iter().map(|f| f.name).collect();
        TraceError::new(
            ErrorKind::UnknownFormat,
            name,
            Place::File,
            "no trace format has this name",
            suggest::remedy(name, &known, ALSO, "`seekwell formats`"),
        )
    })
}

/// The first format with this file extension (without compression).
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
