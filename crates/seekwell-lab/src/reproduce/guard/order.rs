//! The original's order of runs. All tests of a system run under the first scheduler of its table,
//! then under the second, then under the third, on one drive. The drive keeps everything that was
//! written to it and is never trimmed. For comparison, the same runs are made with a fresh drive
//! each, and one scheduler runs on a new, a used and a worn drive. Only flash drives are tested:
//! writing does not age a disk, and its file system is made again for each run.
//!
//! Not modelled: the drive's history before the first pass, pauses, and other writes between
//! passes. The runs are those of the quick form, so less is written than in the original.

use super::{Bench, Figures, GuardError, Kept, Line, figures, made};
use crate::conduct::Measured;
use crate::experiment::{CellPlan, Experiment};
use crate::reproduce::{Publication, Published};
use crate::results::{Outcome, Results, Run, RunKey};
use seekwell::{Between, Cancel, Hooks, Sequence};
use serde::Serialize;
use std::collections::BTreeMap;

/// States of a drive, from new to worn.
pub const STATES: [&str; 3] = ["fresh", "used", "steady"];

/// A published difference of a system whose drive ages.
#[derive(Clone, Debug, Serialize)]
pub struct Ordered {
    /// System.
    pub system: String,
    /// Test.
    pub test: String,
    /// The metric.
    pub metric: String,
    /// The pair of schedulers.
    pub pair: String,
    /// Published ratio.
    pub published: f64,
    /// Our ratio with a fresh drive for each run.
    pub apart: Option<f64>,
    /// Our ratio in the order of the columns on one drive.
    pub in_order: Option<f64>,
    /// The first scheduler alone: new drive divided by used drive, and by worn drive, in the
    /// direction of the published pair.
    pub states: [Option<f64>; 2],
}

impl Ordered {
    /// Whether the drive's state alone could cause the published difference: one scheduler loses at
    /// least half of that difference on a worn drive.
    pub fn state_could(&self) -> bool {
        let p = libm::log(self.published);
        let state = self.states.iter().flatten().map(|s| libm::log(*s));
        state
            .into_iter()
            .any(|s| s * p > 0.0 && s.abs() >= p.abs() / 2.0)
    }
    /// Text for the evidence column.
    pub fn said(&self) -> String {
        let of = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.2}"));
        format!(
            "in column order on one drive {}, on separate drives {}; one scheduler: new / used \
             drive {}, new / worn drive {}",
            of(self.in_order),
            of(self.apart),
            of(self.states[0]),
            of(self.states[1])
        )
    }
}

/// Whether the device is a flash drive.
fn ages(plan: &CellPlan) -> bool {
    let device = plan.specs.first().map(|s| s.device.spec.as_str());
    device.is_some_and(|d| d.starts_with("ssd:"))
}

fn system(plan: &CellPlan) -> &str {
    plan.cell.machine.split(", ").next().unwrap_or_default()
}

/// Makes all runs of a system in the order of its columns, on one drive.
fn in_order(
    e: &Experiment,
    name: &str,
    published: &[Published],
    cancel: &Cancel,
) -> Result<(Figures, f64), GuardError> {
    let mut results = Results {
        cells: e.cells.iter().map(|c| c.cell.clone()).collect(),
        treatments: e.treatments.clone(),
        ..Results::default()
    };
    let mut drive = Sequence::new(Between::default());
    let mut written = 0.0;
    for treatment in 0..e.treatments.len() {
        for (cell, plan) in e.cells.iter().enumerate().filter(|c| system(c.1) == name) {
            let at = plan.cell.treatments.iter().position(|t| *t == treatment);
            let Some(spec) = at.and_then(|at| plan.specs.get(at)) else {
                continue;
            };
            let ran = drive.run(spec, Hooks::default().cancel(cancel));
            if cancel.is_set() {
                return Err(GuardError::Stopped);
            }
            let record = ran.map_err(|e| GuardError::Text(format!("{name}: {e}")))?;
            written += record.write.bytes as f64;
            results.runs.push(Run {
                key: RunKey {
                    cell,
                    block: 0,
                    treatment,
                },
                outcome: Outcome::Done,
                values: Measured::of(record).values,
                ..Run::default()
            });
        }
    }
    Ok((figures(published, &results), written))
}

/// Result of the check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Orders {
    /// One entry per published difference.
    pub pairs: Vec<Ordered>,
    /// Amount that all passes wrote to a system's drive, in GB.
    pub written_gb: BTreeMap<String, f64>,
}

/// A part of the required runs.
enum Part<'a> {
    /// Every run on a fresh drive.
    Apart,
    /// All runs of a system on one drive.
    InOrder(&'a str),
    /// The first scheduler alone, on a drive in this state.
    State(&'a str),
}

impl Part<'_> {
    fn name(&self) -> String {
        match self {
            Part::Apart => "apart".to_owned(),
            Part::InOrder(system) => format!("in order: {system}"),
            Part::State(state) => format!("state {state}"),
        }
    }
}

