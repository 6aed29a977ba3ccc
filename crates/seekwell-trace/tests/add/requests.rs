//! requests: text with one request per line, without a header. The columns are
//! `TIME,OP,SECTOR,SECTORS`.
//!
//! TIME is in microseconds on any clock. OP is R (read), W (write), D (discard), F (flush) or Z
//! (write zeroes). SECTOR and SECTORS are in units of 512 bytes; both are 0 for a flush.

use super::volumes::{Row, Volume, VolumesReader, Wrong, fields, looks_like};
use crate::error::TraceError;
use crate::info::{Carries, FormatInfo, Has, Keeps, Volumes};
use crate::record::Record;
use crate::text::{number, push_number};
use crate::writer::{Output, Writer};
use seekwell_core::Op;
use seekwell_core::units::SECTOR_BYTES;

/// Remedy in the message about an invalid line.
const REMEDY: &str = "the line should read \"TIME,OP,SECTOR,SECTORS\", the time in microseconds, \
                      OP one of R, W, D, F and Z";
const US_NS: u64 = 1_000;
const OPS: [(u8, Op); 5] = [
    (b'R', Op::Read),
    (b'W', Op::Write),
    (b'D', Op::Discard),
    (b'F', Op::Flush),
    (b'Z', Op::WriteZeroes),
];

/// The format's entry in the registry.
pub const INFO: FormatInfo = FormatInfo {
    name: "requests",
    summary: "text with one request per line",
    extensions: &["requests"],
    help: "TIME,OP,SECTOR,SECTORS, without a header. The time is in microseconds. OP is R, W, D, \
           F or Z. Position and length are in sectors of 512 bytes. The format has neither \
           processes nor completions, so replay it timed, scaled or at a fixed depth.",
    carries: Carries {
        pids: Has::No,
        completions: Has::No,
        issues: Has::No,
        ioprio: Has::No,
        flags: Has::No,
        time: "1 us",
    },
    keeps: Keeps {
        write_zeroes: true,
        ..Keeps::NONE
    },
    volumes: Volumes::One,
    text: true,
    detect: |head| looks_like(head, parse, None),
    parts: None,
    open: |mut inputs, options, _| {
        let input = inputs.remove(0);
        Ok(Box::new(VolumesReader::new(
            input, options, parse, None, REMEDY,
        )))
    },
    create: Some(|out, options| {
        let out = Output::new(out, options);
        Ok(Box::new(LineWriter { out }))
    }),
};

/// Parses a line. The error is the name and the content of the invalid field.
fn parse(line: &[u8]) -> Result<Row<'_>, Wrong<'_>> {
    let [time, op, sector, sectors] = fields(line)?;
    let scaled = |w, unit| number(w).and_then(|n| n.checked_mul(unit));
    let known = OPS.iter().find(|o| op == [o.0]);
    Ok(Row {
        t_ns: scaled(time, US_NS).ok_or(("TIME", time))?,
        op: Some(known.ok_or(("OP", op))?.1),
        offset: scaled(sector, SECTOR_BYTES).ok_or(("SECTOR", sector))?,
        length: scaled(sectors, SECTOR_BYTES).ok_or(("SECTORS", sectors))?,
        volume: Volume::Number(0),
        response_ns: None,
    })
}

/// Writes one line per record.
struct LineWriter {
    out: Output,
}

impl Writer for LineWriter {
    fn write(&mut self, r: &Record) -> Result<(), TraceError> {
        let line = self.out.buffer();
        push_number(line, r.t_ns / US_NS, 0, b' ');
        line.push(b',');
        line.extend(OPS.iter().find(|o| o.1 == r.op).map(|o| o.0));
        for n in [r.sector.0, u64::from(r.sectors.0)] {
            line.push(b',');
            push_number(line, n, 0, b' ');
        }
        line.push(b'\n');
        self.out.done_one()
    }
    fn finish(&mut self) -> Result<(), TraceError> {
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{ReadOptions, WriteOptions};
    use crate::reader::from_reader;
    use std::io::Cursor;

    const TEXT: &str = "0,R,1024,8\n250,W,0,16\n250,F,0,0\n900,Z,64,8\n";

    fn read(text: &str) -> Result<Vec<Record>, TraceError> {
        let bytes = Cursor::new(text.as_bytes().to_vec());
        from_reader("mem", bytes, Some(&INFO), &ReadOptions::default())?.collect()
    }

    #[test]
    fn lines_are_read_and_written_unchanged() {
        let records = read(TEXT).expect("four good lines");
        let expected = [
            Record::new(0, Op::Read, 1024, 8),
            Record::new(250_000, Op::Write, 0, 16),
            Record::new(250_000, Op::Flush, 0, 0),
            Record::new(900_000, Op::WriteZeroes, 64, 8),
        ];
        assert_eq!(records, expected);
        let out = Output::new(Box::new(std::io::sink()), &WriteOptions::default());
        let mut writer = LineWriter { out };
        for r in &records {
            writer.write(r).expect("it is kept in the buffer");
        }
        assert_eq!(writer.out.buffer().as_slice(), TEXT.as_bytes());
    }

    #[test]
    fn an_invalid_field_is_named() {
        for (line, field) in [
            ("x,R,0,8", "line 1: cannot read TIME: \"x\""),
            ("0,X,0,8", "line 1: cannot read OP: \"X\""),
            ("0,R,0,-8", "line 1: cannot read SECTORS: \"-8\""),
            ("0,R,0", "line 1: cannot read all fields of the format"),
        ] {
            let e = read(line).expect_err(line).to_string();
            assert!(e.contains(field), "{e}");
        }
    }
}
