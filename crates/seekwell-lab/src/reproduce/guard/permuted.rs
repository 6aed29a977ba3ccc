//! Guard b: the schedulers' labels exchanged within each test. What a model scores that has all our
//! figures and does not know which is whose should be 0 or less.

use super::super::ours::Cell;
use super::super::score::{permutations, skill};
use super::constants::Spread;
use serde::Serialize;

/// A group under permuted labels.
#[derive(Clone, Debug, Serialize)]
pub struct Permuted {
    /// Group of effects; empty: all.
    pub group: String,
    /// Skill of ours.
    pub ours: f64,
    /// Of draws.
    pub spread: Spread,
    /// Share of draws that are at least as good.
    pub as_good: f64,
}

/// By group, and over all.
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
