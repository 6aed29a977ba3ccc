//! Simulates an experiment of a real disk. The same scripts run under the same schedulers on a
//! modelled disk. Then the sign and size of each difference are compared.

use super::onhost::bad;
use crate::cells::cancelling;
use crate::fail::Failure;
use crate::out::note;
use seekwell::{Cancel, WorkloadSpec, words};
use seekwell_lab::analysis::{Analysis, CellAnalysis, analyse};
use seekwell_lab::conduct::{How, Memory, Simulated, conduct};
use seekwell_lab::experiment::{Design, Experiment, Level};
use seekwell_lab::host::words::PLACING;
use seekwell_lab::results::{Method, StopRule};
use seekwell_report::table::{Align, Table, wrap};
use seekwell_report::units::three;
use serde_json::{Value, json};

/// Number of blocks of the simulation, with one seed each.
const BLOCKS: u32 = 5;

/// Returns whether the simulator can run the workload.
fn simulated(w: &WorkloadSpec) -> bool {
    match w {
        WorkloadSpec::Script { name, params } => {
            !name.contains('/') && PLACING.iter().all(|p| !params.contains_key(*p))
        }
        _ => false,
    }
}

/// Returns the same experiment on a modelled disk, without the workloads that cannot be simulated.
/// The second value holds, for each remaining cell, its index in the real experiment.
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
            // The scheduler's version in the running kernel.
            version: words::version_here(&t.scheduler),
            tunables: t.tunables.clone(),
        };
        design.schedulers.push(Level {
            name: Some(t.label.clone()),
            ..Level::unnamed(spec)
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
            "--with-sim: no workload here can be simulated. Use scripts from `seekwell workloads`; \
             programs only run for real",
        ));
    }
    let made = Experiment::from_specs(design).map_err(bad)?;
    Ok((made, of))
}

/// How the first scheduler of a pair compares with the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    Ahead,
    Behind,
    Level,
    Nothing,
}

impl Known {
    fn compare(c: &CellAnalysis, one: usize, other: usize) -> Known {
        if c.beats(one, other) {
            Known::Ahead
        } else if c.beats(other, one) {
            Known::Behind
        } else if c.pair(one, other).is_some_and(|p| p.0.level()) {
            Known::Level
        } else {
            Known::Nothing
        }
    }
}

/// A mean of one scheduler, measured and simulated.
struct Figure {
    workload: String,
    scheduler: String,
    unit: String,
    real: f64,
    simulated: f64,
}

/// The ratio of two schedulers, measured and simulated.
struct Pair {
    workload: String,
    one: String,
    other: String,
    real: f64,
    simulated: f64,
    known: (Known, Known),
}

impl Pair {
    /// Returns whether the signs agree, or `None` if one of them is unknown.
    fn sign(&self) -> Option<bool> {
        let (a, b) = self.known;
        (a != Known::Nothing && b != Known::Nothing).then_some(a == b)
    }
    /// Returns whether the ratios are within a factor of 1.5 of each other.
    fn size(&self) -> bool {
        (self.real / self.simulated).ln().abs() < 1.5_f64.ln()
    }
}

/// The comparison of a simulation with measurements.
pub struct Twin {
    device: String,
    figures: Vec<Figure>,
    pairs: Vec<Pair>,
}

/// Runs the simulation and compares it with the measurements in `real`.
pub fn run(e: &Experiment, real: &Analysis, device: &str, quiet: bool) -> Result<Twin, Failure> {
    let (sim, of) = experiment(e, device)?;
    note(
        quiet,
        &format!("the same workloads in simulation, on {device}"),
    );
    let cancel = Cancel::new();
    let how = How {
        cancel: cancel.clone(),
        ..How::default()
    };
    let mut store = Memory::default();
    let runner = Simulated::default();
    let done = cancelling(&cancel, || conduct(&sim, &runner, &mut store, &how))?.map_err(bad)?;
    let model = analyse(&done.results(&sim, store.runs));
    let mut twin = Twin {
        device: device.to_owned(),
        figures: Vec::new(),
        pairs: Vec::new(),
    };
    for (cell, i) in model.cells.iter().zip(of) {
        if let Some(own) = real.cells.get(i) {
            twin.cell(own, cell, &real.treatments, &model.treatments);
        }
    }
    Ok(twin)
}

