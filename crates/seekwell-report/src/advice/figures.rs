//! The measured values that are printed below a recommendation. They are the values of the
//! recommended scheduler and of the scheduler that it is compared with, in the tests where the two
//! differ most.

use crate::units::three;
use seekwell_core::prose::in_prose;
use seekwell_lab::analysis::{Analysis, CellAnalysis, Group, Score, size, span};
use seekwell_lab::results::Results;

/// Maximum number of tests whose values are printed.
const MOST: usize = 3;

/// Returns the treatment to print next to the recommended one. This is the reference. If the
/// reference is recommended, it is the treatment that is furthest ahead of it on a test, or else
/// the best other scheduler. The same scheduler with another setting is only used if there is no
/// other scheduler.
fn rival(results: &Results, analysis: &Analysis, group: &Group, choice: usize) -> Option<usize> {
    if choice != group.reference {
        return Some(group.reference);
    }
    let own = group.scores.iter().find(|s| s.treatment == choice);
    let margin = 1.0 + analysis.method.margin;
    let worst = own.filter(|s| s.regret > margin).and_then(|s| s.regret_on);
    if let Some(best) = worst.and_then(|i| analysis.cells.get(i)?.best) {
        return Some(best);
    }
    let scheduler = |t: usize| results.treatments.get(t).map(|t| &t.scheduler);
    let others = group.scores.iter().filter(|s| s.treatment != choice);
    let rank = |s: &Score| (scheduler(s.treatment) != scheduler(choice), s.times);
    let best = others.reduce(|a, b| if rank(b) > rank(a) { b } else { a });
    best.map(|s| s.treatment)
}

/// Returns a line such as "app-start: 1.15 s under bfq, 19.2 s under mq-deadline: 17 times ahead
/// (7.5 to 37)", and the size of the difference.
fn figure(
    analysis: &Analysis,
    name: &str,
    cell: &CellAnalysis,
    (one, other): (usize, usize),
) -> Option<(f64, String)> {
    let label = |t: usize| in_prose(analysis.treatments.get(t).map_or("?", String::as_str));
    let told = |t: usize| {
        let side = cell.sides.iter().find(|s| s.treatment == t)?;
        let value = three(side.mean?);
        Some(match cell.metric.unit.as_str() {
            "" => format!("{value} under {}", label(t)),
            unit => format!("{value} {unit} under {}", label(t)),
        })
    };
    let (times, ends) = cell.times(one, other)?;
    let ahead = times >= 1.0;
    let turned = |t: f64| if ahead { t } else { 1.0 / t };
    let ends = ends.map(|(l, h)| (turned(l), turned(h)));
    let ends = ends.map(|(a, b)| (a.min(b), a.max(b)));
    let way = if ahead { "ahead" } else { "behind" };
    let near = cell.pair(one, other).is_some_and(|(p, _)| p.near());
    let words = match cell.beats(one, other) || cell.beats(other, one) {
        true => format!("{} {way}{}", size(turned(times)), span(ends, turned(times))),
        false if near => "same".to_owned(),
        false => {
            // If an interval contains 1, both ends are shown as factors.
            let ends = ends.map(|(l, h)| format!(" ({l:.2} to {h:.2} times)"));
            format!("unclear{}", ends.unwrap_or_default())
        }
    };
    let apart = libm::log(times).abs();
    Some((
        if words == "same" { 0.0 } else { apart },
        format!("{name}: {}, {}: {words}", told(one)?, told(other)?),
    ))
}

/// Returns the lines of a group, in the order of its tests.
pub(super) fn figures(results: &Results, analysis: &Analysis, group: &Group) -> Vec<String> {
    let choice = group.pick.or(group.best).unwrap_or(group.reference);
    let Some(rival) = rival(results, analysis, group, choice) else {
        return Vec::new();
    };
    let cells: Vec<&CellAnalysis> = group
        .cells
        .iter()
        .filter(|i| group.left_out.iter().all(|out| out.0 != **i))
        .filter_map(|i| analysis.cells.get(*i))
        .collect();
    let name = |cell: &CellAnalysis| {
        let same = cells.iter().filter(|c| c.workload == cell.workload);
        match same.count() {
            1 => cell.workload.clone(),
            _ => format!("{}, {}", cell.workload, cell.metric.name),
        }
    };
    let all = cells.iter().enumerate();
    let mut told: Vec<(usize, f64, String)> = all
        .filter_map(|(i, cell)| {
            let (apart, words) = figure(analysis, &name(cell), cell, (choice, rival))?;
            Some((i, apart, words))
        })
        .collect();
    told.sort_by(|a, b| b.1.total_cmp(&a.1));
    told.truncate(MOST);
    told.into_iter().map(|t| t.2).collect()
}

#[cfg(test)]
mod tests {
    use crate::advice::all;
    use crate::compare::tests::analysed;
    use crate::story::answers;
    use anstream::adapter::strip_str;

    /// Returns the text below the headline of each device.
    fn advice_text(schedulers: &[&str], cells: &[(&str, &str, &str, bool, &[f64])]) -> String {
        let (results, analysis) = analysed(schedulers, cells);
        strip_str(&answers(&all(&results, &analysis), 100)).to_string()
    }

    #[test]
    fn figures_of_the_choice_and_the_incumbent_are_printed_below_the_headline() {
        let text = advice_text(
            &["mq-deadline", "bfq"],
            &[
                ("sda", "start", "s", false, &[20.0, 1.0]),
                ("sda", "copy", "MB/s", true, &[100.0, 100.0]),
                ("sda", "mail", "files/s", true, &[100.0, 110.0]),
                ("sda", "scan", "MB/s", true, &[100.0, 100.5]),
            ],
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "sda: Take bfq");
        let start = "  start: 1.00 s under bfq, 20.0 s under mq-deadline: 20 times ahead";
        assert!(lines[1].starts_with(start), "{text}");
        let mail = "  mail: 110 files/s under bfq, 100 files/s under mq-deadline: 10 % ahead";
        assert!(lines[2].starts_with(mail), "{text}");
        assert!(lines[3].ends_with(": same"), "{text}");
        assert!(!lines[4].contains(" under "), "three at most\n{text}");
    }

    /// A user who keeps the current scheduler must see both the cost and the benefit.
    #[test]
    fn kept_incumbent_is_shown_with_the_rival_furthest_ahead() {
        let text = advice_text(
            &["mq-deadline", "none", "bfq"],
            &[
                ("sda", "start", "s", false, &[3.0, 3.0, 1.0]),
                ("sda", "mail", "files/s", true, &[100.0, 100.0, 20.0]),
            ],
        );
        assert!(text.starts_with("sda: Keep mq-deadline\n"), "{text}");
        let gain = "  mail: 100 files/s under mq-deadline, 20.0 files/s under bfq: 5.0 times ahead";
        let cost = "  start: 3.01 s under mq-deadline, 1.00 s under bfq: 3.0 times behind";
        let (gain, cost) = (text.find(gain), text.find(cost));
        assert!(gain.is_some() && gain < cost, "{text}");
    }

    #[test]
    fn devices_with_the_same_advice_have_their_own_figures() {
        let text = advice_text(
            &["mq-deadline", "none"],
            &[
                ("sda", "copy", "MB/s", true, &[100.0, 100.0]),
                ("sdb", "copy", "MB/s", true, &[200.0, 200.0]),
            ],
        );
        assert!(
            text.starts_with("sda, sdb: It does not matter here"),
            "{text}"
        );
        for of in ["sda: copy: 100 MB/s", "sdb: copy: 200 MB/s"] {
            assert!(text.contains(of), "{of}\n{text}");
        }
    }
}
