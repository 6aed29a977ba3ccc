//! `compare` and `demo`.

use crate::{good, seekwell};
use seekwell_evidence::demo::demos;
use seekwell_sched::{Layer, registry};
use serde_json::Value;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&good(args)).expect("one JSON document")
}

/// Arguments that select a small part of the default runs.
const SHORT: &[&str] = &[
    "--device",
    "hdd:hitachi-7k200",
    "--workload",
    "seeker:seconds=1s",
    // Without this option there would be notes, because the schedulers are younger than the disk.
    "--quiet",
];

#[test]
fn output_starts_by_naming_the_simulation_and_ends_with_the_reading_guide() {
    let text = good(&[&["compare", "--schedulers", "noop,mq-deadline"], SHORT].concat());
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("On a modelled disk, not one of yours:"),
        "{}",
        lines[0]
    );
    let last = lines[lines.len() - 2..].join(" ");
    assert!(last.contains("docs/reading.md"), "{last}");
    assert!(std::path::Path::new(&crate::project("docs/reading.md")).is_file());
}

/// Returns the distinct values of a field over all records, in their order.
fn distinct_values(doc: &Value, of: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for r in doc["records"].as_array().expect("records") {
        let value = r.pointer(of).and_then(Value::as_str).expect(of).to_owned();
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

#[test]
fn compare_defaults_to_current_devices_and_kernel_default_references() {
    let doc = json(&["compare", "--json"]);
    assert_eq!(
        distinct_values(&doc, "/device/spec"),
        ["ssd:nvme-gen4-tlc-2t", "ssd:sata-tlc-1t", "hdd:st2000dm006"]
    );
    let today = ["none", "mq-deadline", "kyber", "bfq"];
    assert_eq!(distinct_values(&doc, "/scheduler/spec"), today);
    assert_eq!(
        distinct_values(&doc, "/workload"),
        ["interactive", "app-start", "fs-mark"]
    );
    let cells = doc["analysis"]["cells"].as_array().expect("cells");
    let reference = |c: &Value| c["reference"].as_u64().expect("a place") as usize;
    let references: Vec<&str> = cells.iter().map(|c| today[reference(c)]).collect();
    // `interactive` has three deciding figures, and each other workload has one.
    let mq = ["mq-deadline"; 5];
    assert_eq!(references, [&["none"; 5][..], &mq, &mq].concat());
    // If the user types a list, the first scheduler of the list is the reference.
    let args = [
        "compare",
        "--json",
        "-w",
        "fs-mark:files=3",
        "-s",
        "kyber,mq-deadline",
    ];
    let doc = json(&args);
    assert_eq!(doc["analysis"]["cells"][1]["reference"], 0);
}

/// The default of 2012 has the same devices, schedulers, workloads and bytes as these arguments.
#[test]
fn era_2012_equals_its_explicit_options() {
    let words = [
        "-d",
        "hdd:hitachi-7k200",
        "-d",
        "ssd:sata3-256-2011",
        "-s",
        "cfq,deadline,noop,bfq",
        "-w",
        "streams:size=256m,seconds=2s",
        "-w",
        "interactive:size=256m,bulk=512m,seconds=10s",
        "-w",
        "fs-mark:files=60",
    ];
    let run = |args: &[&str]| good(&[&["compare", "--json", "--quiet"], args].concat());
    assert!(run(&["--era", "2012"]) == run(&words), "the same bytes");
}

#[test]
fn recommend_uses_the_defaults_of_compare() {
    let doc: Value =
        serde_json::from_str(&good(&["recommend", "--json", "--seeds", "2"])).expect("JSON");
    let all = doc["recommendations"].as_array().expect("a list");
    let of = |field: &str| -> Vec<&str> {
        let each = all.iter().map(|r| r[field].as_str().expect("a word"));
        each.collect()
    };
    assert_eq!(
        of("device"),
        ["ssd:nvme-gen4-tlc-2t", "ssd:sata-tlc-1t", "hdd:st2000dm006"]
    );
    assert_eq!(of("reference"), ["none", "mq-deadline", "mq-deadline"]);
    for r in all {
        let figures = r["figures"].as_array().expect("figures");
        assert!((2..=3).contains(&figures.len()), "{r:#}");
        for f in figures {
            let f = f.as_str().expect("a text");
            assert!(f.contains(" under "), "{f}");
        }
    }
}

/// With a single reader, a scheduler has no choice. A reported difference would be a false
/// positive.
#[test]
fn single_reader_shows_no_difference_and_published_disk_rates() {
    let doc = json(&[
        "compare",
        "--schedulers",
        "all",
        "--json",
        "-d",
        "hdd:hitachi-7k200",
        "-w",
        "hdparm,seeker",
    ]);
    let records = doc["records"].as_array().unwrap();
    assert_eq!(records.len(), 2 * registry().len());
    let values = |workload: &str| -> Vec<f64> {
        let of = records.iter().filter(|r| r["workload"] == workload);
        of.map(|r| r["metric"]["value"].as_f64().unwrap()).collect()
    };
    // A 7200 rpm laptop disk of 2007 reads about 60 MiB/s, or does about 70 seeks per second.
    for (workload, band) in [("hdparm", 50.0..80.0), ("seeker", 60.0..85.0)] {
        let all = values(workload);
        assert!(all.iter().all(|v| band.contains(v)), "{workload}: {all:?}");
        let (low, high) = all
            .iter()
            .fold((f64::MAX, 0f64), |a, v| (a.0.min(*v), a.1.max(*v)));
        assert!(high / low < 1.02, "{workload}: {all:?}");
    }
}

#[test]
fn schedulers_all_selects_every_scheduler_and_marks_retired_ones() {
    let text = good(&[&["compare", "--schedulers", "all"], SHORT].concat());
    let flat = text.replace('\n', " ");
    let retired = flat.split_once("Simulated with").expect("the last line").1;
    let retired = retired.split_once("are in no kernel since 5.0");
    let names: Vec<&str> = retired
        .expect("some are")
        .0
        .split([' ', ',', ';'])
        .collect();
    for s in registry() {
        let told = names.contains(&s.name);
        assert_eq!(told, s.layer == Layer::Legacy, "{} in {names:?}", s.name);
    }
    for (group, layer) in [("single-queue", Layer::Legacy), ("blk-mq", Layer::Mq)] {
        let doc = json(&[&["compare", "-s", group, "--json"], SHORT].concat());
        let n = registry().iter().filter(|s| s.layer == layer).count();
        assert_eq!(doc["records"].as_array().unwrap().len(), n);
    }
}

#[test]
fn same_seed_gives_same_bytes_on_any_number_of_threads() {
    let run = |threads: &str, seed: &str| {
        let args = ["compare", "--json", "--threads", threads, "--seed", seed];
        good(&[&args[..], &["--schedulers", "noop,cfq,mq-deadline"], SHORT].concat())
    };
    let one = run("1", "3");
    assert_eq!(one, run("7", "3"));
    assert_ne!(one, run("1", "4"));
}

#[test]
fn tunables_apply_only_to_their_schedulers() {
    let doc = json(&[
        "compare",
        "--json",
        "--workloads",
        "hdparm",
        "--device",
        "hdd:hitachi-7k200",
        "--schedulers",
        "noop,deadline,mq-deadline,deadline-2.6.18:front_merges=0",
        "--tunable",
        "deadline.fifo_batch=1",
        "--tunable",
        "writes_starved=7",
    ]);
    let of = |i: usize, name: &str| doc["records"][i]["scheduler"]["tunables"][name].clone();
    assert_eq!(
        (of(1, "fifo_batch"), of(1, "writes_starved")),
        ("1".into(), "7".into())
    );
    assert_eq!(
        (of(2, "fifo_batch"), of(2, "writes_starved")),
        ("16".into(), "7".into())
    );
    let both = (of(3, "fifo_batch"), of(3, "front_merges"));
    assert_eq!(both, ("1".into(), "0".into()));
    assert_eq!(doc["records"][3]["scheduler"]["version"], "2.6.18");
    assert_eq!(of(0, "fifo_batch"), Value::Null);
}

#[test]
fn several_devices_are_compared_in_sequence() {
    let text = good(&[
        "compare",
        "--workload",
        "seeker:seconds=2s",
        "-s",
        "noop,deadline",
        "-d",
        "hdd:hitachi-7k200",
        "-d",
        "constant:depth=4,service_us=100",
    ]);
    assert_eq!(text.matches("On a modelled disk").count(), 2);
    assert_eq!(text.matches("Verdict:").count(), 2);
}

#[test]
fn every_demo_holds_and_reports_its_checks() {
    let list = good(&["demo"]);
    for d in demos() {
        assert!(list.contains(d.name));
    }
    let doc = json(&["demo", "all", "--json"]);
    let shown = doc["demos"].as_array().unwrap();
    assert_eq!(shown.len(), demos().count());
    for d in shown {
        assert_eq!(d["holds"], true, "{d:#}");
        assert!(
            !d["checks"].as_array().unwrap().is_empty(),
            "{} claims nothing",
            d["name"]
        );
    }
    let first = demos().next().unwrap().name;
    let one = good(&["demo", first]);
    assert!(one.contains("holds:") && !one.contains("FAILS"), "{one}");
    let r = seekwell(&["demo", "levitation"]);
    assert_eq!(r.code, 2);
    assert!(r.err.contains("levitation") && r.err.contains(first));
}