impl Twin {
    fn cell(&mut self, real: &CellAnalysis, sim: &CellAnalysis, here: &[String], there: &[String]) {
        let of = |name: &String| there.iter().position(|t| t == name);
        let mean = |c: &CellAnalysis, t: usize| {
            let side = c.sides.iter().find(|s| s.treatment == t);
            side.and_then(|s| s.mean).filter(|m| *m > 0.0)
        };
        for (one, name) in here.iter().enumerate() {
            let Some(at) = of(name) else { continue };
            if real.metric.unit == sim.metric.unit
                && let (Some(a), Some(b)) = (mean(real, one), mean(sim, at))
            {
                self.figures.push(Figure {
                    workload: real.workload.clone(),
                    scheduler: name.clone(),
                    unit: real.metric.unit.clone(),
                    real: a,
                    simulated: b,
                });
            }
            for (other, than) in here.iter().enumerate().take(one) {
                let Some(to) = of(than) else { continue };
                let (Some(a), Some(b)) = (real.times(one, other), sim.times(at, to)) else {
                    continue;
                };
                self.pairs.push(Pair {
                    workload: real.workload.clone(),
                    one: name.clone(),
                    other: than.clone(),
                    real: a.0,
                    simulated: b.0,
                    known: (
                        Known::compare(real, one, other),
                        Known::compare(sim, at, to),
                    ),
                });
            }
        }
    }

    /// Returns three numbers of pairs: those with two known signs, those of them with equal signs,
    /// and those for which the null model "all schedulers are equal" is right.
    fn score(&self) -> (usize, usize, usize) {
        let told = self.pairs.iter().filter(|p| p.sign().is_some());
        let same = told.clone().filter(|p| p.sign() == Some(true));
        let level = told.clone().filter(|p| p.known.0 == Known::Level);
        (told.count(), same.count(), level.count())
    }

    /// Returns the comparison as JSON.
    pub fn json(&self) -> Value {
        let figures = self.figures.iter().map(|f| {
            json!({
                "workload": f.workload, "scheduler": f.scheduler, "unit": f.unit, "real": f.real,
                "simulated": f.simulated, "ratio": f.simulated / f.real,
            })
        });
        let pairs = self.pairs.iter().map(|p| {
            json!({
                "workload": p.workload, "one": p.one, "other": p.other, "times_real": p.real,
                "times_simulated": p.simulated, "sign_agrees": p.sign(), "size_agrees": p.size(),
            })
        });
        let (told, same, level) = self.score();
        json!({
            "device": self.device, "figures": figures.collect::<Vec<_>>(),
            "pairs": pairs.collect::<Vec<_>>(), "pairs_known": told, "signs_agree": same,
            "signs_agree_if_all_were_level": level,
        })
    }

    /// Returns the comparison as text.
    pub fn text(&self, width: usize) -> String {
        let mut figures = Table::new(&[
            ("WORKLOAD", Align::Left),
            ("SCHEDULER", Align::Left),
            ("FOR REAL", Align::Right),
            ("SIMULATED", Align::Right),
            ("UNIT", Align::Left),
            ("RATIO", Align::Right),
        ]);
        for f in &self.figures {
            figures.row(vec![
                f.workload.clone().into(),
                f.scheduler.clone().into(),
                three(f.real).into(),
                three(f.simulated).into(),
                f.unit.clone().into(),
                format!("{:.2}", f.simulated / f.real).into(),
            ]);
        }
        let mut pairs = Table::new(&[
            ("WORKLOAD", Align::Left),
            ("SCHEDULERS", Align::Left),
            ("FOR REAL", Align::Right),
            ("SIMULATED", Align::Right),
            ("SIGN", Align::Left),
            ("SIZE", Align::Left),
        ]);
        for p in &self.pairs {
            let sign = match (p.sign(), p.known.0) {
                (Some(true), _) => "agrees",
                (Some(false), _) => "DIFFERS",
                (None, Known::Nothing) => "undecided in real runs",
                (None, _) => "undecided in simulation",
            };
            pairs.row(vec![
                p.workload.clone().into(),
                format!("{} to {}", p.one, p.other).into(),
                format!("{:.2}x", p.real).into(),
                format!("{:.2}x", p.simulated).into(),
                sign.into(),
                if p.size() { "agrees" } else { "differs" }.into(),
            ]);
        }
        let (told, same, level) = self.score();
        let said = match told {
            0 => "No pair is decided both in the real runs and in the simulation, so signs cannot \
                  be compared."
                .to_owned(),
            _ => format!(
                "The signs agree in {same} of the {told} pairs that are decided both in the real \
                 runs and in the simulation. A simulator in which schedulers make no difference \
                 would agree in {level}."
            ),
        };
        let head = format!("Real runs and simulation on {}:\n", self.device);
        let mut text = wrap(&head, 0, width) + &figures.render(2);
        if !self.pairs.is_empty() {
            text += "How many times better the first scheduler is than the second:\n";
            text += &pairs.render(2);
            let key = format!("{said} SIZE agrees: the two ratios differ by a factor below 1.5.");
            text += &wrap(&key, 0, width);
        }
        text
    }
}

/// Returns an error if no workload can be simulated. Call this before the real runs.
pub fn check(e: &Experiment, device: &str) -> Result<(), Failure> {
    experiment(e, device).map(drop)
}
