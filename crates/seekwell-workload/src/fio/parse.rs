//! Reading a job file.

use super::FioError;
use super::job::{Distribution, Engine, Job, JobFile, Pattern};
use crate::params::{parse_bytes, parse_time};
use seekwell_core::{IoPrio, NSEC_PER_SEC, NSEC_PER_USEC, Nanos};

/// Options that change nothing here.
const IGNORED: &[&str] = &[
    "group_reporting",
    "thread",
    "randrepeat",
    "randseed",
    "allrandrepeat",
    "description",
    "directory",
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
    "create_only",
    "fallocate",
    "unlink",
    "overwrite",
    "openfiles",
    "file_service_type",
    "exitall",
    "do_verify",
    "wait_for_previous",
    "new_group",
    "iodepth_batch",
    "iodepth_batch_submit",
    "iodepth_batch_complete",
    "iodepth_batch_complete_min",
    "iodepth_batch_complete_max",
    "iodepth_low",
];

/// Longest file, most jobs and clones: beyond these a file is a mistake.
const MAX_JOBS: usize = 1000;
const MAX_CLONES: u64 = 1024;

/// Reads a job file. `name` is for messages and the record; `variable` gives the value of
/// `${NAME}`.
pub fn parse(
    name: &str,
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<JobFile, FioError> {
    let mut global = Job::default();
    let mut jobs: Vec<(Job, usize)> = Vec::new();
    let mut warnings: Vec<String> = Vec::new();
    let mut in_section = false;
    let mut in_global = false;
    for (i, raw) in text.lines().enumerate() {
        let line = i + 1;
        let fail = |what: String| FioError {
            file: name.to_owned(),
            line,
            what,
        };
        let l = strip(raw).trim();
        if l.is_empty() {
            continue;
        }
        if let Some(rest) = l.strip_prefix('[') {
            let section = rest.strip_suffix(']').map(str::trim).unwrap_or_default();
            if section.is_empty() {
                return Err(fail(format!("`{l}` is no section; write [NAME]")));
            }
            in_section = true;
            in_global = section.eq_ignore_ascii_case("global");
            if !in_global {
                if jobs.len() == MAX_JOBS {
                    return Err(fail(format!("more than {MAX_JOBS} jobs")));
                }
                let mut job = global.clone();
                section.clone_into(&mut job.name);
                jobs.push((job, line));
            }
            continue;
        }
        if let Some(file) = l.strip_prefix("include ") {
            return Err(fail(format!(
                "include is not read: put the text of {} here",
                file.trim()
            )));
        }
        if !in_section {
            return Err(fail(format!(
                "`{l}` stands before the first section; write [global] or [NAME]"
            )));
        }
        let job = if in_global {
            &mut global
        } else {
            match jobs.last_mut() {
                Some(j) => &mut j.0,
                None => continue,
            }
        };
        let (key, value) = match l.split_once('=') {
            Some((k, v)) => (k.trim(), Some(v.trim())),
            None => (l, None),
        };
        let value = value.map(|v| expand(v, &job.name, variable)).transpose();
        let value = value.map_err(fail)?;
        match set(job, key, value.as_deref()) {
            Ok(None) => {}
            Ok(Some(w)) => {
                if !warnings.contains(&w) {
                    warnings.push(w);
                }
            }
            Err(what) => return Err(fail(what)),
        }
    }
    let last = text.lines().count().max(1);
    let whole = |line: usize, what: String| FioError {
        file: name.to_owned(),
        line,
        what,
    };
    if jobs.is_empty() {
        return Err(whole(
            last,
            "there is no job; write a section [NAME]".into(),
        ));
    }
    for (job, line) in &mut jobs {
        finish(job, &mut warnings)
            .map_err(|what| whole(*line, format!("job {}: {what}", job.name)))?;
    }
    let stem = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let stem = stem.rsplit_once('.').map_or(stem, |s| s.0);
    Ok(JobFile {
        name: stem.to_owned(),
        jobs: jobs.into_iter().map(|j| j.0).collect(),
        warnings,
    })
}

/// Without its comment.
fn strip(line: &str) -> &str {
    let t = line.trim_start();
    if t.starts_with(';') || t.starts_with('#') {
        return "";
    }
    // Within a line a comment needs a blank before it: names may have the characters.
    let cut = line.match_indices([';', '#']).find(|(i, _)| {
        let before = line[..*i].chars().next_back();
        before.is_some_and(char::is_whitespace)
    });
    cut.map_or(line, |(i, _)| &line[..i])
}

/// `${VAR}` and `$jobname`.
fn expand(
    value: &str,
    job: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = value;
    while let Some(i) = rest.find('$') {
        out.push_str(&rest[..i]);
        rest = &rest[i..];
        if let Some(after) = rest.strip_prefix("$jobname") {
            out.push_str(job);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("${") {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| format!("`{value}`: ${{ without }}"))?;
            let v = variable(name)
                .ok_or_else(|| format!("the variable {name} is not set in the environment"))?;
            out.push_str(&v);
            rest = after;
        } else {
            out.push('$');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Sets an option; a warning if it is ignored.
fn set(job: &mut Job, key: &str, value: Option<&str>) -> Result<Option<String>, String> {
    let text = value.unwrap_or_default();
    let bytes =
        || parse_bytes(text).ok_or_else(|| format!("{key}={text}: not a size (as 64k, 1g)"));
    let block = |t: &str| -> Result<u32, String> {
        let n = parse_bytes(t).and_then(|n| u32::try_from(n).ok());
        n.filter(|n| (512..=1 << 30).contains(n))
            .ok_or_else(|| format!("{key}={text}: a block is 512 bytes to 1 GiB"))
    };
    let number = |lo: u64, hi: u64| -> Result<u64, String> {
        let n = text.parse::<u64>().ok().filter(|n| (lo..=hi).contains(n));
        n.ok_or_else(|| format!("{key}={text}: not a number of {lo}..{hi}"))
    };
    let flag = || match value {
        None | Some("1" | "true" | "yes") => Ok(true),
        Some("0" | "false" | "no") => Ok(false),
        Some(v) => Err(format!("{key}={v}: not 0 or 1")),
    };
    // A bare number of these is in seconds or microseconds.
    let time = |unit: u64| -> Result<Nanos, String> {
        let n = match text.parse::<u64>() {
            Ok(n) => n.checked_mul(unit),
            Err(_) => parse_time(text),
        };
        n.map(Nanos)
            .ok_or_else(|| format!("{key}={text}: not a time (as 30s)"))
    };
    match key {
        "rw" | "readwrite" => job.pattern = pattern(key, text)?,
        "rwmixread" => job.mix_read = number(0, 100)? as u32,
        "rwmixwrite" => job.mix_read = 100 - number(0, 100)? as u32,
        "bs" | "blocksize" => {
            let mut parts = text.split(',');
            let read = block(parts.next().unwrap_or_default())?;
            let write = parts.next().map_or(Ok(read), block)?;
            (job.read_block, job.write_block) = ((read, read), (write, write));
        }
        "bsrange" | "blocksize_range" => {
            let range = |t: &str| -> Result<(u32, u32), String> {
                let (lo, hi) = t
                    .split_once('-')
                    .ok_or_else(|| format!("{key}={text}: write LOW-HIGH"))?;
                let (lo, hi) = (block(lo)?, block(hi)?);
                if lo > hi {
                    return Err(format!("{key}={text}: {lo} is above {hi}"));
                }
                Ok((lo, hi))
            };
            let mut parts = text.split(',');
            job.read_block = range(parts.next().unwrap_or_default())?;
            job.write_block = parts.next().map_or(Ok(job.read_block), range)?;
        }
        "size" | "filesize" => job.size = bytes()?,
        "io_size" | "io_limit" => job.io_size = Some(bytes()?),
        "offset" => job.offset = bytes()?,
        "number_ios" => job.number_ios = Some(number(1, u64::MAX)?),
        "numjobs" => job.numjobs = number(1, MAX_CLONES)? as u32,
        "nrfiles" => job.nrfiles = number(1, 1 << 20)? as u32,
        "filename" => job.filename = Some(file_name(text)?),
        "ioengine" => job.engine = engine(text)?,
        "iodepth" => job.depth = number(1, 4096)? as u32,
        "direct" => job.direct = flag()?,
        "buffered" => job.direct = !flag()?,
        "sync" => match text {
            "dsync" => job.dsync = true,
            "none" | "0" => (job.sync, job.dsync) = (false, false),
            "" | "1" | "sync" => job.sync = true,
            _ => return Err(format!("sync={text}: one of none, sync, dsync, 0, 1")),
        },
        "fsync" => job.fsync = number(0, u64::MAX)?,
        "fdatasync" => job.fdatasync = number(0, u64::MAX)?,
        "end_fsync" => job.end_fsync = flag()?,
        "fsync_on_close" => job.fsync_on_close = flag()?,
        "fadvise_hint" => job.fadvise_hint = flag()?,
        "invalidate" => job.invalidate = flag()?,
        "rate" => job.rate = Some(bytes()?.max(1)),
        "rate_iops" => job.rate_iops = Some(number(1, 1_000_000_000)?),
        "thinktime" => job.thinktime = time(NSEC_PER_USEC)?,
        "thinktime_blocks" => job.thinktime_blocks = number(1, u64::MAX)?,
        "runtime" | "timeout" => job.runtime = Some(time(NSEC_PER_SEC)?),
        "time_based" => job.time_based = flag()?,
        "ramp_time" => job.ramp_time = time(NSEC_PER_SEC)?,
        "startdelay" => job.startdelay = time(NSEC_PER_SEC)?,
        "stonewall" | "wait_for_previous" => job.stonewall = flag()?,
        "loops" => job.loops = number(1, 1_000_000)?,
        "random_distribution" => job.distribution = distribution(text)?,
        "norandommap" => job.norandommap = flag()?,
        "prio" => job.prio = prio(job.prio, None, Some(number(0, 7)?)),
        "prioclass" => job.prio = prio(job.prio, Some(number(0, 3)?), None),
        "nice" => {
            let n = text.parse::<i8>().ok().filter(|n| (-20..=19).contains(n));
            job.nice = n.ok_or_else(|| format!("nice={text}: not -20..19"))?;
        }
        "name" => {}
        k if IGNORED.contains(&k) || k.starts_with("verify") => {
            return Ok(Some(format!("{k} changes nothing here")));
        }
        "read_iolog" => {
            return Err("read_iolog: replay the log itself, `seekwell replay FILE`".into());
        }
        _ => return Err(format!("the option `{key}` is not known here: remove it")),
    }
    Ok(None)
}

fn pattern(key: &str, text: &str) -> Result<Pattern, String> {
    let (random, rest) = match text.strip_prefix("rand") {
        Some(r) => (true, r),
        None => (false, text),
    };
    let (reads, writes) = match rest {
        "read" => (true, false),
        "write" => (false, true),
        "rw" | "readwrite" => (true, true),
        _ => {
            return Err(format!(
                "{key}={text}: one of read, write, rw, randread, randwrite, randrw"
            ));
        }
    };
    Ok(Pattern {
        reads,
        writes,
        random,
    })
}

fn engine(text: &str) -> Result<Engine, String> {
    match text {
        "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "mmap" => Ok(Engine::Sync),
        "libaio" | "io_uring" | "posixaio" => Ok(Engine::Async),
        _ => Err(format!(
            "ioengine={text}: one of sync, psync, vsync, pvsync, mmap, libaio, io_uring, posixaio"
        )),
    }
}

fn distribution(text: &str) -> Result<Distribution, String> {
    let (kind, theta) = text.split_once(':').unwrap_or((text, ""));
    let theta = || {
        let x = if theta.is_empty() { "1.1" } else { theta };
        let x = x.parse::<f64>().ok().filter(|x| *x > 0.0 && *x < 100.0);
        x.ok_or_else(|| format!("random_distribution={text}: not a number of 0..100"))
    };
    match kind {
        "random" => Ok(Distribution::Uniform),
        "zipf" => Ok(Distribution::Zipf(theta()?)),
        "pareto" => {
            let x = if text.contains(':') { theta()? } else { 0.2 };
            if x >= 1.0 {
                return Err(format!(
                    "random_distribution={text}: a pareto power is below 1"
                ));
            }
            Ok(Distribution::Pareto(x))
        }
        _ => Err(format!(
            "random_distribution={text}: one of random, zipf:THETA, pareto:POWER"
        )),
    }
}

/// Class and level are set by two options, in any order; a level alone means best effort.
fn prio(old: IoPrio, class: Option<u64>, level: Option<u64>) -> IoPrio {
    let class = class.unwrap_or(match old.class as u64 {
        0 => 2,
        c => c,
    });
    let level = level.unwrap_or(u64::from(old.level));
    IoPrio::from_numbers(class, level).unwrap_or(old)
}

/// Files lie in the run's own directory and nowhere else.
fn file_name(text: &str) -> Result<String, String> {
    let bad = text.is_empty()
        || text.len() > 200
        || text.contains(['/', ':', '\0'])
        || text == ".."
        || text == ".";
    if bad {
        return Err(format!(
            "filename={text}: one plain name; files are made in the run's own directory"
        ));
    }
    Ok(text.to_owned())
}

/// Checks what goes together only.
fn finish(job: &mut Job, warnings: &mut Vec<String>) -> Result<(), String> {
    if job.size == 0 {
        return Err("size is missing".into());
    }
    let p = job.pattern;
    let largest = job.read_block.1.max(job.write_block.1);
    let each = job.size / u64::from(job.nrfiles);
    if each < u64::from(largest) {
        return Err(format!(
            "size={} holds no block of {largest} in each file",
            job.size
        ));
    }
    if job
        .size
        .checked_add(job.offset)
        .is_none_or(|end| end > 1 << 50)
    {
        return Err("size and offset go beyond 1 PiB".into());
    }
    if job.time_based && job.runtime.is_none() {
        return Err("time_based needs runtime".into());
    }
    for b in [job.read_block.0, job.write_block.0] {
        if job.direct && (b % 4096 != 0 || !job.offset.is_multiple_of(4096)) {
            return Err("with direct=1 blocks and offset must be multiples of 4096".into());
        }
    }
    if job.engine == Engine::Sync && job.depth > 1 {
        warnings.push(format!(
            "job {}: iodepth needs libaio or io_uring; it is 1",
            job.name
        ));
        job.depth = 1;
    }
    if job.engine == Engine::Async && !job.direct && job.depth > 1 && p.writes {
        warnings.push(format!(
            "job {}: buffered writes are not asynchronous",
            job.name
        ));
    }
    Ok(())
}
