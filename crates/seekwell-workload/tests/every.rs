//! Properties of every workload of the registry.

use seekwell_core::{Errno, Instant, Nanos};
use seekwell_workload::declared::declared;
use seekwell_workload::testing::{Fault, Trial, World};
use seekwell_workload::{Kind, Needs, ParamError, Plan, Workload};

/// The built-in workloads, without those that other tests of this binary register.
fn workloads() -> Vec<&'static Workload> {
    let others = ["append-log", "from-outside"];
    let all = seekwell_workload::workloads().iter().copied();
    all.filter(|w| !others.contains(&w.name)).collect()
}

/// Parameters that make a run short; the rest are defaults.
const SHORT: &[(&str, &[(&str, &str)])] = &[
    ("fs-mark", &[("files", "5"), ("workers", "2")]),
    (
        "blogbench",
        &[("seconds", "1100ms"), ("readers", "3"), ("think", "5ms")],
    ),
    (
        "compilebench",
        &[
            ("trees", "2"),
            ("reads", "1"),
            ("sources", "50"),
            ("objects", "20"),
            ("dirs", "10"),
        ],
    ),
    ("iozone", &[("size", "1m"), ("test", "read")]),
    ("tiobench", &[("size", "256k"), ("random", "20")]),
    ("postmark", &[("files", "20"), ("transactions", "50")]),
    (
        "pgbench",
        &[("scale", "1"), ("transactions", "100"), ("segments", "1")],
    ),
    (
        "innodb",
        &[("size", "1m"), ("seconds", "50ms"), ("threads", "2")],
    ),
    ("sqlite", &[("transactions", "20")]),
    ("androbench-io", &[("size", "1m"), ("write_size", "1m")]),
    ("mysql-scan", &[("size", "8m")]),
    ("hdparm", &[("seconds", "20ms"), ("settle", "0")]),
    ("seeker", &[("seconds", "10ms")]),
    (
        "random-read",
        &[("size", "1m"), ("seconds", "10ms"), ("depth", "4")],
    ),
    ("web", &[("requests", "100")]),
    ("compile", &[("files", "10"), ("headers", "10")]),
    (
        "app-start",
        &[
            ("starts", "2"),
            ("pause", "1ms"),
            ("libraries", "5"),
            ("small", "5"),
            ("bulk", "1m"),
        ],
    ),
    (
        "interactive",
        &[("seconds", "200ms"), ("size", "1m"), ("bulk", "1m")],
    ),
    ("streams", &[("size", "1m"), ("seconds", "10ms")]),
    ("fsync-latency", &[("seconds", "200ms"), ("bulk", "1m")]),
];

fn short(name: &str) -> &'static [(&'static str, &'static str)] {
    let found = SHORT.iter().find(|s| s.0 == name);
    found
        .unwrap_or_else(|| panic!("{name} needs short parameters here"))
        .1
}

