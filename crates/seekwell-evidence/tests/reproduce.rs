//! Tests the published figures in the project. Also tests the scores of a perfect model, of a null
//! model, and of a model with reversed results.

use seekwell::Cancel;
use seekwell_evidence::reproduce::full::carried;
use seekwell_evidence::reproduce::guard::constants::{DRAWS, constants_moved};
use seekwell_evidence::reproduce::guard::permuted::permuted;
use seekwell_evidence::reproduce::guard::{Bench, Kept};
use seekwell_evidence::reproduce::{
    ALL, Doing, Evidence, Judgement, Kind, PUBLICATIONS, Pair, Publication, Published,
    Reproduction, Skill, find, targets,
};
use seekwell_lab::results::{Cell as RunCell, MetricInfo, Results, Run, RunKey, Treatment, Value};

/// Makes results in which the function `of` gives the value for each published figure.
fn results(p: &Publication, of: impl Fn(&Published, usize) -> f64) -> Results {
    let mut all = Results::default();
    for published in p.published().iter().filter(|c| !c.derived()) {
        let named = |c: &RunCell| c.workload == published.run && c.machine == published.system;
        let cell = all.cells.iter().position(named).unwrap_or_else(|| {
            all.cells.push(RunCell {
                workload: published.run.clone(),
                machine: published.system.clone(),
                ..RunCell::default()
            });
            all.cells.len() - 1
        });
        for (i, side) in published.sides.iter().enumerate() {
            let label = |t: &Treatment| t.label == side.scheduler;
            let treatment = all.treatments.iter().position(label).unwrap_or_else(|| {
                all.treatments.push(Treatment {
                    label: side.scheduler.clone(),
                    ..Treatment::default()
                });
                all.treatments.len() - 1
            });
            let key = RunKey {
                cell,
                block: 0,
                treatment,
            };
            let value = Value {
                metric: MetricInfo {
                    name: published.figures[0].clone(),
                    ..MetricInfo::default()
                }
                .into(),
                value: of(published, i),
                n: 1,
            };
            match all.runs.iter_mut().find(|r| r.key == key) {
                Some(run) => run.values.push(value),
                None => all.runs.push(Run {
                    key,
                    values: vec![value],
                    ..Run::default()
                }),
            }
        }
    }
    all
}

fn phoronix() -> &'static Publication {
    &PUBLICATIONS[0]
}

fn whole(r: &Reproduction) -> &Skill {
    r.skill.last().expect("pairs that hold")
}

#[test]
fn published_figures_are_complete_and_judged_as_in_the_reference() {
    let all = phoronix().published();
    assert_eq!(all.len(), 60 - 1);
    assert_eq!(all.iter().map(|c| c.sides.len()).sum::<usize>(), 176);
    let pairs: Vec<&Pair> = all.iter().flat_map(|c| &c.pairs).collect();
    let count = |f: &dyn Fn(&Pair) -> bool| pairs.iter().filter(|p| f(p)).count();
    assert_eq!(pairs.len(), 175);
    assert_eq!(count(&|p| p.differs()), 59);
    assert_eq!(count(&|p| p.holds()), 54);
    assert_eq!(count(&|p| p.p_all.is_some_and(|p| p < 0.05)), 18);
    assert_eq!(count(&|p| p.scored()), 38);
    let level = |kind: Kind, fitted: bool| {
        let own = all.iter().filter(|c| (c.kind, c.fitted) == (kind, fitted));
        own.map(|c| c.sides.len()).sum::<usize>()
    };
    assert_eq!(level(Kind::Io, false), 90);
    assert_eq!(level(Kind::Io, true), 45);
    assert_eq!((level(Kind::Cpu, true), level(Kind::Cpu, false)), (18, 23));
    let sizes = PUBLICATIONS.iter().map(|p| p.published().len());
    assert_eq!(sizes.collect::<Vec<_>>(), [59, 4, 4, 2, 2]);
}

#[test]
fn experiments_cover_every_published_figure() {
    for p in PUBLICATIONS {
        for quick in [false, true] {
            let e = p.experiment(quick).expect("a file of ours");
            let labels: Vec<&str> = e.treatments.iter().map(|t| t.label.as_str()).collect();
            let mut used = std::collections::BTreeSet::new();
            for c in p.published() {
                let on = |m: &str| m == c.system || m.starts_with(&format!("{}, ", c.system));
                let found: Vec<usize> = (0..e.cells.len())
                    .filter(|i| e.cells[*i].cell.workload == c.run)
                    .filter(|i| on(&e.cells[*i].cell.machine))
                    .collect();
                assert_eq!(found.len(), 1, "{} on {}: {quick}", c.run, c.system);
                used.extend(found);
                for s in &c.sides {
                    assert!(labels.contains(&s.scheduler.as_str()), "{}", s.scheduler);
                }
            }
            // The page lacks PostMark on one laptop, but the experiment runs it.
            let missing = usize::from(p.name == "phoronix-2012");
            assert_eq!(used.len() + missing, e.cells.len(), "{}", p.name);
        }
    }
}

