//! The execution of the runs of an experiment on this machine.

use super::beside::Neighbours;
use super::device::DeviceOf;
use super::load::Load;
use super::numbers;
use super::words::{What, placement_of};
use crate::conduct::{Job, Measured, NoRun, Runner};
use seekwell::result::{Metric, QueueUsed, Record, SchedulerUsed};
use seekwell::{Cancel, Progress, RunSpec};
use seekwell_core::prose::in_prose;
use seekwell_host::block::Device;
use seekwell_host::program::{self, Group, ProgramError, Recipe, Where};
use seekwell_host::switch::settings::Queue;
use seekwell_host::switch::{Switched, Wish};
use seekwell_workload::Plan;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Interval at which a pause checks for a stop.
const LOOK: Duration = Duration::from_millis(20);

/// Executes the runs of an experiment on this machine, one at a time.
pub struct Bench {
    on: DeviceOf,
    switched: Mutex<Option<Switched>>,
    settle: Duration,
    mark: String,
    runs: AtomicU32,
    over: Mutex<Option<String>>,
    on_start: Option<fn()>,
}

/// The parameters of a running program, measured or background.
pub(super) struct Doing<'a> {
    pub on: &'a DeviceOf,
    pub mark: &'a str,
    pub seed: u64,
    pub limit_s: Option<u64>,
    /// The caller sets this flag to stop the program.
    pub stop: Arc<AtomicBool>,
    /// The program sets this flag when its measured part begins.
    pub began: Arc<AtomicBool>,
    /// Called when the clock of the program's record starts.
    pub on_start: Option<fn()>,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data is consistent after every statement, so a poisoned lock is safe to use.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bench {
    /// Creates the runner for a directory. `switched` contains the devices whose schedulers it may
    /// set; with `None` it sets nothing.
    pub fn new(on: DeviceOf, switched: Option<Switched>, settle_s: f64, mark: &str) -> Bench {
        Bench {
            on,
            switched: Mutex::new(switched),
            settle: Duration::from_secs_f64(settle_s.clamp(0.0, 86_400.0)),
            mark: mark.to_owned(),
            runs: AtomicU32::new(0),
            over: Mutex::new(None),
            on_start: None,
        }
    }
    /// Calls `tell` in each run when the clock of the measured program's record starts.
    pub fn on_start(mut self, tell: fn()) -> Bench {
        self.on_start = Some(tell);
        self
    }
    /// Returns the device settings that must be restored. Afterwards the runner sets nothing.
    pub fn take_switched(&self) -> Option<Switched> {
        locked(&self.switched).take()
    }
    /// Returns why there are no further runs, if a device or the directory disappeared.
    pub fn over(&self) -> Option<String> {
        locked(&self.over).clone()
    }

    /// Sets the scheduler and attributes of a run, and verifies that they are active.
    pub(crate) fn set(&self, spec: &RunSpec) -> Result<(), String> {
        let mut switched = locked(&self.switched);
        let Some(switched) = switched.as_mut() else {
            return match self.on.in_force() {
                now if now == spec.scheduler.name => Ok(()),
                now => Err(format!("{now} is active: another program set it")),
            };
        };
        let tunables: Vec<(String, String)> = spec
            .scheduler
            .tunables
            .iter()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let wish = |device| Wish {
            device,
            scheduler: &spec.scheduler.name,
            tunables: &tunables,
        };
        let wishes: Vec<Wish<'_>> = self.on.devices().iter().map(wish).collect();
        switched.again(&wishes).map_err(|e| e.to_string())
    }

    /// Writes the settings of before the experiment back. The devices stay locked. Returns the
    /// settings that this changed.
    pub(crate) fn write_back(&self) -> Result<Vec<String>, String> {
        match locked(&self.switched).as_mut() {
            Some(switched) => switched.write_back().map_err(|e| e.to_string()),
            None => Ok(Vec::new()),
        }
    }

    /// Returns changes that other programs made during the run. The first value describes a change
    /// of the scheduler, the second describes changes of other settings.
    pub(crate) fn meddled(&self, spec: &RunSpec) -> (Option<String>, Vec<String>) {
        let notes = locked(&self.switched)
            .as_ref()
            .map(Switched::disturbed)
            .unwrap_or_default();
        let now = self.on.in_force();
        let other = (!self.on.devices().is_empty() && now != spec.scheduler.name).then(|| {
            format!(
                "{}: another program set {} during a run under {}; the run does not count",
                self.on.names(),
                in_prose(&now),
                in_prose(&spec.scheduler.name)
            )
        });
        (other, notes)
    }

    /// Returns why no further runs are possible; `None` if they are possible.
    pub(crate) fn gone(&self) -> Option<String> {
        self.on.gone()
    }

    /// Adds the settings of the devices to the record of a run.
    pub(crate) fn describe(&self, spec: &RunSpec, record: &mut Record) {
        record.scheduler = SchedulerUsed {
            spec: spec.scheduler_label(),
            name: spec.scheduler.name.clone(),
            tunables: self.settings(),
            layer: "host".to_owned(),
            ..std::mem::take(&mut record.scheduler)
        };
        record.queue = self.limits();
    }

    /// Returns all settings of the first device.
    fn settings(&self) -> BTreeMap<String, String> {
        let first = self.on.devices().first();
        let queue = first.map(|d| Queue::new(self.on.tree().queue(&d.name)));
        let read = queue.and_then(|q| q.read().ok()).unwrap_or_default();
        let mut all = read.tunables;
        all.extend(read.attributes);
        all
    }

    /// Returns the queue limits of the first device.
    fn limits(&self) -> Option<QueueUsed> {
        let name = &self.on.devices().first()?.name;
        let d = self.on.tree().device(name)?;
        let number = |n: Option<u64>| n.and_then(|n| u32::try_from(n).ok());
        let file = self.on.tree().queue(name).join("max_segments");
        let entries = std::fs::read_to_string(file).ok();
        Some(QueueUsed {
            max_sectors_kb: number(d.max_sectors_kb)?,
            max_segments: entries.and_then(|t| t.trim().parse().ok()),
            largest_kb: None,
            nr_requests: d.nr_requests?,
            read_ahead_kb: number(d.read_ahead_kb),
            depth: d.depth.unwrap_or(0),
            hw_queues: d.hw_queues.unwrap_or(1),
        })
    }

    fn pause(&self, cancel: &Cancel) {
        let end = Instant::now() + self.settle;
        while Instant::now() < end && !cancel.is_set() {
            std::thread::sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
        }
    }

    fn make(&self, job: &Job, cancel: &Cancel) -> Result<Record, NoRun> {
        let spec = &job.spec;
        self.set(spec).map_err(NoRun::Failed)?;
        self.pause(cancel);
        let stop = Arc::new(AtomicBool::new(false));
        let n = self.runs.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}/{n}", self.mark);
        let over = AtomicBool::new(false);
        let ran = std::thread::scope(|s| {
            // Programs check their own stop flag, so this thread copies the cancel token to that
            // flag.
            let watch = s.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    if cancel.is_set() {
                        stop.store(true, Ordering::Release);
                    }
                    std::thread::park_timeout(LOOK);
                }
            });
            let doing = Doing {
                on: &self.on,
                mark: &mark,
                seed: spec.run_seed(),
                limit_s: spec.limit_s,
                stop: Arc::clone(&stop),
                began: Arc::default(),
                on_start: self.on_start,
            };
            let ran = with_neighbours(spec, &doing);
            over.store(true, Ordering::Release);
            watch.thread().unpark();
            ran
        });
        ran.map_err(|e| match cancel.is_set() {
            true => NoRun::Cut(e, None),
            false => NoRun::Failed(e),
        })
    }
}

