//! Further contents of the publications: the table of systems, and the values by second of a run.

use super::Publication;
use seekwell::words::named_machine;
use seekwell_lab::results::{Layer, Outcome, Results, SeriesRow, StoreError, series};
use serde::Serialize;
use std::path::Path;

/// A system, as published and as modelled.
#[derive(Clone, Debug, Serialize)]
pub struct System {
    /// Name.
    pub name: String,
    /// The published description of the machine, in one line.
    pub published: String,
    /// Our model in one line: cores, their speed, memory, file system, kernel and HZ.
    pub modelled: String,
    /// Name of our device.
    pub device: String,
}

/// Returns the value of the key `use` of a machine in the text of an experiment file.
fn used(text: &str, name: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let machines = table.get("machine")?.as_array()?;
    let own = machines
        .iter()
        .find(|m| m.get("name").and_then(|n| n.as_str()) == Some(name));
    Some(own?.get("use")?.as_str()?.to_owned())
}

/// Returns the systems of a publication, in published order.
pub fn systems(p: &Publication) -> Vec<System> {
    let text = p.text(false);
    let mut all: Vec<System> = Vec::new();
    for plan in p.experiment(false).map(|e| e.cells).unwrap_or_default() {
        let name = &plan.cell.machine;
        let Some(spec) = plan
            .specs
            .first()
            .filter(|_| all.iter().all(|s| s.name != *name))
        else {
            continue;
        };
        let preset = used(text, name).and_then(|u| named_machine(&u));
        let own = spec.machine.clone().unwrap_or_default();
        let word = |text: &Option<String>| text.clone().unwrap_or_default();
        let mut modelled = vec![
            format!("{} cores", own.cores.unwrap_or(1)),
            format!(
                "cpu {}",
                f64::from(own.cpu_permille.unwrap_or(1000)) / 1000.0
            ),
            format!("{} MiB", own.memory_bytes.unwrap_or(0) >> 20),
        ];
        if let Some(cache) = own.cache_bytes {
            modelled.push(format!("cache {} MiB", cache >> 20));
        }
        let data = own.data.clone().unwrap_or_else(|| "ordered".to_owned());
        modelled.push(format!("{} data={data}", word(&own.fs)));
        modelled.push(format!("kernel {}", word(&own.kernel)));
        modelled.push(format!("HZ {}", spec.queue.hz));
        all.push(System {
            name: name.clone(),
            published: preset.map_or(String::new(), |m| m.summary.clone()),
            modelled: modelled.join(", "),
            device: spec.device.spec.clone(),
        });
    }
    all
}

/// Statistics of one second of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Second {
    /// Seconds since the run began.
    pub at_s: u64,
    /// Number of operations that ended in this second.
    pub ops: u64,
    /// Mean latency, in ms.
    pub mean_ms: f64,
    /// Standard deviation of the latencies, in ms.
    pub sd_ms: f64,
}

/// The seconds of the first run of one scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Seconds {
    /// Name of the scheduler.
    pub scheduler: String,
    /// The seconds in which at least one operation ended, ascending.
    pub seconds: Vec<Second>,
}

impl Second {
    fn from_row(row: SeriesRow) -> Second {
        let SeriesRow(at_s, ops, _, sum_ns, _, square_us2) = row;
        let n = ops.max(1) as f64;
        let mean_ms = sum_ns as f64 / 1e6 / n;
        let square_ms2 = square_us2 as f64 / 1e6 / n;
        let variance = (square_ms2 - mean_ms * mean_ms).max(0.0);
        Second {
            at_s,
            ops,
            mean_ms,
            sd_ms: libm::sqrt(variance),
        }
    }
    /// Merges the statistics of several seconds.
    pub fn together(all: &[Second]) -> Option<Second> {
        let ops: u64 = all.iter().map(|s| s.ops).sum();
        let n = ops.max(1) as f64;
        let mean =
            |f: &dyn Fn(&Second) -> f64| all.iter().map(|s| f(s) * s.ops as f64).sum::<f64>() / n;
        let mean_ms = mean(&|s| s.mean_ms);
        let square = mean(&|s| s.sd_ms * s.sd_ms + s.mean_ms * s.mean_ms);
        Some(Second {
            at_s: all.first()?.at_s,
            ops,
            mean_ms,
            sd_ms: libm::sqrt((square - mean_ms * mean_ms).max(0.0)),
        })
    }
}

/// Reads from a results directory the seconds of one kind of operation in each scheduler's first
/// run.
///
/// # Errors
/// A file of the directory cannot be read.
pub fn seconds(dir: &Path, results: &Results, kind: &str) -> Result<Vec<Seconds>, StoreError> {
    let mut all: Vec<(usize, Seconds)> = Vec::new();
    for (i, run) in results.runs.iter().enumerate() {
        if run.outcome == Outcome::Done && run.key.block == 0 {
            let label = results.treatments.get(run.key.treatment);
            let scheduler = label.map_or(String::new(), |t| t.label.clone());
            all.push((
                i,
                Seconds {
                    scheduler,
                    seconds: Vec::new(),
                },
            ));
        }
    }
    series(dir, |run, layer, of, row| {
        let own = all.iter_mut().find(|s| s.0 == run);
        if let (Layer::Workload, true, Some(own)) = (layer, of == kind, own) {
            own.1.seconds.push(Second::from_row(row));
        }
    })?;
    all.sort_by_key(|s| results.runs[s.0].key.treatment);
    Ok(all.into_iter().map(|s| s.1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_a_mean_and_a_deviation_and_add_up() {
        // 1, 2 and 3 ms: mean 2, variance 2/3.
        let one = Second::from_row(SeriesRow(7, 3, 0, 6_000_000, 3_000_000, 14_000_000));
        assert!((one.mean_ms - 2.0).abs() < 1e-12);
        assert!((one.sd_ms - libm::sqrt(2.0 / 3.0)).abs() < 1e-9);
        // With another second of one operation of 6 ms: mean 3, variance (1 + 4 + 9 + 36) / 4 - 9.
        let other = Second::from_row(SeriesRow(8, 1, 0, 6_000_000, 6_000_000, 36_000_000));
        assert_eq!(other.sd_ms, 0.0);
        let both = Second::together(&[one, other]).expect("two");
        assert_eq!((both.at_s, both.ops), (7, 4));
        assert!((both.mean_ms - 3.0).abs() < 1e-9);
        assert!((both.sd_ms - libm::sqrt(3.5)).abs() < 1e-9);
        assert_eq!(Second::together(&[]), None);
    }

    #[test]
    fn every_system_is_told_as_published_and_as_modelled() {
        for p in crate::reproduce::PUBLICATIONS {
            let all = systems(p);
            let mut names: Vec<String> = p.published().iter().map(|c| c.system.clone()).collect();
            names.dedup();
            names.sort();
            names.dedup();
            assert_eq!(all.len(), names.len(), "{}", p.name);
            for s in &all {
                assert!(
                    !s.published.is_empty() && s.modelled.contains("kernel "),
                    "{s:?}"
                );
            }
        }
    }
}
