//! Robustness check c: the removal of a claimed cause must remove its effect. The check first runs
//! the demo of each cause, which is made to show this cause alone. It then predicts the published
//! difference, with the cause and without it. If the prediction shows no difference with the cause,
//! nothing can be removed, and the result says so.

use super::{Bench, GuardError, Kept, Line, hash, made};
use crate::demo;
use crate::reproduce::{GROUPS, PUBLICATIONS, Publication, Published};
use seekwell::{RunSpec, WorkloadSpec};
use seekwell_lab::experiment::Experiment;
use serde::Serialize;
use std::collections::BTreeSet;

/// Relative difference below which the two schedulers count as equal.
const NONE: f64 = 0.05;
/// Largest fraction of the difference that may remain after the removal.
const LEFT: f64 = 0.25;

/// A cause that can be removed from a published test.
struct Cause {
    group: &'static str,
    publication: &'static str,
    system: &'static str,
    /// Beginning of the name of the published test.
    test: &'static str,
    metric: &'static str,
    /// The two schedulers whose difference the cause explains.
    pair: (&'static str, &'static str),
    /// What the test adds to the quick form to include the cause; empty if it adds nothing.
    with: &'static str,
    on: fn(&mut RunSpec),
    /// Describes how the cause is removed.
    without: &'static str,
    off: fn(&mut RunSpec),
}

impl Cause {
    /// Finds the published test for which the cause is claimed.
    fn found(&self) -> Option<(&'static Publication, Published)> {
        let p = PUBLICATIONS.iter().find(|p| p.name == self.publication)?;
        let own = |o: &Published| {
            let metric = self.metric.is_empty() || o.metric == self.metric;
            o.system == self.system && o.workload.starts_with(self.test) && metric
        };
        Some((p, p.published().into_iter().find(own)?))
    }
}

fn set(spec: &mut RunSpec, key: &str, value: &str) {
    if let WorkloadSpec::Script { params, .. } = &mut spec.workload {
        params.insert(key.to_owned(), value.to_owned());
    }
}

fn tunable(spec: &mut RunSpec, scheduler: &str, key: &str, value: &str) {
    if spec.scheduler.name.starts_with(scheduler) {
        let tunables = &mut spec.scheduler.tunables;
        tunables.insert(key.to_owned(), value.to_owned());
    }
}

fn nothing(_: &mut RunSpec) {}

fn intruder(s: &mut RunSpec, thinks: &str, reads: &str) {
    set(s, "thinks", thinks);
    set(s, "intruder", reads);
}

const BLOG: Cause = Cause {
    group: "A",
    publication: "phoronix-2012",
    system: "Sandy Bridge + SSD",
    test: "blogbench",
    metric: "",
    pair: ("cfq", "noop"),
    with: "",
    on: nothing,
    without: "no readers",
    off: |s| set(s, "readers", "0"),
};

const SCAN: Cause = Cause {
    group: "K",
    publication: "mysql-2008",
    system: "SATA disk",
    test: "MySQL",
    metric: "average runtime",
    pair: ("cfq", "deadline"),
    without: "no idling: slice_idle 0",
    off: |s| tunable(s, "cfq", "slice_idle", "0"),
    ..BLOG
};

const PHONE: Cause = Cause {
    group: "L",
    publication: "moto-g-2014",
    system: "Moto G",
    test: "AndroBench",
    metric: "SQLite update",
    pair: ("bfq", "noop"),
    without: "no raising: low_latency 0",
    off: |s| tunable(s, "bfq", "low_latency", "0"),
    ..BLOG
};

