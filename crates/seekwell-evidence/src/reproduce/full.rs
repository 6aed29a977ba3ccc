//! Stored results of the last run of each full form. The quick form and the scatter of the
//! published results are compared with them. A stored result is used only if its runs are equal to
//! those of the current full form.

use super::figures::{Published, PublishedSide};
use super::guard::{Figures, Kept, Line, hash};
use super::ours::{Cell, Ours};
use super::score::NEAR;
use super::{Publication, Reproduction};
use seekwell_stats::median;
use serde::Serialize;
use std::collections::BTreeMap;

const FULL: &str = include_str!("../../published/guards/full.jsonl");
/// Names of the stored lines.
const MEAN: &str = "mean";
const ERROR: &str = "standard error";
const RUNS: &str = "runs";

/// Returns the published tests with the stored results of the full form. Returns `None` if nothing
/// is stored, or if the stored results come from different runs.
pub fn carried(p: &Publication) -> Option<Vec<Cell>> {
    read(p, &Kept::read(FULL))
}

fn read(p: &Publication, kept: &Kept) -> Option<Vec<Cell>> {
    let of = hash(&p.experiment(false).ok()?);
    let (means, errors) = (kept.get(&of, MEAN)?, kept.get(&of, ERROR)?);
    let n = means.more.get(RUNS).map_or(1, |n| *n as usize);
    let at = |f: &Figures, cell: usize, side: usize| f.get(cell)?.get(side).copied().flatten();
    let cell = |(i, published): (usize, Published)| Cell {
        ours: (0..published.sides.len())
            .map(|side| {
                let mean = at(&means.figures, i, side)?;
                let se = at(&errors.figures, i, side);
                Some(Ours { mean, se, n })
            })
            .collect(),
        published,
    };
    Some(p.published().into_iter().enumerate().map(cell).collect())
}

/// Returns the two lines that store the results of a full form.
///
/// # Errors
/// A built-in file is invalid, which a test excludes.
pub fn lines(
    p: &Publication,
    r: &Reproduction,
) -> Result<[Line; 2], seekwell_lab::experiment::Faults> {
    let of = hash(&p.experiment(false)?);
    let line = |what: &str, figure: &dyn Fn(&Ours) -> Option<f64>| Line {
        of: of.clone(),
        what: what.to_owned(),
        figures: r
            .cells
            .iter()
            .map(|c| c.ours.iter().map(|o| figure(&(*o)?)).collect())
            .collect(),
        more: BTreeMap::from([(RUNS.to_owned(), r.repeats as f64)]),
        ..Line::default()
    };
    Ok([line(MEAN, &|o| Some(o.mean)), line(ERROR, &|o| o.se)])
}

/// Comparison of the quick form of a test with its full form, over all systems and schedulers.
#[derive(Clone, Debug, Serialize)]
pub struct Scaled {
    /// Name of the test; empty for the whole publication.
    pub test: String,
    /// Number of results that exist in both forms.
    pub figures: usize,
    /// Median of |ln (quick / full)|.
    pub median: Option<f64>,
    /// Largest |ln (quick / full)|.
    pub largest: Option<f64>,
    /// System and scheduler with the largest deviation.
    pub at: String,
}

/// Comparison of the quick form of a publication with its full form.
#[derive(Clone, Debug, Serialize)]
pub struct Scaling {
    /// Number of runs per result of the full form.
    pub runs: usize,
    /// Comparison over all results.
    pub all: Scaled,
    /// Fraction (0 to 1) of results for which both forms agree within 35 %.
    pub near: f64,
    /// Median absolute difference between the two forms' log ratios of a pair.
    pub pairs: Option<f64>,
    /// One comparison per test.
    pub tests: Vec<Scaled>,
}

fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// |ln (quick / full)|, and the system and scheduler that it belongs to.
type Off = (f64, String);

fn scaled(test: &str, all: &[Off]) -> Scaled {
    let largest = all.iter().max_by(|a, b| a.0.total_cmp(&b.0));
    Scaled {
        test: test.to_owned(),
        figures: all.len(),
        median: median(&all.iter().map(|e| e.0).collect::<Vec<_>>()),
        largest: largest.map(|e| e.0),
        at: largest.map_or(String::new(), |e| e.1.clone()),
    }
}

/// Compares the quick and the full form of one publication.
pub fn scaling(quick: &[Cell], full: &[Cell]) -> Scaling {
    let (mut all, mut pairs) = (Vec::new(), Vec::new());
    let mut tests: Vec<(String, Vec<Off>)> = Vec::new();
    for (q, f) in quick.iter().zip(full) {
        let p = &q.published;
        let alike =
            |o: &&Cell| (&o.published.system, &o.published.workload) == (&p.system, &p.workload);
        let name = p.title(quick.iter().filter(alike).count() > 1);
        let at = tests.iter().position(|t| t.0 == name);
        let at = at.unwrap_or_else(|| {
            tests.push((name, Vec::new()));
            tests.len() - 1
        });
        for (i, side) in p.sides.iter().enumerate() {
            let both = q.ratio(i).zip(f.ratio(i));
            if let Some((a, b)) = both.filter(|(a, b)| *a > 0.0 && *b > 0.0) {
                let error = (ln(a / b).abs(), format!("{}, {}", p.system, side.scheduler));
                tests[at].1.push(error.clone());
                all.push(error);
            }
        }
        for pair in &p.pairs {
            let both = q.pair(pair).zip(f.pair(pair));
            pairs.extend(both.map(|(a, b)| ln(a / b).abs()));
        }
    }
    let near = all.iter().filter(|e| e.0 <= ln(1.0 + NEAR)).count();
    let runs = full.iter().flat_map(Cell::runs).max().unwrap_or(0);
    Scaling {
        runs,
        near: near as f64 / all.len().max(1) as f64,
        pairs: median(&pairs),
        tests: tests.iter().map(|t| scaled(&t.0, &t.1)).collect(),
        all: scaled("", &all),
    }
}

