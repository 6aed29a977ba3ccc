//! Functions that several tests use. They write traces to memory and read them.
#![allow(dead_code, missing_docs)]

use seekwell_trace::{Format, ReadOptions, Reader, Record, TraceError, WriteOptions, from_reader};
use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// An output whose bytes can be examined afterwards.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}
impl Write for Shared {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(buf);
        Ok(buf.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the bytes of a trace with these records. For formats without a writer, returns a
/// recorded trace.
pub fn written(format: Format, records: &[Record]) -> Vec<u8> {
    let out = Shared::default();
    let Some(create) = format.create else {
        let sample = match format.name {
            "ftrace" => &include_bytes!("../data/ftrace-6.18.txt")[..],
            "msr" => include_bytes!("../data/msr.csv"),
            "systor" => include_bytes!("../data/systor.csv"),
            "alibaba" => include_bytes!("../data/alibaba.csv"),
            "tencent" => include_bytes!("../data/tencent.csv"),
            "spc" => include_bytes!("../data/spc.csv"),
            "disksim" => include_bytes!("../data/disksim.txt"),
            "fiu" => include_bytes!("../data/fiu.txt"),
            "cachesim-csv" => include_bytes!("../data/cachesim.csv"),
            "oracle-general" => include_bytes!("../data/oracle-general.bin"),
            "perf-script" => include_bytes!("../data/perf-script.txt"),
            "biosnoop" => include_bytes!("../data/biosnoop.txt"),
            "iosnoop" => include_bytes!("../data/iosnoop.txt"),
            name => panic!("{name} is not written and needs a sample"),
        };
        return sample.to_vec();
    };
    let mut w = create(Box::new(out.clone()), &WriteOptions::default()).unwrap();
    for r in records {
        w.write(r).unwrap();
    }
    w.finish().unwrap();
    out.bytes()
}

pub fn reader(
    bytes: &[u8],
    format: Option<Format>,
    options: &ReadOptions,
) -> Result<Reader, TraceError> {
    from_reader("mem", Cursor::new(bytes.to_vec()), format, options)
}

pub fn read(bytes: &[u8]) -> Vec<Record> {
    reader(bytes, None, &ReadOptions::default())
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// Returns the first error that occurs when these bytes are opened or read.
pub fn error_of(bytes: &[u8], format: Option<Format>, options: &ReadOptions) -> TraceError {
    match reader(bytes, format, options) {
        Err(e) => e,
        Ok(r) => r
            .filter_map(Result::err)
            .next()
            .expect("it should not have been read"),
    }
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    e.write_all(bytes).unwrap();
    e.finish().unwrap()
}

/// A temporary directory, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("seekwell-trace-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a blktrace file in the other byte order.
pub fn swapped(little: &[u8]) -> Vec<u8> {
    // Widths of the fields of a record.
    const FIELDS: [usize; 11] = [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2];
    let mut out = little.to_vec();
    let mut at = 0;
    while at < out.len() {
        let pdu = usize::from(u16::from_le_bytes([out[at + 46], out[at + 47]]));
        let mut i = at;
        for n in FIELDS {
            out[i..i + n].reverse();
            i += n;
        }
        at = i + pdu;
    }
    out
}
