//! Judges whether the scheduler caused a published difference. The evidence for one difference is:
//!
//! - the published standard errors, corrected for the number of compared pairs;
//! - a known cause, and the effect of removing this cause in our models. The models are the demos,
//!   the tests in docs/effects.md and the published tests themselves;
//! - runs on one drive that ages, in the order of the columns of the published table;
//! - our prediction, in which no constant was fitted to a difference between schedulers.
//!
//! A demo may show a cause although the prediction of the published setup does not. The judgement
//! is then "unknown", because the publication omits the details that decide.

use super::evidence::Evidence;
use super::figures::Pair;
use super::ours::Cell;
use seekwell_lab::analysis::ColumnOrder;
use serde::Serialize;

/// The judgement on one published difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// A cause is known, and its removal removes the difference. The published difference is
    /// significant, and our prediction has its sign and at least half of its size.
    Yes,
    /// Chance or another cause than the scheduler explains the difference.
    No,
    /// The publication omits the details that decide, or no known cause has an effect of this size.
    Unknown,
}

impl Doing {
    /// Returns the judgement as a word.
    pub fn word(self) -> &'static str {
        match self {
            Doing::Yes => "yes",
            Doing::No => "no",
            Doing::Unknown => "unknown",
        }
    }
}

/// A group of published differences that may have the same cause.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// Letter of the group, `A` to `L`.
    pub letter: &'static str,
    /// Title of the group.
    pub title: &'static str,
    /// What is known about the cause. The judgement on a pair is `Yes` only if our prediction also
    /// shows the difference.
    pub doing: Doing,
    /// The reason for `doing`: the cause, or the other explanation.
    pub why: &'static str,
    /// How the cause is removed, and which fraction of the difference then remains in our models.
    /// Empty if no cause is claimed.
    pub ablation: &'static str,
}

/// All groups, in the order of their letters.
pub const GROUPS: &[Effect] = &[
    Effect {
        letter: "A",
        title: "blogbench writes, SSD",
        doing: Doing::Yes,
        why: "CFQ sends no async writes while readers have requests in progress, so writers \
              starve; noop and deadline let both compete",
        ablation: "all reads cached: 1.00 (demo async-share)",
    },
    Effect {
        letter: "B",
        title: "compilebench compile and create, SSD",
        doing: Doing::Unknown,
        why: "the drive lost the time, because the loss is equal on two processors and a new drive \
              loses none; a drive that ages between passes would show the same",
        ablation: "",
    },
    Effect {
        letter: "C",
        title: "pgbench, SSD",
        doing: Doing::Unknown,
        why: "in some passes every commit takes 0.3 ms longer; the state of the drive or the idle \
              states of the processor could be the cause",
        ablation: "",
    },
    Effect {
        letter: "D",
        title: "tiobench random writes, disk",
        doing: Doing::Unknown,
        why: "sorting has no effect if a process submits 32 requests at a time; noop is slowest in \
              11 of 15 tests of this disk, including tests in which nothing can be sorted",
        ablation: "",
    },
    Effect {
        letter: "E",
        title: "fs-mark with fsync, disk",
        doing: Doing::No,
        why: "never more than one request waits, so the scheduler cannot be the cause; with other \
              positions of the files relative to the journal, a single scheduler covers the whole \
              published range",
        ablation: "",
    },
    Effect {
        letter: "F",
        title: "compilebench compile, disk",
        doing: Doing::Yes,
        why: "deadline sorts async writes for seconds, CFQ leaves its async queue for every sync \
              request, noop keeps the order of arrival",
        ablation: "ordered writes: 0 % (demo sorted-writeback)",
    },
    Effect {
        letter: "G",
        title: "compilebench read after compile, one SSD laptop",
        doing: Doing::Unknown,
        why: "CFQ defers the remaining writes until the reads end, but the other laptop with the \
              same drive does not show it",
        ablation: "sync between: 1.00 (demo left-over-writeback)",
    },
    Effect {
        letter: "H",
        title: "blogbench writes, disk",
        doing: Doing::Unknown,
        why: "two causes have opposite signs: starved writers under CFQ, and unsorted requests \
              under noop; the fraction of reads that miss the cache decides",
        ablation: "",
    },
    Effect {
        letter: "I",
        title: "tiobench 64MB x 8, one SSD laptop",
        doing: Doing::No,
        why: "noise: only one of eight such tests on this drive shows it, and its runs take 0.35 s",
        ablation: "",
    },
    Effect {
        letter: "J",
        title: "pgbench on a DC S3700",
        doing: Doing::Yes,
        why: "log writes and reads overtake writeback under CFQ only",
        ablation: "one client: 0 % (demo wal-overtakes-writeback)",
    },
    Effect {
        letter: "K",
        title: "table scan, SATA disk",
        doing: Doing::Yes,
        why: "idling keeps a scan sequential while a second program reads occasionally, unless the \
              drive serves both from its own command queue; whether it did was not published",
        ablation: "idling off: 1.00 (demo scan-and-intruder)",
    },
    Effect {
        letter: "L",
        title: "SQLite on a phone",
        doing: Doing::Unknown,
        why: "bfq favours a new process and idles for it at each hand-over to the journal; but no \
              published difference holds after correction",
        ablation: "low_latency off: 0 % (demo raised-at-start)",
    },
];

