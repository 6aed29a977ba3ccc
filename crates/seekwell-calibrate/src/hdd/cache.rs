//! Probes P2 and P8, which measure the read cache. They find the overhead and link rate of cache
//! hits, the length of the read-ahead, the size of a segment, and the number of segments.

use crate::probe::{Io, Stop};
use crate::session::{SMALL, Session};
use crate::stats::{Line, line, median, quantile};

const BLOCK: u32 = 256;
const KIB: u64 = 2;

/// Latencies of reads that are served from the cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hits {
    /// A read that is faster than this was served from the cache, ms. It is 0 if there is no cache.
    pub below_ms: f64,
    /// Median latency of a 4 KiB hit, ms.
    pub usual_ms: f64,
}

/// Measures the latency of small reads that are repeated.
pub(crate) fn hits(s: &mut Session<'_>) -> Result<Hits, Stop> {
    let mut again = vec![];
    for _ in 0..8 {
        let lba = s.anywhere();
        s.read(lba)?;
        for _ in 0..4 {
            again.push(s.read(lba)?.ms());
        }
    }
    let usual_ms = median(&again);
    // Hits are at most 0.4 ms slower than usual, because noise of the host sometimes adds to them.
    // The limit is at most 1 ms, a sixth of a revolution at 10 000 rpm. Slower reads have waited
    // for the platter.
    let below_ms = if usual_ms < 0.6 {
        let noise = quantile(&again, 0.8) - usual_ms;
        usual_ms + (usual_ms * 0.6).max(0.06).max(4.0 * noise).min(0.4)
    } else {
        0.0
    };
    Ok(Hits { below_ms, usual_ms })
}

/// Measures the latency of a hit as a linear function of its size. Returns the overhead in ms and
/// the slope in ms per sector, with the number of samples.
pub(crate) fn link(s: &mut Session<'_>, hits: Hits) -> Result<Option<(Line, usize)>, Stop> {
    s.stage("cache hits");
    let mut points = vec![];
    for size in [8u32, 32, 64, 128, 192, 256] {
        let mut times = vec![];
        for _ in 0..s.count(10, 6) {
            let lba = s.anywhere().min(s.capacity() - 4096);
            s.send(Io::read(lba, BLOCK))?;
            let t = s.send(Io::read(lba, size))?;
            times.push(t.ms());
        }
        // Noise of the host only adds time, so the faster half is used.
        times.sort_by(f64::total_cmp);
        let keep = times.len().div_ceil(2);
        for t in &times[..keep] {
            points.push((f64::from(size), *t));
        }
    }
    let slow = points.iter().filter(|p| p.1 > hits.below_ms + 3.0).count();
    if slow * 4 > points.len() {
        return Ok(None);
    }
    Ok(line(&points)
        .filter(|l| l.slope > 0.0)
        .map(|l| (l, points.len())))
}

/// Measures the size of a segment, as the length that is still cached after a long sequential read.
/// Returns its lower and upper bound in sectors, or `None` if it was not found.
pub(crate) fn segment(s: &mut Session<'_>, hits: Hits) -> Result<Option<(u64, u64)>, Stop> {
    s.stage("cache segments");
    let mut length = 4096 * KIB;
    'longer: while length <= 65_536 * KIB && length * 4 < s.capacity() {
        let mut found = vec![];
        for _ in 0..5 {
            match look_back(s, hits, length)? {
                Back::Edge(lo, hi) => found.push((lo, hi)),
                Back::All => {
                    length *= 4;
                    continue 'longer;
                }
                Back::Lost => {}
            }
            if found.len() == 3 {
                break;
            }
        }
        found.sort_unstable();
        return Ok(found.get(found.len() / 2).copied());
    }
    Ok(None)
}

enum Back {
    /// The sector at the first distance is cached, and the sector at the second distance is not.
    Edge(u64, u64),
    /// The whole range is cached.
    All,
    /// The segment was evicted during the measurement.
    Lost,
}

