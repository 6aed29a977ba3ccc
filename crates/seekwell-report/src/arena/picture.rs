//! A picture of all schedulers on two axes. Each scheduler has a mark with its intervals and its
//! name. The Pareto front of the two axes is drawn as a line.

use super::{name, percent, signed};
use crate::chart::ticks;
use crate::names;
use seekwell_core::numbers;
use seekwell_lab::arena::{Figure, Mean, Standing};
use std::fmt::Write;

const WIDE: f64 = 560.0;
const TALL: f64 = 380.0;
/// Space for the labels of the axes, in SVG units.
const LEFT: f64 = 58.0;
const BELOW: f64 = 46.0;
const RIGHT: f64 = 96.0;
const ABOVE: f64 = 14.0;
/// Minimum distance between names, in SVG units.
const LINE: f64 = 15.0;

/// One axis, in per cent.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// Makes an axis that covers all means, all intervals and zero, rounded to whole steps.
    fn covering<'a>(means: impl Iterator<Item = &'a Mean> + Clone) -> Self {
        let ends = means.flat_map(|m| {
            let (low, high) = m.interval95.unwrap_or((m.factor, m.factor));
            [percent(low), percent(high), percent(m.factor)]
        });
        let low = ends.clone().fold(0.0, f64::min);
        let high = ends.fold(0.0, f64::max);
        let steps = ticks((high - low).max(0.1), 5);
        let step = steps.get(1).copied().unwrap_or(1.0);
        Axis {
            low: libm::floor(low / step) * step,
            high: libm::ceil(high / step) * step,
            step,
        }
    }
    /// Returns the position of a value as a fraction of the axis.
    fn at(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low).max(f64::MIN_POSITIVE)
    }
    fn ticks(&self) -> impl Iterator<Item = f64> {
        let n = libm::round((self.high - self.low) / self.step) as u32;
        let (low, step) = (self.low, self.step);
        (0..=n).map(move |i| low + step * f64::from(i))
    }
}

fn tick(value: f64, step: f64) -> String {
    let digits = usize::from(step < 1.0);
    let text = match value.abs() < step / 1e6 {
        true => "0".to_owned(),
        false => numbers::signed(value, digits),
    };
    text.replace('-', "\u{2212}") + " %"
}

