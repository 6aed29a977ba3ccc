//! CSV traces of cache simulators, as published with libCacheSim: a header, then one access per
//! line. An example is `version,time,op,size,lbn` in `data/cloudPhysicsIO.csv` of
//! <https://github.com/1a1a11a/libCacheSim>, with SCSI operation codes.
//!
//! Times are in seconds, sizes in bytes. The object is used as the first sector of 512 bytes, as in
//! the block traces of that collection.

use super::csv::Columns;
use super::csv::read::CsvReader;
use crate::error::{ErrorKind, Place};
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::input::SNIFF_BYTES;
use seekwell_core::Op;

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "cachesim-csv",
    summary: "CSV of cache simulators such as libCacheSim, with a header",
    extensions: &["csv"],
    help: "The first line names time, obj_id (or obj, object, lbn), size (or obj_size), and \
           optionally op; other columns are ignored. Times are in seconds, sizes in bytes. The \
           object is used as a sector, as in the published block traces; a trace whose objects are \
           hashes has no positions. Operations are SCSI codes (2a) or words (read); without them, \
           all requests are reads. The format contains no process IDs and no completion times, so \
           replay it with --mode timed, scaled:FACTOR or depth:N.",
    carries: Carries {
        pids: Has::No,
        completions: Has::No,
        issues: Has::No,
        ioprio: Has::No,
        flags: Has::No,
        time: "1 s",
    },
    keeps: Keeps::NONE,
    volumes: Volumes::One,
    text: true,
    detect: |head| columns(head).is_some(),
    parts: None,
    open: |mut inputs, options, notes| {
        let mut input = inputs.remove(0);
        let Some(columns) = columns(input.peek(SNIFF_BYTES, Place::File)?) else {
            let what = "the header does not name time, obj_id and size";
            let remedy = "add a header, or number the fields with --columns";
            return Err(input.error(ErrorKind::Broken, Place::Line(1), what, remedy));
        };
        notes.say("objects are used as sectors".to_owned());
        Ok(Box::new(CsvReader::with(input, options, columns, notes)?))
    },
    create: None,
};

/// Names of columns in these traces, with the names in Seekwell's CSV.
const NAMES: [(&str, &str); 10] = [
    ("time", "t_s"),
    ("timestamp", "t_s"),
    ("clock_time", "t_s"),
    ("obj_id", "sector"),
    ("obj", "sector"),
    ("object", "sector"),
    ("lbn", "sector"),
    ("size", "bytes"),
    ("obj_size", "bytes"),
    ("op", "op"),
];

/// Returns the columns that the first line names, or `None` if it is no such header.
fn columns(head: &[u8]) -> Option<Columns> {
    let mut lines = head.split(|&c| c == b'\n').map(<[u8]>::trim_ascii);
    let header = lines.next()?;
    let header = header.strip_prefix(b"#").unwrap_or(header).trim_ascii();
    let timed = NAMES[..3].iter().any(|n| {
        let mut fields = header.split(|&c| c == b',');
        fields.any(|w| w.trim_ascii().eq_ignore_ascii_case(n.0.as_bytes()))
    });
    let words = Columns::of_other_header(header, &NAMES, None);
    let scsi = || {
        let mut names = NAMES;
        names[9].1 = "scsi_op";
        Columns::of_other_header(header, &names, None)
    };
    let first = lines.next().unwrap_or(b"");
    let found = match words {
        // The first record shows the kind of the operations.
        Some(words) if words.row(first).is_ok() => Some(words),
        Some(words) => scsi().filter(|c| c.row(first).is_ok()).or(Some(words)),
        None => Columns::of_other_header(header, &NAMES[..9], Some(Op::Read)),
    };
    found.filter(|_| timed)
}