#[test]
fn skill_is_1_for_perfect_0_for_null_and_negative_for_reversed_models() {
    let p = phoronix();
    let exact = p.reproduction(&results(p, |c, i| c.sides[i].value), false);
    let all = whole(&exact);
    assert_eq!((all.pairs, all.compared, all.signs), (38, 38, 38));
    assert!((all.ours.expect("figures") - 1.0).abs() < 1e-12);
    assert!(all.as_good.expect("draws") < 0.01 && all.permuted.expect("figures") < 0.0);
    assert_eq!(
        (exact.agreement.pairs, exact.agreement.compared),
        (116, 116)
    );
    assert!(
        exact
            .level
            .iter()
            .all(|l| l.median == Some(0.0) && l.near == 1.0)
    );

    let blind = p.reproduction(&results(p, |c, _| c.sides[0].value), false);
    let all = whole(&blind);
    assert!(all.ours.expect("figures").abs() < 1e-12 && all.signs == 0);
    assert_eq!(
        all.permuted, all.ours,
        "labels of equal figures mean nothing"
    );
    assert_eq!(blind.agreement.right, 116);

    let upside = p.reproduction(&results(p, |c, i| 1.0 / c.sides[i].value), false);
    assert!((whole(&upside).ours.expect("figures") + 1.0).abs() < 1e-9);
    let weights: f64 = exact.skill[..exact.skill.len() - 1]
        .iter()
        .map(|s| s.weight)
        .sum();
    assert!((weights - 1.0).abs() < 1e-12);
}

#[test]
fn insignificant_difference_is_not_attributed_to_the_scheduler() {
    let p = phoronix();
    let r = p.reproduction(&results(p, |c, i| c.sides[i].value), false);
    assert_eq!(r.judgements.len(), 59);
    for j in &r.judgements {
        // Each judgement contains all kinds of evidence.
        let kinds = [
            "significance: ",
            "mechanism: ",
            "ablation: ",
            "order of runs: ",
            "predicted ",
        ];
        assert_eq!(j.evidence.len(), kinds.len());
        assert!(
            j.evidence
                .iter()
                .zip(kinds)
                .all(|(e, kind)| e.starts_with(kind)),
            "{j:?}"
        );
        assert!(j.pair.holds() || j.doing != Doing::Yes, "{j:?}");
        let group = r.cells[j.cell].published.group.as_str();
        match group {
            "E" => assert_eq!(j.doing, Doing::No, "{j:?}"),
            // The full form shows at least half of each pair that contains CFQ, and the cause
            // concerns CFQ.
            "A" => {
                let sides = &r.cells[j.cell].published.sides;
                let cfq = [j.pair.one, j.pair.other].map(|i| sides[i].scheduler == "cfq");
                let doing = match cfq.contains(&true) {
                    true => Doing::Yes,
                    false => Doing::Unknown,
                };
                assert_eq!(j.doing, doing, "{j:?}");
            }
            // The full form does not show these differences. So evidence from other runs is not
            // used.
            "F" => assert_eq!(j.doing, Doing::Unknown, "{j:?}"),
            "" => assert_ne!(j.doing, Doing::Yes, "no mechanism: {j:?}"),
            _ => {}
        }
    }
    // For nine schedulers on a phone, no difference is significant. If bfq's difference is
    // predicted, its cause is known.
    let moto = &PUBLICATIONS[1];
    let r = moto.reproduction(&results(moto, |c, i| c.sides[i].value), false);
    assert!(r.skill.is_empty());
    assert!(r.judgements.iter().all(|j| j.doing == Doing::Unknown));
    assert_eq!(r.judgements.len(), 6);
    let r = moto.reproduction(&results(moto, |_, _| 40.0), false);
    assert!(r.judgements.iter().all(|j| j.doing == Doing::No));
}

