//! Reads the latency histograms of a complete results folder.

use super::entry::Layer;
use super::plan::{Finished, damaged, read_json};
use super::reading::unchanged;
use super::{HISTOGRAMS, RESULTS, Results, StoreError, hlog};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::collections::BTreeMap;
use std::path::Path;

/// Largest size of the file, in bytes: enough for some hundred thousand histograms.
const LOG_MAX: u64 = 1 << 30;

/// A histogram: pairs of a latency in ns and the number of operations with this latency, in
/// ascending order.
pub type Buckets = Vec<(u64, u64)>;

/// Reads all histograms of a complete results folder. Calls the function with the index of the run
/// in [`Results::runs`], the layer and kind of the operations, and the buckets. Lines of unknown
/// runs are skipped.
///
/// # Errors
/// Returns an error if the file is missing, damaged, or belongs to other results.
pub fn histograms(
    dir: &Path,
    results: &Results,
    mut each: impl FnMut(usize, Layer, &str, Buckets),
) -> Result<(), StoreError> {
    let done: Finished = read_json(dir, RESULTS)?;
    unchanged(dir, &done, HISTOGRAMS)?;
    let path = dir.join(HISTOGRAMS);
    let text = seekwell_files::read_text(&path, LOG_MAX);
    let text = text.map_err(|e| StoreError::bad(&path, e.to_string()))?;
    let places = places(results);
    let mut reader = Deserializer::new();
    for line in IntervalLogIterator::new(text.as_bytes()) {
        let line = line.map_err(|e| damaged(&path, &format!("invalid line: {e:?}")))?;
        let LogEntry::Interval(interval) = line else {
            continue;
        };
        let tag = interval.tag().map(|t| t.as_str().to_owned());
        let Some((run, layer, kind)) = tag.as_deref().and_then(|t| of_tag(t, &places)) else {
            continue;
        };
        let buckets = buckets(&mut reader, interval.encoded_histogram());
        let buckets = buckets.ok_or_else(|| damaged(&path, "unreadable histogram"))?;
        each(run, layer, &kind, buckets);
    }
    Ok(())
}

/// Returns the index of each run, by the run part of its tags.
fn places(results: &Results) -> BTreeMap<String, usize> {
    let tag = |(i, run): (usize, &super::Run)| {
        let cell = results.cells.get(run.key.cell)?;
        let treatment = results.treatments.get(run.key.treatment)?;
        let (cell, label) = (hlog::encoded(&cell.name), hlog::encoded(&treatment.label));
        Some((format!("{cell}/{label}/{}", run.key.block), i))
    };
    results.runs.iter().enumerate().filter_map(tag).collect()
}

fn of_tag(tag: &str, places: &BTreeMap<String, usize>) -> Option<(usize, Layer, String)> {
    let (rest, kind) = tag.rsplit_once('/')?;
    let (run, layer) = rest.rsplit_once('/')?;
    let known = [Layer::Workload, Layer::Block];
    let layer = known.into_iter().find(|l| l.name() == layer)?;
    Some((*places.get(run)?, layer, decoded(kind)?))
}

/// Decodes a name that was encoded by [`hlog::encoded`]. Returns `None` if it is invalid.
fn decoded(name: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut bytes = name.bytes();
    while let Some(b) = bytes.next() {
        if b != b'%' {
            out.push(b);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        out.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(out).ok()
}

/// Decodes a histogram. Returns `None` if it is invalid; the library can panic on malicious input,
/// and a panic counts as invalid.
fn buckets(reader: &mut Deserializer, text: &str) -> Option<Buckets> {
    let bytes = STANDARD.decode(text).ok()?;
    let read = || -> Option<Buckets> {
        let h: Histogram<u64> = reader.deserialize(&mut &bytes[..]).ok()?;
        let pair = |v: hdrhistogram::iterators::IterationValue<u64>| {
            (v.value_iterated_to(), v.count_at_value())
        };
        Some(h.iter_recorded().map(pair).collect())
    };
    seekwell_files::guarded(read).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_tags_are_decoded_to_names() {
        for name in ["write, a file\n", "läßt/%41", "", "p99"] {
            assert_eq!(decoded(&hlog::encoded(name)).as_deref(), Some(name));
        }
        assert_eq!(decoded("%4"), None);
        assert_eq!(decoded("%zz"), None);
    }

    #[test]
    fn invalid_histogram_data_is_rejected() {
        let mut reader = Deserializer::new();
        assert_eq!(buckets(&mut reader, "AAAA"), None);
        assert_eq!(buckets(&mut reader, "not base64!"), None);
    }
}
