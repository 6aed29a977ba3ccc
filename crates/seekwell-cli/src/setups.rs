//! Converts options to runs: each device with each workload under each scheduler, with tunables.

use crate::cells::Job;
use crate::cli::Bench;
use crate::fail::Failure;
use crate::guests::{self, Guests};
use seekwell::words::{self, Kernel, TypedMachine, TypedScheduler};
use seekwell::{BackgroundSpec, QueueSpec, RunSpec, SpecErrors, WorkloadSpec, aligned, checked};
use seekwell_lab::kernel::to_kernel;
use seekwell_sched::find;
use seekwell_sim::Setup;
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// Default devices and schedulers.
pub struct Usual {
    /// Devices.
    pub devices: &'static [&'static str],
    /// Schedulers.
    pub schedulers: &'static str,
}

impl Usual {
    /// Returns the defaults for commands that compare on several devices.
    pub fn several(b: &Bench) -> Self {
        let usual = b.era.usual();
        Usual {
            devices: usual.devices,
            schedulers: usual.schedulers,
        }
    }
    /// Returns the defaults for `run` and `replay`, which use one device.
    pub fn single_device(b: &Bench) -> Self {
        Usual {
            devices: std::slice::from_ref(&b.era.usual().device),
            ..Usual::several(b)
        }
    }
}

/// Returns the list of schedulers without a leading `+`, and whether the list had one. With a `+`,
/// the list is added to the defaults.
fn more(list: &str) -> (bool, &str) {
    let rest = list.trim_start().strip_prefix('+');
    (rest.is_some(), rest.map_or(list, str::trim))
}

/// Returns the requested kernel.
fn kernel(b: &Bench) -> Result<Option<Kernel>, Failure> {
    let read = b.kernel.as_deref().map(words::kernel).transpose();
    read.map_err(|e| Failure::words("--kernel: ", &e))
}

impl Usual {
    /// Returns the requested devices, or the defaults.
    pub fn devices(&self, b: &Bench) -> Vec<String> {
        if b.device.is_empty() {
            self.devices.iter().map(|d| (*d).to_owned()).collect()
        } else {
            b.device.clone()
        }
    }
    /// Returns the requested schedulers, or the defaults, or the defaults and the added schedulers.
    /// With a kernel, the defaults are the schedulers of that kernel.
    pub fn schedulers<'a>(&'a self, b: &'a Bench) -> Cow<'a, str> {
        let usual = || match kernel(b) {
            Ok(Some(k)) => words::shipped(k.release).into(),
            _ => Cow::Borrowed(self.schedulers),
        };
        match b.schedulers.as_deref().map(more) {
            None | Some((true, "")) => usual(),
            Some((false, list)) => list.into(),
            Some((true, list)) => format!("{},{list}", usual()).into(),
        }
    }
    /// Returns the parsed schedulers with the values of --tunable.
    pub fn typed(&self, b: &Bench) -> Result<Vec<TypedScheduler>, Failure> {
        let kernel = kernel(b)?;
        let typed = words::schedulers_in(&self.schedulers(b), kernel.as_ref());
        let mut typed = typed.map_err(|e| Failure::words("", &e))?;
        for t in &b.tunable {
            let prefix = format!("--tunable {t}: ");
            words::spread(t, &mut typed).map_err(|e| Failure::words(&prefix, &e))?;
        }
        Ok(typed)
    }
}

/// Returns the options. If no number of seeds is requested, and the workloads are the defaults,
/// sets the default number of seeds.
pub fn with_seeds(b: &Bench, usual_workloads: bool) -> Bench {
    let mut b = b.clone();
    if usual_workloads {
        b.seeds = b.seeds.or(b.era.usual().seeds);
    }
    b
}

/// Returns whether the schedulers are the defaults. Then the reference is the kernel's default for
/// the device. Otherwise it is the first scheduler of the list.
pub fn usual_schedulers(b: &Bench) -> bool {
    b.schedulers.as_deref().is_none_or(|list| more(list).0)
}

/// The runs of a command: each device with each workload under each scheduler, in this order.
pub struct Runs {
    /// All specifications, checked.
    pub specs: Vec<RunSpec>,
    /// Number of devices.
    pub devices: usize,
    /// Number of workloads.
    pub workloads: usize,
    /// Number of schedulers.
    pub schedulers: usize,
    /// How the named kernels are modelled, one sentence each.
    pub kernels: Vec<String>,
}

