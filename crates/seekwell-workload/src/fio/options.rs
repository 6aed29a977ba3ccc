//! The options of a job: names, values and errors.

use super::engines::engine;
use super::ignored::{ignored, refusal, usual, verifies};
use super::job::{Blocks, ExitWhat, Flow, Hint, Job, LatencyTarget, Pattern, Steady, SteadyOf};
use super::shapes::{
    distribution, lists, pattern, range, rates, service, split, steady, sync_range,
};
use super::values::{Reading, list, time};
use seekwell_core::{IoPrio, NSEC_PER_SEC, NSEC_PER_USEC, Nanos};

/// Maximum number of clones of a job.
const MAX_CLONES: u64 = 1024;

/// What an option did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The option changed the job.
    Set,
    /// The option does not change the requests of a job.
    Ignored,
    /// The option changed the job, or was ignored, with a note for the user.
    Noted(String),
}

/// Sets an option of a job. Returns the error text if the value is invalid.
pub(super) fn set(
    job: &mut Job,
    key: &str,
    value: Option<&str>,
    reading: Reading,
) -> Result<Effect, String> {
    let text = value.unwrap_or_default();
    let size = |t: &str| {
        reading
            .bytes(t)
            .ok_or_else(|| format!("{key}={text}: not a valid size; write for example 64k or 1g"))
    };
    let amount = || {
        let n = reading.amount(text);
        n.ok_or_else(|| format!("{key}={text}: not a valid size; write for example 64k, 1g or 20%"))
    };
    let block = |t: &str| -> Result<u32, String> {
        let n = reading.bytes(t).and_then(|n| u32::try_from(n).ok());
        n.filter(|n| (1..=1 << 30).contains(n))
            .ok_or_else(|| format!("{key}={text}: a block must have 1 byte to 1 GiB"))
    };
    let number = |lo: u64, hi: u64| -> Result<u64, String> {
        let n = reading.bytes(text).filter(|n| (lo..=hi).contains(n));
        n.ok_or_else(|| format!("{key}={text}: not a number from {lo} to {hi}"))
    };
    let flag = || match value {
        None | Some("1" | "true" | "yes" | "on" | "") => Ok(true),
        Some("0" | "false" | "no" | "off") => Ok(false),
        // fio takes any number other than 0.
        Some(v) if v.parse::<i64>().is_ok() => Ok(true),
        Some(v) => Err(format!("{key}={v}: not 0 or 1")),
    };
    // The unit of a number without a unit is seconds or microseconds, depending on the option.
    let span = |unit: u64| -> Result<Nanos, String> {
        let n = time(text, unit);
        n.map(Nanos)
            .ok_or_else(|| format!("{key}={text}: not a valid time; write for example 30s"))
    };
    match usual(key) {
        "rw" => {
            let identical = job.pattern.identical;
            job.pattern = Pattern {
                identical,
                ..pattern(key, text, reading)?
            };
        }
        "rw_sequencer" => {
            job.pattern.identical = match text {
                "sequential" => false,
                "identical" => true,
                _ => return Err(format!("{key}={text}: write one of sequential, identical")),
            }
        }
        "rwmixread" => job.mix_read = number(0, 100)? as u32,
        "rwmixwrite" => job.mix_read = 100 - number(0, 100)? as u32,
        "bs" => lists(
            text,
            &|t| block(t).map(|n| Blocks::Range(n, n)),
            &mut job.blocks,
        )?,
        "bsrange" => range(key, text, &block, &mut job.blocks)?,
        "bssplit" => lists(text, &|t| split(t, text, &block), &mut job.blocks)?,
        "blockalign" => lists(text, &block, &mut job.align)?,
        "size" => job.size = Some(amount()?),
        "filesize" => job.filesize = Some(size(text)?),
        "io_size" => job.io_size = Some(amount()?),
        "offset" => job.offset = amount()?,
        "offset_increment" => job.offset_increment = amount()?,
        "offset_align" if number(0, 1 << 30)? <= 512 => {}
        "fill_device" => job.fill_device = flag()?,
        "number_ios" => job.number_ios = Some(number(0, u64::MAX)?).filter(|n| *n > 0),
        "numjobs" => job.numjobs = number(1, MAX_CLONES)? as u32,
        "nrfiles" => job.nrfiles = number(1, 1 << 20)? as u32,
        "filename" => return filename(job, text),
        "filename_format" => {
            let base = text.rsplit('/').next().unwrap_or_default();
            job.format = (!base.is_empty()).then(|| base.to_owned());
        }
        "file_service_type" => job.service = service(text)?,
        "fallocate" => {
            job.fallocate = match text {
                "" | "1" | "native" | "posix" | "keep" => true,
                "0" | "none" | "truncate" => false,
                _ => {
                    return Err(format!(
                        "fallocate={text}: write one of native, posix, none"
                    ));
                }
            }
        }
        "overwrite" => job.overwrite = flag()?,
        "pre_read" => job.pre_read = flag()?,
        "create_only" => job.create_only = flag()?,
        "ioengine" => {
            let (kind, note) = engine(text)?;
            job.engine = kind;
            job.own_device = super::engines::has_own_device(text);
            return Ok(note.map_or(Effect::Set, Effect::Noted));
        }
        "cpuload" => job.cpu.0 = number(0, 100)? as u32,
        "cpuchunks" => job.cpu.1 = Nanos(number(1, 1 << 40)?.saturating_mul(NSEC_PER_USEC)),
        "iodepth" => job.depth = number(1, 1 << 20)?.min(4096) as u32,
        "iodepth_batch" => job.batch = number(1, 1 << 20)?.min(4096) as u32,
        // With 0, fio collects the completions that are there. The run waits for one.
        "iodepth_batch_complete_min" => job.batch_complete = number(0, 4096)?.max(1) as u32,
        "iodepth_low" => job.low = Some(number(1, 4096)? as u32),
        "direct" => job.direct = flag()?,
        "buffered" => job.direct = !flag()?,
        "sync" => match text {
            "dsync" => job.dsync = true,
            "none" | "0" => (job.sync, job.dsync) = (false, false),
            "" | "1" | "sync" => job.sync = true,
            _ => return Err(format!("sync={text}: write one of none, sync, dsync, 0, 1")),
        },
        "fsync" => job.fsync = number(0, u64::MAX)?,
        "fdatasync" => job.fdatasync = number(0, u64::MAX)?,
        "sync_file_range" => {
            let bad = || format!("{key}={text}: write for example wait_before,write:8");
            job.sync_range = Some(sync_range(text).ok_or_else(bad)?);
        }
        "end_fsync" => job.end_fsync = flag()?,
        "fsync_on_close" => job.fsync_on_close = flag()?,
        "fadvise_hint" => {
            job.fadvise_hint = match text {
                "none" => Hint::None,
                "sequential" => Hint::Sequential,
                "random" => Hint::Random,
                "noreuse" => Hint::None,
                _ if flag()? => Hint::Pattern,
                _ => Hint::None,
            }
        }
        "invalidate" => job.invalidate = flag()?,
        "rate" => job.rate = rates(key, text, &|t| reading.bytes(t))?,
        "rate_iops" => job.rate_iops = rates(key, text, &|t| reading.bytes(t))?,
        "rate_process" => {
            job.poisson = match text {
                "linear" => false,
                "poisson" => true,
                _ => return Err(format!("{key}={text}: write one of linear, poisson")),
            }
        }
        "rate_ignore_thinktime" => job.rate_without_thinktime = flag()?,
        "thinktime" => job.thinktime = span(NSEC_PER_USEC)?,
        "thinktime_iotime" => job.thinktime_iotime = span(NSEC_PER_SEC)?,
        "lockfile" if text == "none" => return Ok(Effect::Ignored),
        "thinktime_blocks" => job.thinktime_blocks = number(1, u64::MAX)?,
        // The pause follows the completion of a call, or its submission.
        "thinktime_blocks_type" if matches!(text, "complete" | "issue") => {}
        "runtime" => job.runtime = Some(span(NSEC_PER_SEC)?).filter(|t| *t > Nanos::ZERO),
        "time_based" => job.time_based = flag()?,
        "ramp_time" => job.ramp_time = span(NSEC_PER_SEC)?,
        "startdelay" => {
            // After a range, each clone waits a random time. The run takes the shortest time.
            let least = text.split('-').next().unwrap_or_default();
            let n = time(least, NSEC_PER_SEC);
            job.startdelay =
                Nanos(n.ok_or_else(|| {
                    format!("{key}={text}: not a valid time; write for example 30s")
                })?);
        }
        "stonewall" => job.stonewall = flag()?,
        "wait_for" => job.wait_for = Some(text.to_owned()),
        "exitall" => job.exitall = flag()?,
        "exit_what" => {
            job.exit_what = match text {
                "group" => ExitWhat::Group,
                "stonewall" => ExitWhat::Stonewall,
                "all" => ExitWhat::All,
                _ => return Err(format!("{key}={text}: write one of group, stonewall, all")),
            }
        }
        "new_group" => job.new_group = flag()?,
        "flow_id" => flow(job).id = number(0, u32::MAX.into())? as u32,
        "flow" => flow(job).weight = number(0, 1000)? as u32,
        "flow_sleep" => flow(job).sleep = span(NSEC_PER_USEC)?,
        "latency_target" => latency(job).target = span(NSEC_PER_USEC)?,
        "latency_window" => latency(job).window = span(NSEC_PER_USEC)?,
        "latency_percentile" => {
            let n = text
                .parse::<f64>()
                .ok()
                .filter(|n| (1.0..=100.0).contains(n));
            latency(job).percentile =
                n.ok_or_else(|| format!("{key}={text}: not a number from 1 to 100"))?;
        }
        "latency_run" => latency(job).run = flag()?,
        "steadystate" => job.steady = Some(steady(text, job.steady)?),
        "steadystate_duration" => steady_state(job).seconds = span(NSEC_PER_SEC)?.0 / NSEC_PER_SEC,
        "steadystate_ramp_time" => steady_state(job).ramp = span(NSEC_PER_SEC)?,
        "loops" => job.loops = number(1, 1 << 40)?,
        "random_distribution" => job.distribution = distribution(text)?,
        "percentage_random" => {
            let percent = |t: &str| t.parse::<u8>().ok().filter(|n| *n <= 100);
            let bad = || format!("{key}={text}: not a number from 0 to 100");
            lists(
                text,
                &|t| percent(t).ok_or_else(bad),
                &mut job.random_percent,
            )?;
        }
        "norandommap" => job.norandommap = flag()?,
        "zonemode" | "zonesize" | "zonerange" | "zonecapacity" | "zoneskip" | "max_open_zones" => {
            return zoning(job, key, text, reading);
        }
        "cmdprio_percentage" | "cmdprio_bssplit" | "cmdprio_class" | "cmdprio" => {
            let priorities = job.priorities.get_or_insert_default();
            priorities.set(key, text, reading)?;
        }
        "prio" => job.prio = prio(job.prio, None, Some(number(0, 7)?)),
        "prioclass" => job.prio = prio(job.prio, Some(number(0, 3)?), None),
        "nice" => {
            let n = text.parse::<i8>().ok().filter(|n| (-20..=19).contains(n));
            job.nice = n.ok_or_else(|| format!("nice={text}: not -20..19"))?;
        }
        "cgroup_weight" => job.cgroup_weight = Some(number(1, 1000)? as u32),
        "name" | "cgroup" => {}
        "kb_base" => match text {
            "1000" | "1024" => {}
            _ => return Err(format!("{key}={text}: write 1000 or 1024")),
        },
        k if verifies(k) => {
            return Ok(Effect::Noted(
                "verify: data are not verified, and the reads that verify them are not made"
                    .to_owned(),
            ));
        }
        k if ignored(k) => return Ok(Effect::Ignored),
        k => return Err(refusal(k)),
    }
    Ok(Effect::Set)
}