#[test]
fn quick_figures_are_scaled_and_missing_ones_are_none() {
    let scan = find("mysql-2008").expect("there")[0];
    let some = results(scan, |c, i| c.sides[i].value);
    let (full, quick) = (
        scan.reproduction(&some, false),
        scan.reproduction(&some, true),
    );
    assert_eq!(
        (full.cells[0].ratio(0), full.cells[1].ratio(0)),
        (Some(1.0), Some(1.0))
    );
    assert_eq!(
        (quick.cells[0].ratio(0), quick.cells[1].ratio(0)),
        (Some(10.0), Some(1.0))
    );
    let none = scan.reproduction(&Results::default(), false);
    assert!(none.cells.iter().flat_map(|c| &c.ours).all(Option::is_none));
    assert!(
        none.judgements
            .iter()
            .all(|j| j.evidence.iter().any(|e| e == "not predicted yet"))
    );
}

#[test]
fn unknown_publication_gets_a_suggestion() {
    assert_eq!(find(ALL).map(|a| a.len()), Ok(5));
    let wrong = find("phoronix-2011").expect_err("there is none");
    assert!(wrong.contains("phoronix-2012"), "{wrong}");
}

#[test]
fn permuting_labels_removes_skill_only_if_figures_depend_on_the_scheduler() {
    let p = phoronix();
    let exact = p.reproduction(&results(p, |c, i| c.sides[i].value), false);
    let all = permuted(&exact.cells);
    let whole = all.last().expect("all groups");
    assert!(whole.group.is_empty() && (whole.ours - 1.0).abs() < 1e-12);
    assert!(
        whole.spread.median < 0.0 && whole.spread.p90 < 0.5,
        "{whole:?}"
    );
    assert!(whole.as_good < 0.01 && whole.spread.draws == 2_000);
    // If the figures are equal for all schedulers, a permutation changes nothing.
    let blind = p.reproduction(&results(p, |c, _| c.sides[0].value), false);
    for s in permuted(&blind.cells) {
        assert!(
            s.ours.abs() < 1e-12 && (s.spread.max - s.spread.min).abs() < 1e-12,
            "{s:?}"
        );
    }
}

#[test]
fn published_figures_meet_the_targets_and_null_model_misses_them() {
    let all: Vec<Reproduction> = PUBLICATIONS
        .iter()
        .map(|p| p.reproduction(&results(p, |c, i| c.sides[i].value), false))
        .collect();
    let asked = targets(&all.iter().collect::<Vec<_>>());
    let names: Vec<&str> = asked.iter().map(|t| t.name).collect();
    let wanted = [
        "skill",
        "level",
        "near",
        "cpu",
        "agreement",
        "001",
        "003",
        "004",
    ];
    assert_eq!(names, wanted);
    for t in &asked {
        // The nine published figures of the phone scatter by more than 5 %, although nothing
        // differs.
        let noise = ["agreement", "001"].contains(&t.name);
        assert!(t.met || noise, "{t:?}");
    }
    let blind: Vec<Reproduction> = PUBLICATIONS
        .iter()
        .map(|p| p.reproduction(&results(p, |c, _| c.sides[0].value * 2.0), false))
        .collect();
    let asked = targets(&blind.iter().collect::<Vec<_>>());
    let met: Vec<&str> = asked.iter().filter(|t| t.met).map(|t| t.name).collect();
    assert_eq!(met, ["agreement"]);
    let near = asked.iter().find(|t| t.name == "near").expect("there");
    assert!(
        near.outside.len() > 20 && near.outside[0].contains("(3 of 3)"),
        "{near:?}"
    );
}

#[test]
fn committed_evidence_belongs_to_the_current_runs() {
    for p in PUBLICATIONS {
        let whole = Evidence::read(p).whole(p);
        assert!(
            whole,
            "{}: run --guard ablations and order, see published/guards",
            p.name
        );
        let full = carried(p).unwrap_or_else(|| panic!("{}: run the full form", p.name));
        for c in &full {
            assert!(c.ours.iter().all(Option::is_some), "{:?}", c.published);
        }
    }
    // The draws change every constant alone, and then fifty times all constants together.
    let text = include_str!("../published/guards/phoronix-2012-guard-constants.jsonl");
    let cancel = Cancel::new();
    cancel.set();
    let bench = Bench {
        threads: Some(1),
        cancel: &cancel,
        told: &(),
    };
    let found = constants_moved(phoronix(), &bench, &mut Kept::read(text), DRAWS, false);
    let found = found.expect("run --guard constants, see published/guards");
    assert_eq!((found.draws + found.failed, DRAWS), (50, 50));
    assert_eq!(found.singles.len(), found.constants);
}

