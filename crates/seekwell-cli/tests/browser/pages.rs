//! Results for pages, and the pages that the binary makes from them.

use seekwell_core::result::{OpSecond, Operation, Record};
use seekwell_lab::analysis::analyse;
use seekwell_lab::detail::Gather;
use seekwell_lab::results::{
    About, Cell, Folder, MetricInfo, Outcome, RESULTS, Results, Run, RunKey, Treatment, Value,
};
use seekwell_report::page::{self, Closer, Facts};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Names of the schedulers. The last name would be harmful if it were not escaped.
pub const NAMES: [&str; 4] = [
    "noop",
    "deadline",
    "cfq",
    "<img src=x onerror=window.evil=1>",
];
/// Number of tests of each device in which the schedulers do not differ.
pub const NO_DIFFERENCE: usize = 1;
const FAILED: usize = 2;

/// Returns results for two devices. They contain four kinds of tests: with a winner, without a
/// difference, with a scheduler that failed, and a sweep of four points. The first three kinds
/// occur `copies` times.
pub fn results(copies: usize) -> Results {
    let metric = |higher| MetricInfo {
        name: if higher { "transactions" } else { "fsync" }.to_owned(),
        unit: if higher { "1/s" } else { "ms" }.to_owned(),
        higher_is_better: higher,
        step: None,
    };
    let mut cells: Vec<Cell> = Vec::new();
    for copy in 0..copies {
        for device in ["hitachi-7k200", "x25m-\"g2\"-160"] {
            let mut add = |workload: &str, clients: Option<u32>, higher| {
                let end = if copy > 0 {
                    format!(" {copy}")
                } else {
                    String::new()
                };
                let at = clients.map(|c| format!(":clients={c}")).unwrap_or_default();
                cells.push(Cell {
                    name: format!("{device} {workload}{at}{end}"),
                    device: device.to_owned(),
                    workload: format!("{workload}{at}{end}"),
                    substrate: "sim".to_owned(),
                    axes: clients
                        .map(|c| ("workload.clients".to_owned(), c.to_string()))
                        .into_iter()
                        .collect(),
                    primary: metric(higher),
                    treatments: (0..NAMES.len()).collect(),
                    ..Cell::default()
                });
            };
            add("fsync-latency", None, false);
            add("hdparm", None, true);
            add("fs-mark", None, true);
            if copy == 0 {
                for n in [1, 2, 4, 8] {
                    add("pgbench", Some(n), true);
                }
            }
        }
    }
    Results {
        about: About {
            name: "three questions & one answer".to_owned(),
            paired: true,
            source: "experiment".to_owned(),
            ..About::default()
        },
        treatments: NAMES
            .map(|n| Treatment {
                label: n.to_owned(),
                ..Treatment::default()
            })
            .to_vec(),
        runs: runs(&cells),
        cells,
        summaries: Vec::new(),
    }
}

fn runs(cells: &[Cell]) -> Vec<Run> {
    let mut runs = Vec::new();
    for (c, cell) in cells.iter().enumerate() {
        let higher = cell.primary.higher_is_better;
        for block in 0..10u32 {
            for t in 0..NAMES.len() {
                let scatter = 1.0 + 0.004 * f64::from((block * 7 + t as u32 * 5 + c as u32) % 11);
                let loud = !cell.workload.starts_with("hdparm");
                let effect = if loud { [1.0, 1.3, 4.2, 1.31][t] } else { 1.0 };
                let failed = cell.workload.starts_with("fs-mark") && t == FAILED && c % 2 == 1;
                let value = Value {
                    metric: cell.primary.clone().into(),
                    value: 37.0 * scatter * if higher { effect } else { 1.0 / effect },
                    n: 1000,
                };
                runs.push(Run {
                    key: RunKey {
                        cell: c,
                        block,
                        treatment: t,
                    },
                    place: (t as u32 + block) % NAMES.len() as u32,
                    outcome: match failed {
                        true => Outcome::Failed("no space left on device (ENOSPC)".to_owned()),
                        false => Outcome::Done,
                    },
                    values: if failed { Vec::new() } else { vec![value] },
                    ..Run::default()
                });
            }
        }
    }
    runs
}

/// A new directory for a test.
pub fn dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory");
    dir
}

/// Runs the binary, which must succeed, and returns its output.
pub fn seekwell(args: &[&str]) -> String {
    let o = Command::new(env!("CARGO_BIN_EXE_seekwell"))
        .args(args)
        .output()
        .expect("the binary runs");
    assert!(o.status.success(), "{args:?}: {o:?}");
    String::from_utf8(o.stdout).expect("text")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in plain letters")
}

