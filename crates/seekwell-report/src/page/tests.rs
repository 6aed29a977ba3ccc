//! Compares the page with its results, without a browser. Other tests run the page in a browser.

use super::*;
use proptest::prelude::*;
use seekwell_lab::analysis::analyse;
use seekwell_lab::results::{About, Cell, MetricInfo, Outcome, Run, RunKey, Treatment, Value};

/// Returns results with two devices, a sweep, and a test without a difference. The second scheduler
/// is 10 % ahead.
pub(super) fn results(names: [&str; 3]) -> Results {
    let primary = MetricInfo {
        name: "reads".to_owned(),
        unit: "MB/s".to_owned(),
        higher_is_better: true,
        step: None,
    };
    let cell = |device: &str, workload: &str, axis: Option<u32>| Cell {
        name: format!("{device} {workload} {axis:?}"),
        device: device.to_owned(),
        workload: axis.map_or(workload.to_owned(), |a| format!("{workload} clients={a}")),
        substrate: "sim".to_owned(),
        axes: axis
            .map(|a| ("workload.clients".to_owned(), a.to_string()))
            .into_iter()
            .collect(),
        primary: primary.clone(),
        treatments: vec![0, 1, 2],
        ..Cell::default()
    };
    let mut cells = vec![cell("disk", "quiet", None), cell("flash", "loud", None)];
    cells.extend([1, 2, 4].map(|n| cell("disk", "pgbench", Some(n))));
    let mut runs = Vec::new();
    for (c, _) in cells.iter().enumerate() {
        for block in 0..10u32 {
            for treatment in 0..3 {
                let noise = 1.0 + 0.001 * f64::from((block * 7 + treatment as u32 * 3) % 5);
                let effect = if c > 0 && treatment == 1 { 1.1 } else { 1.0 };
                let failed = c == 1 && treatment == 2;
                let value = Value {
                    metric: primary.clone().into(),
                    value: 50.0 * noise * effect * (1 + c) as f64,
                    n: 100,
                };
                runs.push(Run {
                    key: RunKey {
                        cell: c,
                        block,
                        treatment,
                    },
                    place: treatment as u32,
                    outcome: if failed {
                        Outcome::Failed("no space left on device".to_owned())
                    } else {
                        Outcome::Done
                    },
                    values: if failed { Vec::new() } else { vec![value] },
                    ..Run::default()
                });
            }
        }
    }
    Results {
        about: About {
            name: "which one?".to_owned(),
            paired: true,
            source: "experiment".to_owned(),
            ..About::default()
        },
        treatments: names
            .map(|n| Treatment {
                label: n.to_owned(),
                ..Treatment::default()
            })
            .to_vec(),
        cells,
        runs,
        summaries: Vec::new(),
    }
}

fn made(results: &Results) -> String {
    let analysis = analyse(results);
    page(results, &analysis, &Facts::default(), &Closer::default()).expect("the template is right")
}

/// Returns the index as the script reads it.
fn index_of(page: &str) -> serde_json::Value {
    let text = page.split("id=\"sw-index\">").nth(1).expect("an index");
    serde_json::from_str(text.split("</script>").next().expect("its end")).expect("JSON")
}

#[test]
fn page_text_contains_the_answer_and_equals_the_results() {
    let results = results(["noop", "cfq", "bfq"]);
    let page = made(&results);
    let text = page.split("<script").next().expect("text");
    assert!(text.contains("Take cfq"), "{text}");
    assert!(text.contains("no space left on device"), "{text}");
    let index = index_of(&page);
    for (c, row) in index["rows"].as_array().expect("rows").iter().enumerate() {
        for side in row["sides"].as_array().expect("sides") {
            let s = side["s"].as_u64().expect("a place") as usize;
            let own = results
                .runs
                .iter()
                .filter(|r| r.key.cell == c && r.key.treatment == s);
            let own: Vec<_> = own.map(|r| r.value("reads")).collect();
            let shown: Vec<_> = side["v"]
                .as_array()
                .expect("values")
                .iter()
                .map(|v| v.as_f64())
                .collect();
            assert_eq!(own, shown, "cell {c}, scheduler {s}");
        }
    }
    // In the first row, nothing differs, so it has no winner. The second row has one.
    assert_eq!(index["rows"][0]["kind"], "none");
    assert_eq!(index["rows"][0]["tops"].as_array().map(Vec::len), Some(0));
    assert_eq!(index["rows"][1]["tops"], serde_json::json!([1]));
    assert_eq!(index["sweeps"][0]["rows"], serde_json::json!([2, 3, 4]));
}

#[test]
fn committed_script_matches_its_sources() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
    let read = |f: &str| std::fs::read(format!("{root}/{f}")).expect("a source");
    let mut sources: Vec<String> = std::fs::read_dir(format!("{root}/src"))
        .expect("sources")
        .map(|e| format!("src/{}", e.expect("an entry").file_name().to_string_lossy()))
        .collect();
    sources.sort();
    let mut hash = Sha256::new();
    for f in [
        "package.json",
        "package-lock.json",
        "tsconfig.json",
        "build.mjs",
    ] {
        hash.update(read(f));
    }
    for f in &sources {
        hash.update(read(f));
    }
    let hash: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    let first = SCRIPT.lines().next().expect("a line");
    assert_eq!(
        first,
        format!("/* src {hash} */"),
        "build the page: make page"
    );
}

/// Names that would be markup if they were not escaped.
const NASTY: [&str; 6] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "'; alert(3); '",
    "\u{202e}evil\u{202d}",
    "{{ 7 * 7 }} ${7}",
];

#[test]
fn nasty_names_never_become_markup() {
    let mut results = results([NASTY[0], NASTY[1], NASTY[2]]);
    let plain = made(&super::tests::results(["a", "b", "c"]));
    for cell in &mut results.cells {
        cell.device = NASTY[3].to_owned();
        cell.workload = format!("{} {}", NASTY[4], cell.workload);
        cell.machine = NASTY[5].to_owned();
    }
    results.about.name = NASTY.join(" ");
    for r in &mut results.runs {
        if let Outcome::Failed(why) = &mut r.outcome {
            *why = NASTY.join(" ");
        }
    }
    let page = made(&results);
    let count = |page: &str, what: &str| page.matches(what).count();
    assert_eq!(count(&page, "<script"), count(&plain, "<script"));
    assert_eq!(count(&page, "</script"), count(&plain, "</script"));
    assert_eq!(count(&page, "<img"), 0);
    assert!(
        page.contains("{{ 7 * 7 }} ${7}"),
        "no template in a name is filled in"
    );
    assert_eq!(index_of(&page)["schedulers"][2]["name"], NASTY[2]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]
    #[test]
    fn any_name_is_shown_as_text(name in ".{0,40}", device in ".{0,40}") {
        let mut all = results([&name, "b", "c"]);
        all.cells[0].device = device;
        let page = made(&all);
        prop_assert_eq!(page.matches("<script").count(), 2);
        let index = index_of(&page);
        prop_assert_eq!(index["schedulers"][0]["name"].as_str(), Some(name.as_str()));
    }
}
