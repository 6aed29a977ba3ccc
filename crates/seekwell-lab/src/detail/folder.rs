//! Builds the details from a complete results folder.

use super::Detail;
use super::gather::{Gather, Told};
use crate::results::{self, Layer, Results, StoreError};
use std::path::Path;

/// Returns the details of each cell of a complete results folder. Returns an empty list for an
/// unfinished or imported folder.
///
/// # Errors
/// Returns an error if a file is missing, damaged, or belongs to other results.
pub fn of_folder(dir: &Path, results: &Results) -> Result<Vec<Detail>, StoreError> {
    let mut gather = Gather::default();
    let key = |run: usize| results.runs.get(run).map(|r| r.key);
    // Only the table rows of the block layer contain bytes.
    let mut bytes = vec![0u64; results.runs.len()];
    results::operations(dir, |run, o| {
        if let (Layer::Block, Some(sum)) = (o.layer, bytes.get_mut(run)) {
            *sum += o.bytes;
        }
        if let Some(key) = key(run) {
            gather.row(key, &o);
        }
    })?;
    results::records(dir, |run, _, record| {
        let told = record.and_then(|r| serde_json::from_str::<Told>(r).ok());
        if let (Some(told), Some(of)) = (told, results.runs.get(run)) {
            gather.add_partial(of.key, of.duration_ns, &told, bytes[run]);
        }
    })?;
    results::series(dir, |run, layer, kind, row| {
        if let Some(key) = key(run) {
            // In the rows of the block layer, the last number is the number of writes, not the sum
            // of squares.
            let mut row = row;
            if layer == Layer::Block {
                row.5 = 0;
            }
            gather.second(key, layer, kind, &row);
        }
    })?;
    results::histograms(dir, results, |run, layer, kind, buckets| {
        if let Some(key) = key(run) {
            gather.latencies(key, layer, kind, &buckets);
        }
    })?;
    Ok(gather.done(results))
}