/// Escapes text for markup.
fn escaped(text: &str) -> String {
    let plain = names::plain(text);
    plain
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

/// Returns the vertical positions of names, in the order of `wanted`. Names that overlap are moved
/// apart.
fn apart(wanted: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut out = wanted.to_vec();
    for pair in order.windows(2) {
        out[pair[1]] = out[pair[1]].max(out[pair[0]] + LINE);
    }
    // Names below the lower edge are moved up.
    let lowest = TALL - BELOW;
    let mut floor = lowest;
    for i in order.into_iter().rev() {
        out[i] = out[i].min(floor);
        floor = out[i] - LINE;
    }
    out
}

/// Draws throughput on the x-axis and another figure on the y-axis. Returns `None` if no scheduler
/// has both.
pub(super) fn front(s: &Standing, against: Figure) -> Option<String> {
    let which = Figure::ALL.iter().position(|f| *f == against)?;
    let all: Vec<(&str, &Mean, &Mean, bool)> = s
        .places
        .iter()
        .filter_map(|p| {
            let (x, y) = (p.means[0].as_ref()?, p.means[which].as_ref()?);
            Some((p.scheduler.as_str(), x, y, p.front))
        })
        .collect();
    if all.is_empty() {
        return None;
    }
    let across = Axis::covering(all.iter().map(|p| p.1));
    let up = Axis::covering(all.iter().map(|p| p.2));
    let x = |v: f64| LEFT + (WIDE - LEFT - RIGHT) * across.at(v);
    let y = |v: f64| ABOVE + (TALL - ABOVE - BELOW) * (1.0 - up.at(v));
    let told: Vec<String> = all
        .iter()
        .map(|p| format!("{} {} and {}", p.0, signed(p.1.factor), signed(p.2.factor)))
        .collect();
    let mut out = format!(
        r#"<svg class="arena" viewBox="0 0 {WIDE} {TALL}" role="img" aria-label="Throughput against {}: {}">"#,
        name(against),
        escaped(&told.join(", "))
    );
    for v in across.ticks() {
        let class = if v.abs() < across.step / 1e6 {
            "mean"
        } else {
            "grid"
        };
        let (x, low) = (x(v), TALL - BELOW);
        let _ = write!(
            out,
            r#"<path class="{class}" d="M{x:.1} {ABOVE}V{low}"/><text class="middle" x="{x:.1}" y="{}">{}</text>"#,
            low + 16.0,
            tick(v, across.step)
        );
    }
    for v in up.ticks() {
        let class = if v.abs() < up.step / 1e6 {
            "mean"
        } else {
            "grid"
        };
        let y = y(v);
        let _ = write!(
            out,
            r#"<path class="{class}" d="M{LEFT} {y:.1}H{}"/><text class="end" x="{}" y="{:.1}">{}</text>"#,
            WIDE - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            tick(v, up.step)
        );
    }
    let _ = write!(
        out,
        r#"<text class="middle axis" x="{:.1}" y="{}">throughput, better to the right</text>"#,
        (LEFT + WIDE - RIGHT) / 2.0,
        TALL - 8.0
    );
    out += &steps(&all, &x, &y);
    let names = apart(
        &all.iter()
            .map(|p| y(percent(p.2.factor)) + 4.0)
            .collect::<Vec<_>>(),
    );
    for (i, (scheduler, mx, my, front)) in all.iter().enumerate() {
        let (cx, cy) = (x(percent(mx.factor)), y(percent(my.factor)));
        let mut class = if *front { "on" } else { "off" }.to_owned();
        if i == 0 {
            class += " own";
        }
        let _ = write!(
            out,
            r#"<g class="{class}"><title>{}: throughput {}, {} {}</title>"#,
            escaped(scheduler),
            signed(mx.factor),
            name(against),
            signed(my.factor)
        );
        if let Some((low, high)) = mx.interval95 {
            let (a, b) = (x(percent(low)), x(percent(high)));
            let _ = write!(out, r#"<path class="span" d="M{a:.1} {cy:.1}H{b:.1}"/>"#);
        }
        if let Some((low, high)) = my.interval95 {
            let (a, b) = (y(percent(low)), y(percent(high)));
            let _ = write!(out, r#"<path class="span" d="M{cx:.1} {a:.1}V{b:.1}"/>"#);
        }
        let (nx, ny) = (cx + 9.0, names[i]);
        let _ = write!(
            out,
            r#"<circle cx="{cx:.1}" cy="{cy:.1}" r="5"/><text class="name" x="{nx:.1}" y="{ny:.1}">{}</text></g>"#,
            escaped(scheduler)
        );
    }
    Some(out + "</svg>")
}

/// Draws the front of these two figures as steps from the highest mark to the rightmost mark. A
/// scheduler that is on the Pareto front only because of the third figure is below the steps.
fn steps(
    all: &[(&str, &Mean, &Mean, bool)],
    x: &impl Fn(f64) -> f64,
    y: &impl Fn(f64) -> f64,
) -> String {
    let at = |m: &Mean| percent(m.factor);
    let mut on: Vec<(f64, f64)> = all.iter().map(|p| (at(p.1), at(p.2))).collect();
    on.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)));
    let mut best = f64::NEG_INFINITY;
    on.retain(|p| {
        let higher = p.1 > best;
        best = best.max(p.1);
        higher
    });
    let mut d = String::new();
    for (i, p) in on.iter().rev().enumerate() {
        let (px, py) = (x(p.0), y(p.1));
        let _ = match i {
            0 => write!(d, "M{LEFT} {py:.1}H{px:.1}"),
            _ => write!(d, "V{py:.1}H{px:.1}"),
        };
    }
    let _ = write!(d, "V{}", TALL - BELOW);
    format!(r#"<path class="front" d="{d}"/>"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn name_labels_never_overlap(wanted in proptest::collection::vec(ABOVE..TALL - BELOW, 1..18)) {
            let out = apart(&wanted);
            let mut sorted = out.clone();
            sorted.sort_by(f64::total_cmp);
            prop_assert!(sorted.windows(2).all(|w| w[1] - w[0] > LINE - 1e-6));
            prop_assert!(sorted.last().is_none_or(|y| *y <= TALL - BELOW));
        }
    }
}
