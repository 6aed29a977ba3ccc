//! Checks of the combinations of options, and the values that follow from several options.

use super::FioError;
use super::job::{Amount, Dir, Engine, Job, Zoning};
use super::shapes::whole_sectors;
use crate::params::bytes_text;
use seekwell_core::Nanos;
use std::collections::BTreeSet;

/// Size of a zone that is assumed if zonemode=zbd has no size, in bytes. Most host-managed disks
/// have zones of this size.
const USUAL_ZONE: u64 = 256 << 20;

/// Size that is assumed for a file that fio would find, in bytes.
const USUAL_SIZE: u64 = 1 << 30;

/// Completes the jobs of a file. `fail` makes an error of a job from the line of its section.
pub(super) fn finish<L>(
    jobs: &mut [(Job, L)],
    warnings: &mut Vec<String>,
    fail: &dyn Fn(&L, String) -> FioError,
) -> Result<(), FioError> {
    group(jobs);
    for (job, _) in jobs
        .iter_mut()
        .filter(|j| j.0.own_device && j.0.size.is_none())
    {
        // The store of the engine has a size, like a device.
        job.raw = true;
        if job.filenames.is_empty() {
            job.filenames = vec!["/dev/store".to_owned()];
        }
    }
    for (job, _) in jobs.iter_mut() {
        let empty = |n: &String| matches!(n.as_str(), "/dev/null" | "/dev/zero" | "/dev/full");
        if job.raw && job.filenames.iter().all(empty) {
            (job.raw, job.engine) = (false, Engine::Null);
            warnings.push(format!(
                "job {}: {} has no disk, so no scheduler has any work",
                job.name,
                job.filenames.join(":")
            ));
        }
    }
    let names: Vec<String> = jobs.iter().map(|j| j.0.name.clone()).collect();
    let sized: Vec<Job> = jobs.iter().map(|j| j.0.clone()).collect();
    let raw = jobs.first().is_some_and(|j| j.0.raw);
    for (at, (job, line)) in jobs.iter_mut().enumerate() {
        let done = complete(job, raw, &sized, warnings).and_then(|()| match &job.wait_for {
            Some(name) if !names[..at].contains(name) => Err(format!(
                "wait_for={name}: no job of this name is above this job"
            )),
            _ => Ok(()),
        });
        let name = job.name.clone();
        done.map_err(|what| fail(line, format!("job {name}: {what}")))?;
    }
    let mut devices: BTreeSet<&str> = BTreeSet::new();
    for (job, _) in jobs.iter().filter(|j| j.0.raw) {
        devices.extend(job.filenames.iter().map(String::as_str));
    }
    if devices.len() > 1 {
        let names: Vec<&str> = devices.into_iter().collect();
        warnings.push(format!(
            "{} all mean the one device of the run, which gets the requests of all of them",
            names.join(", ")
        ));
    }
    Ok(())
}

/// Numbers the reporting groups.
fn group<L>(jobs: &mut [(Job, L)]) {
    let mut number = 0;
    for (at, (job, _)) in jobs.iter_mut().enumerate() {
        if at > 0 && (job.new_group || job.stonewall) {
            number += 1;
        }
        job.group = number;
    }
}

/// Checks a job. `raw` tells whether the first job uses the device, and `all` has all jobs.
fn complete(
    job: &mut Job,
    raw: bool,
    all: &[Job],
    warnings: &mut Vec<String>,
) -> Result<(), String> {
    let filed = !matches!(job.engine, Engine::Cpu | Engine::Null);
    if job.raw != raw
        && filed
        && all
            .iter()
            .any(|j| j.raw != job.raw && j.engine != Engine::Cpu)
    {
        return Err(
            "filename names a device in one job and files in another job: use only one of these"
                .into(),
        );
    }
    if job.raw
        && matches!(
            job.engine,
            Engine::Falloc | Engine::Truncate | Engine::Files(_)
        )
    {
        return Err("this ioengine works on files: name no device as filename".into());
    }
    zones(job, warnings)?;
    sizes(job, all, warnings)?;
    if job.time_based && job.runtime.is_none() {
        warnings.push(format!(
            "job {}: time_based has no effect without runtime",
            job.name
        ));
        job.time_based = false;
    }
    if job.engine == Engine::Cpu {
        cpu(job)?;
    }
    if job.direct && filed && !whole_sectors(job) {
        return Err(
            "direct=1: block sizes, offset and skipped bytes must be multiples of 512".into(),
        );
    }
    if job.pattern.trims && !job.raw && filed {
        warnings.push(format!(
            "job {}: a trim of a file drops its cached pages; its blocks stay allocated",
            job.name
        ));
    }
    if job.latency.is_some_and(|l| l.target == Nanos::ZERO) {
        job.latency = None;
    }
    if let Some(steady) = &mut job.steady {
        if steady.limit >= 0.0 && steady.seconds == 0 {
            return Err("steadystate needs steadystate_duration".into());
        }
        steady.seconds = steady.seconds.clamp(1, 1 << 20);
    }
    job.flow = job.flow.filter(|f| f.weight > 0);
    queue(job, warnings);
    Ok(())
}

