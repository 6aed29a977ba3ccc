//! The recommendation in sentences: the scheduler to set on a device, the evidence, the cost, the
//! conditions that would change the recommendation, and the command that sets the scheduler.
//!
//! The lab makes the decision ([`Group`]), and this module describes it. `seekwell recommend`, the
//! HTML page and the Markdown report use the same sentences.

mod figures;

use crate::throttle::{setting, share};
use seekwell_core::prose::in_prose;
use seekwell_lab::analysis::{Analysis, Group, Score, Switch, percent, round, size, span};
use seekwell_lab::results::{Results, Treatment};
use seekwell_sched::{Layer, WBT_LAT_USEC};
use serde::Serialize;
use std::collections::BTreeMap;

/// The recommendation for one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Name of the device.
    pub device: String,
    /// Name of the machine; empty for the default machine.
    pub machine: String,
    /// "change", "keep" or "cannot_tell"; empty if there is nothing to decide.
    pub decision: String,
    /// False if the schedulers are shown to be equal within the margin, so that the choice does not
    /// matter.
    pub matters: bool,
    /// The recommended scheduler; `None` if there is no recommendation.
    pub scheduler: Option<String>,
    /// Tunables of the recommended scheduler that were set.
    pub tunables: BTreeMap<String, String>,
    /// The reference that the recommended scheduler is compared with.
    pub reference: String,
    /// The recommendation in a few words.
    pub headline: String,
    /// Measured values of the recommended scheduler and of the scheduler that it is compared with,
    /// one line per test, the largest difference first.
    pub figures: Vec<String>,
    /// The evidence for the recommendation, in one sentence.
    pub evidence: String,
    /// The cost of the recommended scheduler in other tests, in one sentence.
    pub cost: String,
    /// One sentence that says whether the scheduler or writeback throttling causes the lead; empty
    /// if the runs cannot show it.
    pub throttling: String,
    /// Largest cost on a single test, as a factor of the best value in that test; `None` if there
    /// is no recommendation.
    pub regret: Option<f64>,
    /// When the recommendation would change, one sentence per condition.
    pub changes: Vec<String>,
    /// Number of blocks that are needed for a decision; `None` if the decision is made, or if too
    /// many are needed.
    pub blocks_needed: Option<u32>,
    /// How to set the scheduler; `None` if nothing has to be set, or if no current kernel has the
    /// scheduler.
    pub apply: Option<Apply>,
    /// Tests that were excluded from the decision, with the reason.
    pub left_out: Vec<String>,
}

/// How to set the scheduler on the user's own disk, DEVICE.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Apply {
    /// Command that sets the scheduler for this boot and later boots, and that can be undone.
    pub command: String,
    /// Commands that set the scheduler until the next boot.
    pub sysfs: Vec<String>,
    /// Line for /etc/udev/rules.d/60-scheduler.rules that sets the scheduler at later boots.
    pub udev: String,
}

/// Follows a difference that the runs do not show.
const NOT_YET: &str = ", which is not significant yet";

fn name(analysis: &Analysis, t: usize) -> &str {
    analysis.treatments.get(t).map_or("?", String::as_str)
}

/// Returns the name in the form for a sentence.
fn name_in_sentence(analysis: &Analysis, t: usize) -> String {
    in_prose(name(analysis, t))
}

/// Returns the number of tests with its noun, for example "1 test", "3 tests".
fn tests(n: usize) -> String {
    format!("{n} test{}", if n == 1 { "" } else { "s" })
}

/// Describes a score with the interval that decides, for example "12 % ahead of noop (8 to 15 %)"
/// or "1.5 times behind noop".
fn score(s: &Score, against: &str) -> String {
    let ahead = s.times >= 1.0;
    let times = if ahead { s.times } else { 1.0 / s.times };
    let word = if ahead { "ahead of" } else { "behind" };
    let ends = s
        .deciding
        .map(|(l, h)| if ahead { (l, h) } else { (1.0 / h, 1.0 / l) });
    let against = in_prose(against);
    if s.at_least {
        return format!("at least {} {word} {against}", size(times));
    }
    format!("{} {word} {against}{}", size(times), between(ends, times))
}

/// Returns the interval of `times`. If its lower end is below 1, returns only the upper end.
fn between(ends: Option<(f64, f64)>, times: f64) -> String {
    match ends {
        Some((l, h)) if l >= 1.0 && h / l > 1.0005 => span(ends, times),
        Some((l, h)) if l < 1.0 && h > 1.0005 => format!(" (at most {})", size(h)),
        _ => String::new(),
    }
}

