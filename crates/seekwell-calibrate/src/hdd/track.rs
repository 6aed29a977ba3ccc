//! P3 to P5, angles and tracks. With a known revolution, the completion time of a read gives the
//! angle of its last sector. Reading backwards within a track, the angle falls by one sector's
//! share per step. A jump marks the end of a track, and its size is the skew. The reads go
//! backwards because a drive reads ahead: sectors before the head are not in its cache.

use crate::probe::{Io, Stop, Timed};
use crate::session::{SMALL, Session};
use crate::stats::{frac, median, quantile_sorted};
use seekwell_stats::{deviation, t_quantile};

/// The spindle as a clock, in revolutions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spindle {
    pub turn_ms: f64,
    pub origin: u64,
}

impl Spindle {
    /// Revolutions since the origin.
    pub fn turns(&self, t: u64) -> f64 {
        (t as f64 - self.origin as f64) / 1e6 / self.turn_ms
    }
    /// Fraction of a revolution from `a` to `b`.
    pub fn between(&self, a: Timed, b: Timed) -> f64 {
        frac(self.turns(b.done) - self.turns(a.done))
    }
}

/// Whether an angle, in revolutions, is that expected for a sector on the same track. A busy host
/// is sometimes late, which looks like an angle further on; a skew looks like an angle further
/// back.
fn same_track(off: f64) -> bool {
    let f = frac(off);
    !(LATE..=1.0 - EARLY).contains(&f)
}

/// Sectors per track around a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrackLength {
    pub sectors: f64,
    /// Half of the 95 % interval.
    pub pm: f64,
    /// What noise may do to it: 1.96 standard errors. Zones are told apart and averaged by it: the
    /// noise is the same everywhere, so few samples are no reason for a wider limit.
    pub noise: f64,
}

/// Residual angles up to this count as zero, in revolutions: timing noise, not a skew.
const SAME: f64 = 0.011;
/// How late a read, and the read it is compared with, may be, in revolutions.
const LATE: f64 = 0.05;
const EARLY: f64 = 0.013;
/// Backward steps of a measurement of the track length.
const STEPS: usize = 12;
/// Number of repetitions of a noisy measurement.
const PASSES: u64 = 6;

/// Sectors per track around `lba`; `guess` may be off by a third. Noisy measurements are repeated
/// further towards the rim.
pub(crate) fn length_at(
    s: &mut Session<'_>,
    spindle: Spindle,
    lba: u64,
    guess: f64,
) -> Result<Option<TrackLength>, Stop> {
    let delta = ((guess / 10.0) as u64 / 8 * 8).max(8);
    let reach = delta * (STEPS as u64 + 1);
    let mut top = lba.clamp(PASSES * reach, s.capacity() - u64::from(SMALL)) / 8 * 8;
    // Sectors and turns over all runs, the variance of a step and its degrees of freedom.
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
        // Each run is off by the noise of its first and its last read, as a step is.
        let half = |quantile: f64| length * (quantile * libm::sqrt(var) / turns).max(0.2 / length);
        TrackLength {
            sectors: length,
            pm: half(t_quantile(0.975, df)),
            noise: half(1.96),
        }
    }))
}

/// The longest row of backward steps within one track.
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

/// The tracks around one place, exact to the sector.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// First sector of a track; each track before it begins `spt` sectors earlier.
    pub start: u64,
    /// Uncertainty of `start`: it may be this many sectors lower.
    pub loose: u64,
    /// Sectors per track, whole.
    pub spt: u64,
    /// Jump from track -i-1 to track -i, in sectors.
    pub jumps: Vec<f64>,
    /// The steps in the order of the tracks.
    pub pattern: Pattern,
}

/// Order of the tracks, derived from the jumps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pattern {
    /// All jumps are equal.
    Plain { step: f64 },
    /// Every `period`-th jump differs: heads of a cylinder, or tracks of a band.
    Periodic {
        period: u64,
        step: f64,
        end: f64,
        /// Index of the first jump that differs.
        first: u64,
    },
}