/// Sets one of the options of zones.
fn zoning(job: &mut Job, key: &str, text: &str, reading: Reading) -> Result<Effect, String> {
    let size = reading.bytes(text).filter(|n| *n <= 1 << 50);
    let bad = || format!("{key}={text}: not a valid size; write for example 256m");
    let zones = job.zones.get_or_insert_default();
    match key {
        "zonemode" => match text {
            "none" => job.zones = None,
            "strided" => (zones.sequential, job.strided) = (false, true),
            "zbd" => zones.sequential = true,
            _ => return Err(format!("{key}={text}: write one of none, strided, zbd")),
        },
        "zonesize" => zones.size = size.ok_or_else(bad)?,
        "zonerange" => zones.range = size.ok_or_else(bad)?,
        "zoneskip" => zones.skip = size.ok_or_else(bad)?,
        "max_open_zones" => zones.open = size.ok_or_else(bad)?,
        // The modelled zones can be written completely.
        _ => return Ok(Effect::Ignored),
    }
    Ok(Effect::Set)
}

/// Returns the flow of a job, with the defaults of fio.
fn flow(job: &mut Job) -> &mut Flow {
    job.flow.get_or_insert(Flow {
        id: 0,
        weight: 0,
        sleep: Nanos::ZERO,
    })
}

