//! Measurement, fit and residuals as one self-contained SVG.

use super::{along, off, round_up};
use seekwell_calibrate::{Curve, Fit, short};
use std::fmt::Write;

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 56.0;
const STEP: f64 = HEIGHT + 78.0;
const APART: f64 = WIDTH + 96.0;

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Draws a frame whose upper left corner is at (x, y). The values `ends` of the y-axis are written
/// to the left of the frame, and the first and last value of the x-axis below it.
fn frame(out: &mut String, x: f64, y: f64, ends: (f64, f64), c: &Curve, title: &str) {
    let (bottom, right) = (y + HEIGHT, x + WIDTH);
    let _ = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" \
         stroke=\"#999\"/>\n<text x=\"{x}\" y=\"{:.0}\" font-weight=\"bold\">{}</text>",
        y - 8.0,
        escape(title)
    );
    for (value, at) in [(ends.0, bottom), (ends.1, y + 10.0)] {
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{at:.0}\" text-anchor=\"end\">{}</text>",
            x - 6.0,
            short(value)
        );
    }
    let (first, last) = (c.points[0].0, c.points[c.points.len() - 1].0);
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{0:.0}\">{1}</text>\n\
         <text x=\"{right}\" y=\"{0:.0}\" text-anchor=\"end\">{2} {3}</text>",
        bottom + 16.0,
        short(first),
        short(last),
        escape(&c.x)
    );
}

fn dot(out: &mut String, x: f64, y: f64, color: &str) {
    let _ = writeln!(
        out,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{color}\"/>"
    );
}

fn panel(out: &mut String, c: &Curve, y: f64) {
    let top = c.points.iter().map(|p| p.1.max(p.2)).fold(0.0, f64::max);
    let top = round_up(top);
    let across = |x: f64, left: f64| left + along(c, x) * WIDTH;
    let up = |v: f64| y + HEIGHT * (1.0 - v / top);
    frame(
        out,
        LEFT,
        y,
        (0.0, top),
        c,
        &format!("{} ({})", c.title, c.y),
    );
    let line: Vec<String> = c
        .points
        .iter()
        .map(|p| format!("{:.1},{:.1}", across(p.0, LEFT), up(p.2)))
        .collect();
    let _ = writeln!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#c60\" stroke-width=\"1.5\"/>",
        line.join(" ")
    );
    for p in &c.points {
        dot(out, across(p.0, LEFT), up(p.1), "#06c");
    }
    let worst = round_up(c.points.iter().map(|p| off(p).abs()).fold(0.0, f64::max));
    let left = LEFT + APART;
    let title = "fit against measurement, %";
    frame(out, left, y, (-worst, worst), c, title);
    let middle = y + HEIGHT / 2.0;
    let _ = writeln!(
        out,
        "<line x1=\"{left}\" y1=\"{middle}\" x2=\"{}\" y2=\"{middle}\" stroke=\"#999\" \
         stroke-dasharray=\"3\"/>",
        left + WIDTH
    );
    for p in &c.points {
        let at = middle - off(p) / worst * HEIGHT / 2.0;
        dot(out, across(p.0, left), at, "#06c");
    }
}

/// Returns the SVG. It has one row per curve, with measurement and fit on the left and residuals on
/// the right.
pub fn svg(fit: &Fit) -> String {
    let curves: Vec<&Curve> = fit.curves.iter().filter(|c| !c.points.is_empty()).collect();
    let (w, h) = (
        LEFT + APART + WIDTH + 24.0,
        TOP + STEP * curves.len() as f64,
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" \
         viewBox=\"0 0 {w} {h}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{w}\" height=\"{h}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
        escape(&format!(
            "{}: {}; dots measured, line fitted",
            fit.facts.name, fit.kind
        ))
    );
    for (i, c) in curves.iter().enumerate() {
        panel(&mut out, c, TOP + STEP * i as f64);
    }
    out.push_str("</svg>\n");
    out
}