impl Grid {
    /// First sector of the track `i` before the anchor.
    pub fn track(&self, i: u64) -> u64 {
        self.start - i * self.spt
    }
    /// Angle of sector `q` of track `i`, in sectors relative to the start of the anchor track.
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

/// Boundaries are first located to this many sectors. Closer reads may hit the read-ahead of the
/// previous read.
const COARSE: u64 = 16;

/// Finds where the track of `known` begins. `low` is on the track before. Returns two sectors
/// around the boundary, at most [`COARSE`] apart, or `None` if a read came from the cache.
fn boundary(
    s: &mut Session<'_>,
    spindle: Spindle,
    (low, known): (u64, u64),
    spt: f64,
    hit_ms: f64,
) -> Result<Option<(u64, u64)>, Stop> {
    let unit = u64::from(s.facts().block.max(1));
    let n = unit as u32;
    let reference = s.one(Io::read(known, n))?;
    let (mut lo, mut hi) = (low, known);
    let mut aside = low.saturating_sub(3 * spt as u64);
    while hi - lo > COARSE.max(unit) {
        let mid = (lo + (hi - lo) / 2) / unit * unit;
        // The target must not pass under the head soon after the last read: such a read is as fast
        // as a cache hit. So the head is first moved back some tracks. In the other direction the
        // drive might read everything in between.
        aside = aside.saturating_sub(64);
        s.one(Io::read(aside / unit * unit, n))?;
        let t = s.one(Io::read(mid, n))?;
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
    // An end that never moved is not a bound.
    Ok((lo != low && hi != known).then_some((lo, hi)))
}

/// Maps the tracks before `lba`, in a zone that reaches at least `room` sectors further down.
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
    // Boundaries at growing distances make the length exact.
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
    // With an exact length, new tracks refine the coarse bounds of the start.
    let mut i = 300;
    while hi - lo > unit && (i + 3) * spt < room {
        let mid = (lo + (hi - lo) / 2) / unit * unit;
        let (test, known) = (mid - i * spt, (mid - i * spt + spt / 2) / unit * unit);
        if mid == lo || !test.is_multiple_of(unit) {
            // Aligned reads cannot reach this place on this track; they may on the next one.
            i += 1;
            if i > 340 {
                break;
            }
            continue;
        }
        let a = s.one(Io::read(known, unit as u32))?;
        let b = s.one(Io::read(test, unit as u32))?;
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
    // Few tracks show the heads of a cylinder, many show the tracks of a band.
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

/// Reads one sector of each track up to track `tracks`, and records the jumps.
fn extend(s: &mut Session<'_>, spindle: Spindle, grid: &mut Grid, tracks: u64) -> Result<(), Stop> {
    let unit = u64::from(s.facts().block.max(1));
    let place = |g: &Grid, i: u64| (g.track(i) + g.spt * 3 / 8) / unit * unit;
    let done = grid.jumps.len() as u64;
    let mut last = s.one(Io::read(place(grid, done), unit as u32))?;
    for i in done + 1..tracks {
        let t = s.one(Io::read(place(grid, i), unit as u32))?;
        let q = |i: u64| (place(grid, i) - grid.track(i)) as f64;
        // Towards the rim the angle advances by the distance between the two sectors in their
        // tracks, less the jump.
        let moved = spindle.between(last, t);
        let jump = frac((q(i) - q(i - 1)) / grid.spt as f64 - moved) * grid.spt as f64;
        grid.jumps.push(jump);
        last = t;
    }
    Ok(())
}

/// Finds the levels and the period in a series of jumps.
pub(crate) fn pattern(jumps: &[f64]) -> Pattern {
    let mut sorted = jumps.to_vec();
    sorted.sort_by(f64::total_cmp);
    let plain = Pattern::Plain {
        step: libm::round(median(jumps)),
    };
    // The widest gap separates the levels if it is wider than the levels themselves. A level has at
    // least `few` members; outliers at its outer end do not widen it.
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
    // The rarer level marks the end of a cylinder or band; if both are equally common, the longer
    // one does.
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
    fn heads_show_as_the_period_of_the_jumps() {
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
    fn two_heads_alternate() {
        let jumps: Vec<f64> = (0..80)
            .map(|i| if i % 2 == 1 { 130.0 } else { 96.0 })
            .collect();
        let Pattern::Periodic { period, end, .. } = pattern(&jumps) else {
            panic!("no period");
        };
        assert_eq!((period, end), (2, 130.0));
    }

    #[test]
    fn noise_is_no_pattern() {
        let jumps: Vec<f64> = (0..80)
            .map(|i| 96.0 + f64::from(i * 7 % 10) / 5.0)
            .collect();
        assert!(matches!(pattern(&jumps), Pattern::Plain { .. }));
    }
}