/// Runs the measured program together with its background programs.
fn with_neighbours(spec: &RunSpec, doing: &Doing<'_>) -> Result<Record, String> {
    if spec.beside.is_empty() {
        return once(&spec.workload, doing);
    }
    std::thread::scope(|s| {
        let neighbours = Neighbours::begin(s, &spec.beside, doing)?;
        let ran = match neighbours.wait(doing) {
            Ok(()) => once(&spec.workload, doing),
            Err(e) => Err(e),
        };
        let parts = neighbours.end();
        let mut record = ran?;
        record.beside = parts?;
        Ok(record)
    })
}

/// Runs a workload once, with its priority and cgroup settings.
pub(super) fn once(workload: &seekwell::WorkloadSpec, doing: &Doing<'_>) -> Result<Record, String> {
    let (what, placing) = placement_of(workload).map_err(|e| e.to_string())?;
    let numbers: Vec<(u32, u32)> = doing
        .on
        .devices()
        .iter()
        .filter_map(|d| d.numbers)
        .collect();
    let wanted = (!placing.share.is_empty()).then_some(&placing.share);
    let group = wanted.map(|s| Group::make(s, &numbers)).transpose()?;
    if group.as_ref().is_some_and(Group::whole_processes) && matches!(what, What::Script(_)) {
        return Err(
            "a weight or limit works only for programs (for example cmd:fio ...), because a v2 \
             cgroup contains whole processes"
                .to_owned(),
        );
    }
    let cgroup = group.as_ref().map(Group::file);
    match what {
        What::Program(recipe, params) => {
            let at = place(doing, &placing, cgroup);
            program(&recipe, &params, &at, doing, &|_| Ok(Vec::new()))
        }
        What::Fio(plan, text) => match seekwell_host::watch::has_program("fio") {
            true => {
                let at = place(doing, &placing, cgroup);
                let text = numbers::reported_by_job(&text);
                let params = BTreeMap::from([("job".to_owned(), text)]);
                let file = plan.job_file().ok_or("the job file has no jobs")?;
                let read = |printed: &str| numbers::fio(printed, file);
                program(&fio(), &params, &at, doing, &read)
            }
            false => {
                let mut record = script(&plan, doing, &placing, cgroup)?;
                let said = "run by seekwell instead of fio, which is not installed";
                record.warnings.push(said.to_owned());
                Ok(record)
            }
        },
        What::Script(plan) => script(&plan, doing, &placing, cgroup),
        What::OwnWork => Err("only `seekwell trial` measures the machine's own work".to_owned()),
    }
}

