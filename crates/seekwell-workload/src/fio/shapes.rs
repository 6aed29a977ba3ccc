//! The values of the options that describe which calls a job makes: pattern, lengths, rates,
//! order of files, distribution of positions.

use super::job::{Blocks, Dir, Distribution, Job, Pattern, Service, Steady, SteadyOf};
use super::values::Reading;
use seekwell_core::{Nanos, SyncRange};

/// Parses the option rw, for example `randrw:8` or `read:-8k`.
pub(super) fn pattern(key: &str, text: &str, reading: Reading) -> Result<Pattern, String> {
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
    let (mut run, mut hole) = (1, 0i64);
    if let Some(more) = more.filter(|_| random) {
        let n = more.parse().ok().filter(|n| (1..=1 << 20).contains(n));
        run = n.ok_or_else(|| {
            format!("{key}={text}: after the colon, give a number of calls, 1 to 1048576")
        })?;
    } else if let Some(more) = more {
        let (back, bytes) = match more.strip_prefix('-') {
            Some(bytes) => (true, bytes),
            None => (false, more),
        };
        let n = reading.bytes(bytes).and_then(|n| i64::try_from(n).ok());
        let n = n.filter(|n| *n <= 1 << 40).ok_or_else(|| {
            format!("{key}={text}: after the colon, give a number of bytes to skip (such as 8k)")
        })?;
        hole = if back { -n } else { n };
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

/// Parses a list "reads,writes,trims" and calls `set` for each direction that has a value. Missing
/// values at the end equal the last value. An empty value does not change the setting.
pub(super) fn lists<T: Clone>(
    text: &str,
    one: &dyn Fn(&str) -> Result<T, String>,
    to: &mut [T; 3],
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
            to[dir as usize] = one(part.trim())?;
        }
    }
    Ok(())
}

/// Parses the option bsrange, for example `4k-16k`, or `4k-16k,1k-2k` for reads and writes.
pub(super) fn range(
    key: &str,
    text: &str,
    block: &dyn Fn(&str) -> Result<u32, String>,
    to: &mut [Blocks; 3],
) -> Result<(), String> {
    let one = |t: &str| -> Result<Blocks, String> {
        let (lo, hi) = t
            .split_once(['-', ':'])
            .ok_or_else(|| format!("{key}={text}: write LOW-HIGH"))?;
        let (lo, hi) = (block(lo.trim())?, block(hi.trim())?);
        // fio exchanges the two values if the first is larger.
        Ok(Blocks::Range(lo.min(hi), lo.max(hi)))
    };
    lists(&text.replace('/', ","), &one, to)
}

