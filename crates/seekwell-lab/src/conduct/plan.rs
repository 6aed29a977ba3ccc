//! What an experiment will take, told before it runs: cells, runs, time, and the smallest effect
//! that it can see.

use super::{Job, NoRun, Runner};
use crate::experiment::{Experiment, Primary};
use crate::results::{Method, Order, Paced, RunKey, SECONDS_MIN, StopRule};
use crate::stats;
use seekwell::{Cancel, Progress, RunSpec};
use seekwell_core::NSEC_PER_SEC;
use seekwell_sim::world::bound::usual;
use std::time::{Duration, Instant};

/// What is known before the first run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Cells.
    pub cells: usize,
    /// Runs of one block of every cell.
    pub runs_a_block: usize,
    /// Blocks of a cell at least, unless nothing in it is random.
    pub blocks_min: u32,
    /// Blocks of a cell at most.
    pub blocks_max: u32,
    /// Primary comparisons: what the correction is over.
    pub comparisons: usize,
    /// By device: least relative effect seen in four cases of five after as many blocks as it
    /// may take, if runs scatter as published ones of its class do.
    pub visible: Vec<(String, f64)>,
    /// What is left out at the start of timed runs.
    pub warm_up: PlannedWarmUp,
}

/// What will be left out at the start of runs, as far as it is known before the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannedWarmUp {
    /// Seconds; `None`: found from the first block of each cell.
    pub seconds: Option<f64>,
    /// Workloads that have one.
    pub timed: Vec<String>,
    /// Workloads that go on for a given time, with a metric that has no seconds (a percentile).
    pub whole: Vec<String>,
}

fn warm_up(experiment: &Experiment) -> PlannedWarmUp {
    let mut planned = PlannedWarmUp {
        seconds: experiment.about.method.warmup_s,
        ..PlannedWarmUp::default()
    };
    for cell in &experiment.cells {
        let Some(spec) = cell.specs.first() else {
            continue;
        };
        let paced = |p: &Primary| p.paced(&spec.workload);
        let long = |p: &Paced| p.time_ns / NSEC_PER_SEC >= SECONDS_MIN as u64;
        let list = match (paced(&cell.deciding.primary), paced(&Primary::Own)) {
            (Some(p), _) if planned.seconds.is_some() || long(&p) => &mut planned.timed,
            (None, Some(_)) => &mut planned.whole,
            _ => continue,
        };
        if !list.contains(&cell.cell.workload) {
            list.push(cell.cell.workload.clone());
        }
    }
    planned
}

/// Standard deviation of a run by class of device, relative: medians of published I/O cells.
fn usual_cv(device: &str) -> f64 {
    match device.split(':').next().unwrap_or_default() {
        "ssd" | "nvme" => 0.0135,
        "emmc" | "sd" => 0.045,
        "virtual" | "cloud" => 0.10,
        _ => 0.021,
    }
}

/// Blocks that a cell may take.
fn blocks(method: &Method) -> (u32, u32) {
    let most = method.repeats_max.max(1);
    let least = method.repeats_min.min(most);
    match (method.order, method.stop) {
        (_, StopRule::Fixed) => (most, most),
        (Order::Sequential, _) => (least, least),
        _ => (least, most),
    }
}

/// Plans it.
pub fn plan(experiment: &Experiment) -> Plan {
    let method = &experiment.about.method;
    let (blocks_min, blocks_max) = blocks(method);
    let cells = &experiment.cells;
    let comparisons: usize = cells.iter().map(|c| c.specs.len() - 1).sum();
    let mut visible: Vec<(String, f64)> = Vec::new();
    for cell in cells {
        let device = &cell.cell.device;
        if visible.iter().any(|v| v.0 == *device) {
            continue;
        }
        let sd = usual_cv(device) * std::f64::consts::SQRT_2;
        let alpha = method.alpha / comparisons.max(1) as f64;
        let seen = stats::detectable(sd, blocks_max, alpha, 0.8);
        visible.extend(seen.map(|x| (device.clone(), x)));
    }
    Plan {
        cells: cells.len(),
        runs_a_block: cells.iter().map(|c| c.specs.len()).sum(),
        blocks_min,
        blocks_max,
        comparisons,
        visible,
        warm_up: warm_up(experiment),
    }
}

/// Cells that are tried at most.
const TRIED: usize = 6;
/// How long each.
const TRIAL: Duration = Duration::from_millis(800);

/// What short trials say of the time that a block of all cells takes on one core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trial {
    /// Seconds, as far as runs say how far they are; `None`: none does.
    pub about_s: Option<f64>,
    /// Seconds if every run goes on until its limit, as a starved one does; `None`: not known.
    pub most_s: Option<f64>,
}

/// How long a run may go on in simulated time, ns.
fn limit_ns(spec: &RunSpec) -> Option<f64> {
    if let Some(s) = spec.limit_s {
        return Some(s as f64 * NSEC_PER_SEC as f64);
    }
    let plan = seekwell::plan(&spec.workload).ok()??;
    Some(usual(plan.span()).0 as f64)
}

/// Short trials of some cells. Nothing of them is kept.
pub fn trial(experiment: &Experiment, runner: &dyn Runner) -> Trial {
    let cells = &experiment.cells;
    let step = cells.len().div_ceil(TRIED).max(1);
    let (mut seconds, mut most) = (Vec::new(), Vec::new());
    for (i, plan) in cells.iter().enumerate().step_by(step) {
        let Some(spec) = plan.specs.first() else {
            continue;
        };
        let job = Job {
            key: RunKey {
                cell: i,
                ..RunKey::default()
            },
            treatment: 0,
            place: 0,
            spec: spec.clone(),
        };
        let (began, cancel) = (Instant::now(), Cancel::new());
        let mut far = Progress::default();
        let ran = runner.run(&job, &cancel, &mut |p| {
            far = p;
            if began.elapsed() >= TRIAL {
                cancel.set();
            }
        });
        let took = began.elapsed().as_secs_f64();
        // Of simulated time the run has got so far.
        let simulated_ns = match &ran {
            Ok(m) => m.duration_ns,
            Err(NoRun::Cut(_, Some(record))) => record.duration_ns,
            Err(_) => 0,
        };
        if let Some(limit_ns) = limit_ns(spec).filter(|_| simulated_ns > 0) {
            most.push(took * (limit_ns / simulated_ns as f64).max(1.0));
        }
        match ran {
            Ok(_) => seconds.push(took),
            Err(NoRun::Cut(..)) if far.of > 0 && far.done > 0 => {
                seconds.push(took * far.of as f64 / far.done as f64);
            }
            Err(_) => {}
        }
    }
    let runs: usize = cells.iter().map(|c| c.specs.len()).sum();
    let all = |each: &[f64]| (!each.is_empty()).then(|| stats::mean(each) * runs as f64);
    Trial {
        about_s: all(&seconds),
        most_s: all(&most),
    }
}