/// Scatter of the published results and of our results, for one system.
#[derive(Clone, Debug, Serialize)]
pub struct Scatter {
    /// System.
    pub system: String,
    /// Number of results for which both the publication and we have an error.
    pub figures: usize,
    /// Largest number of our runs per result.
    pub runs: usize,
    /// Median of the published standard errors divided by their means.
    pub published: Option<f64>,
    /// Median of our standard errors divided by their means.
    pub ours: Option<f64>,
    /// Number of our results that were equal in all runs.
    pub same: usize,
}

/// Returns the published standard error divided by the mean.
fn published_error(s: &PublishedSide) -> Option<f64> {
    let runs = f64::from(s.n.filter(|n| *n > 1)?);
    let se = match s.kind_of_error.as_str() {
        "SD" => s.error? / libm::sqrt(runs),
        _ => s.error?,
    };
    Some(se / s.value)
}

/// Relative errors of the results of one system, as published and ours.
#[derive(Default)]
struct Errors {
    system: String,
    runs: usize,
    both: Vec<(f64, f64)>,
}

/// Returns the scatter by system. Leaves out systems without errors in the publication or in our
/// runs.
pub fn scatter(cells: &[Cell]) -> Vec<Scatter> {
    let mut all: Vec<Errors> = Vec::new();
    for c in cells {
        for (side, ours) in c.published.sides.iter().zip(&c.ours) {
            let own = ours.and_then(|o| Some((o.n, o.se? / o.mean)));
            let Some((theirs, (runs, own))) = published_error(side).zip(own) else {
                continue;
            };
            let system = &c.published.system;
            let at = all.iter().position(|e| e.system == *system);
            let at = at.unwrap_or_else(|| {
                all.push(Errors {
                    system: system.clone(),
                    runs,
                    ..Errors::default()
                });
                all.len() - 1
            });
            all[at].both.push((theirs, own));
        }
    }
    let one = |e: Errors| Scatter {
        figures: e.both.len(),
        runs: e.runs,
        published: median(&e.both.iter().map(|b| b.0).collect::<Vec<_>>()),
        ours: median(&e.both.iter().map(|b| b.1).collect::<Vec<_>>()),
        same: e.both.iter().filter(|b| b.1 == 0.0).count(),
        system: e.system,
    };
    all.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::PUBLICATIONS;

    /// Returns our results as published results times a factor. All but one are equal in three
    /// runs.
    fn cells(p: &Publication, factor: f64) -> Vec<Cell> {
        let cell = |(i, published): (usize, Published)| Cell {
            ours: published
                .sides
                .iter()
                .map(|s| {
                    Some(Ours {
                        mean: s.value * factor,
                        se: Some(if i == 0 {
                            s.value * factor / 100.0
                        } else {
                            0.0
                        }),
                        n: 3,
                    })
                })
                .collect(),
            published,
        };
        p.published().into_iter().enumerate().map(cell).collect()
    }

    #[test]
    fn what_the_quick_form_is_off_by_is_told_test_by_test_with_the_largest() {
        let p = &PUBLICATIONS[0];
        let (mut quick, full) = (cells(p, 1.0), cells(p, 1.0));
        quick[0].ours[1].as_mut().expect("there").mean *= 2.0;
        let s = scaling(&quick, &full);
        assert_eq!((s.all.figures, s.runs, s.tests.len()), (176, 3, 20));
        assert_eq!(s.all.median, Some(0.0));
        assert!((s.all.largest.expect("there") - ln(2.0)).abs() < 1e-12);
        assert_eq!(s.all.at, "Penryn + HDD, noop");
        let other = s.tests.iter().filter(|t| t.largest > Some(1e-12));
        assert_eq!(other.count(), 1);
        assert!((s.near - 175.0 / 176.0).abs() < 1e-12);
    }

    #[test]
    fn a_system_whose_runs_are_all_the_same_is_told() {
        let all = scatter(&cells(&PUBLICATIONS[0], 1.0));
        let said: Vec<(&str, usize, usize)> = all
            .iter()
            .map(|s| (s.system.as_str(), s.figures, s.figures - s.same))
            .collect();
        assert_eq!(said[0], ("Penryn + HDD", 60, 3));
        assert!(said[1..].iter().all(|s| s.2 == 0), "{said:?}");
        assert!(all.iter().all(|s| s.published > Some(0.0)));
        // Results without errors are left out.
        assert!(scatter(&cells(&PUBLICATIONS[4], 1.0)).is_empty());
    }

    #[test]
    fn what_is_carried_is_read_again_and_not_of_other_runs() {
        let p = &PUBLICATIONS[3];
        let mut r = p.reproduction(&seekwell_lab::results::Results::default(), false);
        (r.cells, r.repeats) = (cells(p, 2.0), 3);
        let made = lines(p, &r).expect("a file of ours");
        let text = |lines: &[Line]| {
            let one = |l: &Line| serde_json::to_string(l).expect("JSON") + "\n";
            lines.iter().map(one).collect::<String>()
        };
        let again = read(p, &Kept::read(&text(&made))).expect("the same runs");
        let ours = |c: &[Cell]| c.iter().map(|c| c.ours.clone()).collect::<Vec<_>>();
        assert_eq!(ours(&again), ours(&r.cells));
        let other = made.map(|l| Line {
            of: "0".to_owned(),
            ..l
        });
        assert!(read(p, &Kept::read(&text(&other))).is_none());
    }
}
