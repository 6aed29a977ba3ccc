//! Compares the statistics with scipy on random samples. The stored results of scipy are in
//! `figures.json`, which `scripts/scipy_vectors.py` writes. If a Python with scipy is available,
//! they are computed again.

use seekwell_lab::stats::*;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

#[derive(Deserialize)]
struct Case {
    of: String,
    #[serde(rename = "in")]
    given: Vec<Value>,
    scipy: Vec<f64>,
}

fn number(v: &Value) -> f64 {
    v.as_f64().expect("a number")
}

fn list(v: &Value) -> Vec<f64> {
    let all = v.as_array().expect("a list");
    all.iter().map(number).collect()
}

fn present(v: &[f64]) -> Vec<Option<f64>> {
    v.iter().copied().map(Some).collect()
}

fn defined_value(v: Option<f64>) -> f64 {
    v.expect("defined")
}

fn pair(v: Option<(f64, f64)>) -> [f64; 2] {
    let (low, high) = v.expect("an interval");
    [low, high]
}

/// Returns the results of the lab.
fn seekwell_results(c: &Case) -> Vec<f64> {
    let x = |i: usize| number(&c.given[i]);
    let sample = |i: usize| list(&c.given[i]);
    match c.of.as_str() {
        "normal_cdf" => vec![normal_cdf(x(0))],
        "normal_quantile" => vec![normal_quantile(x(0))],
        "t_quantile" => vec![t_quantile(x(0), x(1))],
        "t_tail2" => vec![t_tail2(x(0), x(1))],
        "f_tail" => vec![f_tail(x(0), x(1), x(2))],
        "describe" => {
            let d = describe(&present(&sample(0)));
            let all = [
                d.mean,
                d.median,
                d.sd,
                d.se,
                d.low,
                d.high,
                d.geometric_mean,
            ];
            all.map(defined_value).to_vec()
        }
        "paired" => {
            let (x, y) = (present(&sample(0)), present(&sample(1)));
            let p = paired(&x, &y, Better::Higher, false, None);
            let (wide, narrow) = (pair(p.interval95), pair(p.interval90));
            [
                &[defined_value(p.p)],
                &wide[..],
                &narrow[..],
                &[defined_value(p.df)],
            ]
            .concat()
        }
        "welch" => {
            let w = welch_log(&sample(0), &sample(1)).expect("two sides");
            [
                &[defined_value(w.p), defined_value(w.df)],
                &pair(w.interval95)[..],
            ]
            .concat()
        }
        "welch_summary" => {
            let v = sample(0);
            let of = |i: usize| Summary {
                mean: v[i],
                se: None,
                sd: Some(v[i + 1]),
                n: Some(v[i + 2] as u32),
            };
            let w = welch_summary(&of(0), &of(3));
            vec![defined_value(w.t), defined_value(w.p)]
        }
        "signed_rank" => vec![signed_rank(&sample(0)).p],
        "theil_sen" => vec![defined_value(theil_sen(&sample(0)))],
        "mann_kendall" => {
            let (s, p) = mann_kendall(&sample(0));
            vec![s as f64, p]
        }
        other => panic!("no case is of {other}"),
    }
}

/// Returns the number of compared values, the largest relative difference, and the function that
/// has it.
fn farthest(figures: &str) -> (usize, f64, String) {
    let mut worst = (0.0, String::new());
    let mut all = 0;
    for line in figures.lines() {
        let case: Case = serde_json::from_str(line).expect("a case");
        let ours = seekwell_results(&case);
        assert_eq!(ours.len(), case.scipy.len(), "{line}");
        for (own, theirs) in ours.iter().zip(&case.scipy) {
            // Tiny values are compared on an absolute scale.
            let off = (own - theirs).abs() / theirs.abs().max(1e-9);
            all += 1;
            assert!(off.is_finite(), "{line}: {own}");
            if off > worst.0 {
                worst = (off, format!("{}: {own} {theirs}", case.of));
            }
        }
    }
    (all, worst.0, worst.1)
}

/// `statrs` computes a tail probability with eight digits.
const TOLERATED: f64 = 2e-8;

#[test]
fn statistics_equal_stored_scipy_results() {
    let (all, off, of) = farthest(include_str!("figures.json"));
    println!("{all} figures; the farthest differs by {off:.1e} ({of})");
    assert!(all > 150, "{all}");
    assert!(off < TOLERATED, "{off:.1e}: {of}");
    // An error of one millionth must be detected.
    let text = include_str!("figures.json");
    let first = text.lines().find(|l| l.contains("paired")).expect("a case");
    let mut case: Value = serde_json::from_str(first).expect("JSON");
    let p = number(&case["scipy"][0]);
    case["scipy"][0] = Value::from(p * (1.0 + 1e-6));
    assert!(farthest(&case.to_string()).1 > TOLERATED);
}

/// Returns a Python interpreter that has scipy: the one of the tests that read results, or a
/// specified one.
fn python() -> Option<String> {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../python/bin/python");
    let named = std::env::var("SEEKWELL_TEST_PYTHON").ok();
    let all = [
        named,
        Some(own.display().to_string()),
        Some("python3".to_owned()),
    ];
    let has = |python: &String| {
        let tried = Command::new(python).args(["-c", "import scipy"]).output();
        tried.is_ok_and(|o| o.status.success())
    };
    all.into_iter().flatten().find(has)
}

#[test]
fn statistics_equal_fresh_scipy_results() {
    let Some(python) = python() else {
        println!("skipped: scipy asked anew (no Python has it: make test-tools)");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/scipy_vectors.py");
    let told = Command::new(python).arg(script).output();
    let told = told.expect("python runs");
    let err = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{err}");
    let text = String::from_utf8(told.stdout).expect("UTF-8");
    let (all, off, of) = farthest(&text);
    println!("{all} figures, asked now; the farthest differs by {off:.1e} ({of})");
    let kept = include_str!("figures.json");
    assert_eq!(text.lines().count(), kept.lines().count());
    assert!(off < TOLERATED, "{off:.1e}: {of}");
}
