//! The summary of several tests over several seeds, which fits one screen: legend, table, verdict
//! and remarks. `--details` shows every comparison and every remark.

use super::grid::{Line, grid};
use super::seeds::{Judged, at_limit, flags, sure};
use super::words::{of_cell, summary};
use super::{PROSE, hang};
use crate::style::{HEAD, WARN};
use crate::table::{paint, wrap};
use crate::units::three;
use crate::verdict::cpu_note;
use seekwell_core::result::Record;

/// Maximum number of remarks, and maximum number of tests that a remark names.
pub(super) const REMARKS: usize = 2;
const NAMED: usize = 3;
/// If there are more rows than this, the verdict over several devices names no rows.
const NAMED_ROWS: usize = 6;
/// Maximum width of a label with several names, in columns.
const LABEL: usize = 28;

/// Groups treatments that have the same result in every run of every row, in their order.
fn alike(rows: &[Judged]) -> Vec<Vec<usize>> {
    let mut all: Vec<usize> = Vec::new();
    for side in rows.iter().flat_map(|r| &r.cell.sides) {
        if !all.contains(&side.treatment) {
            all.push(side.treatment);
        }
    }
    let groups = super::groups(all.iter().map(|t| {
        let side = |r: &Judged| {
            let own = r.cell.sides.iter().find(|s| s.treatment == *t);
            own.map(|s| {
                // Runs that reached their limit could have had different final results.
                let cut = s.censored.map(|_| s.treatment);
                (s.values.clone(), s.failed, s.mean.map(f64::to_bits), cut)
            })
        };
        rows.iter().map(side).collect::<Vec<_>>()
    }));
    let own = |g: Vec<usize>| g.into_iter().map(|i| all[i]).collect();
    groups.into_iter().map(own).collect()
}

fn label(group: &[usize], labels: &[String]) -> String {
    let name = |t: &usize| labels.get(*t).map_or("?", String::as_str);
    let all = group.iter().map(name).collect::<Vec<_>>().join(" = ");
    match all.chars().count() {
        n if group.len() < 2 || n <= LABEL => all,
        _ => format!("{} and {} more", name(&group[0]), group.len() - 1),
    }
}

pub(super) fn line(row: &Judged, groups: &[Vec<usize>]) -> Line {
    let firsts: Vec<usize> = groups.iter().map(|g| g[0]).collect();
    let value = |t: &usize| {
        let side = row.cell.sides.iter().find(|s| s.treatment == *t)?;
        let longer = side.censored.as_ref().map(at_limit);
        longer.or_else(|| side.mean.map(three))
    };
    Line {
        place: row.place.clone(),
        workload: row.name.clone(),
        row: row.row.clone(),
        unit: row.cell.metric.unit.clone(),
        values: firsts.iter().map(value).collect(),
        marks: of_cell(row.cell, &firsts),
        sure: sure(row.cell),
    }
}

/// Returns the sentences of all rows. Equal sentences are merged.
fn sentences(rows: &[Judged]) -> String {
    let mut said: Vec<(&str, Vec<String>)> = Vec::new();
    for row in rows {
        let words = row.cell.sentence.as_str();
        match said.iter_mut().find(|s| s.0 == words) {
            Some(s) => s.1.push(row.called()),
            None => said.push((words, vec![row.called()])),
        }
    }
    let each = said
        .into_iter()
        .map(|(words, names)| format!("{}: {words}", names.join(", ")));
    format!("{}.", each.collect::<Vec<_>>().join("; "))
}

