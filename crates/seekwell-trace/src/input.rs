//! The input of a reader: a file or pipe, which is decompressed while it is read, with one buffer
//! of fixed size.
//!
//! zstd and gzip are recognised by the first bytes, regardless of the file name. For a trace of any
//! length, the memory is the buffer plus the window of the decoder. The window is at most 128 MiB
//! for zstd (the default limit of `zstd -d`) and 32 KiB for gzip.

use crate::error::{ErrorKind, Place, Remedied, TraceError};
use crate::notes::Notes;
use crate::options::Limits;
use crate::spool::Spool;
use seekwell_files::{Kind, ReadError, open_stream};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Base-2 logarithm of the maximum zstd window in bytes: 128 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// Size of the buffer in bytes, unless longer lines are allowed.
const BUFFER_BYTES: usize = 64 << 10;
/// Number of bytes that are used to detect the format.
pub const SNIFF_BYTES: usize = 16 << 10;

/// A buffered and decompressed stream of bytes with a name.
pub struct Input {
    name: String,
    again: Again,
    src: Box<dyn Read + Send>,
    buf: Vec<u8>,
    at: usize,
    end: usize,
    eof: bool,
    /// True if the compressed data ended too early and the options allow this.
    cut: bool,
    allow_cut: bool,
    /// True if the last returned line had no newline.
    open_line: bool,
    limits: Limits,
    /// Number of bytes read from the file so far, before decompression.
    count: Arc<AtomicU64>,
    /// Size in bytes; `None` if the input is not a regular file.
    bytes: Option<u64>,
}

/// Opens a file, a pipe or a terminal. Returns an error with the remedy for a disk or any other
/// device.
pub(crate) fn open_trace(path: &Path) -> Result<File, TraceError> {
    open_stream(path).map_err(|e| {
        let remedy = match &e {
            ReadError::Io(e) if e.kind() == io::ErrorKind::NotFound => "check the name",
            ReadError::Io(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                "check its permissions"
            }
            ReadError::Io(_) => "give a file that can be read",
            ReadError::Kind(Kind::BlockDevice) => {
                "record its requests with `blktrace -d`, and use that file"
            }
            _ => "give a file with a trace, or a pipe",
        };
        let what = match &e {
            ReadError::Io(e) => format!("cannot open: {e}"),
            other => other.to_string(),
        };
        let name = path.display().to_string();
        TraceError::new(ErrorKind::Io, name, Place::File, what, remedy)
    })
}

/// How the input can be read again.
enum Again {
    Nowhere,
    Path(PathBuf),
    Spool(Arc<Spool>),
}

impl Input {
    /// Reads the contents of a spool from the beginning.
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

