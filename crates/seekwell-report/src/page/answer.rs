//! The parts of the page that need no script: recommendations, subject, method, missing results.

use super::index::Index;
use crate::advice::Advice;
use crate::compare::seeds;
use seekwell_core::prose::in_prose;
use seekwell_lab::analysis::{Analysis, CellAnalysis, Group, percent};
use seekwell_lab::results::{CellEnd, Order, Outcome, Results, StopRule};
use seekwell_lab::trial::SOURCE;
use serde::Serialize;
use std::collections::BTreeMap;

/// The card with the recommendation for a device.
#[derive(Serialize)]
pub(super) struct Answer {
    advice: Advice,
    /// Index of the recommended scheduler.
    mark: Option<usize>,
    squares: Vec<Square>,
}

/// A square of the card. It shows the result of one test.
#[derive(Serialize)]
struct Square {
    row: usize,
    class: &'static str,
    test: String,
    what: String,
}

pub(super) fn build_answer(
    index: &Index,
    analysis: &Analysis,
    group: &Group,
    advice: Advice,
) -> Answer {
    let taken = advice.scheduler.as_deref();
    let mark = taken.and_then(|n| analysis.treatments.iter().position(|t| t == n));
    let square = |i: &usize| {
        let row = &index.rows[*i];
        let who = mark.map_or("it".to_owned(), |m| in_prose(&analysis.treatments[m]));
        let own = mark.and_then(|m| row.sides.iter().find(|s| s.s == m));
        let (class, what) = match (row.kind, mark) {
            ("failed", _) => ("f", "gave no value".to_owned()),
            ("none", _) => ("n", "no difference".to_owned()),
            ("single", _) => ("f", "only one scheduler has a value".to_owned()),
            ("open", _) | (_, None) => ("o", "not decided".to_owned()),
            _ if own.is_none_or(|s| s.mean.is_none()) => ("f", format!("not run under {who}")),
            (_, Some(m)) if row.tops.contains(&m) => ("y", format!("{who} is best or level")),
            _ => ("x", format!("{who} is behind")),
        };
        Square {
            row: *i,
            class,
            test: row.name.clone(),
            what,
        }
    };
    Answer {
        squares: group.cells.iter().map(square).collect(),
        mark,
        advice,
    }
}

/// A description of what was compared.
#[derive(Serialize)]
pub(super) struct About {
    substrate: &'static str,
    count: String,
    sure: String,
    notes: Vec<String>,
}

fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

pub(super) fn about(results: &Results, analysis: &Analysis) -> About {
    let of = |name: &str| results.cells.iter().any(|c| c.substrate == name);
    let kernel = !results.cells.is_empty() && results.cells.iter().all(|c| c.substrate == "kernel");
    let substrate = match (
        of("sim"),
        of("host"),
        of("serve"),
        results.about.source.as_str(),
    ) {
        _ if kernel => "a real kernel on virtual time, over modelled disks",
        (true, false, false, _) => "simulated: modelled disks, not one of yours",
        (false, true, false, _) => "measured on a real machine",
        (false, false, true, _) => "real programs over a modelled disk",
        (true, ..) => "partly simulated",
        _ => "imported results of other programs",
    };
    let mut devices: Vec<&str> = results.cells.iter().map(|c| c.device.as_str()).collect();
    devices.sort_unstable();
    devices.dedup();
    let runs = results.runs.len();
    let runs = if runs > 0 {
        plural(runs, "run")
    } else {
        plural(results.summaries.len(), "figure")
    };
    let confidence = percent(1.0 - analysis.method.alpha);
    About {
        substrate,
        count: format!(
            "{}, {}, {}: {runs}.",
            plural(devices.len(), "device"),
            plural(results.treatments.len(), "scheduler"),
            plural(results.cells.len(), "test")
        ),
        sure: match results.treatments.len() {
            0 | 1 => String::new(),
            _ => format!(
                "Every difference stated here is significant at {confidence}, corrected for multiple comparisons."
            ),
        },
        notes: results.about.notes.clone(),
    }
}

