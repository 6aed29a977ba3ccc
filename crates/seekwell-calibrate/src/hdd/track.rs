//! Probes P3 to P5, which measure angles and tracks. If the revolution is known, the completion
//! time of a read gives the angle of its last sector.
//!
//! The probes read backwards within a track. At each step the angle decreases by the angle of one
//! step. A different decrease marks the end of a track, and the difference is the skew. The reads
//! go backwards because a drive reads ahead, so sectors before the head are not in its cache.

use crate::probe::{Io, Stop, Timed};
use crate::session::{SMALL, Session};
use crate::stats::{frac, median, quantile_sorted};
use seekwell_stats::{deviation, t_quantile};

/// Uses the spindle as a clock that counts revolutions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spindle {
    pub turn_ms: f64,
    pub origin: u64,
}

impl Spindle {
    /// Returns the number of revolutions between the origin and the time `t`, in ns.
    pub fn turns(&self, t: u64) -> f64 {
        (t as f64 - self.origin as f64) / 1e6 / self.turn_ms
    }
    /// Returns the angle between two completions, as a fraction of a revolution.
    pub fn between(&self, a: Timed, b: Timed) -> f64 {
        frac(self.turns(b.done) - self.turns(a.done))
    }
}

/// Returns whether an angle error, in revolutions, is small enough for a sector of the same track.
/// A busy host sometimes completes late, which gives a positive error. A skew gives a negative
/// error.
fn same_track(off: f64) -> bool {
    let f = frac(off);
    !(LATE..=1.0 - EARLY).contains(&f)
}

/// Number of sectors per track near an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrackLength {
    pub sectors: f64,
    /// Half-width of the 95 % confidence interval.
    pub pm: f64,
    /// Possible error from timing noise: 1.96 standard errors. It decides whether two zones differ,
    /// and it is the weight in means. The noise is the same on the whole drive, so a small number
    /// of samples does not need a wider limit.
    pub noise: f64,
}

/// Angle errors up to this count as timing noise and not as a skew, in revolutions.
const SAME: f64 = 0.011;
/// How late a read may complete relative to the read that it is compared with, in revolutions.
const LATE: f64 = 0.05;
const EARLY: f64 = 0.013;
/// Number of backward steps in a measurement of the track length.
const STEPS: usize = 12;
/// Maximum number of passes of a noisy measurement.
const PASSES: u64 = 6;

/// Measures the number of sectors per track near `lba`. The estimate `guess` may be wrong by a
/// third. Noisy measurements are repeated closer to the outer edge.
pub(crate) fn length_at(
    s: &mut Session<'_>,
    spindle: Spindle,
    lba: u64,
    guess: f64,
) -> Result<Option<TrackLength>, Stop> {
    let delta = ((guess / 10.0) as u64 / 8 * 8).max(8);
    let reach = delta * (STEPS as u64 + 1);
    let mut top = lba.clamp(PASSES * reach, s.capacity() - u64::from(SMALL)) / 8 * 8;
    // Sums over all runs: sectors, revolutions, variance of a step and its degrees of freedom.
    let (mut sectors, mut turns, mut var, mut df) = (0.0, 0.0, 0.0, 0.0);
    for _ in 0..PASSES {
        if let Some(r) = run_at(s, spindle, top, delta)? {
            sectors += r.sectors;
            turns += r.turns;
            var += r.var;
            df += r.df;
        }
        if turns > 0.0 && libm::sqrt(var) / turns < 0.0014 {
            break;
        }
        top -= reach;
    }
    Ok((turns > 0.0).then(|| {
        let length = sectors / turns;
        // The error of a run is the noise of its first and its last read, so it equals the error of
        // one step.
        let half = |quantile: f64| length * (quantile * libm::sqrt(var) / turns).max(0.2 / length);
        TrackLength {
            sectors: length,
            pm: half(t_quantile(0.975, df)),
            noise: half(1.96),
        }
    }))
}

/// The longest series of backward steps within one track.
struct Run {
    sectors: f64,
    turns: f64,
    /// Variance of a step.
    var: f64,
    /// Degrees of freedom of the variance.
    df: f64,
}