/// Returns the names of the rows. If all rows of a cell are present, the name is that of the
/// workload.
fn tests(rows: &[&Judged]) -> Vec<String> {
    let mut out = Vec::new();
    for row in rows {
        let of_cell = rows.iter().filter(|r| r.cell.cell == row.cell.cell);
        let name = match row.row.is_some() && of_cell.count() == row.cell.rows {
            true => Judged {
                row: None,
                ..(*row).clone()
            }
            .called(),
            false => row.called(),
        };
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

/// Returns the remarks about the rows, the most frequent first. At most `most` are written out.
pub(super) fn remarks(rows: &[Judged], labels: &[String], width: usize, most: usize) -> String {
    let mut found: Vec<(String, Vec<&Judged>)> = Vec::new();
    for row in rows {
        for text in flags(row.cell, labels, false) {
            match found.iter_mut().find(|s| s.0 == text) {
                Some(s) => s.1.push(row),
                None => found.push((text, vec![row])),
            }
        }
    }
    let named = |(text, rows): (String, Vec<&Judged>)| (text, tests(&rows));
    let mut said: Vec<(String, Vec<String>)> = found.into_iter().map(named).collect();
    said.sort_by_key(|s| std::cmp::Reverse(s.1.len()));
    let mut out = String::new();
    for (text, tests) in said.iter().take(most) {
        paint(&mut out, "  ! ", WARN);
        let whose = match tests.len() {
            n if n <= NAMED => tests.join(", "),
            n => format!("{n} tests"),
        };
        out += wrap(&format!("{whose}: {text}"), 4, width).trim_start();
    }
    let rest = said.len().saturating_sub(most);
    if rest > 0 {
        let (and, more) = if most > 0 {
            ("and ", " more")
        } else {
            ("", "")
        };
        let plural = if rest == 1 { "" } else { "s" };
        paint(&mut out, "  ! ", WARN);
        out += &format!("{and}{rest}{more} remark{plural}: --details\n");
    }
    out
}

/// Returns all rows under one heading and legend, in at most `lines` lines if at least one row
/// fits. `records` has the runs of one seed, from which facts about speed are taken; it may be
/// empty.
pub fn answer(
    rows: &[Judged],
    labels: &[String],
    (heading, legend): (&str, &str),
    records: &[Record],
    lines: usize,
    width: usize,
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let prose = width.min(PROSE);
    let top = hang(heading, 2, width) + legend;
    let groups = alike(rows);
    let names: Vec<String> = groups.iter().map(|g| label(g, labels)).collect();
    let all: Vec<Line> = rows.iter().map(|r| line(r, &groups)).collect();
    let mut end = String::new();
    if let Some(note) = cpu_note(records) {
        paint(&mut end, "  ! ", WARN);
        end += wrap(&note, 4, prose).trim_start();
    }
    // If not all rows fit otherwise, the remarks are only counted.
    let counted = end.clone() + &remarks(rows, labels, prose, 0);
    end += &remarks(rows, labels, prose, REMARKS);
    let verdict = |text: &str| {
        let mut out = String::new();
        if text.is_empty() {
            return out;
        }
        paint(&mut out, "  Verdict: ", HEAD);
        out + wrap(text, 11, prose).trim_start()
    };
    let whole = |shown: usize, said: &str, end: &str| {
        let said = verdict(said);
        let around = [top.as_str(), &said, end];
        let around: usize = around.iter().map(|t| t.lines().count()).sum();
        let table = grid(&all[..shown], &names, lines.saturating_sub(around), width);
        let rest = match rows.len() - shown {
            0 => String::new(),
            n => format!("  and {n} more tests: --details\n"),
        };
        format!("{top}{table}{rest}{said}{end}")
    };
    let fits = |text: &String| text.lines().count() <= lines;
    // If all rows are on one device, the sentences of the verdict are shown only if there is space.
    // Without them, the VERDICT column of the table still names the leader in each row.
    let several = rows.iter().any(|r| r.place != rows[0].place);
    let sentences = match several {
        true => summary(rows, labels, rows.len() <= NAMED_ROWS),
        false => sentences(rows),
    };
    let (named, short) = (summary(rows, labels, true), summary(rows, labels, false));
    // The remarks give way before the verdict does.
    for (said, end) in [
        (&*sentences, &end),
        (&named, &end),
        (&short, &end),
        (&short, &counted),
        ("", &end),
        ("", &counted),
    ] {
        let text = whole(rows.len(), said, end);
        if fits(&text) {
            return text;
        }
    }
    // More rows never need fewer lines, so a binary search finds how many rows fit.
    let (mut some, mut least_too_many) = (1, rows.len() + 1);
    while some + 1 < least_too_many {
        let n = (some + least_too_many) / 2;
        match fits(&whole(n, &short, &counted)) {
            true => some = n,
            false => least_too_many = n,
        }
    }
    whole(some, &short, &counted)
}
