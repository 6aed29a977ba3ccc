//! Writers of traces: the traits, buffered output, and the conversion of records to events in order
//! of time.

use crate::blk::BlkEvent;
use crate::error::{ErrorKind, Place, TraceError};
use crate::options::WriteOptions;
use crate::record::Record;
use seekwell_core::{Action, Event, Op};
use seekwell_files::Sink;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;
use std::path::Path;

/// Writes records, which must be in order of time. The end of the trace can be missing if
/// [`Writer::finish`] is not called.
pub trait Writer: Send {
    /// Writes a record.
    fn write(&mut self, r: &Record) -> Result<(), TraceError>;
    /// Sets the name of a process. It must precede the first record of the process. Formats without
    /// names ignore it.
    fn name(&mut self, _pid: u32, _name: &str) {}
    /// Writes the remaining data and flushes the output. No other method may be called after it.
    fn finish(&mut self) -> Result<(), TraceError>;
}

/// Writes the events of a block layer.
pub trait EventWriter {
    /// Writes an event. Times must not decrease.
    fn event(&mut self, e: &Event) -> Result<(), TraceError>;
}

/// Creates a file for writing. The extension of its name selects the compression. The first call of
/// `flush` ends the file, and only then the complete file appears under its name. An existing file
/// keeps its owner and mode.
pub fn create_file(path: &Path) -> Result<Box<dyn Write + Send>, TraceError> {
    let fail = |e: std::io::Error| {
        TraceError::new(
            ErrorKind::Io,
            path.display().to_string(),
            Place::File,
            format!("cannot create: {e}"),
            "check the folder and its permissions",
        )
    };
    let file = Sink::open(path).map_err(fail)?;
    Ok(match Packed::of_name(path) {
        Packed::Zstd => EndOnFlush::boxed(
            zstd::stream::write::Encoder::new(file, 3).map_err(fail)?,
            |z| z.finish()?.finish(),
        ),
        Packed::Gzip => {
            let level = flate2::Compression::default();
            let packed = flate2::write::GzEncoder::new(file, level);
            EndOnFlush::boxed(packed, |z| z.finish()?.finish())
        }
        Packed::No => EndOnFlush::boxed(file, Sink::finish),
    })
}

/// The compression of a written trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packed {
    /// No compression.
    No,
    /// zstd.
    Zstd,
    /// gzip.
    Gzip,
}

impl Packed {
    /// Returns the compression for a file name, from its extension (`.zst` or `.gz`).
    pub fn of_name(path: &Path) -> Packed {
        match path.extension().and_then(|e| e.to_str()) {
            Some("zst") => Packed::Zstd,
            Some("gz") => Packed::Gzip,
            _ => Packed::No,
        }
    }
    /// Wraps `out` in a compressor. The `flush` of the result ends the stream.
    pub fn wrap(self, out: impl Write + Send + 'static) -> std::io::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Packed::No => Box::new(out),
            Packed::Zstd => {
                let packed = zstd::stream::write::Encoder::new(out, 3)?;
                EndOnFlush::boxed(packed, |z| z.finish()?.flush())
            }
            Packed::Gzip => {
                let level = flate2::Compression::default();
                let packed = flate2::write::GzEncoder::new(out, level);
                EndOnFlush::boxed(packed, |z| z.finish()?.flush())
            }
        })
    }
}

/// A file whose `flush` ends the compressed stream and renames the file to its final name.
/// [`Output::finish`] therefore returns every error.
struct EndOnFlush<T> {
    open: Option<T>,
    end: fn(T) -> std::io::Result<()>,
}

impl<T: Write + Send + 'static> EndOnFlush<T> {
    fn boxed(file: T, end: fn(T) -> std::io::Result<()>) -> Box<dyn Write + Send> {
        let open = Some(file);
        Box::new(EndOnFlush { open, end })
    }
}

impl<T: Write> Write for EndOnFlush<T> {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        match &mut self.open {
            Some(file) => file.write(buf),
            None => Err(std::io::Error::other("already ended")),
        }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.open.take().map_or(Ok(()), self.end)
    }
}

const BUFFER_BYTES: usize = 64 << 10;

/// Buffers bytes and writes them in large pieces.
pub(crate) struct Output {
    out: Option<Box<dyn Write + Send>>,
    buf: Vec<u8>,
    name: String,
    records: u64,
}

