//! The input of the page's script: results and analysis in the form that the page shows.

use crate::units::three;
use seekwell_lab::analysis::{Analysis, CellAnalysis, Flag, percent};
use seekwell_lab::results::{Outcome, Results};
use seekwell_lab::stats::Verdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// The whole input of the script.
#[derive(Serialize)]
pub(super) struct Index {
    pub title: String,
    pub margin: f64,
    pub schedulers: Vec<Scheduler>,
    pub devices: Vec<String>,
    pub rows: Vec<Row>,
    pub sweeps: Vec<Sweep>,
    pub groups: Vec<Scores>,
    pub scenes: Vec<Scene>,
}

#[derive(Serialize)]
pub(super) struct Scheduler {
    pub name: String,
    pub layer: &'static str,
}

/// A deciding metric of a cell.
#[derive(Serialize)]
pub(super) struct Row {
    pub id: String,
    pub device: usize,
    pub name: String,
    pub machine: String,
    pub metric: String,
    pub unit: String,
    pub higher: bool,
    pub kind: &'static str,
    pub tops: Vec<usize>,
    pub best: Option<usize>,
    pub words: String,
    pub sides: Vec<Side>,
    pub pairs: Vec<Pair>,
    pub flags: Vec<String>,
    pub sweep: Option<(usize, f64)>,
    pub part: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Side {
    pub s: usize,
    pub n: usize,
    pub failed: usize,
    pub mean: Option<f64>,
    pub sd: Option<f64>,
    pub se: Option<f64>,
    pub lo: Option<f64>,
    pub hi: Option<f64>,
    pub v: Vec<Option<f64>>,
    pub at: Vec<Option<usize>>,
    pub why: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Pair {
    pub a: usize,
    pub b: usize,
    pub times: Option<f64>,
    pub lo: Option<f64>,
    pub hi: Option<f64>,
    pub cls: Verdict,
    pub words: String,
}

#[derive(Serialize)]
pub(super) struct Sweep {
    pub device: usize,
    pub name: String,
    pub axis: String,
    pub rows: Vec<usize>,
}

#[derive(Serialize)]
pub(super) struct Scores {
    pub device: usize,
    pub machine: String,
    pub reference: usize,
    pub scores: Vec<Score>,
}

#[derive(Serialize)]
pub(super) struct Score {
    pub s: usize,
    pub times: f64,
    pub lo: Option<f64>,
    pub hi: Option<f64>,
}

/// A window of events that can be replayed.
#[derive(Serialize)]
pub(super) struct Scene {
    pub row: usize,
    pub block: u32,
    /// Start on the workload's clock, in ns.
    pub from: u64,
    pub lanes: Vec<Lane>,
}

#[derive(Serialize)]
pub(super) struct Lane {
    pub s: usize,
    pub part: String,
    /// Length of the lane, in ns.
    pub length: u64,
}

/// Returns a complete sentence. It ends with a full stop and begins with a capital, unless it
/// begins with the name of a scheduler.
pub(super) fn sentence(words: &str, names: &[String]) -> String {
    let mut letters = words.chars();
    let Some(first) = letters.next() else {
        return String::new();
    };
    let whole: String = match names.iter().any(|n| words.starts_with(n.as_str())) {
        true => words.to_owned(),
        false => first.to_uppercase().chain(letters).collect(),
    };
    let end = if whole.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    whole + end
}

fn layer(scheduler: &str) -> &'static str {
    seekwell_sched::find(scheduler).map_or("", |f| match f.0.layer {
        seekwell_sched::Layer::Legacy => "single-queue",
        seekwell_sched::Layer::Mq => "blk-mq",
    })
}

/// Returns the position of each run in the order of execution. The order is that of the clock if it
/// is known, and otherwise block by block.
fn order(results: &Results) -> BTreeMap<(usize, u32, usize), usize> {
    let mut all: Vec<_> = results.runs.iter().collect();
    all.sort_by_key(|r| {
        (
            r.began_unix_ns,
            r.key.block,
            r.key.cell,
            r.place,
            r.key.treatment,
        )
    });
    let key = |r: &seekwell_lab::results::Run| (r.key.cell, r.key.block, r.key.treatment);
    all.iter().enumerate().map(|(i, r)| (key(r), i)).collect()
}

pub(super) fn index(results: &Results, analysis: &Analysis) -> Index {
    let mut devices: Vec<String> = Vec::new();
    for c in &analysis.cells {
        if !devices.contains(&c.device) {
            devices.push(c.device.clone());
        }
    }
    let device = |name: &str| devices.iter().position(|d| d == name).unwrap_or(0);
    let order = order(results);
    let mut rows: Vec<Row> = Vec::new();
    for cell in &analysis.cells {
        rows.push(row(results, analysis, cell, device(&cell.device), &order));
    }
    let sweeps = sweeps(results, analysis, &mut rows);
    let groups = analysis.groups.iter().map(|g| Scores {
        device: device(&g.device),
        machine: g.machine.clone(),
        reference: g.reference,
        scores: g
            .scores
            .iter()
            .map(|s| Score {
                s: s.treatment,
                times: s.times,
                lo: s.times95.map(|e| e.0),
                hi: s.times95.map(|e| e.1),
            })
            .collect(),
    });
    Index {
        title: title(results),
        margin: analysis.method.margin,
        schedulers: results
            .treatments
            .iter()
            .map(|t| Scheduler {
                name: t.label.clone(),
                layer: layer(&t.scheduler),
            })
            .collect(),
        groups: groups.collect(),
        scenes: Vec::new(),
        sweeps,
        rows,
        devices,
    }
}

fn title(results: &Results) -> String {
    match (
        results.about.description.as_str(),
        results.about.name.as_str(),
    ) {
        ("", "") => "Which scheduler?".to_owned(),
        ("", name) => name.to_owned(),
        (description, _) => description.to_owned(),
    }
}

/// Returns whether every pair is level, or equal in every block so far.
fn alike(cell: &CellAnalysis) -> bool {
    !cell.pairs.is_empty()
        && cell
            .pairs
            .iter()
            .all(seekwell_lab::analysis::Comparison::near)
}

fn kind(cell: &CellAnalysis) -> &'static str {
    let with = cell.sides.iter().filter(|s| s.mean.is_some()).count();
    match with {
        0 => "failed",
        1 => "single",
        _ if cell.level || alike(cell) => "none",
        _ if cell.winner.is_some() || !tops(cell).is_empty() => "win",
        _ => "open",
    }
}