/// Parses "4k/10:64k/50:32k": lengths in bytes, each with a percentage. Lengths without a
/// percentage divide the rest equally.
pub(super) fn split(
    list: &str,
    text: &str,
    block: &dyn Fn(&str) -> Result<u32, String>,
) -> Result<Blocks, String> {
    let bad = || {
        format!(
            "bssplit={text}: write BYTES/PERCENT:BYTES/PERCENT, with percentages that add up to \
             at most 100"
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
    if given > 100 {
        return Err(bad());
    }
    // fio gives the calls that no percentage covers to the last length.
    if open == 0
        && given < 100
        && let Some(last) = all.last_mut()
    {
        last.1 = last.1.map(|share| share + 100 - given);
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
    let all: Vec<(u32, u32)> = all.filter(|b| b.1 > 0).collect();
    match all.is_empty() {
        true => Err(bad()),
        false => Ok(Blocks::Split(all)),
    }
}

/// Parses a list "reads,writes,trims", or one value for all three directions.
pub(super) fn rates(
    key: &str,
    text: &str,
    one: &dyn Fn(&str) -> Option<u64>,
) -> Result<[Option<u64>; 3], String> {
    let parts: Vec<&str> = text.split(',').collect();
    let mut all = [None; 3];
    for (i, to) in all.iter_mut().enumerate() {
        let part = parts.get(i).or(parts.last().filter(|_| parts.len() == 1));
        if let Some(part) = part.filter(|p| !p.is_empty() || parts.len() == 1) {
            let n = one(part.trim()).filter(|n| (0..1 << 50).contains(n));
            let n = n.ok_or_else(|| {
                format!("{key}={text}: not a valid rate; write for example 10m or 200")
            })?;
            // A rate of 0 is no limit.
            *to = (n > 0).then_some(n);
        }
    }
    Ok(all)
}

/// Parses the option file_service_type.
pub(super) fn service(text: &str) -> Result<Service, String> {
    let (kind, n) = text.split_once(':').unwrap_or((text, "1"));
    let n = n.parse::<u64>().ok().filter(|n| *n > 0);
    match (kind, n) {
        ("roundrobin", Some(n)) => Ok(Service::RoundRobin(n)),
        ("sequential", Some(_)) => Ok(Service::Sequential),
        ("random", Some(n)) => Ok(Service::Random(n)),
        // The skewed orders pick hot files more often; each call has its own random file.
        ("zipf" | "pareto" | "normal" | "gauss", _) => Ok(Service::Random(1)),
        _ => Err(format!(
            "file_service_type={text}: write one of roundrobin, sequential, random, optionally \
             with :CALLS"
        )),
    }
}

/// Parses the option random_distribution.
pub(super) fn distribution(text: &str) -> Result<Distribution, String> {
    // fio accepts one distribution for each direction.
    let mut each = text.split(',').map(str::trim);
    let text = each.next().unwrap_or_default();
    if each.any(|other| other != text) {
        return Err(format!(
            "random_distribution={text}: the same distribution must hold for reads, writes and \
             trims"
        ));
    }
    let (kind, theta) = text.split_once(':').unwrap_or((text, ""));
    // After a second colon, fio accepts the place of the most frequent block.
    let theta = theta
        .split(':')
        .next()
        .filter(|_| kind != "zoned")
        .unwrap_or_default();
    let theta = || {
        let x = if theta.is_empty() { "1.1" } else { theta };
        let x = x.parse::<f64>().ok().filter(|x| *x > 0.0 && *x < 100.0);
        x.ok_or_else(|| format!("random_distribution={text}: not a number from 0 to 100"))
    };
    match kind {
        "random" | "" => Ok(Distribution::Uniform),
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
/// zone. The zones without a number share the rest equally.
fn zones(text: &str) -> Result<Distribution, String> {
    let bad = || {
        format!(
            "random_distribution={text}: the shares of calls must add up to 100, and so must the \
             shares of places"
        )
    };
    let share = |t: &str| -> Result<Option<f64>, String> {
        let n = || t.parse::<f64>().ok().filter(|x| (0.0..=100.0).contains(x));
        match t.trim() {
            "" => Ok(None),
            _ => n().map(Some).ok_or_else(bad),
        }
    };
    let mut all = Vec::new();
    for part in text.split(':').skip(1) {
        let (calls, places) = part.split_once('/').ok_or_else(bad)?;
        all.push((share(calls)?, share(places)?));
    }
    // The share of each zone without a number.
    let rest = |shares: &[Option<f64>]| {
        let given: f64 = shares.iter().flatten().sum();
        let open = shares.iter().filter(|s| s.is_none()).count();
        let wrong = given > 100.01 || (open == 0 && given < 99.99);
        match wrong {
            true => Err(bad()),
            false => Ok((100.0 - given).max(0.0) / open.max(1) as f64),
        }
    };
    let (of_calls, of_places): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let (calls, places) = (rest(&of_calls)?, rest(&of_places)?);
    let all = of_calls.iter().zip(&of_places);
    let all = all.map(|(c, p)| (c.unwrap_or(calls), p.unwrap_or(places)));
    Ok(Distribution::Zoned(all.collect()))
}

/// Parses "wait_before,write:8": the flags of sync_file_range, and the number of writes between two
/// calls.
pub(super) fn sync_range(text: &str) -> Option<(SyncRange, u64)> {
    let (flags, every) = text.split_once(':')?;
    let mut how = SyncRange::empty();
    for flag in flags.split(',') {
        how |= match flag.trim() {
            "wait_before" => SyncRange::WAIT_BEFORE,
            "write" => SyncRange::WRITE,
            "wait_after" => SyncRange::WAIT_AFTER,
            _ => return None,
        };
    }
    let every = every.trim().parse().ok().filter(|n| *n > 0)?;
    Some((how, every))
}

/// Parses "iops:10%" or "bw_slope:0.5%": the end of a job in the steady state.
pub(super) fn steady(text: &str, old: Option<Steady>) -> Result<Steady, String> {
    let bad = || format!("steadystate={text}: write iops, iops_slope, bw or bw_slope, and :LIMIT");
    let (what, limit) = text.split_once(':').ok_or_else(bad)?;
    let (of, slope) = match what {
        "iops" => (SteadyOf::Iops, false),
        "iops_slope" => (SteadyOf::Iops, true),
        "bw" => (SteadyOf::Bandwidth, false),
        "bw_slope" => (SteadyOf::Bandwidth, true),
        _ => return Err(bad()),
    };
    let (number, percent) = match limit.strip_suffix('%') {
        Some(n) => (n, true),
        None => (limit, false),
    };
    let limit = number
        .parse::<f64>()
        .ok()
        .filter(|n| *n >= 0.0 && n.is_finite());
    let limit = limit.ok_or_else(bad)?;
    let (seconds, ramp) = old.map_or((0, Nanos::ZERO), |o| (o.seconds, o.ramp));
    Ok(Steady {
        of,
        slope,
        limit,
        percent,
        seconds,
        ramp,
    })
}

/// Returns true if a job with these lengths and this pattern can use O_DIRECT.
pub(super) fn whole_sectors(job: &Job) -> bool {
    let whole = |n: u64| n.is_multiple_of(512);
    let blocks = |d: Dir| match &job.blocks[d as usize] {
        Blocks::Range(lo, _) => whole(u64::from(*lo)),
        Blocks::Split(all) => all.iter().all(|b| whole(u64::from(b.0))),
    };
    let dirs = [Dir::Read, Dir::Write, Dir::Trim].into_iter();
    dirs.filter(|d| job.does(*d)).all(blocks)
        && whole(job.offset.bytes())
        && whole(job.offset_increment.bytes())
        && whole(job.pattern.hole.unsigned_abs())
}
