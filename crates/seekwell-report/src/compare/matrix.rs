//! The summary of one run per scheduler: legend, table and verdict. The variation between runs is
//! unknown, so the words claim no more than one run supports.

use super::grid::{Line, grid};
use super::words::of_runs;
use super::{PROSE, figures, groups, hang, identical, short};
use crate::style::{DIM, HEAD, WARN};
use crate::table::{paint, wrap};
use crate::units::{bytes, three};
use crate::verdict;
use seekwell_core::result::Record;
use seekwell_lab::analysis::single::{SAME_PERCENT, Standing, standing};

/// The runs of a workload under all schedulers.
pub struct Row<'a> {
    /// The shortest name that distinguishes the workload from the others.
    pub name: String,
    /// Name of the deciding metric, if the workload has several. Rows of the same workload are
    /// adjacent.
    pub row: Option<String>,
    /// One run per scheduler, in the same order in every row.
    pub records: &'a [Record],
}

/// Returns a table of workloads by schedulers on one device, with a verdict in a sentence.
pub fn matrix(rows: &[Row], width: usize) -> String {
    let Some(first) = rows.first().and_then(|r| r.records.first()) else {
        return String::new();
    };
    let verdicts: Vec<Option<Standing>> = rows.iter().map(|r| standing(r.records)).collect();
    let schedulers = rows[0].records;
    let alike = groups((0..schedulers.len()).map(|s| {
        let all = rows.iter().filter_map(|r| r.records.get(s));
        all.map(figures).collect::<Vec<_>>()
    }));
    let names: Vec<String> = alike.iter().map(|g| short(g, schedulers)).collect();
    let line = |(row, standing): (&Row, &Option<Standing>)| {
        let marks = of_runs(standing.as_ref(), row.records);
        let value = |i: usize| {
            let r = row.records.get(i)?;
            verdict::at_limit(r).or_else(|| Some(three(r.metric.as_ref()?.value)))
        };
        let metric = row.records.iter().find_map(|r| r.metric.as_ref());
        Line {
            place: String::new(),
            workload: row.name.clone(),
            row: row.row.clone(),
            unit: metric.map_or(String::new(), |m| m.unit.clone()),
            values: alike.iter().map(|g| value(g[0])).collect(),
            marks: alike
                .iter()
                .filter_map(|g| marks.get(g[0]).copied())
                .collect(),
            sure: String::new(),
        }
    };
    let lines: Vec<Line> = rows.iter().zip(&verdicts).map(line).collect();
    let d = &first.device;
    let mut out = hang(
        &format!(
            "On a modelled disk, not one of yours: {} ({}, seed {})",
            d.spec,
            bytes(d.capacity_sectors as f64 * 512.0),
            first.seed
        ),
        2,
        width,
    );
    out += &legend(width);
    out += &grid(&lines, &names, usize::MAX, width);
    if names.iter().any(|n| n.ends_with(" more")) {
        out += &identical(&alike, schedulers, width);
    }
    let words = summary(rows, &verdicts);
    if !words.is_empty() {
        paint(&mut out, "  Verdict: ", HEAD);
        out += wrap(&words, 11, width.min(PROSE)).trim_start();
    }
    for row in rows {
        for (text, who) in verdict::starvation(row.records) {
            paint(&mut out, "  ! ", WARN);
            let text = format!("{}: {}: {text}", row.name, who.join(", "));
            out += wrap(&text, 4, width.min(PROSE)).trim_start();
        }
    }
    let all = rows.iter().flat_map(|r| r.records).cloned();
    if let Some(note) = verdict::cpu_note(&all.collect::<Vec<_>>()) {
        paint(&mut out, "  ! ", WARN);
        out += wrap(&note, 4, width.min(PROSE)).trim_start();
    }
    out
}

/// Returns one sentence that says which scheduler is ahead in which workload. Workloads with equal
/// results are merged.
fn summary(rows: &[Row], verdicts: &[Option<Standing>]) -> String {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for (row, v) in rows.iter().zip(verdicts) {
        let Some(v) = v else { continue };
        let words = verdict_of(row.records, v);
        match said.iter_mut().find(|s| s.0 == words) {
            Some(s) => s.1.push(&row.name),
            None => said.push((words, vec![&row.name])),
        }
    }
    let told: Vec<String> = said
        .into_iter()
        .map(|(words, names)| format!("{}: {words}", names.join(", ")))
        .collect();
    if told.is_empty() {
        String::new()
    } else {
        format!("{}.", told.join("; "))
    }
}

fn verdict_of(records: &[Record], v: &Standing) -> String {
    let name = |i: &usize| records[*i].scheduler.spec.as_str();
    let leaders = v.leaders();
    if !v.enough() {
        return "too few operations to decide".to_owned();
    }
    if leaders.is_empty() {
        return format!("level within {SAME_PERCENT:.0} %");
    }
    let names: Vec<&str> = leaders.iter().map(name).collect();
    let who = verdict::list(&names);
    if v.only_placement() {
        return format!("{who} ahead, by no more than file placement on other kernels can explain");
    }
    let who = match v.other_kernel(records) {
        Some((own, other)) => format!("{who} (kernel {own}, not {other})"),
        None => who,
    };
    match v.next() {
        Some((next, times)) if times < 1.995 => {
            let percent = (times - 1.0) * 100.0;
            format!("{who} ahead, {} {percent:.0} % behind", name(&next))
        }
        Some((next, times)) => format!("{who} ahead, {} {times:.1} times behind", name(&next)),
        None => format!("{who} ahead"),
    }
}

/// Returns the meaning of the words in the table.
fn legend(width: usize) -> String {
    let text = format!(
        "One run each. best, 1.04x slower: by the metric; same: within {SAME_PERCENT:.0} % of the \
         best; unclear: too few operations, or a difference that file placement can explain."
    );
    let mut out = String::new();
    paint(&mut out, &wrap(&text, 2, width.min(PROSE)), DIM);
    out
}