#[test]
fn every_workload_is_documented_with_valid_defaults_and_profiles() {
    assert!(workloads().len() >= 19);
    for w in workloads() {
        for (what, text) in [
            ("summary", w.summary),
            ("metric", w.metric),
            ("stresses", w.stresses),
            ("source", w.source),
        ] {
            assert!(text.len() > 10, "{}: {what}", w.name);
        }
        let plan = Plan::new(w.name, &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(plan.params().len(), w.params.len());
        if w.needs == Needs::Directory {
            assert!(plan.space() > 0, "{}", w.name);
        }
        for p in w.params {
            assert!(!p.summary.is_empty(), "{} {}", w.name, p.name);
        }
        for p in w.profiles {
            assert!(!p.summary.is_empty());
            let name = format!("{}:profile={}", w.name, p.name);
            let plan = Plan::new(&name, &[]).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(plan.params()["profile"], p.name);
        }
    }
}

#[test]
fn every_run_gives_a_metric_and_marks_and_leaves_no_file() {
    for w in workloads() {
        let t = Trial::run(w.name, short(w.name));
        assert!(t.metric() > 0.0, "{}", w.name);
        assert_eq!(t.left_over(), 0, "{}", w.name);
        let marks = t.world.measures().marks();
        let named = |n: &str| marks.iter().filter(|m| m.name == n).count();
        assert_eq!(named("clock start"), 1, "{}", w.name);
        assert_eq!(named("clock stop"), 1, "{}", w.name);
        assert!(t.world.measures().operations() > 0, "{}", w.name);
    }
}

#[test]
fn equal_seeds_give_equal_calls() {
    for w in workloads() {
        let log = || Trial::run(w.name, short(w.name)).world.log().to_vec();
        assert!(log() == log(), "{}", w.name);
    }
}

/// Runs a workload in a faulty world, checks that no files are left, and returns the error's text.
fn broken(name: &str, change: impl FnOnce(&mut World)) -> Option<String> {
    let t = Trial::with(name, short(name), change);
    assert_eq!(t.left_over(), 0, "{name}: files are left");
    t.outcome.err().map(|e| e.to_string())
}

#[test]
fn full_disk_is_reported_and_cleaned_up() {
    for w in workloads().iter().filter(|w| w.needs == Needs::Directory) {
        let e = broken(w.name, |world| world.capacity = 10_000);
        let e = e.unwrap_or_else(|| panic!("{}: it fitted", w.name));
        assert!(
            e.contains("no space left on device (ENOSPC)"),
            "{}: {e}",
            w.name
        );
        assert!(
            e.contains("seekwell-") || e.contains("log"),
            "{}: which file? {e}",
            w.name
        );
    }
}

#[test]
fn failing_call_ends_a_run_with_its_error() {
    for call in [
        "write",
        "read",
        "fsync",
        "fdatasync",
        "open",
        "append",
        "rename",
    ] {
        for w in workloads() {
            for after in [0, 3, 17] {
                let fault = Fault {
                    call,
                    after,
                    errno: Errno::EIO,
                };
                let e = broken(w.name, |world| world.fault = Some(fault));
                if let Some(e) = e {
                    assert!(e.contains("EIO"), "{} {call}: {e}", w.name);
                }
            }
        }
    }
}

#[test]
fn stopped_run_keeps_results_and_removes_its_files() {
    for w in workloads() {
        for us in [0, 1, 50, 700, 3_000, 12_345] {
            let stop = Instant::START + Nanos::from_us(us);
            let e = broken(w.name, |world| world.stop_at = Some(stop));
            if let Some(e) = e {
                assert!(e.contains("stopped (ECANCELED)"), "{} at {us}: {e}", w.name);
            }
        }
    }
    let stop = Instant::START + Nanos::from_ms(4);
    let t = Trial::with("fs-mark", &[("files", "1000")], |w| w.stop_at = Some(stop));
    assert!(t.outcome.as_ref().is_err_and(|e| e.stopped()));
    assert!(t.metric() > 0.0, "the rate so far");
}

#[test]
fn existing_directory_is_not_touched() {
    let plan = Plan::new("fs-mark", &[]).expect("fits");
    let mut given = World::new(1);
    given.make_dir(&plan.directory());
    let t = Trial::run_plan(plan, |w| *w = given);
    let e = t.outcome.clone().expect_err("in the way").to_string();
    assert!(e.contains("if an earlier run left it"), "{e}");
    assert_eq!(t.world.left_over(), 1);
}

/// Returns the invalid values of a kind, and its smallest valid value.
fn bad_and_least(kind: Kind) -> (Vec<String>, String) {
    let mut bad: Vec<String> = ["", "-1", "x", "1x", "1.2.3", "nan", "99999999999999999999"]
        .map(str::to_owned)
        .to_vec();
    let around = |lo: u64, hi: u64, unit: &str| {
        let mut out = Vec::new();
        out.extend(lo.checked_sub(1).map(|n| format!("{n}{unit}")));
        out.extend(hi.checked_add(1).map(|n| format!("{n}{unit}")));
        (out, format!("{lo}{unit}"))
    };
    let (more, least) = match kind {
        Kind::Count(lo, hi) | Kind::Bytes(lo, hi) => around(lo, hi, ""),
        Kind::Time(lo, hi) => {
            // A time without a unit is ambiguous.
            bad.push("5".to_owned());
            around(lo, hi, "ns")
        }
        Kind::Ratio(lo, hi) => (
            vec![(lo - 1.0).to_string(), (hi + 1.0).to_string()],
            lo.to_string(),
        ),
        Kind::Flag => (vec!["maybe".into(), "2".into()], "no".into()),
        Kind::Choice(words) => (vec!["none of these".into()], words[0].into()),
    };
    bad.extend(more);
    (bad, least)
}

#[test]
fn out_of_range_values_are_rejected_with_name_and_range() {
    for w in workloads() {
        for p in w.params {
            for value in bad_and_least(p.kind).0 {
                let given = [(p.name.to_owned(), value.clone())];
                let e = Plan::new(w.name, &given).err();
                let Some(e) = e else {
                    panic!("{} {}={value} is accepted", w.name, p.name);
                };
                assert!(matches!(e, ParamError::Bad { .. }), "{e}");
                let text = e.to_string();
                for part in [w.name, p.name, &value, &p.kind.to_string()] {
                    assert!(text.contains(part), "{text}: no {part}");
                }
            }
        }
    }
}

#[test]
fn range_limits_are_accepted_or_rejected_with_a_reason() {
    for w in workloads() {
        let end = |p: &seekwell_workload::Param, high: bool| match p.kind {
            Kind::Count(lo, hi) | Kind::Bytes(lo, hi) => (if high { hi } else { lo }).to_string(),
            Kind::Time(lo, hi) => format!("{}ns", if high { hi } else { lo }),
            Kind::Ratio(lo, hi) => (if high { hi } else { lo }).to_string(),
            Kind::Flag => if high { "yes" } else { "no" }.to_owned(),
            Kind::Choice(words) => words[if high { words.len() - 1 } else { 0 }].to_owned(),
        };
        let mut sets: Vec<Vec<(String, String)>> = Vec::new();
        for high in [false, true] {
            let one = |p| vec![(p, high)];
            sets.extend(
                w.params
                    .iter()
                    .map(one)
                    .chain([w.params.iter().map(|p| (p, high)).collect()])
                    .map(|s| s.iter().map(|(p, h)| (p.name.into(), end(p, *h))).collect()),
            );
        }
        for given in sets {
            match Plan::new(w.name, &given) {
                // The space of a workload with files saturates instead of overflowing.
                Ok(plan) => assert!(plan.space() < u64::MAX || w.needs == Needs::Directory),
                Err(e) => {
                    assert!(matches!(e, ParamError::Clash { .. }), "{given:?}: {e}");
                    let says = |p: &&seekwell_workload::Param| e.to_string().contains(p.name);
                    assert!(w.params.iter().any(|p| says(&p)), "{e}: which?");
                }
            }
        }
    }
}

#[test]
fn every_workload_runs_with_minimum_parameters() {
    for w in workloads() {
        for p in w.params {
            let least = bad_and_least(p.kind).1;
            let given = [short(w.name), &[(p.name, least.as_str())]].concat();
            let own = given
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            let own: Vec<_> = own.collect();
            let Ok(plan) = Plan::new(w.name, &own) else {
                continue;
            };
            let t = Trial::run_plan(plan, |_| {});
            assert_eq!(t.outcome, Ok(()), "{} {}={least}", w.name, p.name);
            assert_eq!(t.left_over(), 0, "{} {}={least}", w.name, p.name);
            let metrics = t.world.measures().metrics();
            assert!(!metrics.is_empty(), "{} {}={least}", w.name, p.name);
            assert!(metrics.iter().all(|m| m.value.is_finite()), "{metrics:?}");
        }
    }
}

/// Runs that together have all metrics and operations of a workload.
const SIDES: &[(&str, &[(&str, &str)])] = &[
    (
        "iozone",
        &[("size", "1m"), ("test", "write"), ("flush", "yes")],
    ),
    ("mysql-scan", &[("size", "8m"), ("order", "sequential")]),
    ("mysql-scan", &[("size", "8m"), ("engine", "myisam")]),
    (
        "pgbench",
        &[
            ("scale", "1"),
            ("transactions", "0"),
            ("seconds", "5s"),
            ("checkpoint_timeout", "1s"),
            ("segments", "1"),
            ("shared_buffers", "128k"),
        ],
    ),
    (
        "innodb",
        &[
            ("size", "16m"),
            ("seconds", "2s"),
            ("think", "0"),
            ("record", "64k"),
            ("innodb_buffer_pool_size", "4m"),
            ("innodb_redo_log_capacity", "8m"),
            ("innodb_io_capacity", "100"),
            ("innodb_io_capacity_max", "100"),
        ],
    ),
    (
        "sqlite",
        &[
            ("transactions", "20"),
            ("journal", "wal"),
            ("checkpoint", "5"),
        ],
    ),
    (
        "streams",
        &[("size", "1m"), ("seconds", "10ms"), ("kind", "write")],
    ),
    (
        "postmark",
        &[("files", "20"), ("transactions", "50"), ("sync", "10")],
    ),
    ("sqlite", &[("transactions", "20"), ("services", "1ms")]),
    (
        "androbench-io",
        &[("size", "1m"), ("write_size", "1m"), ("services", "1ms")],
    ),
    (
        "compilebench",
        &[
            ("trees", "2"),
            ("sources", "50"),
            ("objects", "20"),
            ("sync", "yes"),
        ],
    ),
];

/// The declared results of workloads agree with the actual ones: name, unit, direction, and which
/// metric comes first.
#[test]
fn declared_results_equal_the_actual_ones() {
    let mut bad = Vec::new();
    for w in workloads() {
        let d = declared(w.name).unwrap_or_else(|| panic!("{} is not declared", w.name));
        let (mut metrics, mut kinds) = (Vec::new(), Vec::new());
        let sides = SIDES.iter().filter(|s| s.0 == w.name).map(|s| s.1);
        for given in sides.chain([short(w.name)]) {
            let t = Trial::run(w.name, given);
            let of_run = t.world.measures();
            let plan: Vec<(String, String)> =
                given.iter().map(|g| (g.0.into(), g.1.into())).collect();
            let params = Plan::new(w.name, &plan).expect("it ran").params();
            let first = d.named_by.map_or("all", |p| &params[p]);
            let first = if first == "all" {
                d.metrics[0].name
            } else {
                first
            };
            if of_run.metrics()[0].name != first {
                bad.push(format!("{}: first is {}", w.name, of_run.metrics()[0].name));
            }
            for m in of_run.metrics() {
                let same = |g: &&seekwell_workload::declared::Given| {
                    (g.name, g.unit, g.higher_is_better) == (&*m.name, &*m.unit, m.higher_is_better)
                };
                match d.metrics.iter().find(same) {
                    Some(g) => {
                        metrics.push(g.name);
                        let steps = g.step.map_or(0.0, |s| m.value / s);
                        if (steps - steps.round()).abs() > 1e-6 {
                            bad.push(format!("{}: {} is {}", w.name, m.name, m.value));
                        }
                    }
                    None => bad.push(format!("{}: metric {m:?}", w.name)),
                }
            }
            let mut record = seekwell_core::result::Record::default();
            of_run.clone().fill(&mut record);
            for o in record.operations {
                match d.operations.iter().find(|k| **k == o.kind) {
                    Some(k) => kinds.push(*k),
                    None => bad.push(format!("{}: operation {}", w.name, o.kind)),
                }
            }
        }
        let missing = d
            .metrics
            .iter()
            .map(|m| m.name)
            .filter(|m| !metrics.contains(m));
        bad.extend(missing.map(|m| format!("{}: no metric {m}", w.name)));
        let missing = d.operations.iter().filter(|k| !kinds.contains(k));
        bad.extend(missing.map(|k| format!("{}: no operation {k}", w.name)));
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