impl Output {
    pub fn new(out: Box<dyn Write + Send>, options: &WriteOptions) -> Self {
        Output {
            out: Some(out),
            buf: Vec::with_capacity(BUFFER_BYTES + 4096),
            name: options.name.clone(),
            records: 0,
        }
    }
    /// Returns the buffer for the next record.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }
    /// Ends a record in the buffer. Writes the buffer if it is full.
    pub fn done_one(&mut self) -> Result<(), TraceError> {
        self.records += 1;
        if self.buf.len() >= BUFFER_BYTES {
            return self.drain();
        }
        Ok(())
    }
    fn drain(&mut self) -> Result<(), TraceError> {
        let result = match &mut self.out {
            Some(out) => out.write_all(&self.buf),
            None => return Err(self.error(ErrorKind::Io, "already finished", "write before that")),
        };
        self.buf.clear();
        result.map_err(|e| self.failed(&e))
    }
    /// Writes the rest of the buffer and ends the stream, with compression too.
    pub fn finish(&mut self) -> Result<(), TraceError> {
        self.drain()?;
        let flushed = self.out.as_mut().map_or(Ok(()), |o| o.flush());
        self.out = None;
        flushed.map_err(|e| self.failed(&e))
    }
    fn failed(&self, e: &std::io::Error) -> TraceError {
        self.error(
            ErrorKind::Io,
            format!("cannot write: {e}"),
            "is the disk full?",
        )
    }
    pub fn error(
        &self,
        kind: ErrorKind,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> TraceError {
        TraceError::new(
            kind,
            &self.name,
            Place::Record(self.records + 1),
            what,
            remedy,
        )
    }
}

/// Maximum number of pending events.
const HELD_MAX: usize = 1 << 20;

/// Converts records to events in order of time. The completion of a record comes after all
/// submissions that are earlier than the completion.
#[derive(Default)]
pub(crate) struct Expand {
    held: BinaryHeap<Reverse<Held>>,
    seq: u64,
}

struct Held {
    t_ns: u64,
    seq: u64,
    event: BlkEvent,
}
impl PartialEq for Held {
    fn eq(&self, o: &Self) -> bool {
        (self.t_ns, self.seq) == (o.t_ns, o.seq)
    }
}
impl Eq for Held {}
impl PartialOrd for Held {
    fn partial_cmp(&self, o: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for Held {
    fn cmp(&self, o: &Self) -> std::cmp::Ordering {
        (self.t_ns, self.seq).cmp(&(o.t_ns, o.seq))
    }
}

impl Expand {
    /// Passes the submission of a record to `put`, after all earlier events.
    pub fn record<E>(
        &mut self,
        r: &Record,
        device: u32,
        mut put: impl FnMut(&BlkEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        self.until(r.t_ns, &mut put)?;
        let queue = BlkEvent {
            t_ns: r.t_ns,
            action: Action::Queue,
            op: r.op,
            flags: r.flags,
            sector: r.sector.0,
            sectors: r.sectors.0,
            task: r.task.map_or(0, |t| t.0),
            cpu: r.cpu.map_or(0, u32::from),
            device: if r.device == 0 { device } else { r.device },
            error: 0,
            ioprio: r.ioprio,
            write_bit: r.op != Op::Read,
        };
        put(&queue)?;
        let later = [
            (Action::Insert, r.insert_ns),
            (Action::Issue, r.issue_ns),
            (Action::Complete, r.complete_ns),
        ];
        for (action, t_ns) in later {
            let Some(t_ns) = t_ns else { continue };
            self.seq += 1;
            let done = action == Action::Complete;
            self.held.push(Reverse(Held {
                t_ns,
                seq: self.seq,
                event: BlkEvent {
                    t_ns: t_ns.max(r.t_ns),
                    action,
                    error: if done { r.error } else { 0 },
                    // A completion comes from an interrupt and not from the submitter.
                    task: if done { 0 } else { queue.task },
                    ..queue
                },
            }));
        }
        while self.held.len() > HELD_MAX {
            self.write_event(&mut put)?;
        }
        Ok(())
    }
    fn write_event<E>(
        &mut self,
        put: &mut impl FnMut(&BlkEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.held.pop() {
            Some(Reverse(h)) => put(&h.event),
            None => Ok(()),
        }
    }
    /// Passes all pending events up to `t_ns` (inclusive) to `put`.
    pub fn until<E>(
        &mut self,
        t_ns: u64,
        put: &mut impl FnMut(&BlkEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.held.peek().is_some_and(|Reverse(h)| h.t_ns <= t_ns) {
            self.write_event(put)?;
        }
        Ok(())
    }
}

/// Converts an event of the simulator to an event of a block trace.
pub(crate) fn blk_event(e: &Event, device: u32) -> BlkEvent {
    BlkEvent {
        t_ns: e.at.since_start(),
        action: e.action,
        op: e.op,
        flags: e.flags,
        sector: e.sector.0,
        sectors: e.sectors.0,
        task: e.task.map_or(0, |t| t.0),
        cpu: 0,
        device,
        error: 0,
        ioprio: None,
        write_bit: e.op != Op::Read,
    }
}