/// Largest ratio that counts as normal scatter if the publication states no errors.
const SPREAD: f64 = 1.15;

/// A published difference and the judgement on it.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// Index of the test in [`Reproduction::cells`](super::Reproduction::cells).
    pub cell: usize,
    /// The two schedulers.
    #[serde(flatten)]
    pub pair: Pair,
    /// Our ratio: the value of the first scheduler divided by the value of the second.
    pub ours: Option<f64>,
    /// The judgement.
    pub doing: Doing,
    /// The evidence, one text per kind of evidence.
    pub evidence: Vec<String>,
}

fn p_said(p: f64) -> String {
    match p {
        p if p < 0.001 => "below 0.001".to_owned(),
        p => format!("{p:.3}"),
    }
}

/// Describes in words which fraction of the published difference our prediction shows.
fn predicted(ours: Option<f64>, published: f64) -> String {
    let Some(ours) = ours else {
        return "not predicted yet".to_owned();
    };
    let (o, p) = (libm::log(ours), libm::log(published));
    let word = match o.abs() < libm::log(1.0 + Pair::SCORED) {
        true if p.abs() < libm::log(1.0 + Pair::SCORED) => "also near 1",
        true => "no difference",
        false if o * p < 0.0 => "wrong sign",
        false if o.abs() < p.abs() / 2.0 => "right sign, less than half of the size",
        false if o.abs() > p.abs() * 2.0 => "right sign, more than twice the size",
        false => "right sign and size",
    };
    format!("predicted {ours:.2}: {word}")
}

/// Describes how often the tests of a system rank the schedulers in column order, compared with
/// chance. Returns `None` if this number was not computed for the system.
fn columns_said(cell: &Cell, orders: &[ColumnOrder]) -> Option<String> {
    let o = orders.iter().find(|o| o.place == cell.published.system)?;
    let most = o.best_first.max(o.worst_first);
    Some(format!(
        "{most} of {} tests of this system rank the schedulers in the order of the columns; by \
         chance, {:.1} tests would (p {})",
        o.cells,
        o.expected,
        p_said(o.p)
    ))
}

/// Returns whether our prediction has the sign and at least half of the published difference.
fn has(ours: Option<f64>, published: f64) -> bool {
    let (o, p) = (libm::log(ours.unwrap_or(1.0)), libm::log(published));
    o * p > 0.0 && o.abs() >= p.abs() / 2.0
}

/// Returns whether a published difference is significant, or larger than normal scatter.
fn stands(pair: &Pair) -> bool {
    match pair.p_cell {
        Some(p) => p < 0.05,
        None => pair.ratio.max(1.0 / pair.ratio) >= SPREAD,
    }
}

