//! The map of the cheap variant. It stores one of three states per MiB of addresses.

use super::params::{SsdParams, State};

/// Number of pages per region.
pub(super) const REGION: u64 = 256;

/// How a region was last written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The region was not written since the last erase or TRIM. Reads need no flash operation.
    Empty = 0,
    /// The region was written in order. Its pages are striped over the units.
    Ordered = 1,
    /// The region was written at random. Its pages are on random units.
    Random = 2,
}

/// The state of each region in two bits, and the number of regions in each state.
#[derive(Debug, Clone)]
pub(super) struct Regions {
    words: Vec<u64>,
    counts: [u64; 3],
}

/// Returns true if this region holds data in the state `Used`, when a fraction `fill` of all
/// regions holds data.
pub(super) fn holds_data(region: u64, fill: f64) -> bool {
    let h = region.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((h ^ h >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 53) as f64 <= fill
}

impl Regions {
    pub fn new(p: &SsdParams) -> Self {
        let n = p.pages.div_ceil(REGION);
        let mut r = Regions {
            words: vec![0; n.div_ceil(32) as usize],
            counts: [n, 0, 0],
        };
        for i in 0..n {
            let kind = match p.state {
                State::Fresh => Kind::Empty,
                State::Filled => Kind::Ordered,
                State::Steady => Kind::Random,
                State::Used if holds_data(i, p.fill) => Kind::Random,
                State::Used => Kind::Empty,
            };
            r.set(i, kind);
        }
        r
    }
    #[inline]
    pub fn get(&self, region: u64) -> Kind {
        match self.words[(region / 32) as usize] >> (region % 32 * 2) & 3 {
            0 => Kind::Empty,
            1 => Kind::Ordered,
            _ => Kind::Random,
        }
    }
    #[inline]
    pub fn set(&mut self, region: u64, kind: Kind) {
        let old = self.get(region);
        if old != kind {
            self.counts[old as usize] -= 1;
            self.counts[kind as usize] += 1;
            let shift = region % 32 * 2;
            let word = &mut self.words[(region / 32) as usize];
            *word = *word & !(3 << shift) | (kind as u64) << shift;
        }
    }
    /// Returns the number of regions of this kind.
    pub fn count(&self, kind: Kind) -> u64 {
        self.counts[kind as usize]
    }
}
