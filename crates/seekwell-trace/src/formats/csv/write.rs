//! The writer of CSV. It writes all columns, with one record per line.

use super::{COLUMNS, FLAGS, OPS};
use crate::error::TraceError;
use crate::options::WriteOptions;
use crate::record::Record;
use crate::text::push_number;
use crate::writer::{Output, Writer};
use std::io::Write;

/// Writes all columns.
pub struct CsvWriter {
    out: Output,
}

impl CsvWriter {
    /// Makes a writer that writes to `out`.
    pub fn new(out: Box<dyn Write + Send>, options: &WriteOptions) -> Self {
        let mut out = Output::new(out, options);
        out.buffer().extend_from_slice(COLUMNS.join(",").as_bytes());
        out.buffer().push(b'\n');
        CsvWriter { out }
    }
}

impl Writer for CsvWriter {
    fn write(&mut self, r: &Record) -> Result<(), TraceError> {
        let buf = self.out.buffer();
        push_number(buf, r.t_ns, 0, b' ');
        buf.push(b',');
        buf.extend(OPS.iter().find(|o| o.0 == r.op).map(|o| o.1));
        buf.push(b',');
        let mut names = FLAGS.iter().filter(|f| r.flags.contains(f.0));
        if let Some(first) = names.next() {
            buf.extend_from_slice(first.1.as_bytes());
        }
        for f in names {
            buf.push(b'+');
            buf.extend_from_slice(f.1.as_bytes());
        }
        let mut field = |n: Option<u64>| {
            buf.push(b',');
            if let Some(n) = n {
                push_number(buf, n, 0, b' ');
            }
        };
        field(Some(r.sector.0));
        field(Some(u64::from(r.sectors.0)));
        field(r.task.map(|t| u64::from(t.0)));
        field(r.cpu.map(u64::from));
        field(r.ioprio.map(|p| p.class as u64));
        if let Some(p) = r.ioprio {
            buf.push(b':');
            push_number(buf, u64::from(p.level), 0, b' ');
        }
        let mut field = |n: Option<u64>| {
            buf.push(b',');
            if let Some(n) = n {
                push_number(buf, n, 0, b' ');
            }
        };
        field(Some(u64::from(r.cgroup.0)));
        field(Some(u64::from(r.device >> 20)));
        buf.push(b':');
        push_number(buf, u64::from(r.device & 0xf_ffff), 0, b' ');
        for n in [
            r.insert_ns,
            r.issue_ns,
            r.complete_ns,
            Some(u64::from(r.error)),
        ] {
            buf.push(b',');
            if let Some(n) = n {
                push_number(buf, n, 0, b' ');
            }
        }
        buf.push(b'\n');
        self.out.done_one()
    }
    fn finish(&mut self) -> Result<(), TraceError> {
        self.out.finish()
    }
}
