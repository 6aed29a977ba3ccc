//! `seekwell guest check`: the simulation against a real kernel.

use super::failed;
use super::figures::{Figure, of_record};
use super::work::{cells, run_all};
use crate::cli::{GuestCheck, GuestSetup};
use crate::fail::Failure;
use crate::out::{Out, columns};
use seekwell_guest::{Kernel, cache_dir};
use seekwell_report::style::{BAD, GOOD, HEAD, NAME};
use seekwell_report::table::{Align, Table, paint, painted};
use seekwell_report::units::three;
use serde_json::json;
use std::process::Command;

/// Largest relative difference of a row that is right. It was fixed before the first comparison.
const TOLERANCE: f64 = 0.05;
/// Part of the guest's memory that the page cache can use: MemAvailable at the first command of a
/// guest with 512 MiB is 478 MiB.
const AVAILABLE: f64 = 478.0 / 512.0;

/// One comparison: means over the seeds.
struct Row {
    workload: String,
    scheduler: String,
    metric: String,
    unit: String,
    simulated: f64,
    kernel: f64,
    /// The kernel's result under the first scheduler.
    baseline: f64,
}

impl Row {
    fn error(&self) -> f64 {
        self.simulated / self.kernel - 1.0
    }
    fn right(&self) -> bool {
        self.error().abs() <= TOLERANCE || self.simulated == self.kernel
    }
    fn baseline_error(&self) -> f64 {
        self.baseline / self.kernel - 1.0
    }
}

/// Adds the figures of a run to sums by metric.
fn add(sums: &mut Vec<Figure>, figures: Vec<Figure>) {
    for f in figures {
        let same = |s: &&mut Figure| s.metric == f.metric && s.unit == f.unit;
        match sums.iter_mut().find(same) {
            Some(s) => s.value += f.value,
            None => sums.push(f),
        }
    }
}

/// Returns the simulated figures of a workload, summed over the seeds.
fn simulated(a: &GuestCheck, workload: &str, scheduler: &str) -> Result<Vec<Figure>, Failure> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::input(format!("this program cannot find its own file: {e}")))?;
    let cache = (a.memory as f64 * AVAILABLE) as u64 >> 20;
    let machine = format!("kernel=6.12,cores=1,cache={cache}M,without=cpu+scheduler-cpu");
    let mut sums = Vec::new();
    for seed in 1..=a.seeds.max(1) {
        let done = Command::new(&program)
            .args([
                "run", workload, "-d", &a.device, "-s", scheduler, "--quiet", "--json",
            ])
            .args([
                "--seeds",
                "1",
                "--seed",
                &seed.to_string(),
                "--machine",
                &machine,
            ])
            .output()
            .map_err(|e| Failure::input(format!("the simulation cannot be started: {e}")))?;
        if !done.status.success() {
            let why = String::from_utf8_lossy(&done.stderr);
            return Err(Failure::input(format!(
                "the simulation failed: {}",
                why.trim()
            )));
        }
        add(&mut sums, of_record(&done.stdout)?);
    }
    Ok(sums)
}

/// Returns the kernel's figures of a workload by scheduler, summed over the seeds.
fn measured(a: &GuestCheck, kernel: &Kernel, workload: &str) -> Result<Vec<Vec<Figure>>, Failure> {
    let setup = GuestSetup {
        device: vec![a.device.clone()],
        schedulers: a.schedulers.clone(),
        fs: "ext4".to_owned(),
        mount_options: String::new(),
        memory: a.memory,
        seed: 1,
        seeds: a.seeds,
        settings: Vec::new(),
        bind: Vec::new(),
        time_limit: 3600.0,
        wall_limit: 600.0,
        jobs: None,
        json: false,
        workload: Some(workload.to_owned()),
        command: Vec::new(),
    };
    let mut sums = vec![Vec::new(); a.schedulers.len()];
    for d in run_all(&setup, cells(&setup, kernel))? {
        if d.outcome.exit != 0 {
            let why = String::from_utf8_lossy(&d.outcome.stderr);
            return Err(Failure::input(format!(
                "{workload} failed in the guest with exit code {}: {}",
                d.outcome.exit,
                why.trim()
            )));
        }
        let i = a.schedulers.iter().position(|s| *s == d.cell.scheduler);
        add(&mut sums[i.unwrap_or(0)], of_record(&d.outcome.stdout)?);
    }
    Ok(sums)
}