/// Returns how runs were repeated and judged, one sentence per line.
pub(super) fn how(results: &Results, analysis: &Analysis) -> Vec<String> {
    let m = &analysis.method;
    let mut out = Vec::new();
    let trial = results.about.source == SOURCE;
    if results.about.paired {
        out.push(match m.order {
            _ if trial => "The scheduler was switched while the work went on. A block is one period of every scheduler, in random order. Differences are computed within each block.".to_owned(),
            Order::Interleaved => "Runs were made in blocks. A block is one run of every scheduler, in random order. Differences are computed within each block.".to_owned(),
            Order::Sequential => "All runs of one scheduler were made before the runs of the next scheduler, so drift over time can look like a difference.".to_owned(),
        });
        let simulated = results.cells.iter().all(|c| c.substrate == "sim");
        if simulated && !trial && !results.cells.is_empty() {
            out.push(
                "Each block has its own seed. The intervals cover the model's random inputs, not \
                 errors of the model itself."
                    .to_owned(),
            );
        }
        out.push(match m.stop {
            StopRule::Fixed => {
                let early = |c: &CellAnalysis| c.exact && c.blocks < m.repeats_max as usize;
                let early = match analysis.cells.iter().any(early) {
                    true => "; tests with identical runs have fewer",
                    false => "",
                };
                let blocks = plural(m.repeats_max as usize, "block");
                format!("{blocks} per test, fixed before the first run{early}.")
            }
            StopRule::Width => format!(
                "{} to {} blocks per test, until every interval is narrower than +-{} or a quarter \
                 of its effect. A p-value never stops the runs.",
                m.repeats_min,
                m.repeats_max,
                percent(m.target)
            ),
            StopRule::Decided => format!(
                "{} to {} blocks per test, until a confidence interval that is valid under \
                 repeated analysis decides.",
                m.repeats_min, m.repeats_max
            ),
        });
        out.push("Intervals and tests: paired t-test on logarithms of ratios, with Holm's correction over all comparisons of the experiment.".to_owned());
    } else {
        out.push(
            "It is unknown which runs of different schedulers were made together. Therefore Welch's test for unpaired runs is used, and drift between the runs can look like a difference."
                .to_owned(),
        );
    }
    out.push(format!(
        "A difference matters if it is at least {}. The words \"no difference\" mean that a larger difference is ruled out (two one-sided tests at 5 %).",
        percent(m.margin)
    ));
    let (mut differ, mut level, mut open) = (0, 0, 0);
    for p in analysis.cells.iter().flat_map(|c| &c.pairs) {
        match p {
            p if p.level() => level += 1,
            p if p.verdict.claims() => differ += 1,
            _ => open += 1,
        }
    }
    if differ + level + open > 0 {
        out.push(format!(
            "Pairs of schedulers: {}. {differ} differ, {level} show no difference, {open} are not decided.",
            differ + level + open
        ));
    }
    let cut = analysis
        .cells
        .iter()
        .filter(|c| matches!(c.ended, CellEnd::Cut(_)))
        .count();
    let warm_up = seeds::warm_up(analysis.cells.iter(), usize::MAX);
    if !warm_up.is_empty() {
        out.push(warm_up.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if cut > 0 {
        out.push(format!(
            "{} ended before the intervals were narrow enough, because of the budget or a signal.",
            plural(cut, "test")
        ));
    }
    out
}

/// Returns one text per group of runs without a result: the cell, the scheduler, the number of
/// runs, and the reason.
pub(super) fn missing(results: &Results) -> Vec<String> {
    let mut found: BTreeMap<(usize, usize, &str), u32> = BTreeMap::new();
    for r in &results.runs {
        if let Outcome::Failed(why) = &r.outcome {
            *found.entry((r.key.cell, r.key.treatment, why)).or_default() += 1;
        }
    }
    let line = |((cell, treatment, why), n): ((usize, usize, &str), u32)| {
        let name = results.cells.get(cell).map_or("?", |c| &c.name);
        let by = in_prose(results.treatments.get(treatment).map_or("?", |t| &t.label));
        format!("{name} under {by}: {}: {why}", plural(n as usize, "run"))
    };
    found.into_iter().map(line).collect()
}

/// A row of the table of settings. Equal neighbouring cells are merged.
#[derive(Serialize)]
pub(super) struct Setting {
    name: String,
    cells: Vec<(String, usize)>,
}

pub(super) fn systems(results: &Results) -> Vec<Setting> {
    let all = &results.treatments;
    let mut names: Vec<&String> = all.iter().flat_map(|t| t.tunables.keys()).collect();
    names.sort();
    names.dedup();
    let merged = |name: &str, values: Vec<String>| {
        let mut cells: Vec<(String, usize)> = Vec::new();
        for v in values {
            match cells.last_mut() {
                Some(last) if last.0 == v => last.1 += 1,
                _ => cells.push((v, 1)),
            }
        }
        Setting {
            name: name.to_owned(),
            cells,
        }
    };
    let mut out = vec![
        merged(
            "scheduler",
            all.iter().map(|t| t.scheduler.clone()).collect(),
        ),
        merged("version", all.iter().map(|t| t.version.clone()).collect()),
    ];
    for name in names {
        let value = |t: &seekwell_lab::results::Treatment| t.tunables.get(name).cloned();
        out.push(merged(
            name,
            all.iter().map(|t| value(t).unwrap_or_default()).collect(),
        ));
    }
    out
}