const CAUSES: &[Cause] = &[
    BLOG,
    Cause {
        without: "every read cached: a page cache of 3.2 GiB",
        off: |s| s.machine.get_or_insert_default().cache_bytes = Some(3296 << 20),
        ..BLOG
    },
    Cause {
        group: "F",
        system: "Penryn + HDD",
        test: "compilebench 0.6: Compile",
        pair: ("noop", "deadline"),
        without: "a queue too short to sort: nr_requests 4",
        off: |s| s.queue.nr_requests = Some(4),
        ..BLOG
    },
    Cause {
        group: "G",
        test: "compilebench 0.6: Read Compiled Tree",
        with: "nothing between the phases",
        on: |s| set(s, "between", "nothing"),
        without: "a sync between the phases",
        off: |s| set(s, "between", "sync"),
        ..BLOG
    },
    SCAN,
    Cause {
        with: "a drive that queues commands: depth 31",
        on: |s| s.queue.depth = Some(31),
        without: "the same, no idling: slice_idle 0",
        off: |s| {
            s.queue.depth = Some(31);
            tunable(s, "cfq", "slice_idle", "0");
        },
        ..SCAN
    },
    Cause {
        with: "a second program with a constant 22 reads per second",
        on: |s| intruder(s, "no", "22"),
        without: "the same, no idling: slice_idle 0",
        off: |s| {
            intruder(s, "no", "22");
            tunable(s, "cfq", "slice_idle", "0");
        },
        ..SCAN
    },
    PHONE,
    Cause {
        without: "no pause before it",
        off: |s| set(s, "pause", "0"),
        ..PHONE
    },
];

/// Result of removing a cause from a published test.
#[derive(Clone, Debug, Serialize)]
pub struct Taken {
    /// Letter of the group of effects.
    pub group: &'static str,
    /// Name of the system and of the test.
    pub test: String,
    /// Names of the two schedulers.
    pub pair: String,
    /// Published ratio: first value divided by second value.
    pub published: f64,
    /// What the test adds to the quick form; empty if it adds nothing.
    pub with: &'static str,
    /// How the cause is removed.
    pub without: &'static str,
    /// Our ratio with the cause.
    pub on: Option<f64>,
    /// Our ratio without the cause.
    pub off: Option<f64>,
}

/// Outcome of removing a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Left {
    /// The difference disappeared.
    Removed,
    /// Part of the difference remains.
    Stays,
    /// The prediction shows no difference even with the cause, so nothing can be removed.
    NothingToRemove,
    /// A run failed.
    NotRun,
}

impl Left {
    /// Returns the outcome in words.
    pub fn word(self) -> &'static str {
        match self {
            Left::Removed => "removed",
            Left::Stays => "stays: the claimed cause is wrong or not the only one",
            Left::NothingToRemove => "nothing to remove: not in the prediction",
            Left::NotRun => "a run failed",
        }
    }
}

impl Taken {
    /// Returns whether the removal of the cause removed the difference.
    pub fn left(&self) -> Left {
        let Some((on, off)) = self.on.zip(self.off) else {
            return Left::NotRun;
        };
        let (on, off) = (libm::log(on).abs(), libm::log(off).abs());
        let least = libm::log(1.0 + NONE);
        match on < least {
            true => Left::NothingToRemove,
            false if off < least.max(LEFT * on) => Left::Removed,
            false => Left::Stays,
        }
    }
}

/// Results of the demo of one cause.
#[derive(Clone, Debug, Serialize)]
pub struct Demonstrated {
    /// Letter of the group of effects.
    pub group: &'static str,
    /// The claimed cause.
    pub why: &'static str,
    /// Name of the demo.
    pub demo: String,
    /// One entry per check of the demo: a text with its numbers, and whether the check passed.
    pub checks: Vec<(String, bool)>,
}

/// Result of this robustness check.
#[derive(Clone, Debug, Serialize)]
pub struct Ablated {
    /// One entry per demo.
    pub demos: Vec<Demonstrated>,
    /// One entry per cause that can be removed from a published test.
    pub tests: Vec<Taken>,
}

/// Extracts the demo's name from a text that ends in `(demo NAME)`.
fn demo_of(ablation: &str) -> Option<&str> {
    let (_, rest) = ablation.split_once("(demo ")?;
    rest.strip_suffix(')')
}