/// Returns the winners: the best treatment, if it is ahead of any other, and those that are level
/// with it. Returns an empty list if a comparison with the best treatment is undecided.
fn tops(cell: &CellAnalysis) -> Vec<usize> {
    let Some(best) = cell.best else {
        return Vec::new();
    };
    let beats_any = cell.sides.iter().any(|s| cell.beats(best, s.treatment));
    if cell.level || !beats_any {
        return Vec::new();
    }
    let level = |t: &usize| *t == best || cell.pair(best, *t).is_some_and(|(p, _)| p.near());
    let open = |t: &usize| *t != best && !level(t) && !cell.beats(best, *t);
    let with = cell.sides.iter().filter(|s| s.mean.is_some());
    let all: Vec<usize> = with.map(|s| s.treatment).collect();
    // An undecided treatment may be as good as the best, so the winner is not certain.
    if all.iter().any(open) {
        return Vec::new();
    }
    all.into_iter().filter(level).collect()
}

fn row(
    results: &Results,
    analysis: &Analysis,
    cell: &CellAnalysis,
    device: usize,
    order: &BTreeMap<(usize, u32, usize), usize>,
) -> Row {
    let better = cell.better();
    let side = |s: &seekwell_lab::analysis::Side| {
        let mut why: Vec<String> = Vec::new();
        for r in results
            .runs
            .iter()
            .filter(|r| r.key.cell == cell.cell && r.key.treatment == s.treatment)
        {
            if let Outcome::Failed(w) | Outcome::Early(w) | Outcome::Censored(w) = &r.outcome
                && !why.contains(w)
            {
                why.push(w.clone());
            }
        }
        let place = |block: usize| order.get(&(cell.cell, block as u32, s.treatment)).copied();
        Side {
            s: s.treatment,
            n: s.n,
            failed: s.failed,
            mean: s.mean,
            sd: s.sd,
            se: s.se,
            lo: s.interval95.map(|e| e.0),
            hi: s.interval95.map(|e| e.1),
            at: (0..s.values.len()).map(place).collect(),
            v: s.values.clone(),
            why,
        }
    };
    let pair = |p: &seekwell_lab::analysis::Comparison| {
        let ends = p.better95(better);
        Pair {
            a: p.one,
            b: p.other,
            times: p.times_better(better),
            lo: ends.map(|e| e.0),
            hi: ends.map(|e| e.1),
            cls: p.verdict,
            words: p.words.clone(),
        }
    };
    Row {
        id: cell.id(),
        device,
        name: cell.title(),
        machine: cell.machine.clone(),
        metric: cell.metric.name.clone(),
        unit: cell.metric.unit.clone(),
        higher: cell.metric.higher_is_better,
        kind: kind(cell),
        tops: tops(cell),
        best: cell.best,
        words: sentence(&cell.sentence, &analysis.treatments),
        sides: cell.sides.iter().map(side).collect(),
        pairs: cell.pairs.iter().map(pair).collect(),
        flags: cell.flags.iter().map(|f| flag(f, analysis)).collect(),
        sweep: None,
        part: None,
    }
}

