//! Writes a change in words.

use super::{Basis, Change};
use crate::analysis::percent;

/// Formats a change, for example "9 % worse". `times` is how many times better the new value is.
fn moved(times: f64) -> String {
    match times >= 1.0 {
        true => format!("{} better", percent(times - 1.0)),
        false => format!("{} worse", percent(1.0 / times - 1.0)),
    }
}

/// Writes a change in words. `margin` is the relative difference that matters.
pub fn describe_change(c: &Change, margin: f64) -> String {
    if c.identical {
        return format!("identical in {0} of {0} seeds", c.n.0);
    }
    let turned = |r: f64| {
        if c.metric.higher_is_better {
            r
        } else {
            1.0 / r
        }
    };
    let by = moved(turned(c.ratio));
    let ends = c.ratio95.map(|(a, b)| (turned(a), turned(b)));
    let ends = ends.map(|(a, b)| (a.min(b), a.max(b)));
    let between = ends.map_or(String::new(), |(l, h)| {
        format!(" ({} to {})", moved(l), moved(h))
    });
    let mu = 1.0 + margin;
    let inside = ends.is_some_and(|(l, h)| l > 1.0 / mu && h < mu);
    match c.basis {
        Basis::Day => format!("{by}{between}: a difference between the sessions can be the cause"),
        _ if c.worse || c.better => match c.basis {
            Basis::Seeds if c.ratio95.is_none() => format!("{by}, exactly, in {} seeds", c.n.0),
            _ => format!("{by}{between}"),
        },
        _ if inside => format!("no change within {}", percent(margin)),
        Basis::Seeds if c.ratio95.is_none() => {
            format!("{by}, exactly, in {} seeds: too small to matter", c.n.0)
        }
        _ if ends.is_none() => format!("{by}; one run, or no standard error: cannot tell"),
        _ => format!("cannot tell: {by}{between}"),
    }
}
