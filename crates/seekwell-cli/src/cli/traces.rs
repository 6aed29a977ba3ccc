//! Options of the commands that read traces.

use super::TRACE;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Options that select a trace's format and records; shared by `replay`, `report` and `convert`.
#[derive(Args, Clone, Debug)]
pub struct TraceInput {
    /// Format, see `seekwell formats` [default: detected]
    #[arg(long, short, value_name = "FORMAT", help_heading = TRACE)]
    pub format: Option<String>,
    /// Fields of any delimited text: t_s=1,op=2,sector=3,sectors=4
    ///
    /// Each NAME=NUMBER gives the number of a field, from 1. The names are those of `seekwell formats
    /// csv`: t_ns, t_us, t_ms or t_s; op, is_read, is_write or scsi_op; sector, offset (in bytes) or
    /// page; sectors, bytes or pages; pid; lat_us and others. op=read applies to all lines. Fields are
    /// separated by commas, semicolons, tabs or blanks.
    #[arg(long, value_name = "LIST", conflicts_with = "format", help_heading = TRACE)]
    pub columns: Option<String>,
    /// Stop after N records
    #[arg(long, value_name = "N", help_heading = TRACE)]
    pub limit: Option<u64>,
    /// Start this many seconds after the first record
    ///
    /// The submission time of a record decides. Times in the output start at this point.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = TRACE)]
    pub from: Option<u64>,
    /// Stop this many seconds after the first record
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = TRACE)]
    pub until: Option<u64>,
    /// Use only records of these processes
    #[arg(long, value_name = "PID,...", value_delimiter = ',', help_heading = TRACE)]
    pub pid: Vec<u32>,
    /// Which records to use: queued bios, or requests issued to the device
    ///
    /// It applies to traces of events, such as blktrace, blkparse, ftrace and perf-script. If a
    /// trace has no queue events, the issued requests are used.
    #[arg(long, value_name = "EVENT", default_value = "queue", help_heading = TRACE, hide_short_help = true)]
    pub stream: Stream,
    /// Use only records of this device or volume
    ///
    /// DEVICE is a device (MAJOR,MINOR) or a volume, named as in the trace; see the column "devices"
    /// of `seekwell formats --markdown`.
    #[arg(long, value_name = "DEVICE", help_heading = TRACE, hide_short_help = true)]
    pub trace_device: Option<String>,
    /// Accept a truncated trace with a warning
    ///
    /// Without this option, a trace that ends inside a record is an error.
    #[arg(long, help_heading = TRACE, hide_short_help = true)]
    pub allow_truncated: bool,
    /// Unit of the response times of vscsi version 2
    ///
    /// No public document states this unit. Without this option, response times are ignored.
    #[arg(long, value_name = "UNIT", help_heading = TRACE, hide_short_help = true)]
    pub response_unit: Option<Unit>,
}

/// Which events of a block trace to use.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Stream {
    /// Bios as they were submitted, before merging.
    Queue,
    /// Requests as the recorded scheduler issued them.
    Issue,
}

impl From<Stream> for seekwell_trace::Stream {
    fn from(s: Stream) -> Self {
        match s {
            Stream::Queue => seekwell_trace::Stream::Queue,
            Stream::Issue => seekwell_trace::Stream::Issue,
        }
    }
}

impl From<Stream> for seekwell::Stream {
    fn from(s: Stream) -> Self {
        match s {
            Stream::Queue => seekwell::Stream::Queue,
            Stream::Issue => seekwell::Stream::Issue,
        }
    }
}

/// A unit of time.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
}

impl Unit {
    /// Returns the name of the unit on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Us => "us",
            Unit::Ms => "ms",
        }
    }
}

impl From<Unit> for seekwell_trace::TimeUnit {
    fn from(u: Unit) -> Self {
        match u {
            Unit::Ns => seekwell_trace::TimeUnit::Ns,
            Unit::Us => seekwell_trace::TimeUnit::Us,
            Unit::Ms => seekwell_trace::TimeUnit::Ms,
        }
    }
}

/// Parses a time such as `12` or `0.25` seconds and returns nanoseconds.
fn seconds(text: &str) -> Result<u64, String> {
    let ns = seekwell_trace::seconds_text(text);
    ns.ok_or_else(|| "write seconds, with a fraction or without: 12 or 0.25".to_owned())
}

/// Arguments of `convert`.
#[derive(Args, Debug)]
pub struct Convert {
    /// Traces, or `-` for standard input; may be zstd or gzip. Several traces are merged by the
    /// times that they contain
    #[arg(required = true, num_args = 1..=64, value_name = "IN", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Write the trace to OUT, completely or not at all. A name that ends in .zst or .gz compresses
    /// it [default: standard output]
    #[arg(long, short, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Output format [default: from the name of OUT; csv on standard output]
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<String>,
    /// Name of the replayed file in a fio iolog
    #[arg(long, value_name = "NAME", default_value = "seekwell.replay")]
    pub iolog_file: String,
    /// Options that select records
    #[command(flatten)]
    pub input: TraceInput,
}
