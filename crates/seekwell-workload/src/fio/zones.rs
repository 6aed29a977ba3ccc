//! Positions in the zones of a file or device.

use super::job::{Dir, Zoning};
use crate::machine::Machine;
use crate::scripts::common::uniform;

/// The state of the zones of one file.
#[derive(Clone, Default)]
struct File {
    /// Start of the current zone (strided).
    start: u64,
    /// Number of the current zone (zbd).
    current: usize,
    /// Number of bytes that are written in each zone (zbd).
    written: Vec<u64>,
    /// Numbers of the zones that are partly written (zbd).
    open: Vec<usize>,
}

/// The zones of all files of a job.
pub(super) struct Zones {
    zoning: Zoning,
    /// Size of the region of each file.
    each: u64,
    files: Vec<File>,
    /// Number of bytes transferred in the current strided zone.
    bytes: u64,
}

impl Zones {
    /// Makes the zones of regions of `each` bytes. Sequential zones are full at the start, so they
    /// can be read.
    pub(super) fn new(zoning: Zoning, files: usize, each: u64) -> Self {
        let count = (each / zoning.range.max(1)).max(1);
        let written = match zoning.sequential {
            true => vec![zoning.size; usize::try_from(count).unwrap_or(1).min(1 << 24)],
            false => Vec::new(),
        };
        let file = File {
            written,
            ..File::default()
        };
        Zones {
            zoning,
            each,
            files: vec![file; files],
            bytes: 0,
        }
    }

    /// Returns the position and length of the next call in a file. `at` is the next sequential
    /// position, and `want` the requested length.
    pub(super) fn place<M: Machine>(
        &mut self,
        m: &mut M,
        n: usize,
        dir: Dir,
        random: bool,
        want: u32,
        at: &mut u64,
    ) -> (u64, u32) {
        let (place, len) = match (self.zoning.sequential, dir) {
            (false, _) => self.strided(m, n, random, want, at),
            (true, Dir::Write) => self.append(m, n, random, want),
            (true, _) => self.visit(m, n, dir, random, want, at),
        };
        *at = place + u64::from(len);
        (place, len)
    }

    /// The job stays in a zone until it has transferred the size of the zone. Then it goes to the
    /// next zone. The bytes between two zones do not count as transferred.
    fn strided<M: Machine>(
        &mut self,
        m: &mut M,
        n: usize,
        random: bool,
        want: u32,
        at: &mut u64,
    ) -> (u64, u32) {
        let z = self.zoning;
        let file = &mut self.files[n];
        if self.bytes >= z.size {
            self.bytes = 0;
            file.start = file.start.saturating_add(z.range).saturating_add(z.skip);
            if file.start >= self.each {
                file.start = 0;
            }
            *at = file.start;
        }
        let end = file.start.saturating_add(z.range).min(self.each);
        let len = u64::from(want).min(end - file.start).max(1);
        if *at < file.start || at.saturating_add(len) > end {
            *at = file.start;
        }
        let place = match random {
            true => file.start + uniform(m, 0, (end - file.start) / len - 1) * len,
            false => *at,
        };
        self.bytes += len;
        (place, len as u32)
    }

    /// A write goes to the end of the written part of a zone. A full zone is reset first.
    fn append<M: Machine>(&mut self, m: &mut M, n: usize, random: bool, want: u32) -> (u64, u32) {
        let z = self.zoning;
        let file = &mut self.files[n];
        let last = file.written.len() as u64 - 1;
        let limited = z.open > 0 && file.open.len() as u64 >= z.open;
        let zone = match (random, limited) {
            (true, true) => file.open[uniform(m, 0, file.open.len() as u64 - 1) as usize],
            (true, false) => uniform(m, 0, last) as usize,
            (false, _) => file.current,
        };
        if file.written[zone] >= z.size {
            file.written[zone] = 0;
        }
        let from = file.written[zone];
        let len = u64::from(want).min(z.size - from);
        file.written[zone] = from + len;
        let full = file.written[zone] >= z.size;
        match file.open.iter().position(|o| *o == zone) {
            Some(at) if full => {
                file.open.swap_remove(at);
            }
            None if !full => file.open.push(zone),
            _ => {}
        }
        if full && !random {
            file.current = (zone + 1) % file.written.len();
        }
        (zone as u64 * z.range + from, len as u32)
    }

    /// A read stays in a zone. A trim resets a whole zone.
    fn visit<M: Machine>(
        &mut self,
        m: &mut M,
        n: usize,
        dir: Dir,
        random: bool,
        want: u32,
        at: &mut u64,
    ) -> (u64, u32) {
        let z = self.zoning;
        let file = &mut self.files[n];
        let len = u64::from(want).min(z.size);
        let zone = match random {
            true => uniform(m, 0, file.written.len() as u64 - 1),
            false => (*at / z.range).min(file.written.len() as u64),
        };
        let zone = if zone as usize >= file.written.len() {
            0
        } else {
            zone
        };
        if dir == Dir::Trim {
            file.written[zone as usize] = 0;
            file.open.retain(|o| *o as u64 != zone);
            return (zone * z.range, len as u32);
        }
        let within = match random {
            true => uniform(m, 0, z.size / len - 1) * len,
            false => at.checked_sub(zone * z.range).unwrap_or(0),
        };
        // A call that does not fit begins in the next zone.
        if within + len > z.size {
            let next = (zone + 1) % file.written.len() as u64;
            return (next * z.range, len as u32);
        }
        (zone * z.range + within, len as u32)
    }
}
