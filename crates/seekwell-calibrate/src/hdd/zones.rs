//! Probe P4, which measures the zones of the whole drive. It measures the sectors per track at
//! evenly spaced addresses, then finds the zone limits by bisection.

use super::track::{Spindle, TrackLength, length_at};
use crate::probe::{Io, Stop};
use crate::session::Session;

/// Size of a sequential read when a rate is measured, sectors: 128 KiB.
const BLOCK: u32 = 256;

/// Measures the rate of sequential reads at `lba`, in MB/s, for about `ms` milliseconds.
pub(crate) fn rate_at(s: &mut Session<'_>, lba: u64, ms: f64) -> Result<f64, Stop> {
    let block = u64::from(BLOCK);
    let room = s.capacity() / block;
    let read = |from: u64, n: usize| -> Vec<Io> {
        let ios = (0..n as u64).map(|i| Io::read((from + i * block) / 8 * 8, BLOCK));
        ios.collect()
    };
    // The first reads start the stream and show how long the measurement takes.
    let warm = 8;
    let from = lba.min((room.saturating_sub(warm as u64)) * block) / 8 * 8;
    let t = s.run(&read(from, warm), 1)?;
    let each = (t[warm - 1].done - t[0].done) as f64 / 1e6 / (warm - 1) as f64;
    let left = (s.capacity() - from) / block;
    let n = ((ms / each.max(1e-3)) as u64).clamp(16, left.saturating_sub(warm as u64).max(1));
    let n = n.min(1 << 16) as usize;
    let t = s.run(&read(from + warm as u64 * block, n), 1)?;
    let took = t[n - 1].done - t[0].sent;
    Ok(n as f64 * f64::from(BLOCK) * 512.0 / 1e6 / (took as f64 / 1e9))
}

/// A zone: its first sector and its number of sectors per track.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Zone {
    pub first: u64,
    pub length: TrackLength,
}

/// All zones, from the outer edge to the inner edge.
#[derive(Debug, Clone)]
pub(crate) struct Zones {
    pub zones: Vec<Zone>,
    pub samples: usize,
    pub capacity: u64,
}

impl Zones {
    /// Returns the number of sectors per track at an address.
    pub fn at(&self, lba: u64) -> f64 {
        let i = self.zones.partition_point(|z| z.first <= lba).max(1) - 1;
        self.zones[i].length.sectors
    }
    /// Returns the first sector after zone `i`.
    pub fn end(&self, i: usize) -> u64 {
        self.zones.get(i + 1).map_or(self.capacity, |z| z.first)
    }
    /// Returns the number of tracks between the outer edge and an address.
    pub fn tracks(&self, lba: u64) -> f64 {
        let mut sum = 0.0;
        for (i, z) in self.zones.iter().enumerate() {
            let end = self.end(i).min(lba);
            if end <= z.first {
                break;
            }
            sum += (end - z.first) as f64 / z.length.sectors;
        }
        sum
    }
    /// Returns the address at a number of tracks from the outer edge.
    pub fn lba(&self, tracks: f64) -> u64 {
        let mut left = tracks.max(0.0);
        for (i, z) in self.zones.iter().enumerate() {
            let n = (self.end(i) - z.first) as f64 / z.length.sectors;
            if left <= n {
                return z.first + (left * z.length.sectors) as u64;
            }
            left -= n;
        }
        self.capacity
    }
}

