//! Streaming readers and writers of block traces.
//!
//! [`open`] reads any format of the [`formats`] registry and returns one [`Record`] after another.
//! The trace can be compressed with zstd or gzip. The memory does not grow with the length of the
//! trace. [`create`] writes a trace. [`ReplayMode`] lists the ways to replay a trace, and what each
//! of them can and cannot show. [`ClosedLoop`] prepares the mode that preserves the dependencies of
//! processes, and [`Habits`] tells how they work. [`survey::survey`] describes the contents of a trace.
//!
//! To add a format, add a file in `formats/` and an entry in `registry.rs`.

pub mod blk;
pub mod create;
pub mod error;
pub mod formats;
mod guess;
mod habits;
pub mod info;
pub mod input;
pub mod intake;
pub mod join;
pub mod keeps;
pub mod losses;
pub mod merge;
pub mod notes;
pub mod options;
pub mod reader;
pub mod record;
pub mod registry;
pub mod replay;
pub mod source;
pub mod spool;
pub mod survey;
mod tally;
mod text;
pub mod writer;

pub use create::{create, write_to};
pub use error::{ErrorKind, Place, TraceError};
pub use formats::blkparse::BlkparseWriter;
pub use formats::blktrace::BlktraceWriter;
pub use formats::csv::CsvWriter;
pub use formats::iolog::IologWriter;
pub use formats::vscsi::VscsiWriter;
pub use habits::{Habit, Habits};
pub use info::{Carries, Format, FormatInfo, Has, Volumes};
pub use intake::{Intake, open_once};
pub use keeps::Keeps;
pub use losses::Losses;
pub use merge::Merge;
pub use options::{Limits, ReadOptions, Stream, TimeUnit, WriteOptions};
pub use reader::{Reader, from_reader, open};
pub use record::{Record, TIME_MAX_NS, device_number};
pub use registry::{find_format, format_of_name, formats};
pub use replay::{ClosedLoop, Factor, ReplayMode, Step};
pub use writer::{EventWriter, Packed, Writer, create_file};

/// Parses a decimal number of seconds ("12", "0.25"), and returns nanoseconds. Returns `None` if
/// the text is not a number, or if the number is too large.
pub fn seconds_text(text: &str) -> Option<u64> {
    text::decimal_ns(text.as_bytes(), 1_000_000_000)
}
