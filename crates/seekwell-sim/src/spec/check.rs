//! Reports all faults of a specification together, and fills in all defaults.

use super::{BackgroundSpec, MachineSpec, RunSpec, SpecErrors, Substrate, WorkloadSpec, run};
use crate::notation::{cgroup, machine, read_ahead, scheduler, words, workload};
use seekwell_core::Era;
use seekwell_core::spec::{MAX_BACKGROUND, MAX_LIMIT_S, SPEC_VERSION};
use seekwell_device::{describe, files_of, with_files};

pub use crate::notation::queue::queue;

/// Returns the same run with all defaults filled in. Equal runs then have equal bytes and equal
/// hashes.
///
/// # Errors
/// Returns all faults, each with its field.
pub fn checked(spec: &RunSpec) -> Result<RunSpec, SpecErrors> {
    let mut errors = SpecErrors::default();
    let mut whole = spec.clone();
    if spec.version != SPEC_VERSION {
        let what = format!("this Seekwell runs version {SPEC_VERSION}");
        errors.push("version", what);
    }
    if spec.substrate != Substrate::Sim {
        let name = spec.substrate.name();
        let what = format!("\"{name}\" is not simulated: only sim is supported here");
        errors.push("substrate", what);
    }
    errors.take("queue", queue(&spec.queue));
    if let Some(s) = spec.limit_s.filter(|s| !(1..=MAX_LIMIT_S).contains(s)) {
        errors.push("limit_s", format!("{s} is outside 1..={MAX_LIMIT_S}"));
    }
    whole.device.spec = spec.device.spec.trim().to_owned();
    let device = with_files(&spec.device.files, || {
        describe(&whole.device.spec)?;
        files_of(&whole.device.spec)
    });
    let device = errors.take("device", device.map_err(|e| words::fault(&e)));
    let device_good = device.is_some();
    whole.device.files = device.unwrap_or_default();
    let found = errors.take("scheduler", scheduler::checked(&spec.scheduler));
    if let Some((_, s)) = &found {
        whole.scheduler = s.clone();
    }
    if let Some(w) = errors.take("workload", workload::checked(&spec.workload)) {
        whole.workload = w;
    }
    whole.beside = check_background(spec, &mut errors);
    whole.machine = match (&spec.workload, &spec.machine) {
        (WorkloadSpec::Trace { .. }, None) => None,
        (WorkloadSpec::Trace { .. }, Some(_)) => {
            let what = "a trace was recorded below a machine and does not use one";
            errors.push("machine", what);
            None
        }
        (_, m) => {
            let m = m.clone().unwrap_or_default();
            let era = found.as_ref().map(|f| f.0.era);
            let config = machine::config(&m, era.unwrap_or(Era::Mq), 0);
            let config = errors.take("machine", config);
            if let Some(e) = era.filter(|e| !e.is_mq()) {
                needs_blk_mq(&m, e, &mut errors);
            }
            config.map(|mut c| {
                if m.read_ahead_kb.is_none() {
                    let usual = c.constants.readahead_pages;
                    let device = &whole.device;
                    c.constants.readahead_pages = with_files(&device.files, || {
                        read_ahead::pages(&device.spec, c.era, usual)
                    });
                }
                machine::stated(&m, &c)
            })
        }
    };
    // Members of arrays and hosts of guests also have schedulers.
    if device_good && errors.0.is_empty() {
        let below = with_files(&whole.device.files, || run::setup(&whole).validate());
        let below = below.map_err(|e| SpecErrors::single("", e.to_string()));
        errors.take("device", below);
    }
    errors.or(whole)
}

/// Reports cgroup limits that exist only in the multi-queue layer, if the scheduler uses the other
/// layer.
fn needs_blk_mq(m: &MachineSpec, era: Era, errors: &mut SpecErrors) {
    let all = cgroup::all(&m.cgroups).unwrap_or_default();
    if let Some(c) = all.iter().find(|c| c.needs_blk_mq()) {
        let what = format!(
            "cgroup {} has a limit that is modelled only for blk-mq, but the scheduler belongs to \
             {}: choose `none`, mq-deadline, kyber, bfq or adios",
            c.name,
            era.name()
        );
        errors.push("machine.cgroups", what);
    }
}

/// Returns the background workloads with all defaults filled in.
fn check_background(spec: &RunSpec, errors: &mut SpecErrors) -> Vec<BackgroundSpec> {
    if spec.beside.len() > MAX_BACKGROUND {
        let what = format!(
            "{} programs are more than {MAX_BACKGROUND}",
            spec.beside.len()
        );
        errors.push("beside", what);
    }
    if matches!(spec.workload, WorkloadSpec::Trace { .. }) && !spec.beside.is_empty() {
        let what = "a trace was recorded below a machine: it cannot have background programs";
        errors.push("beside", what);
    }
    let one = |(i, b): (usize, &BackgroundSpec)| {
        let workload = errors.take(&format!("beside[{i}]"), workload::background_spec(b))?;
        let again = b.again;
        Some(BackgroundSpec { again, workload })
    };
    spec.beside.iter().enumerate().filter_map(one).collect()
}

/// Makes the request size limits of a comparison equal: runs without an own limit get the smallest
/// default. All runs must use the same device. See [`crate::Setup::align_requests`].
///
/// # Errors
/// Returns faults of the device or of a scheduler.
pub fn aligned(group: &mut [RunSpec]) -> Result<(), SpecErrors> {
    let Some(first) = group.first() else {
        return Ok(());
    };
    let files = first.device.files.clone();
    let mut setups: Vec<crate::Setup> = group.iter().map(run::setup).collect();
    let done = with_files(&files, || crate::Setup::align_requests(&mut setups));
    done.map_err(|e| SpecErrors::single("device", e.to_string()))?;
    for (spec, setup) in group.iter_mut().zip(setups) {
        spec.queue.max_sectors_kb = setup.max_sectors_kb;
        spec.queue.max_segments = setup.max_segments;
    }
    Ok(())
}