fn rows(a: &GuestCheck, kernel: &Kernel) -> Result<Vec<Row>, Failure> {
    let n = f64::from(a.seeds.max(1));
    let mut rows = Vec::new();
    for workload in &a.workload {
        let real = measured(a, kernel, workload)?;
        for (i, scheduler) in a.schedulers.iter().enumerate() {
            for s in simulated(a, workload, scheduler)? {
                let find = |all: &[Figure]| {
                    let same = all
                        .iter()
                        .find(|f| f.metric == s.metric && f.unit == s.unit);
                    same.map(|f| f.value / n)
                };
                let (Some(own), Some(first)) = (find(&real[i]), find(&real[0])) else {
                    continue;
                };
                rows.push(Row {
                    workload: workload.clone(),
                    scheduler: scheduler.clone(),
                    metric: s.metric.clone(),
                    unit: s.unit.clone(),
                    simulated: s.value / n,
                    kernel: own,
                    baseline: first,
                });
            }
        }
    }
    Ok(rows)
}

fn percent(x: f64) -> String {
    seekwell_report::units::signed_percent(100.0 * x, 1)
}

/// Runs the command.
pub fn run(a: &GuestCheck) -> Result<(), Failure> {
    let cache = cache_dir().map_err(failed)?;
    let kernel = Kernel::find(&cache, a.kernel.as_deref()).map_err(failed)?;
    let rows = rows(a, &kernel)?;
    let right = rows.iter().filter(|r| r.right()).count();
    // The baseline has no prediction for the first scheduler itself.
    let others: Vec<&Row> = rows
        .iter()
        .filter(|r| r.scheduler != a.schedulers[0])
        .collect();
    let blind = others
        .iter()
        .filter(|r| r.baseline_error().abs() <= TOLERANCE)
        .count();
    let own = others.iter().filter(|r| r.right()).count();
    let summary = format!(
        "{right} of {} rows are within {:.0} %. Apart from the first scheduler: {own} of {}; the \
         baseline of no difference: {blind} of {}.\n",
        rows.len(),
        100.0 * TOLERANCE,
        others.len(),
        others.len()
    );
    let mut out = Out::open(None)?;
    if a.json {
        let list: Vec<_> = rows
            .iter()
            .map(|r| {
                json!({
                    "workload": r.workload, "scheduler": r.scheduler, "metric": r.metric,
                    "unit": r.unit, "simulated": r.simulated, "kernel": r.kernel,
                    "baseline": r.baseline, "right": r.right(),
                })
            })
            .collect();
        out.json(&json!({
            "schema": 1, "command": "guest check", "kernel": kernel.name, "device": a.device,
            "tolerance": TOLERANCE, "rows": list,
        }))?;
    } else if a.markdown {
        let mut text = String::from(
            "| workload | metric | scheduler | simulated | kernel | error | no difference |\n\
             |---|---|---|---|---|---|---|\n",
        );
        for r in &rows {
            text += &format!(
                "| `{}` | {}, {} | {} | {} | {} | {} | {} |\n",
                r.workload,
                r.metric,
                r.unit,
                r.scheduler,
                three(r.simulated),
                three(r.kernel),
                percent(r.error()),
                percent(r.baseline_error())
            );
        }
        out.text(&format!("{text}\n{summary}"))?;
    } else {
        out.text(&table(a, &kernel, &rows))?;
        out.prose(&format!("\n{summary}"))?;
    }
    out.done()?;
    match right == rows.len() {
        true => Ok(()),
        false => Err(Failure::Difference),
    }
}

fn table(a: &GuestCheck, kernel: &Kernel, rows: &[Row]) -> String {
    let mut out = String::new();
    paint(
        &mut out,
        &format!("Simulation and Linux {}", kernel.name),
        HEAD,
    );
    out += &format!(" on {}, means over {} seeds\n\n", a.device, a.seeds.max(1));
    let mut t = Table::new(&[
        ("WORKLOAD", Align::Left),
        ("METRIC", Align::Left),
        ("SCHEDULER", Align::Left),
        ("SIMULATED", Align::Right),
        ("KERNEL", Align::Right),
        ("ERROR", Align::Right),
        ("NO DIFFERENCE", Align::Right),
    ]);
    for r in rows {
        let style = if r.right() { GOOD } else { BAD };
        t.row(vec![
            r.workload.clone().into(),
            format!("{}, {}", r.metric, r.unit).into(),
            painted(r.scheduler.clone(), NAME),
            three(r.simulated).into(),
            three(r.kernel).into(),
            painted(percent(r.error()), style),
            percent(r.baseline_error()).into(),
        ]);
    }
    out + &t.render_within(0, columns())
}
