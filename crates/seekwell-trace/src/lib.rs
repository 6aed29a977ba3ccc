//! Streaming readers and writers of block traces.
//!
//! [`open`] reads any format of the [`formats`] registry, also from zstd or gzip, in memory that
//! does not grow with the trace, and returns one [`Record`] after the other. [`create`] writes.
//! [`ReplayMode`] lists the ways to replay a trace and what each can and cannot show.
//! [`ClosedLoop`] prepares the mode that preserves the dependencies of processes.
//! [`survey::survey`] describes the contents of a trace.
//!
//! To add a format, add a file under `formats/` and a line in `registry.rs`.

pub mod blk;
pub mod error;
pub mod formats;
pub mod fuzz;
pub mod input;
pub mod intake;
pub mod join;
pub mod keeps;
pub mod merge;
pub mod notes;
pub mod options;
pub mod reader;
pub mod record;
pub mod registry;
pub mod replay;
pub mod spool;
pub mod survey;
mod tally;
mod text;
pub mod writer;

pub use error::{ErrorKind, Place, TraceError};
pub use formats::blkparse::BlkparseWriter;
pub use formats::blktrace::BlktraceWriter;
pub use formats::csv::CsvWriter;
pub use formats::iolog::IologWriter;
pub use formats::vscsi::VscsiWriter;
pub use intake::{Intake, open_once};
pub use keeps::{Keeps, Losses};
pub use merge::Merge;
pub use options::{Limits, ReadOptions, Stream, TimeUnit, WriteOptions};
pub use reader::{Reader, from_reader, open};
pub use record::{Record, TIME_MAX_NS, device_number};
pub use registry::{
    Carries, Format, FormatInfo, Has, Volumes, find_format, format_of_name, formats,
};
pub use replay::{ClosedLoop, Factor, ReplayMode, Step};
pub use writer::{EventWriter, Packed, Writer, create, create_file, write_to};

/// Decimal seconds ("12", "0.25") in nanoseconds; `None` if the text is not a number, or too large.
pub fn seconds_text(text: &str) -> Option<u64> {
    text::decimal_ns(text.as_bytes(), 1_000_000_000)
}
