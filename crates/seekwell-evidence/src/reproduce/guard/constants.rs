//! Robustness check a: every estimated constant is reduced and increased by a quarter. This is done
//! for each constant alone and for all constants together. The result is a distribution of each
//! score. A score above the 90th percentile of its own distribution is overtuned, because it
//! depends on constants that are not known with this precision.
//!
//! The check finds the constants automatically. They are all constants that a preset or machine
//! marks as estimated or fitted, the processor times of programs, and the memory that a machine has
//! in use. If a constant cannot affect a run, the stored result of that run is used. The check runs
//! a part of the quick form: only the tests with scored differences, made smaller by [`SMALLER`].
//! The nominal constants run in the same reduced form.
//!
//! Processor times in the kernel's model change together with the speed of the machine's cores.
//! Other estimated constants of the kernel's model (`seekwell-stack`, constants.rs) do not change.

use super::{Bench, Figures, GuardError, Kept, Line, Score, hash, made, over};
use crate::reproduce::{Publication, Published};
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use seekwell::{RunSpec, WorkloadSpec, checked};
use seekwell_device::{Source, Value, describe};
use seekwell_lab::experiment::{CellPlan, Experiment};
use seekwell_lab::results::Cell;
use seekwell_stack::CONSTANTS;
use seekwell_stats::quantile_sorted;
use serde::Serialize;

/// Relative change of a constant that is changed alone; the largest change in a joint draw.
pub const BY: f64 = 0.25;
/// Default number of joint draws. A joint draw changes all constants at random.
pub const DRAWS: u32 = 50;
/// Parameters that are smaller than in the quick form, because the check runs about a hundred such
/// forms. An entry has a script, a parameter and its value. The affected results are rates.
pub const SMALLER: [(&str, &str, &str); 4] = [
    ("compilebench", "trees", "2"),
    ("pgbench", "transactions", "600"),
    ("fs-mark", "files", "80"),
    ("tiobench", "random", "125"),
];
/// Groups of effects that are left out. Group H would need a quarter of the time, and it has no
/// skill that it could lose.
pub const LEFT_OUT: [&str; 1] = ["H"];
/// Largest number of attempts to draw constants that give a possible device.
const AGAIN: u64 = 100;

/// The part of the model that a constant belongs to.
#[derive(Clone, Debug, PartialEq)]
enum On {
    /// A parameter of the device `spec`.
    Device { spec: String, key: String },
    /// The speed of the cores of the machine with this name.
    Cpu(String),
    /// Memory in use outside the page cache, for the machine with this name, in bytes.
    Used(String, u64),
    /// A processor time of the program that a script models.
    Program { script: String, key: String },
}

/// An estimated constant.
#[derive(Clone, Debug, Serialize)]
pub struct Constant {
    /// Name of the device, machine or script, and of the constant: `hdd:hitachi-7k200 guard`.
    pub name: String,
    /// Nominal value, in the form that a user would type.
    pub nominal: String,
    /// Source of the value.
    pub source: String,
    #[serde(skip)]
    on: On,
}

fn machine(cell: &Cell) -> &str {
    cell.machine.split(", ").next().unwrap_or_default()
}

fn params(spec: &RunSpec) -> Option<(&String, &std::collections::BTreeMap<String, String>)> {
    match &spec.workload {
        WorkloadSpec::Script { name, params } => Some((name, params)),
        _ => None,
    }
}

/// Parses a time such as `900us` into nanoseconds.
fn time_ns(text: &str) -> Option<f64> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (number, unit) = units
        .iter()
        .find_map(|(u, ns)| Some((text.strip_suffix(u)?, ns)))?;
    Some(number.trim().parse::<f64>().ok()? * unit)
}

/// Returns the memory in use outside the page cache for machines with this kernel, in bytes.
fn used_bytes(kernel: &str) -> Option<u64> {
    let at = match kernel {
        "3.4" => 1,
        "4.0" => 2,
        k if k.starts_with("2.6") => 0,
        _ => 3,
    };
    let mib = CONSTANTS.iter().find(|c| c.name == "fixed_use_mib")?;
    Some(mib.by_kernel[at] << 20)
}

