//! Checks figures that Seekwell prints, by computing them in another way. A geometric mean comes
//! from the exported CSV, a percentile from the event stream, and times of a trace from its text.

use crate::{good, project, scratch};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the path of a results folder for a test. The folder does not exist yet.
fn folder(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        std::fs::remove_dir_all(&path).expect("the last run's results go");
    }
    path.display().to_string()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Returns the data that are embedded in a page.
fn index(html: &str) -> Value {
    let own = html.split("id=\"sw-index\">").nth(1).expect("an index");
    json(own.split("</script>").next().expect("its end"))
}

fn near(a: f64, b: f64, share: f64) -> bool {
    (a / b - 1.0).abs() <= share
}

/// Returns the fields of a line of CSV. Commas between quotes are not separators.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => out.last_mut().expect("a field").push(c),
        }
    }
    out
}

/// Returns the rows of a CSV, as maps from column names to values.
fn rows(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines();
    let head = fields(lines.next().expect("a head"));
    let row = |line: &str| head.iter().cloned().zip(fields(line)).collect();
    lines.map(row).collect()
}

#[test]
fn geometric_mean_equals_that_of_the_exported_csv() {
    let dir = folder("checked-mean");
    good(&[
        "compare",
        "--device",
        "hdd:hitachi-7k200",
        "--workload",
        "fs-mark:files=5",
        "--workload",
        "streams:size=64m,seconds=1s",
        "--workload",
        "seeker:seconds=1s",
        "--schedulers",
        "noop,deadline,cfq",
        "--seeds",
        "3",
        "--results",
        &dir,
        "-q",
    ]);
    let mut runs: BTreeMap<(String, String), BTreeMap<String, f64>> = BTreeMap::new();
    for r in rows(&good(&["export", &dir, "--format", "csv"])) {
        if r["primary"] == "true" {
            let value: f64 = r["value"].parse().expect("a number");
            let better = if r["higher_is_better"] == "true" {
                value
            } else {
                1.0 / value
            };
            let of = runs
                .entry((r["cell"].clone(), r["block"].clone()))
                .or_default();
            of.insert(r["label"].clone(), better);
        }
    }
    assert_eq!(runs.len(), 9, "three tests, three blocks");
    // Every test has the same number of blocks. So the mean over all logarithms equals the mean
    // over the tests.
    let mean = |of: &str| -> f64 {
        let logs = runs.values().map(|r| (r[of] / r["noop"]).ln());
        (logs.sum::<f64>() / runs.len() as f64).exp()
    };
    let page = scratch("checked-mean.html", b"");
    good(&["report", &dir, "--no-events", "-o", &page, "-q"]);
    let html = std::fs::read_to_string(page).expect("a page");
    let index = index(&html);
    let scores = index["groups"][0]["scores"].as_array().expect("scores");
    let mut seen = 0;
    for s in scores {
        let place = s["s"].as_u64().expect("a place") as usize;
        let name = index["schedulers"][place]["name"].as_str().expect("a name");
        let times = s["times"].as_f64().expect("a number");
        assert!(
            near(times, mean(name), 1e-5),
            "{name}: {times}, {}",
            mean(name)
        );
        seen += usize::from(!near(times, 1.0, 0.01));
    }
    // If no scheduler differed, all these scores would be 1, and the check would prove nothing.
    assert!(seen > 0, "something differs: {scores:?}");
}

