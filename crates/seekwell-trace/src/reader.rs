//! The reader of traces of all formats. It detects the format. It checks and corrects each record,
//! so that the guarantees of [`Record`] hold.
//!
//! Events of block traces that are out of time order are first sorted within a window (see
//! [`crate::join`]). All other records keep the order of the file, in all formats. If a record has
//! an earlier time than the record before it, it gets the time of that record. At the
//! end, a warning contains the number of such records and the largest change of a time.

use crate::blk::BlkEvent;
use crate::error::{ErrorKind, Place, TraceError, shown};
use crate::guess;
use crate::info::{Carries, Format, Has, Volumes};
use crate::input::{Input, SNIFF_BYTES};
use crate::notes::Notes;
use crate::options::ReadOptions;
use crate::record::{Record, SECTOR_END_MAX, TIME_MAX_NS};
use crate::registry::formats;
use crate::source::Source;
use crate::tally::Tally;
use seekwell_core::{Op, Sector, Sectors};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Note that counts records with an earlier time than the record before them.
pub const NOTE_BACKWARDS: &str =
    "records with an earlier time than the record before them; they get its time";
/// Nanoseconds in a year of 365.25 days.
const NSEC_PER_YEAR: u64 = 31_557_600 * seekwell_core::NSEC_PER_SEC;
/// Note that counts records that transfer no data.
pub const NOTE_NO_DATA: &str = "reads, writes or discards of length zero skipped";
/// Maximum number of devices or processes in a message.
const LISTED: usize = 10;

/// An iterator over the records of a trace. After an error or the end, it returns `None`.
pub struct Reader {
    format: Format,
    name: String,
    src: Box<dyn Source>,
    notes: Notes,
    records_max: u64,
    base_ns: Option<u64>,
    last_ns: u64,
    back_max_ns: u64,
    records: u64,
    /// Name of the device or volume that the user selected.
    chosen: Option<String>,
    from_ns: u64,
    until_ns: u64,
    pids: BTreeSet<u32>,
    /// Number of skipped records of each process that the user did not select. Empty if the user
    /// selected no processes.
    other_pids: Tally,
    done: bool,
    /// For each file, the number of bytes read so far, and its size.
    far: Vec<(Arc<AtomicU64>, u64)>,
}

/// Opens the trace at a path. If the format is `None`, it is detected from the first (decompressed)
/// bytes.
///
/// A trace can consist of several files. If the path is the first of them (`sdb.blktrace.0`), or
/// their base name (`sdb`), all files are opened.
pub fn open(
    path: impl AsRef<Path>,
    format: Option<Format>,
    options: &ReadOptions,
) -> Result<Reader, TraceError> {
    let path = path.as_ref();
    let format = format.or_else(|| described(options));
    let one = |p: &PathBuf| Input::open(p, options.limits, options.allow_truncated);
    for f in formats() {
        if format.is_some_and(|g| g.name != f.name) {
            continue;
        }
        if let Some(parts) = f.parts.and_then(|parts| parts(path)) {
            let inputs = parts.iter().map(one).collect::<Result<Vec<_>, _>>()?;
            return Reader::start(f, path.display().to_string(), inputs, options);
        }
    }
    let input = one(&path.to_path_buf())?;
    Reader::detect(input, format, options)
}

/// Reads a trace from any stream. `name` is its name in messages.
pub fn from_reader(
    name: &str,
    reader: impl Read + Send + 'static,
    format: Option<Format>,
    options: &ReadOptions,
) -> Result<Reader, TraceError> {
    let input = Input::new(
        name.to_string(),
        Box::new(reader),
        options.limits,
        options.allow_truncated,
    )?;
    Reader::detect(input, format, options)
}

/// Name of the format that reads any delimited text.
const CSV: &str = "csv";

/// Returns the format of a trace whose columns the user described.
fn described(options: &ReadOptions) -> Option<Format> {
    let csv = formats().iter().find(|f| f.name == CSV);
    csv.filter(|_| options.columns.is_some())
}