/// Returns all estimated or fitted constants of an experiment's machines, devices and programs.
pub fn constants(e: &Experiment) -> Vec<Constant> {
    let mut all: Vec<Constant> = Vec::new();
    let mut push = |c: Constant| {
        if all.iter().all(|o| o.name != c.name) {
            all.push(c);
        }
    };
    for plan in &e.cells {
        let Some(spec) = plan.specs.first() else {
            continue;
        };
        let device = &spec.device.spec;
        for p in describe(device).map(|p| p.params).unwrap_or_default() {
            let guessed = matches!(p.source, Source::Estimate | Source::Fitted);
            if !guessed || !matches!(p.value, Value::Num(v) if v != 0.0) {
                continue;
            }
            push(Constant {
                name: format!("{device} {}", p.def.key),
                nominal: format!("{} {}", p.value, p.unit()),
                source: match p.reference.is_empty() {
                    true => p.source.text().to_owned(),
                    false => format!("{}: {}", p.source.text(), p.reference),
                },
                on: On::Device {
                    spec: device.clone(),
                    key: p.def.key.to_owned(),
                },
            });
        }
        let name = machine(&plan.cell);
        let own = spec.machine.clone().unwrap_or_default();
        let cpu = f64::from(own.cpu_permille.unwrap_or(1000)) / 1000.0;
        push(Constant {
            name: format!("{name} cpu"),
            nominal: cpu.to_string(),
            source: "estimate, or fitted as the experiment file says".to_owned(),
            on: On::Cpu(name.to_owned()),
        });
        if let Some(used) = own.kernel.as_deref().and_then(used_bytes) {
            push(Constant {
                name: format!("{name} memory in use"),
                nominal: format!("{} MiB", used >> 20),
                source: "estimate for a desktop; the rest is page cache".to_owned(),
                on: On::Used(name.to_owned(), used),
            });
        }
        let Some((script, values)) = params(spec) else {
            continue;
        };
        for key in ["think", "client_think", "cpu"] {
            let Some(value) = values.get(key) else {
                continue;
            };
            if time_ns(value).is_some_and(|ns| ns > 0.0) {
                push(Constant {
                    name: format!("{script} {key}"),
                    nominal: value.clone(),
                    source: "estimate, or fitted as the experiment file says".to_owned(),
                    on: On::Program {
                        script: script.clone(),
                        key: key.to_owned(),
                    },
                });
            }
        }
    }
    all
}

impl Constant {
    /// Returns whether the constant can affect the runs of this cell.
    fn touches(&self, plan: &CellPlan) -> bool {
        let first = plan.specs.first();
        match &self.on {
            On::Device { spec, .. } => first.is_some_and(|s| s.device.spec == *spec),
            On::Cpu(name) | On::Used(name, _) => machine(&plan.cell) == name,
            On::Program { script, .. } => first
                .and_then(params)
                .is_some_and(|(name, _)| name == script),
        }
    }
    /// Changes the constant in a run by `factor`. `device` is the device before any change.
    fn set(&self, spec: &mut RunSpec, device: &str, factor: f64) {
        match &self.on {
            On::Device { key, .. } => {
                let found = describe(device).ok();
                let found = found.as_ref().and_then(|p| p.get(key));
                let Some((p, Value::Num(value))) = found.map(|p| (p, p.value.clone())) else {
                    return;
                };
                let value = (value * factor).clamp(p.def.lo, p.def.hi);
                let value = match p.unit() {
                    "ms" | "MB/s" | "ratio" | "probability" | "ppm" => value,
                    "bytes" => libm::round(value / 4096.0).max(1.0) * 4096.0,
                    _ => libm::round(value).max(1.0),
                };
                spec.device.spec += &format!(",{key}={}", Value::Num(value));
            }
            On::Cpu(_) => {
                let own = spec.machine.get_or_insert_default();
                let permille = own.cpu_permille.unwrap_or(1000);
                let moved = libm::round(f64::from(permille) * factor);
                own.cpu_permille = Some(moved as u32);
            }
            On::Used(_, used) => {
                let own = spec.machine.get_or_insert_default();
                let memory = own.memory_bytes.unwrap_or(4 << 30) as f64;
                let left = memory - *used as f64;
                let moved = (memory - *used as f64 * factor) / left;
                let cache = own.cache_bytes.map_or(left, |c| c as f64);
                own.cache_bytes = Some((cache * moved).max(1_048_576.0) as u64);
            }
            On::Program { key, .. } => {
                let WorkloadSpec::Script { params, .. } = &mut spec.workload else {
                    return;
                };
                let Some(value) = params.get_mut(key) else {
                    return;
                };
                if let Some(ns) = time_ns(value) {
                    *value = format!("{}ns", libm::round(ns * factor));
                }
            }
        }
    }
}

