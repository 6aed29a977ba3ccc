//! Plots of curves as an SVG without scripts, fonts or links.

use super::{Frame, named, number};
use seekwell_evidence::curves::Plot;
use std::fmt::Write;

/// Colours on a white background that people with colour blindness can distinguish.
const PENS: [&str; 4] = ["#2563a8", "#d1660f", "#2b8a52", "#8a3f9e"];
const WIDE: f64 = 720.0;
const HIGH: f64 = 330.0;
/// Left, right, top and bottom edge of the axes in a plot, in SVG units.
const BOX: (f64, f64, f64, f64) = (84.0, 640.0, 52.0, 264.0);
/// Height of the heading, in SVG units.
const HEAD: f64 = 48.0;

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Returns a document with a heading and with the plots below each other.
pub fn svg(heading: &str, plots: &[Plot]) -> String {
    let high = HEAD + HIGH * plots.len() as f64;
    // The width of a letter is about 0.6 of its size, so a long heading gets a smaller size.
    let size = (660.0 / 0.6 / heading.chars().count().max(1) as f64).clamp(9.0, 18.0);
    let heading = escaped(heading);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDE} {high}\" \
         font-family=\"sans-serif\" font-size=\"14\" fill=\"#222\">\n\
         <title>{heading}</title>\n\
         <rect width=\"{WIDE}\" height=\"{high}\" fill=\"#fff\"/>\n\
         <text x=\"24\" y=\"34\" font-size=\"{size:.1}\" font-weight=\"bold\">{heading}</text>\n"
    );
    for (i, p) in plots.iter().enumerate() {
        let y = HEAD + HIGH * i as f64;
        // Writing to a String cannot fail.
        let _ = writeln!(out, "<g transform=\"translate(0 {y})\">");
        draw_plot(&mut out, p);
        out += "</g>\n";
    }
    out + "</svg>\n"
}

fn draw_plot(out: &mut String, plot: &Plot) {
    let frame = Frame::for_plot(plot);
    let (left, right, top, bottom) = BOX;
    let x = |v: f64| left + (right - left) * frame.across(v);
    let y = |v: f64| bottom - (bottom - top) * frame.up(v);
    let _ = writeln!(
        out,
        "<text x=\"24\" y=\"20\" font-size=\"16\">{}</text>\n\
         <text x=\"24\" y=\"40\" font-size=\"13\" fill=\"#666\">{}</text>",
        escaped(&plot.title),
        escaped(&named(&plot.y))
    );
    for &t in &frame.y_ticks {
        let at = y(t);
        let _ = writeln!(
            out,
            "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#e2e2e2\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"13\">{}</text>",
            left - 8.0,
            at + 4.5,
            number(t)
        );
    }
    for &t in &frame.x_ticks {
        let at = x(t);
        let _ = writeln!(
            out,
            "<path d=\"M{at:.1} {bottom}v5\" stroke=\"#888\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"13\">{}</text>",
            bottom + 20.0,
            number(t)
        );
    }
    let _ = writeln!(
        out,
        "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#888\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"13\" fill=\"#666\">{}</text>",
        (left + right) / 2.0,
        bottom + 42.0,
        escaped(&named(&plot.x))
    );
    let mut taken: Vec<f64> = vec![];
    for (i, c) in plot.curves.iter().enumerate() {
        let pen = PENS[i % PENS.len()];
        let points: Vec<String> = c
            .points
            .iter()
            .map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1)))
            .collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{pen}\" stroke-width=\"2.2\" \
             stroke-linejoin=\"round\"/>",
            points.join(" ")
        );
        // Measured points have marks. A computed curve has too many points for marks.
        if c.points.len() <= 20 {
            for p in &c.points {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{pen}\"/>",
                    x(p.0),
                    y(p.1)
                );
            }
        }
        if plot.curves.len() > 1 {
            let mut at = c.points.last().map_or(bottom, |p| y(p.1)) + 4.5;
            while taken.iter().any(|t| (t - at).abs() < 16.0) {
                at -= 8.0;
            }
            taken.push(at);
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{at:.1}\" fill=\"{pen}\">{}</text>",
                right + 10.0,
                escaped(c.name)
            );
        }
    }
}