#[test]
fn cause_is_claimed_only_if_the_prediction_shows_the_difference() {
    let p = phoronix();
    let of = |factor: f64| {
        let ours = |c: &Published, i: usize| {
            // The difference is scaled by this factor.
            let (first, own) = (c.sides[0].value, c.sides[i].value);
            first * libm::pow(own / first, factor)
        };
        p.reproduction(&results(p, ours), false)
    };
    let yes = |r: &Reproduction| {
        r.judgements
            .iter()
            .filter(|j| j.doing == Doing::Yes)
            .count()
    };
    let (exact, near, far, none) = (of(1.0), of(0.6), of(0.4), of(0.0));
    assert!(yes(&exact) > 2 && yes(&exact) == yes(&near));
    assert_eq!((yes(&far), yes(&none)), (0, 0));
    let group = |j: &&Judgement| j.pair.holds() && far.cells[j.cell].published.group == "A";
    for j in far.judgements.iter().filter(group) {
        assert_eq!(j.doing, Doing::Unknown);
        assert!(j.evidence[1].contains("its demo shows the effect"), "{j:?}");
    }
}

/// Words that name a scheduler or one of its settings.
const OF_SCHEDULERS: &[&str] = &[
    "scheduler",
    "schedulers",
    "elevator",
    "cfq",
    "noop",
    "deadline",
    "anticipatory",
    "bfq",
    "row",
    "sio",
    "zen",
    "vr",
    "fiops",
    "kyber",
    "adios",
    "slice_idle",
    "low_latency",
    "fifo_batch",
    "antic_expire",
];

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let apart = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    text.split(apart).map(str::to_ascii_lowercase)
}

#[test]
fn no_constant_of_a_reproduction_depends_on_a_scheduler() {
    for p in PUBLICATIONS {
        for quick in [false, true] {
            let file: toml::Table = p.text(quick).parse().expect("a file of ours");
            for (table, value) in &file {
                let rows: &[toml::Value] = value.as_array().map_or(&[], Vec::as_slice);
                match table.as_str() {
                    // This list names the compared schedulers. It must not contain settings.
                    "scheduler" => {
                        for row in rows {
                            let keys = row.as_table().expect("a table").keys();
                            let keys: Vec<&str> = keys.map(String::as_str).collect();
                            assert_eq!(keys, ["name", "use"], "{}", p.name);
                            let named = row["use"].as_str().expect("a name");
                            assert!(!named.contains([':', '=', ',']), "{named}: a tunable");
                        }
                    }
                    // Names of the comparison itself.
                    "experiment" => {}
                    _ => {
                        let text = toml::to_string(value).unwrap_or_else(|_| format!("{rows:?}"));
                        let found = words(&text).find(|w| OF_SCHEDULERS.contains(&w.as_str()));
                        assert_eq!(found, None, "{}: [{table}]", p.name);
                    }
                }
            }
            // After expansion, the runs of a cell differ only in the scheduler and its label.
            let e = p.experiment(quick).expect("a file of ours");
            for c in &e.cells {
                let first = &c.specs[0];
                for s in &c.specs {
                    let mut s = s.clone();
                    assert!(s.scheduler.tunables.is_empty(), "{:?}", s.scheduler);
                    s.scheduler.clone_from(&first.scheduler);
                    s.label.clone_from(&first.label);
                    assert_eq!(s.hash(), first.hash(), "{}: {}", p.name, c.cell.workload);
                }
            }
        }
        // A factor of the quick form belongs to a test and not to a scheduler, because each test
        // has one line.
        for t in p.published() {
            assert!(t.sides.len() > 1 && t.quick_factor > 0.0, "{}", t.workload);
        }
    }
}

#[test]
fn no_preset_or_machine_of_a_reproduction_names_a_scheduler() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seen = 0;
    for dir in ["seekwell-device/presets", "seekwell-sim/machines"] {
        for file in std::fs::read_dir(root.join(dir)).expect("a folder of presets") {
            let path = file.expect("an entry").path();
            // The host that backs a guest's disk has a scheduler of its own.
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            if !name.ends_with(".toml") || name.starts_with("virtual") || name.starts_with("raid") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a file of ours");
            let table: toml::Table = text.parse().expect("a file of ours");
            for part in ["params", "options"] {
                for (key, value) in table
                    .get(part)
                    .and_then(|t| t.as_table())
                    .into_iter()
                    .flatten()
                {
                    seen += 1;
                    let value = value.get("value").unwrap_or(value).to_string();
                    let said = format!("{key} {value}");
                    let found = words(&said).find(|w| OF_SCHEDULERS.contains(&w.as_str()));
                    assert_eq!(found, None, "{name}: {key}");
                }
            }
        }
    }
    assert!(seen > 300, "{seen} constants");
}