/// Runs the demos of all causes claimed for these publications.
fn demos(names: &[&str], bench: &Bench<'_>) -> Result<Vec<Demonstrated>, GuardError> {
    let mut all = Vec::new();
    let named = PUBLICATIONS.iter().filter(|p| names.contains(&p.name));
    let groups: BTreeSet<String> = named.flat_map(|p| p.published()).map(|p| p.group).collect();
    for g in GROUPS.iter().filter(|g| groups.contains(g.letter)) {
        let Some(name) = demo_of(g.ablation) else {
            continue;
        };
        let demo = demo::find(name).ok_or_else(|| GuardError::Text(demo::unknown(name)))?;
        let shown = demo.show(1, &mut |_, _| !bench.cancel.is_set());
        if bench.cancel.is_set() {
            return Err(GuardError::Stopped);
        }
        let shown = shown.map_err(|e| GuardError::Text(format!("demo {name}: {e}")))?;
        all.push(Demonstrated {
            group: g.letter,
            why: g.why,
            demo: name.to_owned(),
            checks: shown.checks,
        });
    }
    Ok(all)
}

/// Builds the runs for a cause: two schedulers in one cell.
fn changed(
    p: &Publication,
    own: &Published,
    cause: &Cause,
    change: fn(&mut RunSpec),
) -> Result<Experiment, GuardError> {
    let mut e = p
        .experiment(true)
        .map_err(|e| GuardError::Text(e.to_string()))?;
    let on = |m: &str| {
        let rest = m.strip_prefix(cause.system);
        rest.is_some_and(|r| r.is_empty() || r.starts_with(", "))
    };
    e.cells
        .retain(|c| c.cell.workload == own.run && on(&c.cell.machine));
    let labels: Vec<String> = e.treatments.iter().map(|t| t.label.clone()).collect();
    for plan in &mut e.cells {
        let wanted = |t: &usize| [cause.pair.0, cause.pair.1].contains(&labels[*t].as_str());
        let kept: Vec<bool> = plan.cell.treatments.iter().map(wanted).collect();
        let mut keep = kept.iter();
        plan.specs.retain(|_| keep.next() == Some(&true));
        let mut keep = kept.iter();
        plan.cell.treatments.retain(|_| keep.next() == Some(&true));
        plan.cell.reference = plan.cell.treatments.first().copied().unwrap_or(0);
        plan.specs.iter_mut().for_each(change);
    }
    Ok(e)
}

/// Returns our ratio: first value divided by second value.
fn ratio(own: &Published, line: &Line, pair: (&str, &str)) -> Option<f64> {
    let sides = line.figures.first()?;
    let of = |name: &str| {
        let at = own.sides.iter().position(|s| s.scheduler == name)?;
        sides.get(at).copied().flatten()
    };
    let ratio = of(pair.0)? / of(pair.1)?;
    Some(ratio).filter(|r| r.is_finite() && *r > 0.0)
}

/// Runs the tests with and without each cause, or reads stored results of the same runs.
///
/// # Errors
/// The check was stopped, a run failed, or a result cannot be stored.
pub fn ablated(names: &[&str], bench: &Bench<'_>, kept: &mut Kept) -> Result<Ablated, GuardError> {
    let mut tests = Vec::new();
    for cause in CAUSES.iter().filter(|c| names.contains(&c.publication)) {
        tests.push(taken(cause, &mut |v| {
            if let Some(line) = kept.get(&v.name, &v.what) {
                return Ok(line.clone());
            }
            let (figures, failed) = made(bench, std::slice::from_ref(v.own), &v.runs)?;
            let line = Line {
                of: v.name.clone(),
                what: v.what.clone(),
                figures,
                failed,
                ..Line::default()
            };
            kept.add(line.clone())?;
            Ok(line)
        })?);
    }
    let demos = demos(names, bench)?;
    Ok(Ablated { demos, tests })
}

