//! Errors of traces. An error has a file, a position, a fault and a remedy.

use std::fmt;

/// The kind of an error, for programs. Users read the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// A read or write of the operating system failed.
    Io,
    /// The trace is empty.
    Empty,
    /// No format recognises the trace, or no format has the requested name.
    UnknownFormat,
    /// The format has a version or feature that is not supported.
    Unsupported,
    /// The trace ends inside a record or inside compressed data.
    Truncated,
    /// A record or line violates the format.
    Broken,
    /// A value is out of range.
    Range,
    /// The trace exceeds one of [`crate::Limits`].
    Limit,
    /// The compression ratio of the data is implausible.
    Bomb,
    /// The trace lacks information that a replay mode needs.
    Mode,
    /// The trace does not have the requested device, volume or process. Or it has several of them,
    /// and the operation needs exactly one.
    Device,
}

/// A position in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A binary record; the first is 1.
    Record(u64),
    /// A line of text; the first is 1.
    Line(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File => Ok(()),
            Place::Record(n) => write!(f, "record {n}: "),
            Place::Line(n) => write!(f, "line {n}: "),
        }
    }
}

/// An error with a message. It has the size of one pointer, so that results stay small.
pub struct TraceError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    file: String,
    place: Place,
    what: String,
    remedy: String,
}

impl TraceError {
    /// Makes an error. `what` describes the fault with the value, and `remedy` tells how to correct
    /// it.
    pub fn new(
        kind: ErrorKind,
        file: impl Into<String>,
        place: Place,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        TraceError(Box::new(Inner {
            kind,
            file: file.into(),
            place,
            what: what.into(),
            remedy: remedy.into(),
        }))
    }
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// Returns the name of the file or stream with the fault.
    pub fn file(&self) -> &str {
        &self.0.file
    }
    /// Returns the position of the fault.
    pub fn place(&self) -> Place {
        self.0.place
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &*self.0;
        write!(f, "{}: {}{}; {}", e.file, e.place, e.what, e.remedy)
    }
}
impl fmt::Debug for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}
impl std::error::Error for TraceError {}

/// An error of the operating system with a known remedy, passed through `io::Error`.
#[derive(Debug)]
pub(crate) struct Remedied {
    pub what: String,
    pub remedy: &'static str,
}
impl Remedied {
    /// Makes such an error.
    pub fn error(what: String, remedy: &'static str) -> std::io::Error {
        std::io::Error::other(Remedied { what, remedy })
    }
}
impl std::fmt::Display for Remedied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}
impl std::error::Error for Remedied {}

/// Returns at most 60 printable characters of the input, for messages.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(&bytes[..bytes.len().min(240)])
        .chars()
        .map(|c| {
            if seekwell_core::foreign::acts(c) {
                '?'
            } else {
                c
            }
        })
        .collect();
    match text.char_indices().nth(60) {
        Some((i, _)) => format!("\"{}...\"", &text[..i]),
        None => format!("\"{text}\""),
    }
}
