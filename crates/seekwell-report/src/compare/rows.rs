//! The verdict on a cell with several deciding metrics: one sentence per metric, and one table.

use super::PROSE;
use super::answer::{REMARKS, line, remarks};
use super::grid::{Line, grid};
use super::seeds::{Judged, judged as judged_alone};
use super::words::summary;
use crate::style::HEAD;
use crate::table::{paint, wrap};
use seekwell_lab::analysis::CellAnalysis;

/// Returns the verdict on the metrics of one cell. With `details`, it includes the whole table of
/// each metric.
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
    let judged: Vec<Judged> = rows
        .iter()
        .map(|cell| Judged {
            row: None,
            ..Judged::new(cell.metric.name.to_string(), cell)
        })
        .collect();
    let text = format!("{} Over {seeds}.", summary(&judged, labels, true));
    out += wrap(&text, 11, prose).trim_start();
    let sides = rows.first().map(|r| &r.sides[..]).unwrap_or_default();
    let groups: Vec<Vec<usize>> = sides.iter().map(|s| vec![s.treatment]).collect();
    let name = |g: &Vec<usize>| labels.get(g[0]).cloned().unwrap_or_default();
    let names: Vec<String> = groups.iter().map(name).collect();
    let lines: Vec<Line> = judged.iter().map(|j| line(j, &groups)).collect();
    out += &grid(&lines, &names, usize::MAX, width);
    out + &remarks(&judged, labels, prose, REMARKS)
}