/// Returns a recipe that runs a job file with fio itself.
pub(super) fn fio() -> Recipe {
    let mut r = Recipe::command("fio --output-format=json+ job.fio", None);
    r.name = "fio".to_owned();
    r.prepare = "printf '%s' \"$job\" >job.fio".to_owned();
    r.version = "fio --version".to_owned();
    r
}

struct Placed<'a> {
    device: Option<PathBuf>,
    stat: Option<PathBuf>,
    placing: &'a super::words::Placing,
    cgroup: Option<PathBuf>,
}

fn place<'a>(
    doing: &Doing<'_>,
    placing: &'a super::words::Placing,
    cgroup: Option<PathBuf>,
) -> Placed<'a> {
    let first = doing.on.devices().first();
    Placed {
        device: first.map(Device::path),
        stat: first.map(|d| doing.on.tree().at("/sys/block").join(&d.name).join("stat")),
        placing,
        cgroup,
    }
}

fn program(
    recipe: &Recipe,
    params: &BTreeMap<String, String>,
    placed: &Placed<'_>,
    doing: &Doing<'_>,
    numbers: &(dyn Fn(&str) -> Result<Vec<Metric>, String> + Sync),
) -> Result<Record, String> {
    let began = Instant::now();
    let limit = doing.limit_s.map(Duration::from_secs);
    let stop = || {
        if doing.stop.load(Ordering::Acquire) {
            return Some("stopped".to_owned());
        }
        let late = limit.is_some_and(|l| began.elapsed() > l);
        late.then(|| format!("stopped at the limit of {} s", began.elapsed().as_secs()))
    };
    let at = Where {
        dir: doing.on.path(),
        device: placed.device.clone(),
        stat: placed.stat.clone(),
        seed: doing.seed,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        stop: &stop,
        began: &doing.began,
        numbers,
        nice: placed.placing.nice,
        ioprio: placed.placing.ioprio,
        cgroup: placed.cgroup.clone(),
        mark: &format!("{}/m", doing.mark),
        on_start: doing.on_start,
    };
    program::run(recipe, params, &at).map_err(|e: ProgramError| e.to_string())
}

