//! The statistics on inputs with known answers. A simple independent program made them. They were
//! cross-checked with scipy and statsmodels, with brute force (sign flips) and with the
//! published rows. `null` means undefined. A failing case is printed by name.

use seekwell_lab::stats::*;
use serde_json::{Map, Value, json};
use std::path::Path;

type Input = Map<String, Value>;

fn list(v: &Value) -> Vec<f64> {
    let all = v.as_array().into_iter().flatten();
    all.map(|x| x.as_f64().expect("a number")).collect()
}

fn optional_values(v: &Value) -> Vec<Option<f64>> {
    v.as_array()
        .into_iter()
        .flatten()
        .map(Value::as_f64)
        .collect()
}

fn lists(v: &Value) -> Vec<Vec<f64>> {
    v.as_array().into_iter().flatten().map(list).collect()
}

fn number(i: &Input, name: &str, default: f64) -> f64 {
    i.get(name).and_then(Value::as_f64).unwrap_or(default)
}

fn better(i: &Input) -> Better {
    match i.get("better").and_then(Value::as_str) {
        Some("lower") => Better::Lower,
        _ => Better::Higher,
    }
}

fn low(p: Option<(f64, f64)>) -> Option<f64> {
    p.map(|p| p.0)
}

fn high(p: Option<(f64, f64)>) -> Option<f64> {
    p.map(|p| p.1)
}

fn of_paired(p: &Paired) -> Value {
    json!({
        "n": p.n, "dropped": p.dropped,
        "scale": if p.scale == Scale::Log { "log" } else { "difference" },
        "mean": p.mean, "se": p.se, "df": p.df, "p": p.p,
        "low95": low(p.interval95), "high95": high(p.interval95),
        "low90": low(p.interval90), "high90": high(p.interval90),
        "ahead": p.ahead, "equal": p.equal, "step_added": p.step_added, "ratio": p.ratio,
        "ratio_low95": low(p.ratio95), "ratio_high95": high(p.ratio95),
    })
}

fn summary(v: &Value) -> Summary {
    let of = |name: &str| v.get(name).and_then(Value::as_f64);
    Summary {
        mean: of("mean").expect("a mean"),
        se: of("se"),
        sd: of("sd"),
        n: of("n").map(|n| n as u32),
    }
}

fn part(v: &Value) -> Part {
    Part {
        mean: v[0].as_f64().expect("a mean"),
        se: v[1].as_f64(),
        df: v[2].as_f64(),
    }
}

/// Values by name, in name order.
fn named(v: &Value) -> (Vec<String>, Vec<&Value>) {
    let all = v.as_object().expect("an object");
    (all.keys().cloned().collect(), all.values().collect())
}

fn by_name(names: &[String], values: impl IntoIterator<Item = Value>) -> Value {
    names
        .iter()
        .cloned()
        .zip(values)
        .collect::<Map<_, _>>()
        .into()
}

