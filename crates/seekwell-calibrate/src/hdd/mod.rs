//! Fits the parameters of an `hdd` preset to a hard disk. Only reads are needed.
//!
//! The most important parameters of a preset are measured first, because the time budget may end
//! early. The order is: revolution, tracks and zones, order of tracks, seek curve and overhead,
//! queue, sequential rates, cache. At the end, the fitted model serves the same random reads as the
//! device, and the two latency distributions are compared.

mod cache;
mod period;
mod queue;
mod seek;
mod track;
mod write;
mod zones;

use crate::fit::{Curve, Demerit, Estimate, Val};
use crate::probe::{Io, Stop};
use crate::session::{SMALL, Session};
use crate::stats::{demerit, half_width, line, median, quantile};
use crate::{model, preset};
pub(crate) use period::Period;
use seekwell_stats::mean;
use track::{Grid, Pattern, Spindle};
use zones::Zones;

/// Lower limit of the median random-read latency of a hard disk, ms. A disk waits for half a
/// revolution on average, so its random reads take several milliseconds.
pub(crate) const SLOW: f64 = 1.0;

/// Searches for a spindle: measures the revolution and the latency of cache hits.
pub(crate) fn period(s: &mut Session<'_>) -> Result<(Period, cache::Hits), Stop> {
    let hits = cache::hits(s)?;
    Ok((period::measure(s, hits.below_ms)?, hits))
}

/// Measures all other parameters. If the disk cannot be fitted, the inner `Err` contains the
/// reason.
pub(crate) fn fit(
    s: &mut Session<'_>,
    p: Period,
    hits: cache::Hits,
) -> Result<Result<(), String>, Stop> {
    let origin = s.read(0)?.done;
    let spindle = Spindle {
        turn_ms: p.turn_ms,
        origin,
    };
    let rpm = 60_000.0 / p.turn_ms;
    s.found(
        Estimate::num(
            "rpm",
            rpm,
            "rpm",
            "P1: completion times of far places agree modulo one revolution",
        )
        .pm(rpm * p.pm_ms / p.turn_ms)
        .n(p.samples),
    );
    let zones = match zones::measure(s, spindle)? {
        Ok(z) => z,
        Err(why) => return Ok(Err(why)),
    };
    found_zones(s, &zones);
    let (grid, heads) = tracks(s, spindle, &zones, hits.below_ms)?;
    let curve = seek::measure(s, spindle, &zones, grid.as_ref(), heads, hits.below_ms)?;
    found_seek(s, &curve);
    found_queue(s, hits.below_ms, p.mean_ms)?;
    let rates = rates(s)?;
    if grid.is_none() {
        switch_from_rates(s, spindle, &zones, &rates);
    }
    found_cache(s, hits, rates[0].1)?;
    if s.facts().may_write {
        write::measure(s, spindle, hits)?;
    }
    validate(s, &rates, p.mean_ms)?;
    Ok(Ok(()))
}

fn found_zones(s: &mut Session<'_>, z: &Zones) {
    // The number of sectors per track is an integer.
    let rows: Vec<(f64, f64)> = z
        .zones
        .iter()
        .map(|z| (z.first as f64, libm::round(z.length.sectors)))
        .collect();
    let worst = z
        .zones
        .iter()
        .map(|z| z.length.pm / z.length.sectors)
        .fold(0.0f64, f64::max);
    s.found(
        Estimate::new_value(
            "zone_table",
            Val::Pairs(rows),
            "first sector, sectors per track",
            &format!(
                "P4: angles of neighbouring sectors, zone limits by halving; lengths within {:.2} %",
                worst * 100.0
            ),
        )
        .n(z.samples),
    );
}