/// Runs a built-in script on real files, in a thread with the requested priority.
fn script(
    plan: &Plan,
    doing: &Doing<'_>,
    placing: &super::words::Placing,
    cgroup: Option<PathBuf>,
) -> Result<Record, String> {
    let mut o = seekwell_host::Options::new(doing.on.path(), doing.seed);
    o.signals = false;
    o.limit = doing.limit_s.map(Duration::from_secs);
    o.stop = Some(Arc::clone(&doing.stop));
    let pulse = Arc::new(seekwell_host::Pulse::default());
    o.pulse = Some(Arc::clone(&pulse));
    o.on_start = doing.on_start;
    let stat = doing.on.devices().first();
    let stat = stat.map(|d| doing.on.tree().at("/sys/block").join(&d.name).join("stat"));
    let counted = program::Counted::begin(stat);
    let ended = AtomicBool::new(false);
    let ran = std::thread::scope(|s| {
        let run = s.spawn(|| {
            let set = program::place_thread(placing.nice, placing.ioprio, cgroup.as_deref());
            set.map_err(|e| format!("cannot set its priority or cgroup: {e}"))?;
            seekwell_host::run_real(plan, &o).map_err(|e| e.to_string())
        });
        while !run.is_finished() {
            if pulse.clock().is_some() {
                doing.began.store(true, Ordering::Release);
            }
            std::thread::sleep(LOOK);
        }
        ended.store(true, Ordering::Release);
        let broken = || "internal error".to_owned();
        run.join().unwrap_or_else(|_| Err(broken()))
    });
    doing.began.store(true, Ordering::Release);
    let ran = ran?;
    let mut record = ran.record;
    if record.requests == 0 {
        counted.fill(&mut record);
    }
    match ran.stopped {
        // Reaching the time limit is a normal end. Other reasons are a failure or a stop.
        Some(why) if !why.contains("time limit") => Err(why),
        _ => Ok(record),
    }
}

impl Runner for Bench {
    fn run(
        &self,
        job: &Job,
        cancel: &Cancel,
        _told: &mut dyn FnMut(Progress),
    ) -> Result<Measured, NoRun> {
        let over = |why: String| {
            *locked(&self.over) = Some(why.clone());
            NoRun::Cut(why, None)
        };
        if let Some(why) = self.over().or_else(|| self.on.gone()) {
            return Err(over(why));
        }
        if cancel.is_set() {
            return Err(NoRun::Cut("not begun".to_owned(), None));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let began_unix_ns = now.ok().and_then(|d| u64::try_from(d.as_nanos()).ok());
        let load = Load::now();
        let made = self.make(job, cancel);
        // A script runs in threads of this process; background workloads may be other processes.
        let script = matches!(job.spec.workload, seekwell::WorkloadSpec::Script { .. });
        let others = load.others(script && job.spec.beside.is_empty());
        // If a device or the directory disappeared, this is the cause of any other error.
        if let Some(why) = self.on.gone() {
            return Err(over(why));
        }
        let mut record = made?;
        let (other, notes) = self.meddled(&job.spec);
        if let Some(other) = other {
            return Err(NoRun::Failed(other));
        }
        record.warnings.extend(notes);
        self.describe(&job.spec, &mut record);
        record.spec_hash = job.spec.hash();
        record.spec = Some(job.spec.clone());
        let mut measured = Measured::from_record(record);
        measured.began_unix_ns = began_unix_ns;
        measured.others = others;
        Ok(measured)
    }
}