/// Returns the error for a trace that no format recognises, with a command for this trace.
fn unknown(name: String, head: &[u8]) -> TraceError {
    let known: Vec<_> = formats().iter().map(|f| f.name).collect();
    let file = if name.contains(char::is_whitespace) {
        "FILE"
    } else {
        &name
    };
    let guess = guess::columns(head);
    let columns = guess.as_deref().unwrap_or("t_s=1,op=2,sector=3,sectors=4");
    let check = if guess.is_some() {
        " (a guess: check fields and units)"
    } else {
        ""
    };
    TraceError::new(
        ErrorKind::UnknownFormat,
        &*name,
        Place::File,
        format!("no format recognises it; it begins with {}", shown(head)),
        format!(
            "give its format with --format, one of {}, or number the fields of its lines: seekwell \
             report {file} --columns {columns}{check}",
            known.join(", ")
        ),
    )
}

impl Reader {
    pub(crate) fn detect(
        mut input: Input,
        format: Option<Format>,
        options: &ReadOptions,
    ) -> Result<Reader, TraceError> {
        let name = input.name().to_string();
        if input.peek(1, Place::File)?.is_empty() && input.was_cut() {
            return Err(TraceError::new(
                ErrorKind::Truncated,
                name,
                Place::File,
                "is cut off before the first record",
                "fetch the file again",
            ));
        }
        let head = input.peek(SNIFF_BYTES, Place::File)?;
        if head.get(257..262) == Some(b"ustar") {
            return Err(TraceError::new(
                ErrorKind::Unsupported,
                name,
                Place::File,
                "is a tar archive",
                "extract the trace: tar -xOf FILE | seekwell replay -",
            ));
        }
        if head.is_empty() {
            return Err(TraceError::new(
                ErrorKind::Empty,
                name,
                Place::File,
                "is empty",
                "give a trace with at least one record",
            ));
        }
        let named = format.or_else(|| described(options));
        let format = match named.or_else(|| formats().iter().find(|f| (f.detect)(head))) {
            Some(f) => f,
            None => return Err(unknown(name, head)),
        };
        if options.columns.is_some() && format.name != CSV {
            return Err(TraceError::new(
                ErrorKind::Mode,
                name,
                Place::File,
                format!("the format {} has its own columns", format.name),
                "give --columns or --format, not both",
            ));
        }
        Reader::start(format, name, vec![input], options)
    }

    fn start(
        format: Format,
        name: String,
        inputs: Vec<Input>,
        options: &ReadOptions,
    ) -> Result<Reader, TraceError> {
        let refuse = |what: String, remedy: &str| {
            Err(TraceError::new(
                ErrorKind::Device,
                &name,
                Place::File,
                what,
                remedy,
            ))
        };
        let chosen = chosen(options);
        match (format.volumes, &chosen) {
            (Volumes::One, Some(_)) => {
                let what = format!("the format {} has only one device", format.name);
                return refuse(what, "omit --trace-device");
            }
            (Volumes::Numbered, Some(v)) if options.device.is_none() => {
                let what = format!("\"{v}\" is not a device of the format {}", format.name);
                return refuse(what, "write --trace-device MAJOR,MINOR, for instance 8,16");
            }
            _ => {}
        }
        if !options.pids.is_empty() && format.carries.pids == Has::No {
            let what = format!("the format {} has no pids", format.name);
            return refuse(what, "omit --pid");
        }
        let mut notes = Notes::default();
        // If the size of one file is unknown, the progress over all files is unknown.
        let far: Option<Vec<_>> = inputs.iter().map(Input::far).collect();
        let src = (format.open)(inputs, options, &mut notes)?;
        Ok(Reader {
            format,
            name,
            src,
            notes,
            records_max: options.limits.records_max,
            base_ns: None,
            last_ns: 0,
            back_max_ns: 0,
            records: 0,
            chosen,
            from_ns: options.from_ns,
            until_ns: options.until_ns.unwrap_or(u64::MAX),
            pids: options.pids.clone(),
            other_pids: Tally::default(),
            done: false,
            far: far.unwrap_or_default(),
        })
    }

