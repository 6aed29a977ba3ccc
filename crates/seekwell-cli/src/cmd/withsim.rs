//! Simulation beside reality: the same scripts under the same schedulers on a modelled disk, and
//! whether sign and size of each difference agree.

use super::onhost::bad;
use crate::cells::cancelling;
use crate::fail::Failure;
use crate::out::{Out, note, width};
use seekwell::{Cancel, WorkloadSpec, words};
use seekwell_lab::analysis::{Analysis, CellAnalysis, analyse};
use seekwell_lab::conduct::{How, Memory, Simulated, conduct};
use seekwell_lab::experiment::{Design, Experiment, Level};
use seekwell_lab::host::words::PLACING;
use seekwell_lab::results::{Method, StopRule};
use seekwell_report::table::{Align, Table, wrap};

/// Blocks of the simulation: seeds.
const BLOCKS: u32 = 5;

/// Is it a script that the simulator runs, too?
fn simulated(w: &WorkloadSpec) -> bool {
    match w {
        WorkloadSpec::Script { name, params } => {
            !name.contains('/') && PLACING.iter().all(|p| !params.contains_key(*p))
        }
        _ => false,
    }
}

/// The same experiment on a modelled disk, as far as it can be simulated.
fn experiment(e: &Experiment, device: &str) -> Result<(Experiment, Vec<usize>), Failure> {
    let mut design = Design {
        name: "beside reality".to_owned(),
        method: Method {
            stop: StopRule::Fixed,
            repeats_min: BLOCKS,
            repeats_max: BLOCKS,
            budget_s: None,
            ..e.about.method.clone()
        },
        ..Design::default()
    };
    design
        .devices
        .push(words::device(device).map_err(bad)?.into());
    for t in &e.treatments {
        let spec = seekwell::SchedulerSpec {
            name: t.scheduler.clone(),
            version: None,
            tunables: t.tunables.clone(),
        };
        design.schedulers.push(Level {
            name: Some(t.label.clone()),
            ..Level::of(spec)
        });
    }
    let mut of = Vec::new();
    for (i, c) in e.cells.iter().enumerate() {
        let Some(spec) = c.specs.first() else {
            continue;
        };
        let alone = spec.beside.iter().all(|b| simulated(&b.workload));
        if !simulated(&spec.workload) || !alone {
            continue;
        }
        let mut level: Level<_> = spec.workload.clone().into();
        level.name = Some(c.cell.workload.clone());
        level.spec.beside.clone_from(&spec.beside);
        design.workloads.push(level);
        of.push(i);
    }
    let reference = e.cells.first().map(|c| c.cell.reference);
    design.reference = reference
        .and_then(|r| e.treatments.get(r))
        .map(|t| t.label.clone());
    if of.is_empty() {
        return Err(Failure::input(
            "--with-sim: no workload here can be simulated: programs are only run for real; scripts \
             of `seekwell workloads` are both",
        ));
    }
    let made = Experiment::from_specs(design).map_err(bad)?;
    Ok((made, of))
}

fn times(c: &CellAnalysis, one: usize, other: usize) -> Option<f64> {
    c.times(one, other).map(|t| t.0)
}

/// Do two differences agree? In sign, where both are more than the margin; in size, where neither is
/// more than half as large again as the other.
fn agree(real: f64, sim: f64, margin: f64) -> (&'static str, &'static str) {
    let large = |x: f64| x.ln().abs() > margin.ln_1p();
    let sign = match (large(real), large(sim)) {
        (false, false) => "both level",
        (true, true) if (real > 1.0) == (sim > 1.0) => "yes",
        (true, true) => "NO",
        _ => "one is level",
    };
    let size = match (real / sim).ln().abs() < 1.5_f64.ln() {
        true => "yes",
        false => "no",
    };
    (sign, size)
}

/// Simulates and prints both.
pub fn run(e: &Experiment, real: &Analysis, device: &str, quiet: bool) -> Result<(), Failure> {
    let (sim, of) = experiment(e, device)?;
    note(quiet, &format!("the same in simulation, on {device}"));
    let cancel = Cancel::new();
    let how = How {
        cancel: cancel.clone(),
        ..How::default()
    };
    let mut store = Memory::default();
    let runner = Simulated::default();
    let done = cancelling(&cancel, || conduct(&sim, &runner, &mut store, &how))?.map_err(bad)?;
    let model = analyse(&done.results(&sim, store.runs));
    let margin = real.method.margin;
    let mut t = Table::new(&[
        ("WORKLOAD", Align::Left),
        ("SCHEDULERS", Align::Left),
        ("FOR REAL", Align::Right),
        ("SIMULATED", Align::Right),
        ("RATIO", Align::Right),
        ("SIGN", Align::Left),
        ("SIZE", Align::Left),
    ]);
    let (mut same, mut pairs) = (0, 0);
    for (cell, i) in model.cells.iter().zip(of) {
        let Some(own) = real.cells.get(i) else {
            continue;
        };
        for one in 0..real.treatments.len() {
            for other in 0..one {
                let (Some(a), Some(b)) = (times(own, one, other), times(cell, one, other)) else {
                    continue;
                };
                let (sign, size) = agree(a, b, margin);
                pairs += 1;
                same += usize::from(sign != "NO" && sign != "one is level");
                let name = |t: usize| real.treatments[t].as_str();
                t.row(vec![
                    own.workload.clone().into(),
                    format!("{} to {}", name(one), name(other)).into(),
                    format!("{a:.2}x").into(),
                    format!("{b:.2}x").into(),
                    format!("{:.2}", b / a).into(),
                    sign.into(),
                    size.into(),
                ]);
            }
        }
    }
    let mut out = Out::open(None)?;
    out.line("")?;
    out.text(&t.render(2))?;
    out.text(&wrap(
        &format!(
            "How many times better the first is than the second, for real and simulated on {device}. \
             The sign agrees in {same} of {pairs} pairs; by chance it would in half of those that \
             differ. SIZE: within a half of each other."
        ),
        0,
        width(),
    ))?;
    out.done()
}

/// Could it be simulated at all? Asked before anything runs for real.
pub fn check(e: &Experiment, device: &str) -> Result<(), Failure> {
    experiment(e, device).map(drop)
}
