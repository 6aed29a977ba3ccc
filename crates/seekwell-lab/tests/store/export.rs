//! Exports must contain the measured values, whatever the names are.

use super::{AWKWARD, experiment, keys, results};
use quick_xml::events::Event;
use seekwell_lab::results::export::FORMATS;
use seekwell_lab::results::{MetricInfo, Outcome, Results, Summary};

fn exported(format: &str, of: &Results) -> String {
    let format = FORMATS.iter().find(|f| f.name == format).expect("a format");
    let mut bytes = Vec::new();
    let date = Some("2026-01-02 03:04");
    format.write(of, date, &mut bytes).expect("written");
    String::from_utf8(bytes).expect("UTF-8")
}

fn awkward_results() -> Results {
    let mut r = results(&experiment(3), &keys(3, 6));
    r.treatments[1].label = format!("cfq {AWKWARD}");
    r
}

#[test]
fn csv_contains_every_value_exactly() {
    let r = awkward_results();
    let text = exported("csv", &r);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().expect("a head").clone();
    let at = |name: &str| head.iter().position(|h| h == name).expect("a column");
    assert_eq!(head.iter().next_back(), Some("axis.clients"));
    let rows: Vec<csv::StringRecord> = reader.records().map(|r| r.expect("a row")).collect();
    let mut left = rows.iter();
    for (number, run) in r.runs.iter().enumerate() {
        for i in 0..run.values.len().max(1) {
            let row = left.next().expect("a row for each value");
            assert_eq!(row[at("run")], number.to_string());
            assert_eq!(row[at("cell")], r.cells[run.key.cell].name);
            assert_eq!(row[at("label")], r.treatments[run.key.treatment].label);
            assert_eq!(row[at("seed")], run.seed.to_string());
            assert_eq!(row[at("axis.clients")], run.key.cell.to_string());
            match (&run.outcome, run.values.get(i)) {
                (Outcome::Failed(why), None) => {
                    assert_eq!((&row[at("why")], &row[at("value")]), (why.as_str(), ""));
                }
                (_, Some(v)) => {
                    assert_eq!(row[at("value")].parse::<f64>().ok(), Some(v.value));
                    assert_eq!(row[at("metric")], v.metric.name);
                    assert_eq!(row[at("primary")], (v.metric.name == "rate").to_string());
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(left.next().is_none());
}

#[test]
fn figures_without_runs_are_separate_csv_lines() {
    let mut r = awkward_results();
    r.summaries = vec![Summary {
        cell: 1,
        treatment: 1,
        metric: MetricInfo::default(),
        mean: 12.5,
        se: Some(0.25),
        n: Some(3),
        ..Summary::default()
    }];
    let text = exported("csv", &r);
    let last = text.lines().last().expect("a line");
    assert!(
        text.lines()
            .next()
            .expect("a head")
            .ends_with("axis.clients,se,sd,runs")
    );
    assert!(
        last.contains(",summary,") && last.ends_with(",12.5,0,1,0.25,,3"),
        "{last}"
    );
    let xml = exported("pts", &r);
    assert!(xml.contains("<Value>12.5</Value>"), "{xml}");
}

#[test]
fn exported_json_contains_the_results() {
    let r = awkward_results();
    let text = exported("json", &r);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["schema"], 1);
    let back: Results = serde_json::from_value(value).expect("results");
    // JSON parsers may change the last digit of a number.
    assert_eq!(back.cells, r.cells);
    assert_eq!(back.runs.len(), r.runs.len());
    for (a, b) in back.runs.iter().zip(&r.runs) {
        assert_eq!((a.key, &a.outcome, a.seed), (b.key, &b.outcome, b.seed));
        for (a, b) in a.values.iter().zip(&b.values) {
            assert!((a.value / b.value - 1.0).abs() < 1e-15);
        }
    }
}

#[test]
fn markdown_tables_are_valid_with_any_names() {
    let text = exported("markdown", &awkward_results());
    let rows: Vec<&str> = text.lines().filter(|l| l.starts_with('|')).collect();
    assert_eq!(rows.len(), 3 * 4, "{text}");
    for row in rows {
        assert_eq!(row.matches('|').count(), 6, "{row}");
    }
    for bad in ["<d>", "\"e\"", "\u{202e}", "b|c"] {
        assert!(!text.contains(bad), "{bad:?} in {text}");
    }
    assert!(text.contains("| reference |"), "{text}");
}

/// Returns each element that has text, as a pair of its path and the text.
fn leaves(xml: &str) -> Vec<(String, String)> {
    let mut reader = quick_xml::Reader::from_str(xml);
    let (mut path, mut text, mut all) = (Vec::new(), String::new(), Vec::new());
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Start(e) => {
                path.push(e.name().as_ref().to_owned());
                text.clear();
            }
            Event::Text(t) => text += &t,
            Event::GeneralRef(r) => match r.resolve_char_ref().expect("a reference") {
                Some(c) => text.push(c),
                None => {
                    text += quick_xml::escape::resolve_xml_entity(&r).expect("one of XML's");
                }
            },
            Event::End(_) => {
                all.push((path.join("/"), std::mem::take(&mut text)));
                path.pop();
            }
            Event::Eof => return all,
            _ => {}
        }
    }
}

#[test]
fn composite_xml_contains_every_run_of_every_cell() {
    let r = awkward_results();
    let all = leaves(&exported("pts", &r));
    let of = |path: &str| -> Vec<&str> {
        let these = all
            .iter()
            .filter(|l| l.0 == format!("PhoronixTestSuite/{path}"));
        these.map(|l| l.1.as_str()).collect()
    };
    assert_eq!(of("Generated/Title"), ["tried <3>"]);
    assert_eq!(of("Generated/LastModified"), ["2026-01-02 03:04:00"]);
    let second = format!("hdd:hitachi-7k200: cfq {AWKWARD}");
    assert_eq!(
        of("System/Identifier"),
        ["hdd:hitachi-7k200: noop:x=1", &second]
    );
    // There are three cells with two schedulers and two metrics each.
    assert_eq!(
        of("Result/Title"),
        [
            "hdparm 0", "hdparm 0", "hdparm 1", "hdparm 1", "hdparm 2", "hdparm 2",
        ]
    );
    assert_eq!(of("Result/Scale"), ["MB/s"; 6]);
    assert_eq!(
        of("Result/Proportion"),
        ["HIB", "LIB", "HIB", "LIB", "HIB", "LIB"]
    );
    let (names, raw) = (
        of("Result/Data/Entry/Identifier"),
        of("Result/Data/Entry/RawString"),
    );
    let means = of("Result/Data/Entry/Value");
    assert_eq!((names.len(), raw.len(), means.len()), (12, 12, 12));
    for (i, text) in raw.iter().enumerate() {
        let (cell, metric, treatment) = (i / 4, i / 2 % 2, i % 2);
        assert_eq!(names[i], of("System/Identifier")[treatment]);
        let runs = r
            .runs
            .iter()
            .filter(|x| (x.key.cell, x.key.treatment) == (cell, treatment));
        // The values of a run that reached its limit do not describe its work.
        let measured: Vec<f64> = runs
            .filter(|x| !x.censored())
            .filter_map(|x| Some(x.values.get(metric)?.value))
            .collect();
        let told: Vec<f64> = text
            .split(':')
            .map(|v| v.parse().expect("a number"))
            .collect();
        assert_eq!(told, measured, "{i}");
        let mean = measured.iter().sum::<f64>() / measured.len() as f64;
        assert_eq!(means[i].parse(), Ok(mean));
    }
}

#[test]
fn cells_with_equal_names_are_not_pooled() {
    let mut r = awkward_results();
    r.cells[1].workload = r.cells[0].workload.clone();
    r.cells[1].axes = r.cells[0].axes.clone();
    let all = leaves(&exported("pts", &r));
    let raw = all
        .iter()
        .filter(|l| l.0.ends_with("/RawString"))
        .collect::<Vec<_>>();
    assert_eq!(raw.len(), 12);
    assert!(raw.iter().all(|l| l.1.split(':').count() <= 6));
    r.cells[1].device = "ssd".to_owned();
    let all = leaves(&exported("pts", &r));
    let titles = all.iter().filter(|l| l.0.ends_with("Result/Title")).count();
    assert_eq!(
        titles, 4,
        "on another device it is another column of the same test"
    );
}
