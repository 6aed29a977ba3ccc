//! The writer of iologs, versions 2 and 3, for one file.
//!
//! The format has no processes, flags and completions. A flush becomes `sync`, and write-zeroes
//! becomes a write. fio reads lengths as 32-bit numbers, so longer ranges are split into pieces.

use crate::error::{ErrorKind, Place, TraceError};
use crate::options::WriteOptions;
use crate::record::Record;
use crate::text::push_number;
use crate::writer::{Output, Writer};
use seekwell_core::Op;
use seekwell_core::units::SECTOR_BYTES;
use std::io::Write;

/// fio ignores shorter waits, so the writer accumulates them.
const WAIT_MIN_US: u64 = 100;
/// Maximum length of a piece, in bytes.
const PIECE_BYTES: u64 = 1 << 31;

/// Writes an iolog.
pub struct IologWriter {
    out: Output,
    file: Vec<u8>,
    version: u32,
    waited_us: u64,
    last_us: u64,
}

impl IologWriter {
    /// Makes a writer of version 2 or 3 that writes to `out`. Returns an error if the file name is
    /// not valid in the format.
    pub fn new(
        out: Box<dyn Write + Send>,
        options: &WriteOptions,
        version: u32,
    ) -> Result<Self, TraceError> {
        let file = options.iolog_file.as_bytes();
        let blank = file
            .iter()
            .any(|c| c.is_ascii_whitespace() || c.is_ascii_control());
        if file.is_empty() || file.len() > 256 || blank {
            return Err(TraceError::new(
                ErrorKind::Range,
                &options.name,
                Place::File,
                format!(
                    "\"{}\" cannot be a file name in an iolog",
                    options.iolog_file
                ),
                "use a name of 1 to 256 bytes without blanks",
            ));
        }
        let mut out = Output::new(out, options);
        let head = format!("fio version {version} iolog\n");
        out.buffer().extend_from_slice(head.as_bytes());
        let mut writer = IologWriter {
            out,
            file: file.to_vec(),
            version,
            waited_us: 0,
            last_us: 0,
        };
        writer.line(b"add", None);
        writer.line(b"open", None);
        Ok(writer)
    }

    fn line(&mut self, action: &[u8], numbers: Option<(u64, u64)>) {
        let buf = self.out.buffer();
        if self.version == 3 {
            push_number(buf, self.last_us, 0, b' ');
            buf.push(b' ');
        }
        buf.extend_from_slice(&self.file);
        buf.push(b' ');
        buf.extend_from_slice(action);
        if let Some((a, b)) = numbers {
            buf.push(b' ');
            push_number(buf, a, 0, b' ');
            buf.push(b' ');
            push_number(buf, b, 0, b' ');
        }
        buf.push(b'\n');
    }
}

impl Writer for IologWriter {
    fn write(&mut self, r: &Record) -> Result<(), TraceError> {
        self.last_us = self.last_us.max(r.t_ns / 1000);
        let wait = self.last_us - self.waited_us;
        if self.version == 2 && wait >= WAIT_MIN_US {
            self.line(b"wait", Some((wait, 0)));
            self.waited_us = self.last_us;
        }
        let action: &[u8] = match r.op {
            Op::Read => b"read",
            Op::Write | Op::WriteZeroes => b"write",
            Op::Discard => b"trim",
            Op::Flush => b"sync",
        };
        let offset = r.sector.0.checked_mul(SECTOR_BYTES);
        let Some((offset, _)) = offset.and_then(|o| Some((o, o.checked_add(r.sectors.bytes())?)))
        else {
            let what = format!("sector {} lies beyond any device", r.sector);
            return Err(self
                .out
                .error(ErrorKind::Range, what, "sectors have 512 bytes"));
        };
        let (mut at, mut left) = (offset, r.sectors.bytes());
        loop {
            let n = left.min(PIECE_BYTES);
            self.line(action, Some((at, n)));
            at += n;
            left -= n;
            if left == 0 {
                return self.out.done_one();
            }
        }
    }
    fn finish(&mut self) -> Result<(), TraceError> {
        self.line(b"close", None);
        self.out.finish()
    }
}
