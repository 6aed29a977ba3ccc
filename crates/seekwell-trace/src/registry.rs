//! The list of trace formats, for the command line, the documentation and the tests.
//!
//! To add a format, add a file in `formats/` and an entry in this file, as described in
//! docs/add-a-trace-format.md.

use crate::error::{ErrorKind, Place, TraceError};
use crate::info::{Format, FormatInfo};
use seekwell_core::suggest;
use std::path::Path;

/// Returns all formats, in the order in which they are tried for detection.
pub fn formats() -> &'static [FormatInfo] {
    static ALL: &[FormatInfo] = &[
        crate::formats::blktrace::INFO,
        crate::formats::parquet::INFO,
        crate::formats::iolog::INFO_V3,
        crate::formats::iolog::INFO_V2,
        crate::formats::csv::INFO,
        crate::formats::cachesim::INFO,
        crate::formats::msr::INFO,
        crate::formats::systor::INFO,
        crate::formats::alibaba::INFO,
        crate::formats::tencent::INFO,
        crate::formats::spc::INFO,
        crate::formats::disksim::INFO,
        crate::formats::fiu::INFO,
        crate::formats::vscsi::INFO,
        crate::formats::oracle::INFO,
        crate::formats::ftrace::INFO,
        crate::formats::perf::INFO,
        crate::formats::biosnoop::INFO,
        crate::formats::iosnoop::INFO,
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
    ("perf", "perf-script"),
    ("bcc", "biosnoop"),
    ("umass", "spc"),
    ("financial", "spc"),
    ("websearch", "spc"),
    ("iodedup", "fiu"),
    ("ascii", "disksim"),
    ("oracle", "oracle-general"),
    ("oraclegeneral", "oracle-general"),
    ("libcachesim", "cachesim-csv"),
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

/// Returns the format with this name. The error suggests similar names, or lists all names.
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

/// Returns the first format with the extension of this path (without that of the compression).
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
