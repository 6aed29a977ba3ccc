//! Input: a file or pipe, decompressed while reading, in one buffer of fixed size.
//!
//! zstd and gzip are recognised by their first bytes, whatever the file's name is. Memory is the
//! buffer plus the decoder's window (at most 128 MiB for zstd, the default limit of
//! `zstd -d`; 32 KiB for gzip), for a trace of any length.

use crate::error::{ErrorKind, Place, TraceError};
use crate::notes::Notes;
use crate::options::Limits;
use crate::spool::Spool;
use seekwell_files::{Kind, ReadError, open_stream};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest zstd window accepted, as a power of two: 128 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// Size of the buffer, unless longer lines are allowed.
const BUFFER_BYTES: usize = 64 << 10;
/// Number of bytes used to detect the format.
pub const SNIFF_BYTES: usize = 16 << 10;

/// A buffered, decompressed stream of bytes with a name.
pub struct Input {
    name: String,
    again: Again,
    src: Box<dyn Read + Send>,
    buf: Vec<u8>,
    at: usize,
    end: usize,
    eof: bool,
    /// The compressed data ended too early, which the options allow.
    cut: bool,
    allow_cut: bool,
    /// The last returned line had no line end.
    open_line: bool,
    limits: Limits,
    /// Number of bytes of the file read so far, before decompression.
    count: Arc<AtomicU64>,
    /// Size of a regular file.
    bytes: Option<u64>,
}

/// Opens a file, a pipe or a terminal. A disk or another device gives an error with the remedy.
pub(crate) fn open_trace(path: &Path) -> Result<File, TraceError> {
    open_stream(path).map_err(|e| {
        let remedy = match &e {
            ReadError::Io(e) if e.kind() == io::ErrorKind::NotFound => "check the name",
            ReadError::Io(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                "check its permissions"
            }
            ReadError::Io(_) => "name a file that can be read",
            ReadError::Kind(Kind::BlockDevice) => {
                "record its requests with `blktrace -d`, and use that file"
            }
            _ => "name a file with a trace, or a pipe",
        };
        let what = match &e {
            ReadError::Io(e) => format!("cannot open: {e}"),
            other => other.to_string(),
        };
        let name = path.display().to_string();
        TraceError::new(ErrorKind::Io, name, Place::File, what, remedy)
    })
}

/// How to read the input again.
enum Again {
    Nowhere,
    Path(PathBuf),
    Spool(Arc<Spool>),
}

impl Input {
    /// Reads the contents of a spool from its beginning.
    pub fn spooled(
        spool: &Arc<Spool>,
        limits: Limits,
        allow_cut: bool,
    ) -> Result<Input, TraceError> {
        let name = spool.name().to_owned();
        let mut input = Input::new(name, Box::new(spool.reader()), limits, allow_cut)?;
        input.again = Again::Spool(spool.clone());
        Ok(input)
    }

    /// Opens a file. A regular file can be read a second time; see [`Input::again`].
    pub fn open(path: &Path, limits: Limits, allow_cut: bool) -> Result<Input, TraceError> {
        let name = path.display().to_string();
        let file = open_trace(path)?;
        let bytes = file.metadata().ok().filter(std::fs::Metadata::is_file);
        let bytes = bytes.map(|m| m.len());
        let mut input = Input::new(name, Box::new(file), limits, allow_cut)?;
        input.bytes = bytes;
        if bytes.is_some() {
            input.again = Again::Path(path.to_path_buf());
        }
        Ok(input)
    }

