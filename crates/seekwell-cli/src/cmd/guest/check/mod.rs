//! `seekwell guest check`: the simulation against a real kernel.

mod rows;
mod sample;
mod show;

use crate::cli::GuestCheck;
use crate::fail::Failure;
use crate::guests::{Guests, SCHEDULERS, window};
use crate::out::Out;
use rows::{Row, Verdict};
use sample::Sample;
use seekwell::words::{self, TypedScheduler};
use seekwell::{Cancel, MachineSpec, RunSpec, checked};
use seekwell_guest::SEGMENTS_MAX;
use seekwell_lab::kernel::to_kernel;
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Part of the guest's memory that the page cache can use: MemAvailable at the first command of a
/// guest with 512 MiB is 478 MiB.
const AVAILABLE: f64 = 478.0 / 512.0;
/// The largest request of both sides in KiB, the kernel's default without a limit of the device.
const MAX_SECTORS_KB: u32 = 1280;

/// The specification of a cell for both sides.
struct Cell {
    workload: usize,
    scheduler: usize,
    simulated: RunSpec,
    kernel: RunSpec,
}

/// Both samples of a cell.
type Pair = (Sample, Sample);

fn cells(a: &GuestCheck, schedulers: &[TypedScheduler]) -> Result<Vec<Cell>, Failure> {
    let bad = |e: seekwell::SpecErrors| Failure::words("", &e);
    let device = words::device(&a.device).map_err(bad)?;
    let cache = (a.memory as f64 * AVAILABLE) as u64 >> 20;
    // Both sides have one CPU whose time is free, the same memory, and no limit by a scatter list.
    let machine =
        format!("kernel=6.12,cores=1,cache={cache}M,without=cpu+scheduler-cpu+scattered-memory");
    let machine = words::machine(&machine).map_err(|e| Failure::input(e.to_string()))?;
    let mut all = Vec::new();
    for (workload, text) in a.workload.iter().enumerate() {
        let spec = words::workload(text, &[]).map_err(bad)?;
        for (scheduler, s) in schedulers.iter().enumerate() {
            for seed in 1..=u64::from(a.seeds.max(1)) {
                let mut base = RunSpec::new(device.clone(), s.spec.clone(), spec.clone());
                (base.seed, base.label) = (seed, Some(s.text.clone()));
                (base.queue.max_sectors_kb, base.queue.virtio) = (Some(MAX_SECTORS_KB), true);
                let mut simulated = base.clone();
                simulated.machine = Some(machine.spec.clone());
                let simulated = checked(&simulated).map_err(bad)?;
                let mut kernel = base;
                kernel.workload = simulated.workload.clone();
                kernel.machine = Some(MachineSpec {
                    memory_bytes: Some(a.memory),
                    ..MachineSpec::default()
                });
                to_kernel(&mut kernel).map_err(bad)?;
                all.push(Cell {
                    workload,
                    scheduler,
                    simulated,
                    kernel,
                });
            }
        }
    }
    Ok(all)
}

/// Runs a cell on both sides.
fn pair(cell: &Cell, guests: &Guests) -> Result<Pair, String> {
    let simulated =
        sample::of_simulation(&cell.simulated).map_err(|e| format!("simulated: {e}"))?;
    let (record, done) = guests.record(&cell.kernel, &Cancel::new())?;
    let measured = window(&record, &done);
    let window = measured.ok_or("the guest did not report the start of the workload")?;
    Ok((simulated, sample::of_guest(&record, &done, window)))
}

/// Runs all cells on all cores. Stops at the first error.
fn pairs(a: &GuestCheck, cells: &[Cell], guests: &Guests) -> Result<Vec<Pair>, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let done: Vec<Mutex<Option<Pair>>> = cells.iter().map(|_| Mutex::new(None)).collect();
    let keep = |slot: &Mutex<Option<Pair>>, pair| {
        if let Ok(mut slot) = slot.lock() {
            *slot = Some(pair);
        }
    };
    std::thread::scope(|s| {
        for _ in 0..cores.min(cells.len()) {
            s.spawn(|| {
                while let Some((cell, slot)) = {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let over = failed
                        .lock()
                        .is_ok_and(|f: std::sync::MutexGuard<'_, Option<String>>| f.is_some());
                    cells.get(i).zip(done.get(i)).filter(|_| !over)
                } {
                    match pair(cell, guests) {
                        Ok(p) => keep(slot, p),
                        Err(why) => {
                            if let Ok(mut f) = failed.lock() {
                                *f = Some(format!(
                                    "{} under {}, seed {}: {why}",
                                    a.workload[cell.workload],
                                    cell.kernel.scheduler_label(),
                                    cell.kernel.seed
                                ));
                            }
                        }
                    }
                }
            });
        }
    });
    if let Ok(Some(why)) = failed.into_inner() {
        return Err(Failure::input(why));
    }
    let all = done
        .into_iter()
        .filter_map(|m| m.into_inner().ok().flatten());
    Ok(all.collect())
}

fn compared(
    a: &GuestCheck,
    schedulers: &[TypedScheduler],
    cells: &[Cell],
    pairs: &[Pair],
) -> Vec<Row> {
    let of = |w: usize, s: usize| -> (Vec<Sample>, Vec<Sample>) {
        let all = cells.iter().zip(pairs);
        all.filter(|(c, _)| (c.workload, c.scheduler) == (w, s))
            .map(|(_, p)| p.clone())
            .unzip()
    };
    let mut all = Vec::new();
    for (w, workload) in a.workload.iter().enumerate() {
        let (_, first) = of(w, 0);
        for (s, scheduler) in schedulers.iter().enumerate() {
            let (simulated, kernel) = of(w, s);
            all.extend(rows::rows(
                workload,
                &scheduler.text,
                &simulated,
                &kernel,
                &first,
            ));
        }
    }
    all
}

/// Runs the command.
pub fn run(a: &GuestCheck) -> Result<(), Failure> {
    let guests = Guests::new(a.kernel.as_deref())?.with_segments(SEGMENTS_MAX);
    let list = a.schedulers.as_deref().unwrap_or(SCHEDULERS);
    let schedulers = words::schedulers(list).map_err(|e| Failure::words("", &e))?;
    let cells = cells(a, &schedulers)?;
    let pairs = pairs(a, &cells, &guests)?;
    let rows = compared(a, &schedulers, &cells, &pairs);
    let mut out = Out::open(None)?;
    if a.json {
        out.json(&json!({
            "schema": 2, "command": "guest check", "kernel": guests.name(), "device": a.device,
            "seeds": a.seeds.max(1), "tolerance": rows::RESULT_TOLERANCE,
            "count_tolerance": rows::COUNT_TOLERANCE, "rows": rows,
        }))?;
    } else if a.markdown {
        out.text(&show::markdown(a, guests.name(), &rows))?;
    } else {
        out.text(&show::table(a, guests.name(), &rows))?;
        out.prose(&show::totals(&rows))?;
    }
    out.done()?;
    match rows.iter().any(|r| r.verdict == Verdict::Wrong) {
        false => Ok(()),
        true => Err(Failure::Difference),
    }
}
