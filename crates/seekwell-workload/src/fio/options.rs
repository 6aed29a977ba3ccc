//! The options of a job: names, values and errors.

use super::job::{Blocks, Dir, Distribution, Engine, Hint, Job, Pattern, Service};
use crate::params::{parse_bytes, parse_time};
use seekwell_core::{IoPrio, NSEC_PER_SEC, NSEC_PER_USEC, Nanos};

/// Options about the process, contents, logs and reports. They have no effect, because all files
/// are in the directory of the run, every run records time series, and the run has its own seed.
const IGNORED: &[&str] = &[
    "group_reporting",
    "directory",
    "thread",
    "iodepth_batch_complete_max",
    "randrepeat",
    "randseed",
    "allrandrepeat",
    "description",
    "cpus_allowed",
    "cpus_allowed_policy",
    "cpumask",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "mem",
    "iomem",
    "iomem_align",
    "refill_buffers",
    "scramble_buffers",
    "zero_buffers",
    "compress",
    "buffer_compress_percentage",
    "buffer_compress_chunk",
    "buffer_pattern",
    "dedupe_percentage",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "write_hist_log",
    "log_avg_msec",
    "log_hist_msec",
    "gtod_reduce",
    "clocksource",
    "percentile_list",
    "lat_percentiles",
    "clat_percentiles",
    "unified_rw_reporting",
    "create_serialize",
    "create_on_open",
    "create_fsync",
    "unlink",
    "openfiles",
    "new_group",
];

/// Maximum number of clones of a job.
const MAX_CLONES: u64 = 1024;

/// Returns the usual name of an option that has several names.
pub(super) fn usual(key: &str) -> &str {
    match key {
        "readwrite" => "rw",
        "blocksize" => "bs",
        "blocksize_range" => "bsrange",
        "io_limit" => "io_size",
        "iodepth_batch_submit" => "iodepth_batch",
        "iodepth_batch_complete" => "iodepth_batch_complete_min",
        "buffered" => "direct",
        "timeout" => "runtime",
        "wait_for_previous" => "stonewall",
        other => other,
    }
}