impl Runs {
    /// Returns the range of the runs of the `n`th pair of device and workload.
    pub fn group(&self, n: usize) -> Range<usize> {
        n * self.schedulers..(n + 1) * self.schedulers
    }
    /// Returns the `n`th device, as requested.
    pub fn device(&self, n: usize) -> &str {
        &self.specs[n * self.workloads * self.schedulers].device.spec
    }
    /// Returns the labels of the runs.
    pub fn jobs(&self) -> Vec<Job> {
        let job = |s: &RunSpec| Job {
            label: s.scheduler_label(),
            device: s.device.spec.clone(),
        };
        self.specs.iter().map(job).collect()
    }
}

/// Returns the requested workloads that run alongside.
fn background_specs(texts: &[String]) -> Result<Vec<BackgroundSpec>, Failure> {
    let one = |t: &String| {
        let prefix = format!("--beside {t}: ");
        words::beside(t).map_err(|e| Failure::words(&prefix, &e))
    };
    texts.iter().map(one).collect()
}

/// Returns the text of `--machine`, with `--cgroup` added.
pub fn with_cgroups(machine: &str, cgroups: &[String]) -> String {
    match cgroups {
        [] => machine.to_owned(),
        all => format!("{machine},cgroup={}", all.join("+")),
    }
}

/// Returns the requested settings of the queue.
pub fn queue(b: &Bench) -> QueueSpec {
    QueueSpec {
        hz: b.hz,
        nr_requests: b.nr_requests,
        depth: b.depth,
        max_sectors_kb: b.max_sectors_kb,
        max_segments: None,
        nomerges: b.nomerges,
        virtio: false,
    }
}

/// Returns the runs of every device with every workload and the workloads alongside, under every
/// scheduler, on a machine (`memory=2G,cores=2`).
pub fn all_runs(
    b: &Bench,
    usual: &Usual,
    machine: &str,
    workloads: &[WorkloadSpec],
    neighbours: &[String],
) -> Result<Runs, Failure> {
    let neighbours = background_specs(neighbours)?;
    let machine = words::machine(machine);
    let bad = |e| Failure::input(format!("--machine: {e}"));
    let machine = machine.map_err(bad)?;
    if guests::is_asked(b) {
        return kernel_runs(b, usual, &machine, workloads, &neighbours);
    }
    let typed = usual.typed(b)?;
    let kernel = kernel(b)?;
    if let Some(k) = &kernel {
        words::of_kernel(&machine.spec, k).map_err(bad)?;
    }
    let devices = usual.devices(b);
    let mut specs = Vec::new();
    for device in &devices {
        let device = words::device(device).map_err(|e| Failure::words("", &e))?;
        for workload in workloads {
            let spec = |t: &TypedScheduler| {
                let mut s = RunSpec::new(device.clone(), t.spec.clone(), workload.clone());
                s.queue = queue(b);
                s.machine = s.machine.map(|_| machine.spec.clone());
                s.beside.clone_from(&neighbours);
                s.limit_s = machine.limit_s;
                s.seed = b.seed;
                s.label = Some(t.text.clone());
                checked(&s).map_err(|e| Failure::input(e.to_string()))
            };
            let mut group = typed.iter().map(spec).collect::<Result<Vec<_>, _>>()?;
            aligned(&mut group).map_err(|e| Failure::input(e.to_string()))?;
            specs.extend(group);
        }
    }
    Ok(Runs {
        specs,
        devices: devices.len(),
        workloads: workloads.len(),
        schedulers: typed.len(),
        kernels: words::kernel_notes(&typed, kernel.as_ref()),
    })
}

/// Returns the runs of [`all_runs`] for guests.
fn kernel_runs(
    b: &Bench,
    usual: &Usual,
    machine: &TypedMachine,
    workloads: &[WorkloadSpec],
    neighbours: &[BackgroundSpec],
) -> Result<Runs, Failure> {
    let bad = |e: SpecErrors| Failure::input(e.to_string());
    let typed = guests::schedulers(b)?;
    let devices = usual.devices(b);
    let mut specs = Vec::new();
    for device in &devices {
        let device = words::device(device).map_err(|e| Failure::words("", &e))?;
        for workload in workloads {
            for t in &typed {
                let mut s = RunSpec::new(device.clone(), t.spec.clone(), workload.clone());
                // The simulation's check covers everything but the machine.
                let whole = checked(&s).map_err(bad)?;
                s.workload = whole.workload;
                s.queue = queue(b);
                s.machine = s.machine.map(|_| machine.spec.clone());
                s.beside = neighbours.to_vec();
                s.limit_s = machine.limit_s;
                s.seed = b.seed;
                s.label = Some(t.text.clone());
                to_kernel(&mut s).map_err(bad)?;
                specs.push(s);
            }
        }
    }
    Ok(Runs {
        specs,
        devices: devices.len(),
        workloads: workloads.len(),
        schedulers: typed.len(),
        kernels: vec![Guests::new(b.kernel.as_deref())?.note()],
    })
}

