//! Tests the warm-up of timed runs. The first block determines it for all blocks, or the experiment
//! sets it. Runs that never become steady are flagged.

use seekwell::{Cancel, Hooks, Progress, WorkloadSpec};
use seekwell_lab::analysis::{Analysis, Flag, analyse};
use seekwell_lab::conduct::{Conducted, How, Job, Measured, Memory, NoRun, Runner, conduct, plan};
use seekwell_lab::experiment::{Experiment, Primary};
use seekwell_lab::results::{
    MetricInfo, Outcome, Pace, PaceOf, Results, Run, RunKey, Value, WarmUp, settle,
};
use seekwell_workload::declared::declared;
use std::path::Path;

fn experiment(more: &str) -> Experiment {
    let text = format!(
        "devices = ['hdd:hitachi-7k200']\nschedulers = ['noop', 'cfq']\nworkloads = ['streams']\n\
         [experiment]\nname = 'x'\nrepeats = 6\n{more}"
    );
    Experiment::from_toml(&text, Path::new("/")).unwrap_or_else(|e| panic!("{e}"))
}

/// Makes runs of one minute whose rate follows a curve: the operations per second, by treatment,
/// block and second.
struct Curve(fn(usize, u32, usize) -> u64);

impl Runner for Curve {
    fn run(&self, job: &Job, _: &Cancel, _: &mut dyn FnMut(Progress)) -> Result<Measured, NoRun> {
        let level = |s| (self.0)(job.treatment, job.key.block, s);
        let seconds: Vec<(u64, u64)> = (0..60).map(|s| (level(s), level(s))).collect();
        let pace = Pace {
            of: PaceOf::Rate,
            seconds,
        };
        let (value, n) = pace.value(0).expect("a minute");
        let metric = MetricInfo {
            name: "streams".into(),
            unit: "MB/s".into(),
            higher_is_better: true,
            step: None,
        };
        Ok(Measured {
            values: vec![Value {
                metric: metric.into(),
                value,
                n,
            }],
            pace: Some(pace),
            ..Measured::default()
        })
    }
}

fn conduct_and_analyse(e: &Experiment, curve: Curve) -> (Conducted, Vec<Run>, Results, Analysis) {
    let mut store = Memory::default();
    let done = conduct(e, &curve, &mut store, &How::default()).expect("memory holds it");
    let results = done.results(e, store.runs.clone());
    let analysis = analyse(&results);
    (done, store.runs, results, analysis)
}

/// Returns noise that can be repeated: a few percent around 1,000.
fn noise(treatment: usize, block: u32, second: usize) -> u64 {
    let key = treatment as u64 * 7_919 + u64::from(block) * 104_729 + second as u64;
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    1_000 + mixed % 40
}

/// Starts slowly for ten seconds.
fn slow_start(treatment: usize, block: u32, second: usize) -> u64 {
    let level = noise(treatment, block, second);
    let ahead = 1 + 10 * treatment as u64;
    if second < 10 {
        level / 2
    } else {
        level + level * ahead / 100
    }
}

#[test]
fn slow_start_found_in_the_first_block_is_excluded_from_all_runs() {
    let e = experiment("stop = 'fixed'\n");
    let (_, raw, results, analysis) = conduct_and_analyse(&e, Curve(slow_start));
    let warm = results.cells[0].warm_up.clone().expect("timed");
    assert_eq!(
        (warm.seconds, warm.found, warm.not_reached),
        (10, true, false)
    );
    assert!(warm.moving.is_empty(), "{warm:?}");
    assert_eq!(results.runs.len(), 12);
    for run in &results.runs {
        assert!(run.pace.is_none(), "seconds are forgotten");
        let stored = raw.iter().find(|r| r.key == run.key).expect("there");
        let seconds = &stored.pace.as_ref().expect("stored with it").seconds[10..];
        let mean = seconds.iter().map(|s| s.0).sum::<u64>() as f64 / 50.0;
        assert_eq!(run.values[0].value, mean);
        assert_eq!(run.values[0].n, seconds.iter().map(|s| s.1).sum::<u64>());
        assert!(
            stored.values[0].value < 0.95 * mean,
            "what is stored is the run's own"
        );
    }
    // The lead is ten percent. With the start of the runs it would be eight percent.
    let times = analysis.cells[0].times(1, 0).expect("compared").0;
    assert!((1.085..1.115).contains(&times), "{times}");
    assert_eq!(analysis.cells[0].warm_up, Some(warm));
}

#[test]
fn warm_up_is_determined_by_the_first_block_only() {
    // From the second block on, the start takes half of the run.
    let e = experiment("stop = 'fixed'\n");
    let later = |t: usize, b: u32, s: usize| match b {
        0 => slow_start(t, b, s),
        _ if s < 30 => noise(t, b, s) / 2,
        _ => noise(t, b, s),
    };
    let (_, _, results, _) = conduct_and_analyse(&e, Curve(later));
    assert_eq!(
        results.cells[0].warm_up.as_ref().map(|w| w.seconds),
        Some(10)
    );
}