/// Sets an option of a job. Returns a warning if the option is ignored, and the error text if the
/// value is invalid.
pub(super) fn set(job: &mut Job, key: &str, value: Option<&str>) -> Result<Option<String>, String> {
    let text = value.unwrap_or_default();
    let bytes = || {
        parse_bytes(text)
            .ok_or_else(|| format!("{key}={text}: not a valid size; write for example 64k or 1g"))
    };
    let block = |t: &str| -> Result<u32, String> {
        let n = parse_bytes(t).and_then(|n| u32::try_from(n).ok());
        n.filter(|n| (512..=1 << 30).contains(n))
            .ok_or_else(|| format!("{key}={text}: a block must have 512 bytes to 1 GiB"))
    };
    let number = |lo: u64, hi: u64| -> Result<u64, String> {
        let n = text.parse::<u64>().ok().filter(|n| (lo..=hi).contains(n));
        n.ok_or_else(|| format!("{key}={text}: not a number from {lo} to {hi}"))
    };
    let flag = || match value {
        None | Some("1" | "true" | "yes") => Ok(true),
        Some("0" | "false" | "no") => Ok(false),
        Some(v) => Err(format!("{key}={v}: not 0 or 1")),
    };
    // The unit of a number without a unit is seconds or microseconds, depending on the option.
    let time = |unit: u64| -> Result<Nanos, String> {
        let n = match text.parse::<u64>() {
            Ok(n) => n.checked_mul(unit),
            Err(_) => parse_time(text),
        };
        n.map(Nanos)
            .ok_or_else(|| format!("{key}={text}: not a valid time; write for example 30s"))
    };
    match key {
        "rw" | "readwrite" => {
            let identical = job.pattern.identical;
            job.pattern = Pattern {
                identical,
                ..pattern(key, text)?
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
        "bs" | "blocksize" => {
            lists(job, text, &|t| block(t).map(|n| Blocks::Range(n, n)))?;
        }
        "bsrange" | "blocksize_range" => {
            let range = |t: &str| -> Result<Blocks, String> {
                let (lo, hi) = t
                    .split_once('-')
                    .ok_or_else(|| format!("{key}={text}: write LOW-HIGH"))?;
                let (lo, hi) = (block(lo)?, block(hi)?);
                if lo > hi {
                    return Err(format!("{key}={text}: {lo} is above {hi}"));
                }
                Ok(Blocks::Range(lo, hi))
            };
            lists(job, text, &range)?;
        }
        "bssplit" => lists(job, text, &|t| split(t, text, &block))?,
        "size" => job.size = bytes()?,
        "filesize" => job.filesize = Some(bytes()?),
        "io_size" | "io_limit" => job.io_size = Some(bytes()?),
        "offset" => job.offset = bytes()?,
        "number_ios" => job.number_ios = Some(number(1, u64::MAX)?),
        "numjobs" => job.numjobs = number(1, MAX_CLONES)? as u32,
        "nrfiles" => job.nrfiles = number(1, 1 << 20)? as u32,
        "filename" => {
            job.raw = text.starts_with("/dev/");
            if job.raw && text.contains(':') {
                return Err(format!("filename={text}: a run has only one device"));
            }
            job.filenames = match job.raw {
                true => vec![text.to_owned()],
                false => text.split(':').map(file_name).collect::<Result<_, _>>()?,
            };
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
        "ioengine" => job.engine = engine(text)?,
        "iodepth" => job.depth = number(1, 4096)? as u32,
        "iodepth_batch" | "iodepth_batch_submit" => job.batch = number(1, 4096)? as u32,
        "iodepth_batch_complete" | "iodepth_batch_complete_min" => {
            job.batch_complete = number(1, 4096)? as u32;
        }
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
        "end_fsync" => job.end_fsync = flag()?,
        "fsync_on_close" => job.fsync_on_close = flag()?,
        "fadvise_hint" => {
            job.fadvise_hint = match text {
                "none" => Hint::None,
                "sequential" => Hint::Sequential,
                "random" => Hint::Random,
                _ if flag()? => Hint::Pattern,
                _ => Hint::None,
            }
        }
        "invalidate" => job.invalidate = flag()?,
        "rate" => job.rate = rates(key, text, &parse_bytes)?,
        "rate_iops" => job.rate_iops = rates(key, text, &|t| t.parse().ok())?,
        "thinktime" => job.thinktime = time(NSEC_PER_USEC)?,
        "thinktime_blocks" => job.thinktime_blocks = number(1, u64::MAX)?,
        "runtime" | "timeout" => job.runtime = Some(time(NSEC_PER_SEC)?),
        "time_based" => job.time_based = flag()?,
        "ramp_time" => job.ramp_time = time(NSEC_PER_SEC)?,
        "startdelay" => job.startdelay = time(NSEC_PER_SEC)?,
        "stonewall" | "wait_for_previous" => job.stonewall = flag()?,
        "exitall" => job.exitall = flag()?,
        "loops" => job.loops = number(1, 1_000_000)?,
        "random_distribution" => job.distribution = distribution(text)?,
        "norandommap" => job.norandommap = flag()?,
        "prio" => job.prio = prio(job.prio, None, Some(number(0, 7)?)),
        "prioclass" => job.prio = prio(job.prio, Some(number(0, 3)?), None),
        "nice" => {
            let n = text.parse::<i8>().ok().filter(|n| (-20..=19).contains(n));
            job.nice = n.ok_or_else(|| format!("nice={text}: not -20..19"))?;
        }
        "cgroup_weight" => job.cgroup_weight = Some(number(1, 1000)? as u32),
        "name" | "cgroup" => {}
        k if k.starts_with("verify") || k == "do_verify" => {
            return Ok(Some(format!("{k}: data are not verified")));
        }
        k if IGNORED.contains(&k) => return Ok(Some(format!("{k} has no effect here"))),
        "read_iolog" | "replay_no_stall" | "replay_time_scale" => {
            return Err(format!(
                "{key}: replay the log itself, `seekwell replay FILE --mode timed|depth:N`"
            ));
        }
        "steadystate" | "steadystate_duration" | "ss" | "ss_dur" | "steadystate_ramp_time" => {
            return Err(format!(
                "{key} is not supported: set ramp_time and runtime, and use the values per second \
                 in the results"
            ));
        }
        _ => return Err(format!("the option \"{key}\" is not supported: remove it")),
    }
    Ok(None)
}

fn pattern(key: &str, text: &str) -> Result<Pattern, String> {
    // After the colon: the number of calls per random position, or the bytes to skip after a
    // sequential call.
    let (word, more) = match text.split_once(':') {
        Some((word, more)) => (word, Some(more)),
        None => (text, None),
    };
    let (random, rest) = match word.strip_prefix("rand") {
        Some(r) => (true, r),
        None => (false, word),
    };
    let (mut run, mut hole) = (1, 0);
    if let Some(more) = more.filter(|_| random) {
        let n = more.parse().ok().filter(|n| (1..=1 << 20).contains(n));
        run = n.ok_or_else(|| {
            format!("{key}={text}: after the colon, give a number of calls, 1 to 1048576")
        })?;
    } else if let Some(more) = more {
        let n = parse_bytes(more).filter(|n| *n <= 1 << 40);
        hole = n.ok_or_else(|| {
            format!("{key}={text}: after the colon, give a number of bytes to skip (such as 8k)")
        })?;
    }
    let (reads, writes, trims) = match rest {
        "read" => (true, false, false),
        "write" => (false, true, false),
        "rw" | "readwrite" => (true, true, false),
        "trim" => (false, false, true),
        "trimwrite" => (false, true, true),
        _ => {
            return Err(format!(
                "{key}={text}: write one of read, write, rw, trim, trimwrite, each also with the \
                 prefix rand and the suffix :CALLS (calls per random place) or :BYTES (bytes to \
                 skip)"
            ));
        }
    };
    Ok(Pattern {
        reads,
        writes,
        trims,
        trims_first: trims && writes,
        random,
        run,
        hole,
        identical: false,
    })
}

/// Parses a list "reads,writes,trims". Missing values at the end equal the last value. An empty
/// value does not change the setting.
fn lists(
    job: &mut Job,
    text: &str,
    one: &dyn Fn(&str) -> Result<Blocks, String>,
) -> Result<(), String> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(format!(
            "\"{text}\": write at most three lists: reads,writes,trims"
        ));
    }
    for dir in [Dir::Read, Dir::Write, Dir::Trim] {
        let part = parts.get(dir as usize).or(parts.last());
        if let Some(part) = part.filter(|p| !p.is_empty() || parts.len() == 1) {
            job.blocks[dir as usize] = one(part)?;
        }
    }
    Ok(())
}

/// Parses "4k/10:64k/50:32k": lengths in bytes, each with a percentage. Lengths without a
/// percentage divide the rest equally.
fn split(
    list: &str,
    text: &str,
    block: &dyn Fn(&str) -> Result<u32, String>,
) -> Result<Blocks, String> {
    let bad = || {
        format!(
            "bssplit={text}: write BYTES/PERCENT:BYTES/PERCENT, with percentages that add up to \
             100"
        )
    };
    let mut all = Vec::new();
    for part in list.split(':') {
        let (bytes, share) = part.split_once('/').unwrap_or((part, ""));
        let share = match share {
            "" => None,
            s => Some(
                s.parse::<u32>()
                    .ok()
                    .filter(|n| *n <= 100)
                    .ok_or_else(bad)?,
            ),
        };
        all.push((block(bytes)?, share));
    }
    let given: u32 = all.iter().filter_map(|b| b.1).sum();
    let open = all.iter().filter(|b| b.1.is_none()).count() as u32;
    if given > 100 || (open == 0 && given < 100) {
        return Err(bad());
    }
    let each = (100 - given).checked_div(open).unwrap_or(0);
    let mut spare = (100 - given).checked_rem(open).unwrap_or(0);
    let mut share = |given: Option<u32>| {
        given.unwrap_or_else(|| {
            let one = spare.min(1);
            spare -= one;
            each + one
        })
    };
    let all = all.into_iter().map(|(b, s)| (b, share(s)));
    Ok(Blocks::Split(all.filter(|b| b.1 > 0).collect()))
}

/// Parses a list "reads,writes,trims", or one value for all three directions.
fn rates(
    key: &str,
    text: &str,
    one: &dyn Fn(&str) -> Option<u64>,
) -> Result<[Option<u64>; 3], String> {
    let parts: Vec<&str> = text.split(',').collect();
    let mut all = [None; 3];
    for (i, to) in all.iter_mut().enumerate() {
        let part = parts.get(i).or(parts.last().filter(|_| parts.len() == 1));
        if let Some(part) = part.filter(|p| !p.is_empty() || parts.len() == 1) {
            let n = one(part).filter(|n| (1..1 << 50).contains(n));
            *to = Some(n.ok_or_else(|| {
                format!("{key}={text}: not a valid rate; write for example 10m or 200")
            })?);
        }
    }
    Ok(all)
}

fn service(text: &str) -> Result<Service, String> {
    let (kind, n) = text.split_once(':').unwrap_or((text, "1"));
    let n = n.parse::<u64>().ok().filter(|n| *n > 0);
    match (kind, n) {
        ("roundrobin", Some(n)) => Ok(Service::RoundRobin(n)),
        ("sequential", Some(_)) => Ok(Service::Sequential),
        ("random", Some(n)) => Ok(Service::Random(n)),
        _ => Err(format!(
            "file_service_type={text}: write one of roundrobin, sequential, random, optionally \
             with :CALLS"
        )),
    }
}

fn engine(text: &str) -> Result<Engine, String> {
    match text {
        "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "mmap" => Ok(Engine::Sync),
        "libaio" | "io_uring" | "posixaio" => Ok(Engine::Async),
        _ => Err(format!(
            "ioengine={text}: write one of sync, psync, vsync, pvsync, mmap, libaio, io_uring, \
             posixaio"
        )),
    }
}

fn distribution(text: &str) -> Result<Distribution, String> {
    let (kind, theta) = text.split_once(':').unwrap_or((text, ""));
    let theta = || {
        let x = if theta.is_empty() { "1.1" } else { theta };
        let x = x.parse::<f64>().ok().filter(|x| *x > 0.0 && *x < 100.0);
        x.ok_or_else(|| format!("random_distribution={text}: not a number from 0 to 100"))
    };
    match kind {
        "random" => Ok(Distribution::Uniform),
        "zipf" => Ok(Distribution::Zipf(theta()?)),
        "pareto" => {
            let x = if text.contains(':') { theta()? } else { 0.2 };
            if x >= 1.0 {
                return Err(format!(
                    "random_distribution={text}: the power of pareto must be below 1"
                ));
            }
            Ok(Distribution::Pareto(x))
        }
        "normal" => {
            let x = theta()?;
            Ok(Distribution::Normal(x))
        }
        "zoned" => zones(text),
        _ => Err(format!(
            "random_distribution={text}: write one of random, zipf:THETA, pareto:POWER, \
             normal:PERCENT, zoned:CALLS/PLACES:CALLS/PLACES"
        )),
    }
}

/// Parses "zoned:60/10:30/20:10/70": percent of the calls and percent of the positions of each
/// zone. Each of the two sums must be 100.
fn zones(text: &str) -> Result<Distribution, String> {
    let bad = || {
        format!(
            "random_distribution={text}: the shares of calls must add up to 100, and so must the \
             shares of places"
        )
    };
    let mut all = Vec::new();
    for part in text.split(':').skip(1) {
        let (calls, places) = part.split_once('/').ok_or_else(bad)?;
        let share = |t: &str| t.parse::<f64>().ok().filter(|x| (0.0..=100.0).contains(x));
        all.push((
            share(calls).ok_or_else(bad)?,
            share(places).ok_or_else(bad)?,
        ));
    }
    let sums = all.iter().fold((0.0, 0.0), |s, z| (s.0 + z.0, s.1 + z.1));
    if (sums.0 - 100.0).abs() > 0.01 || (sums.1 - 100.0).abs() > 0.01 {
        return Err(bad());
    }
    Ok(Distribution::Zoned(all))
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

/// Returns a valid file name. Files can only be in the directory of the run.
fn file_name(text: &str) -> Result<String, String> {
    let bad = text.is_empty()
        || text.len() > 200
        || text.contains(['/', ':', '\0'])
        || text == ".."
        || text == ".";
    if bad {
        return Err(format!(
            "filename={text}: must be a plain name, because files are made in the run's own \
             directory"
        ));
    }
    Ok(text.to_owned())
}
