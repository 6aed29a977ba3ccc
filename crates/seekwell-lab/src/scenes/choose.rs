//! Chooses the cells that a replay shows, and the time window of each.

use super::LONGEST_NS;
use crate::analysis::{Analysis, CellAnalysis};
use crate::results::{self, Layer, Outcome, Results, StoreError};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Default length of a scene, in ns.
pub const LENGTH_NS: u64 = 2_000_000_000;
/// Largest number of requests (over all lanes of a scene) for which runs are repeated without an
/// explicit request.
const REQUESTS_MOST: u64 = 20_000_000;

/// What the user asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Start (on the clock of the workload) and length of the window, in ns. `None` selects the
    /// time around the slowest operation.
    pub span_ns: Option<(u64, u64)>,
    /// Largest number of scenes.
    pub most: usize,
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            span_ns: None,
            most: 3,
        }
    }
}

/// A scene to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the block.
    pub block: u32,
    /// Start of the window in ns, on the clock of the workload.
    pub from_ns: u64,
    /// Length of the window in ns.
    pub length_ns: u64,
}

/// The fields of a stored record that this module reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    clock_start_ns: Option<u64>,
    requests: u64,
    device: Device,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Device {
    rotational: bool,
}

/// Returns the largest significant difference between two treatments of a cell, as an absolute log
/// ratio. Returns `None` if no difference is significant.
fn effect(cell: &CellAnalysis) -> Option<f64> {
    let better = cell.better();
    let shown = cell.pairs.iter().filter(|p| {
        p.verdict.claims() && !p.level() && p.times_better(better).is_some_and(|t| t > 0.0)
    });
    let sizes = shown.filter_map(|p| Some(libm::fabs(libm::log(p.times_better(better)?))));
    sizes.reduce(f64::max)
}

/// Chooses the cells with the largest significant difference, one cell of each device before the
/// second cell of any device. Cells on rotating disks come first. The window is the time around the
/// slowest operation in the chosen block of the cell.
///
/// # Errors
/// Returns an error if the tables of the folder cannot be read.
pub fn choose(
    dir: &Path,
    results: &Results,
    analysis: &Analysis,
    asked: &Asked,
) -> Result<Vec<Choice>, StoreError> {
    // A period of a trial depends on the periods before it, so it cannot be repeated.
    if results.about.source == crate::trial::SOURCE {
        return Ok(Vec::new());
    }
    let blocks = first_blocks(results);
    let mut told: BTreeMap<usize, (Told, u64)> = BTreeMap::new();
    results::records(dir, |run, spec, record| {
        let Some(of) = results.runs.get(run) else {
            return;
        };
        if spec.is_none() || blocks.get(&of.key.cell) != Some(&of.key.block) {
            return;
        }
        let Some(t) = record.and_then(|r| serde_json::from_str::<Told>(r).ok()) else {
            return;
        };
        let all = told.entry(of.key.cell).or_default();
        all.1 += t.requests;
        all.0 = t;
    })?;
    let simulated = |i: &usize| results.cells[*i].substrate == "sim" && told.contains_key(i);
    let small = |i: &usize| asked.span_ns.is_some() || told[i].1 <= REQUESTS_MOST;
    let mut cells: Vec<(bool, f64, usize)> = (0..results.cells.len())
        .filter(simulated)
        .filter(small)
        .map(|i| {
            let effects = analysis.rows(i).filter_map(effect);
            let effect = effects.reduce(f64::max).unwrap_or(0.0);
            (told[&i].0.device.rotational, effect, i)
        })
        .collect();
    cells.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
    // First one cell of each device, then the second cell of each device, and so on.
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ranked: Vec<(usize, usize)> = Vec::new();
    for (at, (_, _, i)) in cells.iter().enumerate() {
        let n = seen.entry(&results.cells[*i].device).or_default();
        ranked.push((*n, at));
        *n += 1;
    }
    ranked.sort_unstable();
    let chosen: Vec<usize> = ranked
        .into_iter()
        .take(asked.most)
        .map(|r| cells[r.1].2)
        .collect();
    let worst = match asked.span_ns {
        Some(_) => BTreeMap::new(),
        None => worst(dir, results, &blocks, &chosen.iter().copied().collect())?,
    };
    let choice = |i: usize| {
        let clock = told[&i].0.clock_start_ns.unwrap_or(0);
        let (from_ns, length_ns) = asked.span_ns.unwrap_or_else(|| {
            let (second, longest) = worst.get(&i).copied().unwrap_or_default();
            // The operation ended in this second. It began earlier by its latency.
            let begun = (second * 1_000_000_000).saturating_sub(longest.min(LENGTH_NS));
            (begun.saturating_sub(clock), LENGTH_NS)
        });
        Choice {
            cell: i,
            block: blocks[&i],
            from_ns,
            length_ns: length_ns.min(LONGEST_NS),
        }
    };
    Ok(chosen.into_iter().map(choice).collect())
}

/// Returns, for each cell, the first of the blocks that have the largest number of valid runs.
fn first_blocks(results: &Results) -> BTreeMap<usize, u32> {
    let mut counts: BTreeMap<usize, BTreeMap<u32, usize>> = BTreeMap::new();
    for run in &results.runs {
        if !matches!(run.outcome, Outcome::Failed(_)) {
            let of = counts.entry(run.key.cell).or_default();
            *of.entry(run.key.block).or_default() += 1;
        }
    }
    let first = |blocks: BTreeMap<u32, usize>| {
        let best = blocks
            .into_iter()
            .reduce(|a, b| if b.1 > a.1 { b } else { a });
        best.map(|b| b.0)
    };
    let all = counts.into_iter();
    all.filter_map(|(cell, blocks)| Some((cell, first(blocks)?)))
        .collect()
}

/// Returns, for each chosen cell, the second in which the slowest operation ended, and the latency
/// of that operation in ns.
fn worst(
    dir: &Path,
    results: &Results,
    blocks: &BTreeMap<usize, u32>,
    chosen: &BTreeSet<usize>,
) -> Result<BTreeMap<usize, (u64, u64)>, StoreError> {
    let mut worst: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    results::series(dir, |run, layer, _, row| {
        let Some(run) = results.runs.get(run) else {
            return;
        };
        let cell = run.key.cell;
        if layer != Layer::Block
            || !chosen.contains(&cell)
            || blocks.get(&cell) != Some(&run.key.block)
        {
            return;
        }
        let at = worst.entry(cell).or_default();
        if row.4 > at.1 {
            *at = (row.0, row.4);
        }
    })?;
    Ok(worst)
}