/// Measures the order of tracks (P5) in the largest zone. Records the parameters of heads and
/// bands. Returns the map of the tracks, if there is one, and the number of heads.
fn tracks(
    s: &mut Session<'_>,
    spindle: Spindle,
    z: &Zones,
    hit_ms: f64,
) -> Result<(Option<Grid>, u64), Stop> {
    s.stage("order of tracks");
    let width = |i: usize| z.end(i) - z.zones[i].first;
    let mut order: Vec<usize> = (0..z.zones.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(width(*i)));
    let mut grid = None;
    for i in order.iter().take(3) {
        let spt = z.zones[*i].length.sectors;
        // A tenth of the zone at each end is not used, because the measured zone limits are not
        // exact.
        let (from, to) = (
            z.zones[*i].first + width(*i) / 10,
            z.end(*i) - width(*i) / 10,
        );
        // An attempt can fail because of a cache hit or a disturbed read.
        for _ in 0..4 {
            let apart = s.below((to - from) / 4);
            let lba = (to - apart) / 8 * 8;
            let room = (lba - from).saturating_sub(2 * spt as u64);
            if grid.is_none() && room as f64 > 30.0 * spt {
                grid = track::grid_at(s, spindle, lba, room, spt, hit_ms)?;
            }
        }
    }
    let ms = |g: &Grid, skew: f64| ((skew - 1.0) / g.spt as f64 * spindle.turn_ms).max(0.0);
    let sector = |g: &Grid| spindle.turn_ms / g.spt as f64;
    let count = |key, n: f64, unit, how: &str| Estimate::num(key, n, unit, how);
    let Some(g) = grid else {
        s.found(
            count(
                "surfaces",
                4.0,
                "surfaces",
                "P5 found no track boundaries; a typical value is used",
            )
            .unknown(),
        );
        return Ok((None, 4));
    };
    let n = g.jumps.len();
    let how = "P5: skew between tracks";
    match g.pattern {
        Pattern::Plain { step } => {
            s.found(
                count(
                    "surfaces",
                    1.0,
                    "surfaces",
                    "P5: all track switches are equal, so the heads cannot be counted",
                )
                .unknown()
                .n(n),
            );
            let t = ms(&g, step);
            for key in ["head_switch", "band_switch"] {
                s.found(
                    Estimate::num(key, t, "ms", how)
                        .between(t - sector(&g), t)
                        .n(n),
                );
            }
            Ok((Some(g), 1))
        }
        Pattern::Periodic {
            period, step, end, ..
        } => {
            let heads = if period <= 40 { period } else { 4 };
            if period <= 40 {
                s.found(
                    count(
                        "surfaces",
                        heads as f64,
                        "surfaces",
                        "P5: period of the skews",
                    )
                    .n(n),
                );
                let t = ms(&g, step);
                s.found(
                    Estimate::num("head_switch", t, "ms", how)
                        .between(t - sector(&g), t)
                        .n(n),
                );
            } else {
                s.found(
                    Estimate::new_value("layout", Val::Word("serpentine"), "", "P5: long bands")
                        .n(n),
                );
                s.found(
                    count(
                        "band_tracks",
                        period as f64,
                        "tracks",
                        "P5: period of the skews",
                    )
                    .n(n),
                );
                s.found(
                    count(
                        "surfaces",
                        heads as f64,
                        "surfaces",
                        "the number of heads cannot be derived from bands; a typical value is used",
                    )
                    .unknown(),
                );
                let t = ms(&g, step);
                s.found(
                    Estimate::num("seek_track", t, "ms", "P5: skew within a band")
                        .between(t - sector(&g), t)
                        .n(n),
                );
            }
            let t = ms(&g, end);
            s.found(
                Estimate::num("band_switch", t, "ms", how)
                    .between(t - sector(&g), t)
                    .n(n),
            );
            if period > 40 {
                s.found(
                    Estimate::num("head_switch", t, "ms", "P5: skew at the end of a band").n(n),
                );
            }
            Ok((Some(g), heads))
        }
    }
}

/// Records the points of the seek curve without the command overhead, and its summary.
fn found_seek(s: &mut Session<'_>, c: &seek::Curve) {
    let overhead = match c.overhead {
        Some(p) => {
            let method = "P6: least time between reads of one track";
            s.found(
                Estimate::num("overhead", p.ms, "ms", method)
                    .pm(p.pm)
                    .n(p.samples),
            );
            p.ms
        }
        None => {
            let method = "cannot be separated from the seek time; the default is used";
            s.found(Estimate::num("overhead", 0.2, "ms", method).unknown());
            0.2
        }
    };
    let mut rows: Vec<(f64, f64)> = vec![];
    for p in &c.points {
        if rows.last().is_none_or(|r| p.distance > r.0) {
            rows.push((p.distance, (p.ms - overhead).max(0.0)));
        }
    }
    if rows.len() < 4 {
        s.note("seek curve: too few distances could be measured; the generic curve is used");
        return;
    }
    let n: usize = c.points.iter().map(|p| p.samples).sum();
    let pm = c.points.iter().map(|p| p.pm).fold(0.0f64, f64::max);
    let at = |d: f64| {
        let i = rows.partition_point(|r| r.0 <= d).clamp(1, rows.len() - 1);
        let ((x0, y0), (x1, y1)) = (rows[i - 1], rows[i]);
        y0 + (y1 - y0) * (d - x0) / (x1 - x0)
    };
    // For two uniformly random cylinders, the density of their distance falls linearly to zero at
    // full stroke.
    let steps = 4000;
    let mean = (0..steps)
        .map(|i| {
            let x = (f64::from(i) + 0.5) / f64::from(steps);
            2.0 * (1.0 - x) * at(x * c.cylinders)
        })
        .sum::<f64>()
        / f64::from(steps);
    let full = at(c.cylinders);
    s.found(
        Estimate::num(
            "seek_average",
            mean,
            "ms",
            "P6: mean of the curve over uniform pairs",
        )
        .pm(pm / libm::sqrt(rows.len() as f64) + c.overhead.map_or(0.1, |p| p.pm))
        .n(n),
    );
    s.found(
        Estimate::num("seek_full", full, "ms", "P6: the curve's end")
            .pm(pm)
            .n(n),
    );
    let short: Vec<(f64, f64)> = rows
        .iter()
        .filter(|r| r.0 >= 4.0 && r.0 < 0.08 * c.cylinders)
        .map(|r| (libm::sqrt(r.0), r.1))
        .collect();
    if let Some(l) = line(&short) {
        s.found(
            Estimate::num(
                "seek_settle",
                l.intercept.clamp(0.0, mean * 0.99),
                "ms",
                "P6: intercept of a + b sqrt(d)",
            )
            .pm(l.intercept_pm)
            .n(short.len()),
        );
    }
    if rows[0].0 == 1.0 && s.estimates().iter().all(|e| e.key != "seek_track") {
        s.found(
            Estimate::num("seek_track", rows[0].1, "ms", "P6: one cylinder")
                .pm(c.points[0].pm)
                .n(c.points[0].samples),
        );
    }
    s.found(Estimate::new_value("seek_form", Val::Word("table"), "", "P6").n(n));
    s.found(
        Estimate::new_value(
            "seek_table",
            Val::Pairs(rows.iter().map(|r| (r.0, round_us(r.1))).collect()),
            "cylinders, ms",
            &format!(
                "P6: least time between completions over all angles (MTBRC); points within {pm:.3} ms"
            ),
        )
        .n(n),
    );
}