    /// Wraps a reader; `name` is its name in messages.
    pub fn new(
        name: String,
        mut raw: Box<dyn Read + Send>,
        limits: Limits,
        allow_cut: bool,
    ) -> Result<Input, TraceError> {
        let mut head = [0u8; 8];
        let n = read_full(&mut raw, &mut head).map_err(|e| io_error(&name, Place::File, &e))?;
        let magic = head;
        let packed = Packing::of(&magic[..n]);
        let count = Arc::new(AtomicU64::new(0));
        let raw = Counted {
            src: Cursor::new(head).take(n as u64).chain(raw),
            count: count.clone(),
        };
        let far = count.clone();
        let src: Box<dyn Read + Send> = match packed {
            Packing::None => Box::new(raw),
            Packing::Gzip => Box::new(Guard::new(
                flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(64 << 10, raw)),
                count,
                limits,
            )),
            Packing::Zstd => {
                let buffered = BufReader::with_capacity(64 << 10, raw);
                let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered)
                    .map_err(|e| io_error(&name, Place::File, &e))?;
                decoder
                    .window_log_max(ZSTD_WINDOW_LOG_MAX)
                    .map_err(|e| io_error(&name, Place::File, &e))?;
                Box::new(Guard::new(decoder, count, limits))
            }
            Packing::Foreign(tool) => {
                return Err(TraceError::new(
                    ErrorKind::Unsupported,
                    name,
                    Place::File,
                    format!("is compressed with {tool}, which is not supported"),
                    format!("decompress it ({tool} -d), or compress it with zstd or gzip"),
                ));
            }
        };
        Ok(Input {
            name,
            again: Again::Nowhere,
            src,
            buf: vec![0; BUFFER_BYTES.max(limits.line_bytes_max.saturating_add(2))],
            at: 0,
            end: 0,
            eof: false,
            cut: false,
            allow_cut,
            open_line: false,
            limits,
            count: far,
            bytes: None,
        })
    }

    /// Opens the same file again from its start; `None` for a pipe.
    pub fn again(&self) -> Option<Result<Input, TraceError>> {
        let (limits, cut) = (self.limits, self.allow_cut);
        match &self.again {
            Again::Nowhere => None,
            Again::Path(path) => Some(Input::open(path, limits, cut)),
            Again::Spool(spool) => Some(Input::spooled(spool, limits, cut)),
        }
    }

    /// The uncompressed file, opened again; `None` for anything else.
    pub(crate) fn plain(&self) -> Option<File> {
        match &self.again {
            Again::Path(path) => File::open(path).ok(),
            _ => None,
        }
    }

    /// Progress: the counter of bytes read before decompression, and the size if it is a regular
    /// file.
    pub(crate) fn far(&self) -> Option<(Arc<AtomicU64>, u64)> {
        Some((self.count.clone(), self.bytes?))
    }
    /// Name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Whether the trace ended too early, where the options allow it.
    pub(crate) fn was_cut(&self) -> bool {
        self.cut
    }
    /// Adds a warning if the trace was cut off.
    pub(crate) fn note_cut(&self, notes: &mut Notes) {
        if self.cut {
            let name = &self.name;
            notes.say(format!(
                "{name}: the trace is cut off; its complete records are used"
            ));
        }
    }
    /// Whether an unreadable line is the cut-off end of a trace, where the options allow it.
    pub(crate) fn forgive_line(&mut self) -> bool {
        self.cut |= self.open_line && self.allow_cut;
        self.cut
    }
    /// Makes an error at a place in this file.
    pub(crate) fn error(
        &self,
        kind: ErrorKind,
        place: Place,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> TraceError {
        TraceError::new(kind, &self.name, place, what, remedy)
    }

    /// Reads more data into the buffer. Returns false at the end, or if the buffer is full.
    fn fill(&mut self, place: Place) -> Result<bool, TraceError> {
        if self.at > 0 {
            self.buf.copy_within(self.at..self.end, 0);
            self.end -= self.at;
            self.at = 0;
        }
        while !self.eof && self.end < self.buf.len() {
            match self.src.read(&mut self.buf[self.end..]) {
                Ok(0) => self.eof = true,
                Ok(n) => {
                    self.end += n;
                    return Ok(true);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof && self.allow_cut => {
                    self.eof = true;
                    self.cut = true;
                }
                Err(e) => {
                    self.eof = true;
                    return Err(io_error(&self.name, place, &e));
                }
            }
        }
        Ok(false)
    }

    /// Returns up to `n` bytes without consuming them; fewer only at the end. The buffer limits
    /// `n`.
    pub fn peek(&mut self, n: usize, place: Place) -> Result<&[u8], TraceError> {
        while self.end - self.at < n && self.fill(place)? {}
        let n = n.min(self.end - self.at);
        Ok(&self.buf[self.at..self.at + n])
    }
    /// Consumes `n` peeked bytes.
    pub fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.at);
        self.at += n;
    }

    /// A binary record of exactly `N` bytes; `None` at the end. An incomplete record is an error,
    /// or the end if the options allow a cut-off trace.
    #[inline]
    pub fn block<const N: usize>(&mut self, place: Place) -> Result<Option<[u8; N]>, TraceError> {
        if self.end - self.at < N {
            let got = self.peek(N, place)?.len();
            if got < N {
                return self.short(got, N, place);
            }
        }
        let mut out = [0u8; N];
        out.copy_from_slice(&self.buf[self.at..self.at + N]);
        self.at += N;
        Ok(Some(out))
    }

    fn short<T>(&mut self, got: usize, need: usize, place: Place) -> Result<Option<T>, TraceError> {
        if got == 0 && !self.cut {
            return Ok(None);
        }
        self.at = self.end;
        if self.allow_cut {
            self.cut = true;
            return Ok(None);
        }
        Err(TraceError::new(
            ErrorKind::Truncated,
            &self.name,
            place,
            format!("the trace ends inside a record ({got} of {need} bytes)"),
            "the records before it are whole: --allow-truncated uses them",
        ))
    }

    /// The `n` bytes of data that follow a record; `None` if the trace is cut off there and the
    /// options allow it.
    pub fn bytes(&mut self, n: usize, place: Place) -> Result<Option<&[u8]>, TraceError> {
        if n > self.limits.line_bytes_max {
            return Err(TraceError::new(
                ErrorKind::Limit,
                &self.name,
                place,
                format!("{n} bytes of data attached to one record"),
                format!("the limit is {} bytes a record", self.limits.line_bytes_max),
            ));
        }
        let got = self.peek(n, place)?.len();
        if got < n {
            self.short::<()>(got.max(1), n, place)?;
            return Ok(None);
        }
        self.at += n;
        Ok(Some(&self.buf[self.at - n..self.at]))
    }

    /// The next line without its line end; `None` after the last one.
    #[inline]
    pub fn line(&mut self, place: Place) -> Result<Option<&[u8]>, TraceError> {
        let mut seen = 0;
        loop {
            let have = &self.buf[self.at..self.end];
            if let Some(i) = memchr::memchr(b'\n', &have[seen..]) {
                let from = self.at;
                let len = seen + i;
                self.at += len + 1;
                return self.line_within(from, len, place).map(Some);
            }
            seen = have.len();
            if seen > self.limits.line_bytes_max {
                return self.line_within(self.at, seen, place).map(Some);
            }
            if !self.fill(place)? {
                let from = self.at;
                self.at = self.end;
                if self.end == from {
                    return Ok(None);
                }
                if self.cut {
                    return Ok(None);
                }
                self.open_line = true;
                return self.line_within(from, seen, place).map(Some);
            }
        }
    }

    fn line_within(&self, from: usize, len: usize, place: Place) -> Result<&[u8], TraceError> {
        if len > self.limits.line_bytes_max {
            return Err(TraceError::new(
                ErrorKind::Limit,
                &self.name,
                place,
                format!("longer than {} bytes", self.limits.line_bytes_max),
                "is this the right format? No trace has such lines",
            ));
        }
        let line = &self.buf[from..from + len];
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// The compression of the input, by its first bytes.
enum Packing {
    None,
    Gzip,
    Zstd,
    Foreign(&'static str),
}

impl Packing {
    fn of(head: &[u8]) -> Packing {
        match head {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
            // A skippable frame, with which parallel compressors begin.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Packing::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Foreign("xz"),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Packing::Foreign("bzip2"),
            [0x04, 0x22, 0x4d, 0x18, ..] => Packing::Foreign("lz4"),
            [b'P', b'K', 3, 4, ..] => Packing::Foreign("zip"),
            _ => Packing::None,
        }
    }
}

/// Counts the compressed input bytes.
struct Counted<R> {
    src: R,
    count: Arc<AtomicU64>,
}
impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.src.read(buf)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Compares output with input sizes, and stops a decompression bomb.
struct Guard<R> {
    src: R,
    inside: Arc<AtomicU64>,
    outside: u64,
    limits: Limits,
}
impl<R> Guard<R> {
    fn new(src: R, inside: Arc<AtomicU64>, limits: Limits) -> Self {
        Guard {
            src,
            inside,
            outside: 0,
            limits,
        }
    }
}

/// The message about a bomb, passed through `io::Error`.
#[derive(Debug)]
struct Bomb(String);
impl std::fmt::Display for Bomb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Bomb {}

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.src.read(buf)?;
        self.outside = self.outside.saturating_add(n as u64);
        let inside = self.inside.load(Ordering::Relaxed).max(1);
        if self.outside > self.limits.ratio_floor_bytes
            && self.outside / inside > self.limits.ratio_max
        {
            return Err(io::Error::other(Bomb(format!(
                "{inside} compressed bytes became {} and more: over {} times as many",
                self.outside, self.limits.ratio_max
            ))));
        }
        Ok(n)
    }
}

