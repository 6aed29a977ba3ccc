//! The page about one scheduler compared with the others: one HTML file without scripts, network or
//! fonts.
//!
//! The page contains the Pareto front, the schedulers that are better, and the pictures. It also
//! contains all figures with their intervals, the cells where the scheduler is furthest behind, and
//! the method.

mod picture;
#[cfg(test)]
mod tests;

use crate::names;
use crate::units::signed_percent;
use crate::verdict::list;
use minijinja::value::Serde;
use minijinja::{Environment, context};
use seekwell_core::prose::in_prose;
use seekwell_lab::arena::{Behind, Figure, Mean, Place, Standing};

const STYLE: &str = include_str!("../../page/dist/page.css");
const OWN: &str = include_str!("../../page/arena.css");
const PAGE: &str = concat!(
    include_str!("../../page/head.html"),
    include_str!("../../page/arena.html")
);

/// The requested devices, workloads and traces, on which all schedulers ran.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// Names of the devices.
    pub devices: &'a [&'a str],
    /// Names of the workloads.
    pub workloads: &'a [&'a str],
    /// Paths of the traces.
    pub traces: &'a [String],
}

/// Contents of the page other than the standing.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// First and last seed.
    pub seeds: (u64, u64),
    /// Devices, workloads and traces.
    pub ground: Ground<'a>,
    /// Number of runs without a result.
    pub failed: u64,
    /// The command that repeats the comparison.
    pub again: String,
}

/// Returns the name of a figure.
fn name(figure: Figure) -> &'static str {
    match figure {
        Figure::Throughput => "throughput",
        Figure::P99 => "99th percentile",
        Figure::Fairness => "fairness",
    }
}

/// Converts a factor to a difference in per cent, for example 1.1 to 10.
fn percent(factor: f64) -> f64 {
    (factor - 1.0) * 100.0
}

/// Formats a factor as a difference, for example "+3.1 %"; zero is "0.0 %" without a sign.
fn signed(factor: f64) -> String {
    match signed_percent(percent(factor), 1).as_str() {
        "+0.0 %" => "0.0 %".to_owned(),
        text => text.replace('-', "\u{2212}"),
    }
}

/// Formats the interval, or returns an empty text if there is none.
fn interval(mean: &Mean) -> String {
    mean.interval95.map_or(String::new(), |(low, high)| {
        format!("{} to {}", signed(low), signed(high))
    })
}

/// Returns the schedulers that are at least as good as `own` in all three figures, and better in
/// one.
fn above(places: &[Place], own: &Place) -> Vec<String> {
    let better = |other: &&Place| {
        let pairs = || {
            let both = other.means.iter().zip(&own.means);
            both.filter_map(|(a, b)| Some((a.as_ref()?.factor, b.as_ref()?.factor)))
        };
        pairs().all(|(a, b)| a >= b) && pairs().any(|(a, b)| a > b)
    };
    places
        .iter()
        .filter(better)
        .map(|p| in_prose(&p.scheduler))
        .collect()
}

/// Returns the summary, one sentence per line.
fn sentences(s: &Standing) -> Vec<String> {
    let Some(own) = s.places.first() else {
        return Vec::new();
    };
    let mut out = vec![match own.front {
        true => format!(
            "{} is on the Pareto front: no rival is at least as good in throughput, 99th \
             percentile and fairness and better in one of them.",
            in_prose(&own.scheduler)
        ),
        false => format!(
            "{} is not on the Pareto front: {} at least as good in throughput, 99th percentile and \
             fairness, and better in one of them.",
            in_prose(&own.scheduler),
            match above(&s.places, own).as_slice() {
                [] => "another scheduler is".to_owned(),
                [one] => format!("{one} is"),
                more => format!("{} are", list(more)),
            }
        ),
    }];
    let others: Vec<String> = s
        .places
        .iter()
        .skip(1)
        .filter(|p| p.front)
        .map(|p| in_prose(&p.scheduler))
        .collect();
    if !others.is_empty() {
        let (is, also) = (
            if others.len() == 1 { "is" } else { "are" },
            if own.front { " also" } else { "" },
        );
        out.push(format!("On the front {is}{also} {}.", list(&others)));
    }
    out.push(match s.behind.first() {
        None => "It is not significantly behind any rival in any cell.".to_owned(),
        Some(worst) => format!(
            "It is furthest behind in the {} of {}: {} against {}.",
            name(worst.figure),
            worst.cell,
            signed(worst.mean.factor),
            in_prose(&worst.rival)
        ),
    });
    out
}

/// Returns the number of comparisons that would be listed by chance if all schedulers were equal.
fn by_chance(s: &Standing) -> f64 {
    let rivals = s.places.len().saturating_sub(1);
    let figures = s
        .places
        .first()
        .map_or(0, |p| p.means.iter().flatten().count());
    // The rival is chosen after the fact as the best one, so each rival has a chance of 2.5 %.
    0.025 * (rivals * figures * s.cells) as f64
}

fn row(p: &Place) -> Vec<String> {
    let each = p.means.iter().flat_map(|m| match m {
        Some(m) => [signed(m.factor), interval(m)],
        None => ["–".to_owned(), String::new()],
    });
    std::iter::once(names::plain(&p.scheduler))
        .chain(each)
        .collect()
}

fn lost(b: &Behind) -> Vec<String> {
    vec![
        names::plain(&b.cell),
        name(b.figure).to_owned(),
        names::plain(&b.rival),
        signed(b.mean.factor),
        interval(&b.mean),
        b.seeds.to_string(),
    ]
}

/// Returns the page.
///
/// # Errors
///
/// An error in the template. The contents of a standing cannot cause an error.
pub fn page(s: &Standing, facts: &Facts<'_>) -> Result<String, minijinja::Error> {
    let own = s.places.first().map_or("", |p| p.scheduler.as_str());
    let mut environment = Environment::new();
    environment.add_template("arena.html", PAGE)?;
    let rows: Vec<(Vec<String>, bool)> = s.places.iter().map(|p| (row(p), p.front)).collect();
    let behind: Vec<Vec<String>> = s.behind.iter().map(lost).collect();
    let pictures: Vec<String> = [Figure::P99, Figure::Fairness]
        .into_iter()
        .filter_map(|against| picture::front(s, against))
        .collect();
    environment.get_template("arena.html")?.render(context! {
        title => format!("{} among its rivals", names::plain(own)),
        own => names::plain(own),
        sentences => sentences(s).iter().map(|t| names::plain(t)).collect::<Vec<_>>(),
        pictures,
        rows => Serde(rows),
        behind => Serde(behind),
        comparisons => s.cells * 3,
        chance => format!("{:.0}", libm::ceil(by_chance(s))),
        cells => s.cells,
        first => facts.seeds.0,
        last => facts.seeds.1,
        seeds => s.seeds,
        devices => Serde(facts.ground.devices),
        workloads => Serde(facts.ground.workloads),
        traces => facts.ground.traces.iter().map(|t| names::plain(t)).collect::<Vec<_>>(),
        failed => facts.failed,
        again => names::plain(&facts.again),
        style => STYLE,
        sheet => OWN,
    })
}