/// Returns the experiment with changed constants. Leaves out cells that no constant affects.
fn moved(e: &Experiment, all: &[Constant], factors: &[f64]) -> Experiment {
    let mut e = e.clone();
    let touched = |plan: &CellPlan| {
        all.iter()
            .zip(factors)
            .any(|(c, f)| *f != 1.0 && c.touches(plan))
    };
    e.cells.retain(touched);
    for plan in &mut e.cells {
        let own: Vec<_> = all
            .iter()
            .zip(factors)
            .filter(|(c, f)| **f != 1.0 && c.touches(plan))
            .collect();
        for spec in &mut plan.specs {
            let device = spec.device.spec.clone();
            own.iter().for_each(|(c, f)| c.set(spec, &device, **f));
        }
    }
    e
}

/// Returns why the runs of an experiment are impossible; `None` if they are possible.
fn impossible(e: &Experiment) -> Option<String> {
    let specs = e.cells.iter().filter_map(|c| c.specs.first());
    specs.into_iter().find_map(|s| {
        let errors = checked(s).err().map(|e| e.to_string());
        let built = || seekwell_device::open(&s.device.spec, 1).err();
        errors.or_else(|| built().map(|e| e.to_string()))
    })
}

/// Distribution of a value over several draws.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Number of draws.
    pub draws: usize,
    /// Minimum.
    pub min: f64,
    /// 10th percentile.
    pub p10: f64,
    /// Median.
    pub median: f64,
    /// 90th percentile.
    pub p90: f64,
    /// Maximum.
    pub max: f64,
}

impl Spread {
    /// Computes the distribution, with interpolated percentiles. Returns `None` without values.
    pub fn from_values(values: &[f64]) -> Option<Spread> {
        let mut all = values.to_vec();
        all.sort_by(f64::total_cmp);
        let at = |share: f64| quantile_sorted(&all, share);
        Some(Spread {
            draws: all.len(),
            min: at(0.0)?,
            p10: at(0.1)?,
            median: at(0.5)?,
            p90: at(0.9)?,
            max: at(1.0)?,
        })
    }
}

/// Result of changing one constant alone.
#[derive(Clone, Debug, Serialize)]
pub struct Single {
    /// The constant.
    pub constant: Constant,
    /// Scores with the constant reduced and increased by a quarter. `None` if the runs failed or
    /// are impossible; `why` has the reason.
    pub scores: [Option<Score>; 2],
    /// Reasons why runs failed or are impossible.
    pub why: Vec<String>,
}

/// A score and its distribution over the joint draws.
#[derive(Clone, Debug, Serialize)]
pub struct Cloud {
    /// Name of the score: `skill`, `skill A`, `level`.
    pub what: String,
    /// Score with the nominal constants.
    pub nominal: f64,
    /// Distribution of the score over the joint draws.
    pub spread: Spread,
    /// True if the nominal score is better than the scores of nine in ten joint draws.
    pub overtuned: bool,
}

/// Result of this robustness check.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// Number of constants that change.
    pub constants: usize,
    /// One entry per constant; empty if only joint draws were requested.
    pub singles: Vec<Single>,
    /// Score with the nominal constants.
    pub nominal: Score,
    /// Scores with all constants changed together, one entry per score.
    pub clouds: Vec<Cloud>,
    /// Number of joint draws without failed runs.
    pub draws: usize,
    /// Number of joint draws with failed runs. They are not part of the distributions.
    pub failed: usize,
    /// Number of published tests that the check runs.
    pub tests: usize,
    /// Names of the estimated constants of the kernel's model, which do not change.
    pub unmoved: Vec<&'static str>,
}

