//! A switchback experiment: the scheduler of a device changes every period while the machine does
//! its own work. Nothing is started on the disk, and no model is needed.
//!
//! The first part runs under the active scheduler only. This baseline determines the length of the
//! periods ([`timing`]) and the limits of the guard ([`guard`]). Then blocks follow. A block has one
//! period for each scheduler, in random order. Each period begins with a washout that does not
//! count: the queue drains, and the scheduler learns. A period is a run of an ordinary experiment,
//! so that statistics, results, reports and recommendations are the same as for `compare`.
//!
//! [`Bed`] is the machine: a host, a simulated machine, or a random series in tests.

mod carry;
mod figure;
mod guard;
mod live;
mod runner;
mod simulated;
mod timeline;
mod timing;

pub use carry::{CarryOver, Followed, carry_over};
pub use figure::{Figure, MEASURED, parse as figures};
pub use guard::{Guard, GuardRule};
pub use live::LiveBed;
pub use runner::{Baseline, Bed, Periods, Told, baseline};
pub use simulated::SimBed;
pub use timeline::{Period, SOURCE, Timeline, timeline};
pub use timing::{Length, MIN_BLOCKS, Timing, choose};

use crate::data::MetricInfo;
use crate::experiment::{Deciding, Design, Experiment, Level, Primary, Work};
use crate::host::words::OWN_WORK;
use crate::host::{HostDesign, HostWork};
use seekwell::words::TypedScheduler;
use seekwell::{BackgroundSpec, DeviceSpec, WorkloadSpec};
use std::collections::BTreeMap;

/// Label of the workload in tables.
pub const LABEL: &str = "own work";

/// Returns the workload of a trial.
pub fn own_work(timing: &Length, figures: &[Figure]) -> HostWork {
    let mut params = BTreeMap::from([
        ("period_s".to_owned(), timing.period_s.to_string()),
        ("washout_s".to_owned(), timing.washout_s.to_string()),
    ]);
    for (i, f) in figures.iter().enumerate() {
        params.insert(format!("metric{}", i + 1), f.text());
    }
    let spec = WorkloadSpec::Script {
        name: OWN_WORK.to_owned(),
        params,
    };
    HostWork {
        metric: figures.first().map(Figure::name),
        ..HostWork::alone(LABEL.to_owned(), spec)
    }
}

/// Sets the deciding metrics of a trial's experiment: the first figure is the primary metric, and
/// each of the others has its own row.
pub fn judge(e: &mut Experiment, figures: &[Figure]) {
    e.about.source = SOURCE.to_owned();
    for plan in &mut e.cells {
        let mut all = figures.iter();
        if let Some(first) = all.next() {
            plan.cell.primary = first.info();
            plan.deciding = Deciding {
                primary: Primary::Metric(first.name()),
                rows: all.clone().map(|f| Primary::Metric(f.name())).collect(),
                checks: Vec::new(),
            };
            let rows: Vec<MetricInfo> = all.map(Figure::info).collect();
            plan.cell.rows = rows;
        }
    }
}

/// Sets what every trial has: the name, the blocks, and no warm-up beside the washout.
fn blocks(design: &mut Design, timing: &Length) {
    design.name = "trial".to_owned();
    design.method.repeats_min = MIN_BLOCKS;
    design.method.repeats_max = timing.blocks;
    design.method.warmup_s = Some(0.0);
}

/// Returns a design for a trial in a directory.
pub fn design(path: std::path::PathBuf, timing: &Length, figures: &[Figure]) -> HostDesign {
    let mut d = HostDesign::new(path);
    // Other queue settings stay as they are, because the machine is at work.
    d.equal.clear();
    d.work = vec![own_work(timing, figures)];
    blocks(&mut d.design, timing);
    d
}

/// Returns a design for a trial on a simulated device. The programs run at the same time, and each
/// restarts when it ends.
pub fn simulated_design(
    device: DeviceSpec,
    schedulers: Vec<TypedScheduler>,
    mut programs: Vec<WorkloadSpec>,
    timing: &Length,
) -> Design {
    let beside = programs.split_off(programs.len().min(1)).into_iter();
    let again = |workload| BackgroundSpec {
        again: true,
        workload,
    };
    let beside: Vec<_> = beside.map(again).collect();
    let work = |spec| Work {
        spec,
        metric: None,
        limit_s: None,
        beside: beside.clone(),
    };
    let mut d = Design {
        devices: vec![device.into()],
        schedulers: schedulers.into_iter().map(Level::from).collect(),
        workloads: programs
            .into_iter()
            .map(|w| Level::unnamed(work(w)))
            .collect(),
        ..Design::default()
    };
    blocks(&mut d, timing);
    d
}
