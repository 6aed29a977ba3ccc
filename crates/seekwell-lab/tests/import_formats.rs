//! Files of other programs are imported as results. Broken, hostile and mutated files give errors
//! with messages.

use seekwell_lab::analysis::analyse;
use seekwell_lab::import::{Input, NameFrom, Options, import};
use seekwell_lab::results::{Outcome, Results};
use seekwell_lab::stats::{Verdict, welch_log};
use std::path::{Path, PathBuf};

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imported")
}

/// Reads files from the test folder.
fn read_with(names: &[&str], options: &Options) -> Result<Results, String> {
    let read = |n: &&str| {
        let bytes = std::fs::read(folder().join(n)).expect("a sample");
        Input::of_bytes(n, bytes).expect("text")
    };
    let inputs: Vec<Input> = names.iter().map(read).collect();
    import(&inputs, options).map_err(|e| e.to_string())
}

pub fn read(names: &[&str]) -> Results {
    read_with(names, &Options::default()).expect("imported")
}

pub fn of_text(text: &str) -> Result<Results, String> {
    let input = Input::of_bytes("x", text.as_bytes().to_vec()).map_err(|e| e.to_string())?;
    import(&[input], &Options::default()).map_err(|e| e.to_string())
}

/// Returns the values of a metric for the treatment with this label, in the order of the runs.
fn values(r: &Results, cell: usize, label: &str, metric: &str) -> Vec<f64> {
    let of = r
        .treatments
        .iter()
        .position(|t| t.label == label)
        .expect(label);
    let runs = r
        .runs
        .iter()
        .filter(|x| x.key.cell == cell && x.key.treatment == of);
    runs.filter_map(|x| x.value(metric)).collect()
}