/// Returns the reduced form: only the tests with scored differences, made smaller by [`SMALLER`].
///
/// # Errors
/// A built-in file is invalid, which a test excludes.
pub fn form(p: &Publication) -> Result<(Experiment, Vec<Published>), GuardError> {
    let mut e = p
        .experiment(true)
        .map_err(|e| GuardError::Text(e.to_string()))?;
    let all = p.published();
    let scored =
        |c: &Published| c.pairs.iter().any(|p| p.scored()) && !LEFT_OUT.contains(&c.group.as_str());
    let published: Vec<Published> = match all.iter().any(scored) {
        true => all.into_iter().filter(scored).collect(),
        false => all,
    };
    let used = |c: &Cell| {
        published
            .iter()
            .any(|p| p.run == c.workload && p.system == machine(c))
    };
    e.cells.retain(|c| used(&c.cell));
    for spec in e.cells.iter_mut().flat_map(|c| &mut c.specs) {
        let WorkloadSpec::Script { name, params } = &mut spec.workload else {
            continue;
        };
        for (_, key, value) in SMALLER.iter().filter(|s| s.0 == name) {
            if let Some(own) = params.get_mut(*key) {
                (*value).clone_into(own);
            }
        }
    }
    Ok((e, published))
}

/// Draws the factors of a joint draw at random, one per constant.
fn drawn(all: &[Constant], e: &Experiment, draw: u32) -> Result<Vec<f64>, GuardError> {
    for again in 0..AGAIN {
        let seed = u64::from(draw) << 8 | again;
        let mut rng = Pcg64Mcg::new(u128::from(seed) << 1 | 1);
        let factors: Vec<f64> = all
            .iter()
            .map(|_| rng.random_range(1.0 - BY..=1.0 + BY))
            .collect();
        if impossible(&moved(e, all, &factors)).is_none() {
            return Ok(factors);
        }
    }
    Err(GuardError::Text(format!(
        "draw {draw}: {AGAIN} attempts gave no possible device"
    )))
}

/// Changes all constants together `draws` times, then each constant alone unless `joint` is set.
/// Uses stored results of the same runs.
///
/// # Errors
/// The check was stopped, or a result cannot be stored.
pub fn constants_moved(
    p: &Publication,
    bench: &Bench<'_>,
    kept: &mut Kept,
    draws: u32,
    joint: bool,
) -> Result<Moved, GuardError> {
    let (e, published) = form(p)?;
    let all = constants(&e);
    let mut of = |e: &Experiment, what: &str| -> Result<Line, GuardError> {
        let name = hash(e);
        if let Some(line) = kept.get(&name, what) {
            return Ok(line.clone());
        }
        let (figures, failed) = made(bench, &published, e)?;
        let line = Line {
            of: name,
            what: what.to_owned(),
            figures,
            failed,
            ..Line::default()
        };
        kept.add(line.clone())?;
        Ok(line)
    };
    let base: Figures = of(&e, "nominal")?.figures;
    let nominal = Score::compute(&published, &base);
    // The joint draws come first, because they give most information for their time.
    let (mut scores, mut lost) = (Vec::new(), 0);
    for draw in 0..draws {
        let factors = drawn(&all, &e, draw)?;
        let line = of(&moved(&e, &all, &factors), &format!("draw {draw}"))?;
        match line.failed.is_empty() {
            true => scores.push(Score::compute(&published, &over(&base, &line.figures))),
            false => lost += 1,
        }
    }
    let mut singles = Vec::new();
    for (i, constant) in all.iter().enumerate() {
        if joint {
            break;
        }
        let (mut sides, mut why) = ([None, None], Vec::new());
        for (side, factor) in [(0, 1.0 - BY), (1, 1.0 + BY)] {
            let mut factors = vec![1.0; all.len()];
            factors[i] = factor;
            let changed = moved(&e, &all, &factors);
            if let Some(no) = impossible(&changed) {
                why.push(no);
                continue;
            }
            let line = of(&changed, &format!("{} x {factor}", constant.name))?;
            match line.failed.first() {
                Some(no) => why.push(no.clone()),
                None => {
                    let figures = over(&base, &line.figures);
                    sides[side] = Some(Score::compute(&published, &figures));
                }
            }
        }
        singles.push(Single {
            constant: constant.clone(),
            scores: sides,
            why,
        });
    }
    let guessed = |c: &&seekwell_stack::Constant| {
        let moves = c.name.ends_with("_ns") || c.name == "fixed_use_mib";
        matches!(c.origin, seekwell_stack::Origin::Estimate(_)) && !moves
    };
    Ok(Moved {
        constants: all.len(),
        singles,
        clouds: clouds(&nominal, &scores),
        nominal,
        draws: scores.len(),
        failed: lost,
        tests: published.len(),
        unmoved: CONSTANTS.iter().filter(guessed).map(|c| c.name).collect(),
    })
}