/// Describes a flag in a few words.
fn flag(f: &Flag, analysis: &Analysis) -> String {
    let of = |t: &usize| analysis.treatments.get(*t).map_or("?", String::as_str);
    match f {
        Flag::Spread { treatment, cv } => {
            format!("{}: noisy, runs scatter by {}", of(treatment), percent(*cv))
        }
        Flag::Outlier { treatment, blocks } => match blocks.len() {
            1 => format!("{}: one run far from the others", of(treatment)),
            n => format!("{}: {n} runs far from the others", of(treatment)),
        },
        Flag::TwoModes { treatment, gap, .. } => {
            format!(
                "{}: runs fall into two groups, {} apart",
                of(treatment),
                percent(*gap)
            )
        }
        Flag::Trend { slope, .. } => {
            let way = if *slope > 0.0 { "rise" } else { "fall" };
            format!("trend: figures {way} by {} per block", percent(slope.abs()))
        }
        Flag::CarryOver { .. } => "a run depends on the one before it".to_owned(),
        Flag::TailDecides { treatment } => {
            format!(
                "{}: outliers drive the mean, mean and median disagree",
                of(treatment)
            )
        }
        Flag::MeansDiffer { treatment, ratio } => {
            format!("{}: the ratio of plain means is {ratio:.3}", of(treatment))
        }
        Flag::Step { treatment, .. } => {
            format!(
                "{}: the steps of the metric are larger than its spread",
                of(treatment)
            )
        }
        Flag::HostBusy {
            treatment,
            runs,
            most,
        } => format!(
            "{}: host busy: in {runs} runs, other programs used CPU time, at most {} of it",
            of(treatment),
            percent(*most)
        ),
        Flag::NotReached { seconds } => {
            format!("perhaps never steady: {seconds} s of each run were left out as warm-up")
        }
        Flag::Moving { treatment, change } => {
            let way = if *change > 0.0 { "rising" } else { "falling" };
            format!(
                "{}: still {way} by {} when runs ended",
                of(treatment),
                percent(change.abs())
            )
        }
        Flag::FewOperations { treatment, n } => {
            format!("{}: a value is based on only {n} operations", of(treatment))
        }
        Flag::AtLimit {
            treatment,
            runs,
            of: all,
            than_s,
        } => format!(
            "{}: {runs} of {all} runs reached their limit, longer than {} s",
            of(treatment),
            three(*than_s)
        ),
        Flag::Starved {
            treatment,
            runs,
            first,
        } => format!("{}: {} ({runs} runs)", of(treatment), first.words()),
        Flag::Fails {
            treatment,
            failed,
            of: all,
        } => {
            format!("{}: {failed} of {all} runs failed", of(treatment))
        }
    }
}

/// Device, workload with all axes but one, machine, and the name of that axis.
type SweepKey = (usize, String, String, String);

/// Finds sweeps, which are cells of one device that differ in one numeric axis only.
fn sweeps(results: &Results, analysis: &Analysis, rows: &mut [Row]) -> Vec<Sweep> {
    let mut found: BTreeMap<SweepKey, Vec<(f64, usize)>> = BTreeMap::new();
    for (i, judged) in analysis.cells.iter().enumerate() {
        let Some(cell) = results.cells.get(judged.cell) else {
            continue;
        };
        for (axis, value) in &cell.axes {
            let Ok(v) = value.parse::<f64>() else {
                continue;
            };
            let others = cell.axes.iter().filter(|a| a.0 != axis);
            let others: Vec<String> = others.map(|(k, v)| format!("{k}={v}")).collect();
            let base = cell
                .workload
                .split(['[', ':', ' ', ','])
                .next()
                .unwrap_or_default();
            let what = format!("{base}|{}|{}", judged.metric.name, others.join(","));
            let key = (rows[i].device, what, cell.machine.clone(), axis.clone());
            found.entry(key).or_default().push((v, i));
        }
    }
    let mut out: Vec<Sweep> = Vec::new();
    for ((device, what, _, axis), mut points) in found {
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let distinct = points.windows(2).all(|w| w[0].0 < w[1].0);
        let free = points.iter().all(|p| rows[p.1].sweep.is_none());
        if points.len() < 3 || !distinct || !free {
            continue;
        }
        let axis = axis.rsplit('.').next().unwrap_or(&axis).to_owned();
        let base = what.split('|').next().unwrap_or_default();
        let (first, last) = (points[0].0, points[points.len() - 1].0);
        for (v, i) in &points {
            rows[*i].sweep = Some((out.len(), *v));
        }
        out.push(Sweep {
            device,
            name: format!("{base}, {first} to {last} {axis}"),
            axis,
            rows: points.iter().map(|p| p.1).collect(),
        });
    }
    out
}
