//! Block traces in and out, streaming.
//!
//! [`open`] reads any format of the [`formats`] registry, through zstd or gzip, with memory that
//! does not grow with the trace, and gives one [`Record`] after the other. [`create`] writes.
//! [`ReplayMode`] says how a trace may be replayed and what each way can and cannot show;
//! [`ClosedLoop`] prepares the one way that keeps what processes waited for. [`survey::survey`] tells
//! what a trace holds.
//!
//! To add a format: a file under `formats/` and a line in `registry.rs`.

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

/// Nanoseconds of seconds in decimal ("12", "0.25"); `None` if the text is none, or too large.
pub fn seconds_text(text: &str) -> Option<u64> {
    text::decimal_ns(text.as_bytes(), 1_000_000_000)
}