    /// Returns the format of the trace.
    pub fn format(&self) -> Format {
        self.format
    }
    /// Returns the detected version, if the format has versions.
    pub fn version(&self) -> Option<u32> {
        self.src.version()
    }
    /// Returns the name of the trace.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Returns which information the format contains.
    pub fn carries(&self) -> Carries {
        self.format.carries
    }
    /// Returns the number of records returned so far.
    pub fn records(&self) -> u64 {
        self.records
    }
    /// Returns the number of bytes read from the files before decompression, and the size of the
    /// files. Returns `None` for a pipe. The bytes read include data in buffers whose records have
    /// not been returned yet.
    pub fn far(&self) -> Option<(u64, u64)> {
        let read = self.far.iter().map(|f| f.0.load(Ordering::Relaxed)).sum();
        let all = self.far.iter().map(|f| f.1).sum();
        (all > 0).then_some((read, all))
    }
    /// Returns the process names found so far, by process id.
    pub fn tasks(&self) -> Option<&BTreeMap<u32, String>> {
        self.src.tasks()
    }
    /// Returns the time of the first record on the clock of the trace, in ns, or `None` before the
    /// first record was read.
    pub fn base_ns(&self) -> Option<u64> {
        self.base_ns
    }
    /// Returns true if the trace contains events (blktrace, blkparse, ftrace). The reader makes the
    /// records from these events.
    pub fn tells_events(&self) -> bool {
        self.src.tells_events()
    }
    /// Moves the events that were read since the previous call into the vector `into`. They are
    /// sorted by time, and their times are those of the trace's clock. The reader keeps events only
    /// if [`ReadOptions::keep_events`] is set. It keeps them in memory until they are moved, so
    /// call this method after every record.
    pub fn take_events(&mut self, into: &mut Vec<BlkEvent>) {
        self.src.take_events(into);
    }
    /// Returns the name of a device in the trace.
    pub fn device_name(&self, device: u32) -> String {
        self.src.device_name(device)
    }
    pub(crate) fn devices(&self) -> &Tally {
        self.notes.devices()
    }
    /// Returns the warnings so far as text. The list is complete when the iterator has ended.
    pub fn warnings(&self) -> Vec<String> {
        let mut out = self.notes.lines();
        let devices = self.notes.devices();
        if self.chosen.is_none() && devices.kinds() > 1 {
            out.push(format!(
                "{} devices are treated as one: {}; --trace-device selects one of them",
                devices.kinds(),
                devices.busiest(LISTED, |d| self.src.device_name(d))
            ));
        }
        if self.back_max_ns > 0 {
            out.push(format!(
                "the largest step back in time was {} us: if this is too much, sort the trace by time",
                self.back_max_ns.div_ceil(1000)
            ));
        }
        out
    }
    /// Returns how often a warning was counted ([`NOTE_BACKWARDS`], [`NOTE_NO_DATA`], ...).
    pub fn counted(&self, what: &str) -> u64 {
        self.notes.counted(what)
    }

