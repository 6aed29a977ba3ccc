//! The entry point of all fuzzers. Reading any bytes as any format must give records or an error.
//! The records must satisfy the guarantees of [`seekwell_trace::Record`].
//!
//! The tests call it in a short deterministic run, and so do the targets in `fuzz/`.

use seekwell_core::Op;
use seekwell_trace::info::Format;
use seekwell_trace::options::{Limits, ReadOptions, Stream, TimeUnit, WriteOptions};
use seekwell_trace::reader::{Reader, from_reader};
use seekwell_trace::record::{Record, SECTOR_END_MAX, TIME_MAX_NS};
use seekwell_trace::registry::formats;
use seekwell_trace::replay::ClosedLoop;
use std::io::Cursor;

/// Returns tight limits, so that a run is short for any bytes.
fn options() -> ReadOptions {
    ReadOptions {
        vscsi_response: Some(TimeUnit::Us),
        limits: Limits {
            records_max: 10_000,
            line_bytes_max: 4 << 10,
            ratio_max: 100,
            ratio_floor_bytes: 1 << 20,
            pending_max: 256,
            reorder_max: 16,
            names_max: 64,
            ..Limits::default()
        },
        ..ReadOptions::default()
    }
}

/// Reads `bytes` as `format` (`None`: the format is detected) with all kinds of options. Writes the
/// records in every format. Panics if a guarantee is violated.
pub fn fuzz_one(format: Option<Format>, bytes: &[u8]) {
    for stream in [Stream::Queue, Stream::Issue] {
        for allow_truncated in [false, true] {
            let options = ReadOptions {
                stream,
                allow_truncated,
                ..options()
            };
            read_all(format, bytes, &options);
        }
    }
    if let Ok(reader) = open(format, bytes, &options()) {
        for step in ClosedLoop::new(reader, "fuzz".to_string())
            .into_iter()
            .flatten()
        {
            let Ok(step) = step else { break };
            assert!(step.after.is_none_or(|a| a < step.index));
            assert!(step.think_ns <= step.record.t_ns);
        }
    }
    write_all(format, bytes);
}

fn open(
    format: Option<Format>,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<Reader, seekwell_trace::TraceError> {
    from_reader("fuzz", Cursor::new(bytes.to_vec()), format, options)
}

fn read_all(format: Option<Format>, bytes: &[u8], options: &ReadOptions) {
    let mut reader = match open(format, bytes, options) {
        Ok(reader) => reader,
        Err(e) => {
            assert!(e.to_string().starts_with("fuzz: "), "{e}");
            return;
        }
    };
    let mut last_ns = 0;
    for result in reader.by_ref() {
        match result {
            Ok(r) => {
                check(&r, last_ns);
                last_ns = r.t_ns;
            }
            Err(e) => assert!(e.to_string().starts_with("fuzz: "), "{e}"),
        }
    }
    assert!(reader.next().is_none(), "nothing comes after the end");
    let _ = reader.warnings();
}

fn check(r: &Record, last_ns: u64) {
    assert!(r.t_ns >= last_ns, "time goes back: {r:?}");
    assert_eq!(r.sectors.0 == 0, r.op == Op::Flush, "{r:?}");
    assert!(r.end().0 <= SECTOR_END_MAX, "{r:?}");
    let mut floor = r.t_ns;
    for t in [r.insert_ns, r.issue_ns, r.complete_ns]
        .into_iter()
        .flatten()
    {
        assert!(t >= floor, "{r:?}");
        floor = t;
    }
    assert!(floor <= TIME_MAX_NS, "{r:?}");
}

fn write_all(format: Option<Format>, bytes: &[u8]) {
    let creates = formats().iter().filter_map(|f| f.create);
    for create in creates {
        let Ok(reader) = open(format, bytes, &options()) else {
            return;
        };
        let Ok(mut writer) = create(Box::new(std::io::sink()), &WriteOptions::default()) else {
            continue;
        };
        for r in reader.flatten().take(1000) {
            // A length that a format cannot represent must give an error and not a panic.
            let _ = writer.write(&r);
        }
        let _ = writer.finish();
    }
}
