//! Robustness check b: the scheduler labels are permuted within each test. A model that has all our
//! figures, but assigns them to the wrong schedulers, should score 0 or less.

use super::super::ours::Cell;
use super::super::score::{permutations, skill};
use super::constants::Spread;
use serde::Serialize;

/// Scores of a group under permuted labels.
#[derive(Clone, Debug, Serialize)]
pub struct Permuted {
    /// Group of effects; empty for all.
    pub group: String,
    /// Our skill.
    pub ours: f64,
    /// Skill of the permutations.
    pub spread: Spread,
    /// Fraction of permutations that are at least as good.
    pub as_good: f64,
}

/// Results by group, and over all.
pub fn permuted(cells: &[Cell]) -> Vec<Permuted> {
    let one = |s: super::super::score::Skill| {
        let draws = permutations(cells, &s.group);
        let spread = Spread::of(&draws)?;
        Some(Permuted {
            ours: s.ours?,
            as_good: s.as_good?,
            group: s.group,
            spread,
        })
    };
    skill(cells).into_iter().filter_map(one).collect()
}