#[test]
fn interrupted_experiment_finds_the_same_warm_up() {
    let e = experiment("stop = 'width'\n");
    let (done, raw, whole, _) = conduct_and_analyse(&e, Curve(slow_start));
    for keep in [1, 2, 5] {
        let runs = raw[..keep.min(raw.len())].to_vec();
        let mut store = Memory { runs };
        let again = conduct(&e, &Curve(slow_start), &mut store, &How::default());
        let again = again.expect("memory holds it");
        assert_eq!(again.ended, done.ended);
        assert_eq!(again.results(&e, store.runs), whole, "after {keep} runs");
    }
    // An incomplete first block does not determine a warm-up.
    let mut half = Results {
        runs: vec![raw[0].clone()],
        ..whole.clone()
    };
    half.cells[0].warm_up = None;
    settle(&mut half);
    assert_eq!(half.cells[0].warm_up, None);
    assert_eq!(half.runs[0].values, raw[0].values);
}

#[test]
fn configured_warm_up_is_excluded_regardless_of_the_runs() {
    let e = experiment("stop = 'fixed'\nwarmup = '12500ms'\n");
    let (_, _, results, _) = conduct_and_analyse(&e, Curve(slow_start));
    let warm = results.cells[0].warm_up.clone().expect("timed");
    assert_eq!((warm.seconds, warm.found), (13, false));
    let e = experiment("stop = 'fixed'\nwarmup = '0s'\n");
    let (_, raw, results, _) = conduct_and_analyse(&e, Curve(slow_start));
    assert_eq!(
        results.cells[0].warm_up.as_ref().map(|w| w.seconds),
        Some(0)
    );
    let value = |runs: &[Run]| -> f64 { runs.iter().map(|r| r.values[0].value).sum() };
    let mut raw = raw;
    raw.sort_by_key(|r| r.key);
    assert_eq!(value(&results.runs), value(&raw));
}

#[test]
fn unsteady_runs_are_reported_with_the_verdict() {
    let falls = |t: usize, b: u32, s: usize| match t {
        0 => noise(t, b, s),
        _ => noise(t, b, s) * (120 - s as u64) / 120,
    };
    let e = experiment("stop = 'fixed'\nwarmup = '5s'\n");
    let (_, _, _, analysis) = conduct_and_analyse(&e, Curve(falls));
    let moving = analysis.cells[0].flags.iter().find_map(|f| match f {
        Flag::Moving { treatment, change } => Some((*treatment, *change)),
        _ => None,
    });
    let (who, change) = moving.expect("flagged");
    assert_eq!(who, 1, "only the one that falls");
    assert!((-0.30..-0.10).contains(&change), "{change}");
    // If all runs become slower until their end, half of each run is left out, and this is
    // reported.
    let all = |_: usize, b: u32, s: usize| noise(0, b, s) * (120 - s as u64) / 120;
    let (_, _, results, analysis) =
        conduct_and_analyse(&experiment("stop = 'fixed'\n"), Curve(all));
    let warm = results.cells[0].warm_up.clone().expect("timed");
    assert_eq!((warm.seconds, warm.not_reached), (30, true));
    let flags = &analysis.cells[0].flags;
    assert!(
        flags.contains(&Flag::NotReached { seconds: 30 }),
        "{flags:?}"
    );
    // Steady runs are not flagged.
    let (_, _, _, calm) = conduct_and_analyse(&experiment("stop = 'fixed'\n"), Curve(noise));
    let moves = |f: &Flag| matches!(f, Flag::Moving { .. } | Flag::NotReached { .. });
    assert!(!calm.cells[0].flags.iter().any(moves));
}

#[test]
fn short_runs_have_no_detectable_warm_up() {
    let short = Pace {
        of: PaceOf::Rate,
        seconds: (0..19).map(|s| (s, 1)).collect(),
    };
    let warm = WarmUp::from_first_block(None, &[&short]);
    assert_eq!((warm.seconds, warm.not_reached), (0, false));
    // If a run ended within the warm-up of the other runs, it counts as failed.
    let mut results = Results {
        cells: vec![Default::default()],
        ..Results::default()
    };
    results.about.method.warmup_s = Some(30.0);
    results.cells[0].treatments = vec![0];
    results.runs = vec![Run {
        values: vec![Value::default()],
        pace: Some(short),
        ..Run::default()
    }];
    settle(&mut results);
    assert!(
        matches!(&results.runs[0].outcome, Outcome::Failed(why) if why.contains("30 s")),
        "{:?}",
        results.runs[0]
    );
}

