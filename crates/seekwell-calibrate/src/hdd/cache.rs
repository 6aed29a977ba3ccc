//! P2 and P8, the read cache: overhead and link rate of cache hits, the length of the read-ahead,
//! the size of a segment, and the number of segments.

use crate::probe::{Io, Stop};
use crate::session::{SMALL, Session};
use crate::stats::{Line, line, median, quantile};

const BLOCK: u32 = 256;
const KIB: u64 = 2;

/// Reads faster than this came from the cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hits {
    /// Limit, ms; 0 without a cache.
    pub below_ms: f64,
    /// Median of a 4 KiB hit, ms.
    pub usual_ms: f64,
}

/// Latency of a small read that is repeated.
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
    // A sixth of a fast revolution: a slower read has waited for the platter. The host's noise
    // sometimes adds to a hit.
    let below_ms = if usual_ms < 0.6 {
        let noise = quantile(&again, 0.8) - usual_ms;
        usual_ms + (usual_ms * 0.6).max(0.06).max(4.0 * noise).min(0.4)
    } else {
        0.0
    };
    Ok(Hits { below_ms, usual_ms })
}

/// Time of a hit as a function of its size: overhead (ms) and ms per sector.
pub(crate) fn link(s: &mut Session<'_>, hits: Hits) -> Result<Option<(Line, usize)>, Stop> {
    s.stage("cache hits");
    let mut points = vec![];
    for size in [8u32, 32, 64, 128, 192, 256] {
        let mut times = vec![];
        for _ in 0..s.count(10, 6) {
            let lba = s.anywhere().min(s.capacity() - 4096);
            s.one(Io::read(lba, BLOCK))?;
            let t = s.one(Io::read(lba, size))?;
            times.push(t.ms());
        }
        // Host noise only adds time.
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

/// Sectors of a segment: the length still cached after a long sequential read.
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
    /// Cached at the first distance, not at the second.
    Edge(u64, u64),
    /// Everything is cached.
    All,
    /// The segment was evicted meanwhile.
    Lost,
}

/// Reads `length` sectors in sequence, then looks for both ends of the cached range.
fn look_back(s: &mut Session<'_>, hits: Hits, length: u64) -> Result<Back, Stop> {
    let block = u64::from(BLOCK);
    let room = s.capacity() - 3 * length - 1024;
    let from = s.below(room / 8) * 8;
    let ios: Vec<Io> = (0..length / block)
        .map(|i| Io::read(from + i * block, BLOCK))
        .collect();
    s.run(&ios, 1)?;
    let end = from + length;
    // Ends the read-ahead, which would evict the range.
    away(s, end)?;
    let kept = |s: &mut Session<'_>, at: u64| -> Result<Option<bool>, Stop> {
        // A miss counts only if the place 64 sectors further from the middle is a miss too. The
        // higher place is read first: sectors behind a read pass under the head soon.
        let (high, low) = if at < end {
            (at, at - 64)
        } else {
            (at + 64, at)
        };
        let high = s.read(high)?.ms() < hits.below_ms;
        let low = s.read(low)?.ms() < hits.below_ms;
        if !(high && low) {
            // The read-ahead of a miss would continue during the hits that follow.
            away(s, end)?;
        }
        if high || low {
            return Ok(Some(true));
        }
        // Keeps the segment the most recently used one.
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

/// The distance up to which `kept` returns true, by doubling and then halving.
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

/// A read far from `lba`.
fn away(s: &mut Session<'_>, lba: u64) -> Result<(), Stop> {
    let half = s.capacity() / 2;
    let a = s.below(half / 2 / 8) * 8;
    let far = if lba > half { a } else { half + a };
    s.read(far.min(s.capacity() - u64::from(SMALL)) / 8 * 8)?;
    Ok(())
}

/// Sectors the drive reads ahead while it is idle.
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
        // Twice the time the read-ahead needs, and a few revolutions.
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
    // Confirms the edge.
    let (below, above) = (lo.saturating_sub(32) / 8 * 8, (hi + 32) / 8 * 8);
    let sure = below < 16 || (ahead(s, below)? && (!ahead(s, above)? || !ahead(s, above)?));
    Ok(sure.then_some((lo, hi)))
}

/// Number of segments: reads at many places far apart, then reads them again in reverse order while
/// they hit.
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
