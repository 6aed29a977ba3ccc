//! Estimates an experiment before it runs: the number of cells and runs, the time, and the smallest
//! effect that the experiment can detect.

use super::{Job, NoRun, Runner};
use crate::data::{Method, Order, Paced, RunKey, SECONDS_MIN, StopRule};
use crate::experiment::{Experiment, Primary};
use crate::stats;
use seekwell::{Cancel, Progress, RunSpec};
use seekwell_core::NSEC_PER_SEC;
use seekwell_sim::world::bound::usual;
use std::time::{Duration, Instant};

/// What is known about an experiment before the first run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Number of cells.
    pub cells: usize,
    /// Number of runs in one block of all cells together.
    pub runs_a_block: usize,
    /// Smallest number of blocks per cell. A cell without randomness can end earlier.
    pub blocks_min: u32,
    /// Largest number of blocks per cell.
    pub blocks_max: u32,
    /// Number of primary comparisons. The correction covers all of them.
    pub comparisons: usize,
    /// Smallest relative effect that `blocks_max` blocks detect with a power of 80 %, by device.
    /// The assumed spread of the runs is that of published results of the same device class.
    pub visible: Vec<(String, f64)>,
    /// The warm-up that the values of timed runs leave out.
    pub warm_up: PlannedWarmUp,
}

/// The warm-up of timed runs, as far as it is known before the first run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannedWarmUp {
    /// Length in s; `None` means that the first block of each cell determines it.
    pub seconds: Option<f64>,
    /// Workloads whose values leave out a warm-up.
    pub timed: Vec<String>,
    /// Workloads that run for a fixed time but leave out no warm-up, because their metric (for
    /// example a percentile) has no value per second.
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

/// Returns the usual relative standard deviation between runs on a device class. The numbers are
/// medians of published I/O results.
fn usual_cv(device: &str) -> f64 {
    match device.split(':').next().unwrap_or_default() {
        "ssd" | "nvme" | "ufs" => 0.0135,
        "emmc" | "sd" | "usb" => 0.045,
        "virtual" | "cloud" => 0.10,
        _ => 0.021,
    }
}

/// Returns the smallest and the largest number of blocks of a cell.
fn blocks(method: &Method) -> (u32, u32) {
    let most = method.repeats_max.max(1);
    let least = method.repeats_min.min(most);
    match (method.order, method.stop) {
        (_, StopRule::Fixed) => (most, most),
        (Order::Sequential, _) => (least, least),
        _ => (least, most),
    }
}

/// Estimates an experiment.
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

/// Largest number of cells for which a trial is made.
const TRIED: usize = 6;
/// Duration of each trial.
const TRIAL: Duration = Duration::from_millis(800);

/// Estimated time for one block of all cells on one core, from short trials.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trial {
    /// Time in s, extrapolated from the progress of the trials; `None` if no trial reports
    /// progress.
    pub about_s: Option<f64>,
    /// Time in s if every run continues to its limit, as in starvation; `None` if not known.
    pub most_s: Option<f64>,
}

/// Returns the limit of a run in simulated time, in ns.
fn limit_ns(spec: &RunSpec) -> Option<f64> {
    if let Some(s) = spec.limit_s {
        return Some(s as f64 * NSEC_PER_SEC as f64);
    }
    let plan = seekwell::plan(&spec.workload).ok()??;
    Some(usual(plan.span()).0 as f64)
}

/// Makes short trials of some cells and discards their results.
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
        // The simulated time that the trial reached, in ns.
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