    fn settle(&mut self, mut r: Record) -> Result<Option<Record>, TraceError> {
        let (_, place) = self.src.place();
        if r.op == Op::Flush {
            r.sector = Sector(0);
            r.sectors = Sectors(0);
        } else if r.sectors.0 == 0 {
            self.notes.count(NOTE_NO_DATA, place);
            return Ok(None);
        } else if r
            .sector
            .0
            .checked_add(u64::from(r.sectors.0))
            .is_none_or(|end| end > SECTOR_END_MAX)
        {
            return Err(self.error(
                ErrorKind::Range,
                format!(
                    "sectors {} + {} are beyond the end of any device",
                    r.sector, r.sectors
                ),
                "sectors have 512 bytes; is this the right format?",
            ));
        }
        if self.records == self.records_max {
            return Err(self.error(
                ErrorKind::Limit,
                format!("more than {} records", self.records_max),
                "use --limit to read a part",
            ));
        }
        let base = *self.base_ns.get_or_insert(r.t_ns);
        let since = |t: u64| t.saturating_sub(base);
        let raw_t = r.t_ns;
        r.t_ns = since(r.t_ns);
        if raw_t < base.saturating_add(self.last_ns) {
            let back = base.saturating_add(self.last_ns) - raw_t;
            self.back_max_ns = self.back_max_ns.max(back);
            self.notes.count(NOTE_BACKWARDS, place);
            r.t_ns = self.last_ns;
        }
        self.last_ns = r.t_ns;
        if !self.pids.is_empty() {
            let pid = r.task.map_or(u32::MAX, |t| t.0);
            if !self.pids.contains(&pid) {
                self.other_pids.add(pid);
                return Ok(None);
            }
        }
        if r.t_ns < self.from_ns {
            return Ok(None);
        }
        if r.t_ns >= self.until_ns {
            self.done = true;
            return Ok(None);
        }
        let mut floor = r.t_ns;
        let later = [&mut r.insert_ns, &mut r.issue_ns, &mut r.complete_ns];
        for t in later.into_iter().flatten() {
            *t = since(*t).max(floor);
            floor = *t;
        }
        if floor > TIME_MAX_NS {
            return Err(self.error(
                ErrorKind::Range,
                format!(
                    "record {} is {} years later than the first record",
                    self.records + 1,
                    floor / NSEC_PER_YEAR
                ),
                "times can span at most 285 years; are they in the unit of this format?",
            ));
        }
        let times = [&mut r.insert_ns, &mut r.issue_ns, &mut r.complete_ns];
        for t in times.into_iter().flatten() {
            *t -= self.from_ns;
        }
        r.t_ns -= self.from_ns;
        self.records += 1;
        Ok(Some(r))
    }

    /// Returns an error at the end of the trace if no record matches the device, the volume or the
    /// processes that the user selected.
    fn none_such(&self) -> Option<TraceError> {
        if self.records > 0 {
            return None;
        }
        let (devices, pids) = (self.notes.devices(), &self.other_pids);
        let error = |what: String, remedy: String| {
            TraceError::new(ErrorKind::Device, &self.name, Place::File, what, remedy)
        };
        if pids.kinds() > 0 {
            let there = pids.busiest(LISTED, |p| match p {
                u32::MAX => "none".to_owned(),
                p => p.to_string(),
            });
            let asked: Vec<String> = self.pids.iter().map(u32::to_string).collect();
            return Some(error(
                format!("no record of pid {}", asked.join(", ")),
                format!("its pids are (records): {there}"),
            ));
        }
        if let Some(chosen) = &self.chosen
            && devices.kinds() > 0
        {
            let there = devices.busiest(LISTED, |d| self.src.device_name(d));
            return Some(error(
                format!("no record of device {chosen}"),
                format!("its devices are (records): {there}"),
            ));
        }
        None
    }

    fn error(&self, kind: ErrorKind, what: String, remedy: &str) -> TraceError {
        let (file, place) = self.src.place();
        TraceError::new(kind, file, place, what, remedy)
    }
}

/// Returns the device or volume that the options select, as text.
fn chosen(options: &ReadOptions) -> Option<String> {
    let number = options
        .device
        .map(|d| format!("{},{}", d >> 20, d & 0xf_ffff));
    options.volume.clone().or(number)
}

impl Iterator for Reader {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            let next = match self.src.next(&mut self.notes) {
                Ok(Some(r)) => self.settle(r),
                Ok(None) => {
                    self.done = true;
                    return self.none_such().map(Err);
                }
                Err(e) => Err(e),
            };
            match next {
                Ok(Some(r)) => return Some(Ok(r)),
                Ok(None) => {}
                Err(e) => {
                    self.done = true;
                    return Some(Err(e));
                }
            }
        }
        None
    }
}
