//! The recommendation in words: what to set on a device, the evidence, what it costs elsewhere.
//!
//! The decision is the lab's ([`Group`]); here it is told. `seekwell recommend` and the page say
//! the same words.

use seekwell_lab::analysis::{Analysis, Group, Score, percent, size};
use serde::Serialize;

/// What to do on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Device.
    pub device: String,
    /// Machine; empty: the usual one.
    pub machine: String,
    /// "change", "keep", "cannot_tell"; empty: there is nothing to decide.
    pub decision: String,
    /// What to have in force; `None`: nothing is recommended.
    pub scheduler: Option<String>,
    /// What it was held against.
    pub reference: String,
    /// The answer in a few words.
    pub headline: String,
    /// The evidence, in a sentence.
    pub evidence: String,
    /// What it costs elsewhere, in a sentence.
    pub cost: String,
    /// What takes no part, with the reason.
    pub left_out: Vec<String>,
}

fn name(analysis: &Analysis, t: usize) -> &str {
    analysis.treatments.get(t).map_or("?", String::as_str)
}

/// "1 test", "3 tests".
fn tests(n: usize) -> String {
    format!("{n} test{}", if n == 1 { "" } else { "s" })
}

/// "1.5 times as good as noop (1.2 to 1.9)" or "12 % ahead of noop".
fn score(s: &Score, against: &str) -> String {
    let ahead = s.times >= 1.0;
    let times = if ahead { s.times } else { 1.0 / s.times };
    let word = if ahead { "ahead of" } else { "behind" };
    let ends = s
        .times95
        .map(|(l, h)| if ahead { (l, h) } else { (1.0 / h, 1.0 / l) });
    let span = match ends {
        Some((l, h)) if l >= 1.0 && h / l > 1.0005 => format!(" ({} to {})", size(l), size(h)),
        Some((_, h)) if h > 1.0005 => format!(" (at most {})", size(h)),
        _ => String::new(),
    };
    format!("{} {word} {against}{span}", size(times))
}

/// What it costs where it is not the best.
fn cost(analysis: &Analysis, s: &Score) -> String {
    let margin = 1.0 + analysis.method.margin;
    let on = s
        .regret_on
        .and_then(|i| analysis.cells.get(i))
        .filter(|_| s.regret > margin);
    let Some(cell) = on else {
        return format!(
            "It costs nothing over {} on any test.",
            percent(analysis.method.margin)
        );
    };
    let best = cell.best.map_or("the best", |b| name(analysis, b));
    let shown = cell.best.is_some_and(|b| cell.beats(b, s.treatment));
    let sure = if shown {
        ""
    } else {
        ", which is not shown yet"
    };
    format!(
        "On {} it is {} behind {best}{sure}.",
        cell.workload,
        size(s.regret)
    )
}

/// What to do with one group of cells.
pub fn advice(analysis: &Analysis, group: &Group) -> Advice {
    let reference = name(analysis, group.reference).to_owned();
    let of = |t: usize| group.scores.iter().find(|s| s.treatment == t);
    let n = group.cells.len() - group.left_out.len();
    let all_level = group.cells.iter().all(|i| analysis.cells[*i].level);
    let mut a = Advice {
        device: group.device.clone(),
        machine: group.machine.clone(),
        decision: group.decision.clone(),
        scheduler: None,
        headline: String::new(),
        evidence: String::new(),
        cost: String::new(),
        left_out: Vec::new(),
        reference,
    };
    let out = group.left_out.iter();
    a.left_out = out
        .map(|(i, why)| format!("{}: {why}", analysis.cells[*i].workload))
        .collect();
    let pick = group.pick.and_then(of);
    match (group.decision.as_str(), pick) {
        ("change", Some(s)) => {
            let to = name(analysis, s.treatment).to_owned();
            a.headline = format!("Take {to}");
            a.evidence = format!(
                "Over {} it is {}: ahead in {}, behind in {}.",
                tests(n),
                score(s, &a.reference),
                s.won,
                s.lost
            );
            a.cost = cost(analysis, s);
            a.scheduler = Some(to);
        }
        ("keep", Some(s)) if all_level || group.scores.iter().all(|o| o.won + o.lost == 0) => {
            a.headline = "It does not matter here".to_owned();
            a.evidence = format!(
                "Over {} no scheduler is shown to differ from {} by more than {}. Keep what you have.",
                tests(n),
                a.reference,
                percent(analysis.method.margin)
            );
            a.scheduler = Some(name(analysis, s.treatment).to_owned());
        }
        ("keep", Some(s)) => {
            a.headline = format!("Keep {}", a.reference);
            a.evidence = format!("Over {} no other is ahead of it.", tests(n));
            a.cost = cost(analysis, s);
            a.scheduler = Some(a.reference.clone());
        }
        ("cannot_tell", _) => {
            a.headline = "Cannot tell yet".to_owned();
            let leads = group.best.filter(|b| *b != group.reference).and_then(of);
            a.evidence = match leads {
                Some(s) => format!(
                    "{} leads over {}, {}, but the runs scatter too much to recommend it.",
                    name(analysis, s.treatment),
                    tests(n),
                    score(s, &a.reference)
                ),
                None => format!(
                    "{} leads over {}, but others may be ahead of it.",
                    a.reference,
                    tests(n)
                ),
            };
        }
        _ if analysis.treatments.len() < 2 => {
            a.headline = a.reference.clone();
            a.evidence = "One scheduler ran, so nothing is compared.".to_owned();
        }
        _ => {
            a.headline = "Not compared".to_owned();
            a.evidence = "There are too few runs, or none of all schedulers, to decide.".to_owned();
        }
    }
    a
}
