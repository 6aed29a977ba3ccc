//! Decides whether a scheduler caused a published difference. The evidence consists of:
//!
//! - the published errors, corrected for the number of pairs;
//! - a known mechanism, and what its removal does in our models (the demos, docs/effects.md, and
//!   the published tests themselves);
//! - runs in the order of the columns on one drive that ages;
//! - whether the prediction, in which nothing was fitted to a difference, shows the difference.
//!
//! A cause may show in its demo but not in the prediction of the published setup. It may then have
//! been at work or not, because the deciding details were not published.

use super::evidence::Evidence;
use super::figures::Pair;
use super::ours::Cell;
use crate::analysis::ColumnOrder;
use serde::Serialize;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// A mechanism is known, its removal removes the difference, the figures hold, and the test's
    /// prediction has the sign and at least half of the size.
    Yes,
    /// Chance or something else explains the difference.
    No,
    /// The deciding details were not published, or no mechanism of that size is known.
    Unknown,
}

impl Doing {
    /// The answer in words.
    pub fn said(self) -> &'static str {
        match self {
            Doing::Yes => "yes",
            Doing::No => "no",
            Doing::Unknown => "cannot be known",
        }
    }
}

/// A group of published differences with one possible cause.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// Letter of the group, `A` to `L`.
    pub letter: &'static str,
    /// Title of the group.
    pub title: &'static str,
    /// What is known about the cause; for a pair it is `Yes` only if the prediction shows it.
    pub doing: Doing,
    /// The reason: the mechanism, or the other explanation.
    pub why: &'static str,
    /// How the cause is removed, and how much of the difference then remains in our models; empty
    /// if nothing is claimed.
    pub ablation: &'static str,
}

/// All groups.
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
        why: "the lost time is the drive's: it is equal on two processors, and a fresh drive loses \
              none; a drive that ages from pass to pass would show the same",
        ablation: "",
    },
    Effect {
        letter: "C",
        title: "pgbench, SSD",
        doing: Doing::Unknown,
        why: "in some passes every commit costs 0.3 ms more; the drive's state or the processor's \
              idle states could cause the same",
        ablation: "",
    },
    Effect {
        letter: "D",
        title: "tiobench random writes, disk",
        doing: Doing::Unknown,
        why: "sorting cannot matter if a process gets 32 requests at a time; noop is last in 11 of \
              15 tests of that disk, including tests without any choice",
        ablation: "",
    },
    Effect {
        letter: "E",
        title: "fs-mark with fsync, disk",
        doing: Doing::No,
        why: "there is never more than one request to choose from, so it is an artefact; the \
              position of the files relative to the journal moves a single scheduler over the \
              whole published range",
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
        why: "two causes with opposite signs, starved writers under CFQ and lost sorting under \
              noop: the sign depends on the share of reads that miss",
        ablation: "",
    },
    Effect {
        letter: "I",
        title: "tiobench 64MB x 8, one SSD laptop",
        doing: Doing::No,
        why: "one of eight such tests on that drive, of runs of 0.35 s: noise",
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

/// Differences without errors below this ratio are within the usual scatter of such figures.
const SPREAD: f64 = 1.15;

/// A published difference and the judgement on it.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// The cell, by index.
    pub cell: usize,
    /// The pair.
    #[serde(flatten)]
    pub pair: Pair,
    /// Our ratio, first divided by second.
    pub ours: Option<f64>,
    /// The answer.
    pub doing: Doing,
    /// The evidence, in words.
    pub evidence: Vec<String>,
}

fn p_said(p: f64) -> String {
    match p {
        p if p < 0.001 => "below 0.001".to_owned(),
        p => format!("{p:.3}"),
    }
}

