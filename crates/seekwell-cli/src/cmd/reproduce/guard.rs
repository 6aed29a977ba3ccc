//! `seekwell reproduce NAME --guard GUARD`: measures the robustness of the scores.

use super::page::prose;
use super::section::{Section, page, show};
use super::show::{group, percent, signed};
use super::{bad, made};
use crate::cells::cancelling;
use crate::cli::Reproduce;
use crate::fail::Failure;
use crate::lab::Collect;
use crate::out::{Out, note};
use crate::progress::Progress;
use seekwell::Cancel;
use seekwell_evidence::reproduce::Publication;
use seekwell_evidence::reproduce::guard::ablations::{Ablated, ablated};
use seekwell_evidence::reproduce::guard::constants::{
    BY, DRAWS, LEFT_OUT, Moved, SMALLER, Single, constants_moved, form,
};
use seekwell_evidence::reproduce::guard::order::{Orders, ordered};
use seekwell_evidence::reproduce::guard::permuted::{Permuted, permuted};
use seekwell_evidence::reproduce::guard::{Bench, Guard, GuardError, Kept, Score};
use seekwell_host::stop::signal;
use seekwell_report::table::Align;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Measured with an optimised build on a machine with two cores that also had other work.
const COST: &str = "Results of the robustness checks are stored (`make guards`) and used while the \
    runs stay the same. Repeating them takes 20 minutes of processor time for the fifty draws, 15 \
    for the single constants, two for the order of the columns and one for the causes.";

/// The result of a robustness check, as text and as JSON.
struct Given {
    sections: Vec<Section>,
    json: Value,
}

/// Returns the file in which a robustness check stores its results.
fn path(a: &Reproduce, of: &str, guard: Guard) -> PathBuf {
    a.results.join(format!("{of}-guard-{}.jsonl", guard.name()))
}