fn round_us(ms: f64) -> f64 {
    libm::round(ms * 1e3) / 1e3
}

/// Measures sequential rates (P10). Returns (first sector, MB/s) at addresses from the outer edge
/// to the inner edge.
fn rates(s: &mut Session<'_>) -> Result<Vec<(u64, f64)>, Stop> {
    s.stage("sequential rates");
    let n = s.count(9, 5).min(17) as u64;
    let last = s.capacity() - s.capacity() / 64;
    let ms = (600.0 * s.scale()).clamp(250.0, 1500.0);
    (0..n)
        .map(|i| {
            let lba = last / (n - 1) * i / 8 * 8;
            Ok((lba, zones::rate_at(s, lba, ms)?))
        })
        .collect()
}

/// Estimates the switch times if no skews were measured. The estimate is the time that sequential
/// reading loses per track.
fn switch_from_rates(s: &mut Session<'_>, spindle: Spindle, z: &Zones, rates: &[(u64, f64)]) {
    let lost: Vec<f64> = rates
        .iter()
        .map(|(lba, mb)| 512.0 * z.at(*lba) / mb / 1e3 - spindle.turn_ms)
        .collect();
    let ms = median(&lost);
    // A loss of more than half a revolution is not caused by a track switch. In this case the link
    // is slower than the platter.
    if ms > 0.0 && ms < spindle.turn_ms / 2.0 {
        for key in ["head_switch", "band_switch"] {
            s.found(
                Estimate::num(
                    key,
                    ms,
                    "ms",
                    "P10: time per track of a sequential read, beyond one revolution",
                )
                .pm(half_width(&lost))
                .n(lost.len()),
            );
        }
    }
}

fn found_cache(s: &mut Session<'_>, hits: cache::Hits, rate_mb: f64) -> Result<(), Stop> {
    if hits.below_ms <= 0.0 {
        s.note("read cache: a second read of the same block is as slow as the first");
        s.found(Estimate::new_value(
            "look_ahead",
            Val::Flag(false),
            "",
            "P8: nothing hits",
        ));
        return Ok(());
    }
    if let Some((l, n)) = cache::link(s, hits)? {
        let mb = 512.0 / l.slope / 1e3;
        s.found(
            Estimate::num(
                "hit_overhead",
                l.intercept.max(0.0),
                "ms",
                "P2: latency of cache hits against their size, intercept",
            )
            .pm(l.intercept_pm)
            .n(n),
        );
        let (lo, hi) = (l.slope - l.slope_pm, l.slope + l.slope_pm);
        let e = Estimate::num(
            "bus",
            mb,
            "MB/s",
            "P2: latency of cache hits against their size, slope",
        )
        .n(n);
        s.found(if lo > 0.0 {
            e.between(512.0 / hi / 1e3, 512.0 / lo / 1e3)
        } else {
            e
        });
    }
    let segment = cache::segment(s, hits)?;
    if let Some((lo, hi)) = segment {
        let kib = |sectors: u64| sectors as f64 / 2.0;
        s.found(
            Estimate::num(
                "segment",
                libm::round(kib(lo + hi) / 2.0),
                "KiB",
                "P8: length cached behind a sequential reader",
            )
            .between(kib(lo), kib(hi))
            .n(1),
        );
        if let Some((lo, hi)) = cache::read_ahead(s, hits, rate_mb, hi)? {
            s.found(
                Estimate::num(
                    "ra_max",
                    libm::round(kib(lo + hi) / 2.0),
                    "KiB",
                    "P8: length read ahead of a read",
                )
                .between(kib(lo), kib(hi))
                .n(1),
            );
        }
    }
    if let Some((count, n)) = cache::segments(s, hits)? {
        s.found(
            Estimate::num(
                "segments_read",
                count as f64,
                "segments",
                "P8: distant reads still in the cache",
            )
            .n(n),
        );
        if let Some((lo, hi)) = segment {
            let mib = (lo + hi) as f64 / 2.0 * count as f64 / 2048.0;
            let class = libm::exp2(libm::ceil(libm::log2(mib * 0.97)));
            s.note(format!(
                "read cache: {count} segments hold {mib:.1} MiB, so the buffer is of the {class} \
                 MiB class"
            ));
        }
    }
    Ok(())
}

