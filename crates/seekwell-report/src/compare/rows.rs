//! The verdict on a cell that is judged by several figures: a sentence for each, and one table.

use super::PROSE;
use super::answer::line;
use super::grid::{Line, grid};
use super::seeds::{Judged, flags, judged as judged_alone};
use crate::style::{HEAD, WARN};
use crate::table::{paint, wrap};
use seekwell_lab::analysis::CellAnalysis;

/// Remarks at most, where the screen has no room for all.
const FLAGS: usize = 3;

/// The verdict on the rows of one cell. `details`: the whole table of each row.
pub fn judged(
    rows: &[&CellAnalysis],
    labels: &[String],
    seeds: &str,
    details: bool,
    width: usize,
) -> String {
    if let ([one], _) | ([one, ..], true) = (rows, details) {
        let mut out = judged_alone(one, labels, seeds, details, width);
        for row in rows.iter().skip(1) {
            out += &judged_alone(row, labels, seeds, details, width);
        }
        return out;
    }
    let prose = width.min(PROSE);
    let mut out = String::new();
    paint(&mut out, "  Verdict: ", HEAD);
    let each: Vec<String> = rows
        .iter()
        .map(|r| format!("by {}: {}", r.metric.name, r.sentence))
        .collect();
    let text = format!("{}. Over {seeds}.", each.join("; "));
    out += wrap(&text, 11, prose).trim_start();
    let sides = rows.first().map(|r| &r.sides[..]).unwrap_or_default();
    let groups: Vec<Vec<usize>> = sides.iter().map(|s| vec![s.treatment]).collect();
    let name = |g: &Vec<usize>| labels.get(g[0]).cloned().unwrap_or_default();
    let names: Vec<String> = groups.iter().map(name).collect();
    let lines: Vec<Line> = rows
        .iter()
        .map(|cell| {
            let judged = Judged {
                row: None,
                ..Judged::new(cell.metric.name.to_string(), cell)
            };
            line(&judged, &groups)
        })
        .collect();
    out += &grid(&lines, &names, usize::MAX, width);
    let mut told: Vec<String> = Vec::new();
    for row in rows {
        for text in flags(row, labels, false) {
            let text = format!("{}: {text}", row.metric.name);
            if !told.contains(&text) {
                told.push(text);
            }
        }
    }
    for (i, text) in told.iter().enumerate() {
        paint(&mut out, "  ! ", WARN);
        if i == FLAGS {
            out += &format!("and {} more remarks: --details\n", told.len() - i);
            break;
        }
        out += wrap(text, 4, prose).trim_start();
    }
    out
}
