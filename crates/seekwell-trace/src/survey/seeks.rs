//! Distances between consecutive accesses to the same device.

use super::data::{SEEK_CLASSES, Seeks};
use seekwell_core::units::SECTOR_BYTES;
use std::collections::BTreeMap;

/// Maximum number of different distances that are stored exactly.
const EXACT_MAX: usize = 1 << 18;
/// Number of leading bits that are stored of further distances.
const BITS: u32 = 9;
/// Maximum number of devices whose last access is stored.
const DEVICES_MAX: usize = 1 << 16;

/// Collects distances.
#[derive(Default)]
pub(super) struct SeekSum {
    /// Range of the last access to each device.
    last: BTreeMap<u32, (u64, u64)>,
    counts: BTreeMap<u64, u64>,
    exact_max: Option<usize>,
    rounded: bool,
    n: u64,
    sum: u128,
    backwards: u64,
    classes: [u64; 7],
}

/// Reduces a distance to its leading bits. Returns the middle of the interval of all distances with
/// these bits.
fn rounded(distance: u64) -> u64 {
    let length = 64 - distance.leading_zeros();
    match length.checked_sub(BITS) {
        None | Some(0) => distance,
        Some(drop) => (distance >> drop << drop) + (1 << (drop - 1)),
    }
}

impl SeekSum {
    #[cfg(test)]
    pub fn with_exact(exact_max: usize) -> Self {
        SeekSum {
            exact_max: Some(exact_max),
            ..SeekSum::default()
        }
    }

    /// Adds the next access: `sectors` sectors from `sector` on.
    pub fn add(&mut self, device: u32, sector: u64, sectors: u64) {
        let end = sector + sectors;
        let (from, to) = self.last.get(&device).copied().unwrap_or((0, 0));
        if self.last.len() < DEVICES_MAX || self.last.contains_key(&device) {
            self.last.insert(device, (sector, end));
        }
        let distance = match sector {
            s if s >= to => s - to,
            // The accesses touch or overlap.
            _ if end >= from => 0,
            s => from - s,
        };
        self.n += 1;
        self.sum += u128::from(distance);
        self.backwards += u64::from(sector < from);
        let bytes = u128::from(distance) * u128::from(SECTOR_BYTES);
        let class = match distance {
            0 => 0,
            _ => {
                1 + SEEK_CLASSES
                    .iter()
                    .take_while(|b| bytes >= u128::from(**b))
                    .count()
            }
        };
        self.classes[class] += 1;
        let key = if self.rounded {
            rounded(distance)
        } else {
            distance
        };
        *self.counts.entry(key).or_insert(0) += 1;
        if !self.rounded && self.counts.len() > self.exact_max.unwrap_or(EXACT_MAX) {
            self.rounded = true;
            for (distance, n) in std::mem::take(&mut self.counts) {
                *self.counts.entry(rounded(distance)).or_insert(0) += n;
            }
        }
    }

    /// Returns true if there are no distances.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    pub fn done(&self) -> Seeks {
        let mut seen = 0;
        let middle = self.n.div_ceil(2);
        let median = self.counts.iter().find(|(_, n)| {
            seen += **n;
            seen >= middle
        });
        let (mut mode, mut mode_n) = (0, 0);
        for (distance, n) in &self.counts {
            if *n > mode_n {
                (mode, mode_n) = (*distance, *n);
            }
        }
        Seeks {
            n: self.n,
            mean: self.sum as f64 / self.n.max(1) as f64,
            median: median.map_or(0, |m| *m.0),
            mode,
            mode_n,
            sequential: self.classes[0],
            backwards: self.backwards,
            classes: self.classes,
            rounded: self.rounded,
        }
    }
}
