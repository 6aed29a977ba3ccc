//! Probe P8 (c) and (d), which measures the write cache. It runs only if writes are permitted. It
//! finds how many scattered writes and how many bytes the cache holds before writes become slow,
//! and the duration of a flush. It writes back only data that it has read.

use super::cache::Hits;
use super::track::Spindle;
use crate::fit::{Curve, Estimate, Val};
use crate::probe::{Io, Stop};
use crate::session::{SMALL, Session};
use crate::stats::median;

/// Number of writes in a burst.
const BURST: usize = 2400;
/// Size of a large write, sectors: 128 KiB. Large writes reach the limit of the cache in bytes
/// before the limit in commands.
const LARGE: u32 = 256;

/// Returns the index of the first write in a burst that waited for the platter. A single slow write
/// does not count: at least a third of the next twelve writes must be slow.
fn step(ms: &[f64], fast: f64) -> Option<usize> {
    let slow = |x: &f64| *x > fast;
    (0..ms.len()).find(|i| {
        let next = &ms[*i..(*i + 12).min(ms.len())];
        slow(&ms[*i]) && next.iter().filter(|x| slow(x)).count() * 3 >= next.len()
    })
}

fn burst(s: &mut Session<'_>, n: usize, sectors: u32) -> Result<Vec<f64>, Stop> {
    let room = (s.capacity() - u64::from(sectors)) / u64::from(sectors);
    let ios: Vec<Io> = (0..n)
        .map(|_| Io::write(s.below(room) * u64::from(sectors), sectors))
        .collect();
    let ms = s.run(&ios, 1)?.iter().map(|t| t.ms()).collect();
    s.send(Io::flush())?;
    s.sleep_ms(100.0)?;
    Ok(ms)
}

/// Measures the write cache.
pub(crate) fn measure(s: &mut Session<'_>, spindle: Spindle, hits: Hits) -> Result<(), Stop> {
    s.stage("write cache");
    s.send(Io::flush())?;
    let first = burst(s, 24, SMALL)?;
    let fast = (hits.usual_ms * 3.0).max(0.25).min(spindle.turn_ms / 8.0);
    let cached = median(&first) < fast;
    s.found(
        Estimate::new_value(
            "write_cache",
            Val::Flag(cached),
            "",
            "P8: scattered writes complete at once, or after a rotation",
        )
        .n(first.len()),
    );
    if !cached {
        return Ok(());
    }
    let n = s.count(BURST, 600);
    let small = burst(s, n, SMALL)?;
    if let Some(i) = step(&small, fast) {
        s.found(
            Estimate::num(
                "wc_cmds",
                i as f64,
                "extents",
                "P8: scattered 4 KiB writes until they wait",
            )
            .between(i as f64 * 0.95, i as f64 * 1.05)
            .n(n),
        );
        let large = burst(s, (i + i / 2).max(24), LARGE)?;
        // During the burst, the drive also writes to the platter, at most at the rate of the outer
        // tracks.
        if let Some(j) = step(&large, fast + f64::from(LARGE) * 512.0 / 100e3)
            && j < i
        {
            let kib = (j as f64) * f64::from(LARGE) / 2.0;
            s.found(
                Estimate::num(
                    "wc_bytes",
                    kib,
                    "KiB",
                    "P8: scattered 128 KiB writes until they wait",
                )
                .between(kib * 0.85, kib * 1.05)
                .n(large.len()),
            );
        }
    }
    let mut points = vec![];
    for n in [1usize, 8, 64] {
        let mut times = vec![];
        for _ in 0..s.count(5, 3) {
            let ios: Vec<Io> = (0..n).map(|_| Io::write(s.anywhere(), SMALL)).collect();
            s.run(&ios, 1)?;
            times.push(s.send(Io::flush())?.ms());
        }
        // A drive that does not sort its writes needs one access per write.
        let plain = n as f64 * (spindle.turn_ms / 2.0 + mean_seek(s));
        points.push((n as f64, median(&times), plain));
    }
    s.curve(Curve {
        title: "time of a flush of scattered writes; line: one access per write".into(),
        x: "writes".into(),
        y: "ms".into(),
        points,
        log_x: true,
    });
    Ok(())
}

fn mean_seek(s: &Session<'_>) -> f64 {
    let found = s.estimates().iter().rev().find(|e| e.key == "seek_average");
    found.and_then(Estimate::number).unwrap_or(8.5)
}