/// Returns the latency target of a job, with the defaults of fio.
fn latency(job: &mut Job) -> &mut LatencyTarget {
    job.latency.get_or_insert(LatencyTarget {
        target: Nanos::ZERO,
        window: Nanos(NSEC_PER_SEC),
        percentile: 100.0,
        run: false,
    })
}

/// Returns the steady state of a job. Without the option steadystate, the limit is never reached.
fn steady_state(job: &mut Job) -> &mut Steady {
    job.steady.get_or_insert(Steady {
        of: SteadyOf::Iops,
        slope: false,
        limit: -1.0,
        percent: false,
        seconds: 0,
        ramp: Nanos::ZERO,
    })
}

/// Sets the files or the device of a job. Outside the directory of the run there are no files, so
/// only the last part of a path is used.
fn filename(job: &mut Job, text: &str) -> Result<Effect, String> {
    let names: Vec<String> = list(text, ':')
        .into_iter()
        .filter(|n| !n.is_empty())
        .collect();
    if names.is_empty() {
        return Err(format!(
            "filename={text}: write the name of a file or device"
        ));
    }
    let devices = names.iter().filter(|n| is_device(n)).count();
    if devices > 0 && devices < names.len() {
        return Err(format!(
            "filename={text}: a job uses either files or the device of the run"
        ));
    }
    job.raw = devices > 0;
    job.filenames = match job.raw {
        true => names.clone(),
        false => names
            .iter()
            .map(|n| file_name(n, text))
            .collect::<Result<_, _>>()?,
    };
    Ok(Effect::Set)
}