/// Reads `length` sectors sequentially, then searches for both ends of the cached range.
fn look_back(s: &mut Session<'_>, hits: Hits, length: u64) -> Result<Back, Stop> {
    let block = u64::from(BLOCK);
    let room = s.capacity() - 3 * length - 1024;
    let from = s.below(room / 8) * 8;
    let ios: Vec<Io> = (0..length / block)
        .map(|i| Io::read(from + i * block, BLOCK))
        .collect();
    s.run(&ios, 1)?;
    let end = from + length;
    // This read ends the read-ahead, which would otherwise evict the range.
    away(s, end)?;
    let kept = |s: &mut Session<'_>, at: u64| -> Result<Option<bool>, Stop> {
        // A miss counts only if the sectors 64 sectors further from `end` are a miss too. The
        // higher address is read first, because sectors with a slightly higher address pass under
        // the head shortly after a read.
        let (high, low) = if at < end {
            (at, at - 64)
        } else {
            (at + 64, at)
        };
        let high = s.read(high)?.ms() < hits.below_ms;
        let low = s.read(low)?.ms() < hits.below_ms;
        if !(high && low) {
            // Without this read, the read-ahead of the miss would continue during the following
            // hits.
            away(s, end)?;
        }
        if high || low {
            return Ok(Some(true));
        }
        // This read keeps the segment the most recently used segment.
        Ok((s.read(end - 16)?.ms() < hits.below_ms).then_some(false))
    };
    let (mut lo, mut hi) = (0, 0);
    for ahead in [false, true] {
        let limit = if ahead { 2 * length } else { length - 128 };
        match edge(limit, |d| kept(s, if ahead { end + d } else { end - d }))? {
            Back::Edge(a, b) => {
                lo += a;
                hi += b;
            }
            Back::All if ahead => return Ok(Back::Lost),
            other => return Ok(other),
        }
    }
    if lo == 0 {
        return Ok(Back::Lost);
    }
    Ok(Back::Edge(lo, hi))
}

/// Finds the largest distance at which `kept` returns true. The distance is doubled until `kept`
/// returns false; then the interval is halved repeatedly.
fn edge(limit: u64, mut kept: impl FnMut(u64) -> Result<Option<bool>, Stop>) -> Result<Back, Stop> {
    let (mut lo, mut hi, mut next) = (0, limit, 16);
    while hi - lo > (hi / 128).max(16) {
        match kept(next)? {
            None => return Ok(Back::Lost),
            Some(true) => lo = next,
            Some(false) => hi = next,
        }
        if hi == limit && lo * 2 >= limit {
            return Ok(Back::All);
        }
        next = if hi == limit {
            lo * 2
        } else {
            (lo + (hi - lo) / 2) / 8 * 8
        };
        if next <= lo {
            break;
        }
    }
    Ok(Back::Edge(lo, hi))
}

/// Reads a sector far from `lba`.
fn away(s: &mut Session<'_>, lba: u64) -> Result<(), Stop> {
    let half = s.capacity() / 2;
    let a = s.below(half / 2 / 8) * 8;
    let far = if lba > half { a } else { half + a };
    s.read(far.min(s.capacity() - u64::from(SMALL)) / 8 * 8)?;
    Ok(())
}

/// Measures how many sectors the drive reads ahead while it is idle. Returns the lower and upper
/// bound in sectors.
pub(crate) fn read_ahead(
    s: &mut Session<'_>,
    hits: Hits,
    rate_mb: f64,
    segment: u64,
) -> Result<Option<(u64, u64)>, Stop> {
    s.stage("read-ahead");
    let ahead = |s: &mut Session<'_>, delta: u64| -> Result<bool, Stop> {
        let lba = s.below((s.capacity() - delta - 4096) / 8) * 8;
        s.read(lba)?;
        // The pause is twice the time that the read-ahead needs, plus a few revolutions.
        s.sleep_ms(40.0 + 2.0 * delta as f64 * 512.0 / 1e3 / rate_mb.max(1.0))?;
        Ok(s.read(lba + delta)?.ms() < hits.below_ms)
    };
    let top = (segment * 2).max(512);
    let (mut lo, mut hi) = (0, top);
    while hi - lo > (hi / 64).max(16) {
        let next = (lo + (hi - lo) / 2) / 8 * 8;
        if ahead(s, next)? {
            lo = next;
        } else {
            hi = next;
        }
    }
    if lo == 0 {
        return Ok(None);
    }
    // Two more reads confirm the result.
    let (below, above) = (lo.saturating_sub(32) / 8 * 8, (hi + 32) / 8 * 8);
    let sure = below < 16 || (ahead(s, below)? && (!ahead(s, above)? || !ahead(s, above)?));
    Ok(sure.then_some((lo, hi)))
}

/// Measures the number of segments. It reads at many addresses far apart, and then reads them again
/// in reverse order until a read is a miss. Returns the number of hits and the number of samples.
pub(crate) fn segments(s: &mut Session<'_>, hits: Hits) -> Result<Option<(usize, usize)>, Stop> {
    s.stage("cache segments");
    let mut places = 48;
    while places <= 1024 {
        let mut counts = vec![];
        for _ in 0..3 {
            let at: Vec<u64> = (0..places).map(|_| s.anywhere()).collect();
            for lba in &at {
                s.read(*lba)?;
            }
            let mut n = 0;
            for lba in at.iter().rev() {
                if s.read(*lba)?.ms() > hits.below_ms {
                    break;
                }
                n += 1;
            }
            counts.push(n as f64);
        }
        let n = median(&counts) as usize;
        if n < places {
            return Ok((n > 0).then_some((n, 3 * places)));
        }
        places *= 4;
    }
    Ok(None)
}
