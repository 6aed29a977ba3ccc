//! Robustness check d: the order of runs that the publication may have used. All tests of a system
//! run on one drive, first under the first scheduler of the published table, then under the second,
//! then under the third. The drive keeps all written data and is never trimmed.
//!
//! Two comparisons show the effect of the drive's state. First, the same runs are repeated with a
//! fresh drive per run. Second, one scheduler runs on a new, a used and a worn drive. Only flash
//! drives are tested: writing does not age a hard disk, and its file system is created again for
//! each run.
//!
//! Not modelled: the drive's history before the first pass, pauses, and other writes between
//! passes. The quick form is used, so less is written than in the publication.

use super::{Bench, Figures, GuardError, Kept, Line, figures, made};
use crate::reproduce::{Publication, Published};
use seekwell::{Between, Cancel, Hooks, Sequence};
use seekwell_lab::conduct::Measured;
use seekwell_lab::experiment::{CellPlan, Experiment};
use seekwell_lab::results::{Outcome, Results, Run, RunKey};
use serde::Serialize;
use std::collections::BTreeMap;

/// States of a flash drive, from new to worn.
pub const STATES: [&str; 3] = ["fresh", "used", "steady"];

/// The effect of the order of runs on one published difference, for a system with a flash drive.
#[derive(Clone, Debug, Serialize)]
pub struct Ordered {
    /// System.
    pub system: String,
    /// Test.
    pub test: String,
    /// Name of the metric.
    pub metric: String,
    /// Names of the two schedulers.
    pub pair: String,
    /// Published ratio: first value divided by second value.
    pub published: f64,
    /// Our ratio, with a fresh drive per run.
    pub apart: Option<f64>,
    /// Our ratio, with all runs on one drive in the order of the columns.
    pub in_order: Option<f64>,
    /// Ratios of the first scheduler to itself: new drive divided by used drive, and new drive
    /// divided by worn drive. The ratios are in the direction of the published pair.
    pub states: [Option<f64>; 2],
}

impl Ordered {
    /// Returns whether the drive's state alone could cause the published difference. This is the
    /// case if one scheduler loses at least half of that difference on a used or worn drive.
    pub fn state_could(&self) -> bool {
        let p = libm::log(self.published);
        let state = self.states.iter().flatten().map(|s| libm::log(*s));
        state
            .into_iter()
            .any(|s| s * p > 0.0 && s.abs() >= p.abs() / 2.0)
    }
    /// Returns the ratios as text for the list of evidence.
    pub fn ratios_text(&self) -> String {
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

/// Returns whether the device is a flash drive.
fn ages(plan: &CellPlan) -> bool {
    let device = plan.specs.first().map(|s| s.device.spec.as_str());
    device.is_some_and(|d| d.starts_with("ssd:"))
}

fn system(plan: &CellPlan) -> &str {
    plan.cell.machine.split(", ").next().unwrap_or_default()
}

/// Executes all runs of a system on one drive, in the order of the columns.
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
                values: Measured::from_record(record).values,
                ..Run::default()
            });
        }
    }
    Ok((figures(published, &results), written))
}

/// Result of this robustness check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Orders {
    /// One entry per published difference.
    pub pairs: Vec<Ordered>,
    /// Data written to the drive of each system by all passes, in GB.
    pub written_gb: BTreeMap<String, f64>,
}

/// One of the three sets of runs.
enum Part<'a> {
    /// All runs, with a fresh drive per run.
    Apart,
    /// All runs of a system on one drive.
    InOrder(&'a str),
    /// The first scheduler alone, on a drive in the state with this name.
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

/// Executes the runs, or reads stored results of the same runs. Returns `None` if the publication
/// has no flash drive.
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

/// Returns stored results of the same runs. Returns `None` if they are incomplete, or if the
/// publication has no flash drive.
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

/// Combines the three sets of runs.
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