/// Determines the size of the region.
fn sizes(job: &mut Job, all: &[Job], warnings: &mut Vec<String>) -> Result<(), String> {
    let dirs = [Dir::Read, Dir::Write, Dir::Trim].into_iter();
    let used = dirs.filter(|d| job.does(*d));
    let largest = used
        .map(|d| job.blocks[d as usize].max())
        .max()
        .unwrap_or(0);
    // A percentage of a file is known if the size of the file is.
    if let Some(each) = job.filesize.filter(|_| !job.raw) {
        let resolved = job.resolved(each.saturating_mul(job.files()), 0);
        (job.size, job.io_size) = (resolved.size, resolved.io_size);
        job.offset = resolved.offset;
    }
    if !job.raw {
        let options = [
            ("size", job.size),
            ("io_size", job.io_size),
            ("offset", Some(job.offset)),
            ("offset_increment", Some(job.offset_increment)),
        ];
        let open = options
            .iter()
            .find(|o| matches!(o.1, Some(Amount::Percent(p)) if p > 0.0));
        if let Some((name, _)) = open {
            return Err(format!(
                "{name} is a percentage of a file of unknown size: add filesize, or use a device"
            ));
        }
    }
    let zone = job.zones.map_or(0, |z| z.range);
    for amount in [&mut job.offset, &mut job.offset_increment]
        .into_iter()
        .chain(&mut job.size)
        .chain(&mut job.io_size)
    {
        if matches!(amount, Amount::Zones(_)) {
            if zone == 0 {
                return Err("a size in zones needs zonesize".into());
            }
            *amount = Amount::Bytes(amount.of(0, zone));
        }
    }
    if job.size.is_none_or(|s| s == Amount::Bytes(0)) {
        let all_files = job.filesize.unwrap_or(0).checked_mul(job.files());
        let all_files = all_files.ok_or("filesize is too large")?;
        job.size = (all_files > 0).then_some(Amount::Bytes(all_files));
    }
    let needs = !job.raw && !matches!(job.engine, Engine::Cpu | Engine::Files(_));
    if needs && job.size.is_none() && job.fill_device && job.pattern.writes {
        return Ok(());
    }
    if needs && job.size.is_none() {
        // fio takes the size of the file, which another job makes here.
        let mut others = all.iter().filter(|j| !j.filenames.is_empty());
        let made = |j: &Job| j.filenames == job.filenames && (j.size.is_some() || j.fill_device);
        if others.any(made) {
            job.whole_file = true;
            return Ok(());
        }
        if job.filenames.is_empty() || job.engine == Engine::Null {
            return Err("size is missing: add size to the job, or --param size=1g".into());
        }
        warnings.push(format!(
            "job {}: fio takes the size of the existing file; 1 GiB is assumed, --param size=SIZE \
             changes it",
            job.name
        ));
        job.size = Some(Amount::Bytes(USUAL_SIZE));
    }
    if let Some(Amount::Bytes(size)) = job.size
        && matches!(job.engine, Engine::Sync | Engine::Async | Engine::Null)
        && job.each() < u64::from(largest)
    {
        return Err(format!(
            "size={size} is less than one block of {largest} per file"
        ));
    }
    let end = job.length().checked_mul(job.files());
    if end.is_none_or(|end| end > 1 << 50) {
        return Err("size and offset go beyond 1 PiB".into());
    }
    Ok(())
}

/// Completes the zones. A size without a mode means strided zones.
fn zones(job: &mut Job, warnings: &mut Vec<String>) -> Result<(), String> {
    let Some(zones) = &mut job.zones else {
        return Ok(());
    };
    if zones.sequential && zones.size == 0 {
        zones.size = USUAL_ZONE;
        warnings.push(format!(
            "job {}: the device of the run has no zones; zones of {} are assumed",
            job.name,
            bytes_text(USUAL_ZONE)
        ));
    }
    if zones.range == 0 || zones.sequential {
        zones.range = zones.size;
    }
    let plain = Zoning {
        skip: zones.skip,
        open: zones.open,
        ..Zoning::default()
    };
    if *zones == plain && !job.strided {
        // Without a size of a zone, the other options have no effect.
        job.zones = None;
        return Ok(());
    }
    if zones.size == 0 {
        return Err("zonemode=strided needs zonesize".into());
    }
    if zones.size < u64::from(job.smallest()) {
        return Err("zonesize is less than a block".into());
    }
    Ok(())
}

/// Checks a job that only uses the CPU.
fn cpu(job: &mut Job) -> Result<(), String> {
    if job.cpu.0 == 0 {
        return Err("ioengine=cpuio needs cpuload".into());
    }
    if job.runtime.is_none() {
        return Err("ioengine=cpuio needs runtime, because it has no other end".into());
    }
    Ok(())
}

/// Checks the number of calls in flight.
fn queue(job: &mut Job, warnings: &mut Vec<String>) {
    if job.engine != Engine::Async && job.depth > 1 {
        if job.engine == Engine::Sync {
            warnings.push(format!(
                "job {}: iodepth has no effect without libaio or io_uring; depth 1 is used",
                job.name
            ));
        }
        job.depth = 1;
    }
    if job.batch > job.depth || job.batch_complete > job.depth {
        if job.engine == Engine::Async {
            warnings.push(format!(
                "job {}: a batch cannot be larger than iodepth; {} is used",
                job.name, job.depth
            ));
        }
        job.batch = job.batch.min(job.depth);
        job.batch_complete = job.batch_complete.min(job.depth);
    }
    if job.engine == Engine::Async && !job.direct && job.depth > 1 && job.pattern.writes {
        warnings.push(format!(
            "job {}: buffered writes are not asynchronous, so iodepth has no effect on them",
            job.name
        ));
    }
}
