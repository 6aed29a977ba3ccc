//! Generates the state of a drive before a run. Writing for hours to reach this state would be too
//! slow.
//!
//! In the steady state of uniform random writes, the valid fraction of a block falls exponentially
//! with its age. It is 1 just after the block was written, and has the value of a victim block when
//! the block is cleaned. The generator therefore gives the blocks evenly spaced ages, computes the
//! number of valid pages of each block from this law, and assigns user pages in pseudo-random
//! order.

use super::super::params::{SsdParams, State};
use super::super::regions::{REGION, holds_data};
use super::super::wa::victim_valid;
use super::map::Map;
use super::unit::{Open, Unit};
use rand::RngCore;
use seekwell_core::rng::Pcg64Mcg;

/// A pseudo-random order of the numbers 0..n. It uses a Feistel network over the next even power of
/// 2, and repeats it until the result is less than n.
struct Shuffled {
    n: u64,
    half: u32,
    keys: [u64; 4],
}

impl Shuffled {
    fn new(n: u64, rng: &mut Pcg64Mcg) -> Self {
        let bits = 64 - n.max(2).saturating_sub(1).leading_zeros();
        Shuffled {
            n,
            half: bits.div_ceil(2),
            keys: std::array::from_fn(|_| rng.next_u64()),
        }
    }
    fn at(&self, i: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        let mut x = i;
        loop {
            let (mut l, mut r) = (x >> self.half, x & mask);
            for key in self.keys {
                let f = (r ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (l, r) = (r, l ^ (f >> 40 & mask));
            }
            x = l << self.half | r;
            if x < self.n {
                return x;
            }
        }
    }
}

/// Returns the number of blocks per unit that hold no old data. These blocks do not count as
/// over-provisioning. The number is the lower threshold of garbage collection. Under load, one or
/// two blocks fewer than this threshold are free, and two more blocks are half written.
pub(super) fn reserve(p: &SsdParams) -> u32 {
    p.gc_marks.0
}

/// Returns the number of blocks per unit.
pub(super) fn blocks(p: &SsdParams) -> u64 {
    let share = p.pages as f64 * (1.0 + p.rho) / f64::from(p.units);
    libm::round(share / f64::from(p.block)) as u64 + u64::from(reserve(p))
}

/// Fills the map and the flash units with the state that the parameter `state` selects.
pub(super) fn prepare(p: &SsdParams, map: &mut Map, units: &mut [Unit], rng: &mut Pcg64Mcg) {
    match p.state {
        State::Fresh => {
            for (u, unit) in units.iter_mut().enumerate() {
                let from = u as u32 * map.blocks;
                unit.free.extend(from..from + map.blocks);
            }
        }
        State::Filled => filled(p, map, units),
        State::Steady => aged(p, map, units, rng, |_| true),
        State::Used => aged(p, map, units, rng, |lpn| {
            holds_data(u64::from(lpn) / REGION, p.fill)
        }),
    }
}

/// Generates the state after the whole drive was written once, sequentially. The data are striped
/// over the flash units. Each unit gets the `k` pages of one program operation, then the next unit
/// gets the next `k` pages.
fn filled(p: &SsdParams, map: &mut Map, units: &mut [Unit]) {
    let k = u64::from(p.k);
    let n = u64::from(p.units);
    let mut written = vec![0u64; units.len()];
    let mut first = 0;
    while first < p.pages {
        let group = first / k;
        let u = (group % n) as usize;
        let at = group / n * k;
        let base = u64::from(u as u32 * map.blocks) * u64::from(p.block) + at;
        let count = k.min(p.pages - first);
        for i in 0..count {
            map.place_at((first + i) as u32, (base + i) as u32);
        }
        // If the last program operation has fewer than `k` pages, its other pages remain unused.
        written[u] = at + k;
        first += count;
    }
    for (u, unit) in units.iter_mut().enumerate() {
        let from = u as u32 * map.blocks;
        let full = (written[u] / u64::from(p.block)) as u32;
        let rest = (written[u] % u64::from(p.block)) as u32;
        for b in 0..full {
            map.close(from + b);
        }
        let mut next = from + full;
        if rest > 0 {
            unit.host = Open {
                block: next,
                at: rest,
            };
            next += 1;
        }
        unit.free.extend(next..from + map.blocks);
    }
}

/// Generates the state after a long time of random writing. `holds` returns true for the user pages
/// that hold data.
fn aged(
    p: &SsdParams,
    map: &mut Map,
    units: &mut [Unit],
    rng: &mut Pcg64Mcg,
    holds: impl Fn(u32) -> bool,
) {
    let all = (0..p.pages as u32).filter(|l| holds(*l)).count() as u64;
    let order = Shuffled::new(p.pages, rng);
    let mut next = 0..p.pages;
    let n = u64::from(p.units);
    let block = f64::from(p.block);
    let closed = map.blocks - reserve(p);
    for (u, unit) in units.iter_mut().enumerate() {
        let from = u as u32 * map.blocks;
        let mine = all / n + u64::from((u as u64) < all % n);
        // Each unit has two open blocks. Each open block is filled up to a random point, and holds
        // the newest data.
        let mut open = [0u32; 2].map(|_| below(rng, p.block / p.k) * p.k);
        if u64::from(open[0] + open[1]) > mine / 2 {
            open = [0; 2];
        }
        let opened = u64::from(open[0] + open[1]);
        let mine = mine - opened;
        let u_valid = victim_valid(f64::from(closed) * block / mine.max(1) as f64 - 1.0);
        // The exponential law gives the fraction of valid pages of each block. With few blocks, the
        // sum over the blocks is not exact, so a factor corrects it.
        let law = |i: u32| libm::pow(u_valid, (f64::from(i) + 0.5) / f64::from(closed));
        let sum: f64 = (0..closed).map(law).sum();
        let factor = mine as f64 / sum;
        let (mut exact, mut given) = (0.0, 0u64);
        // Index 0 is the youngest block. The loop closes the oldest block first.
        for i in (0..closed).rev() {
            exact += law(i) * factor;
            let want = if i == 0 {
                mine - given
            } else {
                (libm::round(exact) as u64).saturating_sub(given)
            };
            let want = want.min(u64::from(p.block));
            given += want;
            let b = from + i;
            let mut left = want;
            for at in 0..p.block {
                // Selects `left` of the remaining pages of the block. All subsets are equally
                // likely.
                let remain = u64::from(p.block - at);
                if ((u128::from(rng.next_u64()) * u128::from(remain)) >> 64) as u64 >= left {
                    continue;
                }
                left -= 1;
                let lpn = next
                    .by_ref()
                    .map(|i| order.at(i) as u32)
                    .find(|lpn| holds(*lpn));
                if let Some(lpn) = lpn {
                    map.place_at(lpn, b * p.block + at);
                }
            }
            map.close(b);
        }
        unit.host = Open {
            block: from + closed,
            at: open[0],
        };
        unit.copy = Open {
            block: from + closed + 1,
            at: open[1],
        };
        for o in [unit.host, unit.copy] {
            for at in 0..o.at {
                let lpn = next
                    .by_ref()
                    .map(|i| order.at(i) as u32)
                    .find(|lpn| holds(*lpn));
                if let Some(lpn) = lpn {
                    map.place_at(lpn, o.block * p.block + at);
                }
            }
        }
        unit.free.extend(from + closed + 2..from + map.blocks);
    }
    // Because of rounding, a few user pages may not be stored yet. They go to the open blocks for
    // host writes.
    let mut rest = next.map(|i| order.at(i) as u32).filter(|l| holds(*l));
    'units: for unit in units.iter_mut() {
        let block = unit.host.block;
        while unit.host.at < p.block {
            for _ in 0..p.k {
                let Some(lpn) = rest.next() else {
                    unit.host.at = unit.host.at.next_multiple_of(p.k);
                    break 'units;
                };
                map.place_at(lpn, block * p.block + unit.host.at);
                unit.host.at += 1;
            }
        }
    }
    for unit in units.iter_mut() {
        if unit.host.at == p.block {
            map.close(unit.host.block);
            unit.host = Open::NO;
        }
    }
}

/// Returns a uniformly distributed random number in 0..n.
fn below(rng: &mut Pcg64Mcg, n: u32) -> u32 {
    (((rng.next_u64() >> 32) * u64::from(n)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_core::rng::stream;

    #[test]
    fn shuffled_is_a_permutation_without_adjacent_runs() {
        for n in [1u64, 2, 3, 100, 1000, 4097] {
            let s = Shuffled::new(n, &mut stream(3, "t"));
            let mut all: Vec<u64> = (0..n).map(|i| s.at(i)).collect();
            let neighbours = all.windows(2).filter(|w| w[0].abs_diff(w[1]) == 1).count();
            assert!(n < 1000 || neighbours < 12, "{n}: {neighbours}");
            all.sort_unstable();
            assert!(all.iter().enumerate().all(|(i, x)| *x == i as u64));
        }
    }
}