/// Returns true if the name means the device of the run.
pub(super) fn is_device(name: &str) -> bool {
    let device = name.starts_with("/dev/") && !name.starts_with("/dev/shm/");
    device || name.starts_with(r"\\.\")
}

/// Returns the I/O priority after one option. Class and level are separate options in any order. A
/// level without a class means the best-effort class.
fn prio(old: IoPrio, class: Option<u64>, level: Option<u64>) -> IoPrio {
    let class = class.unwrap_or(match old.class as u64 {
        0 => 2,
        c => c,
    });
    let level = level.unwrap_or(u64::from(old.level));
    IoPrio::from_numbers(class, level).unwrap_or(old)
}

/// Returns the last part of a path as the name of a file in the directory of the run.
fn file_name(path: &str, text: &str) -> Result<String, String> {
    let base = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let bad = base.is_empty()
        || base.len() > 200
        || base.contains([':', '\0'])
        || base == ".."
        || base == ".";
    match bad {
        true => Err(format!(
            "filename={text}: does not end with the name of a file"
        )),
        false => Ok(base.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::{Amount, Zoning};
    use super::*;

    fn after(options: &[(&str, &str)]) -> Result<Job, String> {
        let mut job = Job::default();
        for (key, value) in options {
            set(&mut job, key, Some(value), Reading::default())?;
        }
        Ok(job)
    }

    #[test]
    fn a_path_is_a_name_in_the_directory_of_the_run() {
        let job = after(&[("filename", "/mnt/a/one:/mnt/b/two")]).expect("files");
        assert_eq!(job.filenames, ["one", "two"]);
        assert!(!job.raw);
        for device in ["/dev/sda", r"\\.\PhysicalDrive0"] {
            assert!(
                after(&[("filename", device)]).expect("a device").raw,
                "{device}"
            );
        }
        assert!(!after(&[("filename", "/dev/shm/a")]).expect("a file").raw);
        for bad in ["..", "/mnt/..", "/", "", "a/."] {
            assert!(after(&[("filename", bad)]).is_err(), "{bad}");
        }
        let mixed = after(&[("filename", "/dev/sda:file")]);
        assert!(mixed.is_err_and(|e| e.contains("either files or the device")));
    }

    #[test]
    fn amounts_and_zones_are_taken_as_written() {
        let job = after(&[
            ("size", "20%"),
            ("offset", "4z"),
            ("offset_increment", "1g"),
        ]);
        let job = job.expect("amounts");
        assert_eq!(job.size, Some(Amount::Percent(20.0)));
        assert_eq!(job.offset, Amount::Zones(4));
        let job = after(&[
            ("zonemode", "strided"),
            ("zonesize", "1m"),
            ("zoneskip", "2m"),
        ]);
        let zones = job.expect("zones").zones.expect("zones");
        assert_eq!(
            (zones.size, zones.skip, zones.sequential),
            (1 << 20, 2 << 20, false)
        );
        let none: Option<Zoning> = after(&[("zonesize", "1m"), ("zonemode", "none")])
            .expect("no zones")
            .zones;
        assert_eq!(none, None);
    }

    #[test]
    fn options_without_an_effect_are_told_apart_from_unknown_options() {
        let mut job = Job::default();
        let mut one = |key: &str, value: &str| set(&mut job, key, Some(value), Reading::default());
        assert_eq!(one("ratemin", "1k"), Ok(Effect::Ignored));
        assert!(matches!(one("verify", "md5"), Ok(Effect::Noted(_))));
        assert!(one("frobnicate", "1").is_err_and(|e| e.contains("\"frobnicate\"")));
        assert!(one("read_iolog", "x").is_err_and(|e| e.contains("seekwell replay")));
    }
}
