//! Differences in metrics that do not decide.

use crate::table::wrap;
use crate::verdict::list;
use seekwell_core::prose::all_in_prose;
use seekwell_lab::analysis::CellAnalysis;

/// Returns the other metrics that differ significantly, corrected for the number of metrics.
/// Schedulers with the same results are grouped, and so are metrics with the same differences. At
/// most `most` lines are returned, and the other differences are counted.
pub(super) fn other_differences(
    cell: &CellAnalysis,
    labels: &[String],
    most: usize,
    width: usize,
) -> String {
    let labels = all_in_prose(labels);
    let name = |t: usize| labels.get(t).map_or("?", String::as_str);
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for s in &cell.secondary {
        let mut alike: Vec<(&str, Vec<&str>)> = Vec::new();
        let shown = s.comparisons.iter();
        for c in shown.filter(|c| c.verdict.claims() && !c.level()) {
            match alike.iter_mut().find(|a| a.0 == c.words) {
                Some(a) => a.1.push(name(c.one)),
                None => alike.push((&c.words, vec![name(c.one)])),
            }
        }
        let each = alike
            .iter()
            .map(|(words, who)| format!("{} {words}", list(who)));
        let words = each.collect::<Vec<_>>().join(", ");
        if words.is_empty() {
            continue;
        }
        match said.iter_mut().find(|a| a.0 == words) {
            Some(a) => a.1.push(&s.metric.name),
            None => said.push((words, vec![&s.metric.name])),
        }
    }
    let text = |n: usize| {
        let each = said.iter().take(n);
        let mut parts: Vec<String> = each
            .map(|(words, metrics)| format!("{}: {words}", list(metrics)))
            .collect();
        let rest: usize = said.iter().skip(n).map(|s| s.1.len()).sum();
        match (parts.is_empty(), rest) {
            (true, 0) => return String::new(),
            (true, n) => parts.push(format!("differences in {n} other figures")),
            (_, 0) => {}
            (_, n) => parts.push(format!("{n} more")),
        }
        wrap(&format!("Other metrics: {}.", parts.join("; ")), 2, width)
    };
    let fits = |n: &usize| text(*n).lines().count() <= most;
    text((0..=said.len()).rev().find(fits).unwrap_or(0))
}