#[test]
fn warm_up_as_long_as_the_run_is_rejected() {
    let text = "devices = ['hdd:hitachi-7k200']\nschedulers = ['noop']\n\
                workloads = ['interactive:seconds=10s', 'fs-mark']\n\
                [experiment]\nwarmup = '10s'\n";
    let e = Experiment::from_toml(text, Path::new("/")).expect_err("nothing is left");
    assert!(e.to_string().contains("leaves nothing of this time"), "{e}");
    let with = |warmup: &str, metric: &str| {
        let text = format!(
            "devices = ['hdd:hitachi-7k200']\nschedulers = ['noop']\n[experiment]\n\
             warmup = '{warmup}'\n[[workload]]\nuse = 'interactive'\nseconds = ['10s', '60s']\n\
             metric = '{metric}'\n[[workload]]\nuse = 'fs-mark'\n"
        );
        let e = Experiment::from_toml(&text, Path::new("/")).unwrap_or_else(|e| panic!("{e}"));
        plan(&e).warm_up
    };
    let auto = with("auto", "read mean");
    assert_eq!(
        (auto.seconds, auto.timed.len(), auto.whole.len()),
        (None, 1, 0)
    );
    assert!(auto.timed[0].contains("1min"), "{auto:?}");
    let given = with("5s", "read mean");
    assert_eq!((given.seconds, given.timed.len()), (Some(5.0), 2));
    let p99 = with("auto", "read p99");
    assert_eq!((p99.timed.len(), p99.whole.len()), (0, 2));
}

/// For every timed workload, the values per second must add up to its metric.
#[test]
fn values_per_second_add_up_to_the_metric_of_every_timed_workload() {
    for (words, params) in [
        ("interactive", "seconds=6s,size=8m,bulk=16m,think=2ms"),
        ("fsync-latency", "seconds=6s,bulk=16m,think=1ms"),
        ("streams", "seconds=6s,size=16m"),
        ("streams", "seconds=6s,size=16m,kind=write,direct=yes"),
        ("random-read", "seconds=6s,size=16m"),
        ("innodb", "seconds=6s,size=16m,threads=4"),
    ] {
        let text = format!("{words}:{params}");
        let spec = seekwell::spec(&text, "ssd:sata3-256-2011", "none-6.18").expect("a run");
        let spec = seekwell::checked(&spec).expect("checked");
        let record = seekwell::run(&spec, Hooks::default()).expect("it runs");
        let timed = declared(words).and_then(|d| d.timed).expect("timed");
        let mut tried = 0;
        for (metric, _) in timed.metrics {
            let primary = Primary::Metric((*metric).to_owned());
            let Some(value) = primary.value(&record, &spec.workload) else {
                continue;
            };
            let paced = primary.paced(&spec.workload).expect("paced");
            let pace = paced.read(&record).expect("seconds");
            assert!((5..=7).contains(&pace.seconds.len()), "{text} {metric}");
            let (from_seconds, n) = pace.value(0).expect("a value");
            let apart = (from_seconds / value.value - 1.0).abs();
            assert!(
                apart < 0.1,
                "{text} {metric}: {from_seconds} {}",
                value.value
            );
            assert!(n > 0);
            tried += 1;
        }
        assert!(tried > 0, "{text}");
        for other in ["block io rate", "block throughput", "block io mean"] {
            let primary = Primary::parse(other, &spec.workload).expect("known");
            let value = primary.value(&record, &spec.workload).expect("bios").value;
            let pace = primary.paced(&spec.workload).and_then(|p| p.read(&record));
            let (from_seconds, _) = pace.expect("seconds").value(0).expect("a value");
            let apart = (from_seconds / value - 1.0).abs();
            assert!(apart < 0.25, "{text} {other}: {from_seconds} {value}");
        }
    }
    // A workload without a fixed duration has no values per second.
    let given = WorkloadSpec::Script {
        name: "fs-mark".into(),
        params: Default::default(),
    };
    assert_eq!(Primary::Own.paced(&given), None);
}

#[test]
fn busy_host_is_reported() {
    let run = |treatment: usize, block: u32, others: Option<f64>| Run {
        key: RunKey {
            cell: 0,
            block,
            treatment,
        },
        values: vec![Value {
            value: 10.0 + f64::from(block),
            ..Value::default()
        }],
        others,
        ..Run::default()
    };
    let mut results = Results {
        cells: vec![Default::default()],
        treatments: vec![Default::default(); 2],
        runs: vec![
            run(0, 0, Some(0.02)),
            run(1, 0, Some(0.35)),
            run(0, 1, Some(0.1)),
            run(1, 1, Some(0.101)),
            run(0, 2, None),
            run(1, 2, Some(0.0)),
        ],
        ..Results::default()
    };
    results.cells[0].treatments = vec![0, 1];
    settle(&mut results);
    assert!(results.runs.iter().all(|r| r.others.is_none()));
    let flags = analyse(&results).cells.remove(0).flags;
    let busy: Vec<&Flag> = flags
        .iter()
        .filter(|f| matches!(f, Flag::HostBusy { .. }))
        .collect();
    let (treatment, runs, most) = (1, 2, 0.35);
    assert_eq!(
        busy,
        [&Flag::HostBusy {
            treatment,
            runs,
            most
        }]
    );
}
