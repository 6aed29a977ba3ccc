//! Robustness check b: the scheduler labels are permuted within each test. Our values then belong
//! to the wrong schedulers, and the skill should be 0 or less.

use super::super::ours::Cell;
use super::super::score::{permutations, skill};
use super::constants::Spread;
use serde::Serialize;

/// Skill of a group of effects under permuted labels.
#[derive(Clone, Debug, Serialize)]
pub struct Permuted {
    /// Letter of the group of effects; empty for all groups.
    pub group: String,
    /// Our skill with the right labels.
    pub ours: f64,
    /// Distribution of the skill over the permutations.
    pub spread: Spread,
    /// Fraction (0 to 1) of permutations with at least our skill.
    pub as_good: f64,
}

/// Returns one entry per group, and one over all groups.
pub fn permuted(cells: &[Cell]) -> Vec<Permuted> {
    let one = |s: super::super::score::Skill| {
        let draws = permutations(cells, &s.group);
        let spread = Spread::from_values(&draws)?;
        Some(Permuted {
            ours: s.ours?,
            as_good: s.as_good?,
            group: s.group,
            spread,
        })
    };
    skill(cells).into_iter().filter_map(one).collect()
}
