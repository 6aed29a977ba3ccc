//! Creates, fills, kills, resumes, completes, reads and damages results folders.

mod columns;
mod completed;
mod damaged;
mod detail;
mod export;
mod round_trip;

use seekwell::RunSpec;
use seekwell_core::Instant;
use seekwell_core::result::{MarkAt, Metric, OpSecond, Operation, Record, Starved};
use seekwell_lab::experiment::{CellPlan, Experiment};
use seekwell_lab::results::{
    About, Cell, Ended, Folder, MetricInfo, Outcome, Results, Run, RunKey, Treatment, Value,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Names that every format must handle.
const AWKWARD: &str = "a,b|c <d> \"e\" 'f' \u{202e}gnp\nh\\ & 100 %";

/// Makes an experiment with this many cells and two schedulers per cell.
fn experiment(cells: usize) -> Experiment {
    let treatment = |name: &str| Treatment {
        label: format!("{name}:x=1"),
        scheduler: name.to_owned(),
        version: "4.0".to_owned(),
        tunables: [("x".to_owned(), "1".to_owned())].into(),
    };
    let cell = |i: usize| CellPlan {
        cell: Cell {
            name: match i {
                0 => AWKWARD.to_owned(),
                i => format!("cell {i}"),
            },
            device: "hdd:hitachi-7k200".to_owned(),
            workload: format!("hdparm {i}"),
            substrate: "sim".to_owned(),
            axes: [("clients".to_owned(), i.to_string())].into(),
            primary: MetricInfo {
                name: "rate".to_owned(),
                unit: "MB/s".to_owned(),
                higher_is_better: true,
                step: None,
            },
            treatments: vec![0, 1],
            ..Cell::default()
        },
        deciding: Default::default(),
        specs: vec![spec("noop"), spec("cfq")],
    };
    Experiment {
        about: About {
            name: format!("tried <{cells}>"),
            source: "experiment".to_owned(),
            paired: true,
            ..About::default()
        },
        cells: (0..cells).map(cell).collect(),
        treatments: vec![treatment("noop"), treatment("cfq")],
        text: "# as written\n".to_owned(),
        design: Default::default(),
    }
}

fn spec(scheduler: &str) -> RunSpec {
    seekwell::spec("hdparm", "hdd:hitachi-7k200", scheduler).expect("a run")
}

/// Makes a run of the experiment. Its values depend only on the key.
fn run(key: RunKey) -> Run {
    let odd = 1 + key.cell as u64 * 7 + u64::from(key.block) * 3 + key.treatment as u64;
    let metric = |name: &str, better| MetricInfo {
        name: name.to_owned(),
        unit: "MB/s".to_owned(),
        higher_is_better: better,
        step: better.then_some(0.1),
    };
    let value = |name: &str, better, value| Value {
        metric: metric(name, better).into(),
        value,
        n: odd,
    };
    let failed = key.block % 5 == 4 && key.treatment == 1;
    Run {
        key,
        place: key.treatment as u32,
        seed: u64::MAX - u64::from(key.block),
        spec_hash: "ab".repeat(32),
        outcome: match (failed, key.block % 3) {
            (true, _) => Outcome::Failed("out of \"space\"\n".to_owned()),
            (false, 2) if key.treatment == 1 => Outcome::Censored("limit".to_owned()),
            (false, 2) => Outcome::Early("disk full".to_owned()),
            _ => Outcome::Done,
        },
        values: if failed {
            Vec::new()
        } else {
            vec![
                value("rate", true, 100.0 / odd as f64),
                value("p99, <x>", false, odd as f64 / 7.0),
            ]
        },
        starved: match key.block {
            1 => vec![Starved {
                tasks: "reader".to_owned(),
                starved: 5,
                of: 8,
                did: (6, 7),
                others_did: (1136, u64::MAX),
            }],
            _ => Vec::new(),
        },
        began_unix_ns: None,
        duration_ns: 1_000_000 * odd,
        others: None,
        wbt_lat_usec: None,
        pace: None,
    }
}

fn record(key: RunKey) -> Record {
    let mut r = Record {
        duration_ns: 5_500_000_000,
        metric: Some(Metric::default()),
        marks: vec![MarkAt {
            at_ns: 1,
            name: AWKWARD.to_owned(),
            task: "main".to_owned(),
        }],
        ..Record::default()
    };
    let mut o = Operation {
        kind: "write, a file".to_owned(),
        bytes: 7 << 20,
        seconds: vec![OpSecond::default(); 6],
        began_ns: 1_000,
        ended_ns: 5_400_000_000,
        ..Operation::default()
    };
    for i in 0..200u64 {
        let at = 27_000_000 * i;
        let ns = 10_000 + i * i * (1 + u64::from(key.block) + key.treatment as u64);
        let (from, to) = (Instant::at_ns(at), Instant::at_ns(at + ns));
        r.count(i % 3 == 0, 4096, from, to, i % 50 != 0);
        o.latency.record(ns);
        if i % 200 < 90 {
            o.seconds[(at / 1_000_000_000) as usize].count(ns, 4096);
        }
    }
    r.operations = vec![o];
    r
}

fn keys(cells: usize, blocks: u32) -> Vec<RunKey> {
    let mut all = Vec::new();
    for cell in 0..cells {
        for block in 0..blocks {
            all.extend([0, 1].map(|treatment| RunKey {
                cell,
                block,
                treatment,
            }));
        }
    }
    all
}

fn add(folder: &mut Folder, key: RunKey) {
    let run = run(key);
    let record = record(key);
    let failed = matches!(run.outcome, Outcome::Failed(_));
    let ended = Ended {
        run: &run,
        spec: &spec("noop"),
        record: (!failed).then_some(&record),
    };
    folder.add(&ended).expect("stored");
}

fn results(e: &Experiment, keys: &[RunKey]) -> Results {
    Results {
        about: e.about.clone(),
        cells: e.cells.iter().map(|c| c.cell.clone()).collect(),
        treatments: e.treatments.clone(),
        runs: keys.iter().map(|k| run(*k)).collect(),
        summaries: Vec::new(),
    }
}

/// Files whose bytes depend only on the runs.
const SAME: [&str; 7] = [
    "runs.parquet",
    "series.parquet",
    "operations.parquet",
    "records.parquet",
    "histograms.hlog",
    "experiment.json",
    "results.json",
];

fn bytes(folder: &Path) -> BTreeMap<&'static str, Vec<u8>> {
    let read = |n: &&'static str| (*n, std::fs::read(folder.join(n)).expect("a file"));
    SAME.iter().map(read).collect()
}