/// Compares a treatment with the reference of the group over all tests, with the interval that
/// decides: "no difference within 2 %" or "12 % behind bfq (8 to 15 %)". Returns `None` if the
/// treatment has no score.
pub fn compared(analysis: &Analysis, group: &Group, treatment: usize) -> Option<String> {
    let s = group.scores.iter().find(|s| s.treatment == treatment)?;
    let most = 1.0 + analysis.method.margin;
    let level = s.times95.is_some_and(|(l, h)| l >= 1.0 / most && h <= most);
    if level && !s.at_least {
        let margin = percent(analysis.method.margin);
        return Some(format!("no difference within {margin}"));
    }
    let shown = s.deciding.is_some_and(|(l, h)| l > 1.0 || h < 1.0);
    let sure = if shown || s.at_least { "" } else { NOT_YET };
    Some(score(s, name(analysis, group.reference)) + sure)
}

/// Returns the first words of a sentence. They name the tests, for example "In the geometric mean
/// of 2 tests (copy counts 75 %, mail 25 %) it is" or "On copy it is".
fn over(analysis: &Analysis, group: &Group, out: &[usize]) -> String {
    // The deciding metrics of one cell share the weight of the cell.
    let mut counts: Vec<(usize, f64, usize)> = Vec::new();
    for (at, i) in group
        .cells
        .iter()
        .enumerate()
        .filter(|(_, i)| !out.contains(i))
    {
        let weight = group.weights.get(at).copied().unwrap_or(1.0);
        let same =
            |c: &&mut (usize, f64, usize)| analysis.cells[c.0].cell == analysis.cells[*i].cell;
        match counts.iter_mut().find(same) {
            Some(c) => (c.1, c.2) = (c.1 + weight, c.2 + 1),
            None => counts.push((*i, weight, 1)),
        }
    }
    counts.retain(|c| c.1 > 0.0);
    let name = |i: usize| analysis.cells.get(i).map_or("?", |c| c.workload.as_str());
    let all: f64 = counts.iter().map(|c| c.1).sum();
    match &counts[..] {
        [(one, _, 1)] => format!("On {} it is", name(*one)),
        [(one, _, rows)] => format!(
            "In the geometric mean of the {rows} figures of {} it is",
            name(*one)
        ),
        [first, rest @ ..] if rest.iter().any(|c| (c.1 - first.1).abs() > 1e-9 * all) => {
            let share = |c: &(usize, f64, usize)| format!("{:.0} %", 100.0 * c.1 / all);
            let mut told = vec![format!("{} counts {}", name(first.0), share(first))];
            told.extend(rest.iter().map(|c| format!("{} {}", name(c.0), share(c))));
            let n = counts.len();
            format!(
                "In the geometric mean of {n} tests ({}) it is",
                told.join(", ")
            )
        }
        more => format!("In the geometric mean of {} tests it is", more.len()),
    }
}

/// Returns a sentence about the largest cost on a test where the recommended scheduler is not the
/// best.
fn cost(analysis: &Analysis, group: &Group, s: &Score) -> String {
    let allowed = percent(analysis.method.margin);
    let margin = 1.0 + analysis.method.margin;
    let on = s
        .regret_on
        .and_then(|i| analysis.cells.get(i))
        .filter(|_| s.regret > margin);
    let Some(cell) = on else {
        if let Some(told) = cost_in_checks(analysis, group, s, margin) {
            return told;
        }
        return match &s.undecided {
            None => format!("It costs nothing over {allowed} on any test."),
            Some(u) => {
                let of = name_in_sentence(analysis, u.of);
                let row = analysis
                    .cells
                    .get(u.on)
                    .map_or_else(String::new, |c| c.title());
                let most = u.at_most.filter(|m| m.is_finite());
                let most = most.map_or_else(String::new, |m| format!(" by up to {}", size(m)));
                format!(
                    "A cost over {allowed} is neither shown nor excluded: on {row} {of} may be \
                     ahead{most}."
                )
            }
        };
    };
    let best = cell
        .best
        .map_or("the best".to_owned(), |b| name_in_sentence(analysis, b));
    let shown = cell.best.is_some_and(|b| cell.beats(b, s.treatment));
    let sure = if shown { "" } else { NOT_YET };
    let ends = cell.best.and_then(|b| cell.times(b, s.treatment));
    format!(
        "On {} it is {} behind {best}{}{sure}.",
        cell.title(),
        size(s.regret),
        between(ends.and_then(|e| e.1), s.regret)
    )
}