/// Returns the scores with their distributions.
fn clouds(nominal: &Score, scores: &[Score]) -> Vec<Cloud> {
    let cloud = |what: String, own: Option<f64>, of: &dyn Fn(&Score) -> Option<f64>, less: bool| {
        let values: Vec<f64> = scores.iter().filter_map(of).collect();
        let (nominal, spread) = (own?, Spread::from_values(&values)?);
        let overtuned = match less {
            true => nominal < spread.p10,
            false => nominal > spread.p90,
        };
        Some(Cloud {
            what,
            nominal,
            spread,
            overtuned,
        })
    };
    let whole = cloud("skill".to_owned(), nominal.skill, &|s| s.skill, false);
    let groups = nominal.groups.iter().map(|(g, own)| {
        let of = |s: &Score| s.groups.get(g).copied();
        cloud(format!("skill {g}"), Some(*own), &of, false)
    });
    let level = cloud("level".to_owned(), nominal.level, &|s| s.level, true);
    let near = cloud(
        "share within 35 %".to_owned(),
        nominal.level.map(|_| nominal.near),
        &|s| s.level.map(|_| s.near),
        false,
    );
    let mut all = vec![whole];
    all.extend(groups);
    all.extend([level, near]);
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_overtuned_above_nine_in_ten_of_its_cloud() {
        let of = |skill: f64| Score {
            skill: Some(skill),
            level: Some(1.0 - skill),
            ..Score::default()
        };
        let scores: Vec<Score> = (0..11).map(|i| of(f64::from(i) / 10.0)).collect();
        for (nominal, overtuned) in [(0.89, false), (0.91, true), (0.5, false), (-1.0, false)] {
            let clouds = clouds(&of(nominal), &scores);
            let said = |what: &str| clouds.iter().find(|c| c.what == what).expect("there");
            assert_eq!(said("skill").overtuned, overtuned, "{nominal}");
            assert_eq!(said("level").overtuned, overtuned, "{nominal}");
            let spread = said("skill").spread;
            assert!((spread.median - 0.5).abs() < 1e-12 && (spread.p90 - 0.9).abs() < 1e-12);
        }
        assert_eq!(Spread::from_values(&[]), None);
    }

    #[test]
    fn constants_are_found_move_what_they_touch_and_nothing_else() {
        let p = &crate::reproduce::PUBLICATIONS[0];
        let (e, published) = form(p).expect("a form of ours");
        let all = constants(&e);
        assert!(all.len() > 40, "{}", all.len());
        let names: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
        for name in [
            "hdd:hitachi-7k200 guard",
            "ssd:x25m-g2-160 t_prog",
            "Sandy Bridge + SSD cpu",
            "Penryn + HDD memory in use",
            "blogbench think",
        ] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        let pairs = published.iter().flat_map(|c| &c.pairs);
        assert_eq!(pairs.filter(|p| p.scored()).count(), 36);
        for (i, c) in all.iter().enumerate() {
            for factor in [1.0 - BY, 1.0 + BY] {
                let mut factors = vec![1.0; all.len()];
                factors[i] = factor;
                let changed = moved(&e, &all, &factors);
                assert!(!changed.cells.is_empty(), "{} touches nothing", c.name);
                for plan in &changed.cells {
                    let first = &plan.specs[0];
                    // The change must be the same for all schedulers.
                    assert!(plan.specs.iter().all(|s| s.device == first.device
                        && s.machine == first.machine
                        && s.workload == first.workload));
                }
            }
        }
        assert!(moved(&e, &all, &vec![1.0; all.len()]).cells.is_empty());
        let factors = drawn(&all, &e, 0).expect("a draw");
        assert_eq!(factors, drawn(&all, &e, 0).expect("the same draw"));
        assert!(factors.iter().all(|f| (0.75..=1.25).contains(f)));
    }
}
