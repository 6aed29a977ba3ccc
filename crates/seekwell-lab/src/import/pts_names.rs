//! Parts that all Phoronix Test Suite formats have in common: directions, test names and hardware.

use super::harvest::{Harvest, better_by_words, metric, short};
use crate::data::MetricInfo;

/// Returns whether higher is better, from `HIB`, `LIB` or, for an empty text, from the unit.
pub fn direction(proportion: &str, scale: &str, harvest: &mut Harvest) -> bool {
    match proportion.trim().to_uppercase().as_str() {
        "HIB" => true,
        "LIB" => false,
        _ => {
            let guess = better_by_words(scale).unwrap_or(true);
            let side = if guess { "more" } else { "less" };
            harvest.note(format!(
                "{} does not state a direction; assumed: {side} is better",
                if scale.is_empty() {
                    "a result without unit"
                } else {
                    scale
                }
            ));
            guess
        }
    }
}

/// Returns the metric of a result, named after its unit.
pub fn metric_of(scale: &str, proportion: &str, harvest: &mut Harvest) -> MetricInfo {
    let higher = direction(proportion, scale, harvest);
    let name = if scale.trim().is_empty() {
        "result"
    } else {
        scale
    };
    metric(name, scale, higher)
}

/// Joins the parts of a test's name, such as "FS-Mark 3.3: Test: 1000 Files, 1MB Size".
pub fn test_of(title: &str, version: &str, description: &str) -> String {
    let mut name = short(title);
    for (joint, part) in [(" ", version), (": ", description)] {
        let part = short(part);
        if !part.is_empty() && part != name {
            name += joint;
            name += &part;
        }
    }
    if name.is_empty() {
        "test without a name".to_owned()
    } else {
        short(&name)
    }
}

/// Returns the disk in "Processor: ..., Disk: 100GB Hitachi HTS72201, Graphics: ...".
pub fn disk_of(hardware: &str) -> String {
    let mut parts = hardware.split(", ");
    let Some(first) = parts.find_map(|p| p.trim().strip_prefix("Disk: ")) else {
        return String::new();
    };
    // A value may contain commas, so it ends at the next key.
    let more = parts.take_while(|p| !p.contains(": "));
    let all: Vec<&str> = std::iter::once(first).chain(more).collect();
    short(&all.join(", "))
}

/// Returns the scheduler in a system's description (`"disk-scheduler": "CFQ"`).
pub fn scheduler_in(json: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let named = value.get("disk-scheduler").and_then(|v| v.as_str());
    short(named.unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_is_found_in_the_hardware_description() {
        let hardware = "Processor: Intel T9300, Memory: 4096MB, Disk: 100GB Hitachi, 7200rpm, \
                        Graphics: NVIDIA";
        assert_eq!(disk_of(hardware), "100GB Hitachi, 7200rpm");
        assert_eq!(disk_of("Processor: x"), "");
    }
}
