//! The figures of a workload's record.

use crate::fail::Failure;
use serde_json::Value;

/// A figure of a run that is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the metric.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Direction.
    pub higher_is_better: bool,
    /// The value.
    pub value: f64,
}

/// Returns the figures of the first record of `seekwell run --json`: the metric of the workload,
/// then its further metrics.
pub fn of_record(json: &[u8]) -> Result<Vec<Figure>, Failure> {
    let document: Value = serde_json::from_slice(json)
        .map_err(|e| Failure::input(format!("the workload's record cannot be read: {e}")))?;
    let record = &document["records"][0];
    let more = record["more_metrics"].as_array().into_iter().flatten();
    let mut all = Vec::new();
    for m in std::iter::once(&record["metric"]).chain(more) {
        let text = |key: &str| m[key].as_str().unwrap_or_default().to_owned();
        let Some(value) = m["value"].as_f64() else {
            continue;
        };
        let (name, operation) = (text("name"), text("operation"));
        all.push(Figure {
            metric: match operation.is_empty() || operation == name {
                true => name,
                false => format!("{operation} {name}"),
            },
            unit: text("unit"),
            higher_is_better: m["higher_is_better"] == true,
            value,
        });
    }
    Ok(all)
}