fn answer(op: &str, i: &Input) -> Value {
    let at = |name: &str| i.get(name).unwrap_or(&Value::Null);
    match op {
        "anytime" => {
            let all = list(at("n")).into_iter();
            let of = |n: f64| json!(anytime_multiplier(n as usize, 0.05));
            json!({ "multiplier": all.map(of).collect::<Vec<_>>() })
        }
        "delta_median" => {
            let (names, values) = named(at("values"));
            let values: Vec<f64> = values.iter().filter_map(|v| v.as_f64()).collect();
            let d = delta_median(&values, better(i)).expect("a median");
            json!({ "median": d.median,
                "delta": by_name(&names, d.delta.iter().map(|x| json!(x))),
                "percent_of_median":
                    by_name(&names, d.percent_of_median.iter().map(|x| json!(x))) })
        }
        "describe" => {
            let d = describe(&optional_values(at("values")));
            json!({ "n": d.n, "missing": d.missing, "mean": d.mean, "median": d.median,
                "sd": d.sd, "se": d.se, "cv": d.cv, "min": d.min, "max": d.max, "low": d.low,
                "high": d.high, "geometric_mean": d.geometric_mean })
        }
        "diff_sessions" => {
            let estimate = |t: &str, c: &str| {
                let (t, c) = (list(at(t)).into_iter(), list(at(c)));
                let logs: Vec<f64> = t.zip(c).map(|(t, c)| libm::log(t) - libm::log(c)).collect();
                let (n, sd) = (logs.len() as f64, seekwell_stats::deviation(&logs));
                Estimate {
                    mean: seekwell_stats::mean(&logs),
                    variance: sd * sd / n,
                    df: Some(n - 1.0),
                }
            };
            let d = session_change(
                &estimate("old_t", "old_c"),
                &estimate("new_t", "new_c"),
                &list(at("history")),
                number(i, "sigma", 0.01),
                better(i),
                MARGIN,
            );
            json!({ "basis": if d.by_history { "history" } else { "control" },
                "change": d.change, "ratio": d.ratio, "se": d.se, "df": d.df,
                "low95": d.interval95.0, "high95": d.interval95.1, "regression": d.regression })
        }
        "outliers" => {
            let (names, cell) = named(at("cell"));
            let cell: Vec<_> = cell.into_iter().map(optional_values).collect();
            let o = outliers(&cell, MARGIN);
            json!({ "z": by_name(&names, o.z.iter().map(|z| json!(z))),
                "flagged": by_name(&names, o.flagged.iter().map(|f| json!(f))) })
        }
        "sd_cutoff" => {
            let rows = at("rows").as_array().expect("rows");
            let sds: Vec<f64> = rows.iter().filter_map(|r| r[2].as_f64()).collect();
            let red = sd_cutoff(&sds, number(i, "limit", 0.0));
            let names = rows.iter().zip(red).filter(|r| r.1);
            json!({ "flagged": names.map(|(r, _)| json!([r[0], r[1]])).collect::<Vec<_>>() })
        }
        "trend" => {
            let t = trend(&list(at("block_means"))).expect("blocks");
            json!({ "s": t.s, "p": t.p, "slope": t.slope, "flagged": t.flagged })
        }
        "two_modes" => {
            let m = two_modes(&list(at("values")), MARGIN);
            json!({ "d": m.d, "share": m.share, "gap": m.gap, "limit": m.limit,
                "flagged": m.flagged })
        }
        "combine" => {
            let parts: Vec<Part> = at("parts")
                .as_array()
                .expect("parts")
                .iter()
                .map(part)
                .collect();
            let c = combine(&parts, &list(at("weights"))).expect("weights");
            json!({ "mean": c.mean, "ratio": c.ratio, "se": c.se, "df": c.df,
                "low95": low(c.interval95), "high95": high(c.interval95), "p": c.p })
        }
        "holm" => json!(holm(&optional_values(at("p")))),
        "welch_log" => {
            let w = welch_log(&list(at("x")), &list(at("y"))).expect("positive values");
            json!({ "mean": w.mean, "ratio": w.ratio, "se": w.se, "df": w.df, "p": w.p,
                "low95": low(w.interval95), "high95": high(w.interval95) })
        }
        "welch_summary" => {
            let w = welch_summary(&summary(at("a")), &summary(at("b")));
            json!({ "difference": w.difference, "ratio": w.ratio, "se": w.se, "t": w.t,
                "df": w.df, "p": w.p, "low95": low(w.interval95), "high95": high(w.interval95),
                "ratio_low95": low(w.ratio95), "ratio_high95": high(w.ratio95) })
        }
        "paired" => {
            let corrected = at("corrected").as_bool().unwrap_or(false);
            let (t, r) = (
                optional_values(at("treatment")),
                optional_values(at("reference")),
            );
            of_paired(&paired(&t, &r, better(i), corrected, at("step").as_f64()))
        }
        "plan" => {
            let sd = number(i, "sd", 0.0);
            let alpha = number(i, "alpha", ALPHA);
            let n = number(i, "n", 0.0) as u32;
            json!({ "detectable_at_n": detectable(sd, n, alpha, 0.8),
                "plan_width_1pct": blocks_for_width(sd, 0.01, 6, 10_000) })
        }
        "ranks" => {
            let d = list(at("differences"));
            let (s, h) = (signed_rank(&d), hodges_lehmann(&d).expect("differences"));
            json!({ "signed_rank": { "n": s.n, "w": s.w, "p": s.p },
                "hodges_lehmann": { "estimate": h.estimate, "low": low(h.interval95),
                    "high": high(h.interval95) } })
        }
        "recommend" => recommended(i),
        "stop" => stopped(i),
        "switch_weight" => json!({ "weight": switch_weight(number(i, "l_t", 0.0),
            number(i, "l_b", 0.0), number(i, "s_t", 0.0), number(i, "s_b", 0.0)) }),
        "verdict" => {
            let v = verdict(&VerdictInput {
                mean: number(i, "mean", 0.0),
                se: at("se").as_f64(),
                df: at("df").as_f64(),
                p_adjusted: at("p_adjusted").as_f64(),
                better: better(i),
                extra: number(i, "extra", 0.0),
                runs_identical: at("runs_identical").as_bool().unwrap_or(false),
                ..VerdictInput::default()
            });
            json!({ "verdict": v.verdict.word(), "p_tost": v.p_tost })
        }
        "warmup" => {
            let runs = lists(at("runs"));
            let cut = |w: WarmUp| json!({ "drop": w.drop, "not_reached": w.not_reached });
            let frozen = frozen_warm_up(&runs);
            let m = moving(&runs, frozen.drop, MARGIN).expect("runs");
            json!({ "single": runs.iter().map(|r| cut(warm_up(r))).collect::<Vec<_>>(),
                "frozen": cut(frozen), "moving": { "mean": m.mean, "low95": low(m.interval95),
                    "high95": high(m.interval95), "moving": m.moving } })
        }
        other => panic!("no function for `{other}`"),
    }
}

