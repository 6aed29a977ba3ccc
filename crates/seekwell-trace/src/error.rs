//! What can be wrong with a trace, said once: file, place, what, remedy.

use std::fmt;

/// What kind of trouble it is, for programs; people read the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The system could not read or write.
    Io,
    /// Nothing in it.
    Empty,
    /// No format recognises it, or there is none of that name.
    UnknownFormat,
    /// A version or feature of the format that is not read.
    Unsupported,
    /// It ends in the middle of a record or of compressed data.
    Truncated,
    /// A record or line does not say what the format asks for.
    Broken,
    /// A value outside its range.
    Range,
    /// One of [`crate::Limits`] was reached.
    Limit,
    /// Compressed data expand beyond reason.
    Bomb,
    /// The trace lacks what a replay mode needs.
    Mode,
    /// Not the device, volume or process that was asked for, or several where one is wanted.
    Device,
}

/// Where in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A binary record, counted from 1.
    Record(u64),
    /// A line of text, counted from 1.
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

/// One clear message. Small (a pointer), so that a stream of results costs nothing extra.
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
    /// Makes one. `what` says what is wrong with which value, `remedy` what to do about it.
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
    /// Kind of trouble.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// File (or stream) it is in.
    pub fn file(&self) -> &str {
        &self.0.file
    }
    /// Where in it.
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

/// At most 60 characters of what was found, printable, for messages.
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
