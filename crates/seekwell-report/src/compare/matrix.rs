//! The answer on one screen: workloads by schedulers, who is ahead, and how far the others are
//! behind.

use super::{figures, groups, hang, identical, short};
use crate::style::{GOOD, HEAD, PLAIN, WARN};
use crate::table::{Align, Cell, Table, paint, painted};
use crate::units::{bytes, three};
use crate::verdict;
use seekwell_core::result::Record;
use seekwell_lab::analysis::single::{SAME_PERCENT, Standing, standing};

/// One workload's runs under all schedulers.
pub struct Row<'a> {
    /// What ran, as short as tells it from the others.
    pub name: String,
    /// A run under each scheduler, in the same order in every row.
    pub records: &'a [Record],
}

/// Schedulers in columns at most; more stand in rows.
const ACROSS: usize = 6;

/// Workloads by schedulers on one device, with a verdict in a sentence.
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
    let heads: Vec<String> = rows.iter().map(head).collect();
    let cell = |w: usize, s: usize| match rows[w].records.get(s) {
        Some(r) => cell(r, s, verdicts[w].as_ref()),
        None => "-".into(),
    };
    let across = names.len() <= ACROSS;
    let (corner, columns, lines) = match across {
        true => ("WORKLOAD", &names, &heads),
        false => ("SCHEDULER", &heads, &names),
    };
    let mut of = vec![(corner, Align::Left)];
    of.extend(columns.iter().map(|c| (c.as_str(), Align::Right)));
    let mut t = Table::new(&of);
    for (i, line) in lines.iter().enumerate() {
        let mut row: Vec<Cell> = vec![line.as_str().into()];
        row.extend((0..columns.len()).map(|j| match across {
            true => cell(i, alike[j][0]),
            false => cell(j, alike[i][0]),
        }));
        t.row(row);
    }
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
    out += &t.render_fit(2, width, 1);
    if names.iter().any(|n| n.ends_with(" more")) {
        out += &identical(&alike, schedulers, width);
    }
    let words = summary(rows, &verdicts);
    if !words.is_empty() {
        paint(&mut out, "  Verdict: ", HEAD);
        out += crate::table::wrap(&words, 11, width.min(super::PROSE)).trim_start();
    }
    for row in rows {
        for (text, who) in verdict::starvation(row.records) {
            paint(&mut out, "  ! ", WARN);
            let text = format!("{}: {}: {text}", row.name, who.join(", "));
            out += crate::table::wrap(&text, 4, width.min(super::PROSE)).trim_start();
        }
    }
    let all = rows.iter().flat_map(|r| r.records).cloned();
    if let Some(note) = verdict::cpu_note(&all.collect::<Vec<_>>()) {
        paint(&mut out, "  ! ", WARN);
        out += crate::table::wrap(&note, 4, width.min(super::PROSE)).trim_start();
    }
    out
}

/// "interactive, ms".
fn head(row: &Row) -> String {
    let metric = row.records.iter().find_map(|r| r.metric.as_ref());
    metric.map_or_else(|| row.name.clone(), |m| format!("{}, {}", row.name, m.unit))
}

/// "24.6  2.2x", "11.2 *".
fn cell(r: &Record, run: usize, verdict: Option<&Standing>) -> Cell {
    if let Some(longer) = verdict::at_limit(r) {
        return painted(longer, WARN);
    }
    let value = r.metric.as_ref().map(|m| three(m.value));
    let value = value.unwrap_or_else(|| "-".to_owned());
    let Some(v) = verdict else {
        return value.into();
    };
    if !v.enough() {
        return format!("{value}     ?").into();
    }
    let leaders = v.leaders();
    if leaders.is_empty() {
        return format!("{value}     =").into();
    }
    if leaders.contains(&run) {
        let (mark, style) = match v.only_placement() {
            true => ("~", PLAIN),
            false => ("*", GOOD),
        };
        return painted(format!("{value}     {mark}"), style);
    }
    format!("{value} {}", times(v.times(run))).into()
}

/// "1.04x", " 2.2x", "  59x": five columns.
fn times(x: f64) -> String {
    let text = match x {
        x if !x.is_finite() => "inf".to_owned(),
        x if x < 1.995 => format!("{x:.2}x"),
        x if x < 9.95 => format!("{x:.1}x"),
        x if x < 999.5 => format!("{x:.0}x"),
        _ => ">999".to_owned(),
    };
    format!("{text:>5}")
}

/// Who is ahead where, in one sentence; workloads that say the same together.
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
        return "too few operations to say".to_owned();
    }
    if leaders.is_empty() {
        return format!("level within {SAME_PERCENT:.0} %");
    }
    let names: Vec<&str> = leaders.iter().map(name).collect();
    let who = verdict::list(&names);
    if v.only_placement() {
        return format!("{who} ahead, by no more than placement of files on other kernels may do");
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

/// What the marks of the matrix mean.
pub fn key(width: usize) -> String {
    let text = format!(
        "* ahead, with all within {SAME_PERCENT:.0} % of it; 2.2x: 2.2 times worse; = all level; \
         ~ ahead, but perhaps by placement of files only; ? too few operations. One run each: other \
         seeds (--seed N) tell how far to trust it."
    );
    let mut out = String::new();
    let lines = crate::table::wrap(&text, 0, width.min(super::PROSE));
    paint(&mut out, &lines, crate::style::DIM);
    out
}