fn recommended(i: &Input) -> Value {
    let names: Vec<String> = i["names"]
        .as_array()
        .expect("names")
        .iter()
        .map(|n| n.as_str().expect("a name").to_owned())
        .collect();
    let index = |n: &str| names.iter().position(|x| x == n).expect("a known name");
    let scores: Vec<f64> = names
        .iter()
        .map(|n| i["score"][n].as_f64().unwrap_or(0.0))
        .collect();
    let upper: Vec<Option<f64>> = names.iter().map(|n| i["upper90"][n].as_f64()).collect();
    let pairs: Vec<Against> = i["pairs"]
        .as_object()
        .expect("pairs")
        .iter()
        .map(|(k, v)| {
            let (one, other) = k.split_once('/').expect("a/b");
            Against {
                one: index(one),
                other: index(other),
                mean: v[0].as_f64().expect("a mean"),
                p: v[1].as_f64(),
            }
        })
        .collect();
    let incumbent = index(i["incumbent"].as_str().expect("a name"));
    let r = recommend(&scores, &upper, incumbent, &pairs, MARGIN).expect("treatments");
    let retained: Vec<&str> = r.retained.iter().map(|t| names[*t].as_str()).collect();
    json!({ "retained": retained, "decision": r.decision.word(), "pick": names[r.pick],
        "best": names[r.best] })
}

fn stopped(i: &Input) -> Value {
    let (names, values) = named(&i["values"]);
    let reference = i["reference"].as_str().expect("a name");
    let all: Vec<Vec<Option<f64>>> = values.into_iter().map(optional_values).collect();
    let at = names
        .iter()
        .position(|n| n == reference)
        .expect("the reference");
    let rest: Vec<usize> = (0..names.len()).filter(|n| *n != at).collect();
    let treatments: Vec<&[Option<f64>]> = rest.iter().map(|n| &all[*n][..]).collect();
    let rule = Stopping {
        n_max: number(i, "nmax", 30.0) as usize,
        ..Stopping::HOST
    };
    let s = rule.walk(&treatments, &all[at], better(i), None);
    let comparisons = s.comparisons.iter().map(|c| {
        json!({ "corrected": c.corrected, "mean": c.paired.mean, "se": c.paired.se,
            "low95": low(c.paired.interval95), "high95": high(c.paired.interval95),
            "p": c.paired.p })
    });
    let named: Vec<String> = rest.iter().map(|n| names[*n].clone()).collect();
    json!({ "n": s.n, "met": s.met, "comparisons": by_name(&named, comparisons) })
}

/// Finds the positions at which two values differ by more than the tolerances. Unexpected fields
/// are ignored.
fn differ(path: &str, want: &Value, got: &Value, rel: f64, abs: f64, out: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(w), Value::Object(g)) => {
            for (k, v) in w {
                let found = g.get(k).unwrap_or(&Value::Null);
                differ(&format!("{path}.{k}"), v, found, rel, abs, out);
            }
        }
        (Value::Array(w), Value::Array(g)) if w.len() == g.len() => {
            for (k, (v, x)) in w.iter().zip(g).enumerate() {
                differ(&format!("{path}[{k}]"), v, x, rel, abs, out);
            }
        }
        (Value::Number(w), Value::Number(g)) => {
            let (w, g) = (
                w.as_f64().unwrap_or(f64::NAN),
                g.as_f64().unwrap_or(f64::NAN),
            );
            if (w - g).abs() > abs.max(rel * w.abs()) {
                out.push(format!("{path}: {g} instead of {w}"));
            }
        }
        _ if want == got => {}
        _ => out.push(format!("{path}: {got} instead of {want}")),
    }
}

#[test]
fn every_test_vector_is_met() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the vectors")
        .map(|f| f.expect("a file").path())
        .collect();
    files.sort();
    let (mut wrong, mut cases) = (Vec::new(), 0);
    for file in &files {
        let text = std::fs::read_to_string(file).expect("text");
        let all: Value = serde_json::from_str(&text).expect("JSON");
        let op = all["op"].as_str().expect("an operation");
        for case in all["cases"].as_array().expect("cases") {
            let rel = case["rel_tol"].as_f64().or(all["default_rel_tol"].as_f64());
            let abs = all["default_abs_tol"].as_f64().unwrap_or(0.0);
            let got = answer(op, case["input"].as_object().expect("an input"));
            let name = format!("{op}, {}", case["name"].as_str().unwrap_or_default());
            differ(
                &name,
                &case["expect"],
                &got,
                rel.unwrap_or(0.0),
                abs,
                &mut wrong,
            );
            cases += 1;
        }
    }
    assert_eq!((files.len(), cases), (20, 99), "vectors went missing");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