/// Returns the stored results for a publication's tests, if the same runs produced them.
pub fn known(p: &Publication, kept: &Kept) -> Vec<Taken> {
    let own = CAUSES.iter().filter(|c| c.publication == p.name);
    own.filter_map(|cause| {
        let found = taken(cause, &mut |v| {
            kept.get(&v.name, &v.what)
                .cloned()
                .ok_or(GuardError::Stopped)
        });
        found.ok()
    })
    .collect()
}

/// Counts the causes that can be removed from a publication's tests.
pub fn causes(p: &Publication) -> usize {
    CAUSES.iter().filter(|c| c.publication == p.name).count()
}

/// A test with or without the cause.
struct Variant<'a> {
    own: &'a Published,
    runs: Experiment,
    name: String,
    what: String,
}

/// Runs the test of one cause, with and without the cause.
fn taken(
    cause: &Cause,
    take: &mut dyn FnMut(&Variant<'_>) -> Result<Line, GuardError>,
) -> Result<Taken, GuardError> {
    let Some((p, own)) = cause.found() else {
        let what = format!("{}: no such test", cause.test);
        return Err(GuardError::Text(what));
    };
    let mut of = |change: fn(&mut RunSpec), what: &str| -> Result<Line, GuardError> {
        let runs = changed(p, &own, cause, change)?;
        take(&Variant {
            own: &own,
            name: hash(&runs),
            runs,
            what: format!("{} {what}", cause.group),
        })
    };
    let on = of(cause.on, "with")?;
    let off = of(cause.off, cause.without)?;
    let at = |name: &str| own.sides.iter().find(|s| s.scheduler == name);
    let (one, other) = (at(cause.pair.0), at(cause.pair.1));
    Ok(Taken {
        group: cause.group,
        test: format!("{}: {}", own.system, own.title(!cause.metric.is_empty())),
        pair: format!("{} : {}", cause.pair.0, cause.pair.1),
        published: one.zip(other).map_or(f64::NAN, |(a, b)| a.value / b.value),
        with: cause.with,
        without: cause.without,
        on: ratio(&own, &on, cause.pair),
        off: ratio(&own, &off, cause.pair),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_difference_is_told_from_both() {
        let of = |on: Option<f64>, off: Option<f64>| {
            Taken {
                group: "A",
                test: String::new(),
                pair: String::new(),
                published: 0.5,
                with: "",
                without: "",
                on,
                off,
            }
            .left()
        };
        assert_eq!(of(Some(0.5), Some(1.0)), Left::Removed);
        assert_eq!(of(Some(0.5), Some(0.9)), Left::Removed);
        assert_eq!(of(Some(0.5), Some(0.7)), Left::Stays);
        assert_eq!(of(Some(0.9), Some(0.94)), Left::Stays);
        assert_eq!(of(Some(0.5), Some(2.0)), Left::Stays);
        assert_eq!(of(Some(1.02), Some(1.0)), Left::NothingToRemove);
        assert_eq!(of(None, Some(1.0)), Left::NotRun);
    }

    #[test]
    fn every_claimed_cause_has_a_demo_and_every_cause_its_runs() {
        for g in GROUPS.iter().filter(|g| !g.ablation.is_empty()) {
            let name = demo_of(g.ablation).expect("a demo is named");
            assert!(demo::find(name).is_some(), "{name}");
        }
        for c in CAUSES {
            let (p, own) = c.found().expect("a published test");
            let (on, off) = (changed(p, &own, c, c.on), changed(p, &own, c, c.off));
            let (on, off) = (on.expect("runs"), off.expect("runs"));
            assert_eq!((on.cells.len(), off.cells.len()), (1, 1), "{}", c.test);
            assert_eq!(on.cells[0].specs.len(), 2);
            assert_ne!(hash(&on), hash(&off), "{}: nothing is taken out", c.without);
            for s in on.cells[0].specs.iter().chain(&off.cells[0].specs) {
                seekwell::checked(s).expect("a run that can be");
            }
        }
    }
}