    /// Reads from any reader. `name` is its name in messages.
    pub fn new(
        name: String,
        mut raw: Box<dyn Read + Send>,
        limits: Limits,
        allow_cut: bool,
    ) -> Result<Input, TraceError> {
        let mut head = [0u8; 8];
        let n = read_full(&mut raw, &mut head).map_err(|e| io_error(&name, Place::File, &e))?;
        let magic = head;
        let packed = Packing::detect(&magic[..n]);
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

    /// Opens the same file again from its start. Returns `None` for a pipe.
    pub fn again(&self) -> Option<Result<Input, TraceError>> {
        let (limits, cut) = (self.limits, self.allow_cut);
        match &self.again {
            Again::Nowhere => None,
            Again::Path(path) => Some(Input::open(path, limits, cut)),
            Again::Spool(spool) => Some(Input::spooled(spool, limits, cut)),
        }
    }

    /// Opens the file again, if it is not compressed. Returns `None` for any other input.
    pub(crate) fn plain(&self) -> Option<File> {
        match &self.again {
            Again::Path(path) => File::open(path).ok(),
            _ => None,
        }
    }

    /// Returns the progress: the counter of bytes read before decompression, and the size. Returns
    /// `None` if the input is not a regular file.
    pub(crate) fn far(&self) -> Option<(Arc<AtomicU64>, u64)> {
        Some((self.count.clone(), self.bytes?))
    }
    /// Returns the name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Returns true if the trace ended too early and the options allow this.
    pub(crate) fn was_cut(&self) -> bool {
        self.cut
    }
    /// Adds a warning if the trace ended too early.
    pub(crate) fn note_cut(&self, notes: &mut Notes) {
        if self.cut {
            let name = &self.name;
            notes.say(format!(
                "{name}: the trace is cut off; its complete records are used"
            ));
        }
    }
    /// Returns true if an invalid line is the incomplete end of the trace and the options allow
    /// this.
    pub(crate) fn forgive_line(&mut self) -> bool {
        self.cut |= self.open_line && self.allow_cut;
        self.cut
    }
    /// Makes an error at a position in this file.
    pub(crate) fn error(
        &self,
        kind: ErrorKind,
        place: Place,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> TraceError {
        TraceError::new(kind, &self.name, place, what, remedy)
    }

    /// Reads more data into the buffer. Returns false at the end of the input, or if the buffer is
    /// full.
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

    /// Returns up to `n` bytes without consuming them. Returns fewer bytes only at the end of the
    /// input. `n` must not exceed the size of the buffer.
    pub fn peek(&mut self, n: usize, place: Place) -> Result<&[u8], TraceError> {
        while self.end - self.at < n && self.fill(place)? {}
        let n = n.min(self.end - self.at);
        Ok(&self.buf[self.at..self.at + n])
    }
    /// Consumes `n` bytes that [`Input::peek`] returned.
    pub fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.at);
        self.at += n;
    }

    /// Reads a binary record of exactly `N` bytes. Returns `None` at the end of the input. An
    /// incomplete record is an error; if the options allow an incomplete trace, it counts as the
    /// end.
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
            "the records before it are complete: --allow-truncated uses them",
        ))
    }

    /// Reads the `n` bytes of data that follow a record. Returns `None` if the trace ends within
    /// them and the options allow this.
    pub fn bytes(&mut self, n: usize, place: Place) -> Result<Option<&[u8]>, TraceError> {
        if n > self.limits.line_bytes_max {
            return Err(TraceError::new(
                ErrorKind::Limit,
                &self.name,
                place,
                format!("{n} bytes of data attached to one record"),
                format!(
                    "the limit is {} bytes per record",
                    self.limits.line_bytes_max
                ),
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

    /// Returns the next line without its newline, or `None` after the last line.
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

/// The compression of the input, detected from its first bytes.
enum Packing {
    None,
    Gzip,
    Zstd,
    Foreign(&'static str),
}

impl Packing {
    fn detect(head: &[u8]) -> Packing {
        match head {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
            // A skippable frame. Parallel compressors write it at the start.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Packing::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Foreign("xz"),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Packing::Foreign("bzip2"),
            [0x04, 0x22, 0x4d, 0x18, ..] => Packing::Foreign("lz4"),
            [b'P', b'K', 3, 4, ..] => Packing::Foreign("zip"),
            _ => Packing::None,
        }
    }
}

/// Counts the bytes of the compressed input.
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

/// Compares the size of the output with the size of the input, and stops at a decompression bomb.
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

/// The message about a decompression bomb, passed through `io::Error`.
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
                "{inside} compressed bytes expand to more than {} bytes, over {} times as many",
                self.outside, self.limits.ratio_max
            ))));
        }
        Ok(n)
    }
}

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
            "no usual trace has such a compression ratio; if this is a trace, decompress it first",
        );
    }
    let (kind, remedy) = match e.kind() {
        io::ErrorKind::UnexpectedEof => (
            ErrorKind::Truncated,
            "the compressed data end too early: fetch the file again, or use what there is with \
             --allow-truncated",
        ),
        // The message of zstd for a window above the limit.
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