/// Describes how much of the difference the prediction shows.
fn predicted(ours: Option<f64>, published: f64) -> String {
    let Some(ours) = ours else {
        return "not predicted yet".to_owned();
    };
    let (o, p) = (libm::log(ours), libm::log(published));
    let word = match o.abs() < libm::log(1.0 + Pair::SCORED) {
        true if p.abs() < libm::log(1.0 + Pair::SCORED) => "as near to 1",
        true => "no difference",
        false if o * p < 0.0 => "the other sign",
        false if o.abs() < p.abs() / 2.0 => "the sign, less than half of the size",
        false if o.abs() > p.abs() * 2.0 => "the sign, more than twice the size",
        false => "sign and size",
    };
    format!("predicted {ours:.2}: {word}")
}

/// Describes whether a system's schedulers rank in column order more often than by chance.
fn columns_said(cell: &Cell, orders: &[ColumnOrder]) -> Option<String> {
    let o = orders.iter().find(|o| o.place == cell.published.system)?;
    let most = o.best_first.max(o.worst_first);
    Some(format!(
        "{most} of {} tests of this system rank in the order of the columns, {:.1} by chance (p {})",
        o.cells,
        o.expected,
        p_said(o.p)
    ))
}

/// Whether the prediction has the sign and at least half of the size.
fn has(ours: Option<f64>, published: f64) -> bool {
    let (o, p) = (libm::log(ours.unwrap_or(1.0)), libm::log(published));
    o * p > 0.0 && o.abs() >= p.abs() / 2.0
}

/// Whether a published difference exceeds the usual scatter of such figures.
fn stands(pair: &Pair) -> bool {
    match pair.p_cell {
        Some(p) => p < 0.05,
        None => pair.ratio.max(1.0 / pair.ratio) >= SPREAD,
    }
}

/// The answer, and the corrected significance of the published difference in words.
fn answer(group: Option<&Effect>, ours: Option<f64>, pair: &Pair) -> (Doing, String) {
    match (pair.p_cell, pair.p_all) {
        (Some(cell_p), _) if cell_p >= 0.05 => {
            // Too few runs do not refute a known cause that predicts the difference.
            let caused = group.is_some_and(|g| !g.ablation.is_empty()) && has(ours, pair.ratio);
            let doing = if caused { Doing::Unknown } else { Doing::No };
            let p = p_said(cell_p);
            (
                doing,
                format!("does not hold after correction within its test (p {p})"),
            )
        }
        (Some(cell_p), all) => {
            let all = all.map_or(String::new(), |p| format!(", over all {}", p_said(p)));
            let said = format!("holds within its test (p {}{all})", p_said(cell_p));
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

/// The answer for a pair whose figures hold: a cause is claimed only if it predicts the difference.
fn claimed(group: Option<&Effect>, ours: Option<f64>, pair: &Pair) -> Doing {
    match group.map_or(Doing::Unknown, |g| g.doing) {
        Doing::Yes if !has(ours, pair.ratio) => Doing::Unknown,
        other => other,
    }
}

fn one(cell: &Cell, pair: &Pair, orders: &[ColumnOrder], kept: &Evidence) -> (Doing, Vec<String>) {
    let ours = cell.pair(pair);
    let group = GROUPS.iter().find(|g| g.letter == cell.published.group);
    let full = kept.full(&cell.published, pair);
    let (mut doing, significance) = answer(group, ours, pair);
    // A difference that only the quick form shows may come from its scaling.
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
        None => "no mechanism of that size is known".to_owned(),
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

/// Judges every pair that differs at 5 %, uncorrected; without published errors, every pair.
pub fn judge(cells: &[Cell], orders: &[ColumnOrder], kept: &Evidence) -> Vec<Judgement> {
    let mut all = Vec::new();
    for (at, c) in cells.iter().enumerate() {
        for pair in &c.published.pairs {
            let listed = match pair.p {
                Some(_) => pair.differs(),
                // Figures derived from other figures are not judged; the others are.
                None => !c.published.derived() && c.published.sides.iter().all(|s| s.n.is_none()),
            };
            if !listed {
                continue;
            }
            let ours = c.pair(pair);
            let (doing, mut evidence) = one(c, pair, orders, kept);
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