fn run_at(
    s: &mut Session<'_>,
    spindle: Spindle,
    top: u64,
    delta: u64,
) -> Result<Option<Run>, Stop> {
    let mut times = Vec::with_capacity(STEPS + 1);
    for i in 0..=STEPS as u64 {
        times.push(s.read(top - i * delta)?);
    }
    let steps: Vec<f64> = times
        .windows(2)
        .map(|w| 1.0 - spindle.between(w[0], w[1]))
        .collect();
    let usual = median(&steps);
    let (mut best, mut from) = ((0, 0.0), 0);
    for i in 0..=steps.len() {
        if i == steps.len() || (steps[i] - usual).abs() > SAME {
            let sum: f64 = steps[from..i].iter().sum();
            if i - from > best.0 {
                best = (i - from, sum);
            }
            from = i + 1;
        }
    }
    let (n, turns) = best;
    if n < 3 || turns <= 0.0 {
        return Ok(None);
    }
    let good: Vec<f64> = steps
        .iter()
        .copied()
        .filter(|d| (d - usual).abs() <= SAME)
        .collect();
    let sd = deviation(&good);
    Ok(Some(Run {
        sectors: (n as u64 * delta) as f64,
        turns,
        var: sd * sd,
        df: (good.len() - 1) as f64,
    }))
}

/// The tracks near an address, exact to one sector.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// First sector of a track, the anchor. Each track before it begins `spt` sectors earlier.
    pub start: u64,
    /// Uncertainty of `start`: the true start may be lower by up to this many sectors.
    pub loose: u64,
    /// Sectors per track, an integer.
    pub spt: u64,
    /// Skews between track -i-1 and track -i, in sectors.
    pub jumps: Vec<f64>,
    /// Pattern of the skews.
    pub pattern: Pattern,
}

/// Pattern in the skews of consecutive tracks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pattern {
    /// All skews are equal.
    Plain { step: f64 },
    /// Every `period`-th skew differs, because a cylinder or a band ends there.
    Periodic {
        period: u64,
        step: f64,
        end: f64,
        /// Index of the first skew that differs.
        first: u64,
    },
}

impl Grid {
    /// Returns the first sector of the `i`-th track before the anchor.
    pub fn track(&self, i: u64) -> u64 {
        self.start - i * self.spt
    }
    /// Returns the angle of sector `q` of track `i`, in sectors relative to the start of the
    /// anchor.
    pub fn angle(&self, i: u64, q: u64) -> f64 {
        q as f64 - (0..i).map(|k| self.jump(k)).sum::<f64>()
    }
    fn jump(&self, k: u64) -> f64 {
        match self.pattern {
            Pattern::Plain { step } => step,
            Pattern::Periodic {
                period,
                step,
                end,
                first,
            } => {
                if k >= first && (k - first).is_multiple_of(period) {
                    end
                } else {
                    step
                }
            }
        }
    }
}

/// Resolution of the first search for a track boundary, sectors. A read closer to the previous read
/// might be served from the read-ahead of the drive.
const COARSE: u64 = 16;

/// Finds the first sector of the track that contains `known`. The sector `low` is on the track
/// before. Returns two sectors before and after the boundary, at most [`COARSE`] apart. Returns
/// `None` if a read was served from the cache.
fn boundary(
    s: &mut Session<'_>,
    spindle: Spindle,
    (low, known): (u64, u64),
    spt: f64,
    hit_ms: f64,
) -> Result<Option<(u64, u64)>, Stop> {
    let unit = u64::from(s.facts().block.max(1));
    let n = unit as u32;
    let reference = s.send(Io::read(known, n))?;
    let (mut lo, mut hi) = (low, known);
    let mut aside = low.saturating_sub(3 * spt as u64);
    while hi - lo > COARSE.max(unit) {
        let mid = (lo + (hi - lo) / 2) / unit * unit;
        // If the target passed under the head shortly after the last read, the read would be as
        // fast as a cache hit. Therefore the head is first moved to lower addresses. On the way to
        // higher addresses the drive might read all sectors in between.
        aside = aside.saturating_sub(64);
        s.send(Io::read(aside / unit * unit, n))?;
        let t = s.send(Io::read(mid, n))?;
        if t.ms() < hit_ms {
            return Ok(None);
        }
        let expected = (known - mid) as f64 / spt;
        if same_track(spindle.between(reference, t) + expected) {
            hi = mid;
        } else {
            lo = mid;
        }
    }
    // If one bound never changed, the boundary may be outside the interval.
    Ok((lo != low && hi != known).then_some((lo, hi)))
}

