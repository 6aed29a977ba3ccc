//! Reads lists of values. Every combination of their values becomes a level.

use super::Reader;
use super::value::Text;
use crate::experiment::design::Level;
use crate::experiment::expand::{CELLS_MAX, TREATMENTS_MAX};
use crate::experiment::fault::Place;
use seekwell_core::once::{Once, twice};
use std::collections::BTreeMap;

/// A parameter with one value, or with the several values of a grid.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub name: String,
    pub values: Vec<Text>,
}

impl Axis {
    fn grid(&self) -> bool {
        self.values.len() > 1
    }
}

/// One combination of parameter values.
#[derive(Clone, Debug, Default)]
pub(super) struct Point {
    /// The value of every parameter, in the order of the file.
    pub values: Vec<(String, String)>,
    /// The values of the parameters that have several values.
    pub axes: BTreeMap<String, String>,
}

impl Point {
    /// Builds a level. If a grid made several levels with the same name, the values of the grid are
    /// added to the name. `given` contains the values of a grid that was already expanded.
    pub(super) fn level<T>(
        &self,
        name: Option<&str>,
        before: char,
        spec: T,
        given: &BTreeMap<String, String>,
    ) -> Level<T> {
        let parts = self.axes.iter().map(|(k, v)| format!("{before}{k}={v}"));
        let parts: String = parts.collect();
        let mut axes = self.axes.clone();
        axes.extend(given.clone());
        Level {
            name: name.map(|n| format!("{n}{parts}")),
            spec,
            axes,
        }
    }
}

/// Adds the values of a combination to the values in the name (`fs-mark:files=3`).
///
/// # Errors
/// Returns an error if the name already contains a value of the same parameter.
pub(super) fn added(
    to: &mut BTreeMap<String, String>,
    values: &[(String, String)],
) -> Result<(), String> {
    for (name, value) in values {
        if let Some(before) = to.insert(name.clone(), value.clone()) {
            let (first, second) = (format!("{name}={before}"), format!("{name} = {value}"));
            return Err(twice(name, &first, &second));
        }
    }
    Ok(())
}

impl Reader<'_> {
    /// Returns all combinations; the last parameter changes fastest. If there are too many, adds a
    /// fault with the product and returns an empty list.
    pub(super) fn product(&mut self, field: &str, at: Place, axes: &[Axis]) -> Vec<Point> {
        let mut once = Once::default();
        for axis in axes {
            let text = axis.values.first().map_or("", |v| &v.text);
            if let Err(what) = once.take(&axis.name, &format!("{} = {text}", axis.name)) {
                self.bad(at, field, &what);
                return Vec::new();
            }
        }
        let most = match field.contains("scheduler") {
            true => TREATMENTS_MAX,
            false => CELLS_MAX,
        };
        let sizes = axes.iter().map(|a| a.values.len() as u128);
        let all = sizes.fold(1u128, u128::saturating_mul);
        if all > most as u128 {
            let grids = axes.iter().filter(|a| a.grid());
            let shown: Vec<String> = grids
                .map(|a| format!("{} of {}", a.values.len(), a.name))
                .collect();
            let what = format!(
                "{} = {all} combinations, more than the limit of {most}",
                shown.join(" x ")
            );
            self.bad(at, field, &what);
            return Vec::new();
        }
        let mut out = vec![Point::default()];
        for axis in axes {
            let grid = axis.grid();
            let mut next = Vec::with_capacity(out.len() * axis.values.len());
            for point in &out {
                for v in &axis.values {
                    let mut p = point.clone();
                    p.values.push((axis.name.clone(), v.text.clone()));
                    if grid {
                        p.axes.insert(axis.name.clone(), v.text.clone());
                    }
                    next.push(p);
                }
            }
            out = next;
        }
        out
    }
}
