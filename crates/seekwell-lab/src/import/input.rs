//! Reads a file of any format, and checks its size and encoding.

use super::{ImportError, Place};
use std::io::Read;
use std::path::Path;

/// Largest size of a file in bytes. A pgbench log of some million transactions is smaller.
const BYTES_MAX: u64 = 256 << 20;

/// Name and text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Name of the file as the user gave it.
    pub name: String,
    /// Text of the file, without a byte order mark.
    pub text: String,
}

impl Input {
    /// Reads a file; the path `-` is standard input.
    pub fn read(path: &Path) -> Result<Self, ImportError> {
        let name = match path.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => path.display().to_string(),
        };
        let failed = |what: String| ImportError {
            file: name.clone(),
            place: Place::File,
            what,
        };
        let mut bytes = Vec::new();
        let stream: Box<dyn Read> = if path == Path::new("-") {
            Box::new(std::io::stdin())
        } else {
            let file = seekwell_files::open_stream(path);
            Box::new(file.map_err(|e| failed(e.to_string()))?)
        };
        let read = stream.take(BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|e| failed(e.to_string()))?;
        Input::of_bytes(&name, bytes)
    }

    /// Decodes UTF-8. For other data, the error contains the kind of data, if known.
    pub fn of_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, ImportError> {
        let failed = |place: Place, what: String| ImportError {
            file: name.to_owned(),
            place,
            what,
        };
        let whole = |what: &str| Err(failed(Place::File, what.to_owned()));
        if bytes.len() as u64 > BYTES_MAX {
            let most = BYTES_MAX >> 20;
            return whole(&format!(
                "holds more than {most} MiB; split it by run, or sum a log up in intervals \
                 (pgbench --aggregate-interval)"
            ));
        }
        let utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
        if utf16 || (bytes.len() > 3 && bytes[0] != 0 && bytes[1] == 0 && bytes[3] == 0) {
            return whole("is text in UTF-16; save it as UTF-8 (iconv -f UTF-16 -t UTF-8 FILE)");
        }
        let packed = [
            (&b"\x1f\x8b"[..], "gzip", "gunzip"),
            (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
            (b"PK\x03\x04", "zip", "unzip"),
        ];
        if let Some((_, how, with)) = packed.iter().find(|p| bytes.starts_with(p.0)) {
            return whole(&format!("is packed ({how}); unpack it first ({with} FILE)"));
        }
        let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) => rest.to_vec(),
            None => bytes,
        };
        let line = |at: usize| 1 + bytes[..at].iter().filter(|b| **b == b'\n').count();
        if let Some(at) = bytes.iter().position(|b| *b == 0) {
            let what = "contains a zero byte: it is not text".to_owned();
            return Err(failed(Place::Line(line(at)), what));
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(Input {
                name: name.to_owned(),
                text: text.to_owned(),
            }),
            Err(e) => Err(failed(
                Place::Line(line(e.valid_up_to())),
                "is not UTF-8; convert it first (iconv -f ISO-8859-1 -t UTF-8 FILE)".to_owned(),
            )),
        }
    }

    /// Returns an error at a position in this file.
    pub(super) fn error(&self, place: Place, what: impl Into<String>) -> ImportError {
        ImportError {
            file: self.name.clone(),
            place,
            what: what.into(),
        }
    }

    /// Returns the file's name without directories.
    pub(super) fn base(&self) -> &str {
        base(&self.name)
    }
}

/// Returns the part of a path after the last slash.
pub(super) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8]) -> String {
        let e = Input::of_bytes("x.csv", bytes.to_vec()).expect_err("refused");
        e.to_string()
    }

    #[test]
    fn unsupported_encodings_are_named() {
        for (bytes, said) in [
            (&b"\xff\xfea\0,\0"[..], "UTF-16"),
            (b"\xfe\xff\0a\0,", "UTF-16"),
            (b"a\0,\0b\0", "UTF-16"),
            (b"\x1f\x8b\x08", "gunzip"),
            (b"a,b\nc,\xe9\n", "x.csv, line 2: is not UTF-8"),
            (b"a,b\n\n\0", "x.csv, line 3: contains a zero byte"),
        ] {
            assert!(refused(bytes).contains(said), "{}", refused(bytes));
        }
        let marked = Input::of_bytes("x", b"\xef\xbb\xbfa,b".to_vec()).expect("text");
        assert_eq!(marked.text, "a,b");
    }
}