#[test]
fn percentiles_equal_those_of_the_event_stream() {
    let events = scratch("checked.jsonl", b"");
    let run = json(&good(&[
        "run",
        "random-read:seconds=5s,tasks=4",
        "--device",
        "hdd:hitachi-7k200",
        "-s",
        "noop",
        "--seeds",
        "1",
        "--events",
        &events,
        "--json",
        "-q",
    ]));
    let record = &run["records"][0];
    let began = record["clock_start_ns"].as_u64().expect("a time");
    let mut asked: BTreeMap<u64, u64> = BTreeMap::new();
    let mut took: Vec<u64> = Vec::new();
    for line in std::fs::read_to_string(events).expect("events").lines() {
        let line = json(line);
        let (e, bio) = (&line["e"], line["e"]["bio"].as_u64());
        let (Some(bio), Some(t)) = (bio, e["t"].as_u64()) else {
            continue;
        };
        if e["a"] == "Q" {
            asked.insert(bio, t);
        }
        if e["a"] == "C" && e["op"] == "R" && asked[&bio] >= began {
            took.push(t - asked[&bio]);
        }
    }
    took.sort_unstable();
    let told = &record["read"]["latency"];
    let n = took.len();
    assert!(n > 500, "{n}");
    assert_eq!(told["count"], n);
    assert_eq!(told["max_ns"], took[n - 1]);
    assert_eq!(told["min_ns"], took[0]);
    let mean = took.iter().sum::<u64>() as f64 / n as f64;
    let number = |name: &str| told[name].as_f64().expect("a number");
    assert!(near(number("mean_ns"), mean, 1e-9));
    for (name, of) in [
        ("p50_ns", 500),
        ("p90_ns", 900),
        ("p99_ns", 990),
        ("p999_ns", 999),
    ] {
        // The smallest latency that at least this share of all operations does not exceed.
        let by_hand = took[(n * of).div_ceil(1000) - 1] as f64;
        assert!(
            near(number(name), by_hand, 0.002),
            "{name}: {} {by_hand}",
            number(name)
        );
    }
    // The null model, an exponential distribution with the same mean, is further from the truth.
    let guess = mean * 100f64.ln();
    assert!(!near(guess, number("p99_ns"), 0.02), "{guess}");
}

/// Converts a timestamp of ftrace, such as "13940.900770:", to microseconds.
fn parse_timestamp_us(word: &str) -> Option<u64> {
    let (s, us) = word.strip_suffix(':')?.split_once('.')?;
    Some(s.parse::<u64>().ok()? * 1_000_000 + us.parse::<u64>().ok()?)
}

/// Returns the range in words such as "4456448 + 8": its first sector, and the first sector after
/// its end.
fn sectors(words: &[&str]) -> Option<(u64, u64)> {
    let plus = words.iter().position(|w| *w == "+")?;
    let first: u64 = words[plus - 1].parse().ok()?;
    Some((first, first + words[plus + 1].parse::<u64>().ok()?))
}

#[test]
fn trace_times_equal_those_in_its_text() {
    let trace = project("crates/seekwell-trace/tests/data/ftrace-6.18.txt");
    let text = std::fs::read_to_string(&trace).expect("the trace");
    // For each bio: submission time, first sector, end sector, and the number of sectors not
    // completed.
    let mut waiting: Vec<(u64, u64, u64, u64)> = Vec::new();
    let mut took: Vec<u64> = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let what = words.iter().find(|w| w.starts_with("block_"));
        let at = words.iter().find_map(|w| parse_timestamp_us(w));
        let (Some(what), Some(at), Some((first, end))) = (what, at, sectors(&words)) else {
            continue;
        };
        match *what {
            "block_bio_queue:" if end > first => waiting.push((at, first, end, end - first)),
            "block_rq_complete:" => waiting.retain_mut(|w| {
                // A bio may be part of a request, or split into several.
                w.3 -= w.2.min(end).saturating_sub(w.1.max(first));
                if w.3 == 0 {
                    took.push(at - w.0);
                }
                w.3 > 0
            }),
            _ => {}
        }
    }
    took.sort_unstable();
    let doc = json(&good(&["report", &trace, "--json"]));
    let phases = doc["trace"]["phases"].as_array().expect("phases");
    let q2c = phases.iter().find(|p| p["name"] == "Q2C").expect("Q2C");
    assert_eq!(q2c["n"], took.len(), "{took:?}");
    let us = |name: &str| q2c[name].as_f64().expect(name) / 1_000.0;
    let mean = took.iter().sum::<u64>() as f64 / took.len() as f64;
    assert!(near(us("mean_ns"), mean, 0.002), "{q2c}: {mean}");
    assert!(near(us("min_ns"), took[0] as f64, 1e-9), "{q2c}");
    assert!(
        near(us("max_ns"), took[took.len() - 1] as f64, 1e-9),
        "{q2c}"
    );
    let page = scratch("checked-trace.html", b"");
    good(&["report", &trace, "-o", &page, "-q"]);
    let html = std::fs::read_to_string(page).expect("a page");
    let shown = format!("{mean:.0} us");
    assert!(html.contains(&shown), "{shown} is on the page");
}
