//! Report of a calibration: each parameter with its precision, and the residuals.

mod svg;

pub use svg::svg;

use crate::style::{DIM, GOOD, HEAD, WARN};
use crate::table::{Align, Table, paint, painted, wrap};
use seekwell_calibrate::{Curve, Estimate, Fit, Known, short};
use serde_json::{Value, json};

/// Number of rows of a residual plot above zero, and below zero.
const HALF: usize = 4;

fn interval(e: &Estimate) -> String {
    e.interval.map_or(String::new(), |(lo, hi)| {
        format!("{} to {}", short(lo), short(hi))
    })
}

fn last_words(fit: &Fit) -> impl Iterator<Item = &Estimate> {
    let all = &fit.estimates;
    (0..all.len())
        .filter(|i| all[i + 1..].iter().all(|l| l.key != all[*i].key))
        .map(|i| &all[i])
}

/// Returns the whole report as text.
pub fn text(fit: &Fit, width: usize) -> String {
    let mut out = String::new();
    paint(&mut out, &fit.facts.name, HEAD);
    out.push_str(&format!(
        ": {}\n",
        wrap(&format!("{}: {}", fit.kind, fit.because), 2, width).trim()
    ));
    for line in &fit.facts.identity {
        out.push_str(&wrap(line, 2, width));
    }
    out.push_str(&format!("  {} I/Os in {:.1} s\n", fit.ios, fit.seconds));
    if !fit.estimates.is_empty() {
        out.push('\n');
        out.push_str(&table(fit, width));
    }
    if let Some(d) = fit.demerit {
        let text = format!(
            "Latencies of random reads, model against device: demerit {:.1} %; expected by chance \
             with this many reads: {:.1} %; null model (a generic disk): {:.1} %.",
            d.fitted * 100.0,
            d.chance * 100.0,
            d.generic * 100.0
        );
        out.push('\n');
        out.push_str(&wrap(&text, 0, width));
    }
    for curve in &fit.curves {
        out.push('\n');
        out.push_str(&residuals(curve, width));
    }
    if !fit.notes.is_empty() {
        out.push('\n');
    }
    for note in &fit.notes {
        paint(&mut out, "note:", WARN);
        out.push_str(&format!(" {}\n", wrap(note, 2, width).trim()));
    }
    out
}

fn table(fit: &Fit, width: usize) -> String {
    let mut t = Table::new(&[
        ("PARAMETER", Align::Left),
        ("VALUE", Align::Right),
        ("UNIT", Align::Left),
        ("95 %", Align::Left),
        ("N", Align::Right),
        ("METHOD", Align::Left),
    ]);
    for e in last_words(fit) {
        let style = match e.known {
            Known::Measured => GOOD,
            Known::Stated => crate::style::PLAIN,
            Known::Unknown => DIM,
        };
        let method = match e.known {
            Known::Measured => e.method.clone(),
            Known::Stated => format!("stated: {}", e.method),
            Known::Unknown => format!("not measured: {}", e.method),
        };
        let unit = match e.value {
            seekwell_calibrate::Val::Pairs(_) => "",
            _ => e.unit,
        };
        let n = if e.samples > 0 {
            e.samples.to_string()
        } else {
            String::new()
        };
        t.row(vec![
            painted(e.key, style),
            e.value.to_string().into(),
            unit.into(),
            interval(e).into(),
            n.into(),
            method.into(),
        ]);
    }
    t.render_within(2, width)
}

/// Returns the error of the fit at a point, in per cent of the measured value.
fn off(p: &(f64, f64, f64)) -> f64 {
    if p.1 == 0.0 {
        0.0
    } else {
        (p.2 / p.1 - 1.0) * 100.0
    }
}

/// Returns the position of `x` on the x-axis as a fraction of its length.
fn along(curve: &Curve, x: f64) -> f64 {
    let scale = |x: f64| {
        if curve.log_x && x > 0.0 { x.ln() } else { x }
    };
    let all = curve.points.iter().map(|p| scale(p.0));
    let (lo, hi) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| {
        (a.min(x), b.max(x))
    });
    if hi > lo {
        (scale(x) - lo) / (hi - lo)
    } else {
        0.5
    }
}

/// Returns a round number that is not below `x`.
fn round_up(x: f64) -> f64 {
    let power = 10f64.powf(x.max(0.1).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| *s >= x)
        .unwrap_or(10.0 * power)
}

