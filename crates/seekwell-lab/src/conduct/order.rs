//! The random order of the runs. A balanced order would violate the assumptions of the paired t
//! test. A fixed order would turn a drift of the machine into wrong claims.

use rand::RngCore;
use seekwell_core::rng::stream;

/// Returns a uniformly random permutation of `0..n` (Fisher-Yates). It uses its own random stream,
/// so that other random draws cannot change it.
fn permutation(n: usize, seed: u64, name: &str) -> Vec<usize> {
    let mut rng = stream(seed, name);
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, below(i as u64 + 1, || rng.next_u64()) as usize);
    }
    order
}

/// Returns a uniformly random number below `n`. Draws that would bias the result are rejected.
fn below(n: u64, mut draw: impl FnMut() -> u64) -> u64 {
    let fair = u64::MAX - u64::MAX % n;
    loop {
        let x = draw();
        if x < fair {
            return x % n;
        }
    }
}

/// Returns the order of the `k` treatments of a cell in one block, as indices into the treatments
/// of the cell.
pub(super) fn in_block(seed: u64, cell: &str, block: u32, k: usize) -> Vec<usize> {
    permutation(k, seed, &format!("order/{cell}/{block}"))
}

/// Returns the position of each cell in a round.
pub(super) fn of_cells(seed: u64, round: u32, cells: usize) -> Vec<usize> {
    let order = permutation(cells, seed, &format!("round/{round}"));
    let mut rank = vec![0; cells];
    for (place, cell) in order.into_iter().enumerate() {
        rank[cell] = place;
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_three_is_equally_likely() {
        let mut seen = std::collections::BTreeMap::new();
        for block in 0..6_000 {
            *seen
                .entry(in_block(1, "hdd/streams", block, 3))
                .or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        // For an expected count of 1,000, three standard errors are 87.
        assert!(
            seen.values().all(|n: &i32| (n - 1_000).abs() < 90),
            "{seen:?}"
        );
    }

    #[test]
    fn run_order_depends_on_seed_cell_and_block_only() {
        let orders = |seed, cell| -> Vec<Vec<usize>> {
            (0..8).map(|b| in_block(seed, cell, b, 4)).collect()
        };
        assert_eq!(orders(1, "a"), orders(1, "a"));
        assert_ne!(orders(1, "a"), orders(2, "a"));
        assert_ne!(orders(1, "a"), orders(1, "b"));
        let mut draws = [u64::MAX, 5].into_iter();
        assert_eq!(
            below(3, || draws.next().expect("two")),
            2,
            "the unfair one is left out"
        );
    }
}