/// Makes the runs, or reads earlier results. `None` if no drive of the publication ages.
///
/// # Errors
/// The check was stopped, a run failed, or a result cannot be stored.
pub fn ordered(
    p: &Publication,
    bench: &Bench<'_>,
    kept: &mut Kept,
) -> Result<Option<Orders>, GuardError> {
    let published = p.published();
    gathered(p, &mut |e, name, part| {
        let what = part.name();
        if let Some(line) = kept.get(name, &what) {
            return Ok(line.clone());
        }
        let line = Line {
            of: name.to_owned(),
            what,
            ..carried_out(bench, &published, e, part)?
        };
        kept.add(line.clone())?;
        Ok(line)
    })
}

/// Earlier results of the same runs; `None` if they are incomplete, or if no drive ages.
pub fn known(p: &Publication, kept: &Kept) -> Option<Orders> {
    let found = gathered(p, &mut |_, name, part| {
        let line = kept.get(name, &part.name());
        line.cloned().ok_or(GuardError::Stopped)
    });
    found.ok().flatten()
}

fn carried_out(
    bench: &Bench<'_>,
    published: &[Published],
    e: &Experiment,
    part: &Part<'_>,
) -> Result<Line, GuardError> {
    let run = |e: &Experiment| -> Result<Line, GuardError> {
        let (figures, failed) = made(bench, published, e)?;
        Ok(Line {
            figures,
            failed,
            ..Line::default()
        })
    };
    match part {
        Part::Apart => run(e),
        Part::InOrder(system) => {
            let (figures, written) = in_order(e, system, published, bench.cancel)?;
            Ok(Line {
                figures,
                more: BTreeMap::from([("written".to_owned(), written)]),
                ..Line::default()
            })
        }
        Part::State(state) => {
            let mut e = e.clone();
            for plan in &mut e.cells {
                plan.specs.truncate(1);
                plan.cell.treatments.truncate(1);
                plan.cell.reference = plan.cell.treatments.first().copied().unwrap_or(0);
                let device = &mut plan.specs[0].device.spec;
                device.push_str(&format!(",state={state}"));
            }
            run(&e)
        }
    }
}

/// Combines all parts.
fn gathered(
    p: &Publication,
    take: &mut dyn FnMut(&Experiment, &str, &Part<'_>) -> Result<Line, GuardError>,
) -> Result<Option<Orders>, GuardError> {
    let mut e = p
        .experiment(true)
        .map_err(|e| GuardError::Text(e.to_string()))?;
    let published: Vec<Published> = p.published();
    let differs = |c: &Published| c.pairs.iter().any(|p| p.differs());
    let wanted = |c: &CellPlan| {
        let own = |p: &&Published| p.run == c.cell.workload && p.system == system(c);
        ages(c) && published.iter().any(|p| own(&p) && differs(p))
    };
    e.cells.retain(wanted);
    if e.cells.is_empty() {
        return Ok(None);
    }
    let name = super::hash(&e);
    let apart = take(&e, &name, &Part::Apart)?;
    let mut systems: Vec<&str> = e.cells.iter().map(system).collect();
    systems.sort_unstable();
    systems.dedup();
    let mut lines = BTreeMap::new();
    for s in &systems {
        lines.insert((*s).to_owned(), take(&e, &name, &Part::InOrder(s))?);
    }
    let mut states = Vec::new();
    for state in STATES {
        states.push(take(&e, &name, &Part::State(state))?);
    }
    let mut orders = Orders::default();
    for (i, c) in published.iter().enumerate() {
        let Some(line) = lines.get(&c.system) else {
            continue;
        };
        let of = |l: &Line, side: usize| l.figures.get(i)?.get(side).copied().flatten();
        let state = |at: usize| Some(of(&states[0], 0)? / of(&states[at], 0)?);
        for pair in c.pairs.iter().filter(|p| p.differs()) {
            let ratio = |l: &Line| Some(of(l, pair.one)? / of(l, pair.other)?);
            orders.pairs.push(Ordered {
                system: c.system.clone(),
                test: c.workload.clone(),
                metric: c.metric.clone(),
                pair: format!(
                    "{} : {}",
                    c.sides[pair.one].scheduler, c.sides[pair.other].scheduler
                ),
                published: pair.ratio,
                apart: ratio(&apart),
                in_order: ratio(line),
                states: [state(1), state(2)],
            });
        }
    }
    for (system, line) in lines {
        let written = line.more.get("written").copied().unwrap_or(0.0);
        orders.written_gb.insert(system, written / 1e9);
    }
    Ok(Some(orders))
}