fn residuals(curve: &Curve, width: usize) -> String {
    if curve.points.is_empty() {
        return String::new();
    }
    let worst = curve
        .points
        .iter()
        .map(|p| off(p).abs())
        .fold(0.0, f64::max);
    let top = round_up(worst);
    let columns = width.saturating_sub(14).clamp(20, 72);
    let mut cells = vec![vec![' '; columns]; 2 * HALF + 1];
    cells[HALF].fill('-');
    for p in &curve.points {
        let x = (along(curve, p.0) * (columns - 1) as f64).round() as usize;
        let y = (HALF as f64 - off(p) / top * HALF as f64).round() as usize;
        cells[y.min(2 * HALF)][x.min(columns - 1)] = 'o';
    }
    let mut out = String::new();
    paint(&mut out, &curve.title, HEAD);
    out.push_str(&format!(
        ": fit against measurement, % of {} (worst {worst:.1} %)\n",
        curve.y
    ));
    for (i, row) in cells.iter().enumerate() {
        let label = match i {
            0 => format!("+{}", short(top)),
            HALF => "0".into(),
            _ if i == 2 * HALF => format!("-{}", short(top)),
            _ => String::new(),
        };
        let row: String = row.iter().collect();
        out.push_str(&format!("  {label:>7} |{}\n", row.trim_end()));
    }
    let (first, last) = (curve.points[0].0, curve.points[curve.points.len() - 1].0);
    let (a, b) = (short(first), format!("{} {}", short(last), curve.x));
    let gap = columns
        .saturating_sub(a.chars().count() + b.chars().count())
        .max(1);
    out.push_str(&format!("           {a}{}{b}\n", " ".repeat(gap)));
    out
}

/// Returns the whole report as JSON; `preset` is the text of the preset, if there is one.
pub fn json(fit: &Fit, preset: Option<&str>) -> Value {
    let value = |e: &Estimate| match &e.value {
        seekwell_calibrate::Val::Num(x) => json!(x),
        seekwell_calibrate::Val::Flag(b) => json!(b),
        seekwell_calibrate::Val::Word(w) => json!(w),
        seekwell_calibrate::Val::Pairs(p) => json!(p),
    };
    let parameters: Vec<Value> = last_words(fit)
        .map(|e| {
            json!({
                "name": e.key, "value": value(e), "unit": e.unit, "method": e.method,
                "interval_95": e.interval, "samples": e.samples,
                "known": match e.known {
                    Known::Measured => "measured",
                    Known::Stated => "stated",
                    Known::Unknown => "not measured",
                },
            })
        })
        .collect();
    let curves: Vec<Value> = fit
        .curves
        .iter()
        .map(|c| json!({ "title": c.title, "x": c.x, "y": c.y, "points": c.points }))
        .collect();
    json!({
        "schema": 1, "command": "calibrate", "device": fit.facts.name,
        "kind": fit.kind.to_string(), "because": fit.because, "identity": fit.facts.identity,
        "parameters": parameters, "curves": curves, "notes": fit.notes,
        "demerit": fit.demerit.map(|d| {
            json!({ "fitted": d.fitted, "generic": d.generic, "chance": d.chance })
        }),
        "ios": fit.ios, "seconds": fit.seconds,
        "stopped_early": fit.cut.as_ref().map(ToString::to_string),
        "preset": preset,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_calibrate::{Demerit, Facts, Kind};

    fn fit() -> Fit {
        Fit {
            kind: Kind::Hdd,
            because: "it turns".into(),
            facts: Facts {
                name: "/dev/x".into(),
                ..Facts::default()
            },
            estimates: vec![
                Estimate::num("rpm", 7200.0, "rpm", "P1")
                    .between(7199.0, 7201.0)
                    .n(300),
                Estimate::num("surfaces", 4.0, "surfaces", "a usual number").unknown(),
            ],
            curves: vec![Curve {
                title: "reads".into(),
                x: "GB".into(),
                y: "MB/s".into(),
                points: vec![
                    (0.0, 100.0, 100.0),
                    (5.0, 100.0, 102.0),
                    (10.0, 100.0, 96.0),
                ],
                log_x: false,
            }],
            notes: vec!["mind the gap".into()],
            demerit: Some(Demerit {
                fitted: 0.02,
                generic: 0.4,
                chance: 0.019,
            }),
            ios: 10,
            seconds: 1.0,
            cut: None,
        }
    }

    #[test]
    fn calibration_report_shows_the_precision_of_every_parameter() {
        let t = text(&fit(), 100);
        for part in [
            "7199 to 7201",
            "300",
            "not measured: a usual number",
            "demerit 2.0 %",
        ] {
            assert!(t.contains(part), "{part}:\n{t}");
        }
        // An error of 2 % is almost half the height, because the axis ends at 5 %. That is the next
        // round number above the largest error, 4 %.
        assert!(t.contains("worst 4.0 %") && t.contains("+5 |"), "{t}");
    }

    #[test]
    fn pictures_and_json_contain_every_point() {
        let f = fit();
        let s = svg(&f);
        assert_eq!(
            s.matches("<circle").count(),
            6,
            "measured and residual, each thrice"
        );
        assert!(s.starts_with("<svg") && s.trim_end().ends_with("</svg>"));
        let j = json(&f, None);
        assert_eq!(j["curves"][0]["points"].as_array().map(Vec::len), Some(3));
        assert_eq!(j["parameters"][0]["interval_95"][0], 7199.0);
    }
}