/// Measures the zones. If they cannot be measured, the inner `Err` contains the reason.
pub(crate) fn measure(
    s: &mut Session<'_>,
    spindle: Spindle,
) -> Result<Result<Zones, String>, Stop> {
    s.stage("zones");
    let outer = rate_at(s, 0, 150.0)?;
    // One track and the switch to the next track take about an eighth longer than a revolution.
    let mut guess = outer * 1e6 / 512.0 * spindle.turn_ms / 1e3 * 1.12;
    let capacity = s.capacity();
    let places = s.count(64, 24) as u64;
    let mut found: Vec<(u64, TrackLength)> = vec![];
    let mut missed = 0;
    for i in 0..places {
        let lba = (capacity / places * i + capacity / places / 2) / 8 * 8;
        let mut l = length_at(s, spindle, lba, guess)?;
        if let Some(first) = l.filter(|l| found.is_empty() && l.sectors > 1.8 * guess) {
            l = length_at(s, spindle, lba, first.sectors)?;
        }
        if l.is_none() {
            l = length_at(s, spindle, lba + (guess / 3.0) as u64, guess * 0.9)?;
        }
        match l {
            // The first estimate comes from a sequential rate. It may be too low for two reasons:
            // the link is slow, or a drive without read-ahead loses a revolution at each command.
            Some(l)
                if (0.5..1.8).contains(&(l.sectors / guess))
                    || found.is_empty() && (0.4..64.0).contains(&(l.sectors / guess)) =>
            {
                guess = l.sectors;
                found.push((lba, l));
            }
            _ => missed += 1,
        }
    }
    if found.len() < 8 || missed > found.len() / 2 {
        return Ok(Err(format!(
            "the angles of neighbouring sectors show no tracks at {missed} of {places} places: \
             the times are too noisy, or the addresses are remapped (shingled drive, array)"
        )));
    }
    let mut samples = found.len();
    // Two track lengths differ if the difference exceeds the noise and 0.6 percent.
    let differ = |a: TrackLength, b: TrackLength| {
        (a.sectors - b.sectors).abs() > (0.006 * a.sectors).max(a.noise + b.noise)
    };
    let narrow = capacity / 4096;
    let mut done = vec![found[0]];
    let mut todo: Vec<(u64, TrackLength)> = found.into_iter().skip(1).rev().collect();
    while let (Some(&(a, la)), Some(&(b, lb))) = (done.last(), todo.last()) {
        if differ(la, lb) && b - a > narrow {
            let mid = (a + (b - a) / 2) / 8 * 8;
            let between = match length_at(s, spindle, mid, lb.sectors) {
                Ok(l) => l,
                // The budget is used up: the rest of the drive keeps the zone limits of the first
                // step.
                Err(Stop::Budget) => None,
                Err(e) => return Err(e),
            };
            if let Some(l) = between
                && (0.5..2.0).contains(&(l.sectors / la.sectors))
            {
                samples += 1;
                todo.push((mid, l));
                continue;
            }
        }
        done.push((b, lb));
        todo.pop();
    }
    // Neighbours with equal track length form a zone. Its track length is the weighted mean of its
    // samples.
    let mut zones: Vec<Zone> = vec![];
    let mut last = 0;
    let mut group: Vec<TrackLength> = vec![];
    for (lba, l) in done {
        if mean(&group).is_some_and(|g| differ(g, l)) {
            close(&mut zones, &mut group);
            zones.push(Zone {
                first: last + (lba - last) / 2,
                length: l,
            });
        } else if zones.is_empty() {
            zones.push(Zone {
                first: 0,
                length: l,
            });
        }
        group.push(l);
        last = lba;
    }
    close(&mut zones, &mut group);
    // A very narrow zone is the result of a failed measurement and is removed. Zones that become
    // equal are merged.
    let mut i = 1;
    while i < zones.len() {
        let end = zones.get(i + 1).map_or(capacity, |z| z.first);
        let sliver = end - zones[i].first < 3 * narrow;
        if sliver || !differ(zones[i - 1].length, zones[i].length) {
            if sliver && i + 1 < zones.len() {
                zones[i + 1].first = zones[i].first + (end - zones[i].first) / 2;
            }
            zones.remove(i);
        } else {
            i += 1;
        }
    }
    Ok(Ok(Zones {
        zones,
        samples,
        capacity,
    }))
}

/// Returns the mean of the samples of one zone, weighted by their precision.
fn mean(group: &[TrackLength]) -> Option<TrackLength> {
    let weight = |half: f64| 1.0 / (half * half).max(1e-4);
    let all: f64 = group.iter().map(|l| weight(l.noise)).sum();
    let sum: f64 = group.iter().map(|l| l.sectors * weight(l.noise)).sum();
    let known: f64 = group.iter().map(|l| weight(l.pm)).sum();
    (all > 0.0).then(|| TrackLength {
        sectors: sum / all,
        pm: 1.0 / libm::sqrt(known),
        noise: 1.0 / libm::sqrt(all),
    })
}

/// Sets the track length of the last zone to the mean of its samples.
fn close(zones: &mut [Zone], group: &mut Vec<TrackLength>) {
    if let (Some(z), Some(m)) = (zones.last_mut(), mean(group)) {
        z.length = m;
    }
    group.clear();
}
