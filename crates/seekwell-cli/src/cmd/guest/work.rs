//! Runs the cells of a setup in parallel guests.

use crate::cli::GuestSetup;
use crate::fail::Failure;
use crate::guests::{failed, queue_writes, segments};
use seekwell_guest::{DISK, FileSystem, GuestError, Kernel, Outcome, PROGRAM, Run, SEGMENTS_MAX};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// One run: kernel, scheduler with tunables, seed.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The kernel.
    pub kernel: Kernel,
    /// The scheduler as the user wrote it.
    pub scheduler: String,
    /// The seed.
    pub seed: u64,
}

/// A cell with its result.
pub struct Done {
    /// The cell.
    pub cell: Cell,
    /// Its result.
    pub outcome: Outcome,
}

/// Returns all cells of a setup: for each scheduler, all seeds.
pub fn cells(setup: &GuestSetup, kernel: &Kernel) -> Vec<Cell> {
    let mut all = Vec::new();
    for scheduler in &setup.schedulers {
        for i in 0..u64::from(setup.seeds.max(1)) {
            all.push(Cell {
                kernel: kernel.clone(),
                scheduler: scheduler.clone(),
                seed: setup.seed + i,
            });
        }
    }
    all
}

/// Runs all cells. Stops at the first error.
pub fn run_all(setup: &GuestSetup, cells: Vec<Cell>) -> Result<Vec<Done>, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = setup.jobs.unwrap_or(cores).clamp(1, cells.len().max(1));
    let program = std::env::current_exe()
        .map_err(|e| Failure::input(format!("this program cannot find its own file: {e}")))?;
    let visible = visible(setup)?;
    let (next, stop) = (AtomicUsize::new(0), Mutex::new(None));
    let results: Vec<Mutex<Option<Outcome>>> = cells.iter().map(|_| Mutex::new(None)).collect();
    let keep = |slot: &Mutex<_>, value| {
        if let Ok(mut s) = slot.lock() {
            *s = Some(value);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let failed = stop.lock().is_ok_and(
                        |s: std::sync::MutexGuard<'_, Option<(usize, Failure)>>| s.is_some(),
                    );
                    let Some(cell) = cells.get(i).filter(|_| !failed) else {
                        return;
                    };
                    match one(setup, cell, &visible, &program) {
                        Ok(outcome) => keep(&results[i], outcome),
                        Err(e) => {
                            if let Ok(mut s) = stop.lock() {
                                *s = Some((i, e));
                            }
                        }
                    }
                }
            });
        }
    });
    if let Ok(Some((i, e))) = stop.into_inner() {
        let c = &cells[i];
        return Err(Failure::input(format!(
            "kernel {}, scheduler {}, seed {}: {e}",
            c.kernel.name, c.scheduler, c.seed
        )));
    }
    let outcomes = results.into_iter().map(|m| m.into_inner().ok().flatten());
    let pairs = cells.into_iter().zip(outcomes);
    Ok(pairs
        .filter_map(|(cell, o)| o.map(|outcome| Done { cell, outcome }))
        .collect())
}

/// Returns the command of a run. A workload is run by this program, as on real files.
fn command(setup: &GuestSetup) -> Vec<String> {
    let Some(workload) = &setup.workload else {
        return setup.command.clone();
    };
    let words = [PROGRAM, "run", workload, "--dir", DISK, "--json", "--quiet"];
    words.map(str::to_owned).to_vec()
}

/// Returns the name of the work, for tables and results.
pub fn work_name(setup: &GuestSetup) -> String {
    let command = || setup.command.join(" ");
    setup.workload.clone().unwrap_or_else(command)
}

/// Returns what the guest can read: the user's paths, and the directory of a command that is not in
/// a shared directory.
fn visible(setup: &GuestSetup) -> Result<Vec<PathBuf>, Failure> {
    let shared = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt"];
    let mut all = Vec::new();
    for path in &setup.bind {
        let full = std::fs::canonicalize(path)
            .map_err(|e| Failure::input(format!("--bind \"{}\": {e}", path.display())))?;
        all.push(full);
    }
    // The guest has file systems of its own in these directories.
    let guests = ["/tmp", "/var", "/run", "/dev", "/proc", "/sys"];
    for (i, word) in setup.command.iter().enumerate() {
        let path = Path::new(word);
        let own = path.is_absolute() && !shared.iter().any(|s| path.starts_with(s));
        // An argument there can be a file of the guest. The program itself cannot.
        let of_guest = i > 0 && guests.iter().any(|g| path.starts_with(g));
        if own && !of_guest && path.is_file() {
            all.push(path.to_owned());
        }
    }
    for (path, dir) in all.iter().flat_map(|p| guests.iter().map(move |g| (p, g))) {
        if path.starts_with(dir) {
            return Err(Failure::input(format!(
                "{}: the guest has its own {dir}, so it cannot see the host's; copy the file to \
                 another directory",
                path.display()
            )));
        }
    }
    all.retain(|p| !shared.iter().any(|s| p.starts_with(s)));
    all.sort();
    all.dedup();
    Ok(all)
}

fn one(
    setup: &GuestSetup,
    cell: &Cell,
    visible: &[PathBuf],
    program: &Path,
) -> Result<Outcome, Failure> {
    if setup.workload.is_some() && setup.fs == "none" {
        return Err(Failure::input(
            "a workload needs a file system; omit --fs none",
        ));
    }
    let mut disks = Vec::new();
    let mut writes = Vec::new();
    for (i, name) in setup.device.iter().enumerate() {
        let device = seekwell_device::open(name, cell.seed);
        let device = device.map_err(|e| Failure::input(e.to_string()))?;
        writes.extend(queue_writes(i, device.facts()));
        disks.push(device);
    }
    let segments = disks.first().map_or(SEGMENTS_MAX, |d| segments(d.facts()));
    let (scheduler, tunables) = cell
        .scheduler
        .split_once(':')
        .unwrap_or((&cell.scheduler, ""));
    for tunable in tunables.split(':').filter(|t| !t.is_empty()) {
        let (name, value) = tunable.split_once('=').ok_or_else(|| {
            Failure::input(format!(
                "\"{}\": write SCHEDULER:TUNABLE=VALUE",
                cell.scheduler
            ))
        })?;
        writes.push((format!("iosched/{name}"), value.to_owned()));
    }
    writes.extend(setup.settings.iter().cloned());
    let file_system = match setup.fs.as_str() {
        "none" => None,
        name => Some(name.parse::<FileSystem>().map_err(failed)?),
    };
    let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX);
    let run = Run {
        kernel: cell.kernel.clone(),
        disks,
        scheduler: scheduler.to_owned(),
        writes,
        file_system,
        mount_options: setup.mount_options.clone(),
        memory_bytes: setup.memory,
        seed: cell.seed,
        depth: None,
        segments,
        stop: None,
        command: command(setup),
        environment: Vec::new(),
        visible: visible.to_vec(),
        wall_limit: seconds(setup.wall_limit),
        time_limit: seconds(setup.time_limit),
    };
    run.execute(program).map_err(|e: GuestError| failed(e))
}