pub fn labels(r: &Results) -> Vec<&str> {
    r.treatments.iter().map(|t| t.label.as_str()).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

// Formats, one after the other.

#[test]
fn composite_xml_gives_runs_by_machine_and_scheduler() {
    let r = read(&["pts/composite.xml"]);
    assert_eq!(r.about.source, "pts-xml");
    assert_eq!(r.about.name, "Schedulers of a laptop");
    assert_eq!(
        r.about.description,
        "Invented figures & names, to see that they are read."
    );
    assert_eq!(labels(&r), ["mq-deadline", "bfq"]);
    let cell = &r.cells[0];
    assert_eq!(cell.workload, "FS-Mark 3.3: Test: 1000 Files, 1MB Size");
    assert_eq!(
        (cell.machine.as_str(), cell.device.as_str()),
        ("Laptop", "160GB INTEL SSDSA2M160")
    );
    assert_eq!(
        values(&r, 0, "mq-deadline", "Files/s"),
        [100.1, 99.8, 101.3]
    );
    // A value that is not a number makes a failed run, which is reported. The other runs count.
    assert!(!r.cells[1].primary.higher_is_better);
    assert_eq!(values(&r, 1, "bfq", "Seconds"), [52.39, 52.45]);
    let failed = r
        .runs
        .iter()
        .find(|x| matches!(x.outcome, Outcome::Failed(_)));
    assert!(failed.expect("a failed run").values.is_empty());
    let notes = r.about.notes.join("\n");
    for said in [
        "order unknown",
        "not a number (nan)",
        "MB/s does not state a direction",
        "a series",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    let a = analyse(&r);
    let fs_mark = &a.cells[0].comparisons[0];
    let w = welch_log(&[90.5, 89.5, 90.3], &[100.1, 99.8, 101.3]).expect("runs");
    assert!(near(fs_mark.p.expect("p"), w.p.expect("p")), "{fs_mark:?}");
    assert_eq!(fs_mark.verdict, Verdict::Worse);
    // For a single mean without an error, only the ratio is reported.
    let foreign = a
        .cells
        .iter()
        .find(|c| c.workload == "Something Foreign")
        .expect("a cell");
    let c = &foreign.comparisons[0];
    assert_eq!(c.p, None);
    assert!(c.words.ends_with("ratio only"), "{}", c.words);
}

/// XML, both JSON forms and the raw CSV agree. The plain CSV contains no single runs.
#[test]
fn exports_of_one_result_agree() {
    let xml = read(&["pts/composite.xml"]);
    let same = |r: &Results, metric: &str| {
        for (label, runs) in [
            ("mq-deadline", [100.1, 99.8, 101.3]),
            ("bfq", [90.5, 89.5, 90.3]),
        ] {
            assert_eq!(values(r, 0, label, metric), runs, "{}", r.about.source);
        }
    };
    same(&xml, "Files/s");
    for name in ["pts/result.json", "pts/result-2019.json", "pts/raw.csv"] {
        let r = read(&[name]);
        same(&r, "Files/s");
        assert!(
            r.cells[0].workload.contains("1000 Files, 1MB Size"),
            "{name}"
        );
    }
    let plain = read(&["pts/result.csv"]);
    assert_eq!(plain.summaries.len(), 3);
    assert_eq!(plain.summaries[0].mean_step, Some(0.1));
    assert!(analyse(&plain).cells[0].comparisons[0].p.is_none());
    assert_eq!(
        read(&["pts/result.json"]).cells[0].device,
        "160GB INTEL SSDSA2M160"
    );
}

#[test]
fn fio_files_are_runs_with_schedulers_from_their_names() {
    let names: Vec<String> = ["none", "mq-deadline"]
        .iter()
        .flat_map(|s| (1..=3).map(move |n| format!("fio/{s}-{n}.json")))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let r = read(&names);
    assert_eq!(labels(&r), ["none", "mq-deadline"]);
    assert_eq!((r.cells.len(), r.runs.len()), (1, 6));
    assert_eq!(r.cells[0].workload, "fio rand4k");
    assert_eq!(r.cells[0].primary.name, "read IOPS");
    let run = &r.runs[0];
    for (metric, n) in [("read bandwidth", 400), ("read latency p99", 400)] {
        let v = run
            .values
            .iter()
            .find(|v| v.metric.name == metric)
            .expect(metric);
        assert_eq!(v.n, n);
    }
    let latency = run.value("read latency mean").expect("a latency");
    assert!((0.001..10.0).contains(&latency), "milliseconds: {latency}");
}

/// fio computes its percentiles from the same histogram bins.
#[test]
fn quantiles_from_fio_bins_equal_those_printed_by_fio() {
    let r = read(&["fio/bins.json"]);
    let run = &r.runs[0];
    // For randrw both directions count, and there are 212 reads.
    assert_eq!(r.cells[0].primary.name, "IOPS");
    for (metric, ns) in [
        ("read latency p50", 74_240.0),
        ("read latency p99", 166_912.0),
        ("read latency p99.9", 626_688.0),
    ] {
        assert!(near(run.value(metric).expect(metric), ns / 1e6), "{metric}");
    }
    let two = read(&["fio/two-jobs.json"]);
    assert_eq!(two.cells.len(), 2);
    assert!(two.runs[1].value("sync latency p99").is_some());
    let behind_text = read(&["fio/with-text.txt"]);
    assert_eq!(behind_text.runs.len(), 1);
}

/// Jobs with the same name form one run. Their rates are added, and their bins are merged.
#[test]
fn fio_jobs_with_one_name_are_merged_into_one_run() {
    let job = |iops: f64, bin: &str| {
        format!(
            "{{\"jobname\": \"r\", \"error\": 0, \"read\": {{\"total_ios\": 10, \"iops\": {iops}, \
             \"bw\": 100, \"runtime\": 1000, \"clat_ns\": {{\"mean\": 1000.0, \"N\": 10, \
             \"percentile\": {{\"50.000000\": 5}}, \"bins\": {{{bin}}}}}}}}}"
        )
    };
    let text = format!(
        "fio: a warning\n{{\"fio version\": \"fio-3.33\", \"jobs\": [{}, {}]}}\ntrailing text",
        job(10.0, "\"1000\": 10"),
        job(30.0, "\"3000\": 10")
    );
    let r = of_text(&text).expect("imported");
    let run = &r.runs[0];
    assert_eq!(run.value("read IOPS"), Some(40.0));
    assert_eq!(run.value("read latency p50"), Some(0.001));
    assert_eq!(run.value("read latency p99"), Some(0.003));
    let old = text
        .replace("clat_ns", "clat")
        .replace("\"fio-3.33\"", "\"fio-2.2\"");
    let old = of_text(&old).expect("imported");
    assert_eq!(
        old.runs[0].value("read latency p99"),
        Some(3.0),
        "microseconds before 3.0"
    );
}

#[test]
fn pgbench_reports_and_logs_agree() {
    let r = read(&[
        "pgbench/pgbench-1.txt",
        "pgbench/pgbench-2.txt",
        "pgbench/pgbench-3.txt",
    ]);
    assert_eq!((r.cells.len(), r.runs.len()), (1, 3));
    assert_eq!(
        r.cells[0].workload,
        "pgbench TPC-B (sort of), scale 1, 2 clients"
    );
    assert_eq!(r.runs[0].value("tps"), Some(1668.222739));
    assert_eq!(r.runs[0].value("latency mean"), Some(1.194));
    assert_eq!(r.runs[0].values[0].n, 3327);

    // The logs of two threads form one run, which is the run in the report: 1269.9 tps without the
    // time for connecting. In this short run, the first transaction of each client is a large part.
    let report = read(&["pgbench/pgbench-log.txt"]);
    let logs = read(&["pgbench/txn.710", "pgbench/txn.710.1"]);
    assert_eq!(logs.runs.len(), 1);
    let (a, b) = (report.runs[0].value("tps"), logs.runs[0].value("tps"));
    let (a, b) = (a.expect("tps"), b.expect("tps"));
    assert!((a / b - 1.0).abs() < 0.1, "{a} {b}");
    let mean = |r: &Results| r.runs[0].value("latency mean").expect("a mean");
    assert!((mean(&report) / mean(&logs) - 1.0).abs() < 0.05);
    assert_eq!(logs.runs[0].values[0].n, 120);

    let sums = read(&["pgbench/aggregate.715"]);
    let tps = sums.runs[0].value("tps").expect("tps");
    assert!(
        near(tps, (1515.0 + 1467.0) / 2.0),
        "whole seconds only: {tps}"
    );
    let paced = read(&["pgbench/rate.799", "pgbench/aggrate.803"]);
    assert_eq!(paced.runs.len(), 2);
    let both = read_with(
        &["pgbench/txn.710", "pgbench/pgbench-log.txt"],
        &Options::default(),
    );
    assert!(both.expect_err("refused").contains("count twice"));
}

#[test]
fn sysbench_reports_of_every_test_are_read() {
    let names = [
        "sysbench/sysbench-fileio-1.txt",
        "sysbench/sysbench-fileio-2.txt",
    ];
    let r = read(&names);
    assert_eq!((r.cells.len(), r.runs.len()), (1, 2));
    assert_eq!(
        r.cells[0].workload,
        "sysbench fileio random r/w test, 1 thread"
    );
    assert!(near(
        r.runs[0].value("events").expect("events"),
        156_727.0 / 2.0013
    ));
    assert_eq!(r.runs[0].value("read"), Some(705.82));
    let oltp = read(&["sysbench/sysbench-oltp.txt"]);
    assert_eq!(oltp.cells[0].primary.name, "transactions");
    assert_eq!(oltp.runs[0].value("transactions"), Some(406.45));
    assert_eq!(oltp.runs[0].value("latency p95"), Some(3.30));
    let cpu = read(&["sysbench/sysbench-cpu.txt"]);
    assert_eq!(cpu.cells[0].workload, "sysbench cpu, 1 thread");
}

#[test]
fn hyperfine_commands_are_compared_by_their_differing_parameters() {
    let r = read(&["hyperfine/hyperfine.json"]);
    assert_eq!(labels(&r), ["bs=4k", "bs=64k"]);
    assert_eq!((r.cells.len(), r.runs.len()), (1, 10));
    assert!(!r.cells[0].primary.higher_is_better);
    let two = read(&["hyperfine/hyperfine-two.json"]);
    assert_eq!(labels(&two), ["true", "cat t.dat"]);
    // If the file's name contains a scheduler, each command is a workload.
    let input = |name: &str| Input {
        name: name.to_owned(),
        text: std::fs::read_to_string(folder().join("hyperfine/hyperfine-two.json")).expect("text"),
    };
    let by_file = import(
        &[input("bfq.json"), input("none.json")],
        &Options::default(),
    );
    let by_file = by_file.expect("imported");
    assert_eq!(
        (labels(&by_file), by_file.cells.len()),
        (vec!["bfq", "none"], 2)
    );
}

#[test]
fn plain_csv_has_runs_blocks_and_means() {
    let text = "device;scheduler;workload;run;value;unit;better\n\
                ssd;bfq;db;1;100;tps;higher\nssd;bfq;db;2;102;tps;higher\n\
                ssd;none;db;1;110;tps;higher\nssd;none;db;2;;tps;higher\n";
    let r = of_text(text).expect("imported");
    assert!(!r.about.paired);
    assert_eq!(values(&r, 0, "bfq", "value"), [100.0, 102.0]);
    assert_eq!(values(&r, 0, "none", "value"), [110.0]);
    let blocks = "scheduler,workload,block,value\nbfq,db,7,10\nnone,db,7,11\nnone,db,4000000000,12\n\
                  bfq,db,4000000000,9\n";
    let r = of_text(blocks).expect("imported");
    assert!(r.about.paired, "every run names its block");
    assert_eq!(
        r.runs.iter().map(|x| x.key.block).max(),
        Some(1),
        "without gaps"
    );
    assert_eq!(analyse(&r).cells[0].comparisons[0].n, 2);
}

#[test]
fn names_are_renamed_and_taken_from_their_positions() {
    let options = Options {
        renamed: vec![("Laptop: BFQ".to_owned(), "Laptop: cfq-2.6.18".to_owned())],
        device: Some("my disk".to_owned()),
        reference: Some("CFQ".to_owned()),
        ..Options::default()
    };
    let r = read_with(&["pts/composite.xml"], &options).expect("imported");
    assert_eq!(labels(&r), ["mq-deadline", "cfq-2.6.18"]);
    assert_eq!(r.treatments[1].version, "2.6.18");
    assert_eq!(
        (r.cells[0].device.as_str(), r.cells[0].reference),
        ("my disk", 1)
    );
    let options = Options {
        scheduler_from: Some(NameFrom::File),
        ..Options::default()
    };
    let input = Input {
        name: "runs/kyber.xml".to_owned(),
        text: std::fs::read_to_string(folder().join("pts/composite.xml")).expect("text"),
    };
    let r = import(&[input], &options).expect("imported");
    assert_eq!(labels(&r), ["kyber"]);
    let none = Options {
        reference: Some("bqf".to_owned()),
        ..Options::default()
    };
    let said = read_with(&["pts/composite.xml"], &none).expect_err("no such");
    assert!(said.contains("did you mean `bfq`"), "{said}");
}

/// Zero and negative values have no logarithms: differences are compared, and the output says so.
#[test]
fn values_without_logarithms_are_compared_as_differences() {
    let mut text = "scheduler,workload,value,unit\n".to_owned();
    for v in [-1.0, 0.0, 1.0, 0.5] {
        text += &format!("bfq,db,{v},tps\nnone,db,{},tps\n", v + 50.0);
    }
    let a = analyse(&of_text(&text).expect("imported"));
    let c = &a.cells[0].comparisons[0];
    assert_eq!(c.ratio, None);
    assert!(c.p.is_some_and(|p| p < 0.001), "{c:?}");
    assert!(near(c.mean.expect("a mean"), 50.0));
}
