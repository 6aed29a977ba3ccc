//! Probe P6, which measures the seek curve and the overhead of a command. Its method is the minimum
//! time between completions over all angles of the target (MTBRC, Worthington et al. 1995).
//!
//! A read at another address consists of the seek and a rotational wait of less than one
//! revolution. Therefore the measured time is an upper bound of the seek time. The measured time
//! minus one revolution is a lower bound. The angles of the sectors are known, so the next target
//! is chosen to halve the interval between the bounds. If the angle is predicted wrongly, one read
//! is wasted, but the bounds stay correct.

use super::track::{Grid, Pattern, Spindle};
use super::zones::Zones;
use crate::probe::{Io, Stop, Timed};
use crate::session::{SMALL, Session};
use crate::stats::frac;
use libm::{pow, sqrt};

/// Bounds of a seek time. Each sample gives an interval of the length of one revolution.
#[derive(Debug, Clone)]
struct Bracket {
    turn: f64,
    samples: Vec<f64>,
}

impl Bracket {
    /// Returns the interval that is contained in the most sample intervals.
    fn bounds(&self) -> (f64, f64) {
        let mut ends: Vec<(f64, i32)> = vec![];
        for l in &self.samples {
            ends.push(((l - self.turn).max(0.0), 1));
            ends.push((*l, -1));
        }
        ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let (mut depth, mut best) = (0, (0, 0.0, self.turn));
        for (i, (x, step)) in ends.iter().enumerate() {
            depth += step;
            if depth > best.0 && i + 1 < ends.len() {
                best = (depth, *x, ends[i + 1].0);
            }
        }
        (best.1, best.2)
    }
    fn mid(&self) -> f64 {
        let (lo, hi) = self.bounds();
        (lo + hi) / 2.0
    }
}

/// The measurement ends when the bounds differ by less than this, ms.
const FINE: f64 = 0.04;
/// If half the difference of the bounds exceeds this, the measurement did not converge, ms.
const WIDE: f64 = 0.1;
/// Maximum number of reads per distance.
const LEGS: usize = 18;

/// Maximum time between a completion and the next command of the host, ms.
const TURNAROUND_MS: f64 = 0.12;

/// A point of the seek curve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// Seek distance, cylinders.
    pub distance: f64,
    /// Minimum time between completions, without the transfer, ms.
    pub ms: f64,
    /// Half-width of the interval, ms.
    pub pm: f64,
    pub samples: usize,
}

/// The last small read at one end of the measured distance.
#[derive(Debug, Clone, Copy)]
struct End {
    lba: u64,
    at: Timed,
    spt: f64,
}

impl End {
    /// Returns an address at most one track before the last read. A read there that starts after
    /// `now` would complete `tau` ms after `now`.
    fn aim(&self, spindle: Spindle, now: Timed, tau: f64) -> u64 {
        let back = frac(spindle.between(now, self.at) - tau / spindle.turn_ms);
        let k = ((back * self.spt) as u64 / 8 * 8).max(8);
        self.lba.saturating_sub(k)
    }
}

/// Measures the seek between two addresses far apart, in both directions.
fn far(
    s: &mut Session<'_>,
    spindle: Spindle,
    zones: &Zones,
    a: u64,
    b: u64,
    hit_ms: f64,
) -> Result<Option<Point>, Stop> {
    let last = s.capacity() - u64::from(SMALL);
    let mut bracket = Bracket {
        turn: spindle.turn_ms,
        samples: vec![],
    };
    let place = |lba: u64| lba.min(last) / 8 * 8;
    let first = s.read(place(a))?;
    let mut here = End {
        lba: place(a),
        at: first,
        spt: zones.at(a),
    };
    let t = s.read(place(b))?;
    bracket.samples.push((t.done - first.done) as f64 / 1e6);
    let mut there = here;
    here = End {
        lba: place(b),
        at: t,
        spt: zones.at(b),
    };
    for _ in 0..LEGS {
        let lba = there.aim(spindle, here.at, bracket.mid());
        let t = s.read(lba)?;
        let l = (t.done - here.at.done) as f64 / 1e6;
        if t.ms() > hit_ms {
            bracket.samples.push(l);
        }
        there = here;
        here = End {
            lba,
            at: t,
            spt: zones.at(lba),
        };
        let (lo, hi) = bracket.bounds();
        if hi - lo < FINE {
            break;
        }
    }
    let (lo, hi) = bracket.bounds();
    if bracket.samples.len() < 4 {
        return Ok(None);
    }
    let transfer = spindle.turn_ms * f64::from(SMALL) / zones.at(b);
    Ok(Some(Point {
        distance: 0.0,
        ms: (lo + hi) / 2.0 - transfer,
        pm: (hi - lo) / 2.0,
        samples: bracket.samples.len(),
    }))
}