/// Maps the tracks before `lba`. The zone must contain at least `room` sectors before `lba`.
pub(crate) fn grid_at(
    s: &mut Session<'_>,
    spindle: Spindle,
    lba: u64,
    room: u64,
    spt: f64,
    hit_ms: f64,
) -> Result<Option<Grid>, Stop> {
    let unit = u64::from(s.facts().block.max(1));
    let lba = lba / unit * unit;
    let whole = (lba - spt as u64) / unit * unit;
    let Some(first) = boundary(s, spindle, (whole, lba), spt, hit_ms)? else {
        return Ok(None);
    };
    let (mut lo, mut hi) = first;
    let start = (lo + hi) as f64 / 2.0;
    // The boundaries of tracks at growing distances determine the track length more and more
    // exactly.
    let (mut exact, mut pm) = (spt, 0.008 * spt);
    for k in [1u64, 4, 16, 64, 256] {
        if k as f64 * spt > room as f64 / 2.0 {
            break;
        }
        let near = start - k as f64 * exact;
        let reach = k as f64 * pm + 2.0 * COARSE.max(unit) as f64;
        if reach > exact * 0.45 {
            return Ok(None);
        }
        let low = (near - reach) as u64 / unit * unit;
        let known = (near + reach) as u64 / unit * unit;
        let Some(b) = boundary(s, spindle, (low, known), exact, hit_ms)? else {
            return Ok(None);
        };
        exact = (start - (b.0 + b.1) as f64 / 2.0) / k as f64;
        pm = COARSE.max(unit) as f64 / k as f64;
    }
    let spt = libm::round(exact) as u64;
    // When the track length is exact, the boundaries of other tracks narrow the bounds of the
    // start.
    let mut i = 300;
    while hi - lo > unit && (i + 3) * spt < room {
        let mid = (lo + (hi - lo) / 2) / unit * unit;
        let (test, known) = (mid - i * spt, (mid - i * spt + spt / 2) / unit * unit);
        if mid == lo || !test.is_multiple_of(unit) {
            // Reads must be aligned, so this position cannot be read on this track. It may be
            // possible on the next track.
            i += 1;
            if i > 340 {
                break;
            }
            continue;
        }
        let a = s.send(Io::read(known, unit as u32))?;
        let b = s.send(Io::read(test, unit as u32))?;
        let expected = (known - test) as f64 / spt as f64;
        if same_track(spindle.between(a, b) + expected) {
            hi = mid;
        } else {
            lo = mid;
        }
        i += 1;
    }
    let mut grid = Grid {
        start: hi,
        loose: hi - lo - 1,
        spt,
        jumps: vec![],
        pattern: Pattern::Plain { step: 0.0 },
    };
    // The heads of a cylinder can be found with few tracks. The tracks of a band need many.
    for tracks in [96, s.count(2200, 500)] {
        let tracks = (tracks as u64).min(room / grid.spt);
        let left = s.left_s() * 0.4;
        let tracks = tracks.min((left / spindle.turn_ms * 1e3) as u64);
        extend(s, spindle, &mut grid, tracks)?;
        grid.pattern = pattern(&grid.jumps);
        if matches!(grid.pattern, Pattern::Periodic { .. }) {
            break;
        }
    }
    Ok(Some(grid))
}