/// Returns a sentence about the largest cost in the metrics that do not decide. Returns `None` if
/// that cost is below the margin.
fn cost_in_checks(analysis: &Analysis, group: &Group, s: &Score, margin: f64) -> Option<String> {
    let rows = group.cells.iter().filter_map(|i| analysis.cells.get(*i));
    let all = rows.flat_map(|c| c.checks.iter().map(move |check| (c, check)));
    let behind = all.filter_map(|(c, check)| {
        let (times, best) = check.behind(s.treatment)?;
        Some((c, check, times, best))
    });
    let (cell, check, times, best) = behind.reduce(|a, b| if b.2 > a.2 { b } else { a })?;
    (times > margin).then(|| {
        format!(
            "On {}, by {}, which does not count for the decision, it is {} behind {}.",
            cell.workload,
            check.metric.name,
            size(times),
            name_in_sentence(analysis, best)
        )
    })
}

/// Returns the sentence "If w counted for more than 70 % (now 50 %), cfq would be ahead."
fn switch(analysis: &Analysis, s: &Switch) -> String {
    let cell = analysis.cells.get(s.cell).map_or("?", |c| &c.workload);
    let way = if s.at > s.share { "more" } else { "less" };
    format!(
        "If {cell} counted for {way} than {:.0} % of all (now {:.0} %), {} would be ahead.",
        100.0 * s.at,
        100.0 * s.share,
        name_in_sentence(analysis, s.to)
    )
}

/// Returns whether a word is safe in a shell and in a udev rule.
fn safe(word: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    !word.is_empty() && word.chars().all(good)
}

/// Returns how to set the scheduler, if a current kernel has it.
fn apply(t: &Treatment) -> Option<Apply> {
    let found = seekwell_sched::find(&t.scheduler).filter(|f| f.0.layer == Layer::Mq)?;
    let kernel = found.0.name;
    let all = t.tunables.iter();
    if !all.clone().all(|(k, v)| safe(k) && safe(v)) {
        return None;
    }
    let mut command = format!("seekwell apply {kernel} --device DEVICE --persist");
    let mut sysfs = vec![format!("echo {kernel} > /sys/block/DEVICE/queue/scheduler")];
    let mut udev = format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"DEVICE\", \
         ATTR{{queue/scheduler}}=\"{kernel}\""
    );
    for (key, value) in all {
        command += &format!(" --tunable {key}={value}");
        // The throttling target belongs to the queue, not to the scheduler.
        let file = match key == WBT_LAT_USEC.name {
            true => key.clone(),
            false => format!("iosched/{key}"),
        };
        sysfs.push(format!("echo {value} > /sys/block/DEVICE/queue/{file}"));
        udev += &format!(", ATTR{{queue/{file}}}=\"{value}\"");
    }
    Some(Apply {
        command,
        sysfs,
        udev,
    })
}

fn empty(results: &Results, analysis: &Analysis, group: &Group) -> Advice {
    let out = group.left_out.iter();
    let left_out = out.map(|(i, why)| format!("{}: {why}", analysis.cells[*i].workload));
    let mut left_out: Vec<String> = left_out.collect();
    let weights = group.cells.iter().zip(&group.weights);
    let none = weights.filter(|(_, w)| **w == 0.0);
    left_out.extend(none.map(|(i, _)| format!("{}: weight 0", analysis.cells[*i].workload)));
    // All deciding metrics of a cell are excluded together.
    left_out.dedup();
    Advice {
        device: group.device.clone(),
        machine: group.machine.clone(),
        decision: group.decision.clone(),
        matters: !group.level,
        scheduler: None,
        tunables: BTreeMap::new(),
        reference: name(analysis, group.reference).to_owned(),
        headline: String::new(),
        figures: figures::figures(results, analysis, group),
        evidence: String::new(),
        cost: String::new(),
        throttling: String::new(),
        regret: None,
        changes: Vec::new(),
        blocks_needed: None,
        apply: None,
        left_out,
    }
}