/// Runs robustness checks and prints their results.
pub fn run(
    a: &Reproduce,
    name: &str,
    publications: &[&'static Publication],
    quiet: bool,
) -> Result<(), Failure> {
    let guards = Guard::find(name).map_err(Failure::Input)?;
    let mut all = Vec::new();
    for &guard in &guards {
        match guard {
            // All publications are in one table, because there are few causes.
            Guard::Ablations => {
                let names: Vec<&str> = publications.iter().map(|p| p.name).collect();
                let file = path(a, &a.name, guard);
                let found = within(a, &file, quiet, |bench, kept| ablated(&names, bench, kept))?;
                if !found.demos.is_empty() || !found.tests.is_empty() {
                    all.push(taken(&found));
                }
            }
            _ => {
                for p in publications {
                    all.extend(run_check(a, guard, p, quiet)?);
                }
            }
        }
    }
    let mut out = Out::open(a.output.output.as_deref())?;
    if all.is_empty() && !a.json {
        let names: Vec<&str> = publications.iter().map(|p| p.name).collect();
        out.prose(&format!(
            "{}: the check {name} does not apply: {}.",
            names.join(", "),
            "it has no significant published difference, or no cause is claimed"
        ))?;
        return out.done();
    }
    if a.json {
        let all: Vec<&Value> = all.iter().map(|g| &g.json).collect();
        out.json(&json!({ "schema": 1, "command": "reproduce", "guards": all }))?;
        return out.done();
    }
    if a.markdown {
        let draws = a.draws.map_or(String::new(), |n| format!(" --draws {n}"));
        let joint = if a.joint { " --joint" } else { "" };
        let made = format!(
            "Made by `seekwell reproduce {} --guard {name}{draws}{joint} --markdown -o \
             docs/reproduction-guards.md`.",
            a.name
        );
        out.text("# Robustness of the reproductions' scores\n\n")?;
        out.text(&prose(&made))?;
        if guards.len() == Guard::ALL.len() {
            out.text(&prose(COST))?;
        }
    }
    for s in all.iter().flat_map(|g| &g.sections) {
        match a.markdown {
            true => page(&mut out, s)?,
            false => show(&mut out, s)?,
        }
    }
    out.done()
}

/// Runs one robustness check for one publication. Returns `None` if it does not apply.
fn run_check(
    a: &Reproduce,
    guard: Guard,
    p: &Publication,
    quiet: bool,
) -> Result<Option<Given>, Failure> {
    let file = path(a, p.name, guard);
    let scored = |p: &Publication| {
        let all = p.published();
        all.iter().flat_map(|c| &c.pairs).any(|p| p.scored())
    };
    match guard {
        Guard::Constants if scored(p) => {
            let draws = a.draws.unwrap_or(DRAWS);
            let runs = form(p).map_err(bad)?.0;
            let runs: usize = runs.cells.iter().map(|c| c.specs.len()).sum();
            let moved = within(a, &file, quiet, |bench, kept| {
                constants_moved(p, bench, kept, draws, a.joint)
            })?;
            Ok(Some(constants(p, &moved, runs)))
        }
        Guard::Permuted if scored(p) => {
            let (r, _) = made(a, p, true, quiet)?;
            Ok(Some(labels(p, &permuted(&r.cells))))
        }
        Guard::Order => {
            let found = within(a, &file, quiet, |bench, kept| ordered(p, bench, kept))?;
            Ok(found.map(|o| order(p, &o)))
        }
        _ => Ok(None),
    }
}

/// Runs a robustness check with its stored results and a progress bar.
fn within<T>(
    a: &Reproduce,
    file: &std::path::Path,
    quiet: bool,
    act: impl FnOnce(&Bench<'_>, &mut Kept) -> Result<T, GuardError>,
) -> Result<T, Failure> {
    note(quiet, &format!("results are stored in {}", file.display()));
    let mut kept = Kept::open(file).map_err(bad)?;
    let progress = Progress::new(quiet, "runs", 0, 1);
    let told = Collect::new(&progress, 1, 0);
    let cancel = Cancel::new();
    let bench = Bench {
        threads: a.threads.map(|n| n as usize),
        cancel: &cancel,
        told: &told,
    };
    match cancelling(&cancel, || act(&bench, &mut kept))? {
        Ok(found) => Ok(found),
        Err(why @ GuardError::Stopped) => match signal() {
            Some(signal) => Err(Failure::Interrupted {
                signal,
                what: why.to_string(),
            }),
            None => Err(bad(why)),
        },
        Err(why) => Err(bad(why)),
    }
}

fn two(x: Option<f64>) -> String {
    x.map_or("-".to_owned(), |x| format!("{x:.2}"))
}

fn scored(what: &str) -> String {
    match what.strip_prefix("skill ") {
        Some(letter) => format!("skill {letter} {}", group(letter)),
        None => what.to_owned(),
    }
}

fn constants(p: &Publication, m: &Moved, runs: usize) -> Given {
    const CLOUD: &[(&str, Align)] = &[
        ("SCORE", Align::Left),
        ("NOMINAL", Align::Right),
        ("LEAST", Align::Right),
        ("10 %", Align::Right),
        ("MEDIAN", Align::Right),
        ("90 %", Align::Right),
        ("MOST", Align::Right),
        ("", Align::Left),
    ];
    const ALONE: &[(&str, Align)] = &[
        ("CONSTANT", Align::Left),
        ("NOMINAL", Align::Right),
        ("SKILL -25 %", Align::Right),
        ("+25 %", Align::Right),
        ("LEVEL -25 %", Align::Right),
        ("+25 %", Align::Right),
        ("FROM", Align::Left),
    ];
    let by = percent(BY);
    let rows = m.clouds.iter().map(|c| {
        let plus = c.what.starts_with("skill");
        let of = |x: f64| if plus { signed(Some(x)) } else { two(Some(x)) };
        vec![
            scored(&c.what),
            of(c.nominal),
            of(c.spread.min),
            of(c.spread.p10),
            of(c.spread.median),
            of(c.spread.p90),
            of(c.spread.max),
            if c.overtuned { "OVERTUNED" } else { "" }.to_owned(),
        ]
    });
    let smaller: Vec<String> = SMALLER
        .iter()
        .map(|(script, key, value)| format!("{script} {key}={value}"))
        .collect();
    let failed = match m.failed {
        0 => String::new(),
        n => format!(" {n} more draws failed and are not counted."),
    };
    let overtuned = m.clouds.iter().filter(|c| c.overtuned).count();
    let said = match overtuned {
        0 => "No nominal score is better than nine in ten of its draws.".to_owned(),
        n => format!(
            "{n} of {} nominal scores are better than nine in ten of their draws (OVERTUNED): they \
             depend on constants that are not known with this precision. The median of the draws \
             is a better estimate.",
            m.clouds.len()
        ),
    };
    let cloud = Section {
        title: format!("{}: all estimated constants together, +-{by}", p.name),
        before: vec![format!(
            "The check draws {} estimated or fitted constants, each uniformly within {by} of its \
             value, {} times.{failed} Each draw repeats the tests of the quick form with a scored \
             difference: {} tests, {runs} runs per draw. These tests are smaller than in the quick \
             form ({}). NOMINAL uses the same smaller tests and therefore differs from the score \
             of the quick form. For example, two trees of compilebench stay in memory, which \
             changes the level. LEVEL refers to these tests. Group {} is left out. The blind model \
             has skill 0 in every draw.",
            m.constants,
            m.draws,
            m.tests,
            smaller.join(", "),
            LEFT_OUT.join(", "),
        )],
        head: CLOUD,
        rows: rows.collect(),
        spare: &["LEAST", "MOST"],
        after: vec![
            said,
            format!(
                "Processor times of system calls are not changed one by one, because they change \
                 with the speed of the machine's cores. These estimated constants of the kernel's \
                 model are not changed: {}.",
                m.unmoved.join(", ")
            ),
        ],
    };
    let rows = m.singles.iter().map(|s| {
        let of = |f: &dyn Fn(&Score) -> String, side: usize| {
            s.scores[side].as_ref().map_or("-".to_owned(), f)
        };
        let skill = |s: &Score| signed(s.skill);
        let level = |s: &Score| s.level.map_or("-".to_owned(), |x| format!("{x:.3}"));
        let from = match s.why.first() {
            Some(why) => format!("{} ({why})", s.constant.source),
            None => s.constant.source.clone(),
        };
        vec![
            s.constant.name.clone(),
            s.constant.nominal.clone(),
            of(&skill, 0),
            of(&skill, 1),
            of(&level, 0),
            of(&level, 1),
            from,
        ]
    });
    let alone = Section {
        title: format!("{}: one estimated constant at a time, +-{by}", p.name),
        before: vec![format!(
            "Nominal: skill {}, level {}.",
            signed(m.nominal.skill),
            m.nominal
                .level
                .map_or("-".to_owned(), |x| format!("{x:.3}"))
        )],
        head: ALONE,
        rows: rows.collect(),
        spare: &["NOMINAL"],
        after: most(m).into_iter().collect(),
    };
    let mut sections = vec![cloud, alone];
    if m.singles.is_empty() {
        sections.pop();
    }
    Given {
        json: json!({ "guard": "constants", "publication": p.name, "found": m }),
        sections,
    }
}

/// Number of constants in the text: those that change the skill most.
const NAMED: usize = 4;

/// Describes the constants to which the skill is most sensitive, if one is changed alone.
fn most(m: &Moved) -> Option<String> {
    let nominal = m.nominal.skill?;
    let by = |s: &Single| {
        let skills = s.scores.iter().flatten().filter_map(|s| s.skill);
        skills.map(|x| (x - nominal).abs()).fold(0.0, f64::max)
    };
    let mut all: Vec<(f64, &Single)> = m.singles.iter().map(|s| (by(s), s)).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (first, rest) = all.split_at_checked(NAMED)?;
    let first: Vec<String> = first
        .iter()
        .map(|(by, s)| format!("{} ({by:.2})", s.constant.name))
        .collect();
    let least = rest.first().map_or(0.0, |r| r.0);
    Some(format!(
        "The skill depends most on these constants (with the change of the skill): {}. None of the \
         other {} constants changes it by more than {least:.2}.",
        first.join(", "),
        rest.len()
    ))
}

fn labels(p: &Publication, all: &[Permuted]) -> Given {
    const HEAD: &[(&str, Align)] = &[
        ("DIFFERENCES", Align::Left),
        ("OURS", Align::Right),
        ("BLIND", Align::Right),
        ("LEAST", Align::Right),
        ("10 %", Align::Right),
        ("MEDIAN", Align::Right),
        ("90 %", Align::Right),
        ("MOST", Align::Right),
        ("AS GOOD", Align::Right),
    ];
    let rows = all.iter().map(|s| {
        let of = |x: f64| signed(Some(x));
        let what = match s.group.as_str() {
            "" => "all".to_owned(),
            letter => format!("{letter} {}", group(letter)),
        };
        vec![
            what,
            of(s.ours),
            "0".to_owned(),
            of(s.spread.min),
            of(s.spread.p10),
            of(s.spread.median),
            of(s.spread.p90),
            of(s.spread.max),
            percent(s.as_good),
        ]
    });
    let draws = all.first().map_or(0, |s| s.spread.draws);
    let section = Section {
        spare: &["LEAST", "MOST", "BLIND", "10 %"],
        title: format!("{}: schedulers' labels permuted within each test", p.name),
        before: vec![format!(
            "The table shows the skill of our results with permuted scheduler labels, in {draws} \
             draws. The skill should be 0 or less, because the results then belong to the wrong \
             schedulers."
        )],
        head: HEAD,
        rows: rows.collect(),
        after: Vec::new(),
    };
    Given {
        json: json!({ "guard": "permuted", "publication": p.name, "found": all }),
        sections: vec![section],
    }
}

fn taken(all: &Ablated) -> Given {
    const DEMOS: &[(&str, Align)] = &[
        ("GROUP", Align::Left),
        ("CLAIMED CAUSE", Align::Left),
        ("DEMO", Align::Left),
        ("CHECKED", Align::Left),
        ("HOLDS", Align::Left),
    ];
    const TESTS: &[(&str, Align)] = &[
        ("GROUP", Align::Left),
        ("TEST", Align::Left),
        ("PAIR", Align::Left),
        ("PUBLISHED", Align::Right),
        ("OURS", Align::Right),
        ("WITHOUT", Align::Right),
        ("REMOVED CAUSE", Align::Left),
        ("THE DIFFERENCE", Align::Left),
    ];
    let mut demos = Vec::new();
    for d in &all.demos {
        for (i, (check, holds)) in d.checks.iter().enumerate() {
            let first = |text: &str| {
                if i == 0 {
                    text.to_owned()
                } else {
                    String::new()
                }
            };
            demos.push(vec![
                first(d.group),
                first(d.why),
                first(&d.demo),
                check.clone(),
                if *holds { "yes" } else { "NO" }.to_owned(),
            ]);
        }
    }
    let tests = all.tests.iter().map(|t| {
        let with = match t.with {
            "" => String::new(),
            with => format!(" ({with})"),
        };
        vec![
            t.group.to_owned(),
            format!("{}{with}", t.test),
            t.pair.clone(),
            two(Some(t.published)),
            two(t.on),
            two(t.off),
            t.without.to_owned(),
            t.left().word().to_owned(),
        ]
    });
    let by_demo = Section {
        title: "Demos of the claimed causes".to_owned(),
        before: vec![
            "The table has one row per check. A demo must show the difference with the cause, and \
             no difference without the cause."
                .to_owned(),
        ],
        spare: &["DEMO"],
        head: DEMOS,
        rows: demos,
        after: Vec::new(),
    };
    let by_test = Section {
        title: "Claimed causes removed from the published tests".to_owned(),
        before: vec![
            "The table compares the quick form of each test with the cause and without it. The \
             values are the result of the first scheduler divided by that of the second. Removed: \
             the remaining difference is below 5 %, or below a quarter of the difference with the \
             cause."
                .to_owned(),
        ],
        spare: &[],
        head: TESTS,
        rows: tests.collect(),
        after: Vec::new(),
    };
    Given {
        json: json!({ "guard": "ablations", "found": all }),
        sections: vec![by_demo, by_test],
    }
}

fn order(p: &Publication, o: &Orders) -> Given {
    const HEAD: &[(&str, Align)] = &[
        ("SYSTEM", Align::Left),
        ("TEST", Align::Left),
        ("PAIR", Align::Left),
        ("PUBLISHED", Align::Right),
        ("APART", Align::Right),
        ("IN ORDER", Align::Right),
        ("NEW/USED", Align::Right),
        ("NEW/WORN", Align::Right),
        ("STATE ALONE", Align::Left),
    ];
    let rows = o.pairs.iter().map(|x| {
        vec![
            x.system.clone(),
            x.test.clone(),
            x.pair.clone(),
            two(Some(x.published)),
            two(x.apart),
            two(x.in_order),
            two(x.states[0]),
            two(x.states[1]),
            if x.state_could() { "could" } else { "no" }.to_owned(),
        ]
    });
    let written: Vec<String> = o
        .written_gb
        .iter()
        .map(|(s, gb)| format!("{s} {gb:.0} GB"))
        .collect();
    let could = o.pairs.iter().filter(|x| x.state_could()).count();
    let section = Section {
        spare: &["NEW/USED"],
        title: format!(
            "{}: tests in the order of the columns on one ageing drive",
            p.name
        ),
        before: vec![format!(
            "The table shows all published differences with p < 0.05 on systems with a flash \
             drive. APART: each run uses its own new drive, as our other results do. IN ORDER: all \
             tests run under the first scheduler of the published table, then under the second, \
             then under the third, on one drive that is never trimmed (written: {}). NEW/USED, \
             NEW/WORN: the first scheduler on a new drive, divided by the same scheduler on a used \
             drive, and on a worn drive, which was written at random for a long time. STATE ALONE: \
             \"could\" if one of these ratios has the direction and at least half of the size of \
             the published difference.",
            written.join(", ")
        )],
        head: HEAD,
        rows: rows.collect(),
        after: vec![format!(
            "The drive's state alone could cause {could} of {} published differences. The order of \
             passes and the state of the drives were not published.",
            o.pairs.len()
        )],
    };
    Given {
        json: json!({ "guard": "order", "publication": p.name, "found": o }),
        sections: vec![section],
    }
}