/// Returns the judgement and a text about the significance of the published difference.
fn answer(group: Option<&Effect>, ours: Option<f64>, pair: &Pair) -> (Doing, String) {
    match (pair.p_cell, pair.p_all) {
        (Some(cell_p), _) if cell_p >= 0.05 => {
            // A known cause that predicts the difference is not refuted by a publication with few
            // runs.
            let caused = group.is_some_and(|g| !g.ablation.is_empty()) && has(ours, pair.ratio);
            let doing = if caused { Doing::Unknown } else { Doing::No };
            let p = p_said(cell_p);
            (
                doing,
                format!("not significant after correction within its test (p {p})"),
            )
        }
        (Some(cell_p), all) => {
            let all = all.map_or(String::new(), |p| format!(", over all {}", p_said(p)));
            let said = format!("significant within its test (p {}{all})", p_said(cell_p));
            (claimed(group, ours, pair), said)
        }
        (None, _) => {
            let doing = match stands(pair) {
                true => claimed(group, ours, pair),
                false => Doing::Unknown,
            };
            (doing, "no errors published".to_owned())
        }
    }
}

/// Judges a significant pair: a cause is claimed only if our prediction shows its effect.
fn claimed(group: Option<&Effect>, ours: Option<f64>, pair: &Pair) -> Doing {
    match group.map_or(Doing::Unknown, |g| g.doing) {
        Doing::Yes if !has(ours, pair.ratio) => Doing::Unknown,
        other => other,
    }
}

fn judge_pair(
    cell: &Cell,
    pair: &Pair,
    orders: &[ColumnOrder],
    kept: &Evidence,
) -> (Doing, Vec<String>) {
    let ours = cell.pair(pair);
    let group = GROUPS.iter().find(|g| g.letter == cell.published.group);
    let full = kept.full(&cell.published, pair);
    let (mut doing, significance) = answer(group, ours, pair);
    // If only the quick form shows the difference, the reduced size of the test may cause it.
    if doing == Doing::Yes && full.is_some() && !has(full, pair.ratio) {
        doing = Doing::Unknown;
    }
    let mechanism = match group {
        Some(g) if g.doing == Doing::Yes && stands(pair) && doing == Doing::Unknown => format!(
            "{}: {}; its demo shows the effect, but the prediction of this test shows less than \
             half of it{}",
            g.letter,
            g.why,
            match full {
                Some(f) if has(full, pair.ratio) =>
                    format!(" in this form; in full it is ({f:.2})"),
                Some(f) => format!(" in full ({f:.2})"),
                None => String::new(),
            }
        ),
        Some(g) => format!("{}: {}", g.letter, g.why),
        None => "no mechanism with an effect of this size is known".to_owned(),
    };
    let ablation = match group {
        Some(g) if !g.ablation.is_empty() => {
            let test = kept
                .taken(g.letter)
                .map_or(String::new(), |t| format!("; {t}"));
            format!("{}{test}", g.ablation)
        }
        _ => "none: there is no claimed cause to remove".to_owned(),
    };
    let order = kept.order(&cell.published, pair);
    let columns = columns_said(cell, orders).map_or(String::new(), |c| format!("; {c}"));
    let evidence = vec![
        format!("significance: {significance}"),
        format!("mechanism: {mechanism}"),
        format!("ablation: {ablation}"),
        format!("order of runs: {order}{columns}"),
    ];
    (doing, evidence)
}

/// Judges every pair with p < 0.05 before correction. Without published errors, judges every pair.
pub fn judge(cells: &[Cell], orders: &[ColumnOrder], kept: &Evidence) -> Vec<Judgement> {
    let mut all = Vec::new();
    for (at, c) in cells.iter().enumerate() {
        for pair in &c.published.pairs {
            let listed = match pair.p {
                Some(_) => pair.differs(),
                // Results that are computed from other published results are not judged.
                None => !c.published.derived() && c.published.sides.iter().all(|s| s.n.is_none()),
            };
            if !listed {
                continue;
            }
            let ours = c.pair(pair);
            let (doing, mut evidence) = judge_pair(c, pair, orders, kept);
            evidence.push(predicted(ours, pair.ratio));
            all.push(Judgement {
                cell: at,
                pair: *pair,
                ours,
                doing,
                evidence,
            });
        }
    }
    all
}
