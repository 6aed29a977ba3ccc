//! Tests `--json`: the documentation of its fields, its contents and its size.

use crate::{good, project, scratch};
use seekwell_core::result::{Early, Host, Starved};
use seekwell_core::spec::RunSpec;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the fields that the page documents, by section. The value is true if the field may be
/// absent.
fn documented() -> BTreeMap<String, BTreeMap<String, bool>> {
    let page = std::fs::read_to_string(project("docs/json.md")).expect("the page");
    let mut all: BTreeMap<String, BTreeMap<String, bool>> = BTreeMap::new();
    let mut section = String::new();
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            section = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("| `") {
            let cells: Vec<&str> = rest.split('|').collect();
            assert_eq!(cells.len(), 4, "{line}");
            let name = cells[0].trim_end().trim_end_matches('`').to_owned();
            let absent = cells[2].contains("absent");
            all.entry(section.clone()).or_default().insert(name, absent);
        }
    }
    all
}

fn keys(v: &Value) -> BTreeSet<String> {
    v.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn json_page_documents_exactly_the_existing_fields() {
    let text = good(&[
        "run",
        "interactive:size=16m,bulk=32m,seconds=2s",
        "-d",
        "hdd:hitachi-7k200",
        "-s",
        "noop,cfq",
        "--json",
        "--series",
    ]);
    let doc: Value = serde_json::from_str(&text).expect("JSON");
    let (verdict, record) = (&doc["verdicts"][0], &doc["records"][0]);
    let cell = &doc["analysis"]["cells"][0];
    // A complete simulated run has none of these fields.
    let early = &serde_json::to_value(Early::default()).expect("JSON");
    let starved = &serde_json::to_value(Starved::default()).expect("JSON");
    let host = &serde_json::to_value(Host::default()).expect("JSON");
    let spec: RunSpec = serde_json::from_value(json!({
        "device": {"spec": "hdd"}, "scheduler": {"name": "noop"},
        "workload": {"kind": "script", "name": "hdparm"},
    }))
    .expect("a specification");
    let spec = &serde_json::to_value(spec).expect("JSON");
    let of = |name: &str| match name {
        "Document" => &doc,
        "Analysis" => &doc["analysis"],
        "Cell" => cell,
        "Side" => &cell["sides"][0],
        "Comparison" => &cell["comparisons"][0],
        "Group" => &doc["analysis"]["groups"][0],
        "Verdict" => verdict,
        "Place" => &verdict["order"][0],
        "Record" => record,
        "Specification" => spec,
        "Early" => early,
        "Host" => host,
        "Device" => &record["device"],
        "Scheduler" => &record["scheduler"],
        "Direction" => &record["read"],
        "Latency" => &record["operations"][0]["latency"],
        "Metric" => &record["metric"],
        "Operation" => &record["operations"][0],
        "OpSecond" => &record["operations"][0]["seconds"][0],
        "Second" => &record["seconds"][0],
        "Process" => &record["processes"][0],
        "Mark" => &record["marks"][0],
        "Task" => &record["tasks"][0],
        "Starved" => starved,
        "Queue" => &record["queue"],
        other => panic!("the page has a section {other} of nothing"),
    };
    let page = documented();
    assert_eq!(page.len(), 25);
    for (section, fields) in page {
        let there = keys(of(&section));
        let known: BTreeSet<String> = fields.keys().cloned().collect();
        let unknown: Vec<_> = there.difference(&known).collect();
        assert!(unknown.is_empty(), "{section}: {unknown:?} not on the page");
        for (field, absent) in fields {
            assert!(absent || there.contains(&field), "{section}: no {field}");
        }
    }
    // The clock started when the files had been laid out. Only the seconds on this clock are
    // counted.
    let (start, stop) = (&record["clock_start_ns"], &record["clock_stop_ns"]);
    let span = stop.as_u64().expect("stopped") - start.as_u64().expect("started");
    assert!(start.as_u64() > Some(0) && span >= 2_000_000_000);
    let seconds = record["seconds"].as_array().expect("a series");
    assert!(
        seconds.len() as u64 > span / 1_000_000_000,
        "of the whole run"
    );
}

#[test]
fn json_contains_the_verdict() {
    let args = ["run", "fs-mark:files=20", "-d", "hdd:hitachi-7k200", "-s"];
    let text = good(&[&args[..], &["noop,deadline,cfq", "--json"]].concat());
    let doc: Value = serde_json::from_str(&text).expect("JSON");
    let v = &doc["verdicts"][0];
    assert_eq!((&v["kind"], &v["by"]), (&"metric".into(), &"files".into()));
    let order = v["order"].as_array().expect("places");
    assert_eq!((order.len(), &order[0]["behind_percent"]), (3, &0.0.into()));
    assert!(order.iter().all(|p| p["n"] == 20), "{order:?}");
    let value = |i: usize| order[i]["value"].as_f64().expect("a value");
    assert!(value(0) >= value(1) && value(1) >= value(2));
    assert!(
        doc["records"][0]["seconds"]
            .as_array()
            .is_some_and(Vec::is_empty)
    );
}

/// The trace has two hours of a mostly idle disk.
#[test]
fn json_of_a_long_replay_stays_small() {
    let mut csv = "t_ns,op,sector,sectors,pid\n".to_owned();
    for i in 0..3000u64 {
        let (at, sector) = (i * 7_300_000_000 / 3, i * 7919 % 100_000 * 8);
        csv += &format!("{at},{},{sector},8,1\n", if i % 3 == 0 { "W" } else { "R" });
    }
    let file = scratch("quiet.csv", csv.as_bytes());
    let args = ["replay", &file, "--json"];
    let (short, long) = (good(&args), good(&[&args[..], &["--series"]].concat()));
    // The document has seven schedulers, each with three thousand seconds and two histograms.
    let whole: Value = serde_json::from_str(&long).expect("JSON");
    let pretty = format!("{whole:#}").len();
    assert!(short.len() < 300_000, "{}", short.len());
    assert!(long.len() * 4 < pretty * 3, "{} {pretty}", long.len());
    assert!(short.len() * 20 < pretty, "{} {pretty}", short.len());
}

#[test]
fn json_verdict_covers_all_seeds_and_records_only_the_first() {
    let args = [
        "run",
        "fs-mark:files=10",
        "-d",
        "hdd:hitachi-7k200",
        "-s",
        "noop,cfq,bfq",
        "-q",
    ];
    let text = good(&[&args[..], &["--json", "--seeds", "4", "--seed", "2"]].concat());
    let doc: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (&doc["seeds"], doc["records"].as_array().map(Vec::len)),
        (&4.into(), Some(3))
    );
    assert!(
        doc["records"]
            .as_array()
            .is_some_and(|all| all.iter().all(|r| r["seed"] == 2))
    );
    let cell = &doc["analysis"]["cells"][0];
    let values = |side: usize| {
        cell["sides"][side]["values"]
            .as_array()
            .expect("values")
            .clone()
    };
    assert!(
        values(0).len() == 4 && values(0) != vec![values(0)[0].clone(); 4],
        "seeds differ"
    );
    assert_eq!(values(0)[0], doc["records"][0]["metric"]["value"]);
    assert_eq!(cell["comparisons"].as_array().map(Vec::len), Some(2));
    assert_eq!(cell["pairs"].as_array().map(Vec::len), Some(3));
    assert_eq!(cell["comparisons"][0]["n"], 4);
}