/// Measures the seek between two tracks on the same head that are `apart` tracks from each other.
/// With 0 both sectors are on one track. Each attempt uses new tracks, `fresh` tracks closer to the
/// outer edge.
fn near(
    s: &mut Session<'_>,
    spindle: Spindle,
    grid: &Grid,
    apart: u64,
    fresh: u64,
    hit_ms: f64,
) -> Result<Option<Point>, Stop> {
    let unit = u64::from(s.facts().block.max(1));
    let spt = grid.spt;
    let mut bracket = Bracket {
        turn: spindle.turn_ms,
        samples: vec![],
    };
    let align = |lba: u64| lba / unit * unit;
    // On one track, the first read is shortly before the end of the track. The margin keeps the
    // read-ahead on this track until the next command arrives. Seeks to other tracks start from the
    // middle of a track.
    let margin = (TURNAROUND_MS / spindle.turn_ms * spt as f64) as u64;
    let leave = if apart == 0 {
        spt - unit - margin - grid.loose
    } else {
        spt / 2
    };
    let (mut lo, mut hi) = (0.0, spindle.turn_ms);
    for i in 0..LEGS as u64 {
        // The seeks go towards the outer edge. In the other direction a drive may read all sectors
        // in between.
        let (from, to) = (2 + i * fresh, 2 + i * fresh + apart);
        let start = align(grid.track(from) + leave);
        let q = start - grid.track(from);
        let first = s.send(Io::read(start, unit as u32))?;
        // Angle of the target in sectors, relative to the start of its track.
        let mut tau = (lo + hi) / 2.0 / spindle.turn_ms * spt as f64;
        if apart == 0 {
            // Later sectors of the same track would be read by streaming and not after a seek.
            let least = (spt - q + unit + grid.loose) as f64;
            if tau < least && hi / spindle.turn_ms * spt as f64 <= least + 8.0 {
                break;
            }
            tau = tau.max(least);
        }
        let angle = grid.angle(from, q) + tau - grid.angle(to, 0);
        let at = frac(angle / spt as f64) * spt as f64;
        let at = (at as u64).clamp(grid.loose, spt - unit - grid.loose);
        let target = align(grid.track(to) + at);
        let t = s.send(Io::read(target, unit as u32))?;
        // An access on the same track can be as fast as a cache hit.
        if t.ms() > hit_ms * if apart == 0 { 0.5 } else { 1.0 } {
            bracket.samples.push((t.done - first.done) as f64 / 1e6);
        }
        (lo, hi) = bracket.bounds();
        if hi - lo < FINE {
            break;
        }
    }
    if bracket.samples.len() < 4 {
        return Ok(None);
    }
    let transfer = spindle.turn_ms * unit as f64 / spt as f64;
    Ok(Some(Point {
        distance: apart as f64,
        ms: (lo + hi) / 2.0 - transfer,
        pm: (hi - lo) / 2.0,
        samples: bracket.samples.len(),
    }))
}

/// The measured seek curve.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    /// Command overhead, ms. `None` if the track grid did not allow a measurement.
    pub overhead: Option<Point>,
    /// Points of the curve. They include the overhead.
    pub points: Vec<Point>,
    pub cylinders: f64,
}

/// Returns the number of tracks between two neighbouring cylinders on the same head.
pub(crate) fn unit_of(grid: Option<&Grid>, heads: u64) -> u64 {
    match grid.map(|g| g.pattern) {
        Some(Pattern::Periodic { period, .. }) if period <= heads => period,
        _ => 1,
    }
}

/// Measures the seek curve. One cylinder consists of `heads` tracks.
pub(crate) fn measure(
    s: &mut Session<'_>,
    spindle: Spindle,
    zones: &Zones,
    grid: Option<&Grid>,
    heads: u64,
    hit_ms: f64,
) -> Result<Curve, Stop> {
    s.stage("seek curve");
    let tracks = zones.tracks(zones.capacity);
    let cylinders = tracks / heads as f64;
    let mut curve = Curve {
        overhead: None,
        points: vec![],
        cylinders,
    };
    if let Some(g) = grid {
        curve.overhead = near(s, spindle, g, 0, 1, hit_ms)?;
        let unit = unit_of(grid, heads);
        for d in [1u64, 2, 4, 8] {
            if let Some(p) = near(s, spindle, g, d * unit, unit, hit_ms)? {
                curve.points.push(Point {
                    distance: d as f64,
                    ..p
                });
            }
        }
    }
    let n = s.count(24, 12).min(48);
    let repeats = s.count(2, 1).min(4);
    let (least, most) = (32.0f64, cylinders * 0.97);
    for i in 0..n {
        // Large distances contribute most to the mean, so more points are measured there.
        let f = i as f64 / (n - 1) as f64;
        let d = least * pow(most / least, sqrt(f));
        let mut all: Vec<Point> = vec![];
        // If predictions fail, the bounds of a pair of addresses stay wide. The measurement is then
        // repeated at other addresses.
        for _ in 0..2 * repeats {
            if all.iter().filter(|p| p.pm < WIDE).count() >= repeats {
                break;
            }
            let room = (tracks - d * heads as f64 - 40.0 * heads as f64).max(1.0);
            let at = 20.0 * heads as f64 + s.below(room as u64) as f64;
            let (a, b) = (zones.lba(at), zones.lba(at + d * heads as f64));
            all.extend(far(s, spindle, zones, a, b, hit_ms)?);
        }
        if all.iter().any(|p| p.pm < WIDE) {
            all.retain(|p| p.pm < WIDE);
        }
        if !all.is_empty() {
            let k = all.len() as f64;
            curve.points.push(Point {
                distance: libm::round(d),
                ms: all.iter().map(|p| p.ms).sum::<f64>() / k,
                pm: all.iter().map(|p| p.pm).sum::<f64>() / k / sqrt(k),
                samples: all.iter().map(|p| p.samples).sum(),
            });
        }
    }
    Ok(curve)
}