/// Writes the page of a results folder.
pub fn page_of(folder: &Path, html: &Path) {
    assert!(folder.join(RESULTS).is_file());
    seekwell(&["report", text(folder), "-q", "-o", text(html)]);
}

/// Writes the page of some results, and returns its path.
pub fn page_from(name: &str, results: &Results) -> PathBuf {
    let dir = dir(name);
    let folder = dir.join("results");
    Folder::store(&folder, results).expect("it is stored");
    let html = dir.join("page.html");
    page_of(&folder, &html);
    html
}

/// Runs a real experiment once, and returns the paths of its page and folder. It has short runs on
/// a disk and on an SSD, with series, percentiles and a replay.
pub fn real_experiment() -> &'static (PathBuf, PathBuf) {
    static MADE: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    MADE.get_or_init(|| {
        let dir = dir("real");
        let file = dir.join("real.toml");
        let toml = "devices = [\"hdd:hitachi-7k200\", \"ssd:x25m-g2-160\"]\n\
             schedulers = [\"noop\", \"deadline\", \"cfq\"]\n\
             workloads = [\"streams:size=16m,seconds=4s\", \"pgbench:profile=s3700-small,clients=4,seconds=8s\", \
             \"interactive:size=128m,bulk=256m,seconds=6s\"]\n\
             [experiment]\nname = \"real\"\nrepeats = 3\n\
             description = \"Which scheduler for a disk and a drive?\"\n\
             [[workload]]\nuse = \"random-read:seconds=2s\"\ntasks = [1, 2, 4]\n";
        std::fs::write(&file, toml).expect("written");
        let folder = dir.join("results");
        seekwell(&["compare", text(&file), "--results", text(&folder), "-q"]);
        let html = dir.join("page.html");
        page_of(&folder, &html);
        (html, folder)
    })
}

/// Imports a publication, which has means but no single runs.
pub fn imported_publication() -> PathBuf {
    let dir = dir("published");
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../seekwell-lab/tests/imported/published/phoronix-linux-3.4.csv"
    );
    let folder = dir.join("results");
    seekwell(&["import", file, "-q", "-o", text(&folder)]);
    let html = dir.join("page.html");
    page_of(&folder, &html);
    html
}

/// Writes a page of ten tests under five schedulers, with twenty runs of an hour each. Their noise
/// compresses as badly as that of real runs.
pub fn hour_long_experiment() -> PathBuf {
    let mut results = results(5);
    results.cells.truncate(10);
    results.treatments.truncate(0);
    let labels = ["noop", "deadline", "cfq", "mq-deadline", "bfq"];
    for label in labels {
        results.treatments.push(Treatment {
            label: label.to_owned(),
            ..Treatment::default()
        });
    }
    results.runs.clear();
    let mut state = 1u64;
    let mut noise = move |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n
    };
    let mut gather = Gather::default();
    for (c, cell) in results.cells.iter_mut().enumerate() {
        cell.treatments = (0..5).collect();
        for block in 0..20 {
            for treatment in 0..5 {
                let key = RunKey {
                    cell: c,
                    block,
                    treatment,
                };
                let mut record = Record {
                    duration_ns: 3_600_000_000_000,
                    requests: 1,
                    ..Record::default()
                };
                let mut o = Operation {
                    kind: "transaction".to_owned(),
                    ..Operation::default()
                };
                for second in 0..3_600 {
                    let slow = if second % 300 < 40 { 3 } else { 1 };
                    let ops = 900 / slow + noise(120);
                    let longest = 1_000_000 * slow * (20 + noise(50));
                    o.seconds.push(OpSecond {
                        ops,
                        bytes: 0,
                        latency_sum_ns: ops * 500_000 * slow + noise(9_000_000),
                        latency_max_ns: longest,
                        latency_square_us2: ops * 400_000 * slow + noise(9_000_000),
                    });
                }
                for _ in 0..500 {
                    let scale = 10 + noise(18);
                    o.latency.record(100_000 + noise(1 << scale));
                }
                record.operations.push(o);
                gather.record(key, &record);
                results.runs.push(Run {
                    key,
                    values: vec![Value {
                        metric: cell.primary.clone().into(),
                        value: 30.0 + noise(1_000_000) as f64 / 1e5 + treatment as f64,
                        n: 1_000,
                    }],
                    ..Run::default()
                });
            }
        }
    }
    results.runs.sort_by_key(|r| r.key);
    let details = gather.done(&results);
    let closer = Closer {
        details: &details,
        ..Closer::default()
    };
    let page = page::page(&results, &analyse(&results), &Facts::default(), &closer);
    let html = dir("hour").join("page.html");
    std::fs::write(&html, page.expect("a page")).expect("written");
    html
}