/// Returns notes about schedulers that are older or newer than the device, if their version was not
/// named. Returns none if the user did not choose both, or if the version of the device's time runs
/// too.
pub fn time_notes(b: &Bench, runs: &Runs) -> Vec<String> {
    let typed = b.schedulers.as_deref();
    let chosen = !b.device.is_empty() && b.kernel.is_none() && !guests::is_asked(b);
    let typed = typed.filter(|_| chosen);
    let Some((_, typed)) = typed.map(more) else {
        return Vec::new();
    };
    // `all` and the names of layers request no specific version.
    let parts = typed.split(',');
    let named: Vec<&str> = parts
        .map(|p| p.split(':').next().unwrap_or(p).trim())
        .collect();
    let mut notes = Vec::new();
    for of_device in runs.specs.chunks(runs.workloads * runs.schedulers) {
        let group = &of_device[..runs.schedulers];
        for s in group.iter().filter(|s| named.contains(&&*typed_name(s))) {
            // Names are resolved: bfq-sq is bfq-v7r8.
            let is_run = |then: &str| {
                let meant = find(then).map(|f| (f.0.name, f.1));
                let of = |o: &RunSpec| find(&o.scheduler.versioned()).map(|f| (f.0.name, f.1));
                group.iter().any(|o| of(o) == meant)
            };
            let setup = Setup {
                device: s.device.spec.clone(),
                scheduler: typed_name(s),
                ..Setup::default()
            };
            let noted = setup.time_note().filter(|(then, _)| !is_run(then));
            notes.extend(noted.map(|n| n.1));
        }
    }
    notes
}

/// Returns the requested name of a scheduler, without settings.
fn typed_name(s: &RunSpec) -> String {
    let label = s.scheduler_label();
    label.split(':').next().unwrap_or_default().to_owned()
}

/// Returns the setup of one device under one scheduler. Returns an error if several schedulers are
/// named.
pub fn single_setup(device: &str, scheduler: &str, seed: u64) -> Result<Setup, Failure> {
    let typed = words::schedulers(scheduler).map_err(|e| Failure::words("", &e))?;
    let [one] = &typed[..] else {
        let what = format!("--scheduler {scheduler}: a disk has one scheduler; name only one");
        return Err(Failure::input(what));
    };
    Ok(Setup {
        device: device.to_owned(),
        scheduler: one.spec.versioned(),
        tunables: one.spec.tunables.clone().into_iter().collect(),
        seed,
        ..Setup::default()
    })
}

/// Returns the preset file of a device, if its text is a path.
pub fn preset_file(device: &str) -> Option<&Path> {
    let base = device.split(',').next()?;
    let path = !base.contains('=') && (base.ends_with(".toml") || base.contains('/'));
    path.then_some(Path::new(base))
}

/// Returns the preset files among the requested devices.
pub fn files(b: &Bench) -> impl Iterator<Item = &Path> {
    b.device.iter().filter_map(|d| preset_file(d))
}

/// Prints a note about the memory that the devices need, or returns an error if there is too
/// little. Call this before [`of`], which opens some devices.
pub fn memory(b: &Bench, usual: &Usual, quiet: bool) -> Result<(), Failure> {
    let devices = usual.devices(b);
    let schedulers = match guests::is_asked(b) {
        true => guests::schedulers(b)?.len(),
        false => usual.typed(b)?.len(),
    };
    let runs = devices.len() * schedulers;
    for d in &devices {
        seekwell_device::footprint(d).map_err(|e| Failure::input(e.to_string()))?;
    }
    let devices = devices.iter().map(String::as_str);
    crate::memory::check(devices, threads(b).min(runs), b.force_memory, quiet)
}

/// Returns the number of threads to use.
pub fn threads(b: &Bench) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    b.threads.map_or(cores, |n| n as usize)
}
