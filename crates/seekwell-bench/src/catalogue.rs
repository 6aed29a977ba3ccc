//! The list of all measured scenarios.

use crate::scenario::Scenario;
use crate::{flash, pairs, scenario, sched_cost, world};

/// Returns all scenarios.
pub fn all() -> Vec<Scenario> {
    let mut v = scenario::all();
    v.extend(pairs::all());
    v.extend(flash::all());
    v.extend(sched_cost::all());
    v.extend(world::all());
    v
}