/// Reads one sector of each track up to track `tracks`, and records the skews.
fn extend(s: &mut Session<'_>, spindle: Spindle, grid: &mut Grid, tracks: u64) -> Result<(), Stop> {
    let unit = u64::from(s.facts().block.max(1));
    let place = |g: &Grid, i: u64| (g.track(i) + g.spt * 3 / 8) / unit * unit;
    let done = grid.jumps.len() as u64;
    let mut last = s.send(Io::read(place(grid, done), unit as u32))?;
    for i in done + 1..tracks {
        let t = s.send(Io::read(place(grid, i), unit as u32))?;
        let q = |i: u64| (place(grid, i) - grid.track(i)) as f64;
        // This read is one track closer to the outer edge than the last read. Without skew, the
        // angle would change by the difference between the positions of the two sectors in their
        // tracks. The skew is this difference minus the measured change.
        let moved = spindle.between(last, t);
        let jump = frac((q(i) - q(i - 1)) / grid.spt as f64 - moved) * grid.spt as f64;
        grid.jumps.push(jump);
        last = t;
    }
    Ok(())
}

/// Finds the two levels and the period in a series of skews.
pub(crate) fn pattern(jumps: &[f64]) -> Pattern {
    let mut sorted = jumps.to_vec();
    sorted.sort_by(f64::total_cmp);
    let plain = Pattern::Plain {
        step: libm::round(median(jumps)),
    };
    // The widest gap between the sorted skews separates the two levels, if it is wider than each
    // level. Each level has at least `few` members. Quantiles are used so that outliers do not
    // widen a level.
    let few = 3;
    if sorted.len() < 2 * few {
        return plain;
    }
    let gap_at = |i: &usize| sorted[*i] - sorted[*i - 1];
    let Some(at) = (few..=sorted.len() - few).max_by(|a, b| gap_at(a).total_cmp(&gap_at(b))) else {
        return plain;
    };
    let (low, high) = sorted.split_at(at);
    let gap = gap_at(&at);
    let width = |v: &[f64]| quantile_sorted(v, 0.95) - quantile_sorted(v, 0.05);
    if gap < 1.5 || gap < 1.5 * width(low).max(width(high)) {
        return plain;
    }
    let split = (low[low.len() - 1] + high[0]) / 2.0;
    // The less frequent level belongs to the end of a cylinder or band. If both are equally
    // frequent, the larger skew does.
    let rare_high = high.len() <= low.len();
    let ends: Vec<u64> = (0..jumps.len())
        .filter(|i| (jumps[*i] > split) == rare_high)
        .map(|i| i as u64)
        .collect();
    if ends.len() < 3 {
        return plain;
    }
    let between: Vec<f64> = ends.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
    let period = libm::round(median(&between)) as u64;
    let regular = between.iter().filter(|d| **d as u64 == period).count();
    if period < 2 || regular * 10 < between.len() * 7 {
        return plain;
    }
    let (step, end) = if rare_high { (low, high) } else { (high, low) };
    Pattern::Periodic {
        period,
        step: libm::round(median(step)),
        end: libm::round(median(end)),
        first: ends[0] % period,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_heads_is_the_period_of_the_angle_jumps() {
        let jumps: Vec<f64> = (0..80)
            .map(|i| if i % 4 == 2 { 130.0 } else { 96.0 } + 0.2 * f64::from(i % 3))
            .collect();
        assert_eq!(
            pattern(&jumps),
            Pattern::Periodic {
                period: 4,
                step: 96.0,
                end: 130.0,
                first: 2
            }
        );
    }

    #[test]
    fn alternating_jumps_mean_two_heads() {
        let jumps: Vec<f64> = (0..80)
            .map(|i| if i % 2 == 1 { 130.0 } else { 96.0 })
            .collect();
        let Pattern::Periodic { period, end, .. } = pattern(&jumps) else {
            panic!("no period");
        };
        assert_eq!((period, end), (2, 130.0));
    }

    #[test]
    fn noise_gives_no_periodic_pattern() {
        let jumps: Vec<f64> = (0..80)
            .map(|i| 96.0 + f64::from(i * 7 % 10) / 5.0)
            .collect();
        assert!(matches!(pattern(&jumps), Pattern::Plain { .. }));
    }
}