/// A system error with a known remedy, passed through `io::Error`.
#[derive(Debug)]
pub(crate) struct Remedied {
    what: String,
    remedy: &'static str,
}
impl Remedied {
    /// Makes a system error.
    pub fn error(what: String, remedy: &'static str) -> io::Error {
        io::Error::other(Remedied { what, remedy })
    }
}
impl std::fmt::Display for Remedied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}
impl std::error::Error for Remedied {}

fn io_error(name: &str, place: Place, e: &io::Error) -> TraceError {
    if let Some(r) = e.get_ref().and_then(|e| e.downcast_ref::<Remedied>()) {
        return TraceError::new(ErrorKind::Io, name, place, &r.what, r.remedy);
    }
    if let Some(bomb) = e.get_ref().and_then(|e| e.downcast_ref::<Bomb>()) {
        return TraceError::new(
            ErrorKind::Bomb,
            name,
            place,
            bomb.to_string(),
            "no trace compresses like that; if this one does, decompress it first",
        );
    }
    let (kind, remedy) = match e.kind() {
        io::ErrorKind::UnexpectedEof => (
            ErrorKind::Truncated,
            "the compressed data end too early: fetch the file again, or use what there is with \
             --allow-truncated",
        ),
        // zstd's message for a window above our limit.
        _ if e.to_string().contains("too much memory") => (
            ErrorKind::Io,
            "its window is above 128 MiB: decompress it first (zstd -d --long=31)",
        ),
        _ => (
            ErrorKind::Io,
            "the file is damaged or cannot be read: fetch it again",
        ),
    };
    TraceError::new(
        kind,
        name,
        place,
        format!("cannot read further: {e}"),
        remedy,
    )
}

fn read_full(r: &mut dyn Read, buf: &mut [u8]) -> io::Result<usize> {
    let mut n = 0;
    while n < buf.len() {
        match r.read(&mut buf[n..]) {
            Ok(0) => break,
            Ok(k) => n += k,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(n)
}