/// Returns the recommendation for a group of cells.
pub fn advice(results: &Results, analysis: &Analysis, group: &Group) -> Advice {
    let of = |t: usize| group.scores.iter().find(|s| s.treatment == t);
    let mut a = empty(results, analysis, group);
    let n = group.tests;
    let margin = percent(analysis.method.margin);
    let pick = group.pick.and_then(of);
    let reference = in_prose(&a.reference);
    let set = |a: &mut Advice, s: &Score| {
        if let Some(t) = results.treatments.get(s.treatment) {
            a.tunables.clone_from(&t.tunables);
        }
        a.scheduler = Some(name(analysis, s.treatment).to_owned());
        a.regret = Some(s.regret);
        let all = group.switches.iter();
        a.changes = all.map(|s| switch(analysis, s)).collect();
    };
    match (group.decision.as_str(), pick) {
        ("change", Some(s)) => {
            a.headline = format!("Take {}", name_in_sentence(analysis, s.treatment));
            let out: Vec<usize> = group.left_out.iter().map(|o| o.0).collect();
            let rows = group.cells.len() - out.len();
            let by_test = match (rows, rows == n) {
                (1, _) => String::new(),
                (_, true) => format!(": ahead on {}, behind on {}", s.won, s.lost),
                (_, false) => {
                    format!(
                        ": ahead in {} of {rows} figures, behind in {}",
                        s.won, s.lost
                    )
                }
            };
            a.evidence = format!(
                "{} {}{by_test}.",
                over(analysis, group, &out),
                score(s, &a.reference)
            );
            a.cost = cost(analysis, group, s);
            set(&mut a, s);
            a.apply = results.treatments.get(s.treatment).and_then(apply);
        }
        ("keep", Some(s)) if group.level => {
            a.headline = "It does not matter here".to_owned();
            // An interval of width zero does not show which differences could have been detected.
            let widest = group.widest(analysis).filter(|w| *w >= 5e-5);
            let seen = widest.map_or_else(String::new, |w| {
                format!(
                    " A difference above {} on one test would have been detected.",
                    percent(w)
                )
            });
            a.evidence = format!(
                "Over {} all are within {margin} of {reference}: keep the current scheduler.{seen}",
                tests(n)
            );
            set(&mut a, s);
            a.changes.clear();
        }
        ("keep", Some(s)) => {
            a.headline = format!("Keep {reference}");
            a.evidence = format!(
                "Over {} no other is shown to be ahead of it by more than {margin}.",
                tests(n)
            );
            a.cost = cost(analysis, group, s);
            set(&mut a, s);
        }
        ("cannot_tell", _) => {
            a.headline = "Cannot tell yet".to_owned();
            let leads = group.best.filter(|b| *b != group.reference).and_then(of);
            let told = match leads {
                Some(s) => {
                    let why = match s.deciding {
                        Some(_) => "the runs scatter too much to recommend it",
                        None => "so few blocks can agree by chance",
                    };
                    let (leader, by) = (
                        name_in_sentence(analysis, s.treatment),
                        score(s, &a.reference),
                    );
                    format!("{leader} leads in {}: {by}. But {why}.", tests(n))
                }
                None => format!(
                    "{reference} leads in {}, but others may be ahead of it.",
                    tests(n)
                ),
            };
            a.blocks_needed = group.blocks_needed(analysis);
            let needs = a.blocks_needed.map_or_else(String::new, |n| {
                format!(
                    " About {} blocks would decide (repeats of an experiment, --seeds of a \
                     simulation, --for of a trial).",
                    round(n)
                )
            });
            // The upper bound of the gain is known even without a decision.
            let bound = match group.at_most() {
                Some(most) if most > 1.0005 && leads.is_none() => {
                    format!(
                        " No scheduler is more than {} ahead of {reference}.",
                        size(most)
                    )
                }
                _ => String::new(),
            };
            a.evidence = told + &bound + &needs;
        }
        _ if analysis.treatments.len() < 2 => {
            a.headline = reference;
            a.evidence = "One scheduler ran, so nothing is compared.".to_owned();
        }
        _ => {
            a.headline = "Not compared".to_owned();
            a.evidence =
                "There are too few runs, or no run of one scheduler, to decide.".to_owned();
        }
    }
    with_throttling(results, analysis, group, a)
}

/// Adds the effect of the throttling to a recommendation.
fn with_throttling(
    results: &Results,
    analysis: &Analysis,
    group: &Group,
    mut advice: Advice,
) -> Advice {
    if let Some(picked) = &advice.scheduler {
        advice.headline = advice.headline.replace(picked.as_str(), &setting(picked));
    }
    if let Some(share) = share(results, analysis, group) {
        if share.throttle && advice.decision == "keep" && !group.level {
            advice.headline += "; its lead is due to the throttle";
        }
        advice.throttling = share.text;
    }
    advice
}

/// Returns the recommendation for each group of cells.
pub fn all(results: &Results, analysis: &Analysis) -> Vec<Advice> {
    let groups = analysis.groups.iter();
    groups.map(|g| advice(results, analysis, g)).collect()
}