fn found_queue(s: &mut Session<'_>, hit_ms: f64, each_ms: f64) -> Result<(), Stop> {
    let q = queue::measure(s, hit_ms, each_ms)?;
    let n = q.samples;
    let method = "P9: greatest rank by age of a command that completed";
    s.found(Estimate::num("window", q.window as f64, "commands", method).n(n));
    let depth = s.facts().depth;
    let e = |d: u32| Estimate::num("depth", f64::from(d), "commands", "the host's queue_depth");
    match depth {
        Some(d) => s.found(e(d).stated()),
        None => s.found(
            Estimate::num(
                "depth",
                q.window as f64,
                "commands",
                "P9: maximum number of commands taken or compared",
            )
            .n(n),
        ),
    }
    if let Some((ms, forced)) = q.age {
        s.found(
            Estimate::num(
                "age_limit",
                libm::round(ms),
                "ms",
                "P9: greatest age of the oldest command when a newer one was served first",
            )
            .n(forced),
        );
    }
    if let Some(gain) = q.gain
        && q.window > 1
    {
        s.found(
            Estimate::num(
                "fast_gamma",
                (libm::log(gain) / libm::log(q.window as f64)).clamp(0.0, 0.5),
                "exponent",
                "P9: gain of the full queue over one command",
            )
            .n(n),
        );
    }
    Ok(())
}

/// Compares the latencies of the same random reads on the device, on the fitted model and on a
/// generic disk. Compares the measured rates with the fitted rates.
fn validate(s: &mut Session<'_>, rates: &[(u64, f64)], mean_ms: f64) -> Result<(), Stop> {
    s.stage("comparison with the fit");
    // The comparison may use 80 % of the remaining budget.
    let n = s.within(s.count(1000, 120), mean_ms, 0.8);
    let ios: Vec<Io> = (0..n).map(|_| Io::read(s.anywhere(), SMALL)).collect();
    let measured: Vec<f64> = s.run(&ios, 1)?.iter().map(|t| t.ms()).collect();
    let text = preset::text(s.facts(), "hdd", s.estimates(), &[], "");
    let rounds = match model::hdd_latencies(&text, &ios, s.seed()) {
        Ok(f) => f,
        Err(e) => {
            s.note(format!("the fitted preset does not run: {e}"));
            return Ok(());
        }
    };
    let fitted = rounds.concat();
    let generic = model::generic_hdd_latencies(s.capacity(), &ios, s.seed());
    let alone: Vec<f64> = rounds.iter().map(|r| demerit(r, &fitted)).collect();
    s.demerit = Some(Demerit {
        fitted: demerit(&measured, &fitted),
        generic: demerit(&measured, &generic),
        chance: mean(&alone),
    });
    let points = (1..100)
        .map(|i| {
            let q = f64::from(i) / 100.0;
            (q * 100.0, quantile(&measured, q), quantile(&fitted, q))
        })
        .collect();
    s.curve(Curve {
        title: "random 4 KiB reads, one at a time".into(),
        x: "percentile".into(),
        y: "ms".into(),
        points,
        log_x: false,
    });
    if let Ok(model) = model::hdd_rates(&text, rates) {
        let gb = |lba: u64| lba as f64 * 512.0 / 1e9;
        let pair = rates.iter().zip(&model);
        s.curve(Curve {
            title: "sequential reads".into(),
            x: "GB from the start".into(),
            y: "MB/s".into(),
            points: pair.map(|(r, m)| (gb(r.0), r.1, *m)).collect(),
            log_x: false,
        });
    }
    if let Ok(points) = model::hdd_seek(&text) {
        s.curve(Curve {
            title: "seek time; line: a + b sqrt(d)".into(),
            x: "cylinders".into(),
            y: "ms".into(),
            points,
            log_x: true,
        });
    }
    Ok(())
}
