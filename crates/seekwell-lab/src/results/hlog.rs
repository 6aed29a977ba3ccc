//! The latency histograms in the log format of HdrHistogram, which its standard tools can read.
//! Each line is one histogram in compressed format V2, with a tag of cell, scheduler, block, layer
//! and kind.

use super::entry::Layer;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::time::Duration;

/// Divisor from ns to the unit (ms) of the third number of a line, which is for human readers.
const MAX_DIVISOR: f64 = 1e6;

/// The first lines of the file.
pub(super) const HEAD: &str = "\
#[Latencies in nanoseconds, written by seekwell; the third number of a line is the largest latency, in ms]
#[Tag: cell/scheduler/block/layer/kind, each percent-encoded]
#[Histogram log format version 1.3]
#[StartTime: 0.000 (seconds since epoch)]
\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"
";

/// Buffers that are used again for each line, so that no line needs an allocation.
pub(super) struct Scratch {
    histogram: Histogram<u64>,
    serializer: V2DeflateSerializer,
}

impl Default for Scratch {
    fn default() -> Self {
        // The same range as in a record: three digits, up to one hour. The library accepts these
        // bounds.
        let bounds = Histogram::new_with_bounds(1, 3_600_000_000_000, 3);
        Scratch {
            histogram: bounds.expect("constant bounds"),
            serializer: V2DeflateSerializer::new(),
        }
    }
}

impl Scratch {
    /// Formats a line of the log from latencies and their counts. `span_ns` contains the start and
    /// end of the operations in the run, in ns. Returns an empty text without operations.
    pub fn line(&mut self, tag: &str, span_ns: (u64, u64), buckets: &[(u64, u64)]) -> String {
        if buckets.is_empty() {
            return String::new();
        }
        self.histogram.reset();
        for (value, n) in buckets {
            self.histogram.saturating_record_n(*value, *n);
        }
        let mut line = Vec::new();
        let begun = IntervalLogWriterBuilder::new()
            .with_max_value_divisor(MAX_DIVISOR)
            .begin_log_with(&mut line, &mut self.serializer);
        let at = Duration::from_nanos(span_ns.0);
        let long = Duration::from_nanos(span_ns.1.saturating_sub(span_ns.0));
        // Writing to memory cannot fail, and a histogram with these bounds can be serialised.
        let written =
            begun.map(|mut log| log.write_histogram(&self.histogram, at, long, Tag::new(tag)));
        debug_assert!(matches!(written, Ok(Ok(()))));
        let text = String::from_utf8(line).unwrap_or_default();
        // The library repeats the divisor before each line. The first lines of the file already
        // contain it.
        let lines = text.lines().filter(|l| !l.starts_with('#'));
        lines.map(|l| format!("{l}\n")).collect()
    }
}

/// Encodes a name for a tag. Letters, digits and `-._:=+@` are kept; other bytes are written as
/// `%2F` and so on.
pub(super) fn encoded(name: &str) -> String {
    let mut out = String::new();
    for b in name.bytes() {
        if b.is_ascii_alphanumeric() || b"-._:=+@".contains(&b) {
            out.push(char::from(b));
        } else {
            out += &format!("%{b:02X}");
        }
    }
    out
}

/// Returns the tag of one kind of operation. `run` is the part of the tag that identifies the run.
pub(super) fn tag(run: &str, layer: Layer, kind: &str) -> String {
    format!("{run}/{}/{}", layer.name(), encoded(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn histogram_log_is_readable_by_the_library() {
        let mut scratch = Scratch::default();
        let mut log = HEAD.to_owned();
        let name = tag("a%2Cb/cfq:x=1/0", Layer::Workload, "write, a file\n");
        for span in [(0, 1_500_000_000), (2_000_000_000, 2_000_000_000)] {
            log += &scratch.line(&name, span, &[(1_000, 3), (2_000_895, 1)]);
        }
        assert_eq!(scratch.line(&name, (0, 1), &[]), "");
        let mut seen = 0;
        for entry in IntervalLogIterator::new(log.as_bytes()) {
            let LogEntry::Interval(i) = entry.expect("a line that is read") else {
                continue;
            };
            seen += 1;
            let tag = i.tag().expect("a tag");
            assert_eq!(&*tag, "a%2Cb/cfq:x=1/0/workload/write%2C%20a%20file%0A");
            use base64::Engine as _;
            let bytes = base64::engine::general_purpose::STANDARD.decode(i.encoded_histogram());
            let bytes = bytes.expect("base64");
            let h: Histogram<u64> = Deserializer::new()
                .deserialize(&mut &bytes[..])
                .expect("a histogram");
            assert_eq!((h.len(), h.count_at(1_000)), (4, 3));
            assert!(h.max() >= 2_000_895 && (i.max() - 2.001).abs() < 0.002);
        }
        assert_eq!(seen, 2);
    }
}
